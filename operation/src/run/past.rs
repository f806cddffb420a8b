//! What was done about sites so far, kept in `run.json` for whoever goes on with the run: what is still to be done, who is
//! away, who never comes back, and what others were told to adopt.
//!
//! Kept after each deed, which may be done twice, and before anything that may not: who gets what of a site that never
//! comes back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use node::control::api::Adoption;
use protocol::Failover;
use protocol::membership::operator;
use scheduler::event::EndCause;
use scheduler::{Event, EventKind, Grid, JobId, JobSpec, SiteId, Time};
use serde::{Deserialize, Serialize};

use crate::fleet::Whereabouts;

/// What is done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// It ends, and restarts.
    Kill,
    /// The same, and it never comes back.
    End,
    /// It begins with its journal.
    Begin,
    /// The same, for the first time.
    Join,
    /// It stands still.
    Pause,
    /// It goes on.
    Resume,
    /// It is told to leave.
    Leave,
}

impl Deed {
    /// Reads after "was to be".
    fn words(self) -> &'static str {
        match self {
            Deed::Kill => "killed",
            Deed::End => "killed for good",
            Deed::Begin => "restarted",
            Deed::Join => "started",
            Deed::Pause => "stopped for a while",
            Deed::Resume => "let go on",
            Deed::Leave => "told to leave",
        }
    }
}

/// An action that is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When it is due, in trace time.
    #[serde(rename = "at_us")]
    pub at: Time,
    /// The site that it is done to.
    pub site: SiteId,
    /// What is done to the site.
    pub deed: Deed,
}

/// A site that never comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parted {
    /// The site that is gone.
    pub site: SiteId,
    /// Since when it is gone, in trace time.
    #[serde(rename = "at_us")]
    pub at: Time,
    /// Who was there at that time: where its users went follows from it.
    pub there: BTreeSet<SiteId>,
    /// Whether it died with what it had; else it had left.
    pub died: bool,
    /// Whether its journal was lost, too.
    #[serde(default)]
    pub lost: bool,
    /// Whether it was settled who adopts its jobs.
    pub settled: bool,
}

/// A journal that a site lost and restarted without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The site that lost it.
    pub site: SiteId,
    /// When that was found.
    #[serde(rename = "at_us")]
    pub at: Time,
    /// Whether it was settled who adopts what nobody has since.
    pub settled: bool,
}

/// An action that came due while there was no coordinator, or that the end of one undid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Late {
    /// Name of the site.
    pub site: String,
    /// What was planned.
    pub step: Step,
    /// When it was done.
    #[serde(rename = "done_us")]
    pub done: Time,
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Late { site, step: Step { at, deed, .. }, done } = self;
        let words = deed.words();
        match *done < *at {
            false => {
                write!(
                    f,
                    "there was no coordinator at {at} s, when {site} was to be {words}: it was at {done} s"
                )
            }
            true => write!(
                f,
                "{site} was to be {words} at {at} s; when its coordinator ended the system may have done so, and it was \
                 at {done} s at the latest"
            ),
        }
    }
}

/// What was done about sites so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Past {
    /// What is still to be done, in order.
    pub steps: VecDeque<Step>,
    /// What was said of sites.
    pub said: Vec<Event>,
    /// Whether a site was killed by order.
    pub ordered: bool,
    /// Sites that were killed and come back, or join later.
    pub down: BTreeSet<SiteId>,
    /// Sites that stand still.
    pub paused: BTreeSet<SiteId>,
    /// Sites that were told to leave and are still there.
    pub leaving: BTreeSet<SiteId>,
    /// Sites that never come back, in the order in which they went.
    pub parted: Vec<Parted>,
    /// Journals without which sites restarted, in the order in which that was found.
    #[serde(default)]
    pub losses: Vec<Loss>,
    /// What sites are to adopt that have not confirmed it.
    pub adopting: BTreeMap<SiteId, Vec<Adoption>>,
    /// Epochs of jobs whose adoption was confirmed.
    pub adopted: BTreeMap<JobId, u32>,
    /// What was done late.
    pub late: Vec<Late>,
}

