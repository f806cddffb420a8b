//! What holds of all views together, whatever happens to peers and messages: looked for by a check that knows nothing of how
//! the views came about. Each check meets a mistake.

use std::collections::BTreeSet;

use overlay::{Contact, Input, Message, Options};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::Span;

use crate::graph;
use crate::world::{Config, Mistake, World};

/// The views of a peer that is there.
#[derive(Clone, Debug)]
struct Seen {
    peer: u32,
    active: Vec<u32>,
    passive: Vec<u32>,
}

/// Something that must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Problem {
    KnowsItself(u32),
    InBothViews(u32, u32),
    TooMany(u32),
    /// The first has the second as neighbor, and not the other way around.
    OneSided(u32, u32),
    /// The first has the second as neighbor, and that is gone.
    Gone(u32, u32),
    /// The first has room, and knows of the second, which is in another part.
    Apart(u32, u32),
}

fn seen(world: &World) -> Vec<Seen> {
    let of = |peer| {
        let ids = |contacts: &[Contact<u32, u32>]| contacts.iter().map(|contact| contact.peer).collect();
        let membership = &world.site(peer).membership;
        Seen { peer, active: ids(membership.active()), passive: ids(membership.passive()) }
    };
    world.live().into_iter().map(of).collect()
}

/// What must hold after every event.
fn broken(seen: &[Seen], options: &Options) -> BTreeSet<Problem> {
    let mut problems = BTreeSet::new();
    for Seen { peer, active, passive } in seen {
        for view in [active, passive] {
            if view.contains(peer) {
                problems.insert(Problem::KnowsItself(*peer));
            }
        }
        for other in active.iter().filter(|other| passive.contains(other)) {
            problems.insert(Problem::InBothViews(*peer, *other));
        }
        if active.len() > options.active_max || passive.len() > options.passive_max {
            problems.insert(Problem::TooMany(*peer));
        }
    }
    problems
}

/// What may be for a while, and not for long.
fn unhealed(seen: &[Seen], options: &Options) -> BTreeSet<Problem> {
    let mut problems = BTreeSet::new();
    let find = |peer: u32| seen.iter().find(|other| other.peer == peer);
    for Seen { peer, active, .. } in seen {
        for other in active {
            match find(*other) {
                None => problems.insert(Problem::Gone(*peer, *other)),
                Some(other) if !other.active.contains(peer) => {
                    problems.insert(Problem::OneSided(*peer, other.peer))
                }
                Some(_) => false,
            };
        }
    }
    for one in seen.iter().filter(|one| one.active.len() < options.active_max) {
        let near = near(seen, one.peer);
        let other = one.passive.iter().find(|other| find(**other).is_some() && !near.contains(other));
        problems.extend(other.map(|other| Problem::Apart(one.peer, *other)));
    }
    problems
}

/// Who hangs together with a peer, by links that both ends have.
fn near(seen: &[Seen], from: u32) -> BTreeSet<u32> {
    let (mut reached, mut open) = (BTreeSet::from([from]), vec![from]);
    let find = |peer: u32| seen.iter().find(|other| other.peer == peer);
    while let Some(peer) = open.pop() {
        for next in find(peer).iter().flat_map(|one| &one.active) {
            let is_mutual = find(*next).is_some_and(|other| other.active.contains(&peer));
            if is_mutual && reached.insert(*next) {
                open.push(*next);
            }
        }
    }
    reached
}

fn number_of_parts(seen: &[Seen]) -> usize {
    let mut left: BTreeSet<u32> = seen.iter().map(|one| one.peer).collect();
    let mut count = 0;
    while let Some(peer) = left.first().copied() {
        let near = near(seen, peer);
        left.retain(|other| !near.contains(other));
        count += 1;
    }
    count
}

/// Small views and slow, lossy, doubling links, all drawn.
fn config(seed: u64, mistake: Mistake) -> Config {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let active_max = rng.random_range(3..=5);
    let options = Options {
        active_max,
        passive_max: rng.random_range(active_max..=4 * active_max),
        insist_after: Some(2),
        ..Options::default()
    };
    let longest = Span::from_micros(rng.random_range(0..2_000_000));
    Config {
        options,
        delay: (Span::default(), longest),
        lost: rng.random_range(0..30),
        doubled: rng.random_range(0..20),
        reports_failures: rng.random_range(0..2) == 0,
        mistake,
        ..Config::of_cycles(seed)
    }
}

