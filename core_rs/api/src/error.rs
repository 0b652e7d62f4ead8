//! Errors as a caller sees them: a stable reason, its gRPC code, a sentence for a person, and details.
//!
//! The reason decides the code, as documented in `errors.proto`. What an unexpected error says stays in the log.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use prost::Message;
use recalld_counters::TokenizerError;
use recalld_engine::error::EngineError;
use recalld_proto::v1::ErrorReason;
use recalld_store::StoreError;

use crate::rpc::{BadRequest, Detail, ErrorInfo, FieldViolation, RetryInfo, Status};

/// The domain of all reasons.
const DOMAIN: &str = "recalld";

/// Codes of gRPC that recalld answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Code {
    /// Success.
    Ok = 0,
    /// The request is wrong and will be wrong again.
    InvalidArgument = 3,
    /// Time ran out.
    DeadlineExceeded = 4,
    /// What was named does not exist.
    NotFound = 5,
    /// What was to be made exists.
    AlreadyExists = 6,
    /// Too much at once, or full.
    ResourceExhausted = 8,
    /// The system is not in the state that the call needs.
    FailedPrecondition = 9,
    /// Somebody else was first.
    Aborted = 10,
    /// There is no such method.
    Unimplemented = 12,
    /// A fault of the sidecar.
    Internal = 13,
    /// Not now; try again.
    Unavailable = 14,
    /// Something stored is damaged.
    DataLoss = 15,
}

impl Code {
    /// The code that a reason goes with.
    fn of(reason: ErrorReason) -> Self {
        match reason {
            ErrorReason::InvalidField | ErrorReason::MalformedRequest => Self::InvalidArgument,
            ErrorReason::UnknownMethod => Self::Unimplemented,
            ErrorReason::VersionConflict => Self::Aborted,
            ErrorReason::IdempotencyKeyReused => Self::AlreadyExists,
            ErrorReason::TokenOfAnotherStore => Self::FailedPrecondition,
            ErrorReason::TokenNotReached | ErrorReason::DeadlineExceeded => Self::DeadlineExceeded,
            ErrorReason::Overloaded | ErrorReason::StoreFull => Self::ResourceExhausted,
            ErrorReason::DamagedRecord => Self::DataLoss,
            ErrorReason::NotServing | ErrorReason::StoreUnavailable => Self::Unavailable,
            ErrorReason::MemoryNotFound => Self::NotFound,
            ErrorReason::Internal | ErrorReason::Unspecified => Self::Internal,
        }
    }
}

/// What is wrong with one field of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field, for example `items[3].metadata.order`.
    pub field: String,
    /// What is wrong, to be read after the path and a colon.
    pub description: String,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Why; decides the code.
    pub reason: ErrorReason,
    /// For a person.
    pub message: String,
    /// Wrong fields of the request.
    pub violations: Vec<Violation>,
    /// What the reason documents.
    pub metadata: BTreeMap<String, String>,
    /// When trying again is worth it.
    pub retry_after: Option<Duration>,
}

