//! Moving a job: at every instant exactly one site owns it, whatever the network does.
//!
//! A [`Ledger`] holds what one site must not forget about transfers, towards others and from others. It knows
//! nothing of stealing. The rules, in the order of the tables in `docs/PROTOCOL.md`:
//!
//! | sender, transfer n | event | then |
//! | --- | --- | --- |
//! | owned | grant | out n, send Grant n |
//! | out n | any length of silence | send Grant n or Recall n again; **never reclaim** |
//! | out n | Accepted n | forget n |
//! | out n | Declined n | owned again |
//! | not out | any answer | ignore, a late copy |
//!
//! | receiver, transfer n | event | then |
//! | --- | --- | --- |
//! | below floor | Grant or Recall | nothing: settled |
//! | answered | Grant or Recall | the same answer again |
//! | unknown | Grant | decide, write the answer, answer |
//! | unknown | Recall | write Declined, a promise never to accept n; answer |
//!
//! Every change is a [`Record`]: written before the message that tells of it leaves, it makes the table survive a
//! crash. A ledger is exactly what its records say ([`Ledger::replay`]).

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{JobId, JobSpec, SiteId};
use serde::{Deserialize, Serialize};

use crate::bounds::COUNT_MAX;
use crate::message::jobs::Transfer;
use crate::numbers::{first_transfer, journal_of, receiving_journal};

/// What a receiver answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// It owns the job now.
    Accepted,
    /// It never will by this transfer.
    Declined,
}

/// What a site knows of a job besides what was submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Custody {
    /// How often it changed sites.
    pub hops: u32,
    /// How often it was granted or came back: orders what is said of who has it.
    #[serde(default)]
    pub moves: u32,
    /// How often a receiver declined it.
    pub bounces: u32,
    /// Counts take-overs.
    pub epoch: u32,
    /// Who is responsible if the holder is gone; none if it is the holder.
    #[serde(default)]
    pub guardian: Option<SiteId>,
}

/// One durable change of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// A job left `owned` and is out to another site.
    Out {
        /// The site that the job is offered to.
        to: SiteId,
        /// The transfer as sent.
        transfer: Transfer,
    },
    /// The receiver answered; the transfer is no longer out.
    Settled {
        /// The site that answered.
        to: SiteId,
        /// The transfer number.
        number: u64,
        /// What it answered.
        answer: Answer,
    },
    /// The job was taken over under a newer epoch; whatever the receiver answers means nothing.
    Voided {
        /// The site that the transfer went to.
        to: SiteId,
        /// The transfer number.
        number: u64,
    },
    /// This site answered a transfer.
    Tombstone {
        /// The site that sent the transfer.
        from: SiteId,
        /// The transfer number.
        number: u64,
        /// What this site answered, and answers again if the transfer comes again.
        answer: Answer,
    },
    /// Everything below is settled at the sender; its answers are forgotten.
    Floor {
        /// The site whose transfers are settled.
        from: SiteId,
        /// The lowest transfer number that may still be open.
        floor: u64,
    },
    /// The receiver has lost its journal: transfers to it are numbered from here on, and no answer comes to others.
    Renumbered {
        /// The site that lost its journal.
        to: SiteId,
        /// The number of the next transfer.
        number: u64,
    },
}

/// One line of a [`Ledger`], for a store that keeps state instead of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// The number of the next transfer to a site.
    Next {
        /// The site that transfers are counted to.
        to: SiteId,
        /// The number that the next transfer to it gets.
        number: u64,
    },
    /// A transfer that is not answered.
    Out {
        /// The site that has not answered.
        to: SiteId,
        /// The transfer as sent.
        transfer: Transfer,
    },
    /// What is known of the numbers of a sender.
    Numbers {
        /// The site whose transfers arrive here.
        from: SiteId,
        /// Everything below is settled at the sender.
        floor: u64,
        /// The highest that ever arrived.
        seen: u64,
    },
    /// An answer that was given.
    Tombstone {
        /// The site that sent the transfer.
        from: SiteId,
        /// The transfer number.
        number: u64,
        /// What this site answered, and answers again if the transfer comes again.
        answer: Answer,
    },
}

