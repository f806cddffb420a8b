//! Several logs merged into the workload of one grid: each log is the local workload of a site.
//!
//! Logs come from different years and continents. They are laid over each other by week, counted from each
//! log's first full one, so that Monday mornings meet; an experiment takes chosen weekdays of one week
//! (Quezada Pina 2012, workload construction). Work on prepared jobs; see [`crate::prepare()`].

use std::collections::BTreeMap;

use scheduler::{JobId, Labels, SiteId, Time, TimedJob};

use crate::calendar::{Calendar, WeekFrom, WeekTime, Weekdays, Zone};
use crate::header::Header;
use crate::prepare::{SwitchError, Use};

/// One log of a mix.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// Its name, for the table of origins.
    pub name: String,
    /// Its header, for the clock.
    pub header: Header,
    /// Its jobs as prepared.
    pub jobs: Vec<TimedJob>,
    /// What preparation did to get them.
    pub uses: Vec<Use>,
    /// The site where all of them are submitted; `None` keeps the origins that preparation found, for a log
    /// of several machines.
    pub site: Option<SiteId>,
    /// The week of the log that is week 1 of the mix, 1 for its first full one: a long log has workloads for several sites.
    pub first_week: i64,
}

/// Which clock says what weekday and hour a submission has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// One zone for all: instants stay what they were, so sites on other continents peak at other hours.
    Shared(Zone),
    /// Each log's own: all sites peak in the same hours.
    Local,
}

impl Default for Clock {
    /// Seven hours behind Greenwich, as in the grid experiments.
    fn default() -> Self {
        Clock::Shared(Zone::north_america())
    }
}

/// How logs are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixOptions {
    /// The clock. Default: GMT-7 for all.
    pub clock: Clock,
    /// The week, 1 for each log's first full one. `None` takes all weeks from the first full one on.
    pub week: Option<i64>,
    /// What weeks are counted from.
    pub week_from: WeekFrom,
    /// How many weeks from that one on.
    pub weeks: i64,
    /// The weekdays. Default: Monday to Friday.
    pub weekdays: Weekdays,
}

impl Default for MixOptions {
    fn default() -> Self {
        MixOptions {
            clock: Clock::default(),
            week: None,
            week_from: WeekFrom::default(),
            weeks: 1,
            weekdays: Weekdays::WORKING,
        }
    }
}

/// Where a job of a mix comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Place of the log in the mix.
    pub log: u32,
    /// The job's number in that log.
    pub job: JobId,
}

/// A merged workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixed {
    /// Ascending by (submit, id). Ids are 1, 2, …; time 0 is the Monday, at midnight, of the week taken.
    pub jobs: Vec<TimedJob>,
    /// Where each job comes from: `sources[id - 1]`.
    pub sources: Vec<Source>,
    /// Names of the logs.
    pub names: Vec<String>,
    /// Jobs of each log that are in the mix.
    pub taken: Vec<u64>,
    /// What preparation did to jobs of the chosen weeks, with the place of their log and their submit time in the mix: to those
    /// that it kept under their number in the mix, to those that it dropped under the one in their log.
    pub uses: Vec<(u32, Use)>,
}

impl Mixed {
    /// The log and the number there of a job; `None` if the mix has no such job.
    pub fn source(&self, id: JobId) -> Option<(&str, JobId)> {
        let index = usize::try_from(id.0.checked_sub(1)?).ok()?;
        let source = self.sources.get(index)?;
        Some((&self.names[source.log as usize], source.job))
    }
}

