//! One log dealt to the users of several sites: a model of who submitted where, for logs that do not say.
//!
//! The log of one machine says nothing of a grid. Whoever replays it over several sites decides where its users are, and
//! with that what "no exchange" means, so each rule has a name and is reported with the results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use scheduler::{Grid, SiteId, TimedJob, spelling};

/// Where the users of a log are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deal {
    /// Each job at the site that has the least work per processor so far, of those wide enough.
    #[default]
    Processors,
    /// Users in turn, in the order of their first jobs: all jobs of a user at one site. What is too wide for it is at the
    /// smallest site wide enough.
    Users,
    /// Each job at the smallest site wide enough for it, as in the published model of job stealing.
    Home,
}

impl Deal {
    const ALL: [Deal; 3] = [Deal::Processors, Deal::Users, Deal::Home];

    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Deal::Processors => "processors",
            Deal::Users => "users",
            Deal::Home => "home",
        }
    }

    /// What it does with the jobs of a log, for readers of a result.
    pub fn describe(self) -> &'static str {
        match self {
            Deal::Processors => "each job at the site with the least work per processor so far",
            Deal::Users => "users in turn, each at one site",
            Deal::Home => "each job at the smallest site wide enough",
        }
    }

    /// Sets the origin of each job. Jobs are ascending by (submit, id); work is processors times true run time. A job
    /// that no site can hold keeps its origin.
    pub fn deal(self, jobs: &mut [TimedJob], grid: &Grid) {
        match self {
            Deal::Processors => by_work(jobs, grid),
            Deal::Users => by_user(jobs, grid),
            Deal::Home => {
                for job in jobs {
                    job.spec.origin = grid.home(job.spec.processors).unwrap_or(job.spec.origin);
                }
            }
        }
    }
}

impl fmt::Display for Deal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Deal {
    type Err = String;
    fn from_str(text: &str) -> Result<Deal, String> {
        Deal::ALL
            .into_iter()
            .find(|deal| deal.name() == text)
            .ok_or_else(|| spelling::unknown("deal", text, "processors, users or home"))
    }
}

fn by_work(jobs: &mut [TimedJob], grid: &Grid) {
    // Sites of one size are in the order of their work, so that of each size one is looked at.
    let mut by_size: BTreeMap<(u32, u32), BTreeSet<(i128, usize)>> = BTreeMap::new();
    let sites: Vec<SiteId> = grid.machines().map(|site| site.id).collect();
    for (place, site) in grid.machines().enumerate() {
        by_size.entry((grid.width(site.id), site.processors)).or_default().insert((0, place));
    }
    for job in jobs {
        let processors = job.spec.processors;
        let own = i128::from(processors) * i128::from(job.run_time.as_micros());
        let wide_enough = by_size.range_mut((processors, 0)..);
        let firsts = wide_enough.filter_map(|(&(_, size), sites)| {
            let &(work, place) = sites.first()?;
            Some((work, i128::from(size), place, sites))
        });
        // work / size, compared without dividing: the first of equals.
        let least = firsts.reduce(|best, other| {
            let (a, b) = (other.0 * best.1, best.0 * other.1);
            if a.cmp(&b).then(other.2.cmp(&best.2)).is_lt() { other } else { best }
        });
        if let Some((work, _, place, of_size)) = least {
            of_size.remove(&(work, place));
            of_size.insert((work + own, place));
            job.spec.origin = sites[place];
        }
    }
}

