//! Passing on what sites say of themselves, for the rules that choose by load.
//!
//! Every period a site sends what is new, its own load report and those it heard of, to a few sites drawn at random. Each
//! passes a load report on once, so gossip dies out when nothing changes. A lost one is not repeated.

use scheduler::{Span, Time};

use super::BalanceTimer;
use super::Balancer;
use super::message::LOAD_REPORTS_MAX;
use crate::engine::Engine;
use crate::message::{BalanceMessage, LoadReport};
use crate::rank::Rank;

impl Engine<Balancer> {
    /// Sees to it that what is new will be passed on.
    pub(super) fn arm_gossip(&mut self, now: Time) {
        if !self.family.rules.victim.needs_gossip()
            || self.timers.is_set(BalanceTimer::Gossip)
            || self.core.view.len() == 1
        {
            return;
        }
        let said = self.load_report().version;
        let balancer = &mut self.family;
        if said > balancer.gossiped || !balancer.news.is_empty() {
            self.timers.set(BalanceTimer::Gossip, now, self.core.config.options.balance.gossip);
        }
    }

    /// Passes on what is new, the newest first if it is too much.
    pub(super) fn pass_on(&mut self, now: Time) {
        let own = self.load_report();
        let fanout = self.core.config.options.balance.gossip_fanout;
        let (view, balancer) = (&self.core.view, &mut self.family);
        let mut heard: Vec<(Time, LoadReport)> = std::mem::take(&mut balancer.news)
            .into_iter()
            .filter_map(|rank| balancer.known.get(&rank))
            .map(|known| (known.at, known.load_report))
            .collect();
        heard.sort_unstable_by_key(|&(at, load_report)| (std::cmp::Reverse(at), load_report.site));
        heard.truncate(LOAD_REPORTS_MAX - 1);
        let mut load_reports: Vec<LoadReport> = heard
            .into_iter()
            .map(|(at, load_report)| LoadReport { age: now.since(at), ..load_report })
            .collect();
        load_reports.push(LoadReport { age: Span::ZERO, ..own });
        balancer.gossiped = own.version;
        let mut targets = Vec::new();
        for _ in 0..fanout.min(view.len() - 1) {
            // A draw that repeats another is not drawn again.
            if let Some(target) = balancer.any(Rank::FIRST, view)
                && !targets.contains(&target)
            {
                targets.push(target);
            }
        }
        for target in targets {
            self.core.send(target, BalanceMessage::Gossip { load_reports: load_reports.clone() });
        }
    }

    pub(super) fn on_gossip(&mut self, now: Time, from: Rank, load_reports: &[LoadReport]) {
        for &load_report in load_reports {
            self.overhear(now, from, load_report);
        }
        self.arm_gossip(now);
    }
}
