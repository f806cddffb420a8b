//! What sites do: the tables of `docs/PROTOCOL.md` for one job, on the real ledger and the operator's real rule.

use std::collections::{BTreeMap, BTreeSet};

use protocol::Durable;
use protocol::handover::{Answer, Arrival, Custody, Ledger, Record};
use protocol::journal::{Kept, Place};
use protocol::membership::next_epoch;
use protocol::membership::operator::{Adoption, EPOCHS_PER_ADOPTION, adoptions};
use protocol::message::Transfer;
use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

use crate::{Grid, Mistake};

/// The job where it waits or executes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Copy {
    pub(crate) epoch: u32,
    /// Grants and returns.
    pub(crate) moves: u32,
    /// Who is responsible; none if it is the site itself.
    pub(crate) guardian: Option<usize>,
}

/// What a guardian knows of the job that it gave away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Guarded {
    pub(crate) epoch: u32,
    pub(crate) moves: u32,
    pub(crate) holder: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Report {
    pub(crate) guardian: usize,
    pub(crate) epoch: u32,
    pub(crate) moves: u32,
    pub(crate) holder: usize,
    pub(crate) done: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Stay {
    #[default]
    Here,
    Leaving,
    /// Its process ended because it owed nothing.
    Left,
    /// It never comes back. The operator has its journal.
    Dead,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Site {
    pub(crate) stay: Stay,
    pub(crate) ledger: Ledger,
    pub(crate) waits: Option<Copy>,
    pub(crate) runs: Option<Copy>,
    /// Epochs below this are void.
    pub(crate) void: u32,
    /// The newest epoch under which this site took it over.
    pub(crate) taken_over: u32,
    pub(crate) guarded: Option<Guarded>,
    /// What the guardian has not confirmed.
    pub(crate) report: Option<Report>,
}

impl Site {
    pub(crate) fn is_there(&self) -> bool {
        matches!(self.stay, Stay::Here | Stay::Leaving)
    }

    pub(crate) fn copies(&self) -> impl Iterator<Item = Copy> {
        [self.waits, self.runs].into_iter().flatten()
    }

    pub(crate) fn out(&self) -> impl Iterator<Item = (usize, Transfer)> {
        self.ledger.transfers_out().map(|(to, transfer)| (to.index(), *transfer))
    }

    /// What this site wrote down, as far as the operator's rule looks at it.
    fn journal(&self, mistake: Mistake) -> Durable {
        let kept = |copy: Copy| {
            let Copy { epoch, moves, guardian } = copy;
            let custody = Custody { epoch, moves, guardian: guardian.map(id), ..Custody::default() };
            (job().id, Kept { job: job(), custody, place: Place::Queue, started: None })
        };
        let ledger = match mistake {
            Mistake::TransfersUnread => Ledger::new(),
            _ => self.ledger.clone(),
        };
        let voids = if self.void > 0 { [(job().id, self.void)].into() } else { BTreeMap::new() };
        Durable {
            incarnation: Some(0),
            jobs: self.copies().map(kept).collect(),
            ledger,
            voids,
            ..Durable::default()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Message {
    /// A grant or a route: the real message has both.
    Job {
        from: usize,
        to: usize,
        transfer: Transfer,
        floor: u64,
        route: bool,
    },
    Recall {
        from: usize,
        to: usize,
        number: u64,
    },
    Reply {
        from: usize,
        to: usize,
        number: u64,
        answer: Answer,
    },
    /// A site that leaves is told which of its answers are known.
    Floor {
        from: usize,
        to: usize,
        floor: u64,
    },
    Void {
        to: usize,
        epoch: u32,
    },
    Report {
        from: usize,
        report: Report,
    },
    /// The guardian has the report; or it is not responsible any more and says that the job has ended.
    Noted {
        to: usize,
        report: Report,
        over: bool,
    },
    Adopt {
        to: usize,
        epoch: u32,
    },
}

impl Message {
    pub(crate) fn to(&self) -> usize {
        match *self {
            Message::Job { to, .. }
            | Message::Recall { to, .. }
            | Message::Reply { to, .. }
            | Message::Floor { to, .. }
            | Message::Void { to, .. }
            | Message::Noted { to, .. }
            | Message::Adopt { to, .. } => to,
            Message::Report { report, .. } => report.guardian,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) sites: Vec<Site>,
    pub(crate) messages: BTreeSet<Message>,
    /// (epoch, site) of every start, and of every copy that became one of that epoch while it executed.
    pub(crate) starts: BTreeSet<(u32, usize)>,
    /// How often it began to execute.
    pub(crate) begun: u32,
    /// How often each epoch ended.
    pub(crate) ended: BTreeMap<u32, u32>,
    pub(crate) grants: u32,
    pub(crate) crashes: u32,
    pub(crate) take_overs: u32,
    pub(crate) assumed: u32,
    /// The newest epoch of an adoption that was written down where it went.
    pub(crate) adopted: u32,
    /// To whom the operator gave the job, until that is written down there.
    pub(crate) told: Option<(usize, u32)>,
}

pub(crate) fn id(site: usize) -> SiteId {
    SiteId(u32::try_from(site).expect("few") + 1)
}

pub(crate) fn job() -> JobSpec {
    JobSpec {
        id: JobId(1),
        submit: Time::ZERO,
        processors: 1,
        requested: Span::from_secs(1),
        labels: Labels::UNKNOWN,
        origin: id(0),
        payload: 0,
    }
}

impl State {
    pub(crate) fn new(grid: &Grid) -> State {
        let mut sites = vec![Site::default(); grid.sites];
        sites[grid.home].waits = Some(Copy::default());
        let mut state = State {
            sites,
            messages: BTreeSet::new(),
            starts: BTreeSet::new(),
            begun: 0,
            ended: BTreeMap::new(),
            grants: 0,
            crashes: 0,
            take_overs: 0,
            assumed: 0,
            adopted: 0,
            told: None,
        };
        if grid.toured {
            state.tour(grid);
        }
        state
    }

    /// The job goes once to every site and comes home. All is answered; what the guardian is told is still under way.
    fn tour(&mut self, grid: &Grid) {
        let sites = grid.sites;
        for from in (grid.home..grid.home + sites).map(|at| at % sites) {
            let to = (from + 1) % sites;
            self.send(grid, from, to, false);
            let is_it = |message: &&Message| matches!(message, Message::Job { from: f, .. } if *f == from);
            let message = *self.messages.iter().find(is_it).expect("it was just sent");
            self.receive(grid, message, true);
            self.settle(grid, to, from, 1, Answer::Accepted);
        }
        self.messages.retain(|message| matches!(message, Message::Report { .. }));
        self.grants = 0;
    }

    /// The newest epoch that anybody knows of.
    pub(crate) fn newest(&self) -> u32 {
        self.sites.iter().map(|site| site.void).max().unwrap_or(0)
    }

    /// Whether somebody may believe that a site is gone.
    pub(crate) fn may_be_gone(&self, grid: &Grid, site: usize) -> bool {
        grid.doubts || !self.sites[site].is_there()
    }

    /// Sends the job away. A route makes the receiver responsible, unless somebody else is.
    pub(crate) fn send(&mut self, grid: &Grid, from: usize, to: usize, route: bool) -> Option<()> {
        let site = &mut self.sites[from];
        let Copy { epoch, moves, guardian } = site.waits.take()?;
        self.grants += 1;
        let named = guardian.or((!route).then_some(from)).map(id);
        let custody = Custody { hops: moves, moves, epoch, guardian: named, bounces: 0 };
        let (record, transfer) = site.ledger.grant(id(to), job(), custody);
        site.ledger.apply(&record);
        if guardian.is_none() && grid.mistake != Mistake::RouteUnwarded {
            site.guarded = Some(Guarded { epoch, moves: transfer.moves, holder: to });
        }
        let floor = site.ledger.floor_to(id(to));
        self.messages.insert(Message::Job { from, to, transfer, floor, route });
        Some(())
    }

    pub(crate) fn receive(&mut self, grid: &Grid, message: Message, wanted: bool) -> Option<()> {
        match message {
            Message::Job { from, to, transfer, floor, route } => {
                self.floor(from, to, floor);
                let arrival = self.sites[to].ledger.arrival(id(from), transfer.number);
                let answer = match arrival {
                    Arrival::Settled => return Some(()),
                    Arrival::Answered(Answer::Declined) if route => return Some(()),
                    Arrival::Answered(answer) => answer,
                    Arrival::New => self.consider(grid, from, to, &transfer, route, wanted),
                };
                self.messages.insert(Message::Reply { from: to, to: from, number: transfer.number, answer });
            }
            Message::Recall { from, to, number } => {
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
                self.messages.insert(Message::Reply { from: to, to: from, number, answer });
            }
            Message::Reply { from, to, number, answer } => self.settle(grid, from, to, number, answer)?,
            Message::Floor { from, to, floor } => self.floor(from, to, floor),
            Message::Void { to, epoch } => {
                if self.sites[to].void >= epoch {
                    return None;
                }
                self.heed(grid, to, epoch);
            }
            Message::Report { from, report } => self.note(grid, from, report),
            Message::Noted { to, report, over } => self.noted(grid, to, report, over),
            Message::Adopt { to, epoch } => {
                if self.told == Some((to, epoch)) {
                    self.told = None;
                    self.adopted = epoch;
                }
                if self.sites[to].void < epoch {
                    self.assume(grid, to, epoch);
                }
            }
        }
        Some(())
    }

    fn floor(&mut self, from: usize, to: usize, floor: u64) {
        let site = &mut self.sites[to];
        if let Some(record) = site.ledger.floor_from(id(from), floor) {
            site.ledger.apply(&record);
        }
    }

    /// Answers a transfer that comes for the first time.
    fn consider(
        &mut self,
        grid: &Grid,
        from: usize,
        to: usize,
        transfer: &Transfer,
        route: bool,
        wanted: bool,
    ) -> Answer {
        if transfer.epoch > self.sites[to].void && grid.mistake != Mistake::EpochUnread {
            // A transfer of an epoch says that older ones are void.
            self.heed(grid, to, transfer.epoch);
        }
        let site = &mut self.sites[to];
        let void = transfer.epoch < site.void && grid.mistake != Mistake::VoidUnchecked;
        let merges = site.runs.is_some() && !void;
        let takes = !void && (wanted || route || merges);
        // A void copy is taken, and dropped.
        let answer = if takes || route || void { Answer::Accepted } else { Answer::Declined };
        if grid.mistake != Mistake::AnswerForgotten {
            let record = site.ledger.answer(id(from), transfer.number, answer);
            site.ledger.apply(&record);
        }
        if takes {
            let guardian = transfer.guardian.map(SiteId::index).filter(|&guardian| guardian != to);
            let copy = Copy { epoch: transfer.epoch, moves: transfer.moves, guardian };
            // It came back: whoever it was out to had it.
            self.void_transfers(to, |out| out.epoch <= transfer.epoch);
            let site = &mut self.sites[to];
            site.guarded = None;
            if merges {
                // The copy that executes here is of this epoch from now on.
                site.runs = Some(copy);
                self.starts.insert((transfer.epoch, to));
            } else {
                site.waits = Some(copy);
            }
        }
        answer
    }

    fn settle(&mut self, grid: &Grid, from: usize, to: usize, number: u64, answer: Answer) -> Option<()> {
        if answer == Answer::Declined && self.is_route(to, from, number) {
            return None;
        }
        let site = &mut self.sites[to];
        let (record, transfer) = site.ledger.settle(id(from), number, answer)?;
        site.ledger.apply(&record);
        let guardian = transfer.guardian.map(SiteId::index);
        if answer == Answer::Accepted {
            match guardian {
                None => site.guarded = None,
                Some(guardian) => self.say_where(grid, to, from, &transfer, guardian),
            }
            return Some(());
        }
        if site.copies().next().is_some() {
            return Some(());
        }
        // Moves never count down: this is newer than any word of the grant.
        let guardian = guardian.filter(|&guardian| guardian != to);
        let copy = Copy { epoch: transfer.epoch, moves: transfer.moves + 1, guardian };
        site.waits = Some(copy);
        match guardian {
            None => site.guarded = None,
            Some(guardian) => {
                let Copy { epoch, moves, .. } = copy;
                self.report(grid, to, Report { guardian, epoch, moves, holder: to, done: false });
            }
        }
        Some(())
    }

    pub(crate) fn is_route(&self, from: usize, to: usize, number: u64) -> bool {
        self.messages.iter().any(|message| {
            matches!(message, Message::Job { from: f, to: t, transfer, route: true, .. }
                if (*f, *t, transfer.number) == (from, to, number))
        })
    }

    /// Asks the guardian of a transfer to a site that is gone whether the job went on.
    pub(crate) fn doubt(
        &mut self,
        grid: &Grid,
        from: usize,
        to: usize,
        transfer: &Transfer,
        guardian: usize,
    ) {
        if grid.mistake == Mistake::DoubtIsWord {
            return self.say_where(grid, from, to, transfer, guardian);
        }
        let (epoch, moves) = (transfer.epoch, transfer.moves - 1);
        self.report(grid, from, Report { guardian, epoch, moves, holder: from, done: false });
    }

    /// Lets the guardian know to whom the job went, unless it is one of the two.
    fn say_where(&mut self, grid: &Grid, from: usize, to: usize, transfer: &Transfer, guardian: usize) {
        if guardian != from && guardian != to {
            let Transfer { epoch, moves, .. } = *transfer;
            self.report(grid, from, Report { guardian, epoch, moves, holder: to, done: false });
        }
    }

    fn report(&mut self, grid: &Grid, from: usize, report: Report) {
        let order = |report: &Report| (report.epoch, report.moves, report.done);
        let site = &mut self.sites[from];
        if grid.mistake == Mistake::NoReports
            || site.report.is_some_and(|known| order(&known) >= order(&report))
        {
            return;
        }
        site.report = Some(report);
        self.messages.insert(Message::Report { from, report });
    }

    /// The guardian hears of the job.
    fn note(&mut self, grid: &Grid, from: usize, report: Report) {
        let at = report.guardian;
        let site = &mut self.sites[at];
        let guarded = site.guarded.map(|guarded| (guarded.epoch, guarded.moves));
        let here = site.copies().next().map(|copy| (copy.epoch, copy.moves));
        let went_on = match guarded.or(here) {
            Some(known) => known > (report.epoch, report.moves + 1),
            None => site.out().next().is_none(),
        };
        let is_elsewhere = guarded.is_none() && here.is_none() && site.out().next().is_none();
        let over = !report.done && if grid.mistake == Mistake::OverForGood { is_elsewhere } else { went_on };
        if let Some(guarded) = site.guarded.filter(|guarded| report.epoch >= guarded.epoch) {
            if report.done {
                site.guarded = None;
                self.is_over(grid, at, report);
            } else if (report.epoch, report.moves) > (guarded.epoch, guarded.moves) {
                let Report { epoch, moves, holder, .. } = report;
                site.guarded = Some(Guarded { epoch, moves, holder });
            }
        }
        if grid.notes {
            self.messages.insert(Message::Noted { to: from, report, over });
        }
    }

    fn noted(&mut self, grid: &Grid, at: usize, report: Report, over: bool) {
        if (report.done || over) && self.sites[at].report.is_none_or(|told| !told.done) {
            self.is_over(grid, at, report);
        }
        if self.sites[at].report != Some(report) {
            return;
        }
        self.sites[at].report = None;
        let asked = |to: usize, out: &Transfer| {
            (out.epoch, out.moves) == (report.epoch, report.moves + 1)
                && out.guardian.is_some_and(|guardian| guardian != id(at))
                && self.may_be_gone(grid, to)
        };
        let stuck = self.sites[at].out().find(|(to, out)| asked(*to, out));
        if let Some((_, transfer)) = stuck.filter(|_| report.holder == at && self.assumed < grid.stand_ins) {
            self.stand_in(grid, at, &transfer);
        }
    }

    /// The job has ended, or went on: answers to transfers of it were lost.
    fn is_over(&mut self, grid: &Grid, at: usize, report: Report) {
        let far = grid.mistake == Mistake::OverForGood;
        self.void_transfers(at, |out| {
            (out.epoch, out.moves) <= (report.epoch, if far { u32::MAX } else { report.moves + 1 })
        });
    }

    /// Epochs below this one are void.
    fn heed(&mut self, grid: &Grid, at: usize, epoch: u32) {
        let site = &mut self.sites[at];
        site.void = epoch;
        if grid.mistake == Mistake::VoidUnheeded {
            return;
        }
        site.guarded = site.guarded.filter(|guarded| guarded.epoch >= epoch);
        site.report = site.report.filter(|report| report.epoch >= epoch);
        site.waits = site.waits.filter(|waits| waits.epoch >= epoch);
        self.void_transfers(at, |out| out.epoch < epoch);
    }

    fn void_transfers(&mut self, at: usize, is_void: impl Fn(&Transfer) -> bool) {
        let site = &mut self.sites[at];
        let out: Vec<(usize, Transfer)> = site.out().filter(|(_, transfer)| is_void(transfer)).collect();
        for (to, transfer) in out {
            site.ledger.apply(&Record::Voided { to: id(to), number: transfer.number });
        }
    }

    /// The guardian takes the job over.
    pub(crate) fn take_over(&mut self, grid: &Grid, at: usize) -> Option<()> {
        let guarded = self.sites[at].guarded?;
        self.take_overs += 1;
        if grid.mistake == Mistake::ReclaimWithoutEpoch {
            let site = &mut self.sites[at];
            let (to, transfer) = site.out().next()?;
            site.ledger.apply(&Record::Voided { to: id(to), number: transfer.number });
            site.waits = Some(Copy { epoch: guarded.epoch, moves: 0, guardian: None });
            site.guarded = None;
            return Some(());
        }
        let epoch = match grid.mistake {
            Mistake::SameEpoch => guarded.epoch,
            Mistake::CountsByOne => guarded.epoch + 1,
            _ => next_epoch(guarded.epoch, id(at), self.sites.len()),
        };
        self.assume(grid, at, epoch);
        Some(())
    }

    /// The sender of a transfer takes the job over: neither the receiver nor the guardian is there.
    pub(crate) fn stand_in(&mut self, grid: &Grid, at: usize, transfer: &Transfer) {
        self.assumed += 1;
        let epoch = match grid.mistake {
            Mistake::StandInWithoutNumber => transfer.epoch + 1,
            Mistake::CountsByOne => transfer.epoch + 1 + id(at).0,
            _ => next_epoch(transfer.epoch, id(at), self.sites.len()),
        };
        self.assume(grid, at, epoch);
    }

    /// Makes the job this site's under a newer epoch. A copy that executes here goes on and is of that epoch; one that
    /// ended here, with nobody left to be told, need not run again.
    fn assume(&mut self, grid: &Grid, at: usize, epoch: u32) {
        let site = &mut self.sites[at];
        let ended = site.report.is_some_and(|report| report.done);
        let copy = Copy { epoch, ..Copy::default() };
        self.heed(grid, at, epoch);
        let site = &mut self.sites[at];
        site.taken_over = epoch;
        site.guarded = None;
        if site.runs.is_some() {
            site.runs = Some(copy);
            self.starts.insert((epoch, at));
        } else if !ended && grid.mistake != Mistake::NobodyTakesUp {
            site.waits = Some(copy);
        }
        let others = (0..self.sites.len()).filter(|&to| to != at);
        self.messages.extend(others.map(|to| Message::Void { to, epoch }));
    }

    /// What the operator would tell whom, by the journals of the dead.
    pub(crate) fn adoption(&self, grid: &Grid) -> Option<(usize, u32)> {
        let dead = self.sites.iter().enumerate().filter(|(_, site)| site.stay == Stay::Dead);
        let journals: Vec<(SiteId, Durable)> =
            dead.map(|(at, site)| (id(at), site.journal(grid.mistake))).collect();
        if journals.is_empty() {
            return None;
        }
        let dead = journals.iter().map(|(site, journal)| (*site, journal)).collect();
        let adopted = if self.adopted > 0 { [(job().id, self.adopted)].into() } else { BTreeMap::new() };
        let is_there = |site: SiteId| self.sites[site.index()].is_there();
        let list = adoptions(&grid.sizes(), &dead, &adopted, is_there);
        let Adoption { epoch, to, .. } = *list.first()?;
        Some((to.index(), epoch))
    }

    /// The operator tells it, unless somebody has not confirmed it yet.
    pub(crate) fn operate(&mut self, grid: &Grid) -> Option<()> {
        self.told = self.told.filter(|told| self.sites[told.0].is_there());
        if self.told.is_some() {
            return None;
        }
        let (to, epoch) = self.adoption(grid)?;
        let epoch = match grid.mistake {
            Mistake::AdoptionsAlike => EPOCHS_PER_ADOPTION,
            _ => epoch,
        };
        self.told = Some((to, epoch));
        self.messages.insert(Message::Adopt { to, epoch });
        Some(())
    }

    /// Whether a site that leaves has nothing left to do.
    pub(crate) fn has_left(&self, grid: &Grid, at: usize) -> bool {
        let site = &self.sites[at];
        let told = site.report.is_none_or(|report| self.may_be_gone(grid, report.guardian));
        site.stay == Stay::Leaving
            && (site.guarded.is_none() || grid.mistake == Mistake::LeavesWards)
            && (told || grid.mistake == Mistake::LeavesUntold)
            && site.runs.is_none()
            && (site.waits.is_none() || grid.mistake == Mistake::LeavesEarly)
            && (site.ledger.is_settled() || grid.mistake == Mistake::LeavesTransfers)
            && self.is_heard(grid, at)
            && self.told.is_none_or(|told| told.0 != at)
    }

    /// Whether all who are there have the answers of a site, and know what it took over.
    fn is_heard(&self, grid: &Grid, at: usize) -> bool {
        let site = &self.sites[at];
        let others = || (0..self.sites.len()).filter(|&other| other != at && !self.may_be_gone(grid, other));
        let answered = |other: usize| site.ledger.tombstones_below(id(other), u64::MAX).next().is_none();
        let knows = |other: usize| self.sites[other].void >= site.taken_over;
        (grid.mistake == Mistake::LeavesUnheard || others().all(answered))
            && (grid.mistake == Mistake::LeavesVoidsUntold || others().all(knows))
    }

    /// What a site tells one that leaves: the answers below this are known.
    pub(crate) fn floor_for(&self, from: usize, to: usize) -> Option<Message> {
        let floor = self.sites[from].ledger.floor_to(id(to));
        let superfluous = self.sites[to].ledger.tombstones_below(id(from), floor).next();
        superfluous.map(|_| Message::Floor { from, to, floor })
    }

    /// Sites that have a copy of this epoch.
    pub(crate) fn owners(&self, epoch: u32) -> usize {
        self.sites.iter().filter(|site| site.copies().any(|copy| copy.epoch == epoch)).count()
    }

    /// Whether the job is with somebody who is there and will go on with it, or who will take it over.
    pub(crate) fn is_in_care(&self, grid: &Grid) -> bool {
        let there = |at: usize| self.sites[at].is_there();
        let takes_over = |at: usize| {
            let lost = |guarded: Guarded| !there(guarded.holder) && guarded.epoch >= self.sites[at].void;
            there(at) && self.sites[at].guarded.is_some_and(lost)
        };
        let told_takes_over = |guardian: usize, epoch: u32, moves: u32| {
            let guarded = self.sites[guardian].guarded;
            there(guardian) && guarded.is_some_and(|guarded| (epoch, moves) >= (guarded.epoch, guarded.moves))
        };
        let holds = |site: &Site| site.copies().any(|copy| copy.epoch >= site.void);
        let passes_on = |at: usize, (to, out): (usize, Transfer)| {
            if there(to) {
                let arrival = self.sites[to].ledger.arrival(id(at), out.number);
                return !matches!(arrival, Arrival::Settled | Arrival::Answered(Answer::Accepted));
            }
            match out.guardian.map(SiteId::index) {
                // The guarded job says it.
                None => false,
                Some(guardian) if guardian == at => false,
                // It stands in, now or once the guardian has answered.
                Some(_) => true,
            }
        };
        let cares = |at: usize| {
            let site = &self.sites[at];
            let tells = site.report.is_some_and(|report| {
                !report.done
                    && !there(report.holder)
                    && told_takes_over(report.guardian, report.epoch, report.moves)
            });
            there(at) && (holds(site) || takes_over(at) || tells || site.out().any(|out| passes_on(at, out)))
        };
        let adopts = || {
            let told = self.told.is_some_and(|(to, epoch)| there(to) && self.sites[to].void < epoch);
            told || self.adoption(grid).is_some()
        };
        !self.ended.is_empty() || (0..self.sites.len()).any(cares) || adopts()
    }

    /// A transfer that is out, with its guardian.
    pub(crate) fn in_doubt(&self, from: usize, to: usize, number: u64) -> Option<(Transfer, usize)> {
        let transfer = *self.sites[from].ledger.out(id(to), number)?;
        Some((transfer, transfer.guardian?.index()))
    }

    pub(crate) fn end(&mut self, grid: &Grid, at: usize) -> Option<()> {
        let Copy { epoch, moves, guardian } = self.sites[at].runs.take()?;
        *self.ended.entry(epoch).or_default() += 1;
        if let Some(guardian) = guardian {
            self.report(grid, at, Report { guardian, epoch, moves, holder: at, done: true });
        }
        Some(())
    }

    /// Once all reports are in, who was told to have the job has it, or passed it on.
    pub(crate) fn knows_holder(&self, at: usize) -> bool {
        let guardian = &self.sites[at];
        let Some(Guarded { epoch, moves, holder }) = guardian.guarded else { return true };
        if epoch < self.newest() || !guardian.is_there() {
            return true;
        }
        let is_newer =
            |report: &Report| report.guardian == at && (report.epoch, report.moves) > (epoch, moves);
        let pending = self
            .messages
            .iter()
            .any(|message| matches!(message, Message::Report { report, .. } if is_newer(report)));
        let has = |site: &Site| site.copies().any(|copy| copy.epoch == epoch);
        let granted =
            self.sites.iter().flat_map(Site::out).any(|(to, out)| (to, out.epoch) == (holder, epoch));
        let passes_on = self.sites[holder].out().any(|(_, out)| out.epoch == epoch);
        pending
            || has(&self.sites[holder])
            || has(guardian)
            || granted
            || passes_on
            || self.ended.contains_key(&epoch)
    }

    /// Whether nothing is left at a site, and nobody who goes on with the job counts on it.
    pub(crate) fn owes_nothing(&self, at: usize) -> bool {
        let site = &self.sites[at];
        let empty = site.copies().next().is_none() && site.out().next().is_none() && site.guarded.is_none();
        if !self.ended.is_empty() {
            return empty;
        }
        let newest = self.newest();
        let others = || (0..self.sites.len()).filter(|&other| self.sites[other].is_there());
        let depends = |epoch: u32, guardian: Option<usize>| epoch >= newest && guardian == Some(at);
        let copies = |other: usize| self.sites[other].copies().any(|copy| depends(copy.epoch, copy.guardian));
        let transfers = |other: usize| {
            self.sites[other].out().any(|(to, out)| {
                let had = self.sites[to].ledger.arrival(id(other), out.number)
                    == Arrival::Answered(Answer::Accepted);
                depends(out.epoch, out.guardian.map(SiteId::index)) && !had
            })
        };
        empty && !others().any(|other| copies(other) || transfers(other))
    }
}
