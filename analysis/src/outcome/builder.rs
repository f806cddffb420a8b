//! Builds an [`Outcome`] from events as they come.
//!
//! Keeps one row per job, the grants that are under way, and records of what faults touched: about 130 bytes a job
//! without faults. Events of one site must come in their order; a grant must come before its acceptance.
//!
//! Of several executions of a job the row shows the one that counts, see [`crate::executions`].

use std::collections::BTreeMap;
use std::sync::Arc;

use scheduler::event::{BeginCause, EventKind, ExitCause, GrantCause};
use scheduler::{Class, Event, Grid, JobId, JobIndex, SiteId, Span, Submit, Threshold, Time, TimedJob};

use crate::executions::{Executions, Fate, Misdeed};
use crate::faults::{Faults, FaultsBuilder, JobRecord};
use crate::inversions::Inversions;
use crate::sharing::Placements;

use super::{Contradictions, JobExit, JobOutcome, JobState, Outcome, Traffic, first_submission};

/// Turns a stream of events into an [`Outcome`].
#[derive(Clone, Debug)]
pub struct OutcomeBuilder {
    outcome: Outcome,
    rows: JobIndex,
    /// When, why and to which site each job that is between two sites was granted.
    under_way: BTreeMap<JobId, (Time, GrantCause, SiteId)>,
    /// When and where each job that has not started was last accepted.
    accepted: BTreeMap<JobId, (Time, SiteId)>,
    inversions: Inversions,
    faults: FaultsBuilder,
    /// The first submission of a job that the grid can hold.
    first: Option<Time>,
    /// Jobs whose run time was cut to what they requested before they came, ascending.
    cut_before: Arc<[JobId]>,
    /// Whether run times of the workload say nothing of those here.
    measured: bool,
}

impl OutcomeBuilder {
    /// Starts with every job pending, or rejected if the grid cannot hold it.
    pub fn new(grid: &Grid, threshold: Threshold, workload: &[TimedJob]) -> OutcomeBuilder {
        let jobs: Vec<JobOutcome> = workload.iter().map(|job| pending(grid, threshold, job)).collect();
        let first = first_submission(grid, workload);
        let outcome = Outcome {
            grid: grid.clone(),
            threshold,
            jobs,
            traffic: Traffic::default(),
            contradictions: Contradictions::default(),
            origin: first.unwrap_or(Time::ZERO),
            until: Time::from_micros(i64::MIN),
            events: 0,
            fcfs_inversions: None,
            submit: Submit::Home,
            faults: Faults::default(),
            predicted: BTreeMap::new(),
            spread: BTreeMap::new(),
            placements: Placements::default(),
            exits: BTreeMap::new(),
        };
        OutcomeBuilder {
            outcome,
            rows: JobIndex::new(workload),
            under_way: BTreeMap::new(),
            accepted: BTreeMap::new(),
            inversions: Inversions::new(grid, workload),
            faults: FaultsBuilder::new(grid),
            first,
            cut_before: Arc::from([]),
            measured: false,
        }
    }

    /// Says which jobs were cut to their requested time when the log was prepared, ascending: they end as those do that a
    /// site stops.
    #[must_use]
    pub fn with_cut(mut self, jobs: Arc<[JobId]>) -> OutcomeBuilder {
        self.cut_before = jobs;
        self
    }

    /// Says where users submit jobs; at their homes if nobody says.
    pub fn with_submit(mut self, submit: Submit) -> OutcomeBuilder {
        self.outcome.submit = submit;
        self
    }

    /// Says that jobs are commands: how long one runs is what it ran, whatever the workload says, and no timer cut it.
    pub fn measure_run_times(&mut self) {
        self.measured = true;
    }

    /// Adds a job that nobody knew of before the run, and of which nothing was observed yet.
    ///
    /// # Panics
    /// If its id is not above all others.
    pub fn add(&mut self, job: &TimedJob) {
        let Outcome { grid, threshold, jobs, origin, .. } = &mut self.outcome;
        self.rows.add(job.spec.id, jobs.len());
        let first = first_submission(grid, [job]).into_iter().chain(self.first).min();
        (self.first, *origin) = (first, first.unwrap_or(Time::ZERO));
        jobs.push(pending(grid, *threshold, job));
        self.inversions.add(job);
    }

