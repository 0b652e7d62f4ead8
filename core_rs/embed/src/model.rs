//! The model: the sum of a text's rows.

use std::fmt;
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::error::EmbedError;
use crate::format::{Layout, layout};
use crate::neighbours::Neighbours;
use crate::tokenizer::{Scratch, TOKENIZER_VERSION, Tokenizer};

/// Shortest sum that still has a direction. Real sums are above 1e-2.
const MIN_LENGTH: f32 = 1e-12;

/// A static embedding model: a table of int8 rows with one scale each, and the tokenizer that picks them.
///
/// The vector of a text is the L2-normalised sum of `scale × row` over its rows, as f32. It is immutable and
/// shared between threads; each thread brings its own [`Scratch`].
pub struct StaticModel {
    weights: Box<dyn AsRef<[u8]> + Send + Sync>,
    /// Bytes of the table in the weights file.
    table: Range<usize>,
    scales: Vec<f32>,
    tokenizer: Tokenizer,
    neighbours: Neighbours,
    dimensions: usize,
    name: String,
    fingerprint: String,
}

impl fmt::Debug for StaticModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticModel")
            .field("name", &self.name)
            .field("dimensions", &self.dimensions)
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

impl StaticModel {
    /// Loads a model from its two files: `weights` is `model.safetensors`, usually memory-mapped (the table
    /// is read where it lies), `vocabulary` the text of `vocab.txt`. `tools/model/README.md` describes both.
    ///
    /// Everything is checked here, so that [`embed`](Self::embed) has nothing left to refuse.
    pub fn new(
        weights: Box<dyn AsRef<[u8]> + Send + Sync>,
        vocabulary: &str,
        neighbours: Box<dyn AsRef<[u8]> + Send + Sync>,
    ) -> Result<Self, EmbedError> {
        let file = (*weights).as_ref();
        let Layout {
            name,
            dimensions,
            words,
            pieces,
            table,
            scales,
        } = layout(file)?;
        let (scales, _) = file[scales].as_chunks::<4>();
        let scales: Vec<f32> = scales
            .iter()
            .map(|&bytes| f32::from_le_bytes(bytes))
            .collect();
        // Within these bounds no sum of rows overflows, whatever the text. Real scales are below 0.1.
        if !scales.iter().all(|scale| (0.0..=1e3).contains(scale)) {
            return Err(EmbedError::Weights(
                "a scale is not a number from 0 to 1000",
            ));
        }
        let tokenizer = Tokenizer::new(vocabulary, words, pieces)?;
        let of_weights = Sha256::digest(file);
        let neighbours = Neighbours::new(neighbours, &format!("{of_weights:x}"), scales.len())?;
        let fingerprint = fingerprint(&name, &of_weights, vocabulary);
        Ok(Self {
            weights,
            table,
            scales,
            tokenizer,
            neighbours,
            dimensions,
            name,
            fingerprint,
        })
    }

    /// Dimensions of every vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The name that the weights file gives, such as `static-256`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Identity of the model, 64 hexadecimal digits: SHA-256 over the SHA-256 of the weights file (32
    /// bytes), the SHA-256 of the vocabulary (32 bytes), the name (UTF-8) and the version of the tokenizer (4 bytes,
    /// little-endian). Vectors of two models with the same fingerprint can be compared; with different ones they
    /// cannot.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Rows of `text`, in its order: row `n` is line `n + 1` of the vocabulary.
    pub fn rows<'a>(&self, text: &str, scratch: &'a mut Scratch) -> &'a [u32] {
        self.tokenizer.rows(text, scratch);
        &scratch.rows
    }

    /// How much a row says: the square of its length. The model's recipe makes frequent pieces short, so that this is
    /// near 0 for an article or a full stop, about 1 for a pronoun and 4 to 12 for a noun or a name.
    pub fn weight(&self, row: u32) -> f32 {
        let at = row as usize * self.dimensions;
        let table = &(*self.weights).as_ref()[self.table.clone()];
        let items = table.get(at..at + self.dimensions).unwrap_or_default();
        let squares: i32 = items
            .iter()
            .map(|&item| i32::from(item.cast_signed()).pow(2))
            .sum();
        self.scales
            .get(row as usize)
            .map_or(0.0, |scale| scale * scale * squares as f32)
    }

    /// The rows that mean nearly the same as `row`, nearest first, with their cosines; without `row` itself.
    pub fn neighbours(&self, row: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.neighbours.of(row)
    }

    /// Writes the unit vector of `text` to `out`.
    ///
    /// False, with `out` all zeros, if no word of the text is in the vocabulary: such a text has no direction, and
    /// whoever ranks must not compare it with anything. Punctuation alone has none either, or it would be near to every
    /// text that has much of it.
    ///
    /// # Panics
    /// If `out` has another length than [`dimensions`](Self::dimensions).
    pub fn embed(&self, text: &str, scratch: &mut Scratch, out: &mut [f32]) -> bool {
        assert_eq!(
            out.len(),
            self.dimensions,
            "the vector has the model's dimensions"
        );
        out.fill(0.0);
        let table = &(*self.weights).as_ref()[self.table.clone()];
        self.tokenizer.rows(text, scratch);
        if !scratch.has_words {
            return false;
        }
        for &row in &scratch.rows {
            let scale = self.scales[row as usize];
            let items = &table[row as usize * self.dimensions..][..self.dimensions];
            for (sum, item) in out.iter_mut().zip(items) {
                *sum += scale * f32::from(item.cast_signed());
            }
        }
        let length = sum_of_squares(out).sqrt();
        if length < MIN_LENGTH {
            out.fill(0.0);
            return false;
        }
        for x in out {
            *x /= length;
        }
        true
    }
}

