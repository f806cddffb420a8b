//! Parts of a log: by time, by week and weekday on the log's own clock, and by number of jobs.
//!
//! A slice drops records, and begins at time 0 as a mix does ([`crate::mix`]), unless times are to be kept. Time 0 is
//! the start of its window: Monday at midnight of its week, or [`Slice::from`] if that is later. Weekdays, an end and a
//! number of jobs alone leave the start of the log where it is.

use scheduler::Span;

use crate::calendar::{Calendar, WeekFrom, Weekdays, Zone};
use crate::prepare::SwitchError;
use crate::trace::Trace;

/// Which records to keep: those that all conditions allow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Submitted at this time of the log or later.
    pub from: Option<Span>,
    /// Submitted before this time of the log.
    pub until: Option<Span>,
    /// Submitted in this week of the log, 1 for its first full week, Monday to Sunday.
    pub week: Option<i64>,
    /// What weeks are counted from.
    pub week_from: WeekFrom,
    /// So many weeks from that one on. Default: one.
    pub weeks: Option<u32>,
    /// Submitted on one of these weekdays.
    pub weekdays: Option<Weekdays>,
    /// The zone of weeks and weekdays. Default: the log's.
    pub zone: Option<Zone>,
    /// The first so many of what the other conditions leave, by (submit, job number).
    pub count: Option<usize>,
    /// Whether submit times stay those of the log, and do not begin with the slice.
    pub keep_times: bool,
}

/// What a slice did to a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sliced {
    /// Records that were dropped.
    pub dropped: u64,
    /// What time of the log time 0 is.
    pub start: Span,
}

/// Why a log has no such slice. Reads after "failed to slice …: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// The log names a zone that is not in the tz database.
    #[error("{0}; or name the one that its weeks and days are of, --zone (workload.zone)")]
    Zone(#[from] SwitchError),
    /// There is no job in the week.
    #[error(
        "there is no job in week {week}; the log has jobs in {}, and 1 is its first full one",
        if first == last { format!("week {first} only") } else { format!("weeks {first} to {last}") }
    )]
    Week {
        /// The week that was asked for; 1 is the first full one.
        week: i64,
        /// The first with a job; 0 or less before the first full one.
        first: i64,
        /// The last with a job.
        last: i64,
    },
}

impl Slice {
    /// How many weeks are taken from [`Slice::week`] on.
    pub fn weeks(&self) -> i64 {
        i64::from(self.weeks.unwrap_or(1))
    }

    /// Drops what is not in the slice and counts the times of the rest from the start of its window, which the header's
    /// clock follows. Unknown submit times, which are negative, stay.
    ///
    /// # Errors
    /// If weeks or weekdays are asked for and the log names a zone that is not in the tz database, or no job is in the
    /// week.
    pub fn apply(&self, trace: &mut Trace) -> Result<Sliced, SliceError> {
        let before = trace.records.len();
        let mut start = self.from;
        if self.week.is_some() || self.weekdays.is_some() {
            let mut calendar = Calendar::new(&trace.header, self.zone.as_ref())?;
            if self.week_from == WeekFrom::FirstJob {
                let known = trace.records.iter().map(|record| record.submit).filter(|&at| at >= Span::ZERO);
                calendar = calendar.from_first_job(known.min());
            }
            if let Some(week) = self.week {
                let places = || trace.records.iter().map(|record| calendar.place(record.submit));
                let weeks = || places().map(|place| place.week);
                if let Some((first, last)) = weeks().min().zip(weeks().max())
                    && !places().any(|place| place.is_within(week, self.weeks()))
                {
                    return Err(SliceError::Week { week, first, last });
                }
                start = start.max(calendar.start_of_week(week));
            }
            trace.records.retain(|record| {
                let place = calendar.place(record.submit);
                let on_day = self.weekdays.is_none_or(|days| days.contains(place.day));
                on_day && self.week.is_none_or(|week| place.is_within(week, self.weeks()))
            });
        }
        if let Some(from) = self.from {
            trace.records.retain(|record| record.submit >= from);
        }
        if let Some(until) = self.until {
            trace.records.retain(|record| record.submit < until);
        }
        if let Some(count) = self.count {
            trace.records.sort_by_key(|record| (record.submit, record.job));
            trace.records.truncate(count);
        }
        let start = start.filter(|_| !self.keep_times).unwrap_or(Span::ZERO);
        begin_at(trace, start);
        Ok(Sliced { dropped: (before - trace.records.len()) as u64, start })
    }
}

