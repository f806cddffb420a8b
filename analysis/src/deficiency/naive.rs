//! The naive twin of the replay: counts everything anew at every instant, by walking all jobs, links and sites.

use proptest::prelude::*;
use scheduler::waiting::Widths;
use scheduler::{Grid, JobId, Order, Span, StrategySpec, Time, TimedJob};

use super::Split;
use super::journal::{Entry, Job, Journal, NOWHERE, Note, Phase, State};
use super::rate::Site;
use super::replay::{Replay, Replayed, Rules};
use crate::fixtures::timed_job;

/// What the window holds.
fn replay(grid: &Grid, rules: &Rules, journal: &Journal, k: usize, from: Time, until: Time) -> Replayed {
    let mut state = journal.base.clone();
    let mut sum = Replayed::default();
    let mut now = from;
    for entry in &journal.entries {
        if entry.at > now {
            let end = entry.at.min(until);
            integrate(&mut sum, &Instant::of(grid, rules, journal, k, &state), end.since(now));
            now = end;
            if entry.at >= until {
                return sum;
            }
        }
        state.apply(entry);
    }
    integrate(&mut sum, &Instant::of(grid, rules, journal, k, &state), until.since(now));
    sum
}

fn integrate(sum: &mut Replayed, instant: &Instant<'_>, span: Span) {
    let span = i128::from(span.as_micros());
    if span > 0 {
        sum.split.add(instant.rate().times(span));
        let busy: u64 = instant.sites[instant.k..].iter().map(|site| site.busy).sum();
        sum.done += i128::from(busy) * span;
    }
}

/// The list of one site, as in `lists`.
#[derive(Clone, Copy)]
struct List {
    home: usize,
    widths: Widths,
    narrowest: u32,
}

struct Instant<'a> {
    rules: &'a Rules,
    state: &'a State,
    sizes: &'a [u32],
    k: usize,
    sites: Vec<Site>,
    reserved: Vec<u64>,
    /// The widths that wait, by home.
    waiting: Vec<Vec<u32>>,
}

