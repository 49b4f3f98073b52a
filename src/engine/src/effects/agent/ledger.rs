//! What an agent program spends: what it reports, and estimates of what it has not reported.

use workerctl_agent::Usage;
use workerctl_agent::cli::Format;

use super::host::tokens;
use crate::model::agent::{Money, Prices, Spent, Tokens};

/// Money per million tokens, in dollars, for programs that tell their cost only at their end and whose model has no
/// `prices` in the configuration: those of a large model, so that the estimate is rather too high.
const FALLBACK: Prices = Prices {
    input: Money(5_000_000),
    output: Money(25_000_000),
    cache_read: Money(500_000),
    cache_write: Money(6_250_000),
};

/// What one attempt of a program spends.
///
/// Reported tokens are in the journal with their turn. Estimates of the rest are kept open until the program tells the
/// total, because what is in a journal cannot be taken back; they are in the journal as what is in flight.
pub(super) struct Ledger {
    /// Those of the configuration.
    prices: Option<Prices>,
    reports_total: bool,
    reports_cost: bool,
    /// Tokens that the program has reported.
    reported: Tokens,
    /// Estimated tokens that its total will replace, and of how many requests.
    open: Tokens,
    open_requests: u32,
    /// Tokens whose cost the program has not told, and of how many requests.
    unpriced: Tokens,
    unpriced_requests: u32,
    /// Cost in the journal, in millionths.
    cost: u64,
}

impl Ledger {
    pub(super) fn new(format: &Format, prices: Option<Prices>) -> Ledger {
        Ledger {
            prices,
            reports_total: format.reports_total(),
            reports_cost: format.reports_cost(),
            reported: Tokens::default(),
            open: Tokens::default(),
            open_requests: 0,
            unpriced: Tokens::default(),
            unpriced_requests: 0,
            cost: 0,
        }
    }

    /// Adds a turn of which the program has reported a part; `cost` is what it says that all of its turns cost. Answers
    /// what the journal has to count.
    pub(super) fn turn(&mut self, usage: Usage, reported: Usage, cost: Option<u64>) -> Spent {
        let (all, reported) = (tokens(usage), tokens(reported));
        let rest = all.minus(reported);
        self.reported = self.reported.plus(reported);
        let mut spent = self.exact(reported);
        if rest.sum() > 0 && self.reports_total {
            self.open = self.open.plus(rest);
            self.open_requests = self.open_requests.saturating_add(1);
        } else if rest.sum() > 0 {
            let money = self.prices.filter(|_| !self.reports_cost);
            spent = spent.plus(Spent::estimated(
                rest,
                money.map(|prices| prices.of(&rest)),
                1,
            ));
        }
        self.unpriced = self.unpriced.plus(all);
        self.unpriced_requests = self.unpriced_requests.saturating_add(1);
        spent.plus(self.priced(cost))
    }

    /// Adds a request of which no turn came.
    pub(super) fn lost(&mut self, usage: Usage, reported: Usage) -> Spent {
        // A program that has told how the answer began counts it in its total and in its cost.
        if reported.sum() > 0 {
            return self.turn(usage, reported, None);
        }
        let tokens = tokens(usage);
        Spent::estimated(tokens, self.estimated_price(&tokens), 1)
    }

    /// What is counted if the program is lost with a request in flight, an estimate of which is `next`.
    pub(super) fn in_flight(&self, next: Option<Usage>) -> Spent {
        let next = next.map(tokens);
        let more = next.unwrap_or_default();
        let rest = self.open.plus(more);
        let base = if self.reports_cost {
            self.unpriced
        } else {
            self.open
        };
        let money = self.estimated_price(&base.plus(more));
        let mut requests = self.open_requests;
        if self.reports_cost && money.is_some() {
            requests = requests.max(self.unpriced_requests);
        }
        Spent::estimated(
            rest,
            money,
            requests.saturating_add(u32::from(next.is_some())),
        )
    }

    /// Counts what is left when the program has ended. `total` and `cost` are what it has told of all its requests, `next`
    /// an estimate of the request that was in flight.
    pub(super) fn end(
        &mut self,
        total: Option<Usage>,
        cost: Option<u64>,
        next: Option<Usage>,
    ) -> Spent {
        let told = self.total(total).plus(self.priced(cost));
        told.plus(self.in_flight(next))
    }

    /// Takes the program's total; answers what of it the journal has not counted.
    pub(super) fn total(&mut self, total: Option<Usage>) -> Spent {
        let Some(total) = total else {
            return Spent::default();
        };
        let more = tokens(total).minus(self.reported);
        self.reported = self.reported.plus(more);
        (self.open, self.open_requests) = (Tokens::default(), 0);
        self.exact(more)
    }

    /// What is spent beyond what the journal counts, as far as it is known without assuming a price.
    pub(super) fn uncounted(&self) -> (Tokens, Money) {
        let money = self.prices.and(self.in_flight(None).money);
        (self.open, money.unwrap_or_default())
    }

