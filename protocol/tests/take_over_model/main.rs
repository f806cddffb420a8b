//! The state table of the hand-over with take-over, adoption and leaving, walked by the model checker stateright.
//!
//! One job, its first guardian and one or two others, on the real [`Ledger`] and, for what the operator does, the real
//! rule over the journals of the dead. The network is the set of all messages ever sent: each may be delivered at any
//! time, again, or never, which covers loss, duplication, delay and reordering without bound. A handler is one atomic
//! write, so a crash between a write and its messages is a message that is never delivered; a crash otherwise only
//! ends what executes. With [`Grid::doubts`] anybody may be believed gone at any time, rightly or not; else only who
//! died or has left.
//!
//! What is walked is the table of `docs/PROTOCOL.md` and not the peer; that the peer keeps to it is what the fault
//! simulation is for.
//!
//! [`Ledger`]: protocol::handover::Ledger

mod search;
mod table;

use scheduler::Grid as Sizes;
use stateright::{Checker, HasDiscoveries, Model};

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
    /// The sender that takes a job over counts as the guardian does.
    StandInWithoutNumber,
    /// Who passed the job on to a site that is gone says that it is there, and does nothing else.
    DoubtIsWord,
    /// A guardian's word that the job went on counts for all transfers of the epoch, later ones included.
    OverForGood,
    /// A site has left although others do not know its answers.
    LeavesUnheard,
    /// A site has left although others do not know what it took over.
    LeavesVoidsUntold,
    /// Epochs are counted by one, and a sender adds its number: three take-overs can meet.
    CountsByOne,
    /// All adoptions of a job are of the same epoch.
    AdoptionsAlike,
    /// The operator does not look at transfers in the journals of the dead.
    TransfersUnread,
    /// Who routes a job away is not responsible until it is accepted.
    RouteUnwarded,
    /// A site has left although a job waits there.
    LeavesEarly,
    /// A site has left although it is responsible for a job elsewhere.
    LeavesWards,
    /// A site has left although a transfer of it is not answered.
    LeavesTransfers,
    /// A site has left although a guardian must still hear from it.
    LeavesUntold,
}

struct Grid {
    sites: usize,
    /// Whose job it is at first.
    home: usize,
    /// Grants and routes of the job, declined ones included.
    grants: u32,
    crashes: u32,
    /// Take-overs by guardians, and by senders of transfers.
    take_overs: u32,
    stand_ins: u32,
    /// Sites that never come back.
    deaths: usize,
    /// Sites that leave.
    leaves: usize,
    operator: bool,
    /// Whether sites that are there may be believed gone.
    doubts: bool,
    /// Whether guardians confirm what they are told.
    notes: bool,
    /// Whether the job has already been at every site and come home.
    toured: bool,
    recalls: bool,
    declines: bool,
    mistake: Mistake,
}

impl Grid {
    fn sizes(&self) -> Sizes {
        Sizes::of_sizes(&vec![1; self.sites]).expect("a grid")
    }
}

const SMALL: Grid = Grid {
    sites: 2,
    home: 0,
    grants: 3,
    crashes: 1,
    take_overs: 1,
    stand_ins: 0,
    deaths: 0,
    leaves: 0,
    operator: false,
    doubts: true,
    recalls: true,
    declines: true,
    notes: false,
    toured: false,
    mistake: Mistake::None,
};

/// Three sites of which the middle one may pass the job on.
const THREE: Grid = Grid { sites: 3, crashes: 0, recalls: false, declines: false, ..SMALL };

/// The guardian may be gone, too.
const STAND_IN: Grid = Grid { grants: 2, stand_ins: 1, notes: true, ..THREE };

/// Two of three sites die, and the operator has their journals.
const DEATHS: Grid = Grid { deaths: 2, operator: true, doubts: false, ..STAND_IN };

/// A site leaves, and nobody is believed gone who is there.
const LEAVES: Grid = Grid { leaves: 1, doubts: false, ..STAND_IN };

/// The job has been everywhere, and reports are late.
const TOURED: Grid = Grid { toured: true, take_overs: 0, stand_ins: 0, ..LEAVES };

/// Walks all of it, and prints a row: sites, grants, crashes, take-overs by guardians and by senders, deaths, leaving, then
/// whether there are doubts, recalls and declines, and the number of states.
fn holds(grid: Grid) {
    let Grid { sites, grants, crashes, take_overs, stand_ins, deaths, leaves, .. } = grid;
    let yes = |is: bool| if is { "yes" } else { "no" };
    let (doubts, recalls, declines) = (yes(grid.doubts), yes(grid.recalls), yes(grid.declines));
    let checker = grid.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    let states = checker.unique_state_count();
    println!(
        "| {sites} | {grants} | {crashes} | {take_overs} | {stand_ins} | {deaths} | {leaves} | {doubts} | {recalls} | {declines} | {states} |"
    );
}

#[test]
fn two_sites_one_take_over() {
    holds(SMALL);
}

#[test]
fn two_sites_and_the_job_comes_back() {
    holds(Grid { crashes: 0, recalls: false, ..SMALL });
}

#[test]
fn two_sites_two_take_overs() {
    holds(Grid { crashes: 0, take_overs: 2, recalls: false, ..SMALL });
}

#[test]
fn three_sites_without_take_over() {
    holds(Grid { sites: 3, take_overs: 0, ..SMALL });
}

#[test]
fn three_sites_and_the_holder_passes_it_on() {
    holds(THREE);
}

#[test]
fn the_sender_takes_it_over() {
    holds(STAND_IN);
}

