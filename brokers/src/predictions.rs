//! What a broker believes of run times: what users say, or what it predicts by itself.
//!
//! Whoever keeps the books of sites asks here what to write into them. With an [`Estimator`] each job is in them with the run time that
//! was predicted when it was first heard of, and a job that has run past that gets another before the next decision. What is learned
//! is learned from ends that sites tell, when they tell: from a site that tells nothing, nothing. Jobs are sent as users described
//! them.
//!
//! A job that starts in parts at several sites is one job: predicted once, by all of its processors, in the books of all its sites alike,
//! corrected once for all of them, and learned from once, by the end that the site tells by which it is known.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::local::Estimator;
use scheduler::{JobId, JobSpec, Span, Time};

use crate::allocation::Book;

/// Jobs of which something is predicted, before those are looked for that nobody knows any more. Arbitrary; looking costs as much as
/// there are jobs.
const FORGET_AT: usize = 1_000;

/// What is believed of run times.
#[derive(Clone, Debug, Default)]
pub struct Predictions(Option<Box<Predicting>>);

/// A job that has ended, as its user described it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lesson {
    /// The job.
    pub job: JobSpec,
    /// When it ended, or the newest end that was told of before.
    pub at: Time,
    /// How long it ran.
    pub run_time: Span,
}

#[derive(Clone, Debug)]
struct Predicting {
    estimator: Box<dyn Estimator>,
    /// Of the newest that was told: facts of several sites come in any order.
    now: Time,
    jobs: BTreeMap<JobId, Believed>,
    /// Predicted ends of what executes, with the places of the sites. Of what does not any more, some are left over.
    ends: BTreeSet<(Time, usize, JobId)>,
    /// Places of the parts of jobs that are in parts.
    apart: BTreeMap<JobId, BTreeSet<usize>>,
    forget_at: usize,
}

#[derive(Clone, Copy, Debug)]
struct Believed {
    /// What the user asks for, of the whole job.
    processors: u32,
    requested: Span,
    predicted: Span,
    corrections: u32,
}

impl Predicting {
    fn advance(&mut self, at: Time) -> Time {
        self.now = self.now.max(at);
        self.now
    }

    fn described(&self, job: JobSpec) -> JobSpec {
        let Some(&Believed { processors, requested, .. }) = self.jobs.get(&job.id) else { return job };
        JobSpec { processors, requested, ..job }
    }

    /// Nothing of a job is at a site any more.
    fn leaves(&mut self, place: usize, job: JobId) {
        if let Some(places) = self.apart.get_mut(&job) {
            places.remove(&place);
            if places.is_empty() {
                self.apart.remove(&job);
            }
        }
    }

    fn started(&mut self, place: usize, book: &Book, job: JobId) {
        // Where jobs share nodes ends move: the book knows who is past.
        if let Some((job, since)) = book.running(job).filter(|_| !book.is_shared()) {
            self.ends.insert((since.saturating_add(job.requested), place, job.id));
        }
    }
}

impl Predictions {
    /// Somebody predicts, who has learned nothing or something.
    pub fn by(estimator: Box<dyn Estimator>) -> Predictions {
        let predicting = Predicting {
            estimator,
            now: Time::from_micros(i64::MIN),
            jobs: BTreeMap::new(),
            ends: BTreeSet::new(),
            apart: BTreeMap::new(),
            forget_at: FORGET_AT,
        };
        Predictions(Some(Box::new(predicting)))
    }

    /// Whether users are not believed.
    pub fn are_made(&self) -> bool {
        self.0.is_some()
    }

    /// A job as it is to be planned with: predicted, if it is heard of for the first time.
    pub fn believed(&mut self, at: Time, job: JobSpec) -> JobSpec {
        let Some(by) = &mut self.0 else { return job };
        let now = by.advance(at);
        let estimator = &mut by.estimator;
        let believed = by.jobs.entry(job.id).or_insert_with(|| Believed {
            processors: job.processors,
            requested: job.requested,
            predicted: estimator.predict(now, &job).max(Span::from_micros(1)),
            corrections: 0,
        });
        JobSpec { requested: believed.predicted, ..job }
    }

    /// A job as it is planned with, if anything was predicted of it; else as it is.
    pub fn as_believed(&self, job: JobSpec) -> JobSpec {
        let believed = self.0.as_ref().and_then(|by| by.jobs.get(&job.id));
        JobSpec { requested: believed.map_or(job.requested, |believed| believed.predicted), ..job }
    }

    /// Whether something was predicted of a job.
    pub fn has(&self, job: JobId) -> bool {
        self.0.as_ref().is_some_and(|by| by.jobs.contains_key(&job))
    }

    /// A job as its user described it.
    pub fn described(&self, job: JobSpec) -> JobSpec {
        self.0.as_ref().map_or(job, |by| by.described(job))
    }

