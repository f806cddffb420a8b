//! Reads what a run has left, and says what cannot be. Shares nothing with what wrote it: no type, no parser and no
//! reader of logs of this workspace is used here, and a test sees to that.
//!
//! The log of jobs is read by its columns (SWF 2.2), the tables by the `csv` crate, the event log as lines of JSON.
//! Times are whole microseconds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

/// Findings of one check that are told; further ones are counted.
const TOLD_MAX: usize = 5;
/// Bytes of a log, of a table or of a line of the event log; beyond that it is none of a round.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A job, as the log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Field 1 of SWF, the job number.
    pub id: u64,
    /// Field 2 of SWF, the submission, in microseconds.
    pub submit_us: i64,
    /// Field 8, or 5 where that is missing.
    pub processors: u32,
    /// Field 4, and no more than was requested.
    pub run_us: i64,
    /// Field 9, or the run time where that is missing.
    pub requested_us: i64,
}

/// What is allowed in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// How much longer than its run time an execution may take, because its end was noticed late.
    pub late_max_us: i64,
    /// Jobs that a crash interrupts are reported as killed.
    pub kills: bool,
    /// Jobs wider than this may be missing, if the run is partial and counts them: a journal was damaged or lost, or
    /// who is left is not wider.
    pub may_miss_wider_than: Option<u32>,
    /// A journal was damaged or lost, and what its site said and nobody had fetched.
    pub loses_events: bool,
    /// Jobs may run twice, if that is reported: there is a lease, or a journal was damaged or lost.
    pub may_repeat: bool,
}

/// Something that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which check failed.
    pub check: &'static str,
    /// What was seen.
    pub what: String,
}

/// What a run has left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// `jobs.csv`.
    pub jobs: String,
    /// `executions.csv`; empty if there is none.
    pub executions: String,
    /// `faults.csv`; empty if there is none.
    pub faults: String,
    /// `manifest.json`.
    pub manifest: Value,
    /// Starts and ends in `events.jsonl.zst`.
    pub events: Vec<Happened>,
}

/// A start or an end in the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Happened {
    /// Whether it is an end.
    pub is_end: bool,
    /// Of a job at several sites at once, whether this is not the first of them.
    pub is_part: bool,
    /// Processors that the job has at the site.
    pub processors: u32,
    /// Number of the job in the log.
    pub job: u64,
    /// Place of the site in the grid, from 0.
    pub site: usize,
    /// Trace time of the event, in microseconds.
    pub at_us: i64,
}

/// What an audit counted, and what it found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// Jobs that ended.
    pub ended: u64,
    /// Jobs that were reported as killed.
    pub killed: u64,
    /// Jobs that are missing, as this round may.
    pub missing: u64,
    /// Executions beside those that count.
    pub executions: u64,
    /// Jobs that ran twice, or may have, and were reported.
    pub repeated: u64,
    /// What cannot be.
    pub findings: Vec<Finding>,
}

/// Reads the first `count` jobs of a log, all if none.
///
/// # Errors
/// If it cannot be read, or needs more than its columns to be understood.
pub fn read_log(path: &Path, count: Option<usize>) -> Result<Vec<Job>, String> {
    let name = path.display();
    let file = File::open(path).map_err(|error| format!("read {name}: {error}"))?;
    let mut text = String::new();
    let read = match path.extension().is_some_and(|ending| ending == "gz") {
        true => flate2::read::GzDecoder::new(file).take(BYTES_MAX).read_to_string(&mut text),
        false => file.take(BYTES_MAX).read_to_string(&mut text),
    };
    read.map_err(|error| format!("read {name}: {error}"))?;
    let jobs = jobs_of(&text, count).map_err(|reason| format!("read {name}: {reason}"))?;
    match jobs.is_empty() {
        true => Err(format!("read {name}: there is no job in it")),
        false => Ok(jobs),
    }
}

