//! Vectors as the store keeps them: unit length, one signed byte an element, one scale a row.
//!
//! Quantisation is symmetric: an element is `scale * byte`, with the scale chosen so that the largest element becomes
//! ±127. The error of an element is at most half a scale. All arithmetic is in a fixed order without fused operations,
//! so that the same input gives the same bytes on every CPU. Nothing here guesses: a vector that has no direction is
//! an error, never a row of zeros.
//!
//! A row is [`ROW_HEADER`] bytes of scale (`f32`, little-endian) and then one byte an element. A scale of zero says
//! that the row holds no vector. Rows lie one after another in blocks, without alignment.

use crate::VectorError;

/// The most dimensions a vector may have. A dot product of so many bytes fits an `i32` in every kernel.
pub const MAX_DIMS: usize = 4096;

/// Bytes of a row before its elements: the scale, `f32`, little-endian.
pub const ROW_HEADER: usize = 4;

/// The largest magnitude of an element; -128 is not used, so that the code is symmetric.
const LARGEST: f32 = 127.0;

/// Bytes that a block may take: four pages of LMDB less the header of its overflow pages.
const BLOCK_BYTES: usize = 4 * 4096 - 16;

/// A unit vector in signed bytes: element `i` is `scale * values[i]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantized {
    /// What one step of a byte is worth; positive and finite.
    pub scale: f32,
    /// The elements, in -127..=127.
    pub values: Vec<i8>,
}

/// Bytes of one row of `dims` dimensions.
#[must_use]
pub const fn row_bytes(dims: usize) -> usize {
    ROW_HEADER + dims
}

/// Rows in one block: as many as fit in four pages, at least one.
#[must_use]
pub const fn rows_per_block(dims: usize) -> usize {
    let rows = BLOCK_BYTES / row_bytes(dims);
    if rows == 0 { 1 } else { rows }
}

/// Says whether `vector` can be stored where vectors of `dims` dimensions are kept.
pub fn validate(vector: &[f32], dims: usize) -> Result<(), VectorError> {
    if vector.len() != dims {
        return Err(VectorError::WrongLength {
            expected: dims,
            actual: vector.len(),
        });
    }
    norm(vector).map(|_| ())
}

/// Quantises the direction of `vector`, of any length but zero.
pub fn quantize(vector: &[f32]) -> Result<Quantized, VectorError> {
    Ok(quantize_unit(&unit(vector)?))
}

/// Writes a row. `row` is of `row_bytes(dims)` bytes.
///
/// # Panics
/// When `row` is not of that length.
pub fn encode_row(quantized: &Quantized, row: &mut [u8]) {
    assert_eq!(
        row.len(),
        row_bytes(quantized.values.len()),
        "length of the row"
    );
    let (header, elements) = row.split_at_mut(ROW_HEADER);
    header.copy_from_slice(&quantized.scale.to_le_bytes());
    for (byte, value) in elements.iter_mut().zip(&quantized.values) {
        *byte = value.cast_unsigned();
    }
}

/// Reads a row; `None` when it holds no vector.
///
/// # Panics
/// When `row` is shorter than its header.
#[must_use]
pub fn decode_row(row: &[u8]) -> Option<Quantized> {
    let (scale, elements) = split_row(row);
    holds_vector(scale).then(|| Quantized {
        scale,
        values: elements.iter().map(|byte| byte.cast_signed()).collect(),
    })
}

/// The vector scaled to unit length.
pub(crate) fn unit(vector: &[f32]) -> Result<Vec<f32>, VectorError> {
    let norm = norm(vector)?;
    Ok(vector
        .iter()
        .map(|&element| (f64::from(element) / norm) as f32)
        .collect())
}

/// Quantises a vector that has unit length.
pub(crate) fn quantize_unit(unit: &[f32]) -> Quantized {
    let largest = unit
        .iter()
        .fold(0.0_f32, |largest, element| largest.max(element.abs()));
    let scale = largest / LARGEST;
    let values = unit
        .iter()
        // To the nearest: the cast cuts off. The largest element gives 127.5 or a hair around it, which is 127.
        .map(|element| (element / scale + 0.5_f32.copysign(*element)) as i8)
        .collect();
    Quantized { scale, values }
}

/// A row as its scale and the bytes of its elements.
#[inline]
pub(crate) fn split_row(row: &[u8]) -> (f32, &[u8]) {
    let (header, elements) = row.split_at(ROW_HEADER);
    (
        f32::from_le_bytes([header[0], header[1], header[2], header[3]]),
        elements,
    )
}

/// Whether a row of this scale holds a vector. False for NaN too.
#[inline]
pub(crate) fn holds_vector(scale: f32) -> bool {
    scale > 0.0
}

/// Whether the row is one that quantisation can have made.
pub(crate) fn is_sound(row: &[u8]) -> bool {
    let (scale, elements) = split_row(row);
    holds_vector(scale) && scale.is_finite() && !elements.contains(&i8::MIN.cast_unsigned())
}

