//! Packing under headings, against trying everything and against the textbook's tables.

use super::*;
use crate::pack::sections::pack_within as pack_sections_within;

type Sections = Vec<Section<Vec<Form>>>;

/// The best value of every number of tokens of a section up to `budget`, and the fewest tokens that reach it.
fn section_table(section: &Section<Vec<Form>>, budget: u32) -> Vec<(u64, u64)> {
    let mut filled = vec![(0, 0); budget as usize + 1];
    let heading = section.heading as usize;
    let most = section.most.min(budget);
    if let Some(room) = most.checked_sub(section.heading) {
        for (tokens, (value, used)) in tables(&section.items, room).into_iter().enumerate() {
            if value > 0 {
                filled[tokens + heading] = (value, used + heading as u64);
            }
        }
        let whole = filled[most as usize];
        filled[most as usize..].fill(whole);
    }
    filled
}

fn sections_table(sections: &[Section<Vec<Form>>], budget: u32) -> (u64, u64) {
    let mut best = vec![(0, 0); budget as usize + 1];
    for section in sections {
        let filled = section_table(section, budget);
        best = (0..best.len())
            .map(|room| {
                (0..=room)
                    .map(|own| {
                        let (a, b) = (filled[own], best[room - own]);
                        (a.0 + b.0, a.1 + b.1)
                    })
                    .fold((0, 0), better)
            })
            .collect();
    }
    best[budget as usize]
}

/// Tries every choice of every section.
fn brute_force_sections(sections: &[Section<Vec<Form>>], budget: u64) -> (u64, u64) {
    let Some((first, rest)) = sections.split_first() else {
        return (0, 0);
    };
    let mut best = brute_force_sections(rest, budget);
    let mut fillings = vec![(0, 0)];
    for item in &first.items {
        let before = fillings.clone();
        for form in item {
            let taken = |(value, tokens): &(u64, u64)| {
                (value + form.value, tokens + u64::from(form.tokens))
            };
            fillings.extend(before.iter().map(taken));
        }
    }
    for (value, tokens) in fillings {
        let tokens = tokens + u64::from(first.heading);
        if value > 0 && tokens <= budget.min(first.most.into()) {
            let others = brute_force_sections(rest, budget - tokens);
            best = better(best, (others.0 + value, others.1 + tokens));
        }
    }
    best
}

/// The parts of a packing agree with each other, with the limits and with the budget.
fn check_sections(sections: &[Section<Vec<Form>>], budget: u32, packing: &Packing) {
    let mut choices = packing.choices.iter();
    let (mut tokens, mut value) = (0, 0);
    for section in sections {
        let taken: Vec<Form> = section
            .items
            .iter()
            .filter_map(|item| choices.next().unwrap().map(|form| item[form as usize]))
            .collect();
        assert!(taken.iter().all(|form| form.value > 0));
        let own: u64 = taken.iter().map(|form| u64::from(form.tokens)).sum();
        let own = own
            + if taken.is_empty() {
                0
            } else {
                u64::from(section.heading)
            };
        assert!(
            own <= u64::from(section.most),
            "{own} tokens of {}",
            section.most
        );
        tokens += own;
        value += taken.iter().map(|form| form.value).sum::<u64>();
    }
    assert_eq!(choices.next(), None);
    assert_eq!((tokens, value), (packing.tokens.into(), packing.value));
    assert!(tokens <= u64::from(budget), "{tokens} tokens of {budget}");
    assert!(packing.bound >= packing.value);
}

fn section(items: Items, heading: u32, most: u32) -> Section<Vec<Form>> {
    Section {
        items,
        heading,
        most,
    }
}

