//! `metrics.json`: every number of a run, for programs. Times are seconds.
//!
//! Names are those of the types in the analysis crate, and in docs/schemas/metrics.json. Add fields; rename one only with
//! another [`FORMAT`].

use std::collections::BTreeMap;
use std::io::{self, Write};

use analysis::faults::{JobFaults, SiteFaults, Totals};
use analysis::migrations::Migration;
use analysis::outcome::{Contradictions, MessageCounts};
use analysis::{
    Agreement, Attribution, Bounds, Comparison, DecisionCost, Faults, Federation, Metrics, Price, RanTwice,
    Steady, WaitCauses,
};
use scheduler::JobId;
use scheduler::event::MessageKind;
use serde::Serialize;

use crate::compared::Compared;
use crate::manifest::FORMAT;
use crate::missed::Missed;
use crate::run_result::{RunResult, Status};
use crate::scraped::Scraped;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    experiment: &'a str,
    strategy: String,
    seed: u64,
    #[serde(flatten)]
    status: &'a Status,
    /// The word that summaries on a terminal begin with.
    verdict: &'static str,
    /// Why that is no proof.
    verdict_reason: Option<String>,
    metrics: &'a Metrics,
    steady: &'a Steady,
    bounds: BoundsInSeconds,
    theory: &'a [Comparison],
    deficiency: Option<DeficiencyPart>,
    migrations: Vec<Migration>,
    federation: &'a Federation,
    messages: BTreeMap<&'static str, MessageCounts>,
    requests: Requests,
    exchange: Exchange,
    steals: Option<&'a Price>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decisions: Option<&'a DecisionCost>,
    contradictions: Contradictions,
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<FaultsPart<'a>>,
    ideal: Option<IdealPart<'a>>,
    /// Why jobs waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<&'a WaitCauses>,
    /// The same jobs without exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_exchange: Option<&'a Metrics>,
    /// The run beside its simulations.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<&'a Compared>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scraped: Option<&'a Scraped>,
}

#[derive(Serialize)]
struct BoundsInSeconds {
    time_s: f64,
    area_thesis_s: f64,
    area_start_s: f64,
    area_s: f64,
    count_s: f64,
    thesis_s: f64,
    proof_s: f64,
    best_s: f64,
}

impl From<&Bounds> for BoundsInSeconds {
    fn from(bounds: &Bounds) -> BoundsInSeconds {
        BoundsInSeconds {
            time_s: bounds.time.as_secs_f64(),
            area_thesis_s: bounds.area_thesis.as_secs_f64(),
            area_start_s: bounds.area_start.as_secs_f64(),
            area_s: bounds.area.as_secs_f64(),
            count_s: bounds.count.as_secs_f64(),
            thesis_s: bounds.thesis.as_secs_f64(),
            proof_s: bounds.proof.as_secs_f64(),
            best_s: bounds.best.as_secs_f64(),
        }
    }
}

/// Where the delay went. Amounts in processor-seconds.
#[derive(Serialize)]
struct DeficiencyPart {
    job: u64,
    home: u32,
    beta: f64,
    from_s: f64,
    until_s: f64,
    bound_s: f64,
    slack_s: f64,
    holds: bool,
    work: f64,
    total: f64,
    foreign: f64,
    lost: f64,
    /// In transit and asked.
    in_transit_or_asked: f64,
    in_transit: f64,
    asked: f64,
    drain: f64,
    blind: f64,
    /// The same causes by name, at the least and at the most that they are in any order.
    least: BTreeMap<&'static str, f64>,
    greatest: BTreeMap<&'static str, f64>,
}

impl From<&Attribution> for DeficiencyPart {
    fn from(attribution: &Attribution) -> DeficiencyPart {
        let certificate = attribution.certificate;
        let names = attribution.causes().map(|(name, _)| name);
        DeficiencyPart {
            job: attribution.job.0,
            home: attribution.k.0,
            beta: f64::from(attribution.beta_percent) / 100.0,
            from_s: attribution.from.as_secs_f64(),
            until_s: attribution.until.as_secs_f64(),
            bound_s: certificate.bound.as_secs_f64(),
            slack_s: certificate.slack.as_secs_f64(),
            holds: certificate.holds,
            work: attribution.work,
            total: attribution.total,
            foreign: attribution.foreign,
            lost: attribution.lost,
            in_transit_or_asked: attribution.in_transit_or_asked(),
            in_transit: attribution.in_transit,
            asked: attribution.asked,
            drain: attribution.drain,
            blind: attribution.blind,
            least: names.into_iter().zip(attribution.least).collect(),
            greatest: names.into_iter().zip(attribution.greatest).collect(),
        }
    }
}

