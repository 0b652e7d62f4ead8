//! The search pipeline: exact against a naive reference, the same with an approximate index and without it, apart
//! between namespaces, and honest about what it left out.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use common::*;
use proptest::prelude::*;
use recalld_algo::bm25::{self, Bm25};
use recalld_algo::score::Weights;
use recalld_algo::terms::Analyzer;
use recalld_engine::ids::Micros;
use recalld_engine::types::{Namespace, NewMemory, Query};

const WORDS: [&str; 24] = [
    "invoice",
    "garden",
    "train",
    "Lisbon",
    "soup",
    "printer",
    "refund",
    "violin",
    "winter",
    "passport",
    "bicycle",
    "meeting",
    "deadline",
    "coffee",
    "doctor",
    "window",
    "recipe",
    "budget",
    "river",
    "battery",
    "学校",
    "天气",
    "ORD-2024-00017",
    "E1042",
];

fn sentence() -> impl Strategy<Value = String> {
    proptest::collection::vec(0..WORDS.len(), 1..9).prop_map(|words| {
        words
            .into_iter()
            .map(|word| WORDS[word])
            .collect::<Vec<_>>()
            .join(" ")
    })
}

/// BM25 of whole texts, by the definition.
fn naive_bm25(texts: &BTreeMap<String, String>, query: &str) -> BTreeMap<String, f32> {
    let mut analyzer = Analyzer::new();
    let docs: BTreeMap<&String, BTreeMap<Box<str>, u32>> = texts
        .iter()
        .map(|(key, text)| (key, analyzer.counts(text).into_iter().collect()))
        .collect();
    let lengths: BTreeMap<&String, u32> = docs
        .iter()
        .map(|(key, terms)| (*key, terms.values().sum()))
        .collect();
    let average = lengths.values().sum::<u32>() as f32 / docs.len() as f32;
    let bm25 = Bm25::default();
    let mut scores: BTreeMap<String, f32> = texts.keys().map(|key| (key.clone(), 0.0)).collect();
    for (term, times) in analyzer.counts(query) {
        let having = docs
            .values()
            .filter(|terms| terms.contains_key(&term))
            .count() as u32;
        let idf = bm25::idf(docs.len() as u32, having);
        for (key, terms) in &docs {
            if let Some(frequency) = terms.get(&term) {
                *scores.get_mut(*key).unwrap() +=
                    times as f32 * bm25.weight(idf, *frequency, lengths[key], average);
            }
        }
    }
    scores
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn words_alone_rank_as_bm25_by_the_definition(
        texts in proptest::collection::btree_set(sentence(), 2..40),
        ask in sentence(),
        gone in 0..10usize,
    ) {
        // Ethiopic syllables are words to the lexical arm and unknown to the model, so that the first is alone.
        let ethiopic = |text: &str| {
            let word = |word: &str| {
                let at = WORDS.iter().position(|known| *known == word).unwrap() as u32;
                char::from_u32(0x1200 + at * 8).unwrap().to_string().repeat(2)
            };
            text.split(' ').map(word).collect::<Vec<_>>().join(" ")
        };
        let bench = Bench::new();
        let space = ns(&["s"]);
        let mut model: BTreeMap<String, String> =
            texts.iter().enumerate().map(|(i, text)| (i.to_string(), ethiopic(text))).collect();
        let receipts = bench.put(&space, model.values().map(|text| memory("", text)).collect());
        let mut ids: BTreeMap<String, _> = model.keys().cloned().zip(receipts.iter().map(|r| r.id)).collect();
        if let Some(key) = model.keys().nth(gone).cloned().filter(|_| model.len() > 1) {
            model.remove(&key);
            let id = ids.remove(&key).unwrap();
            bench.engine.delete(recalld_engine::types::Delete { ids: vec![id], ..delete(&space, &[]) }, None).unwrap();
        }
        let query = Query { limit: 1000, ..query(&ethiopic(&ask)) };
        let found = bench.engine.search(&space, &query, None).unwrap();
        let naive = naive_bm25(&model, &query.text);
        let mut expected: Vec<_> = naive.iter().filter(|(_, score)| **score > 0.0).map(|(key, score)| (*score, ids[key])).collect();
        expected.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        prop_assert_eq!(found.degraded.len(), 1);
        let scores: Vec<f32> = found.hits.iter().map(|hit| expected.iter().find(|(_, id)| *id == hit.id).unwrap().0).collect();
        prop_assert_eq!(scores.len(), expected.len());
        // The order is that of the definition, but for rounding between equals.
        for (score, (wanted, _)) in scores.iter().zip(&expected) {
            prop_assert!((score - wanted).abs() <= 1e-4 * wanted, "{:?} {:?}", scores, expected);
        }
        prop_assert_eq!(bench.engine.search(&space, &query, None).unwrap(), found);
    }

    #[test]
    fn namespaces_never_see_one_another(
        paths in proptest::collection::btree_set(
            proptest::collection::vec(prop_oneof![Just("acme"), Just("acme-corp"), Just("a"), Just("a/b"), Just("%"), Just("_")], 1..4),
            2..6,
        ),
        ask in sentence(),
    ) {
        let bench = Bench::new();
        let spaces: Vec<Namespace> = paths.iter().map(|path| ns(path)).collect();
        for (i, space) in spaces.iter().enumerate() {
            bench.put(space, vec![memory("same", &format!("{ask} marker{i}")), memory("", &format!("other marker{i}"))]);
        }
        for (i, space) in spaces.iter().enumerate() {
            let found = bench.engine.search(space, &Query { limit: 100, ..query(&ask) }, None).unwrap();
            prop_assert_eq!(found.hits.len(), 2);
            let brief = bench.engine.brief(&brief(space, &ask, 2000), None).unwrap();
            for j in 0..spaces.len() {
                let marker = format!("marker{j}");
                let seen = found.hits.iter().any(|hit| hit.summary.contains(&marker)) || brief.text.contains(&marker);
                prop_assert_eq!(seen, i == j, "{} in {}", marker, i);
            }
            prop_assert_eq!(bench.contents(space, &["same"]), [format!("{ask} marker{i}")]);
        }
        bench.delete_keys(&spaces[0], &["same"]).unwrap();
        for space in &spaces[1..] {
            prop_assert_eq!(bench.contents(space, &["same"]).len(), 1);
        }
    }
}

