//! What crashes and take-overs did, as people read it: a few sentences, and tables by site and by job.

use analysis::faults::{Downtime, JobFaults, SiteFaults, Totals};
use analysis::{Faults, RanTwice};
use outputs::Missed;
use outputs::RunResult;
use outputs::table::Table;
use scheduler::JobId;

use super::quantity::{grouped, number, seconds};

/// Jobs named in a sentence; all are in `faults.csv`.
const JOBS_NAMED: usize = 10;
/// Faults that never happened named in a sentence; all are in `metrics.json`.
const FAULTS_NAMED: usize = 10;
/// Rows of the table of jobs, those that may have run twice first.
const JOBS_LISTED: usize = 50;

/// The sentences; none without faults.
pub fn faults_lines(result: &RunResult) -> Vec<String> {
    let faults = &result.outcome.faults;
    let totals = &faults.totals;
    [
        crashes(faults),
        comings(totals),
        take_overs(faults),
        orphaned(faults),
        membership(totals),
        never_happened(&result.about.missed),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether there is anything to be told.
pub fn anything(result: &RunResult) -> bool {
    !result.outcome.faults.is_empty() || !result.about.missed.is_empty()
}

/// A time, or the most that it can be.
fn at_most(time: f64, exact: bool) -> String {
    if exact { seconds(time) } else { format!("{} at most", seconds(time)) }
}

/// A number, or its bounds.
fn bounds(least: f64, most: f64) -> String {
    if least == most { number(least) } else { format!("{} to {}", number(least), number(most)) }
}

fn comings(totals: &Totals) -> Option<String> {
    let mut parts = Vec::new();
    let mut part = |number: u64, text: &str| {
        if number > 0 {
            parts.push(format!("{} {text}", count(number, "site")));
        }
    };
    part(totals.joined, "joined");
    part(totals.absent, "never joined");
    part(totals.have_left, "left");
    part(totals.dismissed - totals.have_left, "told to leave and not done when the run ended");
    if totals.pauses > 0 {
        parts.push(format!("{}, {} in all", count(totals.pauses, "pause"), seconds(totals.paused_s)));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn never_happened(missed: &[Missed]) -> Option<String> {
    let one = |missed: &Missed| {
        let Missed { entry, site, what, at, why } = missed;
        format!("faults[{entry}], {what} of {site} at {at} s ({})", why.text())
    };
    let names: Vec<String> = missed.iter().take(FAULTS_NAMED).map(one).collect();
    let more = match missed.len().saturating_sub(FAULTS_NAMED) {
        0 => String::new(),
        more => format!(" and {} more (metrics.json)", grouped(more as u64)),
    };
    (!missed.is_empty()).then(|| format!("never happened: {}{more}", names.join(", ")))
}

/// `3 sites`, `1 site`.
fn count(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

fn crashes(faults: &Faults) -> Option<String> {
    let totals = &faults.totals;
    let happened = totals.crashes + totals.silent_sites + totals.interrupted > 0;
    happened.then(|| {
        let mut line = format!(
            "{}, {} not back at the end; down {}",
            count(totals.crashes, "restart"),
            count(totals.silent_sites, "site"),
            at_most(totals.down_at_most_s, faults.downtimes.iter().all(Downtime::is_exact))
        );
        line += &format!("; {} interrupted", count(totals.interrupted, "execution"));
        if totals.interrupted > 0 {
            line += &format!(
                ", {} processor-seconds wasted",
                bounds(totals.wasted_at_least, totals.wasted_at_most)
            );
        }
        line + &match totals.killed {
            0 => String::new(),
            killed => format!("; {} given up", count(killed, "job")),
        }
    })
}

fn take_overs(faults: &Faults) -> Option<String> {
    let totals = &faults.totals;
    (totals.taken_over + totals.may_have_run_twice + totals.superseded > 0).then(|| {
        let mut line = format!("{}; ", count(totals.taken_over, "take-over"));
        line += &match totals.may_have_run_twice {
            0 => "no job can have run twice".to_string(),
            twice => {
                let these = named(faults, |job| job.ran_twice != RanTwice::No);
                let did = named(faults, |job| job.ran_twice == RanTwice::Yes);
                format!(
                    "{} may have run twice: {these}{}",
                    count(twice, "job"),
                    match totals.ran_twice {
                        0 => String::new(),
                        ran => format!("; {} did: {did}", grouped(ran)),
                    }
                )
            }
        };
        line + &format!(
            "; {} dropped, {} executed when it was found",
            count(totals.superseded, "other copy").replace("copys", "copies"),
            grouped(totals.superseded_running)
        )
    })
}

fn orphaned(faults: &Faults) -> Option<String> {
    let totals = &faults.totals;
    (totals.orphaned > 0).then(|| {
        let still = match totals.still_orphaned {
            0 => String::new(),
            still => format!("; {} still do: {}", grouped(still), named(faults, |job| job.still_orphaned)),
        };
        format!(
            "{} waited because no site that was there was wide enough, {} at most{still}",
            count(totals.orphaned, "job"),
            seconds(totals.orphaned_max_s)
        )
    })
}

fn membership(totals: &Totals) -> Option<String> {
    let Totals { suspected, heard, gone, left, .. } = *totals;
    (suspected + heard + gone + left > 0).then(|| {
        let rejoin = totals.rejoin_max_s.map_or(String::new(), |time| {
            format!("; a restarted site was heard of again by all after {} at most", seconds(time))
        });
        format!(
            "sites suspected others {} times, held them for gone {}, heard of them again {}, saw them leave {}{rejoin}",
            grouped(suspected),
            grouped(gone),
            grouped(heard),
            grouped(left)
        )
    })
}

/// The first jobs of a kind by number.
fn named(faults: &Faults, wanted: fn(&JobFaults) -> bool) -> String {
    let jobs: Vec<JobId> = faults.jobs.iter().filter(|job| wanted(job)).map(|job| job.job).collect();
    let names: Vec<String> = jobs.iter().take(JOBS_NAMED).map(ToString::to_string).collect();
    match jobs.len().saturating_sub(JOBS_NAMED) {
        0 => names.join(", "),
        more => format!("{} and {} more (faults.csv)", names.join(", "), grouped(more as u64)),
    }
}

/// A row for each site that crashed, or of which others believed something; `None` without such sites.
pub fn sites_table(result: &RunResult) -> Option<Table> {
    let sites = &result.outcome.faults.sites;
    if sites.is_empty() {
        return None;
    }
    let mut table = Table::new([
        "site",
        "restarts",
        "down",
        "stood still",
        "came or went",
        "interrupted",
        "killed",
        "wasted, processor-s",
        "suspected",
        "gone",
        "heard again",
        "left",
        "took over",
        "taken from it",
    ]);
    for site in sites {
        let downtimes = &result.outcome.faults.downtimes;
        let exact = downtimes.iter().filter(|down| down.site == site.site).all(Downtime::is_exact);
        let down = at_most(site.down_at_most_s, exact);
        let down = if site.silent_at_end { format!("{down}, not back") } else { down };
        let wasted = bounds(site.wasted_at_least, site.wasted_at_most);
        let still = if site.pauses > 0 { seconds(site.paused_s) } else { "-".to_string() };
        let counts = [site.suspected, site.gone, site.heard, site.left, site.took_over, site.taken_from];
        let first = [
            site.name.clone(),
            grouped(site.crashes),
            down,
            still,
            came_or_went(site),
            grouped(site.interrupted),
            grouped(site.killed),
            wasted,
        ];
        table.push(first.into_iter().chain(counts.map(grouped)));
    }
    Some(table)
}

fn came_or_went(site: &SiteFaults) -> String {
    let joined = site.joined_at_s.map(|at| format!("joined at {}", seconds(at)));
    let absent = site.absent.then(|| "never joined".to_string());
    let left = match (site.dismissed, site.has_left) {
        (_, true) => Some("left".to_string()),
        (true, false) => Some("told to leave".to_string()),
        (false, false) => None,
    };
    let words: Vec<String> = [joined, absent, left].into_iter().flatten().collect();
    if words.is_empty() { "-".to_string() } else { words.join(", ") }
}

/// A row for each job that faults touched, those that may have run twice first; `None` without such jobs.
pub fn jobs_table(result: &RunResult) -> Option<Table> {
    let jobs = &result.outcome.faults.jobs;
    if jobs.is_empty() {
        return None;
    }
    let mut rows: Vec<&JobFaults> = jobs.iter().collect();
    rows.sort_by_key(|job| (job.ran_twice == RanTwice::No, !job.killed, !job.still_orphaned, job.job));
    let mut table = Table::new([
        "job",
        "processors",
        "starts",
        "ends",
        "interrupted",
        "taken over",
        "ran twice",
        "orphaned",
        "wasted, processor-s",
    ]);
    for job in rows.into_iter().take(JOBS_LISTED) {
        let orphaned = match (job.was_orphaned, job.still_orphaned) {
            (false, _) => "-".to_string(),
            (true, false) => seconds(job.orphaned.as_secs_f64()),
            (true, true) => format!("{}, still", seconds(job.orphaned.as_secs_f64())),
        };
        let other = job.unknown_work + job.repeated_work;
        let (least, most) = (job.wasted_at_least + other, job.wasted_at_most + other);
        let wasted = bounds(least, most);
        let interrupted = match job.killed {
            true => format!("{}, given up", job.interrupted),
            false => job.interrupted.to_string(),
        };
        table.push([
            job.job.to_string(),
            job.processors.to_string(),
            job.starts.to_string(),
            job.completions.to_string(),
            interrupted,
            job.taken_over.to_string(),
            job.ran_twice.name().to_string(),
            orphaned,
            wasted,
        ]);
    }
    Some(table)
}

/// How many rows of [`jobs_table`] were left out.
pub fn jobs_left_out(result: &RunResult) -> usize {
    result.outcome.faults.jobs.len().saturating_sub(JOBS_LISTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, render};
    use outputs::fixtures::{about, faulty, outcome};

    #[test]
    fn a_run_without_faults_says_nothing_of_them() {
        let result = RunResult::new(about(), outcome(&[2, 4], &[(0, 2, 10, 1, 0)]), None);
        assert!(faults_lines(&result).is_empty());
        assert!(sites_table(&result).is_none() && jobs_table(&result).is_none());
        let json = render(&result, Format::Json);
        assert!(!json.contains("\"faults\""), "{json}");
    }

    #[test]
    fn the_summary_names_the_jobs_that_may_have_run_twice() {
        let result = RunResult::new(about(), faulty(), None);
        assert!(result.is_complete());
        // Long lines are folded.
        let text = render(&result, Format::Terminal).replace("\n  ", " ");
        for line in [
            "faults:  1 restart, 1 site not back at the end; down 81.00 s at most; 1 execution interrupted, 8.000 to \
             40.00 processor-seconds wasted",
            "faults:  1 take-over; 1 job may have run twice: 2; 0 other copies dropped, 0 executed when it was found",
            "faults:  sites suspected others 1 times, held them for gone 1, heard of them again 0, saw them leave 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let json: serde_json::Value = serde_json::from_str(&render(&result, Format::Json)).unwrap();
        assert_eq!(json["faults"]["jobs_that_may_have_run_twice"], serde_json::json!([2]));
        assert_eq!(json["faults"]["crashes"], 1);
        assert_eq!(json["faults"]["sites"][0]["wasted_at_most"], 40.0);
        let markdown = render(&result, Format::Markdown);
        assert!(markdown.contains("| 2 | 2 | 2 | 1 | 0 | 1 | perhaps | - | 0 |"), "{markdown}");
    }
}
