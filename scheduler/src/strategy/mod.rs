//! Names of strategies and local schedulers as users write them, and what they mean.
//!
//! What was typed is parsed once, here; everything else works on these types.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

mod balance;
mod broker;
mod chance;
mod fetch;
mod metascheduler;
mod nature;
pub mod opaque;
mod pool;

pub use balance::{Amount, Balance, Initiative, VictimRule};
pub use broker::{
    ArrivingLoad, Batches, Broker, BrokerRule, Completion, Count, Cut, Fraction, Goal, IdleSince, Overrun,
    OwnWait, Plan, Population, RunningWork,
};
pub use chance::Chance;
pub use metascheduler::{
    ClusterFilter, ClusterSelection, Coallocation, JONES, JobSelection, MetaScheduler, Phases, QueueLimit,
    SharingEstimator, UpperOrder, Weighting, Weights,
};
pub use nature::Nature;
pub use pool::{Discipline, OfferRule, Pool, PoolAlgorithm, PoolOrder, SiteOrder, TooWide, Via};

use self::opaque::Options as DispatchOptions;
use crate::class::{Order, Selection, Threshold};
use crate::spelling;
use crate::time::Span;

/// The switches of the stealing algorithm ST_x.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steal {
    /// The border between big and small jobs.
    pub threshold: Threshold,
    /// In which order classes are taken.
    pub order: Order,
    /// Which job of a list is taken.
    pub select: Selection,
}

impl Steal {
    /// Its switches.
    const OPTIONS: [&str; 2] = ["order", "select"];

    /// ST_x as published: order AHB, first fit.
    pub fn with_threshold(threshold: Threshold) -> Steal {
        Steal { threshold, order: Order::Ahb, select: Selection::FirstFit }
    }

    fn parse(percent: &str) -> Result<Steal, String> {
        let threshold = percent.parse().map_err(|reason| format!("threshold {reason}"))?;
        Ok(Steal::with_threshold(threshold))
    }

    /// Sets one switch.
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "order" => {
                let of_other = spelling::nearest(value, Selection::ALL.map(Selection::name));
                self.order = value.parse().map_err(|error| or_of(error, "select", of_other))?;
            }
            "select" => {
                let of_other = spelling::nearest(value, Order::ALL.map(Order::name));
                self.select = value.parse().map_err(|error| or_of(error, "order", of_other))?;
            }
            _ => return Err(unknown_option(key, "stealing", &Steal::OPTIONS)),
        }
        Ok(())
    }
}

/// Why a value means nothing to a switch, with the hint that it may belong to another one.
fn or_of(error: String, other: &str, value: Option<&str>) -> String {
    match value {
        Some(value) if !error.contains(spelling::DID_YOU_MEAN) => {
            format!("{error} ({} {other}={value}?)", spelling::DID_YOU_MEAN)
        }
        _ => error,
    }
}

/// How jobs find a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// Every job stays where it enters the grid, under the local scheduler. One too wide for that site goes home.
    Local,
    /// Job stealing, Schwiegelshohn, Tchernykh, Yahyapour 2008 (ST_x).
    Steal(Steal),
    /// Stealing from any smaller site what fits at once (ST50g); no guarantee.
    StealGreedy(Steal),
    /// One list of all jobs in queue order (List Common Pool).
    CommonPool,
    /// Exchange through a global queue (Grimme, Lepping, Papaspyrou 2007).
    Pool(Pool),
    /// A classic baseline: work moves between any two sites.
    Balance(Balance),
    /// A broker allocates each job to a site (Quezada Pina 2012).
    Broker(Broker),
    /// A broker before sites that it neither sees into nor controls, which learns from its own jobs (Costa 2007).
    Opaque(DispatchOptions),
}

impl Default for Strategy {
    /// Job stealing as published, with one half.
    fn default() -> Strategy {
        Strategy::Steal(Steal::with_threshold(Threshold::HALF))
    }
}

