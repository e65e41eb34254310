//! The price of tokens, about: the vendor's public price list (platform.claude.com/docs/en/about-claude/pricing), by model.
//!
//! An estimate: without discounts, subscriptions and other vendors' prices, and without requests that the client does not write down, such as those for
//! titles of sessions. An unknown model counts as the most expensive one: a brake that comes early costs a word, one that comes late costs money.

use ralph_core::{judge::session_outcome::Tokens, money::Micros};

use super::usage::Usage;

/// Tokens that a conversation with a model may have: `[1m]` is the larger one's name, and some have it without.
pub(super) fn window(model: &str, seen: u64) -> u64 {
    const SMALL: u64 = 200_000;
    const LARGE: u64 = 1_000_000;
    const LARGE_ANYWAY: [&str; 2] = ["opus-5-5", "sonnet-5-5"];
    let is_large = model.contains("[1m]") || LARGE_ANYWAY.iter().any(|name| model.contains(name)) || seen > SMALL;
    if is_large { LARGE } else { SMALL }
}

/// The price of one token in billionths of a dollar, which is that of a million in thousandths.
#[derive(Debug, Clone, Copy)]
struct Price {
    input: u64,
    output: u64,
    read: u64,
    /// Times as much in the fast mode.
    fast: u64,
    /// Times as much above [`LONG_PROMPT`] tokens.
    long: u64,
}

const LONG_PROMPT: u64 = 100_000;

/// A web search, in billionths of a dollar.
const SEARCH: u64 = 10_000_000;

const fn price(input: u64, output: u64, read: u64) -> Price {
    Price { input, output, read, fast: 6, long: 1 }
}

/// With the newer models' fast mode.
const fn doubled(input: u64, output: u64, read: u64) -> Price {
    Price { fast: 2, ..price(input, output, read) }
}

/// For models that are not in the list.
const DEAREST: Price = price(15_000, 75_000, 1_500);

/// Models by the part of their names that all vendors of them use.
const PRICES: &[(&[&str], Price)] = &[
    (&["fable-5-2", "mythos-5-2"], doubled(8_000, 40_000, 200)),
    (&["fable-5-1", "mythos-5-1"], price(10_000, 50_000, 250)),
    (&["fable-5", "mythos-5"], price(10_000, 50_000, 1_000)),
    (&["opus-5-5"], doubled(4_000, 20_000, 200)),
    (&["opus-5", "opus-4-8"], doubled(5_000, 25_000, 500)),
    (&["opus-4-7", "opus-4-6", "opus-4-5"], price(5_000, 25_000, 500)),
    (&["opus-4-1", "opus-4-0", "opus-4", "3-opus"], DEAREST),
    (&["sonnet-5-5"], price(2_000, 10_000, 100)),
    (&["sonnet-5"], price(2_000, 10_000, 200)),
    (&["sonnet-4-6", "sonnet-4-5", "sonnet-4-0", "sonnet-4", "3-7-sonnet", "3-5-sonnet", "3-sonnet"], price(3_000, 15_000, 300)),
    (&["haiku-5-5"], Price { long: 5, ..price(100, 500, 10) }),
    (&["haiku-4-5"], price(1_000, 5_000, 100)),
    (&["3-5-haiku"], price(800, 4_000, 80)),
    (&["3-haiku"], price(250, 1_250, 30)),
];

fn listed(model: &str) -> Option<Price> {
    PRICES.iter().find(|(names, _)| names.iter().any(|name| is_called(model, name))).map(|(_, price)| *price)
}

/// The cost of tokens that another agent used of a model; `None`: it is not in the list.
pub(in crate::hosts) fn list_price(model: &str, tokens: Tokens) -> Option<Micros> {
    listed(model).map(|price| of(price, &Usage { tokens, ..Usage::default() }))
}

/// The estimated cost of an answer, rounded up.
pub(super) fn cost(model: &str, usage: &Usage) -> Micros {
    of(listed(model).unwrap_or(DEAREST), usage)
}

fn of(price: Price, usage: &Usage) -> Micros {
    let tokens = usage.tokens;
    let parts = [
        (tokens.input, price.input),
        (tokens.output, price.output),
        (tokens.cache_written.saturating_sub(usage.written_1h), price.input * 5 / 4),
        (usage.written_1h, price.input * 2),
        (tokens.cache_read, price.read),
    ];
    let sum: u128 = parts.into_iter().map(|(tokens, price)| u128::from(tokens) * u128::from(price)).sum();
    let times = (if usage.is_fast { price.fast } else { 1 }) * (if usage.prompt() > LONG_PROMPT { price.long } else { 1 });
    let sum = sum * u128::from(times) * if usage.is_local { 11 } else { 10 } / 10;
    let sum = sum + u128::from(usage.searches) * u128::from(SEARCH);
    Micros::try_from(sum.div_ceil(1_000)).unwrap_or(Micros::MAX)
}

