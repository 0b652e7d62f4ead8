#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(
    clippy::needless_range_loop,
    reason = "the position of a vector is its key"
)]

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use super::*;
use crate::{
    quantize::{encode_row, quantize},
    scan::{exact_cosine, scan_block},
};

const DIMS: usize = 64;
/// Bytes of the file after the stamp.
const FOOTER: usize = LENGTHS + DIGEST + MAGIC.len();

/// Uniform numbers in -1..1, xorshift64 (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMS).map(|_| self.next()).collect()
    }
}

/// `count` vectors around 100 centres, as texts lie around topics.
fn clustered(seed: u64, count: usize) -> Vec<Vec<f32>> {
    let mut random = Random(seed);
    let centres: Vec<Vec<f32>> = (0..100).map(|_| random.vector()).collect();
    (0..count)
        .map(|number| {
            let centre = &centres[number % centres.len()];
            centre
                .iter()
                .map(|element| element + 0.6 * random.next())
                .collect()
        })
        .collect()
}

fn row(vector: &[f32]) -> Vec<u8> {
    let mut row = vec![0; row_bytes(vector.len())];
    encode_row(&quantize(vector).unwrap(), &mut row);
    row
}

/// An index of the vectors, each under its position.
fn index_of(vectors: &[Vec<f32>]) -> HnswIndex {
    let index = HnswIndex::new(DIMS).unwrap();
    for (key, vector) in vectors.iter().enumerate() {
        index.add(key as u64, &row(vector)).unwrap();
    }
    index
}

fn finds_itself(index: &HnswIndex, key: u64, vector: &[f32]) -> bool {
    let found = index.search(&Query::new(vector).unwrap(), 10).unwrap();
    found.iter().any(|neighbour| neighbour.key == key)
}

/// Of the exact ten nearest among `live`, how many are the first ten after an exact order of 40 candidates.
fn hits(index: &HnswIndex, vectors: &[Vec<f32>], live: &[usize], query: &[f32]) -> usize {
    let query = Query::new(query).unwrap();
    let rank = |keys: &mut dyn Iterator<Item = usize>| -> Vec<usize> {
        let mut scored: Vec<(f32, usize)> = keys
            .map(|key| (exact_cosine(&query, &row(&vectors[key])), key))
            .collect();
        scored
            .sort_unstable_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
        scored.into_iter().take(10).map(|(_, key)| key).collect()
    };
    let expected = rank(&mut live.iter().copied());
    let found = index.search(&query, 40).unwrap();
    let found = rank(&mut found.iter().map(|neighbour| neighbour.key as usize));
    expected.iter().filter(|key| found.contains(key)).count()
}

#[test]
fn finds_what_the_exact_search_finds() {
    let vectors = clustered(1, 5000);
    let index = index_of(&vectors);
    assert_eq!(index.len(), 5000, "grew beyond the first capacity");
    let missed: Vec<usize> = (0..5000)
        .filter(|&key| !finds_itself(&index, key as u64, &vectors[key]))
        .collect();
    assert_eq!(missed, [], "every vector finds itself");
    let live: Vec<usize> = (0..5000).collect();
    let queries = clustered(1, 5200).split_off(5000);
    let hits: usize = queries
        .iter()
        .map(|query| hits(&index, &vectors, &live, query))
        .sum();
    assert!(hits >= 1940, "recall@10 {hits} of 2000");
}

#[test]
fn a_neighbours_cosine_is_that_of_a_scan() {
    let vectors = clustered(2, 300);
    let index = index_of(&vectors);
    let block: Vec<u8> = vectors.iter().flat_map(|vector| row(vector)).collect();
    let query = Query::new(&Random(3).vector()).unwrap();
    let mut scores = vec![0.0; vectors.len()];
    scan_block(&query, &block, &mut scores);
    let found = index.search(&query, 50).unwrap();
    assert_eq!(found.len(), 50);
    for neighbour in &found {
        assert_eq!(
            neighbour.cosine.to_bits(),
            scores[neighbour.key as usize].to_bits()
        );
    }
    assert!(found.is_sorted_by(|left, right| (right.cosine, left.key) < (left.cosine, right.key)));
}