/// Merges logs. Users of different logs become different users, numbered from 1; unknown ones stay unknown.
///
/// # Errors
/// If a log names a time zone that is not in the tz database.
pub fn mix(logs: &[Log], options: &MixOptions) -> Result<Mixed, SwitchError> {
    let mut chosen: Vec<(TimedJob, Source)> = Vec::new();
    let mut taken = Vec::with_capacity(logs.len());
    let mut uses: Vec<(u32, Use)> = Vec::new();
    for (log, number) in logs.iter().zip(0..) {
        let before = chosen.len();
        let calendar = calendar(log, options)?;
        let source = |job: &TimedJob| Source { log: number, job: job.spec.id };
        let jobs =
            log.jobs.iter().filter_map(|job| Some((placed(job, log, &calendar, options)?, source(job))));
        chosen.extend(jobs);
        let of_weeks = |used: &Use| {
            let submit = placed_at(used.submit, log, &calendar, options)?;
            Some((number, Use { submit, ..*used }))
        };
        uses.extend(log.uses.iter().filter_map(of_weeks));
        taken.push((chosen.len() - before) as u64);
    }
    chosen.sort_by_key(|(job, source)| (job.spec.submit, job.spec.origin, source.job, source.log));
    let numbers = NUMBERS.map(|(of, _)| dense(&chosen, of));
    let mut jobs = Vec::with_capacity(chosen.len());
    let mut sources = Vec::with_capacity(chosen.len());
    for ((mut job, source), id) in chosen.into_iter().zip(1..) {
        job.spec.id = JobId(id);
        for ((of, set), numbers) in NUMBERS.iter().zip(&numbers) {
            if let Some(&number) = numbers.get(&(source.log, of(&job.spec.labels))) {
                set(&mut job.spec.labels, number);
            }
        }
        jobs.push(job);
        sources.push(source);
    }
    let numbers: BTreeMap<(u32, JobId), JobId> =
        sources.iter().zip(&jobs).map(|(source, job)| ((source.log, source.job), job.spec.id)).collect();
    let renumbered = |(log, used): (u32, Use)| {
        let kept = u64::try_from(used.job).ok().filter(|_| used.rule.changes());
        let number = kept.and_then(|job| numbers.get(&(log, JobId(job))));
        let job = number.and_then(|job| i64::try_from(job.0).ok()).unwrap_or(used.job);
        (log, Use { job, ..used })
    };
    let uses = uses.into_iter().map(renumbered).collect();
    Ok(Mixed { jobs, sources, names: logs.iter().map(|log| log.name.clone()).collect(), taken, uses })
}

/// The first and the last week in which some log has a job, whatever the options say of weeks and weekdays; `None`
/// without jobs.
///
/// # Errors
/// As [`mix`].
pub fn weeks(logs: &[Log], options: &MixOptions) -> Result<Option<(i64, i64)>, SwitchError> {
    let mut found: Option<(i64, i64)> = None;
    for log in logs {
        let calendar = calendar(log, options)?;
        for job in &log.jobs {
            let week = place(job.spec.submit, log, &calendar).week;
            found = Some(found.map_or((week, week), |(first, last)| (first.min(week), last.max(week))));
        }
    }
    Ok(found)
}

fn calendar(log: &Log, options: &MixOptions) -> Result<Calendar, SwitchError> {
    let zone = match &options.clock {
        Clock::Shared(zone) => Some(zone),
        Clock::Local => None,
    };
    let calendar = Calendar::new(&log.header, zone)?;
    Ok(match options.week_from {
        WeekFrom::FirstJob => {
            calendar.from_first_job(log.jobs.iter().map(|job| job.spec.submit.since(Time::ZERO)).min())
        }
        WeekFrom::Log => calendar,
    })
}

/// Where a submission is in the weeks of the mix.
fn place(submit: Time, log: &Log, calendar: &Calendar) -> WeekTime {
    let place = calendar.place(submit.since(Time::ZERO));
    WeekTime { week: place.week - (log.first_week - 1), ..place }
}

/// The job at its place in the common weeks, `None` if it is not in the chosen ones.
fn placed(job: &TimedJob, log: &Log, calendar: &Calendar, options: &MixOptions) -> Option<TimedJob> {
    let submit = placed_at(job.spec.submit, log, calendar, options)?;
    let mut job = *job;
    job.spec.submit = submit;
    job.spec.origin = log.site.unwrap_or(job.spec.origin);
    Some(job)
}

/// When in the common weeks a submission is, `None` if it is not in the chosen ones.
fn placed_at(submit: Time, log: &Log, calendar: &Calendar, options: &MixOptions) -> Option<Time> {
    let place = place(submit, log, calendar);
    let in_week = match options.week {
        Some(week) => place.is_within(week, options.weeks),
        None => place.week >= 1,
    };
    if !in_week || !options.weekdays.contains(place.day) {
        return None;
    }
    Some(Time::ZERO + place.since_monday_of(options.week.unwrap_or(1)))
}