impl Strategy {
    /// All that this code decides by itself, each with the defaults of its switches, for lists to choose from.
    pub fn all() -> Vec<Strategy> {
        let mut all = vec![Strategy::Local];
        while let Some(family) = all.last().and_then(Strategy::next_family) {
            all.extend(family);
        }
        all
    }

    /// Those of the next family. A family that is new has no place among them until it gets one here.
    fn next_family(&self) -> Option<Vec<Strategy>> {
        Some(match self {
            Strategy::Local => vec![Strategy::default()],
            Strategy::Steal(steal) => vec![Strategy::StealGreedy(*steal)],
            Strategy::StealGreedy(_) => vec![Strategy::CommonPool],
            Strategy::CommonPool => PoolAlgorithm::ALL.map(|one| Strategy::Pool(Pool::new(one))).to_vec(),
            Strategy::Pool(_) => VictimRule::ALL.map(|one| Strategy::Balance(Balance::new(one))).to_vec(),
            Strategy::Balance(_) => {
                BrokerRule::BUILT_IN.iter().map(|&one| Strategy::Broker(Broker::new(one))).collect()
            }
            Strategy::Broker(_) => opaque::carried().map(Strategy::Opaque).collect(),
            Strategy::Opaque(_) => return None,
        })
    }

    /// Whether the border between big and small jobs changes what it does.
    pub fn has_threshold(&self) -> bool {
        self.steal().is_some()
    }

    /// The same with another border between big and small jobs, where it has one.
    #[must_use]
    pub fn with_threshold(mut self, threshold: Threshold) -> Strategy {
        if let Strategy::Steal(steal) | Strategy::StealGreedy(steal) = &mut self {
            steal.threshold = threshold;
        }
        self
    }

    /// The border between big and small jobs by which classes A, B and H are told apart in metrics and bounds;
    /// one half for strategies that have none.
    pub fn threshold(&self) -> Threshold {
        self.steal().map_or(Threshold::HALF, |steal| steal.threshold)
    }
}

/// A strategy, and whether its ideal reference runs instead of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategySpec {
    /// How jobs find a site.
    pub strategy: Strategy,
    /// Global view, no messages.
    pub ideal: bool,
    /// How long a stolen job holds its processors idle before it runs. For the ideal reference of stealing only; zero
    /// otherwise.
    #[serde(default)]
    pub fetch: Span,
}

impl StrategySpec {
    /// Whether the reference runs with free and instantaneous messages, nothing being fetched.
    pub fn is_free(&self) -> bool {
        self.ideal && self.fetch == Span::ZERO
    }

    /// The same strategy with everything free: what it is compared with.
    pub fn freed(self) -> StrategySpec {
        StrategySpec { ideal: true, fetch: Span::ZERO, ..self }
    }
}

/// The scheduler of one site's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocalScheduler {
    /// Start the head while it fits.
    Fcfs,
    /// EASY backfilling, candidates in queue order.
    #[default]
    Easy,
    /// EASY backfilling, the candidate that fills most.
    EasyBestFit,
    /// EASY backfilling, the candidate with the shortest request first.
    EasyShortest,
    /// EASY backfilling, the narrowest candidate first.
    EasySmallest,
    /// Conservative backfilling with compression: a planned start never gets later.
    Conservative,
    /// Conservative backfilling that plans anew at every pass.
    ConservativeReplan,
    /// Scan in queue order, start everything that fits.
    List,
    /// A process of the user decides, see `brokers::external`.
    External,
}

impl LocalScheduler {
    /// Every local scheduler of this code, in the order of the enum.
    pub const ALL: [LocalScheduler; 8] = [
        LocalScheduler::Fcfs,
        LocalScheduler::Easy,
        LocalScheduler::EasyBestFit,
        LocalScheduler::EasyShortest,
        LocalScheduler::EasySmallest,
        LocalScheduler::Conservative,
        LocalScheduler::ConservativeReplan,
        LocalScheduler::List,
    ];

    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            LocalScheduler::Fcfs => "fcfs",
            LocalScheduler::Easy => "easy",
            LocalScheduler::EasyBestFit => "easy-best-fit",
            LocalScheduler::EasyShortest => "easy-sjbf",
            LocalScheduler::EasySmallest => "easy-smallest",
            LocalScheduler::Conservative => "conservative",
            LocalScheduler::ConservativeReplan => "conservative-replan",
            LocalScheduler::List => "list",
            LocalScheduler::External => "exec",
        }
    }
}

