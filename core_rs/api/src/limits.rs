//! Every limit of the contract, once. `proto/recalld/v1` states the same numbers; the test below compares the two.

/// Most segments of a namespace.
pub(crate) const MAX_SEGMENTS: usize = 8;
/// Most bytes of a segment.
pub(crate) const MAX_SEGMENT_BYTES: usize = 128;

/// Most items of a write.
pub(crate) const MAX_ITEMS: usize = 1_000;
/// Most bytes of all items of a write, as encoded.
pub(crate) const MAX_ITEMS_BYTES: usize = 16 << 20;
/// Most bytes of a key.
pub(crate) const MAX_KEY_BYTES: usize = 256;
/// Most bytes of a content.
pub(crate) const MAX_CONTENT_BYTES: usize = 1 << 20;
/// Most characters of the name of a kind, which are bytes too.
pub(crate) const MAX_KIND_BYTES: usize = 64;
/// Most bytes of a summary.
pub(crate) const MAX_SUMMARY_BYTES: usize = 2_048;
/// Most tags of a memory.
pub(crate) const MAX_TAGS: usize = 64;
/// Most bytes of a tag.
pub(crate) const MAX_TAG_BYTES: usize = 128;
/// Most names at one level of metadata.
pub(crate) const MAX_METADATA_NAMES: usize = 64;
/// Most bytes of all metadata of a memory, as encoded.
pub(crate) const MAX_METADATA_BYTES: usize = 16 << 10;
/// Most bytes of a name in metadata.
pub(crate) const MAX_NAME_BYTES: usize = 128;
/// Most levels of a value; a value that holds no other has one.
pub(crate) const MAX_VALUE_DEPTH: usize = 16;
/// Most sources of a memory.
pub(crate) const MAX_SOURCES: usize = 16;
/// Most bytes of a source's URI.
pub(crate) const MAX_URI_BYTES: usize = 1_024;
/// Most bytes of a source's session and of its speaker.
pub(crate) const MAX_SPEAKER_BYTES: usize = 256;
/// Most bytes of an origin.
pub(crate) const MAX_ORIGIN_BYTES: usize = 128;
/// Most bytes of an idempotency key.
pub(crate) const MAX_IDEMPOTENCY_KEY_BYTES: usize = 128;
/// Importance of a memory whose writer says nothing.
pub(crate) const DEFAULT_IMPORTANCE: f64 = 0.5;
/// Confidence of a memory whose writer says nothing.
pub(crate) const DEFAULT_CONFIDENCE: f64 = 1.0;

/// Most bytes of a request other than a write or a count of tokens.
pub(crate) const MAX_REQUEST_BYTES: usize = 4 << 20;

/// Most levels of a filter; a single condition has one.
pub(crate) const MAX_FILTER_DEPTH: usize = 16;
/// Most nodes of a filter.
pub(crate) const MAX_FILTER_NODES: usize = 256;
/// Most values of one `in`.
pub(crate) const MAX_IN_VALUES: usize = 1_000;
/// Most bytes of a prefix.
pub(crate) const MAX_PREFIX_BYTES: usize = 128;

/// Most searches of a batch.
pub(crate) const MAX_SEARCHES: usize = 256;

/// Most bytes of a query.
pub(crate) const MAX_QUERY_BYTES: usize = 32 << 10;
/// Most hits of a search.
pub(crate) const MAX_HITS: u32 = 1_000;
/// Hits of a search whose caller says nothing.
pub(crate) const DEFAULT_HITS: u32 = 5;
/// Greatest weight of a part of the score.
pub(crate) const MAX_WEIGHT: f64 = 1_000.0;
/// Weights of relevance, importance and recency, each when its field is unset.
pub(crate) const DEFAULT_WEIGHTS: [f64; 3] = [0.6, 0.3, 0.1];

/// Most memories that a brief considers.
pub(crate) const MAX_BRIEF_MEMORIES: u32 = 256;
/// Memories that a brief considers when its caller says nothing.
pub(crate) const DEFAULT_BRIEF_MEMORIES: u32 = 64;
/// Most tokens of a brief.
pub(crate) const MAX_BUDGET: u32 = 1_000_000;
/// Most tokens of a brief whose caller says nothing.
pub(crate) const DEFAULT_BUDGET: u32 = 1_200;

/// Most sections of a brief.
pub(crate) const MAX_SECTIONS: usize = 16;
/// Most bytes of a section's title.
pub(crate) const MAX_TITLE_BYTES: usize = 128;
/// Most pinned ids and keys of a brief, together.
pub(crate) const MAX_PINNED: usize = 64;

/// Most ids and keys of a get or a delete, together.
pub(crate) const MAX_NAMED: usize = 1_000;

/// Most texts to count.
pub(crate) const MAX_TEXTS: usize = 1_000;
/// Most bytes of all texts to count.
pub(crate) const MAX_TEXTS_BYTES: usize = 16 << 20;

