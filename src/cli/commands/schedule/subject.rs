//! What `schedule next` and `schedule explain` are asked about: a schedule, an expression, or all schedules.

use super::schedule_meant;
use crate::cli::render::times;
use crate::cli::session::{Accept, Session};
use crate::model::duration::parse_millis;
use crate::model::{Diagnostic, Kind, Timestamp, Zone};
use crate::protocol::{Control, ScheduleView, SchedulesQuery};
use crate::schedule::{Expression, FIRES_MAX, Recurrence};
use crate::upcoming::Wanted;

/// A schedule or an expression, and how much of its future is wanted.
#[derive(Debug, clap::Args)]
pub(super) struct Subject {
    /// Id of a schedule, or a cron expression in quotes [default: all schedules]
    #[arg(value_name = "ID|EXPRESSION", conflicts_with = "cron")]
    given: Option<String>,
    /// A cron expression: `"0 9 * * 1-5"`, or a nickname such as `@daily`
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// IANA time zone of the expression [default: UTC]
    #[arg(short = 'z', long, value_name = "ZONE")]
    timezone: Option<String>,
    /// The expression begins with a field of seconds
    #[arg(long)]
    seconds: bool,
    /// Number of slots
    #[arg(short = 'n', long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    /// Only slots after this one, such as `2026-12-24T18:00`, `+2d` [default: now]
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
}

/// What is meant.
pub(super) enum Meant {
    /// An expression that stands in no definition.
    Expression(Recurrence, Zone),
    /// Schedules of the current definitions.
    Schedules(Vec<ScheduleView>),
}

impl Subject {
    /// Finds what is meant.
    pub(super) fn meant(&self, session: &Session<'_>) -> Result<Meant, Diagnostic> {
        let given = self.given.as_deref();
        let expression = self
            .cron
            .as_deref()
            .or_else(|| given.filter(|text| is_expression(text)));
        if let Some(text) = expression {
            return self.expression(text);
        }
        if self.timezone.is_some() || self.seconds {
            let why =
                "`--timezone` and `--seconds` belong to an expression; a schedule has its own";
            return Err(Diagnostic::new(Kind::Usage, "not_of_a_schedule", why));
        }
        let control = session.connect(Accept::RunningElseHosted)?;
        let views = match given {
            None => control.all_schedules(&SchedulesQuery::default())?,
            Some(id) => vec![the_one(control.as_ref(), id)?],
        };
        Ok(Meant::Schedules(views))
    }

    /// Whether one is named.
    pub(super) fn is_one(&self) -> bool {
        self.given.is_some()
    }

    fn expression(&self, text: &str) -> Result<Meant, Diagnostic> {
        let name = self.timezone.as_deref().unwrap_or("UTC");
        let zone: Zone = name.parse().map_err(|_| {
            let message = format!("`{name}` is no time zone");
            Diagnostic::new(Kind::Usage, "timezone_unknown", message)
                .hint("write an IANA name such as `Europe/Berlin`")
        })?;
        let expression = Expression::parse(text, self.seconds).map_err(|error| {
            let place = error.at.start + 1;
            let message = format!("`{text}`, column {place}: {}", error.message);
            Diagnostic::new(Kind::Usage, "schedule_expression", message).hint(error.hint)
        })?;
        Ok(Meant::Expression(
            Recurrence::cron(expression, zone, None),
            zone,
        ))
    }

    /// How many slots are wanted.
    fn count(&self) -> usize {
        usize::try_from(self.count).unwrap_or(FIRES_MAX)
    }

    /// The instant after which slots are wanted, read in a zone; absent: now.
    fn after(&self, now: Timestamp, zone: Zone) -> Result<Option<Timestamp>, Diagnostic> {
        self.after
            .as_deref()
            .map(|text| ahead(text, now, zone))
            .transpose()
    }

    /// The next slots of an expression.
    pub(super) fn fires_of(
        &self,
        recurrence: &Recurrence,
        now: Timestamp,
        zone: Zone,
    ) -> Result<Vec<Timestamp>, Diagnostic> {
        let after = self.after(now, zone)?.unwrap_or(now);
        let all = std::iter::successors(recurrence.next_after(after), |last| {
            recurrence.next_after(*last)
        });
        Ok(all.take(self.count()).collect())
    }

    /// Has `ask` asked with the slots that are wanted of schedules.
    pub(super) fn wanted<R>(
        &self,
        now: Timestamp,
        ask: impl FnOnce(&Wanted<'_>) -> R,
    ) -> Result<R, Diagnostic> {
        // A text that is an instant in one zone is one in each.
        self.after(now, Zone::UTC)?;
        Ok(ask(&Wanted {
            now,
            after: &|zone| self.after(now, zone).ok().flatten(),
            most: self.count(),
            is_one: self.given.is_some(),
        }))
    }
}

/// Ids hold no blanks, and expressions without blanks are nicknames.
fn is_expression(text: &str) -> bool {
    text.trim().contains(char::is_whitespace) || text.trim_start().starts_with('@')
}

fn the_one(control: &dyn Control, id: &str) -> Result<ScheduleView, Diagnostic> {
    if let Some(view) = super::one(control, id)? {
        return Ok(view);
    }
    let refused = Diagnostic::new(
        Kind::NotFound,
        "schedule_not_found",
        format!("no schedule `{id}`"),
    )
    .hint("`workerctl schedule list` lists them; an expression has five fields, in quotes");
    Err(schedule_meant(control, id, refused))
}

/// Reads `now`, `+2h` (so far ahead), or an instant; a bare span would say in neither direction.
pub(super) fn ahead(text: &str, now: Timestamp, zone: Zone) -> Result<Timestamp, Diagnostic> {
    let hint = "examples: `now`, `+2h`, `2026-12-24`, `2026-12-24T18:00`, `2026-12-24T18:00:00Z`";
    let refused = |message: String| Diagnostic::new(Kind::Usage, "bad_instant", message).hint(hint);
    if text == "now" {
        return Ok(now);
    }
    if let Some(span) = text.strip_prefix('+') {
        let (millis, _) =
            parse_millis(span).map_err(|error| refused(format!("`{span}`: {error}")))?;
        return Ok(now.plus_millis(millis));
    }
    if parse_millis(text).is_ok() {
        return Err(refused(format!("`{text}` is a span: write `+{text}`")));
    }
    times::parse_instant("", text, now, zone)
        .map_err(|_| refused(format!("`{text}` is no instant")))
}
