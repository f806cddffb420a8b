//! What a broker knows of one site: the newest row of changes that the site tells, as far as it is complete.

use std::collections::{BTreeMap, BTreeSet};

use brokers::allocation::Book;
use brokers::{Lesson, Predictions};
use scheduler::{JobId, JobSpec, Time};

use super::message::Change;

/// Reports that came before an earlier one, which a broker keeps. Of more the site must tell again.
const EARLY_MAX: usize = 256;

/// One site as its broker sees it.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Among those of all sites.
    pub(super) place: usize,
    pub(super) book: Book,
    pub(super) epoch: u64,
    /// Number of the change that comes next.
    next: u64,
    /// Changes that came too early, by the number of the first.
    early: BTreeMap<u64, Vec<Change>>,
    /// Jobs that execute there and were not believed to fit, as the broker thought of parts there that never started; since when.
    unplaced: BTreeMap<JobId, (JobSpec, Time)>,
    /// Jobs that it has whatever becomes of parts of them that were to start there: that is for the site to say.
    own: BTreeSet<JobId>,
    /// Of the row no decision is known, so what executes there may be a job or a part that was there before.
    is_beginning: bool,
    /// When the site last said what it has, by its own clock.
    pub(super) as_of: Option<Time>,
    /// Counts probes.
    pub(super) probe: u64,
    /// The newest probe that was answered.
    pub(super) answered: u64,
    /// A new row was asked for, or is to be, and none was heard from its beginning.
    pub(super) is_awaited: bool,
    /// One that is newer than the row of this number.
    awaits_after: u64,
    /// One that begins after the site heard this request. Numbers of rows say nothing to a broker that has restarted: what the incarnation
    /// before knew, and the site has forgotten, may arrive once more.
    asked: u64,
    /// The newest request that the row has said it answers.
    answers: u64,
    /// Nothing was heard since the site was gone: what the book has by now was decided here, and may be over unheard of.
    is_unheard: bool,
}

/// What a broker believes of run times, and what it learns of them meanwhile.
pub(super) struct Beliefs<'a> {
    pub(super) predictions: &'a mut Predictions,
    pub(super) lessons: Vec<Lesson>,
    /// Whether a job that leaves a site is the broker's: it starts in parts, or does not.
    pub(super) keeps: &'a dyn Fn(JobId) -> bool,
}

impl View {
    pub(super) fn new(place: usize, book: Book, first: u64) -> View {
        View {
            place,
            book,
            epoch: 0,
            next: 0,
            early: BTreeMap::new(),
            unplaced: BTreeMap::new(),
            own: BTreeSet::new(),
            is_beginning: true,
            as_of: None,
            probe: first,
            answered: first,
            is_awaited: false,
            awaits_after: 0,
            asked: 0,
            answers: 0,
            is_unheard: false,
        }
    }

    /// What is believed of the site is wrong, and only a new row puts it right.
    pub(super) fn awaits_new_row(&mut self) {
        (self.is_awaited, self.awaits_after) = (true, self.epoch);
    }

    /// Nothing is known of the site but by a row that answers this request, or a later one.
    pub(super) fn awaits_answer(&mut self, count: u64) {
        (self.is_awaited, self.asked) = (true, count);
    }

    /// Notes what a site reports, with run times as they are believed. Returns what is known of which row now.
    pub(super) fn hear(
        &mut self,
        epoch: u64,
        first: u64,
        changes: Vec<Change>,
        believed: &mut Beliefs<'_>,
    ) -> (u64, u64) {
        if epoch > self.epoch || (self.is_unheard && epoch == self.epoch) {
            self.is_unheard = false;
            self.epoch = epoch;
            self.begins_row();
        }
        if epoch < self.epoch {
            return (self.epoch, self.next);
        }
        if first > self.next {
            if self.early.len() < EARLY_MAX {
                self.early.insert(first, changes);
            }
            return (self.epoch, self.next);
        }
        self.note(first, &changes, believed);
        while let Some((first, changes)) = self.early.pop_first() {
            if first > self.next {
                self.early.insert(first, changes);
                break;
            }
            self.note(first, &changes, believed);
        }
        // All of the row is known, so far. Of one that an earlier incarnation was told the beginning never comes.
        self.is_awaited &= self.epoch <= self.awaits_after || self.answers < self.asked;
        if !self.is_awaited {
            self.asked = 0;
        }
        (self.epoch, self.next)
    }

