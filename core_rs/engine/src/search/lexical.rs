//! The lexical arm: BM25 over whole memories, exact. Every posting of every term of the query is read.
//!
//! Memories are scored whole and not by their best passage: a long memory has many passages, and each would be another
//! chance for common words (`docs/decisions/0003-first-ranking.md` has the figures). Passages get a score of their own
//! without length normalisation, by which a brief chooses what to quote.

use std::cell::RefCell;
use std::collections::HashSet;

use recalld_algo::bm25::{self, Bm25};
use recalld_algo::question;
use recalld_algo::topk::{Hit, TopK};
use recalld_store::StoreError;
use recalld_store::codec::postings::{self, Posting};
use recalld_store::keys;

use super::rank::Scope;
use crate::indexed::{self, TermCount};
use crate::time_limit::TimeLimit;

/// Passages are of about one length.
const PASSAGES: Bm25 = Bm25 { k1: 1.5, b: 0.0 };

/// Scores of the memories and passages that hold a term of the query.
pub(crate) struct LexicalScores {
    /// Of the namespace.
    rows: usize,
    documents: Sparse,
    passages: Sparse,
    literals: Sparse,
    /// What `literals` of a memory with all of them adds up to.
    all_literals: f32,
    /// The greatest score that a memory could have.
    pub(crate) most: f64,
    /// The terms that some memory has, each with its rarity times how often the query has it.
    pub(crate) weights: Vec<(Box<str>, f64)>,
}

/// What the lexical arm looks for.
pub(crate) struct Terms {
    pub(crate) counts: Vec<TermCount>,
    /// Terms of identifiers and numbers, which mean something only as they are.
    literals: HashSet<Box<str>>,
}

impl Terms {
    /// None when there is nothing to look for.
    pub(crate) fn of(query: &str) -> Option<Self> {
        indexed::with_analyzer(|analyzer| {
            let counts = analyzer.counts(query);
            if counts.is_empty() {
                return None;
            }
            let has_digit = |term: &str| term.bytes().any(|byte| byte.is_ascii_digit());
            let terms = counts.iter().map(|(term, _)| term);
            let mut literals: HashSet<Box<str>> =
                terms.filter(|term| has_digit(term)).cloned().collect();
            for identifier in question::identifiers(query) {
                // The term of the whole; the others are of its parts.
                let whole = analyzer
                    .counts(identifier)
                    .into_iter()
                    .map(|(term, _)| term);
                literals.extend(whole.max_by_key(|term| term.len()));
            }
            Some(Self { counts, literals })
        })
    }
}

impl LexicalScores {
    /// 0 for a document without a term.
    #[inline]
    pub(crate) fn document(&self, doc: u32) -> f32 {
        self.documents.get(doc)
    }

    /// By row; 0 for what is no document, or has no term.
    pub(super) fn by_document(&self) -> &[f32] {
        &self.documents.values[..self.rows]
    }

    /// The documents with the best scores, best first, as far as they have one.
    pub(super) fn top(&self, count: usize) -> Vec<Hit> {
        let mut top = TopK::new(count);
        if self.documents.touched.len() > self.rows / DENSE {
            top.extend_dense(0, self.by_document());
        } else {
            for &doc in self.documents() {
                top.push(doc, self.document(doc));
            }
        }
        let mut top = top.into_sorted();
        top.retain(|hit| hit.score > 0.0);
        top
    }

    /// 0 for a passage without a term, and for one that is a whole memory, since it has none to be compared with.
    #[inline]
    pub(crate) fn passage(&self, row: u32) -> f32 {
        self.passages.get(row)
    }

    /// The share, by rarity, of the query's identifiers and numbers that a document has; 0 when there are none.
    pub(crate) fn literals(&self, doc: u32) -> f32 {
        if self.all_literals > 0.0 {
            self.literals.get(doc) / self.all_literals
        } else {
            0.0
        }
    }

    /// The share of the query's terms, by rarity, that a document has, 0..1: 1 for a memory of average length with each
    /// term once.
    pub(crate) fn share(&self, doc: u32) -> f32 {
        let most = self.most as f32 / (Bm25::default().k1 + 1.0);
        if most > 0.0 {
            (self.document(doc) / most).min(1.0)
        } else {
            0.0
        }
    }

    /// Documents with a score, in no order.
    pub(crate) fn documents(&self) -> &[u32] {
        &self.documents.touched
    }
}

