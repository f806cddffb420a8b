//! What the operator orders during a run: that the site leaves, or takes over jobs of one that never comes back.

use protocol::Input;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::SiteLoop;
use crate::control::api::Adoption;
use crate::control::{StillThere, Unready};

impl SiteLoop {
    /// Whether the process ends: always, or only if the site was told to leave and has nothing left to do.
    pub(super) fn may_stop(&self, left: bool, answer: oneshot::Sender<Result<(), StillThere>>) -> bool {
        let may = if left && !self.peer.has_left() { Err(StillThere) } else { Ok(()) };
        // Whoever asked may not wait for the answer.
        let _ = answer.send(may);
        may.is_ok()
    }

    /// Has the site give its jobs away.
    pub(super) fn leave(&mut self) -> anyhow::Result<Result<(), Unready>> {
        if let Err(unready) = self.ready_for_orders() {
            return Ok(Err(unready));
        }
        self.tell_order(Input::Leave)?;
        self.finish_order()?;
        Ok(Ok(()))
    }

    /// Makes jobs this site's. What is answered is kept.
    pub(super) fn adopt(&mut self, adoptions: &[Adoption]) -> anyhow::Result<Result<(), Unready>> {
        if let Err(unready) = self.ready_for_orders() {
            return Ok(Err(unready));
        }
        let widest = self.grid.widest_job();
        for adoption in adoptions {
            let (job, processors) = (adoption.job.spec.id, adoption.job.spec.processors);
            if processors == 0 || processors > widest {
                return Ok(Err(Unready::Width { job, processors, widest }));
            }
            if !adoption.is_lawful(&self.grid) {
                return Ok(Err(Unready::Bounds(job)));
            }
        }
        for Adoption { job, epoch } in adoptions {
            self.metrics.introduce(&job.spec);
            self.executor.learn(job.spec.id, job.run_time);
            self.tell_order(Input::Adopt { job: job.spec, epoch: *epoch })?;
        }
        self.finish_order()?;
        Ok(Ok(()))
    }

    fn ready_for_orders(&self) -> Result<(), Unready> {
        if !self.clock.is_running(Instant::now()) {
            return Err(Unready::Clock);
        }
        match self.peer.config().options.heartbeat {
            Some(_) => Ok(()),
            None => Err(Unready::Membership),
        }
    }

    fn tell_order(&mut self, input: Input) -> anyhow::Result<()> {
        self.now = self.now.max(self.clock.at(Instant::now()));
        self.tell_fact(input)
    }

    fn finish_order(&mut self) -> anyhow::Result<()> {
        self.tell(Input::Turn)?;
        self.settle()?;
        self.commit()
    }
}
