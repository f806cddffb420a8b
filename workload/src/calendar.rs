//! Where a submit time falls in the local week of a log: day, weekday and time of day in its own time zone.
//!
//! A log without a clock is taken to start on a Monday at midnight, as the traces of [`crate::generate`] do.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{DateTime, Weekday};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use scheduler::{Span, spelling};

use crate::header::Header;
use crate::prepare::{SwitchError, unknown};

/// Microseconds of a day without a change of clocks.
const DAY: i64 = 86_400_000_000;
/// Days of a week.
const WEEK: i64 = 7;

/// A time zone by the name of the tz database (`Europe/Stockholm`) or as an offset (`GMT-7`, `UTC+05:30`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

impl Zone {
    /// The zone of the grid experiments, seven hours behind Greenwich: North American daytime. The workload
    /// is shifted there in the experiments of Quezada Pina (2012), whose group names it.
    pub fn north_america() -> Zone {
        "GMT-7".parse().expect("an offset within a day")
    }

    /// The Unix times that a local time may be, in microseconds: the earlier and the later one where clocks are set
    /// back, twice the time on the clock after the change where they are set forward. The last value says whether it is
    /// one of these.
    pub(crate) fn unix_times(&self, local: DateTime) -> Option<(i64, i64, bool)> {
        let ambiguous = self.zone.to_ambiguous_timestamp(local);
        let (earlier, later) = match ambiguous.offset() {
            AmbiguousOffset::Fold { .. } => (ambiguous.earlier().ok()?, ambiguous.later().ok()?),
            _ => {
                let time = ambiguous.compatible().ok()?;
                (time, time)
            }
        };
        Some((earlier.as_microsecond(), later.as_microsecond(), ambiguous.is_ambiguous()))
    }

    /// Greenwich.
    pub fn utc() -> Zone {
        Zone { name: "UTC".to_string(), zone: TimeZone::UTC }
    }

    /// The zone that a header names, else the offset it gives. `None` if it gives neither.
    ///
    /// # Errors
    /// If the zone's name is not in the tz database.
    pub fn of_header(header: &Header) -> Result<Option<Zone>, SwitchError> {
        if let Some(name) = &header.time_zone_name {
            return name.parse().map(Some);
        }
        let offset = header.time_zone_offset.and_then(|seconds| Offset::from_seconds(seconds).ok());
        Ok(offset.map(|offset| Zone { name: format!("UTC{offset}"), zone: TimeZone::fixed(offset) }))
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl FromStr for Zone {
    type Err = SwitchError;

    fn from_str(text: &str) -> Result<Self, SwitchError> {
        let choices = "a name of the tz database (Europe/Stockholm), UTC, GMT-7, UTC+05:30";
        let unknown = || unknown("time zone", text, choices);
        let zone = match offset(text) {
            Some(offset) => TimeZone::fixed(offset),
            None => TimeZone::get(text).map_err(|_| unknown())?,
        };
        Ok(Zone { name: text.to_string(), zone })
    }
}

/// `GMT-7`, `UTC+5`, `UTC+05:30`: hours ahead of Greenwich, unlike the inverted signs of POSIX.
fn offset(text: &str) -> Option<Offset> {
    let text = text.strip_prefix("GMT").or_else(|| text.strip_prefix("UTC"))?;
    let (sign, text) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = text.split_once(':').unwrap_or((text, "0"));
    let minutes =
        hours.parse::<u8>().ok().map(i32::from)? * 60 + minutes.parse::<u8>().ok().map(i32::from)?;
    Offset::from_seconds(sign * minutes * 60).ok()
}

/// A set of weekdays, written `mon-fri` or `mon,wed,sun`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weekdays {
    on: [bool; WEEK as usize],
}

const DAY_NAMES: [&str; WEEK as usize] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl Weekdays {
    /// Monday to Friday.
    pub const WORKING: Weekdays = Weekdays { on: [true, true, true, true, true, false, false] };
    /// Monday to Thursday.
    pub const MONDAY_TO_THURSDAY: Weekdays = Weekdays { on: [true, true, true, true, false, false, false] };
    /// The whole week.
    pub const ALL: Weekdays = Weekdays { on: [true; WEEK as usize] };

    /// Whether a day, 0 for Monday, is in the set.
    pub fn contains(&self, day: usize) -> bool {
        self.on[day]
    }
}

impl fmt::Display for Weekdays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days: Vec<&str> = DAY_NAMES
            .into_iter()
            .enumerate()
            .filter(|&(day, _)| self.on[day])
            .map(|(_, name)| name)
            .collect();
        f.write_str(&days.join(","))
    }
}