#[test]
fn equal_vectors_come_by_key() {
    let index = HnswIndex::new(2).unwrap();
    for key in [5, 3, 9, 1] {
        index.add(key, &row(&[0.6, 0.8])).unwrap();
    }
    let keys: Vec<u64> = index
        .search(&Query::new(&[0.6, 0.8]).unwrap(), 9)
        .unwrap()
        .iter()
        .map(|found| found.key)
        .collect();
    assert_eq!(keys, [1, 3, 5, 9]);
}

#[test]
fn removed_keys_are_never_found_and_their_slots_serve_again() {
    let vectors = clustered(4, 4000);
    let index = index_of(&vectors[..2000]);
    for key in (0..2000).step_by(2) {
        assert!(index.remove(key).unwrap());
    }
    assert!(!index.remove(0).unwrap(), "removed already");
    assert!(!index.contains(0) && index.contains(1));
    assert_eq!((index.len(), index.removed()), (1000, 1000));
    for vector in &vectors[..2000] {
        let found = index.search(&Query::new(vector).unwrap(), 40).unwrap();
        assert_eq!(found.len(), 40);
        assert!(found.iter().all(|neighbour| neighbour.key % 2 == 1));
    }

    for key in 2000..4000 {
        index.add(key as u64, &row(&vectors[key])).unwrap();
    }
    assert_eq!((index.len(), index.removed()), (3000, 0));
    let live: Vec<usize> = (0..4000)
        .filter(|key| key % 2 == 1 || *key >= 2000)
        .collect();
    let missed: Vec<usize> = live
        .iter()
        .copied()
        .filter(|&key| !finds_itself(&index, key as u64, &vectors[key]))
        .collect();
    assert_eq!(missed, [], "every live vector finds itself");
    let hits: usize = live
        .iter()
        .step_by(10)
        .map(|&key| hits(&index, &vectors, &live, &vectors[key]))
        .sum();
    assert!(hits >= 2910, "recall@10 {hits} of 3000");
}

#[test]
fn an_index_whose_keys_are_all_removed_is_empty() {
    let vectors = clustered(5, 50);
    let index = index_of(&vectors);
    for key in 0..50 {
        index.remove(key).unwrap();
    }
    assert!(index.is_empty());
    assert_eq!(
        index.search(&Query::new(&vectors[0]).unwrap(), 10).unwrap(),
        []
    );
    index.add(7, &row(&vectors[7])).unwrap();
    assert!(finds_itself(&index, 7, &vectors[7]));
}

#[test]
fn refuses_what_it_cannot_hold() {
    assert!(matches!(HnswIndex::new(0), Err(VectorError::Empty)));
    assert!(matches!(
        HnswIndex::new(MAX_DIMS + 1),
        Err(VectorError::TooManyDimensions { actual: 4097 })
    ));
    let index = HnswIndex::new(3).unwrap();
    for (bytes, dims) in [(0, 0), (3, 0), (6, 2), (8, 4)] {
        let error = index.add(1, &vec![1; bytes]).unwrap_err();
        assert!(
            matches!(error, VectorError::WrongLength { expected: 3, actual } if actual == dims)
        );
    }
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let mut bad = row(&[1.0, 2.0, 3.0]);
        bad[..4].copy_from_slice(&f32::to_le_bytes(scale));
        assert!(matches!(index.add(1, &bad), Err(VectorError::NoVector)));
    }
    let good = row(&[1.0, 2.0, 3.0]);
    let mut bad = good.clone();
    bad[5] = 0x80;
    assert!(matches!(index.add(1, &bad), Err(VectorError::NoVector)));
    assert!(matches!(
        index.add(u64::MAX, &good),
        Err(VectorError::ReservedKey(u64::MAX))
    ));
    index.add(1, &good).unwrap();
    assert!(matches!(
        index.add(1, &good),
        Err(VectorError::DuplicateKey(1))
    ));
    assert_eq!(index.len(), 1);
    assert!(matches!(
        index.search(&Query::new(&[1.0, 2.0]).unwrap(), 1),
        Err(VectorError::WrongLength {
            expected: 3,
            actual: 2
        })
    ));
    assert_eq!(
        index
            .search(&Query::new(&[1.0, 2.0, 3.0]).unwrap(), 0)
            .unwrap(),
        []
    );
    assert_eq!(
        index
            .search(&Query::new(&[1.0, 2.0, 3.0]).unwrap(), usize::MAX)
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn more_candidates_find_more() {
    let mut random = Random(6);
    let vectors: Vec<Vec<f32>> = (0..3000).map(|_| random.vector()).collect();
    let index = index_of(&vectors);
    let live: Vec<usize> = (0..3000).collect();
    let queries: Vec<Vec<f32>> = (0..100).map(|_| random.vector()).collect();
    let recall = |ef| -> usize {
        index.set_ef_search(ef);
        queries
            .iter()
            .map(|query| hits(&index, &vectors, &live, query))
            .sum()
    };
    let (few, many) = (recall(40), recall(400));
    assert!(few < many && many >= 990, "{few}, then {many} of 1000");
}

/// A graph of which a search reads lists that an insertion is rewriting loses keys for a moment.
#[test]
fn searches_beside_insertions_find_every_key_added_before() {
    let vectors = clustered(7, 6000);
    let index = HnswIndex::new(DIMS).unwrap();
    let next = AtomicUsize::new(0);
    let done: Vec<AtomicBool> = (0..vectors.len()).map(|_| AtomicBool::new(false)).collect();
    let all_added = || done.iter().all(|done| done.load(Ordering::Acquire));
    let missed = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let key = next.fetch_add(1, Ordering::Relaxed);
                    let Some(vector) = vectors.get(key) else {
                        break;
                    };
                    index.add(key as u64, &row(vector)).unwrap();
                    done[key].store(true, Ordering::Release);
                }
            });
        }
        let searchers: Vec<_> = (0..3)
            .map(|number| {
                let (index, vectors, done, all_added) = (&index, &vectors, &done, &all_added);
                scope.spawn(move || {
                    let mut missed = BTreeSet::new();
                    let mut key = number;
                    while !all_added() {
                        key = (key + 7919) % vectors.len();
                        if done[key].load(Ordering::Acquire)
                            && !finds_itself(index, key as u64, &vectors[key])
                        {
                            missed.insert(key);
                        }
                    }
                    missed
                })
            })
            .collect();
        searchers
            .into_iter()
            .flat_map(|searcher| searcher.join().unwrap())
            .collect::<BTreeSet<_>>()
    });
    assert_eq!(missed, BTreeSet::new());
    assert_eq!(index.len(), vectors.len());
}

