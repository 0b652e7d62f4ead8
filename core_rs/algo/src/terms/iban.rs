//! Account numbers that are written in groups.

/// The compact form, in lower case, of an IBAN in groups of four at the start of `text`.
pub(super) fn grouped_iban(text: &str) -> Option<String> {
    const LENGTHS: std::ops::RangeInclusive<usize> = 15..=34;
    let bytes = text.as_bytes();
    let starts_like_one = bytes.len() > 4
        && bytes[..2].iter().all(u8::is_ascii_uppercase)
        && bytes[2..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b' ';
    if !starts_like_one {
        return None;
    }
    let mut compact = String::new();
    for (index, group) in text.splitn(10, ' ').enumerate() {
        let end = group
            .find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit())
            .unwrap_or(group.len());
        let characters = &group[..end];
        // The second group is often the letters of a bank; later ones are told from words by a digit.
        let is_group =
            end <= 4 && (index == 1 || characters.bytes().any(|byte| byte.is_ascii_digit()));
        if !is_group || compact.len() + end > *LENGTHS.end() {
            break;
        }
        compact.push_str(characters);
        if end < 4 || end < group.len() {
            break;
        }
    }
    compact.make_ascii_lowercase();
    LENGTHS.contains(&compact.len()).then_some(compact)
}
