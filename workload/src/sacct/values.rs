//! What fields of a dump say: ids, moments, durations, memory, states.

use jiff::Timestamp;
use jiff::civil::DateTime;
use scheduler::Span;

use crate::calendar::Zone;
use crate::swf::{Number, NumberError};

const TIME: &str = "not a time as sacct writes it; unset SLURM_TIME_FORMAT, or set it to %s, and write Unknown \
                    where there is none";
const DURATION: &str = "not [days-]hours:minutes:seconds; correct it";
const MEMORY: &str = "not an amount of memory (4000M, 4Gc, 16Gn); correct it, or leave it empty";
const ID: &str = "not a job (123, 123_4, 123+0) nor a step (123.batch); correct it, or remove the line";

/// A part of a job that has a line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The job is all there is.
    Whole,
    /// A task of an array: `123_4`.
    Task(i64),
    /// A component of a heterogeneous job: `123+1`.
    Component(i64),
}

/// What a job id is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    /// A job, a task or a component.
    Job(i64, Part),
    /// A step of one of these: `123.batch`, `123_4.0`.
    Step,
    /// All tasks of an array that have not started: `123_[5-9%2]`, `123_[1,3,...]`.
    ArrayRest,
}

/// Takes a job id apart.
///
/// # Errors
/// What is wrong with it, and what helps.
pub(super) fn id(text: &[u8]) -> Result<Id, &'static str> {
    let text = std::str::from_utf8(text).map_err(|_| ID)?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| digits).ok_or(ID)
    };
    // Before steps: what stands in brackets may have dots, as long lists are cut and end in three.
    if let Some((job, _)) = text.split_once("_[") {
        number(job)?;
        return Ok(Id::ArrayRest);
    }
    let whole = text.split_once('.').map_or(text, |(job, _)| job);
    let id = if let Some((job, task)) = whole.split_once('_') {
        Id::Job(number(job)?, Part::Task(number(task)?))
    } else if let Some((job, component)) = whole.split_once('+') {
        Id::Job(number(job)?, Part::Component(number(component)?))
    } else {
        Id::Job(number(whole)?, Part::Whole)
    };
    Ok(if whole.len() < text.len() { Id::Step } else { id })
}

/// A time as far as a dump says it: since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// The earlier reading where clocks are set back, else the only one.
    pub(super) earlier: Span,
    /// The later reading.
    pub(super) later: Span,
    /// Whether a change of clocks makes the local time happen twice, or never.
    pub(super) changed: bool,
}

impl Moment {
    /// The earlier reading, or the later one if only that is not before `bound`.
    pub(super) fn not_before(self, bound: Span) -> Span {
        if self.earlier < bound && self.later >= bound { self.later } else { self.earlier }
    }
}

/// Reads a moment: ISO with or without an offset, or a Unix time. `None` if there is none.
///
/// # Errors
/// What is wrong with it, and what helps.
pub(super) fn moment(text: &[u8], zone: &Zone) -> Result<Option<Moment>, &'static str> {
    if is_none(text) {
        return Ok(None);
    }
    let at = |micros| {
        let time = Span::from_micros(micros);
        Some(Moment { earlier: time, later: time, changed: false })
    };
    if let Ok(number) = Number::parse(text) {
        let micros = number.seconds().map_err(|_| TIME)?.as_micros();
        return Timestamp::from_microsecond(micros).map(|_| at(micros)).map_err(|_| TIME);
    }
    let text = std::str::from_utf8(text).map_err(|_| TIME)?;
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(at(time.as_microsecond()));
    }
    let local: DateTime = text.parse().map_err(|_| TIME)?;
    let (earlier, later, changed) = zone.unix_times(local).ok_or(TIME)?;
    let (earlier, later) = (Span::from_micros(earlier), Span::from_micros(later));
    Ok(Some(Moment { earlier, later, changed }))
}

/// Reads `D-HH:MM:SS`, `HH:MM:SS` or `MM:SS.mmm`. `None` if there is none, or no limit.
///
/// # Errors
/// What is wrong with it, and what helps.
pub(super) fn duration(text: &[u8]) -> Result<Option<Span>, &'static str> {
    if is_none(text) || is_no_limit(text) {
        return Ok(None);
    }
    let text = std::str::from_utf8(text).map_err(|_| DURATION)?;
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let number = |text: &str| text.parse::<u32>().map(i64::from).map_err(|_| DURATION);
    let (minutes, seconds) = clock.rsplit_once(':').ok_or(DURATION)?;
    let (hours, minutes) = minutes.split_once(':').unwrap_or(("0", minutes));
    if !seconds.starts_with(|digit: char| digit.is_ascii_digit()) {
        return Err(DURATION);
    }
    let seconds = Number::parse(seconds.as_bytes()).and_then(Number::seconds).map_err(|_| DURATION)?;
    let whole = (number(days)? * 24 + number(hours)?) * 60 + number(minutes)?;
    whole
        .checked_mul(60_000_000)
        .and_then(|micros| micros.checked_add(seconds.as_micros()))
        .map(|micros| Some(Span::from_micros(micros)))
        .ok_or(DURATION)
}

