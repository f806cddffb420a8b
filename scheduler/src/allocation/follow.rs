//! Admissibility that follows the load: which part of the processors a job may use, from what was executed lately. A thesis
//! proposed such a rule and had none (Quezada Pina 2012, §6.2); this one is ours.
//!
//! A job's *class* are all jobs whose smallest site wide enough is the same. Where the work of narrow classes is a part x of
//! all work that jobs of this and wider classes had, narrow jobs may use the smallest sites that hold that part of the
//! processors, and so leave to wider classes the part that those needed. Nothing executed means that nothing is known: all
//! sites are admissible.

use std::collections::{BTreeMap, VecDeque};

use crate::job::JobSpec;
use crate::strategy::Fraction;
use crate::time::{Span, Time};

/// For how long executed work counts: a day, the period of the load.
pub const INTERVAL: Span = Span::from_secs(86_400);

/// Parts are multiples of one in so many: with 20, the factor changes by 0.05 at least.
pub const STEPS: u32 = 20;

/// The least part, in such steps: 0.1, as small as the thesis tried.
pub const LEAST: u32 = 2;

/// Work that a site has executed lately, by the width of its jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Executed {
    /// When jobs ended, their widths, and their work in processor-microseconds.
    ends: VecDeque<(Time, u32, i128)>,
    by_width: BTreeMap<u32, i128>,
}

impl Executed {
    /// A job ended that executed since a time. What ended longer ago than [`INTERVAL`] counts no more.
    pub(super) fn ended(&mut self, now: Time, job: &JobSpec, since: Time) {
        let work = i128::from(job.processors) * i128::from(now.since(since).as_micros().max(0));
        self.ends.push_back((now, job.processors, work));
        *self.by_width.entry(job.processors).or_default() += work;
        while let Some(&(at, width, work)) = self.ends.front()
            && now.since(at) > INTERVAL
        {
            self.ends.pop_front();
            let left = self.by_width.get_mut(&width).map_or(0, |sum| {
                *sum -= work;
                *sum
            });
            if left == 0 {
                self.by_width.remove(&width);
            }
        }
    }

    fn between(&self, narrowest: u32, widest: u32) -> i128 {
        self.by_width.range(narrowest..=widest).map(|(_, work)| work).sum()
    }
}

/// The part of the processors of sites wide enough that a job may use, with sites of these sizes, ascending.
pub(super) fn admissible_part<'a>(
    sizes: &[u32],
    width: u32,
    executed: impl Iterator<Item = &'a Executed> + Clone,
) -> Fraction {
    let first = sizes.partition_point(|&size| size < width);
    let Some(&home) = sizes.get(first) else { return Fraction::ONE };
    let below = first.checked_sub(1).map_or(0, |place| sizes[place]);
    let own: i128 = executed.clone().map(|site| site.between(below + 1, home)).sum();
    let all: i128 = executed.map(|site| site.between(below + 1, u32::MAX)).sum();
    if all <= 0 {
        return Fraction::ONE;
    }
    let steps = (own * i128::from(STEPS) + all - 1) / all;
    let steps = u32::try_from(steps).unwrap_or(STEPS).clamp(LEAST, STEPS);
    Fraction::new(steps, STEPS).unwrap_or(Fraction::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::SiteId;
    use crate::job::{JobId, Labels};

    fn job(width: u32) -> JobSpec {
        JobSpec {
            id: JobId(1),
            submit: Time::ZERO,
            processors: width,
            requested: Span::from_secs(1),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    #[test]
    fn narrow_jobs_get_the_part_of_the_processors_that_their_work_had() {
        let sizes = [4, 8, 16];
        let mut site = Executed::default();
        let part = |site: &Executed, width| admissible_part(&sizes, width, [site].into_iter()).to_string();
        assert_eq!(part(&site, 1), "1", "nothing is known");
        // 30 processor-seconds of narrow work, 70 of wide work.
        site.ended(Time::from_secs(10), &job(3), Time::ZERO);
        site.ended(Time::from_secs(12), &job(14), Time::from_secs(7));
        assert_eq!([4, 8, 16].map(|width| part(&site, width)), ["0.3", "0.1", "1"]);
        assert_eq!(part(&site, 17), "1", "nobody can have it");
        // A second more of narrow work, and the next step begins.
        site.ended(Time::from_secs(13), &job(1), Time::from_secs(12));
        assert_eq!(part(&site, 4), "0.35");
        // A day later only what ended since counts.
        let later = Time::from_secs(13) + INTERVAL;
        site.ended(later, &job(16), later - Span::from_secs(1));
        assert_eq!(part(&site, 4), "0.1");
        site.ended(later + Span::from_secs(1), &job(16), later);
        assert_eq!(site.by_width.keys().copied().collect::<Vec<_>>(), [16]);
    }
}
