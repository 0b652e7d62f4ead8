#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
//! Briefs: sections, pinned memories, formats, and what is left out and why.

mod common;

use std::collections::HashSet;
use std::time::Duration;

use common::*;
use recalld_algo::tokens::Encoding;
use recalld_counters::{APPROXIMATE, Counter, Counters};
use recalld_engine::filter::{Field, Filter, Test};
use recalld_engine::ids::{MemoryId, Micros};
use recalld_engine::types::{
    Brief, BriefFormat, Briefed, Form, Namespace, NewMemory, Omission, Section, Selection,
};

const FORMATS: [BriefFormat; 3] = [BriefFormat::Markdown, BriefFormat::Json, BriefFormat::Xml];
const DAY: i64 = 86_400 * SECOND;

fn space() -> Namespace {
    ns(&["briefs"])
}

fn of_kind(kind: &str, key: &str, content: &str) -> NewMemory {
    NewMemory {
        kind: kind.to_owned(),
        ..memory(key, content)
    }
}

fn section(title: &str, kinds: &[&str], max_tokens: Option<u32>) -> Section {
    Section {
        title: title.to_owned(),
        kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
        max_tokens,
    }
}

fn ask(text: &str, budget: u32) -> Brief {
    brief(&space(), text, budget)
}

fn pinning(keys: &[&str], brief: Brief) -> Brief {
    Brief {
        pinned_keys: keys.iter().map(|&key| key.to_owned()).collect(),
        ..brief
    }
}

fn answer(bench: &Bench, brief: &Brief) -> Briefed {
    let briefed = bench.engine.brief(brief, None).unwrap();
    assert_eq!(briefed.tokens, brief.counter.count(&briefed.text));
    assert!(briefed.tokens <= brief.budget);
    assert_eq!(briefed.text.is_empty(), briefed.included.is_empty());
    let ids: HashSet<MemoryId> = briefed
        .included
        .iter()
        .map(|included| included.id)
        .collect();
    assert_eq!(ids.len(), briefed.included.len(), "each memory stands once");
    briefed
}

fn included(briefed: &Briefed) -> Vec<&str> {
    briefed
        .included
        .iter()
        .map(|included| included.key.as_str())
        .collect()
}

fn omitted(briefed: &Briefed) -> Vec<(&str, Omission)> {
    briefed
        .omitted
        .iter()
        .map(|omitted| (omitted.key.as_str(), omitted.reason))
        .collect()
}

/// A long memory: `answer` among sentences that have nothing to do with it.
fn long(answer: &str) -> String {
    let filler = "The weather was mild and nothing much happened on that day in the office. ";
    format!("{}{answer} {}", filler.repeat(9), filler.repeat(9))
}

/// Memories about one thing, of several kinds and lengths.
fn violins(bench: &Bench) {
    let kinds = ["fact", "event", "turn", "profile", "note"];
    let items = (0..20).map(|at| {
        let content = match at % 3 {
            0 => format!("The violin lesson number {at} was moved to Tuesday."),
            1 => long(&format!("Violin number {at} has a crack behind the bridge.")),
            _ => format!("Violin strings of set {at} cost {at}.50 euros, and the shop on the corner has them in stock until May."),
        };
        NewMemory {
            occurred_at: Some(Micros(START - i64::from(at) * DAY)),
            ..of_kind(kinds[at as usize % kinds.len()], &format!("v{at}"), &content)
        }
    });
    bench.put(&space(), items.collect());
}

#[test]
fn pinned_memories_stand_first_whatever_the_query_selects() {
    let bench = Bench::new();
    violins(&bench);
    let receipts = bench.put(
        &space(),
        vec![
            of_kind("profile", "tier", "Platinum member since 2019."),
            memory("language", "Answers are to be in French."),
        ],
    );
    let mut brief = pinning(&["v4", "tier", "language"], ask("violin lesson", 2_000));
    brief.pinned_ids = vec![receipts[1].id];
    brief.query.limit = 2;
    brief.query.selection = Selection {
        kinds: vec!["fact".to_owned()],
        filter: Some(Filter::Test {
            field: Field::Key,
            test: Test::Prefix("v".to_owned()),
        }),
        ..Selection::default()
    };
    let briefed = answer(&bench, &brief);
    let keys = included(&briefed);
    assert_eq!(
        keys[..3],
        ["language", "v4", "tier"],
        "the id first, and once"
    );
    assert_eq!(
        keys.len(),
        5,
        "pinned memories take no place of what is found"
    );
    for (at, included) in briefed.included.iter().enumerate() {
        assert_eq!(included.citation, format!("[m{}]", at + 1));
        assert_eq!((included.pinned, included.section.as_str()), (at < 3, ""));
    }
    assert_eq!(briefed.included[0].form, Form::Full);
    brief.query.min_relevance = 1.0;
    assert_eq!(
        included(&answer(&bench, &brief)),
        ["language", "v4", "tier"]
    );
    let first = briefed.text.find("Answers are to be in French.").unwrap();
    assert!(first < briefed.text.find("Platinum member").unwrap());
}