/// Reads a number of units of so many seconds. `None` if there is none, or no limit.
///
/// # Errors
/// What is wrong with it, and what helps.
pub(super) fn raw(text: &[u8], unit: i64) -> Result<Option<Span>, &'static str> {
    if is_none(text) || is_no_limit(text) {
        return Ok(None);
    }
    let time = Number::parse(text).and_then(Number::seconds).map_err(|error| error.remedy())?;
    let micros = time.as_micros().checked_mul(unit).ok_or(DURATION)?;
    Ok(Some(Span::from_micros(micros)).filter(|&time| time >= Span::ZERO))
}

/// A count, which old versions print with a unit, `1K` for 1024. Such a unit may stand for less than the whole number, so that
/// what has a fraction is no count.
///
/// # Errors
/// What is wrong with it, and what helps.
pub(super) fn count(text: &[u8]) -> Result<i32, &'static str> {
    let (number, unit) = match text {
        [number @ .., b'K' | b'k'] => (number, 1 << 10),
        [number @ .., b'M' | b'm'] => (number, 1 << 20),
        number => (number, 1),
    };
    let (whole, fraction) = Number::parse(number).map_err(NumberError::remedy)?.whole();
    if fraction {
        return Err(NumberError::NotANumber.remedy());
    }
    let count = whole.checked_mul(unit).and_then(|count| i32::try_from(count).ok());
    count.ok_or(NumberError::TooLarge.remedy())
}

/// Memory per processor in KB, of a job of so many processors and nodes; -1 if it is not known.
///
/// # Errors
/// What is wrong with it, and what helps.
pub(super) fn memory(text: &[u8], processors: i32, nodes: i32) -> Result<i64, &'static str> {
    if is_none(text) || text == b"?" {
        return Ok(-1);
    }
    let (text, per) = match text {
        [amount @ .., per @ (b'c' | b'n' | b'C' | b'N')] => (amount, Some(per.to_ascii_lowercase())),
        amount => (amount, None),
    };
    let (number, kib) = match text {
        [number @ .., b'K' | b'k'] => (number, 1),
        [number @ .., b'M' | b'm'] => (number, 1 << 10),
        [number @ .., b'G' | b'g'] => (number, 1 << 20),
        [number @ .., b'T' | b't'] => (number, 1 << 30),
        [number @ .., b'P' | b'p'] => (number, 1 << 40),
        number => (number, 1 << 10),
    };
    // Millionths are kept: `1.50G` is what sacct prints.
    let micros = Number::parse(number).and_then(Number::seconds).map_err(|_| MEMORY)?.as_micros();
    let of_all = i128::from(micros) * kib / 1_000_000;
    let known = |count: i32| (count > 0).then_some(i128::from(count));
    let share = match per {
        Some(b'c') => Some(of_all),
        Some(_) => known(nodes).zip(known(processors)).map(|(nodes, processors)| of_all * nodes / processors),
        None => known(processors).map(|processors| of_all / processors),
    };
    let share = share.filter(|&share| share > 0).unwrap_or(-1);
    i64::try_from(share).map_err(|_| MEMORY)
}

/// What a state means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The job has ended, with this status of SWF.
    Ended(i32),
    /// It waits or runs.
    Unfinished,
    /// Not one of Slurm's.
    Unknown,
}

const ENDED: [(&str, i32); 12] = [
    ("COMPLETED", 1),
    ("FAILED", 0),
    ("TIMEOUT", 0),
    ("NODE_FAIL", 0),
    ("OUT_OF_MEMORY", 0),
    ("BOOT_FAIL", 0),
    ("DEADLINE", 0),
    ("LAUNCH_FAILED", 0),
    ("PREEMPTED", 0),
    ("REQUEUED", 0),
    ("CANCELLED", 5),
    ("REVOKED", 5),
];

const UNFINISHED: [&str; 10] = [
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETING",
    "CONFIGURING",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESIZING",
    "SIGNALING",
    "STAGE_OUT",
];

/// Reads a state; `CANCELLED by 1000` is one, and `OUT_OF_ME+` where it was cut.
pub(super) fn state(text: &[u8]) -> State {
    let word = text.split(|&byte| byte == b' ').next().unwrap_or_default();
    let is = |name: &str| match word.strip_suffix(b"+") {
        Some(cut) => !cut.is_empty() && name.as_bytes().starts_with(cut),
        None => name.as_bytes() == word,
    };
    if let Some(&(_, status)) = ENDED.iter().find(|(name, _)| is(name)) {
        State::Ended(status)
    } else if UNFINISHED.iter().any(|name| is(name)) {
        State::Unfinished
    } else {
        State::Unknown
    }
}

/// Whether a field says that there is no value.
pub(super) fn is_none(text: &[u8]) -> bool {
    [b"".as_slice(), b"Unknown", b"None", b"N/A", b"INVALID"].contains(&text)
}

fn is_no_limit(text: &[u8]) -> bool {
    [b"UNLIMITED".as_slice(), b"Partition_Limit"].contains(&text)
}
