//! Refining the best candidates: exact cosines, then word by word, then by time.
//!
//! Only the order of these few can change here; what the arms did not find stays unfound.

use recalld_algo::question;
use recalld_store::StoreError;
use recalld_store::codec::header::Header;
use recalld_store::ids::{Micros, Row};
use recalld_vector::NO_VECTOR;

use super::dense::DenseScores;
use super::lexical::LexicalScores;
use super::rank::{Ranking, Scope, exact};
use super::tuning::Tuning;
use super::words::{Matched, QueryWords};

/// Candidates that are refined, at least.
const REFINED: usize = 32;

/// The share of a query's words that a candidate which is not refined is taken to have: that of the last refined ones.
const AVERAGE_WORDS: f32 = 0.2;

/// A share from which a memory has all terms of the query.
const ALL_TERMS: f32 = 0.9;

/// The most words of a short query.
const SHORT_QUERY: usize = 6;

/// The best ones, among which time counts, and which must hold the query together.
const BEST: usize = 10;

/// How far a newer memory gets ahead of the one that it passes.
const AHEAD: f32 = 0.01;

/// How many candidates of a search for so many hits are refined.
pub(super) fn refined(limit: usize) -> usize {
    REFINED.max(limit)
}

/// A candidate with all that speaks for it.
pub(crate) struct Candidate {
    pub(crate) doc: Row,
    pub(crate) header: Header,
    /// Of its nearest passage, or [`NO_VECTOR`].
    pub(crate) cosine: f32,
    /// BM25.
    pub(crate) lexical: f32,
    /// The share of the query's identifiers and numbers that it has.
    pub(crate) literals: f32,
    /// The share of the query's words that it has, or that mean nearly the same; None: not compared.
    pub(crate) words: Option<f32>,
    pub(crate) matched: Option<Matched>,
    /// What it was lifted by for passing an older one.
    pub(crate) update: f32,
    /// Passages with their fused values, best first.
    pub(crate) passages: Vec<(u32, f32)>,
    /// The sum of all signals.
    pub(crate) fused: f32,
}

impl Candidate {
    /// When what it tells happened; of two at one time, the one written later is newer.
    fn time(&self) -> (Micros, Row) {
        (self.header.occurred_at, self.doc)
    }
}

/// What candidates are made with.
pub(super) struct Refiner<'a> {
    pub(super) scope: &'a Scope<'a>,
    pub(super) dense: Option<&'a DenseScores<'a>>,
    pub(super) lexical: Option<&'a LexicalScores>,
    pub(super) words: Option<&'a QueryWords>,
    pub(super) ranking: &'a Ranking,
    pub(super) tuning: &'a Tuning,
    /// Share of the query in Han, kana or Hangul.
    pub(super) cjk: f32,
}

/// The header of a document that may be returned.
pub(super) fn header(scope: &Scope<'_>, doc: u32) -> Result<Header, StoreError> {
    let (docs, txn) = (scope.snapshot.docs, scope.snapshot.txn);
    let key = recalld_store::keys::numbered(docs.ns, doc);
    docs.header(txn, Row(doc))?
        .ok_or_else(|| docs.schema.headers.damaged(&key))
}