impl Failure {
    pub(crate) fn new(reason: ErrorReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            violations: Vec::new(),
            metadata: BTreeMap::new(),
            retry_after: None,
        }
    }

    /// Wrong fields, of which `hidden` more are not listed. `violations` is not empty.
    pub(crate) fn invalid(violations: Vec<Violation>, hidden: usize) -> Self {
        let message = match violations.as_slice() {
            [first, rest @ ..] => {
                let more = rest.len() + hidden;
                let more = if more == 0 {
                    String::new()
                } else {
                    format!(" (and {more} more)")
                };
                format!("{}: {}{more}", first.field, first.description)
            }
            [] => String::new(),
        };
        Self {
            violations,
            ..Self::new(ErrorReason::InvalidField, message)
        }
    }

    /// A fault of the sidecar. The cause is in the log.
    pub fn internal() -> Self {
        Self::new(
            ErrorReason::Internal,
            "the sidecar failed; its log has the cause",
        )
    }

    pub(crate) fn overloaded(retry_after: Duration) -> Self {
        let message = "the sidecar has more calls in hand than it admits; nothing was done";
        Self {
            retry_after: Some(retry_after),
            ..Self::new(ErrorReason::Overloaded, message)
        }
    }

    pub(crate) fn not_serving() -> Self {
        Self::new(
            ErrorReason::NotServing,
            "the sidecar is starting or draining; nothing was done",
        )
    }

    /// The error of opening a data directory. Its reader runs the sidecar, so it says all that is known.
    pub fn of_opening(error: EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::Store(StoreError::Full { .. } | StoreError::Damaged { .. }) => {
                error.into()
            }
            _ => Self::new(ErrorReason::StoreUnavailable, message),
        }
    }

    /// A tokenizer of the configuration that cannot be used; the field is that of the configuration.
    pub fn of_tokenizer(error: &TokenizerError) -> Self {
        let description = error.to_string();
        let field = format!("tokenizers.{}", error.name);
        Self::invalid(vec![Violation { field, description }], 0)
    }

    fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.metadata.insert(name.to_owned(), value.into());
        self
    }

    /// The gRPC code.
    pub fn code(&self) -> Code {
        Code::of(self.reason)
    }

    /// The reason's name without its prefix, for example `INVALID_FIELD`.
    pub fn reason_name(&self) -> &'static str {
        let name = self.reason.as_str_name();
        name.strip_prefix("ERROR_REASON_").unwrap_or(name)
    }

    /// The serialised `google.rpc.Status`: code, message and details.
    pub fn status(&self) -> Vec<u8> {
        let info = ErrorInfo {
            reason: self.reason_name().to_owned(),
            domain: DOMAIN.to_owned(),
            metadata: self.metadata.clone(),
        };
        let mut details = vec![info.pack()];
        if !self.violations.is_empty() {
            let field_violations = self.violations.iter().map(|violation| FieldViolation {
                field: violation.field.clone(),
                description: violation.description.clone(),
            });
            details.push(
                BadRequest {
                    field_violations: field_violations.collect(),
                }
                .pack(),
            );
        }
        if let Some(delay) = self.retry_after {
            // A delay of more than 292 years is none.
            details.push(
                RetryInfo {
                    retry_delay: delay.try_into().ok(),
                }
                .pack(),
            );
        }
        Status {
            code: self.code() as i32,
            message: self.message.clone(),
            details,
        }
        .encode_to_vec()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason_name(), self.message)
    }
}

