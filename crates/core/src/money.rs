//! Amounts of money, in millionths of a dollar.

use std::fmt;

/// An amount of money in millionths of a dollar.
pub type Micros = u64;

const DOLLAR: Micros = 1_000_000;

/// Dollars as millionths, rounded up: a limit of next to nothing is still one. They are finite and not negative.
pub fn of_dollars(dollars: f64) -> Micros {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
    let micros = (dollars * 1_000_000.0).ceil() as Micros;
    micros
}

/// An amount that an agent reports, to the nearest millionth; a number that is no amount counts as nothing.
pub fn of_reported(dollars: f64) -> Micros {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and nothing is 0")]
    let micros = (dollars * 1_000_000.0).round() as Micros;
    micros
}

/// Millionths as dollars, for programs.
pub fn in_dollars(micros: Micros) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53 millionths")]
    let dollars = micros as f64 / 1_000_000.0;
    dollars
}

/// `$50`, `$3.20`, `$0.0042`, `$0.006`.
pub fn shown(micros: Micros) -> impl fmt::Display {
    let (whole, rest) = (micros / DOLLAR, micros % DOLLAR);
    match (whole, rest) {
        (whole, 0) => format!("${whole}"),
        (0, rest) if rest < 9_995 => format!("$0.{:04}", rest.div_ceil(100)).trim_end_matches('0').to_owned(),
        (whole, rest) if rest >= 995_000 => format!("${}.00", whole + 1),
        (whole, rest) => format!("${whole}.{:02}", (rest + 5_000) / 10_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_shown_as_people_write_it() {
        for (micros, text) in [
            (0, "$0"),
            (50 * DOLLAR, "$50"),
            (3_204_999, "$3.20"),
            (1, "$0.0001"),
            (4_200, "$0.0042"),
            (6_000, "$0.006"),
            (9_950, "$0.01"),
            (9_999, "$0.01"),
            (999_999, "$1.00"),
            (1_500_000, "$1.50"),
        ] {
            assert_eq!(shown(micros).to_string(), text);
        }
        assert_eq!((of_dollars(0.0), of_dollars(1e-9), of_dollars(1e300)), (0, 1, Micros::MAX));
    }
}
