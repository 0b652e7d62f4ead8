//! Summaries for a query, against trying every set of sentences.

use proptest::collection::vec;

use super::*;
use crate::passages::{PASSAGE_CHARS, Span, passages, sentences};
use crate::summary::answer::{Choice, cover};
use crate::terms::Analyzer;

fn terms(words: &[(&str, f64)]) -> QueryTerms {
    QueryTerms::new(words.iter().map(|(word, weight)| ((*word).into(), *weight)))
}

/// All passages, best first as given.
fn ask(query: &[(&str, f64)], text: &str) -> Option<String> {
    ask_both(query, text).map(|answer| answer.summary)
}

fn ask_both(query: &[(&str, f64)], text: &str) -> Option<Answer> {
    answer(
        &mut Analyzer::new(),
        &terms(query),
        text,
        &passages(text, PASSAGE_CHARS),
    )
}

fn ask_json(query: &[(&str, f64)], text: &str) -> Option<String> {
    answer_json(&mut Analyzer::new(), &terms(query), text).map(|answer| answer.summary)
}

#[test]
fn the_core_is_the_sentences_with_the_words_alone() {
    let answer = ask_both(&[("lunch", 1.0)], REPORT).unwrap();
    assert_eq!(answer.core.unwrap(), "The team had a nice lunch.");
    assert!(answer.summary.contains("The team had a nice lunch."));
    assert!(tokens(&answer.summary) >= 30);
    // Long enough by itself, and all there is.
    let long = "The payment service must not be restarted before May 17, 2024, because invoice INV-2024-0031 of \
                $12,400.00 is still open.";
    let whole = Answer {
        summary: long.to_owned(),
        core: None,
    };
    assert_eq!(ask_both(&[("invoic", 1.0)], long), Some(whole));
    let short = Answer {
        summary: "Lunch was nice.".to_owned(),
        core: None,
    };
    assert_eq!(ask_both(&[("lunch", 1.0)], "Lunch was nice."), Some(short));
}

#[test]
fn the_sentences_with_the_words_of_the_query_are_taken_in_text_order() {
    assert_eq!(
        ask(&[("cluster", 2.0), ("invoic", 2.0)], REPORT).unwrap(),
        "The payment service must not be restarted before May 17, 2024, because invoice INV-2024-0031 of $12,400.00 is still \
         open. Jane Smith will migrate the payment service to the new cluster only if the load test passes."
    );
    for (word, sentence) in [
        ("lunch", "The team had a nice lunch."),
        ("august", "repeated in August."),
    ] {
        let summary = ask(&[(word, 1.0)], REPORT).unwrap();
        assert!(summary.contains(sentence), "{summary}");
        assert!(
            (30..=SUMMARY_TOKENS).contains(&tokens(&summary)),
            "{summary}"
        );
    }
}

#[test]
fn what_follows_the_sentence_is_taken_before_what_precedes_it() {
    let text = "Alpha was first. Then we spoke about the seat. She likes the window, always. Omega came last of all of us.";
    assert_eq!(
        ask(&[("seat", 1.0)], text).unwrap(),
        "Alpha was first. Then we spoke about the seat. She likes the window, always. Omega came last of all of us."
    );
    let text = format!(
        "{} {text} {}",
        "It rained and rained. ".repeat(9),
        "It snowed. ".repeat(30)
    );
    let summary = ask(&[("seat", 1.0)], &text).unwrap();
    assert_eq!(
        summary,
        "Alpha was first. Then we spoke about the seat. She likes the window, always. Omega came last of all of us. It snowed."
    );
}

#[test]
fn rare_words_outweigh_common_ones() {
    let filler = "The service was restarted and the service was fine and the service was slow, as services of this kind are. ";
    let text = format!(
        "{}The kestrel nests on the roof. {}",
        filler.repeat(2),
        filler.repeat(2)
    );
    let summary = ask(&[("servic", 0.1), ("kestrel", 5.0)], &text).unwrap();
    assert!(summary.contains("kestrel nests"), "{summary}");
}

#[test]
fn without_a_word_there_is_no_answer() {
    assert_eq!(ask(&[("zebra", 1.0)], REPORT), None);
    assert_eq!(ask(&[], REPORT), None);
    assert_eq!(
        ask(
            &[("zebra", f64::NAN), ("report", 0.0), ("team", -1.0)],
            REPORT
        ),
        None
    );
    assert!(terms(&[]).is_empty());
    let only_first = [passages(REPORT, PASSAGE_CHARS)[0]];
    assert_eq!(
        answer(
            &mut Analyzer::new(),
            &terms(&[("august", 1.0)]),
            REPORT,
            &only_first
        ),
        None
    );
}