fn jobs_of(text: &str, count: Option<usize>) -> Result<Vec<Job>, String> {
    let mut jobs: Vec<Job> = Vec::new();
    for (line, row) in text.lines().enumerate() {
        if row.trim_start().starts_with(';') || row.trim().is_empty() {
            continue;
        }
        let wrong = |what: &str| format!("line {}: {what}", line + 1);
        let fields: Vec<i64> = row
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|_| wrong("the audit of chaos reads whole numbers alone; give it a log of those"))?;
        let [id, submit, _, run, allocated, _, _, width, requested, ..] = fields[..] else {
            return Err(wrong("fewer than 18 fields"));
        };
        let width = if width > 0 { width } else { allocated };
        let requested = if requested > 0 { requested } else { run };
        // What the run drops by rules of its own would have to be known here.
        let (Ok(id), Ok(processors), true) = (u64::try_from(id), u32::try_from(width), run > 0 && width > 0)
        else {
            return Err(wrong(
                "a job without number, processors or run time; give chaos a log without such jobs",
            ));
        };
        if submit < 0 || jobs.last().is_some_and(|last| last.submit_us > submit * 1_000_000) {
            return Err(wrong("jobs are not in the order of submission; give chaos a log where they are"));
        }
        jobs.push(Job {
            id,
            submit_us: submit * 1_000_000,
            processors,
            run_us: run.min(requested) * 1_000_000,
            requested_us: requested * 1_000_000,
        });
    }
    jobs.truncate(count.unwrap_or(usize::MAX));
    Ok(jobs)
}

impl Left {
    /// Reads a result directory.
    ///
    /// # Errors
    /// If there is no manifest or no `jobs.csv`, or one of the files cannot be read.
    pub fn read(dir: &Path) -> Result<Left, String> {
        let manifest = text_of(&dir.join("manifest.json"))?;
        let optional = |name: &str| match dir.join(name).exists() {
            true => text_of(&dir.join(name)),
            false => Ok(String::new()),
        };
        Ok(Left {
            jobs: text_of(&dir.join("jobs.csv"))?,
            executions: optional("executions.csv")?,
            faults: optional("faults.csv")?,
            manifest: serde_json::from_str(&manifest).map_err(|error| format!("manifest.json: {error}"))?,
            events: events_of(&dir.join("events.jsonl.zst"))?,
        })
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
    read.map(|_| text).map_err(|error| format!("{}: {error}", path.display()))
}

fn events_of(path: &Path) -> Result<Vec<Happened>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| wrong(&error))?;
    let lines = zstd::Decoder::new(file).map_err(|error| wrong(&error))?.take(BYTES_MAX);
    let mut events = Vec::new();
    for line in BufReader::new(lines).lines() {
        let line = line.map_err(|error| wrong(&error))?;
        let event: Value = serde_json::from_str(&line).map_err(|error| wrong(&error))?;
        let kinds = [
            ("started", false, false),
            ("completed", true, false),
            ("part_started", false, true),
            ("part_completed", true, true),
        ];
        let number = |value: &Value| value.as_i64().ok_or_else(|| wrong(&format!("no number in {line}")));
        if let Some(about) = event["kind"].get("revoked") {
            take_back(&mut events, number(&about["job"])?.cast_unsigned(), number(&about["of"])?);
        }
        for (kind, is_end, is_part) in kinds {
            let Some(about) = event["kind"].get(kind) else { continue };
            events.push(Happened {
                is_end,
                is_part,
                processors: u32::try_from(number(&about["processors"])?).unwrap_or(0),
                job: number(&about["job"])?.cast_unsigned(),
                site: usize::try_from(number(&event["site"])?).unwrap_or(0),
                at_us: number(&event["at"])?,
            });
        }
    }
    Ok(events)
}

/// What this site said of the end of a job last counts for nothing, if it did.
fn take_back(events: &mut Vec<Happened>, job: u64, of: i64) {
    let is_it = |end: &Happened| end.is_end && !end.is_part && end.job == job && end.site as i64 == of;
    if let Some(place) = events.iter().rposition(is_it) {
        events.remove(place);
    }
}

/// Time in which a job held processors of a site.
#[derive(Clone, Copy, Debug)]
struct Held {
    job: u64,
    /// From 1 on.
    site: usize,
    processors: u32,
    from: i64,
    until: i64,
    /// Whether a crash is known to have ended it.
    interrupted: bool,
}

