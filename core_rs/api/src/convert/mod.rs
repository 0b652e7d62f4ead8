//! Answers of the engine as messages of the contract.

mod brief;
mod search;

use std::time::Duration;

use recalld_engine::types::{Degradation, Deleted, Detail, Details, Outcome, Written};
use recalld_proto::v1;
use recalld_store::ids::{MemoryId, Micros};

pub(crate) use brief::briefed;
pub(crate) use search::{found, result, why_not};

const MICROS_PER_SECOND: i64 = 1_000_000;

pub(crate) fn written(answer: &Written) -> v1::WriteResponse {
    let receipts = answer.receipts.iter().map(|receipt| v1::Receipt {
        outcome: match receipt.outcome {
            Outcome::Stored => v1::WriteOutcome::Stored,
            Outcome::Updated => v1::WriteOutcome::Updated,
            Outcome::Duplicate => v1::WriteOutcome::Duplicate,
        }
        .into(),
        id: receipt.id.to_string(),
        version: receipt.version,
        content_tokens: receipt.content_tokens,
    });
    v1::WriteResponse {
        receipts: receipts.collect(),
        token: answer.token.to_string(),
    }
}

fn degraded(arms: &[Degradation]) -> Vec<v1::Degradation> {
    let degraded = arms.iter().map(|degradation| v1::Degradation {
        arm: degradation.arm.to_owned(),
        reason: degradation.reason.to_owned(),
    });
    degraded.collect()
}

pub(crate) fn details(answer: Details) -> v1::GetResponse {
    v1::GetResponse {
        memories: answer.found.into_iter().map(memory).collect(),
        missing_ids: ids(&answer.missing_ids),
        missing_keys: answer.missing_keys,
        token: answer.token.to_string(),
    }
}

fn memory(detail: Detail) -> v1::Memory {
    let record = detail.record;
    let metadata = record
        .metadata
        .into_iter()
        .map(|attribute| (attribute.name, attribute.value.unwrap_or_default()));
    let micros = |micros| Some(timestamp(Micros(micros)));
    v1::Memory {
        id: detail.id.to_string(),
        key: record.key,
        version: record.version,
        kind: record.kind,
        content: detail.content,
        content_format: record.content_format,
        summary: record.summary,
        tags: record.tags,
        metadata: metadata.collect(),
        importance: record.importance,
        confidence: record.confidence,
        occurred_at: micros(record.occurred_at_micros),
        created_at: micros(record.created_at_micros),
        updated_at: micros(record.updated_at_micros),
        expires_at: record.expires_at_micros.and_then(micros),
        sources: record.sources,
        origin: record.origin,
        content_tokens: detail.content_tokens,
        truncated: detail.truncated,
    }
}

pub(crate) fn deleted(answer: Deleted) -> v1::DeleteResponse {
    v1::DeleteResponse {
        deleted: answer.deleted,
        deleted_versions: answer.deleted_versions,
        missing_ids: ids(&answer.missing_ids),
        missing_keys: answer.missing_keys,
        token: answer.token.to_string(),
    }
}

fn ids(ids: &[MemoryId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn timestamp(at: Micros) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: at.0.div_euclid(MICROS_PER_SECOND),
        nanos: (at.0.rem_euclid(MICROS_PER_SECOND) * 1_000) as i32,
    }
}

fn age(occurred_at: Micros, now: Micros) -> prost_types::Duration {
    let micros = now.0.saturating_sub(occurred_at.0).max(0);
    prost_types::Duration {
        seconds: micros / MICROS_PER_SECOND,
        nanos: (micros % MICROS_PER_SECOND * 1_000) as i32,
    }
}

pub(crate) fn elapsed(took: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: took.as_secs() as i64,
        nanos: took.subsec_nanos() as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_before_1970_have_positive_nanoseconds() {
        let timestamp = timestamp(Micros(-1));
        assert_eq!((timestamp.seconds, timestamp.nanos), (-1, 999_999_000));
    }

    #[test]
    fn an_age_is_never_negative() {
        let future = age(Micros(5), Micros(3));
        assert_eq!((future.seconds, future.nanos), (0, 0));
        let past = age(Micros(-500_000), Micros(2_000_001));
        assert_eq!((past.seconds, past.nanos), (2, 500_001_000));
    }
}
