//! Han characters that are written in several ways: traditional and simplified, regional, old and new Japanese forms.
//!
//! The table has one form for each of them, the simplified one. Folding loses a distinction now and then (`后` is a queen
//! and, simplified, also what `後` is), which the neighbours of the character make up for; without it a memory in one
//! script shares next to nothing with a question in the other.

use std::sync::LazyLock;

/// The blocks that the table covers, as code points.
const FIRST: usize = 0x3400;
const END: usize = 0xa000;

/// A group of characters a line, the one that stands for all of them first; after a bar those that are current in
/// Japanese. `tools/han/build.py` makes it.
const GROUPS: &str = include_str!("han_variants.txt");

/// Added to a form where the character is not current in Japanese. Forms are kept less [`FIRST`], so the bit is free.
const TRADITIONAL: u16 = 1 << 15;

/// The form of each character of the blocks; zero where it is the character itself.
static FORMS: LazyLock<Box<[u16]>> = LazyLock::new(|| {
    let mut forms = vec![0; END - FIRST];
    for group in GROUPS.lines() {
        let mut characters = group.chars();
        let Some(form) = characters.next() else {
            continue;
        };
        let form = (form as usize - FIRST) as u16;
        let mut mark = TRADITIONAL;
        for variant in characters {
            if variant == '|' {
                mark = 0;
            } else {
                forms[variant as usize - FIRST] = form | mark;
            }
        }
    }
    forms.into()
});

fn entry(character: char) -> u16 {
    (character as usize)
        .checked_sub(FIRST)
        .and_then(|index| FORMS.get(index))
        .copied()
        .unwrap_or(0)
}

/// The form that stands for all variants of a Han character; any other character as it is.
pub fn simplified(character: char) -> char {
    match entry(character) {
        0 => character,
        entry => {
            char::from_u32(u32::from(entry & !TRADITIONAL) + FIRST as u32).unwrap_or(character)
        }
    }
}

/// Whether a character is a variant that Chinese is written with and Japanese no longer: a sign of traditional Chinese.
pub fn is_traditional(character: char) -> bool {
    entry(character) & TRADITIONAL != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_has_one_form_which_is_its_own() {
        let mut variants = 0;
        for group in GROUPS.lines() {
            let mut characters = group.chars();
            let form = characters.next().unwrap_or_default();
            assert_eq!(simplified(form), form, "{group}");
            for variant in characters.filter(|&c| c != '|') {
                assert_eq!(simplified(variant), form, "{group}");
                variants += 1;
            }
        }
        assert!(variants > 3_000);
    }

    #[test]
    fn traditional_is_told_from_japanese() {
        assert!("們說國學會來對沒臺".chars().all(is_traditional));
        assert!(
            !"東京都会議車時間経済鉄道这们说国学会あア한a"
                .chars()
                .any(is_traditional)
        );
    }

    #[test]
    fn forms_are_those_that_chinese_readers_expect() {
        for (from, to) in [
            ("臺灣國語", "台湾国语"),
            ("頭髮與發現", "头发与发现"),
            ("爲甚麼在裏面看著妳", "为甚么在里面看着你"),
            ("鉄経済駅図広", "铁经济驿图广"),
            ("渡邊渡辺", "渡边渡边"),
            ("平仮名カタカナ한글abc。", "平假名カタカナ한글abc。"),
        ] {
            assert_eq!(from.chars().map(simplified).collect::<String>(), to);
        }
    }
}