impl Refiner<'_> {
    /// A candidate by its arms, and word by word when `compare`.
    pub(super) fn candidate(&self, doc: u32, compare: bool) -> Result<Candidate, StoreError> {
        let snapshot = self.scope.snapshot;
        let (docs, txn) = (snapshot.docs, snapshot.txn);
        let header = header(self.scope, doc)?;
        let matched = match self.words.filter(|_| compare) {
            Some(words) => {
                let stored = docs.words(txn, Row(doc))?;
                let compared = words.compare(stored);
                let damaged = || {
                    let key = recalld_store::keys::numbered(docs.ns, doc);
                    docs.schema.words.damaged(&key)
                };
                Some(compared.ok_or_else(damaged)?)
            }
            None => None,
        };
        let mut cosine = NO_VECTOR;
        let mut passages = Vec::new();
        for (passage, row) in self.scope.rows_of(doc).enumerate() {
            let nearness = match self.dense {
                Some(dense) => exact(self.scope, dense, row)?,
                None => NO_VECTOR,
            };
            cosine = cosine.max(nearness);
            let lexical = self.lexical.map_or(0.0, |lexical| lexical.passage(row));
            let words = matched.as_ref().and_then(|m| m.passages.get(passage));
            let fused = self.ranking.fuse(nearness, lexical) + self.of_words(words.copied());
            passages.push((passage as u32, fused));
        }
        passages.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        // How Han and kana are cut into words depends on what stands around them; pairs of characters do not. And what
        // has all terms of a query as they are written lacks none of its words.
        let written = match self.lexical.map_or(0.0, |lexical| lexical.share(doc)) {
            all if all >= ALL_TERMS => all,
            some => some * self.cjk,
        };
        let words = matched.as_ref().map(|matched| matched.words.max(written));
        let literals = self.lexical.map_or(0.0, |lexical| lexical.literals(doc));
        let lexical = self.lexical.map_or(0.0, |lexical| lexical.document(doc));
        let mut candidate = Candidate {
            doc: Row(doc),
            header,
            cosine,
            lexical,
            literals,
            words,
            matched,
            update: 0.0,
            passages,
            fused: 0.0,
        };
        candidate.fused = self.fused(&candidate);
        Ok(candidate)
    }

    /// What the query's identifiers and numbers in a document add.
    pub(super) fn of_literals(&self, doc: u32) -> f32 {
        let share = self.lexical.map_or(0.0, |lexical| lexical.literals(doc));
        self.tuning.literals * share
    }

    fn of_words(&self, words: Option<f32>) -> f32 {
        self.tuning.words * words.map_or(0.0, |words| words - AVERAGE_WORDS)
    }

    fn fused(&self, candidate: &Candidate) -> f32 {
        let matched = candidate.matched.as_ref();
        self.ranking.fuse(candidate.cosine, candidate.lexical)
            + self.of_words(candidate.words)
            + self.tuning.literals * candidate.literals
            + self.tuning.names * matched.map_or(0.0, |matched| matched.names)
            + candidate.update
    }

    /// The words signal of a candidate: as measured, and made comparable.
    pub(super) fn words_signal(candidate: &Candidate) -> (f32, f32) {
        candidate
            .words
            .map_or((0.0, 0.0), |words| (words, words - AVERAGE_WORDS))
    }

    /// How much of the query the best candidates have together, 0..1; 1 when there are no words to look for.
    ///
    /// One that has all terms of a short query as they are written has all of it: the model may not know a word, or cut it
    /// otherwise, as it does Han and kana. Of a long query in words that would say too much, since BM25 rises as well with
    /// how often a memory has some of the terms.
    pub(super) fn coverage(&self, best: &[Candidate]) -> f64 {
        let best = &best[..best.len().min(BEST)];
        let Some(words) = self.words else { return 1.0 };
        if best.iter().all(|one| one.matched.is_none()) {
            return 1.0;
        }
        let together = words.coverage(best.iter().filter_map(|one| one.matched.as_ref()));
        let written =
            |one: &Candidate| self.lexical.map_or(0.0, |lexical| lexical.share(one.doc.0));
        let counts = if words.len() <= SHORT_QUERY {
            1.0
        } else {
            self.cjk
        };
        let whole = best.iter().map(written).filter(|share| *share >= ALL_TERMS);
        f64::from(whole.fold(together, |most, share| most.max(share * counts)))
    }

    /// Puts candidates in order, best first: equal ones newest first.
    fn order(candidates: &mut [Candidate]) {
        candidates.sort_by(|a, b| {
            b.fused
                .total_cmp(&a.fused)
                .then_with(|| b.time().cmp(&a.time()))
        });
    }

    /// Orders candidates, and lets time count among the best.
    pub(super) fn by_time(&self, candidates: &mut [Candidate], query: &str) {
        Self::order(candidates);
        if self.tuning.update > 0.0 && !question::asks_about_the_past(query) {
            let among = candidates.len().min(BEST);
            self.pass_older(&mut candidates[..among]);
        }
        Self::order(candidates);
    }

    /// Lifts each memory over the older ones that it brings up to date: it has nearly all the words of the query that they
    /// have and lies not far behind. In a row of three values each passes the one before it.
    fn pass_older(&self, best: &mut [Candidate]) {
        let Some(words) = self.words else { return };
        let mut by_age: Vec<usize> = (0..best.len()).collect();
        by_age.sort_by_key(|&i| best[i].time());
        let before: Vec<f32> = best.iter().map(|one| one.fused).collect();
        for (place, &newer) in by_age.iter().enumerate() {
            let Some(new) = &best[newer].matched else {
                continue;
            };
            let reach = before[newer] + self.tuning.update;
            let passed = by_age[..place]
                .iter()
                .filter(|&&older| (before[newer]..=reach).contains(&before[older]))
                .filter(|&&older| {
                    let old = best[older].matched.as_ref();
                    old.is_some_and(|old| words.brings_up_to_date(new, old))
                })
                .map(|&older| best[older].fused)
                .fold(f32::NEG_INFINITY, f32::max);
            if passed >= best[newer].fused {
                best[newer].update = passed + AHEAD - before[newer];
                best[newer].fused = passed + AHEAD;
            }
        }
    }
}