impl FromStr for Weekdays {
    type Err = SwitchError;

    fn from_str(text: &str) -> Result<Self, SwitchError> {
        let wrong = |hint: String| SwitchError {
            switch: "days",
            value: text.to_string(),
            hint,
            choices: "write days with commas between, as in mon,wed, or a range, as in mon-fri".to_string(),
        };
        let day = |name: &str| {
            let name = name.trim();
            let place = DAY_NAMES.iter().position(|&day| day == name.to_ascii_lowercase());
            place.ok_or_else(|| wrong(format!(", and no day is `{name}`{}", spelling::hint(name, DAY_NAMES))))
        };
        let mut on = [false; WEEK as usize];
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (day(first)?, day(last)?);
            if first > last {
                return Err(wrong(", and a week begins on mon".to_string()));
            }
            on[first..=last].fill(true);
        }
        Ok(Weekdays { on })
    }
}

/// What the weeks of a log are counted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeekFrom {
    /// Its first job, [`Calendar::from_first_job`]: a machine may be empty for weeks after its clock begins.
    #[default]
    FirstJob,
    /// Its clock, whether there are jobs or not.
    Log,
}

impl WeekFrom {
    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            WeekFrom::FirstJob => "first-job",
            WeekFrom::Log => "log",
        }
    }
}

impl FromStr for WeekFrom {
    type Err = String;
    fn from_str(text: &str) -> Result<WeekFrom, String> {
        match text {
            "first-job" => Ok(WeekFrom::FirstJob),
            "log" => Ok(WeekFrom::Log),
            _ => Err(spelling::unknown("rule", text, "first-job or log")),
        }
    }
}

/// A place in the weeks of a log. Weeks start on Monday at midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeekTime {
    /// Week, 1 for the first full one of the log; 0 or less before it.
    pub week: i64,
    /// Day of the week, 0 for Monday.
    pub day: usize,
    /// Time on the clock since that day's midnight.
    pub clock: Span,
}

impl WeekTime {
    /// Whether it is in one of so many weeks from `first` on.
    pub fn is_within(&self, first: i64, weeks: i64) -> bool {
        (first..first.saturating_add(weeks)).contains(&self.week)
    }

    /// Time on the clock since the Monday of week `first`, at midnight, with all days 24 hours long.
    pub fn since_monday_of(&self, first: i64) -> Span {
        let days = (self.week - first) * WEEK + self.day as i64;
        Span::from_micros(days * DAY) + self.clock
    }
}

/// Turns the submit times of one log into places in its weeks.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// Unix time of submit time 0, in microseconds; `None` if the log does not say.
    start: Option<i64>,
    zone: TimeZone,
    /// Number of the Monday that starts week 1, in days since 1970.
    first_monday: i64,
}

impl Calendar {
    /// The calendar of a log in its own zone, or in `zone` if given; UTC if neither is known.
    ///
    /// # Errors
    /// If the header names a zone that is not in the tz database.
    pub fn new(header: &Header, zone: Option<&Zone>) -> Result<Calendar, SwitchError> {
        let zone = match zone {
            Some(zone) => zone.zone.clone(),
            None => Zone::of_header(header)?.map_or(TimeZone::UTC, |zone| zone.zone),
        };
        let start = header.unix_start_time.and_then(|seconds| seconds.checked_mul(1_000_000));
        let mut calendar = Calendar { start, zone, first_monday: 0 };
        let (day, clock) = calendar.day_and_clock(Span::ZERO);
        // The week of time 0 is full only if it starts with it.
        let begun = clock > Span::ZERO || weekday(day) != 0;
        calendar.first_monday = day - weekday(day) as i64 + if begun { WEEK } else { 0 };
        Ok(calendar)
    }

    /// The same with week 1 where the log has jobs: if its first one comes after the first full week of its clock, week 1 is
    /// the first full one after that job.
    #[must_use]
    pub fn from_first_job(self, first_job: Option<Span>) -> Calendar {
        let Some(first) = first_job.map(|first| self.place(first)).filter(|first| first.week > 1) else {
            return self;
        };
        let begun = first.clock > Span::ZERO || first.day != 0;
        let weeks = first.week - if begun { 0 } else { 1 };
        Calendar { first_monday: self.first_monday + weeks * WEEK, ..self }
    }

