//! What old views do to the decisions of brokers: how old they were, how often the true state would have chosen otherwise,
//! and what that cost.
//!
//! The true state is followed through the events: what each site has, and what is on its way to it from any broker, as the
//! ideal reference sees it ([`brokers::ideal::Brokered`]). At each decision the same rules are asked with it. What a
//! different choice cost is told by plans, hence by estimates: what came of it later has many causes.

use std::collections::BTreeSet;

use brokers::allocation::{Allocator, Book};
use scheduler::strategy::Plan;
use scheduler::{
    Broker, BrokerRule, Event, EventKind, Grid, JobId, JobIndex, JobSpec, LocalScheduler, Pass, SiteId, Span,
    Strategy, Time, TimedJob,
};
use serde::{Deserialize, Serialize};

use crate::spread::{Distribution, Spread};

/// What was found of all decisions of a run. Times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionCost {
    /// Jobs that brokers gave to sites.
    pub decisions: u64,
    /// How long ago the newest thing had happened that the broker knew of the chosen site.
    pub view_age_s: Distribution,
    /// Decisions for a site of which nothing had been heard.
    pub unheard: u64,
    /// Share of the decisions at which something had happened at the chosen site that its broker did not know.
    pub stale_share: f64,
    /// For how long the view of the chosen site had been wrong; 0 where it was not.
    pub stale_s: Distribution,
    /// Decisions that were held against the true state; none if the rule needs no state.
    pub compared: u64,
    /// Share of these at which the true state would have chosen another site. None if nothing was compared, as all of these.
    pub otherwise_share: Option<f64>,
    /// By how much later the job started by plan than where the true state would have sent it: the mean over all that were
    /// compared. Below 0 if views that were old chose better by chance.
    pub lost_mean_s: Option<f64>,
    /// The same over those that went elsewhere.
    pub lost_when_otherwise_s: Option<f64>,
    /// The most that one job lost.
    pub lost_max_s: Option<f64>,
    /// Herding: jobs that brokers had sent to the chosen site since the state that the decision was made by; the mean.
    pub unseen_mean: f64,
    /// The most of them.
    pub unseen_max: u64,
}

/// Follows the events of a run.
#[derive(Clone, Debug)]
pub struct Decisions {
    grid: Grid,
    jobs: Vec<JobSpec>,
    index: JobIndex,
    truth: Option<Truth>,
    /// Whether brokers are told what sites do: else no view is old.
    has_views: bool,
    /// Every so many-th decision is compared.
    every: u64,
    /// By place of the site among those with processors: when something happened there.
    changes: Vec<Vec<Time>>,
    /// And when brokers sent a job there.
    sent: Vec<Vec<Time>>,
    decisions: u64,
    ages: Spread,
    stale: Spread,
    unheard: u64,
    stale_count: u64,
    compared: u64,
    otherwise: u64,
    /// Microseconds.
    lost: i128,
    lost_max: i128,
    unseen: u64,
    unseen_max: u64,
}

/// Every site as it is.
#[derive(Clone, Debug)]
struct Truth {
    rules: Broker,
    allocator: Allocator,
    books: Vec<Book>,
    /// What started at the instant of the undecided ones.
    starts: Vec<Vec<JobId>>,
    undecided: BTreeSet<usize>,
    at: Time,
}

impl Truth {
    fn new(grid: &Grid, rules: Broker, local: LocalScheduler) -> Truth {
        let sizes = &grid.sizes()[grid.brokers()..];
        Truth {
            rules,
            allocator: Allocator::new(rules, sizes, local, Pass::Batch, 0, 0),
            books: sizes.iter().map(|&size| Book::new(local, Pass::Batch, size, true)).collect(),
            starts: vec![Vec::new(); sizes.len()],
            undecided: BTreeSet::new(),
            at: Time::from_micros(i64::MIN),
        }
    }

    /// Sites decide at the end of an instant; brokers before.
    fn advance(&mut self, now: Time) {
        if now > self.at {
            for place in std::mem::take(&mut self.undecided) {
                let starts = std::mem::take(&mut self.starts[place]);
                self.books[place].decided(self.at, &starts);
            }
            self.at = now;
        }
    }

    fn choose(&mut self, now: Time, job: &JobSpec) -> Option<usize> {
        self.allocator.choose_knowing(now, job, &mut self.books)
    }

    fn start(&self, now: Time, place: usize, job: &JobSpec) -> i128 {
        i128::from(self.books[place].plan(now, self.rules.overrun, None).with(job).start.as_micros())
    }
}

impl Decisions {
    /// For a run of these jobs whose sites start what they got by this scheduler. Of decisions that need the state of sites,
    /// every `every`-th is compared, none if 0.
    pub fn new(
        grid: &Grid,
        strategy: &Strategy,
        local: LocalScheduler,
        jobs: &[TimedJob],
        every: u64,
    ) -> Decisions {
        let rules = strategy.broker();
        let known = rules.filter(|rules| has_truth(rules) && every > 0);
        let truth = known.map(|rules| Truth::new(grid, *rules, local));
        let sites = grid.len() - grid.brokers();
        Decisions {
            grid: grid.clone(),
            jobs: jobs.iter().map(|job| job.spec).collect(),
            index: JobIndex::new(jobs),
            truth,
            has_views: rules.is_some_and(Broker::needs_reports),
            every: every.max(1),
            changes: vec![Vec::new(); sites],
            sent: vec![Vec::new(); sites],
            decisions: 0,
            ages: Spread::default(),
            stale: Spread::default(),
            unheard: 0,
            stale_count: 0,
            compared: 0,
            otherwise: 0,
            lost: 0,
            lost_max: 0,
            unseen: 0,
            unseen_max: 0,
        }
    }

