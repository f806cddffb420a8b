//! When jobs on shared nodes end, and what a job that comes or goes changes of that.
//!
//! Only what can change is calculated again. Computing slows down for jobs on the nodes that are touched. Bandwidths change within a
//! component: jobs that are joined by links which cannot carry what all ask for. A link that can is the bottleneck of nobody, under
//! either rule of fairness, so nothing spreads through it. `scheduler/tests/sharing_twin` calculates all at each event and must agree.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add;
use std::sync::Arc;

use super::bandwidth::{Fairness, Network, is_saturated};
use super::demand::Demand;
use super::local_load::{NOBODY, Usage};
use super::platform::Platform;
use super::slowdown::{processing, stretch};
use super::social_contract::Candidate;
use crate::job::JobId;
use crate::time::{Span, Time};

/// How much longer a job is taken to need than on idle nodes of full power.
#[derive(Clone, Debug, PartialEq)]
pub enum Estimate {
    /// The model itself: T^p SP + T^c SC (Lérida 3.1 to 3.9, and how links are shared).
    Sdpn(Fairness),
    /// T^e MPL after Hanzich (3.4.3, Table 3.3), with the most tasks that are on any node of the job: a reading, as in (3.4).
    Hanzich,
    /// T^e Sd (3.10 to 3.12), where Sd was learned for each job and each most number of tasks on any of its nodes, from 1; past the last
    /// one the last holds. Jobs that are not there count as not slowed down.
    Hybrid(Arc<BTreeMap<JobId, Vec<f64>>>),
}

impl Default for Estimate {
    fn default() -> Estimate {
        Estimate::Sdpn(Fairness::Proportional)
    }
}

/// How many times longer things take, each at least 1 under [`Estimate::Sdpn`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowdown {
    /// Computing: SP of (3.4).
    pub processing: f64,
    /// Communicating: SC of (3.5).
    pub communication: f64,
    /// The job: what is left of it, over what would be left on idle nodes of full power.
    pub stretch: f64,
}

/// A job that executes.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its name.
    pub job: JobId,
    /// What it asked for.
    pub demand: Demand,
    /// When it started, or was known to execute.
    pub start: Time,
    /// When it ends, as things are.
    pub end: Time,
    /// How much it is slowed down, as things are.
    pub slowdown: Slowdown,
    /// Its nodes, with weight 1, then the uplinks that it uses, numbered after all nodes.
    links: Vec<(u32, f64)>,
    /// Microseconds that it needs on idle nodes of full power, from `since` on.
    remaining: f64,
    since: Time,
}

impl Running {
    /// Its nodes, lowest first.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.links[..self.demand.tasks as usize].iter().map(|link| link.0)
    }

    /// What it would still need on idle nodes of full power, in microseconds, at an instant not before anything that it was told of last.
    /// Both parts of it, T^p and T^c, shrink alike (reading B of (3.9): what passes is split as the job uses it).
    pub fn remaining(&self, now: Time) -> f64 {
        (self.remaining - now.since(self.since).as_micros() as f64 / self.slowdown.stretch).max(0.0)
    }
}

/// A node or an uplink, and the jobs on it by their ids.
#[derive(Clone, Debug)]
struct Place {
    on: Vec<(JobId, u32, f64)>,
    usage: Usage,
    /// Memory that tasks have, in KB.
    taken: u64,
    saturated: bool,
}

/// Nodes, links and jobs, without the keys by which drivers know these.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) platform: Arc<Platform>,
    estimate: Estimate,
    places: Vec<Place>,
    jobs: Vec<Running>,
    vacant: Vec<u32>,
    ends: BTreeSet<(Time, JobId, u32)>,
    /// What local users do, in the order of time; those before `next_change` are done.
    changes: Arc<[(Time, u32, Usage)]>,
    next_change: usize,
    scratch: Scratch,
    /// Jobs that go on at another speed than before, and at which, if somebody listens.
    pub(super) paces: Option<Vec<(JobId, Pace)>>,
}

/// How fast a job goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// How many times longer what is left of it takes than on idle nodes of full power.
    pub stretch: f64,
    /// The part of that time in which it computes, from 0 to 1: T^p SP over T^p SP + T^c SC (3.1).
    pub computing: f64,
}

