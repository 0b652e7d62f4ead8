//! Dates and times of day, however they are written, as terms of one form.
//!
//! A date gives `2024-05-17`, its month `2024-05` and its day of any year `--05-17` (as ISO 8601 and XML Schema write one);
//! a month with a year `2024-05`; a day without a year `--05-17`. A time gives its 24-hour form without a leading zero.
//! Two readings of `5/6/2024` give both. Words and numbers of a date keep their own terms beside these.

use std::ops::RangeInclusive;

/// Years that a number without other signs of a date may be.
const YEARS: RangeInclusive<u32> = 1900..=2199;

const MONTHS: [&str; 12] = [
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
];

/// Before the hour, these move it to the second half of the day.
const AFTERNOON: [&str; 8] = ["下午", "傍晚", "晚上", "午後", "夜", "오후", "저녁", "밤"];

/// Whether a date or a time of day can start with this byte: a digit, or the first letter of a month.
pub(super) fn may_start(byte: u8) -> bool {
    byte.is_ascii_digit()
        || matches!(
            byte.to_ascii_lowercase(),
            b'j' | b'f' | b'm' | b'a' | b's' | b'o' | b'n' | b'd'
        )
}

/// Passes the terms of the date or time of day that starts at `start` to `sink`. Returns the bytes read; zero if there
/// is none.
pub(super) fn read(text: &str, start: usize, sink: &mut impl FnMut(&str)) -> usize {
    let rest = &text[start..];
    let Some(&first) = rest.as_bytes().first() else {
        return 0;
    };
    // Most words end here.
    if !matches!(
        first | 0x20,
        b'j' | b'f' | b'm' | b'a' | b's' | b'o' | b'n' | b'd'
    ) && !first.is_ascii_digit()
    {
        return 0;
    }
    let end = if first.is_ascii_digit() {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let after = after.strip_prefix(' ').unwrap_or(after);
        if after.starts_with(|c: char| !c.is_ascii()) {
            cjk_date(rest, sink).or_else(|| cjk_time(&text[..start], rest, sink))
        } else {
            day_first(rest, sink).or_else(|| time(rest, sink))
        }
    } else {
        month_first(rest, sink)
    };
    end.map_or(0, |end| rest.len() - end.len())
}

/// Passes the terms of three numbers with the same joint to `sink`, if they can be a date. Returns whether they can.
pub(super) fn numeric(parts: [&str; 3], joint: &str, sink: &mut impl FnMut(&str)) -> bool {
    let [Some(a), Some(b), Some(c)] = parts.map(|part| part.parse::<u32>().ok()) else {
        return false;
    };
    if parts[1].len() > 2 {
        return false;
    }
    if parts[0].len() == 4 && parts[2].len() <= 2 {
        return emit(Some(a), b, Some(c), sink);
    }
    let year = match parts[2].len() {
        4 if YEARS.contains(&c) => c,
        2 if joint == "/" => 2000 + c,
        _ => return false,
    };
    if parts[0].len() > 2 {
        return false;
    }
    let day_first = emit(Some(year), b, Some(a), sink);
    // With dots the day comes first everywhere.
    let month_first = joint != "." && a != b && emit(Some(year), a, Some(b), sink);
    day_first || month_first
}

/// Passes the term of a year and a month to `sink`, if these two numbers are so. Returns whether they are.
pub(super) fn numeric_month(parts: [&str; 2], sink: &mut impl FnMut(&str)) -> bool {
    let [Some(a), Some(b)] = parts.map(|part| part.parse::<u32>().ok()) else {
        return false;
    };
    match parts.map(str::len) {
        [4, 2] if YEARS.contains(&a) => emit(Some(a), b, None, sink),
        [1 | 2, 4] if YEARS.contains(&b) => emit(Some(b), a, None, sink),
        _ => false,
    }
}

/// Passes the terms of eight digits to `sink`, if they can be a date.
pub(super) fn compact(digits: &str, sink: &mut impl FnMut(&str)) {
    if let (Some(year), Some(month), Some(day)) =
        (digits.get(..4), digits.get(4..6), digits.get(6..8))
        && year.parse().is_ok_and(|year: u32| YEARS.contains(&year))
    {
        numeric([year, month, day], "", sink);
    }
}

/// `17 May 2024`, `17th of May, 2024`, `17-May-2024`, `17 May`.
fn day_first<'a>(text: &'a str, sink: &mut impl FnMut(&str)) -> Option<&'a str> {
    let (day, rest) = number(text, 2)?;
    let rest = strip_ordinal(rest);
    let rest = rest
        .strip_prefix([' ', '-', '/', '.'])
        .map(|rest| rest.strip_prefix(' ').unwrap_or(rest))?;
    let (month, rest) = month(rest.strip_prefix("of ").unwrap_or(rest))?;
    let (year, rest) = year(rest).map_or((None, rest), |(year, rest)| (Some(year), rest));
    emit(year, month, Some(day), sink).then_some(rest)
}