    /// Nothing will be heard of a job any more.
    pub fn forget(&mut self, job: JobId) {
        if let Some(by) = &mut self.0 {
            by.jobs.remove(&job);
            by.apart.remove(&job);
        }
    }

    /// Notes in the book of the site at this place that it has decided, and these jobs have started.
    pub fn decided(&mut self, place: usize, book: &mut Book, at: Time, started: &[JobId]) {
        book.decided(at, started);
        if let Some(by) = &mut self.0 {
            started.iter().for_each(|&job| by.started(place, book, job));
        }
    }

    /// Notes that a job executes there.
    pub fn runs(&mut self, place: usize, book: &mut Book, at: Time, job: JobSpec, since: Time) {
        let job = self.believed(at, job);
        book.runs(at, job, since);
        if let Some(by) = &mut self.0 {
            by.started(place, book, job.id);
        }
    }

    /// Notes that a part of a job of so many processors executes there.
    pub fn part_runs(
        &mut self,
        place: usize,
        book: &mut Book,
        at: Time,
        part: JobSpec,
        (whole, since): (u32, Time),
    ) {
        let believed = self.believed(at, JobSpec { processors: whole, ..part });
        book.runs(at, JobSpec { processors: part.processors, ..believed }, since);
        if let Some(by) = &mut self.0 {
            by.apart.entry(part.id).or_default().insert(place);
            by.started(place, book, part.id);
        }
    }

    /// Notes that a part of a job has ended there which another site tells the end of.
    pub fn part_ended(&mut self, place: usize, book: &mut Book, at: Time, job: JobId) {
        book.ended(at, job);
        if let Some(by) = &mut self.0 {
            by.advance(at);
            by.leaves(place, job);
        }
    }

    /// Notes that a part of a job is not there any more, or never was.
    pub fn part_left(&mut self, place: usize, book: &mut Book, at: Time, job: JobId) {
        book.left(at, job);
        if let Some(by) = &mut self.0 {
            by.leaves(place, job);
        }
    }

    /// Notes that a job that was in no book executes in this one.
    pub fn executes(&mut self, place: usize, book: &Book, job: JobId) {
        if let Some(by) = &mut self.0 {
            by.started(place, book, job);
        }
    }

    /// Notes that a job has ended there, and learns from it, if it is known when it began. Where jobs share nodes the site tells how long it
    /// would have taken on idle ones of full power.
    pub fn ended(&mut self, book: &mut Book, at: Time, job: JobId, run_time: Option<Span>) -> Option<Lesson> {
        let ran = book.running(job);
        book.ended(at, job);
        let by = self.0.as_mut()?;
        let lesson = ran.map(|(job, since)| Lesson {
            job: by.described(job),
            at: by.advance(at),
            run_time: run_time.unwrap_or_else(|| at.since(since)).max(Span::ZERO),
        });
        by.jobs.remove(&job);
        by.apart.remove(&job);
        let Lesson { job, at, run_time } = lesson?;
        by.estimator.learn(at, &job, run_time);
        lesson
    }

    /// Learns from a job that has ended, as its user described it, where no book is kept.
    pub fn executed(&mut self, at: Time, job: JobSpec, run_time: Span) -> Option<Lesson> {
        let by = self.0.as_mut()?;
        by.jobs.remove(&job.id);
        let lesson = Lesson { job, at: by.advance(at), run_time: run_time.max(Span::ZERO) };
        by.estimator.learn(lesson.at, &lesson.job, lesson.run_time);
        Some(lesson)
    }

    /// Notes that a job is not there any more. It is forgotten, unless parts of it are at other sites.
    pub fn left(&mut self, place: usize, book: &mut Book, at: Time, job: JobId) {
        self.part_left(place, book, at, job);
        if let Some(by) = self.0.as_mut().filter(|by| !by.apart.contains_key(&job)) {
            by.jobs.remove(&job);
        }
    }

    /// Learns again what was learned before whoever keeps the books restarted.
    pub fn recall(&mut self, lesson: &Lesson) {
        if let Some(by) = &mut self.0 {
            let now = by.advance(lesson.at);
            by.estimator.learn(now, &lesson.job, lesson.run_time);
        }
    }

    /// The next job that executes past what was predicted, with the place of its site, whose book is to be [corrected](Self::correct).
    pub fn overdue(&self, now: Time) -> Option<(usize, JobId)> {
        let &(end, place, job) = self.0.as_ref()?.ends.first()?;
        (end <= now).then_some((place, job))
    }

