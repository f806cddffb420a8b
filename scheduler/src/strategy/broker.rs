//! The switches of two-level scheduling: a broker allocates each job to a site, whose local scheduler starts it
//! (Quezada Pina 2012, §3.3).
//!
//! Each switch is one reading of a place where the published text leaves several; the first of each is the default. What
//! they do is in `brokers::allocation`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::chance::Chance;
use super::metascheduler::{ClusterSelection, MetaScheduler, QueueLimit};
use super::unknown_option;
use crate::switch;
use crate::time::{Span, Time};

switch! {
    /// What a broker makes least, over the sites that it may choose.
    BrokerRule {
        /// Nothing: any of them, at random.
        Random = "random",
        /// Nothing: the sites in turn.
        RoundRobin = "round-robin",
        /// ML: jobs.
        Jobs = "ml",
        /// MLp: jobs per processor.
        JobsPerProcessor = "mlp",
        /// MPL: requested processors per processor.
        ParallelLoad = "mpl",
        /// LBal_S: the deviation of the parallel load over all sites, with the job at the site.
        BalancedLoad = "lbal-s",
        /// MLB: requested work per processor.
        LowerBound = "mlb",
        /// MCT: when everything of the site would have ended.
        CompletionTime = "mct",
        /// MST: when the job would start.
        StartTime = "mst",
        /// MWT: the mean wait of the jobs of the site.
        MeanWait = "mwt",
        /// MWWT_S: their mean wait times their processors.
        WeightedWait = "mwwt-s",
        /// What the upper level of M-CISNE chooses, job by job as clusters take them, see `brokers::metascheduler`.
        Mcisne = "mcisne",
        /// What a genetic algorithm finds best for a batch of jobs at once, see `brokers::genetic`.
        Genetic = "genetic",
        /// Whatever a process of the user makes least, see `brokers::external`.
        External = "exec",
    }
}

switch! {
    /// The last site that is admissible, where the fraction falls on a border between two.
    Cut {
        /// The first at which the fraction is reached, as printed.
        AtLeast = "ge",
        /// The first at which it is exceeded.
        Above = "gt",
        /// As `ge`, and all sites of that one's size.
        SizeClass = "class",
    }
}

switch! {
    /// Which jobs of a site its load counts.
    Count {
        /// Those that wait and those that run.
        All = "all",
        /// Those that wait.
        Waiting = "waiting",
    }
}

switch! {
    /// How often the arriving job counts at a site whose balance is asked for.
    ArrivingLoad {
        /// Once.
        Once = "once",
        /// Once for each job that is there, as printed.
        PerJob = "literal",
    }
}

switch! {
    /// What of a running job MLB counts.
    RunningWork {
        /// All that it requested.
        Full = "full",
        /// What is left of it.
        Remaining = "remaining",
    }
}

switch! {
    /// What MCT calls completion.
    Completion {
        /// When all that the site has would have ended, without the arriving job.
        SiteBefore = "site-before",
        /// The same with it.
        SiteAfter = "site-after",
        /// When the arriving job would have ended.
        JobAfter = "job-after",
    }
}

switch! {
    /// When a site without jobs has completed everything, to MCT.
    IdleSince {
        /// Now.
        Now = "now",
        /// When its last job ended.
        LastEnd = "last",
    }
}

switch! {
    /// Whether MWT and MWWT_S count the wait of the arriving job.
    OwnWait {
        /// They do.
        With = "with",
        /// They do not.
        Without = "without",
    }
}

switch! {
    /// Over which jobs MWT and MWWT_S take the mean.
    Population {
        /// All that the site ever got.
        Ever = "ever",
        /// Those that wait or run.
        System = "system",
    }
}

switch! {
    /// What the broker's plan of a site is.
    Plan {
        /// What the site would do with what it has, each job ending as estimated.
        Resynchronised = "resync",
        /// What it would have done since the beginning if every job had ended as estimated: reports correct nothing.
        OpenLoop = "open-loop",
        /// The same, and loads are counted in it, too.
        OpenLoopAll = "open-loop-all",
    }
}

switch! {
    /// When a job ends, to a plan, that runs past its estimate.
    Overrun {
        /// Now.
        Now = "now",
        /// At the next instant.
        Next = "next",
    }
}

switch! {
    /// What the rows of a batch are judged by.
    Goal {
        /// The ordered weighted average of all four.
        Average = "owa",
        /// The makespan.
        Makespan = "makespan",
        /// The mean response ratio.
        ResponseRatio = "response",
        /// The mean turnaround.
        Turnaround = "turnaround",
        /// The mean wait.
        Wait = "wait",
    }
}