/// Candidates of a brief in sections of which every other one has a limit that holds it back.
fn sectioned_brief(candidates: u64, count: u64, budget: u32, seed: u64) -> Sections {
    let mut numbers = Numbers(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) | 1);
    let mut sections: Sections = (0..count)
        .map(|at| {
            let most = if at % 2 == 0 {
                budget / count as u32
            } else {
                u32::MAX
            };
            section(Vec::new(), numbers.between(3, 9), most)
        })
        .collect();
    for item in brief(candidates, seed) {
        let at = numbers.below(count) as usize;
        sections[at].items.push(item);
    }
    sections
}

#[test]
fn a_heading_costs_only_where_something_stands_under_it() {
    let sections = [
        section(vec![vec![form(4, 10)], vec![form(4, 10)]], 3, 100),
        section(vec![vec![form(2, 10)]], 3, 100),
    ];
    for (budget, choices) in [
        (4, [None, None, None]),
        (5, [None, None, Some(0)]),
        (11, [Some(0), Some(0), None]),
        (16, [Some(0), Some(0), Some(0)]),
    ] {
        let packing = pack_sections(&sections, budget);
        check_sections(&sections, budget, &packing);
        assert_eq!(packing.choices, choices, "{budget}");
    }
}

#[test]
fn a_limit_holds_its_section_and_leaves_the_room_to_others() {
    let items = || {
        vec![
            vec![form(10, 100)],
            vec![form(10, 100)],
            vec![form(10, 100)],
        ]
    };
    let sections = [section(items(), 2, 22), section(items(), 2, u32::MAX)];
    let packing = pack_sections(&sections, 54);
    check_sections(&sections, 54, &packing);
    assert_eq!(
        packing
            .choices
            .iter()
            .filter(|choice| choice.is_some())
            .count(),
        5
    );
    assert_eq!(
        packing.choices[..3]
            .iter()
            .filter(|choice| choice.is_some())
            .count(),
        2
    );
    assert_eq!((packing.tokens, packing.value), (54, 500));
}

#[test]
fn a_heading_over_the_limit_or_the_budget_leaves_its_section_empty() {
    let sections = [
        section(vec![vec![form(1, 5), form(0, 4)]], 9, 8),
        section(vec![vec![form(1, 5)]], 50, u32::MAX),
        section(vec![vec![form(0, 7)]], 0, 10),
    ];
    let packing = pack_sections(&sections, 20);
    assert_eq!(
        (packing.choices, packing.value),
        (vec![None, None, None], 0)
    );
    assert_eq!(pack_sections::<Vec<Form>>(&[], 20).bound, 0);
}

#[test]
fn one_section_without_a_heading_is_packed_like_its_items() {
    for seed in 0..20 {
        let items = brief(64, seed);
        let packing = pack_sections(&[section(items.clone(), 0, u32::MAX)], 1_200);
        let plain = pack(&items, 1_200);
        assert_eq!(
            (packing.value, packing.tokens, packing.bound),
            (plain.value, plain.tokens, plain.bound)
        );
    }
}

#[test]
fn a_brief_of_1200_tokens_in_sections_is_packed_exactly() {
    for count in [1, 3, 6, 16] {
        for seed in 0..8 {
            let sections = sectioned_brief(64, count, 1_200, seed);
            let packing = pack_sections(&sections, 1_200);
            check_sections(&sections, 1_200, &packing);
            assert!(packing.is_optimal(), "{count} sections, seed {seed}");
            assert_eq!(
                (packing.value, u64::from(packing.tokens)),
                sections_table(&sections, 1_200)
            );
        }
    }
}

#[test]
fn a_brief_of_32000_tokens_in_sections_is_packed_exactly() {
    for seed in 0..20 {
        let sections = sectioned_brief(256, 8, 32_000, seed);
        let packing = pack_sections(&sections, 32_000);
        check_sections(&sections, 32_000, &packing);
        assert!(packing.is_optimal(), "seed {seed}");
    }
}

