//! The host of a global queue is cut off, replaced and comes back. A small driver over peers delivers messages only
//! between sites that can reach each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use protocol::message::{Epoch, PoolMessage};
use protocol::{Input, Message, Options, Output, Peer, PeerConfig, PoolOptions, Terms};
use scheduler::strategy::PoolAlgorithm;
use scheduler::{EventKind, Grid, JobId, JobSpec, Labels, Pool, SiteId, Span, Strategy, Time};

const REFRESH: Span = Span::from_secs(30);
const DELAY: Span = Span::from_secs(1);
const RUN_TIME: Span = Span::from_secs(10);

#[test]
fn a_host_that_is_cut_off_is_replaced_and_the_pool_is_rebuilt() {
    let mut net = Net::new(&[2, 2, 8]);
    net.isolate(1);
    // Wider than its site: it can start at site 3 only, and site 1 decides.
    net.submit(2, job(1, 8));
    net.run_until(Time::from_secs(80));
    assert_eq!(net.starts, BTreeMap::new(), "nobody decides yet");

    net.run_until(Time::from_secs(200));

    assert_eq!(net.hosts(), [1, 2, 2], "it offers something and nobody answers");
    assert_eq!(net.starts.keys().copied().collect::<Vec<_>>(), [JobId(1)]);
    assert_eq!(net.starts[&JobId(1)].0, SiteId(3));
}

#[test]
fn a_site_that_is_cut_off_serves_its_own_offers() {
    let mut net = Net::new(&[2, 4, 8]);
    net.submit(3, job(1, 6));
    net.run_until(Time::from_secs(1));
    net.isolate(3);
    // The first starts at once; the second is offered, and only site 3 can take it.
    net.submit(3, job(2, 6));
    net.run_until(Time::from_secs(400));

    assert_eq!(net.hosts()[2], 3, "nobody else answers");
    assert_eq!(net.starts[&JobId(2)].0, SiteId(3));
}

#[test]
fn two_hosts_do_no_harm_and_become_one_when_they_meet() {
    let mut net = split(&|_| {});
    assert_eq!(net.hosts(), [1, 2, 3, 2, 3], "each side has elected one, with the same number");

    net.heal();
    // Only sites of the other side are wide enough: it starts if the sides become one grid again.
    net.submit(2, job(3, 8));
    net.run_until(Time::from_secs(1000));

    assert_eq!(net.starts.get(&JobId(3)).map(|start| start.0), Some(SiteId(5)));
    assert_eq!(net.hosts()[1..], [3, 3, 3, 3], "of two with the same number the higher id wins");
    assert!(net.peers.iter().all(Peer::is_quiet), "and then all is silent");
}

#[test]
fn a_site_that_missed_the_announcement_is_told_when_it_speaks_to_the_old_host() {
    let mut net = Net::new(&[2, 2, 2, 8]);
    assert_eq!(spoken_to_the_old_host(&mut net), [3, 3, 3, 3], "one delay there and one back");
}

/// Sites 2 and 4, and sites 3 and 5, lose each other and their host, and each side elects a new one.
fn split(mistake: &dyn Fn(&mut Peer)) -> Net {
    let mut net = Net::new(&[2, 2, 2, 4, 8]);
    net.peers.iter_mut().for_each(mistake);
    net.isolate(1);
    for (one, other) in [(2, 3), (2, 5), (4, 3), (4, 5)] {
        net.cut(one, other);
    }
    // What makes each side notice: an offer that no site of it but the last one can take.
    net.submit(2, job(1, 4));
    net.submit(3, job(2, 8));
    net.run_until(Time::from_secs(300));
    assert_eq!(net.starts.len(), 2);
    net
}

/// Who is host for each site, after site 4, which missed that site 3 became host, spoke to site 1, which did not.
fn spoken_to_the_old_host(net: &mut Net) -> Vec<u32> {
    let epoch = Epoch { counter: 1, site: SiteId(3) };
    for informed in [1, 2] {
        net.tell(
            SiteId(informed),
            Input::Message { from: SiteId(3), message: PoolMessage::Host { epoch }.into() },
        );
    }
    // The first starts, the second is offered.
    net.submit(4, job(1, 8));
    net.submit(4, job(2, 8));
    net.run_until(Time::ZERO + DELAY + DELAY);
    net.hosts()
}

mod mutants {
    use protocol::mutant::Mutant;

    use super::*;

    #[test]
    fn epochs_that_are_plain_numbers_split_the_grid() {
        let mut net = split(&|peer| peer.set_mutant(Mutant::EpochIsNumber));
        net.heal();
        net.submit(2, job(3, 8));
        net.run_until(Time::from_secs(20_000));
        assert_eq!(net.starts.get(&JobId(3)), None, "it waits beside an idle site");
        assert_eq!(net.hosts()[1..], [2, 3, 2, 3]);
    }

    #[test]
    fn boards_without_epoch_leave_a_site_with_the_old_host() {
        let mut net = Net::new(&[2, 2, 2, 8]);
        net.peers.iter_mut().for_each(|peer| peer.set_mutant(Mutant::BoardWithoutEpoch));
        assert_eq!(spoken_to_the_old_host(&mut net)[3], 1);
    }
}

