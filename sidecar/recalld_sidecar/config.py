"""Configuration: what may be set, where it comes from, and what is refused.

A value comes from a flag, else from the environment (`RECALLD_*`), else from the TOML file, else from the
default below. The result is frozen and passed around whole. Nothing here opens a socket, makes a folder or
reads a store, and nothing else in the sidecar reads the environment.
"""

import ipaddress
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field, PlainSerializer, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

ENV_PREFIX = "RECALLD_"

BUILT_IN_COUNTERS = ("o200k_base", "cl100k_base", "approximate")
"""Counters of tokens that need no file; a tokenizer cannot have such a name."""

MAX_TOKENIZERS = 16
"""Most tokenizers: a large one takes some hundred megabytes."""

MAX_SOCKET_PATH_BYTES = 107
"""Longest path of a Unix socket on Linux: `sun_path` has 108 bytes and ends with a NUL."""


class ConfigError(Exception):
    """The configuration is wrong; the message names each field at fault and where its value came from."""


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A Unix socket, by its absolute path."""

    path: Path

    def __str__(self) -> str:
        return f"unix:{self.path}"


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A loopback address and a port; port 0 lets the system choose one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_tcp_address(text: str) -> TcpAddress:
    """Parse `HOST:PORT` or `[IPV6]:PORT`; `localhost` means 127.0.0.1. Raises ValueError off the loopback."""
    host, separator, port = text.rpartition(":")
    if not separator or not (port.isascii() and port.isdigit()) or int(port) > 65535:  # noqa: PLR2004
        raise ValueError(f"{text!r} is not HOST:PORT with a port of 0 to 65535")
    bracketed = host.startswith("[") and host.endswith("]")
    name = host[1:-1] if bracketed else host
    try:
        ip = ipaddress.ip_address("127.0.0.1" if name == "localhost" else name)
    except ValueError:
        raise ValueError(f"{text!r}: {name!r} is neither an IP address nor `localhost`") from None
    if bracketed != (ip.version == 6):  # noqa: PLR2004
        raise ValueError(f"{text!r}: an IPv6 address, and only that, stands in brackets: [::1]:7411")
    if not ip.is_loopback:
        raise ValueError(
            f"{text!r} is not on the loopback; there is no authentication, so nothing else is served"
        )
    return TcpAddress(str(ip), int(port))


def parse_address(text: str) -> UnixAddress | TcpAddress:
    """Parse `unix:PATH` (made absolute) or a loopback `HOST:PORT`. Raises ValueError."""
    if not text.startswith("unix:"):
        return parse_tcp_address(text)
    name = text.removeprefix("unix:")
    if not name or "\0" in name:
        raise ValueError(f"{text!r} names no socket; write unix:PATH")
    path = _to_path(name)
    if len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
        raise ValueError(
            f"{str(path)!r} is too long for a Unix socket: at most {MAX_SOCKET_PATH_BYTES} bytes"
        )
    return UnixAddress(path)


def private_runtime_folder() -> Path:
    """Folder of the default socket without XDG_RUNTIME_DIR. Anyone can write beside it: it must be ours."""
    return Path(f"/tmp/recalld-{os.getuid()}")  # noqa: S108  sockets.claimed() checks the owner and the mode


def _default_listen() -> tuple[UnixAddress]:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime) if runtime.startswith("/") else private_runtime_folder()
    return (UnixAddress(folder / "recalld.sock"),)


def default_data_dir() -> Path:
    """Where memories are kept unless the configuration says otherwise."""
    data_home = os.environ.get("XDG_DATA_HOME", "")
    if data_home.startswith("/"):
        return Path(data_home) / "recalld"
    try:
        return Path.home() / ".local/share/recalld"
    except RuntimeError:
        raise ConfigError("data_dir: this user has no home directory; say where memories are kept") from None


def _split(value: object) -> object:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _distinct(addresses: tuple[UnixAddress | TcpAddress, ...]) -> tuple[UnixAddress | TcpAddress, ...]:
    named = [address for address in addresses if isinstance(address, UnixAddress) or address.port]
    for address in named:
        if named.count(address) > 1:
            raise ValueError(f"{address} is given twice")
    return addresses


def _to_address(value: object) -> UnixAddress | TcpAddress:
    if isinstance(value, UnixAddress | TcpAddress):
        return value
    return parse_address(_text(value))


def _to_http(value: object) -> TcpAddress | None:
    if value is None or isinstance(value, TcpAddress):
        return value
    return None if value == "off" else parse_tcp_address(_text(value))


def _to_path(value: object) -> Path:
    text = str(value) if isinstance(value, Path) else _text(value)
    if not text:
        raise ValueError("must not be empty")
    try:
        return Path(os.path.abspath(Path(text).expanduser()))  # noqa: PTH100  resolve() would follow links
    except RuntimeError as error:
        raise ValueError(f"{text!r}: {error}") from None


def _to_tokenizers(value: object) -> dict[str, Path]:
    """Read a table of names and paths, or `NAME=PATH` in a list or separated by commas."""
    if isinstance(value, dict):
        named = list(value.items())
    elif isinstance(value, list):
        named = [_text(part).partition("=")[::2] for part in value]
    else:
        named = [part.strip().partition("=")[::2] for part in _text(value).split(",") if part.strip()]
    found: dict[str, Path] = {}
    for name, path in named:
        if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9_.-]{1,64}", name):
            raise ValueError(
                f"{name!r} must be a name of 1 to 64 of a-z, 0-9, `_`, `-` and `.`; write NAME=PATH"
            )
        if name in BUILT_IN_COUNTERS:
            raise ValueError(f"{name!r} is a counter that is built in; choose another name")
        if name in found:
            raise ValueError(f"{name!r} is given twice")
        try:
            found[name] = _to_path(path)
        except ValueError as error:
            raise ValueError(f"{name!r}: {error}") from None
    if len(found) > MAX_TOKENIZERS:
        raise ValueError(f"must be at most {MAX_TOKENIZERS}, not {len(found)}")
    return found


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{value!r} must be text without NUL")
    return value


_AsText = PlainSerializer(str)
_Folder = Annotated[Path, BeforeValidator(_to_path), _AsText]
_Address = Annotated[UnixAddress | TcpAddress, BeforeValidator(_to_address), _AsText]
_Listen = Annotated[
    tuple[_Address, ...],
    NoDecode,
    BeforeValidator(_split),
    Field(min_length=1),
    AfterValidator(_distinct),
]
_Http = Annotated[
    TcpAddress | None,
    BeforeValidator(_to_http),
    PlainSerializer(lambda http: "off" if http is None else str(http)),
]
_Tokenizers = Annotated[dict[str, Annotated[Path, _AsText]], NoDecode, BeforeValidator(_to_tokenizers)]


class Config(BaseSettings):
    """Everything that can be set. The constructor takes arguments and defaults only; see `load`."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    data_dir: _Folder = Field(default_factory=default_data_dir)
    """The data directory. One process a directory."""
    model_dir: _Folder = Path(__file__).parent / "data" / "static-256"
    """Folder of the embedding model."""
    listen: _Listen = Field(default_factory=_default_listen)
    """Where gRPC is served: `unix:PATH` and loopback `HOST:PORT`, in the environment separated by commas."""
    http: _Http = TcpAddress("127.0.0.1", 7412)
    """Where metrics and probes are served over HTTP, loopback only; `off` for nowhere."""
    front: Literal["native", "python"] = "native"
    """What terminates gRPC: `native` in Rust, with grpcio behind it for what it does not answer, or all in grpcio."""
    max_store_bytes: Annotated[ByteSize, Field(ge=1 << 20, le=1 << 46)] = ByteSize(1 << 40)
    """Most bytes that the data file may grow to, for example `20GiB`. Space is taken only as it is needed."""
    max_in_flight: Annotated[int, Field(ge=1, le=4096)] = 128
    """Most calls answered at a time; further ones are refused with RESOURCE_EXHAUSTED."""
    max_queued_writes: Annotated[int, Field(ge=1, le=1_000_000)] = 4096
    """Most writes that wait for the writer; further ones are refused with RESOURCE_EXHAUSTED."""
    index_after: Annotated[int, Field(ge=1, le=1 << 32)] = 20_000
    """Passages from which on a namespace gets an approximate index."""
    max_index_bytes: Annotated[ByteSize, Field(ge=0, le=1 << 46)] = ByteSize(1 << 32)
    """Most memory for approximate indexes, for example `1GiB`. Namespaces whose index has no room are scanned."""
    slo_ms: Annotated[float, Field(gt=0, le=60_000, allow_inf_nan=False)] = 50.0
    """Time within which a call should be answered, in milliseconds: the metrics count those that took longer."""
    tokenizers: _Tokenizers = Field(default_factory=dict)
    """Counters of tokens besides the built-in ones: `NAME=PATH` of a Hugging Face `tokenizer.json`, or a table."""
    drain_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 10.0
    """How long calls in hand may take to finish after SIGTERM, in seconds."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe log lines that are written. `debug` has a line for every call."""
    log_format: Literal["json", "text"] = "json"
    """Form of log lines."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take arguments only: `load` merges the sources, so that errors can say where a value came from."""
        return (init_settings,)

    @classmethod
    def load(cls, flags: Mapping[str, Any], file: Path | None = None) -> Self:
        """Merge flags, environment, file and defaults, in this order of precedence. Raises ConfigError."""
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        environment = EnvSettingsSource(cls, env_prefix=ENV_PREFIX)()
        for found, origin in (
            (_read_file(file) if file else {}, f"in {file}"),
            (environment, "from {prefix}{upper}"),
            (flags, "from --{flag}"),
        ):
            for name, value in found.items():
                values[name] = value
                origins[name] = origin.format(
                    prefix=ENV_PREFIX, upper=name.upper(), flag=name.replace("_", "-")
                )
        try:
            return cls(**values)
        except ValidationError as error:
            raise ConfigError(_explain(error, origins)) from None

    def to_toml(self) -> str:
        """Write the configuration as a file that `load` reads back; secrets are masked."""
        return "".join(f"{name} = {_toml(value)}\n" for name, value in self.model_dump(mode="json").items())


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not a TOML file: {error}") from None


def _explain(error: ValidationError, origins: Mapping[str, str]) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        name = str(problem["loc"][0])
        if problem["type"] == "extra_forbidden":
            reason = "there is no such setting"
        else:
            reason = problem["msg"].removeprefix("Value error, ")
        lines.append(f"{name} ({origins.get(name, 'default')}): {reason}")
    return "; ".join(dict.fromkeys(lines))


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_toml(name)} = {_toml(part)}' for name, part in value.items())}}}"
    # JSON writes strings, integers, finite floats and booleans as TOML does, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
