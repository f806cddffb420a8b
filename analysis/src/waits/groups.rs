//! Waiting jobs by situation, width and memory, and which causes are true of each such group.
//!
//! Jobs of one width and memory in one situation wait for the same, so causes are of groups. A group is looked at anew only after
//! something changed that it depends on: room for its width somewhere, a request to its site, a list that held it. Its
//! waits are summed up when its causes or its number of jobs change. Facts of one instant are taken together.
//!
//! With thousands of sites most changes of room change nothing for most groups: a job that some site does not know of is blind
//! whoever that is. Under rules that look at a site and a job each by itself ([`Rules::is_simple`]), a group elsewhere is looked at anew
//! only where so few sites have room for its width that one more or less may be the difference ([`Groups::enough`]).

use std::collections::{BTreeMap, BTreeSet};

use scheduler::Time;

use super::rules::Rules;
use super::sums::{Cause, Causes, Sums, class_of};
use super::world::{Phase, Situation, World};
use crate::sharing::room::Room;

/// Jobs that wait for the same.
#[derive(Clone, Copy, Debug)]
struct Group {
    situation: Situation,
    width: u32,
    /// Of each task, in KB; what they need of nodes that jobs share.
    memory: u64,
    jobs: u32,
    /// From when on the waits are not summed up.
    since: Time,
    causes: Causes,
    is_stale: bool,
}

/// Sums of jobs and of processors.
#[derive(Clone, Debug, Default)]
pub(super) struct WidthSums {
    pub(super) jobs: u64,
    pub(super) by_job: Sums,
    pub(super) by_processor: Sums,
}

/// All groups, as of the last refresh.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    rules: Rules,
    /// The widest job of each site, by rank.
    widths: Vec<u32>,
    groups: Vec<Group>,
    ids: BTreeMap<(Situation, u32, u64), u32>,
    /// By width; all of them, those without jobs, too.
    by_width: BTreeMap<u32, Vec<u32>>,
    /// Groups that wait at each site.
    waiting_at: Vec<Vec<u32>>,
    /// Groups on the way to each site.
    in_transit_to: Vec<Vec<u32>>,
    stale: Vec<u32>,
    /// The group of each job, and whether the log had the job yet.
    group_of: Vec<Option<u32>>,
    is_seen: Vec<bool>,
    /// Free processors of each site, below zero if more is on its way than fits, and all sites in the order of that.
    free: Vec<i64>,
    ranked: BTreeSet<(i64, u32)>,
    /// Those of them that may take no job, under simple rules.
    closed: BTreeSet<(i64, u32)>,
    /// Whether these rules, and processors, are simple.
    is_simple: bool,
    /// Who has processors on offer at whom, the other way around; and to how many at a time one site had.
    offered_by: BTreeSet<(u32, u32)>,
    offers_of: Vec<u32>,
    offers_most: u32,
    /// What all sites have free together, if jobs start in parts at several.
    together: Option<i64>,
    /// Of each site whose nodes jobs share.
    rooms: Vec<Option<Room>>,
    /// Processors on offer that were counted, by victim and thief. Zeros are not kept.
    offers: BTreeMap<(u32, u32), u32>,
    /// By class of width, see `class_of`.
    sums: Vec<WidthSums>,
    /// Mistakes that tests must notice.
    #[cfg(test)]
    pub(super) mistake: Option<Mistake>,
}

/// Mistakes that tests must notice.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// Groups are not looked at anew when room comes up.
    RoomUnnoticed,
    /// The wait before the last change of a group is forgotten.
    WaitForgotten,
    /// Processors that are kept for a job count as room for others.
    ReservedIsRoom,
    /// One site with room is taken for enough, so that one less changes nothing.
    OneIsEnough,
}

