//! The exact scan: the cosine of a query with every row of a block, or with chosen rows.
//!
//! Two precisions. The scan multiplies bytes by bytes and is approximate by the quantisation of both sides; it ranks
//! candidates. [`exact_cosine`] multiplies the full query by one row, and gives the order that users see. Both are the
//! same number on every CPU: integers are exact, and the operations on `f32` have a fixed order and are never fused.
//! A scan reads borrowed blocks where they lie, and allocates nothing.

use crate::{
    Kernel, VectorError,
    kernel::fetch_after,
    quantize::{encode_row, holds_vector, quantize_unit, row_bytes, split_row, unit},
};

/// The score of a row that holds no vector: below every cosine.
pub const NO_VECTOR: f32 = f32::NEG_INFINITY;

/// Partial sums of [`exact_cosine`]; element `i` goes into sum `i % LANES`.
const LANES: usize = 16;

/// A query made ready for scans.
#[derive(Debug, Clone)]
pub struct Query {
    kernel: Kernel,
    /// The query at unit length.
    unit: Vec<f32>,
    /// The same as a row.
    row: Vec<u8>,
    /// Sum of the bytes of the row.
    sum: i32,
}

impl Query {
    /// Prepares the direction of `vector`, of any length but zero.
    pub fn new(vector: &[f32]) -> Result<Self, VectorError> {
        Self::with_kernel(vector, Kernel::best())
    }

    /// [`Query::new`] with a kernel of choice, to compare kernels; results are the same.
    pub fn with_kernel(vector: &[f32], kernel: Kernel) -> Result<Self, VectorError> {
        let unit = unit(vector)?;
        let quantized = quantize_unit(&unit);
        let mut row = vec![0; row_bytes(unit.len())];
        encode_row(&quantized, &mut row);
        let sum = quantized.values.iter().map(|&value| i32::from(value)).sum();
        Ok(Self {
            kernel,
            unit,
            row,
            sum,
        })
    }

    /// Dimensions of the query.
    pub fn dims(&self) -> usize {
        self.unit.len()
    }

    /// The query as a row, the form that vectors have in the store.
    pub(crate) fn row(&self) -> &[u8] {
        &self.row
    }

    pub(crate) fn sum(&self) -> i32 {
        self.sum
    }
}

/// Scores every row of `block`: `scores[i]` becomes the approximate cosine of row `i`, or [`NO_VECTOR`].
///
/// # Panics
/// When `block` does not hold exactly `scores.len()` rows of the query's dimensions.
pub fn scan_block(query: &Query, block: &[u8], scores: &mut [f32]) {
    let row = row_bytes(query.dims());
    assert_eq!(block.len(), scores.len() * row, "bytes of the block");
    let rows = block.chunks_exact(row).inspect(|row| fetch_after(row));
    query.kernel.scan(query, rows, scores);
}

/// Scores chosen rows of `block`: `scores[i]` becomes the approximate cosine of row `rows[i]`, or [`NO_VECTOR`].
///
/// # Panics
/// When `rows` and `scores` differ in length, or a row is not in the block.
pub fn scan_rows(query: &Query, block: &[u8], rows: &[u32], scores: &mut [f32]) {
    assert_eq!(rows.len(), scores.len(), "a score for each row");
    let bytes = row_bytes(query.dims());
    let chosen = rows.iter().map(|&row| {
        let start = row as usize * bytes;
        &block[start..start + bytes]
    });
    query.kernel.scan(query, chosen, scores);
}

/// The score that [`scan_block`] gives a row.
///
/// # Panics
/// When the row is not of the query's dimensions.
#[must_use]
pub fn scan_row(query: &Query, row: &[u8]) -> f32 {
    let mut score = [NO_VECTOR];
    scan_block(query, row, &mut score);
    score[0]
}

