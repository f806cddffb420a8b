//! Brokers before sites that they neither see into nor control, written behind `opaque:`: a rule, each reading where the published
//! texts leave several, the default first, and what of it can be run.
//!
//! As users write it: `ag,alpha=0.2,tie=random`. Numbers A1 to A22 are those of the register in `docs/LEARNING.md`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::spelling::hint;
use crate::switch;
use crate::time::Span;

/// Active jobs that a site holds before it is saturated.
const CAP: u32 = 20;
/// α of the learner.
const ALPHA: f64 = 0.5;
/// l of the learner.
const LEARNING: f64 = 0.3;
/// The part of decisions of AG that take the best site.
const EXPLOIT: f64 = 0.85;
/// What a queue time-out grows by, in percent.
const GROWTH_PERCENT: u32 = 10;
/// Places where a job may be at once, if its rule makes copies.
const COPIES: u32 = 2;

switch! {
    /// Who goes where.
    DispatchRule {
        /// RR: sites in turn, jobs as they came.
        RoundRobin = "round-robin",
        /// AG: mostly the most efficient site, else any.
        Ag = "ag",
        /// MQD-RL: short jobs in turn first, then long jobs to efficient sites.
        Mqd = "mqd",
        /// MET: the least execution time.
        Met = "met",
        /// MCT: the least completion time.
        Mct = "mct",
        /// The job that completes first goes first.
        MinMin = "min-min",
        /// The job whose least completion time is the largest goes first.
        MaxMin = "max-min",
        /// The job that suffers most without its best site goes first.
        Sufferage = "sufferage",
        /// The same by clusters.
        XSufferage = "xsufferage",
        /// The same by sites, with the data that a site already has.
        QSufferage = "qsufferage",
        /// The site with the least work.
        LeastLoaded = "least-loaded",
        /// The least sum of loads and transfer.
        GreedyCost = "greedy-cost",
        /// The least marginal cost, exponential in the load.
        OnlineCost = "online-cost",
        /// One Q-learning agent per user, which knows only its own jobs.
        Agents = "agents",
        /// Self-scheduled work queue: a job for whoever is free.
        WorkQueue = "work-queue",
        /// The same, and copies of running jobs once none waits.
        Replication = "wqr",
        /// MQD as published, with duplicates at the end.
        MqdDuplication = "mqd-dup",
        /// The job with most of its input at the site.
        StorageAffinity = "storage-affinity",
        /// The cheapest site within budget and deadline.
        Cost = "cost",
        /// The fastest site within budget.
        Time = "time",
        /// Of the cheapest sites the fastest.
        CostTime = "cost-time",
        /// Only sites that have all data.
        DataLocal = "data-local",
        /// Any site, wherever the data is.
        DataAny = "data-any",
        /// The largest bandwidth to data, within limits by completion ratios.
        DataAdaptive = "data-adaptive",
        /// The least forecast turnaround, by exponential smoothing.
        Smoothing = "smoothing",
        /// LinUCB, a contextual bandit.
        LinUcb = "linucb",
    }
}

switch! {
    /// A1: the order of sites in round-robin.
    Turn {
        /// A ring.
        Cyclic = "cyclic",
        /// Drawn for each job.
        Random = "random",
    }
}

switch! {
    /// A2 and A11: which of equally efficient sites is the best.
    Tie {
        /// The first in the list.
        First = "first",
        /// One that is drawn.
        Random = "random",
    }
}

switch! {
    /// A4: what the deviation of execution times is of.
    Deviation {
        /// A sample: n - 1.
        Sample = "sample",
        /// All there is: n.
        Population = "population",
    }
}

switch! {
    /// A4: whether statistics know the job that is judged by them.
    Counted {
        /// They do.
        With = "with",
        /// They do not.
        Without = "without",
    }
}

switch! {
    /// A5: what α is the weight of.
    AlphaWeighs {
        /// The execution time, as in all formulas.
        Execution = "te",
        /// The volatile part, as the discussion of results says.
        Volatile = "volatile",
    }
}

