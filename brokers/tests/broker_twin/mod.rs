//! A naive twin of brokers with a global view: one list of all jobs that were ever given away, scanned for every question.
//!
//! It shares nothing with `brokers::allocation` and `scheduler::local`: loads are counted anew, deviations are compared
//! by whole numbers over one divisor, sites decide and plans are played on by a scan. It knows the local schedulers without
//! reservations that last, decides once per instant, and can be told to get one rule wrong.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use scheduler::strategy::{
    ArrivingLoad, Completion, Count, Cut, IdleSince, Overrun, OwnWait, Plan, Population, RunningWork,
};
use scheduler::{
    Broker, BrokerRule, Grid, JobId, JobSpec, LocalScheduler, Policy, QueueKey, SiteId, Start, Time,
};

/// A rule got wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slip {
    /// Of sites that are equally good the last is taken.
    LastOfTies,
    /// Running jobs are no load.
    RunningForgotten,
    /// LBal_S looks at the sites only that the job may be given to.
    BalanceOverPermitted,
    /// The part a is compared as a floating-point number.
    FloatingFraction,
    /// Plans begin with idle sites.
    PlanWithoutRunning,
    /// A job past its estimate is planned to end when it should have.
    EndsInThePast,
    /// Means of waits forget what has ended.
    EndedForgotten,
}

impl Slip {
    pub(crate) const ALL: [Slip; 7] = [
        Slip::LastOfTies,
        Slip::RunningForgotten,
        Slip::BalanceOverPermitted,
        Slip::FloatingFraction,
        Slip::PlanWithoutRunning,
        Slip::EndsInThePast,
        Slip::EndedForgotten,
    ];
}

/// A job that was given to a site; times in microseconds.
#[derive(Clone, Copy, Debug)]
struct Given {
    job: JobSpec,
    broker: usize,
    place: usize,
    at: i64,
    start: Option<i64>,
    end: Option<i64>,
}

impl Given {
    fn waits(&self) -> bool {
        self.start.is_none()
    }

    fn runs(&self) -> bool {
        self.start.is_some() && self.end.is_none()
    }

    fn estimated_end(&self) -> i64 {
        self.start.expect("it runs") + self.job.requested.as_micros()
    }

    /// How long it waited, if it starts at that instant unless it has.
    fn wait(&self, start: i64) -> i128 {
        i128::from(self.start.unwrap_or(start) - self.job.submit.as_micros())
    }
}

/// What a site of this size starts of its jobs, as places in the list.
fn starts(scheduler: LocalScheduler, size: u32, now: i64, jobs: &[Given]) -> Vec<usize> {
    let mut queue: Vec<usize> = (0..jobs.len()).filter(|&index| jobs[index].waits()).collect();
    queue.sort_by_key(|&index| jobs[index].job.key());
    // (estimated end, width) of what runs, then of what was chosen. What is past its estimate ends now.
    let mut ends: Vec<(i64, u32)> = jobs
        .iter()
        .filter(|job| job.runs())
        .map(|job| (job.estimated_end().max(now), job.job.processors))
        .collect();
    let mut chosen = Vec::new();
    let width = |index: usize| jobs[index].job.processors;
    let end = |index: usize| now + jobs[index].job.requested.as_micros();
    let idle = |ends: &[(i64, u32)]| size - ends.iter().map(|end| end.1).sum::<u32>();
    loop {
        let fits: Vec<usize> = queue.iter().copied().filter(|&index| width(index) <= idle(&ends)).collect();
        let Some(&head) = queue.first() else { return chosen };
        let next = if scheduler == LocalScheduler::List || fits.first() == Some(&head) {
            fits.first().copied()
        } else if scheduler == LocalScheduler::Fcfs {
            None
        } else {
            let free_at =
                |time: i64| size - ends.iter().filter(|end| end.0 > time).map(|end| end.1).sum::<u32>();
            let shadow = ends.iter().map(|end| end.0).filter(|&time| free_at(time) >= width(head)).min();
            let shadow = shadow.expect("an idle site is wide enough");
            let harmless =
                |&index: &usize| end(index) <= shadow || free_at(shadow) >= width(head) + width(index);
            let mut candidates = fits.into_iter().filter(|&index| index != head).filter(harmless);
            match scheduler {
                LocalScheduler::EasyBestFit => candidates.min_by_key(|&index| {
                    let job = &jobs[index].job;
                    let area = i64::from(job.processors) * job.requested.as_micros();
                    (-area, std::cmp::Reverse(job.processors), job.key())
                }),
                LocalScheduler::EasyShortest => {
                    candidates.min_by_key(|&index| (jobs[index].job.requested, jobs[index].job.key()))
                }
                LocalScheduler::EasySmallest => {
                    candidates.min_by_key(|&index| (jobs[index].job.processors, jobs[index].job.key()))
                }
                _ => candidates.next(),
            }
        };
        let Some(next) = next else { return chosen };
        queue.retain(|&index| index != next);
        ends.push((end(next), width(next)));
        chosen.push(next);
    }
}

