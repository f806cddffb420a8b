//! Batsim's JSON workloads: jobs that name a profile, profiles that say how long they take.
//!
//! Only delay profiles fit rigid jobs of known run time, `DelayProfile` of version 5 and `delay` of version 4, and sequences of
//! these (`SequentialCompositionProfile`, `composed`), which take their sum as often as they are repeated. The origin site is in
//! `extra_data.site`, from 1.

mod lengths;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Write};

use scheduler::{Span, TimedJob};
use serde::Deserialize;
use serde_json::Value;

use crate::labels::{Field, Labels};
use crate::limits::{Document, Limit, Limits};
use crate::record::Record;
use crate::repair::Repair;
use crate::swf::{Number, note_values};
use crate::trace::{Format, Trace, TraceError};

use lengths::Lengths;

/// Jobs that have names are numbered above any number a workload counts to.
const FIRST_NAMED: i64 = 1_000_000_001;

/// The dialect to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Type `delay`.
    V4,
    /// Type `DelayProfile` (default).
    #[default]
    V5,
}

#[derive(Deserialize)]
struct Workload {
    nb_res: u32,
    jobs: Vec<Job>,
    profiles: BTreeMap<String, Profile>,
}

#[derive(Deserialize)]
struct Job {
    id: Value,
    subtime: f64,
    walltime: Option<f64>,
    res: i32,
    profile: String,
    extra_data: Option<Value>,
}

#[derive(Deserialize)]
struct Profile {
    #[serde(rename = "type")]
    kind: String,
    delay: Option<f64>,
    /// How often a sequence is run, once if it does not say.
    repeat: Option<u64>,
    /// The profiles that a sequence is of.
    seq: Option<Vec<String>>,
}

/// Reads a whole workload.
///
/// # Errors
/// If it is not JSON of that shape, is over a limit, or a job's profile is missing or does not say how long it takes.
pub fn read_trace(name: &str, text: impl BufRead, limits: &Limits) -> Result<Trace, TraceError> {
    let structure = |problem: String| TraceError::Structure { file: name.to_string(), problem };
    let text = BufReader::new(Document::new(text, limits.document));
    let workload: Workload = serde_json::from_reader(text).map_err(|error| {
        if error.is_io() {
            TraceError::reading(name, 0, error.into())
        } else {
            structure(format!("not a Batsim workload: {error}; correct the file there"))
        }
    })?;
    if workload.jobs.len() as u64 > limits.rows {
        return Err(TraceError::over(name, 0, Limit::Rows, limits.rows));
    }
    let mut trace = Trace::empty(name, Format::Batsim);
    trace.header.push_pair("MaxProcs", &workload.nb_res.to_string());
    let mut names = Labels::new(&[Field::Job], FIRST_NAMED);
    let mut lengths = Lengths::of(&workload.profiles);
    let mut previous = Span::from_micros(i64::MIN);
    for (job, number) in workload.jobs.iter().zip(1..) {
        let profile = workload.profiles.get(&job.profile).ok_or_else(|| {
            structure(format!(
                "job {} has profile {}, which is not in `profiles`; add it",
                job.id, job.profile
            ))
        })?;
        // The first job without a length stops nothing here, so that all of them can be told.
        let run_time = lengths.of_job(&job.profile);
        let mut note = |seen: bool, repair| {
            if seen {
                trace.repairs.add(repair, number);
            }
        };
        note(!matches!(profile.kind.as_str(), "delay" | "DelayProfile"), Repair::ProfileSimplified);
        let id = match id(&job.id) {
            Some(Id::Number(number)) => number,
            Some(Id::Name(name)) => {
                names.add(trace.records.len(), Field::Job, name.as_bytes());
                note(true, Repair::NameNumbered);
                FIRST_NAMED
            }
            None => {
                return Err(structure(format!("job {number} has id {}; give it a number or a name", job.id)));
            }
        };
        let time = |what: &str, value: f64| {
            let time = Number::from_f64(value).and_then(Number::seconds);
            time.map_err(|_| structure(format!("job {} has {what} {value}, too large; correct it", job.id)))
        };
        let record = Record {
            job: id,
            submit: time("subtime", job.subtime)?,
            run_time,
            requested_time: time("walltime", job.walltime.unwrap_or(-1.0))?,
            allocated: job.res,
            requested: job.res,
            origin: job.extra_data.as_ref().and_then(site).unwrap_or(-1),
            ..Record::default()
        };
        note(record.submit < previous, Repair::OutOfOrder);
        note_values(&record, &mut note);
        previous = record.submit;
        trace.records.push(record);
    }
    if let Some(problem) = lengths.problem() {
        return Err(structure(problem));
    }
    names.resolve(&mut trace.records);
    trace.shift_epoch();
    Ok(trace)
}

/// What a job is called.
enum Id<'a> {
    Number(i64),
    Name(&'a str),
}

/// A job's number, `7`, `"7"` or `"w0!7"`, or its name.
fn id(value: &Value) -> Option<Id<'_>> {
    if let Some(number) = value.as_i64() {
        return Some(Id::Number(number));
    }
    let text = value.as_str()?;
    let own = text.rsplit_once('!').map_or(text, |(_, own)| own);
    Some(own.parse().map_or(Id::Name(text), Id::Number))
}

/// The origin site in the extra data, which may be an object or a string that holds one.
fn site(extra: &Value) -> Option<i32> {
    match extra {
        Value::String(text) => site(&serde_json::from_str::<Value>(text).ok().filter(Value::is_object)?),
        extra => i32::try_from(extra.get("site")?.as_i64()?).ok(),
    }
}

