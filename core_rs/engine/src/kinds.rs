//! What a kind of memory means by default.

use std::time::Duration;

use recalld_store::codec::header::Header;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Defaults of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Time after which its recency is one half; None: it does not age.
    pub half_life: Option<Duration>,
    /// Time after which it expires when the caller says nothing; None: never.
    pub ttl: Option<Duration>,
}

const fn kind(name: &'static str, half_life_days: Option<u32>, ttl_days: Option<u32>) -> Kind {
    const fn days(days: Option<u32>) -> Option<Duration> {
        match days {
            Some(days) => Some(Duration::from_secs(DAY.as_secs() * days as u64)),
            None => None,
        }
    }
    Kind {
        name,
        half_life: days(half_life_days),
        ttl: days(ttl_days),
    }
}

/// The built-in kinds; the number of one in a header is its place here plus 1.
pub const KINDS: [Kind; 10] = [
    kind("fact", Some(180), None),
    kind("preference", Some(365), None),
    kind("profile", None, None),
    kind("event", Some(30), None),
    kind("procedure", None, None),
    kind("task", Some(14), None),
    kind("stage_result", Some(14), None),
    kind("tool_result", Some(3), Some(30)),
    kind("turn", Some(7), None),
    kind("summary", Some(90), None),
];

/// Half-life of a kind of the user's own.
pub const OTHER_HALF_LIFE: Duration = Duration::from_secs(DAY.as_secs() * 90);

/// The kind of a memory whose writer names none.
pub const DEFAULT_KIND: &str = "fact";

/// Number of a kind in a header.
pub fn number(name: &str) -> u8 {
    KINDS
        .iter()
        .position(|kind| kind.name == name)
        .map_or(Header::OTHER_KIND, |at| at as u8 + 1)
}

/// The built-in kind of that number.
pub fn of_number(number: u8) -> Option<&'static Kind> {
    KINDS.get(usize::from(number).checked_sub(1)?)
}

/// The built-in kind of that name.
pub fn of_name(name: &str) -> Option<&'static Kind> {
    of_number(number(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_agree() {
        for kind in &KINDS {
            assert_eq!(of_number(number(kind.name)), Some(kind));
        }
        assert_eq!(number("mine"), Header::OTHER_KIND);
        assert_eq!(of_number(Header::OTHER_KIND), None);
        assert_eq!(of_name(DEFAULT_KIND), Some(&KINDS[0]));
    }
}
