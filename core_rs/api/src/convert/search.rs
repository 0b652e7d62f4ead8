//! Searches as messages of the contract.

use std::time::Duration;

use recalld_engine::types::{Found, Hit};
use recalld_proto::v1;
use recalld_store::ids::Micros;

use super::{age, degraded, elapsed, timestamp};

pub(crate) fn found(answer: Found, took: Duration) -> v1::SearchResponse {
    let now = answer.now;
    let arms = answer.arms.iter().map(|arm| v1::Arm {
        name: arm.name.to_owned(),
        candidates: arm.candidates,
        method: arm.method.to_owned(),
    });
    v1::SearchResponse {
        arms: arms.collect(),
        degraded: degraded(&answer.degraded),
        token: answer.token.to_string(),
        took: Some(elapsed(took)),
        hits: answer
            .hits
            .into_iter()
            .map(|hit| signature(hit, now))
            .collect(),
    }
}

fn signature(hit: Hit, now: Micros) -> v1::Signature {
    v1::Signature {
        id: hit.id.to_string(),
        key: hit.key,
        kind: hit.kind,
        score: hit.score,
        summary: hit.summary,
        age: Some(age(hit.occurred_at, now)),
        content_tokens: hit.content_tokens,
        version: hit.version,
        relevance: hit.relevance,
        occurred_at: Some(timestamp(hit.occurred_at)),
        tags: hit.tags,
        weak: false,
        duplicate_ids: Vec::new(),
        explanation: None,
    }
}