/// `May 17, 2024`, `May 17th 2024`, `May 17`, `May 2024`.
fn month_first<'a>(text: &'a str, sink: &mut impl FnMut(&str)) -> Option<&'a str> {
    let (month, after_month) = month(text)?;
    if let Some((year, rest)) = year(after_month) {
        return emit(Some(year), month, None, sink).then_some(rest);
    }
    let rest = after_month.strip_prefix([' ', '-', '/'])?;
    let (day, rest) = number(rest.strip_prefix("the ").unwrap_or(rest), 2)?;
    let rest = strip_ordinal(rest);
    // A time or a decimal fraction is no day.
    if let [b':' | b'.' | b',', next, ..] = rest.as_bytes()
        && next.is_ascii_digit()
    {
        return None;
    }
    let (year, rest) = year(rest).map_or((None, rest), |(year, rest)| (Some(year), rest));
    emit(year, month, Some(day), sink).then_some(rest)
}

/// `2024年5月17日`, `2024年5月`, `5月17日`, `2024년 5월 17일`.
fn cjk_date<'a>(text: &'a str, sink: &mut impl FnMut(&str)) -> Option<&'a str> {
    let (first, rest) = number(text, 4)?;
    let (year, month_text) = match unit(rest, &['年', '년']) {
        Some(rest) if YEARS.contains(&first) => (Some(first), rest),
        Some(_) => return None,
        None => (None, text),
    };
    let (month, rest) = number(month_text, 2)?;
    let rest = unit(rest, &['月', '월'])?;
    let (day, rest) = number(rest, 2)
        .and_then(|(day, rest)| Some((day, unit(rest, &['日', '号', '號', '일'])?)))
        .map_or((None, rest), |(day, rest)| (Some(day), rest));
    emit(year, month, day, sink).then_some(rest)
}

/// `2:30 pm`, `2 p.m.`, `14:30:15`, `09:05`, `14h30`.
fn time<'a>(text: &'a str, sink: &mut impl FnMut(&str)) -> Option<&'a str> {
    let (mut hour, rest) = number(text, 2)?;
    let minutes = rest.strip_prefix([':', 'h', 'H']).and_then(two_digits);
    let (minute, mut rest) = minutes.unwrap_or((0, rest));
    if let Some((_, after)) = rest.strip_prefix(':').and_then(two_digits) {
        rest = after;
    }
    let half = half_of_day(rest);
    if let Some((afternoon, after)) = half {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if afternoon { 12 } else { 0 };
        rest = after;
    } else {
        minutes?;
    }
    emit_time(hour, minute, &text[..text.len() - rest.len()], sink).then_some(rest)
}

/// `14点30分`, `下午2点半`, `午後2時`, `오후 2시 30분`; `before` is the text before the hour.
fn cjk_time<'a>(before: &str, text: &'a str, sink: &mut impl FnMut(&str)) -> Option<&'a str> {
    let (mut hour, rest) = number(text, 2)?;
    let rest = unit(rest, &['点', '點', '時', '时', '시'])?;
    // With one of these it is a length of time.
    if rest.starts_with(['間', '间', '간']) {
        return None;
    }
    let (minute, rest) = if let Some(rest) = rest.strip_prefix(['半', '반']) {
        (30, rest)
    } else {
        number(rest, 2)
            .and_then(|(minute, rest)| Some((minute, unit(rest, &['分', '분'])?)))
            .unwrap_or((0, rest))
    };
    let before = before.trim_end_matches(' ');
    if hour < 12 && AFTERNOON.iter().any(|word| before.ends_with(word)) {
        hour += 12;
    }
    emit_time(hour, minute, "", sink).then_some(rest)
}

/// Whether a time is in the second half of the day, if the text goes on with `am` or `pm`.
fn half_of_day(text: &str) -> Option<(bool, &str)> {
    let text = text.strip_prefix(' ').unwrap_or(text);
    let afternoon = match text.as_bytes().first()?.to_ascii_lowercase() {
        b'a' => false,
        b'p' => true,
        _ => return None,
    };
    let rest = &text[1..];
    let rest = match rest.strip_prefix('.') {
        Some(rest) => rest
            .strip_prefix(['m', 'M'])
            .map(|rest| rest.strip_prefix('.').unwrap_or(rest)),
        None => rest.strip_prefix(['m', 'M']),
    }?;
    ends_word(rest).then_some((afternoon, rest))
}

