"""The measures, on cases small enough to be computed by hand or by a naive reference."""

import re
from itertools import product
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recalld.v1 import memory_service_pb2 as pb
from recalld_sidecar.demo.corpus import Corpus, Doc, Question

from tests.quality import ablations, baseline, causes, facts, measures, significance, store, synthetic, tools


def test_one_document_of_a_group_is_enough() -> None:
    groups = [{"a", "b"}, {"c"}]
    assert measures.recall(groups, ["b", "x"]) == 0.5
    assert measures.recall(groups, ["a", "b"]) == 0.5
    assert measures.recall(groups, ["c", "a"]) == 1
    assert measures.recall(groups, []) == 0


def test_the_first_place_with_evidence_counts_and_what_is_folded_into_it() -> None:
    assert measures.reciprocal_rank([{"a"}], [["x"], ["y", "a"], ["a"]]) == 0.5
    assert measures.reciprocal_rank([{"a"}, {"b"}], [["b"], ["a"]]) == 1
    assert measures.reciprocal_rank([{"a"}], [["x"]]) == 0


@pytest.mark.parametrize(
    ("ranking", "fresh"),
    [
        ([["x"], ["new"], ["old"]], True),
        ([["x"], ["old"], ["new"]], False),
        ([["new", "old"]], True),
        ([["old", "new"]], False),
        ([["new"]], True),
        ([["x"]], False),
        ([], False),
    ],
)
def test_fresh(ranking: list[list[str]], fresh: bool) -> None:
    assert measures.is_fresh({"new"}, {"old"}, ranking) is fresh


def test_half_of_the_answers_words_that_a_memory_has_must_be_shown() -> None:
    answer = {"red", "old", "wooden", "boat"}
    assert measures.words_shown(answer, {"red", "boat", "sea"}, {"boat"})
    assert not measures.words_shown(answer, {"red", "boat", "old"}, {"boat"})
    assert not measures.words_shown(answer, {"red"}, {"sea"})
    assert measures.words_shown(answer, {"sea"}, set()), "the memory has no word of the answer"


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=20), st.lists(st.integers(0, 5), min_size=1, max_size=20)
)
def test_auroc_counts_pairs(higher: list[int], lower: list[int]) -> None:
    pairs = [(a > b) + (a == b) / 2 for a in higher for b in lower]
    assert measures.auroc(higher, lower) == pytest.approx(sum(pairs) / len(pairs))


def test_nothing_found_is_below_everything() -> None:
    assert measures.auroc([0.0, 0.1], [float("-inf")]) == 1
    assert measures.auroc([float("-inf")], [float("-inf")]) == 0.5


@pytest.mark.parametrize(("share", "expected"), [(0.5, 2), (0.99, 4), (0.01, 1), (0.75, 3)])
def test_percentiles(share: float, expected: float) -> None:
    assert measures.percentile([4, 2, 3, 1], share) == expected


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [(0, 0, 1), (1, 0, 1), (5, 0, 0.0625), (0, 5, 0.0625), (8, 2, 0.109375), (3, 3, 1)],
)
def test_the_sign_test_is_exact(wins: int, losses: int, p: float) -> None:
    assert significance.sign_test(wins, losses) == pytest.approx(p)


def test_equal_rankings_do_not_differ() -> None:
    same = significance.compare([0.5, 1, 0], [0.5, 1, 0], ["a", "b", "c"])
    assert (same.difference, same.low, same.high, same.p, same.p_sign) == (0, 0, 0, 1, 1)


def test_a_clear_difference_is_significant_in_both_directions() -> None:
    corpora = [f"corpus {number}" for number in range(30)]
    better, worse = [1.0] * 30, [0.0] * 29 + [1.0]
    test = significance.compare(better, worse, corpora)
    assert test.unit == "corpus"
    assert (test.wins, test.losses) == (29, 0)
    assert test.difference == pytest.approx(29 / 30)
    assert 0.8 < test.low <= test.difference <= test.high <= 1
    assert test.p == pytest.approx(1 / (significance.RESAMPLES + 1), abs=1e-3)
    mirrored = significance.compare(worse, better, corpora)
    assert (mirrored.difference, mirrored.low, mirrored.high) == pytest.approx(
        (-test.difference, -test.high, -test.low)
    )
    assert mirrored.p == test.p


def test_the_permutation_test_agrees_with_all_permutations() -> None:
    differences = [1.0, -2.0, 3.0, 4.0, 5.0, 6.0]
    sums = [sum(map(mul, differences, signs)) for signs in product((1, -1), repeat=len(differences))]
    exact = sum(abs(one) >= sum(differences) for one in sums) / len(sums)
    test = significance.compare(differences, [0.0] * 6, ["one"] * 6)
    assert test.unit == "question"
    assert test.p == pytest.approx(exact, abs=0.02)


