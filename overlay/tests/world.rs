//! Many peers in virtual time: messages that take a while, get lost or come twice, peers that fail, and mistakes built in by
//! messages that never arrive. The same seed is the same run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use overlay::{Broadcast, Contact, Input, Membership, Message, Options, Output, broadcast};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::{Span, Time};

/// What is built in on purpose: messages that a peer should send and does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    /// Who is dropped or refused is not told.
    DisconnectsNeverSent,
    /// A link is spoken of when it is made, and never again.
    LinksSaidOnce,
    /// Who loses a neighbor asks nobody.
    WishesNeverSent,
    /// Nobody exchanges contacts.
    ShufflesNeverSent,
    /// Who gets a payload twice does not say so.
    PrunesNeverSent,
    /// Who misses a payload does not ask for it.
    GraftsNeverSent,
    /// A new neighbor is not told of what came lately.
    NewNeighborsNeverTold,
}

/// How a world goes.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) seed: u64,
    pub(crate) options: Options,
    pub(crate) broadcast: broadcast::Options,
    /// The shortest and the longest way of a message. Links between two peers keep the order of messages.
    pub(crate) delay: (Span, Span),
    /// Messages of a hundred about views that are lost, while there are faults, and that come twice.
    pub(crate) lost: u32,
    pub(crate) doubled: u32,
    /// Whether who sends to a peer that is gone is told.
    pub(crate) reports_failures: bool,
    pub(crate) mistake: Mistake,
}

impl Config {
    /// As the paper simulates: no message takes time, none is lost, and a transport that notices failures.
    pub(crate) fn of_cycles(seed: u64) -> Config {
        Config {
            seed,
            options: Options::default(),
            broadcast: broadcast::Options::default(),
            delay: (Span::default(), Span::default()),
            lost: 0,
            doubled: 0,
            reports_failures: true,
            mistake: Mistake::None,
        }
    }
}

/// Processors, as what a contact tells.
pub(crate) type About = u32;
pub(crate) type Said = Message<u32, About>;
pub(crate) type Told = broadcast::Message<u64, u64>;

#[derive(Clone, Debug)]
enum Letter {
    View(Said),
    Tree(Told),
}

#[derive(Clone, Debug)]
struct Carried {
    from: u32,
    to: u32,
    letter: Letter,
}

/// A peer with both machines.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) membership: Membership<u32, About, ChaCha8Rng>,
    pub(crate) broadcast: Broadcast<u32, u64, u64>,
    /// Broadcasts that came, by how many links, in order.
    pub(crate) delivered: Vec<(u64, u32)>,
    wake: Option<Time>,
}

/// Messages that were sent, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) views: u64,
    pub(crate) payloads: u64,
    pub(crate) announcements: u64,
    pub(crate) prunes: u64,
    pub(crate) grafts: u64,
    /// Not messages: how often somebody lost a neighbor.
    pub(crate) parted: u64,
}

/// All peers, those that are gone, too, and what is under way between them.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) config: Config,
    pub(crate) now: Time,
    pub(crate) counts: Counts,
    /// By id; those that are gone are `None`.
    pub(crate) sites: Vec<Option<Site>>,
    at_once: VecDeque<Carried>,
    later: BTreeMap<(Time, u64), Carried>,
    /// When the last message of a link arrives.
    arrivals: BTreeMap<(u32, u32), Time>,
    wakes: BTreeSet<(Time, u32)>,
    sequence: u64,
    began: u64,
    rng: ChaCha8Rng,
}

impl World {
    pub(crate) fn new(config: Config) -> World {
        let rng = ChaCha8Rng::seed_from_u64(config.seed);
        World {
            config,
            now: Time::ZERO,
            counts: Counts::default(),
            sites: Vec::new(),
            at_once: VecDeque::new(),
            later: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            wakes: BTreeSet::new(),
            sequence: 0,
            began: 0,
            rng,
        }
    }

    /// As many peers as that, each of which joins through the first, with no round in between (§5).
    pub(crate) fn of_one_contact(config: Config, count: u32) -> World {
        let mut world = World::new(config);
        for peer in 0..count {
            world.add();
            if peer > 0 {
                world.tell(peer, Input::Join(vec![0]));
                world.settle();
            }
        }
        world
    }

    /// One more peer, which knows nobody.
    pub(crate) fn add(&mut self) -> u32 {
        let peer = u32::try_from(self.sites.len()).unwrap();
        self.sites.push(None);
        self.begin(peer);
        peer
    }

    /// Begins a peer, once more if it was there already.
    pub(crate) fn begin(&mut self, peer: u32) {
        self.began += 1;
        let mut rng = ChaCha8Rng::seed_from_u64(self.config.seed);
        rng.set_stream(self.began);
        let own = Contact { peer, edition: self.began << 32, about: 1 + peer % 64 };
        self.sites[peer as usize] = Some(Site {
            membership: Membership::new(self.now, own, self.config.options, rng),
            broadcast: Broadcast::new(self.config.broadcast),
            delivered: Vec::new(),
            wake: None,
        });
        self.rest(peer);
    }

