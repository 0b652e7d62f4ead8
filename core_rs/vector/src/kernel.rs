//! Dot products of signed bytes, by the best instructions of the CPU.
//!
//! Every kernel computes the same integer exactly, so that the choice of a kernel can never be seen in a result. The
//! portable one is a plain loop, which the compiler turns into SSE2 or NEON (both are always there on their
//! architecture); AVX2 and AVX-512 VNNI are written out, because the compiler's version of them is half as fast.
//! A kernel reads bytes through slices only, and assumes no alignment.
//!
//! Sums are of at most `MAX_DIMS` products of at most 255 * 127: 133 million, within `i32`.

use crate::scan::{self, Query};

/// A set of instructions that this CPU has.
///
/// A value exists only if detection found the instructions: that is what makes calling them sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Instructions);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instructions {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
}

impl Kernel {
    /// The fastest kernel for this CPU.
    #[must_use]
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512_vnni() {
                return Self(Instructions::Avx512Vnni);
            }
            if is_x86_feature_detected!("avx2") {
                return Self(Instructions::Avx2);
            }
        }
        Self(Instructions::Portable)
    }

    /// Every kernel this CPU can run, the slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut kernels = vec![Self(Instructions::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                kernels.push(Self(Instructions::Avx2));
            }
            if has_avx512_vnni() {
                kernels.push(Self(Instructions::Avx512Vnni));
            }
        }
        kernels
    }

    /// The name of the instructions, for logs and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Instructions::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512Vnni => "avx512vnni",
        }
    }

    /// The dot product of two runs of signed bytes of one length, at most `MAX_DIMS`. `left` does not contain -128, as
    /// no quantised vector does.
    #[inline]
    pub(crate) fn dot(self, left: &[u8], right: &[u8]) -> i32 {
        match self.0 {
            Instructions::Portable => dot_portable(left, right),
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calls a function that needs AVX2")]
            // SAFETY: this value exists, so the CPU has the instructions.
            Instructions::Avx2 => unsafe { avx2::dot(left, right) },
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calls a function that needs AVX-512 VNNI")]
            // SAFETY: this value exists, so the CPU has the instructions.
            Instructions::Avx512Vnni => unsafe { avx512_vnni::dot(left, right) },
        }
    }

    /// [`scan::score_rows`] over the rows in order.
    pub(crate) fn scan<'block>(
        self,
        query: &Query,
        rows: impl Iterator<Item = &'block [u8]>,
        scores: &mut [f32],
    ) {
        match self.0 {
            Instructions::Portable => scan::score_rows(query, rows, scores, dot_portable),
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calls a function that needs AVX2")]
            // SAFETY: this value exists, so the CPU has the instructions.
            Instructions::Avx2 => unsafe { avx2::scan(query, rows, scores) },
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calls a function that needs AVX-512 VNNI")]
            // SAFETY: this value exists, so the CPU has the instructions.
            Instructions::Avx512Vnni => unsafe { avx512_vnni::scan(query, rows, scores) },
        }
    }
}

