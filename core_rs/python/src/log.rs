//! Warnings and errors of the core: JSON lines on standard error, in the form of the sidecar's own.
//!
//! They do not go through Python's `logging`, because a thread of the core must never wait for the GIL: whoever
//! holds it may be waiting for that thread.

use std::fmt;
use std::io::Write;
use std::panic::PanicHookInfo;

use recalld_engine::clock::{Clock, SystemClock};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Sends events and panics to standard error from now on.
pub(crate) fn install() {
    // Refused when the module is imported again, by another interpreter: it is installed then.
    if tracing::subscriber::set_global_default(StderrLog).is_ok() {
        std::panic::set_hook(Box::new(log_panic));
    }
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let at = panic
        .location()
        .map(ToString::to_string)
        .unwrap_or_default();
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let cause = text
        .or(payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown");
    tracing::error!(at, cause, "a bug stopped a call or a thread");
}

/// The time in RFC 3339.
pub(crate) fn now() -> String {
    let micros = SystemClock.now().0;
    let nanos = (micros % 1_000_000 * 1_000) as i32;
    prost_types::Timestamp {
        seconds: micros / 1_000_000,
        nanos,
    }
    .to_string()
}

/// Writes events of level WARN and ERROR; has no spans.
struct StderrLog;

impl Subscriber for StderrLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(Map::new());
        line.put("time", now());
        line.put(
            "level",
            if *event.metadata().level() == Level::ERROR {
                "error"
            } else {
                "warning"
            },
        );
        line.put("target", event.metadata().target());
        event.record(&mut line);
        let text = format!("{}\n", Value::Object(line.0));
        // Where standard error cannot be written to there is nobody to tell.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(Map<String, Value>);

impl Line {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format!("{value:?}"));
    }
}