#[test]
fn a_pinned_memory_that_is_found_too_stands_once() {
    let bench = Bench::new();
    violins(&bench);
    let brief = pinning(&["v3", "v0"], ask("violin lesson number 3", 5_000));
    let briefed = answer(&bench, &brief);
    assert_eq!(included(&briefed)[..2], ["v3", "v0"]);
    assert_eq!(briefed.included.len(), 20);
    assert_eq!(
        briefed
            .included
            .iter()
            .filter(|included| included.pinned)
            .count(),
        2
    );
    // The text of one that is pinned is not said again.
    bench.put(
        &space(),
        vec![memory(
            "again",
            "The violin lesson number 3 was moved to Tuesday.",
        )],
    );
    let briefed = answer(&bench, &brief);
    assert_eq!(omitted(&briefed), [("again", Omission::Duplicate)]);
}

#[test]
fn what_is_pinned_and_not_there_is_said() {
    let bench = Bench::new();
    bench.put(
        &space(),
        vec![
            memory("here", "The violin is here."),
            memory("gone", "The violin is gone."),
            expiring(
                "expired",
                "The violin has expired.",
                Duration::from_secs(60),
            ),
        ],
    );
    bench.delete_keys(&space(), &["gone"]).unwrap();
    bench.clock.advance(61 * SECOND);
    let nobody = MemoryId([7; 16]);
    let mut brief = pinning(&["gone", "here", "expired"], ask("violin", 500));
    brief.pinned_ids = vec![nobody];
    let briefed = answer(&bench, &brief);
    assert_eq!(included(&briefed), ["here"]);
    let missing = Omission::NotFound;
    assert_eq!(
        omitted(&briefed),
        [("", missing), ("gone", missing), ("expired", missing)]
    );
    let ids: Vec<Option<MemoryId>> = briefed.omitted.iter().map(|omitted| omitted.id).collect();
    assert_eq!(ids, [Some(nobody), None, None]);

    brief.namespace = ns(&["nowhere"]);
    let briefed = answer(&bench, &brief);
    assert_eq!(
        omitted(&briefed),
        [
            ("", missing),
            ("gone", missing),
            ("here", missing),
            ("expired", missing)
        ]
    );
}

#[test]
fn the_last_pinned_memories_are_shortened_first_and_then_left_out() {
    let bench = Bench::new();
    violins(&bench);
    let keys = ["v1", "v7", "v2"];
    let asked = |budget| {
        answer(
            &bench,
            &pinning(&keys, ask("crack behind the bridge", budget)),
        )
    };
    let whole = asked(10_000);
    let full: Vec<u32> = whole.included[..3]
        .iter()
        .map(|included| included.tokens)
        .collect();
    let shortest: Vec<u32> = asked(1).omitted[..3]
        .iter()
        .map(|omitted| omitted.tokens)
        .collect();
    let frame = whole.tokens
        - whole
            .included
            .iter()
            .map(|included| included.tokens)
            .sum::<u32>();
    let mut seen = Vec::new();
    for budget in (frame + 1..frame + full.iter().sum::<u32>() + 40).step_by(3) {
        let briefed = asked(budget);
        let room = budget - frame;
        let taken: Vec<Option<(Form, u32)>> = keys
            .iter()
            .map(|key| {
                briefed
                    .included
                    .iter()
                    .find(|included| included.key == *key)
            })
            .map(|found| found.map(|included| (included.form, included.tokens)))
            .collect();
        let tokens = |at: usize| taken[at].map_or(0, |(_, tokens)| tokens);
        let stands = |at: usize| if taken[at].is_some() { shortest[at] } else { 0 };
        let before: [u32; 3] = [0, tokens(0), tokens(0) + tokens(1)];
        let after: [u32; 3] = [stands(1) + stands(2), stands(2), 0];
        for at in 0..3 {
            // All stand before any is longer than it must be, and the first ones are the longer ones.
            let could_stand =
                stands(0) * u32::from(at > 0) + stands(1) * u32::from(at > 1) + shortest[at]
                    <= room;
            assert_eq!(taken[at].is_some(), could_stand, "{budget}: {taken:?}");
            let is_full = taken[at].is_some_and(|(form, _)| form == Form::Full);
            assert_eq!(
                is_full,
                could_stand && before[at] + full[at] + after[at] <= room,
                "{budget}: {taken:?}"
            );
        }
        let pinned: u32 = (0..3).map(tokens).sum();
        let rest: u32 = briefed
            .included
            .iter()
            .map(|included| included.tokens)
            .sum::<u32>()
            - pinned;
        assert!(rest + pinned <= room);
        seen.push(
            taken
                .iter()
                .map(|taken| taken.map(|(form, _)| form))
                .collect::<Vec<_>>(),
        );
    }
    let (full, summary, headline) = (Some(Form::Full), Some(Form::Summary), Some(Form::Headline));
    for forms in [
        [None, None, None],
        [headline, None, None],
        [headline, headline, headline],
        [summary, headline, headline],
        [summary, summary, headline],
        [full, headline, headline],
        [full, summary, headline],
        [full, full, headline],
        [full, full, full],
    ] {
        assert!(seen.iter().any(|seen| *seen == forms), "{forms:?}");
    }
}