/// Most violations that one error names.
pub(crate) const MAX_VIOLATIONS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    const PROTO: [&str; 4] = [
        include_str!("../../../proto/recalld/v1/types.proto"),
        include_str!("../../../proto/recalld/v1/filter.proto"),
        include_str!("../../../proto/recalld/v1/memory.proto"),
        include_str!("../../../proto/recalld/v1/memory_service.proto"),
    ];

    /// The words of all comments, with the definitions between them.
    fn contract() -> String {
        let words: Vec<&str> = PROTO
            .iter()
            .flat_map(|file| file.split_whitespace())
            .filter(|word| *word != "//")
            .collect();
        words.join(" ")
    }

    fn grouped(n: usize) -> String {
        let digits = n.to_string();
        let groups: Vec<&str> = digits
            .as_bytes()
            .rchunks(3)
            .rev()
            .filter_map(|group| std::str::from_utf8(group).ok())
            .collect();
        groups.join(",")
    }

    fn size(bytes: usize) -> String {
        match bytes {
            _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
            _ if bytes.is_multiple_of(1 << 10) && bytes >= 16 << 10 => {
                format!("{} KiB", bytes >> 10)
            }
            _ => format!("{} bytes", grouped(bytes)),
        }
    }

    #[test]
    fn the_contract_states_the_same_numbers() {
        let [relevance, importance, recency] = DEFAULT_WEIGHTS;
        let weight = grouped(MAX_WEIGHT as usize);
        let statements = [
            format!(
                "Requests other than Write and CountTokens are at most {}",
                size(MAX_REQUEST_BYTES)
            ),
            format!(
                "1 to {MAX_SEGMENTS} segments, each 1 to {} of UTF-8",
                size(MAX_SEGMENT_BYTES)
            ),
            format!(
                "1 to {} items, at most {} in all",
                grouped(MAX_ITEMS),
                size(MAX_ITEMS_BYTES)
            ),
            format!(
                "makes a new version. At most {} of UTF-8",
                size(MAX_KEY_BYTES)
            ),
            format!("1 byte to {} of UTF-8 without NUL", size(MAX_CONTENT_BYTES)),
            format!("or your own (1 to {MAX_KIND_BYTES} of a-z, 0-9, `_`, `-`, `.`)"),
            format!(
                "A summary of your own, at most {}.",
                size(MAX_SUMMARY_BYTES)
            ),
            format!("At most {MAX_TAGS} tags, each 1 to {}", size(MAX_TAG_BYTES)),
            format!(
                "At most {MAX_METADATA_NAMES} at each level, {} in all",
                size(MAX_METADATA_BYTES)
            ),
            format!("Names are 1 to {} of UTF-8", size(MAX_NAME_BYTES)),
            format!("Values nest at most {MAX_VALUE_DEPTH} deep"),
            format!("How much it matters, 0..1. Default {DEFAULT_IMPORTANCE}."),
            format!("How sure it is, 0..1. Default {DEFAULT_CONFIDENCE}."),
            format!("Where it came from, at most {MAX_SOURCES}."),
            format!("tool call. At most {}.", size(MAX_URI_BYTES)),
            format!("task it belongs to. At most {}.", size(MAX_SPEAKER_BYTES)),
            format!("by name or role. At most {}.", size(MAX_SPEAKER_BYTES)),
            format!(
                "for example `agent:planner`. At most {}.",
                size(MAX_ORIGIN_BYTES)
            ),
            format!(
                "is ALREADY_EXISTS. At most {}; empty: none",
                size(MAX_IDEMPOTENCY_KEY_BYTES)
            ),
            format!("at most {MAX_FILTER_DEPTH} deep and {MAX_FILTER_NODES} nodes"),
            format!("one of these values: 1 to {}.", grouped(MAX_IN_VALUES)),
            format!("byte for byte. At most {}.", size(MAX_PREFIX_BYTES)),
            format!("1 to {MAX_SEARCHES} searches, each with"),
            format!("What to look for, at most {}.", size(MAX_QUERY_BYTES)),
            format!(
                "Most hits to return: 1 to {}. Default {DEFAULT_HITS}.",
                grouped(MAX_HITS as usize)
            ),
            format!("Weight of relevance. Default {relevance}; 0 to {weight}."),
            format!("Weight of importance. Default {importance}; 0 to {weight}."),
            format!("Weight of recency. Default {recency}; 0 to {weight}."),
            format!("to consider: 1 to {MAX_BRIEF_MEMORIES}. Default {DEFAULT_BRIEF_MEMORIES}."),
            format!("What the brief is for, at most {}.", size(MAX_QUERY_BYTES)),
            format!(
                "all of it counted: 1 to {}. Default {}.",
                grouped(MAX_BUDGET as usize),
                grouped(DEFAULT_BUDGET as usize)
            ),
            format!("headings, in this order; at most {MAX_SECTIONS}."),
            format!("The heading: 1 to {} on one line.", size(MAX_TITLE_BYTES)),
            format!("before `pinned_keys`; at most {MAX_PINNED} in all."),
            format!(
                "At least one id or key; at most {} in all",
                grouped(MAX_NAMED)
            ),
            format!(
                "Ids to delete, at most {} together with `keys`",
                grouped(MAX_NAMED)
            ),
            format!(
                "The texts, 1 to {}, at most {} in all",
                grouped(MAX_TEXTS),
                size(MAX_TEXTS_BYTES)
            ),
        ];
        let contract = contract();
        for statement in statements {
            assert!(
                contract.contains(&statement),
                "the contract does not say: {statement}"
            );
        }
    }
}