    /// Takes one event into account.
    pub fn observe(&mut self, event: &Event) {
        self.outcome.events += 1;
        self.outcome.until = self.outcome.until.max(event.at);
        self.outcome.traffic.observe(&event.kind);
        self.inversions.observe(event, &self.rows);
        self.faults.observe(event);
        if self.outcome.grid.is_shared() {
            self.outcome.placements.observe(event);
        }
        match event.kind {
            EventKind::Submitted { job, .. } => {
                let at_origin = self.outcome.submit == Submit::Origin;
                let width = self.outcome.grid.width(event.site);
                let has_brokers = self.outcome.grid.brokers() > 0;
                if let Some(row) = self.row(job) {
                    // A job too wide for its origin has yet to arrive, at its home. Of brokers it does so where it starts.
                    if has_brokers || at_origin && row.processors <= width {
                        row.arrived = Some(event.site);
                    }
                    match row.state {
                        JobState::Pending => row.state = JobState::Waiting,
                        JobState::Rejected => self.outcome.contradictions.rejected_seen += 1,
                        _ => {}
                    }
                }
            }
            EventKind::Started { job, hops, processors } => {
                self.under_way.remove(&job);
                let accepted = self.accepted.remove(&job).filter(|&(_, site)| site == event.site);
                if self.faults.job(job).is_some() {
                    let is_spread = self.outcome.grid.spreads();
                    if is_spread && self.row(job).is_some_and(|row| processors < row.processors) {
                        self.outcome.spread.entry(job).or_default().insert(0, (event.site, processors));
                    }
                    return self.execute(job, |executions| executions.start(event.site, event.at, hops));
                }
                // A reference of brokers says where a job starts, and no transfers.
                let was_at_a_broker = |site: SiteId| self.outcome.grid.is_broker(site);
                let found = self.rows.get(job).and_then(|row| self.outcome.jobs.get(row));
                let by_a_broker = found.and_then(|row| row.arrived).is_some_and(was_at_a_broker);
                let Some(row) = self.row(job) else { return };
                match row.state {
                    JobState::Pending | JobState::Waiting => {
                        if by_a_broker {
                            row.arrived = Some(event.site);
                        }
                        row.state = JobState::Running;
                        row.start = Some(event.at);
                        row.site = Some(event.site);
                        row.hops = hops;
                        row.start_delay = accepted.map_or(Span::ZERO, |(at, _)| event.at.since(at));
                        // The other parts follow. Of a job that the grid spreads nowhere the event says nothing new.
                        if processors < row.processors && self.outcome.grid.spreads() {
                            // Of sites that agreed on an instant any may have said so first.
                            let parts = self.outcome.spread.entry(job).or_default();
                            parts.insert(0, (event.site, processors));
                        }
                    }
                    JobState::Rejected => self.outcome.contradictions.rejected_seen += 1,
                    _ => self.outcome.contradictions.repeated_starts += 1,
                }
            }
            EventKind::PartStarted { job, processors, .. } => {
                let is_spread = self.outcome.grid.spreads();
                if is_spread && self.row(job).is_some_and(|row| processors < row.processors) {
                    self.outcome.spread.entry(job).or_default().push((event.site, processors));
                }
            }
            EventKind::Completed { job, .. } => {
                if self.faults.job(job).is_some() {
                    return self
                        .execute(job, |executions| executions.complete(event.site, event.at).map(|_| ()));
                }
                let Some(row) = self.row(job) else { return };
                match row.start {
                    Some(start) if row.state == JobState::Running && row.site == Some(event.site) => {
                        row.end = Some(event.at);
                        row.state = ended(row, event.at.since(start));
                    }
                    _ => self.outcome.contradictions.unexpected_ends += 1,
                }
            }
            EventKind::Interrupted { job, killed, .. } => {
                let last = self.faults.last_sign(event.site);
                self.touch(job);
                self.outcome.spread.remove(&job);
                self.execute(job, |executions| {
                    executions.interrupt(event.site, last, event.at, killed).map(|_| ())
                });
            }
            EventKind::Revoked { job, of, killed } => {
                self.touch(job);
                self.outcome.spread.remove(&job);
                self.execute(job, |executions| executions.revoke(of, killed));
            }
            EventKind::Ended { how } if how.interrupts() => {
                let last = self.faults.last_before(event.site, how, event.at);
                self.cut(event.site, last, event.at);
            }
            EventKind::Begun { how: BeginCause::Restart } | EventKind::Recovered { .. } => {
                // Clocks differ: what started after the driver saw the process end did not outlive it either. And of a
                // process that ended and restarted while no driver was there only the site itself says so.
                let last = self.faults.last_sign(event.site);
                self.cut(event.site, last, event.at);
                self.faults.began_again(event.site);
            }
            EventKind::TookOver { job, holder, epoch } => {
                self.outcome.spread.remove(&job);
                let receiver = self.under_way.get(&job).map(|&(_, _, to)| to);
                // Where the operator orders it, nobody knows who had the job.
                let anybody = holder == event.site;
                let sites = self.outcome.grid.sites().iter().map(|site| site.id);
                let copies: Vec<SiteId> = sites
                    .filter(|&site| site != event.site)
                    .filter(|&site| anybody || site == holder || receiver == Some(site))
                    .collect();
                if let Some(record) = self.touch(job) {
                    record.taken_over(event.at, epoch, copies);
                    self.show(job);
                }
            }
            EventKind::Superseded { job, epoch, started } => {
                if let Some(record) = self.touch(job) {
                    record.superseded(event.at, event.site, epoch, started);
                    self.show(job);
                }
            }
            EventKind::Orphaned { job, .. } => {
                if let Some(record) = self.touch(job) {
                    record.orphan(event.at);
                }
            }
            EventKind::Granted { job, cause, to, .. } => {
                self.under_way.insert(job, (event.at, cause, to));
            }
            EventKind::Accepted { job, .. } => {
                let granted = self.under_way.remove(&job);
                self.accepted.insert(job, (event.at, event.site));
                if let (Some((granted, cause, _)), Some(row)) = (granted, self.row(job)) {
                    row.steal_delay += event.at.since(granted);
                    if cause == GrantCause::Route {
                        row.arrived = Some(event.site);
                    }
                }
            }
            EventKind::Predicted { job, run_time, corrections } => {
                // What a broker predicts is how it chooses a site; what counts in the queue is what the site predicts.
                if self.outcome.grid.is_broker(event.site) {
                    return;
                }
                let Some(row) = self.row(job) else { return };
                // Another copy of it may run, or wait, elsewhere.
                if row.site.is_none_or(|site| site == event.site) {
                    let predicted = self.outcome.predicted.entry(job).or_default();
                    predicted.corrections = corrections;
                    if corrections == 0 {
                        predicted.run_time = run_time;
                    }
                }
            }
            EventKind::Returned { job, .. } => {
                self.under_way.remove(&job);
            }
            EventKind::Exited { job, how, code } => {
                let Some(id) = self.row(job).map(|row| row.id) else { return };
                self.outcome.exits.insert(id, JobExit { how, code });
            }
            _ => {}
        }
    }