impl Past {
    /// Sites that are expected not to answer.
    pub fn away(&self) -> BTreeMap<SiteId, Whereabouts> {
        let down = self.down.iter().map(|site| (*site, Whereabouts::Down));
        let paused = self.paused.iter().map(|site| (*site, Whereabouts::Paused));
        let gone = self.parted.iter().map(|parted| (parted.site, Whereabouts::Gone));
        down.chain(paused).chain(gone).collect()
    }

    /// Sites that never come back and whose journals were lost with them, whatever is in their place now.
    pub fn lost(&self) -> BTreeSet<SiteId> {
        self.parted.iter().filter(|parted| parted.lost).map(|parted| parted.site).collect()
    }

    /// The journals of these sites, which never come back, cannot be read any more: what they executed is not known,
    /// so others take over once more what nobody else has.
    pub fn forget(&mut self, sites: &BTreeSet<SiteId>) {
        let died = |parted: &&mut Parted| parted.died && sites.contains(&parted.site);
        for parted in self.parted.iter_mut().filter(died) {
            (parted.lost, parted.settled) = (true, false);
        }
    }

    /// Sites that take no part: they have left, or are still to join.
    pub fn bystanders(&self) -> BTreeSet<SiteId> {
        let left = self.parted.iter().filter(|parted| !parted.died).map(|parted| parted.site);
        let to_join = self.steps.iter().filter(|step| step.deed == Deed::Join).map(|step| step.site);
        left.chain(to_join).collect()
    }

    /// Whether a site is dead.
    pub fn is_dead(&self, site: SiteId) -> bool {
        self.parted.iter().any(|parted| parted.died && parted.site == site)
    }

    /// How a site ended, if that was said of it last.
    pub fn how_ended(&self, site: SiteId) -> Option<EndCause> {
        let last =
            self.said.iter().rev().find(|said| said.site == site && said.kind != EventKind::Dismissed {})?;
        match last.kind {
            EventKind::Ended { how } => Some(how),
            _ => None,
        }
    }

    /// Whether a site may have submitted a job with a journal that it lost since: then it is not handed the job again.
    pub fn has_forgotten(&self, site: SiteId, job: &JobSpec) -> bool {
        self.losses.iter().any(|loss| loss.site == site && job.submit <= loss.at)
    }

    /// Whether a site that parted was there when it was time to submit a job.
    pub fn may_have_submitted(&self, site: SiteId, job: &JobSpec) -> bool {
        self.parted.iter().any(|parted| parted.site == site && job.submit <= parted.at)
    }

    /// Who is to submit a job that was meant for a site; nobody if one that is gone has, or one that has forgotten it may
    /// have. A site that parted, and the site where its users went, are the same whenever this is asked, so that no job is
    /// handed over to two.
    pub fn holder(
        &self,
        grid: &Grid,
        failover: Failover,
        meant: SiteId,
        job: &JobSpec,
        submitted: impl Fn(SiteId) -> bool,
    ) -> Option<SiteId> {
        let mut site = meant;
        for parted in &self.parted {
            if parted.site == site && !self.has_forgotten(site, job) {
                let there = |other: SiteId| parted.there.contains(&other);
                site = operator::successor(grid, failover, site, job, there).filter(|_| !submitted(site))?;
            }
        }
        (!self.has_forgotten(site, job)).then_some(site)
    }

