//! What a site of a global queue believes of run times: what users say, or what it predicts by itself.
//!
//! A job that joins the queue here is predicted then, and offered with that; those who decide believe the board that lists it. A site that
//! takes a job predicts it for itself: it knows other ends than the owner, and has to correct the prediction, as it is told when the job
//! ends. What it believes of running jobs is what its board tells of them.

use brokers::Lesson;
use scheduler::local::Estimates;
use scheduler::{JobId, JobSpec, Span, Time};

use crate::config::PeerConfig;
use crate::core::Core;
use crate::experience::Experience;
use crate::journal::Durable;

/// Run times of the jobs of a site. Users are believed if nobody estimates.
#[derive(Clone, Debug)]
pub(super) struct Beliefs {
    estimates: Option<Box<Estimates>>,
    /// What was learned and is written down.
    experience: Experience,
    /// Whether a job came to this site or ended here since predictions were corrected.
    stirred: bool,
}

/// A running job that is believed to end at another time than before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Corrected {
    pub(super) processors: u32,
    pub(super) before: Time,
    pub(super) at: Time,
}

impl Beliefs {
    pub(super) fn of(config: &PeerConfig) -> Beliefs {
        Beliefs {
            estimates: config.forecast.map(|by| Box::new(Estimates::by(by.estimator()))),
            experience: Experience::default(),
            stirred: false,
        }
    }

    /// A job came to this site or ended here: the next turn corrects what is believed of others.
    pub(super) fn stir(&mut self) {
        self.stirred = true;
    }

    /// A job waits from now on, or is about to start; with its run time as it is believed.
    pub(super) fn enter(&mut self, core: &mut Core, now: Time, job: JobSpec) -> JobSpec {
        let Some(estimates) = &mut self.estimates else { return job };
        let believed = estimates.enter(now, job);
        core.predicted(estimates.news());
        believed
    }

    /// A job does not wait here any more.
    pub(super) fn leave(&mut self, job: JobId) {
        if let Some(estimates) = &mut self.estimates {
            estimates.leave(job);
        }
    }

    /// Starts a job that waits and is believed to run for so long.
    pub(super) fn start(&mut self, core: &mut Core, now: Time, job: JobSpec, run_time: Span) {
        if let Some(estimates) = &mut self.estimates {
            estimates.start(now, &JobSpec { requested: run_time, ..job });
        }
        core.start_until(now, job, now.saturating_add(run_time));
    }

    /// A job has ended here.
    pub(super) fn ended(&mut self, core: &mut Core, now: Time, job: JobId) {
        self.stir();
        if let Some(estimates) = &mut self.estimates {
            let (job, run_time) = estimates.complete(now, job);
            self.experience.note(core, &Lesson { job, at: now, run_time });
        }
    }

    /// Corrects what is believed of jobs that run past it, if a job came to this site or ended here.
    pub(super) fn correct(&mut self, core: &mut Core, now: Time) -> Vec<Corrected> {
        let mut corrected = Vec::new();
        let is_news = std::mem::take(&mut self.stirred);
        if let Some(estimates) = self.estimates.as_mut().filter(|_| is_news) {
            estimates.correct(now, |job, at| {
                let (before, processors) = core.expects_end(job, at).expect("what is corrected runs");
                corrected.push(Corrected { processors, before, at });
            });
            core.predicted(estimates.news());
        }
        corrected
    }

    /// Learns again what an earlier incarnation had learned.
    pub(super) fn remember(&mut self, core: &Core, durable: &Durable) {
        let lessons = self.experience.recall(core, &durable.memory);
        if let Some(estimates) = &mut self.estimates {
            lessons.iter().for_each(|lesson| estimates.learn(lesson.at, &lesson.job, lesson.run_time));
        }
    }

    /// Whether what was learned is what is written down.
    pub(super) fn agree_with(&self, core: &Core, durable: &Durable) -> Result<(), String> {
        self.experience.agrees_with(&core.config.grid, &durable.memory)
    }
}
