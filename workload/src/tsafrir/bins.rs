//! The distinct estimates: twenty round values, and a tail of less popular ones between them.

use super::popularity::{HEAD, HEAD_SHARE, distinct, head_shares, ranks, tail_shares};
use crate::draw::Draw;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
/// The model's least longest estimate.
pub(super) const LONGEST_LEAST: i64 = HOUR;

/// Round values below the longest that are always popular.
const ROUND: [i64; 15] = [
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    20 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    4 * HOUR,
    5 * HOUR,
    6 * HOUR,
    8 * HOUR,
    10 * HOUR,
    12 * HOUR,
    18 * HOUR,
];
/// Steps whose multiples fill up the popular values, from the longest down.
const STEPS: [i64; 10] = [
    200 * HOUR,
    100 * HOUR,
    50 * HOUR,
    10 * HOUR,
    5 * HOUR,
    2 * HOUR,
    HOUR,
    20 * MINUTE,
    10 * MINUTE,
    5 * MINUTE,
];
/// Where a tail value goes whose place is taken.
const SHIFTS: [i64; 6] = [30, -30, 20, -20, 10, -10];

/// One estimate that some jobs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The estimate in seconds.
    pub seconds: i64,
    /// Jobs that have it.
    pub jobs: usize,
}

/// The estimates of so many jobs, the longest first.
pub(super) fn bins(longest: i64, longest_share: Option<f64>, jobs: usize, draw: &mut Draw) -> Vec<Bin> {
    if jobs == 0 {
        return Vec::new();
    }
    let count = distinct(jobs);
    let mut times = head_times(longest);
    let mut shares = head_by_time(longest_share, draw);
    if count <= HEAD {
        // So few jobs have no tail, and only the most popular of the head.
        let mut by_share: Vec<usize> = (1..HEAD).collect();
        by_share.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
        let mut kept: Vec<usize> = by_share.into_iter().take(count - 1).collect();
        kept.push(0);
        kept.sort_unstable();
        times = kept.iter().map(|&index| times[index]).collect();
        shares = kept.iter().map(|&index| shares[index]).collect();
    } else {
        let tail = tail_times(longest, count, &times);
        let mut tail_sizes = tail_shares(tail.len());
        // Sizes and times of the tail have nothing to do with each other: a uniform shuffle.
        for last in (1..tail_sizes.len()).rev() {
            tail_sizes.swap(last, draw.below(last + 1));
        }
        times.extend(tail);
        shares.extend(tail_sizes);
    }
    let mut bins: Vec<Bin> = times
        .into_iter()
        .zip(counts(&shares, jobs))
        .map(|(seconds, jobs)| Bin { seconds, jobs })
        .filter(|bin| bin.jobs > 0)
        .collect();
    bins.sort_by_key(|bin| std::cmp::Reverse(bin.seconds));
    bins
}

/// The popular values, longest first.
fn head_times(longest: i64) -> Vec<i64> {
    let mut times = vec![longest];
    times.extend(ROUND.into_iter().filter(|&time| time < longest));
    'steps: for step in STEPS {
        let mut time = (longest - 1) / step * step;
        while time > 0 {
            if times.len() == HEAD {
                break 'steps;
            }
            if !times.contains(&time) {
                times.push(time);
            }
            time -= step;
        }
    }
    // An hour holds twelve multiples of five minutes: minutes fill up what is left on such machines.
    let mut time = MINUTE;
    while times.len() < HEAD {
        if !times.contains(&time) {
            times.push(time);
        }
        time += MINUTE;
    }
    times.sort_unstable_by(|a, b| b.cmp(a));
    times
}

/// Shares of the popular values, longest first.
fn head_by_time(longest_share: Option<f64>, draw: &mut Draw) -> Vec<f64> {
    let by_rank = head_shares();
    let mut shares: Vec<f64> = ranks(draw).into_iter().map(|rank| by_rank[rank - 1]).collect();
    if let Some(wanted) = longest_share {
        let scale = (HEAD_SHARE - wanted) / (HEAD_SHARE - shares[0]);
        for share in &mut shares[1..] {
            *share *= scale;
        }
        shares[0] = wanted;
    }
    shares
}

/// The values of the tail: dense at the short end, by the fitted hyperbola.
fn tail_times(longest: i64, count: usize, head: &[i64]) -> Vec<i64> {
    let tail = count - HEAD;
    let a = 1.0 + 12.1039 * (count as f64).powf(-0.6026);
    let mut taken: std::collections::BTreeSet<i64> = head.iter().copied().collect();
    let mut times = Vec::with_capacity(tail);
    for rank in 1..=tail {
        let x = rank as f64 / tail as f64;
        let minutes = (longest as f64 * (a - 1.0) * x / (a - x) / MINUTE as f64).round() as i64;
        let time = (minutes * MINUTE).max(MINUTE);
        let free = |time: &i64| (1..=longest).contains(time) && !taken.contains(time);
        // Six shifts are the authors'. Past them, the next free second below: only hundreds of values
        // under a longest estimate of an hour or two get there.
        let time = std::iter::once(time)
            .chain(SHIFTS.into_iter().map(|shift| time + shift))
            .chain((1..time).rev())
            .chain(time..longest)
            .find(free);
        let time = time.expect("an hour has more seconds than there are estimates");
        taken.insert(time);
        times.push(time);
    }
    times
}

/// Whole jobs for shares: at least one each, and `jobs` in all.
fn counts(shares: &[f64], jobs: usize) -> Vec<usize> {
    let sum: f64 = shares.iter().sum();
    let mut counts: Vec<usize> = shares
        .iter()
        .map(|&share| if share > 0.0 { ((share / sum * jobs as f64).round() as usize).max(1) } else { 0 })
        .collect();
    let mut largest_first: Vec<usize> = (0..counts.len()).collect();
    largest_first.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
    let total: usize = counts.iter().sum();
    if total < jobs {
        counts[largest_first[0]] += jobs - total;
    }
    // Take the excess from the largest, one job each in turn, so that no share is bent much.
    let mut excess = total.saturating_sub(jobs);
    for &index in largest_first.iter().cycle() {
        if excess == 0 {
            break;
        }
        if counts[index] > 1 || counts.iter().all(|&count| count <= 1) {
            let taken = usize::from(counts[index] > 0);
            counts[index] -= taken;
            excess -= taken;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn popular_values_of_18_hours_are_round_and_twenty() {
        let times = head_times(18 * HOUR);

        assert_eq!(times[..6], [18, 17, 16, 15, 14, 13].map(|hours| hours * HOUR));
        assert_eq!(times[HEAD - 1], 5 * MINUTE);
        assert_eq!(times.len(), HEAD);
    }

    proptest! {
        #[test]
        fn bins_are_distinct_and_hold_every_job(
            longest in HOUR..200 * HOUR, jobs in 0..3000_usize, share in proptest::option::of(0.0..0.89), seed: u64,
        ) {
            let bins = bins(longest, share, jobs, &mut Draw::of_stream(seed, 0));

            prop_assert_eq!(bins.iter().map(|bin| bin.jobs).sum::<usize>(), jobs);
            prop_assert!(bins.is_sorted_by(|longer, shorter| longer.seconds > shorter.seconds));
            prop_assert!(bins.iter().all(|bin| (1..=longest).contains(&bin.seconds)));
        }
    }
}
