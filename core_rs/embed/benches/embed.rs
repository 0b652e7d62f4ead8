//! Cost of one embedding, on one thread, with the shipped model; of the load; and of a hostile text, which
//! must stay proportional to its length.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(
    clippy::expect_used,
    reason = "a benchmark without its model must stop"
)]

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use recalld_embed::{Scratch, StaticModel};

const QUERY: &str = "What did I say about my sister's wedding in the summer?"; // 13 rows
const MEMORY: &str = "I finally booked the flights for my sister's wedding in Lisbon: we leave on the 14th of June at \
    7:25 and come back the Sunday after. She asked me to bring the old camera, and I still have to find a hotel \
    near the church that takes dogs, since nobody can look after Biscuit that week.";
const CHINESE: &str = "我下个月要去上海出差，记得提醒我带护照和充电器，还要给女儿买生日礼物。";
const MEBIBYTE: usize = 1 << 20;

fn files() -> (Vec<u8>, String, Vec<u8>) {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sidecar/recalld_sidecar/data/static-256");
    (
        std::fs::read(folder.join("model.safetensors")).expect("the weights are readable"),
        std::fs::read_to_string(folder.join("vocab.txt")).expect("the vocabulary is readable"),
        std::fs::read(folder.join("neighbours.safetensors")).expect("the neighbours are readable"),
    )
}

fn benchmarks(c: &mut Criterion) {
    let (weights, vocabulary, neighbours) = files();
    let load = || {
        StaticModel::new(
            Box::new(weights.clone()),
            &vocabulary,
            Box::new(neighbours.clone()),
        )
        .expect("the model is whole")
    };
    let model = load();
    let mut scratch = Scratch::default();
    let mut vector = vec![0.0; model.dimensions()];

    c.bench_function("load", |b| b.iter(load));
    for (name, text) in [("query", QUERY), ("memory", MEMORY), ("chinese", CHINESE)] {
        let rows = model.rows(text, &mut scratch).len();
        c.bench_function(&format!("embed {name}, {rows} rows"), |b| {
            b.iter(|| model.embed(black_box(text), &mut scratch, &mut vector));
        });
        c.bench_function(&format!("rows of {name}"), |b| {
            b.iter(|| model.rows(black_box(text), &mut scratch).len());
        });
    }

    let mut hostile = c.benchmark_group("1 MiB");
    hostile
        .sample_size(10)
        .throughput(Throughput::Bytes(MEBIBYTE as u64));
    for (name, unit) in [
        ("english", MEMORY),
        ("chinese", CHINESE),
        ("one letter", "a"),
        ("words of 100 letters", &format!("{} ", "a".repeat(100))),
        ("exclamation marks", "!"),
        ("one kana", "あ"),
        ("combining marks", "\u{301}\u{323}"),
        ("ligatures that expand eighteenfold", "\u{fdfa}"),
        ("capital sigmas", "Σ'"),
        ("kana and letters by turns", "あb"),
    ] {
        let text = unit.repeat(MEBIBYTE / unit.len());
        hostile.bench_function(name, |b| {
            b.iter(|| model.embed(black_box(&text), &mut scratch, &mut vector));
        });
    }
    hostile.finish();
}

criterion_group!(embed, benchmarks);
criterion_main!(embed);
