//! Briefs as messages of the contract.

use std::time::Duration;

use recalld_engine::types::{Briefed, Form, Omission};
use recalld_proto::v1;

use super::{degraded, elapsed};

/// `if_fingerprint` is the caller's; the text is left out when it has the same.
pub(crate) fn briefed(
    answer: Briefed,
    encoding: &str,
    if_fingerprint: &str,
    took: Duration,
) -> v1::BriefResponse {
    let not_modified = !if_fingerprint.is_empty() && answer.fingerprint == if_fingerprint;
    let included = answer
        .included
        .into_iter()
        .map(|included| v1::IncludedMemory {
            id: included.id.to_string(),
            key: included.key,
            version: included.version,
            form: match included.form {
                Form::Full => v1::BriefForm::Full,
                Form::Passages => v1::BriefForm::Passages,
                Form::Summary => v1::BriefForm::Summary,
                Form::Headline => v1::BriefForm::Headline,
            }
            .into(),
            tokens: included.tokens,
            citation: included.citation,
            section: included.section,
            pinned: included.pinned,
            weak: included.weak,
        });
    let omitted = answer.omitted.into_iter().map(|omitted| v1::OmittedMemory {
        id: omitted.id.map(|id| id.to_string()).unwrap_or_default(),
        reason: match omitted.reason {
            Omission::Budget => v1::OmissionReason::Budget,
            Omission::Duplicate => v1::OmissionReason::Duplicate,
            Omission::Section => v1::OmissionReason::Section,
            Omission::NotFound => v1::OmissionReason::NotFound,
        }
        .into(),
        tokens: omitted.tokens,
        key: omitted.key,
    });
    v1::BriefResponse {
        text: if not_modified {
            String::new()
        } else {
            answer.text
        },
        tokens: answer.tokens,
        encoding: encoding.to_owned(),
        included: included.collect(),
        omitted: omitted.collect(),
        fingerprint: answer.fingerprint,
        not_modified,
        degraded: degraded(&answer.degraded),
        token: answer.token.to_string(),
        took: Some(elapsed(took)),
    }
}
