//! Numbers that are written in groups: telephones, cards, accounts.

use std::ops::RangeInclusive;

/// Digits of the end of a telephone number that are the same with and without the code of the country.
const TAIL: usize = 8;
/// Digits of a telephone number with the code of its area or country.
const PHONE: RangeInclusive<usize> = TAIL..=15;
/// Digits of any number that is written in groups.
const LONGEST: usize = 19;

/// Passes the compact form of the number at the start of `text` to `sink` if it is written in groups, and the term of a
/// telephone number, which does not depend on the code of the country. Returns the bytes read; zero if there is none.
pub(super) fn read(text: &str, sink: &mut impl FnMut(&str)) -> usize {
    let mut digits = [0; LONGEST];
    let (mut count, mut end, mut groups, mut dots) = (0, 0, 0, 0);
    loop {
        let rest = &text[end..];
        let separator = if groups > 0 {
            separator(rest).unwrap_or_default()
        } else {
            ""
        };
        let rest = &rest[separator.len()..];
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        let fits = if groups == 0 {
            length > 0
        } else {
            length > 1 && !separator.is_empty()
        };
        if !fits || count + length > LONGEST {
            break;
        }
        // A year and a month, or the hour of a time.
        let after = rest[length..].bytes().next();
        if after == Some(b':') || (groups == 1 && count == 4 && is_year(&digits)) {
            break;
        }
        digits[count..count + length].copy_from_slice(&rest.as_bytes()[..length]);
        count += length;
        end += separator.len() + length;
        groups += 1;
        dots += usize::from(separator == ".");
    }
    // An IP address has four groups.
    let is_address = groups == 4 && dots == 3;
    if is_address || count < TAIL {
        return 0;
    }
    // Always valid: they are ASCII digits.
    let compact = str::from_utf8(&digits[..count]).unwrap_or_default();
    if groups > 1 {
        sink(compact);
    }
    if PHONE.contains(&count) {
        sink(&format!("tel:{}", &compact[count - TAIL..]));
    }
    end
}

fn is_year(digits: &[u8]) -> bool {
    digits.starts_with(b"19") || digits.starts_with(b"20")
}

/// What stands between two groups.
fn separator(text: &str) -> Option<&'static str> {
    if !text.starts_with([' ', '-', '.', '(', ')']) {
        return None;
    }
    [
        " (0)", "(0)", ") ", ")-", " (", " - ", " ", "-", ".", ")", "(",
    ]
    .into_iter()
    .find(|separator| text.starts_with(separator))
}