/// When a local scheduler decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pass {
    /// Once per instant, after all completions and then all arrivals.
    #[default]
    Batch,
    /// After every event: submissions first, then terminations in start order. A running job whose estimated
    /// end is now counts as free already.
    PerEvent,
}

impl Pass {
    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Pass::Batch => "batch",
            Pass::PerEvent => "per-event",
        }
    }
}

/// Why a strategy name means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("strategy {text:?}: {reason}")]
pub struct StrategyError {
    text: String,
    reason: String,
}

/// What can be written, for errors.
fn names() -> String {
    format!(
        "use local, st:X, st-greedy:X (X in percent, 0 to 100), common-pool, pool:fcfs, pool:easy, pool:list, {}, \
         broker:RULE, opaque:RULE, options as in st:50,order=bah,select=easy, and the prefix ideal/ for the reference",
        VictimRule::strategies()
    )
}

impl FromStr for StrategySpec {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<StrategySpec, StrategyError> {
        let fail = |reason: String| StrategyError { text: text.to_string(), reason };
        let (ideal, rest) = match text.strip_prefix("ideal/") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut parts = rest.split(',');
        let mut strategy = named(parts.next().unwrap_or_default()).map_err(fail)?;
        let mut fetch = Span::ZERO;
        let mut keys = BTreeSet::new();
        let mut before = ("", "");
        for option in parts {
            let Some((key, value)) = option.split_once('=') else {
                return Err(fail(match before {
                    ("w", weights) if Chance::parse("w", option).is_ok() => format!(
                        "commas separate options, and {option:?} is none; write the weights of clusters as w={weights}/{option}"
                    ),
                    _ => format!("option {option:?} has no value; {}", names()),
                }));
            };
            before = (key, value);
            if !keys.insert(key) {
                return Err(fail(format!("{key} is given twice")));
            }
            match &mut strategy {
                Strategy::Steal(_) if key == "fetch" => fetch::parse(key, value).map(|span| fetch = span),
                Strategy::Steal(steal) | Strategy::StealGreedy(steal) => steal.set(key, value),
                Strategy::Pool(pool) => pool.set(key, value),
                Strategy::Balance(balance) => balance.set(key, value),
                Strategy::Broker(broker) => broker.set(key, value),
                Strategy::Opaque(options) => options.set(key, value),
                Strategy::Local | Strategy::CommonPool => {
                    Err(format!("unknown option {option:?}; {}", names()))
                }
            }
            .map_err(fail)?;
        }
        match strategy {
            Strategy::StealGreedy(steal) if steal.select == Selection::Easy => Err(fail(
                "a reservation in one of several lists protects nothing; select first-fit, best-fit or head"
                    .to_string(),
            )),
            Strategy::Pool(pool) if !ideal && pool.ideal_only().is_some() => {
                let switch = pool.ideal_only().unwrap_or_default();
                Err(fail(format!("{switch} needs a global view; write ideal/{rest}")))
            }
            _ if ideal && !strategy.nature().has_ideal => Err(fail(
                "a baseline has no ideal reference: it decides by what it was told; leave out ideal/"
                    .to_string(),
            )),
            Strategy::Steal(_) if !ideal && keys.contains("fetch") => {
                Err(fail(format!("fetch is for the reference; write ideal/{rest}, or give messages a delay")))
            }
            Strategy::Steal(steal) if fetch > Span::ZERO && steal.select == Selection::Easy => Err(fail(
                "reservations know nothing of fetch; select first-fit, best-fit or head".to_string(),
            )),
            Strategy::Broker(broker) if broker.meaningless(&keys).is_some() => {
                let key = broker.meaningless(&keys).unwrap_or_default();
                let of_upper = Some(key).filter(|_| broker.rule == BrokerRule::Mcisne);
                Err(fail(match of_upper.and_then(MetaScheduler::needed_for) {
                    Some(other) => format!("{key} means something only with {other}; write that, too, or leave out {key}"),
                    None => format!("{key} means nothing to {}; leave it out", broker.rule.name()),
                }))
            }
            Strategy::Broker(broker) if broker.contradicts_itself() => Err(fail(
                "count=waiting says that running jobs are no load, and mlb=remaining counts what is left of them; leave one \
                 out"
                    .to_string(),
            )),
            Strategy::Opaque(options) if options.meaningless(&keys).is_some() => {
                let key = options.meaningless(&keys).unwrap_or_default();
                Err(fail(format!("{key} means nothing to {}; leave it out", options.rule.name())))
            }
            Strategy::Opaque(options) => match opaque::refused(&options) {
                Some(reason) => Err(fail(reason)),
                None => Ok(StrategySpec { strategy, ideal, fetch }),
            },
            strategy => Ok(StrategySpec { strategy, ideal, fetch }),
        }
    }
}

