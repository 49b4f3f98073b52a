//! Tokens and money: what they cost, what was spent, what may be.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Money in millionths of whatever currency the prices are in.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(pub u64);

impl Money {
    /// Reads `2.50`; at most six digits behind the point.
    pub fn parse(text: &str) -> Option<Money> {
        let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
            return None;
        }
        let millionths: u64 = format!("{part:0<6}").parse().ok()?;
        let whole: u64 = whole.parse().ok()?;
        let all = whole.checked_mul(1_000_000)?.checked_add(millionths)?;
        Some(Money(all))
    }

    /// The sum, at most the largest there is.
    #[must_use]
    pub const fn plus(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }

    /// Whether it is nothing.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// What is left without the other, at least 0.
    #[must_use]
    pub const fn minus(self, other: Money) -> Money {
        Money(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let text = format!("{part:06}");
        let shown = text.trim_end_matches('0');
        write!(f, "{whole}.{shown:0<2}")
    }
}

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Prices {
    /// Of a request.
    pub input: Money,
    /// Of an answer.
    pub output: Money,
    /// Of a request, read from a cache.
    pub cache_read: Money,
    /// Of a request, written to a cache.
    pub cache_write: Money,
}

impl Prices {
    /// What these tokens cost, rounded up to a millionth.
    pub fn of(&self, tokens: &Tokens) -> Money {
        let parts = [
            (tokens.input, self.input),
            (tokens.output, self.output),
            (tokens.cache_read, self.cache_read),
            (tokens.cache_write, self.cache_write),
        ];
        let product = |(tokens, price): (u64, Money)| u128::from(tokens) * u128::from(price.0);
        let sum: u128 = parts.into_iter().map(product).sum();
        Money(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

/// Tokens in disjoint parts: their sum is what went through a model.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Tokens {
    /// Of requests, neither read from a cache nor written to one.
    pub input: u64,
    /// Of answers, reasoning included.
    pub output: u64,
    /// Of requests, read from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Of requests, written to a cache.
    #[serde(default)]
    pub cache_write: u64,
}

impl Tokens {
    /// All together.
    pub const fn sum(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// The sum of both, part by part.
    #[must_use]
    pub const fn plus(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }

    /// What is left without the other, part by part and at least 0.
    #[must_use]
    pub const fn minus(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_sub(other.input),
            output: self.output.saturating_sub(other.output),
            cache_read: self.cache_read.saturating_sub(other.cache_read),
            cache_write: self.cache_write.saturating_sub(other.cache_write),
        }
    }
}

/// What was spent on a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens of all requests, those whose answers did not count included.
    pub tokens: Tokens,
    /// Money; `None` if neither the model has prices nor the program reports any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Number of requests whose tokens or money are estimated, at least in part, because the server or the program did
    /// not report all of it.
    #[serde(default)]
    pub unmeasured: u32,
    /// How many of `tokens` are estimates.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_tokens: u64,
    /// How much of `money` is an estimate.
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub estimated_money: Money,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands in a reference"
)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Spent {
    /// All of these, as the estimate of so many requests.
    #[must_use]
    pub fn estimated(tokens: Tokens, money: Option<Money>, requests: u32) -> Spent {
        Spent {
            tokens,
            money,
            unmeasured: requests,
            estimated_tokens: tokens.sum(),
            estimated_money: money.unwrap_or_default(),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Spent) -> Spent {
        let money = match (self.money, other.money) {
            (Some(one), Some(two)) => Some(one.plus(two)),
            (one, two) => one.or(two),
        };
        Spent {
            tokens: self.tokens.plus(other.tokens),
            money,
            unmeasured: self.unmeasured.saturating_add(other.unmeasured),
            estimated_tokens: self.estimated_tokens.saturating_add(other.estimated_tokens),
            estimated_money: self.estimated_money.plus(other.estimated_money),
        }
    }
}

/// What one run may spend; what is absent has no limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens of all turns, those read from a cache left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money of all turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Turns of all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
}

impl Default for Budget {
    /// A backstop: far more than a run should need, far less than a run that never ends.
    fn default() -> Budget {
        Budget {
            tokens: Some(5_000_000),
            money: None,
            turns: Some(200),
        }
    }
}

impl Budget {
    /// This budget where it says something, else the outer one.
    #[must_use]
    pub fn within(self, outer: Budget) -> Budget {
        Budget {
            tokens: self.tokens.or(outer.tokens),
            money: self.money.or(outer.money),
            turns: self.turns.or(outer.turns),
        }
    }

    /// Nothing said.
    pub const UNSAID: Budget = Budget {
        tokens: None,
        money: None,
        turns: None,
    };
}

/// What the runs of one day may spend, by the day in which they were accepted; absent: without limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayBudget {
    /// Money of all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_and_shown_in_full() {
        for (text, shown) in [
            ("2.5", Some("2.50")),
            ("3", Some("3.00")),
            ("0.000001", Some("0.000001")),
            ("12.3456789", None),
            ("-1", None),
            (".5", None),
            ("1e3", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            let read = Money::parse(text).map(|money| money.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn tokens_cost_what_they_cost_rounded_up() {
        let price = |text| Money::parse(text).unwrap();
        let prices = Prices {
            input: price("3"),
            output: price("15"),
            cache_read: price("0.3"),
            cache_write: price("3.75"),
        };
        let tokens = Tokens {
            input: 1_000,
            output: 200,
            cache_read: 10_000,
            cache_write: 1,
        };
        // 3,000 + 3,000 + 3,000 + 3.75 millionths.
        assert_eq!(prices.of(&tokens), Money(9_004));
        assert_eq!(tokens.sum(), 11_201);
    }
}
