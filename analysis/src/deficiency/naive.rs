//! The naive twin of the replay: counts everything anew at every instant, by walking all jobs, links and sites, and lets
//! the causes take in every order.

use proptest::prelude::*;
use scheduler::waiting::Widths;
use scheduler::{Grid, JobId, Order, Span, StrategySpec, Time, TimedJob};

use super::journal::{Job, Journal, NOWHERE, Note, Noted, Phase, State};
use super::rate::Site;
use super::replay::{Replay, Replayed, Rules};
use super::split::{CAUSES, EXPLAINING, Ranges, Rate};
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
        for rate in instant.rates() {
            sum.ranges.add(&rate, span);
        }
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

    /// That of each site.
    fn rates(&self) -> Vec<Rate> {
        let beta = u64::from(self.rules.beta_percent);
        let mut rates = Vec::new();
        let mut reserved = 0;
        let mut list = None;
        for rank in 0..self.sites.len() {
            list = self.list(rank, list);
            if rank < self.k {
                continue;
            }
            reserved += self.reserved[rank];
            let (size, site) = (u64::from(self.sizes[rank]), self.sites[rank]);
            let short = (beta * size).saturating_sub(100 * site.busy) as i64;
            let at_work = site.busy + site.foreign;
            let idle = size.saturating_sub(at_work);
            let free = size.saturating_sub(at_work + site.granted);
            let fits = list.is_some_and(|list| u64::from(list.narrowest) <= free);
            let is_lost = site.broken > 0 && self.is_cut_off(rank, list.map(|list| list.home));
            let under_way = if list.is_none() { size } else { site.foreign_granted + reserved };
            let drain = if list.is_some() && !fits { size } else { 0 };
            let of_idle = [if is_lost { size } else { 0 }, under_way, site.offered, drain];
            let [lost, in_transit, asked, drain] = of_idle.map(|most| 100 * most.min(idle) as i64);
            rates.push(in_every_order(short, [100 * site.foreign as i64, lost, in_transit, asked, drain]));
        }
        rates
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

/// What each cause takes in the order of `Split`, and the least and most in any.
fn in_every_order(short: i64, explained: [i64; EXPLAINING]) -> Rate {
    let mut orders = vec![vec![]];
    for place in 0..EXPLAINING {
        orders = orders
            .iter()
            .flat_map(|order: &Vec<usize>| {
                (0..=order.len()).map(move |at| {
                    let mut longer = order.clone();
                    longer.insert(at, place);
                    longer
                })
            })
            .collect();
    }
    assert_eq!(orders.len(), 120);
    let takes = |order: &Vec<usize>| {
        let mut taken = [0; CAUSES];
        let mut left = short;
        for &cause in order {
            taken[cause] = left.min(explained[cause]);
            left -= taken[cause];
        }
        taken[EXPLAINING] = left;
        taken
    };
    let all: Vec<[i64; CAUSES]> = orders.iter().map(takes).collect();
    let over = |cause: usize| all.iter().map(move |taken| taken[cause]);
    Rate {
        chosen: takes(&(0..EXPLAINING).collect()),
        least: std::array::from_fn(|cause| over(cause).min().expect("there are orders")),
        greatest: std::array::from_fn(|cause| over(cause).max().expect("there are orders")),
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
        let mut journal = Journal::new(&grid, &workload, jobs);
        prop_assert_eq!(journal.ids[0], JobId(1));
        let mut at = 0;
        for (place, (step, site, what)) in steps.into_iter().enumerate() {
            at += step;
            let entry = Noted { at: Time::from_secs(at), site, what };
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
        prop_assert!(found.ranges.hold(), "{:?}", found.ranges);
    }
}

/// Site 1 of 4 has two jobs as wide as itself; site 2 of 4 asks for work, and is refused.
#[test]
fn mutant_a_replay_that_misses_an_answer_is_not_its_twin() {
    let grid = Grid::of_sizes(&[4, 4]).expect("sizes are positive");
    let rules = Rules::of(&"st:50".parse::<StrategySpec>().expect("a strategy").strategy);
    let workload: Vec<TimedJob> = (1..=2).map(|id| timed_job(id, 0, 4, 10)).collect();
    let jobs = (0..2).map(|_| Job { submit: Time::ZERO, processors: 4, home: 0 }).collect();
    let mut journal = Journal::new(&grid, &workload, jobs);
    for (at, site, what) in [
        (0, 0, Note::Submitted(0)),
        (0, 0, Note::Submitted(1)),
        (0, 0, Note::Started(0)),
        (1, 1, Note::Asked { victim: 0, offer: 3 }),
        (4, 1, Note::Answered { victim: 0 }),
    ] {
        journal.push(Noted { at: Time::from_secs(at), site, what });
    }
    let (from, until) = (Time::ZERO, Time::from_secs(10));
    let twin = replay(&grid, &rules, &journal, 0, from, until);
    let sound = Replay::new(&grid, &rules, &journal, 0);
    let mut broken = Replay::new(&grid, &rules, &journal, 0);
    broken.misses_answers = true;
    assert_eq!(sound.run(from, until), twin);
    assert_ne!(broken.run(from, until), twin);
}

#[test]
fn mutant_a_range_that_forgets_an_overlap_is_not_that_of_all_orders() {
    let explained = [4, 0, 0, 8, 0];
    let orders = in_every_order(10, explained);
    assert_eq!(Rate::of(10, explained), orders);
    // As if nothing else could explain what a cause explains.
    let broken = Rate { least: orders.chosen, ..orders };
    assert_ne!(broken, orders);
    let mut sum = Ranges::default();
    sum.add(&orders, 1);
    assert!(sum.hold());
}
