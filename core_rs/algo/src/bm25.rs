//! BM25, the lexical arm's score of one document for one term. The score of a query is the sum over its terms.
//!
//! The formula is the one of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
//! with the inverse document frequency of Lucene's `BM25Similarity`, whose `1 +` keeps a term that is in most documents
//! from scoring below zero. Nothing here may return a negative or a non-finite score: zero is what a document without
//! any of the terms has, and the fusion counts on that.

/// The two constants of BM25.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bm25 {
    /// How slowly repetitions of a term saturate; 0 ignores them. At least 0.
    pub k1: f32,
    /// How much a document longer than the average is held back: 0 not at all, 1 in proportion to its length.
    pub b: f32,
}

impl Default for Bm25 {
    fn default() -> Self {
        Self { k1: 1.5, b: 0.75 }
    }
}

impl Bm25 {
    /// Prepares the scoring of one query term, for a walk over its postings.
    ///
    /// `average_length` is in terms a document, over the documents that `idf` counted. When it is not positive, as in an
    /// empty namespace, lengths play no part.
    #[must_use]
    pub fn term(&self, idf: f32, average_length: f32) -> TermScorer {
        let (fixed, per_term) = if average_length > 0.0 {
            (self.k1 * (1.0 - self.b), self.k1 * self.b / average_length)
        } else {
            (self.k1, 0.0)
        };
        TermScorer {
            most: idf * (self.k1 + 1.0),
            fixed,
            per_term,
        }
    }

    /// The score of a document of `length` terms in which the term occurs `tf` times.
    #[must_use]
    pub fn weight(&self, idf: f32, tf: u32, length: u32, average_length: f32) -> f32 {
        self.term(idf, average_length).score(tf, length)
    }
}

/// What all postings of one query term share. Made by [`Bm25::term`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TermScorer {
    most: f32,
    fixed: f32,
    per_term: f32,
}

impl TermScorer {
    /// The score of a document of `length` terms in which the term occurs `tf` times; 0 when `tf` is 0.
    #[inline]
    #[must_use]
    pub fn score(&self, tf: u32, length: u32) -> f32 {
        if tf == 0 {
            return 0.0;
        }
        // Written so that each step keeps the order of its operand: rounding never makes a repetition cost, nor a longer
        // document win, nor a score pass the bound.
        self.most / (1.0 + (self.fixed + self.per_term * length as f32) / tf as f32)
    }

    /// What no document's score exceeds, however often the term occurs in it.
    #[inline]
    #[must_use]
    pub fn upper_bound(&self) -> f32 {
        self.most
    }
}

/// Inverse document frequency of a term that is in `with_term` of `documents` documents: ln(1 + (N - n + ½) / (n + ½)).
///
/// Always positive. A `with_term` above `documents` counts as `documents`.
#[must_use]
pub fn idf(documents: u32, with_term: u32) -> f32 {
    let documents = f64::from(documents);
    let with_term = f64::from(with_term).min(documents);
    libm::log1p((documents - with_term + 0.5) / (with_term + 0.5)) as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The formula as the paper writes it, in f64.
    fn reference(parameters: Bm25, idf: f32, tf: u32, length: u32, average_length: f32) -> f64 {
        let (k1, b) = (f64::from(parameters.k1), f64::from(parameters.b));
        let (tf, length) = (f64::from(tf), f64::from(length));
        let normalised = 1.0 - b + b * length / f64::from(average_length);
        f64::from(idf) * tf * (k1 + 1.0) / (tf + k1 * normalised)
    }

    #[test]
    fn agrees_with_a_worked_example() {
        // N = 2, n = 1: ln(1 + 1.5 / 1.5) = ln 2. A document of average length with tf 1 scores exactly its idf.
        assert_eq!(idf(2, 1).to_bits(), std::f32::consts::LN_2.to_bits());
        let score = Bm25::default().weight(idf(2, 1), 1, 8, 8.0);
        assert!((score - std::f32::consts::LN_2).abs() < 1e-6);
    }

    #[test]
    fn idf_of_a_term_in_every_document_stays_positive() {
        for documents in [0, 1, 10, u32::MAX] {
            assert!(idf(documents, documents) > 0.0);
        }
        assert_eq!(idf(5, 9).to_bits(), idf(5, 5).to_bits());
    }

    #[test]
    fn an_empty_namespace_scores_without_lengths() {
        let at = |length| Bm25::default().weight(1.0, 3, length, 0.0);
        assert!(at(0) > 0.0);
        assert_eq!(at(0).to_bits(), at(500).to_bits());
    }

    proptest! {
        #[test]
        fn equals_the_formula(
            k1 in 0f32..3.0, b in 0f32..=1.0, idf in 0.01f32..20.0,
            tf in 0u32..1_000, length in 0u32..100_000, average_length in 0.5f32..10_000.0,
        ) {
            let parameters = Bm25 { k1, b };
            let score = parameters.weight(idf, tf, length, average_length);
            let expected = reference(parameters, idf, tf, length, average_length);
            prop_assert!((f64::from(score) - expected).abs() <= 1e-5 * expected.max(1e-3), "{score} {expected}");
        }

        #[test]
        fn grows_with_occurrences_falls_with_length_and_keeps_its_bound(
            tf in 0u32..10_000, length in 0u32..100_000, average_length in 0.5f32..10_000.0,
            documents in 1u32..10_000_000, with_term in 1u32..10_000_000,
        ) {
            let scorer = Bm25::default().term(idf(documents, with_term), average_length);
            let score = scorer.score(tf, length);
            prop_assert!(score >= 0.0 && score <= scorer.upper_bound());
            prop_assert!(scorer.score(tf + 1, length) >= score);
            prop_assert!(scorer.score(tf, length + 1) <= score);
        }

        #[test]
        fn a_rarer_term_weighs_more(documents in 2u32..10_000_000, with_term in 1u32..10_000_000) {
            let with_term = with_term.min(documents - 1);
            prop_assert!(idf(documents, with_term) >= idf(documents, with_term + 1));
        }
    }
}
