//! How popular the values are, and which of the twenty popular values is how popular.

use crate::draw::Draw;

/// How many values are popular, by the model.
pub(super) const HEAD: usize = 20;
/// Share of the jobs that choose one of them.
pub(super) const HEAD_SHARE: f64 = 0.89;

/// How many distinct estimates this many jobs have: linear between (jobs, distinct estimates).
const DISTINCT: [(f64, f64); 7] = [
    (0.0, 0.0),
    (20.0, 10.0),
    (200.0, 20.0),
    (1000.0, 35.0),
    (10_000.0, 90.0),
    (70_000.0, 340.0),
    (250_000.0, 565.0),
];

/// Distinct estimates of so many jobs, at least 1.
pub(super) fn distinct(jobs: usize) -> usize {
    let jobs = jobs as f64;
    let after = DISTINCT.iter().position(|&(at, _)| jobs <= at);
    let count = match after {
        None => DISTINCT[DISTINCT.len() - 1].1,
        Some(0) => 0.0,
        Some(after) => {
            let ((x0, y0), (x1, y1)) = (DISTINCT[after - 1], DISTINCT[after]);
            y0 + (y1 - y0) * (jobs - x0) / (x1 - x0)
        }
    };
    (count.round() as usize).max(1)
}

/// Shares of the popular values, the most popular first. They sum to [`HEAD_SHARE`].
pub(super) fn head_shares() -> [f64; HEAD] {
    let mut shares = [0.0; HEAD];
    for (index, share) in shares.iter_mut().enumerate().skip(1) {
        let rank = (index + 1) as f64;
        *share = (14.0491 * (-0.177531 * rank).exp() + 0.462513) / 100.0;
    }
    shares[0] = HEAD_SHARE - shares[1..].iter().sum::<f64>();
    shares
}

/// Shares of `count` values that are not popular, the most popular first. They sum to what the head leaves.
pub(super) fn tail_shares(count: usize) -> Vec<f64> {
    let weights: Vec<f64> = (0..count).map(|index| ((HEAD + 1 + index) as f64).powf(-2.267)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| (1.0 - HEAD_SHARE) * weight / sum).collect()
}

/// Popularity rank (from 1) of each popular value in four logs; row by row from the longest value down.
/// Columns: SDSC-106, CTC, KTH (4 h), BLUE.
const RANKS_IN_LOGS: [[usize; 4]; HEAD] = [
    [3, 1, 1, 1],
    [1, 3, 4, 6],
    [4, 4, 10, 5],
    [17, 2, 14, 3],
    [13, 12, 20, 7],
    [7, 9, 2, 2],
    [8, 8, 3, 18],
    [18, 18, 7, 19],
    [2, 6, 12, 4],
    [6, 7, 6, 11],
    [16, 11, 19, 20],
    [10, 20, 5, 9],
    [5, 16, 18, 10],
    [15, 5, 16, 14],
    [14, 14, 9, 13],
    [19, 13, 17, 16],
    [11, 10, 15, 15],
    [12, 15, 13, 17],
    [9, 17, 8, 8],
    [20, 19, 11, 12],
];

/// Popularity rank (from 1) of each popular value, from the longest value down: the longest is the most
/// popular; the others draw from a pool of the ranks that values around theirs have in four logs.
pub(super) fn ranks(draw: &mut Draw) -> [usize; HEAD] {
    let mut ranks = [0; HEAD];
    let mut taken = [false; HEAD + 1];
    let mut seen = [0; HEAD + 1];
    let mut pool: Vec<usize> = Vec::new();
    ranks[0] = 1;
    taken[1] = true;
    for (row, logs) in RANKS_IN_LOGS.iter().enumerate() {
        for &rank in logs {
            seen[rank] += 1;
            if !taken[rank] {
                pool.push(rank);
            }
        }
        if row == 0 {
            continue;
        }
        // A rank that all four logs have used by here would have no later chance.
        let overdue = (1..=HEAD).find(|&rank| seen[rank] == logs.len() && !taken[rank]);
        let rank = overdue.unwrap_or_else(|| {
            let (one, other) = (pool[draw.below(pool.len())], pool[draw.below(pool.len())]);
            one.min(other)
        });
        ranks[row] = rank;
        taken[rank] = true;
        pool.retain(|&pooled| pooled != rank);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_published_ones() {
        let published = [
            21.733, 10.313, 8.710, 7.369, 6.245, 5.305, 4.517, 3.858, 3.305, 2.843, 2.456, 2.131, 1.860,
            1.633, 1.442, 1.283, 1.149, 1.038, 0.944, 0.866,
        ];
        for (ours, published) in head_shares().into_iter().zip(published) {
            assert!((100.0 * ours - published).abs() < 0.001, "{ours} {published}");
        }
    }

    #[test]
    fn distinct_estimates_follow_the_published_points() {
        for (jobs, count) in DISTINCT {
            assert_eq!(distinct(jobs as usize), (count as usize).max(1));
        }
        assert_eq!(distinct(600), 28);
        assert_eq!(distinct(1_000_000), 565);
    }

    #[test]
    fn each_log_ranks_every_value_once() {
        for log in 0..4 {
            let mut ranks: Vec<usize> = RANKS_IN_LOGS.iter().map(|row| row[log]).collect();
            ranks.sort_unstable();
            assert!(ranks.into_iter().eq(1..=HEAD), "log {log}");
        }
    }

    #[test]
    fn every_rank_is_given_once_and_the_longest_comes_first() {
        for seed in 0..200 {
            let mut given = ranks(&mut Draw::of_stream(seed, 0));
            assert_eq!(given[0], 1);
            given.sort_unstable();
            assert!(given.into_iter().eq(1..=HEAD), "seed {seed}");
        }
    }
}
