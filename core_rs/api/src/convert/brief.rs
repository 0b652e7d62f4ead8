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
            section: String::new(),
            pinned: false,
            weak: false,
        });
    let omitted = answer.omitted.iter().map(|omitted| v1::OmittedMemory {
        id: omitted.id.to_string(),
        reason: match omitted.reason {
            Omission::Budget => v1::OmissionReason::Budget,
            Omission::Duplicate => v1::OmissionReason::Duplicate,
        }
        .into(),
        tokens: omitted.tokens,
        key: String::new(),
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
