//! Rounds of runs of several kinds, and what each kind costs beside the first.

use anyhow::ensure;
use clap::Args;

use super::throughput::{Load, Throughput};

/// What a run has to do.
#[derive(Clone, Debug, Args)]
pub(super) struct LoadArgs {
    /// Jobs of each run
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) jobs: u32,

    /// Jobs that come in a second of the wall clock: by default more than nodes can do
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,

    /// How the two sites share the jobs; with `local` they do not, and nearly all are at the first
    #[arg(long, value_name = "STRATEGY", default_value = "st:50")]
    strategy: String,
}

impl LoadArgs {
    pub(super) fn load(&self) -> Load {
        Load { jobs: self.jobs.into(), rate: self.rate, strategy: self.strategy.clone() }
    }
}

/// So many rounds may overflow in any case.
const OVERFLOWS_MIN: u32 = 3;

/// Rounds that count, each with a run of each kind. Ratios are of the same round.
pub(super) struct Rounds<const KINDS: usize> {
    rounds: Vec<[Throughput; KINDS]>,
    overflowed: u32,
}

impl<const KINDS: usize> Rounds<KINDS> {
    /// Runs `wanted` rounds, and one before them that warms up. A round in which a queue for messages overflowed says
    /// nothing, and is run again. `run` is told the number of the round, from 1.
    ///
    /// # Errors
    /// If a round fails, or too many overflow.
    pub(super) fn of(
        wanted: u32,
        mut run: impl FnMut(u32) -> anyhow::Result<[Throughput; KINDS]>,
    ) -> anyhow::Result<Rounds<KINDS>> {
        let (mut rounds, mut overflowed, mut number) = (Vec::new(), 0, 0);
        let mut warm = false;
        while rounds.len() < wanted as usize {
            number += 1;
            let round = run(number)?;
            if round.iter().any(|run| run.lost > 0) {
                overflowed += 1;
                ensure!(
                    overflowed <= wanted.max(OVERFLOWS_MIN),
                    "queues for messages overflowed in {overflowed} rounds, and {} were without; run fewer --jobs",
                    rounds.len()
                );
            } else if std::mem::replace(&mut warm, true) {
                rounds.push(round);
            }
        }
        Ok(Rounds { rounds, overflowed })
    }

    /// The line above the table, of runs with this to do.
    pub(super) fn heading(&self, LoadArgs { jobs, rate, strategy }: &LoadArgs) -> String {
        let (rounds, overflowed) = (self.rounds.len(), self.overflowed);
        format!(
            "{rounds} rounds of {jobs} jobs at {rate}/s on two nodes, {strategy}; {overflowed} more overflowed"
        )
    }

    /// The columns that all tables have, from jobs/s to waited, with ratios of so many digits; and the median ratio of
    /// the throughput.
    pub(super) fn columns(&self, kind: usize, digits: usize) -> (String, f64) {
        let spread =
            |value: &dyn Fn(&[Throughput; KINDS]) -> f64| Spread::of(self.rounds.iter().map(value).collect());
        let used = |run: &Throughput| run.processor_time.as_secs_f64();
        let rate = spread(&|round| round[kind].jobs_per_second);
        let ratio = spread(&|round| round[kind].jobs_per_second / round[0].jobs_per_second);
        let bound = spread(&|round| used(&round[0]) / used(&round[kind]));
        let text = format!(
            "{:>10.0} ({:.0} to {:.0})   {}   {:.1}   {}   {:.0} %   {:.0} %",
            rate.median,
            rate.least,
            rate.most,
            ratio.text(digits),
            self.median(kind, |run| run.processor_time.as_secs_f64() * 1e6),
            bound.text(digits),
            self.median(kind, |run| run.saturation) * 100.0,
            self.median(kind, |run| run.contention) * 100.0,
        );
        (text, ratio.median)
    }

    /// The median of something over the runs of a kind.
    pub(super) fn median(&self, kind: usize, value: impl Fn(&Throughput) -> f64) -> f64 {
        Spread::of(self.rounds.iter().map(|round| value(&round[kind])).collect()).median
    }
}

/// The middle and the ends of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    least: f64,
    pub(super) median: f64,
    most: f64,
}

impl Spread {
    /// Of at least one value.
    pub(super) fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        Spread { least: values[0], median: values[(values.len() - 1) / 2], most: values[values.len() - 1] }
    }

    pub(super) fn text(self, digits: usize) -> String {
        format!("{:.digits$} ({:.digits$} to {:.digits$})", self.median, self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_value() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]), Spread { least: 1.0, median: 2.0, most: 3.0 });
        assert_eq!(Spread::of(vec![1.0]), Spread { least: 1.0, median: 1.0, most: 1.0 });
    }
}
