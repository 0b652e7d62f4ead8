#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Counters;

/// A tokenizer of words, marks and numbers, each of which is one token.
fn word_level() -> Value {
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null,
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"?": 0, "one": 1, "two": 2}, "unk_token": "?"},
    })
}

/// A tokenizer of bytes that joins `ab`, `abab`, and a space with a letter a.
fn byte_pairs() -> Value {
    // The alphabet in which such files write bytes: those that are no visible characters are letters from U+0100 on.
    let visible = |byte: &u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let hidden: Vec<u8> = (0..=255).filter(|byte| !visible(byte)).collect();
    let letter = |byte: u8| match hidden.iter().position(|&other| other == byte) {
        None => char::from(byte),
        Some(at) => char::from_u32(0x100 + at as u32).unwrap(),
    };
    let mut tokens: Vec<String> = (0..=255).map(|byte| letter(byte).to_string()).collect();
    tokens.extend(["ab".to_owned(), "abab".to_owned(), "Ġa".to_owned()]);
    let vocabulary: BTreeMap<&str, usize> = tokens
        .iter()
        .enumerate()
        .map(|(id, token)| (token.as_str(), id))
        .collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [special(300, "<|end|>")],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": ["a b", "ab ab", "Ġ a"]},
    })
}

fn special(id: u32, content: &str) -> Value {
    json!({
        "id": id, "content": content, "special": true, "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false,
    })
}

fn load(content: &[u8]) -> Result<FileTokenizer, TokenizerError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    fs::write(&path, content).unwrap();
    FileTokenizer::load("mine", &path)
}

fn tokenizer(file: &Value) -> FileTokenizer {
    load(file.to_string().as_bytes()).unwrap()
}

fn fault(content: &[u8]) -> TokenizerFault {
    load(content).err().unwrap().fault
}

#[test]
fn texts_are_counted_by_the_tokenizer_of_the_file() {
    let words = tokenizer(&word_level());
    for (text, tokens) in [("", 0), ("one", 1), ("one two, three", 4), (" \n ", 0)] {
        assert_eq!(words.count(text), tokens, "{text:?}");
    }
    let bytes = tokenizer(&byte_pairs());
    for (text, tokens) in [("ababab", 2), ("x ab", 3), ("é", 2), ("🙂", 4), ("  a", 2)] {
        assert_eq!(bytes.count(text), tokens, "{text:?}");
    }
}

