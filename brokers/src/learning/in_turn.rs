//! Round-robin, the baseline: jobs as they came, sites in a ring or drawn (Costa 2007, §6.1).

use scheduler::strategy::opaque::Turn;

use super::memory::{Subject, Words, words};
use super::rule::{Round, Rule};

/// The place in the ring.
#[derive(Clone, Debug)]
pub(super) struct RoundRobin {
    turn: Turn,
    sites: usize,
    next: usize,
}

impl RoundRobin {
    pub(super) fn new(turn: Turn, sites: usize) -> RoundRobin {
        RoundRobin { turn, sites, next: 0 }
    }
}

/// The first site from a place of the ring on that takes the job.
pub(super) fn next_in_ring(round: &Round<'_>, job: usize, from: usize) -> Option<usize> {
    let sites = round.slots().len();
    (0..sites).map(|step| (from + step) % sites).find(|&site| round.takes(job, site))
}

/// The place of a ring of so many that a word names.
pub(super) fn place(word: u64, sites: usize) -> Option<usize> {
    usize::try_from(word).ok().filter(|&place| place < sites)
}

impl Rule for RoundRobin {
    fn map(&mut self, round: &mut Round<'_>) {
        for job in 0..round.len() {
            let site = match self.turn {
                Turn::Cyclic => next_in_ring(round, job, self.next),
                Turn::Random => {
                    let open: Vec<usize> =
                        round.slots().open().filter(|&site| round.takes(job, site)).collect();
                    (!open.is_empty()).then(|| open[round.draw().below(open.len())])
                }
            };
            match site {
                Some(site) => {
                    round.assign(job, site);
                    self.next = (site + 1) % round.slots().len();
                }
                None if round.slots().open().next().is_none() => return,
                // It is too wide for what is open; the next may not be.
                None => {}
            }
        }
    }

    fn known(&self, of: Subject) -> Option<Words> {
        (of == Subject::Rule).then(|| words([self.next as u64]))
    }

    fn recollect(&mut self, of: Subject, words: &Words) -> bool {
        let next = place(words[0], self.sites).filter(|_| of == Subject::Rule);
        self.next = next.unwrap_or(self.next);
        next.is_some()
    }
}