    /// Tokens that were reported; their money, where that is not for the program to tell.
    fn exact(&self, tokens: Tokens) -> Spent {
        let prices = self.prices.filter(|_| !self.reports_cost);
        Spent {
            tokens,
            money: prices.map(|prices| prices.of(&tokens)),
            ..Spent::default()
        }
    }

    fn estimated_price(&self, tokens: &Tokens) -> Option<Money> {
        let fallback = self.reports_cost.then_some(FALLBACK);
        let prices = self.prices.or(fallback)?;
        (tokens.sum() > 0).then(|| prices.of(tokens))
    }

    /// Takes what the program says that all of it cost; answers what of it the journal has not counted.
    fn priced(&mut self, cost: Option<u64>) -> Spent {
        let Some(all) = cost else {
            return Spent::default();
        };
        let since = all.saturating_sub(self.cost);
        self.cost = self.cost.max(all);
        (self.unpriced, self.unpriced_requests) = (Tokens::default(), 0);
        Spent {
            money: Some(Money(since)),
            ..Spent::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use workerctl_agent::cli::Known;

    use super::*;

    fn usage(input: u64, output: u64) -> Usage {
        Usage {
            input,
            output,
            ..Usage::default()
        }
    }

    fn ledger(known: Known, prices: Option<Prices>) -> Ledger {
        Ledger::new(&Format::Known(known), prices)
    }

    #[test]
    fn a_total_replaces_estimates_and_is_exact() {
        let mut ledger = ledger(Known::Claude, None);
        // Of the first turn only the beginning was reported.
        let mut spent = ledger.turn(usage(50, 90), usage(50, 2), None);
        assert_eq!((spent.tokens.sum(), spent.unmeasured), (52, 0));
        let lost = ledger.in_flight(Some(usage(50, 0)));
        assert_eq!((lost.tokens.sum(), lost.unmeasured), (88 + 50, 2));
        // 100 of requests at 5, 90 of answers at 25 a million.
        assert_eq!(lost.money, Some(Money(500 + 2_250)));
        spent = spent.plus(ledger.turn(usage(60, 100), usage(60, 100), None));
        spent = spent.plus(ledger.end(Some(usage(110, 200)), Some(4_400), None));
        assert_eq!((spent.tokens.input, spent.tokens.output), (110, 200));
        assert_eq!(spent.money, Some(Money(4_400)));
        assert_eq!((spent.unmeasured, spent.estimated_tokens), (0, 0));
    }

    #[test]
    fn what_was_not_told_is_estimated_when_the_program_is_ended() {
        let dear = Prices {
            input: Money(10_000_000),
            ..FALLBACK
        };
        for (prices, money) in [(None, 3_250), (Some(dear), 4_000)] {
            let mut ledger = ledger(Known::Claude, prices);
            let mut spent = ledger.turn(usage(100, 100), usage(100, 100), None);
            assert_eq!(spent.money, None);
            spent = spent.plus(ledger.end(None, None, Some(usage(50, 0))));
            assert_eq!((spent.tokens.input, spent.tokens.output), (150, 100));
            assert_eq!(spent.money, Some(Money(money)));
            assert_eq!((spent.unmeasured, spent.estimated_tokens), (2, 50));
            assert_eq!(spent.estimated_money, Money(money));
        }
    }

    #[test]
    fn a_program_without_cost_has_money_by_the_prices_of_the_configuration_alone() {
        for (prices, money) in [(None, None), (Some(FALLBACK), Some(Money(300)))] {
            let mut ledger = ledger(Known::Codex, prices);
            let mut spent = ledger.turn(usage(90, 10), usage(0, 0), None);
            assert_eq!(ledger.uncounted().0.sum(), 100);
            spent = spent.plus(ledger.end(Some(usage(10, 10)), None, None));
            assert_eq!((spent.tokens.sum(), spent.money), (20, money));
            assert_eq!(spent.unmeasured, 0);
        }
    }

    #[test]
    fn a_lost_request_stays_beside_the_total() {
        let mut ledger = ledger(Known::Codex, Some(FALLBACK));
        let mut spent = ledger.lost(usage(40, 0), usage(0, 0));
        spent = spent.plus(ledger.end(Some(usage(100, 102)), None, None));
        assert_eq!((spent.tokens.input, spent.tokens.output), (140, 102));
        assert_eq!((spent.unmeasured, spent.estimated_tokens), (1, 40));
        assert_eq!(spent.estimated_money, Money(200));
    }

    #[test]
    fn each_step_has_its_cost_where_the_program_tells_it() {
        let mut ledger = ledger(Known::Opencode, None);
        let mut spent = ledger.turn(usage(10, 5), usage(10, 5), Some(100));
        spent = spent.plus(ledger.turn(usage(10, 5), usage(10, 5), Some(250)));
        assert_eq!((spent.money, spent.unmeasured), (Some(Money(250)), 0));
        // A step that was cut.
        spent = spent.plus(ledger.turn(usage(12, 8), usage(0, 0), Some(250)));
        assert_eq!((spent.tokens.sum(), spent.unmeasured), (50, 1));
    }
}