switch! {
    /// A6: how far from the mean a job gets no reward.
    Tolerance {
        /// The standard deviation of execution times.
        Deviation = "sd",
        /// The standard error of their mean.
        StandardError = "se",
    }
}

switch! {
    /// A7: over which sites MQD makes groups.
    GroupOver {
        /// Those that are not saturated.
        Open = "open",
        /// All: jobs wait for a saturated site.
        All = "all",
    }
}

switch! {
    /// A8: when the first phase of MQD ends, and with it statistics over all sites.
    PhaseEnd {
        /// Once all sites are saturated, before any job ended.
        Saturated = "saturated",
        /// Its statistics: once all jobs of the first phase ended.
        Finished = "finished",
    }
}

switch! {
    /// A9: what becomes of the job at which a site turns out to be saturated, or a group ends.
    Border {
        /// The next site takes it, and groups end where they end.
        Corrected = "corrected",
        /// It is skipped until the next event, and a group ends with its site, as printed.
        Literal = "literal",
    }
}

switch! {
    /// A10: jobs of a group.
    GroupSize {
        /// Rounded up, so that every job is in one.
        Ceiling = "ceil",
        /// Not rounded: groups differ by one job.
        Real = "real",
        /// Rounded down, at least one. The shortest jobs may be in none.
        Floor = "floor",
    }
}

switch! {
    /// A12: whose limit grows when a job waited too long.
    Growth {
        /// The job's.
        Job = "job",
        /// The site's.
        Site = "site",
        /// All of them.
        All = "all",
    }
}

switch! {
    /// A13: when the wait of a job begins.
    Clock {
        /// As it enters the queue of the site.
        Queue = "queue",
        /// As it is scheduled.
        Scheduled = "scheduled",
    }
}

switch! {
    /// A14: when the total time of a job begins that was scheduled more than once.
    TotalFrom {
        /// As it is scheduled for the last time.
        Last = "last",
        /// As it is scheduled for the first time.
        First = "first",
    }
}

switch! {
    /// A15 and A22: what a site learns from a job that waited too long there, or failed.
    Blame {
        /// Nothing.
        No = "none",
        /// As from a slow one.
        Slower = "slower",
    }
}

switch! {
    /// Over which jobs statistics are.
    Scope {
        /// All that ended.
        All = "all",
        /// Those that ended at the site.
        Site = "site",
    }
}

/// Everything a dispatcher can be told. Its parts of one are numbers, so that two of these are equal or not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Who goes where.
    pub rule: DispatchRule,
    /// Active jobs that saturate a site, at least 1.
    pub cap: u32,
    /// α: the weight of the execution time, in [0, 1].
    #[serde(with = "crate::text")]
    pub alpha: f64,
    /// l: the weight of the newest reward, in [0, 1].
    #[serde(with = "crate::text")]
    pub learning: f64,
    /// The part of decisions that take the best site, in [0, 1].
    #[serde(with = "crate::text")]
    pub exploit: f64,
    /// How long a job may wait in a queue at first; none for ever.
    pub timeout: Option<Span>,
    /// What that grows by each time, in percent.
    pub growth_percent: u32,
    /// Places where a job may be at once, at least 1, to rules that make copies.
    pub copies: u32,
    /// Money that jobs may cost in all; none without end.
    pub budget: Option<u64>,
    /// How long all jobs may take, from the first round on; none for ever.
    pub deadline: Option<Span>,
    /// See [`Turn`].
    pub turn: Turn,
    /// See [`Tie`].
    pub tie: Tie,
    /// See [`Deviation`].
    pub deviation: Deviation,
    /// See [`Counted`].
    pub counted: Counted,
    /// See [`AlphaWeighs`].
    pub alpha_weighs: AlphaWeighs,
    /// See [`Tolerance`].
    pub tolerance: Tolerance,
    /// See [`GroupOver`].
    pub group_over: GroupOver,
    /// See [`PhaseEnd`].
    pub phase_end: PhaseEnd,
    /// See [`Border`].
    pub border: Border,
    /// See [`GroupSize`].
    pub group_size: GroupSize,
    /// See [`Growth`].
    pub growth: Growth,
    /// See [`Clock`].
    pub clock: Clock,
    /// See [`TotalFrom`].
    pub total_from: TotalFrom,
    /// A15.
    pub timeout_blame: Blame,
    /// A22.
    pub failure_blame: Blame,
}

