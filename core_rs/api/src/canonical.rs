//! Digests by which a repeat is known: of an item, for DUPLICATE, and of a request, for its idempotency key.
//!
//! Both are BLAKE3 of a message's encoding. Fields are encoded in the order of their numbers and maps in the order of
//! their names, so that equal messages have equal bytes.

use prost::Message;
use recalld_proto::v1::WriteItem;

/// Digest of an item whose defaults are filled in, whose tags are sorted and whose `if_version` is taken out, so that
/// two ways of saying the same thing are the same; None when it has a `ttl`, since then it means another expiry with
/// each write.
pub(crate) fn item_digest(item: &WriteItem) -> Option<[u8; 16]> {
    if item.ttl.is_some() {
        return None;
    }
    let digest = blake3::hash(&item.encode_to_vec());
    digest.as_bytes().first_chunk().copied()
}

/// Digest of a request whose idempotency key is taken out. `method` keeps requests of different methods apart.
pub(crate) fn request_digest(method: &str, request: &impl Message) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(method.as_bytes());
    hasher.update(&request.encode_to_vec());
    *hasher.finalize().as_bytes()
}
