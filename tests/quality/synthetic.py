"""Sets that nobody could tune to: made by rule from a seed, without a label of any set.

Each looks at something that search over memories must do: find a memory by some of its words although others are
wrong, tell memories apart that differ in one slot, find codes that differ in one digit, and prefer the last
value of an attribute. The question is only whether the product is ever worse than BM25 alone. Equal seeds give equal
sets. Names, values and codes are invented.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from recalld_sidecar.demo.corpus import Corpus, Doc, Question

from tests.quality.baseline import STOP, WORD

SEED = 11


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is made."""

    corpora: int
    """Of each set, from which memories are drawn."""
    questions: int
    """About so many of each synthetic set."""


def generate(sets: Mapping[str, Sequence[Corpus]], scale: Scale) -> dict[str, list[Corpus]]:
    """Make all synthetic sets; `sets` are those whose memories are asked for by their own words."""
    made = {f"memories of {name}": list(_own_words(corpora, scale)) for name, corpora in sets.items()}
    made["one slot differs, English"] = [_slots("en", _ENGLISH, scale)]
    made["one slot differs, Chinese"] = [_slots("zh", _CHINESE, scale)]
    made["codes"] = [_codes(scale)]
    made["updates, English"] = [_updates("en", _ENGLISH, scale)]
    made["updates, Chinese"] = [_updates("zh", _CHINESE, scale)]
    return {name: corpora for name, corpora in made.items() if any(corpus.questions for corpus in corpora)}


def _doc(number: int, text: str, day: int | None = None) -> Doc:
    time = None if day is None else f"2024-{day // 28 + 1:02}-{day % 28 + 1:02}"
    return Doc(id=f"d{number}", text=text, time=time, speaker="user", session="", kind="", key="")


def _question(
    number: int, text: str, relevant: Sequence[str], kind: str, superseded: Sequence[str] = ()
) -> Question:
    return Question(
        id=f"q{number}",
        text=text,
        relevant=tuple(relevant),
        groups=(frozenset(relevant),),
        superseded=frozenset(superseded),
        answer="",
        kind=kind,
        abstain=False,
    )


@dataclass(frozen=True, slots=True)
class Mix:
    """The words of a query for a memory: no sentence, so that little but the words says which memory is meant."""

    rarest: int | None
    """Take its own words from so many of its rarest; None: from all that it has."""
    own: int
    foreign: int
    """Words of other memories."""


MIXES = {
    "by rare words": Mix(rarest=5, own=3, foreign=1),
    "by some of their words": Mix(rarest=None, own=2, foreign=2),
}
FEWEST = 8
"""Different words that a memory must have to be asked for."""


