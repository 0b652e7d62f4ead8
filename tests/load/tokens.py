"""Counting tokens, beside tiktoken's own encoder on the same texts."""

import tiktoken
from recalld_sidecar import _core

from tests.load import corpus
from tests.load.report import Figures, at_least
from tests.load.rounds import in_turns, ratio
from tests.load.scale import Scale
from tests.support.reference_tokens import ENCODINGS, reference_encoding

LONGER = 4


def texts(length: int) -> dict[str, str]:
    """Texts of so many characters."""
    return {
        "English": corpus.english(length),
        "Chinese": corpus.chinese(length),
        "JSON": corpus.json_records(length),
        "code": corpus.code(length),
        "one letter": "a" * length,
    }


def measure(scale: Scale) -> Figures:
    """Measure all texts in all encodings."""
    figures = Figures(f"Counting tokens of {scale.text_length:,} characters")
    for encoding in ENCODINGS:
        reference = reference_encoding(encoding)
        for name, text in texts(scale.text_length).items():
            _one_text(figures, scale, reference, f"{name}, {encoding}", text)
        _length(figures, scale, encoding)
    figures.notes.append(
        "tiktoken's time is that of `encode_ordinary`. Both are called from Python, on one thread; MB are "
        "10⁶ bytes of UTF-8."
    )
    return figures


def _one_text(figures: Figures, scale: Scale, reference: tiktoken.Encoding, name: str, text: str) -> None:
    encoding = reference.name
    timings = in_turns(
        {
            "recalld": lambda _: _core.count_tokens(text, encoding),
            "tiktoken": lambda _: reference.encode_ordinary(text),
        },
        rounds=scale.rounds,
        calls_a_round=3,
    )
    ours, theirs = timings["recalld"], timings["tiktoken"]
    megabytes = len(text.encode()) / 1e6
    same = _core.count_tokens(text, encoding) == len(reference.encode_ordinary(text))
    figures.add(f"{name}", megabytes / ours.p50, "MB/s")
    figures.add(f"{name}: tiktoken", megabytes / theirs.p50, "MB/s")
    figures.add(f"{name}: faster than tiktoken", ratio(theirs.p50s, ours.p50s), "x", at_least(2))
    figures.add(f"{name}: same count", float(same), "", at_least(1))


def _length(figures: Figures, scale: Scale, encoding: str) -> None:
    short = "a" * scale.text_length
    long = short * LONGER
    timings = in_turns(
        {
            "short": lambda _: _core.count_tokens(short, encoding),
            "long": lambda _: _core.count_tokens(long, encoding),
        },
        rounds=scale.rounds,
        calls_a_round=3,
    )
    figures.add(
        f"one letter, {encoding}: time of {LONGER} times the length ({LONGER}: linear)",
        ratio(timings["long"].p50s, timings["short"].p50s),
        "x",
    )