#[test]
fn memories_stand_in_the_first_section_that_takes_them() {
    let bench = Bench::new();
    violins(&bench);
    let mut brief = ask("violin", 10_000);
    brief.sections = vec![
        section("Said", &["turn", "event"], None),
        section("Nothing of it", &["task"], None),
        section("Known", &["fact", "profile", "turn"], None),
    ];
    let briefed = answer(&bench, &brief);
    let order: Vec<&str> = briefed
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    assert_eq!(
        order,
        ["Said", "Known"],
        "a section without memories has no heading"
    );
    for included in &briefed.included {
        let number: usize = included.key[1..].parse().unwrap();
        let title = if matches!(number % 5, 1 | 2) {
            "Said"
        } else {
            "Known"
        };
        assert_eq!(included.section, title, "{}", included.key);
    }
    assert_eq!(briefed.included.len(), 16);
    let mut left_out = omitted(&briefed);
    left_out.sort_unstable_by_key(|(key, _)| key.to_owned());
    assert_eq!(
        left_out,
        ["v14", "v19", "v4", "v9"].map(|key| (key, Omission::Section))
    );
    assert!(briefed.omitted.iter().all(|omitted| omitted.tokens > 0));

    brief.sections.push(section("All else", &[], None));
    let briefed = answer(&bench, &brief);
    assert_eq!(briefed.included.len(), 20);
    assert!(
        included(&briefed)[16..]
            .iter()
            .all(|key| ["v14", "v19", "v4", "v9"].contains(key))
    );
    // What is pinned stands before the first heading, whatever its kind.
    let briefed = answer(&bench, &pinning(&["v9", "v1"], brief));
    assert_eq!(included(&briefed)[..2], ["v9", "v1"]);
    assert!(briefed.text.find("[m2]").unwrap() < briefed.text.find("## Said").unwrap());
}

#[test]
fn a_section_keeps_to_its_tokens() {
    let bench = Bench::new();
    violins(&bench);
    for format in FORMATS {
        for most in [1, 20, 60, 90, 200] {
            let mut brief = ask("violin crack bridge strings", 700);
            brief.format = format;
            brief.sections = vec![
                section("Known", &["fact", "profile", "note"], Some(most)),
                section("All else", &[], None),
            ];
            let briefed = answer(&bench, &brief);
            let of = |title: &str| -> u32 {
                let own = briefed
                    .included
                    .iter()
                    .filter(|included| included.section == title);
                own.map(|included| included.tokens).sum()
            };
            assert!(of("Known") <= most, "{format:?} {most}: {}", of("Known"));
            assert!(
                of("All else") > 300,
                "the room goes to others: {format:?} {most}"
            );
            assert_eq!(of("Known") > 0, most >= 60, "{format:?} {most}");
            assert!(briefed.text.contains("Known") == (of("Known") > 0));
        }
    }
}