    /// The peer is gone, without a word.
    pub(crate) fn crash(&mut self, peer: u32) {
        if let Some(site) = self.sites[peer as usize].take()
            && let Some(at) = site.wake
        {
            self.wakes.remove(&(at, peer));
        }
    }

    /// Leaves, and is gone.
    pub(crate) fn leave(&mut self, peer: u32) {
        self.tell(peer, Input::Leave);
        self.crash(peer);
    }

    /// Something happens to the membership of a peer, if that is there.
    pub(crate) fn tell(&mut self, peer: u32, input: Input<u32, About>) {
        let Some(site) = &mut self.sites[peer as usize] else { return };
        let is_timeout = input == Input::Timeout;
        site.membership.handle(self.now, input);
        self.carry_views(peer, is_timeout);
        self.rest(peer);
    }

    /// Something happens to the broadcasts of a peer, if that is there.
    fn tell_tree(&mut self, peer: u32, input: broadcast::Input<u32, u64, u64>) {
        let Some(site) = &mut self.sites[peer as usize] else { return };
        let is_up = matches!(input, broadcast::Input::Up(_));
        site.broadcast.handle(self.now, input);
        self.carry_trees(peer, is_up);
        self.rest(peer);
    }

    pub(crate) fn publish(&mut self, peer: u32, key: u64) {
        self.tell_tree(peer, broadcast::Input::Publish { key, payload: key });
    }

    /// Delivers what arrives at this instant.
    pub(crate) fn settle(&mut self) {
        while let Some(carried) = self.at_once.pop_front() {
            self.deliver(carried);
        }
    }

    /// Goes on for so long.
    pub(crate) fn run(&mut self, span: Span) {
        let end = self.now.saturating_add(span);
        loop {
            self.settle();
            let message = self.later.first_key_value().map(|((at, _), _)| *at);
            let wake = self.wakes.first().map(|(at, _)| *at);
            let Some(next) = scheduler::time::earlier(message, wake).filter(|next| *next <= end) else {
                break;
            };
            self.now = next;
            if message == Some(next) {
                let (_, carried) = self.later.pop_first().unwrap();
                self.deliver(carried);
            } else {
                let (_, peer) = self.wakes.pop_first().unwrap();
                self.wake(peer);
            }
        }
        self.now = end;
    }

    /// So many rounds of every peer.
    pub(crate) fn rounds(&mut self, count: i64) {
        self.run(self.config.options.period.saturating_mul(count));
    }

    pub(crate) fn site(&self, peer: u32) -> &Site {
        self.sites[peer as usize].as_ref().expect("it is there")
    }

    /// Who is there.
    pub(crate) fn live(&self) -> Vec<u32> {
        let ids = 0..u32::try_from(self.sites.len()).unwrap();
        ids.filter(|peer| self.sites[*peer as usize].is_some()).collect()
    }

    /// One of those who are there.
    pub(crate) fn any(&mut self) -> u32 {
        let live = self.live();
        live[self.rng.random_range(0..live.len())]
    }

    /// Neighbors of each peer that are there; of those that are gone, none.
    pub(crate) fn links(&self) -> Vec<Vec<u32>> {
        let is_there = |peer: &u32| self.sites[*peer as usize].is_some();
        let of_site = |site: &Option<Site>| {
            let active = site.iter().flat_map(|site| site.membership.active());
            active.map(|contact| contact.peer).filter(is_there).collect()
        };
        self.sites.iter().map(of_site).collect()
    }

    /// Tells everybody something by all links (§4.1), and at once tells who sends to a peer that is gone. Who got it, and
    /// over how many links the last one did.
    pub(crate) fn flood(&mut self, from: u32) -> (usize, u32) {
        let mut reached = vec![false; self.sites.len()];
        reached[from as usize] = true;
        let (mut count, mut hops) = (1, 0);
        let mut open = VecDeque::from([(from, 0)]);
        while let Some((peer, depth)) = open.pop_front() {
            hops = depth;
            // Who takes the place of one that is gone is sent it, too.
            let mut sent = Vec::new();
            while let Some(next) = self.unsent(peer, &sent) {
                sent.push(next);
                if self.sites[next as usize].is_none() {
                    self.tell(peer, Input::Failed(next));
                    self.settle();
                } else if !std::mem::replace(&mut reached[next as usize], true) {
                    count += 1;
                    open.push_back((next, depth + 1));
                }
            }
        }
        (count, hops)
    }

    /// Begins all broadcasts anew, with other options.
    pub(crate) fn plant(&mut self, options: broadcast::Options) {
        self.config.broadcast = options;
        for peer in self.live() {
            let site = self.sites[peer as usize].as_mut().unwrap();
            site.broadcast = Broadcast::new(options);
            for neighbor in site.membership.active() {
                site.broadcast.handle(self.now, broadcast::Input::Up(neighbor.peer));
            }
            self.rest(peer);
        }
    }

