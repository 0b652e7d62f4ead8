//! The short forms of a memory: made once when it is written, and read back here.
//!
//! A memory of at most 80 tokens is its own summary, and is not stored twice for that.

use recalld_algo::summary::{headline, one_line, summarize};
use recalld_proto::storage::v1::Record;

/// What a record keeps of the short forms of `content`: the summary and the headline, each empty when the longer form
/// serves as well. `given` is the caller's own summary, kept as it is.
pub(crate) fn to_keep(given: String, content: &str) -> (String, String) {
    let whole = one_line(content);
    let summary = if given.is_empty() {
        summarize(content)
    } else {
        summarize(&given)
    };
    let headline = headline(&summary);
    let headline = if headline == summary {
        String::new()
    } else {
        headline
    };
    let kept = match () {
        () if !given.is_empty() => given,
        () if summary == whole => String::new(),
        () => summary,
    };
    (kept, headline)
}

/// The summary as a signature and a brief show it: one line of at most 80 tokens.
pub(crate) fn shown(record: &Record, content: &str) -> String {
    if record.summary.is_empty() {
        one_line(content)
    } else if record.summary_given {
        summarize(&record.summary)
    } else {
        record.summary.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use recalld_algo::tokens::Encoding;

    proptest! {
        #[test]
        fn what_is_kept_shows_what_was_made(content in "\\PC{1,600}", given in "(\\PC{1,900})?") {
            let (summary, kept_headline) = to_keep(given.clone(), &content);
            let record = Record { summary, summary_given: !given.is_empty(), ..Record::default() };
            let made = summarize(if given.is_empty() { &content } else { &given });
            prop_assert_eq!(shown(&record, &content), made.clone());
            prop_assert!(Encoding::O200kBase.count(&made) <= 80);
            prop_assert_eq!(if kept_headline.is_empty() { made.clone() } else { kept_headline }, headline(&made));
        }
    }
}
