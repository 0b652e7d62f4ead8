//! The words that [`super::protected`] knows, and how spans go on after them.

use super::{Kind, Match};

/// What an English word is by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Negation,
    Condition,
    Number,
    Weekday,
    Month,
    Plain,
}

const NEGATIONS: [&str; 12] = [
    "not", "never", "no", "without", "cannot", "none", "nothing", "nobody", "neither", "nor",
    "nowhere", "non",
];

const CONDITIONS: [&str; 10] = [
    "if",
    "unless",
    "only",
    "except",
    "until",
    "provided",
    "otherwise",
    "whenever",
    "excluding",
    "till",
];

const NUMBERS: [&str; 31] = [
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
    "hundred",
    "thousand",
    "million",
    "billion",
    "dozen",
];

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

const MONTHS: [&str; 24] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "jan",
    "feb",
    "mar",
    "apr",
    "jun",
    "jul",
    "aug",
    "sep",
    "sept",
    "oct",
    "nov",
    "dec",
];

const SCALES: [&str; 7] = [
    "hundred", "thousand", "million", "billion", "trillion", "dozen", "percent",
];

const UNITS: [&str; 78] = [
    "%",
    "percent",
    "degrees",
    "°C",
    "°F",
    "ms",
    "s",
    "sec",
    "second",
    "seconds",
    "min",
    "mins",
    "minute",
    "minutes",
    "h",
    "hr",
    "hrs",
    "hour",
    "hours",
    "day",
    "days",
    "week",
    "weeks",
    "month",
    "months",
    "year",
    "years",
    "mm",
    "cm",
    "m",
    "km",
    "meters",
    "metres",
    "kilometers",
    "kilometres",
    "mile",
    "miles",
    "ft",
    "feet",
    "inch",
    "inches",
    "g",
    "kg",
    "mg",
    "grams",
    "kilograms",
    "lb",
    "lbs",
    "pounds",
    "oz",
    "ounces",
    "l",
    "ml",
    "liters",
    "litres",
    "cup",
    "cups",
    "bytes",
    "B",
    "KB",
    "MB",
    "GB",
    "TB",
    "KiB",
    "MiB",
    "GiB",
    "Hz",
    "kHz",
    "MHz",
    "GHz",
    "W",
    "kW",
    "kWh",
    "USD",
    "EUR",
    "GBP",
    "dollars",
    "euros",
];

/// Words between the parts of a name.
const NAME_LINKS: [&str; 9] = ["of", "de", "da", "del", "van", "von", "der", "la", "di"];

/// Titles that a full stop may follow inside a name.
const TITLES: [&str; 6] = ["Mr", "Mrs", "Ms", "Dr", "Prof", "St"];

pub(super) fn classify(word: &str) -> Word {
    let lower = word.to_lowercase();
    let lower = lower.as_str();
    let is_capitalized = is_capitalized(word);
    if NEGATIONS.contains(&lower) || lower.ends_with("n't") || lower.ends_with("n’t") {
        Word::Negation
    } else if CONDITIONS.contains(&lower) {
        Word::Condition
    } else if NUMBERS.contains(&lower.split('-').next().unwrap_or(lower)) {
        Word::Number
    } else if is_capitalized && WEEKDAYS.contains(&lower.trim_end_matches('s')) {
        Word::Weekday
    } else if is_month(word) {
        Word::Month
    } else {
        Word::Plain
    }
}

pub(super) fn is_capitalized(word: &str) -> bool {
    word.starts_with(char::is_uppercase) && word.chars().filter(|c| c.is_alphabetic()).count() > 1
}

pub(super) fn is_acronym(word: &str) -> bool {
    word.chars()
        .filter(|c| c.is_alphabetic())
        .all(char::is_uppercase)
}

pub(super) fn is_month(word: &str) -> bool {
    is_capitalized(word) && MONTHS.contains(&word.to_ascii_lowercase().trim_end_matches('.'))
}

pub(super) fn is_year(word: &str) -> bool {
    word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn is_day_or_year(word: &str) -> bool {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_lowercase());
    is_year(word)
        || ((1..=2).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && matches!(&word[digits.len()..], "" | "st" | "nd" | "rd" | "th"))
}

pub(super) fn is_half_day(word: &str) -> bool {
    matches!(word, "am" | "pm" | "AM" | "PM" | "a.m" | "p.m")
}

pub(super) fn is_scale(word: &str) -> bool {
    SCALES.contains(&word)
}

pub(super) fn is_unit(word: &str) -> bool {
    UNITS.contains(&word)
}

/// The word after one space at `text[end..]`, without the punctuation at its end.
fn next_word(text: &str, end: usize) -> Option<(usize, &str)> {
    let after = text[end..].strip_prefix([' ', '\u{a0}'])?;
    let start = text.len() - after.len();
    let length = after
        .find(|c: char| {
            c.is_whitespace() || matches!(c, ',' | ';' | ':' | '!' | '?' | ')' | '(' | '"')
        })
        .unwrap_or(after.len());
    let word = after[..length].trim_end_matches('.');
    (!word.is_empty()).then_some((start, word))
}