    /// Everybody learns which of its neighbors are gone.
    pub(crate) fn break_connections(&mut self) {
        for peer in self.live() {
            let active: Vec<u32> =
                self.site(peer).membership.active().iter().map(|contact| contact.peer).collect();
            for other in active {
                if self.sites[other as usize].is_none() {
                    self.tell(peer, Input::Failed(other));
                }
            }
        }
        self.settle();
    }

    /// A neighbor that is not among these.
    fn unsent(&self, peer: u32, sent: &[u32]) -> Option<u32> {
        let mut active = self.site(peer).membership.active().iter().map(|contact| contact.peer);
        active.find(|next| !sent.contains(next))
    }

    fn wake(&mut self, peer: u32) {
        let Some(site) = &mut self.sites[peer as usize] else { return };
        site.wake = None;
        if site.membership.poll_timeout().is_some_and(|at| at <= self.now) {
            self.tell(peer, Input::Timeout);
        }
        let site = self.sites[peer as usize].as_ref().unwrap();
        if site.broadcast.poll_timeout().is_some_and(|at| at <= self.now) {
            self.tell_tree(peer, broadcast::Input::Timeout);
        }
    }

    /// Sets the wake of a peer that was told something.
    fn rest(&mut self, peer: u32) {
        let Some(site) = &mut self.sites[peer as usize] else { return };
        let next = scheduler::time::earlier(site.membership.poll_timeout(), site.broadcast.poll_timeout());
        if next != site.wake {
            if let Some(at) = site.wake {
                self.wakes.remove(&(at, peer));
            }
            site.wake = next;
            self.wakes.extend(next.map(|at| (at, peer)));
        }
    }

    fn carry_views(&mut self, from: u32, is_timeout: bool) {
        while let Some(output) =
            self.sites[from as usize].as_mut().and_then(|site| site.membership.poll_output())
        {
            match output {
                Output::Send { to, message } => {
                    let is_mistake = match self.config.mistake {
                        Mistake::DisconnectsNeverSent => matches!(message, Message::Disconnect { .. }),
                        Mistake::LinksSaidOnce => is_timeout && matches!(message, Message::Linked(_)),
                        Mistake::WishesNeverSent => matches!(message, Message::Neighbor { .. }),
                        Mistake::ShufflesNeverSent => matches!(message, Message::Shuffle { .. }),
                        _ => false,
                    };
                    if is_mistake {
                        continue;
                    }
                    self.counts.views += 1;
                    let doubled = self.rng.random_range(0..100) < self.config.doubled;
                    for _ in 0..1 + u32::from(doubled) {
                        if self.rng.random_range(0..100) >= self.config.lost {
                            self.send(Carried { from, to, letter: Letter::View(message.clone()) });
                        }
                    }
                }
                Output::Up(contact) => self.tell_tree(from, broadcast::Input::Up(contact.peer)),
                Output::Down(peer) => {
                    self.counts.parted += 1;
                    self.tell_tree(from, broadcast::Input::Down(peer));
                }
                Output::Changed(_) => {}
            }
        }
    }

    fn carry_trees(&mut self, from: u32, is_up: bool) {
        while let Some(output) =
            self.sites[from as usize].as_mut().and_then(|site| site.broadcast.poll_output())
        {
            match output {
                broadcast::Output::Send { to, message } => {
                    let (count, is_mistake) = match message {
                        Told::Gossip { .. } => (&mut self.counts.payloads, false),
                        Told::IHave { .. } => (
                            &mut self.counts.announcements,
                            is_up && self.config.mistake == Mistake::NewNeighborsNeverTold,
                        ),
                        Told::Prune => {
                            (&mut self.counts.prunes, self.config.mistake == Mistake::PrunesNeverSent)
                        }
                        Told::Graft { .. } => {
                            (&mut self.counts.grafts, self.config.mistake == Mistake::GraftsNeverSent)
                        }
                    };
                    if !is_mistake {
                        *count += 1;
                        self.send(Carried { from, to, letter: Letter::Tree(message) });
                    }
                }
                broadcast::Output::Deliver { key, payload, hops } => {
                    assert_eq!(key, payload);
                    self.sites[from as usize].as_mut().unwrap().delivered.push((key, hops));
                }
            }
        }
    }

    fn send(&mut self, carried: Carried) {
        let (shortest, longest) = self.config.delay;
        if longest == Span::default() {
            self.at_once.push_back(carried);
            return;
        }
        let delay = Span::from_micros(self.rng.random_range(shortest.as_micros()..=longest.as_micros()));
        let last = self.arrivals.entry((carried.from, carried.to)).or_insert(Time::ZERO);
        let at = self.now.saturating_add(delay).max(*last);
        *last = at;
        self.sequence += 1;
        self.later.insert((at, self.sequence), carried);
    }

    fn deliver(&mut self, Carried { from, to, letter }: Carried) {
        if self.sites[to as usize].is_none() {
            if self.config.reports_failures {
                self.tell(from, Input::Failed(to));
            }
            return;
        }
        match letter {
            Letter::View(message) => self.tell(to, Input::Message { from, message }),
            Letter::Tree(message) => self.tell_tree(to, broadcast::Input::Message { from, message }),
        }
    }
}
