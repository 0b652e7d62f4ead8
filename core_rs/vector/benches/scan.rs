//! The scan by each kernel, the graph, and where one overtakes the other.
//!
//! Vectors are drawn from 48 latent factors of falling weight with a little noise: embeddings have low rank too, and a
//! graph over independent noise would look worse than any it meets.
#![allow(missing_docs, reason = "criterion's macros make public functions")]
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark stops at the first surprise"
)]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use recalld_vector::{
    HnswIndex, Kernel, Query,
    quantize::{encode_row, quantize, row_bytes, rows_per_block},
    scan::{exact_cosine, scan_block},
};

const DIMS: usize = 256;
const FACTORS: usize = 48;
const K: usize = 10;
const CANDIDATES: usize = 4 * K;

struct Vectors {
    state: u64,
    factors: Vec<f32>,
}

impl Vectors {
    fn new() -> Self {
        let mut vectors = Self {
            state: 88_172_645_463_325_252,
            factors: Vec::new(),
        };
        vectors.factors = (0..FACTORS * DIMS).map(|_| vectors.uniform()).collect();
        vectors
    }

    /// xorshift64 (Marsaglia 2003), in -1..1.
    fn uniform(&mut self) -> f32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }

    fn vector(&mut self) -> Vec<f32> {
        let mut vector = vec![0.0; DIMS];
        for factor in 0..FACTORS {
            let weight = self.uniform() / (1.0 + factor as f32).sqrt();
            for (element, part) in vector.iter_mut().zip(&self.factors[factor * DIMS..]) {
                *element += weight * part;
            }
        }
        for element in &mut vector {
            *element += 0.1 * self.uniform();
        }
        vector
    }

    fn rows(&mut self, count: usize) -> Vec<u8> {
        let mut rows = vec![0; count * row_bytes(DIMS)];
        for row in rows.chunks_exact_mut(row_bytes(DIMS)) {
            encode_row(&quantize(&self.vector()).unwrap(), row);
        }
        rows
    }
}

fn scan(query: &Query, rows: &[u8], scores: &mut [f32]) {
    let block_rows = rows_per_block(DIMS);
    for (block, scores) in rows
        .chunks(block_rows * row_bytes(DIMS))
        .zip(scores.chunks_mut(block_rows))
    {
        scan_block(query, block, scores);
    }
}

fn index(rows: &[u8]) -> HnswIndex {
    let index = HnswIndex::new(DIMS).unwrap();
    for (key, row) in rows.chunks_exact(row_bytes(DIMS)).enumerate() {
        index.add(key as u64, row).unwrap();
    }
    index
}

fn row(rows: &[u8], key: usize) -> &[u8] {
    &rows[key * row_bytes(DIMS)..][..row_bytes(DIMS)]
}

/// The last step of both ways: the exact order of the candidates.
fn rerank(query: &Query, rows: &[u8], keys: impl Iterator<Item = usize>) -> Vec<(f32, usize)> {
    let mut best: Vec<_> = keys
        .map(|key| (exact_cosine(query, row(rows, key)), key))
        .collect();
    best.sort_unstable_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    best.truncate(K);
    best
}

fn by_scan(query: &Query, rows: &[u8], scores: &mut [f32]) -> Vec<(f32, usize)> {
    scan(query, rows, scores);
    let mut best: Vec<(f32, usize)> = Vec::with_capacity(2 * CANDIDATES);
    let mut threshold = f32::NEG_INFINITY;
    for (key, &score) in scores.iter().enumerate() {
        if score > threshold {
            best.push((score, key));
            if best.len() == best.capacity() {
                best.select_nth_unstable_by(CANDIDATES - 1, |left, right| {
                    right.0.total_cmp(&left.0)
                });
                best.truncate(CANDIDATES);
                threshold = best[CANDIDATES - 1].0;
            }
        }
    }
    best.sort_unstable_by(|left, right| right.0.total_cmp(&left.0));
    rerank(
        query,
        rows,
        best.into_iter().take(CANDIDATES).map(|(_, key)| key),
    )
}

fn by_graph(query: &Query, rows: &[u8], index: &HnswIndex) -> Vec<(f32, usize)> {
    let found = index.search(query, CANDIDATES).unwrap();
    rerank(
        query,
        rows,
        found.iter().map(|neighbour| neighbour.key as usize),
    )
}

fn kernels(criterion: &mut Criterion) {
    const ROWS: usize = 10_000;
    let mut vectors = Vectors::new();
    let rows = vectors.rows(ROWS);
    let query = vectors.vector();
    let mut scores = vec![0.0; ROWS];
    let mut group = criterion.benchmark_group("scan 10000x256");
    group.throughput(Throughput::Elements(ROWS as u64));
    for kernel in Kernel::available() {
        let query = Query::with_kernel(&query, kernel).unwrap();
        group.bench_function(kernel.name(), |bencher| {
            bencher.iter(|| scan(black_box(&query), &rows, &mut scores));
        });
    }
    group.finish();
    let prepared = Query::new(&query).unwrap();
    criterion.bench_function("exact cosine 40x256", |bencher| {
        bencher.iter(|| rerank(black_box(&prepared), &rows, 0..CANDIDATES));
    });
    criterion.bench_function("prepare query 256", |bencher| {
        bencher.iter(|| Query::new(black_box(&query)));
    });
}

fn graph(criterion: &mut Criterion) {
    const ROWS: usize = 20_000;
    let mut vectors = Vectors::new();
    let rows = vectors.rows(ROWS);
    let index = index(&rows);
    let mut group = criterion.benchmark_group("hnsw 20000x256");
    let queries: Vec<Query> = (0..500)
        .map(|_| Query::new(&vectors.vector()).unwrap())
        .collect();
    let mut next = queries.iter().cycle();
    group.bench_function("search", |bencher| {
        bencher.iter(|| index.search(next.next().unwrap(), K));
    });
    let mut key = ROWS as u64;
    group.bench_function("add", |bencher| {
        bencher.iter_batched(
            || vectors.rows(1),
            |row| {
                index.add(key, &row).unwrap();
                key += 1;
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn crossing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("top 10 of x256, 40 reranked");
    for count in [2_000, 5_000, 10_000, 20_000, 50_000] {
        let mut vectors = Vectors::new();
        let rows = vectors.rows(count);
        let index = index(&rows);
        let queries: Vec<Query> = (0..500)
            .map(|_| Query::new(&vectors.vector()).unwrap())
            .collect();
        let mut scores = vec![0.0; count];
        let mut next = queries.iter().cycle();
        group.bench_function(BenchmarkId::new("scan", count), |bencher| {
            bencher.iter(|| by_scan(next.next().unwrap(), &rows, &mut scores));
        });
        group.bench_function(BenchmarkId::new("graph", count), |bencher| {
            bencher.iter(|| by_graph(next.next().unwrap(), &rows, &index));
        });
    }
    group.finish();
}

criterion_group!(benches, kernels, graph, crossing);
criterion_main!(benches);