/// Has the bytes fetched that a scan reaches a few rows after `row`, where they follow each other: the CPU's own
/// foresight ends with each page.
#[inline]
pub(crate) fn fetch_after(row: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        /// Half a page: a scan of 10,000 rows of 256 dimensions or more then takes a fifth less.
        const AHEAD: usize = 2048;
        const LINE: usize = 64;
        for at in (0..row.len()).step_by(LINE) {
            let address = row.as_ptr().wrapping_add(AHEAD + at);
            #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
            // SAFETY: the instruction reads nothing that the program sees and ignores addresses that are not mapped.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(address.cast());
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

#[cfg(target_arch = "x86_64")]
fn has_avx512_vnni() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni")
}

#[inline]
fn dot_portable(left: &[u8], right: &[u8]) -> i32 {
    // Wrapping, though nothing wraps: the check of an overflow would keep the compiler from using vectors. A product of
    // two signed bytes fits 16 bits, which has narrow multiplications.
    left.iter().zip(right).fold(0, |sum: i32, (left, right)| {
        let product = i16::from(left.cast_signed()).wrapping_mul(i16::from(right.cast_signed()));
        sum.wrapping_add(i32::from(product))
    })
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! `vpmaddubsw` multiplies unsigned by signed bytes, 32 at a time, and adds pairs in 16 bits. One side is therefore
    //! made positive, and its signs go to the other, which must not contain -128: its opposite is not a byte. A pair
    //! then is at most 2 * 128 * 127, within 16 bits.

    use std::arch::x86_64::{
        __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_shuffle_epi32, _mm256_abs_epi8,
        _mm256_add_epi32, _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256,
        _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi16, _mm256_setzero_si256,
        _mm256_sign_epi8,
    };

    use super::{Query, dot_portable, scan};

    #[target_feature(enable = "avx2")]
    pub(super) fn scan<'block>(
        query: &Query,
        rows: impl Iterator<Item = &'block [u8]>,
        scores: &mut [f32],
    ) {
        scan::score_rows(query, rows, scores, |query, row| dot(query, row));
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn dot(left: &[u8], right: &[u8]) -> i32 {
        let ones = _mm256_set1_epi16(1);
        let (left_chunks, left_rest) = left.as_chunks::<32>();
        let (right_chunks, right_rest) = right.as_chunks::<32>();
        let mut sums = _mm256_setzero_si256();
        for (left, right) in left_chunks.iter().zip(right_chunks) {
            let (left, right) = (load(left), load(right));
            let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(right), _mm256_sign_epi8(left, right));
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, ones));
        }
        let sums = _mm_add_epi32(
            _mm256_castsi256_si128(sums),
            _mm256_extracti128_si256::<1>(sums),
        );
        let sums = _mm_add_epi32(sums, _mm_shuffle_epi32::<0b_01_00_11_10>(sums));
        let sums = _mm_add_epi32(sums, _mm_shuffle_epi32::<0b_10_11_00_01>(sums));
        _mm_cvtsi128_si32(sums) + dot_portable(left_rest, right_rest)
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load(chunk: &[u8; 32]) -> __m256i {
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: the chunk has the 32 bytes that are read; the load needs no alignment.
        unsafe {
            _mm256_loadu_si256(chunk.as_ptr().cast())
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512_vnni {
    //! `vpdpbusd` multiplies unsigned by signed bytes, 64 at a time. In a scan the rows are therefore shifted by 128 to be
    //! unsigned (which is flipping their top bits), and 128 times the sum of the query, known before, is taken off again.

    use std::arch::x86_64::{
        __m512i, _mm512_abs_epi8, _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_mask_sub_epi8,
        _mm512_maskz_loadu_epi8, _mm512_movepi8_mask, _mm512_reduce_add_epi32, _mm512_set1_epi8,
        _mm512_setzero_si512, _mm512_xor_si512,
    };

    use super::{Query, scan};

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn scan<'block>(
        query: &Query,
        rows: impl Iterator<Item = &'block [u8]>,
        scores: &mut [f32],
    ) {
        let shift = 128 * query.sum();
        scan::score_rows(query, rows, scores, |query, row| {
            dot_shifted(query, row) - shift
        });
    }

    /// One side is made positive and its signs go to the other, as with AVX2: for two rows of which neither has been
    /// prepared that costs less than a sum to take off.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    #[inline]
    pub(super) fn dot(left: &[u8], right: &[u8]) -> i32 {
        let (left_chunks, left_rest) = left.as_chunks::<64>();
        let (right_chunks, right_rest) = right.as_chunks::<64>();
        let mut sums = _mm512_setzero_si512();
        for (left, right) in left_chunks.iter().zip(right_chunks) {
            sums = add_products(sums, load(left), load(right));
        }
        if !left_rest.is_empty() {
            sums = add_products(sums, load_rest(left_rest), load_rest(right_rest));
        }
        _mm512_reduce_add_epi32(sums)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    #[inline]
    fn add_products(sums: __m512i, left: __m512i, right: __m512i) -> __m512i {
        let negative = _mm512_movepi8_mask(right);
        let signed = _mm512_mask_sub_epi8(left, negative, _mm512_setzero_si512(), left);
        _mm512_dpbusd_epi32(sums, _mm512_abs_epi8(right), signed)
    }

    /// The dot product of `signed` with `row + 128`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    #[inline]
    fn dot_shifted(signed: &[u8], row: &[u8]) -> i32 {
        let top_bits = _mm512_set1_epi8(-128);
        let (signed_chunks, signed_rest) = signed.as_chunks::<64>();
        let (row_chunks, row_rest) = row.as_chunks::<64>();
        let mut sums = _mm512_setzero_si512();
        for (signed, row) in signed_chunks.iter().zip(row_chunks) {
            sums = _mm512_dpbusd_epi32(sums, _mm512_xor_si512(load(row), top_bits), load(signed));
        }
        if !signed_rest.is_empty() {
            let row = _mm512_xor_si512(load_rest(row_rest), top_bits);
            sums = _mm512_dpbusd_epi32(sums, row, load_rest(signed_rest));
        }
        _mm512_reduce_add_epi32(sums)
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load(chunk: &[u8; 64]) -> __m512i {
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: the chunk has the 64 bytes that are read; the load needs no alignment.
        unsafe {
            _mm512_loadu_si512(chunk.as_ptr().cast())
        }
    }

    /// Fewer than 64 bytes, followed by zeros.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn load_rest(rest: &[u8]) -> __m512i {
        debug_assert!(rest.len() < 64);
        let mask = (1_u64 << rest.len()) - 1;
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: the mask selects the bytes of the slice, and those that it leaves out are not accessed.
        unsafe {
            _mm512_maskz_loadu_epi8(mask, rest.as_ptr().cast())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MAX_DIMS;

    fn naive(left: &[u8], right: &[u8]) -> i64 {
        left.iter()
            .zip(right)
            .map(|(left, right)| i64::from(left.cast_signed()) * i64::from(right.cast_signed()))
            .sum()
    }

    #[test]
    fn the_best_kernel_is_the_last_available() {
        let kernels = Kernel::available();
        assert_eq!(kernels[0].name(), "portable");
        assert_eq!(kernels.last(), Some(&Kernel::best()));
    }

    #[test]
    fn the_extremes_fit() {
        for kernel in Kernel::available() {
            for (left, right) in [
                (0x81, 0x80),
                (0x81, 0x7f),
                (0x7f, 0x80),
                (0x7f, 0x7f),
                (0xff, 0x80),
            ] {
                let (left, right) = (vec![left; MAX_DIMS], vec![right; MAX_DIMS]);
                assert_eq!(
                    i64::from(kernel.dot(&left, &right)),
                    naive(&left, &right),
                    "{}",
                    kernel.name()
                );
            }
        }
    }

    proptest! {
        #[test]
        fn every_kernel_equals_the_naive_loop(
            (left, right) in (0_usize..700).prop_flat_map(|dims| (
                prop::collection::vec((-127..=127_i8).prop_map(i8::cast_unsigned), dims),
                prop::collection::vec(any::<u8>(), dims),
            ))
        ) {
            for kernel in Kernel::available() {
                prop_assert_eq!(i64::from(kernel.dot(&left, &right)), naive(&left, &right), "{}", kernel.name());
            }
        }
    }
}
