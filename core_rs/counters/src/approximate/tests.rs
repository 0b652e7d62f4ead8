#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use proptest::prelude::*;
use recalld_algo::tokens::Encoding;

use super::*;

#[test]
fn costs_are_those_of_the_table() {
    for (text, hundredths) in [
        ("", 0),
        // A word of common pairs; its fifth letter.
        ("the", 55),
        ("there", 55 + 9),
        // k and q, q and k; the pairs of a hash.
        ("kqk", 55 + 2 * 135),
        ("The", 55 + 25),
        ("theThe", 55 + 25 + 2 * 9),
        ("AND", 55 + 25 + 2 * 16),
        ("é", 55 + 185),
        ("né", 55 + 185),
        ("the the", 55 + 55),
        ("7the", 100 + 95),
        ("12 3", 200 + 200),
        (" 5", 100 + 200),
        ("()", 100 + 80),
        ("===", 100 + 15 + 15),
        ("\n\n", 100 + 20),
        (".\n", 100 + 50),
        (".    .", 100 + 80 + 2 * 4 + 100),
        ("\t", 100),
        ("中文", 290),
        ("한글", 290),
        ("かな", 200),
        ("да", 140),
        ("ә", 300),
        ("🙂", 400),
        ("\u{1}", 100),
        ("ក", 300),
    ] {
        let cost: u64 = costs(text).map(|(_, cost)| cost).sum();
        assert_eq!(cost, hundredths, "{text:?}");
    }
}

#[test]
fn a_part_of_a_token_counts_as_one() {
    for (text, tokens) in [("", 0), (" ", 1), ("the", 1), ("the the", 2), ("\n", 1)] {
        assert_eq!(count(text), tokens, "{text:?}");
    }
}

#[test]
fn counts_of_plain_texts_are_not_below_those_of_vocabularies() {
    // One sentence says little: `tests/unit/test_approximation.py` has many texts of each script and their errors.
    for text in [
        "The customer asked for a refund, and the second payment was cancelled on 4 May 2024.",
        "Der Kunde bat um eine Erstattung, und die zweite Zahlung wurde storniert.",
        "Покупатель попросил вернуть деньги, и второй платёж был отменён.",
        "客户要求退款，第二笔付款已经取消。",
        "お客様は返金を希望し、二回目の支払いは取り消されました。",
        "고객이 환불을 요청했고 두 번째 결제는 취소되었습니다.",
        "طلب العميل استرداد المبلغ وألغيت الدفعة الثانية.",
        "{\"id\": 8812, \"status\": \"cancelled\", \"amount\": 12.50}",
        "fn main() {\n    println!(\"{}\", total(&lines));\n}\n",
        "👍🎉😀",
    ] {
        for encoding in Encoding::ALL {
            let (approximate, exact) = (count(text), encoding.count(text));
            assert!(
                (exact..=4 * exact).contains(&approximate),
                "{} counts {exact}, the approximation {approximate}: {text}",
                encoding.name(),
            );
        }
    }
}

proptest! {
    #[test]
    fn limits_and_prefixes_agree_with_counts(text in "([a-zA-Zäé]{1,9}|[0-9]{1,4}| |\n|\t|\\PC{0,3}|中文|[.!/]|👍🏽){0,24}") {
        let whole = count(&text);
        let mut shorter = 0;
        for limit in 0..=whole {
            prop_assert_eq!(count_within(&text, limit), (limit == whole).then_some(whole));
            let start = prefix(&text, limit);
            prop_assert!(text.starts_with(start));
            prop_assert!(count(start) <= limit);
            prop_assert!(start.len() >= shorter);
            // It is the longest.
            if let Some(next) = text[start.len()..].chars().next() {
                prop_assert!(count(&text[..start.len() + next.len_utf8()]) > limit);
            }
            shorter = start.len();
        }
        prop_assert_eq!(shorter, text.len());
    }

    #[test]
    fn counts_grow_with_the_text(text in any::<String>(), more in any::<String>()) {
        let both = [text.as_str(), &more].concat();
        prop_assert!(count(&text) <= count(&both));
        prop_assert_eq!(count(&text) == 0, text.is_empty());
    }

    #[test]
    fn no_text_costs_more_than_two_tokens_a_byte(text in any::<String>()) {
        prop_assert!(count(&text) as usize <= 2 * text.len());
    }
}
