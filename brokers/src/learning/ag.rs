//! AG: greedy by efficiency with a part of chance, after Galstyan (Costa 2007, §5.3, Algorithm 2).

use scheduler::strategy::opaque::{Options, Tie};

use super::rule::{Round, Rule};

/// The part of greed, and who is the best of equal ones.
#[derive(Clone, Debug)]
pub(super) struct Ag {
    exploit: f64,
    tie: Tie,
    /// Sites for one job; kept for its memory.
    open: Vec<usize>,
}

impl Ag {
    pub(super) fn new(options: &Options) -> Ag {
        Ag { exploit: options.exploit, tie: options.tie, open: Vec::new() }
    }
}

/// The site of the greatest value; of equal ones the first, or one that is drawn. `open` is not empty.
pub(super) fn best(
    round: &mut Round<'_>,
    open: &[usize],
    tie: Tie,
    value: impl Fn(&Round<'_>, usize) -> f64,
) -> usize {
    let values = open.iter().map(|&site| value(round, site));
    let (mut best, mut most, mut equals) = (open[0], f64::NEG_INFINITY, 0);
    for (value, &site) in values.zip(open) {
        match value.total_cmp(&most) {
            std::cmp::Ordering::Greater => (best, most, equals) = (site, value, 1),
            std::cmp::Ordering::Equal => equals += 1,
            std::cmp::Ordering::Less => {}
        }
    }
    if tie == Tie::Random && equals > 1 {
        let mut skip = round.draw().below(equals);
        for &site in open {
            if value(round, site).total_cmp(&most).is_eq() {
                if skip == 0 {
                    return site;
                }
                skip -= 1;
            }
        }
    }
    best
}

impl Rule for Ag {
    fn map(&mut self, round: &mut Round<'_>) {
        for job in 0..round.len() {
            let mut open = std::mem::take(&mut self.open);
            open.clear();
            open.extend(round.slots().open().filter(|&site| round.takes(job, site)));
            let is_full = open.is_empty() && round.slots().open().next().is_none();
            if !open.is_empty() {
                let site = if round.draw().chance(self.exploit) {
                    best(round, &open, self.tie, |round, site| round.efficiency(site))
                } else {
                    open[round.draw().below(open.len())]
                };
                round.assign(job, site);
            }
            self.open = open;
            if is_full {
                return;
            }
        }
    }
}