/// Whether a model's name has this part and no other version after it; a date, a region or a form may follow.
fn is_called(model: &str, name: &str) -> bool {
    model.match_indices(name).any(|(at, _)| {
        let rest = &model[at + name.len()..];
        let is_cut = rest.starts_with(|c: char| c.is_ascii_digit());
        let digits = rest.strip_prefix(['-', '.']).map_or(0, |rest| rest.chars().take_while(char::is_ascii_digit).count());
        !is_cut && !(1..=2).contains(&digits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ralph_core::money::{of_dollars, shown};

    const DOLLAR: Micros = 1_000_000;

    fn one(model: &str, tokens: Tokens) -> Micros {
        cost(model, &Usage { tokens, ..Usage::default() })
    }

    fn million(model: &str) -> Micros {
        one(model, Tokens { input: 100_000, ..Tokens::default() }) * 10
    }

    #[test]
    fn s2_7_models_have_their_list_price_wherever_they_run() {
        for (model, dollars) in [
            ("claude-opus-5-5", 4.0),
            ("claude-opus-5", 5.0),
            ("claude-opus-5-20260723", 5.0),
            ("us.anthropic.claude-opus-4-6-v1:0", 5.0),
            ("claude-opus-4-5@20251101", 5.0),
            ("claude-opus-4-8[1m]", 5.0),
            ("claude-opus-4-20250514", 15.0),
            ("claude-sonnet-5", 2.0),
            ("claude-sonnet-4-5-20250929", 3.0),
            ("claude-3-7-sonnet-latest", 3.0),
            ("claude-haiku-4-5-20251001", 1.0),
            ("claude-haiku-5-5", 0.1),
            ("claude-fable-5-2", 8.0),
            ("claude-fable-5-20261001", 10.0),
        ] {
            assert_eq!(million(model), of_dollars(dollars), "{model}");
        }
    }

    #[test]
    fn s2_7_what_is_not_known_counts_as_the_dearest() {
        for model in ["", "gpt-9", "claude-opus-4-9", "claude-opus-5-6", "claude-sonnet-6", "<synthetic>"] {
            assert_eq!(million(model), 15 * DOLLAR, "{model}");
        }
    }

    #[test]
    fn s2_7_each_kind_of_token_has_its_price() {
        let opus = |tokens: Tokens| one("claude-opus-5", tokens);
        let none = Tokens::default();
        let written = Tokens { cache_written: 1_000_000, ..none };
        let answer = Usage { tokens: Tokens { output: 1_000_000, ..none }, ..Usage::default() };
        assert_eq!(opus(answer.tokens), 25 * DOLLAR);
        assert_eq!(opus(written), 6_250_000);
        assert_eq!(cost("claude-opus-5", &Usage { tokens: written, written_1h: 1_000_000, ..Usage::default() }), 10 * DOLLAR);
        assert_eq!(opus(Tokens { cache_read: 1_000_000, ..none }), 500_000);
        assert_eq!(cost("claude-opus-5", &Usage { searches: 3, ..Usage::default() }), 30_000);
        assert_eq!(cost("claude-opus-5", &Usage { is_fast: true, ..answer }), 50 * DOLLAR);
        assert_eq!(cost("claude-opus-5", &Usage { is_local: true, ..answer }), 27_500_000);
        assert_eq!(cost("claude-opus-4-6", &Usage { is_fast: true, ..answer }), 150 * DOLLAR);
        assert_eq!(
            one("claude-haiku-5-5", Tokens { input: 1, cache_read: 100_000, ..none }),
            5_001,
            "a long prompt costs five times as much"
        );
        assert_eq!(one("claude-haiku-5-5", Tokens { output: 1, ..none }), 1, "rounded up");
    }

    proptest! {
        /// Whatever a file says, there is a price for it, and more tokens never cost less.
        #[test]
        fn s2_7_more_never_costs_less(model in "\\PC{0,30}", input in any::<u64>(), output in any::<u64>(), more in any::<u64>()) {
            let less = one(&model, Tokens { input, output, ..Tokens::default() });
            let tokens = Tokens { input, output: output.saturating_add(more), cache_read: more, ..Tokens::default() };
            prop_assert!(one(&model, tokens) >= less);
            prop_assert!(shown(less).to_string().starts_with('$'));
        }
    }
}