/// Writes prepared jobs for a platform of so many processors. Ids are integers and delays exact.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_jobs(
    jobs: &[TimedJob],
    processors: u64,
    version: Version,
    out: &mut impl Write,
) -> io::Result<()> {
    let kind = match version {
        Version::V4 => "delay",
        Version::V5 => "DelayProfile",
    };
    writeln!(out, "{{\"nb_res\": {processors},\n\"jobs\": [")?;
    for (index, job) in jobs.iter().enumerate() {
        let spec = &job.spec;
        let separator = if index + 1 < jobs.len() { "," } else { "" };
        writeln!(
            out,
            "{{\"id\": {}, \"subtime\": {}, \"walltime\": {}, \"res\": {}, \"profile\": \"d{}\", \
             \"extra_data\": {{\"site\": {}}}}}{separator}",
            spec.id,
            seconds(spec.submit.since(scheduler::Time::ZERO)),
            seconds(spec.requested),
            spec.processors,
            job.run_time,
            spec.origin
        )?;
    }
    writeln!(out, "],\n\"profiles\": {{")?;
    let delays: BTreeSet<Span> = jobs.iter().map(|job| job.run_time).collect();
    for (index, &delay) in delays.iter().enumerate() {
        let separator = if index + 1 < delays.len() { "," } else { "" };
        writeln!(out, "\"d{delay}\": {{\"type\": \"{kind}\", \"delay\": {}}}{separator}", seconds(delay))?;
    }
    writeln!(out, "}}}}")
}

/// Seconds as a JSON number that every reader takes for a float.
fn seconds(span: Span) -> String {
    let text = span.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::{Origin, PrepareOptions, prepare};
    use crate::read_from;

    const SMALL: &str = r#"{"nb_res": 8, "unknown": [1],
        "jobs": [
            {"id": 1, "subtime": 0.0, "walltime": 7200.0, "res": 4, "profile": "a", "extra_data": {"site": 2}},
            {"id": "w0!2", "subtime": 1.5, "res": 8, "profile": "b", "extra_data": "{\"site\": 1}", "more": 1},
            {"id": "third", "subtime": 3, "walltime": 10, "res": 1, "profile": "b"}],
        "profiles": {"a": {"type": "DelayProfile", "delay": 3600.0}, "b": {"type": "delay", "delay": 0.25}}}"#;

    fn read(text: &str) -> Result<Trace, TraceError> {
        read_from("test.json", text.as_bytes())
    }

    #[test]
    fn both_versions_and_all_kinds_of_ids_are_read() {
        let trace = read(SMALL).unwrap();

        let [first, second, third] = trace.records[..] else { panic!("three jobs") };
        assert_eq!(trace.processors(), 8);
        assert_eq!((first.job, first.run_time, first.origin), (1, Span::from_secs(3600), 2));
        assert_eq!((second.job, second.run_time, second.origin), (2, Span::from_micros(250_000), 1));
        assert_eq!(
            (second.submit, second.requested_time),
            (Span::from_micros(1_500_000), Span::from_secs(-1))
        );
        assert_eq!((third.requested, third.origin), (1, -1));
        assert_eq!(trace.repairs.count(Repair::NameNumbered), 1);
        assert_eq!(trace.repairs.count(Repair::MissingEstimate), 1);
    }

    #[test]
    fn what_is_not_a_workload_of_delays_is_refused_with_a_remedy() {
        let message = |text: String| read(&text).unwrap_err().to_string();

        assert!(message(SMALL.replace("\"nb_res\": 8,", "")).contains("missing field `nb_res`"));
        assert!(
            message(SMALL.replace("\"profile\": \"a\"", "\"profile\": \"z\""))
                .contains("job 1 has profile z")
        );
        assert!(message(SMALL.replace("\"delay\": 3600.0", "\"cpu\": 1")).contains("1 job has a profile"));
        assert!(message(SMALL.replace("\"third\"", "[]")).contains("job 3 has id []"));
        assert!(
            message(SMALL.replace("\"delay\": 3600.0", "\"delay\": 1e40")).contains("1 job has a profile")
        );
        assert!(message(SMALL.replace("\"subtime\": 3,", "\"subtime\": 1e40,")).contains("too large"));
    }

    #[test]
    fn a_name_never_gets_the_number_of_another_job() {
        let trace = read(&SMALL.replace("\"id\": 1,", "\"id\": 1000000001,")).unwrap();

        let numbers: Vec<i64> = trace.records.iter().map(|record| record.job).collect();
        assert_eq!(numbers, [1_000_000_001, 2, 1_000_000_002]);
    }

    #[test]
    fn jobs_written_in_either_version_are_read_back_the_same() {
        let options = PrepareOptions { origin: Origin::Recorded, ..PrepareOptions::default() };
        let text = SMALL.replace("\"profile\": \"b\"}", "\"profile\": \"b\", \"extra_data\": {\"site\": 3}}");
        let jobs = prepare(&read(&text).unwrap(), &options, 8).unwrap().jobs;
        assert_eq!(jobs.len(), 3);
        for version in [Version::V4, Version::V5] {
            let mut written = Vec::new();
            write_jobs(&jobs, 8, version, &mut written).unwrap();

            let again = read_from("again.json", &written[..]).unwrap();

            assert_eq!(prepare(&again, &options, 8).unwrap().jobs, jobs);
        }
    }
}