#[test]
fn two_of_three_sites_die() {
    holds(DEATHS);
}

#[test]
fn a_site_leaves() {
    holds(LEAVES);
}

#[test]
fn two_sites_leave() {
    holds(Grid { leaves: 2, ..LEAVES });
}

#[test]
fn a_guardian_leaves_before_all_reports_are_in() {
    holds(TOURED);
}

#[test]
#[ignore = "long: minutes and gigabytes"]
fn larger_grids() {
    for grid in [
        Grid { recalls: true, declines: true, ..THREE },
        Grid { take_overs: 2, declines: true, ..THREE },
        Grid { sites: 3, take_overs: 0, crashes: 2, ..SMALL },
        Grid { grants: 4, crashes: 2, ..SMALL },
        Grid { grants: 4, crashes: 0, take_overs: 2, ..SMALL },
        Grid { recalls: true, declines: true, ..STAND_IN },
        Grid { deaths: 1, operator: true, ..STAND_IN },
        Grid { grants: 3, ..DEATHS },
        Grid { grants: 3, ..LEAVES },
        Grid { leaves: 2, grants: 3, ..LEAVES },
        Grid { doubts: true, ..LEAVES },
        Grid { leaves: 1, deaths: 1, ..DEATHS },
    ] {
        holds(grid);
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

const LOST: &str = "the job is not lost";
const TWO_OWNERS: &str = "one owner of each epoch";
const OWES: &str = "who has left owes nothing";
const TWICE: &str = "it starts once if all sites that are believed gone have left";

#[test]
fn mutant_a_take_over_without_a_new_epoch_is_caught() {
    caught(Mistake::SameEpoch, SMALL, TWO_OWNERS);
}

#[test]
fn mutant_a_receiver_that_takes_void_copies_is_caught() {
    caught(Mistake::VoidUnchecked, SMALL, "no void copy waits");
}

#[test]
fn mutant_a_site_that_keeps_void_copies_is_caught() {
    caught(Mistake::VoidUnheeded, SMALL, "no void copy waits");
}

#[test]
fn mutant_a_transfer_that_is_taken_back_without_a_new_epoch_is_caught() {
    caught(Mistake::ReclaimWithoutEpoch, SMALL, TWO_OWNERS);
}

#[test]
fn mutant_a_receiver_that_does_not_learn_the_epoch_is_caught() {
    caught(Mistake::EpochUnread, Grid { crashes: 0, recalls: false, ..SMALL }, LOST);
}

#[test]
fn mutant_an_answer_that_is_not_written_is_caught() {
    caught(Mistake::AnswerForgotten, SMALL, TWO_OWNERS);
}

#[test]
fn mutant_a_guardian_that_forgets_the_job_is_caught() {
    caught(Mistake::NobodyTakesUp, SMALL, LOST);
}

#[test]
fn mutant_a_holder_that_passes_on_in_silence_is_caught() {
    caught(Mistake::NoReports, THREE, "the guardian knows who has it");
}

#[test]
fn mutant_a_sender_that_counts_epochs_as_the_guardian_is_caught() {
    caught(Mistake::StandInWithoutNumber, STAND_IN, TWO_OWNERS);
}

#[test]
fn mutant_epochs_that_are_counted_by_one_are_caught() {
    let grid = Grid { home: 1, grants: 3, take_overs: 2, ..STAND_IN };
    caught(Mistake::CountsByOne, grid, TWO_OWNERS);
}

#[test]
fn mutant_a_sender_that_only_says_where_the_job_may_be_is_caught() {
    caught(Mistake::DoubtIsWord, Grid { deaths: 1, operator: true, ..STAND_IN }, LOST);
}

#[test]
fn mutant_adoptions_under_the_same_epoch_are_caught() {
    caught(Mistake::AdoptionsAlike, DEATHS, TWO_OWNERS);
}

#[test]
fn mutant_an_operator_that_does_not_look_at_transfers_is_caught() {
    caught(Mistake::TransfersUnread, DEATHS, LOST);
}

#[test]
fn mutant_a_route_that_nobody_is_responsible_for_is_caught() {
    caught(Mistake::RouteUnwarded, Grid { leaves: 2, ..LEAVES }, LOST);
}

#[test]
fn mutant_a_site_that_leaves_with_a_waiting_job_is_caught() {
    caught(Mistake::LeavesEarly, LEAVES, OWES);
}

#[test]
fn mutant_a_site_that_leaves_with_a_job_in_its_care_is_caught() {
    caught(Mistake::LeavesWards, LEAVES, OWES);
}

#[test]
fn mutant_a_site_that_leaves_with_a_transfer_out_is_caught() {
    caught(Mistake::LeavesTransfers, LEAVES, OWES);
}

#[test]
fn mutant_a_site_that_leaves_before_the_guardian_knows_is_caught() {
    caught(Mistake::LeavesUntold, LEAVES, TWICE);
}

#[test]
fn mutant_a_site_that_leaves_before_its_answers_are_known_is_caught() {
    caught(Mistake::LeavesUnheard, Grid { leaves: 2, ..LEAVES }, TWICE);
}

#[test]
fn mutant_a_site_that_leaves_before_its_take_overs_are_known_is_caught() {
    caught(Mistake::LeavesVoidsUntold, Grid { leaves: 2, ..LEAVES }, TWICE);
}

#[test]
fn mutant_a_late_word_that_counts_for_later_transfers_is_caught() {
    caught(Mistake::OverForGood, TOURED, LOST);
}