/// The end of the word after `end` if it is `accepted`, else `end`.
pub(super) fn extended(text: &str, end: usize, accepted: impl Fn(&str) -> bool) -> usize {
    match next_word(text, end) {
        Some((start, word)) if accepted(word) => start + word.len(),
        _ => end,
    }
}

/// The end of the name whose first word is `first`, at the start of `text`.
pub(super) fn name_end(text: &str, first: &str) -> usize {
    let mut end = first.len();
    let mut last = first;
    while end <= super::MAX_PROTECTED_BYTES {
        // `Dr. Smith`, `J. Smith`.
        let stop = usize::from(
            text[end..].starts_with('.') && (TITLES.contains(&last) || last.len() == 1),
        );
        let Some((start, word)) = next_word(text, end + stop) else {
            break;
        };
        let is_part = |word: &str| {
            word.starts_with(char::is_uppercase)
                && word != "I"
                && word
                    .chars()
                    .all(|c| c.is_alphabetic() || matches!(c, '-' | '\'' | '’' | '&'))
                && classify(word) == Word::Plain
        };
        // Up to two links and the part after them: `Bank of England`, `Ana de la Cruz`.
        let mut part = Some((start, word));
        for _ in 0..2 {
            part = part.and_then(|(start, word)| {
                if NAME_LINKS.contains(&word) {
                    next_word(text, start + word.len())
                } else {
                    Some((start, word))
                }
            });
        }
        let Some((start, word)) = part.filter(|(_, word)| is_part(word)) else {
            break;
        };
        end = start + word.len();
        last = word;
    }
    end
}

const WIDE_NEGATIONS: [&str; 11] = [
    "没有", "不是", "不能", "不要", "禁止", "不", "没", "别", "无", "未", "非",
];
const WIDE_CONDITIONS: [&str; 12] = [
    "如果", "除非", "除了", "只有", "只要", "只能", "仅仅", "直到", "否则", "假如", "只", "仅",
];
/// Words with a character of the above that neither negate nor limit.
const WIDE_EXCEPTIONS: [&str; 16] = [
    "别人", "别墅", "别的", "无论", "未来", "不过", "不同", "非常", "特别", "区别", "级别", "性别",
    "类别", "分别", "告别", "个别",
];
const WIDE_DIGITS: &str = "零〇一二两三四五六七八九十百千万亿半";
const WIDE_UNITS: &str = "年月日号天时点分秒周岁元块角毛美欧人个位只条件次本张台辆页米里克斤吨升度层楼期第小千百万亿多后前零一二三四五六七八九十";

/// What is protected at the start of `text`, which starts with a CJK character.
pub(super) fn wide(text: &str, previous: char) -> Match {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let plain = |length| Match {
        skipped: 0,
        length,
        kind: None,
    };
    let starts = |words: &[&str]| {
        words
            .iter()
            .find(|word| text.starts_with(**word))
            .map(|word| word.len())
    };
    if let Some(length) = starts(&WIDE_EXCEPTIONS) {
        return plain(length);
    }
    // Two numerals, or one with a unit; a single one is often part of a word.
    let numeral = text
        .find(|c| !WIDE_DIGITS.contains(c))
        .unwrap_or(text.len());
    if numeral > 0 {
        let length = numeral + wide_number(&text[numeral..]);
        return if length > first {
            Match::new(length, Kind::Number)
        } else {
            plain(first)
        };
    }
    if let Some(length) = starts(&WIDE_CONDITIONS) {
        return Match::new(length, Kind::Condition);
    }
    if let Some(length) = starts(&WIDE_NEGATIONS) {
        let in_word = previous == '差' && text.starts_with('不');
        return if in_word {
            plain(first)
        } else {
            Match::new(length, Kind::Negation)
        };
    }
    plain(first)
}

/// How far a number goes on at the start of `text` with Chinese units and the numbers after them: `年5月17日`.
pub(super) fn wide_number(text: &str) -> usize {
    let unit = text.find(|c| !WIDE_UNITS.contains(c)).unwrap_or(text.len());
    if unit == 0 {
        return 0;
    }
    let digits = text[unit..]
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len() - unit);
    let after_digits = &text[unit + digits..];
    let next = after_digits
        .find(|c| !WIDE_UNITS.contains(c))
        .unwrap_or(after_digits.len());
    if digits > 0 && next > 0 {
        unit + digits + next + tail_number(&after_digits[next..])
    } else {
        unit
    }
}

/// One more number with a unit, as the day after a year and a month.
fn tail_number(text: &str) -> usize {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let after = &text[digits..];
    let unit = after
        .find(|c| !WIDE_UNITS.contains(c))
        .unwrap_or(after.len());
    if digits > 0 && unit > 0 {
        digits + unit
    } else {
        0
    }
}
