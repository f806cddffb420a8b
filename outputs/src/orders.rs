//! Orders that somebody gives a run while it lasts: what they say, and what is kept of them.
//!
//! A run that was given orders is not the experiment alone, so each is kept with its time, in `manifest.json` and in
//! reports.

use std::fmt;

use scheduler::{SiteId, Span, Time, TimedJob};
use serde::{Deserialize, Serialize};

/// Something that the user of a run asks for while it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Begin, where the run waits for that (`--hold`).
    Start(Nothing),
    /// Stop trace time at all sites.
    Pause(Nothing),
    /// Let it go on.
    Resume(Nothing),
    /// Submit one more job, soon.
    Inject(Inject),
    /// Let no message through between two sites.
    Cut(Ends),
    /// Let messages through again; results of before it had this name say `mend`.
    #[serde(alias = "mend")]
    Restore(Ends),
    /// Kill the process of a site.
    Kill(Kill),
}

/// An order that needs no words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// A job that no workload has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inject {
    /// Processors that it needs.
    pub processors: u32,
    /// How long it runs, in seconds of trace time.
    pub run_time_s: f64,
    /// How long its user says that it runs; the run time if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_s: Option<f64>,
    /// Where its user is; the first site if not given. Where the job enters the grid is the experiment's (`strategy.submit`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteId>,
}

/// A link between two sites, both ways or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// The site at one end; the sender if `one_way`.
    pub from: SiteId,
    /// The site at the other end; the receiver if `one_way`.
    pub to: SiteId,
    /// Whether the way back is left as it is.
    #[serde(default)]
    pub one_way: bool,
}

/// What is done to a site.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// The site whose process is killed.
    pub site: SiteId,
    /// How long it stays away, in seconds of trace time.
    #[serde(default)]
    pub down_s: f64,
    /// Whether it never comes back.
    #[serde(default)]
    pub for_good: bool,
}

impl Ends {
    /// The directed links that are meant.
    pub fn ways(self) -> impl Iterator<Item = (SiteId, SiteId)> {
        let back = (!self.one_way).then_some((self.to, self.from));
        std::iter::once((self.from, self.to)).chain(back)
    }
}

impl Order {
    /// The name in requests and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Order::Start(_) => "start",
            Order::Pause(_) => "pause",
            Order::Resume(_) => "resume",
            Order::Inject(_) => "inject",
            Order::Cut(_) => "cut",
            Order::Restore(_) => "restore",
            Order::Kill(_) => "kill",
        }
    }
}

/// How trace time goes, and from when on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// An instant on the wall clock, in microseconds since 1970.
    pub unix_micros: i64,
    /// Seconds of trace time in a second of the wall clock.
    pub factor: f64,
    /// What trace time is until and at that instant, in microseconds.
    pub trace_origin_us: i64,
}

/// An order that was carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// When, in trace time.
    #[serde(rename = "at_s", with = "scheduler::time::seconds")]
    pub at: Time,
    /// The order as it was given.
    pub order: Order,
    /// What came of it, in words.
    pub done: String,
    /// The job that it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<TimedJob>,
    /// Where that is submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<SiteId>,
    /// How the clocks go since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Pace>,
    /// How far apart the clocks of the sites stand since, as they answered.
    #[serde(
        rename = "apart_s",
        with = "scheduler::time::seconds",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub apart: Option<Span>,
}

impl Given {
    /// An order that made no job and left the clocks alone.
    pub fn new(at: Time, order: Order, done: String) -> Given {
        Given { at, order, done, job: None, entry: None, clock: None, apart: None }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} s: {}", self.at, self.done)
    }
}

/// Jobs that orders have made.
pub fn injected(given: &[Given]) -> impl Iterator<Item = TimedJob> {
    given.iter().filter_map(|given| given.job)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(from: u32, to: u32, one_way: bool) -> Ends {
        Ends { from: SiteId(from), to: SiteId(to), one_way }
    }

    #[test]
    fn orders_are_read_by_their_names_and_words_that_mean_nothing_are_refused() {
        let read = |text: &str| serde_json::from_str::<Order>(text);
        assert_eq!(read(r#"{"pause":{}}"#).unwrap(), Order::Pause(Nothing {}));
        let kill = Order::Kill(Kill { site: SiteId(3), down_s: 0.0, for_good: false });
        assert_eq!(read(r#"{"kill":{"site":3}}"#).unwrap(), kill);
        assert_eq!(read(r#"{"cut":{"from":1,"to":2}}"#).unwrap(), Order::Cut(ends(1, 2, false)));
        for wrong in [
            r#"{"kill":{}}"#,
            r#"{"pause":{"now":1}}"#,
            r#"{"dance":{}}"#,
            r#"{"inject":{"processors":-1,"run_time_s":1}}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for order in [kill, Order::Cut(ends(1, 2, true)), Order::Start(Nothing {})] {
            let text = serde_json::to_string(&order).unwrap();
            assert!(text.starts_with(&format!("{{\"{}\":", order.name())), "{text}");
            assert_eq!(read(&text).unwrap(), order);
        }
    }
}
