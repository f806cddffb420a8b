//! What each directed link does to messages, resolved: sites by number, times in microseconds, no files.
//!
//! A delay is the link's base delay, plus its jitter, plus the time that the payload occupies the link. Integers
//! and exact decimals throughout, so that a model survives JSON unchanged and two can be compared.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{SiteId, Span, Time};
use serde::{Deserialize, Serialize};

use crate::jitter::{DELAY_MAX, Jitter};
use crate::place::Place;

/// A probability below 1, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Probability(u32);

impl Probability {
    /// The probability of what never happens.
    pub const ZERO: Probability = Probability(0);
    const ONE: u32 = 1_000_000_000;

    /// The nearest to a number from 0 to below 1; `None` for others.
    pub fn new(value: f64) -> Option<Probability> {
        let billionths = (value * f64::from(Probability::ONE)).round();
        (0.0..f64::from(Probability::ONE)).contains(&billionths).then_some(Probability(billionths as u32))
    }

    /// The probability as a number from 0 to below 1.
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(Probability::ONE)
    }

    /// Whether it happens, for a number of which all are equally likely.
    pub(crate) fn happens(self, number: u64) -> bool {
        (u128::from(number) * u128::from(Probability::ONE)) >> 64 < u128::from(self.0)
    }
}

/// What a link does besides its base delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Properties {
    /// Random part of the delay.
    pub jitter: Jitter,
    /// Whether a message may overtake another; without it a link is first in, first out.
    pub reorder: bool,
    /// How likely a message is lost.
    pub loss: Probability,
    /// How likely a message that is not lost arrives twice.
    pub duplication: Probability,
    /// Bytes of payload in a second; no limit if `None`.
    pub bandwidth: Option<u64>,
}

impl Properties {
    /// A link that only delays.
    pub const NONE: Properties = Properties {
        jitter: Jitter::NONE,
        reorder: false,
        loss: Probability::ZERO,
        duplication: Probability::ZERO,
        bandwidth: None,
    };

    /// A link that loses and doubles messages, and delays each copy by up to `jitter` more, so that they overtake
    /// each other.
    ///
    /// # Panics
    /// If a probability is not from 0 to below 1.
    pub fn unreliable(loss: f64, duplication: f64, jitter: Span) -> Properties {
        let likely = |value| Probability::new(value).expect("a probability below 1");
        Properties {
            jitter: Jitter::up_to(jitter),
            reorder: true,
            loss: likely(loss),
            duplication: likely(duplication),
            bandwidth: None,
        }
    }
}

/// One directed link at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Delay of every message.
    pub delay: Span,
    /// And the rest.
    pub properties: Properties,
}

impl Link {
    /// The mean delay of a message without payload.
    pub fn mean(&self) -> Span {
        self.properties.jitter.mean_delay(self.delay)
    }

    /// What 999 of 1000 messages without payload do not exceed.
    pub fn longest(&self) -> Span {
        (self.delay + self.properties.jitter.longest()).clamp(Span::ZERO, DELAY_MAX)
    }
}

/// Base delays of all links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// The same everywhere.
    Constant(Span),
    /// `rows[from][to]`.
    Matrix(Vec<Vec<Span>>),
    /// By region of the two sites, two sites of one region included.
    Regions {
        /// The region of each site.
        of: Vec<usize>,
        /// `rows[from][to]`.
        rows: Vec<Vec<Span>>,
    },
    /// By the distance of the two places and the speed of signals.
    Places {
        /// Where each site is.
        of: Vec<Place>,
        /// In metres per second.
        speed: u64,
        /// What comes on top.
        constant: Span,
    },
}

impl Base {
    /// The base delay of a directed link.
    pub fn between(&self, from: SiteId, to: SiteId) -> Span {
        match self {
            Base::Constant(delay) => *delay,
            Base::Matrix(rows) => rows[from.index()][to.index()],
            Base::Regions { .. } | Base::Places { .. } if from == to => Span::ZERO,
            Base::Regions { of, rows } => rows[of[from.index()]][of[to.index()]],
            Base::Places { of, speed, constant } => {
                of[from.index()].travel(&of[to.index()], *speed) + *constant
            }
        }
    }

