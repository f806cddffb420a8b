//! Jobs that a broker plans together: when a batch is full or its window over, and what is sent where.

use scheduler::strategy::Batches;
use scheduler::{JobSpec, Span, Time};

use super::desk::{Desk, DeskTimer, is_there, known};
use crate::engine::Engine;

impl Desk {
    pub(super) fn batches(&self) -> Option<Batches> {
        let rules = self.allocator.rules();
        rules.plans_batches().then_some(rules.batches)
    }

    /// Since when the first job waits that is not wider than this, and how many there are.
    fn first(&self, widest: u32) -> Option<(Time, usize)> {
        let fit = self.inbox.values().filter(|waiting| waiting.job.processors <= widest);
        let since = fit.map(|waiting| waiting.since);
        let count = since.clone().count();
        since.min().map(|first| (first, count))
    }
}

impl Engine<Desk> {
    /// A job has come that is planned with others, or a site that may be wide enough for one that waits.
    pub(super) fn wait_for_more(&mut self, now: Time) {
        // Before all that wait are looked at: jobs of other brokers come here, too, and those of a window that is set.
        if self.timers.is_set(DeskTimer::Batch) {
            return;
        }
        let Some(batches) = self.family.batches() else { return };
        let Some((first, _)) = self.family.first(u32::MAX) else { return };
        let left = batches.due_at(first).since(now).max(Span::ZERO);
        self.timers.set(DeskTimer::Batch, now, left);
    }

    /// Whatever waited is planned, as the batch was full, or was taken over: what comes next has a window of its own.
    pub(super) fn stop_waiting(&mut self) {
        if self.timers.is_set(DeskTimer::Batch) && self.family.inbox.is_empty() {
            self.timers.cancel(DeskTimer::Batch);
        }
    }