/// A site as a broker sees it: all that it ever got.
#[derive(Clone, Debug)]
struct Seen {
    size: u32,
    jobs: Vec<Given>,
}

impl Seen {
    fn counted(&self, count: Count, slip: Option<Slip>) -> impl Iterator<Item = &JobSpec> {
        let runs = count == Count::All && slip != Some(Slip::RunningForgotten);
        self.jobs.iter().filter(move |job| job.waits() || (runs && job.runs())).map(|job| &job.job)
    }

    fn last_end(&self) -> Option<i64> {
        self.jobs.iter().filter_map(|job| job.end).max()
    }

    /// Every job with its planned start and end; `arriving` is the last of them if it is there.
    fn planned(&self, view: &View<'_>, arriving: Option<&JobSpec>) -> Vec<Given> {
        let (now, slip) = (view.now, view.slip);
        let overdue = now + i64::from(view.rules.overrun == Overrun::Next);
        let mut jobs = self.jobs.clone();
        if slip == Some(Slip::PlanWithoutRunning) {
            jobs.retain(|job| !job.runs());
        }
        jobs.extend(arriving.map(|job| Given {
            job: *job,
            broker: 0,
            place: 0,
            at: now,
            start: None,
            end: None,
        }));
        let mut ends: BTreeMap<usize, i64> = BTreeMap::new();
        for (index, job) in jobs.iter().enumerate().filter(|(_, job)| job.runs()) {
            let end = job.estimated_end();
            ends.insert(index, if end <= now { overdue } else { end });
        }
        let mut at = now;
        loop {
            let ended: Vec<usize> = ends.iter().filter(|end| *end.1 <= at).map(|end| *end.0).collect();
            for index in ended {
                let end = ends.remove(&index).expect("it was there");
                let should = jobs[index].estimated_end();
                jobs[index].end = Some(if slip == Some(Slip::EndsInThePast) { should } else { end });
            }
            for index in starts(view.scheduler, self.size, at, &jobs) {
                jobs[index].start = Some(at);
                ends.insert(index, jobs[index].estimated_end());
            }
            match ends.values().min() {
                Some(&next) => at = next,
                None => return jobs,
            }
        }
    }

    /// When what it has now would have ended.
    fn idle_from(&self, view: &View<'_>, arriving: Option<&JobSpec>) -> Option<i64> {
        let planned = self.planned(view, arriving);
        let was_there =
            |job: &Given| self.jobs.iter().any(|before| before.job.id == job.job.id && before.end.is_some());
        planned.iter().filter(|job| !was_there(job)).filter_map(|job| job.end).max()
    }
}

/// What a decision is made by.
struct View<'a> {
    rules: &'a Broker,
    scheduler: LocalScheduler,
    now: i64,
    slip: Option<Slip>,
}

