//! The state table of the hand-over with take-over, walked by the model checker stateright.
//!
//! One job, its guardian (site 1) and one or two others, on the real [`Ledger`]. The network is the set of all
//! messages ever sent: each may be delivered at any time, again, or never, which covers loss, duplication, delay and
//! reordering without bound. A handler is one atomic write, so a crash between a write and its messages is a message
//! that is never delivered; a crash otherwise only ends what executes. Anybody may be believed gone at any time,
//! rightly or not.
//!
//! What is walked is the table of `docs/PROTOCOL.md` and not the peer; that the peer keeps to it is what the fault
//! simulation is for.

use std::collections::{BTreeMap, BTreeSet};

use protocol::handover::{Answer, Arrival, Custody, Ledger, Record};
use protocol::message::Transfer;
use scheduler::{JobId, JobSpec, SiteId, Span, Time};
use stateright::{Checker, HasDiscoveries, Model, Property};

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// A job that is taken over keeps its epoch.
    SameEpoch,
    /// A receiver takes copies of older epochs.
    VoidUnchecked,
    /// A site keeps waiting copies of older epochs.
    VoidUnheeded,
    /// The guardian takes its unanswered transfers back as well, and forgets that they are out.
    ReclaimWithoutEpoch,
    /// A receiver does not learn from a transfer that older epochs are void.
    EpochUnread,
    /// An answer is not written.
    AnswerForgotten,
    /// The guardian forgets to take the job up.
    NobodyTakesUp,
    /// Who passes a job on does not say so.
    NoReports,
}

