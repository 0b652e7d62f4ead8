//! Search and brief in one namespace of 10,000 memories, one thread, beside the exact scan of as many vectors.
//! `RECALLD_BENCH_MEMORIES=100000` sets another size, `RECALLD_BENCH_WORDS=200` another length of a memory, and
//! `RECALLD_BENCH_SCAN=1` keeps a large one without its approximate index.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark without its store must stop"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use recalld_algo::score::Weights;
use recalld_counters::Counter;
use recalld_engine::clock::SystemClock;
use recalld_engine::types::{
    Brief, BriefFormat, Expiry, Namespace, NewMemory, Query, Section, Selection, Write,
};
use recalld_engine::{Engine, EngineOptions};
use recalld_vector::quantize::{encode_row, quantize};
use recalld_vector::{NO_VECTOR, row_bytes, scan};

const MEMORIES: usize = 10_000;
/// Passages from which the product indexes a namespace.
const INDEX_AFTER: u32 = 20_000;
const DIMENSIONS: usize = 256;
const QUERIES: usize = 500;
const BATCH: usize = 500;
/// Words of the vocabulary, of a memory (about 60 tokens), and of a query.
const WORDS: usize = 4_000;
const MEMORY_WORDS: usize = 45;
const QUERY_WORDS: usize = 10;

/// A fixed sequence of numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn share(&mut self) -> f64 {
        self.below(1 << 30) as f64 / f64::from(1 << 30)
    }
}

/// Texts of the model's words, which its vocabulary lists by how common they are, drawn with Zipf's law.
struct Texts {
    numbers: Numbers,
    words: Vec<String>,
}

impl Texts {
    fn new() -> Self {
        let vocabulary = std::fs::read_to_string(model_dir().join("vocab.txt")).unwrap();
        let words = vocabulary
            .lines()
            .filter(|word| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase()))
            .take(WORDS)
            .map(str::to_owned)
            .collect();
        Self {
            numbers: Numbers(0x9E37_79B9_7F4A_7C15),
            words,
        }
    }

    /// The rank has a density of 1 / rank.
    fn word(&mut self) -> &str {
        let (least, most) = (2.7, self.words.len() as f64 + 2.7);
        let rank = least * (most / least).powf(self.numbers.share()) - least;
        &self.words[rank as usize]
    }

    fn text(&mut self, words: usize) -> String {
        let mut text = String::new();
        for place in 0..words {
            text.push_str(if place == 0 { "" } else { " " });
            text.push_str(self.word());
            text.push_str(if place % 11 == 10 { "." } else { "" });
        }
        text
    }

    /// Half of the words of a query are a memory's.
    fn query(&mut self, memories: &[String]) -> String {
        let memory = &memories[self.numbers.below(memories.len() as u64) as usize];
        let words: Vec<&str> = memory.split(' ').collect();
        let own: Vec<&str> = (0..QUERY_WORDS / 2)
            .map(|_| words[self.numbers.below(words.len() as u64) as usize])
            .collect();
        format!("{} {}", own.join(" "), self.text(QUERY_WORDS - own.len()))
    }
}

fn model_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sidecar/recalld_sidecar/data/static-256")
}

fn namespace() -> Namespace {
    Namespace(vec!["bench".to_owned()])
}

fn memory(content: &str, kind: &str) -> NewMemory {
    NewMemory {
        key: String::new(),
        content: content.to_owned(),
        json: false,
        kind: kind.to_owned(),
        summary: String::new(),
        tags: Vec::new(),
        metadata: BTreeMap::new(),
        importance: 0.5,
        confidence: 1.0,
        occurred_at: None,
        expiry: Expiry::ByKind,
        sources: Vec::new(),
        vector: None,
        if_version: None,
        origin: String::new(),
        digest: None,
    }
}

fn query(text: String) -> Query {
    Query {
        text,
        vector: None,
        limit: 5,
        selection: Selection::default(),
        min_score: 0.0,
        min_relevance: 0.0,
        weights: Weights::default(),
        half_lives: BTreeMap::new(),
        explain: false,
        latency_budget: None,
        at_least: None,
    }
}

