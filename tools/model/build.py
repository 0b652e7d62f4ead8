"""Build the static model: `python -m tools.model.build CORPORA OUT`.

Every row is what a teacher makes of one piece alone, reworked so that a plain sum of rows comes close to the
teacher's vector of a sentence. The steps, in the order of `build`: vocabulary, frequencies, English half,
multilingual half, regression on sentences, joint rotation, int8.

The same machine, packages and texts give the same bytes; so the order of every floating-point operation
here is part of the recipe.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp  # type: ignore[import-untyped]

from tools.model.corpora import sentences
from tools.model.reference import BOUNDARY, Array, StaticModel, Tokenizer, quantise
from tools.model.teachers import MiniLM, SentenceEncoder

DIMENSIONS = 256
SIF = 5e-4  # weight of a piece = SIF / (SIF + frequency); Arora et al. (2017)
WHITENING = 0.25  # each principal direction is divided by its standard deviation to this power
DIGITS_WEIGHT = 0.35  # the lexical index matches digits exactly
CJK_GAIN = 2.0  # CJK rows have no English half; this restores their share in mixed text
RIDGE = 1e-3  # of the mean variance
EPOCHS, BATCH, RATE, LAST_RATE = 3, 512, 0.03, 0.05  # the last rate is a share of the first

HAN, KANA, HANGUL = "\u3400-\u9fff", "\u3040-\u30ff", "\uac00-\ud7af"
FULL_WIDTH = "\uff00-\uffef"

# Share of running text, by hand: the multilingual vocabulary joins punctuation to words.
PUNCTUATION = {
    ".": 0.05,
    ",": 0.05,
    "?": 0.01,
    "!": 0.008,
    "'": 0.02,
    '"': 0.01,
    "-": 0.01,
    ":": 0.008,
    ";": 0.002,
    "(": 0.004,
    ")": 0.004,
}


class Vocabulary(NamedTuple):
    """The rows of the model: words first, then pieces, as ids of the teachers."""

    word_ids: list[int]
    words: list[str]
    piece_ids: list[int]
    pieces: list[str]

    @property
    def scripts(self) -> Array:
        """The script of each row, as by `script`; words count as other."""
        return np.array([0] * len(self.words) + [script(piece) for piece in self.pieces])


def script(piece: str) -> int:
    """3 with hangul, 2 with kana, 1 with Han only, 0 for anything else."""
    for number, characters in ((3, HANGUL), (2, KANA), (1, HAN)):
        if re.search(f"[{characters}]", piece):
            return number
    return 0


def choose_vocabulary(english: MiniLM, multilingual: SentenceEncoder) -> Vocabulary:
    """All WordPiece entries but special and CJK ones; the CJK pieces of the multilingual vocabulary."""
    unwanted = re.compile(f"^\\[.+\\]$|[{HAN}{KANA}{HANGUL}{FULL_WIDTH}]")
    entries = [english.tokenizer.id_to_token(i) for i in range(english.tokenizer.get_vocab_size())]
    word_ids = [i for i, entry in enumerate(entries) if not unwanted.search(entry)]
    extra = (BOUNDARY, "\u30fc", "\u3005")  # long vowel and iteration marks
    piece_ids = [i for i, piece in enumerate(multilingual.pieces) if script(piece) or piece in extra]
    return Vocabulary(
        word_ids,
        [entries[i] for i in word_ids],
        piece_ids,
        [multilingual.pieces[i] for i in piece_ids],
    )


def frequencies(english: MiniLM, multilingual: SentenceEncoder, vocabulary: Vocabulary) -> Array:
    """float64 [rows], sum 1: from the probabilities of the multilingual vocabulary, and no other counts.

    English and each CJK script get a quarter each.
    """
    probability = np.exp(multilingual.scores)
    probability[:3] = 0  # unknown, begin, end

    token = english.tokenizer.token_to_id
    words = np.zeros(english.tokenizer.get_vocab_size())
    latin = [i for i, piece in enumerate(multilingual.pieces) if re.fullmatch("\u2581[A-Za-z0-9]+", piece)]
    texts = [multilingual.pieces[i][1:] for i in latin]
    for encoding, i in zip(
        english.tokenizer.encode_batch(texts, add_special_tokens=False), latin, strict=True
    ):
        for j in encoding.ids:
            words[j] += probability[i]
    words /= words.sum()
    for mark, share in PUNCTUATION.items():
        words[token(mark)] = max(words[token(mark)], share)
    words = np.maximum(words[vocabulary.word_ids], 1e-7)

    scripts = vocabulary.scripts[len(vocabulary.words) :]
    pieces = np.zeros(len(vocabulary.pieces))
    for number in (1, 2, 3):
        share = probability[vocabulary.piece_ids] * (scripts == number)
        pieces += share / share.sum()
    both = np.maximum(np.concatenate([words / words.sum(), pieces]) / 4, 1e-8)
    normalised: Array = both / both.sum()
    return normalised


def row_weights(frequency: Array, names: Sequence[str]) -> Array:
    """Smooth inverse frequency, less for pure digits."""
    digits = [DIGITS_WEIGHT if re.fullmatch("(##)?[0-9]+", name) else 1 for name in names]
    weights: Array = SIF / (SIF + frequency) * digits
    return weights


def principal_directions(second_moment: Array, count: int) -> Array:
    """[dimensions, count]: eigenvectors of the largest eigenvalues, largest first."""
    return np.linalg.eigh(second_moment)[1][:, ::-1][:, :count]


def refine(vectors: Array, frequency: Array, weight: Array) -> Array:
    """Centre by frequency, turn to principal directions, whiten partly, weight each row."""
    centred = vectors - np.average(vectors, axis=0, weights=frequency)
    turned = centred @ principal_directions(centred.T @ centred / len(centred), DIMENSIONS)
    deviation = turned.std(0)
    whitened = turned / (deviation / deviation.mean()) ** WHITENING
    refined: Array = (whitened * weight[:, None]).astype(np.float32)
    return refined


def english_half(teacher: MiniLM, vocabulary: Vocabulary, frequency: Array) -> Array:
    """float32 [rows, 256]; zeros for CJK pieces."""
    share = frequency[: len(vocabulary.words)]
    share = share / share.sum()
    vectors = half_precision(teacher.token_vectors())[vocabulary.word_ids]
    half = np.zeros((len(frequency), DIMENSIONS), np.float32)
    half[: len(vocabulary.words)] = refine(vectors, share, row_weights(share, vocabulary.words))
    return half


def multilingual_half(
    teacher: SentenceEncoder, vocabulary: Vocabulary, frequency: Array, weight: Array
) -> Array:
    """float32 [rows, 256]: each piece as a sentence, less the mean of its script (languages lie apart)."""
    words = half_precision(teacher.encode([teacher.spell(word) for word in vocabulary.words]))
    pieces = half_precision(teacher.encode([[i] for i in vocabulary.piece_ids]))
    vectors = np.concatenate([words, pieces])
    for number in range(4):
        rows = vocabulary.scripts == number
        vectors[rows] -= np.average(vectors[rows], axis=0, weights=frequency[rows])
    return refine(vectors, frequency, weight)


def half_precision(vectors: Array) -> Array:
    """Round to float16 and back: int8 keeps less, and the shipped model was built so."""
    return vectors.astype(np.float16).astype(np.float32)


def sentence_means(tokenizer: Tokenizer, texts: Sequence[str], rows: int) -> Any:
    """Sparse float32 [texts, rows]: how much of each text each row is."""
    encoded = [tokenizer.encode(text) for text in texts]
    text = np.repeat(np.arange(len(encoded)), [len(ids) for ids in encoded])
    row = np.concatenate(encoded).astype(int)
    counts = sp.csr_matrix((np.ones(len(text), np.float32), (text, row)), shape=(len(encoded), rows))
    counts.sum_duplicates()
    lengths = np.maximum(np.asarray(counts.sum(1)).ravel(), 1)
    return (sp.diags(1 / lengths).astype(np.float32) @ counts).tocsr()


def fit_sentences(table: Array, means: Any, target: Array) -> Array:
    """Move the rows so that the mean of a sentence's rows points where the teacher's vector of it does.

    A ridge regression finds the common rotation; then Adam (Kingma and Ba, 2015) on the cosine moves single
    rows, only those of the batch.
    """
    centred = target - target.mean(0)
    wanted = centred @ principal_directions(centred.T @ centred, table.shape[1])
    given = means @ table
    known = np.linalg.norm(given, axis=1) > 0
    means, given, wanted = means[known], given[known], wanted[known]

    gram = given.T @ given
    penalty = RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    rows = (table @ np.linalg.solve(gram + penalty, given.T @ wanted)).astype(np.float32)
    unit = np.abs(rows).mean()
    rows, wanted = rows / unit, wanted / np.linalg.norm(wanted, axis=1, keepdims=True)

    first, second = np.zeros_like(rows), np.zeros_like(rows)  # Adam's moments
    generator = np.random.default_rng(0)
    step, steps = 0, EPOCHS * (len(wanted) // BATCH)
    for _ in range(EPOCHS):
        order = generator.permutation(len(wanted))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch, goal = means[order[start : start + BATCH]], wanted[order[start : start + BATCH]]
            used = np.unique(batch.indices)
            batch = batch[:, used]
            found = batch @ rows[used]
            length = np.linalg.norm(found, axis=1, keepdims=True) + 1e-9
            found /= length
            cosine = (found * goal).sum(1, keepdims=True)
            gradient = batch.T @ ((cosine * found - goal) / length / BATCH)
            rate = RATE * max(LAST_RATE, 1 - step / steps)
            step += 1
            first[used] += 0.1 * (gradient - first[used])
            second[used] += 0.001 * (gradient * gradient - second[used])
            mean, square = first[used] / (1 - 0.9**step), second[used] / (1 - 0.999**step)
            rows[used] -= rate * mean / (np.sqrt(square) + 1e-8)
    fitted: Array = rows * unit
    return fitted


def level(vectors: Array, frequency: Array) -> Array:
    """Scale a half so that its rows, weighted by frequency, have a mean square length of 1."""
    squares = (vectors**2).sum(1)
    there = squares > 0
    levelled: Array = vectors / np.sqrt(np.average(squares[there], weights=frequency[there]))
    return levelled


def join(english: Array, multilingual: Array, means: Any, gain: Array) -> Array:
    """Both halves side by side, turned to the 256 directions that sentences use most."""
    table = np.concatenate([english, multilingual * gain[:, None]], 1)
    found = means @ table
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
    turned: Array = table @ principal_directions(found.T @ found, DIMENSIONS)
    return turned


def build(corpora: Path) -> StaticModel:
    """Make the model from the teachers and the texts: minutes of two cores, about 2.5 GB of memory."""
    english_teacher, multilingual_teacher = MiniLM(), SentenceEncoder()
    vocabulary = choose_vocabulary(english_teacher, multilingual_teacher)
    scores = multilingual_teacher.scores[vocabulary.piece_ids]
    pieces = [(piece, round(float(score), 5)) for piece, score in zip(vocabulary.pieces, scores, strict=True)]
    frequency = frequencies(english_teacher, multilingual_teacher, vocabulary)
    weight = row_weights(frequency, vocabulary.words + vocabulary.pieces)

    english = english_half(english_teacher, vocabulary, frequency)
    multilingual = multilingual_half(multilingual_teacher, vocabulary, frequency, weight)

    texts = sentences(corpora)
    means = sentence_means(Tokenizer(vocabulary.words, pieces), texts, len(frequency))
    target = half_precision(multilingual_teacher.encode(multilingual_teacher.tokenize(texts)))
    multilingual = fit_sentences(multilingual, means, target)

    gain = np.where(vocabulary.scripts > 0, CJK_GAIN, 1)
    joined = join(level(english, frequency), level(multilingual, frequency), means, gain)
    table, scales = quantise(joined)
    return StaticModel(f"static-{DIMENSIONS}", vocabulary.words, pieces, table, scales)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Build the static embedding model.")
    parser.add_argument("corpora", type=Path, help="folder with wordnet/dict, KdConv and CrossWOZ")
    parser.add_argument("out", type=Path, help="folder for model.safetensors and vocab.txt")
    arguments = parser.parse_args()
    model = build(arguments.corpora)
    model.save(arguments.out)
    rows, dimensions = model.table.shape
    print(f"{arguments.out}: {rows} rows of {dimensions} dimensions")


if __name__ == "__main__":
    main()
