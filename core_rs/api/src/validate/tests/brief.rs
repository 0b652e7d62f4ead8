//! Formats, sections and pinned memories of a `BriefRequest`. `query` has the rest.

use recalld_engine::types::{BriefFormat, Section};

use super::*;

const OTHER: &str = "01HY3N1J8Z0000000000000001";

fn section(title: &str, kinds: &[&str], max_tokens: Option<u32>) -> v1::BriefSection {
    v1::BriefSection {
        title: title.to_owned(),
        kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
        max_tokens,
    }
}

fn check_brief(cases: &[Case<v1::BriefRequest>]) {
    check(&brief_request(), |request| brief(request, CONTEXT), cases);
}

#[test]
fn formats() {
    check_brief(&[
        (|r| r.format = 0, ""),
        (|r| r.format = 3, ""),
        (
            |r| r.format = 4,
            "format: must be MARKDOWN, JSON or XML, not 4",
        ),
        (
            |r| r.format = -1,
            "format: must be MARKDOWN, JSON or XML, not -1",
        ),
    ]);
    for (given, format) in [
        (v1::BriefFormat::Unspecified, BriefFormat::Markdown),
        (v1::BriefFormat::Markdown, BriefFormat::Markdown),
        (v1::BriefFormat::Json, BriefFormat::Json),
        (v1::BriefFormat::Xml, BriefFormat::Xml),
    ] {
        let request = v1::BriefRequest {
            format: given.into(),
            ..brief_request()
        };
        assert_eq!(brief(request, CONTEXT).unwrap().format, format);
    }
}

#[test]
fn sections() {
    check_brief(&[
        (
            |r| {
                r.sections = (0..16)
                    .map(|n| section(&n.to_string(), &[], None))
                    .collect();
            },
            "",
        ),
        (
            |r| {
                r.sections = (0..17)
                    .map(|n| section(&n.to_string(), &[], None))
                    .collect();
            },
            "sections: must be at most 16, not 17",
        ),
        (
            |r| r.sections = vec![section("", &[], None)],
            "sections[0].title: must not be empty",
        ),
        (
            |r| r.sections = vec![section("\u{3000} ", &[], None)],
            "sections[0].title: must not be only white space",
        ),
        (
            |r| r.sections = vec![section("a\nb", &[], None)],
            "sections[0].title: must not contain control characters",
        ),
        (
            |r| r.sections = vec![section("a\u{2028}b", &[], None)],
            "sections[0].title: must be on one line",
        ),
        (
            |r| r.sections = vec![section(&"é".repeat(64), &[], None)],
            "",
        ),
        (
            |r| r.sections = vec![section(&"é".repeat(65), &[], None)],
            "sections[0].title: must be at most 128 bytes, not 130",
        ),
        (
            |r| {
                r.sections = vec![
                    section("a", &[], None),
                    section("b", &[], None),
                    section("a", &["fact"], None),
                ];
            },
            "sections[2].title: stands in `sections[0]` too",
        ),
        (
            |r| r.sections = vec![section("a", &["fact", "A"], None)],
            "sections[0].kinds[1]: must be 1 to 64 of a-z, 0-9, `_`, `-` and `.`, not \"A\"",
        ),
        (|r| r.sections = vec![section("a", &[], Some(1))], ""),
        (
            |r| r.sections = vec![section("a", &[], Some(0))],
            "sections[0].max_tokens: must be at least 1",
        ),
    ]);
}

#[test]
fn pinned_memories() {
    check_brief(&[
        (
            |r| r.pinned_ids = vec!["x".to_owned()],
            "pinned_ids[0]: an id is 26 characters of 0-9 and A-Z without I, L, O, U; this is \"x\"",
        ),
        (
            |r| r.pinned_ids = vec![ID.to_owned(), OTHER.to_owned(), ID.to_owned()],
            "pinned_ids[2]: is pinned already",
        ),
        (
            |r| r.pinned_keys = vec![String::new()],
            "pinned_keys[0]: must not be empty",
        ),
        (
            |r| r.pinned_keys = vec!["a".to_owned(), "b".to_owned(), "a".to_owned()],
            "pinned_keys[2]: is pinned already",
        ),
        (
            |r| r.pinned_keys = vec!["k".repeat(257)],
            "pinned_keys[0]: must be at most 256 bytes, not 257",
        ),
        (
            |r| {
                r.pinned_ids = vec![ID.to_owned()];
                r.pinned_keys = (0..63).map(|n| n.to_string()).collect();
            },
            "",
        ),
        (
            |r| {
                r.pinned_ids = vec![ID.to_owned()];
                r.pinned_keys = (0..64).map(|n| n.to_string()).collect();
            },
            "pinned_ids: must be at most 64 together with `pinned_keys`, not 65",
        ),
    ]);
}

#[test]
fn a_brief_keeps_what_it_was_given_in_its_order() {
    let given = v1::BriefRequest {
        sections: vec![
            section("B", &["turn", "fact"], Some(9)),
            section("A", &[], None),
        ],
        pinned_ids: vec![OTHER.to_owned(), ID.to_owned()],
        pinned_keys: vec!["z".to_owned(), "a".to_owned()],
        min_relevance: Some(0.25),
        ..brief_request()
    };
    let given = brief(given, CONTEXT).unwrap();
    let sections = [
        Section {
            title: "B".to_owned(),
            kinds: vec!["turn".to_owned(), "fact".to_owned()],
            max_tokens: Some(9),
        },
        Section {
            title: "A".to_owned(),
            kinds: Vec::new(),
            max_tokens: None,
        },
    ];
    assert_eq!(given.sections, sections);
    let ids: Vec<String> = given.pinned_ids.iter().map(ToString::to_string).collect();
    assert_eq!(ids, [OTHER, ID]);
    assert_eq!(given.pinned_keys, ["z", "a"]);
    assert_eq!(given.query.min_relevance.to_bits(), 0.25f64.to_bits());
}