    /// The same where users are believed.
    #[cfg(test)]
    pub(super) fn hears(&mut self, epoch: u64, first: u64, changes: Vec<Change>) -> (u64, u64) {
        let predictions = &mut Predictions::default();
        self.hear(epoch, first, changes, &mut Beliefs { predictions, lessons: Vec::new(), keeps: &|_| false })
    }

    /// The site is gone, with all that it had. Should it come back it begins a new row.
    pub(super) fn forget(&mut self) {
        if !self.is_awaited {
            self.epoch += 1;
            self.is_awaited = true;
        }
        self.is_unheard = true;
        self.begins_row();
        let expected: Vec<JobId> = self.book.expected().map(|job| job.id).collect();
        for job in expected {
            self.book.expects_no_more(job);
        }
    }

    /// Nothing is known of the row that comes next.
    fn begins_row(&mut self) {
        self.next = 0;
        self.early.clear();
        self.unplaced.clear();
        self.own.clear();
        self.is_beginning = true;
        self.answers = 0;
        self.book.clear();
    }

    /// A job that waits there is asked for: if it is there still, the site says so.
    pub(super) fn is_asked_for(&mut self, now: Time, job: JobId) {
        self.book.left(now, job);
        self.own.remove(&job);
    }

    /// A part of a job of so many processors is to start there. It has its own already, as far as this broker is concerned.
    pub(super) fn begins(&mut self, now: Time, part: JobSpec, whole: u32, predictions: &mut Predictions) {
        if self.book.has(part.id) {
            // The job was believed to wait elsewhere, too: it is on its way from one site to the other.
            self.own.insert(part.id);
        } else {
            predictions.part_runs(self.place, &mut self.book, now, part, (whole, now));
        }
    }

    /// A part that was to start there does not.
    pub(super) fn takes_back(&mut self, now: Time, part: JobId, predictions: &mut Predictions) {
        if !self.own.contains(&part) {
            // Of one that the site tells of it tells the end, too.
            predictions.part_left(self.place, &mut self.book, now, part);
        }
        self.place_again(now, predictions);
    }

    /// A job waits in the queue of the site, so no part of it has processors there, whatever was decided here before.
    fn queues(&mut self, at: Time, job: JobId) {
        if self.book.running(job).is_some() {
            self.book.left(at, job);
        }
        self.own.insert(job);
    }

    /// What executes there has room in the book by now.
    fn place_again(&mut self, now: Time, predictions: &mut Predictions) {
        let (place, book) = (self.place, &mut self.book);
        self.unplaced.retain(|&job, (spec, since)| {
            let has_room = book.has_room(spec);
            if has_room {
                book.left(now, job);
                book.runs(now, predictions.as_believed(*spec), *since);
                predictions.executes(place, book, job);
            }
            !has_room
        });
    }