/// The strategy before its options, such as `st:50`.
fn named(head: &str) -> Result<Strategy, String> {
    let (name, argument) = match head.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (head, None),
    };
    match (name, argument) {
        ("local", None) => Ok(Strategy::Local),
        ("common-pool", None) => Ok(Strategy::CommonPool),
        ("local" | "common-pool", Some(_)) => Err(format!("{name} takes no threshold; {}", names())),
        ("st", Some(percent)) => Steal::parse(percent).map(Strategy::Steal),
        ("st-greedy", Some(percent)) => Steal::parse(percent).map(Strategy::StealGreedy),
        ("st" | "st-greedy", None) => Err(format!("a threshold is missing, as in {name}:50")),
        ("pool", Some(algorithm)) => {
            Pool::parse(algorithm).map(Strategy::Pool).map_err(|error| or_elsewhere(error, algorithm))
        }
        ("pool", None) => Err("an algorithm is missing, as in pool:easy".to_string()),
        ("steal", Some(victim)) => {
            Balance::parse(victim).map(Strategy::Balance).map_err(|error| or_elsewhere(error, victim))
        }
        ("broker", Some(rule)) if opaque::is_meant(rule) => opaque::parse(rule).map(Strategy::Opaque),
        ("broker", Some(rule)) => {
            Broker::parse(rule).map(Strategy::Broker).map_err(|error| or_elsewhere(error, rule))
        }
        ("opaque", Some(rule)) => opaque::parse(rule).map(Strategy::Opaque),
        ("opaque", None) => Err("a rule is missing, as in opaque:ag".to_string()),
        ("broker", None) => Err("a rule is missing, as in broker:mpl".to_string()),
        ("steal", None) => Err("a victim is missing, as in steal:random".to_string()),
        _ => {
            let hint = match name.split_once('/') {
                Some((prefix, _)) => spelling::hint(prefix, ["ideal/"]),
                None => {
                    let locals = LocalScheduler::ALL.map(LocalScheduler::name);
                    spelling::hint_or_of(name, NAMES, locals, "--local")
                }
            };
            Err(format!("unknown name{hint}; {}", names()))
        }
    }
}

/// Strategies without what stands behind their colon.
const NAMES: [&str; 8] = ["local", "st", "st-greedy", "common-pool", "pool", "steal", "broker", "opaque"];

/// Families of strategies with switches, as they are named in hints, and the switches.
const SWITCHES: [(&str, &[&str]); 4] = [
    ("st:X", &Steal::OPTIONS),
    ("steal:VICTIM", &Balance::OPTIONS),
    ("pool:ALGORITHM", &Pool::OPTIONS),
    ("broker:RULE", &Broker::OPTIONS),
];

