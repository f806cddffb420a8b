//! Strategies under free communication: which ideal policy stands for which strategy.

use scheduler::ideal::{Brokered, CommonPool, Dispatched, GreedySteal, PoolExchange, StatelessSteal, World};
use scheduler::local::LocalGrid;
use scheduler::{
    Event, External, Grid, LocalScheduler, LocalUsers, Pass, Strategy, StrategySpec, Submit, TimedJob,
};
use simulator::reference::{ReferenceError, Summary, run_while};

/// A run of the ideal of a strategy.
#[derive(Clone, Copy, Debug)]
pub struct Ideal<'a> {
    /// The strategy whose ideal reference runs.
    pub spec: StrategySpec,
    /// Of local queues.
    pub local: LocalScheduler,
    /// When local queues are gone through.
    pub pass: Pass,
    /// Where jobs enter, other than those that are stolen or that a broker has.
    pub submit: Submit,
    /// Jobs that their users submit past a broker.
    pub local_users: &'a LocalUsers,
    /// The sites that the jobs run at.
    pub grid: &'a Grid,
    /// Of what strategies decide at random.
    pub seed: u64,
    /// In the order of submission.
    pub jobs: &'a [TimedJob],
    /// Who decides elsewhere, if somebody does.
    pub external: Option<&'a dyn External>,
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
        let Ideal { spec, grid, jobs, submit, .. } = *self;
        let pass = Pass::Batch;
        match spec.strategy {
            Strategy::Local => {
                let mut policy = LocalGrid::new(grid.clone(), self.local, self.pass).submitting(submit);
                if let (Some(external), LocalScheduler::External) = (self.external, self.local) {
                    policy = policy.with_deciders(|grid, site| external.queue(grid, site));
                }
                run_while(&mut policy, jobs, grid, self.pass, sink, stop)
            }
            Strategy::Steal(steal) => {
                let mut policy = StatelessSteal::new(grid, steal).with_fetch(spec.fetch);
                run_while(&mut policy, jobs, grid, pass, sink, stop)
            }
            Strategy::StealGreedy(steal) => {
                run_while(&mut GreedySteal::new(grid, steal), jobs, grid, pass, sink, stop)
            }
            Strategy::Pool(pool) => {
                run_while(&mut PoolExchange::new(grid, pool, submit), jobs, grid, pass, sink, stop)
            }
            Strategy::CommonPool => run_while(&mut CommonPool::new(grid), jobs, grid, pass, sink, stop),
            Strategy::Broker(rules) => {
                let mut policy = Brokered::new(grid, rules, self.local, self.pass, self.seed)
                    .with_local_users(self.local_users.clone());
                if let Some(external) = self.external {
                    policy = policy.with_external(external, self.local);
                }
                run_while(&mut policy, jobs, grid, self.pass, sink, stop)
            }
            Strategy::Opaque(options) => {
                let world = World { local_users: self.local_users.clone(), ..World::default() };
                let policy = Dispatched::new(grid, &options, self.local, world, self.seed);
                let mut policy = policy.expect("strategies that make copies are refused where they are read");
                if let (Some(external), LocalScheduler::External) = (self.external, self.local) {
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