fn engine(directory: &Path, memories: &[String], index_after: u32) -> Engine {
    let open = |index_after| {
        let options = EngineOptions {
            data_dir: directory.to_owned(),
            model_dir: model_dir(),
            address: String::new(),
            max_store_bytes: 1 << 34,
            max_queued_writes: 1024,
            index_after,
            max_index_bytes: 1 << 32,
            tuning: recalld_engine::Tuning::default(),
            slo: Duration::from_millis(50),
        };
        Engine::open(&options, Arc::new(SystemClock)).unwrap()
    };
    let engine = open(u32::MAX);
    for batch in memories.chunks(BATCH) {
        let items = batch
            .iter()
            .zip(["note", "fact"].into_iter().cycle())
            .map(|(content, kind)| memory(content, kind))
            .collect();
        let write = Write {
            namespace: namespace(),
            items,
            idempotency: None,
            actor: "bench".to_owned(),
        };
        engine.write(write, None).unwrap();
    }
    drop(engine);
    // The index is built at one go, and all of it is there before anything is measured.
    let engine = open(index_after);
    loop {
        let stats = engine.namespace_stats(&namespace()).unwrap();
        if stats.passages < u64::from(index_after) || stats.indexed_passages == stats.passages {
            return engine;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Rows of vectors, as the store holds them.
fn rows(count: usize) -> Vec<u8> {
    let mut numbers = Numbers(0x2545_F491_4F6C_DD1D);
    let mut rows = vec![0; count * row_bytes(DIMENSIONS)];
    for row in rows.chunks_exact_mut(row_bytes(DIMENSIONS)) {
        let vector: Vec<f32> = (0..DIMENSIONS)
            .map(|_| numbers.share() as f32 - 0.5)
            .collect();
        encode_row(&quantize(&vector).unwrap(), row);
    }
    rows
}

fn searching(criterion: &mut Criterion) {
    let number =
        |name, default| std::env::var(name).map_or(default, |given| given.parse().unwrap());
    let count = number("RECALLD_BENCH_MEMORIES", MEMORIES);
    let words = number("RECALLD_BENCH_WORDS", MEMORY_WORDS);
    let index_after = if std::env::var_os("RECALLD_BENCH_SCAN").is_some() {
        u32::MAX
    } else {
        INDEX_AFTER
    };
    let mut texts = Texts::new();
    let memories: Vec<String> = (0..count).map(|_| texts.text(words)).collect();
    let queries: Vec<Query> = (0..QUERIES)
        .map(|_| query(texts.query(&memories)))
        .collect();
    let briefs: Vec<Brief> = queries
        .iter()
        .map(|query| Brief {
            namespace: namespace(),
            query: Query {
                limit: 64,
                ..query.clone()
            },
            budget: 1_200,
            counter: Counter::default(),
            format: BriefFormat::Markdown,
            sections: Vec::new(),
            pinned_ids: Vec::new(),
            pinned_keys: Vec::new(),
        })
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path(), &memories, index_after);

    let mut group = criterion.benchmark_group(format!("{count} memories"));
    let namespace = namespace();
    let mut next = queries.iter().cycle();
    group.bench_function("search", |bencher| {
        bencher.iter(|| {
            engine
                .search(&namespace, black_box(next.next().unwrap()), None)
                .unwrap()
        });
    });
    for (name, format, sections) in [
        ("brief", BriefFormat::Markdown, 0),
        ("brief in JSON", BriefFormat::Json, 0),
        ("brief in XML", BriefFormat::Xml, 0),
        ("brief in 2 sections", BriefFormat::Markdown, 2),
    ] {
        let sections: Vec<Section> = (0..sections)
            .map(|at| Section {
                title: format!("Section {at}"),
                kinds: if at == 0 {
                    vec!["fact".to_owned()]
                } else {
                    Vec::new()
                },
                max_tokens: (at == 0).then_some(400),
            })
            .collect();
        let briefs: Vec<Brief> = briefs
            .iter()
            .map(|brief| Brief {
                format,
                sections: sections.clone(),
                ..brief.clone()
            })
            .collect();
        let mut next = briefs.iter().cycle();
        group.bench_function(name, |bencher| {
            bencher.iter(|| engine.brief(black_box(next.next().unwrap()), None).unwrap());
        });
    }
    let rows = rows(count);
    let scan_query = recalld_vector::Query::new(&[1.0; DIMENSIONS]).unwrap();
    let mut cosines = vec![NO_VECTOR; count];
    group.bench_function("exact scan of as many vectors", |bencher| {
        bencher.iter(|| scan::scan_block(&scan_query, black_box(&rows), &mut cosines));
    });
    group.finish();
}

criterion_group!(benches, searching);
criterion_main!(benches);