/// Lists that are kept for the next calculation.
#[derive(Clone, Debug, Default)]
struct Scratch {
    round: u32,
    touched: Vec<u32>,
    /// Jobs on nodes that are touched, and jobs of the component, each marked by its round.
    on_touched: Vec<u32>,
    component: Vec<u32>,
    is_on_touched: Vec<u32>,
    is_in_component: Vec<u32>,
    /// Links of the component; where they are in the network.
    links: Vec<u32>,
    is_link: Vec<u32>,
    index: Vec<u32>,
    network: Network,
}

impl State {
    pub(super) fn new(platform: Arc<Platform>, estimate: Estimate) -> State {
        let links = platform.nodes().len() + platform.clusters();
        let place = Place { on: Vec::new(), usage: NOBODY, taken: 0, saturated: false };
        let loads = platform.local().iter().zip(0u32..);
        let mut changes: Vec<(Time, u32, Usage)> = loads
            .flat_map(|(load, node)| load.changes().iter().map(move |&(at, usage)| (at, node, usage)))
            .collect();
        changes.sort_by_key(|change| (change.0, change.1));
        let scratch = Scratch { is_link: vec![0; links], index: vec![0; links], ..Scratch::default() };
        State {
            platform,
            estimate,
            places: vec![place; links],
            jobs: Vec::new(),
            vacant: Vec::new(),
            ends: BTreeSet::new(),
            changes: changes.into(),
            next_change: 0,
            scratch,
            paces: None,
        }
    }

    pub(super) fn job(&self, slot: u32) -> &Running {
        &self.jobs[slot as usize]
    }

    pub(super) fn first(&self) -> Option<(Time, JobId, u32)> {
        self.ends.first().copied()
    }

