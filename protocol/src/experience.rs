//! What a member that predicts run times must not forget: the ends of jobs that it has learned from, as rows of its journal.
//!
//! Predictors learn from ends and from nothing else, so one that learns these again, in their order, predicts what it did, whichever
//! predictor it is. Rows are numbered; of more than [`ENDS_MAX`] the oldest are dropped.

use brokers::Lesson;
use brokers::learning::Placed;
use scheduler::{Grid, JobId, Span};

use crate::bounds::{COUNT_MAX, MICROS_MAX, is_job_of, is_time};
use crate::core::Core;
use crate::journal::{Durable, Fact, Topic, Words};
use crate::mutant::Mutant;

/// The table of these rows: far above those of families, as several families have it beside their own.
const ENDS: u8 = 64;
/// Rows at most. Larger than most logs; each is some hundred bytes of a journal, and learned again in microseconds.
const ENDS_MAX: u64 = 65_536;
/// Words of a job that was placed nowhere are 0 from here on: its number and its run time take their place.
const NUMBER: usize = 9;
const RUN_TIME: usize = 10;

/// Rows of a journal, in their order: all of a member's, if its family has none beside.
pub(crate) trait Rows<'a>: IntoIterator<Item = (&'a Topic, &'a Words)> {}

impl<'a, R: IntoIterator<Item = (&'a Topic, &'a Words)>> Rows<'a> for R {}

/// Whether a row is one of these, and not the family's own.
pub(crate) fn is_lesson(of: &Topic) -> bool {
    of.table == ENDS
}

/// What a journal says of run times beside what a family has there.
pub(crate) fn lessons(durable: &Durable) -> impl Rows<'_> {
    durable.memory.iter().filter(|(of, _)| is_lesson(of))
}

/// Which rows there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Experience {
    /// Number of the oldest.
    first: u64,
    /// Number of the next.
    next: u64,
}

impl Experience {
    /// Writes down what was learned.
    pub(crate) fn note(&mut self, core: &mut Core, lesson: &Lesson) {
        core.write(Fact::Remembers { topic: topic(self.next), words: Some(words(lesson)) });
        self.next += 1;
        if self.next - self.first > ENDS_MAX {
            core.write(Fact::Remembers { topic: topic(self.first), words: None });
            self.first += 1;
        }
    }

    /// What an earlier incarnation had learned, in that order, to be learned again.
    pub(crate) fn recall<'a>(&mut self, core: &Core, memory: impl Rows<'a>) -> Vec<Lesson> {
        let read = Experience::read(&core.config.grid, memory);
        let (experience, lessons) = read.expect("a journal is of the grid that it is read for");
        *self = experience;
        if core.has(Mutant::EndsForgotten) { Vec::new() } else { lessons }
    }

    /// What is written down, in the order in which it was learned.
    ///
    /// # Errors
    /// The first row that no member of this grid can have written.
    pub(crate) fn read<'a>(grid: &Grid, memory: impl Rows<'a>) -> Result<(Experience, Vec<Lesson>), String> {
        let mut experience = Experience::default();
        let mut lessons = Vec::new();
        for (&of, words) in memory {
            let is_next = lessons.is_empty() || of.b == experience.next;
            let lesson = lesson(grid, words).filter(|_| of == topic(of.b) && of.b < COUNT_MAX && is_next);
            let Some(lesson) = lesson else {
                return Err(format!("no member of this grid has written {words:?} of {of:?}"));
            };
            if lessons.is_empty() {
                experience.first = of.b;
            }
            experience.next = of.b + 1;
            lessons.push(lesson);
        }
        Ok((experience, lessons))
    }

    /// Whether what is written down can be of a member of this grid.
    ///
    /// # Errors
    /// As [`Experience::read`].
    pub(crate) fn can_be<'a>(core: &Core, memory: impl Rows<'a>) -> Result<(), String> {
        Experience::read(&core.config.grid, memory).map(|_| ())
    }

    /// Compares what is known with what is written down.
    pub(crate) fn agrees_with<'a>(&self, grid: &Grid, memory: impl Rows<'a>) -> Result<(), String> {
        let (written, _) = Experience::read(grid, memory)?;
        match *self == written {
            true => Ok(()),
            false => Err(format!("it has learned {self:?}, and its journal has {written:?}")),
        }
    }
}

fn topic(number: u64) -> Topic {
    Topic { table: ENDS, a: 0, b: number }
}