    /// The place of a submit time.
    pub fn place(&self, submit: Span) -> WeekTime {
        let (day, clock) = self.day_and_clock(submit);
        let week = (day - self.first_monday).div_euclid(WEEK) + 1;
        WeekTime { week, day: weekday(day), clock }
    }

    /// The submit time at which a week begins: its Monday at midnight on the local clock, or when that day begins where
    /// clocks are changed at midnight. `None` beyond the years that calendars have.
    pub fn start_of_week(&self, week: i64) -> Option<Span> {
        let day = week.checked_sub(1)?.checked_mul(WEEK)?.checked_add(self.first_monday)?;
        let Some(start) = self.start else {
            return Some(Span::from_micros(day.checked_sub(4)?.checked_mul(DAY)?));
        };
        let seconds = jiff::Span::new().try_days(day).ok()?;
        let monday = jiff::civil::date(1970, 1, 1).checked_add(seconds).ok()?;
        let midnight = monday.to_zoned(self.zone.clone()).ok()?.timestamp().as_microsecond();
        Some(Span::from_micros(midnight.checked_sub(start)?))
    }

    /// Days since 1970 on the local calendar, and the time on the local clock.
    fn day_and_clock(&self, submit: Span) -> (i64, Span) {
        let Some(start) = self.start else {
            // 4 days after 1970-01-01, a Thursday, is a Monday.
            let micros = submit.as_micros();
            return (micros.div_euclid(DAY) + 4, Span::from_micros(micros.rem_euclid(DAY)));
        };
        let instant = start.saturating_add(submit.as_micros());
        let Ok(timestamp) = Timestamp::from_microsecond(instant) else {
            // Beyond the years 9999 and -9999, zones mean nothing.
            return (instant.div_euclid(DAY), Span::from_micros(instant.rem_euclid(DAY)));
        };
        let offset = self.zone.to_offset(timestamp).seconds();
        let local = instant + i64::from(offset) * 1_000_000;
        (local.div_euclid(DAY), Span::from_micros(local.rem_euclid(DAY)))
    }

    /// A submit time as people write it, such as `1996-09-23T14:00:31+02:00[Europe/Stockholm]`; `None` if the
    /// log has no clock.
    pub fn date(&self, submit: Span) -> Option<String> {
        let timestamp = Timestamp::from_microsecond(self.start?.checked_add(submit.as_micros())?).ok()?;
        Some(Zoned::new(timestamp, self.zone.clone()).to_string())
    }
}

/// The day of a Unix time in UTC, as in `2024-03-01`; nothing if it is beyond what a calendar has.
pub fn day(seconds: i64) -> Option<String> {
    Timestamp::from_second(seconds).ok().map(|at| at.strftime("%Y-%m-%d").to_string())
}