    /// The largest base delay. For regions also one that no two sites have.
    pub fn largest(&self) -> Span {
        let all = |rows: &[Vec<Span>]| rows.iter().flatten().copied().max().unwrap_or(Span::ZERO);
        match self {
            Base::Constant(delay) => *delay,
            Base::Matrix(rows) | Base::Regions { rows, .. } => all(rows),
            Base::Places { of, .. } => {
                let ids = || (0..of.len()).map(SiteId::from_index);
                let delays = ids().flat_map(|from| ids().map(move |to| self.between(from, to)));
                delays.max().unwrap_or(Span::ZERO)
            }
        }
    }

    /// How many sites it is for; any number if `None`.
    fn sites(&self) -> Option<usize> {
        match self {
            Base::Constant(_) => None,
            Base::Matrix(rows) => Some(rows.len()),
            Base::Regions { of, .. } => Some(of.len()),
            Base::Places { of, .. } => Some(of.len()),
        }
    }
}

/// Some sites; all if `None`.
pub type Sites = Option<BTreeSet<SiteId>>;

fn has(sites: &Sites, site: SiteId) -> bool {
    sites.as_ref().is_none_or(|sites| sites.contains(&site))
}

/// Other properties for some links, from some time on. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// From then on; from the beginning if `None`.
    pub at: Option<Time>,
    /// Links from these sites.
    pub from: Sites,
    /// Links to these sites.
    pub to: Sites,
    /// The same for the way back.
    pub both: bool,
    /// Base delay, one way, in trace time.
    pub delay: Option<Span>,
    /// Random part of the delay.
    pub jitter: Option<Jitter>,
    /// Whether messages may overtake each other.
    pub reorder: Option<bool>,
    /// Share of messages that are lost.
    pub loss: Option<Probability>,
    /// Share of messages that arrive twice.
    pub duplication: Option<Probability>,
    /// Bandwidth; `Some(None)` for no limit.
    #[serde(deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Option<u64>>,
}

/// Tells a limit that is given as none from one that is not given.
fn some<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::<u64>::deserialize(deserializer).map(Some)
}

impl Rule {
    fn is_about(&self, at: Time, from: SiteId, to: SiteId) -> bool {
        self.at.is_none_or(|since| since <= at)
            && ((has(&self.from, from) && has(&self.to, to))
                || (self.both && has(&self.from, to) && has(&self.to, from)))
    }

    fn apply(&self, link: &mut Link) {
        let properties = &mut link.properties;
        link.delay = self.delay.unwrap_or(link.delay);
        properties.jitter = self.jitter.unwrap_or(properties.jitter);
        properties.reorder = self.reorder.unwrap_or(properties.reorder);
        properties.loss = self.loss.unwrap_or(properties.loss);
        properties.duplication = self.duplication.unwrap_or(properties.duplication);
        properties.bandwidth = self.bandwidth.unwrap_or(properties.bandwidth);
    }
}

/// Which links a partition cuts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// From some sites to some; not back.
    OneWay {
        /// Sites whose messages are lost.
        from: Sites,
        /// Sites that they do not reach.
        to: Sites,
    },
    /// All links between sites of different groups. Sites of no group keep theirs.
    Groups(Vec<BTreeSet<SiteId>>),
}

/// A partition. A message is lost if its link is cut at any instant from its sending to its arrival.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Its first instant.
    pub at: Time,
    /// The first instant after it.
    pub until: Time,
    /// What is cut.
    pub between: Between,
}

impl Cut {
    fn takes(&self, from: SiteId, to: SiteId, sent: Time, arrival: Time) -> bool {
        let meanwhile = sent < self.until && arrival >= self.at;
        meanwhile
            && match &self.between {
                Between::OneWay { from: senders, to: receivers } => has(senders, from) && has(receivers, to),
                Between::Groups(groups) => {
                    let group = |site| groups.iter().position(|group| group.contains(&site));
                    matches!((group(from), group(to)), (Some(a), Some(b)) if a != b)
                }
            }
    }
}

/// What all links of a grid do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Delays without jitter, one way, in trace time.
    pub base: Base,
    /// What every link does besides.
    #[serde(default)]
    pub properties: Properties,
    /// What some links do instead, later ones over earlier ones.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// When which links are cut.
    #[serde(default)]
    pub cuts: Vec<Cut>,
    /// What a network underneath adds to every message, for simulations that are compared with real runs.
    #[serde(default)]
    pub added: Jitter,
    /// Members that are in the place of a site: they have its links, and messages between them and the site are free. Base
    /// delays are of the others, whose numbers come first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<SiteId, SiteId>,
}

