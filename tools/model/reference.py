"""The static model as it is defined: tokenizer, file format and encoder, in plain Python.

The Rust implementation is tested against this one, and the recipe builds with it, so it must stay as simple
as the definition: it is never tuned for speed. A text is a bag of rows of one int8 table; its vector is the
L2-normalised sum of `scale[row] * table[row]`.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

WEIGHTS = "model.safetensors"
VOCABULARY = "vocab.txt"
FORMAT = 1

# Han, kana and hangul with their iteration marks: written without spaces (or, Korean, inflected without).
UNSPACED = re.compile("[\u3005\u3006\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
BOUNDARY = "\u2581"
MAX_WORD = 100  # characters; longer words are hashes or base64
UNKNOWN_COST = 10  # log-probability of an unknown character, below the least probable piece


class WordPiece:
    """Splits a word into its longest known prefix and the longest known continuations (`##…`)."""

    def __init__(self, words: Sequence[str]) -> None:
        self._rows = {word: row for row, word in enumerate(words)}

    def split(self, word: str) -> list[int]:
        """Rows of the word; none if it is too long or any part of it is unknown."""
        if len(word) > MAX_WORD:
            return []
        rows: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                row = self._rows.get(prefix + word[start:end])
                if row is not None:
                    rows.append(row)
                    start = end
                    break
            else:
                return []
        return rows


class Unigram:
    """Splits a run into the most probable sequence of pieces (Viterbi; the first found of equals stays)."""

    def __init__(self, pieces: Sequence[tuple[str, float]], first_row: int) -> None:
        """`pieces` are (string, log-probability), in the order of their rows."""
        self._pieces = {piece: (first_row + i, score) for i, (piece, score) in enumerate(pieces)}
        self._prefixes = {piece[:n] for piece in self._pieces for n in range(1, len(piece) + 1)}
        self._unknown = min(score for _, score in pieces) - UNKNOWN_COST
        self._boundary = self._pieces[BOUNDARY][0] if BOUNDARY in self._pieces else None

    def split(self, run: str) -> list[int]:
        """Rows of the run; unknown characters and the bare boundary give none."""
        run = BOUNDARY + run
        best = [0.0] + [-np.inf] * len(run)
        steps: list[tuple[int, int | None]] = [(0, None)] * (len(run) + 1)
        for start in range(len(run)):
            for end in range(start + 1, len(run) + 1):
                piece = run[start:end]
                if piece not in self._prefixes:
                    break
                if piece in self._pieces:
                    row, score = self._pieces[piece]
                    if best[start] + score > best[end]:
                        best[end], steps[end] = best[start] + score, (start, row)
            if best[start] + self._unknown > best[start + 1]:
                best[start + 1], steps[start + 1] = best[start] + self._unknown, (start, None)
        rows: list[int] = []
        end = len(run)
        while end:
            end, found = steps[end]
            if found is not None and found != self._boundary:
                rows.append(found)
        return rows[::-1]


class Tokenizer:
    """Text to rows: NFKC and lower case, then unigram for unspaced scripts and WordPiece for the rest."""

    def __init__(self, words: Sequence[str], pieces: Sequence[tuple[str, float]]) -> None:
        self._words = WordPiece(words)
        self._pieces = Unigram(pieces, len(words))

    def encode(self, text: str) -> list[int]:
        """Rows of the text, in its order."""
        text = unicodedata.normalize("NFKC", text).lower()
        rows: list[int] = []
        at = 0
        for run in UNSPACED.finditer(text):
            rows += self._spaced(text[at : run.start()])
            rows += self._pieces.split(run[0])
            at = run.end()
        return rows + self._spaced(text[at:])

    def _spaced(self, text: str) -> list[int]:
        return [row for word in split_words(text) for row in self._words.split(word)]


def split_words(text: str) -> Iterator[str]:
    """Yield runs of letters and numbers, and any other character but spaces alone; accents are removed."""
    decomposed = unicodedata.normalize("NFD", text)
    word = ""
    for c in decomposed:
        if unicodedata.category(c) == "Mn":
            continue
        if c.isalnum():
            word += c
            continue
        if word:
            yield word
            word = ""
        if not c.isspace():
            yield c
    if word:
        yield word


class StaticModel:
    """A table of rows with its vocabulary."""

    def __init__(
        self,
        name: str,
        words: Sequence[str],
        pieces: Sequence[tuple[str, float]],
        table: Array,
        scales: Array,
    ) -> None:
        """`table` is int8 [rows, dimensions], `scales` float32 [rows]; words come first, then pieces."""
        self.name, self.words, self.pieces = name, list(words), list(pieces)
        self.table, self.scales = table, scales
        self.tokenizer = Tokenizer(self.words, self.pieces)

    def encode(self, texts: Sequence[str]) -> Array:
        """float32 [texts, dimensions] of unit length; zeros stand for a text without a known piece."""
        out = np.zeros((len(texts), self.table.shape[1]), np.float32)
        for vector, text in zip(out, texts, strict=True):
            rows = self.tokenizer.encode(text)
            if rows:
                total = self.scales[rows] @ self.table[rows].astype(np.float32)
                vector[:] = total / max(float(np.linalg.norm(total)), 1e-12)
        return out

    def save(self, folder: Path) -> None:
        """Write both files.

        The safetensors header is written here, key by key: its library orders the keys anew in each process,
        and the hash of the file is the identity of the model.
        """
        metadata = {
            "pieces": len(self.pieces),
            "dims": self.table.shape[1],
            "normalize": "l2",
            "format": FORMAT,
            "name": self.name,
            "words": len(self.words),
        }
        header: dict[str, object] = {"__metadata__": {key: str(value) for key, value in metadata.items()}}
        tensors = [("weights", "F32", self.scales), ("embeddings", "I8", self.table)]
        start = 0
        for name, dtype, tensor in tensors:
            end = start + tensor.nbytes
            header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [start, end]}
            start = end
        encoded = json.dumps(header, separators=(",", ":")).encode()
        encoded += b" " * (-len(encoded) % 8)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / WEIGHTS).open("wb") as file:
            file.write(len(encoded).to_bytes(8, "little") + encoded)
            for _, _, tensor in tensors:
                file.write(tensor.tobytes())
        with (folder / VOCABULARY).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\n" for word in self.words)
            file.writelines(f"{piece}\t{score:.5f}\n" for piece, score in self.pieces)

    @classmethod
    def load(cls, folder: Path) -> "StaticModel":
        """Read both files; they are trusted, unlike in the Rust implementation."""
        raw = (folder / WEIGHTS).read_bytes()
        data = 8 + int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:data])

        def tensor(name: str, dtype: type) -> Array:
            start, end = header[name]["data_offsets"]
            return np.frombuffer(raw[data + start : data + end], dtype).reshape(header[name]["shape"])

        metadata = header["__metadata__"]
        lines = (folder / VOCABULARY).read_bytes().decode().split("\n")[:-1]
        words = int(metadata["words"])
        pieces = [(piece, float(score)) for piece, score in (line.split("\t") for line in lines[words:])]
        return cls(
            metadata["name"],
            lines[:words],
            pieces,
            tensor("embeddings", np.int8),
            tensor("weights", np.float32),
        )


def quantise(vectors: Array) -> tuple[Array, Array]:
    """Turn float rows into an int8 table and float32 scales; the largest component of a row becomes 127."""
    scales = np.maximum(np.abs(vectors).max(1) / 127, 1e-12)
    table = np.clip(np.round(vectors / scales[:, None]), -127, 127)
    return table.astype(np.int8), scales.astype(np.float32)