    /// Takes the next step of these kinds that is planned for a site.
    pub fn take_step(&mut self, site: SiteId, deeds: &[Deed]) -> Option<Step> {
        let is_it = |step: &Step| step.site == site && deeds.contains(&step.deed);
        let place = self.steps.iter().position(is_it)?;
        self.steps.remove(place)
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{Labels, Span};

    use super::*;

    fn parted(site: u32, there: &[u32]) -> Parted {
        let there = there.iter().map(|site| SiteId(*site)).collect();
        Parted { site: SiteId(site), at: Time::ZERO, there, died: true, lost: false, settled: false }
    }

    #[test]
    fn a_job_goes_where_its_users_went_unless_a_site_that_is_gone_has_submitted_it() {
        let grid = Grid::of_sizes(&[2, 4, 8, 16]).unwrap();
        let job = JobSpec {
            id: JobId(1),
            submit: Time::ZERO,
            processors: 1,
            requested: Span::from_secs(1),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        let past = Past { parted: vec![parted(1, &[2, 3, 4]), parted(2, &[4])], ..Past::default() };
        let holder = |meant: u32, by: &[u32]| {
            past.holder(&grid, Failover::default(), SiteId(meant), &job, |site| by.contains(&site.0))
                .map(|site| site.0)
        };
        assert_eq!(holder(3, &[]), Some(3));
        assert_eq!(holder(1, &[]), Some(4), "site 3 was down when site 2 died");
        assert_eq!(holder(1, &[1]), None);
        assert_eq!(holder(1, &[2]), None, "it went to site 2");
        assert_eq!(holder(2, &[1]), Some(4), "another site has submitted another job");
    }

    #[test]
    fn a_site_is_not_handed_again_what_it_may_have_forgotten() {
        let grid = Grid::of_sizes(&[2, 4, 8]).unwrap();
        let job = |submit| JobSpec {
            id: JobId(1),
            submit: Time::from_secs(submit),
            processors: 1,
            requested: Span::from_secs(1),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        let loss = Loss { site: SiteId(1), at: Time::from_secs(9), settled: false };
        let mut past = Past { losses: vec![loss], ..Past::default() };
        let holder = |past: &Past, meant: u32, submit: i64| {
            past.holder(&grid, Failover::default(), SiteId(meant), &job(submit), |_| false).map(|site| site.0)
        };
        assert_eq!(
            [holder(&past, 1, 9), holder(&past, 1, 10), holder(&past, 2, 9)],
            [None, Some(1), Some(2)]
        );
        past.parted = vec![parted(1, &[2, 3])];
        assert_eq!([holder(&past, 1, 9), holder(&past, 1, 10)], [None, Some(2)]);
        past.parted = vec![parted(2, &[1, 3])];
        assert_eq!([holder(&past, 2, 9), holder(&past, 1, 10)], [Some(3), Some(1)]);
    }

    #[test]
    fn what_a_dead_site_left_is_settled_anew_without_its_journal() {
        let mut past = Past { parted: vec![parted(1, &[2, 3]), parted(2, &[3])], ..Past::default() };
        past.parted.iter_mut().for_each(|parted| parted.settled = true);
        past.parted[1].died = false;
        past.forget(&[SiteId(1), SiteId(2)].into());
        assert_eq!(past.lost(), [SiteId(1)].into(), "the other gave away what it had before it left");
        assert!(!past.parted[0].settled && past.parted[1].settled);
    }

    #[test]
    fn what_was_late_is_told_with_both_times() {
        let step = Step { at: Time::from_secs(9), site: SiteId(2), deed: Deed::End };
        let late = |done| Late { site: "site2".to_string(), step, done: Time::from_secs(done) }.to_string();
        assert_eq!(
            late(11),
            "there was no coordinator at 9 s, when site2 was to be killed for good: it was at 11 s"
        );
        assert!(late(7).ends_with("it was at 7 s at the latest"));
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let step = Step { at: Time::from_secs(9), site: SiteId(2), deed: Deed::Begin };
        let mut past = Past { parted: vec![parted(1, &[2, 3])], steps: [step].into(), ..Past::default() };
        past.down.insert(SiteId(2));
        past.adopted.insert(JobId(7), 65_536);
        past.adopting.insert(SiteId(3), Vec::new());
        let text = serde_json::to_string(&past).unwrap();
        assert_eq!(serde_json::from_str::<Past>(&text).unwrap(), past);
        let away = [(SiteId(1), Whereabouts::Gone), (SiteId(2), Whereabouts::Down)];
        assert_eq!(past.away(), away.into());
        assert!(past.bystanders().is_empty(), "one is dead and one comes back");
        past.parted[0].died = false;
        past.steps[0].deed = Deed::Join;
        assert_eq!(past.bystanders(), [SiteId(1), SiteId(2)].into());
        past.steps[0].deed = Deed::Begin;
        assert_eq!(past.take_step(SiteId(2), &[Deed::Join, Deed::Begin]), Some(step));
        assert_eq!(past.take_step(SiteId(2), &[Deed::Begin]), None);
    }
}