impl Eq for Options {}

impl Default for Options {
    fn default() -> Options {
        Options {
            rule: DispatchRule::default(),
            cap: CAP,
            alpha: ALPHA,
            learning: LEARNING,
            exploit: EXPLOIT,
            timeout: None,
            growth_percent: GROWTH_PERCENT,
            copies: COPIES,
            budget: None,
            deadline: None,
            turn: Turn::default(),
            tie: Tie::default(),
            deviation: Deviation::default(),
            counted: Counted::default(),
            alpha_weighs: AlphaWeighs::default(),
            tolerance: Tolerance::default(),
            group_over: GroupOver::default(),
            phase_end: PhaseEnd::default(),
            border: Border::default(),
            group_size: GroupSize::default(),
            growth: Growth::default(),
            clock: Clock::default(),
            total_from: TotalFrom::default(),
            timeout_blame: Blame::default(),
            failure_blame: Blame::default(),
        }
    }
}

/// A number in [0, 1].
fn part(key: &str, text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| format!("{key}={text:?} is no part of one; write a number from 0 to 1"))
}

/// An integer from `least` on.
fn count(key: &str, text: &str, least: u32) -> Result<u32, String> {
    let number: Option<u32> = text.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("{key}={text:?} is no count; write an integer from {least} on"))
}

/// Whole seconds from 1 on, or none.
fn seconds(key: &str, text: &str) -> Result<Option<Span>, String> {
    let number: Option<i64> = text.parse().ok().filter(|number| (1..=LONGEST_SECONDS).contains(number));
    match number {
        Some(number) => Ok(Some(Span::from_secs(number))),
        None if text == "none" => Ok(None),
        None => Err(format!("{key}={text:?} is no time; write whole seconds or none")),
    }
}

/// The longest of these times, a century: what it grows to still fits.
const LONGEST_SECONDS: i64 = 3_155_760_000;

impl Options {
    /// A rule with the default of all else.
    pub fn new(rule: DispatchRule) -> Options {
        Options { rule, ..Options::default() }
    }

