use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

type Items = Vec<Vec<Form>>;

/// Tries every choice: the best value, then the fewest tokens.
fn brute_force(items: &[Vec<Form>], budget: u64) -> (u64, u64) {
    let Some((first, rest)) = items.split_first() else {
        return (0, 0);
    };
    let without = brute_force(rest, budget);
    first
        .iter()
        .filter(|form| u64::from(form.tokens) <= budget)
        .map(|form| {
            let (value, tokens) = brute_force(rest, budget - u64::from(form.tokens));
            (value + form.value, tokens + u64::from(form.tokens))
        })
        .fold(without, better)
}

/// The best value and the fewest tokens that reach it.
fn table(items: &[Vec<Form>], budget: u32) -> (u64, u64) {
    tables(items, budget)[budget as usize]
}

/// The textbook's table: for every number of tokens, the best value and the fewest tokens that reach it.
fn tables(items: &[Vec<Form>], budget: u32) -> Vec<(u64, u64)> {
    let mut best = vec![(0, 0); budget as usize + 1];
    for item in items {
        best = (0..best.len())
            .map(|room| {
                item.iter()
                    .filter(|form| form.tokens as usize <= room)
                    .map(|form| {
                        let (value, tokens): (u64, u64) = best[room - form.tokens as usize];
                        (value + form.value, tokens + u64::from(form.tokens))
                    })
                    .fold(best[room], better)
            })
            .collect();
    }
    best
}

fn better(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    if (b.0, std::cmp::Reverse(b.1)) > (a.0, std::cmp::Reverse(a.1)) {
        b
    } else {
        a
    }
}

/// The parts of a packing agree with each other and with the budget.
fn check(items: &[Vec<Form>], budget: u32, packing: &Packing) {
    assert_eq!(packing.choices.len(), items.len());
    let taken: Vec<Form> = items
        .iter()
        .zip(&packing.choices)
        .filter_map(|(item, choice)| choice.map(|form| item[form as usize]))
        .collect();
    let tokens: u64 = taken.iter().map(|form| u64::from(form.tokens)).sum();
    assert!(tokens <= u64::from(budget), "{tokens} tokens of {budget}");
    assert_eq!(tokens, u64::from(packing.tokens));
    assert_eq!(
        taken.iter().map(|form| form.value).sum::<u64>(),
        packing.value
    );
    assert!(taken.iter().all(|form| form.value > 0));
    assert!(packing.bound >= packing.value);
    assert!((0.0..=1.0).contains(&packing.gap()));
}

fn form(tokens: u32, value: u64) -> Form {
    Form { tokens, value }
}

/// A fixed sequence of numbers (xorshift), for instances too large to shrink.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn between(&mut self, least: u32, most: u32) -> u32 {
        least + self.below(u64::from(most - least + 1)) as u32
    }
}

/// Candidates of a brief: falling scores, three forms each, values of a score times the form's share.
fn brief(candidates: u64, seed: u64) -> Items {
    let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    (0..candidates)
        .map(|rank| {
            let score = 900_000 * (candidates - rank / 2) / candidates + numbers.below(60_000);
            let share = 650 + numbers.below(250);
            vec![
                form(numbers.between(40, 300), score * 1_000),
                form(numbers.between(30, 80), score * share),
                form(numbers.between(8, 16), score * share / 2),
            ]
        })
        .collect()
}

/// One form an item, whose value is its cost and a constant: hard, as all rates are near each other.
fn strongly_correlated(items: u64, seed: u64) -> Items {
    let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    (0..items)
        .map(|_| {
            (0..3)
                .map(|_| {
                    let tokens = numbers.between(100, 1_000);
                    form(tokens, u64::from(tokens) * 1_000 + 100_003)
                })
                .collect()
        })
        .collect()
}

#[test]
fn nothing_to_pack() {
    let nothing = Packing {
        choices: vec![],
        tokens: 0,
        value: 0,
        bound: 0,
    };
    assert_eq!(pack::<Vec<Form>>(&[], 100), nothing);
    for items in [vec![], vec![form(101, 9)], vec![form(5, 0), form(0, 0)]] {
        let packing = pack(&[items], 100);
        assert_eq!(packing.choices, [None]);
        assert!(packing.is_optimal() && packing.gap() == 0.0);
    }
}