/// When a batch is planned, and how long is looked for a better plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batches {
    /// Jobs after which it is planned, and the most that are planned at once.
    pub jobs: u32,
    /// The time after which it is planned, from the arrival of its first job at the broker.
    pub window: Span,
    /// What is made small.
    pub goal: Goal,
    /// Individuals of a population.
    pub population: u32,
    /// Generations after which the best so far is taken.
    pub generations: u32,
    /// Individuals that a plan may evaluate, whatever else it may: what limits the time of a decision on every machine alike.
    #[serde(default = "default_evaluations")]
    pub evaluations: u32,
    /// The probability that two parents are crossed and not copied.
    #[serde(default = "default_crossover")]
    pub crossover: Chance,
    /// The probability that a child is mutated.
    #[serde(default = "default_mutation")]
    pub mutation: Chance,
}

/// P_c of the published work.
const fn default_crossover() -> Chance {
    Chance::millionths(900_000).expect("it is below one")
}

/// P_m of the published work.
const fn default_mutation() -> Chance {
    Chance::millionths(10_000).expect("it is below one")
}

/// Twice what the default population and generations can take: whoever raises those raises this knowingly.
fn default_evaluations() -> u32 {
    10_000
}

impl Default for Batches {
    fn default() -> Batches {
        Batches {
            jobs: 1000,
            window: Span::from_secs(600),
            goal: Goal::default(),
            population: 50,
            generations: 100,
            evaluations: default_evaluations(),
            crossover: default_crossover(),
            mutation: default_mutation(),
        }
    }
}

impl Batches {
    /// When a batch is planned whose first job arrived at a broker then, however few there are.
    pub fn due_at(&self, first: Time) -> Time {
        first.saturating_add(self.window)
    }
}

impl BrokerRule {
    /// Those by which this program decides for each job alone.
    pub const BUILT_IN: &[BrokerRule] = BrokerRule::ALL.split_at(BrokerRule::ALL.len() - 3).0;

    /// What it decides by.
    fn looks_at(self) -> Look {
        use BrokerRule::*;
        match self {
            Random | RoundRobin => Look::Nothing,
            Jobs | JobsPerProcessor | ParallelLoad | BalancedLoad | LowerBound => Look::Loads,
            CompletionTime | StartTime | MeanWait | WeightedWait | Mcisne => Look::Plans,
            Genetic | External => Look::All,
        }
    }
}

/// What a rule decides by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Nothing,
    /// What the jobs of sites ask for.
    Loads,
    /// How sites would go on.
    Plans,
    All,
}

/// A fraction of a grid's processors, in lowest terms: 0 < a ≤ 1, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    numerator: u32,
    denominator: u32,
}

impl Fraction {
    /// All of it.
    pub const ONE: Fraction = Fraction { numerator: 1, denominator: 1 };