/// The tokens of a text are those of its parts, so that the packing is the best one for the text.
#[test]
fn parts_add_up_in_every_format() {
    let bench = Bench::new();
    violins(&bench);
    for format in FORMATS {
        for encoding in Encoding::ALL {
            for (pins, with_sections) in [
                (&[][..], false),
                (&["v8", "v1"][..], false),
                (&[][..], true),
                (&["v8", "v1"][..], true),
            ] {
                let mut rests = HashSet::new();
                for budget in [80, 150, 300, 700, 4_000] {
                    let mut brief = pinning(pins, ask("violin crack bridge", budget));
                    brief.format = format;
                    brief.counter = Counter::from(encoding);
                    if with_sections {
                        // Both have memories at each of these budgets, or neither.
                        brief.sections = vec![section("All", &[], None)];
                    }
                    let briefed = answer(&bench, &brief);
                    let of_memories: u32 = briefed
                        .included
                        .iter()
                        .map(|included| included.tokens)
                        .sum();
                    if briefed.included.iter().any(|included| !included.pinned) {
                        rests.insert(briefed.tokens - of_memories);
                    }
                }
                assert_eq!(
                    rests.len(),
                    1,
                    "{format:?} {encoding:?} {pins:?} {with_sections} {rests:?}"
                );
            }
        }
    }
}

#[test]
fn every_counter_holds_every_budget_in_every_format() {
    let bench = Bench::new();
    violins(&bench);
    let approximate = Counters::built_in().get(APPROXIMATE).unwrap();
    for counter in [Counter::default(), Encoding::Cl100kBase.into(), approximate] {
        for format in FORMATS {
            let mut used = 0;
            for budget in (1..900).step_by(13) {
                let mut brief = pinning(&["v8"], ask("violin crack bridge", budget));
                brief.counter = counter.clone();
                brief.format = format;
                brief.sections = vec![
                    section("One", &["turn"], Some(100)),
                    section("Two", &[], None),
                ];
                used += answer(&bench, &brief).tokens;
            }
            assert!(used > 25_000, "{format:?} {}: {used}", counter.name());
        }
    }
}

#[test]
fn a_twin_of_what_is_left_out_is_left_out_for_the_budget() {
    let bench = Bench::new();
    let text = "The violin in the attic is the oldest one that we have.";
    bench.put(
        &space(),
        vec![
            of_kind("fact", "first", text),
            of_kind("note", "second", text),
            of_kind("turn", "short", "Violin."),
        ],
    );
    let reasons = |budget| {
        let briefed = answer(&bench, &ask("violin attic", budget));
        let twins = |key: &&str| ["first", "second"].contains(key);
        let stands = included(&briefed).iter().any(twins);
        let left: Vec<Omission> = briefed
            .omitted
            .iter()
            .filter(|omitted| twins(&omitted.key.as_str()))
            .map(|omitted| omitted.reason)
            .collect();
        (stands, left)
    };
    assert_eq!(reasons(500), (true, vec![Omission::Duplicate]));
    assert_eq!(
        reasons(46),
        (false, vec![Omission::Budget, Omission::Budget])
    );
    let mut brief = ask("violin attic", 500);
    brief.sections = vec![section("Notes", &["note"], None)];
    let briefed = answer(&bench, &brief);
    assert_eq!(
        included(&briefed),
        ["second"],
        "a twin that no section takes stands for nothing"
    );
    assert!(
        omitted(&briefed)
            .iter()
            .all(|(_, reason)| *reason == Omission::Section)
    );
}

#[test]
fn a_summary_in_a_brief_answers_the_query() {
    let bench = Bench::new();
    let text = format!(
        "{} The spare key of the archive hangs behind the blue cupboard, not in the drawer. {}",
        long("The bridge of the violin was replaced on May 17, 2024 for 129.90 euros."),
        long("Marta will bring the heron from the workshop if the paint is dry by then.")
    );
    let rows: Vec<String> = (0..60)
        .map(|at| {
            format!(
                "{{\"sku\": \"SH-{at}\", \"title\": \"Shoe of series {at}\", \"price\": {at}.50}}"
            )
        })
        .collect();
    bench.put(
        &space(),
        vec![
            memory("text", &text),
            NewMemory {
                json: true,
                ..memory(
                    "json",
                    &format!("{{\"order\": \"8812\", \"rows\": [{}]}}", rows.join(", ")),
                )
            },
        ],
    );
    for (pin, query, said) in [
        (
            "text",
            "where is the key of the archive?",
            "The spare key of the archive hangs behind the blue cupboard, not in the drawer.",
        ),
        (
            "text",
            "when was the bridge replaced?",
            "The bridge of the violin was replaced on May 17, 2024 for 129.90 euros.",
        ),
        (
            "text",
            "who brings the heron?",
            "Marta will bring the heron from the workshop if the paint is dry by then.",
        ),
        (
            "json",
            "price of SH-37",
            "rows.sku: SH-37; rows.title: Shoe of series 37; rows.price: 37.50",
        ),
    ] {
        let briefed = answer(&bench, &pinning(&[pin], ask(query, 130)));
        let summary = &briefed.included[0];
        assert_eq!((summary.form, summary.key.as_str()), (Form::Summary, pin));
        assert!(briefed.text.contains(said), "{query}: {}", briefed.text);
        assert!(summary.tokens <= 80 + 20);
    }
    // Without a known word the stored summary serves.
    let mut unknown = pinning(&["text"], ask("\u{200b}", 130));
    let stored = answer(&bench, &unknown);
    assert_eq!(stored.included[0].form, Form::Summary);
    unknown.query.text = "archive key".to_owned();
    unknown.query.selection.kinds = vec!["turn".to_owned()];
    assert_eq!(
        answer(&bench, &unknown).text,
        stored.text,
        "a pinned memory that was not found has no best passages"
    );
}