def test_questions_of_one_corpus_are_one_observation() -> None:
    corpora = ["large"] * 500 + [f"small {number}" for number in range(25)]
    test = significance.compare([1.0] * 500 + [0.0] * 25, [0.0] * 525, corpora)
    assert test.p == 1, "one unit of 26 moved, which happens in half of all draws on either side"
    assert test.p_sign < 1e-9


def test_an_interval_of_two_samples_holds_the_value() -> None:
    ours, theirs = [0.2, 0.4, 0.6, 0.8], [0.1, 0.3, 0.5]
    low, high = significance.interval_of_two(measures.auroc, ours, theirs)
    assert low < measures.auroc(ours, theirs) < high
    assert (low, high) == significance.interval_of_two(measures.auroc, ours, theirs)


TEXTS = ["the old lighthouse burns", "a red boat in the harbour", "red red red paint"]


def test_bm25_prefers_the_rare_word_and_the_frequent_term() -> None:
    bm25 = baseline.Bm25(TEXTS)
    assert bm25.rank("red boat", 5) == [1, 2]
    assert bm25.rank("red", 1) == [2]
    assert bm25.rank("unknown", 5) == []


def test_the_opponents_rank_by_words_by_meaning_and_by_both() -> None:
    rankings = baseline.Rankings(TEXTS, [[1.0, 0.0], None, [0.6, 0.8]])
    ranked = rankings.rank("lighthouse", [0.0, 1.0], 3)
    assert ranked[baseline.BM25_ALONE] == [0]
    assert ranked[baseline.MEANING_ALONE] == [2, 0, 1]
    # z-scores: cosines 0, 0, .8 are -.71, -.71, 1.41; words s, 0, 0 are 1.41, -.71, -.71; .6 and .4 of them.
    assert ranked[baseline.PLAIN_SUM] == [2, 0, 1]
    assert rankings.rank("lighthouse", None, 3)[baseline.MEANING_ALONE] == []
    assert rankings.rank("lighthouse", None, 3)[baseline.PLAIN_SUM][0] == 0


def doc(name: str, text: str) -> Doc:
    return Doc(id=name, text=text, time=None, speaker="user", session="", kind="", key="")


def question(text: str, *groups: set[str], superseded: frozenset[str] = frozenset()) -> Question:
    return Question(
        id="q",
        text=text,
        relevant=tuple(sorted(set().union(*groups))),
        groups=tuple(frozenset(group) for group in groups),
        superseded=superseded,
        answer="",
        kind="",
        abstain=False,
    )


DOCS = {
    one.id: one
    for one in (
        doc("moved", "Ada moved to Porto with her two cats"),
        doc("moved again", "Ada moved to Turin with her two cats"),
        doc("job", "Ada found work at the observatory"),
        doc("long", "Ada " + "wrote a long letter about everything " * 30),
        doc("other", "The ferry leaves at noon"),
    )
}


@pytest.mark.parametrize(
    ("asked", "found", "cause"),
    [
        (question("Ada", {"moved"}), ["moved"], None),
        (question("Ada", {"moved", "job"}), ["job"], None),
        (question("Which town?", {"moved"}), ["other"], causes.NO_COMMON_WORD),
        (question("Ada, when?", {"moved"}, {"job"}), ["job"], causes.SEVERAL_NEEDED),
        (question("When did Ada go?", {"moved"}, {"job"}), ["other"], causes.TIME),
        (question("Ada 是什么时候搬家的", {"moved"}), ["other"], causes.TIME),
        (
            question("Where is Ada?", {"moved again"}, superseded=frozenset({"moved"})),
            ["moved"],
            causes.OLD_VALUE,
        ),
        (question("Where is Ada?", {"long"}), ["other"], causes.TOO_LONG),
        (question("Where is Ada?", {"moved again"}), ["moved"], causes.NEARLY_THE_SAME),
        (question("Where is Ada?", {"moved"}), ["other", "job"], causes.OTHER),
    ],
)
def test_a_lost_question_has_one_cause(asked: Question, found: list[str], cause: str | None) -> None:
    ranking = [[name] for name in found]
    assert causes.cause(asked, ranking, DOCS) == cause
    assert cause is None or cause in causes.CAUSES
    beyond = [["other"]] * causes.DEPTH + ranking
    assert causes.cause(asked, beyond, DOCS) is not None, "only the ten best count"


def test_every_cause_is_explained() -> None:
    explained = [
        line.partition(":")[0].removeprefix("- ") for line in causes.EXPLANATION.strip().splitlines()
    ]
    assert explained == list(causes.CAUSES)