impl<'a> Instant<'a> {
    fn of(grid: &'a Grid, rules: &'a Rules, journal: &Journal, k: usize, state: &'a State) -> Instant<'a> {
        let mut sites = vec![Site::default(); grid.len()];
        let mut reserved = vec![0; grid.len()];
        let mut waiting = vec![Vec::new(); grid.len()];
        for (&Job { home, processors, .. }, &phase) in journal.jobs.iter().zip(&state.phases) {
            if home == NOWHERE {
                continue;
            }
            let (width, at_home) = (u64::from(processors), home as usize);
            match phase {
                Phase::Ahead | Phase::Ended => {}
                Phase::Waiting(site) if rules.by_home && site != home => reserved[at_home] += width,
                Phase::Waiting(_) => waiting[at_home].push(processors),
                Phase::Declined => reserved[at_home] += width,
                Phase::Granted(to) => {
                    reserved[at_home] += width;
                    sites[to as usize].granted += width;
                    if at_home < k {
                        sites[to as usize].foreign_granted += width;
                    }
                }
                Phase::Running(site) if at_home < k => sites[site as usize].foreign += width,
                Phase::Running(site) => sites[site as usize].busy += width,
            }
        }
        for (&(thief, _), &offer) in &state.asked {
            sites[thief as usize].offered += u64::from(offer);
        }
        for (&site, &claimed) in &state.claimed {
            sites[site as usize].offered += claimed;
        }
        for &(from, to) in state.broken.keys() {
            sites[from as usize].broken += 1;
            sites[to as usize].broken += 1;
        }
        Instant { rules, state, sizes: grid.sizes(), k, sites, reserved, waiting }
    }

    fn rate(&self) -> Split {
        let beta = u64::from(self.rules.beta_percent);
        let mut rate = Split::default();
        let mut reserved = 0;
        let mut list = None;
        for rank in 0..self.sites.len() {
            list = self.list(rank, list);
            if rank < self.k {
                continue;
            }
            reserved += self.reserved[rank];
            let (size, site) = (u64::from(self.sizes[rank]), self.sites[rank]);
            let mut left = i128::from((beta * size).saturating_sub(100 * site.busy));
            let mut take = |most: u64| {
                let taken = left.min(100 * i128::from(most));
                left -= taken;
                taken
            };
            rate.foreign += take(site.foreign);
            if site.broken > 0 && self.is_cut_off(rank, list.map(|list| list.home)) {
                rate.lost += take(size);
            }
            let under_way = site.offered + site.foreign_granted + reserved;
            rate.in_transit += take(if list.is_none() { size } else { under_way });
            let idle = size.saturating_sub(site.busy + site.foreign + site.granted);
            if list.is_some_and(|list| u64::from(list.narrowest) <= idle) {
                rate.blind += take(size);
            } else {
                rate.drain += take(size);
            }
        }
        rate
    }

    /// docs/THEORY.md, "The lists".
    fn list(&self, rank: usize, below: Option<List>) -> Option<List> {
        let border = self.rules.threshold.widest_small(self.sizes[rank]);
        let of = |home: usize, widths: Widths| {
            let narrowest =
                self.waiting[home].iter().copied().filter(|&width| widths.contains(width)).min()?;
            Some(List { home, widths, narrowest })
        };
        let big = || of(rank, Widths::above(border));
        let small = || of(rank, Widths::up_to(border));
        let stolen = || {
            let List { home, widths, .. } = below?;
            of(home, Widths { above: widths.above.max(border), ..widths })
        };
        let order: Order = self.rules.order;
        let own = || if order.small_first() { small().or_else(big) } else { big().or_else(small) };
        let first = if order.stolen_first() { stolen().or_else(own) } else { own() };
        first.or_else(stolen).or(below)
    }

    fn is_cut_off(&self, rank: usize, root: Option<usize>) -> bool {
        let (site, broken) = (rank as u32, &self.state.broken);
        match root {
            Some(root) if self.rules.by_home => {
                let root = root as u32;
                broken.contains_key(&(site, root)) || broken.contains_key(&(root, site))
            }
            _ => true,
        }
    }
}

/// Anything that can happen at one of `sites` with one of `jobs`, sensible or not.
fn note(sites: u32, jobs: u32) -> impl Strategy<Value = Note> {
    let (job, site) = (0..jobs, 0..sites);
    prop_oneof![
        4 => job.clone().prop_map(Note::Submitted),
        4 => (job.clone(), site.clone()).prop_map(|(job, to)| Note::Granted { job, to }),
        2 => job.clone().prop_map(Note::Accepted),
        1 => job.clone().prop_map(Note::Declined),
        1 => job.clone().prop_map(Note::Returned),
        4 => job.clone().prop_map(Note::Started),
        4 => job.prop_map(Note::Completed),
        2 => (site.clone(), 1u32..9).prop_map(|(victim, offer)| Note::Asked { victim, offer }),
        2 => site.clone().prop_map(|victim| Note::Answered { victim }),
        1 => (1u32..9).prop_map(Note::Claimed),
        1 => (1u32..9).prop_map(Note::Released),
        2 => (site, any::<bool>()).prop_map(|(to, broken)| Note::Broken { to, broken }),
    ]
}

fn sizes() -> impl Strategy<Value = Vec<u32>> {
    // Few sizes, so that many sites share one, or many.
    prop_oneof![
        prop::collection::vec(prop::sample::select(&[2u32, 4, 9][..]), 1..12),
        prop::collection::vec(1u32..40, 1..9),
    ]
}

/// Seconds since the step before, a site, and what happens there.
type Step = (i64, u32, Note);

/// Sizes of sites, widths of jobs, and steps.
fn case() -> impl Strategy<Value = (Vec<u32>, Vec<u32>, Vec<Step>)> {
    (sizes(), 1u32..25).prop_flat_map(|(sizes, jobs)| {
        let (count, widest) = (sizes.len() as u32, *sizes.iter().max().expect("there is a site"));
        let widths = prop::collection::vec(1..=widest, jobs as usize);
        let steps = prop::collection::vec((0i64..3, 0..count, note(count, jobs)), 1..150);
        (Just(sizes), widths, steps)
    })
}

const STRATEGIES: [&str; 7] =
    ["st:50", "st:30", "st:80,order=hab", "st:50,order=bah", "st-greedy:50", "common-pool", "pool:easy"];

proptest! {
    #[test]
    fn the_replay_equals_its_naive_twin(
        (sizes, widths, steps) in case(),
        strategy in prop::sample::select(&STRATEGIES[..]),
        k in any::<prop::sample::Index>(),
        (from, length, summed) in (0i64..40, 1i64..200, 0usize..40),
    ) {
        let grid = Grid::of_sizes(&sizes).expect("sizes are positive");
        let spec: StrategySpec = strategy.parse().expect("a strategy of this test");
        let rules = Rules::of(&spec.strategy);
        let workload: Vec<TimedJob> =
            (1..).zip(&widths).map(|(id, &width)| timed_job(id, 0, width, 10)).collect();
        let home = |width: u32| grid.home_rank(width).map_or(NOWHERE, |rank| rank as u32);
        let jobs = workload
            .iter()
            .map(|job| Job { submit: job.spec.submit, processors: job.spec.processors, home: home(job.spec.processors) })
            .collect();
        let mut journal = Journal::new(&workload, jobs);
        prop_assert_eq!(journal.ids[0], JobId(1));
        let mut at = 0;
        for (place, (step, site, what)) in steps.into_iter().enumerate() {
            at += step;
            let entry = Entry { at: Time::from_secs(at), site, what };
            // The first ones are summed up.
            if place < summed {
                journal.base.apply(&entry);
            } else {
                journal.push(entry);
            }
        }
        let k = grid.home_rank(widths[k.index(widths.len())]).expect("no job is wider than the widest site");
        let (from, until) = (Time::from_secs(from), Time::from_secs(from + length));
        let found = Replay::new(&grid, &rules, &journal, k).run(from, until);
        prop_assert_eq!(found, replay(&grid, &rules, &journal, k, from, until));
    }
}
