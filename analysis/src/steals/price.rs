//! What the steals of a run amount to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use scheduler::event::{GrantCause, MessageKind, ReleaseReason};
use scheduler::{JobId, SiteId, Span};

use super::{Measured, Steals};
use crate::job::JobOutcome;
use crate::outcome::Outcome;
use crate::spread::{Distribution, Spread};

/// What steals cost, and who stole. Durations in seconds of trace time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Accepted changes of site, without routes.
    pub steals: u64,
    /// Jobs that were only brought to their home.
    pub routes: u64,
    /// Accepted changes of site by cause, routes too.
    pub by_cause: BTreeMap<String, u64>,
    /// Steals without a request phase, because nobody asked for them.
    pub without_request: u64,
    /// From the request to the grant.
    pub request_s: Distribution,
    /// From the grant to the acceptance.
    pub transfer_s: Distribution,
    /// From the acceptance to the start.
    pub start_s: Distribution,
    /// From the request, or the grant if nobody asked, to the start.
    pub total_s: Distribution,
    /// Requests sent, repetitions not counted.
    pub requests: u64,
    /// Refused requests by reason.
    pub refusals: BTreeMap<String, u64>,
    /// Their share of all requests.
    pub refusal_rate: f64,
    /// Declined jobs by reason.
    pub declines: BTreeMap<String, u64>,
    /// Their share of all grants, routes not counted.
    pub decline_rate: f64,
    /// Claims for jobs of a global queue that sites keep by gossip.
    pub claims: u64,
    /// Claims that brought no job, by reason: `denied` by the owner, which gave the job to another site or started it,
    /// or `dropped` because no answer came.
    pub denials: BTreeMap<String, u64>,
    /// Their share of all claims.
    pub denial_rate: f64,
    /// Age of the newest news of the victim when a request left.
    pub view_age_s: Distribution,
    /// The same, of requests that brought a job.
    pub view_age_granted_s: Distribution,
    /// The same, of requests that brought none.
    pub view_age_refused_s: Distribution,
    /// Requests of sites that had heard nothing of their victim.
    pub view_unknown: u64,
    /// Started jobs by changes of site until the start that counts: the first number is that of jobs that never moved.
    pub jobs_by_hops: Vec<u64>,
    /// Started jobs by how often they were declined and came back.
    pub jobs_by_bounces: Vec<u64>,
    /// Who stole, in the order of the experiment. Sites that never asked nor stole are in it, too.
    pub thieves: Vec<Thief>,
    /// How unequal the steals are spread over the sites.
    pub concentration: Concentration,
    /// Messages sent per steal, by kind; kinds that never were sent are left out. Empty if no message was recorded.
    pub messages_per_steal: BTreeMap<String, f64>,
    /// Wait of the jobs that ran away from home, less their wait in the ideal run: what communication cost them.
    pub wait_over_ideal_s: Option<Distribution>,
}

/// One site as a thief.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thief {
    /// The site that sent the requests.
    pub site: SiteId,
    /// Requests it sent.
    pub requests: u64,
    /// Requests of it that were refused.
    pub refused: u64,
    /// Jobs it stole.
    pub steals: u64,
    /// Their share of all steals.
    pub steals_share: f64,
    /// Work of other homes that it executed, in processor-seconds.
    pub work_proc_s: f64,
    /// Its share of all such work.
    pub work_share: f64,
}

/// How unequally stolen work is spread over n sites with shares x_1 ... x_n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Concentration {
    /// The largest share of stolen work of one site.
    pub top_share: f64,
    /// Herfindahl-Hirschman index: the sum of x_i^2, from 1/n to 1 (Hirschman 1964).
    pub herfindahl: f64,
    /// Its inverse: so many equal thieves would be as concentrated.
    pub effective_thieves: f64,
    /// Gini coefficient, sum over i and j of |x_i - x_j| / (2 n), from 0 for equal shares to 1 - 1/n for one thief.
    pub gini: f64,
}