impl Default for Model {
    fn default() -> Self {
        Model::ZERO
    }
}

impl Model {
    /// Messages that take no time and are never lost.
    pub const ZERO: Model = Model::constant(Span::ZERO);

    /// The same delay on every link, and nothing else.
    pub const fn constant(delay: Span) -> Model {
        Model {
            base: Base::Constant(delay),
            properties: Properties::NONE,
            rules: Vec::new(),
            cuts: Vec::new(),
            added: Jitter::NONE,
            beside: BTreeMap::new(),
        }
    }

    /// A delay for each directed link, `rows[from][to]`, and nothing else.
    pub fn matrix(rows: Vec<Vec<Span>>) -> Model {
        Model { base: Base::Matrix(rows), ..Model::ZERO }
    }

    /// The same base delays with these properties on every link.
    pub fn with(self, properties: Properties) -> Model {
        Model { properties, ..self }
    }

    /// A directed link at some time, partitions aside.
    pub fn link(&self, at: Time, from: SiteId, to: SiteId) -> Link {
        let (from, to) = (self.place(from), self.place(to));
        if from == to && !self.beside.is_empty() {
            return Link { delay: Span::ZERO, properties: Properties::NONE };
        }
        let mut link = Link { delay: self.base.between(from, to), properties: self.properties };
        for rule in self.rules.iter().filter(|rule| rule.is_about(at, from, to)) {
            rule.apply(&mut link);
        }
        link
    }

    /// In whose place a member is.
    fn place(&self, member: SiteId) -> SiteId {
        self.beside.get(&member).copied().unwrap_or(member)
    }

    /// Whether every message takes the base delay between its places.
    fn only_delays(&self) -> bool {
        self.properties == Properties::NONE
            && self.rules.is_empty()
            && self.cuts.is_empty()
            && self.added == Jitter::NONE
    }

    /// Whether every message takes its base delay, so that no message needs to be counted.
    pub fn is_plain(&self) -> bool {
        self.only_delays() && self.beside.is_empty()
    }

    /// Whether every message arrives once, at the instant it is sent.
    pub fn is_free(&self) -> bool {
        self.only_delays() && self.base.largest() == Span::ZERO
    }

    /// Whether every message arrives exactly once, and in the order of sending.
    pub fn is_lossless(&self) -> bool {
        self.cuts.is_empty()
            && self.everywhere(|properties| {
                properties.loss == Probability::ZERO
                    && properties.duplication == Probability::ZERO
                    && (!properties.reorder || properties.jitter.is_constant())
            })
    }

    /// What 999 of 1000 messages without payload do not exceed, on any link at any time.
    pub fn largest(&self) -> Span {
        let delays = self.rules.iter().filter_map(|rule| rule.delay).chain([self.base.largest()]);
        let jitters = self.rules.iter().filter_map(|rule| rule.jitter).chain([self.properties.jitter]);
        let delay = delays.max().unwrap_or(Span::ZERO);
        let jitter = jitters.map(|jitter| jitter.longest()).max().unwrap_or(Span::ZERO);
        (delay + jitter + self.added.longest()).clamp(Span::ZERO, DELAY_MAX)
    }

    /// The least bandwidth of any link at any time.
    pub fn bandwidth_min(&self) -> Option<u64> {
        let given = self.rules.iter().filter_map(|rule| rule.bandwidth).chain([self.properties.bandwidth]);
        given.flatten().min()
    }

    /// When a link changes for the last time, or is connected again; `None` if none ever does.
    pub fn last_change(&self) -> Option<Time> {
        let cuts = self.cuts.iter().map(|cut| cut.until);
        cuts.chain(self.rules.iter().filter_map(|rule| rule.at)).max()
    }

    /// How long links are cut, partitions that overlap counted once for each.
    pub fn cut_in_all(&self) -> Span {
        self.cuts.iter().map(|cut| cut.until.since(cut.at)).sum()
    }

    /// The same links over a network that adds something random to every message.
    pub fn over(self, added: Jitter) -> Model {
        Model { added, ..self }
    }