/// Why a strategy has no such switch, with the hint that it may belong to another family.
fn unknown_option(key: &str, whose: &str, keys: &[&str]) -> String {
    let mut hint = spelling::hint(key, keys);
    if hint.is_empty() {
        let near = |(family, keys): (&str, &[&str])| {
            spelling::nearest(key, keys.iter().copied()).map(|near| format!("{near} of {family}"))
        };
        let others: Vec<String> = SWITCHES.into_iter().filter_map(near).collect();
        if !others.is_empty() {
            hint = format!(" ({} {}?)", spelling::DID_YOU_MEAN, others.join(" or "));
        }
    }
    format!("unknown option {key:?}{hint}; {whose} has {}", keys.join(", "))
}

/// Why a name behind the colon of a family means nothing, with the hint that it may belong to another family.
fn or_elsewhere(error: String, typed: &str) -> String {
    let pools = PoolAlgorithm::ALL.map(|algorithm| ("pool", algorithm.name()));
    let victims = VictimRule::ALL.map(|rule| ("steal", rule.name()));
    let rules = BrokerRule::BUILT_IN.iter().map(|rule| ("broker", rule.name()));
    let all: Vec<(&str, &str)> = pools.into_iter().chain(victims).chain(rules).collect();
    let near = spelling::nearest(typed, all.iter().map(|(_, name)| *name));
    let of_near: Vec<String> = all
        .iter()
        .filter(|(_, name)| near == Some(*name))
        .map(|(family, name)| format!("{family}:{name}"))
        .collect();
    if of_near.is_empty() || error.contains(spelling::DID_YOU_MEAN) {
        return error;
    }
    format!("{error} ({} {}?)", spelling::DID_YOU_MEAN, of_near.join(" or "))
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, steal) = match self {
            Strategy::Local => return f.write_str("local"),
            Strategy::CommonPool => return f.write_str("common-pool"),
            Strategy::Pool(pool) => return pool.fmt(f),
            Strategy::Balance(balance) => return balance.fmt(f),
            Strategy::Broker(broker) => return broker.fmt(f),
            Strategy::Opaque(options) => return write!(f, "opaque:{options}"),
            Strategy::Steal(steal) => ("st", steal),
            Strategy::StealGreedy(steal) => ("st-greedy", steal),
        };
        write!(f, "{name}:{}", steal.threshold)?;
        if steal.order != Order::default() {
            write!(f, ",order={}", steal.order.name())?;
        }
        if steal.select != Selection::default() {
            write!(f, ",select={}", steal.select.name())?;
        }
        Ok(())
    }
}

impl fmt::Display for StrategySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.ideal { "ideal/" } else { "" };
        write!(f, "{prefix}{}", self.strategy)?;
        if self.fetch > Span::ZERO {
            write!(f, ",fetch={}", fetch::show(self.fetch))?;
        }
        Ok(())
    }
}

impl FromStr for LocalScheduler {
    type Err = String;
    fn from_str(text: &str) -> Result<LocalScheduler, String> {
        let all = LocalScheduler::ALL.into_iter().chain([LocalScheduler::External]);
        all.clone().find(|local| local.name() == text).ok_or_else(|| {
            // Of a strategy what stands before its threshold or rule, if that is all that is wrong.
            let other = text.split_once(':').map_or(text, |(name, _)| name);
            let whole = other != text && NAMES.contains(&other);
            let hint = match whole {
                true => format!(" (did you mean --strategy {text}?)"),
                false => spelling::hint_or_of(text, all.map(LocalScheduler::name), NAMES, "--strategy"),
            };
            format!(
                "unknown local scheduler {text:?}{hint}; use one of {}, or exec=COMMAND",
                LocalScheduler::ALL.map(LocalScheduler::name).join(", ")
            )
        })
    }
}