/// Where a value is least; `compare` orders two of them.
fn least<V>(
    range: &[usize],
    slip: Option<Slip>,
    value: impl Fn(usize) -> V,
    compare: impl Fn(&V, &V) -> Ordering,
) -> usize {
    let mut range = range.to_vec();
    if slip == Some(Slip::LastOfTies) {
        range.reverse();
    }
    let is_least = |place: &&usize| {
        range.iter().all(|&other| compare(&value(**place), &value(other)) != Ordering::Greater)
    };
    *range.iter().find(is_least).expect("a site is wide enough")
}

/// Orders quotients of whole numbers.
fn by_quotient(one: &(i128, i128), other: &(i128, i128)) -> Ordering {
    (one.0 * other.1).cmp(&(other.0 * one.1))
}

/// The twin of `Brokered` for every rule but the random one.
#[derive(Clone, Debug)]
pub(crate) struct TwinBrokered {
    grid: Grid,
    /// Ascending.
    sizes: Vec<u32>,
    rules: Broker,
    scheduler: LocalScheduler,
    slip: Option<Slip>,
    /// In the order in which they were given away.
    given: Vec<Given>,
    arrived: Vec<JobSpec>,
    /// By broker, the place after the one that was chosen last.
    turns: BTreeMap<usize, usize>,
}

impl TwinBrokered {
    pub(crate) fn new(
        grid: &Grid,
        rules: Broker,
        scheduler: LocalScheduler,
        slip: Option<Slip>,
    ) -> TwinBrokered {
        TwinBrokered {
            sizes: grid.sizes().iter().copied().filter(|&size| size > 0).collect(),
            grid: grid.clone(),
            rules,
            scheduler,
            slip,
            given: Vec::new(),
            arrived: Vec::new(),
            turns: BTreeMap::new(),
        }
    }

    fn broker_of(&self, job: &JobSpec) -> usize {
        self.grid.broker_of(job.origin).unwrap_or(0)
    }

    /// The sites wide enough, up to where the part a of their processors is reached.
    fn admissible(&self, job: &JobSpec) -> Vec<usize> {
        let wide: Vec<usize> =
            (0..self.sizes.len()).filter(|&place| self.sizes[place] >= job.processors).collect();
        let whole: u64 = wide.iter().map(|&place| u64::from(self.sizes[place])).sum();
        let (mut part, mut range) = (0, Vec::new());
        for &place in &wide {
            part += u64::from(self.sizes[place]);
            range.push(place);
            let (numerator, denominator) =
                (self.rules.admissible.numerator(), self.rules.admissible.denominator());
            let order = if self.slip == Some(Slip::FloatingFraction) {
                let a = f64::from(numerator) / f64::from(denominator);
                (part as f64).total_cmp(&(a * whole as f64))
            } else {
                (part * u64::from(denominator)).cmp(&(whole * u64::from(numerator)))
            };
            let is_reached = match self.rules.cut {
                Cut::AtLeast | Cut::SizeClass => order != Ordering::Less,
                Cut::Above => order == Ordering::Greater,
            };
            if is_reached {
                if self.rules.cut == Cut::SizeClass {
                    let size = self.sizes[place];
                    range.extend(wide.iter().filter(|&&other| other > place && self.sizes[other] == size));
                }
                break;
            }
        }
        range
    }

    /// The sites as they are.
    fn facts(&self) -> Vec<Seen> {
        let of = |place| self.given.iter().filter(move |job| job.place == place).copied().collect();
        self.sizes.iter().enumerate().map(|(place, &size)| Seen { size, jobs: of(place) }).collect()
    }