/// The cosine of the full query with one row, in -1..=1, or [`NO_VECTOR`]: what candidates are ordered by.
///
/// Only the row is quantised here. Products are added into 16 partial sums, which are then added in pairs.
///
/// # Panics
/// When the row is not of the query's dimensions.
#[must_use]
pub fn exact_cosine(query: &Query, row: &[u8]) -> f32 {
    assert_eq!(row.len(), row_bytes(query.dims()), "bytes of the row");
    let (scale, elements) = split_row(row);
    if !holds_vector(scale) {
        return NO_VECTOR;
    }
    let mut sums = [0.0_f32; LANES];
    let (query_chunks, query_rest) = query.unit.as_chunks::<LANES>();
    let (row_chunks, row_rest) = elements.as_chunks::<LANES>();
    for (query, row) in query_chunks.iter().zip(row_chunks) {
        for lane in 0..LANES {
            sums[lane] += query[lane] * f32::from(row[lane].cast_signed());
        }
    }
    for (sum, (query, row)) in sums.iter_mut().zip(query_rest.iter().zip(row_rest)) {
        *sum += query * f32::from(row.cast_signed());
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    (sums[0] * scale).clamp(-1.0, 1.0)
}

/// The approximate cosine of two rows from the dot product of their bytes. The order of the operations is fixed.
#[inline]
pub(crate) fn approximate_cosine(left_scale: f32, right_scale: f32, dot: i32) -> f32 {
    (left_scale * right_scale) * dot as f32
}

/// The loop of every kernel. Always inlined, so that `dot` is compiled with the instructions of the caller.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "otherwise the loop calls `dot` instead of containing it"
)]
pub(crate) fn score_rows<'block>(
    query: &Query,
    rows: impl Iterator<Item = &'block [u8]>,
    scores: &mut [f32],
    dot: impl Fn(&[u8], &[u8]) -> i32,
) {
    let (query_scale, query_elements) = split_row(&query.row);
    for (score, row) in scores.iter_mut().zip(rows) {
        let (scale, elements) = split_row(row);
        *score = if holds_vector(scale) {
            approximate_cosine(query_scale, scale, dot(query_elements, elements))
        } else {
            NO_VECTOR
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use proptest::prelude::*;

    use super::*;
    use crate::quantize::{decode_row, quantize};

    /// Vectors of one length, of which the first is the query; at most one in four is all zeros, for a row without.
    fn query_and_vectors() -> impl Strategy<Value = (Vec<f32>, Vec<Vec<f32>>)> {
        (1_usize..200).prop_flat_map(|dims| {
            let vector = move || {
                prop::collection::vec(-1.0_f32..1.0, dims)
                    .prop_filter("has a direction", |vector| {
                        vector.iter().any(|&element| element != 0.0)
                    })
            };
            let row = prop_oneof![3 => vector(), 1 => Just(vec![0.0; dims])];
            (vector(), prop::collection::vec(row, 0..20))
        })
    }

    fn block(vectors: &[Vec<f32>]) -> Vec<u8> {
        let mut block = Vec::new();
        for vector in vectors {
            let mut row = vec![0; row_bytes(vector.len())];
            if let Ok(quantized) = quantize(vector) {
                encode_row(&quantized, &mut row);
            }
            block.extend(row);
        }
        block
    }

    fn naive_scores(query: &[f32], block: &[u8]) -> Vec<f32> {
        let query = quantize(query).unwrap();
        block
            .chunks_exact(row_bytes(query.values.len()))
            .map(|row| {
                decode_row(row).map_or(NO_VECTOR, |row| {
                    let dot: i64 = query
                        .values
                        .iter()
                        .zip(&row.values)
                        .map(|(&left, &right)| i64::from(left) * i64::from(right))
                        .sum();
                    query.scale * row.scale * dot as f32
                })
            })
            .collect()
    }

    fn bits(scores: &[f32]) -> Vec<u32> {
        scores.iter().map(|score| score.to_bits()).collect()
    }

    fn cosine(left: &[f32], right: &[f32]) -> f64 {
        let dot = |left: &[f32], right: &[f32]| -> f64 {
            left.iter()
                .zip(right)
                .map(|(&left, &right)| f64::from(left) * f64::from(right))
                .sum()
        };
        dot(left, right) / (dot(left, left) * dot(right, right)).sqrt()
    }

    proptest! {
        #[test]
        fn every_kernel_scans_as_the_naive_loop((query, vectors) in query_and_vectors()) {
            let block = block(&vectors);
            let expected = naive_scores(&query, &block);
            for kernel in Kernel::available() {
                let query = Query::with_kernel(&query, kernel).unwrap();
                let mut scores = vec![0.0; vectors.len()];
                scan_block(&query, &block, &mut scores);
                prop_assert_eq!(bits(&scores), bits(&expected), "{}", kernel.name());
            }
        }

        #[test]
        fn alignment_does_not_matter((query, vectors) in query_and_vectors(), offset in 0_usize..8) {
            let mut shifted = vec![0xaa; offset];
            shifted.extend(block(&vectors));
            let mut scores = vec![0.0; vectors.len()];
            scan_block(&Query::new(&query).unwrap(), &shifted[offset..], &mut scores);
            prop_assert_eq!(bits(&scores), bits(&naive_scores(&query, &shifted[offset..])));
        }

        #[test]
        fn chosen_rows_score_as_in_the_whole_block(
            (query, vectors) in query_and_vectors(), picks: Vec<prop::sample::Index>
        ) {
            prop_assume!(!vectors.is_empty());
            let block = block(&vectors);
            let rows: Vec<u32> = picks.iter().map(|pick| pick.index(vectors.len()) as u32).collect();
            let all = naive_scores(&query, &block);
            let expected: Vec<f32> = rows.iter().map(|&row| all[row as usize]).collect();
            for kernel in Kernel::available() {
                let query = Query::with_kernel(&query, kernel).unwrap();
                let mut scores = vec![0.0; rows.len()];
                scan_rows(&query, &block, &rows, &mut scores);
                prop_assert_eq!(bits(&scores), bits(&expected), "{}", kernel.name());
            }
        }

        #[test]
        fn the_exact_cosine_is_near_the_true_one((query, vectors) in query_and_vectors()) {
            let prepared = Query::new(&query).unwrap();
            let block = block(&vectors);
            for (vector, row) in vectors.iter().zip(block.chunks_exact(row_bytes(query.len()))) {
                let exact = exact_cosine(&prepared, row);
                match decode_row(row) {
                    None => prop_assert_eq!(exact.to_bits(), NO_VECTOR.to_bits()),
                    Some(quantized) => {
                        // The error is the query times at most half a scale an element.
                        let sum: f32 = prepared.unit.iter().map(|element| element.abs()).sum();
                        let bound = f64::from(sum * quantized.scale) / 2.0 + 1e-5;
                        let error = f64::from(exact) - cosine(&query, vector);
                        prop_assert!(error.abs() <= bound, "{error} over {bound}");
                        prop_assert!((-1.0..=1.0).contains(&exact));
                    }
                }
            }
        }

        #[test]
        fn the_exact_cosine_equals_the_documented_sum((query, vectors) in query_and_vectors()) {
            let prepared = Query::new(&query).unwrap();
            let block = block(&vectors);
            for row in block.chunks_exact(row_bytes(query.len())) {
                let Some(quantized) = decode_row(row) else { continue };
                let mut sums = vec![0.0_f32; LANES];
                for (position, &value) in quantized.values.iter().enumerate() {
                    sums[position % LANES] += prepared.unit[position] * f32::from(value);
                }
                while sums.len() > 1 {
                    let upper = sums.split_off(sums.len() / 2);
                    sums.iter_mut().zip(upper).for_each(|(sum, other)| *sum += other);
                }
                let expected = (sums[0] * quantized.scale).clamp(-1.0, 1.0);
                prop_assert_eq!(exact_cosine(&prepared, row).to_bits(), expected.to_bits());
            }
        }
    }

    #[test]
    fn a_vector_has_cosine_one_with_itself() {
        let vector: Vec<f32> = (0..=255_u8)
            .map(|step| (f32::from(step) * 0.7).sin())
            .collect();
        let query = Query::new(&vector).unwrap();
        assert!(exact_cosine(&query, query.row()) > 0.999);
        let mut score = [0.0];
        scan_block(&query, query.row(), &mut score);
        assert!((score[0] - 1.0).abs() < 1e-3);
    }

    #[test]
    #[should_panic(expected = "bytes of the block")]
    fn a_block_of_other_dimensions_is_refused() {
        let query = Query::new(&[1.0, 2.0]).unwrap();
        scan_block(&query, &[0; 7], &mut [0.0]);
    }
}