#[derive(Serialize)]
struct Requests {
    sent: u64,
    answers: u64,
    empty_answers: u64,
    refused_empty: u64,
    refused_too_wide: u64,
    refused_busy: u64,
    refused_margin: u64,
    grants: u64,
    accepts: u64,
    firm_accepts: u64,
    declined_own_work: u64,
    declined_does_not_fit: u64,
    declined_recalled: u64,
    declined_unclaimed: u64,
    declined_superseded: u64,
    returns: u64,
}

/// Of the global queue.
#[derive(Serialize)]
struct Exchange {
    offers: u64,
    claims: u64,
    denials: u64,
    dropped_claims: u64,
    reserved_processor_seconds: f64,
    host_changes: u64,
    fcfs_inversions: Option<u64>,
}

/// What crashes and take-overs did; jobs are in `faults.csv`.
#[derive(Serialize)]
struct FaultsPart<'a> {
    #[serde(flatten)]
    totals: &'a Totals,
    jobs_that_may_have_run_twice: Vec<JobId>,
    jobs_killed: Vec<JobId>,
    jobs_still_orphaned: Vec<JobId>,
    sites: &'a [SiteFaults],
    never_happened: &'a [Missed],
}

impl<'a> FaultsPart<'a> {
    fn of(faults: &'a Faults, never_happened: &'a [Missed]) -> Option<FaultsPart<'a>> {
        let jobs = |wanted: fn(&JobFaults) -> bool| {
            faults.jobs.iter().filter(|job| wanted(job)).map(|job| job.job).collect()
        };
        let any = !faults.is_empty() || !never_happened.is_empty();
        any.then(|| FaultsPart {
            totals: &faults.totals,
            jobs_that_may_have_run_twice: jobs(|job| job.ran_twice != RanTwice::No),
            jobs_killed: jobs(|job| job.killed),
            jobs_still_orphaned: jobs(|job| job.still_orphaned),
            sites: &faults.sites,
            never_happened,
        })
    }
}

#[derive(Serialize)]
struct IdealPart<'a> {
    identical: bool,
    agreement: &'a Agreement,
    metrics: &'a Metrics,
}

/// Writes the document, indented, with a line break at the end.
///
/// # Errors
/// If the file does not take it.
pub fn write(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let traffic = &result.outcome.traffic;
    let document = Document {
        format: FORMAT,
        experiment: &result.about.experiment,
        strategy: result.about.strategy.to_string(),
        seed: result.about.seed,
        status: &result.about.status,
        verdict: result.verdict_name(),
        verdict_reason: result.verdict().reason().map(str::to_string),
        metrics: &result.metrics,
        steady: &result.steady,
        bounds: BoundsInSeconds::from(&result.bounds),
        theory: &result.theory,
        deficiency: result.attribution.as_ref().map(DeficiencyPart::from),
        migrations: result.migrations.pairs().collect(),
        federation: &result.federation,
        messages: MessageKind::ALL.into_iter().map(|kind| (kind.name(), traffic.of(kind))).collect(),
        requests: Requests {
            sent: traffic.requests,
            answers: traffic.answers,
            empty_answers: traffic.empty_answers,
            refused_empty: traffic.refused_empty,
            refused_too_wide: traffic.refused_too_wide,
            refused_busy: traffic.refused_busy,
            refused_margin: traffic.refused_margin,
            grants: traffic.grants,
            accepts: traffic.accepts,
            firm_accepts: traffic.firm_accepts,
            declined_own_work: traffic.declined_own_work,
            declined_does_not_fit: traffic.declined_does_not_fit,
            declined_recalled: traffic.declined_recalled,
            declined_unclaimed: traffic.declined_unclaimed,
            declined_superseded: traffic.declined_superseded,
            returns: traffic.returns,
        },
        exchange: Exchange {
            offers: traffic.offers,
            claims: traffic.claims,
            denials: traffic.denials,
            dropped_claims: traffic.dropped_claims,
            reserved_processor_seconds: traffic.reserved_processor_seconds(),
            host_changes: traffic.host_changes,
            fcfs_inversions: result.outcome.fcfs_inversions,
        },
        steals: result.steals.as_ref().map(|steals| &steals.price),
        decisions: result.decisions.as_ref(),
        contradictions: result.outcome.contradictions,
        faults: FaultsPart::of(&result.outcome.faults, &result.about.missed),
        ideal: result.ideal.as_ref().map(|ideal| IdealPart {
            identical: ideal.agreement.identical(),
            agreement: &ideal.agreement,
            metrics: &ideal.metrics,
        }),
        waits: result.waits.as_ref(),
        without_exchange: result.without_exchange.as_ref().map(|local| &local.metrics),
        compared: result.about.compared.as_ref(),
        scraped: result.about.scraped.as_ref(),
    };
    serde_json::to_writer_pretty(&mut *file, &document)?;
    writeln!(file)
}