    /// The sites as they would be if all that this broker gave away had run as estimated, now with what ends now.
    fn estimates(&self, broker: usize, now: i64) -> Vec<Seen> {
        let mut sites = self.facts();
        for site in &mut sites {
            site.jobs.retain(|job| job.broker == broker);
            for job in &mut site.jobs {
                (job.start, job.end) = (None, None);
            }
            let mut at = i64::MIN;
            loop {
                let placed = site.jobs.iter().map(|job| job.at).filter(|&time| time > at);
                let ends = site.jobs.iter().filter(|job| job.runs()).map(Given::estimated_end);
                let Some(next) = placed.chain(ends).min().filter(|&next| next <= now) else { break };
                at = next;
                for job in site.jobs.iter_mut().filter(|job| job.runs() && job.estimated_end() <= at) {
                    job.end = Some(job.estimated_end());
                }
                if at == now {
                    break;
                }
                // Jobs that are given later do not wait yet.
                let (mut there, later): (Vec<Given>, Vec<Given>) =
                    site.jobs.iter().partition(|job| job.at <= at);
                for index in starts(self.scheduler, site.size, at, &there) {
                    there[index].start = Some(at);
                }
                site.jobs = [there, later].concat();
            }
        }
        sites
    }

    fn choose(&mut self, now: i64, broker: usize, job: &JobSpec) -> usize {
        let range = self.admissible(job);
        let (rules, slip) = (self.rules, self.slip);
        let facts = self.facts();
        let planned = match rules.plan {
            Plan::Resynchronised => facts.clone(),
            Plan::OpenLoop | Plan::OpenLoopAll => self.estimates(broker, now),
        };
        let counted = if rules.plan == Plan::OpenLoopAll { &planned } else { &facts };
        let view = View { rules: &rules, scheduler: self.scheduler, now, slip };
        let jobs_of = |place: usize| counted[place].counted(rules.count, slip).count() as i128;
        let width_of = |place: usize| {
            counted[place].counted(rules.count, slip).map(|job| i128::from(job.processors)).sum::<i128>()
        };
        let size_of = |place: usize| i128::from(self.sizes[place]);
        let by = |value: &dyn Fn(usize) -> (i128, i128)| least(&range, slip, value, by_quotient);
        match rules.rule {
            BrokerRule::Random | BrokerRule::External | BrokerRule::Genetic | BrokerRule::Mcisne => {
                unreachable!("the twin draws nothing, and asks nobody")
            }
            BrokerRule::RoundRobin => {
                let turn = self.turns.entry(broker).or_default();
                let chosen = range.iter().copied().find(|place| place >= turn).unwrap_or(range[0]);
                *turn = chosen + 1;
                chosen
            }
            BrokerRule::Jobs => by(&|place| (jobs_of(place), 1)),
            BrokerRule::JobsPerProcessor => by(&|place| (jobs_of(place), size_of(place))),
            BrokerRule::ParallelLoad => by(&|place| (width_of(place), size_of(place))),
            BrokerRule::BalancedLoad => {
                // All loads over the product of all sizes.
                let divisor: i128 = self.sizes.iter().map(|&size| i128::from(size)).product();
                let deviation = |candidate: usize| {
                    let times = match rules.arriving {
                        ArrivingLoad::Once => 1,
                        ArrivingLoad::PerJob => jobs_of(candidate),
                    };
                    let loads = (0..self.sizes.len()).filter(|place| {
                        slip != Some(Slip::BalanceOverPermitted) || self.sizes[*place] >= job.processors
                    });
                    let loads: Vec<i128> = loads
                        .map(|place| {
                            let more =
                                if place == candidate { times * i128::from(job.processors) } else { 0 };
                            (width_of(place) + more) * (divisor / size_of(place))
                        })
                        .collect();
                    let (count, sum) = (loads.len() as i128, loads.iter().sum::<i128>());
                    (loads.iter().map(|load| (count * load - sum) * (count * load - sum)).sum(), 1)
                };
                by(&deviation)
            }
            BrokerRule::LowerBound => by(&|place| {
                let area = |job: &JobSpec, time: i64| i128::from(job.processors) * i128::from(time);
                let work: i128 = match rules.running {
                    RunningWork::Full => counted[place]
                        .counted(rules.count, slip)
                        .map(|job| area(job, job.requested.as_micros()))
                        .sum(),
                    RunningWork::Remaining => counted[place]
                        .jobs
                        .iter()
                        .map(|given| match (given.waits(), given.runs()) {
                            (true, _) => area(&given.job, given.job.requested.as_micros()),
                            (_, true) if slip != Some(Slip::RunningForgotten) => {
                                area(&given.job, (given.estimated_end() - now).max(0))
                            }
                            _ => 0,
                        })
                        .sum(),
                };
                (work, size_of(place))
            }),
            BrokerRule::CompletionTime => by(&|place| {
                let site = &planned[place];
                let idle = match rules.idle {
                    IdleSince::Now => now,
                    IdleSince::LastEnd => site.last_end().unwrap_or(i64::MIN),
                };
                let end = match rules.completion {
                    Completion::SiteBefore => site.idle_from(&view, None).unwrap_or(idle),
                    Completion::SiteAfter => site.idle_from(&view, Some(job)).unwrap_or(idle),
                    Completion::JobAfter => {
                        let plan = site.planned(&view, Some(job));
                        plan.last().and_then(|last| last.end).expect("it was planned")
                    }
                };
                (end.into(), 1)
            }),
            BrokerRule::StartTime => by(&|place| {
                let plan = planned[place].planned(&view, Some(job));
                (plan.last().and_then(|last| last.start).expect("it was planned").into(), 1)
            }),
            BrokerRule::MeanWait | BrokerRule::WeightedWait => by(&|place| {
                let site = &planned[place];
                let arriving = (rules.own_wait == OwnWait::With).then_some(job);
                let plan = site.planned(&view, arriving);
                let ended = |id: JobId| site.jobs.iter().any(|job| job.job.id == id && job.end.is_some());
                let in_system = rules.population == Population::System || slip == Some(Slip::EndedForgotten);
                let counted = plan.iter().filter(|given| !in_system || !ended(given.job.id));
                let (mut sum, mut count) = (0, 0);
                for given in counted {
                    let weight = if rules.rule == BrokerRule::WeightedWait {
                        i128::from(given.job.processors)
                    } else {
                        1
                    };
                    sum += weight * given.wait(now);
                    count += 1;
                }
                (sum, count.max(1))
            }),
        }
    }
}

