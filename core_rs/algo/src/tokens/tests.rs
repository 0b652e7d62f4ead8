#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// Counts of `tiktoken` 0.14: `o200k_base`, then `cl100k_base`.
const TIKTOKEN: [(&str, [u32; 2]); 17] = [
    ("", [0, 0]),
    ("Hello, world!", [4, 4]),
    ("The ticket isn't refundable; it's $1,250.50.", [13, 16]),
    ("我喜欢在周末去爬山。", [10, 14]),
    ("東京で寿司を食べた", [8, 13]),
    ("서울에서 만나요", [4, 7]),
    ("naïve café — “quoted”", [8, 8]),
    ("fn main() {\n    println!(\"{}\", x);\n}\n", [10, 10]),
    ("{\"id\": 12345, \"tags\": [\"a\", \"b\"]}", [17, 16]),
    ("<|endoftext|>", [7, 7]),
    ("👩\u{200d}👩\u{200d}👧 🇫🇷", [12, 19]),
    ("a\n  ", [3, 3]),
    ("  \n\t x  ", [4, 4]),
    ("it'ſ  DON'T", [5, 7]),
    ("٣٤٥ ½", [5, 8]),
    ("\0\u{1}", [2, 2]),
    ("e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}", [10, 10]),
];

#[test]
fn counts_equal_those_of_tiktoken() {
    for (text, expected) in TIKTOKEN {
        assert_eq!(
            Encoding::ALL.map(|encoding| encoding.count(text)),
            expected,
            "{text:?}"
        );
    }
}

#[test]
fn long_runs_are_counted_exactly() {
    for (unit, times, expected) in [
        ("a", 100_000, 12_500),
        ("日A", 33_000, 66_000),
        (" ", 100_000, 782),
        ("1", 100_000, 33_334),
        ("\n ", 50_000, 25_001),
    ] {
        let text = unit.repeat(times);
        for encoding in Encoding::ALL {
            assert_eq!(
                encoding.count(&text),
                expected,
                "{unit:?} {}",
                encoding.name()
            );
            assert_eq!(encoding.count_within(&text, expected - 1), None);
        }
    }
}

#[test]
fn names_are_exact() {
    for encoding in Encoding::ALL {
        assert_eq!(Encoding::from_name(encoding.name()), Some(encoding));
    }
    for name in ["", "O200K_BASE", "o200k", " cl100k_base"] {
        assert_eq!(Encoding::from_name(name), None);
    }
}

#[test]
fn no_token_is_longer_than_the_bound_that_stops_counting() {
    for encoding in Encoding::ALL {
        let bpe = &encoding.tokenizer().bpe;
        let longest = (0..bpe.num_tokens() as u32)
            .map(|token| bpe.token_len(token))
            .max();
        assert_eq!(longest, Some(MAX_TOKEN_BYTES));
    }
}

#[test]
fn prefix_ends_between_tokens_and_characters() {
    let encoding = Encoding::O200kBase;
    assert_eq!(encoding.prefix("Hello, world!", 0), "");
    assert_eq!(encoding.prefix("Hello, world!", 2), "Hello,");
    assert_eq!(encoding.prefix("Hello, world!", 3), "Hello, world");
    assert_eq!(encoding.prefix("Hello, world!", 4), "Hello, world!");
    // This character is three tokens, none of which may stand alone.
    let rare = "𓀀𓀀";
    let one = encoding.count("𓀀");
    assert!(one > 1);
    assert_eq!(encoding.prefix(rare, one - 1), "");
    assert_eq!(encoding.prefix(rare, 2 * one - 1), "𓀀");
    assert_eq!(encoding.prefix(&"a".repeat(1000), 10), "a".repeat(80));
}

/// The textbook algorithm: merge the adjacent pair of the lowest rank until there is none.
fn naive_count(encoding: Encoding, piece: &[u8], ranks: &HashMap<Vec<u8>, u32>) -> usize {
    if ranks.contains_key(piece) {
        return 1;
    }
    let mut parts: Vec<Vec<u8>> = piece.iter().map(|&byte| vec![byte]).collect();
    while let Some((_, at)) = (1..parts.len())
        .filter_map(|at| {
            ranks
                .get(&[parts[at - 1].as_slice(), &parts[at]].concat())
                .map(|&rank| (rank, at))
        })
        .min()
    {
        let right = parts.remove(at);
        parts[at - 1].extend(right);
    }
    assert!(!parts.is_empty(), "{} has no empty piece", encoding.name());
    parts.len()
}

#[test]
fn counts_equal_those_of_the_textbook_algorithm() {
    for encoding in Encoding::ALL {
        let bpe = &encoding.tokenizer().bpe;
        let ranks: HashMap<Vec<u8>, u32> = (0..bpe.num_tokens() as u32)
            .map(|token| (bpe.token_bytes(token).to_vec(), token))
            .collect();
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let texts = "([a-z ]{0,12}|[A-Z]{1,6}|\\PC{0,4}|不客气|[0-9.,]{1,8}|\n|'s| {1,9}|==+){0,8}";
        runner
            .run(&proptest::string::string_regex(texts).unwrap(), |text| {
                let expected: usize = encoding
                    .pieces(&text)
                    .map(|piece| naive_count(encoding, piece.as_bytes(), &ranks))
                    .sum();
                prop_assert_eq!(encoding.count(&text) as usize, expected);
                Ok(())
            })
            .unwrap();
    }
}

proptest! {
    #[test]
    fn limits_and_prefixes_agree_with_counts(text in "([a-z]{1,9}|[A-Z]{1,3}|'s|'LL| |\n|\t|\u{a0}|\\PC|中文字|𓀀|[0-9]|[.!/]){0,16}") {
        for encoding in Encoding::ALL {
            let count = encoding.count(&text);
            let mut shorter = 0;
            for limit in 0..=count {
                prop_assert_eq!(encoding.count_within(&text, limit), (limit == count).then_some(count));
                let prefix = encoding.prefix(&text, limit);
                prop_assert!(text.starts_with(prefix));
                prop_assert!(encoding.count(prefix) <= limit);
                prop_assert!(prefix.len() >= shorter);
                shorter = prefix.len();
            }
            prop_assert_eq!(shorter, text.len());
            prop_assert_eq!(encoding.count_within(&text, u32::MAX), Some(count));
        }
    }
}
