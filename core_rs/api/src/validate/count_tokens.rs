//! `CountTokensRequest`.

use recalld_counters::Counter;
use recalld_proto::v1::CountTokensRequest;

use super::Context;
use super::fields::counter;
use super::report::{Path, Report};
use crate::error::Failure;
use crate::limits::{MAX_TEXTS, MAX_TEXTS_BYTES};

/// Texts to count. They are not kept, so they may hold anything.
pub(crate) struct CountTokens {
    pub(crate) texts: Vec<String>,
    pub(crate) counter: Counter,
}

/// Checks a request to count tokens.
pub(crate) fn count_tokens(
    request: CountTokensRequest,
    context: Context<'_>,
) -> Result<CountTokens, Failure> {
    let mut report = Report::default();
    let at = Path::field("texts");
    let texts = request.texts;
    if !(1..=MAX_TEXTS).contains(&texts.len()) {
        report.wrong(
            &at,
            format_args!("must be 1 to {MAX_TEXTS} texts, not {}", texts.len()),
        );
    }
    let bytes: usize = texts.iter().map(String::len).sum();
    if bytes > MAX_TEXTS_BYTES {
        report.wrong(
            &at,
            format_args!("must be at most {MAX_TEXTS_BYTES} bytes in all, not {bytes}"),
        );
    }
    let counter = counter(&mut report, &request.encoding, context);
    report.finish(CountTokens { texts, counter })
}