/// Day of the week of a day since 1970, 0 for Monday.
fn weekday(day: i64) -> usize {
    let thursday = Weekday::Thursday.to_monday_zero_offset();
    usize::try_from((day + i64::from(thursday)).rem_euclid(WEEK)).expect("a remainder is not negative")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KTH-SP2 starts on Monday 23 September 1996 at 14:00:31 in Stockholm, which then has summer time.
    const KTH_START: i64 = 843_480_031;
    const HOUR: i64 = 3600;

    fn header(start: Option<i64>, zone: Option<&str>) -> Header {
        let mut header = Header::default();
        if let Some(start) = start {
            header.push_pair("UnixStartTime", &start.to_string());
        }
        if let Some(zone) = zone {
            header.push_pair("TimeZoneString", zone);
        }
        header
    }

    fn place(calendar: &Calendar, secs: i64) -> (i64, usize, Span) {
        let place = calendar.place(Span::from_secs(secs));
        (place.week, place.day, place.clock)
    }

    #[test]
    fn a_log_that_starts_on_a_monday_afternoon_has_its_first_full_week_a_week_later() {
        let calendar = Calendar::new(&header(Some(KTH_START), Some("Europe/Stockholm")), None).unwrap();
        let clock = Span::from_secs(14 * HOUR + 31);

        assert_eq!(place(&calendar, 0), (0, 0, clock));
        assert_eq!(place(&calendar, 7 * 24 * HOUR), (1, 0, clock));
        assert_eq!(calendar.date(Span::ZERO).unwrap(), "1996-09-23T14:00:31+02:00[Europe/Stockholm]");
    }

    /// Summer time ended on 27 October 1996: from then on the clock shows an hour less.
    #[test]
    fn the_clock_follows_summer_time() {
        let calendar = Calendar::new(&header(Some(KTH_START), Some("Europe/Stockholm")), None).unwrap();

        assert_eq!(place(&calendar, 35 * 24 * HOUR), (5, 0, Span::from_secs(13 * HOUR + 31)));
    }

    /// Weeks 5 and 6 lie on either side of the end of summer time: the week between their Mondays has an hour more.
    #[test]
    fn a_week_begins_on_monday_at_midnight_of_the_local_clock() {
        let hours = |weeks: i64, hours: i64| Span::from_secs((weeks * 7 * 24 + hours) * HOUR);
        let of = |start, zone| Calendar::new(&header(start, zone), None).unwrap();
        let kth = of(Some(KTH_START), Some("Europe/Stockholm"));
        let first = hours(1, 0) - Span::from_secs(14 * HOUR + 31);
        assert_eq!(kth.start_of_week(1), Some(first));
        assert_eq!(kth.start_of_week(4), Some(first + hours(3, 0)));
        assert_eq!(kth.start_of_week(5), Some(first + hours(4, 1)));
        assert_eq!(of(None, None).start_of_week(3), Some(hours(2, 0)));
        assert_eq!(of(None, None).start_of_week(0), Some(hours(-1, 0)));
        for calendar in [&kth, &of(None, None)] {
            for week in [-3, 1, 4, 5, 6, 300] {
                let start = calendar.start_of_week(week).unwrap();
                assert_eq!(calendar.place(start), WeekTime { week, day: 0, clock: Span::ZERO });
                assert_eq!(calendar.place(start - Span::from_micros(1)).week, week - 1);
            }
            assert_eq!(calendar.start_of_week(i64::MAX), None);
            assert_eq!(calendar.start_of_week(i64::MIN), None);
        }
    }

    #[test]
    fn another_zone_moves_day_and_hour() {
        let calendar =
            Calendar::new(&header(Some(KTH_START), Some("Europe/Stockholm")), Some(&Zone::north_america()));

        assert_eq!(place(&calendar.unwrap(), 12 * HOUR), (0, 0, Span::from_secs(17 * HOUR + 31)));
    }

    #[test]
    fn a_log_without_a_clock_starts_on_a_full_week() {
        let calendar = Calendar::new(&header(None, None), None).unwrap();

        assert_eq!(place(&calendar, 0), (1, 0, Span::ZERO));
        assert_eq!(place(&calendar, -1), (0, 6, Span::from_secs(24 * HOUR - 1)));
        assert_eq!(place(&calendar, 8 * 24 * HOUR + 5), (2, 1, Span::from_secs(5)));
    }

    #[test]
    fn old_names_of_zones_and_offsets_are_known_and_others_refused() {
        for name in ["US/Pacific", "US/Mountain", "Europe/Luxembourg", "GMT-7", "UTC+05:30", "UTC"] {
            assert_eq!(name.parse::<Zone>().unwrap().to_string(), name);
        }
        for name in ["Mars/Olympus", "GMT-99", "GMT-", ""] {
            assert!(name.parse::<Zone>().is_err(), "{name}");
        }
    }

    #[test]
    fn weekdays_are_read_as_lists_and_ranges() {
        assert_eq!("mon-fri".parse(), Ok(Weekdays::WORKING));
        assert_eq!("Mon,tue, wed-thu".parse(), Ok(Weekdays::MONDAY_TO_THURSDAY));
        assert_eq!(Weekdays::WORKING.to_string().parse(), Ok(Weekdays::WORKING));
        assert!("fri-mon".parse::<Weekdays>().is_err());
        assert!("".parse::<Weekdays>().is_err());
        let said = |text: &str| text.parse::<Weekdays>().unwrap_err().to_string();
        assert_eq!(
            said("mon-fry"),
            "days is `mon-fry`, and no day is `fry` (did you mean fri?); write days with commas between, as in mon,wed, or a \
             range, as in mon-fri"
        );
        assert!(
            said("fri-mon").starts_with("days is `fri-mon`, and a week begins on mon; write"),
            "{}",
            said("fri-mon")
        );
    }
}
