//! Where the delay went: a certificate for the makespan of any run, and its deficiency split by cause.
//!
//! Let j be the job that ends last, k its home, and `busy_i` the processors of site i that run jobs of home k or
//! above. With a fraction beta of every site,
//!
//! ```text
//! V_k   = integral over [r_j, t_j) of sum_{i >= k} max(0, beta s_i - busy_i(t)) dt
//! C_max <= r_j + p_j + (W_k + V_k) / (beta S_k)
//! ```
//!
//! for every strategy, delay and loss (docs/THEORY.md, "Deficiency"). Ideal stealing keeps V_k at 0 offline, so all
//! that delays can do to the bound is in V_k. [`Deficiency`] takes events as they come and keeps those that matter;
//! once the last end is known, `replay` goes through the window with the true queues and asks for each idle
//! processor why it is idle. `journal` is what is kept, `lists` the true lists, `rate` the deficiency at an instant.
//!
//! The sums are integers: hundredths of a processor-microsecond. Where several causes hold of one processor, the first
//! takes it; `split` says how far that matters.

mod journal;
pub(crate) mod lists;
#[cfg(test)]
mod naive;
mod rate;
mod replay;
mod split;
#[cfg(test)]
mod tests;
mod verdict;

use serde::{Deserialize, Serialize};

use scheduler::event::{BeginCause, DeclineReason, MessageKind};
use scheduler::{Event, EventKind, Grid, JobId, SiteId, Span, Strategy, Time, TimedJob};

use crate::asking::Asking;
use crate::outcome::first_submission;
pub(crate) use journal::NOWHERE;
use journal::{Job, Journal, Note, Noted};
use replay::{Replay, Rules};
pub use split::Split;
use split::{CAUSES, Ranges};

/// Keeps what is needed of the events of a run to say where the delay went.
///
/// Memory: about 40 bytes a job, and 24 bytes per event since the submission of the oldest job that has not ended.
#[derive(Clone, Debug)]
pub struct Deficiency {
    grid: Grid,
    rules: Rules,
    journal: Journal,
    asking: Asking,
    /// From where the makespan is counted: the first submission, as in [`crate::Outcome::origin`].
    origin: Time,
    /// The end that is latest so far, and the place of its job; of equal ends the one observed last.
    last: Option<(Time, usize)>,
    /// Work of the jobs that ended, by the rank of their home, in processor-microseconds.
    work: Vec<i128>,
    running: usize,
    ended: usize,
    feasible: usize,
}

/// Why processors that the bound counts on were not busy, and what that is worth. See [`Deficiency`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// The job that ended last (j).
    pub job: JobId,
    /// Its home (k).
    pub k: SiteId,
    /// The fraction of each site that the bound counts on, in percent: that of the threshold, or 50.
    pub beta_percent: u8,
    /// From when (r_j), since the origin of the run.
    pub from: Span,
    /// Until when (t_j), since the origin of the run.
    pub until: Span,
    /// Whether the makespan is below what it can be.
    pub certificate: Certificate,
    /// W_k: all work of home k or above, in processor-seconds.
    pub work: f64,
    /// V_k: beta of all sites k or above less what was busy there, in processor-seconds.
    pub total: f64,
    /// Processors ran jobs of homes below k.
    pub foreign: f64,
    /// A message between the site and its root was lost and not yet repaired.
    pub lost: f64,
    /// Jobs that may run there were granted and on their way, on their way back, or reserved.
    pub in_transit: f64,
    /// Processors were on offer in requests without answer or reserved by claims, and no job was granted for them.
    pub asked: f64,
    /// Nothing that the site may take fits its idle processors, or its nodes and their memory where jobs share these; the ideal waits here,
    /// too.
    pub drain: f64,
    /// A job that the ideal would start fits, and nothing was under way.
    pub blind: f64,
    /// The least of each cause, in processor-seconds and the order of [`Attribution::causes`]: what no other cause
    /// could take, whichever took first.
    pub least: [f64; CAUSES],
    /// The greatest of each cause: what it takes if it takes first.
    pub greatest: [f64; CAUSES],
    /// The causes as whole numbers; not in files, where they would not fit.
    #[serde(skip)]
    exact: Ranges,
}

/// The bound on the makespan that follows from W_k and V_k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// r_j + p_j + (W_k + V_k) / (beta S_k), since the origin of the run, rounded up.
    pub bound: Span,
    /// Whether the makespan is not above it, no more work was done than there is, nothing runs for ever, and each cause
    /// is between its least and its greatest. It is a theorem about sums of the same events, so a mistake of the program
    /// if not.
    pub holds: bool,
    /// The bound less the makespan.
    pub slack: Span,
}

/// What [`Split`] counts, per processor-second.
const PER_PROCESSOR_SECOND: f64 = 1e8;

