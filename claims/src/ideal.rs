//! Strategies under free communication: which ideal policy stands for which strategy.

use brokers::ideal::{Brokered, Dispatched, World};
use protocol::Terms;
use scheduler::ideal::{CommonPool, GreedySteal, PoolExchange, StatelessSteal};
use scheduler::local::LocalGrid;
use scheduler::{Event, LocalScheduler, LocalUsers, Pass, Span, Strategy, Submit, TimedJob};
use simulator::reference::{ReferenceError, Summary, run_while};

/// A run of the ideal of a strategy.
#[derive(Clone, Copy, Debug)]
pub struct Ideal<'a> {
    /// What peers would be told whose strategy it is the reference of.
    pub terms: &'a Terms,
    /// How long a stolen job holds its processors idle before it runs.
    pub fetch: Span,
    /// Where jobs enter, other than those that are stolen or that a broker has.
    pub submit: Submit,
    /// Jobs that their users submit past a broker.
    pub local_users: &'a LocalUsers,
    /// In the order of submission.
    pub jobs: &'a [TimedJob],
}

impl Ideal<'_> {
    /// Until `stop` says so before an instant; the summary then counts fewer jobs than there are.
    ///
    /// # Errors
    /// If the workload does not fit the grid or is not sorted.
    ///
    /// # Panics
    /// If the strategy has no ideal.
    pub fn run_while(
        &self,
        sink: &mut dyn FnMut(Event),
        stop: &dyn Fn() -> bool,
    ) -> Result<Summary, ReferenceError> {
        let Ideal { terms, jobs, submit, .. } = *self;
        let Terms { local, seed, .. } = *terms;
        let (grid, external, pass) = (&*terms.grid, terms.external.as_deref(), Pass::Batch);
        match terms.strategy {
            Strategy::Local => {
                let mut policy = LocalGrid::new(grid.clone(), local, terms.pass).submitting(submit);
                if let Some(forecast) = terms.forecast {
                    policy = policy.with_estimators(|| forecast.estimator());
                }
                if let (Some(external), LocalScheduler::External) = (external, local) {
                    policy = policy.with_deciders(|grid, site| external.queue(grid, site));
                }
                run_while(&mut policy, jobs, grid, terms.pass, sink, stop)
            }
            Strategy::Steal(steal) => {
                let mut policy = StatelessSteal::new(grid, steal).with_fetch(self.fetch);
                run_while(&mut policy, jobs, grid, pass, sink, stop)
            }
            Strategy::StealGreedy(steal) => {
                run_while(&mut GreedySteal::new(grid, steal), jobs, grid, pass, sink, stop)
            }
            Strategy::Pool(pool) => {
                let mut policy = PoolExchange::new(grid, pool, submit);
                if let Some(forecast) = terms.forecast {
                    policy = policy.with_estimators(|| forecast.estimator());
                }
                run_while(&mut policy, jobs, grid, pass, sink, stop)
            }
            Strategy::CommonPool => run_while(&mut CommonPool::new(grid), jobs, grid, pass, sink, stop),
            Strategy::Broker(rules) => {
                let mut policy = Brokered::new(grid, rules, local, terms.pass, seed)
                    .with_local_users(self.local_users.clone());
                if let Some(forecast) = terms.forecast {
                    policy = policy.with_estimators(local, terms.pass, || forecast.estimator());
                }
                if let Some(external) = external {
                    policy = policy.with_external(external, local);
                }
                run_while(&mut policy, jobs, grid, terms.pass, sink, stop)
            }
            Strategy::Opaque(options) => {
                let world = World { local_users: self.local_users.clone(), ..World::default() };
                let policy = Dispatched::new(grid, &options, local, world, seed);
                let mut policy = policy.expect("strategies that make copies are refused where they are read");
                if let Some(forecast) = terms.forecast {
                    policy = policy.with_estimators(|| forecast.estimator());
                }
                if let (Some(external), LocalScheduler::External) = (external, local) {
                    policy = policy.with_external(external);
                }
                run_while(&mut policy, jobs, grid, pass, sink, stop)
            }
            Strategy::Balance(_) => {
                unreachable!("the name of a strategy says that it has no reference")
            }
        }
    }
}