impl Steals {
    /// What the steals amount to; `None` if no job moved and nobody asked, as without exchange. Call after
    /// [`Steals::finish`].
    pub fn price(&self, outcome: &Outcome, ideal: Option<&Outcome>) -> Option<Price> {
        let measured = &self.measured;
        let routes = measured.causes.get(&GrantCause::Route).copied().unwrap_or(0);
        let moved: u64 = measured.causes.values().sum();
        if moved == 0 && measured.requests == 0 && measured.claims == 0 {
            return None;
        }
        let steals = moved - routes;
        let rate = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 / all as f64 };
        let refused: u64 = measured.refusals.values().sum();
        let declined: u64 = measured.declines.values().sum();
        let denied: u64 = measured.denials.values().sum();
        let per_steal = |kind: MessageKind| {
            let sent = outcome.traffic.of(kind).sent;
            (sent > 0).then(|| (kind.name().to_string(), rate(sent, steals)))
        };
        let thieves = thieves(measured, outcome, steals);
        Some(Price {
            steals,
            routes,
            by_cause: measured.causes.iter().map(|(cause, count)| (cause.name().into(), *count)).collect(),
            without_request: steals - measured.request.len(),
            request_s: measured.request.distribution(),
            transfer_s: measured.transfer.distribution(),
            start_s: measured.start.distribution(),
            total_s: measured.total.distribution(),
            requests: measured.requests,
            refusals: measured.refusals.iter().map(|(reason, n)| (reason.name().into(), *n)).collect(),
            refusal_rate: rate(refused, measured.requests),
            declines: measured.declines.iter().map(|(reason, n)| (reason.name().into(), *n)).collect(),
            decline_rate: rate(declined, steals + declined),
            claims: measured.claims,
            denials: measured.denials.iter().map(|(reason, n)| (denial(*reason).into(), *n)).collect(),
            denial_rate: rate(denied, measured.claims),
            view_age_s: measured.view_age.distribution(),
            view_age_granted_s: measured.view_age_granted.distribution(),
            view_age_refused_s: measured.view_age_refused.distribution(),
            view_unknown: measured.view_unknown,
            jobs_by_hops: started_by(outcome, |job| job.hops),
            jobs_by_bounces: started_by(outcome, |job| measured.bounces.get(&job.id).copied().unwrap_or(0)),
            concentration: Concentration::of(thieves.iter().map(|thief| thief.work_share)),
            thieves,
            messages_per_steal: MessageKind::ALL.into_iter().filter_map(per_steal).collect(),
            wait_over_ideal_s: ideal.map(|ideal| wait_over(outcome, ideal).distribution()),
        })
    }

    /// How long each phase took, for a curve: request, transfer, start.
    pub fn phases(&self) -> [(&'static str, &Spread); 3] {
        let measured = &self.measured;
        [("request", &measured.request), ("transfer", &measured.transfer), ("start", &measured.start)]
    }
}

impl Concentration {
    /// Of shares that add up to 1; all zero if they add up to 0.
    pub fn of(shares: impl IntoIterator<Item = f64>) -> Concentration {
        let mut shares: Vec<f64> = shares.into_iter().collect();
        shares.sort_by(f64::total_cmp);
        let n = shares.len() as f64;
        let herfindahl: f64 = shares.iter().map(|share| share * share).sum();
        if herfindahl == 0.0 {
            return Concentration::default();
        }
        // With ascending shares the double sum is 2 sum_i (2i - n - 1) x_i.
        let ranked: f64 =
            shares.iter().zip(1..).map(|(share, i)| (2.0 * f64::from(i) - n - 1.0) * share).sum();
        Concentration {
            top_share: shares.last().copied().unwrap_or(0.0),
            herfindahl,
            effective_thieves: 1.0 / herfindahl,
            gini: ranked / n,
        }
    }
}

/// Why a claim brought no job, as files have it.
fn denial(reason: ReleaseReason) -> &'static str {
    match reason {
        ReleaseReason::Granted => "granted",
        ReleaseReason::Denied => "denied",
        ReleaseReason::Dropped => "dropped",
    }
}

/// How many jobs that started have each number. A job that started again is one job.
fn started_by(outcome: &Outcome, number: impl Fn(&JobOutcome) -> u32) -> Vec<u64> {
    let mut counts = vec![0];
    for job in outcome.jobs.iter().filter(|job| job.start.is_some()) {
        let number = number(job) as usize;
        counts.resize(counts.len().max(number + 1), 0);
        counts[number] += 1;
    }
    counts
}

fn thieves(measured: &Measured, outcome: &Outcome, steals: u64) -> Vec<Thief> {
    let mut work: Vec<i128> = vec![0; outcome.grid.len()];
    for job in outcome.finished().filter(|job| job.stolen()) {
        work[job.site.expect("a finished job has a site").index()] += job.work();
    }
    let all: i128 = work.iter().sum();
    let row = |site: &scheduler::Site| {
        let [requests, refused, stolen] = measured.thieves.get(&site.id).copied().unwrap_or_default();
        let work = work[site.id.index()];
        Thief {
            site: site.id,
            requests,
            refused,
            steals: stolen,
            steals_share: if steals == 0 { 0.0 } else { stolen as f64 / steals as f64 },
            work_proc_s: work as f64 / 1e6,
            work_share: if all == 0 { 0.0 } else { work as f64 / all as f64 },
        }
    };
    outcome.grid.sites().iter().map(row).collect()
}

/// Wait of stolen jobs less that in the other run of the same workload.
fn wait_over(outcome: &Outcome, ideal: &Outcome) -> Spread {
    let mut spread = Spread::default();
    let mut add = |wait: Option<Span>, ideal: Option<Span>| {
        if let (Some(wait), Some(ideal)) = (wait, ideal) {
            spread.add(wait - ideal);
        }
    };
    let same_order = outcome.jobs.len() == ideal.jobs.len()
        && outcome.jobs.iter().zip(&ideal.jobs).all(|(job, other)| job.id == other.id);
    if same_order {
        for (job, other) in outcome.jobs.iter().zip(&ideal.jobs).filter(|(job, _)| job.stolen()) {
            add(job.wait(), other.wait());
        }
    } else {
        let waits: BTreeMap<JobId, Option<Span>> =
            ideal.jobs.iter().map(|job| (job.id, job.wait())).collect();
        for job in outcome.jobs.iter().filter(|job| job.stolen()) {
            add(job.wait(), waits.get(&job.id).copied().flatten());
        }
    }
    spread
}