    /// Such a fraction; none if it is not above 0 and at most 1.
    pub fn new(numerator: u32, denominator: u32) -> Option<Fraction> {
        let proper = numerator > 0 && numerator <= denominator;
        let divisor = greatest_common_divisor(numerator, denominator);
        proper.then(|| Fraction { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// Above the line, in lowest terms.
    pub fn numerator(self) -> u32 {
        self.numerator
    }

    /// Below the line, in lowest terms.
    pub fn denominator(self) -> u32 {
        self.denominator
    }

    /// Compares a part of a whole with this fraction of it.
    pub fn compare(self, part: u64, whole: u64) -> std::cmp::Ordering {
        let part = u128::from(part) * u128::from(self.denominator);
        part.cmp(&(u128::from(whole) * u128::from(self.numerator)))
    }

    /// As a decimal fraction of at most six digits, or a quotient.
    fn parse(text: &str) -> Result<Fraction, String> {
        let wrong = || format!("a={text:?} is no fraction above 0 and at most 1; write 0.5, 1/3 or auto");
        let fraction = match (text.split_once('/'), text.split_once('.')) {
            (Some((numerator, denominator)), _) => Fraction::new(
                numerator.parse().map_err(|_| wrong())?,
                denominator.parse().map_err(|_| wrong())?,
            ),
            (None, Some((whole, digits))) if digits.len() <= 6 => {
                let denominator = 10_u32.pow(u32::try_from(digits.len()).map_err(|_| wrong())?);
                let whole: u32 = whole.parse().map_err(|_| wrong())?;
                let rest: u32 = digits.parse().map_err(|_| wrong())?;
                let numerator = whole.checked_mul(denominator).and_then(|whole| whole.checked_add(rest));
                Fraction::new(numerator.ok_or_else(wrong)?, denominator)
            }
            (None, None) => Fraction::new(text.parse().map_err(|_| wrong())?, 1),
            (None, Some(_)) => None,
        };
        fraction.ok_or_else(wrong)
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a.max(1) } else { greatest_common_divisor(b, a % b) }
}

impl std::fmt::Display for Fraction {
    /// A decimal fraction if six digits say it exactly.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.numerator == self.denominator {
            return f.write_str("1");
        }
        for digits in 1..=6_usize {
            let tens = 10_u64.pow(u32::try_from(digits).unwrap_or(6));
            let scaled = u64::from(self.numerator) * tens;
            if scaled.is_multiple_of(u64::from(self.denominator)) {
                return write!(f, "0.{:0digits$}", scaled / u64::from(self.denominator));
            }
        }
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

/// The most jobs of a batch: as many as the published work has, times a hundred.
const BATCH_MAX: u32 = 100_000;
/// The most individuals: arbitrary.
const POPULATION_MAX: u32 = 10_000;
/// The most generations: arbitrary.
const GENERATIONS_MAX: u32 = 1_000_000;
/// The most evaluations: arbitrary, an hour of plans of thousands of jobs.
const EVALUATIONS_MAX: u32 = 100_000_000;

pub(super) fn count(key: &str, text: &str, least: u32, most: u32) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| (least..=most).contains(count));
    count.ok_or_else(|| format!("{key}={text:?} is no whole number from {least} to {most}"))
}

/// All switches of a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broker {
    /// What it makes least.
    pub rule: BrokerRule,
    /// The part a of the processors of sites wide enough, from the smallest on, that are admissible.
    pub admissible: Fraction,
    /// Whether that part follows what was executed lately in its place (`brokers::allocation::follow`).
    pub follows: bool,
    /// Where exactly it ends.
    pub cut: Cut,
    /// Which jobs are load, to ML, MLp, MPL, LBal_S and MLB.
    pub count: Count,
    /// The arriving job, to LBal_S.
    pub arriving: ArrivingLoad,
    /// What runs, to MLB.
    pub running: RunningWork,
    /// What MCT calls completion.
    pub completion: Completion,
    /// What MCT thinks of idle sites.
    pub idle: IdleSince,
    /// The arriving job, to MWT and MWWT_S.
    pub own_wait: OwnWait,
    /// The jobs that these take the mean over.
    pub population: Population,
    /// How plans follow what happens.
    pub plan: Plan,
    /// What plans think of jobs past their estimates.
    pub overrun: Overrun,
    /// What decides once an external rule does not. Means nothing to others.
    #[serde(default = "default_fallback")]
    pub fallback: BrokerRule,
    /// When a genetic rule plans. Means nothing to others.
    #[serde(default)]
    pub batches: Batches,
    /// Of the upper level of M-CISNE. Means nothing to others.
    #[serde(default)]
    pub meta: MetaScheduler,
}

fn default_fallback() -> BrokerRule {
    BrokerRule::ParallelLoad
}

impl Broker {
    /// A rule with the default of each switch.
    pub fn new(rule: BrokerRule) -> Broker {
        Broker {
            rule,
            admissible: Fraction::ONE,
            follows: false,
            cut: Cut::default(),
            count: Count::default(),
            arriving: ArrivingLoad::default(),
            running: RunningWork::default(),
            completion: Completion::default(),
            idle: IdleSince::default(),
            own_wait: OwnWait::default(),
            population: Population::default(),
            plan: Plan::default(),
            overrun: Overrun::default(),
            fallback: default_fallback(),
            batches: Batches::default(),
            meta: MetaScheduler::default(),
        }
    }

    /// Whether it plans batches of jobs, whose order at a site is that of the plan.
    pub fn plans_batches(&self) -> bool {
        self.rule == BrokerRule::Genetic
    }

    /// The rule of this code that decides: that itself, or the fallback.
    pub fn own_rule(&self) -> BrokerRule {
        match self.rule {
            BrokerRule::External => self.fallback,
            rule => rule,
        }
    }

    /// Whether it is MLB that is to count what is left of running jobs, and no running job.
    pub fn contradicts_itself(&self) -> bool {
        self.own_rule() == BrokerRule::LowerBound
            && self.count == Count::Waiting
            && self.running == RunningWork::Remaining
    }

    /// Whether jobs may wait at the broker until sites have room: the upper queue of M-CISNE with a limit, or for jobs in parts.
    pub fn holds_back(&self) -> bool {
        self.rule == BrokerRule::Mcisne && (self.meta.limit != QueueLimit::None || self.meta.coallocates())
    }

