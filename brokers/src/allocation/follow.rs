//! Admissibility that follows the load: which part of the processors a job may use, from what was executed lately. A thesis
//! proposed such a rule and had none (Quezada Pina 2012, §6.2); this one is ours.
//!
//! A job's *class* are all jobs whose smallest site wide enough is the same. Where wider classes executed a part x of what all
//! sites wide enough can execute in the interval, the others may use the smallest sites that hold the part 1 - x of the
//! processors, and so leave to wider classes as many as those kept busy, on the sites that only they need. Nothing executed
//! means that nothing is known: all sites are admissible.

use std::collections::{BTreeMap, VecDeque};

use scheduler::strategy::Fraction;
use scheduler::{JobSpec, Span, Time};

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
    /// A job ended that executed since a time: what it executed in the last [`INTERVAL`] of that. What ended longer ago
    /// than that counts no more.
    pub(super) fn ended(&mut self, now: Time, job: &JobSpec, since: Time) {
        let lasted = now.since(since).max(Span::ZERO).min(INTERVAL);
        let work = i128::from(job.processors) * i128::from(lasted.as_micros());
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

    /// Work of jobs wider than this, without what is too long ago by now: where nothing ends any more, nothing is forgotten.
    fn wider_than(&self, now: Time, width: u32) -> i128 {
        let all: i128 = self.by_width.range(width + 1..).map(|(_, work)| work).sum();
        let old = self.ends.iter().take_while(|&&(at, ..)| now.since(at) > INTERVAL);
        all - old.filter(|&&(_, other, _)| other > width).map(|&(.., work)| work).sum::<i128>()
    }
}

/// The part of the processors of sites wide enough that a job may use, with sites of these sizes, ascending.
pub(super) fn admissible_part<'a>(
    now: Time,
    sizes: &[u32],
    width: u32,
    executed: impl Iterator<Item = &'a Executed>,
) -> Fraction {
    let first = sizes.partition_point(|&size| size < width);
    let Some(&home) = sizes.get(first) else { return Fraction::ONE };
    let wider: i128 = executed.map(|site| site.wider_than(now, home)).sum();
    let capacity =
        sizes[first..].iter().map(|&size| i128::from(size)).sum::<i128>() * i128::from(INTERVAL.as_micros());
    let kept = u32::try_from(wider * i128::from(STEPS) / capacity).unwrap_or(STEPS);
    let steps = STEPS.saturating_sub(kept).max(LEAST);
    Fraction::new(steps, STEPS).unwrap_or(Fraction::ONE)
}

#[cfg(test)]
mod tests {
    use scheduler::{JobId, Labels, SiteId};

    use super::*;

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
    fn wider_classes_keep_as_many_processors_as_they_kept_busy() {
        let sizes = [4, 8, 16];
        let mut site = Executed::default();
        let at =
            |site: &Executed, now, width| admissible_part(now, &sizes, width, [site].into_iter()).to_string();
        let day = Time::ZERO + INTERVAL;
        let part = |site: &Executed, width| at(site, day, width);
        let parts = |site: &Executed| [4, 8, 16].map(|width| part(site, width));
        assert_eq!(parts(&site), ["1"; 3], "nothing is known");
        // 7 of 28 processors for a day: a quarter of all, and 7/24 of the sites of 8 and 16.
        site.ended(day, &job(14), day - Span::from_secs(43_200));
        assert_eq!(parts(&site), ["0.75", "0.75", "1"], "shares are rounded up to steps");
        assert_eq!(part(&site, 17), "1", "nobody can have it");
        // What narrow jobs execute says nothing of what others need.
        site.ended(day, &job(4), Time::ZERO);
        assert_eq!(parts(&site), ["0.75", "0.75", "1"]);
        site.ended(day, &job(8), Time::ZERO);
        assert_eq!(parts(&site), ["0.5", "0.75", "1"]);
        // Of a job that took longer than a day only a day counts: 31 of 28, and 23 of 24.
        site.ended(day, &job(16), Time::ZERO - INTERVAL - INTERVAL);
        assert_eq!(parts(&site), ["0.1", "0.1", "1"]);
        // A day later nothing of it counts, also where nothing ends any more.
        let later = day + INTERVAL;
        assert_eq!(at(&site, later, 4), "0.1");
        assert_eq!(at(&site, later + Span::from_micros(1), 4), "1");
        // A day later only what ended since counts.
        let later = day + INTERVAL + Span::from_secs(1);
        site.ended(later, &job(16), later - Span::from_secs(1));
        assert_eq!(at(&site, later, 4), "1");
        assert_eq!(site.by_width.keys().copied().collect::<Vec<_>>(), [16]);
    }
}
