//! Where jobs enter the grid: which member of it a user turns to.

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::grid::Grid;
use crate::job::{JobId, JobSpec};
use crate::spelling;
use crate::strategy::Strategy;

/// Where jobs enter the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Submit {
    /// At the smallest site wide enough, as the published model has it; with the common pool at its host.
    Home,
    /// Where the trace says that the user is. Strategies with home sites send the job there and pay the delay.
    Origin,
}

impl Submit {
    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Submit::Home => "home",
            Submit::Origin => "origin",
        }
    }

    /// The rank of the member that a job is submitted to. `None` if it is too wide for the grid.
    pub fn rank(self, grid: &Grid, strategy: Strategy, job: &JobSpec, local: &LocalUsers) -> Option<usize> {
        let site = self.rank_among_sites(grid, strategy, job)?;
        if !strategy.nature().brokers {
            return Some(site);
        }
        Some(local.site(grid, job).or_else(|| grid.broker_of(job.origin)).unwrap_or(site))
    }

    /// The rank of the site that has a job first if no broker stands before the sites: of one over several sites the widest. `None` if it
    /// is too wide for the grid.
    pub fn rank_among_sites(self, grid: &Grid, strategy: Strategy, job: &JobSpec) -> Option<usize> {
        let is_spread = job.processors <= grid.widest_job();
        let home = grid.home_rank(job.processors).or_else(|| is_spread.then(|| grid.len() - 1))?;
        Some(match self {
            Submit::Origin => grid.rank(job.origin),
            Submit::Home if strategy.nature().one_queue => 0,
            Submit::Home => home,
        })
    }
}

impl FromStr for Submit {
    type Err = String;
    fn from_str(text: &str) -> Result<Submit, String> {
        let all = [Submit::Home, Submit::Origin];
        all.into_iter().find(|submit| submit.name() == text).ok_or_else(|| {
            let hint = spelling::hint(text, all.map(Submit::name));
            format!("unknown submit {text:?}{hint}; use home or origin")
        })
    }
}

/// Jobs whose users go to the queue of their own site, although there is a broker. It learns of them from reports of the
/// site, and nobody moves them. Only drivers and references know who these are: a site executes what it is told of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalUsers(Arc<[JobId]>);

impl FromIterator<JobId> for LocalUsers {
    fn from_iter<I: IntoIterator<Item = JobId>>(jobs: I) -> LocalUsers {
        let mut jobs: Vec<JobId> = jobs.into_iter().collect();
        jobs.sort_unstable();
        LocalUsers(jobs.into())
    }
}

impl LocalUsers {
    /// The rank of the site that a local user submits a job to. `None` for all others, and for a job wider than its user's
    /// site, which takes the way of all others.
    pub fn site(&self, grid: &Grid, job: &JobSpec) -> Option<usize> {
        self.0.binary_search(&job.id).ok()?;
        Some(grid.rank(job.origin)).filter(|&rank| grid.widths()[rank] >= job.processors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::SiteId;
    use crate::job::Labels;
    use crate::strategy::StrategySpec;
    use crate::time::{Span, Time};

    #[test]
    fn local_users_go_past_the_broker_with_what_fits_their_site() {
        let sites = [("small".to_string(), 2), ("large".to_string(), 8)];
        let grid = Grid::with_brokers(sites, [("broker".to_string(), None)]).unwrap();
        let strategy = |name: &str| name.parse::<StrategySpec>().unwrap().strategy;
        let local: LocalUsers = [JobId(3), JobId(1)].into_iter().collect();
        let job = |id, processors, origin| JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors,
            requested: Span::from_secs(1),
            labels: Labels::UNKNOWN,
            origin: SiteId(origin),
            payload: 0,
        };
        let enters = |submit: Submit, name: &str, job: JobSpec| {
            grid.at_rank(submit.rank(&grid, strategy(name), &job, &local).unwrap())
        };
        let broker = SiteId(3);

        assert_eq!(enters(Submit::Home, "broker:mpl", job(1, 1, 2)), SiteId(2), "not the smallest that fits");
        assert_eq!(enters(Submit::Origin, "broker:mpl", job(3, 2, 1)), SiteId(1));
        assert_eq!(enters(Submit::Origin, "broker:mpl", job(2, 2, 1)), broker, "no local user's");
        assert_eq!(enters(Submit::Origin, "broker:mpl", job(3, 3, 1)), broker, "wider than its user's site");
        assert_eq!(
            enters(Submit::Home, "st:50", job(1, 1, 2)),
            SiteId(1),
            "without a broker nobody goes past it"
        );
    }
}