#[test]
fn more_searchers_than_contexts_wait_their_turn() {
    let vectors = clustered(8, 500);
    let index = index_of(&vectors);
    thread::scope(|scope| {
        for _ in 0..MAX_SEARCHES * 2 {
            scope.spawn(|| {
                for (key, vector) in vectors.iter().enumerate() {
                    assert!(finds_itself(&index, key as u64, vector));
                }
            });
        }
    });
}

#[test]
fn never_more_inside_than_places() {
    let places = Places::new(3);
    let (inside, most, rounds) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let place = places.enter();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(place);
                    rounds.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!((rounds.into_inner(), *places.free.lock()), (16_000, 3));
    assert!(most.into_inner() <= 3);
}

#[test]
fn memory_grows_with_the_rows() {
    let index = HnswIndex::new(DIMS).unwrap();
    let empty = index.memory_bytes();
    for (key, vector) in clustered(9, 1000).iter().enumerate() {
        index.add(key as u64, &row(vector)).unwrap();
    }
    let per_row = (index.memory_bytes() - empty) / 1000;
    assert!(
        (row_bytes(DIMS) + 128..row_bytes(DIMS) + 512).contains(&per_row),
        "{per_row} bytes a row"
    );
}

#[test]
fn memory_is_about_as_expected() {
    let index = HnswIndex::new(DIMS).unwrap();
    for (key, vector) in clustered(9, 3000).iter().enumerate() {
        index.add(key as u64, &row(vector)).unwrap();
    }
    let (used, expected) = (
        index.memory_bytes() as f64,
        HnswIndex::expected_bytes(DIMS, 3000) as f64,
    );
    assert!(
        (0.8..1.25).contains(&(expected / used)),
        "{expected} expected, {used} used"
    );
}