    /// Whether something is true of what links do besides delaying, wherever rules could leave it.
    fn everywhere(&self, holds: impl Fn(&Properties) -> bool) -> bool {
        // Each rule by itself on top of the properties of all links, and all of them: enough, since no rule can
        // make of two harmless ones a harmful one except jitter with reordering, which the last one sees.
        let mut all = Link { delay: Span::ZERO, properties: self.properties };
        let each = self.rules.iter().all(|rule| {
            let mut link = Link { delay: Span::ZERO, properties: self.properties };
            rule.apply(&mut link);
            rule.apply(&mut all);
            holds(&link.properties) && holds(&all.properties)
        });
        each && holds(&self.properties)
    }

    pub(crate) fn cuts(&self, from: SiteId, to: SiteId, sent: Time, arrival: Time) -> bool {
        let (from, to) = (self.place(from), self.place(to));
        self.cuts.iter().any(|cut| cut.takes(from, to, sent, arrival))
    }

    /// Checks a model that was not made by [`crate::Written::resolve`] against the number of sites.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub fn check(&self, sites: usize) -> Result<(), String> {
        let strange = |&(member, site): &(&SiteId, &SiteId)| {
            let numbered = |id: &SiteId| (1..=sites).contains(&(id.0 as usize));
            !numbered(member) || !numbered(site) || self.beside.contains_key(site)
        };
        if let Some((member, site)) = self.beside.iter().find(strange) {
            return Err(format!(
                "member {member} is in the place of {site}, which is no site; the grid has {sites}"
            ));
        }
        let sites = sites - self.beside.len();
        if let Some(given) = self.base.sites()
            && given != sites
        {
            return Err(format!("the delays are for {given} sites; the grid has {sites}"));
        }
        if let Base::Matrix(rows) = &self.base
            && let Some(row) = rows.iter().position(|row| row.len() != sites)
        {
            return Err(format!(
                "the delay matrix has {sites} rows, but row {} has {} columns",
                row + 1,
                rows[row].len()
            ));
        }
        if let Base::Regions { of, rows } = &self.base
            && (of.iter().any(|region| *region >= rows.len())
                || rows.iter().any(|row| row.len() != rows.len()))
        {
            return Err("the regions of the sites are not those of the delays".to_string());
        }
        if let Base::Places { speed: 0, .. } = &self.base {
            return Err("nothing moves at speed 0".to_string());
        }
        let negative = match &self.base {
            Base::Constant(delay) => (*delay < Span::ZERO).then_some(*delay),
            Base::Matrix(rows) | Base::Regions { rows, .. } => {
                rows.iter().flatten().find(|delay| **delay < Span::ZERO).copied()
            }
            Base::Places { constant, .. } => (*constant < Span::ZERO).then_some(*constant),
        };
        let negative = negative.or(self.rules.iter().filter_map(|rule| rule.delay).find(|d| *d < Span::ZERO));
        if let Some(delay) = negative {
            return Err(format!("delay {delay} s is negative"));
        }
        let rates = self.rules.iter().filter_map(|rule| rule.bandwidth).chain([self.properties.bandwidth]);
        if rates.flatten().any(|rate| rate == 0) {
            return Err("a link without any bandwidth carries nothing; use a partition".to_string());
        }
        match self.cuts.iter().find(|cut| cut.until <= cut.at) {
            Some(cut) => Err(format!("a partition from {} s until {} s never is", cut.at, cut.until)),
            None => Ok(()),
        }
    }

    /// In words, for reports.
    pub fn describe(&self) -> String {
        let mut words = match &self.base {
            Base::Constant(delay) if *delay == Span::ZERO => "no delay".to_string(),
            Base::Constant(delay) => format!("constant one-way delay of {delay} s"),
            _ => format!("one-way delays by link, at most {} s", self.base.largest()),
        };
        let Properties { jitter, reorder, loss, duplication, bandwidth } = self.properties;
        if jitter != Jitter::NONE {
            words += &format!(", jitter {jitter}");
        }
        if reorder {
            words += ", reordering";
        }
        if loss > Probability::ZERO {
            words += &format!(", loss {} %", loss.get() * 100.0);
        }
        if duplication > Probability::ZERO {
            words += &format!(", duplication {} %", duplication.get() * 100.0);
        }
        if let Some(bytes) = bandwidth {
            words += &format!(", bandwidth {bytes} B/s");
        }
        match self.rules.len() {
            0 => {}
            1 => words += ", 1 rule for some links",
            count => words += &format!(", {count} rules for some links"),
        }
        match self.cuts.len() {
            0 => {}
            1 => words += ", 1 partition",
            count => words += &format!(", {count} partitions"),
        }
        words
    }
}
