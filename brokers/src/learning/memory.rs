//! What a dispatcher must not forget if it is to decide after a crash as it would have without.
//!
//! A rule says what it knows of a [`Subject`] as [`Words`], and takes them back. Whoever stores them need not know what they
//! mean. Only what changed is told, so that what is written for an event does not grow with what was learned.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

/// What is known of one subject. LinUCB's model of a site needs all twelve, and so does a job that was placed.
pub type Words = [u64; 12];

/// What something is known of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// Nothing in particular.
    Rule,
    /// How far random numbers are.
    Chance,
    /// The site at a place.
    Site(u32),
    /// A job that has not ended.
    Job(JobId),
    /// A user.
    User(i32),
    /// A user, as to the site at a place.
    UserAt(i32, u32),
}

/// A job that has not ended and was at a site once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Which one.
    pub job: JobSpec,
    /// When it was given to a site for the first time.
    pub first: Time,
    /// Where it is; none if it waits for a site again.
    pub at: Option<PlacedAt>,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedAt {
    /// The place of the site.
    pub site: u32,
    /// When it was given to it.
    pub since: Time,
    /// When it entered the queue there, if that is known.
    pub queued: Option<Time>,
    /// When it started, if that is known.
    pub started: Option<Time>,
    /// Whether it was called back, and has not come.
    pub is_called: bool,
}

/// In the word of the site of a job that was placed, beside the site: whether it is at one.
const IS_AT: u64 = 1 << 32;
/// Whether it is known when it entered the queue there.
const IS_QUEUED: u64 = 1 << 33;
/// Whether it is known when it started.
const HAS_STARTED: u64 = 1 << 34;
/// Whether it was called back.
const IS_CALLED: u64 = 1 << 35;

impl Placed {
    /// All but the number of the job as words, of which [`Placed::from_words`] makes it again. What is unknown is 0.
    pub fn words(&self) -> Words {
        let Placed { job, first, at } = self;
        let Labels { user, group, executable, queue, memory } = job.labels;
        let label = |label: i32| label.wrapping_add(1).cast_unsigned();
        let time = |time: Option<Time>| time.map_or(0, |time| time.as_micros().cast_unsigned());
        let place = at.map_or(0, |at| {
            let flags = [
                (true, IS_AT),
                (at.queued.is_some(), IS_QUEUED),
                (at.started.is_some(), HAS_STARTED),
                (at.is_called, IS_CALLED),
            ];
            let flags = flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| flag).sum::<u64>();
            flags | u64::from(at.site)
        });
        [
            time(Some(job.submit)),
            pair(job.processors, job.origin.0),
            job.requested.as_micros().cast_unsigned(),
            pair(label(user), label(group)),
            pair(label(executable), label(queue)),
            memory.wrapping_add(1).cast_unsigned(),
            job.payload,
            time(Some(*first)),
            place,
            time(at.map(|at| at.since)),
            time(at.and_then(|at| at.queued)),
            time(at.and_then(|at| at.started)),
        ]
    }

    /// None if these are words of no job.
    pub fn from_words(id: JobId, words: &Words) -> Option<Placed> {
        let &[
            submit,
            sizes,
            requested,
            people,
            programs,
            memory,
            payload,
            first,
            place,
            since,
            queued,
            started,
        ] = words;
        let label = |label: u32| label.cast_signed().wrapping_sub(1);
        let time = |word: u64| Time::from_micros(word.cast_signed());
        let has = |flag: u64| place & flag != 0;
        let ((processors, origin), (user, group), (executable, queue)) =
            (unpair(sizes), unpair(people), unpair(programs));
        let memory = memory.cast_signed().wrapping_sub(1);
        let placed = Placed {
            job: JobSpec {
                id,
                submit: time(submit),
                processors,
                requested: Span::from_micros(requested.cast_signed()),
                labels: Labels {
                    user: label(user),
                    group: label(group),
                    executable: label(executable),
                    queue: label(queue),
                    memory,
                },
                origin: SiteId(origin),
                payload,
            },
            first: time(first),
            at: has(IS_AT).then(|| PlacedAt {
                site: unpair(place).1,
                since: time(since),
                queued: has(IS_QUEUED).then(|| time(queued)),
                started: has(HAS_STARTED).then(|| time(started)),
                is_called: has(IS_CALLED),
            }),
        };
        (placed.words() == *words).then_some(placed)
    }
}