#[test]
fn identifiers_and_chinese_words_find_their_memory_alone() {
    let bench = Bench::new();
    let space = ns(&["s"]);
    let mut items: Vec<NewMemory> = (0..200)
        .map(|i| {
            memory(
                "",
                &format!(
                    "Order ORD-2024-{:05} was shipped with error code E{}.",
                    10_000 + i,
                    2_000 + i
                ),
            )
        })
        .collect();
    items.push(memory(
        "order",
        "Order ORD-2024-00017 is waiting for a refund.",
    ));
    items.push(memory("tea", "客户喜欢喝绿茶，不喜欢咖啡。"));
    items.push(memory("weather", "明天北京的天气很好。"));
    bench.put(&space, items);
    assert_eq!(bench.find(&space, "ORD-2024-00017")[0], "order");
    assert_eq!(bench.find(&space, "绿茶")[0], "tea");
    assert_eq!(bench.find(&space, "天气怎么样")[0], "weather");
    assert_eq!(
        bench.find(&space, "what does the customer like to drink?")[0],
        "tea"
    );
}

#[test]
fn importance_confidence_and_recency_lift_a_memory_over_all_that_were_refined() {
    let day = 24 * 3600 * SECOND;
    let plain = |i: usize| NewMemory {
        importance: 0.1,
        confidence: 0.1,
        kind: "event".to_owned(),
        occurred_at: Some(Micros(START - 400 * day)),
        ..memory(
            &format!("k{i}"),
            &format!("The violin lesson {i} was moved."),
        )
    };
    // All are alike by words, and the first 32 rows are refined.
    let lifted = |importance: f64, recency: f64, change: fn(NewMemory) -> NewMemory| {
        let bench = Bench::new();
        let space = ns(&["s"]);
        let last = change(plain(99));
        bench.put(&space, (0..99).map(plain).chain([last]).collect());
        let query = Query {
            weights: Weights::new(0.2, importance, recency).unwrap(),
            ..query("violin lesson")
        };
        let found = bench.engine.search(&space, &query, None).unwrap();
        found.hits[0].key.clone()
    };
    let important = |item| NewMemory {
        importance: 1.0,
        ..item
    };
    let certain = |item| NewMemory {
        confidence: 1.0,
        ..item
    };
    let new = |item| NewMemory {
        occurred_at: Some(Micros(START)),
        ..item
    };
    assert_eq!(lifted(0.8, 0.0, important), "k99");
    assert_eq!(lifted(0.2, 0.0, certain), "k99");
    assert_eq!(lifted(0.0, 0.8, new), "k99");
}