fn words(lesson: &Lesson) -> Words {
    let mut words = Placed { job: lesson.job, first: lesson.at, at: None }.words();
    words[NUMBER] = lesson.job.id.0;
    words[RUN_TIME] = lesson.run_time.as_micros().cast_unsigned();
    words
}

/// None if these are words of no job that ended.
fn lesson(grid: &Grid, words: &Words) -> Option<Lesson> {
    let mut of_job = *words;
    let id = JobId(std::mem::take(&mut of_job[NUMBER]));
    let run_time = std::mem::take(&mut of_job[RUN_TIME]).cast_signed();
    let placed = Placed::from_words(id, &of_job).filter(|placed| placed.at.is_none())?;
    let lesson = Lesson { job: placed.job, at: placed.first, run_time: Span::from_micros(run_time) };
    let can_be =
        is_job_of(grid, &lesson.job) && is_time(lesson.at) && (0..=2 * MICROS_MAX).contains(&run_time);
    can_be.then_some(lesson)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::{JobSpec, Labels, SiteId, StrategySpec, Time};

    use super::*;
    use crate::config::{Options, Terms};
    use crate::ports::Output;

    fn core() -> Core {
        let strategy = "local".parse::<StrategySpec>().expect("a strategy").strategy;
        let terms = Terms::new(Arc::new(Grid::of_sizes(&[4]).expect("a grid")), strategy);
        let options = Options { journal: true, ..Options::default() };
        Core::at_rest(Terms { options, ..terms }.at_rank(0), 0)
    }

    fn lesson_of(id: u64) -> Lesson {
        let job = JobSpec {
            id: JobId(id),
            submit: Time::from_secs(3),
            processors: 2,
            requested: Span::from_secs(60),
            labels: Labels { user: 7, ..Labels::UNKNOWN },
            origin: SiteId(1),
            payload: 5,
        };
        let at = Time::from_secs(30 + id as i64);
        Lesson { job, at, run_time: at.since(Time::from_secs(10)) }
    }

    fn write(core: &mut Core, disk: &mut Durable) {
        for output in core.outputs.drain(..) {
            if let Output::Write(fact) = output {
                disk.apply(&fact);
            }
        }
    }

    #[test]
    fn what_was_learned_is_learned_again_in_order_and_the_oldest_is_dropped() {
        let (mut core, mut disk, mut experience) = (core(), Durable::default(), Experience::default());
        for id in 0..ENDS_MAX + 3 {
            experience.note(&mut core, &lesson_of(id));
            write(&mut core, &mut disk);
        }
        let (again, lessons) = Experience::read(&core.config.grid, &disk.memory).expect("it was written");
        assert_eq!(again, experience);
        assert_eq!(experience.agrees_with(&core.config.grid, &disk.memory), Ok(()));
        assert_eq!(lessons.len() as u64, ENDS_MAX);
        assert_eq!((lessons[0], lessons[1]), (lesson_of(3), lesson_of(4)));
    }

    #[test]
    fn rows_that_nobody_wrote_are_refused() {
        let (mut core, mut disk, mut experience) = (core(), Durable::default(), Experience::default());
        (0..3).for_each(|id| experience.note(&mut core, &lesson_of(id)));
        write(&mut core, &mut disk);
        let grid = core.config.grid.clone();
        let with = |change: &dyn Fn(&mut Durable)| {
            let mut changed = disk.clone();
            change(&mut changed);
            (
                Experience::read(&grid, &changed.memory).is_err(),
                experience.agrees_with(&grid, &changed.memory).is_err(),
            )
        };
        assert_eq!(with(&|_| {}), (false, false));
        let change = |place: usize, word: u64| {
            move |disk: &mut Durable| disk.memory.get_mut(&topic(1)).expect("a row")[place] = word
        };
        for (place, word) in [(RUN_TIME, u64::MAX), (1, 0), (8, 1), (11, 1)] {
            assert_eq!(with(&change(place, word)), (true, true), "{place}");
        }
        assert_eq!(with(&|disk| disk.memory.retain(|of, _| *of != topic(1))), (true, true), "a gap");
        assert_eq!(
            with(&|disk| disk.memory.retain(|of, _| *of != topic(2))),
            (false, true),
            "one that was not written"
        );
        let other = Topic { table: 0, a: 0, b: 3 };
        assert_eq!(with(&move |disk| disk.memory.extend([(other, words(&lesson_of(3)))])), (true, true));
    }
}
