//! What a broker that learns must not forget, as rows of its journal: which tables they are in, and what their words mean.

use std::collections::BTreeMap;

use brokers::learning::{Change, Learned, Placed, PlacedAt, Subject};
use scheduler::{Grid, JobId, SiteId};

use crate::bounds::{is_job_of, is_site_of, is_time};
use crate::experience::is_lesson;
use crate::journal::{Durable, Fact, Topic, Words};

/// What the rule knows; by user and place of a site where both count.
const RULE: u8 = 0;
const CHANCE: u8 = 1;
const SITE: u8 = 2;
const JOB: u8 = 3;
const USER: u8 = 4;
const USER_AT: u8 = 5;
/// Jobs that were given to sites and have not ended, by their ids.
const PLACED: u8 = 6;
/// What was learned of sites, by site.
const LEARNED: u8 = 7;
/// How often jobs that have not ended were called back, by their ids.
const RECALLED_JOB: u8 = 8;
/// How often jobs were called back from a site, by site.
const RECALLED_FROM: u8 = 9;
/// The rule is in its main phase, if there is such a row.
const MAIN_PHASE: u8 = 10;
/// Nothing that the rule may decide by has happened since it was asked, if there is such a row.
const RESTS: u8 = 11;

/// Everything that an earlier incarnation knew.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    pub(super) known: BTreeMap<Subject, Words>,
    pub(super) placed: BTreeMap<JobId, Placed>,
    pub(super) learned: BTreeMap<SiteId, Learned>,
    pub(super) recalled_jobs: BTreeMap<JobId, u32>,
    pub(super) recalled_from: BTreeMap<SiteId, u32>,
    pub(super) is_main: bool,
    pub(super) rests: bool,
}

impl Memory {
    /// # Errors
    /// The first row that no broker of this grid can have written.
    pub(super) fn read(grid: &Grid, durable: &Durable) -> Result<Memory, String> {
        let mut memory = Memory::default();
        for (topic, words) in durable.memory.iter().filter(|(of, _)| !is_lesson(of)) {
            let is_read = memory.take(grid, topic, words).is_some();
            if !is_read {
                return Err(format!("no broker of this grid has written {words:?} of {topic:?}"));
            }
        }
        Ok(memory)
    }

    fn take(&mut self, grid: &Grid, topic: &Topic, words: &Words) -> Option<()> {
        let &Topic { table, a, b } = topic;
        let site = SiteId(a);
        let is_place = || is_site_of(grid, site) && !grid.is_broker(site);
        match (table, a, b) {
            (RULE..=USER_AT, ..) => drop(self.known.insert(subject(topic)?, *words)),
            (PLACED, 0, id) => {
                let placed = Placed::from_words(JobId(id), words).filter(|placed| can_be(grid, placed))?;
                self.placed.insert(placed.job.id, placed);
            }
            (LEARNED, _, 0) if is_place() => drop(self.learned.insert(site, Learned::from_words(words)?)),
            (RECALLED_JOB, 0, id) => drop(self.recalled_jobs.insert(JobId(id), count(words)?)),
            (RECALLED_FROM, _, 0) if is_place() => drop(self.recalled_from.insert(site, count(words)?)),
            (MAIN_PHASE, 0, 0) if *words == Words::default() => self.is_main = true,
            (RESTS, 0, 0) if *words == Words::default() => self.rests = true,
            _ => return None,
        }
        Some(())
    }
}

fn can_be(grid: &Grid, placed: &Placed) -> bool {
    let is_at = |at: PlacedAt| {
        let times = [Some(at.since), at.queued, at.started];
        (at.site as usize) < grid.len() - grid.brokers() && times.into_iter().flatten().all(is_time)
    };
    is_job_of(grid, &placed.job) && is_time(placed.first) && placed.at.is_none_or(is_at)
}