impl Groups {
    pub(super) fn new(rules: Rules, world: &World, widths: &[u32]) -> Groups {
        let sites = widths.len() as u32;
        let free: Vec<i64> = (0..sites).map(|site| world.free(site)).collect();
        let spreads = world.grid().spreads();
        let rooms: Vec<Option<Room>> = (0..sites).map(|site| world.room(site)).collect();
        Groups {
            is_simple: rules.is_simple() && !spreads && rooms.iter().all(Option::is_none),
            closed: BTreeSet::new(),
            offered_by: BTreeSet::new(),
            offers_of: vec![0; sites as usize],
            offers_most: 0,
            rules,
            widths: widths.to_vec(),
            groups: Vec::new(),
            ids: BTreeMap::new(),
            by_width: BTreeMap::new(),
            waiting_at: vec![Vec::new(); sites as usize],
            in_transit_to: vec![Vec::new(); sites as usize],
            stale: Vec::new(),
            group_of: vec![None; world.jobs.len()],
            is_seen: vec![false; world.jobs.len()],
            ranked: (0..sites).map(|site| (free[site as usize], site)).collect(),
            together: spreads.then(|| free.iter().map(|&free| free.max(0)).sum()),
            free,
            rooms,
            offers: BTreeMap::new(),
            sums: vec![WidthSums::default(); class_of(world.grid().widest_job()) + 1],
            #[cfg(test)]
            mistake: None,
        }
    }

    /// The sums of all that was summed up, by class of width.
    pub(super) fn sums(&self) -> &[WidthSums] {
        &self.sums
    }

    /// Takes in what changed at this instant.
    pub(super) fn refresh(&mut self, world: &mut World, now: Time) {
        let mut changes = std::mem::take(&mut world.changes);
        for place in changes.jobs.drain(..) {
            self.move_job(world, place, now);
        }
        for site in changes.sites.drain(..) {
            self.change_room(site, self.free_of(world, site), world.room(site));
        }
        for (thief, victim) in changes.requests.drain(..) {
            self.change_offer(thief, victim, world.asking.on_offer(thief, victim));
        }
        world.changes = changes;
        self.change_lists();
        while let Some(id) = self.stale.pop() {
            let group = self.groups[id as usize];
            let causes = if group.jobs == 0 { group.causes } else { self.causes(&group) };
            self.groups[id as usize].is_stale = false;
            if causes != group.causes {
                self.settle(id, now);
                self.groups[id as usize].causes = causes;
            }
        }
    }

    /// The first cause of a job as of the last refresh, and the smallest other site of which it is true.
    pub(super) fn why(&self, place: u32) -> Option<(Cause, Option<u32>)> {
        let Group { situation, width, memory, causes, .. } =
            self.groups[self.group_of[place as usize]? as usize];
        let cause = causes.first()?;
        let Situation::Waiting { site, offered, .. } = situation else { return Some((cause, None)) };
        let at_home = self.home_of(width) == site;
        let others = self.with_room(width, memory).filter(|&taker| taker != site);
        let room = others.filter(|&taker| self.cause_of(taker, site, width, at_home, offered) == cause).min();
        Some((cause, room))
    }

    fn home_of(&self, width: u32) -> u32 {
        self.widths.partition_point(|&widest| widest < width) as u32
    }

    /// Whether a site has room for a job.
    fn fits(&self, site: u32, width: u32, memory: u64) -> bool {
        let room = self.rooms[site as usize].as_ref();
        self.free[site as usize] >= i64::from(width) && room.is_none_or(|room| room.fits(width, memory))
    }