impl Policy for TwinBrokered {
    fn submitted(&mut self, _now: Time, job: JobSpec) {
        self.arrived.push(job);
    }

    fn completed(&mut self, now: Time, job: JobId) {
        let given = self.given.iter_mut().find(|given| given.job.id == job).expect("it was given away");
        given.end = Some(now.as_micros());
    }

    fn decide(&mut self, now: Time, started: &mut Vec<Start>) {
        let mut arrived = std::mem::take(&mut self.arrived);
        arrived.sort_by_key(|job| -> (usize, QueueKey) { (self.broker_of(job), job.key()) });
        for job in arrived {
            let broker = self.broker_of(&job);
            let place = self.choose(now.as_micros(), broker, &job);
            self.given.push(Given { job, broker, place, at: now.as_micros(), start: None, end: None });
        }
        let members = self.grid.sizes().len() - self.sizes.len();
        // A site decides when it gets a job or one of its jobs ends. In between only estimates run out.
        let now_is = |time: Option<i64>| time == Some(now.as_micros());
        for (place, site) in self.facts().into_iter().enumerate() {
            if !site.jobs.iter().any(|job| now_is(Some(job.at)) || now_is(job.end)) {
                continue;
            }
            for index in starts(self.scheduler, site.size, now.as_micros(), &site.jobs) {
                let job = site.jobs[index].job;
                let given =
                    self.given.iter_mut().find(|given| given.job.id == job.id).expect("it was given away");
                given.start = Some(now.as_micros());
                started.push(Start { job, site: self.site_at(members + place) });
            }
        }
    }

    fn waiting(&self) -> usize {
        self.arrived.len() + self.given.iter().filter(|job| job.waits()).count()
    }
}

impl TwinBrokered {
    fn site_at(&self, rank: usize) -> SiteId {
        let by_rank = |site: &&scheduler::Site| self.grid.rank(site.id) == rank;
        self.grid.sites().iter().find(by_rank).expect("a site has this rank").id
    }
}
