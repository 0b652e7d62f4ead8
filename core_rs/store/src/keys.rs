//! How keys are built. The layouts are those of `schema`.

use crate::ids::{MemoryId, Micros, NamespaceId, Position, Row};

/// Key of the store's identity in `meta`.
pub const META_IDENTITY: &[u8] = b"identity";
/// Key of the last applied position in `meta`.
pub const META_POSITION: &[u8] = b"position";
/// Key of the next namespace number in `meta`.
pub const META_NEXT_NAMESPACE: &[u8] = b"next_namespace";

/// Key of the number of live memories in `meta`.
pub const META_MEMORIES: &[u8] = b"memories";

/// Longest term that is kept as it is; the analysis makes none longer.
pub const MAX_TERM_BYTES: usize = 64;

/// Longest text value of an attribute that is indexed whole; see [`attribute`].
pub const MAX_ATTRIBUTE_BYTES: usize = 128;

/// `journal`.
pub fn position(position: Position) -> [u8; 8] {
    position.0.to_be_bytes()
}

/// `namespaces`: each segment (at most 128 bytes) with its length before it, so that no path looks like another. A path
/// too long for a key of LMDB is a byte that is no length, and its hash.
pub fn path<S: AsRef<str>>(segments: &[S]) -> Vec<u8> {
    let mut key = Vec::with_capacity(segments.iter().map(|s| s.as_ref().len() + 1).sum());
    for segment in segments {
        key.push(segment.as_ref().len() as u8);
        key.extend_from_slice(segment.as_ref().as_bytes());
    }
    if key.len() > MAX_PATH_BYTES {
        let hash = blake3::hash(&key);
        key.clear();
        key.push(CUT);
        key.extend_from_slice(hash.as_bytes());
    }
    key
}

/// Longest path that is a key as it is.
const MAX_PATH_BYTES: usize = 500;

/// Stands before the hash of what was cut. No length of a segment and no byte of UTF-8 has this value, and it sorts
/// after all of them.
const CUT: u8 = 0xff;

/// The prefix of everything in a namespace; the key of `namespace_states`.
pub fn namespace(ns: NamespaceId) -> [u8; 4] {
    ns.0.to_be_bytes()
}

/// `headers`, `records`, `contents` by document; `rows`, `vectors` by block.
pub fn numbered(ns: NamespaceId, number: u32) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&ns.0.to_be_bytes());
    key[4..].copy_from_slice(&number.to_be_bytes());
    key
}

/// `keys`, `digests`: a namespace and any bytes.
pub fn named(ns: NamespaceId, name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(4 + name.len());
    key.extend_from_slice(&ns.0.to_be_bytes());
    key.extend_from_slice(name);
    key
}

/// `ids`; the prefix of a memory in `versions`.
pub fn id(ns: NamespaceId, id: MemoryId) -> [u8; 20] {
    let mut key = [0; 20];
    key[..4].copy_from_slice(&ns.0.to_be_bytes());
    key[4..].copy_from_slice(&id.0);
    key
}

/// `versions`.
pub fn version(ns: NamespaceId, memory: MemoryId, version: u32) -> [u8; 24] {
    let mut key = [0; 24];
    key[..20].copy_from_slice(&id(ns, memory));
    key[20..].copy_from_slice(&version.to_be_bytes());
    key
}

/// Bytes of [`instant`].
pub const INSTANT_BYTES: usize = 8;

/// An instant whose bytes sort like the instant.
pub fn instant(at: Micros) -> [u8; 8] {
    (at.0 as u64 ^ 1 << 63).to_be_bytes()
}

/// The instant of [`instant`].
pub fn read_instant(bytes: [u8; 8]) -> Micros {
    Micros((u64::from_be_bytes(bytes) ^ 1 << 63) as i64)
}

/// `expiry`.
pub fn expiry(ns: NamespaceId, at: Micros, doc: Row) -> [u8; 16] {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&ns.0.to_be_bytes());
    key[4..12].copy_from_slice(&instant(at));
    key[12..].copy_from_slice(&doc.0.to_be_bytes());
    key
}

/// The instant and document of a key of `expiry`.
pub fn read_expiry(key: &[u8]) -> Option<(Micros, Row)> {
    let at = key.get(4..12)?.try_into().ok()?;
    let doc = key.get(12..16)?.try_into().ok()?;
    Some((read_instant(at), Row(u32::from_be_bytes(doc))))
}

/// Bytes that are kept of a hash: 128 bits, so that two texts never share one.
const HASH_BYTES: usize = 16;

/// `outcomes`: the hash of the namespace's path and the idempotency key. By path and not by number, because a delete
/// in a namespace that does not exist is answered, and remembered, without making it.
pub fn outcome<S: AsRef<str>>(segments: &[S], idempotency_key: &str) -> Vec<u8> {
    let hash = blake3::hash(&path(segments));
    let mut key = Vec::with_capacity(HASH_BYTES + idempotency_key.len());
    key.extend_from_slice(&hash.as_bytes()[..HASH_BYTES]);
    key.extend_from_slice(idempotency_key.as_bytes());
    key
}