/// Holds what a run has left against the log, the processors of each site and the rule of the round.
pub fn audit(jobs: &[Job], sites: &[u32], left: &Left, rule: Rule) -> Audited {
    let mut judge = Judge {
        jobs: jobs.iter().map(|job| (job.id, *job)).collect(),
        sites,
        rule,
        counts: BTreeMap::new(),
        audited: Audited::default(),
    };
    let mut rows = judge.rows("jobs.csv", &left.jobs, Judge::job);
    let mut others = judge.rows("executions.csv", &left.executions, Judge::execution);
    let parts = parts_of(&left.events);
    // Where several sites execute a job together, tables name the first, with the processors of all.
    let starts = left.events.iter().filter(|event| !event.is_end && !event.is_part);
    let widths: BTreeMap<_, _> =
        starts.map(|event| ((event.job, event.site, event.at_us), event.processors)).collect();
    for held in rows.iter_mut().chain(&mut others) {
        held.processors = widths.get(&(held.job, held.site, held.from)).copied().unwrap_or(held.processors);
    }
    let reports: BTreeMap<u64, Report> =
        judge.rows("faults.csv", &left.faults, Judge::report).into_iter().collect();
    judge.audited.executions = others.len() as u64;
    judge.every_job_once(&rows, &reports, &left.manifest);
    judge.have_all_parts(&rows, &parts);
    judge.within_capacity(rows.iter().chain(&others).chain(&parts));
    judge.repetitions_are_reported(&rows, &others, &reports);
    judge.events_agree(&left.events, &rows, &others, &reports);
    judge.finish()
}

/// What `faults.csv` says of a job.
#[derive(Clone, Debug)]
struct Report {
    state: String,
    ran_twice: String,
    moved_by_takeover: bool,
}

/// Parts of jobs beside the first; one whose end nobody told of, as its site crashed, has no length.
fn parts_of(events: &[Happened]) -> Vec<Held> {
    let mut open: BTreeMap<(u64, usize), usize> = BTreeMap::new();
    let mut parts: Vec<Held> = Vec::new();
    for &Happened { is_end, job, site, at_us, processors, .. } in events.iter().filter(|event| event.is_part)
    {
        match (is_end, open.remove(&(job, site))) {
            (true, Some(part)) => (parts[part].until, parts[part].interrupted) = (at_us, false),
            (true, None) => {}
            (false, _) => {
                open.insert((job, site), parts.len());
                parts.push(Held { job, site, processors, from: at_us, until: at_us, interrupted: true });
            }
        }
    }
    parts
}

struct Judge<'a> {
    jobs: BTreeMap<u64, Job>,
    sites: &'a [u32],
    rule: Rule,
    counts: BTreeMap<&'static str, usize>,
    audited: Audited,
}

/// A row by the names of its columns.
struct Row<'a> {
    header: &'a csv::StringRecord,
    fields: &'a csv::StringRecord,
}

impl Row<'_> {
    fn text(&self, name: &str) -> Result<&str, String> {
        let place = self.header.iter().position(|column| column == name);
        place.and_then(|place| self.fields.get(place)).ok_or_else(|| format!("no column {name}"))
    }

    fn whole<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        let text = self.text(name)?;
        text.parse().map_err(|_| format!("{name} is {text:?}, no whole number"))
    }

    fn micros(&self, name: &str) -> Result<i64, String> {
        let text = self.text(name)?;
        micros_of(text).ok_or_else(|| format!("{name} is {text:?}, no time in seconds with six decimals"))
    }
}

/// Seconds with six decimals.
fn micros_of(text: &str) -> Option<i64> {
    let (seconds, part) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if part.len() != 6 || !digits(part) || !digits(seconds.trim_start_matches('-')) {
        return None;
    }
    format!("{seconds}{part}").parse().ok()
}

fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