fn by_user(jobs: &mut [TimedJob], grid: &Grid) {
    let sites: Vec<SiteId> = grid.machines().map(|site| site.id).collect();
    let mut users: BTreeMap<_, usize> = BTreeMap::new();
    for job in jobs {
        let next = users.len() % sites.len();
        let site = sites[*users.entry(job.spec.labels.user).or_insert(next)];
        let wide_enough = grid.width(site) >= job.spec.processors;
        let home = if wide_enough { Some(site) } else { grid.home(job.spec.processors) };
        job.spec.origin = home.unwrap_or(job.spec.origin);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use scheduler::{JobId, JobSpec, Labels, Span, Time};

    use super::*;

    fn job(id: u64, processors: u32, run_time: i64, user: i32) -> TimedJob {
        let run_time = Span::from_secs(run_time);
        let labels = Labels { user, ..Labels::default() };
        let spec = JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors,
            requested: run_time,
            labels,
            origin: SiteId(1),
            payload: 0,
        };
        TimedJob { spec, run_time }
    }

    fn origins(deal: Deal, jobs: &[(u32, i64, i32)]) -> Vec<u32> {
        let numbered = jobs.iter().zip(1..);
        let mut jobs: Vec<TimedJob> = numbered.map(|(&(p, t, user), id)| job(id, p, t, user)).collect();
        deal.deal(&mut jobs, &Grid::of_sizes(&[4, 8, 4]).unwrap());
        jobs.iter().map(|job| job.spec.origin.0).collect()
    }

    #[test]
    fn work_goes_where_least_of_it_is_for_its_processors() {
        // After the first, sites 2 and 3 have none; then 4, 4/8 and none.
        assert_eq!(origins(Deal::Processors, &[(1, 16, 1), (1, 4, 1), (1, 4, 1), (1, 4, 1)]), [1, 2, 3, 2]);
        assert_eq!(origins(Deal::Processors, &[(8, 1, 1), (8, 1, 1), (4, 1, 1)]), [2, 2, 1], "wide jobs");
    }

    #[test]
    fn users_stay_where_they_are_and_wide_jobs_go_home() {
        let jobs = [(1, 1, 7), (1, 1, 3), (1, 1, 7), (8, 1, 7), (1, 1, -1), (1, 1, 9)];
        assert_eq!(origins(Deal::Users, &jobs), [1, 2, 1, 2, 3, 1]);
    }

    #[test]
    fn homes_are_the_smallest_sites_wide_enough() {
        assert_eq!(origins(Deal::Home, &[(4, 1, 1), (5, 1, 1)]), [1, 2]);
    }

    /// The naive twin: every site is looked at for every job.
    fn looking_at_all(jobs: &[TimedJob], sizes: &[u32]) -> Vec<u32> {
        let mut work = vec![0_i128; sizes.len()];
        let origin = |job: &TimedJob| {
            let wide_enough = (0..sizes.len()).filter(|&site| sizes[site] >= job.spec.processors);
            let least = wide_enough.reduce(|best, site| {
                let (a, b) = (work[site] * i128::from(sizes[best]), work[best] * i128::from(sizes[site]));
                if a < b { site } else { best }
            });
            let Some(site) = least else { return job.spec.origin.0 };
            work[site] += i128::from(job.spec.processors) * i128::from(job.run_time.as_micros());
            u32::try_from(site).unwrap() + 1
        };
        jobs.iter().map(origin).collect()
    }

    proptest! {
        #[test]
        fn the_least_of_each_size_is_the_least_of_all(
            sizes in prop::collection::vec(prop::sample::select(&[2_u32, 3, 4, 8][..]), 1..9),
            drawn in prop::collection::vec((1_u32..9, 0_i64..5), 1..60),
        ) {
            let mut jobs: Vec<TimedJob> =
                drawn.iter().zip(1..).map(|(&(p, time), id)| job(id, p, time, 1)).collect();
            let expected = looking_at_all(&jobs, &sizes);
            Deal::Processors.deal(&mut jobs, &Grid::of_sizes(&sizes).unwrap());
            prop_assert_eq!(jobs.iter().map(|job| job.spec.origin.0).collect::<Vec<_>>(), expected);
        }

        /// No site has more than its share and one job: what a fair division means, where no job is too wide.
        #[test]
        fn no_site_gets_more_than_its_share(times in prop::collection::vec(1_i64..1000, 1..200)) {
            let sizes = [4_u32, 8, 16];
            let mut jobs: Vec<TimedJob> = times.iter().zip(1..).map(|(&time, id)| job(id, 1, time, 1)).collect();
            Deal::Processors.deal(&mut jobs, &Grid::of_sizes(&sizes).unwrap());
            let total: i64 = times.iter().sum();
            let longest = *times.iter().max().unwrap();
            for (site, &size) in (1..).zip(&sizes) {
                let of_site = jobs.iter().filter(|job| job.spec.origin == SiteId(site));
                let work: i64 = of_site.map(|job| job.run_time.as_micros() / 1_000_000).sum();
                prop_assert!((work - longest) * 28 <= total * i64::from(size), "{site}: {work} of {total}");
            }
        }
    }
}
