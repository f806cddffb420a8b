//! What another site may say: the bounds within which arithmetic is exact and the books of this site hold.
//!
//! A site is who its transport proved it to be, but nothing proves that it keeps to the protocol. What no correct
//! peer says is ignored whole, and told as [`scheduler::EventKind::Ignored`]. What a liar says within these bounds
//! can cost jobs, those that it was given and those that it says were taken over, and have jobs wait, where what is stolen
//! goes first or while it tells of ever more that it took over. It cannot end this site, have it run a job beside itself,
//! or harm a job that it was never handed and never names (`simulator::swarm` checks that with liars).

use std::collections::BTreeSet;

use scheduler::{SiteId, Span, Time};

use crate::bounds::{COUNT_MAX, EPOCH_MAX, MICROS_MAX, are_counts, is_release, is_site_of, is_time};
use crate::core::Core;
use crate::engine::Engine;
use crate::engine::Family;
use crate::handover::{Arrival, Custody};
use crate::membership::Report;
use crate::membership::may_live;
use crate::message::{HandOverMessage, MembershipMessage, Message, Offer, Speech as _, Transfer};
use crate::rank::Rank;

impl<F: Family> Engine<F> {
    /// Whether a correct peer, of that rank, can have said this.
    pub(crate) fn is_lawful(&self, other: Rank, message: &Message) -> bool {
        match message {
            Message::HandOver(message) => self.may_hand_over(other, message),
            Message::Membership(message) => self.core.may_report(message),
            message => F::Message::seen_in(message).is_some_and(|said| F::is_lawful(&self.core, other, said)),
        }
    }

    fn may_hand_over(&self, other: Rank, message: &HandOverMessage) -> bool {
        let core = &self.core;
        match message {
            // Numbers that were never given are looked up and not found.
            HandOverMessage::Reply { .. } => true,
            HandOverMessage::Route { transfers, floor } => {
                let is_ours = |transfer: &Transfer| F::takes_routed(core, &transfer.job);
                are_counts(&[*floor]) && core.may_move(other, transfers) && transfers.iter().all(is_ours)
            }
            HandOverMessage::Recall { number, floor } => are_counts(&[*number, *floor]),
            HandOverMessage::Floor { floor } => are_counts(&[*floor]),
        }
    }
}

impl Core {
    fn may_report(&self, message: &MembershipMessage) -> bool {
        match message {
            MembershipMessage::Heartbeat { incarnation, first, known, voids, .. } => {
                may_live(*incarnation)
                    && are_counts(&[*first, *known])
                    && voids.iter().all(|void| void.epoch <= EPOCH_MAX)
            }
            MembershipMessage::Reports { reports } => {
                let me = self.config.site;
                let is_site = |report: &Report| report.guardian == me && self.is_site(report.holder);
                reports.iter().all(|report| is_site(report) && report.epoch <= EPOCH_MAX)
            }
            // Only what the guardian itself says of a job is looked at.
            MembershipMessage::Noted { .. } => true,
        }
    }

    /// Whether these jobs can change their owner to this site: each is a job, and none of those that come for the
    /// first time is here or was here after the sender had it.
    pub(crate) fn may_move(&self, other: Rank, transfers: &[Transfer]) -> bool {
        let from = self.site_at(other);
        let mut coming = BTreeSet::new();
        transfers.iter().all(|transfer| {
            let job = &transfer.job;
            let is_new = self.ledger.arrival(from, transfer.number) == Arrival::New;
            (1..=COUNT_MAX).contains(&transfer.number)
                && self.is_job(job.processors, job.submit, job.requested)
                && self.is_site(job.origin)
                && transfer.epoch <= EPOCH_MAX
                && transfer.guardian.is_none_or(|guardian| self.is_site(guardian))
                && (!is_new || self.may_come(transfer) && coming.insert(job.id))
        })
    }