    /// Sets one of them.
    ///
    /// # Errors
    /// If there is no such key, or the value is none of it.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "cap" => self.cap = count(key, value, 1)?,
            "alpha" => self.alpha = part(key, value)?,
            "l" => self.learning = part(key, value)?,
            "exploit" => self.exploit = part(key, value)?,
            "timeout" => self.timeout = seconds(key, value)?,
            "deadline" => self.deadline = seconds(key, value)?,
            "budget" if value == "none" => self.budget = None,
            "budget" => {
                let budget = value.parse().ok();
                let wrong = || format!("budget={value:?} is no sum of money; write an integer or none");
                self.budget = Some(budget.ok_or_else(wrong)?);
            }
            "growth" => self.growth_percent = count(key, value, 0)?,
            "copies" => self.copies = count(key, value, 1)?,
            "turn" => self.turn = Turn::parse(key, value)?,
            "tie" => self.tie = Tie::parse(key, value)?,
            "deviation" => self.deviation = Deviation::parse(key, value)?,
            "counted" => self.counted = Counted::parse(key, value)?,
            "alpha-weighs" => self.alpha_weighs = AlphaWeighs::parse(key, value)?,
            "tolerance" => self.tolerance = Tolerance::parse(key, value)?,
            "group-over" => self.group_over = GroupOver::parse(key, value)?,
            "phase-end" => self.phase_end = PhaseEnd::parse(key, value)?,
            "border" => self.border = Border::parse(key, value)?,
            "group-size" => self.group_size = GroupSize::parse(key, value)?,
            "growth-of" => self.growth = Growth::parse(key, value)?,
            "clock" => self.clock = Clock::parse(key, value)?,
            "total-from" => self.total_from = TotalFrom::parse(key, value)?,
            "timeout-blame" => self.timeout_blame = Blame::parse(key, value)?,
            "failure-blame" => self.failure_blame = Blame::parse(key, value)?,
            _ => {
                let keys = self.values().map(|(key, _)| key);
                return Err(format!(
                    "unknown option {key:?} of a dispatcher{}; use {}",
                    hint(key, keys),
                    keys.join(" or ")
                ));
            }
        }
        Ok(())
    }

    /// All that can be set, with their names, as it is written.
    fn values(&self) -> [(&'static str, String); 24] {
        [
            ("cap", self.cap.to_string()),
            ("alpha", self.alpha.to_string()),
            ("l", self.learning.to_string()),
            ("exploit", self.exploit.to_string()),
            ("timeout", self.timeout.map_or("none".to_string(), |timeout| timeout.to_string())),
            ("growth", self.growth_percent.to_string()),
            ("copies", self.copies.to_string()),
            ("budget", self.budget.map_or("none".to_string(), |budget| budget.to_string())),
            ("deadline", self.deadline.map_or("none".to_string(), |deadline| deadline.to_string())),
            ("turn", self.turn.name().to_string()),
            ("tie", self.tie.name().to_string()),
            ("deviation", self.deviation.name().to_string()),
            ("counted", self.counted.name().to_string()),
            ("alpha-weighs", self.alpha_weighs.name().to_string()),
            ("tolerance", self.tolerance.name().to_string()),
            ("group-over", self.group_over.name().to_string()),
            ("phase-end", self.phase_end.name().to_string()),
            ("border", self.border.name().to_string()),
            ("group-size", self.group_size.name().to_string()),
            ("growth-of", self.growth.name().to_string()),
            ("clock", self.clock.name().to_string()),
            ("total-from", self.total_from.name().to_string()),
            ("timeout-blame", self.timeout_blame.name().to_string()),
            ("failure-blame", self.failure_blame.name().to_string()),
        ]
    }

    /// Those that are not their defaults.
    fn set_values(&self) -> impl Iterator<Item = (&'static str, String)> {
        let default = Options::new(self.rule).values();
        self.values().into_iter().zip(default).filter(|(own, default)| own != default).map(|(own, _)| own)
    }

    /// Whether a key means something to the rule.
    fn means(&self, key: &str) -> bool {
        use DispatchRule::{
            Ag, Agents, Cost, CostTime, LinUcb, Mqd, MqdDuplication, Replication, RoundRobin, Smoothing,
            StorageAffinity, Time,
        };
        let learns = matches!(self.rule, Ag | Mqd);
        match key {
            "alpha" | "deviation" | "counted" | "alpha-weighs" | "tolerance" | "total-from" => learns,
            "timeout-blame" => learns && self.timeout.is_some(),
            "failure-blame" => learns,
            "l" => learns || matches!(self.rule, Agents | Smoothing),
            "exploit" => matches!(self.rule, Ag | Agents),
            "tie" => matches!(self.rule, Ag | Mqd | Agents | LinUcb),
            "turn" => self.rule == RoundRobin,
            "copies" => matches!(self.rule, Replication | StorageAffinity | MqdDuplication),
            "budget" | "deadline" => matches!(self.rule, Cost | Time | CostTime),
            "group-over" | "phase-end" | "border" | "group-size" => self.rule == Mqd,
            "growth" | "growth-of" | "clock" => self.timeout.is_some(),
            _ => true,
        }
    }

    /// Whether its rule has a job at several sites at once.
    pub fn makes_copies(&self) -> bool {
        self.copies > 1 && self.means("copies")
    }

    /// A key that was given, at its default or not, and means nothing to the rule, if there is one.
    pub fn meaningless(&self, given: &BTreeSet<&str>) -> Option<&'static str> {
        self.values().into_iter().map(|(key, _)| key).find(|key| given.contains(key) && !self.means(key))
    }
}

impl fmt::Display for Options {
    /// The rule, and what is not its default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule.name())?;
        self.set_values().try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

impl FromStr for Options {
    type Err = String;