/// A month by its English name or the first three letters of it.
fn month(text: &str) -> Option<(u32, &str)> {
    let bytes = text.as_bytes();
    let first: [u8; 3] = bytes.get(..3)?.try_into().ok()?;
    let index = match &first.map(|byte| byte.to_ascii_lowercase()) {
        b"jan" => 0,
        b"feb" => 1,
        b"mar" => 2,
        b"apr" => 3,
        b"may" => 4,
        b"jun" => 5,
        b"jul" => 6,
        b"aug" => 7,
        b"sep" => 8,
        b"oct" => 9,
        b"nov" => 10,
        b"dec" => 11,
        _ => return None,
    };
    let name: &str = MONTHS[index];
    let length = [name.len(), 4, 3].into_iter().find(|&length| {
        text.get(..length).is_some_and(|word| {
            let whole = length == name.len() || length == 3 || index == 8;
            whole && word.eq_ignore_ascii_case(&name[..length.min(name.len())])
        }) && ends_word(&text[length..])
    })?;
    let rest = &text[length..];
    let abbreviated = length < name.len();
    let rest = rest
        .strip_prefix('.')
        .filter(|_| abbreviated)
        .unwrap_or(rest);
    Some((index as u32 + 1, rest))
}

/// A year after what parts it from the month or the day.
fn year(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix(',').unwrap_or(text);
    let rest = rest
        .strip_prefix(" of ")
        .or_else(|| rest.strip_prefix([' ', '-', '/']))
        .unwrap_or(rest);
    if rest.len() == text.len() {
        return None;
    }
    let (year, rest) = number(rest, 4)?;
    YEARS.contains(&year).then_some((year, rest))
}

/// The number of at most `digits` digits at the start.
fn number(text: &str, digits: usize) -> Option<(u32, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let value = text[..length].parse().ok().filter(|_| length <= digits)?;
    Some((value, &text[length..]))
}

/// A number of two digits.
fn two_digits(text: &str) -> Option<(u32, &str)> {
    number(text, 2).filter(|(_, rest)| text.len() - rest.len() == 2)
}

/// What follows one of `units`, which may have a space before and after it.
fn unit<'a>(text: &'a str, units: &[char]) -> Option<&'a str> {
    let rest = text.strip_prefix(' ').unwrap_or(text).strip_prefix(units)?;
    Some(
        rest.strip_prefix(' ')
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            .unwrap_or(rest),
    )
}

fn strip_ordinal(text: &str) -> &str {
    text.get(..2)
        .filter(|end| is_ordinal(end) && ends_word(&text[2..]))
        .map_or(text, |_| &text[2..])
}

/// Whether these letters make an ordinal of the number before them.
pub(super) fn is_ordinal(letters: &str) -> bool {
    ["st", "nd", "rd", "th"]
        .iter()
        .any(|end| letters.eq_ignore_ascii_case(end))
}

fn ends_word(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// Passes the terms of a date to `sink`. False, and no term, if there is no such day.
fn emit(year: Option<u32>, month: u32, day: Option<u32>, sink: &mut impl FnMut(&str)) -> bool {
    let exists = (1..=12).contains(&month) && day.is_none_or(|day| (1..=31).contains(&day));
    if !exists {
        return false;
    }
    // Every term of a date is a part of this one.
    let mut term = *b"0000-00-00--00-00";
    if let Some(year) = year {
        write_digits(&mut term[..4], year);
        write_digits(&mut term[5..7], month);
        sink_digits(&term[..7], sink);
    }
    if let Some(day) = day {
        for (place, value) in [(5, month), (8, day), (12, month), (15, day)] {
            write_digits(&mut term[place..place + 2], value);
        }
        if year.is_some() {
            sink_digits(&term[..10], sink);
        }
        sink_digits(&term[10..], sink);
    }
    year.is_some() || day.is_some()
}

/// Fills `place` with the last digits of `value`.
fn write_digits(place: &mut [u8], mut value: u32) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

fn sink_digits(term: &[u8], sink: &mut impl FnMut(&str)) {
    // Always valid: it is ASCII.
    sink(str::from_utf8(term).unwrap_or_default());
}

/// Passes the term of a time to `sink`, unless it is written so already. False if there is no such time.
fn emit_time(hour: u32, minute: u32, written: &str, sink: &mut impl FnMut(&str)) -> bool {
    if hour > 23 || minute > 59 {
        return false;
    }
    let mut term = *b"00:00";
    write_digits(&mut term[..2], hour);
    write_digits(&mut term[3..], minute);
    let term = &term[usize::from(hour < 10)..];
    if term != written.as_bytes() {
        sink_digits(term, sink);
    }
    true
}
