#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod answer;

use proptest::prelude::*;

use super::cut::cut;
use super::*;
use crate::protect::{Kind, protected};

const REPORT: &str = "The quarterly review covered the payment service. Traffic grew by 31% and errors fell. \
    The team had a nice lunch. The payment service must not be restarted before May 17, 2024, because invoice INV-2024-0031 \
    of $12,400.00 is still open. Everyone was friendly. The weather was fine on that day and people talked about their holidays \
    and their gardens for a while. Jane Smith will migrate the payment service to the new cluster only if the load test passes. \
    After that some of us went home early because there was little left to do. The payment service review is repeated in August.";

fn tokens(text: &str) -> u32 {
    ENCODING.count(text)
}

#[test]
fn short_texts_are_their_own_summary() {
    assert_eq!(summarize(""), "");
    assert_eq!(
        summarize("  Buy milk.\n\n\tThen\u{0} call\u{2028}Bob. "),
        "Buy milk. Then call Bob."
    );
    let exact = "word ".repeat(SUMMARY_TOKENS as usize);
    assert_eq!(summarize(&exact), exact.trim_end());
}

#[test]
fn the_telling_sentences_are_kept_whole_and_in_order() {
    let summary = summarize(REPORT);
    assert_eq!(
        summary,
        "The quarterly review covered the payment service. Traffic grew by 31% and errors fell. The payment service must not be restarted before May 17, 2024, \
         because invoice INV-2024-0031 of $12,400.00 is still open. Jane Smith will migrate the payment service to the new \
         cluster only if the load test passes."
    );
    assert!((30..=SUMMARY_TOKENS).contains(&tokens(&summary)));
}

#[test]
fn lists_and_chinese_are_joined_by_their_own_rules() {
    let items: Vec<String> = (1..=40)
        .map(|n| format!("{n}. Alpha beta item number {n}"))
        .collect();
    let list = items.join(
        "
",
    );
    assert!(
        summarize(&list).starts_with("Alpha beta item number 1; "),
        "{}",
        summarize(&list)
    );
    let chinese = "小王上周在上海买了一台电脑，花了八千元。天气很好，大家都很高兴，一起去公园散步，看花，聊天，吃东西。\
        他说这台电脑不能退货，除非十五天内发现问题。后来大家又一起去了商场，逛了很久，也没有买什么特别的东西。电脑的保修期到2026年3月1日。";
    let summary = summarize(chinese);
    assert!(
        summary.starts_with("小王上周在上海买了一台电脑，花了八千元。"),
        "{summary}"
    );
    assert!(
        summary.contains("不能退货，除非十五天内") && !summary.contains("。 "),
        "{summary}"
    );
}

#[test]
fn a_long_sentence_is_cut_after_a_clause_outside_protected_parts() {
    let text = format!(
        "We agreed to meet, {}and nothing else.",
        "then to talk about plans and plans again, ".repeat(30)
    );
    let summary = summarize(&text);
    assert!(summary.ends_with("plans again…"), "{summary}");
    assert!((30..=SUMMARY_TOKENS).contains(&tokens(&summary)));
    // A word without a place to cut.
    let word = summarize(&"x".repeat(10_000));
    assert!(word.ends_with("x…") && tokens(&word) <= SUMMARY_TOKENS);
}

#[test]
fn a_cut_keeps_or_drops_protected_parts() {
    let text = "The invoice of $12,400.00 is not payable before May 17, 2024 unless Jane Smith agrees to it in writing";
    let spans = protected(text);
    for budget in 0..=tokens(text) {
        let kept = cut(text, budget);
        assert!(tokens(&kept) <= budget);
        let end = kept.trim_end_matches('…').len() as u32;
        assert!(text.starts_with(&text[..end as usize]));
        for part in &spans {
            assert!(end <= part.span.start || end >= part.span.end, "{kept}");
            let after = &text[part.span.end.min(end) as usize..end as usize];
            let is_operator = matches!(part.kind, Kind::Negation | Kind::Condition);
            assert!(
                !is_operator || end <= part.span.start || !after.trim().is_empty(),
                "{kept}"
            );
        }
    }
    assert_eq!(cut(text, 9), "The invoice of…");
    assert_eq!(cut(text, 10), "The invoice of $12,400.00…");
    assert_eq!(
        cut("Steps to take, in order: 1. wait 2. see", 8),
        "Steps to take, in order…"
    );
    assert_eq!(cut(text, 0), "");
    assert_eq!(cut("not to be done by any means whatever it is", 2), "…");
}

#[test]
fn a_protected_part_too_long_for_the_start_is_left_out() {
    let text = "https://example.com/a/very/long/path/with/many/parts/0123456789/0123456789/x?y=z says that it works";
    assert_eq!(headline(text), "… says that it works");
}

#[test]
fn headlines_are_the_start() {
    assert_eq!(headline("Buy milk."), "Buy milk.");
    assert_eq!(
        headline(&summarize(REPORT)),
        "The quarterly review covered the payment service."
    );
    assert!(!headline("a\nb\u{7}c").contains(char::is_control));
}