    /// A rule, and behind commas what is told otherwise.
    fn from_str(text: &str) -> Result<Options, String> {
        let mut words = text.split(',');
        let rule = DispatchRule::parse("dispatcher", words.next().unwrap_or_default())?;
        let mut options = Options::new(rule);
        let mut given = BTreeSet::new();
        for word in words {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| format!("{word:?} says nothing of a dispatcher; write KEY=VALUE"))?;
            options.set(key, value)?;
            given.insert(key);
        }
        match options.meaningless(&given) {
            Some(key) => Err(format!("{key} means nothing to {}; leave it out", rule.name())),
            None => Ok(options),
        }
    }
}

/// Names that stand behind `broker:` as well: no rule of the two-level brokers has them.
const ALSO_BROKERS: [DispatchRule; 2] = [DispatchRule::Ag, DispatchRule::Mqd];

/// Whether a rule of `broker:` is one of these.
pub(super) fn is_meant(rule: &str) -> bool {
    ALSO_BROKERS.iter().any(|one| one.name() == rule)
}

pub(super) fn parse(rule: &str) -> Result<Options, String> {
    DispatchRule::parse("opaque", rule).map(Options::new)
}

/// Why it cannot be run, if it cannot.
pub(super) fn refused(options: &Options) -> Option<String> {
    use DispatchRule::{MqdDuplication, Replication, StorageAffinity};
    let rule = options.rule.name();
    match options.rule {
        _ if options.copies == 1 => None,
        Replication | MqdDuplication | StorageAffinity => {
            Some(format!("{rule} makes copies, and here a job is at one site only; write copies=1"))
        }
        _ => None,
    }
}

/// Each rule that can be run with the default of all else.
pub(super) fn carried() -> impl Iterator<Item = Options> {
    DispatchRule::ALL.iter().map(|&rule| Options::new(rule)).filter(|options| refused(options).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for rule in DispatchRule::ALL {
            assert_eq!(rule.name().parse::<Options>(), Ok(Options::new(*rule)));
        }
        for text in [
            "ag",
            "ag,cap=5,alpha=0.2,l=0.7,exploit=0.9,tie=random",
            "mqd,timeout=750,growth=20,group-over=all,phase-end=finished,border=literal,group-size=floor",
            "round-robin,timeout=500,turn=random,growth-of=site,clock=scheduled",
            "ag,timeout=500,deviation=population,counted=without,alpha-weighs=volatile,tolerance=se,total-from=first,\
             timeout-blame=slower,failure-blame=slower",
            "wqr,copies=3",
            "cost,budget=100,deadline=3600",
        ] {
            assert_eq!(text.parse::<Options>().map(|options| options.to_string()), Ok(text.to_string()));
        }
    }

    #[test]
    fn each_key_can_be_set_and_is_shown() {
        let keys = Options::default().values().map(|(key, _)| key);
        for (key, value) in keys.into_iter().zip([
            "7",
            "0.1",
            "0.1",
            "0.1",
            "9",
            "3",
            "5",
            "6",
            "7",
            "random",
            "random",
            "population",
            "without",
            "volatile",
            "se",
            "all",
            "finished",
            "literal",
            "real",
            "site",
            "scheduled",
            "first",
            "slower",
            "slower",
        ]) {
            let mut options = Options::default();
            options.set(key, value).unwrap();
            assert_eq!(options.to_string(), format!("round-robin,{key}={value}"));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for (text, said) in [
            ("agg", "did you mean ag?"),
            ("ag,alpha=2", "from 0 to 1"),
            ("ag,alpha=NaN", "from 0 to 1"),
            ("ag,cap=0", "from 1 on"),
            ("ag,timeout=0", "whole seconds or none"),
            ("ag,alpa=1", "did you mean alpha?"),
            ("ag,tie", "KEY=VALUE"),
            ("round-robin,alpha=0.2", "means nothing to round-robin"),
            ("ag,growth=20", "growth means nothing"),
        ] {
            let error = text.parse::<Options>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
