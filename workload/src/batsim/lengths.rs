//! How long profiles take, and which do not say.

use std::collections::BTreeMap;

use scheduler::Span;

use super::Profile;
use crate::record::UNKNOWN_TIME;
use crate::swf::Number;

/// Types of profiles that run others one after the other, of version 5 and version 4.
const SEQUENCES: [&str; 2] = ["SequentialCompositionProfile", "composed"];
/// Profiles that are named in a refusal; arbitrary, a line or two.
const NAMED: usize = 4;

/// The lengths of profiles, each found once.
pub(super) struct Lengths<'a> {
    profiles: &'a BTreeMap<String, Profile>,
    /// What is found; `None` while it is looked for, too, so that a sequence of itself has no length.
    known: BTreeMap<&'a str, Option<Span>>,
    /// Jobs of profiles without one.
    unknown: BTreeMap<&'a str, u64>,
}

impl<'a> Lengths<'a> {
    /// The lengths of these profiles.
    pub(super) fn of(profiles: &'a BTreeMap<String, Profile>) -> Lengths<'a> {
        Lengths { profiles, known: BTreeMap::new(), unknown: BTreeMap::new() }
    }

    /// How long a job of this profile runs; -1, and counted, if that cannot be known.
    pub(super) fn of_job(&mut self, profile: &'a str) -> Span {
        match self.of_profile(profile, 0) {
            Some(length) => length,
            None => {
                *self.unknown.entry(profile).or_default() += 1;
                UNKNOWN_TIME
            }
        }
    }

    /// The length of a profile that stands so deep in others. Sequences of sequences are few: one in more than there are
    /// profiles is one of itself.
    fn of_profile(&mut self, name: &'a str, depth: usize) -> Option<Span> {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        if depth > DEPTH {
            return None;
        }
        self.known.insert(name, None);
        let profile = self.profiles.get(name)?;
        let length = match (&profile.delay, &profile.seq) {
            (Some(delay), _) => Number::from_f64(*delay).and_then(Number::seconds).ok(),
            (None, Some(parts)) if SEQUENCES.contains(&profile.kind.as_str()) => {
                let mut sum = 0_i64;
                for part in parts {
                    let length = self.of_profile(part, depth + 1).filter(|&length| length >= Span::ZERO)?;
                    sum = sum.checked_add(length.as_micros())?;
                }
                let times = i64::try_from(profile.repeat.unwrap_or(1)).ok()?;
                sum.checked_mul(times).map(Span::from_micros)
            }
            _ => None,
        };
        self.known.insert(name, length);
        length
    }

    /// Which profiles of jobs do not say how long they take, and how many jobs these are; `None` if all do.
    pub(super) fn problem(&self) -> Option<String> {
        let jobs: u64 = self.unknown.values().sum();
        if jobs == 0 {
            return None;
        }
        let named: Vec<String> = self
            .unknown
            .keys()
            .take(NAMED)
            .map(|&name| {
                format!("{name} of type {}", self.profiles.get(name).map_or("", |profile| &profile.kind))
            })
            .collect();
        let more = match self.unknown.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let have = if jobs == 1 {
            "1 job has a profile that does".to_string()
        } else {
            format!("{jobs} jobs have profiles that do")
        };
        Some(format!(
            "{have} not say how long that takes: {}{more}; only delays and sequences of delays do, give them one",
            named.join(", ")
        ))
    }
}

/// How deep sequences may stand in each other; arbitrary, far above any workload's, and far below what the stack holds.
const DEPTH: usize = 200;

#[cfg(test)]
mod tests {
    use crate::trace::TraceError;
    use crate::{Trace, read_from};

    fn read(jobs: &[&str], profiles: &str) -> Result<Trace, TraceError> {
        let job = |(number, profile)| {
            format!("{{\"id\": {number}, \"subtime\": 0, \"res\": 1, \"profile\": \"{profile}\"}}")
        };
        let jobs: Vec<String> = (1..).zip(jobs).map(job).collect();
        let text =
            format!("{{\"nb_res\": 2, \"jobs\": [{}], \"profiles\": {{{profiles}}}}}", jobs.join(", "));
        read_from("t.json", text.as_bytes())
    }

    const DELAYS: &str = "\"ten\": {\"type\": \"DelayProfile\", \"delay\": 10}, \"three\": {\"type\": \"delay\", \"delay\": 3.5}";

    #[test]
    fn a_sequence_takes_its_sum_as_often_as_it_is_repeated() {
        let profiles = format!(
            "{DELAYS}, \"seven\": {{\"type\": \"SequentialCompositionProfile\", \"repeat\": 7, \"seq\": [\"ten\"]}}, \
             \"both\": {{\"type\": \"composed\", \"seq\": [\"ten\", \"three\"]}}, \
             \"deep\": {{\"type\": \"composed\", \"repeat\": 2, \"seq\": [\"both\", \"seven\", \"both\"]}}"
        );
        let trace = read(&["seven", "both", "deep", "three"], &profiles).unwrap();

        let lengths: Vec<f64> = trace.records.iter().map(|record| record.run_time.as_secs_f64()).collect();
        assert_eq!(lengths, [70.0, 13.5, 194.0, 3.5]);
    }

    #[test]
    fn what_has_no_length_is_refused_by_name_with_how_many_jobs_it_is_of() {
        let profiles = format!(
            "{DELAYS}, \"p\": {{\"type\": \"ParallelTaskProfile\"}}, \
             \"mixed\": {{\"type\": \"composed\", \"seq\": [\"ten\", \"p\"]}}, \
             \"loop\": {{\"type\": \"composed\", \"seq\": [\"loop\"]}}, \
             \"long\": {{\"type\": \"composed\", \"repeat\": 18446744073709551615, \"seq\": [\"ten\"]}}"
        );
        let error = read(&["ten", "p", "mixed", "p", "loop", "long"], &profiles).unwrap_err();

        assert_eq!(
            error.to_string(),
            "read trace t.json: 5 jobs have profiles that do not say how long that takes: long of type composed, loop of type \
             composed, mixed of type composed, p of type ParallelTaskProfile; only delays and sequences of delays do, give them one"
        );
    }
}