    /// Corrects what is predicted of the job that [`Predictions::overdue`] told, in the book of its site.
    pub fn correct(&mut self, book: &mut Book) {
        let Some(by) = &mut self.0 else { return };
        let Some((end, place, job)) = by.ends.pop_first() else { return };
        let Some((planned, since)) = book.running(job) else { return };
        let Some(believed) = by.jobs.get(&job).copied() else { return };
        // What was left over of a place where it does not execute any more, or of another row.
        if since.saturating_add(planned.requested) != end {
            return;
        }
        if planned.requested < believed.predicted && by.apart.contains_key(&job) {
            // It was corrected as a part elsewhere had run past what was predicted.
            book.expect(job, believed.predicted);
            by.ends.insert((since.saturating_add(believed.predicted), place, job));
            return;
        }
        if planned.requested != believed.predicted {
            return;
        }
        let described = by.described(planned);
        let longer = by.estimator.correct(&described, believed.predicted, believed.corrections);
        if longer > believed.predicted {
            by.jobs.insert(
                job,
                Believed { predicted: longer, corrections: believed.corrections + 1, ..believed },
            );
            book.expect(job, longer);
            by.ends.insert((since.saturating_add(longer), place, job));
        }
    }

    /// Corrects what is predicted of jobs that execute past it by now, in the book of a site where jobs share nodes: they are past it once they
    /// have done more than was predicted to be done on idle nodes. Nothing elsewhere; see [`Predictions::overdue`].
    pub fn correct_shared(&mut self, now: Time, book: &mut Book) {
        let Some(by) = self.0.as_mut().filter(|_| book.is_shared()) else { return };
        for (job, done) in book.past(now).unwrap_or_default() {
            let (Some((planned, _)), Some(&before)) = (book.running(job), by.jobs.get(&job)) else {
                continue;
            };
            let described = JobSpec { requested: before.requested, ..planned };
            let mut believed = before;
            // What another row left in the book is not of this prediction.
            while planned.requested == before.predicted && believed.predicted <= done {
                let longer = by.estimator.correct(&described, believed.predicted, believed.corrections);
                if longer <= believed.predicted {
                    break;
                }
                let corrections = believed.corrections + 1;
                believed = Believed { predicted: longer, corrections, ..believed };
            }
            if believed.predicted > before.predicted {
                by.jobs.insert(job, believed);
                book.expect(job, believed.predicted);
            }
        }
    }

    /// Forgets jobs that nobody knows any more, now and then: those that ended unheard of.
    pub fn tidy(&mut self, is_known: impl Fn(JobId) -> bool) {
        let Some(by) = self.0.as_mut().filter(|by| by.jobs.len() >= by.forget_at) else { return };
        by.jobs.retain(|&job, _| is_known(job));
        by.apart.retain(|job, _| by.jobs.contains_key(job));
        by.forget_at = FORGET_AT + 2 * by.jobs.len();
    }
}

#[cfg(test)]
mod tests {
    use scheduler::strategy::Count;
    use scheduler::{Labels, LocalScheduler, Pass, SiteId};

    use super::*;

    /// Predicts the longest run time so far, corrects by a minute.
    #[derive(Clone, Debug, Default)]
    struct Longest(Span);

    impl Estimator for Longest {
        fn predict(&mut self, _now: Time, job: &JobSpec) -> Span {
            if self.0 > Span::ZERO { self.0 } else { job.requested }
        }

        fn correct(&self, job: &JobSpec, predicted: Span, _before: u32) -> Span {
            (predicted + Span::from_secs(60)).min(job.requested)
        }

        fn learn(&mut self, _now: Time, _job: &JobSpec, run_time: Span) {
            self.0 = self.0.max(run_time);
        }

        fn boxed(&self) -> Box<dyn Estimator> {
            Box::new(self.clone())
        }
    }