fn job(id: u64, processors: u32) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors,
        requested: RUN_TIME,
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}

/// Peers, the messages between them, and who cannot reach whom.
struct Net {
    peers: Vec<Peer>,
    now: Time,
    messages: BTreeMap<(Time, u64), (SiteId, SiteId, Message)>,
    ends: BTreeSet<(Time, JobId, SiteId)>,
    sent: u64,
    cut: BTreeSet<(SiteId, SiteId)>,
    starts: BTreeMap<JobId, (SiteId, Time)>,
    /// The host that each site follows.
    followed: BTreeMap<SiteId, SiteId>,
    restless: VecDeque<SiteId>,
}

impl Net {
    fn new(sizes: &[u32]) -> Net {
        let grid = Arc::new(Grid::of_sizes(sizes).expect("a grid"));
        let options = Options {
            retry: Some(REFRESH),
            pool: PoolOptions { refresh: Some(REFRESH) },
            ..Options::default()
        };
        let strategy = Strategy::Pool(Pool::new(PoolAlgorithm::List));
        let terms = Terms { options, ..Terms::new(grid.clone(), strategy) };
        let peer = |site: &scheduler::Site| Peer::new(PeerConfig { site: site.id, terms: terms.clone() });
        Net {
            peers: grid.sites().iter().map(peer).collect(),
            now: Time::ZERO,
            messages: BTreeMap::new(),
            ends: BTreeSet::new(),
            sent: 0,
            cut: BTreeSet::new(),
            starts: BTreeMap::new(),
            followed: BTreeMap::new(),
            restless: VecDeque::new(),
        }
    }

    fn cut(&mut self, one: u32, other: u32) {
        self.cut.insert((SiteId(one), SiteId(other)));
        self.cut.insert((SiteId(other), SiteId(one)));
    }

    fn isolate(&mut self, site: u32) {
        for other in (1..=self.peers.len() as u32).filter(|&other| other != site) {
            self.cut(site, other);
        }
    }

    fn heal(&mut self) {
        self.cut.clear();
    }

    fn hosts(&self) -> Vec<u32> {
        let sites = (1..=self.peers.len() as u32).map(SiteId);
        sites.map(|site| self.followed.get(&site).map_or(1, |host| host.0)).collect()
    }

    fn submit(&mut self, site: u32, job: JobSpec) {
        self.tell(SiteId(site), Input::Submitted(JobSpec { submit: self.now, origin: SiteId(site), ..job }));
        self.decide();
    }

    fn tell(&mut self, site: SiteId, input: Input) {
        let wakes = !matches!(input, Input::Turn | Input::Settle);
        let peer = &mut self.peers[site.index()];
        peer.handle(self.now, input);
        while let Some(output) = peer.poll_output() {
            match output {
                Output::Start(job) => {
                    let before = self.starts.insert(job.id, (site, self.now));
                    assert_eq!(before, None, "job {} starts twice", job.id);
                    self.ends.insert((self.now + RUN_TIME, job.id, site));
                }
                Output::Send { to, message } => {
                    self.sent += 1;
                    if !self.cut.contains(&(site, to)) {
                        self.messages.insert((self.now + DELAY, self.sent), (site, to, message));
                    }
                }
                Output::Event(EventKind::Followed { host, .. }) => {
                    self.followed.insert(site, host);
                }
                Output::Stop(job) => panic!("job {job} has no parts"),
                Output::Event(_) | Output::Write(_) => {}
            }
        }
        peer.check_invariants();
        if wakes {
            self.restless.push_back(site);
        }
    }

    /// Turns and settling until nobody has anything left to decide at this instant.
    fn decide(&mut self) {
        loop {
            while let Some(site) = self.restless.pop_front() {
                self.tell(site, Input::Turn);
            }
            let Some(site) = self.peers.iter().find(|peer| peer.wants_settle()).map(Peer::site) else {
                return;
            };
            self.tell(site, Input::Settle);
        }
    }

    fn run_until(&mut self, end: Time) {
        loop {
            let messages = self.messages.first_key_value().map(|(&(at, _), _)| at);
            let ends = self.ends.first().map(|&(at, ..)| at);
            let timers = self.peers.iter().filter_map(Peer::poll_timeout).min();
            let Some(next) = [messages, ends, timers].into_iter().flatten().min().filter(|&next| next <= end)
            else {
                self.now = end;
                return;
            };
            self.now = next;
            while let Some(&(at, job, site)) = self.ends.first()
                && at <= next
            {
                self.ends.pop_first();
                self.tell(site, Input::Completed(job));
            }
            while let Some(entry) = self.messages.first_entry()
                && entry.key().0 <= next
            {
                let (from, to, message) = entry.remove();
                self.tell(to, Input::Message { from, message });
            }
            self.decide();
            for index in 0..self.peers.len() {
                if self.peers[index].poll_timeout().is_some_and(|due| due <= next) {
                    self.tell(SiteId::from_index(index), Input::Timeout);
                }
            }
            self.decide();
        }
    }
}
