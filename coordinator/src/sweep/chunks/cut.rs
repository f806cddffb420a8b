//! How many runs make a chunk: so many that it computes for long beside what an engine takes to start it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use experiments::interrupt::Interrupt;

use crate::sweep::file::PlannedRun;
use crate::sweep::pool::{self, Pool};

/// Runs that are tried to learn what one costs.
const TRIED: usize = 8;
/// No longer than this is tried.
const TRY_FOR: Duration = Duration::from_secs(20);

/// What runs cost, measured on some of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Runs that came to their end.
    pub runs: usize,
    /// How long they took one after the other, with reading their logs.
    pub wall: Duration,
}

impl Cost {
    /// Tries runs from all over the plan, one after the other.
    ///
    /// # Errors
    /// If no process can be started.
    pub fn measure(
        runs: &Arc<Vec<PlannedRun>>,
        todo: &[usize],
        interrupt: &Interrupt,
    ) -> anyhow::Result<Cost> {
        let tried = todo.len().min(TRIED);
        let mut sample: Vec<usize> = (0..tried).map(|place| todo[place * todo.len() / tried]).collect();
        sample.dedup();
        let nowhere = std::env::temp_dir();
        let plain: Vec<PlannedRun> =
            runs.iter().map(|run| PlannedRun { keep: false, ..run.clone() }).collect();
        let (sender, ended) = mpsc::channel();
        let begun = Instant::now();
        let pool = Pool::start(1, Arc::new(plain), &sample, &nowhere, sender)?;
        let mut cost = Cost { runs: 0, wall: Duration::ZERO };
        pool::watch(&ended, |end| {
            if end.is_some() {
                cost = Cost { runs: cost.runs + 1, wall: begun.elapsed() };
            }
            let is_over = begun.elapsed() > TRY_FOR || interrupt.is_set();
            Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        pool.stop();
        Ok(cost)
    }

    /// How many runs compute for `aim`; one, if none came to its end.
    pub fn runs_for(&self, aim: Duration) -> usize {
        if self.runs == 0 {
            return 1;
        }
        let each = self.wall.as_secs_f64() / self.runs as f64;
        (aim.as_secs_f64() / each.max(1e-6)).ceil().max(1.0) as usize
    }
}

/// Chunks of at most so many runs, as equal as can be. Runs with the same workload are together, which a worker prepares once.
pub fn cut(runs: &[PlannedRun], todo: &[usize], most: usize) -> Vec<Vec<usize>> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for &index in todo {
        first.entry(&runs[index].workload).or_insert(index);
    }
    let mut order = todo.to_vec();
    order.sort_by_key(|&index| (first[runs[index].workload.as_str()], index));
    let chunks = order.len().div_ceil(most.max(1));
    (0..chunks)
        .map(|chunk| order[chunk * order.len() / chunks..(chunk + 1) * order.len() / chunks].to_vec())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(workloads: &str) -> Vec<PlannedRun> {
        let run = |(index, workload): (usize, char)| PlannedRun {
            position: index + 1,
            digest: index.to_string(),
            values: BTreeMap::new(),
            experiment: toml::Table::new(),
            workload: workload.to_string(),
            keep: false,
        };
        workloads.chars().enumerate().map(run).collect()
    }

    #[test]
    fn chunks_are_equal_have_every_run_once_and_keep_workloads_together() {
        let runs = runs("abababc");
        assert_eq!(cut(&runs, &[0, 1, 2, 3, 4, 5, 6], 3), [vec![0, 2], vec![4, 1], vec![3, 5, 6]]);
        assert_eq!(cut(&runs, &[1, 2, 3], 100), [vec![1, 3, 2]]);
        assert_eq!(cut(&runs, &[], 5), Vec::<Vec<usize>>::new());
        for most in 1..10 {
            for count in 0..7 {
                let todo: Vec<usize> = (0..count).collect();
                let chunks = cut(&runs, &todo, most);
                assert!(chunks.iter().all(|chunk| (1..=most).contains(&chunk.len())), "{most} {count}");
                let sizes = chunks.iter().map(Vec::len);
                assert!(sizes.clone().max().unwrap_or(0) - sizes.min().unwrap_or(0) <= 1, "{most} {count}");
                let mut all: Vec<usize> = chunks.concat();
                all.sort_unstable();
                assert_eq!(all, todo, "{most}");
            }
        }
    }

    #[test]
    fn cheap_runs_make_large_chunks() {
        let aim = Duration::from_secs(30);
        let of = |runs, wall| Cost { runs, wall: Duration::from_millis(wall) }.runs_for(aim);
        assert_eq!([of(8, 80), of(8, 8_000), of(2, 80_000), of(0, 0)], [3_000, 30, 1, 1]);
    }
}