impl Attribution {
    /// The causes in words, in processor-seconds; they add up to [`Attribution::total`].
    pub fn causes(&self) -> [(&'static str, f64); CAUSES] {
        [
            ("foreign", self.foreign),
            ("lost", self.lost),
            ("in transit", self.in_transit),
            ("asked", self.asked),
            ("drain", self.drain),
            ("blind", self.blind),
        ]
    }

    /// What was granted, on its way or on offer: in transit and asked, in processor-seconds.
    pub fn in_transit_or_asked(&self) -> f64 {
        self.in_transit + self.asked
    }

    /// The causes as whole numbers, whose sum is exact.
    pub fn exact(&self) -> Split {
        self.exact.chosen
    }

    /// The least of each cause, as whole numbers.
    pub fn exact_least(&self) -> Split {
        self.exact.least
    }

    /// The greatest of each cause, as whole numbers.
    pub fn exact_greatest(&self) -> Split {
        self.exact.greatest
    }

    /// What the certificate says of the ratio to a lower bound of at least r_j + p_j and W_k / S_k:
    /// 1 + (1 + V_k / (S_k LB)) / beta. `None` if the bound is zero.
    pub fn ratio_bound(&self, grid: &Grid, lower_bound: Span) -> Option<f64> {
        let capacity = grid.suffix_processors(grid.rank(self.k)) as f64 * lower_bound.as_secs_f64();
        (lower_bound > Span::ZERO)
            .then(|| 1.0 + (1.0 + self.total / capacity) * 100.0 / f64::from(self.beta_percent))
    }
}

/// The fraction for strategies that have no threshold, or one (0 or 100) that leaves nothing of a site.
const BETA_PERCENT: u8 = 50;

/// beta of the certificate, in percent: min(x, 1 - x) for stealing with threshold x, else one half.
pub fn beta_percent(strategy: &Strategy) -> u8 {
    let beta = strategy.steal().map(|steal| steal.threshold.beta_percent());
    beta.filter(|&beta| beta > 0).unwrap_or(BETA_PERCENT)
}

impl Deficiency {
    /// Starts before the first event of a run of these jobs.
    pub fn new(grid: &Grid, strategy: &Strategy, workload: &[TimedJob]) -> Deficiency {
        let jobs: Vec<Job> = workload
            .iter()
            .map(|job| Job {
                submit: job.spec.submit,
                processors: job.spec.processors,
                home: grid.home_rank(job.spec.processors).map_or(NOWHERE, |rank| rank as u32),
            })
            .collect();
        Deficiency {
            grid: grid.clone(),
            rules: Rules::of(strategy),
            origin: first_submission(grid, workload).unwrap_or(Time::ZERO),
            last: None,
            work: vec![0; grid.len()],
            running: 0,
            ended: 0,
            feasible: jobs.iter().filter(|job| job.home != NOWHERE).count(),
            journal: Journal::new(grid, workload, jobs),
            asking: Asking::default(),
        }
    }

    /// Takes one event into account. Events of one site come in their order.
    pub fn observe(&mut self, event: &Event) {
        // The definitions are of sites that hold a job each by itself.
        if self.grid.spreads() {
            return;
        }
        let rank = |site: SiteId| self.grid.rank(site) as u32;
        let site = rank(event.site);
        let what = match event.kind {
            EventKind::Submitted { job, .. } => self.journal.place(job).map(Note::Submitted),
            EventKind::Started { job, .. } => {
                let place = self.journal.place(job);
                if let Some(place) = place
                    && self.journal.start(place, event.at)
                {
                    self.running += 1;
                }
                place.map(Note::Started)
            }
            EventKind::Completed { job, .. } => {
                let place = self.journal.place(job);
                if let Some(place) = place {
                    self.ends(place as usize, event.at);
                }
                place.map(Note::Completed)
            }
            EventKind::Granted { job, to, request, .. } => {
                let to = rank(to);
                let place = self.journal.place(job);
                if let Some(place) = place {
                    self.used_up(event.at, site, to, request, place);
                }
                place.map(|job| Note::Granted { job, to })
            }
            EventKind::Accepted { job, from, .. } => {
                self.arrived(event.at, rank(from), site, MessageKind::Recall);
                self.journal.place(job).map(Note::Accepted)
            }
            EventKind::Declined { job, from, reason, .. } => {
                let owner = rank(from);
                self.arrived(event.at, owner, site, MessageKind::Recall);
                if reason != DeclineReason::Superseded {
                    // That one does not go back.
                    self.journal.losses.declined(site, owner);
                }
                self.journal.place(job).map(Note::Declined)
            }
            EventKind::Returned { job, by, .. } => {
                let mended = self.journal.losses.returned(rank(by), site);
                self.journal.note_loss(event.at, mended);
                self.journal.place(job).map(Note::Returned)
            }
            EventKind::Requested { victim, seq, offer, .. } => {
                let victim = rank(victim);
                self.asking.request(site, victim, seq, offer);
                Some(Note::Asked { victim, offer })
            }
            EventKind::Answered { victim, seq, .. } => {
                let victim = rank(victim);
                self.arrived(event.at, victim, site, MessageKind::Grant);
                self.asking.answer(site, victim, seq).then_some(Note::Answered { victim })
            }
            EventKind::Claimed { job, claim, processors, .. } => {
                if let Some(before) = self.asking.claim(site, claim, job, processors) {
                    self.journal.push(Noted { at: event.at, site, what: Note::Released(before.processors) });
                }
                Some(Note::Claimed(processors))
            }
            EventKind::Released { claim, .. } => {
                self.asking.release(site, claim).map(|reserved| Note::Released(reserved.processors))
            }
            EventKind::Placed { job, node } => self.journal.place(job).map(|job| Note::Placed { job, node }),
            EventKind::Interrupted { job, .. } => self.journal.place(job).map(Note::Left),
            EventKind::Ended { how } if how.interrupts() => Some(Note::Emptied),
            EventKind::Begun { how: BeginCause::Restart } | EventKind::Recovered { .. } => {
                Some(Note::Emptied)
            }
            EventKind::Lost { to, message } => {
                let broken = self.journal.losses.lost(site, rank(to), message);
                self.journal.note_loss(event.at, broken);
                None
            }
            EventKind::Received { from, message } => {
                self.arrived(event.at, rank(from), site, message);
                None
            }
            _ => None,
        };
        if let Some(what) = what {
            self.journal.push(Noted { at: event.at, site, what });
        }
    }

