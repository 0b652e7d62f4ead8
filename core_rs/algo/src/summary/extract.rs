//! Choosing the sentences of a summary.

use std::collections::{HashMap, HashSet};

use super::cut::{cut, one_line};
use super::{Candidate, ENCODING, SUMMARY_TOKENS, joined};
use crate::passages::sentences;
use crate::protect::protected;
use crate::terms::Analyzer;

/// A sentence is cut to this if it would be all of the summary otherwise.
const SENTENCE_TOKENS: u32 = 60;
/// A summary shorter than this takes a part of one more sentence.
const LEAST_TOKENS: u32 = 30;
/// As many sentences as are compared with each other, the best by themselves.
const MAX_COMPARED: usize = 64;
/// What a separator may cost.
const SEPARATOR_TOKENS: u32 = 1;
/// Added to the length of a sentence, so that very short ones are not the densest.
const LENGTH_OFFSET: f64 = 8.0;
/// What is left of the weight of a term that the summary has already.
const REPEATED_TERM: f64 = 0.15;
/// The weight of a protected part, that of a term that occurs once; at most four count.
const PROTECTED_WEIGHT: f64 = 0.7;
const MAX_PROTECTED_COUNTED: usize = 4;

struct Sentence {
    order: usize,
    text: String,
    tokens: u32,
    /// Indexes of the distinct terms.
    terms: Vec<usize>,
    protected: f64,
    /// How far its place and its form speak for it; 1 for most.
    factor: f64,
}

impl Sentence {
    /// What the sentence adds to a summary, by length.
    fn density(&self, weights: &[f64]) -> f64 {
        let value: f64 = self.terms.iter().map(|&term| weights[term]).sum::<f64>() + self.protected;
        value * self.factor / (f64::from(self.tokens) + LENGTH_OFFSET)
    }
}

/// A summary of whole sentences of `text`; none if it has no words.
pub(super) fn summary(text: &str) -> Option<String> {
    let (mut candidates, mut weights) = read(text);
    let first_order = candidates.first()?.order;
    // The most telling by themselves and the first, which often says what the text is about.
    let mut densities: Vec<(f64, usize)> = candidates
        .iter()
        .enumerate()
        .map(|(index, sentence)| (sentence.density(&weights), index))
        .collect();
    densities.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let compared: HashSet<usize> = densities
        .iter()
        .take(MAX_COMPARED)
        .map(|&(_, index)| candidates[index].order)
        .collect();
    candidates
        .retain(|sentence| sentence.order == first_order || compared.contains(&sentence.order));

    let mut chosen: Vec<Candidate> = Vec::new();
    let mut used = 0;
    while !candidates.is_empty() {
        let room = SUMMARY_TOKENS.saturating_sub(used + SEPARATOR_TOKENS);
        let best = |candidates: &[Sentence], fits: &dyn Fn(&Sentence) -> bool| {
            (0..candidates.len())
                .filter(|&index| fits(&candidates[index]))
                .map(|index| (candidates[index].density(&weights), index))
                .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
                .map(|(_, index)| index)
        };
        let index = match best(&candidates, &|sentence| sentence.tokens <= room) {
            Some(index) => index,
            None if used < LEAST_TOKENS => {
                let Some(index) = best(&candidates, &|_| true) else {
                    break;
                };
                candidates[index].text = cut(&candidates[index].text, room);
                index
            }
            None => break,
        };
        let sentence = candidates.remove(index);
        used += ENCODING.count(&sentence.text) + SEPARATOR_TOKENS;
        for term in sentence.terms {
            weights[term] *= REPEATED_TERM;
        }
        chosen.push(Candidate {
            order: sentence.order,
            text: sentence.text,
        });
    }
    joined(chosen, separator)
}

/// The sentences of `text` that have words, without repetitions, and the weights of their terms.
fn read(text: &str) -> (Vec<Sentence>, Vec<f64>) {
    let mut analyzer = Analyzer::new();
    let mut numbers: HashMap<Box<str>, usize> = HashMap::new();
    let mut frequencies: Vec<u32> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    let mut candidates: Vec<Sentence> = Vec::new();
    for (order, span) in sentences(text).into_iter().enumerate() {
        let line = one_line(without_marker(span.of(text)));
        if !line.contains(char::is_alphanumeric) || !seen.insert(line.clone()) {
            continue;
        }
        let mut terms = Vec::new();
        for (term, count) in analyzer.counts(&line) {
            let number = *numbers.entry(term).or_insert(frequencies.len());
            if number == frequencies.len() {
                frequencies.push(0);
            }
            frequencies[number] += count;
            terms.push(number);
        }
        let text = if ENCODING
            .count_within(&line, SUMMARY_TOKENS - SEPARATOR_TOKENS)
            .is_some()
        {
            line
        } else {
            cut(&line, SENTENCE_TOKENS)
        };
        candidates.push(Sentence {
            order,
            tokens: ENCODING.count(&text),
            protected: protected(&text).len().min(MAX_PROTECTED_COUNTED) as f64 * PROTECTED_WEIGHT,
            factor: completeness(&text, terms.len()),
            text,
            terms,
        });
    }
    // What opens a text often says what it is about, and what closes it what came of it.
    if let Some(last) = candidates.last_mut() {
        last.factor *= 1.15;
    }
    if let Some(second) = candidates.get_mut(1) {
        second.factor *= 1.15;
    }
    if let Some(first) = candidates.first_mut() {
        first.factor *= 1.5;
    }
    let weights = frequencies
        .iter()
        .map(|&frequency| libm::log1p(f64::from(frequency)))
        .collect();
    (candidates, weights)
}

/// A line without the mark of a list item, a heading or a quotation.
pub(super) fn without_marker(line: &str) -> &str {
    let bare = line.trim_start_matches(['#', '>', '*', '-', '+', '•', '·']);
    if bare.len() < line.len() && bare.starts_with(char::is_whitespace) {
        bare
    } else {
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let item = number
            .strip_prefix(['.', ')'])
            .filter(|item| item.starts_with(char::is_whitespace));
        item.filter(|_| (1..=3).contains(&(line.len() - number.len())))
            .unwrap_or(line)
    }
}

/// Less than 1 for what cannot stand alone: a fragment, and a line that announces the next.
fn completeness(line: &str, terms: usize) -> f64 {
    let fragment = if terms < 3 { 0.4 } else { 1.0 };
    let announcement = if line.ends_with([':', '：']) {
        0.6
    } else {
        1.0
    };
    fragment * announcement
}

/// What stands between two sentences: nothing after a CJK mark, and a semicolon after a line without a mark.
pub(super) fn separator(before: &str) -> &'static str {
    let end = before
        .trim_end_matches(['"', '\'', ')', ']', '”', '’', '」', '』', '）'])
        .chars()
        .next_back()
        .unwrap_or(' ');
    match end {
        '。' | '！' | '？' | '；' | '，' | '：' => "",
        '.' | '!' | '?' | '…' | ';' | ',' | ':' => " ",
        _ => "; ",
    }
}
