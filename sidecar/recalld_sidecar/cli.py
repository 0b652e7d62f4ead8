"""The `recalld` command: serve, look after a store, and talk to a running sidecar.

Exit status: 0 done, 1 failed (one line on standard error), 2 wrong usage. What a command answers goes to
standard output, for people or with `--json` for programs; remarks go to standard error. A command imports
what it needs when it runs, so that none pays for another's libraries.
"""

import argparse
import dataclasses
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from recalld_sidecar import __version__

if TYPE_CHECKING:
    from recalld import Client, Namespace, RecalldError

    from recalld_sidecar.config import Config

# ruff: noqa: PLC0415 - see above: a command imports what it needs

T = TypeVar("T")

_PIPE_CLOSED = 1
_INTERRUPTED = 130
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class _FailureError(Exception):
    """A command failed; the message is the line that people read."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    # gRPC reads it when it is imported; what it would write by itself says less than our own errors.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    args = _parser(chosen=given[0] if given else "").parse_args(given)
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except _FailureError as failure:
        print("recalld:", " ".join(str(failure).split()), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough; the interpreter's last flush must not fail as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    return status


# The sidecar and its store


def _serve(args: argparse.Namespace) -> int:
    config = _configuration(args)
    from recalld_sidecar import app
    from recalld_sidecar._core import CoreError
    from recalld_sidecar.http import HttpError
    from recalld_sidecar.server import ServerError
    from recalld_sidecar.sockets import SocketError

    try:
        return app.run(config)
    except CoreError as error:
        raise _FailureError(error.message) from None
    except (SocketError, ServerError, HttpError) as error:
        raise _FailureError(str(error)) from None


def _config(args: argparse.Namespace) -> int:
    config = _configuration(args)
    if args.json:
        _print_json(config.model_dump(mode="json"))
    else:
        print(config.to_toml(), end="")
    return 0


def _doctor(args: argparse.Namespace) -> int:
    config = _configuration(args)
    from recalld_sidecar import doctor

    findings = doctor.examine_all(config)
    problems = [finding for finding in findings if finding.fix]
    if args.json:
        _print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(f"{'PROBLEM' if finding.fix else 'ok     '} {finding.where}: {finding.what}")
            if finding.fix:
                print(f"        fix: {finding.fix}")
    return 1 if problems else 0


def _demo(args: argparse.Namespace) -> int:
    from recalld_sidecar import demo

    status: int = demo.run(args)
    return status


def _load(args: argparse.Namespace) -> int:
    from recalld_sidecar import load

    return load.run(args, args.target or _default_address())


def _version(_args: argparse.Namespace) -> int:
    from recalld_sidecar import _core

    print(f"recalld {__version__} (core {_core.__version__}, {_core.build_profile()})")
    return 0


def _configuration(args: argparse.Namespace) -> "Config":
    from recalld_sidecar.config import Config, ConfigError

    flags = {name: value for name in Config.model_fields if (value := getattr(args, name, None)) is not None}
    try:
        return Config.load(flags, getattr(args, "config", None))
    except ConfigError as error:
        raise _FailureError(str(error)) from None


# Talking to a running sidecar


def _write(args: argparse.Namespace) -> int:
    content = _read_content(args.content)
    receipt = _talk(
        args,
        lambda _, namespace: namespace.write(
            content,
            key=args.key,
            kind=args.kind,
            summary=args.summary,
            tags=args.tag,
            metadata=args.metadata,
            importance=args.importance,
            confidence=args.confidence,
            occurred_at=args.occurred_at,
            ttl=args.ttl,
            if_version=args.if_version,
            origin=args.origin,
            idempotency_key=args.idempotency_key,
        ),
    )
    if args.json:
        _print_json(_plain(receipt))
    else:
        print(f"{receipt.outcome} {receipt.id} version {receipt.version}, {receipt.content_tokens} tokens")
    return 0


def _search(args: argparse.Namespace) -> int:
    found = _talk(
        args,
        lambda _, namespace: namespace.search(
            args.query,
            limit=args.limit,
            kinds=args.kind,
            tags=args.tag,
            min_score=args.min_score,
        ),
    )
    if args.json:
        _print_json(_plain(found))
        return 0
    for hit in found.hits:
        name = f"{hit.id} {hit.key}" if hit.key else hit.id
        print(
            _printable(f"{hit.score:.3f}  {name}  {hit.kind}, {_age(hit.age)}, {hit.content_tokens} tokens")
        )
        print(_printable(f"       {hit.summary}"))
    if not found.hits:
        _remark("nothing found")
    for degradation in found.degraded:
        _remark(f"the {degradation.arm} arm did not take part: {degradation.reason}")
    return 0


def _get(args: argparse.Namespace) -> int:
    details = _talk(
        args,
        lambda _, namespace: namespace.get(
            args.ids,
            args.key,
            max_tokens=args.max_tokens,
            as_of_version=args.as_of_version,
        ),
    )
    if args.json:
        _print_json(_plain(details))
    else:
        for memory in details.memories:
            for name, value in _plain(memory).items():
                if name != "content" and value not in ("", None, [], {}):
                    print(_printable(f"{name}: {value if isinstance(value, str) else json.dumps(value)}"))
            print()
            _print_text(memory.content)
    missing = [*details.missing_ids, *details.missing_keys]
    if missing:
        raise _FailureError(f"not found: {', '.join(missing)}")
    return 0


def _brief(args: argparse.Namespace) -> int:
    brief = _talk(
        args,
        lambda _, namespace: namespace.brief(
            args.query,
            budget_tokens=args.budget_tokens,
            encoding=args.encoding,
            limit=args.limit,
            kinds=args.kind,
            tags=args.tag,
            min_score=args.min_score,
        ),
    )
    if args.json:
        _print_json(_plain(brief))
        return 0
    if brief.text:
        _print_text(brief.text)
    _remark(f"{brief.tokens} tokens, {len(brief.included)} memories in, {len(brief.omitted)} left out")
    return 0


def _delete(args: argparse.Namespace) -> int:
    deleted = _talk(
        args,
        lambda _, namespace: namespace.delete(
            args.ids,
            args.key,
            if_version=args.if_version,
            dry_run=args.dry_run,
        ),
    )
    if args.json:
        _print_json(_plain(deleted))
        return 0
    verb = "would delete" if args.dry_run else "deleted"
    print(f"{verb} {deleted.deleted} memories ({deleted.deleted_versions} versions)")
    missing = [*deleted.missing_ids, *deleted.missing_keys]
    if missing:
        _remark(f"not found: {', '.join(missing)}")
    return 0


def _stats(args: argparse.Namespace) -> int:
    def ask(client: "Client", namespace: "Namespace | None") -> dict[str, Any]:
        counts = {"store": _plain(client.stats())}
        if namespace is not None:
            counts["namespace"] = _plain(namespace.stats())
        return counts

    counts = _talk(args, ask)
    if args.json:
        _print_json(counts)
    else:
        for group, values in counts.items():
            for name, value in values.items():
                print(f"{group}.{name}: {value}")
    return 0


def _talk(args: argparse.Namespace, ask: Callable[["Client", Any], T]) -> T:
    """Call a running sidecar; what it refuses becomes one line."""
    from recalld import Client, RecalldError

    address = args.address or _default_address()
    try:
        with Client(address, timeout=args.timeout) as client:
            return ask(client, client.namespace(*args.namespace) if args.namespace else None)
    except RecalldError as error:
        raise _FailureError(_explain(error, address)) from None


def _default_address() -> str:
    return str(_configuration(argparse.Namespace()).listen[0])


def _explain(error: "RecalldError", address: str) -> str:
    from recalld import InvalidArgument, Unavailable

    if isinstance(error, Unavailable) and not error.reason:
        return f"no sidecar answers at {address}: start one with `recalld serve`, or give another --address"
    if isinstance(error, InvalidArgument) and error.field and error.field not in error.message:
        return f"{error} ({error.field})"
    return str(error)


def _read_content(argument: str) -> str:
    if argument != "-":
        return argument
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise _FailureError(f"the content on standard input is not UTF-8: {error.reason}") from None
    # The last line break belongs to the shell, not to what is remembered.
    return text.removesuffix("\n").removesuffix("\r")


# Output


def _print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def _print_text(text: str) -> None:
    """Print a text as it is, but on a terminal without the control characters that could move its cursor."""
    print(_printable(text) if sys.stdout.isatty() else text)


def _printable(text: str) -> str:
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def _remark(text: str) -> None:
    print(_printable(text), file=sys.stderr)


def _plain(value: Any) -> Any:
    """Turn a record of the client into what JSON can say: times in RFC 3339, lengths of time in seconds."""
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _age(age: timedelta) -> str:
    seconds = int(age.total_seconds())
    for unit, length in sorted(_SECONDS.items(), key=lambda entry: -entry[1]):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return "now"


# Arguments


def _parser(chosen: str) -> argparse.ArgumentParser:
    """Make the parser; what needs an import to be known is there only for the command that was chosen."""
    parser = argparse.ArgumentParser(
        prog="recalld", description="A memory daemon that LLM agents keep beside them."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        made.set_defaults(run=run)
        return made

    store = {
        "serve": command("serve", _serve, "serve a data directory until SIGTERM"),
        "config": _with_json(command("config", _config, "print the configuration that `serve` would use")),
        "doctor": _with_json(command("doctor", _doctor, "check a data directory, its model and its sockets")),
    }
    if chosen in store:
        _add_settings(store[chosen])
    _add_calls(command)
    demo = command("demo", _demo, "show what recalld does, on a store of its own")
    if chosen == "demo":
        from recalld_sidecar.demo import add_arguments

        add_arguments(demo)
    load = command("load", _load, "measure how fast a running sidecar answers, and whether it holds an SLO")
    if chosen == "load":
        from recalld_sidecar.load import add_arguments

        add_arguments(load)
    command("version", _version, "print the version")
    return parser


def _add_settings(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every setting. Values are checked with the rest of the configuration."""
    from recalld_sidecar.config import Config

    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file with settings")
    for name, field in Config.model_fields.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            action="append" if name in ("listen", "tokenizers") else "store",
            metavar="VALUE",
            help=(field.description or "").replace("%", "%%"),
        )