fn of_subject(of: Subject) -> Topic {
    let (table, a, b) = match of {
        Subject::Rule => (RULE, 0, 0),
        Subject::Chance => (CHANCE, 0, 0),
        Subject::Site(site) => (SITE, site, 0),
        Subject::Job(job) => (JOB, 0, job.0),
        Subject::User(user) => (USER, user.cast_unsigned(), 0),
        Subject::UserAt(user, site) => (USER_AT, user.cast_unsigned(), site.into()),
    };
    Topic { table, a, b }
}

fn subject(topic: &Topic) -> Option<Subject> {
    let &Topic { table, a, b } = topic;
    let of = match table {
        RULE => Subject::Rule,
        CHANCE => Subject::Chance,
        SITE => Subject::Site(a),
        JOB => Subject::Job(JobId(b)),
        USER => Subject::User(a.cast_signed()),
        USER_AT => Subject::UserAt(a.cast_signed(), u32::try_from(b).ok()?),
        _ => return None,
    };
    (of_subject(of) == *topic).then_some(of)
}

/// A number alone.
fn counted(times: u32) -> Words {
    let mut words = Words::default();
    words[0] = times.into();
    words
}

fn count(words: &Words) -> Option<u32> {
    let times = u32::try_from(words[0]).ok()?;
    (counted(times) == *words).then_some(times)
}

fn row(table: u8, a: u32, b: u64, words: Option<Words>) -> Fact {
    Fact::Remembers { topic: Topic { table, a, b }, words }
}

/// What the dispatcher says has changed.
pub(super) fn changed(change: Change) -> Fact {
    match change {
        Change::Known(of, words) => Fact::Remembers { topic: of_subject(of), words },
        Change::Placed(of) => row(PLACED, 0, of.job.id.0, Some(of.words())),
        Change::Gone(job) => row(PLACED, 0, job.0, None),
    }
}

pub(super) fn learned(site: SiteId, learned: Learned) -> Fact {
    row(LEARNED, site.0, 0, Some(learned.words()))
}

/// 0 once it need not be known.
pub(super) fn recalled_job(job: JobId, times: u32) -> Fact {
    row(RECALLED_JOB, 0, job.0, (times > 0).then(|| counted(times)))
}

pub(super) fn recalled_from(site: SiteId, times: u32) -> Fact {
    row(RECALLED_FROM, site.0, 0, Some(counted(times)))
}

pub(super) fn main_phase() -> Fact {
    row(MAIN_PHASE, 0, 0, Some(Words::default()))
}

