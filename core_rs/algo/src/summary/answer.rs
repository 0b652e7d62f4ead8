//! Summaries for a query: the sentences of a text that hold its words.
//!
//! Each word of the query counts once, by its weight, so that three sentences about its commonest word are worth less than
//! one with its rarest: this is maximum coverage with a budget. The candidates of one memory are few, so it is solved
//! exactly, by branch and bound with a limit on the nodes. What is chosen is filled up with its neighbours to the least
//! length of a summary, since what answers a question often follows the sentence that has its words.
//!
//! Sentences stand whole and in text order. A sentence that is longer than a summary is cut into parts at places where it
//! does no harm (see `cut`), and a sentence that ends inside a protected part goes on with the next.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::cut::{finished, one_line, parts};
use super::extract::{separator, without_marker};
use super::{Candidate, ENCODING, SUMMARY_TOKENS, in_order, json};
use crate::passages::{Span, sentences};
use crate::protect::protected;
use crate::terms::Analyzer;

/// Shorter ones take their neighbours too.
const LEAST_TOKENS: u32 = 30;
/// What a separator may cost.
const SEPARATOR_TOKENS: u32 = 1;
/// A sentence over this is cut into parts.
const SENTENCE_TOKENS: u32 = SUMMARY_TOKENS - SEPARATOR_TOKENS;
/// Texts up to this many bytes are never over it in practice, and are not counted to know.
const SENTENCE_BYTES: usize = 160;
/// The most tokens of such a part.
const PART_TOKENS: u32 = 40;
/// Words of a query that are looked for, the heaviest ones.
const MAX_TERMS: usize = 64;
/// Choices that are tried before the best one so far is taken. A memory takes some ten.
const MAX_NODES: u32 = 4_096;

/// What a quotation may start with.
const QUOTATION_MARKS: [char; 9] = ['"', '`', '\'', '“', '‘', '«', '「', '『', '《'];

/// What a memory says to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// On one line of at most [`SUMMARY_TOKENS`] tokens, and of 30 at least where there is so much.
    pub summary: String,
    /// Only the sentences that hold the words of the query; none when the summary is no more than these, and of JSON, where
    /// the leaf that has the words is rarely the one that answers.
    pub core: Option<String>,
}

/// The words of a query with what finding each is worth.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryTerms {
    /// Sorted by term.
    terms: Vec<(Box<str>, f64)>,
}

impl QueryTerms {
    /// Terms as an [`Analyzer`] gives them, with weights above 0. Of very many, the 64 heaviest are kept.
    pub fn new(terms: impl IntoIterator<Item = (Box<str>, f64)>) -> Self {
        let mut terms: Vec<(Box<str>, f64)> = terms
            .into_iter()
            .filter(|(_, weight)| weight.is_finite() && *weight > 0.0)
            .collect();
        terms.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        terms.truncate(MAX_TERMS);
        terms.sort_by(|a, b| a.0.cmp(&b.0));
        terms.dedup_by(|a, b| a.0 == b.0);
        Self { terms }
    }

    /// Whether nothing can be looked for.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms in `text`, as a set of bits.
    fn found(&self, analyzer: &mut Analyzer, text: &str) -> u64 {
        let mut found = 0;
        analyzer.analyze(text, &mut |term| {
            if let Ok(at) = self
                .terms
                .binary_search_by(|(known, _)| (**known).cmp(term))
            {
                found |= 1 << at;
            }
        });
        found
    }

    /// The weight of a set of terms. A superset never has less.
    fn weight(&self, mut set: u64) -> f64 {
        let mut weight = 0.0;
        while set != 0 {
            weight += self.terms[set.trailing_zeros() as usize].1;
            set &= set - 1;
        }
        weight
    }
}