def _add_calls(
    command: Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser],
) -> None:
    write = _with_namespace(command("write", _write, "write a memory"))
    write.add_argument("content", help="what to remember; - reads standard input")
    write.add_argument("--key", help="stable name: writing to it again makes a new version")
    write.add_argument("--kind", help="what the memory is, for example fact, preference or event")
    write.add_argument("--summary", help="your own summary")
    write.add_argument("--tag", action="append", default=[], help="a tag; may be repeated")
    write.add_argument("--metadata", type=_json_object, metavar="JSON", help="attributes, as a JSON object")
    write.add_argument("--importance", type=float, metavar="0..1")
    write.add_argument("--confidence", type=float, metavar="0..1")
    write.add_argument("--occurred-at", type=_instant, metavar="TIME", help="RFC 3339, with its zone")
    write.add_argument(
        "--ttl", type=_duration, metavar="LENGTH", help="expires after this, for example 30m or 90d"
    )
    write.add_argument(
        "--if-version", type=int, metavar="N", help="only when this is the key's current version"
    )
    write.add_argument("--origin", help="who or what produced it")
    write.add_argument("--idempotency-key", help="makes the command safe to repeat for 24 hours")

    search = _with_namespace(command("search", _search, "find memories by words and meaning"))
    _add_query(search)
    search.add_argument("--limit", type=int, metavar="N", help="most hits (5)")

    get = _with_namespace(command("get", _get, "print memories in full"))
    _add_names(get)
    get.add_argument("--max-tokens", type=int, metavar="N", help="cut each content to this many tokens")
    get.add_argument("--as-of-version", type=int, metavar="N", help="an earlier version, of one memory")

    brief = _with_namespace(command("brief", _brief, "pack memories into a text for a prompt"))
    _add_query(brief)
    brief.add_argument("--budget-tokens", type=int, metavar="N", help="most tokens of the text (1200)")
    brief.add_argument(
        "--encoding", help="counter of tokens, for example o200k_base (default) or approximate"
    )
    brief.add_argument("--limit", type=int, metavar="N", help="most memories to consider (64)")

    delete = _with_namespace(command("delete", _delete, "delete memories with all their versions"))
    _add_names(delete)
    delete.add_argument("--if-version", type=int, metavar="N", help="only when this is the current version")
    delete.add_argument("--dry-run", action="store_true", help="only count")

    _with_namespace(command("stats", _stats, "count what a store or a namespace holds"), required=False)