#[test]
fn what_is_worth_nothing_stands_where_there_is_room() {
    let bench = Bench::new();
    let worthless = NewMemory {
        importance: 0.0,
        confidence: 0.0,
        ..memory("invoice", "The invoice of the dentist is due in March.")
    };
    bench.put(
        &space(),
        vec![worthless, memory("heron", "A heron stands in the reeds.")],
    );
    let briefed = answer(&bench, &ask("heron in the reeds", 1_000));
    let mut keys = included(&briefed);
    keys.sort_unstable();
    assert_eq!(keys, ["heron", "invoice"]);
}

#[test]
fn one_long_memory_is_quoted_as_far_as_the_budget_goes() {
    let bench = Bench::new();
    let chapters: Vec<String> = (0..120)
        .map(|i| {
            let place = ["river", "garden", "harbour", "market", "station"][i % 5];
            format!(
                "Chapter {i} tells how the lighthouse keeper walked to the {place} on day {i} and counted {} boats \
                 before the fog came in from the sea.",
                i * 7
            )
        })
        .collect();
    bench.put(&space(), vec![memory("book", &chapters.join(" "))]);
    let whole = bench
        .engine
        .get(&get_keys(&space(), &["book"]), None)
        .unwrap()
        .found[0]
        .content_tokens;
    assert!(whole > 3_000, "{whole}");
    let mut last = 0;
    for budget in [300, 600, 1_200, 2_400] {
        let briefed = answer(&bench, &ask("the lighthouse keeper in chapter 77", budget));
        assert_eq!(briefed.included[0].form, Form::Passages);
        assert!(
            briefed.text.contains("Chapter 77 tells"),
            "{}",
            briefed.text
        );
        assert!(
            briefed.tokens * 2 > budget,
            "{} of {budget}",
            briefed.tokens
        );
        assert!(briefed.tokens > last);
        last = briefed.tokens;
    }
}

#[test]
fn fingerprints_tell_formats_and_sections_apart() {
    let bench = Bench::new();
    violins(&bench);
    let mut fingerprints = HashSet::new();
    let titles: [&[&str]; 4] = [&[], &["One"], &["Two"], &["One", "Two"]];
    for format in FORMATS {
        for titles in titles {
            for pins in [&[][..], &["v1"]] {
                let mut brief = pinning(pins, ask("violin", 500));
                brief.format = format;
                let section = |(at, title): (usize, &&str)| {
                    section(
                        title,
                        if at + 1 < titles.len() {
                            &["turn"]
                        } else {
                            &[]
                        },
                        None,
                    )
                };
                brief.sections = titles.iter().enumerate().map(section).collect();
                assert!(
                    fingerprints.insert(answer(&bench, &brief).fingerprint),
                    "{brief:?}"
                );
            }
        }
    }
}

#[test]
fn the_same_state_gives_the_same_bytes() {
    let mut bench = Bench::new();
    violins(&bench);
    let briefs: Vec<Brief> = FORMATS
        .iter()
        .map(|&format| Brief {
            format,
            sections: vec![
                section("Said", &["turn"], Some(90)),
                section("Known", &[], None),
            ],
            ..pinning(
                &["v13", "nobody", "v1"],
                ask("violin strings of set 5", 600),
            )
        })
        .collect();
    let expected: Vec<Briefed> = briefs.iter().map(|brief| answer(&bench, brief)).collect();
    for index_after in [u32::MAX, 10] {
        bench.options.index_after = index_after;
        bench.clock.advance(40 * DAY);
        bench = bench.reopen();
        let again: Vec<Briefed> = briefs.iter().map(|brief| answer(&bench, brief)).collect();
        assert_eq!(again, expected);
    }
}