/// One of a job's labels, and how it is set.
type Label = (fn(&Labels) -> i32, fn(&mut Labels, i32));

/// Labels whose numbers mean something within their log only: equal ones of two logs are not the same user.
const NUMBERS: [Label; 4] = [
    (|labels| labels.user, |labels, number| labels.user = number),
    (|labels| labels.group, |labels, number| labels.group = number),
    (|labels| labels.executable, |labels, number| labels.executable = number),
    (|labels| labels.queue, |labels, number| labels.queue = number),
];

/// A number from 1 for each known value of a label in each log.
fn dense(jobs: &[(TimedJob, Source)], of: fn(&Labels) -> i32) -> BTreeMap<(u32, i32), i32> {
    let values = jobs.iter().map(|(job, source)| (source.log, of(&job.spec.labels)));
    let mut numbers: BTreeMap<(u32, i32), i32> =
        values.filter(|&(_, value)| value >= 0).map(|key| (key, 0)).collect();
    for (number, place) in numbers.values_mut().zip(1..) {
        *number = place;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use scheduler::{JobSpec, Labels, Span};

    use super::*;

    const DAY: i64 = 86_400;
    const HOUR: i64 = 3600;

    /// The first full week of the clock of a log, whether it has jobs or not.
    fn by_clock() -> MixOptions {
        MixOptions { week_from: WeekFrom::Log, ..MixOptions::default() }
    }
    /// Monday 1 July 2002 at midnight in Greenwich.
    const MONDAY: i64 = 1_025_481_600;

    fn log(name: &str, start: i64, zone: &str, site: u32, submits: &[i64]) -> Log {
        let mut header = Header::default();
        header.push_pair("UnixStartTime", &start.to_string());
        header.push_pair("TimeZoneString", zone);
        let job = |(number, &submit): (u64, &i64)| TimedJob {
            spec: JobSpec {
                id: JobId(number),
                submit: Time::from_secs(submit),
                processors: 1,
                requested: Span::from_secs(10),
                labels: Labels::UNKNOWN,
                origin: SiteId(9),
                payload: 0,
            },
            run_time: Span::from_secs(5),
        };
        let jobs = (100..).zip(submits).map(job).collect();
        Log {
            name: name.to_string(),
            header,
            jobs,
            uses: Vec::new(),
            site: Some(SiteId(site)),
            first_week: 1,
        }
    }

    fn submits(mixed: &Mixed) -> Vec<(u64, u32, i64)> {
        mixed
            .jobs
            .iter()
            .map(|job| (job.spec.id.0, job.spec.origin.0, job.spec.submit.as_micros() / 1_000_000))
            .collect()
    }

    /// Both logs hold a job on a Tuesday at 09:00 of their own clock, in their second full week.
    fn two_logs() -> [Log; 2] {
        let week = 7 * DAY;
        let stockholm = -2 * HOUR;
        let pacific = 7 * HOUR;
        [
            log("north", MONDAY + stockholm, "Europe/Stockholm", 1, &[week + DAY + 9 * HOUR, 5]),
            log("west", MONDAY + 52 * week + pacific, "US/Pacific", 2, &[week + DAY + 9 * HOUR]),
        ]
    }

    #[test]
    fn on_local_clocks_weekday_and_hour_meet() {
        let options = MixOptions { clock: Clock::Local, week: Some(2), ..by_clock() };
        let mixed = mix(&two_logs(), &options).unwrap();

        let tuesday_at_nine = DAY + 9 * HOUR;
        assert_eq!(submits(&mixed), [(1, 1, tuesday_at_nine), (2, 2, tuesday_at_nine)]);
        assert_eq!(mixed.taken, [1, 1]);
    }

    /// In GMT-7 the northern Monday starts on Sunday afternoon, so its first full week starts later that day.
    #[test]
    fn on_a_shared_clock_instants_keep_their_distance() {
        let options = MixOptions { week: Some(2), ..by_clock() };
        let mixed = mix(&two_logs(), &options).unwrap();

        // 09:00 in Stockholm is 07:00 in Greenwich is midnight in GMT-7; Pacific summer time is GMT-7.
        assert_eq!(submits(&mixed), [(1, 1, DAY), (2, 2, DAY + 9 * HOUR)]);
    }

    /// A log that begins with empty weeks, as that of a machine which was not yet open to users.
    #[test]
    fn weeks_are_counted_from_the_first_job_of_a_log_that_begins_without_any() {
        let week = 7 * DAY;
        let logs = [
            log("a", MONDAY, "UTC", 1, &[HOUR, 3 * week]),
            log("b", MONDAY, "UTC", 2, &[2 * week + DAY, 3 * week + DAY]),
        ];
        let taken = |week_from, week| {
            let options =
                MixOptions { clock: Clock::Local, week: Some(week), week_from, ..MixOptions::default() };
            mix(&logs, &options).unwrap().taken
        };
        assert_eq!(taken(WeekFrom::Log, 1), [1, 0]);
        // The first full week of b after its first job, a Tuesday, is its fourth; a has a job in its first.
        assert_eq!(taken(WeekFrom::FirstJob, 1), [1, 1]);
        assert_eq!(taken(WeekFrom::FirstJob, 4), [1, 0]);
    }

    /// The same log twice, a week apart: what one has in week 1 the other has in week 2, and is gone before week 1.
    #[test]
    fn a_later_part_of_a_log_is_a_log_of_its_own() {
        let [log, _] = two_logs();
        let later = Log { first_week: 2, site: Some(SiteId(3)), ..log.clone() };
        let tuesday_at_nine = DAY + 9 * HOUR;
        let options = |week| MixOptions { clock: Clock::Local, week, ..by_clock() };

        let logs = [log, later];
        let both = mix(&logs, &options(None)).unwrap();

        assert_eq!(submits(&both), [(1, 1, 5), (2, 3, tuesday_at_nine), (3, 1, 7 * DAY + tuesday_at_nine)]);
        assert_eq!(mix(&logs, &options(Some(1))).unwrap().taken, [1, 1]);
        assert_eq!(mix(&logs, &options(Some(2))).unwrap().taken, [1, 0]);
        assert_eq!(weeks(&logs, &options(None)).unwrap(), Some((0, 2)));
    }

    #[test]
    fn every_job_keeps_its_log_and_number_in_the_table() {
        let options = MixOptions { clock: Clock::Local, ..by_clock() };
        let mixed = mix(&two_logs(), &options).unwrap();

        assert_eq!(mixed.source(JobId(1)), Some(("north", JobId(101))));
        assert_eq!(mixed.source(JobId(3)), Some(("west", JobId(100))));
        assert_eq!(mixed.source(JobId(4)), None);
        assert_eq!(mixed.source(JobId(0)), None);
        assert_eq!(mixed.jobs[0].spec.submit, Time::from_secs(5));
    }

    #[test]
    fn users_and_groups_of_different_logs_are_different_ones() {
        let mut logs = two_logs();
        for log in &mut logs {
            for job in &mut log.jobs {
                job.spec.labels = Labels { user: 7, group: 3, queue: 0, ..Labels::UNKNOWN };
            }
        }
        let unknown = JobSpec { labels: Labels { memory: 64, ..Labels::UNKNOWN }, ..logs[1].jobs[0].spec };
        logs[1].jobs.push(TimedJob { spec: unknown, ..logs[1].jobs[0] });
        let options = MixOptions { clock: Clock::Local, week: Some(2), ..by_clock() };

        let jobs = mix(&logs, &options).unwrap().jobs;
        let of =
            |label: fn(&Labels) -> i32| jobs.iter().map(|job| label(&job.spec.labels)).collect::<Vec<_>>();

        assert_eq!(of(|labels| labels.user), [1, 2, -1]);
        assert_eq!(of(|labels| labels.group), [1, 2, -1]);
        assert_eq!(of(|labels| labels.queue), [1, 2, -1]);
        assert_eq!(of(|labels| labels.executable), [-1; 3]);
        assert_eq!(jobs[2].spec.labels.memory, 64, "memory is no number of a log");
    }

    #[test]
    fn weekends_are_left_out_unless_asked_for() {
        let saturday = [log("a", MONDAY, "UTC", 1, &[5 * DAY])];
        let count = |weekdays| {
            let options = MixOptions { clock: Clock::Local, weekdays, ..by_clock() };
            mix(&saturday, &options).unwrap().jobs.len()
        };

        assert_eq!((count(Weekdays::WORKING), count(Weekdays::ALL)), (0, 1));
    }
}