def test_what_a_brief_quotes_is_taken_by_its_citations() -> None:
    brief = pb.BriefResponse(
        text=(
            "<recalld-memory>\nNotes from memory, quoted as data.\n- [m2] 2024-01-01 user: one: two\n  three\n"
            "- [m3] 2024-01-02 fact:\n## Other\n  not of a memory\n- [m9] 2024-01-03 user: unknown\n  further\n"
            "</recalld-memory>\n"
        ),
        included=[
            pb.IncludedMemory(key="a", citation="[m2]"),
            pb.IncludedMemory(key="b", citation="[m3]"),
        ],
    )
    assert store.quoted(brief) == {"a": "one: two\n  three", "b": ""}


def test_a_quotation_stands_in_the_text_it_is_from() -> None:
    text = "I moved to Turin.\n\nThe cats came along. It rained."
    assert facts.is_quoted_from(f"{facts.ELLIPSIS} The cats came along. {facts.ELLIPSIS}", [text])
    assert facts.is_quoted_from("I moved to Turin.   The cats", ["something else", text])
    assert not facts.is_quoted_from("I moved to Porto.", [text])


def test_the_words_that_tell_of_an_error() -> None:
    assert tools.telling_words("ok so far. Error: no seats left on the plane to the moon today") == [
        "Error:", "no", "seats", "left", "on", "the", "plane", "to",
    ]  # fmt: skip
    assert tools.telling_words("all is well") == ["all", "is", "well"]


SCALE = synthetic.Scale(corpora=2, questions=12)
SOURCE = Corpus(
    id="source",
    docs=tuple(
        doc(
            f"d{number}",
            f"On day {number} the crew of the {ship} carried {cargo} from the harbour to the northern isles",
        )
        for number, (ship, cargo) in enumerate(
            product(("Gull", "Tern", "Heron"), ("salt", "timber", "wool", "glass"))
        )
    ),
    questions=(),
)


def test_synthetic_sets_are_the_same_for_the_same_seed_and_name_their_own_documents() -> None:
    made = synthetic.generate({"a set": [SOURCE]}, SCALE)
    assert made == synthetic.generate({"a set": [SOURCE]}, SCALE)
    assert len(made) == 6
    for name, corpora in made.items():
        for corpus in corpora:
            ids = {one.id for one in corpus.docs}
            assert len(ids) == len(corpus.docs), name
            assert corpus.questions, name
            for one in corpus.questions:
                assert ids.issuperset(one.relevant), name
                assert ids.issuperset(one.superseded), name
                assert not one.superseded.intersection(one.relevant), name


def test_words_are_the_memorys_own_but_for_the_foreign_ones() -> None:
    (corpus,) = synthetic.generate({"a set": [SOURCE]}, SCALE)["memories of a set"]
    texts = {one.id: one.text.lower().split() for one in corpus.docs}
    for one in corpus.questions:
        own = [word for word in one.text.split() if word in texts[one.relevant[0]]]
        mix = synthetic.MIXES[one.kind]
        assert len(one.text.split()) == mix.own + mix.foreign
        assert len(own) >= mix.own


def test_updates_are_in_the_order_of_time() -> None:
    for name, (corpus,) in synthetic.generate({}, SCALE).items():
        if name.startswith("updates"):
            order = {one.id: (one.time or "", place) for place, one in enumerate(corpus.docs)}
            times = [time for time, _ in order.values()]
            assert times == sorted(times)
            for one in corpus.questions:
                assert len(one.superseded) == synthetic.VERSIONS - 1
                assert all(order[old] < order[one.relevant[0]] for old in one.superseded)
                newest = next(each for each in corpus.docs if each.id == one.relevant[0])
                assert all(each.text != newest.text for each in corpus.docs if each.id in one.superseded)


def test_codes_differ_and_are_asked_for() -> None:
    (corpus,) = synthetic.generate({}, SCALE)["codes"]
    texts = {one.id: one.text for one in corpus.docs}
    assert len(set(texts.values())) == len(texts)
    for one in corpus.questions:
        code = re.compile(rf"\b{one.text.rstrip('?').split()[-1]}\b")
        assert [name for name, text in texts.items() if code.search(text)] == list(one.relevant)


def test_ablations_are_asked_of_corpora_spread_over_a_set() -> None:
    (one,) = synthetic.generate({}, SCALE)["codes"]
    corpora = [type(one)(str(number), one.docs, one.questions) for number in range(10)]
    assert ablations.sample(corpora, 10**6) == {str(number) for number in range(10)}
    assert ablations.sample(corpora, len(one.questions) * 5) == {"0", "2", "4", "6", "8"}
