//! Parts of a log: by time, by week and weekday on the log's own clock, and by number of jobs.
//!
//! A slice drops records and changes none: submit times stay those of the log.

use scheduler::Span;

use crate::calendar::{Calendar, Weekdays, Zone};
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
    /// Submitted on one of these weekdays.
    pub weekdays: Option<Weekdays>,
    /// The zone of weeks and weekdays. Default: the log's.
    pub zone: Option<Zone>,
    /// The first so many of what the other conditions leave, by (submit, job number).
    pub count: Option<usize>,
}

impl Slice {
    /// Drops what is not in the slice, and says how many records that were.
    ///
    /// # Errors
    /// If weeks or weekdays are asked for and the log names a zone that is not in the tz database.
    pub fn apply(&self, trace: &mut Trace) -> Result<u64, SwitchError> {
        let before = trace.records.len();
        if let Some(from) = self.from {
            trace.records.retain(|record| record.submit >= from);
        }
        if let Some(until) = self.until {
            trace.records.retain(|record| record.submit < until);
        }
        if self.week.is_some() || self.weekdays.is_some() {
            let calendar = Calendar::new(&trace.header, self.zone.as_ref())?;
            trace.records.retain(|record| {
                let place = calendar.place(record.submit);
                let on_day = self.weekdays.is_none_or(|days| days.contains(place.day));
                on_day && self.week.is_none_or(|week| week == place.week)
            });
        }
        if let Some(count) = self.count {
            trace.records.sort_by_key(|record| (record.submit, record.job));
            trace.records.truncate(count);
        }
        Ok((before - trace.records.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use crate::trace::Format;

    const DAY: i64 = 86_400;

    /// One job at noon of each of 21 days that start on a Monday, numbered from 0, in reverse order.
    fn three_weeks() -> Trace {
        let noon =
            |day| Record { job: day, submit: Span::from_secs(day * DAY + DAY / 2), ..Record::default() };
        Trace { records: (0..21).rev().map(noon).collect(), ..Trace::empty("test", Format::Swf) }
    }

    fn kept(slice: Slice) -> Vec<i64> {
        let mut trace = three_weeks();
        let dropped = slice.apply(&mut trace).unwrap();
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
}
