//! Instants as people write them, in UTC.

use recalld_store::ids::Micros;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// `2024-05-17`. Years before 0 and after 9999 are written as they are.
///
/// Civil-from-days as described by Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
pub(crate) fn date(at: Micros) -> String {
    let days = at.0.div_euclid(MICROS_PER_DAY) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months counted from March.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year + year_of_era + era * 400;
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_days() {
        for (seconds, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (951_782_400, "2000-02-29"),
            (1_709_164_800, "2024-02-29"),
            (1_715_990_399, "2024-05-17"),
            (4_107_542_399, "2100-02-28"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(Micros(seconds * 1_000_000)), text);
        }
    }

    fn leap(year: i64) -> bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    proptest! {
        #[test]
        fn agrees_with_counting_days(year in 1970..2400i64, day_of_year in 0..365i64) {
            let days: i64 = (1970..year).map(|y| if leap(y) { 366 } else { 365 }).sum::<i64>() + day_of_year;
            let lengths = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let (mut rest, mut month) = (day_of_year, 1);
            for length in lengths {
                if rest < length {
                    break;
                }
                rest -= length;
                month += 1;
            }
            let expected = format!("{year:04}-{month:02}-{:02}", rest + 1);
            prop_assert_eq!(date(Micros(days * MICROS_PER_DAY)), expected);
        }
    }
}