#[test]
fn what_fits_is_taken_in_its_best_form() {
    let items = [
        [form(40, 100), form(20, 100), form(5, 30)],
        [form(10, 7), form(50, 70), form(60, 70)],
    ];
    let packing = pack(&items, 70);
    assert_eq!(packing.choices, [Some(1), Some(1)]);
    assert_eq!(
        (packing.tokens, packing.value, packing.bound),
        (70, 170, 170)
    );
}

#[test]
fn a_form_without_cost_is_taken_at_any_budget() {
    let packing = pack(&[vec![form(0, 3), form(9, 4)], vec![form(0, 1)]], 0);
    assert_eq!(packing.choices, [Some(0), Some(0)]);
    assert_eq!((packing.tokens, packing.value), (0, 4));
}

#[test]
fn an_item_over_the_budget_does_not_empty_the_packing() {
    let packing = pack(&[vec![form(1_000, 1_000_000)], vec![form(3, 1)]], 10);
    assert_eq!(packing.choices, [None, Some(0)]);
}

#[test]
fn the_greedy_order_is_left_where_another_packing_is_worth_more() {
    // By rate the first goes first, and then nothing fits.
    let items = [vec![form(6, 60)], vec![form(5, 49)], vec![form(5, 49)]];
    let packing = pack(&items, 10);
    assert_eq!(packing.choices, [None, Some(0), Some(0)]);
    assert_eq!((packing.value, packing.bound), (98, 98));
}

#[test]
fn of_equal_values_the_fewer_tokens_are_taken() {
    let items = [
        vec![form(6, 50), form(9, 80)],
        vec![form(4, 30)],
        vec![form(10, 70)],
    ];
    assert_eq!(table(&items, 10), (80, 9));
    let packing = pack(&items, 10);
    assert_eq!((packing.value, packing.tokens), (80, 9));
}

#[test]
fn the_greatest_numbers_do_not_overflow() {
    let most = 1u64 << 62;
    let items = [
        vec![form(u32::MAX, most / 2), form(u32::MAX - 1, 1)],
        vec![form(u32::MAX, most / 2 - 1), form(1, most / 2 - 2)],
        vec![form(u32::MAX - 1, 1)],
    ];
    let packing = pack(&items, u32::MAX);
    check(&items, u32::MAX, &packing);
    assert_eq!(packing.choices, [Some(0), None, None]);
    assert!(packing.is_optimal());
}

#[test]
#[should_panic(expected = "2^62")]
fn values_that_would_overflow_are_refused() {
    let _ = pack(&[[form(1, u64::MAX)], [form(1, u64::MAX)]], 10);
}

#[test]
fn a_brief_of_1200_tokens_is_packed_exactly() {
    for seed in 0..40 {
        let items = brief(64, seed);
        let packing = pack(&items, 1_200);
        check(&items, 1_200, &packing);
        assert!(packing.is_optimal(), "seed {seed}");
        assert_eq!(
            (packing.value, u64::from(packing.tokens)),
            table(&items, 1_200)
        );
    }
}

#[test]
fn a_brief_of_32000_tokens_is_packed_exactly() {
    for seed in 0..60 {
        let items = brief(256, seed);
        let packing = pack(&items, 32_000);
        check(&items, 32_000, &packing);
        assert!(packing.is_optimal(), "seed {seed}");
    }
    let items = brief(256, 1);
    let packing = pack(&items, 32_000);
    assert_eq!(
        (packing.value, u64::from(packing.tokens)),
        table(&items, 32_000)
    );
}