impl std::error::Error for Failure {}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::VersionConflict { field, current } => {
                Self::new(ErrorReason::VersionConflict, message)
                    .with("field", field)
                    .with("current_version", current.to_string())
            }
            EngineError::IdempotencyKeyReused { key } => {
                Self::new(ErrorReason::IdempotencyKeyReused, message).with("idempotency_key", key)
            }
            EngineError::TokenOfAnotherStore => {
                Self::new(ErrorReason::TokenOfAnotherStore, message)
            }
            EngineError::TokenNotReached => Self::new(ErrorReason::TokenNotReached, message),
            EngineError::DeadlineExceeded => Self::new(ErrorReason::DeadlineExceeded, message),
            EngineError::Overloaded { retry_after } => Self::overloaded(retry_after),
            EngineError::Closing => Self::not_serving(),
            EngineError::Embed(_) | EngineError::Vector(_) | EngineError::Internal(_) => {
                tracing::error!(cause = message, "a call failed");
                Self::internal()
            }
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Full { .. } => {
                tracing::warn!(cause = message, "the store is full");
                Self::new(ErrorReason::StoreFull, message)
            }
            StoreError::Damaged { record } => {
                tracing::error!(record, "a record is damaged");
                Self::new(ErrorReason::DamagedRecord, message).with("record", record)
            }
            _ => {
                tracing::error!(cause = message, "the store failed");
                let message = "the store could not be read or written; see the sidecar's log";
                Self::new(ErrorReason::StoreUnavailable, message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reasons whose code stands in the comment above them, as `errors.proto` has them.
    #[test]
    fn codes_are_those_of_the_contract() {
        let mut comment = "";
        let mut reasons = 0;
        for line in include_str!("../../../proto/recalld/v1/errors.proto")
            .lines()
            .map(str::trim)
        {
            if let Some(text) = line.strip_prefix("// ") {
                if comment.is_empty() {
                    comment = text;
                }
                continue;
            }
            if let Some((name, _)) = line.split_once(" = ")
                && let Some(reason) = ErrorReason::from_str_name(name)
                && reason != ErrorReason::Unspecified
            {
                let code = comment.split('.').next().unwrap().replace('_', "");
                assert_eq!(
                    format!("{:?}", Code::of(reason)).to_uppercase(),
                    code,
                    "{name}"
                );
                reasons += 1;
            }
            comment = "";
        }
        assert_eq!(reasons, 15);
    }

    fn details(failure: &Failure) -> (Status, Vec<String>) {
        let status = Status::decode(failure.status().as_slice()).unwrap();
        let names = status
            .details
            .iter()
            .map(|any| any.type_url.clone())
            .collect();
        (status, names)
    }

    #[test]
    fn a_status_round_trips() {
        let violations = ["a", "b"].map(|field| Violation {
            field: field.into(),
            description: "is wrong".into(),
        });
        let (status, names) = details(&Failure::invalid(violations.to_vec(), 3));
        assert_eq!(
            (status.code, status.message.as_str()),
            (3, "a: is wrong (and 4 more)")
        );
        assert_eq!(
            names,
            [
                "type.googleapis.com/google.rpc.ErrorInfo",
                "type.googleapis.com/google.rpc.BadRequest"
            ]
        );
        let info = ErrorInfo::decode(status.details[0].value.as_slice()).unwrap();
        assert_eq!(
            (info.reason.as_str(), info.domain.as_str()),
            ("INVALID_FIELD", "recalld")
        );
        let bad = BadRequest::decode(status.details[1].value.as_slice()).unwrap();
        assert_eq!(bad.field_violations.len(), 2);
        assert_eq!(bad.field_violations[1].field, "b");
        assert_eq!(bad.field_violations[1].description, "is wrong");

        let (status, names) = details(&Failure::overloaded(Duration::from_millis(50)));
        assert_eq!(status.code, 8);
        assert_eq!(names[1], "type.googleapis.com/google.rpc.RetryInfo");
        let retry = RetryInfo::decode(status.details[1].value.as_slice()).unwrap();
        assert_eq!(
            retry.retry_delay.unwrap(),
            prost_types::Duration {
                seconds: 0,
                nanos: 50_000_000
            }
        );
    }

    #[test]
    fn errors_of_the_engine_have_their_reasons() {
        let conflict = Failure::from(EngineError::VersionConflict {
            field: "items[2].if_version".into(),
            current: 7,
        });
        assert_eq!(conflict.code(), Code::Aborted);
        assert_eq!(conflict.metadata["field"], "items[2].if_version");
        assert_eq!(conflict.metadata["current_version"], "7");
        let reused = Failure::from(EngineError::IdempotencyKeyReused { key: "k".into() });
        assert_eq!(
            (
                reused.reason_name(),
                reused.metadata["idempotency_key"].as_str()
            ),
            ("IDEMPOTENCY_KEY_REUSED", "k")
        );
        let overloaded = Failure::from(EngineError::Overloaded {
            retry_after: Duration::from_secs(1),
        });
        assert_eq!(
            (overloaded.reason_name(), overloaded.retry_after),
            ("OVERLOADED", Some(Duration::from_secs(1)))
        );
        let damaged = Failure::from(EngineError::Store(StoreError::Damaged {
            record: "records 1/2".into(),
        }));
        assert_eq!(
            (damaged.reason_name(), damaged.metadata["record"].as_str()),
            ("DAMAGED_RECORD", "records 1/2")
        );
        for (error, reason) in [
            (
                EngineError::Store(StoreError::Full { what: "disk" }),
                "STORE_FULL",
            ),
            (EngineError::TokenOfAnotherStore, "TOKEN_OF_ANOTHER_STORE"),
            (EngineError::TokenNotReached, "TOKEN_NOT_REACHED"),
            (EngineError::DeadlineExceeded, "DEADLINE_EXCEEDED"),
            (EngineError::Closing, "NOT_SERVING"),
        ] {
            assert_eq!(Failure::from(error).reason_name(), reason);
        }
    }

    #[test]
    fn causes_stay_inside_but_for_those_who_open() {
        let io = || {
            EngineError::Store(StoreError::Io {
                source: std::io::Error::other("/secret/path"),
            })
        };
        for (error, reason) in [
            (io(), "STORE_UNAVAILABLE"),
            (EngineError::Internal("/secret/path".into()), "INTERNAL"),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.reason_name(), reason);
            assert!(!format!("{failure:?}").contains("secret"), "{failure:?}");
        }
        let failure = Failure::of_opening(io());
        assert_eq!(
            (failure.reason_name(), failure.message.as_str()),
            ("STORE_UNAVAILABLE", "/secret/path")
        );
        let full = Failure::of_opening(EngineError::Store(StoreError::Full { what: "disk" }));
        assert_eq!(full.reason_name(), "STORE_FULL");
    }
}
