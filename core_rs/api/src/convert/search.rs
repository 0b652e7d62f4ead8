//! Searches as messages of the contract.

use std::time::Duration;

use recalld_engine::explain::{Explanation, Stage, WhyNot};
use recalld_engine::types::{Found, Hit, PlannedMethod};
use recalld_proto::v1;
use recalld_store::ids::Micros;

use crate::error::Failure;

use super::{age, degraded, elapsed, ids, timestamp};

pub(crate) fn found(answer: Found, took: Duration) -> v1::SearchResponse {
    let now = answer.now;
    let arms = answer.arms.iter().map(|arm| v1::Arm {
        name: arm.name.to_owned(),
        candidates: arm.candidates,
        method: arm.method.to_owned(),
        plan: arm.plan.iter().map(planned).collect(),
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

fn planned(method: &PlannedMethod) -> v1::PlannedMethod {
    v1::PlannedMethod {
        method: method.method.to_owned(),
        cost: method.cost,
    }
}

/// One result of several.
pub(crate) fn result(answer: Result<v1::SearchResponse, Failure>) -> v1::SearchResult {
    let result = match answer {
        Ok(response) => v1::search_result::Result::Response(response),
        Err(failure) => v1::search_result::Result::Failure(v1::SearchFailure {
            code: failure.code() as i32,
            status: failure.status(),
            message: failure.message,
        }),
    };
    v1::SearchResult {
        result: Some(result),
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
        weak: hit.weak,
        duplicate_ids: ids(&hit.duplicates),
        explanation: hit.explanation.as_ref().map(explanation),
    }
}

fn explanation(explanation: &Explanation) -> v1::Explanation {
    let signals = explanation.signals.iter().map(|signal| v1::SignalScore {
        name: signal.name.to_owned(),
        rank: signal.rank,
        raw: signal.raw,
        normalized: signal.normalized,
        weight: signal.weight,
        contribution: signal.contribution(),
    });
    let factors = explanation.factors.iter().map(|factor| v1::FactorScore {
        name: factor.name.to_owned(),
        value: factor.value,
        weight: factor.weight,
        contribution: factor.contribution,
    });
    v1::Explanation {
        signals: signals.collect(),
        fused: explanation.fused,
        relevance: explanation.relevance,
        factors: factors.collect(),
        confidence: explanation.confidence,
        score: explanation.score,
        coverage: explanation.coverage,
    }
}

pub(crate) fn why_not(answer: WhyNot) -> v1::WhyNotResponse {
    let stage = match answer.stage {
        Stage::NotFound => v1::SearchStage::NotFound,
        Stage::Expired => v1::SearchStage::Expired,
        Stage::Filter => v1::SearchStage::Filter,
        Stage::Candidates => v1::SearchStage::Candidates,
        Stage::Threshold => v1::SearchStage::Threshold,
        Stage::Duplicate => v1::SearchStage::Duplicate,
        Stage::Limit => v1::SearchStage::Limit,
        Stage::Returned => v1::SearchStage::Returned,
    };
    v1::WhyNotResponse {
        stage: stage.into(),
        detail: answer.detail,
        rank: answer.rank,
        needed_rank: answer.needed_rank,
        value: answer.value,
        needed_value: answer.needed_value,
        explanation: answer.explanation.as_ref().map(explanation),
        id: answer.id.map(|id| id.to_string()).unwrap_or_default(),
        degraded: degraded(&answer.degraded),
        token: answer.token.to_string(),
    }
}
