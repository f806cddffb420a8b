//! The hypervolume of points: how much of the space below a reference point they dominate (Zitzler and Thiele 1998).
//!
//! By slicing (Knowles 2002; While and others 2006): the points in order of the last coordinate, and between each two the
//! hypervolume of those before in one dimension less. For the hundred points of a front that is a few milliseconds.

/// The share of the unit cube that points dominate, all coordinates being costs and the reference point all ones. Points that
/// are not below it in all coordinates dominate nothing. Equal and dominated points change nothing.
///
/// # Panics
/// If points have no or different numbers of coordinates.
pub fn hypervolume<const DIMENSIONS: usize>(points: &[[f64; DIMENSIONS]]) -> f64 {
    let below = |point: &&[f64; DIMENSIONS]| point.iter().all(|&coordinate| coordinate < 1.0);
    let clipped =
        points.iter().filter(below).map(|point| point.map(|coordinate| coordinate.max(0.0)).to_vec());
    volume(clipped.collect(), DIMENSIONS)
}

/// In so many of the first dimensions.
fn volume(mut points: Vec<Vec<f64>>, dimensions: usize) -> f64 {
    let last = dimensions.checked_sub(1).expect("points have coordinates");
    points.sort_by(|one, other| one[last].total_cmp(&other[last]));
    if last == 0 {
        return points.first().map_or(0.0, |point| 1.0 - point[0]);
    }
    let mut sum = 0.0;
    for (place, point) in points.iter().enumerate() {
        let next = points.get(place + 1).map_or(1.0, |next| next[last]);
        // Equal coordinates have no slice between them.
        if next > point[last] {
            sum += (next - point[last]) * area(&points[..=place], last);
        }
    }
    sum
}

/// The staircase of two dimensions, others by slices.
fn area(points: &[Vec<f64>], dimensions: usize) -> f64 {
    if dimensions != 2 {
        return volume(points.to_vec(), dimensions);
    }
    let mut order: Vec<&Vec<f64>> = points.iter().collect();
    order.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let (mut sum, mut least) = (0.0, 1.0);
    for point in order {
        if point[1] < least {
            sum += (1.0 - point[0]) * (least - point[1]);
            least = point[1];
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Inclusion and exclusion over all subsets: the common part of boxes is the box of the largest coordinates.
    fn by_subsets(points: &[[f64; 4]]) -> f64 {
        let common = |subset: u32| {
            let of = |(place, point): (usize, &[f64; 4])| (subset >> place & 1 == 1).then_some(*point);
            let corner = points.iter().enumerate().filter_map(of).fold([0.0_f64; 4], |corner, point| {
                std::array::from_fn(|place| corner[place].max(point[place]))
            });
            corner.iter().map(|coordinate| (1.0 - coordinate).max(0.0)).product::<f64>()
        };
        (1..1_u32 << points.len())
            .map(|subset| if subset.count_ones() % 2 == 1 { common(subset) } else { -common(subset) })
            .sum()
    }

    proptest! {
        #[test]
        fn slices_are_inclusion_and_exclusion(
            // Twentieths, so that there are equals, and some beyond the reference point.
            points in prop::collection::vec(prop::array::uniform4(0u32..23), 0..9)
        ) {
            let points: Vec<[f64; 4]> = points.into_iter().map(|point| point.map(|one| f64::from(one) / 20.0)).collect();
            let (found, expected) = (hypervolume(&points), by_subsets(&points));
            prop_assert!((found - expected).abs() < 1e-9, "{} {}", found, expected);
        }

        #[test]
        fn a_further_point_takes_nothing_away_and_order_does_not_matter(
            points in prop::collection::vec(prop::array::uniform4(0.0..1.2f64), 1..30)
        ) {
            let all = hypervolume(&points);
            prop_assert!(hypervolume(&points[1..]) <= all + 1e-12);
            let reversed: Vec<[f64; 4]> = points.iter().rev().copied().collect();
            prop_assert!((hypervolume(&reversed) - all).abs() < 1e-12);
        }
    }

    #[test]
    fn volumes_of_few_points_are_those_by_hand() {
        assert!((hypervolume::<4>(&[])).abs() < 1e-12);
        for (points, expected) in [
            (vec![[0.0; 4]], 1.0),
            (vec![[0.5; 4]], 0.0625),
            (vec![[0.5, 0.5, 0.5, 1.0]], 0.0),
            // A dominated and an equal one add nothing.
            (vec![[0.5; 4], [0.5; 4], [0.5, 0.5, 0.5, 0.75]], 0.0625),
            // 1/2 + 1/2 less the quarter that both have.
            (vec![[0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.5]], 0.75),
        ] {
            assert!((hypervolume(&points) - expected).abs() < 1e-12, "{points:?}");
        }
        // Two dimensions: stairs of 1/4, 1/2 and 3/4.
        let stairs = [[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]];
        assert!((hypervolume(&stairs) - 0.375).abs() < 1e-12);
        assert!((hypervolume(&[[0.25], [0.5]]) - 0.75).abs() < 1e-12);
    }
}
