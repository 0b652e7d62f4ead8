"""The core's embedder gives the vectors of the reference implementation, for texts of many scripts."""

import importlib.util
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recalld_sidecar import _core

if TYPE_CHECKING:
    from types import ModuleType

    from hypothesis.strategies import SearchStrategy

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "sidecar/recalld_sidecar/data/static-256"


def load_reference() -> "ModuleType":
    """The recipe is no package of the project, so it is loaded by its path."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools/model/reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


reference = load_reference()
model: Any = reference.StaticModel.load(MODEL)


VARIANTS = ROOT / "core_rs/algo/src/terms/han_variants.txt"
SIMPLIFIED = {
    ord(variant): line[0]
    for line in VARIANTS.read_text("utf8").splitlines()
    for variant in line[1:].replace("|", "")
}
"""What the product reads in another form than the reference; docs/decisions/0011 says why."""
INVISIBLE = dict.fromkeys(
    [0xAD, 0x61C, 0x180E, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)]
)


def has_word(text: str) -> bool:
    """Say whether the vocabulary has more of the text than its signs."""
    words = reference.split_words(unicodedata.normalize("NFKC", text).lower())
    return any(model.tokenizer.encode(word) for word in words if word[0].isalnum())


def as_reference_reads(text: str) -> str:
    """Leave out what only the product reads in its own way: invisible characters and traditional Chinese."""
    visible = text.translate(INVISIBLE)
    return "".join(
        c for c in visible if not {ord(n) for n in unicodedata.normalize("NFKC", c)} & SIMPLIFIED.keys()
    )


def assert_equal_vectors(texts: list[str]) -> None:
    texts = [as_reference_reads(text) for text in texts]
    found = _core.embed(str(MODEL), texts)
    expected: npt.NDArray[np.float32] = model.encode(texts)
    assert len(found) == len(texts)
    for text, vector, wanted in zip(texts, found, expected, strict=True):
        if vector is None:
            # Signs alone have no vector here: it would be near to every text with many of them.
            assert not wanted.any() or not has_word(text), f"{text!a} has a vector"
        else:
            assert wanted.any(), f"{text!a} has no vector"
            # float32 sums in another order: 1e-5 is far below what tells two pieces apart.
            np.testing.assert_allclose(vector, wanted, atol=1e-5, err_msg=ascii(text))


# The two sides know different versions of Unicode, so only characters that this Python knows are drawn;
# U+1171E is the one whose category has changed since (from nonspacing to spacing mark).
CHANGED = "\U0001171e"

BLOCKS = [
    (0x20, 0x7E),  # ASCII
    (0xA0, 0x24F),  # Latin
    (0x300, 0x36F),  # combining marks
    (0x370, 0x52F),  # Greek, Cyrillic
    (0x590, 0x6FF),  # Hebrew, Arabic
    (0x900, 0xDFF),  # scripts of India and Sri Lanka
    (0xE00, 0xFFF),  # Thai, Lao, Tibetan
    (0x1100, 0x11FF),  # hangul letters
    (0x1E00, 0x2BFF),  # Latin and Greek with accents, punctuation, symbols
    (0x3000, 0x33FF),  # kana, CJK signs
    (0x4E00, 0x9FFF),  # Han
    (0xAC00, 0xD7AF),  # hangul syllables
    (0xF900, 0xFFEF),  # compatibility forms, full width
    (0x11000, 0x11FFF),  # more scripts of India
    (0x1D100, 0x1D7FF),  # music, mathematical letters
    (0x1F100, 0x1FAFF),  # enclosed letters, emoji
    (0, 0x10FFFF),
]

AWKWARD = [
    "Σ",
    "ΑΣ'",
    "İ",
    "ß",
    "ﬁ",
    "ﷺ",
    "①",
    "Ⓐ",
    "🅰",
    "1️⃣",
    "👩‍👩‍👧",
    "ｶﾞ",
    "か\u3099",
    "\u1112\u1161\u11ab",
    "\u2581",
    "##ing",
    "x" * 100,
    "y" * 101,
]


def characters(block: tuple[int, int]) -> "SearchStrategy[str]":
    return st.characters(
        min_codepoint=block[0],
        max_codepoint=block[1],
        exclude_categories=("Cs", "Cn"),
        exclude_characters=CHANGED,
    )


parts = st.one_of(
    *(st.text(characters(block), max_size=12) for block in BLOCKS),
    st.sampled_from([word.removeprefix("##") for word in model.words]),
    st.sampled_from([piece for piece, _ in model.pieces]),
    st.sampled_from([" ", " ", ", ", *AWKWARD]),
)
many_scripts = st.lists(parts, max_size=20).map("".join)


@settings(deadline=None)
@given(st.lists(many_scripts, max_size=8))
@example(["", " ", "🍕🍕", "\u0301", "สวัสดีครับ"])
@example(["हिन्दी में लिखो", "a\u0301\u0323\u0308b z̶a̶l̶g̶o̶", "ΟΔΟΣ Σίσυφος"])
@example(
    ["我对花生过敏。", "コーヒーはブラックが好きです", "제 여동생은 부산에서 일해요", "用 Rust 写 cache"]
)
def test_vectors_are_those_of_the_reference(texts: list[str]) -> None:
    assert_equal_vectors(texts)


@pytest.mark.parametrize("unit", ["The cat sat. ", "猫在垫子上。", "猫", "a", "é", "!", "a b漢"])
def test_long_texts(unit: str) -> None:
    assert_equal_vectors([unit * (3000 // len(unit))])


def test_every_character() -> None:
    """Each character that this Python knows, among other letters; of Han and hangul one in sixteen."""
    tested = []
    for i in range(sys.maxunicode + 1):
        c = chr(i)
        if unicodedata.category(c) in {"Cs", "Cn", "Co"} or c == CHANGED:
            continue
        if i % 16 and unicodedata.name(c, "").startswith(("CJK UNIFIED IDEOGRAPH", "HANGUL SYLLABLE")):
            continue
        tested.append(f"the{c}ab漢{c}字か{c} {c.upper()}{c}\u0301x")
    assert len(tested) > 40_000
    # Sixteen to a text: one other row among a hundred still shows far above the tolerance.
    assert_equal_vectors([" ".join(tested[i : i + 16]) for i in range(0, len(tested), 16)])