/// Two halves of a word.
fn pair(high: u32, low: u32) -> u64 {
    (u64::from(high) << 32) | u64::from(low)
}

fn unpair(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, (word & u64::from(u32::MAX)) as u32)
}

/// What changed in what must not be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// What is known of a subject; none if nothing is any more.
    Known(Subject, Option<Words>),
    /// Where a job is.
    Placed(Placed),
    /// A job need not be known of any more.
    Gone(JobId),
}

/// Words of which the first are these.
pub(super) fn words<const N: usize>(first: [u64; N]) -> Words {
    let mut words = Words::default();
    words[..N].copy_from_slice(&first);
    words
}

/// Two words of a sum.
pub(super) fn halves(sum: i128) -> [u64; 2] {
    let bits = sum.cast_unsigned();
    [(bits >> 64) as u64, (bits & u128::from(u64::MAX)) as u64]
}

/// The sum of two words.
pub(super) fn whole(high: u64, low: u64) -> i128 {
    ((u128::from(high) << 64) | u128::from(low)).cast_signed()
}

/// A number that can have been computed.
pub(super) fn number(word: u64) -> Option<f64> {
    Some(f64::from_bits(word)).filter(|number| number.is_finite())
}

/// A truth.
pub(super) fn truth(word: u64) -> Option<bool> {
    match word {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// A sum of times that can have been summed: jobs are fewer than 2^62, and each takes less than 2^63.
pub(super) fn sum(high: u64, low: u64) -> Option<i128> {
    Some(whole(high, low)).filter(|sum| (0..1 << 125).contains(sum))
}

/// What was told so far, and what may have changed since.
#[derive(Clone, Debug, Default)]
pub(super) struct Diary {
    /// What a rule knows that was told nothing.
    pub(super) at_first: BTreeMap<Subject, Words>,
    pub(super) known: BTreeMap<Subject, Words>,
    pub(super) placed: BTreeMap<JobId, Placed>,
    /// Jobs that something happened to, with their users.
    pub(super) jobs: BTreeSet<(JobId, i32)>,
    /// Whether the rule was asked.
    pub(super) was_asked: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_was_placed_is_made_again_of_its_words_and_of_no_others() {
        let [submit, first, since, queued] = [-5, 7, 8, 9].map(Time::from_secs);
        let labels = Labels { user: i32::MAX, group: i32::MIN, executable: 0, queue: -1, memory: i64::MAX };
        let job = JobSpec {
            id: JobId(u64::MAX),
            submit,
            processors: u32::MAX,
            requested: Span::from_secs(60),
            labels,
            origin: SiteId(3),
            payload: u64::MAX,
        };
        let at = PlacedAt { site: u32::MAX, since, queued: Some(queued), started: None, is_called: true };
        let later = PlacedAt { queued: None, started: Some(since), is_called: false, ..at };
        for at in [None, Some(at), Some(later)] {
            let placed = Placed { job, first, at };
            let words = placed.words();
            assert_eq!(Placed::from_words(job.id, &words), Some(placed));
            let mut other = words;
            // When it started, or where it is not.
            other[if at == Some(later) { 10 } else { 11 }] += 1;
            assert_eq!(Placed::from_words(job.id, &other), None, "{at:?}");
            other = words;
            other[8] |= 1 << 36;
            assert_eq!(Placed::from_words(job.id, &other), None, "{at:?}");
        }
    }
}
