//! The lexical arm: BM25 over passages, exact. Every posting of every term of the query is read.

use std::cell::RefCell;

use recalld_algo::bm25::{self, Bm25};
use recalld_store::StoreError;
use recalld_store::codec::postings::{self, Posting};
use recalld_store::keys;

use super::rank::Scope;
use crate::indexed::TermCount;

/// Scores of the passages that hold a term of the query.
pub(crate) struct LexicalScores {
    /// By row; 0 for those without a term.
    scores: Vec<f32>,
    /// Rows with a score, in no order.
    touched: Vec<u32>,
    /// The greatest score that a passage could have.
    pub(crate) most: f64,
}

thread_local! {
    /// Kept from query to query: as long as the largest namespace seen, all zero between queries.
    static SCORES: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

impl LexicalScores {
    #[inline]
    pub(crate) fn get(&self, row: u32) -> f32 {
        self.scores.get(row as usize).copied().unwrap_or(0.0)
    }

    /// Rows with a score, in no order.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.touched
    }
}

impl Drop for LexicalScores {
    fn drop(&mut self) {
        for &row in &self.touched {
            self.scores[row as usize] = 0.0;
        }
        SCORES.set(std::mem::take(&mut self.scores));
    }
}

/// Scores all live passages by the terms of the query, each as often as it stands there.
pub(crate) fn scores(scope: &Scope<'_>, terms: &[TermCount]) -> Result<LexicalScores, StoreError> {
    let snapshot = scope.snapshot;
    let (schema, ns) = (snapshot.docs.schema, snapshot.docs.ns);
    let mut scores = SCORES.take();
    let rows = scope.facts.rows() as usize;
    if scores.len() < rows {
        scores.resize(rows, 0.0);
    }
    let mut lexical = LexicalScores {
        scores,
        touched: Vec::new(),
        most: 0.0,
    };
    let passages = snapshot.state.passages as u32;
    let average = if passages == 0 {
        1.0
    } else {
        snapshot.state.terms as f32 / passages as f32
    };
    let bm25 = Bm25::default();
    let mut found: Vec<Posting> = Vec::new();
    for (term, times) in terms {
        found.clear();
        for entry in schema
            .postings
            .prefix(snapshot.txn, &keys::term(ns, term))?
        {
            let (key, block) = entry?;
            let damaged = || schema.postings.damaged(key);
            let first = keys::trailing_number(key).ok_or_else(damaged)?;
            postings::for_each(first, block, |posting| found.push(posting)).ok_or_else(damaged)?;
            if found
                .last()
                .is_some_and(|posting| posting.row as usize >= rows)
            {
                return Err(damaged());
            }
        }
        if found.is_empty() {
            continue;
        }
        let scorer = bm25.term(bm25::idf(passages, found.len() as u32), average);
        let times = *times as f32;
        lexical.most += f64::from(times * scorer.upper_bound());
        for posting in &found {
            let score = &mut lexical.scores[posting.row as usize];
            if *score == 0.0 {
                lexical.touched.push(posting.row);
            }
            *score += times * scorer.score(posting.frequency, scope.facts.get(posting.row).terms);
        }
    }
    Ok(lexical)
}