    /// What is known so far.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The outcome of everything observed.
    pub fn finish(mut self) -> Outcome {
        if self.measured {
            self.cut_before = Arc::from([]);
            for row in &mut self.outcome.jobs {
                if let Some(execution) = row.execution() {
                    row.run_time = execution;
                    let cut =
                        self.outcome.exits.get(&row.id).is_some_and(|exit| exit.how == ExitCause::WallTime);
                    row.state = if cut { JobState::WalltimeReached } else { JobState::Completed };
                }
            }
        }
        for &job in self.cut_before.iter() {
            let row = self.rows.get(job).and_then(|row| self.outcome.jobs.get_mut(row));
            if let Some(row) = row.filter(|row| row.state == JobState::Completed) {
                row.state = JobState::WalltimeReached;
            }
        }
        self.outcome.until = self.outcome.until.max(self.outcome.origin);
        self.outcome.fcfs_inversions = self.inversions.finish();
        self.outcome.faults = self.faults.finish(self.outcome.until);
        self.outcome
    }

    /// The record of a job that a fault touches. Counts a contradiction if there is no such job.
    fn touch(&mut self, id: JobId) -> Option<&mut JobRecord> {
        let row = *self.row(id)?;
        Some(self.faults.touch(&row))
    }

    /// The process of a site ended, and what it executed with it. Looks at all jobs: crashes are few.
    fn cut(&mut self, site: SiteId, last: Option<Time>, at: Time) {
        let runs = |row: &&JobOutcome| row.state == JobState::Running && row.site == Some(site);
        let mut jobs: Vec<JobId> = self.outcome.jobs.iter().filter(runs).map(|row| row.id).collect();
        jobs.extend(self.faults.executing(site));
        for job in jobs {
            if let Some(record) = self.touch(job)
                && record.executions.cut(site, last, at)
            {
                self.show(job);
            }
        }
    }