/// `outcome_times`: when, and the key of the outcome.
pub fn outcome_time(at: Micros, outcome: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(INSTANT_BYTES + outcome.len());
    key.extend_from_slice(&instant(at));
    key.extend_from_slice(outcome);
    key
}

/// The prefix of a term's blocks in `postings`. Unambiguous, since the term has its length before it.
pub fn term(ns: NamespaceId, term: &str) -> Vec<u8> {
    debug_assert!(term.len() <= MAX_TERM_BYTES, "the analysis bounds terms");
    let mut key = Vec::with_capacity(4 + 1 + term.len() + 4);
    key.extend_from_slice(&ns.0.to_be_bytes());
    key.push(term.len() as u8);
    key.extend_from_slice(term.as_bytes());
    key
}

/// `postings`.
pub fn postings(ns: NamespaceId, of: &str, first: Row) -> Vec<u8> {
    let mut key = term(ns, of);
    key.extend_from_slice(&first.0.to_be_bytes());
    key
}

/// The row at the end of a key (`postings`), or the block of a key of `rows` and `vectors`.
pub fn trailing_number(key: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*key.last_chunk::<4>()?))
}

/// The prefix of a field in `attributes`: names are at most 255 bytes.
pub fn field(ns: NamespaceId, name: &str) -> Vec<u8> {
    let name = bounded(name.as_bytes(), MAX_FIELD_BYTES);
    let mut key = Vec::with_capacity(4 + 1 + name.len());
    key.extend_from_slice(&ns.0.to_be_bytes());
    key.push(name.len() as u8);
    key.extend_from_slice(&name);
    key
}

const MAX_FIELD_BYTES: usize = 200;

/// Bytes longer than `limit` are cut there and followed by a mark and a hash of the whole: equal stays equal, and all
/// that is cut sorts after the bytes it begins with.
fn bounded(bytes: &[u8], limit: usize) -> std::borrow::Cow<'_, [u8]> {
    if bytes.len() <= limit {
        return bytes.into();
    }
    let mut cut = bytes[..limit].to_vec();
    cut.push(CUT);
    cut.extend_from_slice(&blake3::hash(bytes).as_bytes()[..HASH_BYTES]);
    cut.into()
}

/// A value of a field in `attributes`, without the chunk: the field's prefix, the value's ordered bytes, and a zero
/// byte that ends them. Text is cut at [`MAX_ATTRIBUTE_BYTES`] as [`field`] names are.
pub fn attribute(ns: NamespaceId, name: &str, value: &[u8]) -> Vec<u8> {
    let mut key = field(ns, name);
    key.extend_from_slice(&bounded(value, 1 + MAX_ATTRIBUTE_BYTES));
    key.push(0);
    key
}

/// `attributes`: a value's prefix and the chunk of documents.
pub fn chunk(attribute: &[u8], chunk: u16) -> Vec<u8> {
    let mut key = Vec::with_capacity(attribute.len() + 2);
    key.extend_from_slice(attribute);
    key.extend_from_slice(&chunk.to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn long_paths_fit_and_differ(a in proptest::collection::vec("[ab]{100,128}", 5..9), b in proptest::collection::vec("[ab]{100,128}", 5..9)) {
            prop_assert!(path(&a).len() <= 511);
            prop_assert_eq!(path(&a) == path(&b), a == b);
        }

        #[test]
        fn cut_values_sort_after_what_they_begin_with(text in "[a-c]{129,140}", other in "[a-c]{0,128}") {
            let key = |value: &str| attribute(NamespaceId(1), "f", &[&[3], value.as_bytes()].concat());
            prop_assert_eq!(key(&text).cmp(&key(&other)), text.as_bytes().cmp(other.as_bytes()));
        }

        #[test]
        fn paths_of_different_segments_differ_and_none_is_a_prefix_path(
            a in proptest::collection::vec("[a-c]{1,3}", 1..4),
            b in proptest::collection::vec("[a-c]{1,3}", 1..4),
        ) {
            prop_assert_eq!(path(&a) == path(&b), a == b);
            let joined = path(&a);
            if path(&b).starts_with(&joined) {
                prop_assert_eq!(&b[..a.len()], &a[..]);
            }
        }

        #[test]
        fn instants_sort_like_numbers(a: i64, b: i64) {
            prop_assert_eq!(instant(Micros(a)).cmp(&instant(Micros(b))), a.cmp(&b));
            prop_assert_eq!(read_instant(instant(Micros(a))), Micros(a));
        }

        #[test]
        fn terms_are_not_prefixes_of_one_another(a in "[a-b]{1,4}", b in "[a-b]{1,4}") {
            let (x, y) = (term(NamespaceId(7), &a), term(NamespaceId(7), &b));
            prop_assert_eq!(x.starts_with(&y), a == b);
        }

        #[test]
        fn keys_fit_lmdb(name in "\\PC{1,400}", value in proptest::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(chunk(&attribute(NamespaceId(1), &name, &value), 9).len() <= 511);
        }

        #[test]
        fn expiry_reads_back(at: i64, doc: u32) {
            let key = expiry(NamespaceId(3), Micros(at), Row(doc));
            prop_assert_eq!(read_expiry(&key), Some((Micros(at), Row(doc))));
        }
    }
}
