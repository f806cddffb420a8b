//! What brokers decided lately, as the page shows it.

use std::collections::{BTreeMap, VecDeque};

use experiments::latest::keep;
use scheduler::{SiteId, Span, Time};
use serde::Serialize;

/// Means are over so many of the latest decisions of a broker.
const DECISIONS_KEPT: usize = 100;

/// Jobs that are remembered of each site: whoever is behind by more is so by at least as many.
const SENT_KEPT: usize = 1000;

/// All brokers as of now.
#[derive(Debug, Default)]
pub(super) struct BrokersNow {
    /// By place of the site: when it was sent jobs.
    sent: BTreeMap<usize, VecDeque<Time>>,
    by_place: BTreeMap<usize, BrokerNow>,
}

#[derive(Debug, Default)]
struct BrokerNow {
    decisions: u64,
    unheard: u64,
    /// The version of the page that changed it last.
    changed: u64,
    /// The age of the view, and the jobs that it did not show; none if nothing had been heard.
    latest: VecDeque<Option<(Span, usize)>>,
    recalled: u64,
    /// By place of the site, as of the last job that ended there.
    efficiency: BTreeMap<usize, f64>,
}

/// A broker in a frame of the page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct FrameBroker {
    /// Its place among the members.
    site: usize,
    /// Jobs that it gave to sites.
    decisions: u64,
    /// Of these, to a site of which it had heard nothing.
    unheard: u64,
    /// How old its view of the chosen site was, in seconds of trace time: the mean of the last ones. None if it had none.
    age: Option<f64>,
    /// Herding: jobs that brokers had sent to the chosen site since that view; the mean of the last ones.
    unseen: Option<f64>,
    /// Jobs that it called back.
    recalled: u64,
    /// What it learned of sites: the place of each, and its efficiency in [-1, 1].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    efficiency: Vec<(usize, f64)>,
}

impl BrokersNow {
    /// A broker gave a job to a site, by what it knew as of a time; this makes a version of the page.
    pub(super) fn decided(&mut self, broker: usize, to: SiteId, at: Time, as_of: Option<Time>, version: u64) {
        let sent = self.sent.entry(to.index()).or_default();
        let seen = |as_of: Time| sent.len() - sent.partition_point(|&time| time <= as_of);
        let view = as_of.map(|as_of| (at.since(as_of).max(Span::ZERO), seen(as_of)));
        keep(sent, SENT_KEPT, at);
        let broker = self.by_place.entry(broker).or_default();
        broker.changed = version;
        broker.decisions += 1;
        broker.unheard += u64::from(view.is_none());
        keep(&mut broker.latest, DECISIONS_KEPT, view);
    }

    /// A job that a broker called back came; this makes a version of the page.
    pub(super) fn recalled(&mut self, broker: usize, version: u64) {
        let broker = self.by_place.entry(broker).or_default();
        broker.changed = version;
        broker.recalled += 1;
    }

    /// A broker learned from a job how efficient a site is; this makes a version of the page.
    pub(super) fn learned(&mut self, broker: usize, of: SiteId, millionths: i32, version: u64) {
        let broker = self.by_place.entry(broker).or_default();
        broker.changed = version;
        broker.efficiency.insert(of.index(), f64::from(millionths) / 1e6);
    }

    /// Those that have decided or learned something since a version of the page.
    pub(super) fn since(&self, version: u64) -> Vec<FrameBroker> {
        let one = |(&site, broker): (&usize, &BrokerNow)| {
            let views: Vec<(Span, usize)> = broker.latest.iter().flatten().copied().collect();
            let mean = |sum: f64| (!views.is_empty()).then(|| sum / views.len() as f64);
            FrameBroker {
                site,
                decisions: broker.decisions,
                unheard: broker.unheard,
                age: mean(views.iter().map(|(age, _)| age.as_secs_f64()).sum()),
                unseen: mean(views.iter().map(|&(_, unseen)| unseen as f64).sum()),
                recalled: broker.recalled,
                efficiency: broker.efficiency.iter().map(|(&of, &efficiency)| (of, efficiency)).collect(),
            }
        };
        self.by_place.iter().filter(|(_, broker)| broker.changed > version).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_as_old_as_what_they_do_not_show() {
        let mut brokers = BrokersNow::default();
        let second = Time::from_secs;
        let site = SiteId(1);
        brokers.decided(3, site, second(5), None, 1);
        assert_eq!(brokers.since(0)[0].age, None);
        brokers.decided(3, site, second(10), Some(second(0)), 1);
        brokers.decided(3, site, second(10), Some(second(5)), 1);
        brokers.decided(4, site, second(12), Some(second(10)), 1);
        let [third, fourth] = <[FrameBroker; 2]>::try_from(brokers.since(0)).unwrap();
        // One job was not seen by each: that of 5 s, then that of 10 s.
        assert_eq!((third.site, third.decisions, third.unheard), (3, 3, 1));
        assert_eq!((third.age, third.unseen), (Some(7.5), Some(1.0)));
        assert_eq!((fourth.age, fourth.unseen), (Some(2.0), Some(0.0)));
    }

    #[test]
    fn what_was_learned_last_of_a_site_is_told_with_what_came_back() {
        let mut brokers = BrokersNow::default();
        brokers.decided(2, SiteId(1), Time::ZERO, None, 1);
        brokers.learned(2, SiteId(1), 300_000, 2);
        brokers.learned(2, SiteId(1), -90_000, 3);
        brokers.learned(2, SiteId(2), 0, 3);
        brokers.recalled(2, 4);
        assert_eq!(brokers.since(4), []);
        let frame = brokers.since(3);
        assert_eq!((frame[0].recalled, &frame[0].efficiency[..]), (1, &[(0, -0.09), (1, 0.0)][..]));
    }

    #[test]
    fn only_the_latest_decisions_count() {
        let mut brokers = BrokersNow::default();
        for number in 0..150_i64 {
            let at = Time::from_secs(number);
            let age = Span::from_secs(if number < 50 { 1000 } else { 2 });
            brokers.decided(0, SiteId(1), at, Some(Time::from_micros(at.as_micros() - age.as_micros())), 1);
        }
        let frame = brokers.since(0);
        assert_eq!((frame[0].decisions, frame[0].age), (150, Some(2.0)));
    }
}