#[test]
fn a_long_sentence_gives_the_part_with_the_words() {
    let text = format!(
        "We went on and {}the kestrel has to be fed before 9:30 am, not after, {}that was all.",
        "talked about plans and plans again, ".repeat(40),
        "and then on to other things, ".repeat(40)
    );
    let summary = ask(&[("kestrel", 1.0)], &text).unwrap();
    assert!(
        summary.contains("the kestrel has to be fed before 9:30 am, not after"),
        "{summary}"
    );
    assert!(
        summary.starts_with('…') && summary.ends_with('…'),
        "{summary}"
    );
    assert!((30..=SUMMARY_TOKENS).contains(&tokens(&summary)));
}

#[test]
fn a_sentence_that_ends_inside_a_quotation_goes_on() {
    let text = format!(
        "He wrote \"Stop. Do not feed the kestrel.\" and left. {}",
        "It rained. ".repeat(60)
    );
    let summary = ask(&[("kestrel", 1.0)], &text).unwrap();
    assert!(
        summary.contains("He wrote \"Stop. Do not feed the kestrel.\" and left."),
        "{summary}"
    );
}

#[test]
fn leaves_answer_with_what_stands_beside_them() {
    let rows: Vec<String> = (0..300)
        .map(|n| {
            format!(
                "{{\"sku\": \"SKU-{n}\", \"price\": {n}.50, \"stock\": {}}}",
                n * 7
            )
        })
        .collect();
    let text = format!("{{\"total\": 300, \"rows\": [{}]}}", rows.join(", "));
    let summary = ask_json(&[("sku210", 5.0), ("price", 0.5)], &text).unwrap();
    assert!(
        summary.starts_with("total: 300; rows.sku: SKU-210; rows.price: 210.50; rows.stock: 1470"),
        "{summary}"
    );
    assert!(tokens(&summary) <= SUMMARY_TOKENS);
    let letter = format!(
        "{{\"from\": \"Ann\", \"body\": \"{}The kestrel is ill. Call me. {}\"}}",
        "Nothing happened here. ".repeat(30),
        "We had tea. ".repeat(30)
    );
    let summary = ask_json(&[("kestrel", 1.0)], &letter).unwrap();
    assert!(summary.contains("body: The kestrel is ill."), "{summary}");
    assert_eq!(ask_json(&[("kestrel", 1.0)], "The kestrel is ill."), None);
    assert_eq!(ask_json(&[("zebra", 1.0)], &letter), None);
}

/// The greatest weight of any set of choices that fits.
fn brute_force(query: &[f64], choices: &[Choice], room: u32) -> f64 {
    let weight = |set: u64| {
        (0..query.len())
            .filter(|at| set >> at & 1 == 1)
            .map(|at| query[at])
            .sum::<f64>()
    };
    (0u32..1 << choices.len())
        .map(|picked| {
            let taken = (0..choices.len())
                .filter(|at| picked >> at & 1 == 1)
                .map(|at| &choices[at]);
            let tokens: u32 = taken.clone().map(|choice| choice.tokens).sum();
            if tokens <= room {
                weight(taken.fold(0, |set, choice| set | choice.terms))
            } else {
                0.0
            }
        })
        .fold(0.0, f64::max)
}

/// Words that are their own terms.
const WORDS: [&str; 8] = [
    "heron", "kestrel", "violin", "garden", "tram", "window", "paint", "river",
];

fn sentence() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        proptest::sample::select(WORDS.to_vec()).prop_map(str::to_owned),
        "[a-z]{2,9}",
        Just("not".to_owned()),
        Just("on May 17, 2024".to_owned()),
        Just("$12,400.00".to_owned()),
        Just("\"as you like it\"".to_owned()),
    ];
    // A word drawn at random may be an abbreviation, after which no sentence ends.
    vec(word, 3..10).prop_map(|words| format!("It {} today.", words.join(" ")))
}

