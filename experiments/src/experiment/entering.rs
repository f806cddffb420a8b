//! What a submission costs its user: the time between a job's submission and its arrival at the member of the grid that
//! takes it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use scheduler::spelling::unknown;
use scheduler::{JobSpec, Span, TimedJob};

use super::Experiment;
use super::jobs::Jobs;

/// How long submissions are on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubmitDelay {
    /// They arrive at once, as the published models have it.
    #[default]
    None,
    /// As long as a message from the user's site to where the job enters takes on average.
    Link,
}

impl SubmitDelay {
    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            SubmitDelay::None => "none",
            SubmitDelay::Link => "link",
        }
    }
}

impl Jobs {
    /// The jobs as members of the grid see them: submitted when they arrive, in queue order. What users wait counts from
    /// [`Jobs::jobs`].
    pub fn arriving(&self, experiment: &Experiment) -> Cow<'_, [TimedJob]> {
        let Experiment { grid, network, strategy, submit, submit_delay, .. } = experiment;
        if *submit_delay == SubmitDelay::None {
            return Cow::Borrowed(&self.jobs);
        }
        let way = |spec: &JobSpec| {
            let rank = submit.rank(grid, strategy.strategy, spec, &self.local_users);
            match rank.map(|rank| grid.at_rank(rank)) {
                Some(entry) if entry != spec.origin => network.link(spec.submit, spec.origin, entry).mean(),
                _ => Span::ZERO,
            }
        };
        let mut arriving = self.jobs.clone();
        arriving.iter_mut().for_each(|job| job.spec.submit += way(&job.spec));
        arriving.sort_unstable_by_key(|job| job.spec.key());
        Cow::Owned(arriving)
    }
}

impl fmt::Display for SubmitDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SubmitDelay {
    type Err = String;
    fn from_str(text: &str) -> Result<SubmitDelay, String> {
        let all = [SubmitDelay::None, SubmitDelay::Link];
        all.into_iter()
            .find(|delay| delay.name() == text)
            .ok_or_else(|| unknown("submit delay", text, "none or link"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::drive;
    use crate::drive::simulate::simulate;
    use crate::experiment::file::Written;
    use crate::experiment::jobs;
    use crate::interrupt::Interrupt;

    /// Waits of the jobs of site 1 and of site 2, and the name of the strategy, where messages take ten minutes.
    fn waits(strategy: &str, brokers: &str, submit_delay: &str) -> [Vec<i64>; 2] {
        let text = format!(
            "{brokers}\n[grid]\nsizes = [64, 128]\n[workload]\ntrace = \"built-in:seven-sites\"\ncount = 40\n\
             too_wide = \"drop\"\nload = 0.01\n[strategy]\nname = {strategy:?}\nsubmit_delay = {submit_delay:?}\n\
             [network]\ndelay = \"10m\"\n"
        );
        let experiment = Experiment::resolve(&Written::parse(&text, Path::new("x.toml")).unwrap()).unwrap();
        let jobs = jobs::read(&experiment).unwrap();
        let mut builder = drive::builder(&experiment, &jobs);
        let ended =
            simulate(&experiment, &jobs, simulator::Checks::Full, &Interrupt::default(), &mut |event| {
                builder.observe(event);
            })
            .unwrap();
        assert_eq!(ended.violation, None);
        let outcome = builder.finish();
        let of = |site: u32| {
            let rows = outcome.jobs.iter().filter(|job| job.origin.0 == site);
            rows.map(|job| job.start.unwrap().since(job.submit).as_micros() / 1_000_000).collect()
        };
        [of(1), of(2)]
    }

    /// At next to no load what a job waits is its ways.
    #[test]
    fn users_away_from_their_broker_wait_for_the_way_to_it() {
        let least = |waits: &[Vec<i64>; 2]| waits.each_ref().map(|waits| *waits.iter().min().unwrap());
        assert_eq!(least(&waits("broker:mst", "", "none")), [600, 600]);
        assert_eq!(least(&waits("broker:mst", "", "link")), [1200, 1200]);
        let beside = "brokers = [{ name = \"hub\", at = \"site1\" }]";
        let [near, far] = waits("broker:mst", beside, "link");
        // From the broker's own site a job may stay there.
        assert_eq!(*near.iter().min().unwrap(), 0);
        assert!(far.iter().all(|wait| *wait >= 600), "{far:?}");
        let each = "brokers = [{ name = \"one\", at = \"site1\" }, { name = \"two\", at = \"site2\" }]";
        assert_eq!(waits("broker:mst", each, "link"), waits("broker:mst", each, "none"));
        // Where users submit to their own sites, no submission goes over a link.
        assert_eq!(waits("st:50", "", "link"), waits("st:50", "", "none"));
    }

    #[test]
    fn what_has_no_links_has_no_delay_of_submissions() {
        let text = "[grid]\nsizes = [4]\n[workload]\ntrace = \"x.swf\"\n[strategy]\nname = \"ideal/st:50\"\nsubmit_delay = \"link\"\n";
        let written = Written::parse(text, Path::new("x.toml")).unwrap();
        let error = Experiment::resolve(&written).unwrap_err().to_string();
        assert!(error.contains("submit_delay") && error.contains("leave out ideal/"), "{error}");
    }
}