def _own_words(corpora: Sequence[Corpus], scale: Scale) -> Iterator[Corpus]:
    """Memories of a set, asked for by some of their own words and some foreign ones."""
    rng = random.Random(SEED)
    step = max(1, len(corpora) // scale.corpora)
    chosen = corpora[::step][: scale.corpora]
    for corpus in chosen:
        words = [_words(doc.text) for doc in corpus.docs]
        frequency = Counter(word for of in words for word in of)
        same: dict[str, list[str]] = {}
        for doc in corpus.docs:
            same.setdefault(doc.text, []).append(doc.id)
        able = [index for index, of in enumerate(words) if len(of) >= FEWEST]
        questions: list[Question] = []
        for index in sorted(rng.sample(able, min(len(able), scale.questions // len(chosen)))):
            by_rarity = sorted(words[index], key=lambda word: (frequency[word], word))
            relevant = same[corpus.docs[index].text]
            for kind, mix in MIXES.items():
                asked = rng.sample(by_rarity[: mix.rarest], mix.own)
                asked += [rng.choice(sorted(words[rng.choice(able)])) for _ in range(mix.foreign)]
                rng.shuffle(asked)
                questions.append(_question(len(questions), " ".join(asked), relevant, kind))
        yield Corpus(corpus.id, corpus.docs, tuple(questions))


def _words(text: str) -> set[str]:
    """Words as they are written, Chinese as bigrams; no stop words and no numbers."""
    found = set()
    for match in WORD.finditer(text.lower()):
        word = match[0]
        if word[0] >= "\u3400":
            found |= {word[at : at + 2] for at in range(len(word) - 1)}
        elif word not in STOP and not word.isdigit():
            found.add(word)
    return found


@dataclass(frozen=True, slots=True)
class _Slot:
    """An attribute that everyone has: how it is said, how it is asked, and its values."""

    said: str
    asked: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Language:
    people: tuple[str, ...]
    """Names, and people known by their relation to one who has a name."""
    slots: tuple[_Slot, ...]


def _related(relations: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}{relation}" for name, relation in product(names, relations))


_ENGLISH = _Language(
    people=_related(
        ("", "'s sister", "'s boss", "'s neighbour"),
        "Amara Boris Chloe Dario Elena Farid Greta Hugo Ines Jonas Keiko Liam Maya Nikos Olga Pablo Quinn Rosa Samir "
        "Tessa Umar Vera Wen Yara Zoe Anton Bianca Cyrus Delia Emre".split(),
    ),
    slots=(
        _Slot(
            "{who} lives in {value}.",
            "Where does {who} live?",
            tuple("Lisbon Oslo Quito Nairobi Kyoto".split()),
        ),
        _Slot(
            "{who} works as a {value}.",
            "What is {who}'s job?",
            tuple("nurse welder pilot baker tailor".split()),
        ),
        _Slot(
            "{who} is allergic to {value}.",
            "Which food must {who} not be served?",
            tuple("peanuts shellfish celery mustard sesame".split()),
        ),
        _Slot(
            "{who}'s favourite colour is {value}.",
            "What colour does {who} like best?",
            tuple("teal crimson ochre indigo olive".split()),
        ),
        _Slot(
            "{who} drives a {value}.",
            "What car does {who} have?",
            tuple("van pickup coupe minibus jeep".split()),
        ),
        _Slot(
            "{who} plays the {value} on Sundays.",
            "Which instrument does {who} play?",
            tuple("cello oboe banjo harp drums".split()),
        ),
    ),
)
_CHINESE = _Language(
    people=_related(
        ("", "的姐姐", "的老板", "的邻居"),
        "小明 小红 王芳 李强 张伟 刘洋 陈静 杨帆 赵磊 黄蓉 周杰 吴敏 徐丽 孙浩 马超 "
        "朱琳 胡军 郭涛 何雪 高峰 林娜 罗斌 郑爽 梁栋 宋佳 唐宁 许晴 韩冰 冯刚 曹颖".split(),
    ),
    slots=(
        _Slot("{who}住在{value}。", "{who}的家在哪里", tuple("成都 杭州 西安 大连 厦门".split())),
        _Slot("{who}的职业是{value}。", "{who}是做什么工作的", tuple("护士 律师 司机 厨师 会计".split())),
        _Slot("{who}对{value}过敏。", "{who}不能吃什么", tuple("花生 海鲜 芒果 牛奶 鸡蛋".split())),
        _Slot("{who}最喜欢的颜色是{value}。", "{who}喜欢哪种颜色", tuple("青色 红色 紫色 橙色 灰色".split())),
        _Slot("{who}开一辆{value}。", "{who}的车是什么样的", tuple("面包车 皮卡 轿车 跑车 吉普".split())),
        _Slot("{who}周日练习{value}。", "{who}会哪种乐器", tuple("大提琴 古筝 二胡 钢琴 笛子".split())),
    ),
)


def _slots(name: str, language: _Language, scale: Scale) -> Corpus:
    """Everyone has every attribute; one memory answers."""
    rng = random.Random(f"{SEED} slots {name}")
    pairs = list(product(language.people, language.slots))
    rng.shuffle(pairs)
    docs = [
        _doc(number, slot.said.format(who=who, value=rng.choice(slot.values)))
        for number, (who, slot) in enumerate(pairs)
    ]
    questions = [
        _question(number, slot.asked.format(who=who), [f"d{number}"], "one slot differs")
        for number, (who, slot) in enumerate(pairs[: scale.questions])
    ]
    return Corpus(f"slots-{name}", tuple(docs), tuple(questions))


VERSIONS = 3
"""Values that an attribute has, one after another."""


def _updates(name: str, language: _Language, scale: Scale) -> Corpus:
    """Everyone's attributes change twice; the last value answers."""
    rng = random.Random(f"{SEED} updates {name}")
    pairs = list(product(language.people, language.slots))
    rng.shuffle(pairs)
    pairs = pairs[: scale.questions]
    values = [rng.sample(slot.values, VERSIONS) for _, slot in pairs]
    docs: list[Doc] = []
    statements: list[list[str]] = [[] for _ in pairs]
    for version in range(VERSIONS):
        for number, (who, slot) in enumerate(pairs):
            # A version takes a month, and the next one comes two months later.
            day = version * 84 + number * 28 // len(pairs)
            docs.append(_doc(len(docs), slot.said.format(who=who, value=values[number][version]), day))
            statements[number].append(docs[-1].id)
    questions = [
        _question(number, slot.asked.format(who=who), of[-1:], "update", of[:-1])
        for number, ((who, slot), of) in enumerate(zip(pairs, statements, strict=True))
    ]
    return Corpus(f"updates-{name}", tuple(docs), tuple(questions))


_VERBS = tuple("parse load merge validate render flush encode resolve".split())
_NOUNS = tuple("order invoice session ledger packet schema token cursor".split())
_SERVICES = tuple("billing gateway indexer mailer scheduler".split())


def _codes(scale: Scale) -> Corpus:
    """Functions, order numbers and error codes, many of which differ in one character."""
    rng = random.Random(f"{SEED} codes")
    functions = (
        (verb, noun, f"{verb}_{noun}_v{version}") for verb, noun, version in product(_VERBS, _NOUNS, (1, 2))
    )
    errors = (
        (service, f"E{code}-{service[:2].upper()}") for service, code in product(_SERVICES, range(4301, 4321))
    )
    asked = [
        *(
            (
                f"`{name}` in src/{noun}/{verb}.py raises ValueError when the {noun} is empty.",
                f"where is {name}",
            )
            for verb, noun, name in functions
        ),
        *(
            (f"Order {number} was refunded by {rng.choice(_SERVICES)}.", f"What happened to order {number}?")
            for number in range(48200, 48300)
        ),
        *(
            (f"The {service} answered {name}, so the deploy was rolled back.", f"error {name}")
            for service, name in errors
        ),
    ]
    rng.shuffle(asked)
    docs = [_doc(number, said) for number, (said, _) in enumerate(asked)]
    questions = [
        _question(number, query, [f"d{number}"], "codes")
        for number, (_, query) in enumerate(asked[: scale.questions])
    ]
    return Corpus("codes", tuple(docs), tuple(questions))