#[test]
fn importance_recency_and_confidence_count_as_weighed() {
    let bench = Bench::new();
    let space = ns(&["s"]);
    let day = 24 * 3600 * SECOND;
    let item = |key: &str, importance: f64, confidence: f64, days: i64| NewMemory {
        importance,
        confidence,
        kind: "event".to_owned(),
        occurred_at: Some(Micros(START - days * day)),
        ..memory(key, &format!("The violin lesson {key} was moved."))
    };
    bench.put(
        &space,
        vec![
            item("old", 0.5, 1.0, 60),
            item("new", 0.5, 1.0, 1),
            item("vital", 1.0, 1.0, 60),
            item("doubtful", 1.0, 0.2, 1),
        ],
    );
    let order = |weights: Weights| {
        let query = Query {
            weights,
            ..query("violin")
        };
        let found = bench.engine.search(&space, &query, None).unwrap();
        found
            .hits
            .into_iter()
            .map(|hit| hit.key)
            .collect::<Vec<_>>()
    };
    let by_recency = order(Weights::new(0.0, 0.0, 1.0).unwrap());
    assert_eq!(
        (by_recency[0].as_str(), by_recency[3].as_str()),
        ("new", "doubtful")
    );
    assert_eq!(order(Weights::new(0.0, 1.0, 0.0).unwrap())[0], "vital");
    assert_eq!(order(Weights::default()).last().unwrap(), "doubtful");
    let half_lives = BTreeMap::from([("event".to_owned(), Duration::from_secs(30 * 24 * 3600))]);
    let query = Query {
        weights: Weights::new(0.0, 0.0, 1.0).unwrap(),
        half_lives,
        ..query("violin")
    };
    let hits = bench.engine.search(&space, &query, None).unwrap().hits;
    let old = hits.iter().find(|hit| hit.key == "old").unwrap();
    assert!(
        (old.score - 0.25).abs() < 1e-9,
        "two half-lives: {}",
        old.score
    );
    let above = Query {
        min_score: 0.5,
        ..query
    };
    assert_eq!(
        bench
            .engine
            .search(&space, &above, None)
            .unwrap()
            .hits
            .len(),
        1
    );
}

#[test]
fn what_an_arm_cannot_do_is_said() {
    let bench = Bench::new();
    let space = ns(&["s"]);
    bench.put(&space, vec![memory("", "The violin lesson was moved.")]);
    let degraded = |query: &Query| {
        let found = bench.engine.search(&space, query, None).unwrap();
        found
            .degraded
            .into_iter()
            .map(|d| (d.arm, d.reason))
            .collect::<Vec<_>>()
    };
    assert_eq!(degraded(&query("violin")), []);
    let vector = Some(vec![1.0; bench.engine.dimensions() as usize]);
    assert_eq!(
        degraded(&Query {
            vector,
            ..query("")
        }),
        [("lexical", "no_query")]
    );
    let punctuation = Query {
        limit: 5,
        ..query("\u{200b}\u{200d}")
    };
    assert_eq!(
        degraded(&punctuation),
        [("dense", "no_known_words"), ("lexical", "no_known_words")]
    );
    assert!(
        bench
            .engine
            .search(&space, &punctuation, None)
            .unwrap()
            .hits
            .is_empty()
    );
}

