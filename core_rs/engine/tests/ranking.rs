//! What refines the ranking: words that mean nearly the same, names, the newest value, near-duplicates, answers that are
//! not there; and that explanations and `WhyNot` tell the truth about all of it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use proptest::prelude::*;
use recalld_engine::Tuning;
use recalld_engine::explain::{Explanation, Stage, Target, WhyNot};
use recalld_engine::ids::Micros;
use recalld_engine::types::{Hit, Namespace, NewMemory, Query};

const DAY: i64 = 86_400 * SECOND;

fn at(day: i64, key: &str, content: &str) -> NewMemory {
    NewMemory {
        occurred_at: Some(Micros(START - 400 * DAY + day * DAY)),
        ..memory(key, content)
    }
}

/// Memories that have nothing to do with the questions below, so that a namespace has an average.
fn filler() -> Vec<NewMemory> {
    let texts = [
        "The dishwasher makes a rattling noise since Monday.",
        "Quarterly budget review moved to the third week.",
        "Grandma's soup needs two carrots and a bay leaf.",
        "The printer on floor two is out of toner.",
        "Violin lessons are paused during the winter.",
        "A river walk takes about forty minutes from the station.",
        "The passport office closes at four.",
        "Bicycle tyres should be pumped up before the tour.",
        "The landlord wants the windows cleaned in spring.",
        "Coffee beans are stored in the blue tin.",
        "The team agreed to ship on Fridays only after review.",
        "Battery health of the old phone is poor.",
    ];
    let keyed = texts.iter().enumerate();
    keyed
        .map(|(i, text)| at(i as i64, &format!("filler {i}"), text))
        .collect()
}

fn bench(memories: Vec<NewMemory>) -> (Bench, Namespace) {
    let (bench, acme) = (Bench::new(), ns(&["acme"]));
    bench.put(&acme, filler());
    for memory in memories {
        bench.put(&acme, vec![memory]);
    }
    (bench, acme)
}

fn hits(bench: &Bench, namespace: &Namespace, query: &Query) -> Vec<Hit> {
    bench.engine.search(namespace, query, None).unwrap().hits
}

fn explained(text: &str) -> Query {
    Query {
        explain: true,
        ..query(text)
    }
}

fn signal(explanation: &Explanation, name: &str) -> f64 {
    let signal = explanation
        .signals
        .iter()
        .find(|signal| signal.name == name);
    signal.unwrap().contribution()
}

#[test]
fn a_word_that_means_nearly_the_same_counts() {
    let (bench, acme) = bench(vec![
        at(20, "dog", "Our puppy sleeps in the kitchen."),
        at(21, "kitchen", "The kitchen floor was tiled last year."),
    ]);
    let hits = hits(&bench, &acme, &explained("Where does the dog sleep?"));
    assert_eq!(hits[0].key, "dog");
    let explanation = hits[0].explanation.as_ref().unwrap();
    let words = explanation
        .signals
        .iter()
        .find(|s| s.name == "words")
        .unwrap();
    assert!(words.raw > 0.5, "{words:?}");
}

#[test]
fn who_is_named_decides_between_equal_statements() {
    let people = ["Karen", "Quinn", "Olga", "Henry", "Paul"];
    let foods = ["sushi", "ramen", "tacos", "curry", "steak"];
    let memories = people.iter().zip(foods).enumerate();
    let (bench, acme) = bench(
        memories
            .map(|(i, (who, food))| at(30 + i as i64, who, &format!("{who} likes to eat {food}.")))
            .collect(),
    );
    for who in people {
        let hits = hits(
            &bench,
            &acme,
            &explained(&format!("What food does {who} eat?")),
        );
        assert_eq!(hits[0].key, who);
        assert!(signal(hits[0].explanation.as_ref().unwrap(), "names") > 0.2);
        assert!(signal(hits[1].explanation.as_ref().unwrap(), "names").abs() < 1e-9);
    }
}

#[test]
fn the_newest_value_comes_first_whatever_the_order_of_writing() {
    let old = at(
        50,
        "old",
        "My gym is at Harbour Street, I go there after work.",
    );
    let new = at(90, "new", "I changed gyms: my gym is now at Mill Lane.");
    for memories in [vec![old.clone(), new.clone()], vec![new, old]] {
        let (bench, acme) = bench(memories);
        let found = hits(&bench, &acme, &explained("Where is my gym?"));
        assert_eq!(
            [&found[0].key, &found[1].key],
            ["new", "old"],
            "both stay, the newest first"
        );
        let past = hits(&bench, &acme, &explained("Where was my gym before?"));
        assert!(past.iter().any(|hit| hit.key == "old"));
        assert!(
            past.iter()
                .all(|hit| signal(hit.explanation.as_ref().unwrap(), "update") == 0.0),
            "a question about the past lifts nothing"
        );
    }
}

