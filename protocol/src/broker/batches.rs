//! A desk whose broker plans batches, and a site that gets rows: what no test of one of them sees.

use scheduler::{JobId, JobSpec, SiteId, Span, StrategySpec, Time};

use crate::broker::desk::tests::{config, job};
use crate::broker::message::BrokerMessage;
use crate::broker::options::Pending;
use crate::{Durable, Input, Message, Output, Peer, PeerConfig};

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
            Input::Submitted(JobSpec { requested: Span::from_secs(id * 7 % 10 + 1), ..job(id as u64, 8) }),
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
        message: Message::Broker(BrokerMessage::State { epoch: 1, first: 0, changes: Vec::new(), probe: 0 }),
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