#[test]
fn hard_sections_are_left_with_a_proved_gap() {
    for seed in 0..3 {
        let items = strongly_correlated(60, seed);
        let sections: Sections = items
            .chunks(15)
            .map(|items| section(items.to_vec(), 50, 4_000))
            .collect();
        let (value, _) = sections_table(&sections, 9_000);
        for work_limit in [0, 1_000, 30_000, 1 << 40] {
            let packing = pack_sections_within(&sections, 9_000, work_limit);
            check_sections(&sections, 9_000, &packing);
            assert!(
                packing.value <= value && packing.bound >= value,
                "seed {seed}, work {work_limit}"
            );
            assert!(
                packing.gap() <= 0.05,
                "seed {seed}, work {work_limit}: {}",
                packing.gap()
            );
            assert_eq!(
                work_limit == 1 << 40,
                packing.bound == value && packing.is_optimal(),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn the_greatest_numbers_of_sections_do_not_overflow() {
    let most = 1u64 << 62;
    let sections = [
        section(
            vec![vec![form(u32::MAX, most / 2), form(u32::MAX - 9, 1)]],
            0,
            u32::MAX,
        ),
        section(
            vec![vec![form(u32::MAX, most / 2 - 1), form(1, most / 2 - 2)]],
            u32::MAX - 1,
            u32::MAX,
        ),
    ];
    let packing = pack_sections(&sections, u32::MAX);
    check_sections(&sections, u32::MAX, &packing);
    assert_eq!(
        (packing.choices, packing.value),
        (vec![Some(0), None], most / 2)
    );
}

fn sections(
    form: impl Strategy<Value = Form>,
    count: usize,
    most: usize,
) -> impl Strategy<Value = Sections> {
    let form = form.prop_map(|of| Form {
        tokens: of.tokens.max(1),
        ..of
    });
    let limit = prop_oneof![0u32..60, 0u32..400, Just(u32::MAX)];
    vec((items(form, most), 0u32..12, limit), 0..=count).prop_map(|parts| {
        parts
            .into_iter()
            .map(|(items, heading, most)| section(items, heading, most))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn sections_equal_brute_force(
        sections in prop_oneof![sections(small_form(), 3, 3), sections(correlated_form(), 3, 3)], budget in 0u32..150,
    ) {
        let packing = pack_sections(&sections, budget);
        check_sections(&sections, budget, &packing);
        prop_assert!(packing.is_optimal());
        prop_assert_eq!((packing.value, u64::from(packing.tokens)), brute_force_sections(&sections, budget.into()));
    }

    #[test]
    fn sections_equal_the_table(
        sections in prop_oneof![sections(small_form(), 6, 12), sections(correlated_form(), 6, 12)], budget in 0u32..400,
    ) {
        let packing = pack_sections(&sections, budget);
        check_sections(&sections, budget, &packing);
        prop_assert!(packing.is_optimal());
        prop_assert_eq!((packing.value, u64::from(packing.tokens)), sections_table(&sections, budget));
    }

    #[test]
    fn a_bound_of_sections_stands_whatever_work_was_allowed(
        sections in sections(correlated_form(), 4, 10), budget in 0u32..400, work_limit in 0u64..2_000,
    ) {
        let packing = pack_sections_within(&sections, budget, work_limit);
        check_sections(&sections, budget, &packing);
        let (value, _) = sections_table(&sections, budget);
        prop_assert!(packing.value <= value && value <= packing.bound);
    }

    #[test]
    fn any_sections_are_packed_within_their_limits(
        parts in vec((vec(vec((any::<u32>(), 0..1u64 << 56), 0..4), 0..12), any::<u32>(), any::<u32>()), 0..5),
        budget: u32, work_limit in 0u64..20_000,
    ) {
        let sections: Sections = parts
            .into_iter()
            .map(|(items, heading, most)| {
                let items = items.into_iter().map(|forms| forms.into_iter().map(|(tokens, value)| form(tokens, value)).collect());
                section(items.collect(), heading, most)
            })
            .collect();
        check_sections(&sections, budget, &pack_sections_within(&sections, budget, work_limit));
    }
}