    /// All sites that have.
    fn with_room(&self, width: u32, memory: u64) -> impl Iterator<Item = u32> + '_ {
        let (open, closed) = (&self.ranked, &self.closed);
        let from = (i64::from(width), 0);
        let wide = open.range(from..).chain(closed.range(from..)).map(|&(_, site)| site);
        wide.filter(move |&site| self.fits(site, width, memory))
    }

    /// What keeps a job from a site that has room for it.
    fn cause_of(&self, taker: u32, site: u32, width: u32, at_home: bool, offered: bool) -> Cause {
        if !self.rules.allow(taker, site, width, at_home, offered) {
            Cause::Ineligible
        } else if matches!(self.rules, Rules::Offered) {
            Cause::Offered
        } else if self.offers.get(&(site, taker)).is_some_and(|&offer| offer >= width) {
            Cause::Asked
        } else {
            Cause::Blind
        }
    }

    fn free_of(&self, world: &World, site: u32) -> i64 {
        #[cfg(test)]
        if self.mistake == Some(Mistake::ReservedIsRoom) {
            return world.idle(site);
        }
        world.free(site)
    }

    fn move_job(&mut self, world: &World, place: u32, now: Time) {
        let job = &world.jobs[place as usize];
        let situation = job.situation();
        let before = self.group_of[place as usize];
        if job.phase != Phase::Ahead && !std::mem::replace(&mut self.is_seen[place as usize], true) {
            // Submitted, and not in the log until now.
            let late = i128::from(now.since(job.submit).as_micros());
            self.add(job.processors, 1, Causes::of(&[Cause::InTransit]), late);
            self.sums[class_of(job.processors)].jobs += 1;
        }
        let old = before.map(|id| self.groups[id as usize].situation);
        if old == situation {
            return;
        }
        if let Some(id) = before {
            self.leave(id, now);
        }
        let after = situation.map(|situation| self.group(situation, (job.processors, job.memory), now));
        if let Some(id) = after {
            self.settle(id, now);
            self.groups[id as usize].jobs += 1;
            self.mark(id);
        }
        self.group_of[place as usize] = after;
        let at_home =
            |situation| matches!(situation, Some(Situation::Waiting { site, .. }) if site == job.home);
        if at_home(old) != at_home(situation)
            && self.rules.waits(job.home, job.processors, at_home(situation))
        {
            // Whether this site may take from others has changed.
            self.mark_widths(0, self.free[job.home as usize]);
        }
        let waits_at = |situation| match situation {
            Some(Situation::Waiting { site, .. }) => Some(site),
            _ => None,
        };
        let (from, to) = (waits_at(old), waits_at(situation));
        if from != to {
            for (site, begins) in [(from, false), (to, true)] {
                if let Some(site) = site
                    && self.rules.queues(site, begins)
                {
                    let free = self.free[site as usize];
                    match self.is_simple {
                        true => self.change_simply(site, (free, begins), (free, !begins)),
                        false => self.mark_widths(0, free),
                    }
                }
            }
        }
    }

    fn leave(&mut self, id: u32, now: Time) {
        #[cfg(test)]
        if self.mistake == Some(Mistake::WaitForgotten) {
            self.groups[id as usize].jobs -= 1;
            return;
        }
        self.settle(id, now);
        self.groups[id as usize].jobs -= 1;
    }

    /// The number of a group, which there is from now on.
    fn group(&mut self, situation: Situation, (width, memory): (u32, u64), now: Time) -> u32 {
        let Groups { ids, groups, by_width, waiting_at, in_transit_to, .. } = self;
        *ids.entry((situation, width, memory)).or_insert_with(|| {
            let id = groups.len() as u32;
            groups.push(Group {
                situation,
                width,
                memory,
                jobs: 0,
                since: now,
                causes: Causes::NONE,
                is_stale: false,
            });
            by_width.entry(width).or_default().push(id);
            match situation {
                Situation::Waiting { site, .. } => waiting_at[site as usize].push(id),
                Situation::InTransit { to } => in_transit_to[to as usize].push(id),
                Situation::Back => {}
            }
            id
        })
    }

    /// So many sites with room that one more or less makes no difference to any group: without the group's own site, and without those
    /// that have asked it, one is left.
    fn enough(&self) -> usize {
        #[cfg(test)]
        if self.mistake == Some(Mistake::OneIsEnough) {
            return 1;
        }
        self.offers_most as usize + 3
    }

    /// The widest job for which enough of these sites have room.
    fn widest_for_many(&self, sites: &BTreeSet<(i64, u32)>) -> i64 {
        sites.iter().rev().nth(self.enough() - 1).map_or(i64::MIN, |&(free, _)| free)
    }

    /// Under simple rules: what a site has free is something else, or whether it may take jobs.
    fn change_simply(&mut self, site: u32, (before, was_open): (i64, bool), (after, is_open): (i64, bool)) {
        // Which widths had enough sites, and have.
        let mut many =
            self.widest_for_many(self.sites(was_open)).min(self.widest_for_many(self.sites(is_open)));
        self.sites_mut(was_open).remove(&(before, site));
        self.sites_mut(is_open).insert((after, site));
        many = many
            .min(self.widest_for_many(self.sites(was_open)))
            .min(self.widest_for_many(self.sites(is_open)));
        let (low, high) = match was_open == is_open {
            true => (before.min(after), before.max(after)),
            // It had room for these in one way, and has in the other.
            false => (0, before.max(after)),
        };
        self.mark_widths(low.max(many), high);
        let bound = |end: i64| u32::try_from(end.max(0)).unwrap_or(u32::MAX);
        self.mark_waiting(site, bound(low), bound(high));
        let asked: Vec<u32> =
            self.offered_by.range((site, 0)..=(site, u32::MAX)).map(|&(_, victim)| victim).collect();
        for victim in asked {
            self.mark_waiting(victim, bound(low), bound(high));
        }
    }

    fn sites(&self, open: bool) -> &BTreeSet<(i64, u32)> {
        if open { &self.ranked } else { &self.closed }
    }

    fn sites_mut(&mut self, open: bool) -> &mut BTreeSet<(i64, u32)> {
        if open { &mut self.ranked } else { &mut self.closed }
    }

    fn change_room(&mut self, site: u32, after: i64, room: Option<Room>) {
        let before = std::mem::replace(&mut self.free[site as usize], after);
        if self.is_simple {
            if before == after {
                return;
            }
            let open = self.rules.is_open(site);
            #[cfg(test)]
            if self.mistake == Some(Mistake::RoomUnnoticed) {
                self.sites_mut(open).remove(&(before, site));
                self.sites_mut(open).insert((after, site));
                return;
            }
            self.change_simply(site, (before, open), (after, open));
            return self.change_sign(site, before, after);
        }
        // As many nodes may have less memory, or more.
        let differs = self.rooms[site as usize] != room;
        self.rooms[site as usize] = room;
        if before == after && !differs {
            return;
        }
        self.ranked.remove(&(before, site));
        self.ranked.insert((after, site));
        #[cfg(test)]
        if self.mistake == Some(Mistake::RoomUnnoticed) {
            return;
        }
        if let Some(together) = &mut self.together {
            *together += after.max(0) - before.max(0);
            let widest = self.widths.last().copied().unwrap_or(0);
            self.mark_widths(i64::from(widest), i64::from(u32::MAX));
        }
        self.mark_widths(if differs { 0 } else { before.min(after) }, before.max(after));
        self.change_sign(site, before, after);
    }

    /// What is on its way to a site fits there, or no more.
    fn change_sign(&mut self, site: u32, before: i64, after: i64) {
        if (before < 0) != (after < 0) {
            for place in 0..self.in_transit_to[site as usize].len() {
                self.mark(self.in_transit_to[site as usize][place]);
            }
        }
    }

    fn change_offer(&mut self, thief: u32, victim: u32, after: u32) {
        let before = if after > 0 {
            self.offers.insert((victim, thief), after)
        } else {
            self.offers.remove(&(victim, thief))
        };
        let count = &mut self.offers_of[victim as usize];
        match (before.is_some(), after > 0) {
            (false, true) => {
                *count += 1;
                self.offers_most = self.offers_most.max(*count);
                self.offered_by.insert((thief, victim));
            }
            (true, false) => {
                *count -= 1;
                self.offered_by.remove(&(thief, victim));
            }
            (true, true) | (false, false) => {}
        }
        let before = before.unwrap_or(0);
        self.mark_waiting(victim, before.min(after), before.max(after));
    }

    fn change_lists(&mut self) {
        let mut reached = Vec::new();
        if let Rules::Lists(listed) = &mut self.rules {
            listed.refresh(|home, widths| reached.push((home, widths)));
        }
        for (home, widths) in reached {
            self.mark_waiting(home, widths.above, widths.at_most);
        }
    }

    /// All groups of these widths.
    fn mark_widths(&mut self, above: i64, at_most: i64) {
        let bound = |end: i64| u32::try_from(end.max(0)).unwrap_or(u32::MAX);
        let (above, at_most) = (bound(above), bound(at_most));
        if above >= at_most {
            return;
        }
        let Groups { by_width, groups, stale, .. } = self;
        for (_, ids) in by_width.range(above + 1..=at_most) {
            ids.iter().for_each(|&id| mark(groups, stale, id));
        }
    }

    /// The groups of these widths that wait at a site.
    fn mark_waiting(&mut self, site: u32, above: u32, at_most: u32) {
        let Groups { waiting_at, groups, stale, .. } = self;
        for &id in &waiting_at[site as usize] {
            let width = groups[id as usize].width;
            if above < width && width <= at_most {
                mark(groups, stale, id);
            }
        }
    }

    fn mark(&mut self, id: u32) {
        mark(&mut self.groups, &mut self.stale, id);
    }

    /// Sums up what a group waited.
    fn settle(&mut self, id: u32, now: Time) {
        let group = &mut self.groups[id as usize];
        let micros = i128::from(now.since(group.since).as_micros());
        group.since = now;
        let Group { width, jobs, causes, .. } = *group;
        if jobs > 0 && micros > 0 {
            self.add(width, jobs, causes, micros);
        }
    }

    fn add(&mut self, width: u32, jobs: u32, causes: Causes, micros: i128) {
        let sums = &mut self.sums[class_of(width)];
        let sum = i128::from(jobs) * micros;
        sums.by_job.add(causes, sum);
        sums.by_processor.add(causes, i128::from(width) * sum);
    }

    /// What keeps a job from sites with room, under simple rules: the same as [`Groups::cause_of`] of each.
    fn simply(&self, site: u32, width: u32, goes: bool) -> Causes {
        let from = (i64::from(width), 0);
        let other =
            |sites: &BTreeSet<(i64, u32)>| sites.range(from..).take(2).any(|&(_, taker)| taker != site);
        let mut causes = Causes::NONE;
        if other(&self.closed) || (!goes && other(&self.ranked)) {
            causes = causes.with(Cause::Ineligible);
        }
        if !goes {
            return causes;
        }
        if matches!(self.rules, Rules::Offered) {
            return if other(&self.ranked) { causes.with(Cause::Offered) } else { causes };
        }
        let asks = |taker: u32| {
            let offer = self.offers.get(&(site, taker)).copied().unwrap_or(0);
            offer >= width
        };
        let asked = self.offers.range((site, 0)..=(site, u32::MAX)).any(|(&(_, taker), &offer)| {
            let open = self.free[taker as usize] >= i64::from(width) && self.rules.is_open(taker);
            taker != site && offer >= width && open
        });
        if asked {
            causes = causes.with(Cause::Asked);
        }
        // No more than have asked are passed over.
        if self.ranked.range(from..).any(|&(_, taker)| taker != site && !asks(taker)) {
            causes = causes.with(Cause::Blind);
        }
        causes
    }

    /// All that is true of the jobs of a group.
    fn causes(&self, group: &Group) -> Causes {
        let Group { width, memory, .. } = *group;
        let has_room = || self.with_room(width, memory);
        match group.situation {
            Situation::Waiting { site, offered, claimed } => {
                let mut causes = Causes::NONE;
                if self.fits(site, width, memory) {
                    causes = causes.with(Cause::Queue);
                }
                if claimed {
                    causes = causes.with(Cause::Asked);
                }
                let at_home = self.home_of(width) == site;
                if self.is_simple {
                    causes = causes.and(self.simply(site, width, self.rules.lets_go(at_home, offered)));
                } else {
                    let possible = self.rules.possible(at_home, offered);
                    for taker in has_room().filter(|&taker| taker != site) {
                        causes = causes.with(self.cause_of(taker, site, width, at_home, offered));
                        if causes.has_all(possible) {
                            break;
                        }
                    }
                }
                match self.together {
                    _ if causes != Causes::NONE => causes,
                    Some(together)
                        if self.home_of(width) as usize == self.widths.len()
                            && together >= i64::from(width) =>
                    {
                        causes.with(Cause::InParts)
                    }
                    _ => causes.with(Cause::Full),
                }
            }
            Situation::InTransit { to } => {
                // Its own processors are reserved there.
                let fits = self.free[to as usize] >= 0 || has_room().any(|site| site != to);
                between_sites(fits)
            }
            Situation::Back => between_sites(has_room().next().is_some()),
        }
    }
}

fn mark(groups: &mut [Group], stale: &mut Vec<u32>, id: u32) {
    let group = &mut groups[id as usize];
    if group.jobs > 0 && !group.is_stale {
        group.is_stale = true;
        stale.push(id);
    }
}

fn between_sites(fits: bool) -> Causes {
    let causes = Causes::of(&[Cause::InTransit]);
    if fits { causes } else { causes.with(Cause::Full) }
}
