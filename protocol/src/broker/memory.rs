//! What brokers and sites must not forget of jobs in parts, as rows of their journals: which tables they are in, and what their words mean.

use std::collections::BTreeMap;

use brokers::learning::Placed;
use scheduler::{Grid, JobId, JobSpec, SiteId, Span, Time};

use crate::bounds::{MICROS_MAX, are_counts, is_job_of, is_site_of, is_time};
use crate::core::Core;
use crate::experience::is_lesson;
use crate::gang::{Attempt, Part, Parts};
use crate::journal::{Durable, Fact, Topic, Words};

/// All attempts of a broker below are settled; by the broker.
const FLOOR: u8 = 0;
/// A part at this site; by the broker and the number of the attempt.
const PART: u8 = 1;
/// The job of one that has processors; by the same.
const JOB: u8 = 2;
/// A part of a job that this broker has decided to start; by the site and the number of the attempt.
const DECIDED: u8 = 3;

/// Words of [`JOB`] that are 0 otherwise, and where run times are not predicted: processors of the whole job, and how long it is predicted to run.
const WHOLE: usize = 9;
const PREDICTED: usize = 10;

/// Rows of one member.
pub(super) type Rows = BTreeMap<Topic, Words>;

/// What a site is told of the job of a part, where run times are predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foretold {
    /// Processors of the whole job.
    pub(super) whole: u32,
    /// How long it is predicted to run.
    pub(super) predicted: Span,
}

impl Foretold {
    /// Whether it can be of a job of which this is a part.
    pub(super) fn can_be(self, grid: &Grid, part: &JobSpec) -> bool {
        (part.processors..=grid.widest_job()).contains(&self.whole)
            && (0..=MICROS_MAX).contains(&self.predicted.as_micros())
    }
}

/// Rows of a member that are not of what predictors learned.
fn of_gangs(durable: &Durable) -> impl Iterator<Item = (&Topic, &Words)> {
    durable.memory.iter().filter(|(of, _)| !is_lesson(of))
}

/// What a site has of one part beside what it must not forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Has {
    /// The job with the processors of the part.
    pub(super) part: JobSpec,
    /// The site that the job is known by.
    pub(super) of: SiteId,
    /// How often the job has changed sites, once it starts.
    pub(super) hops: u32,
    /// Since when it has the processors.
    pub(super) since: Time,
    /// Whether it has begun to execute.
    pub(super) began: bool,
    /// None where run times are not predicted.
    pub(super) foretold: Option<Foretold>,
}

/// A part of a job that is to start, as its broker knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decided {
    pub(super) attempt: Attempt,
    pub(super) site: SiteId,
    pub(super) processors: u32,
    /// Its place among the parts: the job is known by the site of the first.
    pub(super) place: usize,
    /// When all start.
    pub(super) starts: Time,
    /// Whether it ran to its end, once it is over.
    pub(super) over: Option<bool>,
}

/// Rows as they are written down.
#[derive(Clone, Debug, Default)]
pub(super) struct Written(Rows);

impl Written {
    /// What an earlier incarnation wrote down.
    pub(super) fn again(durable: &Durable) -> Written {
        Written(of_gangs(durable).map(|(&topic, &words)| (topic, words)).collect())
    }

    /// Writes down what has changed.
    pub(super) fn bring(&mut self, core: &mut Core, rows: Rows) {
        let gone = self.0.keys().filter(|topic| !rows.contains_key(topic));
        gone.for_each(|&topic| core.write(Fact::Remembers { topic, words: None }));
        for (&topic, &words) in rows.iter().filter(|&(topic, words)| self.0.get(topic) != Some(words)) {
            core.write(Fact::Remembers { topic, words: Some(words) });
        }
        self.0 = rows;
    }
}

/// Compares rows with those that are written down.
pub(super) fn agree(rows: &Rows, durable: &Durable) -> Result<(), String> {
    match rows.iter().eq(of_gangs(durable)) {
        true => Ok(()),
        false => Err(format!("of parts of jobs it knows {rows:?}, and its journal has {:?}", durable.memory)),
    }
}

fn words<const N: usize>(first: [u64; N]) -> Words {
    let mut words = Words::default();
    words[..N].copy_from_slice(&first);
    words
}