    fn place(&self, site: SiteId) -> Option<usize> {
        self.grid.rank(site).checked_sub(self.grid.brokers())
    }

    fn spec(&self, job: JobId) -> Option<JobSpec> {
        self.index.get(job).and_then(|place| self.jobs.get(place)).copied()
    }

    /// Takes the next event.
    pub fn observe(&mut self, event: &Event) {
        let now = event.at;
        let here = self.place(event.site);
        match (event.kind, here) {
            (EventKind::Allocated { job, to, as_of }, None) => self.decided(now, job, to, as_of),
            (EventKind::Granted { job, to, .. }, None) => {
                if let (Some(place), Some(spec)) = (self.place(to), self.spec(job)) {
                    self.sent[place].push(now);
                    if let Some(truth) = &mut self.truth {
                        truth.advance(now);
                        truth.books[place].expects(spec);
                    }
                }
            }
            (EventKind::Submitted { job, .. } | EventKind::Accepted { job, .. }, Some(place)) => {
                let spec = self.spec(job);
                self.happened(now, place, |truth| {
                    let book = &mut truth.books[place];
                    if let Some(spec) = spec.filter(|spec| spec.processors <= book.processors()) {
                        book.joined(now, spec);
                    }
                });
            }
            (EventKind::Started { job, .. }, Some(place)) => {
                self.happened(now, place, |truth| truth.starts[place].push(job));
            }
            (EventKind::Completed { job, .. }, Some(place)) => {
                self.happened(now, place, |truth| {
                    // It may have started at this instant.
                    if truth.starts[place].contains(&job) {
                        let starts = std::mem::take(&mut truth.starts[place]);
                        truth.books[place].decided(now, &starts);
                    }
                    truth.books[place].ended(now, job);
                });
            }
            _ => {}
        }
    }

    fn happened(&mut self, now: Time, place: usize, tell: impl FnOnce(&mut Truth)) {
        let changes = &mut self.changes[place];
        if changes.last() != Some(&now) {
            changes.push(now);
        }
        if let Some(truth) = &mut self.truth {
            truth.advance(now);
            truth.undecided.insert(place);
            tell(truth);
        }
    }

    fn decided(&mut self, now: Time, job: JobId, to: SiteId, as_of: Option<Time>) {
        let Some(chosen) = self.place(to) else { return };
        self.decisions += 1;
        if self.has_views {
            self.look_at(now, chosen, as_of);
        }
        if self.decisions.is_multiple_of(self.every) {
            self.compare(now, job, chosen);
        }
    }

    /// How old the view of the chosen site was.
    fn look_at(&mut self, now: Time, chosen: usize, as_of: Option<Time>) {
        let since = as_of.unwrap_or(Time::from_micros(i64::MIN));
        let after = |times: &[Time]| times.partition_point(|&time| time <= since);
        match as_of {
            Some(as_of) => self.ages.add(now.since(as_of).max(Span::ZERO)),
            None => self.unheard += 1,
        }
        let changes = &self.changes[chosen];
        let wrong = changes.get(after(changes)).map_or(Span::ZERO, |&first| now.since(first).max(Span::ZERO));
        self.stale.add(wrong);
        self.stale_count += u64::from(wrong > Span::ZERO);
        let sent = &self.sent[chosen];
        let unseen = (sent.len() - after(sent)) as u64;
        self.unseen += unseen;
        self.unseen_max = self.unseen_max.max(unseen);
    }

    fn compare(&mut self, now: Time, job: JobId, chosen: usize) {
        let Some(spec) = self.spec(job) else { return };
        let Some(truth) = &mut self.truth else { return };
        truth.advance(now);
        let Some(best) = truth.choose(now, &spec) else { return };
        self.compared += 1;
        if best != chosen && spec.processors <= truth.books[chosen].processors() {
            let lost = truth.start(now, chosen, &spec) - truth.start(now, best, &spec);
            self.otherwise += 1;
            self.lost += lost;
            self.lost_max = self.lost_max.max(lost);
        }
    }

    /// What was found; none if no broker decided.
    pub fn finish(&self) -> Option<DecisionCost> {
        let rate = |count: f64, of: u64| if of == 0 { 0.0 } else { count / of as f64 };
        let seconds = |micros: i128| micros as f64 / 1e6;
        let compared = |value: f64| (self.compared > 0).then_some(value);
        (self.decisions > 0).then(|| DecisionCost {
            decisions: self.decisions,
            view_age_s: self.ages.distribution(),
            unheard: self.unheard,
            stale_share: rate(self.stale_count as f64, self.decisions),
            stale_s: self.stale.distribution(),
            compared: self.compared,
            otherwise_share: compared(rate(self.otherwise as f64, self.compared)),
            lost_mean_s: compared(rate(seconds(self.lost), self.compared)),
            lost_when_otherwise_s: compared(rate(seconds(self.lost), self.otherwise)),
            lost_max_s: compared(seconds(self.lost_max)),
            unseen_mean: rate(self.unseen as f64, self.decisions),
            unseen_max: self.unseen_max,
        })
    }
}

/// Whether the true state says which site the rules would choose: not by chance, nor in turn, nor for a batch at
/// once, nor by a plan that nothing corrects, and at once.
fn has_truth(rules: &Broker) -> bool {
    let by_state = !matches!(
        rules.rule,
        BrokerRule::Random
            | BrokerRule::RoundRobin
            | BrokerRule::External
            | BrokerRule::Genetic
            | BrokerRule::Mcisne
    );
    by_state && rules.plan == Plan::Resynchronised
}
