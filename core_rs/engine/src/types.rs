//! What the engine is asked and what it answers: the domain's own types, already validated at the door.

use std::collections::BTreeMap;
use std::time::Duration;

use recalld_algo::score::Weights;
use recalld_counters::Counter;
use recalld_proto::v1::{Source, Value};
use recalld_store::ids::{MemoryId, Micros};

use crate::explain::Explanation;
use crate::filter::Filter;
use crate::token::Token;

/// Segments of a namespace: 1 to 8, each 1 to 128 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(pub Vec<String>);

/// When a memory expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// As its kind does.
    ByKind,
    /// So long after the write.
    After(Duration),
    /// At this instant.
    At(Micros),
}

/// A memory to write. All limits of the contract hold.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMemory {
    /// Empty: none.
    pub key: String,
    /// Not empty.
    pub content: String,
    /// True: the content is one JSON document.
    pub json: bool,
    /// Never empty.
    pub kind: String,
    /// Empty: to be computed.
    pub summary: String,
    /// Sorted, without repeats.
    pub tags: Vec<String>,
    /// Name to value.
    pub metadata: BTreeMap<String, Value>,
    /// 0..1.
    pub importance: f64,
    /// 0..1.
    pub confidence: f64,
    /// None: the time of the write.
    pub occurred_at: Option<Micros>,
    /// When it expires.
    pub expiry: Expiry,
    /// In the order given.
    pub sources: Vec<Source>,
    /// The caller's own embedding.
    pub vector: Option<Vec<f32>>,
    /// Version that must be current; 0: the key must not exist.
    pub if_version: Option<u64>,
    /// Empty: none.
    pub origin: String,
    /// Digest of the item's canonical form, by which a repeat is known; None: never a duplicate.
    pub digest: Option<[u8; 16]>,
}

/// The repeatable identity of a mutating request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The caller's key.
    pub key: String,
    /// Digest of the request without its key.
    pub digest: [u8; 32],
}

/// A request to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// Where.
    pub namespace: Namespace,
    /// Not empty; a key stands only once.
    pub items: Vec<NewMemory>,
    /// None: the call is not repeatable.
    pub idempotency: Option<Idempotency>,
    /// Who asks.
    pub actor: String,
}

/// What a write did with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// New.
    Stored,
    /// A new version of the key.
    Updated,
    /// There already.
    Duplicate,
}

/// What happened to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// What happened.
    pub outcome: Outcome,
    /// The memory.
    pub id: MemoryId,
    /// Its current version.
    pub version: u64,
    /// Tokens of the content in `o200k_base`.
    pub content_tokens: u32,
}

/// The answer to a write.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// One an item, in order.
    pub receipts: Vec<Receipt>,
    /// State that holds the write.
    pub token: Token,
}

/// Which memories a search may return.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// The filter; None: all.
    pub filter: Option<Filter>,
    /// One of these kinds; empty: all.
    pub kinds: Vec<String>,
    /// All of these tags.
    pub tags: Vec<String>,
    /// First instant of `occurred_at` inside.
    pub occurred_from: Option<Micros>,
    /// First instant of `occurred_at` outside.
    pub occurred_before: Option<Micros>,
}

/// What a search and a brief have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Words; empty: none.
    pub text: String,
    /// The meaning, when the caller has an embedding of its own.
    pub vector: Option<Vec<f32>>,
    /// Most memories, at least 1.
    pub limit: usize,
    /// Which memories may be returned.
    pub selection: Selection,
    /// Least score, 0..1.
    pub min_score: f64,
    /// Least relevance, 0..1.
    pub min_relevance: f64,
    /// How the parts of the score are weighed.
    pub weights: Weights,
    /// Half-lives that differ from the kinds' own.
    pub half_lives: BTreeMap<String, Duration>,
    /// Whether hits are to say how their scores came about, and arms what was planned.
    pub explain: bool,
    /// The time to spend; None: the deadline alone.
    pub latency_budget: Option<Duration>,
    /// The state that the answer must hold.
    pub at_least: Option<Token>,
}