    /// Something became of an execution of a job that a fault touched.
    fn execute(&mut self, id: JobId, change: impl FnOnce(&mut Executions) -> Result<(), Misdeed>) {
        let Some(record) = self.faults.job(id) else { return };
        match change(&mut record.executions) {
            Ok(()) => self.show(id),
            Err(Misdeed::StartedTwice) => self.outcome.contradictions.repeated_starts += 1,
            Err(Misdeed::NotThere) => self.outcome.contradictions.unexpected_ends += 1,
        }
    }

    /// Makes the row of a job that a fault touched that of the execution that counts.
    fn show(&mut self, id: JobId) {
        let row = self.rows.get(id).and_then(|row| self.outcome.jobs.get_mut(row));
        let (Some(row), Some(record)) = (row, self.faults.job(id)) else { return };
        let executions = &record.executions;
        if executions.all().is_empty() && !executions.is_given_up() {
            return;
        }
        if let Some(place) = executions.counts() {
            let counts = executions.all()[place];
            (row.start, row.site, row.hops) = (Some(counts.start), Some(counts.site), counts.hops);
            (row.end, row.state) = match counts.fate {
                Fate::Completed(end) => (Some(end), ended(row, end.since(counts.start))),
                _ => (None, JobState::Running),
            };
        } else {
            // It waits again as if it had never started, perhaps for its site to be back, or will never end.
            let killed = executions.is_given_up();
            row.state = if killed { JobState::Killed } else { JobState::Waiting };
            (row.start, row.end) = (None, None);
            row.site = executions.all().last().filter(|_| killed).map(|newest| newest.site);
        }
    }

    /// The row of a job. Counts a contradiction if there is none.
    fn row(&mut self, id: JobId) -> Option<&mut JobOutcome> {
        let row = self.rows.get(id);
        let found = row.and_then(|row| self.outcome.jobs.get_mut(row));
        if found.is_none() {
            self.outcome.contradictions.unknown_jobs += 1;
        }
        found
    }
}

/// How a job ended that executed for so long.
fn ended(row: &JobOutcome, executed: Span) -> JobState {
    let cut = row.run_time > row.requested && executed < row.run_time;
    if cut { JobState::WalltimeReached } else { JobState::Completed }
}