proptest! {
    #[test]
    fn no_weight_is_left_that_would_fit(
        weights in vec(0.1f64..5.0, 1..7),
        choices in vec((1u64..128, 1u32..50), 0..9),
        room in 0u32..100,
    ) {
        let names: Vec<(Box<str>, f64)> = weights.iter().enumerate().map(|(at, weight)| (format!("t{at}").into(), *weight)).collect();
        let all = (1u64 << weights.len()) - 1;
        let choices: Vec<Choice> = choices
            .into_iter()
            .enumerate()
            .map(|(at, (terms, tokens))| Choice { at, terms: terms & all, tokens })
            .collect();
        let taken = cover(&QueryTerms::new(names), choices.clone(), room);
        let tokens: u32 = taken.iter().map(|&at| choices[at].tokens).sum();
        prop_assert!(tokens <= room);
        let set = taken.iter().fold(0, |set, &at| set | choices[at].terms);
        let weight: f64 = (0..weights.len()).filter(|at| set >> at & 1 == 1).map(|at| weights[at]).sum();
        prop_assert!((weight - brute_force(&weights, &choices, room)).abs() < 1e-9);
    }

    #[test]
    fn answers_are_whole_sentences_within_their_tokens(
        sentences in vec(sentence(), 1..14), asked in vec((0usize..8, 0.1f64..5.0), 1..6),
    ) {
        let text = sentences.join(" ");
        let query: Vec<(&str, f64)> = asked.iter().map(|&(at, weight)| (WORDS[at], weight)).collect();
        let given = ask(&query, &text);
        prop_assert_eq!(&given, &ask(&query, &text));
        let holds = |text: &str| asked.iter().any(|&(at, _)| text.contains(WORDS[at]));
        prop_assert_eq!(given.is_some(), holds(&text));
        let Some(given) = given else { return Ok(()) };
        prop_assert!(tokens(&given) <= SUMMARY_TOKENS);
        let fits = |sentence: &String| tokens(&[given.as_str(), sentence].join(" ")) + 2 <= SUMMARY_TOKENS;
        let all = sentences.iter().all(|sentence| given.contains(sentence.as_str()) || !fits(sentence));
        prop_assert!(tokens(&given) >= 30 || all, "{}", given);
        // Whole and in order, so that no protected part is cut.
        let mut rest = text.as_str();
        for sentence in given.split_inclusive(". ").map(str::trim) {
            prop_assert!(sentences.iter().any(|whole| whole == sentence), "{} in {}", sentence, text);
            let at = rest.find(sentence);
            prop_assert!(at.is_some(), "{} in {}", sentence, text);
            rest = &rest[at.unwrap() + sentence.len()..];
        }
    }

    /// Or else looking only for quotation marks and slashes would not do.
    #[test]
    fn sentences_end_in_no_protected_part_but_quotations_and_paths(
        text in "([A-Za-z]{1,6}|Dr|St|No|J|Ann Lee|May|[0-9]{1,4}|3\\.5|U\\.S|v2\\.1|a@b\\.c|/x/y\\.z|https://a\\.b|不|三百元|中文|。|！|[.!?,;:…]|[.!?] | |\n|-|\\$|%){0,40}",
    ) {
        let ends: Vec<u32> = sentences(&text).into_iter().map(|sentence| sentence.end).collect();
        for part in protected(&text).into_iter().filter(|part| part.kind != Kind::Quote && !part.span.of(&text).contains('/')) {
            let inside = |end: &&u32| part.span.start < **end && **end < part.span.end;
            prop_assert_eq!(ends.iter().find(inside), None, "{:?}", part.span.of(&text));
        }
    }

    #[test]
    fn any_text_is_answered_on_one_line_within_its_tokens(
        text in "([a-zA-Z]{1,8}|[0-9]{1,5}|\\PC|中文|不|。|[.!?,;:] |\n|\r|\t|\0| | |not |\"|[-_/@$]|x{60}|kestrel |花生过敏){0,300}",
        json in "\\{(\"[a-z]{1,3}\": (\"[^\"\\\\]{0,40}\"|[0-9]{1,4}|\\[\"[a-z ]{0,60}\", \"kestrel\"\\]), ){0,9}\"x\": \"kestrel\"\\}",
    ) {
        let query = [("kestrel", 2.0), ("花生", 3.0), ("花", 1.0), ("x", 0.5)];
        let spans = passages(&text, PASSAGE_CHARS);
        for best in [&spans[..], &spans[..1], &spans.iter().rev().copied().collect::<Vec<Span>>()] {
            for given in [answer(&mut Analyzer::new(), &terms(&query), &text, best), answer_json(&mut Analyzer::new(), &terms(&query), &json)].into_iter().flatten().flat_map(|answer| [Some(answer.summary), answer.core]).flatten() {
                prop_assert!(tokens(&given) <= SUMMARY_TOKENS);
                prop_assert!(!given.contains(char::is_control));
                prop_assert_eq!(given.trim(), &given);
                prop_assert!(!given.is_empty());
            }
        }
    }
}