/// A hit.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The memory.
    pub id: MemoryId,
    /// Its key; empty: none.
    pub key: String,
    /// Its kind.
    pub kind: String,
    /// 0..1.
    pub score: f64,
    /// 0..1.
    pub relevance: f64,
    /// One line.
    pub summary: String,
    /// When what it tells happened.
    pub occurred_at: Micros,
    /// Tokens of the content in `o200k_base`.
    pub content_tokens: u32,
    /// Its version.
    pub version: u64,
    /// Sorted.
    pub tags: Vec<String>,
    /// Its relevance lies under the threshold.
    pub weak: bool,
    /// Older memories that say the same, newest first.
    pub duplicates: Vec<MemoryId>,
    /// When it was asked for.
    pub explanation: Option<Explanation>,
}

/// What an arm of the search did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// `dense` or `lexical`.
    pub name: &'static str,
    /// Memories it proposed.
    pub candidates: u32,
    /// `scan`, `filtered_scan`, `hnsw` or `bm25`.
    pub method: &'static str,
    /// The ways of looking that were open; empty unless the search is explained.
    pub plan: Vec<PlannedMethod>,
}

/// A way of looking that an arm could have taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedMethod {
    /// As in [`Arm`].
    pub method: &'static str,
    /// In vectors compared in the order in which they lie.
    pub cost: u64,
}

/// An arm that could not take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Degradation {
    /// The arm, or `words`: the comparison of the best candidates with the query word by word.
    pub arm: &'static str,
    /// `no_query`, `no_known_words` or `deadline`.
    pub reason: &'static str,
}

/// The answer to a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Best first; ties by id.
    pub hits: Vec<Hit>,
    /// What took part.
    pub arms: Vec<Arm>,
    /// What did not.
    pub degraded: Vec<Degradation>,
    /// The instant from which ages are measured.
    pub now: Micros,
    /// The state that was searched.
    pub token: Token,
}

/// A request for full memories. At least one id or key.
#[derive(Debug, Clone, PartialEq)]
pub struct Get {
    /// Where.
    pub namespace: Namespace,
    /// By id.
    pub ids: Vec<MemoryId>,
    /// By key.
    pub keys: Vec<String>,
    /// Cut contents to so many tokens.
    pub max_tokens: Option<u32>,
    /// By which tokens are counted.
    pub counter: Counter,
    /// The version wanted; None: the current one.
    pub version: Option<u64>,
    /// The state that the answer must hold.
    pub at_least: Option<Token>,
}

/// A memory in full.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    /// The memory.
    pub id: MemoryId,
    /// Everything but the content.
    pub record: recalld_proto::storage::v1::Record,
    /// The content, cut when asked.
    pub content: String,
    /// Tokens of the full content by the counter asked for.
    pub content_tokens: u32,
    /// True when the content was cut.
    pub truncated: bool,
}

/// The answer to a get.
#[derive(Debug, Clone, PartialEq)]
pub struct Details {
    /// First those by id, then those by key, each in the order asked.
    pub found: Vec<Detail>,
    /// Ids that do not exist.
    pub missing_ids: Vec<MemoryId>,
    /// Keys that do not exist.
    pub missing_keys: Vec<String>,
    /// The state that was read.
    pub token: Token,
}

/// A request to delete. At least one id, key or a filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// Where.
    pub namespace: Namespace,
    /// By id.
    pub ids: Vec<MemoryId>,
    /// By key.
    pub keys: Vec<String>,
    /// By filter.
    pub filter: Option<Filter>,
    /// Version that must be current, with exactly one id or key.
    pub if_version: Option<u64>,
    /// Only count.
    pub dry_run: bool,
    /// None: the call is not repeatable.
    pub idempotency: Option<Idempotency>,
    /// Who asks.
    pub actor: String,
}

/// The answer to a delete.
#[derive(Debug, Clone, PartialEq)]
pub struct Deleted {
    /// Memories.
    pub deleted: u64,
    /// Versions, the current ones included.
    pub deleted_versions: u64,
    /// Ids that did not exist.
    pub missing_ids: Vec<MemoryId>,
    /// Keys that did not exist.
    pub missing_keys: Vec<String>,
    /// State without them.
    pub token: Token,
}

