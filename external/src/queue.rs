//! A process that decides what starts at one site.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use scheduler::event::FallbackCause;
use scheduler::local::{Decision, News, QueueDecider};
use scheduler::{Grid, JobId, LocalScheduler, SiteId, Time};

use crate::command::Command;
use crate::limits::Limits;
use crate::process::Process;
use crate::wire::{Answer, Answered, Line, SCHEMA, put, put_id, put_job, quoted};

#[derive(Debug)]
pub(crate) struct QueueProcess {
    process: Process,
    fallback: LocalScheduler,
    most_calls: usize,
    name: String,
    processors: u32,
    books: Mutex<Books>,
}

/// What is known of jobs to check the processors that the process names.
#[derive(Debug, Default)]
struct Books {
    /// Processors that each job needs which waits.
    waiting: BTreeMap<JobId, u32>,
    /// The processors that jobs were given, as written, with those in numbers.
    running: BTreeMap<JobId, (String, Vec<(u32, u32)>)>,
}

impl QueueProcess {
    pub(crate) fn new(
        command: Command,
        fallback: LocalScheduler,
        limits: Limits,
        grid: &Grid,
        site: SiteId,
    ) -> QueueProcess {
        let site = grid.site(site);
        let whom = format!("the queue of {}", site.name);
        QueueProcess {
            process: Process::new(command, limits, whom, fallback.name().to_string()),
            fallback,
            most_calls: limits.calls,
            name: quoted(&site.name),
            processors: site.processors,
            books: Mutex::default(),
        }
    }

    fn begins(&self, line: &mut String, now: Time) {
        let mut line = Line::new(line, now);
        line.event(now, "SIMULATION_BEGINS", |text| {
            let QueueProcess { name, processors, .. } = self;
            put(
                text,
                format_args!(
                    "\"schema\":\"{SCHEMA}\",\"role\":\"queue\",\"name\":{name},\"nb_resources\":{processors},\
                     \"nb_compute_resources\":{processors},\"nb_storage_resources\":0,\"allow_compute_sharing\":false,\
                     \"allow_storage_sharing\":false,\"config\":{{\"redis-enabled\":false,\
                     \"profiles-forwarded-on-submission\":true,\"dynamic-jobs-enabled\":false,\
                     \"dynamic-jobs-acknowledged\":false,\"forward-unknown-events\":true}},\"workloads\":\
                     {{\"w0\":\"stealgrid\"}},\"profiles\":{{\"w0\":{{}}}},\"storage_resources\":[],\
                     \"compute_resources\":["
                ),
            );
            for id in 0..*processors {
                let comma = if id == 0 { "" } else { "," };
                put(
                    text,
                    format_args!("{comma}{{\"id\":{id},\"name\":\"{id}\",\"state\":\"idle\",\"properties\":{{}}}}"),
                );
            }
            text.push(']');
        });
        line.end();
    }

    fn question(&self, line: &mut String, now: Time, news: &[(Time, News)], books: &mut Books) {
        let mut line = Line::new(line, now);
        for (at, news) in news {
            let at = (*at).min(now);
            match news {
                News::Joined(job) => {
                    books.waiting.insert(job.id, job.processors);
                    line.event(at, "JOB_SUBMITTED", |text| {
                        put_job(text, job);
                        let delay = job.requested;
                        put(text, format_args!(",\"profile\":{{\"type\":\"delay\",\"delay\":{delay}}}"));
                    });
                }
                News::Ended(job) => {
                    let freed = books.running.remove(job);
                    line.event(at, "JOB_COMPLETED", |text| {
                        put_id(text, *job);
                        text.push_str(",\"job_state\":\"COMPLETED_SUCCESSFULLY\",\"return_code\":0");
                        if let Some((written, _)) = freed {
                            put(text, format_args!(",\"alloc\":{}", quoted(&written)));
                        }
                    });
                }
                News::Left(job) => {
                    books.waiting.remove(job);
                    line.event(at, "JOB_LEFT", |text| put_id(text, *job));
                }
                News::Called => line.event(at, "REQUESTED_CALL", |_| {}),
            }
        }
        line.end();
    }

    fn understand(&self, line: &[u8], books: &mut Books) -> Result<Decision, String> {
        let answer = Answer::parse(line)?;
        let mut decision = Decision::default();
        for event in answer.events.iter().filter(|event| !event.is_idle()) {
            match &*event.kind {
                "EXECUTE_JOB" => {
                    let job = event.job()?;
                    self.allocate(event, job, books)?;
                    decision.starts.push(job);
                }
                "CALL_ME_LATER" => decision.calls.push(event.call()?),
                _ => return Err(event.refused()),
            }
        }
        Ok(decision)
    }

    /// Notes the processors of a job that starts. They need not be named.
    fn allocate(&self, event: &Answered<'_>, job: JobId, books: &mut Books) -> Result<(), String> {
        let Some(needed) = books.waiting.remove(&job) else {
            return Err(format!("it starts job {job}, which does not wait here"));
        };
        let Some(written) = event.data.alloc.as_deref() else { return Ok(()) };
        let intervals = intervals(written)
            .ok_or_else(|| format!("{written:?} are no processors; write intervals, as in 0-3 7"))?;
        let count: u64 = intervals.iter().map(|(first, last)| u64::from(last - first) + 1).sum();
        if count != u64::from(needed) {
            return Err(format!("job {job} needs {needed} processors, and {written:?} are {count}"));
        }
        let beyond = intervals.iter().any(|&(_, last)| last >= self.processors);
        let own = intervals.windows(2).any(|pair| pair[1].0 <= pair[0].1);
        let taken = books.running.values().flat_map(|(_, taken)| taken);
        let is_taken =
            |&(from, to): &(u32, u32)| intervals.iter().any(|&(first, last)| first <= to && from <= last);
        if beyond || own || taken.clone().any(is_taken) {
            return Err(format!(
                "job {job} cannot have the processors {written:?}: they are not idle, or none"
            ));
        }
        books.running.insert(job, (written.to_string(), intervals));
        Ok(())
    }
}

/// Intervals of numbers, ascending by their first: `0-3 7`, also with commas.
fn intervals(text: &str) -> Option<Vec<(u32, u32)>> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let interval = |word: &str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some((first, last))
    };
    let mut intervals: Vec<(u32, u32)> = words.map(interval).collect::<Option<_>>()?;
    intervals.sort_unstable();
    Some(intervals)
}

impl QueueDecider for QueueProcess {
    fn decide(&self, now: Time, news: &[(Time, News)]) -> Result<Decision, FallbackCause> {
        // Asked and answered one after the other.
        let books = std::cell::RefCell::new(self.books.lock().unwrap_or_else(PoisonError::into_inner));
        self.process.ask(
            now,
            |line| self.begins(line, now),
            |line| self.question(line, now, news, &mut books.borrow_mut()),
            |line| self.understand(line, &mut books.borrow_mut()),
        )
    }

    fn end(&self, reason: &str) {
        self.process.end(reason);
    }

    fn most_calls(&self) -> usize {
        self.most_calls
    }

    fn fallback(&self) -> LocalScheduler {
        self.fallback
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_intervals() {
        assert_eq!(intervals("0-3 7"), Some(vec![(0, 3), (7, 7)]));
        assert_eq!(intervals("7,0-3"), Some(vec![(0, 3), (7, 7)]));
        assert_eq!(intervals(""), Some(Vec::new()));
        for text in ["3-0", "x", "1-", "-1"] {
            assert_eq!(intervals(text), None, "{text}");
        }
    }
}