#[test]
fn a_hard_instance_is_left_with_a_proved_gap() {
    for seed in 0..20 {
        let items = strongly_correlated(60, seed);
        let budget = 9_000;
        let (value, _) = table(&items, budget);
        let mut last = u64::MAX;
        for work_limit in [0, 10, 1_000, 30_000, u64::MAX] {
            let packing = pack_within(&items, budget, work_limit);
            check(&items, budget, &packing);
            assert!(
                packing.value <= value && packing.bound >= value,
                "seed {seed}, work {work_limit}"
            );
            assert!(
                packing.gap() <= 0.05,
                "seed {seed}, work {work_limit}: {}",
                packing.gap()
            );
            assert!(packing.bound <= last, "more work proves no less");
            last = packing.bound;
        }
        assert_eq!(last, value);
        assert!(
            !pack_within(&items, budget, 0).is_optimal(),
            "seed {seed} is not hard"
        );
    }
}

/// All values per token are nearly equal, and costs are even where the budget is odd: no packing reaches the bound of the
/// relaxation, and very many come close.
#[test]
fn at_the_work_limit_the_gap_is_below_one_percent() {
    for seed in 1..8 {
        let mut numbers = Numbers(seed);
        let items: Items = (0..256)
            .map(|_| {
                (0..3)
                    .map(|_| {
                        let tokens = 2 * numbers.between(8, 300);
                        form(tokens, u64::from(tokens) * 1_000 + numbers.below(100))
                    })
                    .collect()
            })
            .collect();
        let packing = pack(&items, 32_001);
        check(&items, 32_001, &packing);
        assert!(!packing.is_optimal(), "seed {seed} does not meet the limit");
        assert!(packing.gap() <= 0.01, "seed {seed}: {}", packing.gap());
    }
}

fn small_form() -> impl Strategy<Value = Form> {
    (0u32..30, 0u64..40).prop_map(|(tokens, value)| form(tokens, value))
}

/// Values near their costs, so that many packings are near the optimum and ties are common.
fn correlated_form() -> impl Strategy<Value = Form> {
    (1u32..60, 0u64..4).prop_map(|(tokens, extra)| form(tokens, u64::from(tokens) + extra))
}

fn items(form: impl Strategy<Value = Form>, most: usize) -> impl Strategy<Value = Items> {
    vec(vec(form, 0..=4), 0..=most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn equals_brute_force(
        items in prop_oneof![items(small_form(), 6), items(correlated_form(), 6)], budget in 0u32..150,
    ) {
        let packing = pack(&items, budget);
        check(&items, budget, &packing);
        prop_assert!(packing.is_optimal());
        prop_assert_eq!((packing.value, u64::from(packing.tokens)), brute_force(&items, budget.into()));
    }

    #[test]
    fn equals_the_table(
        items in prop_oneof![items(small_form(), 40), items(correlated_form(), 40)], budget in 0u32..900,
    ) {
        let packing = pack(&items, budget);
        check(&items, budget, &packing);
        prop_assert!(packing.is_optimal());
        prop_assert_eq!((packing.value, u64::from(packing.tokens)), table(&items, budget));
    }

    #[test]
    fn the_order_of_items_does_not_change_the_value(
        (items, shuffled) in items(correlated_form(), 30)
            .prop_flat_map(|items| (Just(items.clone()), Just(items).prop_shuffle())),
        budget in 0u32..700,
    ) {
        let (packing, other) = (pack(&items, budget), pack(&shuffled, budget));
        prop_assert_eq!((packing.value, packing.tokens), (other.value, other.tokens));
    }

    #[test]
    fn a_bound_stands_whatever_work_was_allowed(
        items in items(correlated_form(), 25), budget in 0u32..600, work_limit in 0u64..400,
    ) {
        let packing = pack_within(&items, budget, work_limit);
        check(&items, budget, &packing);
        let (value, _) = table(&items, budget);
        prop_assert!(packing.value <= value && value <= packing.bound);
    }

    #[test]
    fn any_input_is_packed_within_the_budget(
        items in vec(vec((any::<u32>(), 0..1u64 << 56), 0..5), 0..60), budget: u32, work_limit in 0u64..20_000,
    ) {
        let items: Items = items
            .into_iter()
            .map(|forms| forms.into_iter().map(|(tokens, value)| form(tokens, value)).collect())
            .collect();
        check(&items, budget, &pack_within(&items, budget, work_limit));
    }
}

mod sections;