    pub(super) fn ends(&self) -> impl Iterator<Item = u32> + '_ {
        self.ends.iter().map(|end| end.2)
    }

    pub(super) fn usage(&self, node: u32) -> Usage {
        self.places[node as usize].usage
    }

    /// When local users change something next.
    pub(super) fn next_change(&self) -> Option<Time> {
        self.changes.get(self.next_change).map(|change| change.0)
    }

    /// Nothing changes any more.
    pub(super) fn freeze(&mut self) {
        self.next_change = self.changes.len();
    }

    /// Jobs are slowed down as by this estimate from now on.
    pub(super) fn believe(&mut self, now: Time, estimate: Estimate) {
        self.estimate = estimate;
        self.scratch.touched.extend(0..self.places.len() as u32);
        self.settle(now);
    }

    /// A node as placing sees it.
    pub(super) fn candidate(&self, node: u32) -> Candidate {
        let (spec, place) = (&self.platform.nodes()[node as usize], &self.places[node as usize]);
        Candidate {
            node,
            tasks: place.on.len() as u32,
            mpl: spec.mpl,
            memory: place.usage.memory_left(spec.memory).saturating_sub(place.taken),
            power: spec.power,
        }
    }

    /// A job is on these nodes and uplinks from now on, with so much of it left. Returns its slot.
    pub(super) fn insert(
        &mut self,
        now: Time,
        job: JobId,
        demand: Demand,
        remaining: f64,
        links: impl Iterator<Item = (u32, f64)>,
    ) -> u32 {
        let slot = self.vacant.pop().unwrap_or(self.jobs.len() as u32);
        let slowdown = Slowdown { processing: 0.0, communication: 1.0, stretch: f64::INFINITY };
        // No end before it is settled, which gives it one.
        let end = Time::MAX;
        let links = match self.jobs.get_mut(slot as usize) {
            Some(old) => {
                let mut list = std::mem::take(&mut old.links);
                list.clear();
                list.extend(links);
                list
            }
            None => links.collect(),
        };
        let running = Running { job, demand, start: now, end, slowdown, links, remaining, since: now };
        for &(link, weight) in &running.links {
            let place = &mut self.places[link as usize];
            let at = place.on.partition_point(|other| other.0 < job);
            place.on.insert(at, (job, slot, weight));
            if (link as usize) < self.platform.nodes().len() {
                place.taken = place.taken.saturating_add(demand.memory);
            }
            self.scratch.touched.push(link);
        }
        if (slot as usize) < self.jobs.len() {
            self.jobs[slot as usize] = running;
        } else {
            self.jobs.push(running);
            self.scratch.is_on_touched.push(0);
            self.scratch.is_in_component.push(0);
        }
        self.ends.insert((end, job, slot));
        self.settle(now);
        slot
    }

    /// A job is gone from now on.
    pub(super) fn remove(&mut self, now: Time, slot: u32) {
        let Running { job, demand, end, ref links, .. } = self.jobs[slot as usize];
        for &(link, _) in links {
            let place = &mut self.places[link as usize];
            let at = place.on.binary_search_by_key(&job, |other| other.0).expect("it is on its links");
            place.on.remove(at);
            if (link as usize) < self.platform.nodes().len() {
                place.taken -= demand.memory;
            }
            self.scratch.touched.push(link);
        }
        self.ends.remove(&(end, job, slot));
        self.vacant.push(slot);
        self.settle(now);
    }

    /// Local users do what they do up to now, and not past the next end.
    pub(super) fn advance(&mut self, now: Time) {
        while let Some(at) = self.next_change() {
            if at > now || self.first().is_some_and(|end| end.0 < at) {
                return;
            }
            while let Some(&(_, node, usage)) =
                self.changes.get(self.next_change).filter(|change| change.0 == at)
            {
                self.places[node as usize].usage = usage;
                self.scratch.touched.push(node);
                self.next_change += 1;
            }
            self.settle(at);
        }
    }

    /// Calculates anew what the links that were touched may have changed.
    fn settle(&mut self, now: Time) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.begin();
        self.gather(&mut scratch);
        self.share(&mut scratch);
        for &slot in &scratch.on_touched {
            self.jobs[slot as usize].slowdown.processing = self.processing(slot);
        }
        let in_component = scratch.component.iter().copied();
        let others = scratch.on_touched.iter().copied();
        let round = scratch.round;
        let others = others.filter(|&slot| scratch.is_in_component[slot as usize] != round);
        for slot in in_component.chain(others) {
            self.retime(now, slot);
        }
        scratch.touched.clear();
        self.scratch = scratch;
    }

    /// Finds the jobs on nodes that were touched, and those whose bandwidth may change.
    fn gather(&mut self, scratch: &mut Scratch) {
        let nodes = self.platform.nodes().len();
        for touched in 0..scratch.touched.len() {
            let link = scratch.touched[touched];
            let is_short = self.is_short(link);
            let place = &mut self.places[link as usize];
            let was_short = std::mem::replace(&mut place.saturated, is_short);
            for &(_, slot, _) in &place.on {
                if (link as usize) < nodes {
                    scratch.add_on_touched(slot);
                }
                if was_short || is_short {
                    scratch.add_to_component(slot);
                }
            }
        }
        // A job that was on a short link and is so no more is in the component, too, and so whoever shared one with a job that is gone.
        let mut next = 0;
        while let Some(&slot) = scratch.component.get(next) {
            next += 1;
            for &(link, _) in &self.jobs[slot as usize].links {
                let place = &self.places[link as usize];
                if place.saturated && scratch.add_link(link) {
                    place.on.iter().for_each(|other| scratch.add_to_component(other.1));
                }
            }
        }
    }

    /// Whether a link cannot carry what all that is on it asks for. Only the model looks at links.
    fn is_short(&self, link: u32) -> bool {
        if !matches!(self.estimate, Estimate::Sdpn(_)) {
            return false;
        }
        let on = &self.places[link as usize].on;
        let asked =
            |&(_, slot, weight): &(JobId, u32, f64)| weight * self.jobs[slot as usize].demand.bandwidth;
        is_saturated(self.capacity(link), on.iter().map(asked).fold(0.0, Add::add))
    }

    /// What a link leaves to jobs, in Mbit/s: local traffic goes first.
    fn capacity(&self, link: u32) -> f64 {
        let link = link as usize;
        match self.platform.nodes().get(link) {
            Some(node) => node.link - self.places[link].usage.bandwidth(),
            None => self.platform.uplinks()[link - self.platform.nodes().len()],
        }
    }

    /// Gives the jobs of the component their bandwidths.
    fn share(&mut self, scratch: &mut Scratch) {
        let Estimate::Sdpn(fairness) = self.estimate else { return };
        let Scratch { component, links, index, network, .. } = scratch;
        if component.is_empty() {
            return;
        }
        component.sort_unstable_by_key(|&slot| self.jobs[slot as usize].job);
        links.sort_unstable();
        network.clear();
        for (place, &link) in links.iter().enumerate() {
            index[link as usize] = place as u32;
            network.add_link(self.capacity(link));
        }
        for &slot in component.iter() {
            let running = &self.jobs[slot as usize];
            let short = running.links.iter().filter(|link| self.places[link.0 as usize].saturated);
            let short = short.map(|&(link, weight)| (index[link as usize] as usize, weight));
            network.add_flow(running.demand.bandwidth, short);
        }
        network.solve(fairness);
        for (&slot, &assigned) in component.iter().zip(&network.assigned) {
            let Running { demand, slowdown, .. } = &mut self.jobs[slot as usize];
            slowdown.communication = if demand.bandwidth > 0.0 { demand.bandwidth / assigned } else { 1.0 };
        }
    }

    /// SP of (3.4), or the factor that stands for everything.
    fn processing(&self, slot: u32) -> f64 {
        let running = &self.jobs[slot as usize];
        let places = running.nodes().map(|node| (node as usize, &self.places[node as usize]));
        let most = |places: &mut dyn Iterator<Item = (usize, &Place)>| {
            places.map(|(_, place)| place.on.len()).max().unwrap_or(1)
        };
        match &self.estimate {
            Estimate::Sdpn(_) => places
                .map(|(node, place)| {
                    let power = self.platform.nodes()[node].power;
                    processing(power, place.usage.computing(), place.on.len() as u32)
                })
                .fold(0.0, f64::max),
            Estimate::Hanzich => most(&mut { places }) as f64,
            Estimate::Hybrid(learned) => {
                let place = most(&mut { places }) - 1;
                let learned = learned.get(&running.job).filter(|learned| !learned.is_empty());
                learned.map_or(1.0, |learned| learned[place.min(learned.len() - 1)])
            }
        }
    }

    /// Moves the end of a job, if its slow-down is another one. An end that has come stays, whatever happens at its instant.
    fn retime(&mut self, now: Time, slot: u32) {
        let running = &mut self.jobs[slot as usize];
        let Slowdown { processing, communication, .. } = running.slowdown;
        let stretched = match self.estimate {
            Estimate::Sdpn(_) => stretch(running.demand.computing, processing, communication),
            _ => processing,
        };
        if stretched.to_bits() == running.slowdown.stretch.to_bits() || running.end <= now {
            return;
        }
        running.remaining = running.remaining(now);
        running.since = now;
        running.slowdown.stretch = stretched;
        if let Some(paces) = &mut self.paces {
            let computing = (running.demand.computing * processing / stretched).clamp(0.0, 1.0);
            paces.push((running.job, Pace { stretch: stretched, computing }));
        }
        let left = Span::from_micros((running.remaining * stretched).round() as i64);
        let end = now.saturating_add(left);
        if end != running.end {
            let job = running.job;
            let old = std::mem::replace(&mut running.end, end);
            self.ends.remove(&(old, job, slot));
            self.ends.insert((end, job, slot));
        }
    }
}

impl Scratch {
    fn begin(&mut self) {
        // Marks of rounds long past must not count again.
        if self.round == u32::MAX {
            self.round = 0;
            for marks in [&mut self.is_on_touched, &mut self.is_in_component, &mut self.is_link] {
                marks.fill(0);
            }
        }
        self.round += 1;
        self.on_touched.clear();
        self.component.clear();
        self.links.clear();
    }

    fn add_on_touched(&mut self, slot: u32) {
        if std::mem::replace(&mut self.is_on_touched[slot as usize], self.round) != self.round {
            self.on_touched.push(slot);
        }
    }

    fn add_to_component(&mut self, slot: u32) {
        if std::mem::replace(&mut self.is_in_component[slot as usize], self.round) != self.round {
            self.component.push(slot);
        }
    }

    fn add_link(&mut self, link: u32) -> bool {
        let is_new = std::mem::replace(&mut self.is_link[link as usize], self.round) != self.round;
        if is_new {
            self.links.push(link);
        }
        is_new
    }
}
