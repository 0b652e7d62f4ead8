//! Ranking and packing at the sizes of the speed goals: `cargo bench -p recalld-algo --bench rank`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use recalld_algo::bm25::{Bm25, idf};
use recalld_algo::decay::Decay;
use recalld_algo::fusion::{Fusion, Moments};
use recalld_algo::pack::{Form, Section, pack, pack_sections};
use recalld_algo::score::{Weights, relevance_from_z, score};
use recalld_algo::topk::TopK;

/// A fixed sequence of numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn between(&mut self, least: u64, most: u64) -> u32 {
        (least + self.below(most - least + 1)) as u32
    }

    fn scores(&mut self, count: usize) -> Vec<f32> {
        (0..count)
            .map(|_| self.below(1 << 20) as f32 / (1 << 20) as f32)
            .collect()
    }
}

/// Candidates of a brief: falling scores, a full form, a summary and a headline, valued by score and share.
fn brief(candidates: u64) -> Vec<[Form; 3]> {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    (0..candidates)
        .map(|rank| {
            let score = 900_000 * (candidates - rank / 2) / candidates + numbers.below(60_000);
            let share = 650 + numbers.below(250);
            [
                (numbers.between(40, 300), score * 1_000),
                (numbers.between(30, 80), score * share),
                (numbers.between(8, 16), score * share / 2),
            ]
            .map(|(tokens, value)| Form { tokens, value })
        })
        .collect()
}

/// Candidates that are all short and nearly of one length: the whole and a headline.
fn short_memories(candidates: u64) -> Vec<[Form; 2]> {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    (0..candidates)
        .map(|rank| {
            let fit = 1.0 - 0.5 * rank as f64 / candidates as f64;
            let value = (fit.powi(5) * 1e15) as u64 + numbers.below(1 << 40);
            [
                (numbers.between(62, 74), value),
                (numbers.between(24, 28), value / 5),
            ]
            .map(|(tokens, value)| Form { tokens, value })
        })
        .collect()
}

/// Values that are the cost and a constant, the hardest kind known.
fn strongly_correlated(items: u64) -> Vec<[Form; 3]> {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    (0..items)
        .map(|_| {
            [(); 3].map(|()| {
                let tokens = numbers.between(100, 1_000);
                Form {
                    tokens,
                    value: u64::from(tokens) * 1_000 + 100_003,
                }
            })
        })
        .collect()
}

/// Items dealt out to sections, of which every other one has a limit that holds it back.
fn sectioned(items: &[[Form; 3]], count: usize, budget: u32) -> Vec<Section<[Form; 3]>> {
    (0..count)
        .map(|at| Section {
            items: items.iter().copied().skip(at).step_by(count).collect(),
            heading: 4,
            most: if at % 2 == 0 {
                budget / count as u32
            } else {
                u32::MAX
            },
        })
        .collect()
}

fn packing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pack");
    for (name, items, budget) in [
        ("64 x 3 into 1,200", brief(64), 1_200),
        ("256 x 3 into 1,200", brief(256), 1_200),
        ("256 x 3 into 8,000", brief(256), 8_000),
        ("256 x 3 into 32,000", brief(256), 32_000),
        ("256 x 3 into 64,000, all fit", brief(256), 64_000),
        (
            "256 x 3 into 32,000, strongly correlated",
            strongly_correlated(256),
            32_000,
        ),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| pack(black_box(&items), budget));
        });
    }
    let items = short_memories(64);
    group.bench_function("64 x 2 of one length into 1,200", |bencher| {
        bencher.iter(|| pack(black_box(&items), 1_200));
    });
    for (name, items, count, budget) in [
        ("64 x 3 in 4 sections into 1,200", brief(64), 4, 1_200),
        ("64 x 3 in 16 sections into 1,200", brief(64), 16, 1_200),
        ("256 x 3 in 8 sections into 32,000", brief(256), 8, 32_000),
        (
            "256 x 3 in 8 sections into 32,000, strongly correlated",
            strongly_correlated(256),
            8,
            32_000,
        ),
    ] {
        let sections = sectioned(&items, count, budget);
        group.bench_function(name, |bencher| {
            bencher.iter(|| pack_sections(black_box(&sections), budget));
        });
    }
    group.finish();
}

fn ranking(criterion: &mut Criterion) {
    const DOCUMENTS: usize = 10_000;
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let dense = numbers.scores(DOCUMENTS);
    let lexical = numbers.scores(DOCUMENTS);
    let postings: Vec<(u32, u32)> = (0..DOCUMENTS)
        .map(|_| (numbers.between(1, 5), numbers.between(5, 200)))
        .collect();
    let ages: Vec<i64> = (0..DOCUMENTS)
        .map(|_| numbers.below(1 << 48) as i64)
        .collect();

    let mut group = criterion.benchmark_group("10,000 documents");
    group.bench_function("bm25 of a term", |bencher| {
        let term = Bm25::default().term(idf(20_000, 10_000), 80.0);
        bencher.iter(|| {
            black_box(&postings)
                .iter()
                .map(|&(tf, length)| term.score(tf, length))
                .sum::<f32>()
        });
    });
    group.bench_function("moments and fusion", |bencher| {
        let mut fused = vec![0.0; DOCUMENTS];
        bencher.iter(|| {
            let arms = [&dense, &lexical].map(|arm| Moments::of(black_box(arm).iter().copied()));
            for ((fused, &a), &b) in fused.iter_mut().zip(&dense).zip(&lexical) {
                *fused = Fusion::default().fuse(Some(arms[0].z(a)), Some(arms[1].z(b)));
            }
            black_box(&fused);
        });
    });
    group.bench_function("top 100", |bencher| {
        bencher.iter(|| {
            let mut top = TopK::new(100);
            top.extend_dense(0, black_box(&dense));
            top.into_sorted()
        });
    });
    group.bench_function("decay and score", |bencher| {
        let decay = Decay::Exponential {
            half_life: 30 * 86_400_000_000,
        };
        let weights = Weights::default();
        bencher.iter(|| {
            black_box(&ages)
                .iter()
                .zip(&dense)
                .map(|(&age, &z)| score(&weights, relevance_from_z(z), 0.5, decay.at(age), 0.9))
                .sum::<f64>()
        });
    });
    group.finish();
}

criterion_group!(benches, packing, ranking);
criterion_main!(benches);
