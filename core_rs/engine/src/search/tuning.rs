//! Every weight of the ranking by relevance: one set for all namespaces. `docs/decisions/0010-ranking.md` has the reason,
//! the sweep and the ablation of each.

/// The weights. One that is 0 switches its feature off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Of the cosine of the nearest passage, in deviations.
    pub dense: f32,
    /// Of BM25 of the whole memory, in deviations.
    pub lexical: f32,
    /// Added to `lexical` and taken from `dense` when a query is all Han, kana or Hangul: pairs of characters are exact
    /// there, and the embedding knows fewer words.
    pub lexical_cjk: f32,
    /// Of how much of the query's words the best passage has, each or one that means nearly the same, as a share.
    pub words: f32,
    /// Of how much of what the query names the memory has, as a share.
    pub names: f32,
    /// Of how much of the query's identifiers and numbers the memory has, as a share by rarity.
    pub literals: f32,
    /// By how many deviations a newer memory that has all the words of the query that an older one has may lie behind it
    /// and still pass it. Not for questions about the past.
    pub update: f32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            dense: 0.7,
            lexical: 0.3,
            lexical_cjk: 0.2,
            words: 5.0,
            names: 0.25,
            literals: 2.0,
            update: 1.5,
        }
    }
}

impl Tuning {
    /// All weights by name.
    pub fn all(&mut self) -> [(&'static str, &mut f32); 7] {
        [
            ("dense", &mut self.dense),
            ("lexical", &mut self.lexical),
            ("lexical_cjk", &mut self.lexical_cjk),
            ("words", &mut self.words),
            ("names", &mut self.names),
            ("literals", &mut self.literals),
            ("update", &mut self.update),
        ]
    }

    /// Weights of the dense and the lexical arm for a query of which that share is Han, kana or Hangul.
    pub(crate) fn arms(&self, cjk: f32) -> (f32, f32) {
        let moved = (self.lexical_cjk * cjk).min(self.dense);
        (self.dense - moved, self.lexical + moved)
    }
}
