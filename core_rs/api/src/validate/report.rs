//! What is wrong with a request: paths of fields and the list of violations.

use std::fmt;

use crate::error::{Failure, Violation};
use crate::limits::{MAX_NAME_BYTES, MAX_VIOLATIONS};

/// Path of a field in a request, as it is written in code: `items[3].metadata.order`.
///
/// A chain of borrowed steps, so that the path of a field that is right costs nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Field(&'static str),
    Index(usize),
    Name(&'a str),
}

impl<'a> Path<'a> {
    /// A field of the request.
    pub(crate) const fn field(name: &'static str) -> Self {
        Self {
            parent: None,
            step: Step::Field(name),
        }
    }

    /// A field of the message here.
    pub(crate) const fn child(&'a self, name: &'static str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Field(name),
        }
    }

    /// An element of the list here.
    pub(crate) const fn index(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    /// A value of the map here, under a name of the caller's.
    pub(crate) const fn name(&'a self, name: &'a str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Name(name),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Field(name) if self.parent.is_none() => f.write_str(name),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Name(name) if is_name(name) => write!(f, ".{name}"),
            Step::Name(name) => write!(f, "[{}]", quoted(name)),
        }
    }
}

/// True for a name of metadata.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(|c| c.is_control() || c == '.')
}

/// A caller's text for a message: quoted, escaped, and cut to a length that can be read.
pub(crate) fn quoted(text: &str) -> String {
    const CHARACTERS: usize = 40;
    match text.char_indices().nth(CHARACTERS) {
        None => format!("{text:?}"),
        Some((cut, _)) => format!("{:?}...", &text[..cut]),
    }
}

/// Collects what is wrong with a request.
#[derive(Debug, Default)]
pub(crate) struct Report {
    violations: Vec<Violation>,
    /// Violations beyond those that are listed.
    hidden: usize,
    /// Stands before every path.
    within: &'static str,
}

impl Report {
    /// A report on a message inside a request; `within` is its path with a dot at the end.
    pub(crate) fn within(within: &'static str) -> Self {
        Self {
            within,
            ..Self::default()
        }
    }

    /// Says what is wrong with a field, to be read after its path and a colon.
    pub(crate) fn wrong(&mut self, at: &Path<'_>, what: impl fmt::Display) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(Violation {
                field: format!("{}{at}", self.within),
                description: what.to_string(),
            });
        } else {
            self.hidden += 1;
        }
    }

    /// Adds what another report found.
    pub(crate) fn add(&mut self, other: Self) {
        let room = MAX_VIOLATIONS - self.violations.len();
        let more = other.violations.len().saturating_sub(room);
        self.hidden += other.hidden + more;
        self.violations
            .extend(other.violations.into_iter().take(room));
    }

    /// The value, when nothing was wrong.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Failure> {
        if self.violations.is_empty() {
            Ok(value)
        } else {
            Err(Failure::invalid(self.violations, self.hidden))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_in_code() {
        let items = Path::field("items");
        let item = items.index(3);
        let metadata = item.child("metadata");
        assert_eq!(
            metadata.name("order").name("id").index(0).to_string(),
            "items[3].metadata.order.id[0]"
        );
        assert_eq!(
            metadata.name("a.b").to_string(),
            "items[3].metadata[\"a.b\"]"
        );
        assert_eq!(metadata.name("").to_string(), "items[3].metadata[\"\"]");
        assert_eq!(
            metadata.name("a\n").to_string(),
            "items[3].metadata[\"a\\n\"]"
        );
        let long = "é".repeat(200);
        assert_eq!(
            metadata.name(&long).to_string(),
            format!("items[3].metadata[\"{}\"...]", "é".repeat(40))
        );
    }

    #[test]
    fn a_report_lists_so_many_and_counts_the_rest() {
        let mut report = Report::default();
        for _ in 0..MAX_VIOLATIONS + 5 {
            report.wrong(&Path::field("x"), "is wrong");
        }
        let failure = report
            .finish(())
            .map_err(|failure| (failure.violations.len(), failure.message));
        assert_eq!(
            failure,
            Err((
                MAX_VIOLATIONS,
                format!("x: is wrong (and {} more)", MAX_VIOLATIONS + 4)
            ))
        );
    }
}