    fn job(id: u64) -> JobSpec {
        JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors: 2,
            requested: Span::from_secs(1000),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    /// Seconds times processors of all that the book has.
    fn work(book: &Book) -> i128 {
        book.load(Count::All).work / 1_000_000
    }

    #[test]
    fn what_is_learned_at_an_end_is_in_the_books_from_then_on_and_corrected_when_exceeded() {
        let mut predictions = Predictions::by(Box::new(Longest::default()));
        let mut book = Book::new(LocalScheduler::Easy, Pass::Batch, 2, true);
        let at = Time::from_secs;
        let first = predictions.believed(at(0), job(1));
        assert_eq!(first.requested, Span::from_secs(1000), "nothing is known");
        book.joined(at(0), first);
        predictions.decided(0, &mut book, at(0), &[JobId(1)]);
        let lesson = predictions.ended(&mut book, at(100), JobId(1), None).expect("it ran");
        assert_eq!((lesson.job, lesson.run_time), (job(1), Span::from_secs(100)));

        for id in [2, 3] {
            let believed = predictions.believed(at(100), job(id));
            assert_eq!(believed.requested, Span::from_secs(100));
            assert_eq!(predictions.described(believed), job(id));
            book.joined(at(100), believed);
        }
        predictions.decided(0, &mut book, at(100), &[JobId(2)]);
        assert_eq!(work(&book), 400);
        assert_eq!(predictions.overdue(at(199)), None);
        assert_eq!(predictions.overdue(at(200)), Some((0, JobId(2))));
        predictions.correct(&mut book);
        assert_eq!((work(&book), predictions.overdue(at(200))), (520, None));
        let plan =
            book.plan(at(200), scheduler::strategy::Overrun::Now, None).of(JobId(3)).expect("it waits");
        assert_eq!((plan.start, plan.end), (at(260), at(360)));
        predictions.ended(&mut book, at(210), JobId(2), None);
        assert_eq!(predictions.overdue(at(260)), Some((0, JobId(2))), "what is left over");
        predictions.correct(&mut book);
        assert_eq!((work(&book), predictions.overdue(at(260))), (200, None));
    }

    /// A job of five processors at sites of two and four, of which the first tells its end.
    #[test]
    fn a_job_in_parts_is_predicted_corrected_and_learned_from_once() {
        let mut predictions = Predictions::by(Box::new(Longest(Span::from_secs(100))));
        let mut books = [2u32, 4].map(|size| Book::new(LocalScheduler::Easy, Pass::Batch, size, true));
        let at = Time::from_secs;
        let whole = JobSpec { processors: 5, ..job(1) };
        assert_eq!(predictions.believed(at(0), whole).requested, Span::from_secs(100));
        for (place, processors) in [(0, 2), (1, 3)] {
            let part = JobSpec { processors, ..whole };
            predictions.part_runs(place, &mut books[place], at(0), part, (5, at(0)));
        }
        assert_eq!(books.each_ref().map(work), [200, 300]);

        let mut corrected = 0;
        while let Some((place, JobId(1))) = predictions.overdue(at(100)) {
            predictions.correct(&mut books[place]);
            corrected += 1;
        }
        assert_eq!(corrected, 2, "each book");
        assert_eq!(books.each_ref().map(work), [320, 480], "by one correction of a minute");

        predictions.part_ended(1, &mut books[1], at(130), JobId(1));
        assert_eq!(
            predictions.believed(at(130), job(2)).requested,
            Span::from_secs(100),
            "not from this one"
        );
        let told = Some(Span::from_secs(125));
        let lesson = predictions.ended(&mut books[0], at(130), JobId(1), told).expect("it ran");
        assert_eq!((lesson.job, lesson.run_time), (whole, Span::from_secs(125)), "as the whole");
        assert_eq!(predictions.believed(at(130), job(3)).requested, Span::from_secs(125));
        assert_eq!((books.each_ref().map(work), predictions.overdue(at(159))), ([0, 0], None));
    }

    #[test]
    fn a_job_that_left_a_queue_for_parts_elsewhere_is_not_predicted_anew() {
        let mut predictions = Predictions::by(Box::new(Longest(Span::from_secs(100))));
        let mut books = [2u32, 4].map(|size| Book::new(LocalScheduler::Easy, Pass::Batch, size, true));
        let at = Time::from_secs;
        let joins = predictions.believed(at(0), job(1));
        books[0].joined(at(0), joins);
        predictions.part_runs(1, &mut books[1], at(1), job(1), (2, at(1)));
        predictions.left(0, &mut books[0], at(1), JobId(1));
        assert!(predictions.has(JobId(1)));
        predictions.left(1, &mut books[1], at(2), JobId(1));
        assert!(!predictions.has(JobId(1)), "it is nowhere");
    }

    #[test]
    fn users_are_believed_where_nobody_predicts() {
        let mut predictions = Predictions::default();
        let mut book = Book::new(LocalScheduler::Easy, Pass::Batch, 2, true);
        let believed = predictions.believed(Time::ZERO, job(1));
        assert_eq!(believed, job(1));
        book.joined(Time::ZERO, believed);
        predictions.decided(0, &mut book, Time::ZERO, &[JobId(1)]);
        assert_eq!(predictions.overdue(Time::from_secs(10_000)), None);
        assert_eq!(predictions.ended(&mut book, Time::from_secs(5), JobId(1), None), None);
    }

    #[test]
    fn jobs_of_which_nothing_is_heard_any_more_are_forgotten_now_and_then() {
        let mut predictions = Predictions::by(Box::new(Longest::default()));
        for id in 0..FORGET_AT as u64 {
            predictions.believed(Time::ZERO, job(id));
            predictions.tidy(|job| job == JobId(7));
        }
        let kept: Vec<JobId> = predictions.0.expect("it predicts").jobs.into_keys().collect();
        assert_eq!(kept, [JobId(7)]);
    }
}
