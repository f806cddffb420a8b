//! Heuristics by execution and completion times: MET, MCT, Min-min, Max-min, Sufferage, XSufferage and Qsufferage.
//!
//! CT = R + X + ETC: a site is ready, missing input arrives, the job runs. After each decision R is CT, and the input is
//! there. Definitions: Maheswaran et al. 1999; Casanova et al. 2000 (XSufferage); Weng and Lu 2005 (Qsufferage).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use scheduler::strategy::opaque::DispatchRule;
use scheduler::{Span, Time};

use super::estimates::FileId;
use super::rule::{Round, Rule};

/// What sites will have done and have got, with what the round decided so far.
#[derive(Debug)]
pub(super) struct Planner {
    ready: Vec<Time>,
    /// Clusters that get a file.
    coming: BTreeSet<(usize, FileId)>,
}

impl Planner {
    pub(super) fn new(round: &Round<'_>) -> Planner {
        let sites = 0..round.slots().len();
        let ready = sites.map(|site| round.estimates().ready(site).max(round.now())).collect();
        Planner { ready, coming: BTreeSet::new() }
    }

    /// When a site is free.
    pub(super) fn ready(&self, site: usize) -> Time {
        self.ready[site]
    }

    /// How long the input takes that is not at the site and not on its way to its cluster.
    pub(super) fn transfer(&self, round: &Round<'_>, job: usize, site: usize) -> Span {
        let estimates = round.estimates();
        let cluster = estimates.cluster(site);
        let inputs = estimates.inputs(round.job(job)).iter();
        let missing = inputs.filter(|input| {
            !estimates.holds(input.file, site) && !self.coming.contains(&(cluster, input.file))
        });
        match missing.fold(0_u64, |sum, input| sum.saturating_add(input.bytes)) {
            0 => Span::ZERO,
            bytes => estimates.transfer(bytes, site),
        }
    }

    /// CT.
    pub(super) fn completion(&self, round: &Round<'_>, job: usize, site: usize) -> Time {
        let execution = round.estimates().execution(round.job(job), site);
        self.ready[site].saturating_add(self.transfer(round, job, site)).saturating_add(execution)
    }

    /// Sends the job there, if that is possible.
    pub(super) fn assign(&mut self, round: &mut Round<'_>, job: usize, site: usize) -> bool {
        let completion = self.completion(round, job, site);
        let is_assigned = round.assign(job, site);
        if is_assigned {
            self.ready[site] = completion;
            let cluster = round.estimates().cluster(site);
            let inputs = round.estimates().inputs(round.job(job));
            self.coming.extend(inputs.iter().map(|input| (cluster, input.file)));
        }
        is_assigned
    }
}

/// One of the heuristics; they remember nothing.
#[derive(Clone, Debug)]
pub(super) struct ByCompletion {
    rule: DispatchRule,
}

impl ByCompletion {
    pub(super) fn new(rule: DispatchRule) -> ByCompletion {
        ByCompletion { rule }
    }

    /// By how much the second best is worse, of sites or of clusters; 0 if there is none.
    fn sufferage(&self, round: &Round<'_>, times: &[(Time, usize)]) -> Span {
        let place = |site| match self.rule {
            DispatchRule::XSufferage => round.estimates().cluster(site),
            _ => site,
        };
        let Some(&(best, at)) = times.iter().min() else { return Span::ZERO };
        let others = times.iter().filter(|&&(_, site)| place(site) != place(at));
        others.map(|&(time, _)| time).min().map_or(Span::ZERO, |second| second.since(best))
    }
}

impl Rule for ByCompletion {
    fn map(&mut self, round: &mut Round<'_>) {
        let mut planner = Planner::new(round);
        let sites = round.slots().len();
        if matches!(self.rule, DispatchRule::Met | DispatchRule::Mct) {
            for job in 0..round.len() {
                let wide = |&site: &usize| {
                    round.slots().is_available(site)
                        && round.slots().processors(site) >= round.job(job).processors
                };
                let site = if self.rule == DispatchRule::Met {
                    // Whether the site is saturated or not: then the job waits for it.
                    let execution = |&site: &usize| round.estimates().execution(round.job(job), site);
                    (0..sites).filter(wide).min_by_key(execution)
                } else {
                    let open = (0..sites).filter(|&site| round.takes(job, site));
                    open.min_by_key(|&site| planner.completion(round, job, site))
                };
                if let Some(site) = site {
                    planner.assign(round, job, site);
                }
            }
            return;
        }
        loop {
            let choice = (0..round.len()).filter(|&job| round.waits(job)).filter_map(|job| {
                let open = (0..sites).filter(|&site| round.takes(job, site));
                let times: Vec<(Time, usize)> =
                    open.map(|site| (planner.completion(round, job, site), site)).collect();
                let &(best, site) = times.iter().min()?;
                // The least is chosen: by sufferage first where there is one, then by completion, then by id.
                let (first, second) = match self.rule {
                    DispatchRule::MinMin => (Reverse(Span::ZERO), best.as_micros()),
                    DispatchRule::MaxMin => (Reverse(Span::ZERO), best.as_micros().saturating_neg()),
                    _ => (Reverse(self.sufferage(round, &times)), best.as_micros()),
                };
                Some(((first, second, round.job(job).id), job, site))
            });
            let Some((_, job, site)) = choice.min() else { return };
            if !planner.assign(round, job, site) {
                return;
            }
        }
    }
}