/// Peers come, leave, fail, restart, say something new, and join through another one, while messages are under way. Two
/// that all know do not go for good.
fn trouble(world: &mut World, seed: u64, steps: u32) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(1);
    world.add();
    world.add();
    world.tell(1, Input::Join(vec![0]));
    for _ in 0..steps {
        let all = u32::try_from(world.sites.len()).unwrap();
        let some = world.any();
        match rng.random_range(0..12) {
            0..4 if all < 30 => {
                let new = world.add();
                world.tell(new, Input::Join(vec![some, 0, 1]));
            }
            4 if some > 1 => world.crash(some),
            5 if some > 1 => world.leave(some),
            6 => {
                let again = rng.random_range(0..all);
                world.crash(again);
                world.begin(again);
                let sponsor = world.any();
                world.tell(again, Input::Join(vec![sponsor, 0, 1]));
            }
            7 => world.tell(some, Input::Renewed(rng.random_range(1..100))),
            8 => {
                let other = rng.random_range(0..all);
                world.tell(some, Input::Failed(other));
            }
            9 => {
                let other = world.any();
                world.tell(some, Input::Join(vec![other, 0, 1]));
            }
            _ => world.run(Span::from_micros(rng.random_range(0..8_000_000))),
        }
        let broken = broken(&seen(world), &world.config.options);
        assert!(broken.is_empty(), "seed {seed}: {broken:?}");
    }
}

/// What is still wrong a hundred rounds after the last fault and two later, too; and in how many parts the peers are.
fn after_the_faults(config: Config) -> (BTreeSet<Problem>, usize, World) {
    let seed = config.seed;
    let mut world = World::new(config);
    trouble(&mut world, seed, 120);
    (world.config.lost, world.config.doubled) = (0, 0);
    world.rounds(100);
    let first = unhealed(&seen(&world), &world.config.options);
    world.rounds(2);
    let second = unhealed(&seen(&world), &world.config.options);
    let parts = number_of_parts(&seen(&world));
    (first.intersection(&second).copied().collect(), parts, world)
}

const SEEDS: u64 = 60;

#[test]
fn views_heal_once_faults_end_and_all_peers_hang_together() {
    for seed in 0..SEEDS {
        let (problems, parts, _) = after_the_faults(config(seed, Mistake::None));
        assert!(problems.is_empty(), "seed {seed}: {problems:?}");
        assert_eq!(parts, 1, "seed {seed}");
    }
}

#[test]
fn the_same_seed_is_the_same_overlay() {
    for seed in 0..5 {
        let run = || {
            let (_, _, world) = after_the_faults(config(seed, Mistake::None));
            (format!("{:?}", seen(&world)), world.counts)
        };
        assert_eq!(run(), run());
    }
}

/// How many seeds it takes until a mistake shows, as this kind of problem.
fn first_seed(mistake: Mistake, is_meant: impl Fn(&Problem) -> bool) -> Option<u64> {
    (0..SEEDS).find(|seed| after_the_faults(config(*seed, mistake)).0.iter().any(&is_meant))
}

#[test]
fn mutant_who_is_dropped_and_not_told_is_noticed() {
    let first = first_seed(Mistake::DisconnectsNeverSent, |problem| matches!(problem, Problem::OneSided(..)));
    eprintln!("first seed: {first:?}");
    assert!(first.is_some());
}

#[test]
fn mutant_who_asks_nobody_stays_apart() {
    let first = first_seed(Mistake::WishesNeverSent, |problem| matches!(problem, Problem::Apart(..)));
    eprintln!("first seed: {first:?}");
    assert!(first.is_some());
}