/// Makes a time of the log time 0.
fn begin_at(trace: &mut Trace, start: Span) {
    if start == Span::ZERO {
        return;
    }
    for record in &mut trace.records {
        if record.submit >= Span::ZERO {
            record.submit -= start;
        }
    }
    // Headers know whole seconds only. A log without a clock has none afterwards either.
    let seconds = start.as_micros().div_euclid(1_000_000);
    if let Some(clock) = trace.header.unix_start_time.and_then(|clock| clock.checked_add(seconds)) {
        trace.header.set_unix_start_time(clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use crate::trace::Format;

    const DAY: i64 = 86_400;
    /// Monday 1 July 2002 at midnight in Greenwich.
    const MONDAY: i64 = 1_025_481_600;

    /// One job at noon of each of 21 days that start on a Monday, numbered from 0, in reverse order.
    fn three_weeks() -> Trace {
        let noon =
            |day| Record { job: day, submit: Span::from_secs(day * DAY + DAY / 2), ..Record::default() };
        Trace { records: (0..21).rev().map(noon).collect(), ..Trace::empty("test", Format::Swf) }
    }

    fn kept(slice: Slice) -> Vec<i64> {
        let mut trace = three_weeks();
        let dropped = slice.apply(&mut trace).unwrap().dropped;
        assert_eq!(dropped as usize + trace.records.len(), 21);
        let mut jobs: Vec<i64> = trace.records.iter().map(|record| record.job).collect();
        jobs.sort_unstable();
        jobs
    }

    #[test]
    fn each_condition_keeps_its_days() {
        let at = |secs| Some(Span::from_secs(secs));
        let noon_of_four = 4 * DAY + DAY / 2;

        assert_eq!(kept(Slice::default()).len(), 21);
        assert_eq!(kept(Slice { from: at(18 * DAY), ..Slice::default() }), [18, 19, 20]);
        assert_eq!(kept(Slice { until: at(noon_of_four), ..Slice::default() }), [0, 1, 2, 3]);
        assert_eq!(kept(Slice { from: at(noon_of_four), until: at(5 * DAY), ..Slice::default() }), [4]);
        assert_eq!(kept(Slice { week: Some(2), ..Slice::default() }), [7, 8, 9, 10, 11, 12, 13]);
        let working = Slice { week: Some(3), weekdays: Some(Weekdays::WORKING), ..Slice::default() };
        assert_eq!(kept(working), [14, 15, 16, 17, 18]);
        assert_eq!(kept(Slice { count: Some(2), from: at(DAY), ..Slice::default() }), [1, 2]);
    }

    /// When the jobs of a slice are submitted, in hours, and what time of the log its time 0 is.
    fn times(slice: Slice, trace: &mut Trace) -> (Vec<i64>, i64) {
        let sliced = slice.apply(trace).unwrap();
        let hours = |span: Span| span.as_micros() / 3_600_000_000;
        let mut found: Vec<i64> = trace.records.iter().map(|record| hours(record.submit)).collect();
        found.sort_unstable();
        (found, hours(sliced.start))
    }

    #[test]
    fn a_slice_begins_at_time_0_unless_times_are_kept() {
        let days = |days| Some(Span::from_secs(days * DAY));
        let week = Slice { week: Some(3), weekdays: Some("wed-thu".parse().unwrap()), ..Slice::default() };
        let kept = Slice { keep_times: true, ..week.clone() };
        let of = |slice| times(slice, &mut three_weeks());

        assert_eq!(of(week.clone()), (vec![2 * 24 + 12, 3 * 24 + 12], 14 * 24));
        assert_eq!(of(kept), (vec![16 * 24 + 12, 17 * 24 + 12], 0));
        assert_eq!(of(Slice { from: days(17), ..week.clone() }), (vec![12], 17 * 24));
        assert_eq!(of(Slice { from: days(1), until: days(17), ..week }), (vec![60], 14 * 24));
        assert_eq!(of(Slice { until: days(2), ..Slice::default() }), (vec![12, 36], 0));
        assert_eq!(of(Slice { from: days(19), ..Slice::default() }), (vec![12, 36], 19 * 24));
        assert_eq!(of(Slice { from: days(-1), until: days(1), ..Slice::default() }), (vec![36], -24));
    }

    /// A slice of a slice is on the same days as before, and what is not known stays unknown.
    #[test]
    fn the_clock_of_the_header_moves_with_time_0() {
        let mut trace = three_weeks();
        trace.header.push_pair("UnixStartTime", &(MONDAY + 3600).to_string());
        trace.records.push(Record { submit: Span::from_micros(-1), ..Record::default() });
        let all = Slice { from: Some(Span::from_secs(-DAY)), ..Slice::default() };
        let (found, _) = times(all, &mut trace.clone());
        assert_eq!((found[0], found[1]), (0, 36), "not known, and the first");

        // The first week has begun an hour before the log, so the second is number 1.
        let (found, start) = times(Slice { week: Some(1), ..Slice::default() }, &mut trace);
        assert_eq!((found, start), ((0..7).map(|day| day * 24 + 13).collect(), 7 * 24 - 1));
        assert_eq!(trace.header.unix_start_time, Some(MONDAY + 7 * DAY));
        assert_eq!(times(Slice { week: Some(1), ..Slice::default() }, &mut trace).1, 0);
    }

    #[test]
    fn a_week_that_the_log_does_not_have_is_refused_with_those_it_has() {
        let refused = |week| {
            let slice = Slice { week: Some(week), ..Slice::default() };
            slice.apply(&mut three_weeks()).unwrap_err().to_string()
        };
        let expected =
            "there is no job in week 99; the log has jobs in weeks 1 to 3, and 1 is its first full one";
        assert_eq!(refused(99), expected);
        assert!(refused(i64::MIN).contains("weeks 1 to 3") && refused(0).contains("week 0;"));
    }
}