/// Summed in eight lanes, which the compiler turns into vector instructions: one long chain of additions
/// would take as long as seven rows.
fn sum_of_squares(vector: &[f32]) -> f32 {
    let (chunks, rest) = vector.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x * x;
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|x| x * x).sum::<f32>()
}

fn fingerprint(name: &str, of_weights: &[u8], vocabulary: &str) -> String {
    let digest = Sha256::new()
        .chain_update(of_weights)
        .chain_update(Sha256::digest(vocabulary))
        .chain_update(name)
        .chain_update(TOKENIZER_VERSION.to_le_bytes())
        .finalize();
    format!("{digest:x}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    const VOCABULARY: &str = "up\ndown\nnorth\n\u{2581}\t-2.0\n\u{2581}\u{4e0a}\t-3.5\n";

    /// Five rows of 3 dimensions: the first two cancel out.
    fn weights(name: &str, scales: [f32; 5]) -> Vec<u8> {
        let header = format!(
            concat!(
                r#"{{"__metadata__":{{"format":"1","name":"{}","dims":"3","normalize":"l2","words":"3","pieces":"2"}},"#,
                r#""weights":{{"dtype":"F32","shape":[5],"data_offsets":[0,20]}},"#,
                r#""embeddings":{{"dtype":"I8","shape":[5,3],"data_offsets":[20,35]}}}}"#
            ),
            name
        );
        let table = [0, 0, 100, 0, 0, -100, 0, 127, 0, 9, 9, 9, -3, 0, 4_i8];
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        file.extend(scales.iter().flat_map(|scale| scale.to_le_bytes()));
        file.extend(table.map(i8::cast_unsigned));
        file
    }

    /// Lists of two: row 0 is near to 2 and 1, the others to none.
    fn neighbours(weights: &[u8], rows: usize) -> Vec<u8> {
        let (ids, cosines) = (rows * 4, rows * 2);
        let header = format!(
            concat!(
                r#"{{"__metadata__":{{"format":"1","model":"{:x}"}},"#,
                r#""ids":{{"dtype":"U16","shape":[{rows},2],"data_offsets":[0,{ids}]}},"#,
                r#""cosines":{{"dtype":"U8","shape":[{rows},2],"data_offsets":[{ids},{end}]}}}}"#
            ),
            Sha256::digest(weights),
            rows = rows,
            ids = ids,
            end = ids + cosines,
        );
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        let start = file.len();
        file.resize(start + ids + cosines, 0);
        file[start] = 2;
        file[start + 2] = 1;
        file[start + ids] = 255;
        file[start + ids + 1] = 51;
        file
    }

    #[test]
    fn neighbours_end_at_a_cosine_of_zero() {
        let model = tiny();
        assert_eq!(
            model.neighbours(0).collect::<Vec<_>>(),
            [(2, 1.0), (1, 0.2)]
        );
        assert_eq!(model.neighbours(4).count(), 0);
        assert_eq!(model.neighbours(9).count(), 0);
        assert!((model.weight(0) - 2500.0).abs() < 1e-3);
        assert_eq!(model.weight(9).to_bits(), 0f32.to_bits());
    }

    #[test]
    fn neighbours_of_another_model_or_damaged_are_refused() {
        let of = |file: Vec<u8>| {
            StaticModel::new(
                Box::new(weights("tiny", [0.5; 5])),
                VOCABULARY,
                Box::new(file),
            )
            .map(|_| ())
        };
        let right = neighbours(&weights("tiny", [0.5; 5]), 5);
        assert_eq!(of(right.clone()), Ok(()));
        let refused = |file| matches!(of(file), Err(EmbedError::Neighbours(_)));
        assert!(refused(neighbours(&weights("other", [0.5; 5]), 5)));
        assert!(refused(neighbours(&weights("tiny", [0.5; 5]), 4)));
        for length in 0..right.len() {
            assert!(refused(right[..length].to_vec()), "{length}");
        }
    }

    fn load(weights: Vec<u8>, vocabulary: &str) -> Result<StaticModel, EmbedError> {
        let neighbours = neighbours(&weights, 5);
        StaticModel::new(Box::new(weights), vocabulary, Box::new(neighbours))
    }

    fn tiny() -> StaticModel {
        load(weights("tiny", [0.5; 5]), VOCABULARY).unwrap()
    }

    fn embed(text: &str) -> Option<[f32; 3]> {
        let mut out = [9.0; 3];
        let found = tiny().embed(text, &mut Scratch::default(), &mut out);
        assert!(
            found || out.iter().all(|&x| x == 0.0),
            "no vector leaves zeros"
        );
        found.then_some(out)
    }

    #[test]
    fn a_vector_is_the_normalised_sum_of_rows() {
        assert_eq!(embed("NORTH"), Some([0.0, 1.0, 0.0]));
        assert_eq!(embed("\u{4e0a}"), Some([-0.6, 0.0, 0.8]));
        let [x, y, z] = embed("up, north").unwrap();
        assert!((y / z - 1.27).abs() < 1e-6 && x == 0.0);
        assert!((y * y + z * z - 1.0).abs() < 1e-6);
    }

    #[test]
    fn without_a_direction_there_is_no_vector() {
        assert_eq!(embed(""), None);
        assert_eq!(embed("sideways"), None);
        assert_eq!(embed("up down"), None, "the rows cancel out");
    }

    #[test]
    #[should_panic(expected = "the vector has the model's dimensions")]
    fn a_vector_of_another_length_is_a_mistake_of_the_caller() {
        tiny().embed("up", &mut Scratch::default(), &mut [0.0; 4]);
    }

    #[test]
    fn the_fingerprint_tells_each_part() {
        let mut fingerprints = vec![
            tiny().fingerprint().to_owned(),
            load(weights("tin", [0.5; 5]), VOCABULARY)
                .unwrap()
                .fingerprint,
            load(weights("tiny", [0.25; 5]), VOCABULARY)
                .unwrap()
                .fingerprint,
            load(
                weights("tiny", [0.5; 5]),
                &VOCABULARY.replace("-3.5", "-3.6"),
            )
            .unwrap()
            .fingerprint,
        ];
        assert!(fingerprints.iter().all(|hex| hex.len() == 64));
        fingerprints.sort();
        fingerprints.dedup();
        assert_eq!(fingerprints.len(), 4);
    }

    #[test]
    fn scales_that_are_no_scales_are_refused() {
        for wrong in [f32::NAN, f32::INFINITY, -0.5, 1e30] {
            let found = load(weights("tiny", [0.5, 0.5, wrong, 0.5, 0.5]), VOCABULARY);
            assert_eq!(
                found.unwrap_err(),
                EmbedError::Weights("a scale is not a number from 0 to 1000")
            );
        }
    }

    #[test]
    fn a_vocabulary_of_another_model_is_refused() {
        for (vocabulary, found) in [
            ("", 0),
            ("up\n", 1),
            (&format!("{VOCABULARY}more\t-1\n"), 6),
        ] {
            assert_eq!(
                load(weights("tiny", [0.5; 5]), vocabulary).unwrap_err(),
                EmbedError::VocabularyLength { expected: 5, found }
            );
        }
    }

    #[test]
    fn a_damaged_line_of_the_vocabulary_is_named() {
        for (right, wrong, line, reason) in [
            ("down", "", 2, "is empty"),
            ("down", "up", 2, "repeats an earlier one"),
            ("\t-2.0", "", 4, "has no tab and log-probability"),
            ("\u{2581}\t-2.0", "\t-2.0", 4, "has no piece before the tab"),
            ("-2.0", "NaN", 4, "has no log-probability after the tab"),
            ("-2.0", "2.0", 4, "has no log-probability after the tab"),
            ("-3.5", "-3.5\t1", 5, "has no log-probability after the tab"),
            ("\u{2581}\u{4e0a}", "\u{2581}", 5, "repeats an earlier one"),
        ] {
            let vocabulary = VOCABULARY.replacen(right, wrong, 1);
            assert_eq!(
                load(weights("tiny", [0.5; 5]), &vocabulary).unwrap_err(),
                EmbedError::VocabularyLine { line, reason }
            );
        }
    }

    #[test]
    fn a_model_can_be_shared_between_threads() {
        fn shareable<T: Send + Sync>() {}
        shareable::<StaticModel>();
    }

    proptest! {
        /// Damaged files are refused, or give a model that embeds.
        #[test]
        fn damage_does_not_panic(
            weights_at in any::<Index>(),
            byte: u8,
            vocabulary_at in any::<Index>(),
            junk in "\\PC{0,3}|\t|\n",
        ) {
            let mut weights = weights("tiny", [0.5; 5]);
            let at = weights_at.index(weights.len());
            weights[at] = byte;
            let mut vocabulary: Vec<char> = VOCABULARY.chars().collect();
            let at = vocabulary_at.index(vocabulary.len());
            vocabulary.splice(at..=at, junk.chars());
            let vocabulary: String = vocabulary.into_iter().collect();
            for vocabulary in [VOCABULARY, &vocabulary] {
                if let Ok(model) = load(weights.clone(), vocabulary) {
                    let mut out = [0.0; 3];
                    model.embed("up north \u{4e0a}", &mut Scratch::default(), &mut out);
                    prop_assert!(out.iter().all(|x| x.is_finite()));
                }
            }
        }
    }
}