#[test]
fn a_saved_index_loads_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let vectors = clustered(10, 1500);
    let index = index_of(&vectors[..1200]);
    for key in 0..100 {
        index.remove(key).unwrap();
    }
    index.save(&path, b"store 1, generation 2").unwrap();
    let (loaded, stamp) = HnswIndex::load(&path, DIMS).unwrap();
    assert_eq!(stamp, b"store 1, generation 2");
    assert_eq!(
        (loaded.len(), loaded.removed(), loaded.dims()),
        (1100, 100, DIMS)
    );
    for vector in &vectors {
        let query = Query::new(vector).unwrap();
        assert_eq!(
            loaded.search(&query, 20).unwrap(),
            index.search(&query, 20).unwrap()
        );
    }

    // What is loaded can change, grow, and be saved over the old file.
    for key in 1200..1500 {
        loaded.add(key as u64, &row(&vectors[key])).unwrap();
    }
    loaded.save(&path, b"").unwrap();
    let (again, stamp) = HnswIndex::load(&path, DIMS).unwrap();
    assert_eq!((again.len(), again.removed(), stamp.len()), (1400, 0, 0));
    assert!((100..1500).all(|key| finds_itself(&again, key as u64, &vectors[key])));
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing is left aside"
    );
}

#[test]
fn an_empty_index_can_be_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    HnswIndex::new(DIMS).unwrap().save(&path, b"stamp").unwrap();
    let (index, stamp) = HnswIndex::load(&path, DIMS).unwrap();
    assert_eq!((index.len(), stamp.as_slice()), (0, b"stamp".as_slice()));
    let vector = Random(11).vector();
    index.add(1, &row(&vector)).unwrap();
    assert!(finds_itself(&index, 1, &vector));
}

#[test]
fn a_damaged_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    index_of(&clustered(12, 60)).save(&path, b"stamp").unwrap();
    let good = fs::read(&path).unwrap();
    let stamp_at = good.len() - FOOTER - 5;
    let spread = (0..good.len()).step_by(97);
    let ends = [0, 8, stamp_at, good.len() - 1];
    for position in spread.chain(ends).chain(good.len() - FOOTER..good.len()) {
        let mut bad = good.clone();
        bad[position] ^= 0x10;
        fs::write(&path, bad).unwrap();
        let error = HnswIndex::load(&path, DIMS).err().unwrap();
        if position < good.len() - MAGIC.len() {
            assert!(
                matches!(error, VectorError::DamagedIndex { .. }),
                "byte {position}: {error}"
            );
        } else {
            assert!(
                matches!(error, VectorError::ForeignIndex { .. }),
                "byte {position}: {error}"
            );
        }
    }
    for length in [0, 1, FOOTER - 1, FOOTER, good.len() / 2, good.len() - 1] {
        fs::write(&path, &good[..length]).unwrap();
        let error = HnswIndex::load(&path, DIMS).err().unwrap();
        assert!(
            matches!(error, VectorError::ForeignIndex { .. }),
            "{length} bytes: {error}"
        );
    }
    fs::write(&path, [good.as_slice(), good.as_slice()].concat()).unwrap();
    assert!(matches!(
        HnswIndex::load(&path, DIMS),
        Err(VectorError::DamagedIndex { .. })
    ));
    fs::write(&path, &good).unwrap();
    assert!(HnswIndex::load(&path, DIMS).is_ok());
}

#[test]
fn a_file_of_another_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    assert!(matches!(
        HnswIndex::load(&path, DIMS),
        Err(VectorError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound
    ));
    index_of(&clustered(13, 10)).save(&path, b"").unwrap();
    let error = HnswIndex::load(&path, DIMS + 1).err().unwrap();
    assert!(matches!(error, VectorError::ForeignIndex { .. }));
    assert!(
        error.to_string().contains("64 dimensions, expected 65"),
        "{error}"
    );
}

#[test]
fn a_save_that_fails_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let index = index_of(&clustered(14, 10));
    index.save(&path, b"old").unwrap();
    // A folder in the place of the temporary file makes writing it fail.
    fs::create_dir(aside(&path)).unwrap();
    assert!(index.save(&path, b"new").is_err());
    assert_eq!(HnswIndex::load(&path, DIMS).unwrap().1, b"old");
}

#[test]
fn saving_beside_searches_and_insertions_gives_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let vectors = clustered(15, 2000);
    let index = index_of(&vectors[..1000]);
    thread::scope(|scope| {
        scope.spawn(|| {
            for key in 1000..2000 {
                index.add(key as u64, &row(&vectors[key])).unwrap();
            }
        });
        scope.spawn(|| {
            assert!((0..1000).all(|key| finds_itself(&index, key as u64, &vectors[key])));
        });
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..5 {
                    index.save(&path, b"").unwrap();
                }
            });
        }
    });
    let (loaded, _) = HnswIndex::load(&path, DIMS).unwrap();
    assert!((0..loaded.len()).all(|key| finds_itself(&loaded, key as u64, &vectors[key])));
}