impl Judge<'_> {
    fn found(&mut self, check: &'static str, what: String) {
        let count = self.counts.entry(check).or_default();
        *count += 1;
        if *count <= TOLD_MAX {
            self.audited.findings.push(Finding { check, what });
        }
    }

    fn finish(mut self) -> Audited {
        for (check, count) in std::mem::take(&mut self.counts) {
            if count > TOLD_MAX {
                let what = format!("and {} more", count - TOLD_MAX);
                self.audited.findings.push(Finding { check, what });
            }
        }
        self.audited
    }

    fn rows<T>(
        &mut self,
        name: &str,
        text: &str,
        mut read: impl FnMut(&mut Self, &Row<'_>) -> Result<Option<T>, String>,
    ) -> Vec<T> {
        let mut all = Vec::new();
        if text.is_empty() {
            return all;
        }
        if !text.ends_with('\n') {
            self.found("table", format!("{name}: the last row is cut off"));
        }
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = match reader.headers() {
            Ok(header) => header.clone(),
            Err(error) => {
                self.found("table", format!("{name}: {error}"));
                return all;
            }
        };
        for record in reader.records() {
            let read = record
                .map_err(|error| error.to_string())
                .and_then(|fields| read(self, &Row { header: &header, fields: &fields }));
            match read {
                Ok(row) => all.extend(row),
                Err(reason) => self.found("table", format!("{name}: {reason}")),
            }
        }
        all
    }

    /// A row of `jobs.csv`, held against the log.
    fn job(&mut self, row: &Row<'_>) -> Result<Option<Held>, String> {
        let id = row.whole("job_id")?;
        let Some(job) = self.jobs.get(&id).copied() else {
            self.found("unknown", format!("job {id} is in no log"));
            return Ok(None);
        };
        let state = (row.text("success")?, row.text("final_state")?);
        if !matches!(state, ("1", "COMPLETED_SUCCESSFULLY") | ("0", "COMPLETED_WALLTIME_REACHED")) {
            self.found("state", format!("job {id} is {} with success {}", state.1, state.0));
            return Ok(None);
        }
        let told = (
            row.micros("submission_time")?,
            row.whole::<u32>("requested_number_of_resources")?,
            row.micros("requested_time")?,
        );
        if told != (job.submit_us, job.processors, job.requested_us) {
            self.found("changed", format!("job {id} is told as {told:?}, and the log says {job:?}"));
        }
        let (from, until) = (row.micros("starting_time")?, row.micros("finish_time")?);
        if from < job.submit_us {
            self.found(
                "early",
                format!(
                    "job {id} starts at {} s, and is submitted at {} s",
                    seconds(from),
                    seconds(job.submit_us)
                ),
            );
        }
        let took = until - from;
        let sums =
            (row.micros("execution_time")?, row.micros("waiting_time")?, row.micros("turnaround_time")?);
        if sums != (took, from - job.submit_us, until - job.submit_us) {
            self.found("sums", format!("job {id}: its times {sums:?} do not follow from its start and end"));
        }
        if took < job.run_us || took > job.run_us + self.rule.late_max_us {
            self.found(
                "run time",
                format!(
                    "job {id} executes {} s, and its run time is {} s",
                    seconds(took),
                    seconds(job.run_us)
                ),
            );
        }
        let site: usize = row.whole("exec_site")?;
        Ok(Some(Held { job: id, site, processors: told.1, from, until, interrupted: false }))
    }

    /// A row of `executions.csv`.
    fn execution(&mut self, row: &Row<'_>) -> Result<Option<Held>, String> {
        let id = row.whole("job_id")?;
        let Some(job) = self.jobs.get(&id).copied() else {
            self.found("unknown", format!("job {id} executes, and is in no log"));
            return Ok(None);
        };
        let processors: u32 = row.whole("requested_number_of_resources")?;
        if processors != job.processors {
            self.found("changed", format!("job {id} executes on {processors}, and wants {}", job.processors));
        }
        let (from, until) = (row.micros("starting_time")?, row.micros("at_least_until")?);
        let until_at_most = row.micros("at_most_until")?;
        if from < job.submit_us {
            self.found("early", format!("job {id} executes at {} s, before its submission", seconds(from)));
        }
        let end = row.text("end")?;
        if until < from || until_at_most < until || !matches!(end, "interrupted" | "unknown" | "repeated") {
            self.found("sums", format!("job {id}: an execution from {from} to {until} us ends {end:?}"));
        }
        if end == "repeated" && until - from < job.run_us {
            self.found("run time", format!("job {id} ended once more after {} s", seconds(until - from)));
        }
        let site: usize = row.whole("exec_site")?;
        Ok(Some(Held { job: id, site, processors, from, until, interrupted: end == "interrupted" }))
    }

    /// A row of `faults.csv`.
    fn report(&mut self, row: &Row<'_>) -> Result<Option<(u64, Report)>, String> {
        let id = row.whole("job_id")?;
        if !self.jobs.contains_key(&id) {
            self.found("unknown", format!("job {id} is reported, and is in no log"));
            return Ok(None);
        }
        let moves: u64 = row.whole::<u64>("taken_over")? + row.whole::<u64>("superseded")?;
        let report = Report {
            state: row.text("final_state")?.to_string(),
            ran_twice: row.text("ran_twice")?.to_string(),
            moved_by_takeover: moves > 0,
        };
        Ok(Some((id, report)))
    }

    /// Every job of the log has one end, or is told to have none.
    fn every_job_once(&mut self, rows: &[Held], reports: &BTreeMap<u64, Report>, manifest: &Value) {
        let mut ended = BTreeSet::new();
        for row in rows {
            if !ended.insert(row.job) {
                self.found("doubled", format!("job {} has two rows", row.job));
            }
        }
        self.audited.ended = ended.len() as u64;
        let complete = is_complete(manifest);
        let unended: Vec<Job> = self.jobs.values().filter(|job| !ended.contains(&job.id)).copied().collect();
        for job in unended {
            let id = job.id;
            let state = reports.get(&id).map(|report| report.state.as_str());
            if self.rule.kills && state == Some("killed") {
                self.audited.killed += 1;
            } else if self.rule.may_miss_wider_than.is_some_and(|most| job.processors > most) && !complete {
                self.audited.missing += 1;
            } else {
                self.found("missing", format!("job {id} has no end, and is reported as {state:?}"));
            }
        }
        let count = |state: &str| manifest["jobs"][state].as_u64().unwrap_or(0);
        let counted = [count("completed") + count("walltime_reached"), count("killed")];
        if counted != [self.audited.ended, self.audited.killed] {
            let seen = [self.audited.ended, self.audited.killed];
            self.found(
                "manifest",
                format!("it counts {counted:?} jobs that ended and were killed, and there are {seen:?}"),
            );
        }
        let all: u64 =
            manifest["jobs"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum();
        if all != self.jobs.len() as u64 {
            self.found("manifest", format!("it counts {all} jobs of {}", self.jobs.len()));
        }
    }

    /// What ended in parts had all of its processors, each for all of its run time. Of a part nobody can tell whose site has lost its journal
    /// since, with the events in it.
    fn have_all_parts(&mut self, rows: &[Held], parts: &[Held]) {
        let judged = if self.rule.loses_events { &[] } else { rows };
        for row in judged {
            let job = self.jobs[&row.job];
            let ended =
                parts.iter().filter(|part| part.job == row.job && part.until - part.from >= job.run_us);
            let processors = row.processors + ended.map(|part| part.processors).sum::<u32>();
            if processors < job.processors {
                let what =
                    format!("job {} ended on {processors} processors, and wants {}", row.job, job.processors);
                self.found("parts", what);
            }
        }
    }

    /// No site executes more than it has processors, at any instant.
    fn within_capacity<'a>(&mut self, all: impl Iterator<Item = &'a Held>) {
        let mut changes: BTreeMap<usize, Vec<(i64, bool, u32, u64)>> = BTreeMap::new();
        for held in all {
            let Some(_) = held.site.checked_sub(1).and_then(|place| self.sites.get(place)) else {
                self.found("unknown", format!("job {} executes at site {}", held.job, held.site));
                continue;
            };
            let changes = changes.entry(held.site).or_default();
            // At one instant ends come before starts.
            changes.push((held.from, true, held.processors, held.job));
            changes.push((held.until, false, held.processors, held.job));
        }
        for (site, mut changes) in changes {
            changes.sort_unstable();
            let (capacity, mut busy) = (i64::from(self.sites[site - 1]), 0);
            for (at, is_start, processors, job) in changes {
                busy += if is_start { i64::from(processors) } else { -i64::from(processors) };
                if is_start && busy > capacity {
                    self.found(
                        "capacity",
                        format!(
                            "site {site} executes on {busy} of {capacity} processors when job {job} starts at {} s",
                            seconds(at)
                        ),
                    );
                }
            }
        }
    }

    /// What may have run twice is told.
    fn repetitions_are_reported(&mut self, rows: &[Held], others: &[Held], reports: &BTreeMap<u64, Report>) {
        let ended: BTreeSet<u64> = rows.iter().map(|row| row.job).collect();
        for other in others.iter().filter(|other| !other.interrupted) {
            let report = reports.get(&other.job);
            let told = report.is_some_and(|report| matches!(report.ran_twice.as_str(), "yes" | "perhaps"));
            // The only execution of a job that never ended is none beside another.
            if ended.contains(&other.job) && !told {
                let what = format!(
                    "job {} executed at site {}, too, and is reported as {report:?}",
                    other.job, other.site
                );
                self.found("unreported", what);
            }
        }
        for (id, report) in reports {
            if report.ran_twice == "no" {
                continue;
            }
            self.audited.repeated += 1;
            if !self.rule.may_repeat {
                let what = format!("job {id} ran twice ({}), and nothing allows it", report.ran_twice);
                self.found("repeated", what);
            }
        }
    }

    /// The event log says the same as the tables.
    fn events_agree(
        &mut self,
        events: &[Happened],
        rows: &[Held],
        others: &[Held],
        reports: &BTreeMap<u64, Report>,
    ) {
        let told: BTreeSet<(u64, usize, i64)> =
            rows.iter().chain(others).map(|held| (held.job, held.site, held.from)).collect();
        let ends: BTreeSet<(u64, usize, i64)> =
            rows.iter().map(|held| (held.job, held.site, held.until)).collect();
        let mut starts = BTreeSet::new();
        let mut completions: BTreeMap<u64, u64> = BTreeMap::new();
        for event in events.iter().filter(|event| !event.is_part) {
            let key = (event.job, event.site, event.at_us);
            match event.is_end {
                true => *completions.entry(event.job).or_default() += 1,
                false if !starts.insert(key) => {
                    self.found("events", format!("job {} starts twice at one instant", event.job));
                }
                false => {}
            }
        }
        let all_ends: BTreeSet<(u64, usize, i64)> = events
            .iter()
            .filter(|event| event.is_end && !event.is_part)
            .map(|event| (event.job, event.site, event.at_us))
            .collect();
        let ended: BTreeSet<u64> = rows.iter().map(|row| row.job).collect();
        for (job, site, at) in starts.difference(&told) {
            // A job without an end has no row, and one execution of it none either.
            if ended.contains(job) {
                let what =
                    format!("job {job} starts at site {site} at {} s, and no table says so", seconds(*at));
                self.found("events", what);
            }
        }
        for (job, site, at) in told.difference(&starts) {
            let what =
                format!("job {job} does not start at site {site} at {} s by the event log", seconds(*at));
            self.found("events", what);
        }
        for (job, site, at) in ends.difference(&all_ends) {
            let what =
                format!("job {job} does not end at site {site} at {} s by the event log", seconds(*at));
            self.found("events", what);
        }
        for (job, times) in completions {
            if !ended.contains(&job) {
                self.found("events", format!("job {job} ends by the event log, and has no row"));
            }
            let report = reports.get(&job);
            if times > 1 && report.is_none_or(|report| report.ran_twice != "yes") {
                let what = format!("job {job} ended {times} times, and is reported as {report:?}");
                self.found("unreported", what);
            }
            if times > 1 && report.is_some_and(|report| !report.moved_by_takeover) {
                self.found("repeated", format!("job {job} ended {times} times, and nobody took it over"));
            }
        }
    }
}

/// Whether a manifest says that every job has ended, whether the run was measured or not.
pub(super) fn is_complete(manifest: &Value) -> bool {
    matches!(manifest["status"].as_str(), Some("complete" | "not_measured"))
}

#[cfg(test)]
mod tests;
