//! The price of tokens of models other than Claude's: the vendors' public price lists, and what `ralph.toml` says instead.
//!
//! An estimate: without discounts, subscriptions and the higher prices of very long prompts. A model that is in neither list has no price: what it costs is not
//! known, and no guess is made.

use ralph_core::{judge::session_outcome::Tokens, money::Micros};

use super::claude;

/// Thousandths of a dollar for a million tokens: input, output, input from the cache.
type Price = [u64; 3];

/// Models by the beginnings of their names, the longer ones first where one begins with another. A date or a form may follow.
const LIST: &[(&str, Price)] = &[
    ("gpt-6-astra", [10_000, 50_000, 1_000]),
    ("gpt-6-sol", [2_000, 10_000, 200]),
    ("gpt-6-luna", [100, 500, 10]),
    ("gpt-5.6-sol", [5_000, 30_000, 500]),
    ("gpt-5.6-terra", [2_000, 12_000, 200]),
    ("gpt-5.6-luna", [200, 1_200, 20]),
    ("gpt-5.5", [5_000, 30_000, 500]),
    ("gpt-5.4-mini", [750, 4_500, 75]),
    ("gpt-5.4-nano", [200, 1_250, 20]),
    ("gpt-5.4", [2_500, 15_000, 250]),
    ("gpt-5.3-codex", [1_750, 14_000, 175]),
    ("gpt-5.2-codex", [1_750, 14_000, 175]),
    ("gpt-5.2", [1_750, 14_000, 175]),
    ("gpt-5.1-codex", [1_250, 10_000, 125]),
    ("gpt-5.1", [1_250, 10_000, 125]),
    ("gpt-5-codex", [1_250, 10_000, 125]),
    ("gpt-5-mini", [250, 2_000, 25]),
    ("gpt-5", [1_250, 10_000, 125]),
    // Half of it until the end of 2026.
    ("gemini-3.8-flash", [1_500, 7_500, 150]),
    ("gemini-3.7-flash", [1_500, 7_500, 150]),
    ("gemini-3.6-flash", [1_500, 7_500, 150]),
    ("gemini-3.5-flash", [1_500, 9_000, 150]),
    ("gemini-3.1-pro", [2_000, 12_000, 200]),
    ("gemini-2.5-pro", [1_250, 10_000, 125]),
    ("gemini-2.5-flash", [300, 2_500, 30]),
    ("grok-4.7", [2_000, 6_000, 500]),
    ("grok-4.6", [2_000, 6_000, 500]),
    ("grok-4.5", [2_000, 6_000, 500]),
];

/// Forms of a model that have a price of their own: without a row, they have none.
const OTHER_FORMS: [&str; 6] = ["mini", "nano", "pro", "lite", "max", "fast"];

/// Prices that a person wrote down, before those of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices(pub Vec<(String, Price)>);

impl Prices {
    /// When the price lists were read, Claude's included.
    pub const READ_IN: &str = "November 2026";

    /// What these tokens of a model cost, rounded up; `None`: its price is not known.
    pub(crate) fn cost(&self, model: &str, tokens: Tokens) -> Option<Micros> {
        // A provider's name may stand before it: `openai/gpt-5.5`, `custom:gpt-5.5`.
        let name = model.rsplit(['/', ':']).next().unwrap_or(model);
        let own = self.0.iter().find(|(own, _)| own == model || own == name).map(|(_, price)| *price);
        match own.or_else(|| LIST.iter().find(|(listed, _)| is_called(name, listed)).map(|(_, price)| *price)) {
            Some(price) => Some(of(price, tokens)),
            None => claude::list_price(name, tokens),
        }
    }
}

fn of([input, output, cached]: Price, tokens: Tokens) -> Micros {
    // What is written to the cache costs a quarter more, where it is told at all.
    let parts = [(tokens.input, input), (tokens.output, output), (tokens.cache_read, cached), (tokens.cache_written, input * 5 / 4)];
    let sum: u128 = parts.into_iter().map(|(count, price)| u128::from(count) * u128::from(price)).sum();
    Micros::try_from(sum.div_ceil(1_000)).unwrap_or(Micros::MAX)
}

/// Whether a model is that one, and no other version or form of it.
fn is_called(model: &str, listed: &str) -> bool {
    let Some(rest) = model.strip_prefix(listed) else { return false };
    let Some(rest) = rest.strip_prefix(['-', '@']) else { return rest.is_empty() };
    !OTHER_FORMS.iter().any(|form| rest.split('-').any(|part| part == *form))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: Tokens = Tokens { input: 1_000_000, output: 0, cache_read: 0, cache_written: 0 };

    #[test]
    fn h5_models_have_their_list_price_and_others_none() {
        let prices = Prices::default();
        for (model, dollars) in [
            ("gpt-5-codex", Some(1.25)),
            ("openai/gpt-5.5", Some(5.0)),
            ("gpt-5.4-mini-2026-03-01", Some(0.75)),
            ("custom:gpt-6-sol", Some(2.0)),
            ("gemini-2.5-pro", Some(1.25)),
            ("gemini-2.5-flash-lite", None),
            ("gpt-5.5-pro", None),
            ("gpt-5.9", None),
            ("grok-4.6", Some(2.0)),
            ("anthropic/claude-opus-5", Some(5.0)),
            ("claude-opus-9", None),
            ("qwen3-coder", None),
            ("", None),
        ] {
            assert_eq!(prices.cost(model, MILLION), dollars.map(ralph_core::money::of_dollars), "{model}");
        }
    }

    #[test]
    fn h5_the_date_of_the_prices_is_in_the_documentation() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run.md")).unwrap();
        assert!(page.contains(&format!("price lists of {}", Prices::READ_IN)), "docs/run.md");
    }

    #[test]
    fn h5_a_price_that_a_person_wrote_counts_before_the_list() {
        let prices = Prices(vec![("qwen3-coder".to_owned(), [500, 2_000, 100]), ("gpt-5.5".to_owned(), [1_000; 3])]);
        assert_eq!(prices.cost("vendor/qwen3-coder", MILLION), Some(500_000));
        assert_eq!(prices.cost("gpt-5.5", MILLION), Some(1_000_000));
        let all = Tokens { input: 1, output: 1_000_000, cache_read: 1_000_000, cache_written: 0 };
        assert_eq!(prices.cost("qwen3-coder", all), Some(2_100_001), "rounded up");
    }
}