/// A request for a brief.
#[derive(Debug, Clone, PartialEq)]
pub struct Brief {
    /// Where.
    pub namespace: Namespace,
    /// What for.
    pub query: Query,
    /// Most tokens of the text.
    pub budget: u32,
    /// By which they are counted.
    pub counter: Counter,
    /// How the text is written.
    pub format: BriefFormat,
    /// With different titles; empty: one part without a heading.
    pub sections: Vec<Section>,
    /// Without repeats.
    pub pinned_ids: Vec<MemoryId>,
    /// Without repeats.
    pub pinned_keys: Vec<String>,
}

/// How a brief is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BriefFormat {
    /// List items between two tags.
    #[default]
    Markdown,
    /// One object.
    Json,
    /// One element.
    Xml,
}

/// A part of a brief under a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// On one line.
    pub title: String,
    /// Of the memories that stand here; empty: all that no section before takes.
    pub kinds: Vec<String>,
    /// Most tokens, the heading included; None: only the budget bounds it.
    pub max_tokens: Option<u32>,
}

/// The form in which a brief carries a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The content.
    Full,
    /// The passages that fit the query best.
    Passages,
    /// The sentences that answer the query, or the stored summary.
    Summary,
    /// The stored summary's beginning.
    Headline,
}

/// A memory that a brief carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Included {
    /// The memory.
    pub id: MemoryId,
    /// Its key; empty: none.
    pub key: String,
    /// Its version.
    pub version: u64,
    /// The form.
    pub form: Form,
    /// Tokens of its lines.
    pub tokens: u32,
    /// The mark in the text.
    pub citation: String,
    /// The title of its section; empty: none.
    pub section: String,
    /// The request named it.
    pub pinned: bool,
    /// Its relevance lies under the store's threshold.
    pub weak: bool,
}

/// Why a memory is not in a brief.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omission {
    /// Others were worth more.
    Budget,
    /// The same text is there.
    Duplicate,
    /// No section takes its kind.
    Section,
    /// It was pinned and does not exist.
    NotFound,
}

/// A memory that a brief leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// The memory; None: a pinned key that does not exist.
    pub id: Option<MemoryId>,
    /// Its key; empty: none.
    pub key: String,
    /// Why.
    pub reason: Omission,
    /// Tokens of its smallest form.
    pub tokens: u32,
}

impl Omitted {
    /// A pinned memory that does not exist.
    pub(crate) fn missing(id: Option<MemoryId>, key: &str) -> Self {
        Self {
            id,
            key: key.to_owned(),
            reason: Omission::NotFound,
            tokens: 0,
        }
    }
}

/// The answer to a brief.
#[derive(Debug, Clone, PartialEq)]
pub struct Briefed {
    /// Empty when there is nothing to say.
    pub text: String,
    /// Never over the budget.
    pub tokens: u32,
    /// In the order of the text.
    pub included: Vec<Included>,
    /// Best first.
    pub omitted: Vec<Omitted>,
    /// Names the text.
    pub fingerprint: String,
    /// What did not take part in the search.
    pub degraded: Vec<Degradation>,
    /// The state that was read.
    pub token: Token,
}

/// Counts of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreStats {
    /// Hexadecimal.
    pub store_id: String,
    /// Of the data directory.
    pub format_version: u32,
    /// Its name.
    pub embedder: String,
    /// Its fingerprint.
    pub embedder_fingerprint: String,
    /// Of a vector.
    pub dimensions: u32,
    /// Operations applied.
    pub position: u64,
    /// Namespaces ever written to.
    pub namespaces: u64,
    /// Live memories.
    pub memories: u64,
    /// Bytes of the data file in use.
    pub bytes_used: u64,
}

/// Counts of a namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamespaceStats {
    /// Live memories.
    pub memories: u64,
    /// Versions kept.
    pub versions: u64,
    /// Passages of live memories.
    pub passages: u64,
    /// Tokens of live contents.
    pub content_tokens: u64,
    /// Passages in the approximate index.
    pub indexed_passages: u64,
}