    /// Whether it starts jobs in parts at several sites at once.
    pub fn coallocates(&self) -> bool {
        self.rule == BrokerRule::Mcisne && self.meta.coallocates()
    }

    /// Whether it decides by plans of sites.
    pub fn plans(&self) -> bool {
        self.own_rule().looks_at() == Look::Plans
    }

    /// Whether the upper level of M-CISNE looks at what clusters would do.
    pub fn looks_ahead(&self) -> bool {
        matches!(self.meta.select, ClusterSelection::Turnaround | ClusterSelection::Weighted)
    }

    /// How jobs past their estimates are planned, if it decides by plans of what sites have without the arriving job.
    pub fn looks_at_plans(&self) -> Option<Overrun> {
        let with_job = match self.own_rule() {
            BrokerRule::MeanWait | BrokerRule::WeightedWait => self.own_wait == OwnWait::With,
            BrokerRule::CompletionTime => self.completion == Completion::SiteAfter,
            _ => false,
        };
        (self.plans() && !with_job && self.plan == Plan::Resynchronised).then_some(self.overrun)
    }

    /// Whether it must know what sites do: what else it decides by it knows itself.
    pub fn needs_reports(&self) -> bool {
        let needs = match self.rule.looks_at() {
            Look::Nothing => false,
            Look::Loads => self.plan != Plan::OpenLoopAll,
            Look::Plans => self.plan == Plan::Resynchronised,
            Look::All => true,
        };
        needs || self.follows
    }

    /// Names of the options of rules other than the upper queue.
    const OWN: [&str; 20] = [
        "a",
        "cut",
        "count",
        "lbal",
        "mlb",
        "mct",
        "mct-idle",
        "mwt-j",
        "mwt-pop",
        "plan",
        "overrun-plan",
        "fallback",
        "batch",
        "window",
        "goal",
        "population",
        "generations",
        "evaluations",
        "crossover",
        "mutation",
    ];

    /// Names of its options: its own, then those of the upper queue.
    pub const OPTIONS: [&str; Broker::OWN.len() + MetaScheduler::OPTIONS.len()] = {
        let mut all = [""; Broker::OWN.len() + MetaScheduler::OPTIONS.len()];
        let (own, upper) = all.split_at_mut(Broker::OWN.len());
        own.copy_from_slice(&Broker::OWN);
        upper.copy_from_slice(&MetaScheduler::OPTIONS);
        all
    };

    pub(super) fn parse(argument: &str) -> Result<Broker, String> {
        BrokerRule::parse("broker", argument).map(Broker::new)
    }

    /// The same with one switch set, by its name among [`Broker::OPTIONS`].
    ///
    /// # Errors
    /// In words, if there is no such switch, or it has no such value.
    pub fn with(mut self, key: &str, value: &str) -> Result<Broker, String> {
        self.set(key, value)?;
        Ok(self)
    }

