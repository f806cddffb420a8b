//! How much two orders of the same things agree.

/// Kendall's tau-b of paired values: 1 if both order all pairs alike, -1 if they order all contrarily; ties are in neither
/// (Kendall 1945). `None` if one of them orders nothing.
///
/// # Panics
/// If they differ in length.
pub fn kendall(left: &[f64], right: &[f64]) -> Option<f64> {
    let (mut sum, mut left_pairs, mut right_pairs) = (0, 0, 0);
    for (x, y) in pairs(left, right) {
        sum += x * y;
        left_pairs += x * x;
        right_pairs += y * y;
    }
    let pairs = (left_pairs as f64 * right_pairs as f64).sqrt();
    (pairs > 0.0).then(|| sum as f64 / pairs)
}

/// The chance, two-sided, that orders without any relation have a tau as far from none: exact, by the number of
/// permutations with so many inversions (Kendall 1938). `None` if values tie, where that number is another.
///
/// # Panics
/// If they differ in length.
pub fn kendall_chance(left: &[f64], right: &[f64]) -> Option<f64> {
    let (mut inversions, mut count) = (0, 0);
    for (x, y) in pairs(left, right) {
        if x * y == 0 {
            return None;
        }
        inversions += usize::from(x != y);
        count += 1;
    }
    if count == 0 {
        return None;
    }
    // The share of permutations of so many values by inversions: one more value has from none to all others before it.
    let mut shares = vec![1.0];
    for values in 2..=left.len() {
        let mut next = vec![0.0; shares.len() + values - 1];
        for (below, share) in shares.iter().enumerate() {
            (0..values).for_each(|more| next[below + more] += share / values as f64);
        }
        shares = next;
    }
    let least = inversions.min(count - inversions);
    Some((2.0 * shares[..=least].iter().sum::<f64>()).min(1.0))
}

/// How each of the two orders every pair of things.
///
/// # Panics
/// If they differ in length.
fn pairs(left: &[f64], right: &[f64]) -> impl Iterator<Item = (i64, i64)> {
    assert_eq!(left.len(), right.len(), "values are paired");
    let pairs = (0..left.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    pairs.map(|(a, b)| (sign(left[a], left[b]), sign(right[a], right[b])))
}

fn sign(a: f64, b: f64) -> i64 {
    match a.total_cmp(&b) {
        _ if a == b => 0,
        std::cmp::Ordering::Less => -1,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => 1,
    }
}

/// Spearman's rank correlation of paired values, with mean ranks for ties (Spearman 1904). `None` if one of them orders
/// nothing.
///
/// # Panics
/// If they differ in length.
pub fn spearman(left: &[f64], right: &[f64]) -> Option<f64> {
    assert_eq!(left.len(), right.len(), "values are paired");
    let (left, right) = (mean_ranks(left), mean_ranks(right));
    // Mean ranks always have this mean.
    let middle = (left.len() as f64 + 1.0) / 2.0;
    let product =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - middle) * (y - middle)).sum::<f64>();
    let scale = (product(&left, &left) * product(&right, &right)).sqrt();
    (scale > 0.0).then(|| product(&left, &right) / scale)
}

/// Ranks from 1, equal values with the mean of the ranks that they take.
fn mean_ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: f64| {
        let below = values.iter().filter(|&&other| other < value).count();
        let same = values.iter().filter(|&&other| other == value).count();
        below as f64 + (same as f64 + 1.0) / 2.0
    };
    values.iter().map(|&value| rank(value)).collect()
}