pub(super) fn rests(rests: bool) -> Fact {
    row(RESTS, 0, 0, rests.then(Words::default))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::{JobSpec, LocalScheduler, StrategySpec, Time};

    use super::*;
    use crate::config::{Options, PeerConfig, Terms};
    use crate::fixtures::job;

    #[test]
    fn what_no_rule_can_have_known_is_told_as_damage() {
        let sites = [("a".to_string(), 2), ("b".to_string(), 8)];
        let grid = Arc::new(Grid::with_brokers(sites, [("broker".to_string(), None)]).unwrap());
        let check = |strategy: &str, site: u32, fact: Fact| {
            let mut durable = Durable::default();
            durable.apply(&Fact::Began { incarnation: 0 });
            durable.apply(&fact);
            let strategy = strategy.parse::<StrategySpec>().unwrap().strategy;
            let options = Options { journal: true, ..Options::default() };
            let terms =
                Terms { local: LocalScheduler::ALL[0], options, ..Terms::new(grid.clone(), strategy) };
            durable.check(&PeerConfig { site: SiteId(site), terms })
        };
        let knows = |of: Subject, first: u64| {
            let mut words = [0; 12];
            words[0] = first;
            changed(Change::Known(of, Some(words)))
        };
        let one = 1.0_f64.to_bits();
        let placed = |site: u32, since: i64| {
            let (queued, started) = (None, None);
            let at = PlacedAt { site, since: Time::from_micros(since), queued, started, is_called: false };
            let job = JobSpec { origin: SiteId(1), ..job(7, 4) };
            changed(Change::Placed(Placed { job, first: Time::ZERO, at: Some(at) }))
        };
        for (strategy, whole, damaged) in [
            ("opaque:round-robin", knows(Subject::Rule, 1), knows(Subject::Rule, 2)),
            ("opaque:mqd", knows(Subject::Job(JobId(7)), 0), knows(Subject::Site(0), 0)),
            ("opaque:ag", knows(Subject::Chance, 1 << 3), knows(Subject::Chance, 1 << 4)),
            ("opaque:met", placed(1, 0), knows(Subject::Rule, 0)),
            ("opaque:met", placed(0, 0), placed(2, 0)),
            ("opaque:met", placed(0, 5), placed(0, i64::MIN)),
            ("opaque:online-cost", knows(Subject::Rule, 5), knows(Subject::Rule, 0)),
            ("opaque:agents", knows(Subject::User(3), one), knows(Subject::User(3), 0)),
            ("opaque:agents", knows(Subject::User(3), one), knows(Subject::UserAt(3, 0), 0)),
            ("opaque:mqd-dup,copies=1", knows(Subject::Site(1), 0), knows(Subject::Site(2), 0)),
            ("opaque:mqd-dup,copies=1", knows(Subject::Site(1), 1), knows(Subject::Site(1), u64::MAX)),
            ("opaque:data-any", knows(Subject::Site(1), one), knows(Subject::Site(1), f64::NAN.to_bits())),
            ("opaque:cost", knows(Subject::Rule, 5), knows(Subject::Rule, i64::MIN.cast_unsigned())),
            ("opaque:smoothing", knows(Subject::Site(0), one), knows(Subject::Site(0), (-1.0_f64).to_bits())),
            ("opaque:linucb", knows(Subject::Site(1), one), knows(Subject::Site(1), f64::INFINITY.to_bits())),
        ] {
            assert_eq!(check(strategy, 3, whole), Ok(()), "{strategy}: {whole:?}");
            assert!(check(strategy, 3, damaged).is_err(), "{strategy}: {damaged:?}");
            assert!(check(strategy, 2, whole).is_err(), "{strategy}: a site has no rule: {whole:?}");
        }
        // What is not of any rule has bounds, too.
        let row = |table: u8, a: u32, b: u64, first: u64| {
            let mut words = Words::default();
            words[0] = first;
            Fact::Remembers { topic: Topic { table, a, b }, words: Some(words) }
        };
        for whole in [row(7, 2, 0, one), row(8, 0, 9, 3), row(9, 1, 0, 3), row(10, 0, 0, 0), row(11, 0, 0, 0)]
        {
            assert_eq!(check("opaque:ag", 3, whole), Ok(()), "{whole:?}");
            assert!(check("opaque:ag", 2, whole).is_err(), "a site has no rule: {whole:?}");
        }
        for damaged in [
            row(7, 2, 0, 2.0_f64.to_bits()),
            row(7, 3, 0, one),
            row(7, 2, 1, one),
            row(8, 0, 9, 1 << 32),
            row(8, 1, 9, 3),
            row(9, 4, 0, 3),
            row(10, 0, 0, 1),
            row(11, 0, 1, 0),
            row(12, 0, 0, 0),
        ] {
            assert!(check("opaque:ag", 3, damaged).is_err(), "{damaged:?}");
        }
    }

    #[test]
    fn what_is_known_of_a_subject_has_a_row_of_its_own() {
        let subjects = [
            Subject::Rule,
            Subject::Chance,
            Subject::Site(3),
            Subject::Job(JobId(3)),
            Subject::User(-3),
            Subject::UserAt(-3, 3),
        ];
        let topics: BTreeMap<Topic, Subject> = subjects.map(|of| (of_subject(of), of)).into();
        assert_eq!(topics.len(), subjects.len());
        for (topic, of) in topics {
            assert_eq!(subject(&topic), Some(of));
            assert_eq!(subject(&Topic { table: PLACED, ..topic }), None);
        }
        assert_eq!(subject(&Topic { table: SITE, a: 3, b: 1 }), None);
    }
}
