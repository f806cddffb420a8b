//! Admissible sites: the smallest ones that hold a part a of the processors that a job could use, so that narrow jobs do
//! not occupy the largest machines (Quezada Pina 2012, §3.5; Tchernykh et al. 2006).

use std::cmp::Ordering;
use std::ops::Range;

use scheduler::strategy::{Cut, Fraction};

/// The places f..=l of the sites that a job of this width may be given to, as a range; `sizes` ascend. Empty if no site is
/// wide enough. f is the first wide enough, l the first at which the sites from f on have the part `a` of the processors
/// of all from f on.
pub fn admissible(sizes: &[u32], width: u32, a: Fraction, cut: Cut) -> Range<usize> {
    let first = sizes.partition_point(|&size| size < width);
    let whole: u64 = sizes[first..].iter().map(|&size| u64::from(size)).sum();
    if a == Fraction::ONE || whole == 0 {
        return first..sizes.len();
    }
    let mut part = 0;
    for (place, &size) in sizes.iter().enumerate().skip(first) {
        part += u64::from(size);
        let is_last = match (a.compare(part, whole), cut) {
            (Ordering::Greater, _) | (Ordering::Equal, Cut::AtLeast | Cut::SizeClass) => true,
            (Ordering::Equal, Cut::Above) | (Ordering::Less, _) => false,
        };
        if is_last {
            let end = match cut {
                Cut::AtLeast | Cut::Above => place + 1,
                Cut::SizeClass => sizes.partition_point(|&other| other <= size),
            };
            return first..end;
        }
    }
    first..sizes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID_1: [u32; 7] = [100, 128, 240, 430, 1024, 1152, 1368];
    const GRID_2: [u32; 9] = [64, 64, 64, 64, 100, 144, 240, 430, 1024];
    const GRID_3: [u32; 11] = [4, 4, 4, 4, 8, 8, 8, 16, 16, 32, 32];

    fn range(sizes: &[u32], width: u32, a: (u32, u32), cut: Cut) -> (usize, usize) {
        let range = admissible(sizes, width, Fraction::new(a.0, a.1).unwrap(), cut);
        (range.start + 1, range.end)
    }

    /// The ranges of §5 for widths from the first to the second, at a = 0.1, 0.25, 0.5, 0.75 and 1.
    #[test]
    fn ranges_of_the_three_grids() {
        type Row = (&'static [u32], u32, u32, [(usize, usize); 5]);
        let rows: [Row; 17] = [
            (&GRID_1, 1, 100, [(1, 3), (1, 5), (1, 6), (1, 7), (1, 7)]),
            (&GRID_1, 101, 128, [(2, 4), (2, 5), (2, 6), (2, 7), (2, 7)]),
            (&GRID_1, 129, 240, [(3, 4), (3, 5), (3, 6), (3, 7), (3, 7)]),
            (&GRID_1, 241, 430, [(4, 4), (4, 5), (4, 6), (4, 7), (4, 7)]),
            (&GRID_1, 431, 1024, [(5, 5), (5, 5), (5, 6), (5, 7), (5, 7)]),
            (&GRID_1, 1025, 1152, [(6, 6), (6, 6), (6, 7), (6, 7), (6, 7)]),
            (&GRID_1, 1153, 1368, [(7, 7), (7, 7), (7, 7), (7, 7), (7, 7)]),
            (&GRID_2, 1, 64, [(1, 4), (1, 7), (1, 8), (1, 9), (1, 9)]),
            (&GRID_2, 65, 100, [(5, 6), (5, 8), (5, 9), (5, 9), (5, 9)]),
            (&GRID_2, 101, 144, [(6, 7), (6, 8), (6, 9), (6, 9), (6, 9)]),
            (&GRID_2, 145, 240, [(7, 7), (7, 8), (7, 9), (7, 9), (7, 9)]),
            (&GRID_2, 241, 430, [(8, 8), (8, 8), (8, 9), (8, 9), (8, 9)]),
            (&GRID_2, 431, 1024, [(9, 9), (9, 9), (9, 9), (9, 9), (9, 9)]),
            (&GRID_3, 1, 4, [(1, 4), (1, 7), (1, 9), (1, 10), (1, 11)]),
            (&GRID_3, 5, 8, [(5, 6), (5, 8), (5, 10), (5, 11), (5, 11)]),
            (&GRID_3, 9, 16, [(8, 8), (8, 9), (8, 10), (8, 11), (8, 11)]),
            (&GRID_3, 17, 32, [(10, 10), (10, 10), (10, 10), (10, 11), (10, 11)]),
        ];
        for (sizes, from, to, expected) in rows {
            for width in from..=to {
                for (a, expected) in [(1, 10), (1, 4), (1, 2), (3, 4), (1, 1)].into_iter().zip(expected) {
                    assert_eq!(
                        range(sizes, width, a, Cut::AtLeast),
                        expected,
                        "{width} of {sizes:?} at {a:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn cuts_differ_where_the_fraction_is_met() {
        assert_eq!(range(&GRID_3, 32, (1, 2), Cut::Above), (10, 11));
        for width in 1..=32 {
            assert_eq!(range(&GRID_3, width, (1, 2), Cut::SizeClass).1, if width <= 4 { 9 } else { 11 });
        }
        for width in 1..=16 {
            let ranges = [Cut::AtLeast, Cut::Above].map(|cut| range(&GRID_3, width, (1, 2), cut));
            assert_eq!(ranges[0], ranges[1], "{width}");
        }
    }

    #[test]
    fn a_job_wider_than_all_has_none() {
        assert!(admissible(&GRID_3, 33, Fraction::ONE, Cut::AtLeast).is_empty());
    }
}
