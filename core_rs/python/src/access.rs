//! The access log of the calls that Rust answers: the lines that the sidecar's `access.py` writes for the others.
//!
//! They do not go through Python's `logging`, for the reason of [`crate::log`], but have its level and form.

use std::fmt::Write as _;
use std::io::Write as _;

use recalld_api::{Code, Failure};
use recalld_front::Call;
use serde_json::Value;

use crate::log;

/// How severe a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Debug,
    Info,
    Warning,
    Error,
}

const LEVELS: [(&str, Level); 4] = [
    ("debug", Level::Debug),
    ("info", Level::Info),
    ("warning", Level::Warning),
    ("error", Level::Error),
];

impl Level {
    fn name(self) -> &'static str {
        LEVELS[self as usize].0
    }

    /// How severe a failure is.
    fn of(failure: &Failure) -> Self {
        // They come in floods, and writing each down would make the flood worse; the metrics count them.
        if matches!(failure.reason_name(), "OVERLOADED" | "NOT_SERVING") {
            return Self::Debug;
        }
        match failure.code() {
            Code::Internal | Code::DataLoss => Self::Error,
            Code::Unavailable | Code::ResourceExhausted => Self::Warning,
            _ => Self::Info,
        }
    }
}

/// Writes lines about calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AccessLog {
    least: Level,
    is_text: bool,
}

impl AccessLog {
    /// A log with the settings of these names. None when there is no such level.
    pub(crate) fn new(level: &str, format: &str) -> Option<Self> {
        let (_, least) = LEVELS.into_iter().find(|(name, _)| *name == level)?;
        let is_text = format == "text";
        Some(Self { least, is_text })
    }

    /// Writes a line about a call that ended, if it matters enough.
    pub(crate) fn ended(self, call: &Call<'_>, failure: Option<&Failure>) {
        let level = failure.map_or(Level::Debug, Level::of);
        if level < self.least {
            return;
        }
        // The message of a refused request may quote it; that of a fault does not.
        let message = failure.filter(|_| level >= Level::Warning);
        let message = message.map_or("call", |failure| &failure.message);
        let took_ms = call.arrived.elapsed().as_micros() as f64 / 1000.0;
        let code = failure.map_or(Code::Ok, Failure::code);
        let reason = failure.map(|failure| ("reason", failure.reason_name().into()));
        let fields = [
            ("request_id", call.request_id.into()),
            ("method", call.method.into()),
            ("code", name_of(code).into()),
        ];
        let fields = fields.into_iter().chain(reason);
        let fields = fields.chain([("took_ms", took_ms.into())]);
        let line = if self.is_text {
            text(level, message, fields)
        } else {
            json(level, message, fields)
        };
        // Where standard error cannot be written to there is nobody to tell.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

fn json(
    level: Level,
    message: &str,
    fields: impl Iterator<Item = (&'static str, Value)>,
) -> String {
    let head = [
        ("time", log::now().into()),
        ("level", level.name().into()),
        ("message", message.into()),
    ];
    let mut line = String::new();
    for (name, value) in head.into_iter().chain(fields) {
        let before = if line.is_empty() { '{' } else { ',' };
        let _ = write!(line, "{before} \"{name}\": {value}");
    }
    line.push_str("}\n");
    line.replacen("{ ", "{", 1)
}

fn text(
    level: Level,
    message: &str,
    fields: impl Iterator<Item = (&'static str, Value)>,
) -> String {
    let level = level.name().to_uppercase();
    let mut line = format!("{} {level:<7} ", log::now());
    if message.contains(char::is_control) {
        let _ = write!(line, "{}", Value::from(message));
    } else {
        line.push_str(message);
    }
    for (name, value) in fields {
        let _ = match value {
            Value::String(word) => write!(line, " {name}={word}"),
            other => write!(line, " {name}={other}"),
        };
    }
    line.push('\n');
    line
}

/// A code's name in gRPC.
fn name_of(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
    }
}
