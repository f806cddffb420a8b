//! Conservative backfilling with compression: each job has a planned start from the moment it comes, and
//! keeps it unless an earlier hole opens.
//!
//! A planned start never gets later as long as no job runs past its estimate and the driver wakes the queue
//! at [`super::LocalQueue::wake_at`]. When one of the two fails, the plan contradicts the machine; it is thrown
//! away and built anew in queue order.

use std::collections::BTreeMap;

use super::machine::{End, Machine};
use super::profile::Profile;
use super::rule::QueueRule;
use super::turn::{Place, Waiting};
use crate::job::JobId;
use crate::time::Time;

/// A waiting job with its reservation.
#[derive(Clone, Copy, Debug)]
struct Planned {
    job: Waiting,
    start: Time,
    /// When it was planned, to tell planned starts of one instant apart.
    sequence: u64,
}

impl Planned {
    fn end(&self) -> Time {
        self.start.saturating_add(self.job.requested)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Conservative {
    /// Running, promised and planned jobs.
    profile: Profile,
    /// In queue order.
    planned: Vec<Planned>,
    /// By planned start, then by when it was planned.
    agenda: BTreeMap<(Time, u64), Place>,
    sequence: u64,
    /// Came since the last pass.
    arrived: Vec<Waiting>,
    /// Jobs ended since the last pass.
    ended: bool,
    /// A job may have an earlier hole: processors came back, or a job moved, since all were looked at.
    loosened: bool,
    /// The plan contradicts the machine.
    broken: bool,
    /// The latest pass has planned all jobs anew.
    is_anew: bool,
}

impl Conservative {
    pub(super) fn new(processors: u32) -> Self {
        Conservative {
            profile: Profile::new(Time::from_micros(i64::MIN), processors),
            planned: Vec::new(),
            agenda: BTreeMap::new(),
            sequence: 0,
            arrived: Vec::new(),
            ended: false,
            loosened: false,
            broken: false,
            is_anew: false,
        }
    }

    /// One by one in queue order, the others' reservations standing, each job moves to its earliest hole.
    fn compress(&mut self, now: Time) {
        let mut moved = false;
        for index in 0..self.planned.len() {
            let planned = self.planned[index];
            if planned.start <= now {
                continue;
            }
            let job = planned.job;
            if let Some(start) = self.profile.hole(now, planned.start, job.processors, job.requested) {
                self.profile.release(planned.start, planned.end(), job.processors);
                self.agenda.remove(&(planned.start, planned.sequence));
                self.planned[index] = self.reserve(job, start);
                moved = true;
            }
        }
        self.loosened = moved;
    }

    fn plan_anew(&mut self, now: Time, machine: &Machine) {
        self.arrived.extend(self.planned.drain(..).map(|planned| planned.job));
        self.agenda.clear();
        self.profile = machine.profile(now);
        self.broken = false;
        self.loosened = false;
    }

    fn place_arrived(&mut self, now: Time) {
        self.arrived.sort_unstable_by_key(Waiting::place);
        for job in std::mem::take(&mut self.arrived) {
            let start = self.profile.earliest(now, job.processors, job.requested);
            let planned = self.reserve(job, start);
            let place = self.planned.partition_point(|other| other.job.place() < job.place());
            self.planned.insert(place, planned);
        }
    }

    fn reserve(&mut self, job: Waiting, start: Time) -> Planned {
        let planned = Planned { job, start, sequence: self.sequence };
        self.sequence += 1;
        self.profile.reserve(start, planned.end(), job.processors);
        let before = self.agenda.insert((start, planned.sequence), job.place());
        assert!(before.is_none(), "a sequence number is used once");
        planned
    }

    fn next_start(&self) -> Option<Time> {
        self.agenda.first_key_value().map(|(&(start, _), _)| start)
    }

    fn place_of(&self, key: Place) -> usize {
        self.planned
            .binary_search_by_key(&key, |planned| planned.job.place())
            .expect("what is on the agenda waits")
    }
}

impl QueueRule for Conservative {
    fn waiting(&self) -> usize {
        self.planned.len() + self.arrived.len()
    }

    fn wake_at(&self, held_up_until: Option<Time>) -> Option<Time> {
        let start = self.next_start()?;
        match held_up_until.filter(|_| self.is_anew) {
            // What is planned before is planned behind a promise that is not kept: each pass would plan it anew, later by the
            // estimate of that job, and until nothing else should end it starts nothing.
            Some(until) => Some(start.max(until)).filter(|&at| at < Time::MAX),
            None => Some(start),
        }
    }

    fn planned_start(&self, job: JobId) -> Option<Time> {
        self.planned.iter().find(|planned| planned.job.id == job).map(|planned| planned.start)
    }

    fn insert(&mut self, job: Waiting) {
        self.arrived.push(job);
    }

    fn put_back(&mut self, job: Waiting) {
        self.arrived.push(job);
        self.broken = true;
    }

    /// All are planned anew at the next pass: those that come behind it may have to make room, if it comes back with
    /// another turn.
    fn take(&mut self, job: JobId) -> Option<Waiting> {
        let taken = match self.arrived.iter().position(|waiting| waiting.id == job) {
            Some(place) => self.arrived.remove(place),
            None => {
                let place = self.planned.iter().position(|planned| planned.job.id == job)?;
                let planned = self.planned.remove(place);
                self.agenda.remove(&(planned.start, planned.sequence));
                planned.job
            }
        };
        self.broken = true;
        Some(taken)
    }

    fn disturbed(&mut self) {
        self.broken = true;
    }

    fn last_place(&self) -> Option<Place> {
        let planned = self.planned.iter().map(|planned| &planned.job);
        self.arrived.iter().chain(planned).map(Waiting::place).max()
    }

    fn completed(&mut self, now: Time, end: End) {
        self.ended = true;
        // A plan that is broken is made anew from what runs, and may not know of this job.
        if end.at > now && !self.broken {
            // What is left of its estimate is free.
            self.profile.release(now, end.at, end.processors);
            self.loosened = true;
        }
    }

    fn choose(&mut self, now: Time, machine: &mut Machine) {
        let late = self.next_start().is_some_and(|start| start < now);
        self.is_anew = self.broken || late;
        if self.is_anew {
            self.plan_anew(now, machine);
        } else {
            self.profile.forget_before(now);
            if self.ended && self.loosened {
                self.compress(now);
            }
        }
        self.ended = false;
        self.place_arrived(now);
        while let Some(next) = self.agenda.first_entry().filter(|next| next.key().0 <= now) {
            let key = next.remove();
            let place = self.place_of(key);
            machine.promise(now, self.planned.remove(place).job);
        }
    }

    fn check_invariants(&self, now: Option<Time>, machine: &Machine) {
        let Some(now) = now else { return };
        assert!(
            self.planned.is_sorted_by(|a, b| a.job.place() < b.job.place()),
            "planned jobs are in queue order"
        );
        assert_eq!(self.agenda.len(), self.planned.len(), "each planned job is on the agenda");
        for planned in &self.planned {
            let entry = self.agenda.get(&(planned.start, planned.sequence));
            assert_eq!(entry, Some(&planned.job.place()), "job {} is on the agenda", planned.job.id);
        }
        self.profile.check_invariants();
        assert!(!self.broken, "a pass repairs a broken plan");
        let mut expected = Profile::new(now, machine.processors());
        for end in machine.ends() {
            expected.reserve(now, end.at.max(now), end.processors);
        }
        for planned in &self.planned {
            expected.reserve(planned.start.max(now), planned.end().max(now), planned.job.processors);
        }
        let mut profile = self.profile.clone();
        profile.forget_before(now);
        assert!(profile.steps().skip(1).eq(expected.steps().skip(1)), "the profile holds every reservation");
        assert_eq!(profile.free_at(now), expected.free_at(now), "the profile holds every reservation");
    }

    fn boxed(&self) -> Box<dyn QueueRule> {
        Box::new(self.clone())
    }
}
