//! The error details of google.rpc that recalld sends, as prost messages.
//!
//! Field numbers are those of `google/rpc/status.proto` and `google/rpc/error_details.proto`. They are written here
//! because five small messages do not pay for another crate of generated code.

use std::collections::BTreeMap;

use prost::Message;
use prost_types::{Any, Duration};

/// The error of a call, as it stands in the `grpc-status-details-bin` trailer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    /// Canonical code.
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    /// For a person.
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    /// For a program.
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

/// The stable reason.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ErrorInfo {
    /// A name of `recalld.v1.ErrorReason` without its prefix.
    #[prost(string, tag = "1")]
    pub(crate) reason: String,
    /// Who defines the reason.
    #[prost(string, tag = "2")]
    pub(crate) domain: String,
    /// What the reason documents.
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) metadata: BTreeMap<String, String>,
}

/// The wrong fields of a request.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct BadRequest {
    /// One a field.
    #[prost(message, repeated, tag = "1")]
    pub(crate) field_violations: Vec<FieldViolation>,
}

/// One wrong field.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FieldViolation {
    /// Its path.
    #[prost(string, tag = "1")]
    pub(crate) field: String,
    /// What is wrong with it.
    #[prost(string, tag = "2")]
    pub(crate) description: String,
}

/// When to try again.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RetryInfo {
    /// From the answer on.
    #[prost(message, optional, tag = "1")]
    pub(crate) retry_delay: Option<Duration>,
}

/// A message that can stand among the details of a status.
pub(crate) trait Detail: Message + Default {
    /// Its name in the package `google.rpc`.
    const NAME: &'static str;

    /// Packs it.
    fn pack(&self) -> Any {
        let type_url = format!("type.googleapis.com/google.rpc.{}", Self::NAME);
        Any {
            type_url,
            value: self.encode_to_vec(),
        }
    }
}

impl Detail for ErrorInfo {
    const NAME: &'static str = "ErrorInfo";
}

impl Detail for BadRequest {
    const NAME: &'static str = "BadRequest";
}

impl Detail for RetryInfo {
    const NAME: &'static str = "RetryInfo";
}