    /// Plans the batches that are full, and what waits if the window is over; and sends each site its row. A window is over
    /// after everything else of an instant, so that brokers whose windows end together plan in the order of their ranks.
    /// What no site that is there is wide enough for waits for another window.
    pub(super) fn plan_batches(&mut self, now: Time) {
        loop {
            let Engine { core, family: desk, .. } = self;
            let Some(batches) = desk.batches() else { return };
            let brokers = core.config.grid.brokers();
            let present = |place: &usize| is_there(core, brokers + place);
            let widest =
                (0..desk.views.len()).filter(present).map(|place| desk.views[place].book.processors());
            let widest = widest.max().unwrap_or(0);
            let first = desk.first(widest);
            let is_due = |&(first, count): &(Time, usize)| {
                count >= batches.jobs as usize || (desk.is_due && batches.due_at(first) <= now)
            };
            if first.filter(is_due).is_none() {
                break;
            }
            let fit = desk.inbox.values().filter(|waiting| waiting.job.processors <= widest);
            let jobs: Vec<JobSpec> = fit.take(batches.jobs as usize).map(|waiting| waiting.job).collect();
            let sites = known(core, &desk.views, |_| true);
            let rows = desk.allocator.plan(now, &jobs, &sites, core.patience.as_deref());
            for (place, row) in rows {
                row.into_iter().for_each(|job| self.send_to(now, place, job));
            }
        }
        let desk = &mut self.family;
        if std::mem::take(&mut desk.is_due) {
            let batches = desk.batches().unwrap_or_default();
            for waiting in desk.inbox.values_mut().filter(|waiting| batches.due_at(waiting.since) <= now) {
                waiting.since = now;
            }
            // Nobody is wide enough for what is left of a window without length: it waits for the next job or site.
            if batches.window > Span::ZERO {
                self.wait_for_more(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::desk::tests::{config, job};
    use crate::broker::message::BrokerMessage;
    use crate::broker::options::Pending;
    use crate::{Durable, Input, Message, Output, Peer, PeerConfig};
    use scheduler::{JobId, SiteId, StrategySpec};

    fn planning(strategy: &str) -> Peer {
        let mut config = config(Pending::Count);
        config.strategy = strategy.parse::<StrategySpec>().expect("a name").strategy;
        // Nothing is believed to be gone for good.
        config.options.lease = None;
        Peer::restore(config, &Durable::default(), Time::ZERO)
    }

    /// Lets the peer do whatever it wants to at this instant; the sites that it sent jobs to.
    fn instant(peer: &mut Peer, now: Time, input: Input) -> Vec<SiteId> {
        peer.handle(now, input);
        peer.handle(now, Input::Turn);
        while peer.poll_timeout().is_some_and(|at| at <= now) {
            peer.handle(now, Input::Timeout);
            peer.handle(now, Input::Turn);
        }
        let mut sites = Vec::new();
        while let Some(output) = peer.poll_output() {
            if let Output::Send { to, message: Message::HandOver(_) } = output {
                sites.push(to);
            }
        }
        sites
    }

    /// Jobs as wide as the site start one after the other, in the order in which the broker sent them, however the messages
    /// overtake each other.
    #[test]
    fn a_site_starts_a_row_in_the_planned_order_whatever_arrives_first() {
        let mut broker = planning("broker:genetic,window=0s,goal=wait,mutation=1");
        let now = Time::from_secs(1);
        for id in 1..=9 {
            broker.handle(
                now,
                Input::Submitted(JobSpec {
                    requested: Span::from_secs(id * 7 % 10 + 1),
                    ..job(id as u64, 8)
                }),
            );
        }
        let mut sent = Vec::new();
        broker.handle(now, Input::Turn);
        while broker.poll_timeout().is_some_and(|at| at <= now) {
            broker.handle(now, Input::Timeout);
            broker.handle(now, Input::Turn);
        }
        while let Some(output) = broker.poll_output() {
            if let Output::Send { to: SiteId(2), message: message @ Message::HandOver(_) } = output {
                sent.push(message);
            }
        }
        let row: Vec<JobId> =
            sent.iter().flat_map(|message| message.transfers()).map(|transfer| transfer.job.id).collect();
        assert_eq!(row.len(), 9);
        assert!(!row.is_sorted(), "the order of submission would not tell");

        for order in [[0, 1, 2, 3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3, 2, 1, 0], [4, 0, 8, 2, 6, 1, 7, 3, 5]] {
            let config = PeerConfig { site: SiteId(2), ..broker.config().clone() };
            let mut site = Peer::restore(config, &Durable::default(), now);
            for place in order {
                let message = sent[place].clone();
                site.handle(now, Input::Message { from: broker.site(), message });
            }
            let mut started = Vec::new();
            for second in 2.. {
                let now = Time::from_secs(second);
                site.handle(now, Input::Turn);
                let before = started.len();
                while let Some(output) = site.poll_output() {
                    if let Output::Start(job) = output {
                        started.push(job.id);
                    }
                }
                if started.len() == before {
                    break;
                }
                site.handle(now, Input::Completed(started[before]));
            }
            assert_eq!(started, row, "{order:?}");
        }
    }

    #[test]
    fn a_job_of_a_window_without_length_is_planned_when_the_site_is_back_that_is_wide_enough() {
        let mut peer = planning("broker:genetic,window=0s");
        let says = |site| Input::Message {
            from: SiteId(site),
            message: Message::Broker(BrokerMessage::State {
                epoch: 1,
                first: 0,
                changes: Vec::new(),
                probe: 0,
            }),
        };
        for second in 1..=20 {
            instant(&mut peer, Time::from_secs(second), says(1));
        }
        let now = Time::from_secs(21);
        let far = Time::from_secs(22);

        assert_eq!(instant(&mut peer, now, Input::Submitted(job(1, 8))), [], "the wide site is silent");
        assert_eq!(peer.waiting(), 1);
        assert_eq!(instant(&mut peer, far, says(2)), [SiteId(2)]);
        assert_eq!(peer.waiting(), 0);
    }
}
