"""The texts that the model learns from: sentences without labels, from three public corpora.

`CORPORA` is a folder with `wordnet/dict`, `KdConv` and `CrossWOZ`. Of the two dialogue corpora only the small
splits are read. No benchmark's text or label is among them.
"""

import json
import random
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

ENGLISH_SENTENCES = 60_000
SHORTEST, LONGEST = 9, 119  # characters of a Chinese sentence


def sentences(corpora: Path) -> list[str]:
    """Chinese, then English sentences: each once, in an order that depends on nothing but the texts."""
    shuffle = random.Random(0).shuffle  # one generator for both, English first
    english, chinese = sorted(set(wordnet(corpora / "wordnet/dict"))), sorted(set(dialogues(corpora)))
    shuffle(english)
    shuffle(chinese)
    return chinese + english[:ENGLISH_SENTENCES]


def wordnet(folder: Path) -> Iterator[str]:
    """Glosses of WordNet, each after its word, and the longer examples."""
    for part_of_speech in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part_of_speech}").read_text("latin-1").splitlines():
            if line.startswith("  ") or "|" not in line:  # the licence
                continue
            entry, gloss = line.split("|", 1)
            word = entry.split()[4].split("(")[0].replace("_", " ")
            yield f"{word}: " + gloss.split('; "')[0].strip()
            yield from (example for example in re.findall(r'"([^"]+)"', gloss) if len(example) > 20)


def dialogues(corpora: Path) -> Iterator[str]:
    """Chinese utterances, and the facts that the speakers of KdConv looked up."""
    yield from filter(fits, kdconv(corpora / "KdConv/data"))
    yield from filter(fits, crosswoz(corpora / "CrossWOZ/data/crosswoz"))


def fits(sentence: str) -> bool:
    """Whether a sentence is neither an exclamation nor a paragraph."""
    return SHORTEST <= len(sentence) <= LONGEST


def kdconv(folder: Path) -> Iterator[str]:
    """Messages of dialogues about films, music and travel; their facts, sentence by sentence."""
    for domain in ("film", "music", "travel"):
        for split in ("dev", "test"):
            for dialogue in json.loads((folder / domain / f"{split}.json").read_text("utf-8")):
                for message in dialogue["messages"]:
                    yield message["message"]
                    for fact in message.get("attrs", []):
                        yield from split_sentences(f"{fact['name']}的{fact['attrname']}是{fact['attrvalue']}")
    knowledge = json.loads((folder / "travel/kb_travel.json").read_text("utf-8"))
    for triples in knowledge.values():
        for triple in triples:
            yield from split_sentences("\uff0c".join(map(str, triple)))


def crosswoz(folder: Path) -> Iterator[str]:
    """Messages of dialogues about sights, restaurants and hotels."""
    for split in ("val", "test"):
        with zipfile.ZipFile(folder / f"{split}.json.zip") as archive:
            dialogue = json.loads(archive.read(archive.namelist()[0]))
        for task in dialogue.values():
            yield from (message["content"] for message in task["messages"])


def split_sentences(text: str) -> list[str]:
    """Split after each full stop, exclamation or question mark."""
    return re.split("(?<=[\u3002\uff01\uff1f])", text)
