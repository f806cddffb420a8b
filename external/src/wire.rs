//! The lines, both ways. They have the shape of Batsim's decision protocol (version 3 and 4), so that its schedulers can be
//! asked; `docs/EXTERNAL.md` has every field.

use std::borrow::Cow;
use std::fmt::Write as _;

use scheduler::{JobId, JobSpec, Span, Time};
use serde::Deserialize;

/// The version of the lines. It changes when a field means something else or is gone; fields may come.
pub const SCHEMA: &str = "stealgrid-external/1";

/// The name of the workload in ids of jobs.
const WORKLOAD: &str = "w0";

/// Longest time that is understood, in seconds: as in logs, some 285 years.
const SECONDS_MAX: f64 = 9e9;

/// A line that is being written.
pub(crate) struct Line<'a> {
    text: &'a mut String,
    has_events: bool,
}

impl<'a> Line<'a> {
    pub(crate) fn new(text: &'a mut String, now: Time) -> Line<'a> {
        put(text, format_args!("{{\"now\":{now},\"events\":["));
        Line { text, has_events: false }
    }

    /// An event, whose data are written by somebody else.
    pub(crate) fn event(&mut self, at: Time, kind: &str, data: impl FnOnce(&mut String)) {
        let comma = if self.has_events { "," } else { "" };
        self.has_events = true;
        put(self.text, format_args!("{comma}{{\"timestamp\":{at},\"type\":\"{kind}\",\"data\":{{"));
        data(self.text);
        self.text.push_str("}}");
    }

    pub(crate) fn end(self) {
        self.text.push_str("]}");
    }
}

/// Writes into a text, which takes everything.
pub(crate) fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("text takes everything");
}

/// A name in quotes.
pub(crate) fn quoted(name: &str) -> String {
    serde_json::to_string(name).expect("text is JSON")
}

/// What is told of a job that comes: never its run time.
pub(crate) fn put_job(text: &mut String, job: &JobSpec) {
    let JobSpec { id, submit, processors, requested, .. } = *job;
    put(
        text,
        format_args!(
            "\"job_id\":\"{WORKLOAD}!{id}\",\"job\":{{\"id\":\"{WORKLOAD}!{id}\",\"subtime\":{submit},\
             \"walltime\":{requested},\"res\":{processors},\"profile\":\"{id}\"}}"
        ),
    );
}

/// The field that names a job.
pub(crate) fn put_id(text: &mut String, job: JobId) {
    put(text, format_args!("\"job_id\":\"{WORKLOAD}!{job}\""));
}

/// Work in processor-seconds, of processor-microseconds.
pub(crate) fn seconds_of_work(work: i128) -> String {
    match i64::try_from(work) {
        Ok(work) => Span::from_micros(work).to_string(),
        Err(_) => format!("{}", work / 1_000_000),
    }
}

/// What a process answers. Fields that mean nothing here are passed over.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer<'a> {
    #[serde(borrow)]
    pub(crate) events: Vec<Answered<'a>>,
}

/// One of its events.
#[derive(Debug, Deserialize)]
pub(crate) struct Answered<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) data: Data<'a>,
}

/// What is read of its data.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Data<'a> {
    #[serde(borrow, default)]
    pub(crate) job_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) site: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) alloc: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(crate) timestamp: Option<f64>,
}

impl<'a> Answer<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> Result<Answer<'a>, String> {
        serde_json::from_slice(line).map_err(|error| format!("that is no answer: {error}"))
    }
}

impl Answered<'_> {
    /// The job that it is about.
    pub(crate) fn job(&self) -> Result<JobId, String> {
        let kind = &self.kind;
        let id = self.data.job_id.as_deref().ok_or_else(|| format!("{kind} names no job_id"))?;
        let number = id.strip_prefix(WORKLOAD).and_then(|rest| rest.strip_prefix('!'));
        let number = number.and_then(|number| number.parse().ok());
        number.map(JobId).ok_or_else(|| format!("{kind} names the job {id:?}, which is none"))
    }

    /// When it wants to be asked.
    pub(crate) fn call(&self) -> Result<Time, String> {
        let seconds = self.data.timestamp.filter(|seconds| seconds.abs() < SECONDS_MAX);
        let seconds = seconds.ok_or_else(|| format!("{} has no timestamp in its data", self.kind))?;
        Ok(Time::from_micros((seconds * 1e6).round() as i64))
    }

    /// Whether it changes nothing here.
    pub(crate) fn is_idle(&self) -> bool {
        self.kind == "NOTIFY"
    }

    /// Why an event cannot be carried out that is understood nowhere here.
    pub(crate) fn refused(&self) -> String {
        match &*self.kind {
            "REJECT_JOB" => "it rejects a job, and no job is ever dropped here".to_string(),
            "KILL_JOB" => "it kills a job, and jobs run to their ends here".to_string(),
            kind => format!("{kind} means nothing here"),
        }
    }
}