    /// Those of the changes that were not known.
    fn note(&mut self, first: u64, changes: &[Change], believed: &mut Beliefs<'_>) {
        let known = usize::try_from(self.next - first).unwrap_or(usize::MAX);
        for change in changes.iter().skip(known) {
            self.next += 1;
            self.as_of = self.as_of.max(Some(change.at()));
            if let Change::Joined { at, job } | Change::JoinedBefore { at, job, .. } = change {
                self.queues(*at, job.id);
            }
            let (place, book) = (self.place, &mut self.book);
            let predictions = &mut *believed.predictions;
            match change {
                Change::Joined { at, job } => book.joined(*at, predictions.believed(*at, *job)),
                Change::JoinedBefore { at, job, overtaker } => {
                    book.joined_before(*at, predictions.believed(*at, *job), *overtaker);
                }
                Change::Decided { at, started } => {
                    self.is_beginning = false;
                    predictions.decided(place, book, *at, started);
                    for &job in started {
                        let waits = book.waits(job).filter(|job| !book.has_room(job));
                        self.unplaced.extend(waits.map(|spec| (job, (spec, *at))));
                    }
                }
                Change::Ended { at, job } => {
                    believed.lessons.extend(predictions.ended(book, *at, *job, None));
                }
                Change::EndedAfter { at, job, run_time } => {
                    believed.lessons.extend(predictions.ended(book, *at, *job, Some(*run_time)));
                }
                Change::Left { at, job } if (believed.keeps)(*job) => {
                    predictions.part_left(place, book, *at, *job);
                }
                Change::Left { at, job } => predictions.left(place, book, *at, *job),
                Change::PartEnded { at, job } => predictions.part_ended(place, book, *at, *job),
                Change::Asked { count, .. } => self.answers = *count,
                Change::Runs { at, job, since } => {
                    if self.is_beginning {
                        self.own.insert(job.id);
                    }
                    predictions.runs(place, book, *at, *job, *since);
                    if !book.has(job.id) {
                        self.unplaced.insert(job.id, (*job, *since));
                    }
                }
                Change::PartRuns { at, part, since, whole } => {
                    if self.is_beginning {
                        self.own.insert(part.id);
                    }
                    predictions.part_runs(place, book, *at, *part, (*whole, *since));
                    if !book.has(part.id) {
                        self.unplaced.insert(part.id, (*part, *since));
                    }
                }
            }
            if let Change::Ended { at, job }
            | Change::EndedAfter { at, job, .. }
            | Change::PartEnded { at, job }
            | Change::Left { at, job } = change
            {
                self.unplaced.remove(job);
                self.own.remove(job);
                self.place_again(*at, &mut *believed.predictions);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use scheduler::strategy::Count;
    use scheduler::{Labels, LocalScheduler, Pass, SiteId, Span};

    use super::*;

    fn joined(id: u64) -> Change {
        let job = JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors: 1,
            requested: Span::from_secs(10),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        Change::Joined { at: Time::ZERO, job }
    }

    #[test]
    fn a_row_is_known_as_far_as_it_is_complete() {
        let mut view = View::new(0, Book::new(LocalScheduler::Easy, Pass::Batch, 4, true), 0);
        assert_eq!(view.hears(5, 1, vec![joined(2)]), (5, 0), "the first is missing");
        assert_eq!(view.hears(5, 0, vec![joined(1)]), (5, 2));
        assert_eq!(view.hears(5, 0, vec![joined(1), joined(2), joined(3)]), (5, 3), "two are known");
        assert_eq!(view.book.load(Count::All).jobs, 3);
        assert_eq!(view.hears(4, 0, vec![joined(7)]), (5, 3), "an older row");
        assert_eq!(view.hears(6, 0, vec![joined(9)]), (6, 1), "a newer one replaces it");
        assert_eq!(view.book.load(Count::All).jobs, 1);
    }

    #[test]
    fn a_row_without_its_beginning_is_no_answer_and_what_is_gone_needs_a_newer_one() {
        let mut view = View::new(0, Book::new(LocalScheduler::Easy, Pass::Batch, 4, true), 0);
        view.awaits_answer(2);
        view.hears(5, 3, vec![joined(4)]);
        assert!(view.is_awaited, "an earlier incarnation was told the beginning");
        view.hears(5, 0, vec![joined(1)]);
        assert!(view.is_awaited, "the same once more, and the site may not keep what came after it");
        let asked = |count| Change::Asked { at: Time::ZERO, count };
        view.hears(6, 0, vec![asked(1), joined(1)]);
        assert!(view.is_awaited, "an earlier incarnation had asked");
        view.hears(7, 0, vec![asked(2), joined(1)]);
        assert!(!view.is_awaited);
        view.forget();
        view.forget();
        assert_eq!(view.hears(7, 2, vec![joined(2)]), (8, 0), "of a row that is over");
        assert!(view.is_awaited && !view.book.has(JobId(2)));
        assert_eq!(view.hears(8, 0, vec![joined(3)]), (8, 1), "a row of its own accord");
        assert!(!view.is_awaited && view.book.has(JobId(3)));
    }

    #[test]
    fn what_was_sent_to_a_site_that_was_gone_is_there_if_its_next_row_says_so() {
        let mut view = View::new(0, Book::new(LocalScheduler::Easy, Pass::Batch, 4, true), 0);
        view.hears(5, 0, vec![joined(1)]);
        view.forget();
        // A part that starts there, and ends before the row begins of which the broker hears first.
        let Change::Joined { at, job } = joined(2) else { unreachable!("it joins") };
        view.book.runs(at, job, at);
        view.hears(6, 0, vec![joined(3)]);
        assert!(!view.book.has(JobId(2)) && view.book.has(JobId(3)));
        view.book.runs(at, job, at);
        view.hears(6, 1, vec![joined(4)]);
        assert!(view.book.has(JobId(2)), "of what was sent since the row will tell");
    }
    #[test]
    fn a_job_that_comes_to_the_queue_is_not_the_part_that_was_to_start_there() {
        let mut view = View::new(0, Book::new(LocalScheduler::Easy, Pass::Batch, 4, true), 0);
        view.hears(5, 0, vec![]);
        let Change::Joined { at, job } = joined(1) else { unreachable!("it joins") };
        view.begins(at, job, job.processors, &mut Predictions::default());
        view.hears(5, 0, vec![joined(1)]);
        assert!(view.book.has_waiting(JobId(1)), "who had it is gone, and here it was taken over");
        view.takes_back(at, JobId(1), &mut Predictions::default());
        assert!(view.book.has_waiting(JobId(1)), "it is no part");
        view.hears(5, 1, vec![Change::Left { at, job: JobId(1) }]);
        view.begins(at, job, job.processors, &mut Predictions::default());
        view.takes_back(at, JobId(1), &mut Predictions::default());
        assert!(!view.book.has(JobId(1)), "a later part is one");
        view.hears(5, 2, vec![joined(1)]);
        view.begins(at, job, job.processors, &mut Predictions::default());
        view.takes_back(at, JobId(1), &mut Predictions::default());
        assert!(
            view.book.has_waiting(JobId(1)),
            "it came there before it was to start in parts elsewhere and there"
        );
    }

    #[test]
    fn what_a_new_row_begins_with_is_no_part_that_was_to_start_there() {
        let mut view = View::new(0, Book::new(LocalScheduler::Easy, Pass::Batch, 4, true), 0);
        view.hears(5, 0, vec![]);
        let Change::Joined { at, job } = joined(1) else { unreachable!("it joins") };
        let decided = Change::Decided { at, started: Vec::new() };
        view.begins(at, job, job.processors, &mut Predictions::default());
        view.hears(6, 0, vec![decided.clone(), joined(1)]);
        view.takes_back(at, JobId(1), &mut Predictions::default());
        assert!(view.book.has_waiting(JobId(1)), "it came there whole");
        view.is_asked_for(at, JobId(1));
        view.begins(at, job, job.processors, &mut Predictions::default());
        view.takes_back(at, JobId(1), &mut Predictions::default());
        assert!(!view.book.has(JobId(1)), "a part of what was asked back is one");
        view.begins(at, job, job.processors, &mut Predictions::default());
        view.hears(7, 0, vec![Change::Runs { at, job, since: at }, decided]);
        view.takes_back(at, JobId(1), &mut Predictions::default());
        assert!(view.book.running(JobId(1)).is_some(), "it executes there");
    }
}