#[test]
fn no_newer_value_passes_a_memory_that_the_query_quotes() {
    let quoted = "Alice prefers aisle seats on the airplane.";
    let (bench, acme) = bench(vec![
        at(50, "aisle", quoted),
        at(90, "window", "Alice prefers window seats on the airplane."),
    ]);
    let found = hits(&bench, &acme, &query(quoted));
    assert_eq!([&found[0].key, &found[1].key], ["aisle", "window"]);
}

#[test]
fn near_duplicates_are_one_hit_and_the_newest_stands_for_all() {
    let (bench, acme) = bench(vec![
        at(40, "first", "The garage door code is 4711."),
        at(60, "second", "the garage door code is 4711"),
        at(50, "between", "Garage door code is 4711!"),
        at(45, "other", "The garage door code is 4712."),
    ]);
    let hits = hits(&bench, &acme, &query("garage door code"));
    let keys: Vec<&str> = hits.iter().map(|hit| hit.key.as_str()).collect();
    assert!(
        keys.contains(&"second") && keys.contains(&"other"),
        "{keys:?}"
    );
    assert!(
        !keys.contains(&"first") && !keys.contains(&"between"),
        "{keys:?}"
    );
    let newest = hits.iter().find(|hit| hit.key == "second").unwrap();
    let ids = |key: &str| {
        bench
            .engine
            .get(&get_keys(&acme, &[key]), None)
            .unwrap()
            .found[0]
            .id
    };
    assert_eq!(newest.duplicates, [ids("between"), ids("first")]);
    assert!(
        hits.len() == 5,
        "the places of what was folded go to others"
    );
}

#[test]
fn what_is_not_there_is_weak_and_what_is_there_is_not() {
    let (bench, acme) = bench(vec![
        at(20, "cat", "My cat Luna is afraid of thunder."),
        at(21, "seat", "On flights I always choose an aisle seat."),
    ]);
    for there in [
        "What is my cat afraid of?",
        "Which seat do I choose on flights?",
    ] {
        assert!(!hits(&bench, &acme, &query(there))[0].weak, "{there}");
    }
    for nowhere in [
        "What did Johnson say about the merger with Google?",
        "How many hamsters does my uncle in Seattle have?",
    ] {
        let found = hits(&bench, &acme, &query(nowhere));
        assert!(found.iter().all(|hit| hit.weak), "{nowhere}: {found:?}");
        let none = Query {
            min_relevance: 0.5,
            ..query(nowhere)
        };
        assert!(hits(&bench, &acme, &none).is_empty());
    }
}

#[test]
fn a_feature_with_weight_0_is_off() {
    let mut tuning = Tuning::default();
    for name in tuning.all().map(|(name, _)| name) {
        let bench = Bench::with(|options| {
            for (known, weight) in options.tuning.all() {
                if known == name {
                    *weight = 0.0;
                }
            }
        });
        let acme = ns(&["acme"]);
        bench.put(&acme, filler());
        for hit in hits(
            &bench,
            &acme,
            &explained("Which noise does the dishwasher make?"),
        ) {
            let explanation = hit.explanation.unwrap();
            if let Some(signal) = explanation
                .signals
                .iter()
                .find(|signal| signal.name == name)
            {
                assert!(signal.contribution().abs() < 1e-9, "{signal:?}");
            }
        }
    }
}

fn why(bench: &Bench, namespace: &Namespace, query: &Query, key: &str) -> WhyNot {
    let target = Target::Key(key.to_owned());
    bench
        .engine
        .why_not(namespace, query, &target, None)
        .unwrap()
}