/// What the paper leaves open: two peers that have each other are not urgent, and all others have no room.
#[test]
fn two_who_are_always_refused_get_in_by_insisting_and_in_the_paper_they_do_not() {
    for (insist_after, parts) in [(Some(10), vec![22]), (None, vec![20, 2])] {
        let config = Config::of_cycles(1);
        let options = Options { insist_after, ..config.options };
        let mut world = World::of_one_contact(Config { options, ..config }, 20);
        world.rounds(30);
        let contact = |peer| world.site(peer).membership.own().clone();
        let contacts = (0..8).map(contact).collect();
        for _ in 0..2 {
            world.add();
        }
        world.tell(21, Input::Join(vec![20]));
        world.settle();
        world.tell(20, Input::Message { from: 0, message: Message::ShuffleReply { contacts } });
        world.rounds(40);
        assert_eq!(graph::parts(&world.links(), &world.live()), parts, "{insist_after:?}");
    }
}

/// Each of these views has one mistake.
#[test]
fn mutant_views_with_one_mistake_are_refused() {
    let view = |peer: u32, active: &[u32], passive: &[u32]| Seen {
        peer,
        active: active.into(),
        passive: passive.into(),
    };
    let options = Options { active_max: 2, passive_max: 2, ..Options::default() };
    let found = |seen: &[Seen]| -> Vec<Problem> {
        broken(seen, &options).into_iter().chain(unhealed(seen, &options)).collect()
    };
    let sound = [view(1, &[2], &[]), view(2, &[1], &[]), view(3, &[4], &[9]), view(4, &[3], &[])];
    assert_eq!((found(&sound), number_of_parts(&sound)), (vec![], 2));

    assert_eq!(found(&[view(1, &[], &[1])]), [Problem::KnowsItself(1)]);
    assert_eq!(found(&[view(1, &[2], &[2]), view(2, &[1], &[])]), [Problem::InBothViews(1, 2)]);
    assert_eq!(found(&[view(1, &[], &[7, 8, 9])]), [Problem::TooMany(1)]);
    assert_eq!(found(&[view(1, &[2], &[]), view(2, &[], &[])]), [Problem::OneSided(1, 2)]);
    assert_eq!(found(&[view(1, &[9], &[])]), [Problem::Gone(1, 9)]);
    assert_eq!(found(&[view(1, &[], &[2]), view(2, &[], &[])]), [Problem::Apart(1, 2)]);
    let one_sided = [view(1, &[2], &[]), view(2, &[], &[])];
    assert_eq!(number_of_parts(&one_sided), 2, "a link that one end has is none");
}

/// Contacts are as new as the peers themselves: at neighbors at once, elsewhere by shuffles.
#[test]
fn what_a_peer_says_of_itself_gets_around() {
    let mut world = World::of_one_contact(Config::of_cycles(1), 200);
    world.rounds(10);
    world.tell(7, Input::Renewed(1_000));
    world.settle();
    let about = |world: &World| -> Vec<u32> {
        let known = |peer: u32| world.site(peer).membership.known(&7).map(|contact| contact.about);
        world.live().into_iter().filter(|peer| *peer != 7).filter_map(known).collect()
    };
    let neighbors = world.site(7).membership.active().to_vec();
    assert_eq!(neighbors.len(), 5);
    for neighbor in neighbors {
        assert_eq!(world.site(neighbor.peer).membership.known(&7).map(|contact| contact.about), Some(1_000));
    }
    let old = |world: &World| about(world).iter().filter(|about| **about != 1_000).count();
    let before = old(&world);
    assert!(before > 10, "others know it, too: {before}");
    world.rounds(100);
    assert!(old(&world) * 10 < before, "{} of {before} are old still", old(&world));
}

/// The part of a network that is cut off long enough is forgotten, and comes back only if somebody says so.
#[test]
fn halves_that_have_forgotten_each_other_become_one_by_one_who_joins() {
    let mut world = World::of_one_contact(Config::of_cycles(3), 40);
    for peer in 40..80 {
        world.add();
        if peer > 40 {
            world.tell(peer, Input::Join(vec![40]));
            world.settle();
        }
    }
    world.rounds(30);
    let parts = |world: &World| graph::parts(&world.links(), &world.live());
    assert_eq!(parts(&world), [40, 40]);

    world.tell(41, Input::Join(vec![1]));
    world.rounds(1);

    assert_eq!(parts(&world), [80]);
}