impl FromStr for Pass {
    type Err = String;
    fn from_str(text: &str) -> Result<Pass, String> {
        let all = [Pass::Batch, Pass::PerEvent];
        all.into_iter().find(|pass| pass.name() == text).ok_or_else(|| {
            let hint = spelling::hint(text, all.map(Pass::name));
            format!("unknown pass {text:?}{hint}; use batch or per-event")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for text in [
            "local",
            "st:50",
            "st:0",
            "st-greedy:25",
            "common-pool",
            "ideal/st:50,order=bah",
            "st:75,order=hab,select=best-fit",
            "ideal/common-pool",
            "ideal/st:50,fetch=120s",
            "ideal/st:25,order=bah,select=head,fetch=1500ms",
            "pool:fcfs",
            "pool:easy,via=gossip,offer=all,site-order=descending,pool-order=offered,demand=off",
            "ideal/pool:list,offer=head,discipline=interleaved,too-wide=block",
            "steal:random",
            "steal:two-choices,amount=half,mode=push",
            "broker:mpl",
            "ideal/broker:mct,a=0.5,cut=gt,mct=job-after,plan=open-loop,overrun-plan=next",
            "broker:mlp,a=auto,cut=class",
            "broker:mwwt-s,a=1/3,mwt-j=without,mwt-pop=system",
            "broker:lbal-s,count=waiting,lbal=literal,plan=open-loop-all",
            "broker:genetic,batch=7,window=60s,goal=wait,population=8,generations=5,evaluations=99,crossover=0.75,mutation=0.5",
            "broker:mcisne,coallocate=dp,phases=two",
            "ideal/broker:mcisne,select=rr,jobs=b,limit=none,coallocate=jones85",
            "opaque:ag,cap=5,alpha=0.2,l=0.7",
            "opaque:round-robin,timeout=500,growth=20",
            "opaque:storage-affinity,copies=1",
        ] {
            let spec: StrategySpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
        }
    }

    #[test]
    fn rules_that_learn_are_found_under_brokers_too_where_no_other_has_their_name() {
        for (text, shown) in [("broker:ag,l=0.7", "opaque:ag,l=0.7"), ("broker:mqd", "opaque:mqd")] {
            assert_eq!(text.parse::<StrategySpec>().unwrap().to_string(), shown);
        }
        let other = "broker:round-robin".parse::<StrategySpec>().unwrap().strategy;
        assert!(matches!(other, Strategy::Broker(_)), "that one has no cap and learns nothing");
    }

    #[test]
    fn the_list_of_strategies_has_every_name_once() {
        let names: Vec<String> = Strategy::all().iter().map(Strategy::to_string).collect();
        let expected = [
            "local",
            "st:50",
            "st-greedy:50",
            "common-pool",
            "pool:fcfs",
            "pool:easy",
            "pool:list",
            "steal:random",
            "steal:nearest",
            "steal:loaded",
            "steal:two-choices",
            "broker:random",
        ];
        assert_eq!(names[..expected.len()], expected);
        let opaque = names.iter().filter(|name| name.starts_with("opaque:")).count();
        assert_eq!(names.len(), expected.len() - 1 + BrokerRule::BUILT_IN.len() + opaque);
        assert_eq!(opaque, opaque::DispatchRule::ALL.len() - 3, "all but those that make copies");
        assert_eq!(names[names.len() - opaque], "opaque:round-robin");
        for (name, strategy) in names.iter().zip(Strategy::all()) {
            assert_eq!(name.parse::<StrategySpec>().unwrap().strategy, strategy, "{name}");
            let other = strategy.with_threshold(Threshold::new(20).unwrap());
            assert_eq!(other != strategy, strategy.has_threshold(), "{name}");
        }
    }

    #[test]
    fn wrong_names_say_what_to_write() {
        for (text, expected) in [
            ("st", "a threshold is missing"),
            ("st:101", "not a whole number from 0 to 100"),
            ("st:50,order=xyz", "unknown order"),
            ("st:50,colour=red", "unknown option \"colour\"; stealing has order, select"),
            ("pool:easy,amont=half", "did you mean amount of steal:VICTIM?"),
            ("steal:random,ofer=head", "did you mean offer of pool:ALGORITHM?"),
            ("broker:mpl,selct=easy", "did you mean select?"),
            ("local,selct=easy", "unknown option"),
            ("st:50,fallbak=random", "did you mean fallback of broker:RULE?"),
            ("steal:esay", "did you mean pool:easy?"),
            ("pool:randm", "did you mean steal:random or broker:random?"),
            ("pool:two-choice", "did you mean steal:two-choices?"),
            ("broker:neerest", "did you mean steal:nearest?"),
            ("st-greedy:50,select=easy", "a reservation in one of several lists"),
            ("st:50,fetch=120s", "write ideal/st:50,fetch=120s"),
            ("ideal/st:50,fetch=120", "is no time"),
            ("ideal/st:50,select=easy,fetch=1s", "know nothing of fetch"),
            ("ideal/st-greedy:50,fetch=1s", "unknown option"),
            ("local:5", "takes no threshold"),
            ("steal", "a victim is missing"),
            ("broker", "a rule is missing"),
            ("broker:best", "use random or round-robin or ml"),
            ("broker:mpl,a=1.5", "write 0.5, 1/3 or auto"),
            ("broker:mpl,mct=job-after", "means nothing to mpl"),
            ("broker:mpl,cut=gt", "cut means nothing"),
            // A default that means nothing is as wrong as another value.
            ("broker:mpl,cut=ge", "cut means nothing to mpl; leave it out"),
            ("broker:mpl,fallback=mpl", "fallback means nothing to mpl"),
            ("broker:genetic,a=1", "a means nothing to genetic"),
            ("broker:random,plan=resync", "plan means nothing to random"),
            ("broker:mcisne,w=0.5", "w means something only with select=ptt"),
            ("broker:mcisne,phases=one", "phases means something only with coallocate=dp"),
            ("broker:mcisne,limit=none,jobs=nb.rs", "jobs means something only with a limit other than none"),
            ("st:50,fetch=0s", "write ideal/st:50,fetch=0s"),
            ("opaque:round-robin,alpha=0.5", "alpha means nothing to round-robin"),
            ("broker:mpl,coallocate=dp", "coallocate means nothing"),
            ("broker:mcisne,phases=two", "phases means something only with coallocate=dp"),
            (
                "broker:mcisne,w=0.3",
                "w means something only with select=ptt; write that, too, or leave out w",
            ),
            ("broker:mcisne,ptt=plain", "ptt means something only with select=ptt"),
            ("broker:mcisne,level=0.5", "level means something only with filter=mem or filter=mpl"),
            ("broker:mcisne,filter=mem,level=50%", "write 0.5"),
            ("broker:mcisne,mct=job-after", "mct means nothing to mcisne"),
            ("broker:mcisne,select=ptt,w=0.5,0.3", "write the weights of clusters as w=0.5/0.3"),
            ("broker:mcisne,select=ptt,w=0.5,order", "option \"order\" has no value"),
            (
                "broker:mcisne,coallocate=mip",
                "use none or dp or nonsaturated or nonoptimal or jones85 or super",
            ),
            ("broker:mcisne,coallocate=dp,phases=three", "use one or two"),
            ("broker:mcisne,limit=none,jobs=b", "jobs means something only with a limit other than none"),
            ("broker:mct,colour=red", "unknown option"),
            ("steal:best", "unknown victim"),
            ("steal:random,amount=2", "use one, half or fit"),
            ("ideal/steal:random", "has no ideal reference"),
            ("stealing", "unknown name; use local"),
            ("pool", "an algorithm is missing"),
            ("pool:list,via=post", "use hosted or gossip"),
            ("pool:list,too-wide=block", "write ideal/pool:list,too-wide=block"),
            ("local,x", "has no value"),
            ("broker:mct,a=0.5,cut=gt,a=1", "a is given twice"),
            ("opaque", "a rule is missing"),
            ("opaque:agg", "did you mean ag?"),
            ("opaque:ag,timeout=0", "whole seconds or none"),
            ("opaque:round-robin,alpha=0.2", "means nothing to round-robin"),
            ("opaque:wqr", "a job is at one site only"),
            ("opaque:storage-affinity", "write copies=1"),
            ("ideal/opaque:wqr", "write copies=1"),
        ] {
            let error = text.parse::<StrategySpec>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