    /// A job is granted: what was on offer for it, or claimed, no longer is.
    fn used_up(&mut self, at: Time, victim: u32, thief: u32, request: u64, place: u32) {
        let (id, processors) =
            (self.journal.ids[place as usize], self.journal.jobs[place as usize].processors);
        if let Some(offer) = self.asking.grant(thief, victim, request, processors) {
            self.journal.push(Noted { at, site: thief, what: Note::Asked { victim, offer } });
        }
        if let Some(reserved) = self.asking.award(thief, id) {
            self.journal.push(Noted { at, site: thief, what: Note::Released(reserved.processors) });
        }
    }

    /// A message arrived, or something happened that shows it: logs need not name messages.
    fn arrived(&mut self, at: Time, from: u32, to: u32, message: MessageKind) {
        for mended in self.journal.losses.received(from, to, message) {
            self.journal.note_loss(at, mended);
        }
    }

    fn ends(&mut self, place: usize, at: Time) {
        let Some(executed) = self.journal.end(place, at) else { return };
        self.running -= 1;
        self.ended += 1;
        let job = self.journal.jobs[place];
        if let Some(work) = self.work.get_mut(job.home as usize) {
            *work += i128::from(executed.as_micros()) * i128::from(job.processors);
        }
        if self.last.is_none_or(|(end, _)| at >= end) {
            self.last = Some((at, place));
        }
    }

    /// Where the delay went; `None` if not every job ended, or jobs may be spread over several sites.
    pub fn finish(self) -> Option<Attribution> {
        if self.grid.spreads() || self.ended < self.feasible {
            return None;
        }
        let (end, place) = self.last?;
        let Deficiency { grid, rules, journal, origin, work, running, .. } = self;
        let job = journal.jobs[place];
        let (k, id) = (job.home as usize, journal.ids[place]);
        let start = journal.started[place];
        let replayed = Replay::new(&grid, &rules, &journal, k).run(job.submit, start);
        let exact = replayed.ranges;
        let split = exact.chosen;

        let work: i128 = work[k..].iter().sum();
        let sums = Sums {
            waited: start.since(job.submit),
            work,
            deficiency: split.total(),
            capacity: i128::from(rules.beta_percent) * i128::from(grid.suffix_processors(k)),
        };
        let bound = job.submit.since(origin) + end.since(start) + sums.wait_max();
        let certificate = Certificate {
            bound,
            holds: sums.hold() && replayed.done <= work && running == 0 && exact.hold(),
            slack: bound - end.since(origin),
        };
        let seconds = |hundredths: i128| hundredths as f64 / PER_PROCESSOR_SECOND;
        Some(Attribution {
            job: id,
            k: grid.at_rank(k),
            beta_percent: rules.beta_percent,
            from: job.submit.since(origin),
            until: start.since(origin),
            certificate,
            work: work as f64 / 1e6,
            total: seconds(split.total()),
            foreign: seconds(split.foreign),
            lost: seconds(split.lost),
            in_transit: seconds(split.in_transit),
            asked: seconds(split.asked),
            drain: seconds(split.drain),
            blind: seconds(split.blind),
            least: exact.least.causes().map(seconds),
            greatest: exact.greatest.causes().map(seconds),
            exact,
        })
    }
}

/// The sums of the certificate.
#[derive(Clone, Copy, Debug)]
struct Sums {
    /// t_j - r_j.
    waited: Span,
    /// W_k, in processor-microseconds.
    work: i128,
    /// V_k, in hundredths of a processor-microsecond.
    deficiency: i128,
    /// beta S_k, in hundredths of a processor.
    capacity: i128,
}

impl Sums {
    /// Whether t_j - r_j <= (W_k + V_k) / (beta S_k), exactly.
    fn hold(self) -> bool {
        i128::from(self.waited.as_micros()) * self.capacity <= 100 * self.work + self.deficiency
    }

    /// The right side, rounded up.
    fn wait_max(self) -> Span {
        let longest = (100 * self.work + self.deficiency + self.capacity - 1) / self.capacity;
        Span::from_micros(i64::try_from(longest).unwrap_or(i64::MAX))
    }
}