thread_local! {
    /// Buffers kept from query to query: as long as the largest namespace seen, all zero between queries.
    static BUFFERS: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Values by row, most of them 0.
struct Sparse {
    values: Vec<f32>,
    /// Rows with a value, in no order.
    touched: Vec<u32>,
}

impl Sparse {
    fn new(rows: usize) -> Self {
        let mut values = BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_default();
        if values.len() < rows {
            values.resize(rows, 0.0);
        }
        Self {
            values,
            touched: Vec::new(),
        }
    }

    #[inline]
    fn get(&self, row: u32) -> f32 {
        self.values.get(row as usize).copied().unwrap_or(0.0)
    }

    #[inline]
    fn add(&mut self, row: u32, value: f32) {
        let slot = &mut self.values[row as usize];
        if *slot == 0.0 {
            self.touched.push(row);
        }
        *slot += value;
    }
}

impl Drop for Sparse {
    fn drop(&mut self) {
        if self.touched.len() > self.values.len() / DENSE {
            self.values.fill(0.0);
        } else {
            for &row in &self.touched {
                self.values[row as usize] = 0.0;
            }
        }
        let values = std::mem::take(&mut self.values);
        BUFFERS.with_borrow_mut(|buffers| buffers.push(values));
    }
}

/// When more than one in so many rows has a score, all are looked at in order: that costs less than to pick them.
const DENSE: usize = 16;

/// Lengths for which the score of a term that more documents hold is computed before.
const SCORED_BEFORE: usize = 512;

/// A document that holds a term.
struct Holding {
    doc: u32,
    /// How often.
    frequency: u32,
    /// Terms of the document.
    length: u32,
}

/// Scores all live memories by the terms of the query, each as often as it stands there. None: the time was over first.
pub(crate) fn scores(
    scope: &Scope<'_>,
    terms: &Terms,
    limit: TimeLimit<'_>,
) -> Result<Option<LexicalScores>, StoreError> {
    let snapshot = scope.snapshot;
    let (schema, ns) = (snapshot.docs.schema, snapshot.docs.ns);
    let rows = scope.facts.rows() as usize;
    let mut lexical = LexicalScores {
        rows,
        documents: Sparse::new(rows),
        passages: Sparse::new(rows),
        literals: Sparse::new(rows),
        all_literals: 0.0,
        most: 0.0,
        weights: Vec::new(),
    };
    let memories = snapshot.state.memories as u32;
    let average = snapshot.state.terms as f32 / memories.max(1) as f32;
    let mut holding: Vec<Holding> = Vec::new();
    // Postings of memories of more than one passage.
    let mut parts: Vec<Posting> = Vec::new();
    for (term, times) in &terms.counts {
        if limit.passed() {
            return Ok(None);
        }
        holding.clear();
        parts.clear();
        for entry in schema
            .postings
            .prefix(snapshot.txn, &keys::term(ns, term))?
        {
            let (key, block) = entry?;
            let damaged = || schema.postings.damaged(key);
            let first = keys::trailing_number(key).ok_or_else(damaged)?;
            let mut last = first;
            postings::for_each(first, block, |posting| {
                let Posting { row, frequency } = posting;
                last = row;
                let (facts, whole) = scope.facts.get_whole(row);
                let doc = row - facts.offset.min(row);
                match holding.last_mut() {
                    Some(last) if last.doc == doc => last.frequency += frequency,
                    _ => holding.push(Holding {
                        doc,
                        frequency,
                        length: facts.terms,
                    }),
                }
                if !whole {
                    parts.push(posting);
                }
            })
            .ok_or_else(damaged)?;
            if last as usize >= rows {
                return Err(damaged());
            }
        }
        let idf = bm25::idf(memories, holding.len() as u32);
        let times = *times as f32;
        if terms.literals.contains(term) {
            lexical.all_literals += times * idf;
            for document in &holding {
                lexical.literals.add(document.doc, times * idf);
            }
        }
        if holding.is_empty() {
            continue;
        }
        lexical.weights.push((term.clone(), f64::from(times * idf)));
        let scorer = Bm25::default().term(idf, average);
        lexical.most += f64::from(times * scorer.upper_bound());
        // In most documents a term stands once, and most are short.
        let once = holding.len() > SCORED_BEFORE;
        let once: Vec<f32> = (0..if once { SCORED_BEFORE as u32 } else { 0 })
            .map(|length| times * scorer.score(1, length))
            .collect();
        for document in &holding {
            let score = match once.get(document.length as usize) {
                Some(score) if document.frequency == 1 => *score,
                _ => times * scorer.score(document.frequency, document.length),
            };
            lexical.documents.add(document.doc, score);
        }
        let scorer = PASSAGES.term(idf, average);
        for part in &parts {
            let score = times * scorer.score(part.frequency, 0);
            lexical.passages.add(part.row, score);
        }
    }
    Ok(Some(lexical))
}