/// The sentences in some `passages` of `text` that answer the query.
///
/// The passages are given best first, must be spans of `text`, and do not overlap. `None` when no word of the query is in
/// them. Takes time linear in the length of the passages.
pub fn answer(
    analyzer: &mut Analyzer,
    query: &QueryTerms,
    text: &str,
    passages: &[Span],
) -> Option<Answer> {
    let mut found = Pool::new(query);
    for (area, (region, rank)) in regions(text, passages).into_iter().enumerate() {
        found.areas.push(rank);
        for (index, line) in whole_sentences(region.of(text)).into_iter().enumerate() {
            found.add(
                analyzer,
                Place {
                    area,
                    index,
                    telling: 1.0,
                },
                "",
                &line,
            );
        }
    }
    found.summary(separator)
}

/// The leaves of a JSON object or array that answer the query, as `key: value`. `None` when no word of the query is in
/// it, or when it is no such text.
///
/// Takes time linear in the length of the text.
pub fn answer_json(analyzer: &mut Analyzer, query: &QueryTerms, text: &str) -> Option<Answer> {
    let mut found = Pool::new(query);
    for (index, leaf) in json::leaves(text)?.into_iter().enumerate() {
        while found.areas.len() <= leaf.line {
            found.areas.push(found.areas.len());
        }
        let (key, telling) = (leaf.key(), leaf.telling());
        let place = Place {
            area: leaf.line,
            index,
            telling,
        };
        for sentence in whole_sentences(&leaf.value) {
            found.add(analyzer, place, &key, &sentence);
        }
    }
    let summary = found.summary(|_| "; ")?.summary;
    Some(Answer {
        summary,
        core: None,
    })
}

/// Passages in text order, those side by side as one, each with the rank of its best.
fn regions(text: &str, passages: &[Span]) -> Vec<(Span, usize)> {
    let mut ranked: Vec<(Span, usize)> = passages.iter().copied().zip(0..).collect();
    ranked.sort_unstable();
    let mut regions: Vec<(Span, usize)> = Vec::with_capacity(ranked.len());
    for (span, rank) in ranked {
        if let Some((last, best)) = regions.last_mut()
            && text[last.end as usize..span.start as usize]
                .trim()
                .is_empty()
        {
            last.end = span.end;
            *best = rank.min(*best);
        } else {
            regions.push((span, rank));
        }
    }
    regions
}

/// The sentences of a text, each on one line and without marks of lists. One that ends inside a quotation or a path goes
/// on with the next; no other protected part has the end of a sentence in it.
fn whole_sentences(text: &str) -> Vec<String> {
    let mut quoted = if text.contains(QUOTATION_MARKS) || text.contains('/') {
        protected(text)
    } else {
        Vec::new()
    }
    .into_iter()
    .map(|part| part.span)
    .peekable();
    let mut whole: Vec<Span> = Vec::new();
    let mut goes_on = false;
    for sentence in sentences(text) {
        match whole.last_mut() {
            Some(last) if goes_on => last.end = sentence.end,
            _ => whole.push(sentence),
        }
        while quoted.next_if(|span| span.end <= sentence.end).is_some() {}
        goes_on = quoted.peek().is_some_and(|span| span.start < sentence.end);
    }
    whole
        .into_iter()
        .map(|span| one_line(without_marker(span.of(text))))
        .filter(|line| line.contains(char::is_alphanumeric))
        .collect()
}

/// Where a candidate stands.
#[derive(Clone, Copy)]
struct Place {
    /// The passages side by side, or the line of JSON.
    area: usize,
    /// Neighbours differ by one.
    index: usize,
    /// How much it says by itself; 0 for what says nothing away from its area.
    telling: f64,
}

impl Place {
    /// How far it is from another: what stands in the same area is nearer than all else, and what follows nearer than
    /// what precedes.
    fn distance(self, from: Place) -> (bool, Reverse<Ordered>, usize, bool) {
        let elsewhere = self.area != from.area;
        let telling = if elsewhere { self.telling } else { 0.0 };
        (
            elsewhere,
            Reverse(Ordered(telling)),
            self.index.abs_diff(from.index),
            self.index < from.index,
        )
    }
}