/// The Euclidean length; in `f64`, where the square of every finite `f32` is finite and, unless it is zero, positive.
fn norm(vector: &[f32]) -> Result<f64, VectorError> {
    if vector.is_empty() {
        return Err(VectorError::Empty);
    }
    if vector.len() > MAX_DIMS {
        return Err(VectorError::TooManyDimensions {
            actual: vector.len(),
        });
    }
    if let Some(position) = vector.iter().position(|element| !element.is_finite()) {
        return Err(VectorError::NotFinite { position });
    }
    let squares: f64 = vector
        .iter()
        .map(|&element| f64::from(element) * f64::from(element))
        .sum();
    if squares > 0.0 {
        Ok(squares.sqrt())
    } else {
        Err(VectorError::Zero)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn refuses_what_has_no_direction() {
        assert!(matches!(quantize(&[]), Err(VectorError::Empty)));
        assert!(matches!(quantize(&[0.0, -0.0]), Err(VectorError::Zero)));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(matches!(
                quantize(&[1.0, bad, bad]),
                Err(VectorError::NotFinite { position: 1 })
            ));
        }
        assert!(quantize(&vec![1.0; MAX_DIMS]).is_ok());
        assert!(matches!(
            quantize(&vec![1.0; MAX_DIMS + 1]),
            Err(VectorError::TooManyDimensions { actual: 4097 })
        ));
    }

    #[test]
    fn validation_knows_the_dimensions_of_the_store() {
        assert!(validate(&[0.5, 0.5], 2).is_ok());
        assert!(matches!(
            validate(&[0.5, 0.5], 3),
            Err(VectorError::WrongLength {
                expected: 3,
                actual: 2
            })
        ));
        assert!(matches!(validate(&[0.0, 0.0], 2), Err(VectorError::Zero)));
    }

    #[test]
    fn the_extremes_of_f32_keep_their_direction() {
        for size in [f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1)] {
            let quantized = quantize(&[size, -size]).unwrap();
            assert_eq!(quantized.values, [127, -127]);
            assert!((quantized.scale * 127.0 - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-6);
        }
    }

    #[test]
    fn blocks_fill_four_pages() {
        assert_eq!(rows_per_block(256), 62);
        assert_eq!(rows_per_block(MAX_DIMS), 3);
        assert_eq!(rows_per_block(100_000), 1);
        for dims in 1..=MAX_DIMS {
            let bytes = rows_per_block(dims) * row_bytes(dims);
            assert!(bytes <= BLOCK_BYTES && bytes + row_bytes(dims) > BLOCK_BYTES);
        }
    }

    #[test]
    fn a_row_without_a_scale_holds_no_vector() {
        for scale in [0.0, -0.0, f32::NAN, -1.0] {
            let mut row = vec![7; row_bytes(3)];
            row[..ROW_HEADER].copy_from_slice(&scale.to_le_bytes());
            assert_eq!(decode_row(&row), None);
        }
    }

    proptest! {
        #[test]
        fn the_error_of_an_element_is_at_most_half_a_scale(
            vector in prop::collection::vec(-1000.0_f32..1000.0, 1..300)
        ) {
            prop_assume!(vector.iter().any(|&element| element != 0.0));
            let quantized = quantize(&vector).unwrap();
            let norm = vector.iter().map(|&element| f64::from(element).powi(2)).sum::<f64>().sqrt();
            let half = f64::from(quantized.scale) / 2.0;
            for (&element, &value) in vector.iter().zip(&quantized.values) {
                let error = f64::from(element) / norm - f64::from(quantized.scale) * f64::from(value);
                prop_assert!(error.abs() <= half * (1.0 + 1e-4), "{error} over {half}");
            }
            prop_assert!(quantized.values.iter().any(|value| value.unsigned_abs() == 127));
            prop_assert!(!quantized.values.contains(&i8::MIN));
        }

        #[test]
        fn a_row_reads_back_as_it_was_written(scale in 1e-6_f32..1.0, values: Vec<i8>) {
            let quantized = Quantized { scale, values };
            let mut row = vec![0; row_bytes(quantized.values.len())];
            encode_row(&quantized, &mut row);
            prop_assert_eq!(decode_row(&row), Some(quantized));
        }

        #[test]
        fn the_length_of_a_vector_does_not_matter(
            vector in prop::collection::vec(-1.0_f32..1.0, 2..64), power in -20_i32..20
        ) {
            prop_assume!(vector.iter().any(|&element| element.abs() > 0.01));
            let factor = 2.0_f32.powi(power);
            let longer: Vec<f32> = vector.iter().map(|element| element * factor).collect();
            prop_assert_eq!(quantize(&vector).unwrap(), quantize(&longer).unwrap());
        }
    }
}
