use proptest::prelude::*;

use super::*;

fn found(text: &str) -> Vec<(Kind, &str)> {
    protected(text)
        .into_iter()
        .map(|part| (part.kind, part.span.of(text)))
        .collect()
}

#[test]
fn english_text() {
    use Kind::{Date, Name, Negation, Number};
    assert_eq!(
        found(
            "The ticket is not refundable. It costs $1,250.50 or 3.5 million USD before May 17, 2024 at 10:30 am, said Dr. Jane Smith of the Bank of England."
        ),
        [
            (Negation, "not"),
            (Number, "$1,250.50"),
            (Number, "3.5 million USD"),
            (Date, "May 17, 2024"),
            (Date, "10:30 am"),
            (Name, "Dr. Jane Smith"),
            (Name, "Bank of England"),
        ]
    );
}

#[test]
fn codes_and_addresses() {
    use Kind::{Address, Identifier, Number};
    for (text, kind) in [
        ("ORD-2024-00017", Identifier),
        ("v2.3.1", Identifier),
        ("get_user", Identifier),
        ("getUserName", Identifier),
        ("std::fmt", Identifier),
        ("config.yaml", Identifier),
        ("0x3f5a3", Identifier),
        ("DE89370400440532013000", Identifier),
        ("https://example.com/a?b=1,2", Address),
        ("www.example.com", Address),
        ("a.lee+x@example.com", Address),
        ("src/main.rs", Address),
        ("/var/log", Address),
        ("../up", Address),
        ("C:\\Temp\\x", Address),
        ("-5°C", Number),
        ("+1-555-123-4567", Number),
        ("50%", Number),
        ("12 kg", Number),
        ("two hundred euros", Number),
    ] {
        assert_eq!(found(&format!("see {text}, then")), [(kind, text)]);
    }
    assert_eq!(found("and/or he said it. no-one"), []);
}

#[test]
fn dates_and_times() {
    for text in [
        "2024-05-17T10:30:00Z",
        "12/5/2024",
        "10am",
        "10:30",
        "17 May 2024",
        "March 2024",
        "Monday",
        "Dec 24th, 2025",
    ] {
        assert_eq!(found(&format!("on {text}.")), [(Kind::Date, text)]);
    }
    assert_eq!(found("We may go. May I march on?"), []);
}

#[test]
fn quotations() {
    for quote in [
        "\"as is\"",
        "'as is'",
        "“as is”",
        "‘it’s so’",
        "`as is`",
        "「寿司」",
        "《红楼梦》",
    ] {
        assert_eq!(found(&format!("it says {quote}.")), [(Kind::Quote, quote)]);
    }
    assert_eq!(
        found("the dogs' bowl isn't \"open\n ended\""),
        [(Kind::Negation, "isn't")]
    );
}

#[test]
fn words_that_turn_or_limit_a_statement() {
    use Kind::{Condition, Negation};
    assert_eq!(
        found("Never pay, don't sign unless asked, and only if it is not without risk"),
        [
            (Negation, "Never"),
            (Negation, "don't"),
            (Condition, "unless"),
            (Condition, "only"),
            (Condition, "if"),
            (Negation, "not"),
            (Negation, "without"),
        ]
    );
}

#[test]
fn names_need_more_than_a_capital_at_the_start() {
    assert_eq!(found("Dogs bark. The end is near."), []);
    assert_eq!(found("- Milk\n- Bread"), []);
    assert_eq!(
        found("we saw Paris and NASA"),
        [(Kind::Name, "Paris"), (Kind::Name, "NASA")]
    );
    assert_eq!(
        found("Ana de la Cruz left"),
        [(Kind::Name, "Ana de la Cruz")]
    );
    assert_eq!(found("Ana of all people"), []);
}

#[test]
fn chinese_text() {
    use Kind::{Condition, Negation, Number, Quote};
    assert_eq!(
        found("如果没有收到2024年5月17日的退款，请不要付三百元给特别的人，只有《红楼梦》除外。"),
        [
            (Condition, "如果"),
            (Negation, "没有"),
            (Number, "2024年5月17日"),
            (Negation, "不要"),
            (Number, "三百元"),
            (Condition, "只有"),
            (Quote, "《红楼梦》"),
        ]
    );
    assert_eq!(found("一定非常特别"), []);
}

#[test]
fn blobs_are_not_protected() {
    let longest = format!("x1{}", "y".repeat(MAX_PROTECTED_BYTES - 2));
    assert_eq!(found(&longest), [(Kind::Identifier, longest.as_str())]);
    assert_eq!(found(&format!("{longest}y")), []);
}

proptest! {
    #[test]
    fn spans_are_in_order_and_on_characters(text in "([a-zA-Z]{1,6}|[0-9]{1,4}|\\PC|[一二三不没只年月元]|[-+$.,:/@'\"“”%_ ]| |\n|May |Dr\\. |not |km){0,40}") {
        let mut end = 0;
        for part in protected(&text) {
            prop_assert!(part.span.start >= end && part.span.start < part.span.end);
            end = part.span.end;
            let inside = part.span.of(&text);
            prop_assert_eq!(inside, inside.trim());
            prop_assert!(inside.len() <= MAX_PROTECTED_BYTES);
        }
    }

    #[test]
    fn every_number_is_protected(before in "[a-z ]{0,10}", number in "[1-9][0-9]{0,8}(\\.[0-9]{1,3})?", after in "( [a-z ]{0,10})?") {
        let text = format!("{before} {number}{after}");
        let start = before.len() as u32 + 1;
        let end = start + number.len() as u32;
        prop_assert!(protected(&text).iter().any(|part| part.span.start <= start && part.span.end >= end), "{}", text);
    }
}