/// A sentence, or a part of a long one.
struct Part {
    place: Place,
    text: String,
    /// The terms of the query in it.
    terms: u64,
    /// With what separates it from others; counted when it is first needed.
    tokens: Option<u32>,
}

impl Part {
    fn tokens(&mut self) -> u32 {
        *self.tokens.get_or_insert_with(|| {
            // As it stands after another one.
            ENCODING.count(&format!(" {}", self.text)) + SEPARATOR_TOKENS
        })
    }
}

/// All candidates of a text, in its order.
struct Pool<'q> {
    query: &'q QueryTerms,
    parts: Vec<Part>,
    /// The rank of each area, best first.
    areas: Vec<usize>,
    seen: HashSet<String>,
}

impl<'q> Pool<'q> {
    fn new(query: &'q QueryTerms) -> Self {
        Self {
            query,
            parts: Vec::new(),
            areas: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Adds a sentence after its `key`, in parts if it is long.
    fn add(&mut self, analyzer: &mut Analyzer, place: Place, key: &str, line: &str) {
        let is_long = |line: &str| {
            line.len() > SENTENCE_BYTES && ENCODING.count_within(line, SENTENCE_TOKENS).is_none()
        };
        let text = format!("{key}{line}");
        if is_long(&text) {
            for part in parts(line, PART_TOKENS) {
                let text = finished(&line[part.clone()], part.start > 0, part.end < line.len());
                self.push(analyzer, place, format!("{key}{text}"));
            }
        } else {
            self.push(analyzer, place, text);
        }
    }

    fn push(&mut self, analyzer: &mut Analyzer, place: Place, text: String) {
        if self.seen.insert(text.clone()) {
            let terms = self.query.found(analyzer, &text);
            self.parts.push(Part {
                place,
                text,
                terms,
                tokens: None,
            });
        }
    }

    /// The best answer; none when no part has a word of the query or none of those fits.
    fn summary(&mut self, separator: impl Fn(&str) -> &'static str) -> Option<Answer> {
        let mut room = SUMMARY_TOKENS;
        while room > 0 {
            let chosen = self.cover(room);
            if chosen.is_empty() {
                return None;
            }
            let core = self.joined(&chosen, &separator);
            let tokens = ENCODING.count(&core);
            if tokens <= SUMMARY_TOKENS {
                return Some(match self.filled(chosen, tokens, &separator) {
                    Some(summary) => Answer {
                        summary,
                        core: Some(core),
                    },
                    None => Answer {
                        summary: core,
                        core: None,
                    },
                });
            }
            // Tokens do not quite add up where no space stands between sentences.
            room = room.saturating_sub(tokens - SUMMARY_TOKENS);
        }
        None
    }

    fn joined(&self, chosen: &[usize], separator: &impl Fn(&str) -> &'static str) -> String {
        let chosen: Vec<Candidate> = chosen
            .iter()
            .map(|&at| Candidate {
                order: at,
                text: self.parts[at].text.clone(),
            })
            .collect();
        in_order(&chosen, separator)
    }

    /// The parts that hold the most weight within `room` tokens, as indexes.
    fn cover(&mut self, room: u32) -> Vec<usize> {
        let mut of_area = vec![0; self.areas.len()];
        for part in &self.parts {
            of_area[part.place.area] |= part.terms;
        }
        let mut choices: Vec<Choice> = Vec::new();
        for (at, part) in self.parts.iter_mut().enumerate() {
            if part.terms != 0 && part.tokens() <= room {
                choices.push(Choice {
                    at,
                    terms: part.terms,
                    tokens: part.tokens(),
                });
            }
        }
        // Among equals, parts of the area that has most of the words are preferred: they belong together.
        let weight = |set: u64| Reverse(Ordered(self.query.weight(set)));
        choices.sort_by_cached_key(|choice| {
            let area = self.parts[choice.at].place.area;
            (
                weight(of_area[area]),
                self.areas[area],
                weight(choice.terms),
                choice.tokens,
                choice.at,
            )
        });
        cover(self.query, choices, room)
    }

    /// A summary with neighbours of what was chosen, which has `used` tokens: the nearest first, until it is long enough.
    /// None when it is, or nothing more fits.
    fn filled(
        &mut self,
        mut chosen: Vec<usize>,
        mut used: u32,
        separator: &impl Fn(&str) -> &'static str,
    ) -> Option<String> {
        if used >= LEAST_TOKENS {
            return None;
        }
        let mut summary = None;
        let areas: HashSet<usize> = chosen.iter().map(|&at| self.parts[at].place.area).collect();
        let mut others: Vec<usize> = (0..self.parts.len())
            .filter(|at| {
                let place = self.parts[*at].place;
                !chosen.contains(at) && (place.telling > 0.0 || areas.contains(&place.area))
            })
            .collect();
        others.sort_by_cached_key(|&to| {
            let to = self.parts[to].place;
            let distances = chosen
                .iter()
                .map(|&from| to.distance(self.parts[from].place));
            distances.min()
        });
        for at in others {
            if used + self.parts[at].tokens() > SUMMARY_TOKENS {
                continue;
            }
            chosen.push(at);
            let longer = self.joined(&chosen, separator);
            let tokens = ENCODING.count(&longer);
            if tokens > SUMMARY_TOKENS {
                chosen.pop();
                continue;
            }
            (summary, used) = (Some(longer), tokens);
            if used >= LEAST_TOKENS {
                break;
            }
        }
        summary
    }
}

/// A number in its total order.
#[derive(Clone, Copy)]
struct Ordered(f64);

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A part that may be taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    pub(super) at: usize,
    pub(super) terms: u64,
    pub(super) tokens: u32,
}

/// The choices whose terms weigh most within `room` tokens. Of equal sets the first in the order of `choices` is taken.
pub(super) fn cover(query: &QueryTerms, choices: Vec<Choice>, room: u32) -> Vec<usize> {
    // One with all the terms of another, and no dearer, makes the other needless.
    let mut kept: Vec<Choice> = Vec::new();
    for choice in choices {
        let covers =
            |by: &Choice| by.terms & choice.terms == choice.terms && by.tokens <= choice.tokens;
        if !kept.iter().any(covers) {
            kept.push(choice);
        }
    }
    let mut after = vec![0; kept.len() + 1];
    for at in (0..kept.len()).rev() {
        after[at] = after[at + 1] | kept[at].terms;
    }
    let mut search = Cover {
        query,
        choices: &kept,
        after: &after,
        nodes: MAX_NODES,
        taken: Vec::new(),
        best: Vec::new(),
        most: 0.0,
    };
    search.visit(0, 0, room);
    search.best
}

/// Branch and bound.
struct Cover<'c> {
    query: &'c QueryTerms,
    choices: &'c [Choice],
    /// The terms of each choice and all after it.
    after: &'c [u64],
    nodes: u32,
    taken: Vec<usize>,
    best: Vec<usize>,
    most: f64,
}

impl Cover<'_> {
    fn visit(&mut self, at: usize, covered: u64, room: u32) {
        let weight = self.query.weight(covered);
        if weight > self.most {
            self.most = weight;
            self.best.clone_from(&self.taken);
        }
        if self.nodes == 0 || self.query.weight(covered | self.after[at]) <= self.most {
            return;
        }
        self.nodes -= 1;
        let Some(choice) = self.choices.get(at) else {
            return;
        };
        if choice.tokens <= room && choice.terms & !covered != 0 {
            self.taken.push(choice.at);
            self.visit(at + 1, covered | choice.terms, room - choice.tokens);
            self.taken.pop();
        }
        self.visit(at + 1, covered, room);
    }
}