    fn may_come(&self, transfer: &Transfer) -> bool {
        let job = transfer.job.id;
        // A job does not change: what executes here is as wide as it was.
        if self.runs_with(job).is_some_and(|processors| processors != transfer.job.processors) {
            return false;
        }
        // One that executes goes on under the newer epoch. What waits under an older one than is believed was submitted
        // after somebody had lied about its number, and stays.
        let replaces = self.is_newest(transfer) || self.runs_with(job).is_some();
        let newer =
            |custody: &Custody| self.membership.is_some() && custody.epoch < transfer.epoch && replaces;
        if self.is_void(transfer) || self.custody.get(&job).is_some_and(newer) {
            // It was taken over: the older of the two copies is dropped.
            return true;
        }
        // A job that this site gave away may come back before the answer does, but then it moved once more, or was
        // taken over since.
        let taken_over = |out: &Transfer| self.membership.is_some() && out.epoch < transfer.epoch;
        let came_back = |out: &Transfer| out.hops < transfer.hops || taken_over(out);
        let went = self.ledger.hops_out(job).is_some();
        let mut out = self.ledger.transfers_out().map(|(_, out)| out).filter(|out| went && out.job.id == job);
        !self.is_here(job) && out.all(came_back)
    }

    fn is_site(&self, site: SiteId) -> bool {
        is_site_of(&self.config.grid, site)
    }

    pub(crate) fn is_job(&self, processors: u32, submit: Time, requested: Span) -> bool {
        (1..=self.config.grid.widest_job()).contains(&processors)
            && is_time(submit)
            && (0..=MICROS_MAX).contains(&requested.as_micros())
    }