/// What a site must not forget of the parts of a broker.
pub(super) fn of_parts(broker: SiteId, parts: &Parts, has: impl Fn(Attempt) -> Option<Has>) -> Rows {
    let mut rows = Rows::new();
    let topic = |table, b| Topic { table, a: broker.0, b };
    if parts.floor() > 0 {
        rows.insert(topic(FLOOR, 0), words([parts.floor()]));
    }
    for (attempt, part) in parts.all() {
        let Attempt { job, epoch, number } = attempt;
        let of = has(attempt);
        let state = match part {
            Part::Held { .. } => 0,
            Part::Runs { .. } if of.is_some_and(|has| !has.began) => 4,
            Part::Runs { .. } => 1,
            Part::Over { ended: true } => 2,
            Part::Over { ended: false } => 3,
        };
        let (known_by, hops) = of.map_or((0, 0), |has| (has.of.0, has.hops));
        let row = words([job.0, epoch.into(), state, known_by.into(), hops.into()]);
        rows.insert(topic(PART, number), row);
        if let Some(Has { part, since, foretold, .. }) = of {
            let mut row = Placed { job: part, first: since, at: None }.words();
            if let Some(Foretold { whole, predicted }) = foretold {
                row[WHOLE] = whole.into();
                row[PREDICTED] = predicted.as_micros().cast_unsigned();
            }
            rows.insert(topic(JOB, number), row);
        }
    }
    rows
}

/// All that a site remembers, by broker.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    pub(super) floors: BTreeMap<SiteId, u64>,
    pub(super) parts: BTreeMap<(SiteId, Attempt), (Part, Option<Has>)>,
}

impl Remembered {
    /// # Errors
    /// The first row that no site of this grid can have written.
    pub(super) fn read(grid: &Grid, durable: &Durable) -> Result<Remembered, String> {
        let (rows, mut remembered) = (&durable.memory, Remembered::default());
        let mut jobs = 0;
        for (topic, words) in of_gangs(durable) {
            let is_read = match topic.table {
                JOB => {
                    jobs += 1;
                    Some(())
                }
                _ => remembered.take(grid, rows, topic, words),
            };
            is_read.ok_or_else(|| format!("no site of this grid has written {words:?} of {topic:?}"))?;
        }
        match jobs == remembered.parts.values().filter(|part| part.1.is_some()).count() {
            true => Ok(remembered),
            false => Err("it has jobs of parts that it does not have".to_string()),
        }
    }

    fn take(&mut self, grid: &Grid, rows: &Rows, topic: &Topic, row: &Words) -> Option<()> {
        let &Topic { table, a, b } = topic;
        let broker = SiteId(a);
        if !is_site_of(grid, broker) || !grid.is_broker(broker) || !are_counts(&[b]) {
            return None;
        }
        match table {
            FLOOR if b == 0 && are_counts(&[row[0]]) && *row == words([row[0]]) => {
                self.floors.insert(broker, row[0]);
            }
            PART => {
                let [job, epoch, state, of, hops] = *row.first_chunk()?;
                let attempt = Attempt { job: JobId(job), epoch: u32::try_from(epoch).ok()?, number: b };
                let (of, hops) = (SiteId(u32::try_from(of).ok()?), u32::try_from(hops).ok()?);
                if *row != words([job, epoch, state, of.0.into(), hops.into()]) {
                    return None;
                }
                let known = rows.get(&Topic { table: JOB, ..*topic });
                let placed = known.and_then(|words| of_job(grid, attempt.job, words));
                let has = placed.filter(|_| is_site_of(grid, of)).map(|(part, since, foretold)| Has {
                    part,
                    of,
                    hops,
                    since,
                    began: state == 1,
                    foretold,
                });
                let part = match (state, has) {
                    (0, Some(has)) => Part::Held { processors: has.part.processors },
                    (1 | 4, Some(has)) => Part::Runs { processors: has.part.processors },
                    (2 | 3, None) if known.is_none() => Part::Over { ended: state == 2 },
                    _ => return None,
                };
                self.parts.insert((broker, attempt), (part, has));
            }
            _ => return None,
        }
        Some(())
    }
}

/// A part with when it got its processors, and what is foretold of its job. None if these are words of none.
fn of_job(grid: &Grid, job: JobId, words: &Words) -> Option<(JobSpec, Time, Option<Foretold>)> {
    let mut of_part = *words;
    let whole = u32::try_from(std::mem::take(&mut of_part[WHOLE])).ok()?;
    let predicted = Span::from_micros(std::mem::take(&mut of_part[PREDICTED]).cast_signed());
    let Placed { job: part, first, at: None } = Placed::from_words(job, &of_part)? else { return None };
    let foretold = Foretold { whole, predicted };
    let foretold = match (whole, predicted) {
        (0, Span::ZERO) => None,
        _ if foretold.can_be(grid, &part) => Some(foretold),
        _ => return None,
    };
    (is_time(first) && is_job_of(grid, &part)).then_some((part, first, foretold))
}