#[test]
fn json_becomes_its_leaves() {
    let text = r#"{"id": 7, "user": {"name": "Ann \"A\" Lee", "tags": ["x", "y"], "none": null, "empty": ""},
        "items": [{"sku": "A-1", "price": 1.50}, {"sku": "B-2", "price": 12345678901234567890123}], "ok": true}"#;
    assert_eq!(
        flatten_json(text).unwrap(),
        "id: 7; user.name: Ann \"A\" Lee; user.tags: x, y\nitems.sku: A-1; items.price: 1.50\n\
         items.sku: B-2; items.price: 12345678901234567890123\nok: true"
    );
    assert_eq!(
        summarize(text),
        flatten_json(text).unwrap().replace('\n', "; ")
    );
    assert_eq!(flatten_json("[1, 2, [3]]").unwrap(), "1, 2\n3");
    for none in [
        "",
        "7",
        "\"x\"",
        "{}",
        "[null]",
        "{\"a\": 1} x",
        "{\"a\" 1}",
        "[1,]",
        "[01]",
        "[1e]",
        "[\"\\x\"]",
        "{a: 1}",
    ] {
        assert_eq!(flatten_json(none), None, "{none}");
    }
    assert_eq!(flatten_json(&"[".repeat(1 << 20)), None);
}

#[test]
fn large_json_keeps_the_telling_leaves() {
    let rows: Vec<String> = (0..200)
        .map(|n| format!("{{\"x\": {n}, \"y\": \"value {n}\"}}"))
        .collect();
    let text = format!(
        "{{\"rows\": [{}], \"status\": \"failed\", \"error\": \"disk full on node 7\"}}",
        rows.join(",")
    );
    let summary = summarize(&text);
    assert!(
        summary.ends_with("status: failed; error: disk full on node 7"),
        "{summary}"
    );
    let long = format!(
        "{{\"type\": \"text\", \"text\": \"{}\"}}",
        "one clause of many, ".repeat(50)
    );
    assert!(
        tokens(&summarize(&long)) > 60,
        "the room goes to the value that was cut"
    );
}

proptest! {
    #[test]
    fn summaries_are_one_line_within_their_tokens(text in "([a-zA-Z]{1,8}|[0-9]{1,5}|\\PC|中文|不|。|[.!?,;:] |\n|\r|\t|\0| | |not |\"|[-_/@$]|x{60}){0,300}") {
        let summary = summarize(&text);
        prop_assert!(tokens(&summary) <= SUMMARY_TOKENS);
        prop_assert!(!summary.contains(char::is_control));
        prop_assert_eq!(summary.trim(), &summary);
        prop_assert_eq!(&summarize(&text), &summary);
        prop_assert_eq!(summary.is_empty(), cut::one_line(&text).is_empty());
        let headline = headline(&summary);
        prop_assert!(tokens(&headline) <= HEADLINE_TOKENS);
        prop_assert!(!headline.contains(char::is_control));
    }

    #[test]
    fn cuts_never_split_a_protected_part(text in "([a-z]{1,8} |[0-9]{1,5}(kg)? |May 1, |Ann Lee |not |if |不|没有|三百元|中文|, |\\. |\"a b\" |x_y ){1,60}", budget in 1_u32..40) {
        let line = cut::one_line(&text);
        let kept = cut(&line, budget);
        prop_assert!(tokens(&kept) <= budget);
        let spans = protected(&line);
        // Where nothing was left out at the start, the end of what is kept is a place in the line.
        if kept != line && !kept.starts_with('…') {
            let end = kept.trim_end_matches('…').len() as u32;
            prop_assert_eq!(&line[..end as usize], kept.trim_end_matches('…'));
            for part in spans {
                prop_assert!(end <= part.span.start || end >= part.span.end, "{} in {}", kept, line);
            }
        }
    }

    #[test]
    fn json_is_accepted_as_by_serde(text in "[\\[\\]{}:,\"a1 .e\\-\\\\]{0,12}|\\{\"[a-z]{1,3}\": (\\[[0-9]{1,2}(, -?[0-9]\\.[0-9]e[0-9])?\\]|\"[^\"]{0,4}\"|true|null)\\}") {
        let parsed = serde_json::from_str::<serde_json::Value>(&text);
        if flatten_json(&text).is_some() {
            prop_assert!(parsed.is_ok(), "{}", text);
        } else if let Ok(value) = parsed {
            fn leaf_count(value: &serde_json::Value) -> usize {
                match value {
                    serde_json::Value::Null => 0,
                    serde_json::Value::String(string) => usize::from(!cut::one_line(string).is_empty()),
                    serde_json::Value::Array(values) => values.iter().map(leaf_count).sum(),
                    serde_json::Value::Object(fields) => fields.values().map(leaf_count).sum(),
                    _ => 1,
                }
            }
            prop_assert!(!(value.is_object() || value.is_array()) || leaf_count(&value) == 0, "{}", text);
        }
    }
}