#[test]
fn a_long_memory_is_found_and_quoted_by_its_passage() {
    let bench = Bench::new();
    let space = ns(&["s"]);
    let filler =
        "The weather was mild and nothing much happened on that day in the office. ".repeat(40);
    bench.put(
        &space,
        vec![
            memory(
                "long",
                &format!("{filler}The spare key hangs behind the blue cupboard. {filler}"),
            ),
            memory("short", "The blue bus is late."),
        ],
    );
    assert_eq!(bench.find(&space, "where is the spare key?")[0], "long");
    let brief = bench
        .engine
        .brief(&brief(&space, "where is the spare key?", 300), None)
        .unwrap();
    assert!(
        brief
            .text
            .contains("The spare key hangs behind the blue cupboard."),
        "{}",
        brief.text
    );
    assert!(brief.tokens <= 300);
    let stats = bench.engine.namespace_stats(&space).unwrap();
    assert!(stats.passages > 20, "{stats:?}");
}

/// Waits for the background builder.
fn indexed(bench: &Bench, space: &Namespace, at_least: u64) {
    let patience = Instant::now() + Duration::from_secs(120);
    while bench
        .engine
        .namespace_stats(space)
        .unwrap()
        .indexed_passages
        < at_least
    {
        assert!(Instant::now() < patience, "no index was built");
        std::thread::yield_now();
    }
}

#[test]
fn an_index_changes_no_answer_and_may_be_deleted() {
    let exact = Bench::new();
    let bench = Bench::with(|options| options.index_after = 500);
    let space = ns(&["s"]);
    let text = |i: usize| {
        let word = |k: usize| WORDS[(i * 7 + k * k * 5 + i / 24 * k) % 22];
        format!("{} {} {} {} number {i}", word(1), word(2), word(3), word(4))
    };
    for start in (0..1500).step_by(500) {
        let items: Vec<_> = (start..start + 500)
            .map(|i| memory(&format!("k{i}"), &text(i)))
            .collect();
        bench.put(&space, items.clone());
        exact.put(&space, items);
    }
    indexed(&bench, &space, 1400);
    // Not in the index yet: found all the same.
    for bench in [&bench, &exact] {
        bench.put(
            &space,
            vec![memory("fresh", "the heron stands in the reeds")],
        );
        bench.delete_keys(&space, &["k3"]).unwrap();
    }
    let asks: Vec<String> = (0..60).map(|i| text(i * 23)).collect();
    let recall = |bench: &Bench| {
        let mut share = 0.0;
        for ask in &asks {
            let wanted = exact
                .engine
                .search(
                    &space,
                    &Query {
                        limit: 10,
                        ..query(ask)
                    },
                    None,
                )
                .unwrap()
                .hits;
            let got = bench
                .engine
                .search(
                    &space,
                    &Query {
                        limit: 10,
                        ..query(ask)
                    },
                    None,
                )
                .unwrap();
            assert!(got.hits.iter().all(|hit| hit.key != "k3"));
            let both = wanted
                .iter()
                .filter(|hit| got.hits.iter().any(|other| other.key == hit.key))
                .count();
            share += both as f64 / wanted.len() as f64;
        }
        share / asks.len() as f64
    };
    let method = |bench: &Bench| {
        bench
            .engine
            .search(&space, &query("garden"), None)
            .unwrap()
            .arms[0]
            .method
    };
    assert_eq!((method(&bench), method(&exact)), ("hnsw", "scan"));
    assert_eq!(bench.find(&space, "heron in the reeds")[0], "fresh");
    assert!(recall(&bench) >= 0.98, "{}", recall(&bench));
    let folder = bench.directory.path().join("index");
    assert!(folder.exists());
    // Deleted, and then damaged: a new one is built, and until then the scan answers.
    let spoil: [&dyn Fn(); 2] = [&|| std::fs::remove_dir_all(&folder).unwrap(), &|| {
        for file in std::fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x40;
            std::fs::write(&path, bytes).unwrap();
        }
    }];
    let mut bench = bench;
    for spoil in spoil {
        bench = bench.reopen_after(spoil);
        assert!(recall(&bench) >= 0.98);
        assert_eq!(bench.find(&space, "heron in the reeds")[0], "fresh");
        indexed(&bench, &space, 1400);
        assert!(recall(&bench) >= 0.98);
    }
}