#[test]
fn what_a_file_does_to_a_text_besides_encoding_it_is_left_out() {
    let mut file = byte_pairs();
    file["truncation"] =
        json!({"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0});
    file["padding"] = json!({
        "strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 300,
        "pad_type_id": 0, "pad_token": "<|end|>",
    });
    file["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [300], "tokens": ["<|end|>"]}},
    });
    file["model"]["dropout"] = json!(0.9);
    let odd = tokenizer(&file);
    let plain = tokenizer(&byte_pairs());
    for text in ["", "ab", "abab abab abab x", "<|end|>"] {
        assert_eq!(odd.count(text), plain.count(text), "{text:?}");
    }
    // Seven characters, none of which the vocabulary joins.
    assert_eq!(plain.count("<|end|>"), 7);
}

#[test]
fn a_prefix_ends_between_tokens_and_characters() {
    let bytes = tokenizer(&byte_pairs());
    for (text, most, expected) in [
        ("abababab", 1, "abab"),
        ("xyz", 2, "xy"),
        ("é", 1, ""),
        ("éé", 3, "é"),
        ("a🙂b", 4, "a"),
        ("a🙂b", 5, "a🙂"),
        ("ab", 0, ""),
        ("", 0, ""),
    ] {
        assert_eq!(bytes.prefix(text, most), expected, "{text:?} {most}");
    }
}

#[test]
fn long_texts_are_counted_in_parts_that_tokenizers_would_make_too() {
    let bytes = tokenizer(&byte_pairs());
    for (text, parts_expected) in [
        ("x ab ".repeat(40_000), 4),
        ("xx\n".repeat(60_000), 3),
        // Nowhere a space.
        ("é".repeat(70_000), 2),
    ] {
        let parts: Vec<&str> = parts(&text).collect();
        assert_eq!(parts.len(), parts_expected);
        assert_eq!(parts.concat(), text);
        assert!(parts.iter().all(|part| part.len() <= MOST_PART_BYTES));
        let whole = bytes
            .tokenizer
            .encode_fast(text.as_str(), false)
            .unwrap()
            .len() as u32;
        assert_eq!(bytes.count(&text), whole);
        assert_eq!(bytes.count_within(&text, whole), Some(whole));
        assert_eq!(bytes.count_within(&text, whole - 1), None);
        assert_eq!(bytes.prefix(&text, whole), text);
        let mut shorter = text.len();
        for most in [whole - 1, whole / 2 + 1, whole / 2, 1] {
            let start = bytes.prefix(&text, most);
            assert!(start.len() <= shorter && bytes.count(start) <= most);
            // All units are alike, so that it has its share of the text, up to a unit.
            assert!(start.len() + 5 > text.len() * most as usize / whole as usize);
            shorter = start.len();
        }
    }
}

#[test]
fn a_text_that_cannot_be_encoded_counts_its_bytes() {
    let mut file = word_level();
    file["model"]["unk_token"] = json!("missing");
    let path = Path::new("/nowhere");
    let broken = FileTokenizer {
        name: "mine".to_owned(),
        tokenizer: prepared(file.to_string().as_bytes()).unwrap(),
    };
    assert_eq!((broken.count("one two"), broken.count("neither")), (2, 7));
    assert_eq!(broken.prefix("neither", 3), "nei");
    assert_eq!(broken.prefix("né!", 2), "n");
    assert!(matches!(
        FileTokenizer::load("mine", path).err().unwrap().fault,
        TokenizerFault::Unreadable(_)
    ));
    assert!(matches!(
        fault(file.to_string().as_bytes()),
        TokenizerFault::Partial(_)
    ));
}

#[test]
fn files_that_hold_no_tokenizer_are_refused() {
    let whole = byte_pairs().to_string();
    let truncated = &whole[..whole.len() / 2];
    for content in [
        "",
        "{}",
        "[]",
        "null",
        truncated,
        "{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\"}}",
        &whole.replace("\"a b\"", "\"a nothing\""),
        &whole.replace("\"1.0\"", "\"9.9\""),
        &"[".repeat(100_000),
    ] {
        let fault = fault(content.as_bytes());
        let start: String = content.chars().take(40).collect();
        assert!(
            matches!(fault, TokenizerFault::Malformed(_)),
            "{start}: {fault}"
        );
    }
    assert!(matches!(fault(&[0xff; 64]), TokenizerFault::Malformed(_)));
}

#[test]
fn folders_and_huge_files_are_refused_unread() {
    let folder = tempfile::tempdir().unwrap();
    let error = FileTokenizer::load("mine", folder.path()).err().unwrap();
    assert!(matches!(error.fault, TokenizerFault::NotAFile));
    assert_eq!(
        error.to_string(),
        format!("{} is not a file", folder.path().display())
    );
    let path = folder.path().join("huge.json");
    File::create(&path)
        .unwrap()
        .set_len(MAX_FILE_BYTES + 1)
        .unwrap();
    let error = FileTokenizer::load("mine", &path).err().unwrap();
    assert!(
        matches!(error.fault, TokenizerFault::TooLarge { bytes } if bytes == MAX_FILE_BYTES + 1)
    );
}

#[test]
fn counters_are_found_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    fs::write(&path, word_level().to_string()).unwrap();
    let files = ["words", "o200k_base"].map(|name| (name.to_owned(), path.clone()));
    let counters = Counters::load(&BTreeMap::from(files)).unwrap();
    let words = counters.get("words").unwrap();
    assert_eq!((words.name(), words.encoding()), ("words", None));
    assert_eq!(
        (words.count("one two"), words.count_within("one two", 1)),
        (2, None)
    );
    assert_eq!(words.prefix("one two", 1), "one");
    // What is built in keeps its name.
    assert_eq!(counters.get("o200k_base"), Some(crate::Counter::default()));
    for name in ["approximate", "cl100k_base"] {
        assert_eq!(counters.get(name).unwrap().name(), name);
    }
    assert_eq!(counters.get("Words"), None);
    assert_eq!(
        Counters::built_in().names(),
        ["o200k_base", "cl100k_base", "approximate"]
    );
    let missing = BTreeMap::from([("gone".to_owned(), folder.path().join("gone.json"))]);
    assert_eq!(Counters::load(&missing).err().unwrap().name, "gone");
}

#[test]
fn threads_count_the_same() {
    let bytes = tokenizer(&byte_pairs());
    let text = "abab ab xyz 🙂 ".repeat(200);
    let expected = bytes.count(&text);
    std::thread::scope(|scope| {
        let counts: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| (0..20).map(|_| bytes.count(&text)).max()))
            .collect();
        for count in counts {
            assert_eq!(count.join().unwrap(), Some(expected));
        }
    });
}

proptest! {
    #[test]
    fn limits_and_prefixes_agree_with_counts(text in "(ab|abab|a|b|x| |  |\n|é|🙂|中文|\\PC|<\\|end\\|>){0,16}") {
        for tokenizer in [tokenizer(&word_level()), tokenizer(&byte_pairs())] {
            let count = tokenizer.count(&text);
            let mut shorter = 0;
            for limit in 0..=count {
                prop_assert_eq!(tokenizer.count_within(&text, limit), (limit == count).then_some(count));
                let start = tokenizer.prefix(&text, limit);
                prop_assert!(text.starts_with(start));
                prop_assert!(tokenizer.count(start) <= limit);
                prop_assert!(start.len() >= shorter);
                shorter = start.len();
            }
            prop_assert_eq!(shorter, text.len());
        }
    }

    #[test]
    fn any_text_has_a_count(text in any::<String>()) {
        let bytes = tokenizer(&byte_pairs());
        prop_assert!(bytes.count(&text) as usize <= text.len());
        prop_assert_eq!(bytes.count(&text) == 0, text.is_empty());
    }
}