struct Grid {
    sites: usize,
    /// Grants of the job, declined ones included.
    grants: u32,
    crashes: u32,
    take_overs: u32,
    recalls: bool,
    declines: bool,
    mistake: Mistake,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Site {
    ledger: Ledger,
    /// Epoch and moves of the copy that waits here.
    waits: Option<(u32, u32)>,
    /// Epoch and moves of the copy that executes here.
    runs: Option<(u32, u32)>,
    /// Epochs below this are void.
    void: u32,
    /// At the guardian: epoch, moves and holder of the job that it gave away.
    ward: Option<(u32, u32, usize)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    sites: Vec<Site>,
    letters: BTreeSet<Letter>,
    /// (epoch, site) of every start.
    starts: BTreeSet<(u32, usize)>,
    /// How often each epoch ended.
    ended: BTreeMap<u32, u32>,
    grants: u32,
    crashes: u32,
    take_overs: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Letter {
    Grant { from: usize, to: usize, transfer: Transfer, floor: u64 },
    Recall { from: usize, to: usize, number: u64 },
    Reply { from: usize, to: usize, number: u64, answer: Answer },
    Void { to: usize, epoch: u32 },
    Report { epoch: u32, moves: u32, holder: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Grant {
        from: usize,
        to: usize,
    },
    Recall {
        from: usize,
        to: usize,
        number: u64,
    },
    Deliver {
        letter: Letter,
        wanted: bool,
    },
    Start(usize),
    End(usize),
    Crash(usize),
    TakeOver,
    /// Who passed the job on to a site that is believed gone says to whom.
    Doubt {
        from: usize,
        to: usize,
        number: u64,
    },
}

const GUARDIAN: usize = 0;

fn id(site: usize) -> SiteId {
    SiteId(u32::try_from(site).expect("few") + 1)
}

fn job() -> JobSpec {
    JobSpec {
        id: JobId(1),
        submit: Time::ZERO,
        processors: 1,
        requested: Span::from_secs(1),
        user: 1,
        origin: id(GUARDIAN),
        payload: 0,
    }
}

impl State {
    fn newest(&self) -> u32 {
        self.sites[GUARDIAN].void
    }

    fn out(&self, from: usize) -> Vec<(usize, Transfer)> {
        let out = self.sites[from].ledger.transfers_out();
        out.map(|(to, transfer)| (to.index(), *transfer)).collect()
    }

    fn receive(&mut self, grid: &Grid, letter: Letter, wanted: bool) -> Option<()> {
        match letter {
            Letter::Grant { from, to, transfer, floor } => {
                let site = &mut self.sites[to];
                if let Some(record) = site.ledger.floor_from(id(from), floor) {
                    site.ledger.apply(&record);
                }
                if transfer.epoch > site.void && grid.mistake != Mistake::EpochUnread {
                    // A transfer of an epoch says that older ones are void.
                    self.heed(grid, to, transfer.epoch);
                }
                let site = &mut self.sites[to];
                let number = transfer.number;
                let answer = match site.ledger.arrival(id(from), number) {
                    Arrival::Settled => return wanted.then_some(()),
                    Arrival::Answered(answer) => answer,
                    Arrival::New => {
                        let void = transfer.epoch < site.void && grid.mistake != Mistake::VoidUnchecked;
                        let takes = wanted && !void;
                        let answer = if takes { Answer::Accepted } else { Answer::Declined };
                        if grid.mistake != Mistake::AnswerForgotten {
                            let record = site.ledger.answer(id(from), number, answer);
                            site.ledger.apply(&record);
                        }
                        if takes && site.runs.is_some() {
                            // The copy that executes here is of this epoch from now on.
                            site.runs = Some((transfer.epoch, transfer.hops));
                            site.ward = None;
                            self.starts.insert((transfer.epoch, to));
                        } else if takes {
                            site.waits = Some((transfer.epoch, transfer.hops));
                            site.ward = None;
                        }
                        answer
                    }
                };
                self.letters.insert(Letter::Reply { from: to, to: from, number, answer });
            }
            Letter::Recall { from, to, number } => {
                let site = &mut self.sites[to];
                let answer = match site.ledger.arrival(id(from), number) {
                    Arrival::Settled => return None,
                    Arrival::Answered(answer) => answer,
                    Arrival::New => {
                        let record = site.ledger.answer(id(from), number, Answer::Declined);
                        site.ledger.apply(&record);
                        Answer::Declined
                    }
                };
                self.letters.insert(Letter::Reply { from: to, to: from, number, answer });
            }
            Letter::Reply { from, to, number, answer } => {
                let site = &mut self.sites[to];
                let (record, transfer) = site.ledger.settle(id(from), number, answer)?;
                site.ledger.apply(&record);
                match answer {
                    Answer::Accepted => self.passed_on(grid, to, from, &transfer),
                    Answer::Declined => {
                        // Moves never count down: this is newer than any word of the grant.
                        site.waits = Some((transfer.epoch, transfer.hops + 1));
                        site.ward = None;
                        if to != GUARDIAN && grid.mistake != Mistake::NoReports {
                            let (epoch, moves) = (transfer.epoch, transfer.hops + 1);
                            self.letters.insert(Letter::Report { epoch, moves, holder: to });
                        }
                    }
                }
            }
            Letter::Void { to, epoch } => {
                if self.sites[to].void >= epoch {
                    return None;
                }
                self.heed(grid, to, epoch);
            }
            Letter::Report { epoch, moves, holder } => {
                let site = &mut self.sites[GUARDIAN];
                let ward = site.ward.filter(|ward| (epoch, moves) > (ward.0, ward.1))?;
                debug_assert!(epoch >= ward.0);
                site.ward = Some((epoch, moves, holder));
            }
        }
        Some(())
    }

    fn passed_on(&mut self, grid: &Grid, from: usize, to: usize, transfer: &Transfer) {
        if from != GUARDIAN && to != GUARDIAN && grid.mistake != Mistake::NoReports {
            let (epoch, moves) = (transfer.epoch, transfer.hops);
            self.letters.insert(Letter::Report { epoch, moves, holder: to });
        }
    }

    /// Epochs below this one are void.
    fn heed(&mut self, grid: &Grid, at: usize, epoch: u32) {
        let out = self.out(at);
        let site = &mut self.sites[at];
        site.void = epoch;
        if grid.mistake == Mistake::VoidUnheeded {
            return;
        }
        for (to, transfer) in out {
            if transfer.epoch < epoch {
                site.ledger.apply(&Record::Voided { to: id(to), number: transfer.number });
            }
        }
        site.waits = site.waits.filter(|waits| waits.0 >= epoch);
    }

    fn take_over(&mut self, grid: &Grid) -> Option<()> {
        let (epoch, ..) = self.sites[GUARDIAN].ward?;
        let epoch = if grid.mistake == Mistake::SameEpoch { epoch } else { epoch + 1 };
        if grid.mistake == Mistake::ReclaimWithoutEpoch {
            let number = self.out(GUARDIAN).first().map(|(to, transfer)| (*to, transfer.number));
            let (to, number) = number?;
            self.sites[GUARDIAN].ledger.apply(&Record::Voided { to: id(to), number });
            self.sites[GUARDIAN].waits = Some((epoch - 1, 0));
            self.sites[GUARDIAN].ward = None;
            return Some(());
        }
        self.take_overs += 1;
        self.heed(grid, GUARDIAN, epoch);
        self.sites[GUARDIAN].ward = None;
        if grid.mistake != Mistake::NobodyTakesUp {
            self.sites[GUARDIAN].waits = Some((epoch, 0));
        }
        for to in 1..self.sites.len() {
            self.letters.insert(Letter::Void { to, epoch });
        }
        Some(())
    }

    /// Sites that have a copy of this epoch.
    fn owners(&self, epoch: u32) -> usize {
        let has = |site: &&Site| [site.waits, site.runs].into_iter().flatten().any(|copy| copy.0 == epoch);
        self.sites.iter().filter(has).count()
    }
}

impl Model for Grid {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut sites = vec![Site::default(); self.sites];
        sites[GUARDIAN].waits = Some((0, 0));
        vec![State {
            sites,
            letters: BTreeSet::new(),
            starts: BTreeSet::new(),
            ended: BTreeMap::new(),
            grants: 0,
            crashes: 0,
            take_overs: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (from, site) in state.sites.iter().enumerate() {
            if site.waits.is_some() {
                actions.push(Action::Start(from));
                let others = (0..self.sites).filter(|&to| to != from && state.grants < self.grants);
                actions.extend(others.map(|to| Action::Grant { from, to }));
            }
            if site.runs.is_some() {
                actions.push(Action::End(from));
                if state.crashes < self.crashes {
                    actions.push(Action::Crash(from));
                }
            }
            for (to, transfer) in state.out(from) {
                let number = transfer.number;
                if self.recalls && !state.letters.contains(&Letter::Recall { from, to, number }) {
                    actions.push(Action::Recall { from, to, number });
                }
                if from != GUARDIAN && to != GUARDIAN && self.take_overs > 0 {
                    actions.push(Action::Doubt { from, to, number });
                }
            }
        }
        if state.take_overs < self.take_overs && state.sites[GUARDIAN].ward.is_some() {
            actions.push(Action::TakeOver);
        }
        for &letter in &state.letters {
            actions.push(Action::Deliver { letter, wanted: true });
            if self.declines && matches!(letter, Letter::Grant { .. }) {
                actions.push(Action::Deliver { letter, wanted: false });
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Grant { from, to } => {
                let site = &mut state.sites[from];
                let (epoch, moves) = site.waits.take()?;
                state.grants += 1;
                let custody = Custody { hops: moves, epoch, ..Custody::default() };
                let (record, transfer) = site.ledger.grant(id(to), job(), custody);
                site.ledger.apply(&record);
                if from == GUARDIAN {
                    site.ward = Some((epoch, transfer.hops, to));
                }
                let floor = site.ledger.floor_to(id(to));
                state.letters.insert(Letter::Grant { from, to, transfer, floor });
            }
            Action::Recall { from, to, number } => {
                state.letters.insert(Letter::Recall { from, to, number });
            }
            Action::Doubt { from, to, number } => {
                let transfer = *state.sites[from].ledger.out(id(to), number)?;
                state.passed_on(self, from, to, &transfer);
            }
            Action::Deliver { letter, wanted } => state.receive(self, letter, wanted)?,
            Action::Start(at) => {
                let site = &mut state.sites[at];
                let copy = site.waits.take()?;
                site.runs = Some(copy);
                state.starts.insert((copy.0, at));
            }
            Action::End(at) => {
                let (epoch, _) = state.sites[at].runs.take()?;
                *state.ended.entry(epoch).or_default() += 1;
            }
            Action::Crash(at) => {
                state.crashes += 1;
                let site = &mut state.sites[at];
                let copy = site.runs.take()?;
                if site.waits.is_none() && (copy.0 >= site.void) {
                    site.waits = Some(copy);
                } else if copy.0 >= site.void {
                    return None;
                }
            }
            Action::TakeOver => state.take_over(self)?,
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("without a crash one site starts each epoch", |_, state: &State| {
                let epochs: BTreeSet<u32> = state.starts.iter().map(|start| start.0).collect();
                state.crashes > 0 || epochs.len() == state.starts.len()
            }),
            Property::always("each epoch ends at most once", |_, state: &State| {
                state.ended.values().all(|&times| times == 1)
            }),
            Property::always("one owner of each epoch", |_, state: &State| {
                (0..=state.take_overs).all(|epoch| state.owners(epoch) <= 1)
            }),
            Property::always("the newest epoch is not lost", |_, state: &State| {
                let newest = state.newest();
                let out = (0..state.sites.len()).flat_map(|from| state.out(from));
                state.owners(newest) > 0
                    || state.ended.contains_key(&newest)
                    || out.into_iter().any(|(_, transfer)| transfer.epoch == newest)
            }),
            Property::always("no void copy waits", |_, state: &State| {
                state.sites.iter().all(|site| site.waits.is_none_or(|waits| waits.0 >= site.void))
            }),
            Property::always("the guardian knows who has it", |_, state: &State| {
                // Once all reports are in, a ward's holder has the job, or was granted it.
                let guardian = &state.sites[GUARDIAN];
                let Some((epoch, moves, holder)) = guardian.ward else { return true };
                let pending = state.letters.iter().any(|letter| {
                    matches!(*letter, Letter::Report { epoch: e, moves: h, .. } if (e, h) > (epoch, moves))
                });
                let site = &state.sites[holder];
                let has = [site.waits, site.runs].into_iter().flatten().any(|copy| copy.0 == epoch);
                let out = (0..state.sites.len()).flat_map(|from| state.out(from));
                let granted = out.into_iter().any(|(to, out)| (to, out.epoch) == (holder, epoch));
                let passes_on = state.out(holder).into_iter().any(|(_, out)| out.epoch == epoch);
                let back = guardian.waits.is_some_and(|waits| waits.0 == epoch);
                pending || has || granted || passes_on || back || state.ended.contains_key(&epoch)
            }),
            Property::sometimes("it ends", |_, state: &State| !state.ended.is_empty()),
        ];
        if self.take_overs > 0 {
            properties.push(Property::sometimes("it runs twice", |_, state: &State| state.starts.len() > 1));
        }
        if self.grants > 1 {
            properties.push(Property::sometimes("it comes home", |_, state: &State| {
                state.sites[GUARDIAN].waits.is_some_and(|(_, moves)| moves > 1)
            }));
        }
        properties
    }
}

const SMALL: Grid = Grid {
    sites: 2,
    grants: 3,
    crashes: 1,
    take_overs: 1,
    recalls: true,
    declines: true,
    mistake: Mistake::None,
};

fn holds(grid: Grid) -> usize {
    let checker = grid.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    checker.unique_state_count()
}

#[test]
fn two_sites_one_take_over() {
    println!("{} states", holds(SMALL));
}

#[test]
fn two_sites_and_the_job_comes_back() {
    println!("{} states", holds(Grid { grants: 3, crashes: 0, recalls: false, ..SMALL }));
}

#[test]
fn two_sites_two_take_overs() {
    println!("{} states", holds(Grid { crashes: 0, take_overs: 2, recalls: false, ..SMALL }));
}

#[test]
fn three_sites_without_take_over() {
    println!("{} states", holds(Grid { sites: 3, grants: 3, take_overs: 0, ..SMALL }));
}

#[test]
fn three_sites_and_the_holder_passes_it_on() {
    let grid = Grid { sites: 3, grants: 3, crashes: 0, recalls: false, declines: false, ..SMALL };
    println!("{} states", holds(grid));
}

#[test]
#[ignore = "long: minutes and gigabytes"]
fn larger_grids() {
    for grid in [
        Grid { grants: 4, crashes: 2, ..SMALL },
        Grid { grants: 4, crashes: 0, take_overs: 2, ..SMALL },
        Grid { sites: 3, crashes: 0, ..SMALL },
        Grid { sites: 3, take_overs: 2, crashes: 0, recalls: false, ..SMALL },
        Grid { sites: 3, take_overs: 0, crashes: 2, ..SMALL },
    ] {
        let Grid { sites, grants, crashes, take_overs, recalls, declines, .. } = grid;
        let states = holds(grid);
        println!(
            "{sites} sites, {grants} grants, {crashes} crashes, {take_overs} take-overs, recalls {recalls}, declines {declines}: {states} states"
        );
    }
}

fn caught(mistake: Mistake, grid: Grid, property: &'static str) {
    let checker = Grid { mistake, ..grid }
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyOf([property].into()))
        .spawn_bfs()
        .join();
    assert!(checker.discovery(property).is_some(), "{mistake:?} breaks \"{property}\"");
}

#[test]
fn canary_a_take_over_without_a_new_epoch_is_caught() {
    caught(Mistake::SameEpoch, SMALL, "one owner of each epoch");
}

#[test]
fn canary_a_receiver_that_takes_void_copies_is_caught() {
    caught(Mistake::VoidUnchecked, SMALL, "no void copy waits");
}

#[test]
fn canary_a_site_that_keeps_void_copies_is_caught() {
    caught(Mistake::VoidUnheeded, SMALL, "no void copy waits");
}

#[test]
fn canary_a_transfer_that_is_taken_back_without_a_new_epoch_is_caught() {
    caught(Mistake::ReclaimWithoutEpoch, SMALL, "one owner of each epoch");
}

#[test]
fn canary_a_receiver_that_does_not_learn_the_epoch_is_caught() {
    let grid = Grid { crashes: 0, recalls: false, ..SMALL };
    caught(Mistake::EpochUnread, grid, "the newest epoch is not lost");
}

#[test]
fn canary_an_answer_that_is_not_written_is_caught() {
    caught(Mistake::AnswerForgotten, SMALL, "one owner of each epoch");
}

#[test]
fn canary_a_guardian_that_forgets_the_job_is_caught() {
    caught(Mistake::NobodyTakesUp, SMALL, "the newest epoch is not lost");
}

#[test]
fn canary_a_holder_that_passes_on_in_silence_is_caught() {
    let grid = Grid { sites: 3, grants: 3, crashes: 0, recalls: false, declines: false, ..SMALL };
    caught(Mistake::NoReports, grid, "the guardian knows who has it");
}