/// The row of a job before anything happened.
fn pending(grid: &Grid, threshold: Threshold, job: &TimedJob) -> JobOutcome {
    let home = grid.home(job.spec.processors);
    let class = home
        .map_or(Class::B, |home| Class::at_home(job.spec.processors, grid.site(home).processors, threshold));
    JobOutcome {
        id: job.spec.id,
        submit: job.spec.submit,
        start: None,
        end: None,
        requested: job.spec.requested,
        run_time: job.run_time,
        steal_delay: Span::ZERO,
        start_delay: Span::ZERO,
        processors: job.spec.processors,
        hops: 0,
        origin: job.spec.origin,
        home,
        arrived: home,
        site: None,
        labels: job.spec.labels,
        class,
        state: match job.spec.processors <= grid.widest_job() {
            true => JobState::Pending,
            false => JobState::Rejected,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{completed, event, started, timed_job};
    use scheduler::{JobSpec, SiteId};

    fn builder(jobs: &[TimedJob]) -> OutcomeBuilder {
        OutcomeBuilder::new(&Grid::of_sizes(&[2, 4]).unwrap(), Threshold::HALF, jobs)
    }

    #[test]
    fn commands_take_as_long_as_they_did_and_how_they_ended_is_kept() {
        // By their timers the first would be cut at 10 s, and the second would end at 10 s.
        let jobs = [timed_job(1, 0, 1, 10), timed_job(2, 0, 1, 10)];
        let exited = |at, job, how, code| event(at, 1, EventKind::Exited { job: JobId(job), how, code });
        let mut builder = builder(&jobs).with_cut(Arc::from([JobId(1)]));
        builder.measure_run_times();
        for event in [
            event(0, 1, submitted(&jobs[0])),
            event(0, 1, submitted(&jobs[1])),
            started(0, 1, 1, 1),
            started(0, 1, 2, 1),
            exited(3, 1, ExitCause::Exit, Some(2)),
            completed(3, 1, 1),
            exited(25, 2, ExitCause::WallTime, None),
            completed(25, 1, 2),
        ] {
            builder.observe(&event);
        }
        let outcome = builder.finish();
        let rows: Vec<_> = outcome.jobs.iter().map(|job| (job.run_time, job.state)).collect();
        let expected =
            [(Span::from_secs(3), JobState::Completed), (Span::from_secs(25), JobState::WalltimeReached)];
        assert_eq!(rows, expected);
        let exits: Vec<_> =
            outcome.exits.values().map(|exit| (exit.how, exit.code, exit.is_success())).collect();
        assert_eq!(exits, [(ExitCause::Exit, Some(2), false), (ExitCause::WallTime, None, false)]);
    }

    #[test]
    fn a_job_that_is_added_during_a_run_counts_as_one_that_was_known_before() {
        let jobs = [timed_job(1, 0, 2, 10), timed_job(2, 30, 4, 5), timed_job(3, 4, 1, 7)];
        let events = [
            event(0, 1, submitted(&jobs[0])),
            started(0, 1, 1, 2),
            event(4, 1, submitted(&jobs[2])),
            started(10, 1, 3, 1),
            completed(10, 1, 1),
            completed(17, 1, 3),
            event(30, 2, submitted(&jobs[1])),
            started(30, 2, 2, 4),
            completed(35, 2, 2),
        ];
        let mut known = builder(&jobs);
        events.iter().for_each(|event| known.observe(event));
        let mut added = builder(&jobs[..2]);
        events[..2].iter().for_each(|event| added.observe(event));
        added.add(&jobs[2]);
        events[2..].iter().for_each(|event| added.observe(event));

        assert_eq!(added.finish(), known.finish());
    }

    fn submitted(job: &TimedJob) -> EventKind {
        let JobSpec { id: job, processors, requested, origin, .. } = job.spec;
        EventKind::Submitted { job, processors, requested, origin }
    }

    #[test]
    fn a_job_over_several_sites_is_one_job_with_its_work_at_each() {
        let grid = Grid::of_sizes(&[2, 4]).unwrap().with_spread(6);
        let jobs = [timed_job(1, 0, 5, 10), timed_job(2, 0, 7, 10)];
        let (job, of) = (JobId(1), SiteId(2));
        let log = [
            event(0, 2, submitted(&jobs[0])),
            event(0, 2, EventKind::Started { job, processors: 3, hops: 0 }),
            event(0, 1, EventKind::PartStarted { job, processors: 2, of }),
            event(10, 2, EventKind::Completed { job, processors: 3 }),
            event(10, 1, EventKind::PartCompleted { job, processors: 2, of }),
        ];
        let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &jobs);
        log.iter().for_each(|event| builder.observe(event));
        let outcome = builder.finish();

        assert_eq!(
            outcome.jobs.iter().map(|job| job.state).collect::<Vec<_>>(),
            [JobState::Completed, JobState::Rejected,]
        );
        assert_eq!((outcome.contradictions.total(), outcome.jobs[0].home), (0, None));
        let parts: Vec<_> =
            outcome.parts(&outcome.jobs[0]).map(|part| (part.site, part.processors)).collect();
        assert_eq!(parts, [(Some(of), 3), (Some(SiteId(1)), 2)]);
        let bounds = crate::Bounds::of(&outcome);
        assert_eq!(bounds.best, Span::from_secs(10));
        let metrics = crate::Metrics::of(&outcome, &bounds);
        let utilization: Vec<f64> = metrics.sites.iter().map(|site| site.utilization).collect();
        assert_eq!(utilization, [1.0, 0.75]);
        // Another part may be the first to say that it started.
        let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &jobs);
        [0, 2, 1, 3, 4].iter().for_each(|&place| builder.observe(&log[place]));
        assert_eq!(builder.finish().spread[&job], [(of, 3), (SiteId(1), 2)]);
        // Of a grid that spreads nothing it is too wide.
        let narrow = Grid::of_sizes(&[2, 4]).unwrap();
        let mut builder = OutcomeBuilder::new(&narrow, Threshold::HALF, &jobs);
        log.iter().for_each(|event| builder.observe(event));
        assert_eq!(builder.finish().contradictions.rejected_seen, 2);
    }

    #[test]
    fn a_job_that_was_routed_is_not_stolen_but_away_from_its_origin() {
        // Two sites of 4; the home of all jobs is site 1. Jobs 1 and 2 come at site 2, 1 is routed; 2 is stolen.
        let jobs = [1, 2, 3].map(|id| {
            let mut job = timed_job(id, 0, 2, 5);
            job.spec.origin = SiteId(if id == 3 { 1 } else { 2 });
            job
        });
        let grid = Grid::of_sizes(&[4, 4]).unwrap();
        let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &jobs).with_submit(Submit::Origin);
        let moved = |job: u64, cause: GrantCause| {
            let (job, transfer) = (JobId(job), 1);
            let granted = EventKind::Granted { job, to: SiteId(1), transfer, hops: 1, cause, request: 0 };
            let accepted = EventKind::Accepted { job, from: SiteId(2), transfer, firm: false };
            [event(1, 2, granted), event(2, 1, accepted)]
        };
        let submitted = |job: &TimedJob| {
            let JobSpec { id: job, processors, requested, origin, .. } = job.spec;
            event(0, origin.0, EventKind::Submitted { job, processors, requested, origin })
        };
        let mut events: Vec<Event> = jobs.iter().map(submitted).collect();
        events.extend([moved(1, GrantCause::Route), moved(2, GrantCause::Request)].concat());
        events.extend([started(2, 1, 1, 2), started(2, 1, 2, 2), started(7, 1, 3, 2)]);
        events.extend([completed(7, 1, 1), completed(7, 1, 2), completed(12, 1, 3)]);
        events.iter().for_each(|event| builder.observe(event));
        let outcome = builder.finish();

        assert_eq!(outcome.jobs.iter().map(JobOutcome::stolen).collect::<Vec<_>>(), [false, true, false]);
        let metrics = crate::Metrics::of(&outcome, &crate::Bounds::of(&outcome));
        assert_eq!((metrics.stolen_jobs, metrics.away_from_home_jobs), (1, 0));
        assert_eq!(metrics.away_from_origin_jobs, Some(2));

        // The same events of jobs that are submitted at home: nobody is away.
        let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &jobs);
        events.iter().for_each(|event| builder.observe(event));
        let outcome = builder.finish();
        let metrics = crate::Metrics::of(&outcome, &crate::Bounds::of(&outcome));
        assert_eq!((metrics.stolen_jobs, metrics.away_from_origin_jobs), (0, None));
    }

    #[test]
    fn a_stolen_job_knows_its_path_and_its_delay() {
        let jobs = [timed_job(7, 0, 2, 10)];
        let mut builder = builder(&jobs);

        let (job, transfer) = (JobId(7), 1);
        builder.observe(&event(
            3,
            1,
            EventKind::Granted {
                job,
                to: SiteId(2),
                transfer,
                hops: 1,
                cause: GrantCause::Request,
                request: 1,
            },
        ));
        builder.observe(&event(5, 2, EventKind::Accepted { job, from: SiteId(1), transfer, firm: false }));
        builder.observe(&event(6, 2, EventKind::Started { job, processors: 2, hops: 1 }));
        builder.observe(&completed(16, 2, 7));

        let outcome = builder.finish();
        let row = outcome.jobs[0];
        assert_eq!((row.home, row.site, row.hops), (Some(SiteId(1)), Some(SiteId(2)), 1));
        assert_eq!(row.class, Class::A);
        assert_eq!((row.steal_delay, row.start_delay), (Span::from_secs(2), Span::from_secs(1)));
        assert_eq!(row.wait(), Some(Span::from_secs(6)));
        assert!(row.stolen());
        assert!(outcome.is_complete());
    }

    #[test]
    fn a_transfer_that_came_back_costs_no_steal_delay() {
        let jobs = [timed_job(7, 0, 2, 10)];
        let mut builder = builder(&jobs);

        let job = JobId(7);
        builder.observe(&event(
            3,
            1,
            EventKind::Granted {
                job,
                to: SiteId(2),
                transfer: 1,
                hops: 1,
                cause: GrantCause::Request,
                request: 1,
            },
        ));
        builder.observe(&event(9, 1, EventKind::Returned { job, by: SiteId(2), transfer: 1, bounces: 1 }));
        builder.observe(&started(9, 1, 7, 2));

        let outcome = builder.finish();
        assert_eq!(outcome.jobs[0].steal_delay, Span::ZERO);
        assert_eq!(outcome.traffic.returns, 1);
        assert_eq!(outcome.jobs[0].state, JobState::Running);
    }

    #[test]
    fn states_of_a_run_that_stopped_early_are_told_apart() {
        let mut long = timed_job(3, 0, 1, 500);
        long.spec.requested = Span::from_secs(100);
        let jobs = [long, timed_job(4, 0, 1, 10), timed_job(6, 0, 1, 10), timed_job(9, 90, 1, 1)];
        let mut wide = timed_job(12, 95, 5, 1);
        wide.spec.requested = Span::from_secs(5);
        let jobs: Vec<TimedJob> = jobs.into_iter().chain([wide]).collect();
        let mut builder = builder(&jobs);

        builder.observe(&started(0, 1, 3, 1));
        builder.observe(&started(0, 1, 4, 1));
        let (job, processors, requested) = (JobId(6), 1, Span::from_secs(10));
        builder.observe(&event(0, 1, EventKind::Submitted { job, processors, requested, origin: SiteId(1) }));
        builder.observe(&completed(100, 1, 3));

        let outcome = builder.finish();
        let states: Vec<JobState> = outcome.jobs.iter().map(|job| job.state).collect();
        use JobState::{Pending, Rejected, Running, Waiting, WalltimeReached};
        assert_eq!(states, [WalltimeReached, Running, Waiting, Pending, Rejected]);
        assert!(!outcome.is_complete());
        assert_eq!(outcome.makespan(), Span::from_secs(100));
        assert_eq!(outcome.until, Time::from_secs(100));
    }

    #[test]
    fn everything_is_counted_from_the_first_submission_of_a_job_that_fits() {
        let late = [timed_job(1, 50, 9, 10), timed_job(2, 100, 1, 10), timed_job(3, 130, 1, 10)];
        let mut builder = builder(&late);
        assert_eq!(builder.outcome().origin, Time::from_secs(100), "the first is wider than every site");
        // By an order, before the trace begins.
        builder.add(&timed_job(4, 80, 9, 10));
        assert_eq!(builder.outcome().origin, Time::from_secs(100));
        builder.add(&timed_job(5, 90, 1, 10));
        builder.add(&timed_job(6, 95, 1, 10));
        assert_eq!(builder.outcome().origin, Time::from_secs(90));
        builder.observe(&started(100, 1, 2, 1));
        builder.observe(&completed(110, 1, 2));
        assert_eq!(builder.finish().makespan(), Span::from_secs(20));

        let nothing =
            super::OutcomeBuilder::new(&Grid::of_sizes(&[4]).unwrap(), Threshold::HALF, &[]).finish();
        assert_eq!((nothing.origin, nothing.until), (Time::ZERO, Time::ZERO));
    }

    #[test]
    fn contradictions_are_counted_and_change_no_row() {
        let jobs = [timed_job(1, 0, 1, 10)];
        let mut builder = builder(&jobs);

        builder.observe(&started(0, 1, 1, 1));
        let before = builder.outcome().jobs.clone();
        builder.observe(&started(1, 2, 1, 1));
        builder.observe(&completed(2, 2, 1));
        builder.observe(&started(3, 2, 99, 1));

        let outcome = builder.finish();
        assert_eq!(outcome.jobs, before);
        let expected =
            Contradictions { unknown_jobs: 1, repeated_starts: 1, unexpected_ends: 1, rejected_seen: 0 };
        assert_eq!(outcome.contradictions, expected);
    }

    #[test]
    fn a_row_stays_far_below_the_memory_budget() {
        // 400 bytes a job for the whole program, of which the workload takes 64.
        assert!(size_of::<JobOutcome>() <= 144, "{}", size_of::<JobOutcome>());
    }
}