/// What to do with a transfer that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Settled long ago: say nothing.
    Settled,
    /// Answered before: say the same again.
    Answered(Answer),
    /// Decide, then [`Ledger::answer`].
    New,
}

/// What one site must not forget about transfers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ledger {
    /// How many journals this site has lost.
    journal: u32,
    outgoing: BTreeMap<SiteId, Outgoing>,
    incoming: BTreeMap<SiteId, Incoming>,
    /// Jobs that are out, with how often they will have changed sites: job, hops, receiver, number.
    hops_out: BTreeSet<(JobId, u32, SiteId, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Outgoing {
    next: u64,
    out: BTreeMap<u64, Transfer>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Incoming {
    floor: u64,
    /// Highest number that ever arrived.
    seen: u64,
    tombstones: BTreeMap<u64, Answer>,
}

impl Incoming {
    fn numbers(&self, from: SiteId) -> Entry {
        Entry::Numbers { from, floor: self.floor, seen: self.seen }
    }
}

impl Outgoing {
    fn from_number(next: u64) -> Outgoing {
        Outgoing { next, out: BTreeMap::new() }
    }
}

impl Default for Outgoing {
    fn default() -> Self {
        Outgoing::from_number(1)
    }
}

impl Ledger {
    /// A ledger without transfers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The site began an incarnation. What is numbered for a journal that it lost before is not for this one.
    pub fn began(&mut self, incarnation: u32) {
        self.journal = journal_of(incarnation);
    }

    /// Whether a transfer to this site was numbered for a journal that it has lost.
    pub fn is_of_lost_journal(&self, number: u64) -> bool {
        receiving_journal(number) < self.journal
    }

    /// The ledger that these records make.
    pub fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> Ledger {
        let mut ledger = Ledger::new();
        for record in records {
            ledger.apply(record);
        }
        ledger
    }

    /// The ledger of these lines, in any order.
    ///
    /// # Errors
    /// In words, if they cannot be those of one ledger.
    pub fn from_entries(entries: impl IntoIterator<Item = Entry>) -> Result<Ledger, String> {
        let mut ledger = Ledger::new();
        for entry in entries {
            match entry {
                Entry::Next { to, number } => ledger.outgoing.entry(to).or_default().next = number,
                Entry::Out { to, transfer } => {
                    ledger.outgoing.entry(to).or_default().out.insert(transfer.number, transfer);
                }
                Entry::Numbers { from, floor, seen } => {
                    let incoming = ledger.incoming.entry(from).or_default();
                    (incoming.floor, incoming.seen) = (floor, seen);
                }
                Entry::Tombstone { from, number, answer } => {
                    ledger.incoming.entry(from).or_default().tombstones.insert(number, answer);
                }
            }
        }
        for (&to, outgoing) in &ledger.outgoing {
            let hops = |out: &Transfer| (out.job.id, out.hops, to, out.number);
            ledger.hops_out.extend(outgoing.out.values().map(hops));
            if outgoing.out.last_key_value().is_some_and(|(&last, _)| last >= outgoing.next) {
                return Err(format!("a transfer to site {to} has a number that was not given out yet"));
            }
        }
        for (from, incoming) in &ledger.incoming {
            let (first, last) = (incoming.tombstones.first_key_value(), incoming.tombstones.last_key_value());
            if first.is_some_and(|(&number, _)| number < incoming.floor)
                || last.is_some_and(|(&number, _)| number > incoming.seen)
            {
                return Err(format!("an answer to site {from} is outside of the numbers that arrived"));
            }
        }
        Ok(ledger)
    }

    /// All its lines, site by site.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let outgoing = self.outgoing.iter().flat_map(|(&to, outgoing)| {
            let next = Entry::Next { to, number: outgoing.next };
            std::iter::once(next)
                .chain(outgoing.out.values().map(move |&transfer| Entry::Out { to, transfer }))
        });
        let incoming = self.incoming.iter().flat_map(|(&from, incoming)| {
            let tombstone = move |(&number, &answer)| Entry::Tombstone { from, number, answer };
            std::iter::once(incoming.numbers(from)).chain(incoming.tombstones.iter().map(tombstone))
        });
        outgoing.chain(incoming)
    }

    /// What is known of the numbers of `from`, as one line.
    pub fn numbers(&self, from: SiteId) -> Entry {
        let known = self.incoming.get(&from).map(|incoming| incoming.numbers(from));
        known.unwrap_or(Entry::Numbers { from, floor: 0, seen: 0 })
    }

    /// Numbers of the answers to `from` that a floor makes superfluous.
    pub fn tombstones_below(&self, from: SiteId, floor: u64) -> impl Iterator<Item = u64> {
        let tombstones = self.incoming.get(&from).map(|incoming| incoming.tombstones.range(..floor));
        tombstones.into_iter().flatten().map(|(&number, _)| number)
    }

    /// Applies one durable change.
    ///
    /// # Panics
    /// If the record contradicts the ledger: a number used twice, an answer to nothing.
    pub fn apply(&mut self, record: &Record) {
        match *record {
            Record::Out { to, transfer } => {
                let first = self.first();
                let outgoing = self.outgoing.entry(to).or_insert_with(|| Outgoing::from_number(first));
                assert_eq!(transfer.number, outgoing.next, "transfer numbers are never reused or skipped");
                outgoing.next += 1;
                outgoing.out.insert(transfer.number, transfer);
                self.hops_out.insert((transfer.job.id, transfer.hops, to, transfer.number));
            }
            Record::Settled { to, number, .. } | Record::Voided { to, number } => {
                let gone = self.outgoing.entry(to).or_default().out.remove(&number);
                let gone = gone.expect("only a transfer that is out can be settled");
                self.hops_out.remove(&(gone.job.id, gone.hops, to, number));
            }
            Record::Tombstone { from, number, answer } => {
                let incoming = self.incoming.entry(from).or_default();
                assert!(number >= incoming.floor, "what is below the floor is settled");
                let before = incoming.tombstones.insert(number, answer);
                assert!(before.is_none(), "an answer is given once");
                incoming.seen = incoming.seen.max(number);
            }
            Record::Renumbered { to, number } => {
                let first = self.first();
                let outgoing = self.outgoing.entry(to).or_insert_with(|| Outgoing::from_number(first));
                assert!(number > outgoing.next, "numbers only grow");
                outgoing.next = number;
            }
            Record::Floor { from, floor } => {
                let incoming = self.incoming.entry(from).or_default();
                if floor > incoming.floor {
                    incoming.floor = floor;
                    incoming.tombstones = incoming.tombstones.split_off(&floor);
                    incoming.seen = incoming.seen.max(floor - 1);
                }
            }
        }
    }

    /// The record that hands `job` to `to`; apply it, then send the transfer.
    pub fn grant(&self, to: SiteId, job: JobSpec, custody: Custody) -> (Record, Transfer) {
        let number = self.next_number(to);
        let transfer = Transfer {
            number,
            job,
            bounces: custody.bounces,
            hops: custody.hops.saturating_add(1),
            epoch: custody.epoch,
            moves: custody.moves.saturating_add(1),
            guardian: custody.guardian,
        };
        (Record::Out { to, transfer }, transfer)
    }

    /// The number of the next transfer to a site.
    pub(crate) fn next_number(&self, to: SiteId) -> u64 {
        self.outgoing.get(&to).map_or(self.first(), |outgoing| outgoing.next)
    }

    /// The number of the first transfer to any site.
    fn first(&self) -> u64 {
        first_transfer(0, self.journal) + 1
    }

    /// How many journals the site has lost whose this is.
    pub(crate) fn journal(&self) -> u32 {
        self.journal
    }

    /// How many journals a site has lost, as far as transfers to it are numbered by that.
    pub(crate) fn journal_at(&self, site: SiteId) -> u32 {
        receiving_journal(self.next_number(site))
    }

    /// The record that has a site lost so many journals; apply it.
    pub(crate) fn renumber(&self, to: SiteId, journal: u32) -> Record {
        Record::Renumbered { to, number: first_transfer(journal, self.journal) + 1 }
    }

    /// What to do with transfer `number` that just arrived from `from`.
    pub fn arrival(&self, from: SiteId, number: u64) -> Arrival {
        if self.is_of_lost_journal(number) {
            // It was for a journal that is lost. Whether it was answered, nobody knows.
            return Arrival::Settled;
        }
        let Some(incoming) = self.incoming.get(&from) else { return Arrival::New };
        if number < incoming.floor {
            return Arrival::Settled;
        }
        incoming.tombstones.get(&number).map_or(Arrival::New, |&answer| Arrival::Answered(answer))
    }

    /// The record that answers transfer `number`; apply it, then send the answer.
    pub fn answer(&self, from: SiteId, number: u64, answer: Answer) -> Record {
        Record::Tombstone { from, number, answer }
    }

    /// The transfer that an answer settles, and the record to apply. `None` for a late copy.
    pub fn settle(&self, to: SiteId, number: u64, answer: Answer) -> Option<(Record, Transfer)> {
        let transfer = *self.outgoing.get(&to)?.out.get(&number)?;
        Some((Record::Settled { to, number, answer }, transfer))
    }

    /// The record to apply for a floor that arrived; `None` if it says nothing new.
    pub fn floor_from(&self, from: SiteId, floor: u64) -> Option<Record> {
        let known = self.incoming.get(&from).map_or(0, |incoming| incoming.floor);
        let has_tombstones = self.incoming.get(&from).is_some_and(|incoming| !incoming.tombstones.is_empty());
        (floor > known && has_tombstones).then_some(Record::Floor { from, floor })
    }

    /// The floor to tell `to`: its smallest number still out, else the next one.
    pub fn floor_to(&self, to: SiteId) -> u64 {
        self.outgoing.get(&to).map_or(self.first(), |outgoing| {
            outgoing.out.first_key_value().map_or(outgoing.next, |(&number, _)| number)
        })
    }

    /// Highest transfer number that arrived from `from`, 0 for none.
    pub fn seen(&self, from: SiteId) -> u64 {
        self.incoming.get(&from).map_or(0, |incoming| incoming.seen)
    }

    /// Transfers to `to` that are not answered, by number.
    pub fn out_to(&self, to: SiteId) -> impl Iterator<Item = &Transfer> {
        self.outgoing.get(&to).into_iter().flat_map(|outgoing| outgoing.out.values())
    }

    /// How many transfers to `to` are not answered.
    pub fn out_count(&self, to: SiteId) -> usize {
        self.outgoing.get(&to).map_or(0, |outgoing| outgoing.out.len())
    }

    /// One unanswered transfer.
    pub fn out(&self, to: SiteId, number: u64) -> Option<&Transfer> {
        self.outgoing.get(&to)?.out.get(&number)
    }

    /// How often a job that is out will have changed sites when its furthest transfer is accepted; none if it is not out.
    pub fn hops_out(&self, job: JobId) -> Option<u32> {
        let out = self.hops_out.range((job, 0, SiteId(0), 0)..=(job, u32::MAX, SiteId(u32::MAX), u64::MAX));
        out.last().map(|&(_, hops, ..)| hops)
    }

    /// Every job that is out, with its receiver.
    pub fn jobs_out(&self) -> impl Iterator<Item = (SiteId, JobId)> {
        self.transfers_out().map(|(to, transfer)| (to, transfer.job.id))
    }

    /// Every transfer that is not answered, with its receiver.
    pub fn transfers_out(&self) -> impl Iterator<Item = (SiteId, &Transfer)> {
        self.outgoing.iter().flat_map(|(&to, outgoing)| outgoing.out.values().map(move |out| (to, out)))
    }

    /// Whether a transfer is out to a site that has lost its journal since.
    pub(crate) fn is_to_lost_journal(&self, to: SiteId, number: u64) -> bool {
        receiving_journal(number) < self.journal_at(to)
    }

    /// Whether a transfer is out.
    pub(crate) fn is_out(&self, to: SiteId, number: u64) -> bool {
        self.outgoing.get(&to).is_some_and(|outgoing| outgoing.out.contains_key(&number))
    }

    /// Whether all of it is about sites that can be on the other end, with numbers that can have been used.
    pub(crate) fn check(&self, is_other: &impl Fn(SiteId) -> bool) -> Result<(), String> {
        for (&to, outgoing) in &self.outgoing {
            let numbers = outgoing.out.iter().all(|(&number, out)| number == out.number && number > 0);
            if !is_other(to) || !numbers || !(1..=COUNT_MAX).contains(&outgoing.next) {
                return Err(format!("transfers to site {to} cannot be"));
            }
        }
        for (&from, incoming) in &self.incoming {
            if !is_other(from) || incoming.floor > COUNT_MAX || incoming.seen > COUNT_MAX {
                return Err(format!("numbers of site {from} cannot be"));
            }
        }
        Ok(())
    }

    /// Whether nothing is out.
    pub fn is_settled(&self) -> bool {
        self.outgoing.values().all(|outgoing| outgoing.out.is_empty())
    }

    /// What a site does wrong that restarts without its answers.
    pub(crate) fn forget_answers(&mut self) {
        self.incoming.clear();
    }

    /// Answers kept in case a sender asks again.
    pub fn tombstones(&self) -> usize {
        self.incoming.values().map(|incoming| incoming.tombstones.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{Span, Time};

    use super::*;
    use scheduler::Labels;

    const A: SiteId = SiteId(1);
    const B: SiteId = SiteId(2);

    fn job() -> JobSpec {
        JobSpec {
            id: JobId(4),
            submit: Time::ZERO,
            processors: 1,
            requested: Span::from_secs(1),
            labels: Labels::UNKNOWN,
            origin: A,
            payload: 0,
        }
    }

    #[test]
    fn a_copy_of_a_settled_grant_changes_nothing() {
        let (mut a, mut b) = (Ledger::new(), Ledger::new());
        let (record, transfer) = a.grant(B, job(), Custody::default());
        a.apply(&record);
        assert_eq!(b.arrival(A, transfer.number), Arrival::New);
        b.apply(&b.answer(A, transfer.number, Answer::Accepted));
        let (settled, _) = a.settle(B, transfer.number, Answer::Accepted).expect("it is out");
        a.apply(&settled);
        assert_eq!(b.arrival(A, transfer.number), Arrival::Answered(Answer::Accepted));
        let floor = b.floor_from(A, a.floor_to(B)).expect("news");
        b.apply(&floor);
        assert_eq!(b.arrival(A, transfer.number), Arrival::Settled);
        assert_eq!(b.tombstones(), 0);
        assert!(a.settle(B, transfer.number, Answer::Declined).is_none(), "a late copy");
    }

    #[test]
    fn a_ledger_is_what_its_records_say() {
        let mut ledger = Ledger::new();
        let mut records = Vec::new();
        for number in 1..4 {
            let (record, transfer) = ledger.grant(B, job(), Custody::default());
            assert_eq!(transfer.number, number);
            ledger.apply(&record);
            records.push(record);
        }
        let (record, _) = ledger.settle(B, 2, Answer::Declined).expect("it is out");
        ledger.apply(&record);
        records.push(record);
        assert_eq!(Ledger::replay(&records), ledger);
        assert_eq!(ledger.floor_to(B), 1);
        ledger.apply(&Record::Tombstone { from: A, number: 3, answer: Answer::Declined });
        ledger.apply(&Record::Floor { from: A, floor: 2 });
        assert_eq!(Ledger::from_entries(ledger.entries()), Ok(ledger.clone()));
        let beyond = Entry::Tombstone { from: A, number: 9, answer: Answer::Accepted };
        assert!(Ledger::from_entries(ledger.entries().chain([beyond])).is_err());
    }
}