def _with_namespace(parser: argparse.ArgumentParser, *, required: bool = True) -> argparse.ArgumentParser:
    parser.add_argument(
        "--namespace",
        type=parse_namespace,
        required=required,
        metavar="PATH",
        help="segments separated by /, for example acme/user/alice; %%2F is a / inside a segment",
    )
    parser.add_argument("--address", help="unix:PATH or HOST:PORT (default: where `recalld serve` listens)")
    parser.add_argument(
        "--timeout", type=float, default=10.0, metavar="SECONDS", help="deadline of the call (10)"
    )
    return _with_json(parser)


def _with_json(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--json", action="store_true", help="answer in JSON")
    return parser


def _add_query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", help="what to look for")
    parser.add_argument("--kind", action="append", default=[], help="only this kind; may be repeated")
    parser.add_argument("--tag", action="append", default=[], help="only with this tag; may be repeated")
    parser.add_argument(
        "--min-score", type=float, metavar="0..1", help="only memories that score at least this"
    )


def _add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="id of a memory")
    parser.add_argument("--key", action="append", default=[], help="key of a memory; may be repeated")


def parse_namespace(text: str) -> tuple[str, ...]:
    """Parse `acme/user/alice`; `%2F` is a slash inside a segment, and `%25` a per cent sign."""
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise argparse.ArgumentTypeError(
            f"{text!r}: % starts an escape of two hex digits; write %25 for itself"
        )
    segments = tuple(_unescape(segment) for segment in text.split("/"))
    if not all(segments):
        raise argparse.ArgumentTypeError(
            f"{text!r} has an empty segment; write segments as in acme/user/alice"
        )
    return segments


def _unescape(segment: str) -> str:
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise argparse.ArgumentTypeError(f"{segment!r} is not UTF-8 once unescaped") from None


def _duration(text: str) -> timedelta:
    match = re.fullmatch(r"([0-9]{1,9})([smhd])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a length of time such as 90s, 30m, 12h or 7d")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-05-12T09:30:00Z") from None
    if instant.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} has no time zone; end it with Z or an offset such as +02:00"
        )
    return instant


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("not a JSON object")
    return value