    /// Whether a site of that rank can have so many idle processors and such running jobs.
    pub(crate) fn may_offer(&self, other: Rank, offer: &Offer) -> bool {
        let busy: u64 = offer.releases.iter().map(|release| u64::from(release.processors)).sum();
        offer.free.is_within(&self.capacity_of(other))
            && busy <= u64::from(self.processors_of(other))
            && offer.releases.iter().all(is_release)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::event::MessageKind;
    use scheduler::{EventKind, Grid, JobId, JobSpec};

    use super::*;
    use crate::config::{Options, PeerConfig, Terms};
    use crate::fixtures::job;
    use crate::journal::Durable;
    use crate::message::{BalanceMessage, PoolMessage, QueueState, Rest, StealMessage};
    use crate::message::{Epoch, LoadReport, Release};
    use crate::peer::{Input, Output, Peer};

    const STATE: QueueState = QueueState { version: 1, rest: Rest::Empty, lead: 0 };

    /// Site 2 of three sites with 4, 8 and 16 processors.
    fn peer(strategy: &str) -> Peer {
        let strategy = strategy.parse::<scheduler::StrategySpec>().unwrap().strategy;
        Peer::new(PeerConfig {
            site: SiteId(2),
            terms: Terms {
                options: Options { message_events: false, ..Options::default() },
                ..Terms::new(Arc::new(Grid::of_sizes(&[4, 8, 16]).unwrap()), strategy)
            },
        })
    }

    fn transfer(number: u64, job: JobSpec) -> Transfer {
        Transfer { number, job, bounces: 0, hops: 1, epoch: 0, moves: 1, guardian: None }
    }

    fn grant(transfers: Vec<Transfer>) -> Message {
        StealMessage::Grant { transfers, answers: None, state: STATE, floor: 1 }.into()
    }

    fn route(transfers: Vec<Transfer>) -> Message {
        HandOverMessage::Route { transfers, floor: 1 }.into()
    }

    fn tell(peer: &mut Peer, input: Input) -> Vec<Output> {
        peer.handle(Time::ZERO, input);
        let outputs = std::iter::from_fn(|| peer.poll_output()).collect();
        peer.check_invariants();
        outputs
    }

    fn hear(peer: &mut Peer, from: u32, message: Message) -> Vec<Output> {
        tell(peer, Input::Message { from: SiteId(from), message })
    }

    fn ignored(from: u32, message: MessageKind) -> Vec<Output> {
        vec![Output::Event(EventKind::Ignored { from: SiteId(from), message })]
    }

    fn starts(outputs: &[Output]) -> usize {
        outputs.iter().filter(|output| matches!(output, Output::Start(_))).count()
    }

    #[test]
    fn a_job_too_wide_for_the_site_is_not_taken() {
        for strategy in ["local", "st:50", "steal:random"] {
            let message = route(vec![transfer(1, job(1, 9))]);
            assert_eq!(hear(&mut peer(strategy), 1, message), ignored(1, MessageKind::Route), "{strategy}");
        }
    }

    #[test]
    fn what_takes_no_processors_is_no_job() {
        for strategy in ["local", "st:50", "common-pool"] {
            let message = route(vec![transfer(1, job(1, 0))]);
            assert_eq!(hear(&mut peer(strategy), 1, message), ignored(1, MessageKind::Route), "{strategy}");
        }
        let message = grant(vec![transfer(1, job(1, 0))]);
        assert_eq!(hear(&mut peer("st:50"), 1, message), ignored(1, MessageKind::Grant));
    }

    #[test]
    fn a_job_that_runs_here_does_not_come_a_second_time() {
        let mut peer = peer("st:50");
        let first = hear(&mut peer, 1, grant(vec![transfer(1, job(1, 2))]));
        assert_eq!(starts(&first), 1);

        let again = hear(&mut peer, 1, grant(vec![transfer(2, job(1, 2))]));

        assert_eq!(again, ignored(1, MessageKind::Grant));
        let copy = hear(&mut peer, 1, grant(vec![transfer(1, job(1, 2))]));
        assert!(matches!(copy[..], [Output::Send { .. }]), "a copy is answered as before: {copy:?}");
    }

    /// It waits when the message comes, starts before that is looked at, and comes under a newer epoch and wider than
    /// the site.
    #[test]
    fn a_job_that_executes_stays_as_wide_as_it_is() {
        let mut config = peer("steal:random").config().clone();
        config.options.heartbeat = Some(Span::from_secs(5));
        config.options.journal = true;
        let mut durable = Durable::default();
        let mut peer = Peer::restore(config.clone(), &durable, Time::ZERO);
        let mut hear = |peer: &mut Peer, input| {
            for output in tell(peer, input) {
                if let Output::Write(fact) = output {
                    durable.apply(&fact);
                }
            }
        };
        hear(&mut peer, Input::Submitted(job(1, 2)));
        let wider = Transfer { epoch: 10, ..transfer(1, job(1, 16)) };
        let load_report =
            LoadReport { site: SiteId(1), version: 1, age: Span::ZERO, work: 0, narrowest: 0, idle: 0 };
        let message =
            BalanceMessage::Give { transfers: vec![wider], answers: None, load_report, floor: 1 }.into();
        hear(&mut peer, Input::Message { from: SiteId(1), message });

        assert_eq!(peer.free(), 6);
        assert_eq!(durable.running().map(|kept| kept.custody.epoch).collect::<Vec<_>>(), [10]);
        assert_eq!(durable.check(&config), Ok(()));
    }

    #[test]
    fn a_job_that_waits_here_does_not_come_a_second_time() {
        for strategy in ["local", "st:50", "pool:easy", "steal:random"] {
            let mut peer = peer(strategy);
            tell(&mut peer, Input::Submitted(job(1, 8)));
            let message = route(vec![transfer(1, job(1, 8))]);
            assert_eq!(hear(&mut peer, 3, message), ignored(3, MessageKind::Route), "{strategy}");
        }
    }

    #[test]
    fn a_message_with_one_job_twice_is_not_taken() {
        let message = route(vec![transfer(1, job(1, 8)), transfer(2, job(1, 8))]);
        assert_eq!(hear(&mut peer("st:50"), 1, message), ignored(1, MessageKind::Route));
    }

    #[test]
    fn a_job_that_left_comes_back_only_as_one_that_moved_on() {
        let mut peer = peer("st:50");
        // Its home is site 3, so that it is routed there.
        tell(&mut peer, Input::Submitted(job(1, 9)));
        let too_wide = Transfer { hops: 2, ..transfer(1, job(1, 9)) };
        assert!(hear(&mut peer, 1, grant(vec![too_wide])).len() > 1, "declined, with a reply");
        let forged = transfer(2, job(1, 2));
        assert_eq!(hear(&mut peer, 1, grant(vec![forged])), ignored(1, MessageKind::Grant));
    }

    #[test]
    fn a_job_that_came_back_is_not_taken_back_once_more() {
        let mut peer = peer("st:50");
        tell(&mut peer, Input::Submitted(job(1, 8)));
        let request =
            StealMessage::Request { seq: 1, offer: Offer { free: 16.into(), ..Offer::default() }, seen: 0 }
                .into();
        // The turn of site 2 would start the job: another one has to keep it waiting.
        let outputs = hear(&mut peer, 1, grant(vec![transfer(1, job(2, 1))]));
        assert_eq!(starts(&outputs), 0, "own work waits");
        tell(&mut peer, Input::Turn);
        tell(&mut peer, Input::Submitted(job(3, 8)));
        let outputs = hear(&mut peer, 3, request);
        let sent = outputs.iter().find_map(|output| match output {
            Output::Send { message, .. } => message.transfers().first().copied(),
            _ => None,
        });
        let left = sent.expect("job 3 is granted");
        assert_eq!(left.job.id, JobId(3));
        let back = Transfer { hops: left.hops + 1, bounces: 9, ..transfer(2, job(3, 8)) };
        hear(&mut peer, 1, grant(vec![back]));
        assert!(peer.core().is_here(JobId(3)));

        let declined = HandOverMessage::Reply { accepted: Vec::new(), declined: vec![left.number] }.into();
        let outputs = hear(&mut peer, 3, declined);

        assert!(outputs.contains(&ignored(3, MessageKind::Reply)[0]), "{outputs:?}");
        assert_eq!(peer.waiting(), 1);
    }

    #[test]
    fn only_who_answers_for_a_job_says_that_it_has_ended() {
        let mut config = peer("st:50").config().clone();
        (config.options.heartbeat, config.options.lease) =
            (Some(Span::from_secs(5)), Some(Span::from_secs(60)));
        let mut peer = Peer::new(config);
        // Own work waits while a stolen job does, so that the larger site gets it.
        hear(&mut peer, 1, grant(vec![transfer(1, job(2, 1))]));
        tell(&mut peer, Input::Submitted(job(3, 8)));
        let offer = Offer { free: 16.into(), ..Offer::default() };
        hear(&mut peer, 3, StealMessage::Request { seq: 1, offer, seen: 0 }.into());
        assert_eq!(peer.ledger().transfers_out().count(), 1);
        let ended = Report {
            job: JobId(3),
            guardian: SiteId(1),
            epoch: EPOCH_MAX,
            moves: u32::MAX,
            holder: SiteId(3),
            done: true,
        };

        hear(&mut peer, 3, MembershipMessage::Noted { reports: vec![ended] }.into());

        assert_eq!(peer.ledger().transfers_out().count(), 1, "the transfer is still to be answered");
        let late = Report { guardian: SiteId(2), epoch: EPOCH_MAX + 1, ..ended };
        assert_eq!(
            hear(&mut peer, 3, MembershipMessage::Reports { reports: vec![late] }.into()),
            ignored(3, MessageKind::Reports)
        );
    }

    #[test]
    fn a_submission_of_a_number_that_is_here_is_ignored() {
        let mut peer = peer("st:50");
        assert_eq!(starts(&hear(&mut peer, 1, grant(vec![transfer(1, job(1, 2))]))), 1);
        assert_eq!(tell(&mut peer, Input::Submitted(job(1, 8))), ignored(2, MessageKind::Route));
    }

    #[test]
    fn boards_count_from_one() {
        let mut peer = peer("pool:easy");
        let epoch = Epoch { counter: 1, site: SiteId(2) };
        hear(&mut peer, 1, PoolMessage::Host { epoch }.into());
        let message = PoolMessage::Board { board: Box::default(), epoch, ask: false }.into();
        assert_eq!(hear(&mut peer, 1, message), ignored(1, MessageKind::Board));
    }

    #[test]
    fn times_that_do_not_add_up_are_ignored() {
        let load_report = LoadReport {
            site: SiteId(1),
            version: 1,
            age: Span::from_micros(i64::MIN),
            work: 0,
            narrowest: 0,
            idle: 0,
        };
        let message = BalanceMessage::Gossip { load_reports: vec![load_report] }.into();
        assert_eq!(hear(&mut peer("steal:loaded"), 1, message), ignored(1, MessageKind::Gossip));
        let long = JobSpec { requested: Span::from_micros(i64::MAX), ..job(1, 8) };
        let message = route(vec![transfer(1, long)]);
        assert_eq!(hear(&mut peer("st:50"), 1, message), ignored(1, MessageKind::Route));
    }

    #[test]
    fn offers_of_more_than_the_site_has_are_ignored() {
        let releases = vec![Release { at: Time::ZERO, processors: u32::MAX }; 2];
        for offer in
            [Offer { free: 17.into(), ..Offer::default() }, Offer { free: 1.into(), stand: true, releases }]
        {
            let message = StealMessage::Request { seq: 1, offer, seen: 0 }.into();
            assert_eq!(hear(&mut peer("st:50"), 3, message), ignored(3, MessageKind::Request));
        }
    }

    #[test]
    fn payloads_of_strangers_do_not_overflow() {
        let heavy = |id| transfer(id, JobSpec { payload: u64::MAX, ..job(id, 1) });
        assert_eq!(grant(vec![heavy(1), heavy(2)]).payload(), u64::MAX);
    }
}