#[test]
fn each_stage_is_named_with_its_numbers() {
    let mut many: Vec<NewMemory> = (0..200)
        .map(|i| {
            at(
                100 + i,
                &format!("noise {i}"),
                &format!("The invoice number {i} was paid by transfer."),
            )
        })
        .collect();
    many.push(at(10, "old twin", "The alarm code is 9931."));
    many.push(at(20, "twin", "The alarm code is 9931!"));
    many.push(expiring(
        "short",
        "The alarm test is today.",
        Duration::from_secs(60),
    ));
    let (bench, acme) = (Bench::new(), ns(&["acme"]));
    bench.put(&acme, filler());
    bench.put(&acme, many);
    bench.clock.advance(120 * SECOND);
    let alarm = query("What is the alarm code?");

    assert_eq!(why(&bench, &acme, &alarm, "nobody").stage, Stage::NotFound);
    assert_eq!(
        why(&bench, &ns(&["other"]), &alarm, "twin").stage,
        Stage::NotFound
    );
    assert_eq!(why(&bench, &acme, &alarm, "short").stage, Stage::Expired);

    let mut tagged = alarm.clone();
    tagged.selection.tags = vec!["home".to_owned()];
    let filtered = why(&bench, &acme, &tagged, "twin");
    assert_eq!(
        (filtered.stage, filtered.detail.as_str()),
        (Stage::Filter, "tags")
    );

    let returned = why(&bench, &acme, &alarm, "twin");
    assert_eq!(
        (returned.stage, returned.rank, returned.needed_rank),
        (Stage::Returned, 1, 5)
    );
    let folded = why(&bench, &acme, &alarm, "old twin");
    assert_eq!(folded.stage, Stage::Duplicate);
    assert_eq!(folded.detail, returned.id.unwrap().to_string());

    let strict = Query {
        min_relevance: 0.9,
        ..alarm.clone()
    };
    let dropped = why(&bench, &acme, &strict, "filler 3");
    assert_eq!(
        (dropped.stage, dropped.detail.as_str()),
        (Stage::Threshold, "min_relevance")
    );
    assert!(
        dropped.value < dropped.needed_value && dropped.needed_value.to_bits() == 0.9f64.to_bits()
    );

    let behind = why(&bench, &acme, &alarm, "filler 3");
    assert!(
        matches!(behind.stage, Stage::Limit | Stage::Candidates),
        "{behind:?}"
    );
    let far: Vec<WhyNot> = (0..12)
        .map(|i| {
            why(
                &bench,
                &acme,
                &query("invoice paid by transfer"),
                &format!("filler {i}"),
            )
        })
        .collect();
    let out = far
        .iter()
        .find(|why| why.stage == Stage::Candidates)
        .unwrap();
    assert!(
        out.rank > out.needed_rank && out.needed_rank == 128,
        "{out:?}"
    );
    assert!(out.explanation.is_some());
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let words = [
        "invoice", "garden", "Lisbon", "refund", "violin", "Karen", "E1042", "学校", "seat", "is",
        "not",
    ];
    proptest::collection::vec(
        proptest::collection::vec(0..words.len(), 1..8).prop_map(move |picked| {
            picked
                .into_iter()
                .map(|word| words[word])
                .collect::<Vec<_>>()
                .join(" ")
        }),
        1..60,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn explanations_add_up_and_agree_with_why_not(
        texts in texts(), asked in texts(), limit in 1usize..12, min_score in 0.0f64..0.4,
    ) {
        let (bench, acme) = (Bench::new(), ns(&["acme"]));
        // What WhyNot ranks in full, a search passes over where importance and confidence cannot lift it.
        let items = texts.iter().enumerate().map(|(i, text)| NewMemory {
            importance: (i * 7 % 5) as f64 / 4.0,
            confidence: 1.0 - (i % 3) as f64 / 5.0,
            ..at(i as i64 % 9, &format!("k{i}"), text)
        });
        bench.put(&acme, items.collect());
        let query = Query { limit, min_score, ..explained(&asked[0]) };
        let hits = hits(&bench, &acme, &query);
        for (place, hit) in hits.iter().enumerate() {
            let explanation = hit.explanation.as_ref().unwrap();
            let fused: f64 = explanation.signals.iter().map(recalld_engine::explain::Signal::contribution).sum();
            prop_assert!((fused - explanation.fused).abs() < 1e-4, "{explanation:?}");
            let score: f64 = explanation.factors.iter().map(|factor| factor.contribution).sum();
            prop_assert!((score - hit.score).abs() < 1e-9);
            prop_assert_eq!(explanation.relevance.to_bits(), hit.relevance.to_bits());
            prop_assert!(hit.relevance <= explanation.coverage + 1e-12);
            let why = why(&bench, &acme, &query, &hit.key);
            prop_assert_eq!((why.stage, why.rank as usize), (Stage::Returned, place + 1));
        }
        for (i, _) in texts.iter().enumerate() {
            let key = format!("k{i}");
            if hits.iter().all(|hit| hit.key != key) {
                let why = why(&bench, &acme, &query, &key);
                prop_assert_ne!(why.stage, Stage::Returned);
                let id = why.id.unwrap();
                let is_folded = hits.iter().any(|hit| hit.duplicates.contains(&id));
                prop_assert_eq!(why.stage == Stage::Duplicate, is_folded, "{:?}", why);
            }
        }
    }

    #[test]
    fn any_query_gives_scores_in_range(texts in texts(), asked in "\\PC{0,60}") {
        let (bench, acme) = (Bench::new(), ns(&["acme"]));
        bench.put(&acme, texts.iter().map(|text| memory("", text)).collect());
        for hit in hits(&bench, &acme, &explained(&asked)) {
            prop_assert!((0.0..=1.0).contains(&hit.score) && (0.0..=1.0).contains(&hit.relevance));
        }
    }
}