    /// Sets one switch.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "a" if value == "auto" => (self.admissible, self.follows) = (Fraction::ONE, true),
            "a" => (self.admissible, self.follows) = (Fraction::parse(value)?, false),
            "cut" => self.cut = Cut::parse(key, value)?,
            "count" => self.count = Count::parse(key, value)?,
            "lbal" => self.arriving = ArrivingLoad::parse(key, value)?,
            "mlb" => self.running = RunningWork::parse(key, value)?,
            "mct" => self.completion = Completion::parse(key, value)?,
            "mct-idle" => self.idle = IdleSince::parse(key, value)?,
            "mwt-j" => self.own_wait = OwnWait::parse(key, value)?,
            "mwt-pop" => self.population = Population::parse(key, value)?,
            "plan" => self.plan = Plan::parse(key, value)?,
            "overrun-plan" => self.overrun = Overrun::parse(key, value)?,
            "fallback" => self.fallback = BrokerRule::parse(key, value)?,
            "batch" => self.batches.jobs = count(key, value, 1, BATCH_MAX)?,
            "window" => self.batches.window = super::fetch::parse(key, value)?,
            "goal" => self.batches.goal = Goal::parse(key, value)?,
            "population" => self.batches.population = count(key, value, 2, POPULATION_MAX)?,
            "generations" => self.batches.generations = count(key, value, 0, GENERATIONS_MAX)?,
            "evaluations" => self.batches.evaluations = count(key, value, 2, EVALUATIONS_MAX)?,
            "crossover" => self.batches.crossover = Chance::parse(key, value)?,
            "mutation" => self.batches.mutation = Chance::parse(key, value)?,
            _ if self.meta.set(key, value)? => {}
            _ => {
                return Err(unknown_option(key, "a broker", &Broker::OPTIONS));
            }
        }
        Ok(())
    }

    /// Each of [`Broker::OPTIONS`] as it is written, and whether it means something to the rule.
    fn switches(&self) -> impl Iterator<Item = (String, bool)> + use<> {
        let rule = self.own_rule();
        let (loads, plans) = (rule.looks_at() == Look::Loads, self.plans());
        let waits = matches!(rule, BrokerRule::MeanWait | BrokerRule::WeightedWait);
        let (completes, batches) = (rule == BrokerRule::CompletionTime, self.plans_batches());
        let limits = self.follows || self.admissible != Fraction::ONE;
        let admissible = if self.follows { "auto".to_string() } else { self.admissible.to_string() };
        let falls_back =
            !matches!(self.fallback, BrokerRule::External | BrokerRule::Genetic | BrokerRule::Mcisne);
        let named = |name: &str, counts| (name.to_string(), counts);
        let is_upper = self.rule == BrokerRule::Mcisne;
        let own: [(String, bool); Broker::OWN.len()] = [
            (admissible, !batches && !is_upper),
            named(self.cut.name(), limits),
            named(self.count.name(), loads),
            named(self.arriving.name(), rule == BrokerRule::BalancedLoad),
            named(self.running.name(), rule == BrokerRule::LowerBound),
            named(self.completion.name(), completes),
            named(self.idle.name(), completes),
            named(self.own_wait.name(), waits),
            named(self.population.name(), waits),
            // Loads are looked at as reports have them, or as all plans without reports.
            named(self.plan.name(), (plans && !is_upper) || (loads && self.plan != Plan::OpenLoop)),
            named(self.overrun.name(), plans),
            named(self.fallback.name(), self.rule == BrokerRule::External && falls_back),
            (self.batches.jobs.to_string(), batches),
            (super::fetch::show(self.batches.window), batches),
            named(self.batches.goal.name(), batches),
            (self.batches.population.to_string(), batches),
            (self.batches.generations.to_string(), batches),
            (self.batches.evaluations.to_string(), batches),
            (self.batches.crossover.to_string(), batches),
            (self.batches.mutation.to_string(), batches),
        ];
        let upper = self.meta.switches().into_iter().map(move |(text, counts)| (text, counts && is_upper));
        own.into_iter().chain(upper)
    }

    /// Those that are not their defaults, with their names.
    fn set_switches(&self) -> impl Iterator<Item = (&'static str, String)> {
        let own = Broker::OPTIONS.into_iter().zip(self.switches());
        let default = Broker::new(self.rule).switches();
        own.zip(default).filter(|((_, own), default)| own.0 != default.0).map(|((key, own), _)| (key, own.0))
    }

    /// A switch that was given, at its default or not, and means nothing to the rule, if there is one; of several `a` is the last.
    pub(super) fn meaningless(&self, given: &BTreeSet<&str>) -> Option<&'static str> {
        let all = Broker::OPTIONS.into_iter().zip(self.switches());
        let wrong = all.filter(|(key, (_, counts))| !counts && given.contains(key)).map(|(key, _)| key);
        let key = wrong.min_by_key(|&key| key == "a")?;
        Some(match self.fallback {
            BrokerRule::External if self.rule == self.fallback && key == "fallback" => "fallback=exec",
            BrokerRule::Genetic if self.rule == BrokerRule::External && key == "fallback" => {
                "fallback=genetic"
            }
            BrokerRule::Mcisne if self.rule == BrokerRule::External && key == "fallback" => "fallback=mcisne",
            _ => key,
        })
    }
}

impl std::fmt::Display for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "broker:{}", self.rule.name())?;
        self.set_switches().try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn fractions_are_exact() {
        for (text, shown) in
            [("0.5", "0.5"), ("0.10", "0.1"), ("1/3", "1/3"), ("1", "1"), ("3/12", "0.25"), ("1.0", "1")]
        {
            assert_eq!(Fraction::parse(text).unwrap().to_string(), shown);
        }
        for text in ["0", "0.0", "1.5", "2/1", "-0.5", "x", "1/0", "0.1234567", ".", "0.5x"] {
            assert!(Fraction::parse(text).is_err(), "{text}");
        }
        // As floating-point numbers 0.55 × 100 is above 55.
        assert_eq!(Fraction::parse("0.55").unwrap().compare(55, 100), Ordering::Equal);
    }
}