/// What a broker must not forget of a part.
pub(super) fn of_decided(decided: &Decided) -> (Topic, Words) {
    let Decided { attempt, site, processors, place, starts, over } = *decided;
    let over = over.map_or(0, |ended| if ended { 1 } else { 2 });
    let starts = starts.as_micros().cast_unsigned();
    let row = words([attempt.job.0, attempt.epoch.into(), processors.into(), place as u64, starts, over]);
    (Topic { table: DECIDED, a: site.0, b: attempt.number }, row)
}

/// All that a broker remembers.
///
/// # Errors
/// The first row that no broker of this grid can have written.
pub(super) fn decided(grid: &Grid, durable: &Durable) -> Result<Vec<Decided>, String> {
    let read = |(topic, row): (&Topic, &Words)| {
        let of = read_decided(grid, topic, row).filter(|part| durable.jobs.contains_key(&part.attempt.job));
        of.ok_or_else(|| format!("no broker of this grid has written {row:?} of {topic:?}"))
    };
    let mut all = of_gangs(durable).map(read).collect::<Result<Vec<Decided>, String>>()?;
    all.sort_unstable_by_key(|part| (part.attempt, part.place));
    let is_next = |pair: &[Decided]| match pair[0].attempt == pair[1].attempt {
        true => pair[0].place + 1 == pair[1].place && pair[0].starts == pair[1].starts,
        false => pair[1].place == 0 && pair[0].attempt.job != pair[1].attempt.job,
    };
    match all.first().is_none_or(|first| first.place == 0) && all.windows(2).all(is_next) {
        true => Ok(all),
        false => Err("it has decided on parts of which some are missing".to_string()),
    }
}

fn read_decided(grid: &Grid, topic: &Topic, row: &Words) -> Option<Decided> {
    let &Topic { table, a, b } = topic;
    let [job, epoch, processors, place, starts, over] = *row.first_chunk()?;
    let decided = Decided {
        attempt: Attempt { job: JobId(job), epoch: u32::try_from(epoch).ok()?, number: b },
        site: SiteId(a),
        processors: u32::try_from(processors).ok()?,
        place: usize::try_from(place).ok()?,
        starts: Time::from_micros(starts.cast_signed()),
        over: [None, Some(true), Some(false)].get(usize::try_from(over).ok()?).copied()?,
    };
    let is_place =
        is_site_of(grid, decided.site) && (1..=grid.width(decided.site)).contains(&decided.processors);
    let can_be = table == DECIDED
        && is_place
        && is_time(decided.starts)
        && are_counts(&[b])
        && decided.place < grid.len();
    (can_be && of_decided(&decided) == (*topic, *row)).then_some(decided)
}

impl Durable {
    /// By which attempt of which broker a part of a job has processors at this site, if brokers spread jobs here.
    pub fn part_of(&self, job: JobId) -> Option<(SiteId, Attempt)> {
        let mut rows =
            self.memory.iter().filter(|(topic, words)| topic.table == PART && !matches!(words[2], 2 | 3));
        let (topic, words) = rows.find(|(_, words)| words[0] == job.0)?;
        let epoch = u32::try_from(words[1]).ok()?;
        Some((SiteId(topic.a), Attempt { job, epoch, number: topic.b }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::job;
    use crate::gang::Order;

    #[test]
    fn what_is_foretold_of_a_part_is_read_again_and_nothing_that_cannot_be() {
        let sites = [("a".to_string(), 4), ("b".to_string(), 8)];
        let grid = Grid::with_brokers(sites, [("broker".to_string(), None)]).expect("a grid").with_spread(12);
        let attempt = Attempt { job: JobId(1), epoch: 0, number: 1 };
        let mut parts = Parts::default();
        parts.heard(attempt, Order::Prepare { processors: 3, floor: 1 }, 4);
        let read = |foretold| {
            let of = SiteId(2);
            let has = Has { part: job(1, 3), of, hops: 1, since: Time::ZERO, began: false, foretold };
            let memory = of_parts(SiteId(3), &parts, |_| Some(has));
            let read = Remembered::read(&grid, &Durable { memory, ..Durable::default() });
            read.map(|read| read.parts[&(SiteId(3), attempt)].1 == Some(has))
        };
        let foretold = |whole, micros| Some(Foretold { whole, predicted: Span::from_micros(micros) });
        assert_eq!(read(None), Ok(true));
        assert_eq!(read(foretold(12, 500)), Ok(true));
        assert_eq!(read(foretold(3, 0)), Ok(true));
        for cannot_be in [foretold(2, 500), foretold(13, 500), foretold(12, -1), foretold(0, 500)] {
            assert!(read(cannot_be).is_err(), "{cannot_be:?}");
        }
    }
}
