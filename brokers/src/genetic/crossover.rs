//! Order based crossover (OBX, §3.5): what a mask keeps of one parent, and the rest in the order of the other.

use scheduler::draw::Draw;

use super::batch::Batch;
use super::individual::{Individual, Rows};
use super::options::{MaskOf, Obx};

/// Which places of the parent that a child is built on keep their jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mask {
    /// By column, for all rows.
    Columns(Vec<bool>),
    /// By row and column.
    Cells(Vec<Vec<bool>>),
}

impl Mask {
    /// Each bit is set with probability one half.
    pub fn draw(of: MaskOf, base: &Rows, draw: &mut Draw) -> Mask {
        let mut bits = |count: usize| (0..count).map(|_| draw.coin()).collect::<Vec<bool>>();
        match of {
            MaskOf::Column => Mask::Columns(bits(base.iter().map(Vec::len).max().unwrap_or(0))),
            MaskOf::Cell => Mask::Cells(base.iter().map(|row| bits(row.len())).collect()),
        }
    }

    fn row(&self, row: usize) -> &[bool] {
        match self {
            Mask::Columns(bits) => bits,
            Mask::Cells(rows) => &rows[row],
        }
    }
}

/// The child of two parents that is built on the first.
///
/// # Panics
/// If the mask does not reach over the rows of the first.
pub fn cross(batch: &Batch, obx: Obx, base: &Individual, other: &Individual, mask: &Mask) -> Individual {
    let rows = match obx {
        Obx::Filled => filled(batch, base.rows(), other.rows(), mask),
        Obx::Appended => appended(batch, base.rows(), other.rows(), mask),
        Obx::Global => repaired(batch, global(batch, base.rows(), other.rows(), mask), other.rows()),
    };
    Individual::with_rows(rows, [base, other])
}

/// Which jobs the mask keeps.
fn kept(batch: &Batch, base: &Rows, mask: &Mask) -> Vec<bool> {
    let mut kept = vec![false; batch.jobs().len()];
    for (place, row) in base.iter().enumerate() {
        for (&job, _) in row.iter().zip(mask.row(place)).filter(|(_, keeps)| **keeps) {
            kept[job as usize] = true;
        }
    }
    kept
}

/// O1.
fn filled(batch: &Batch, base: &Rows, other: &Rows, mask: &Mask) -> Rows {
    let kept = kept(batch, base, mask);
    let child = |(place, (base, other)): (usize, (&Vec<u32>, &Vec<u32>))| {
        let mut missing = other.iter().copied().filter(|&job| !kept[job as usize]);
        let mut row = Vec::with_capacity(base.len().max(other.len()));
        // A vacant column for which nothing is left is closed.
        row.extend(base.iter().zip(mask.row(place)).filter_map(|(&job, &keeps)| match keeps {
            true => Some(job),
            false => missing.next(),
        }));
        row.extend(missing);
        row
    };
    base.iter().zip(other).enumerate().map(child).collect()
}

/// O2.
fn appended(batch: &Batch, base: &Rows, other: &Rows, mask: &Mask) -> Rows {
    let kept = kept(batch, base, mask);
    let is_kept = |job: &u32| kept[*job as usize];
    let child = |(base, other): (&Vec<u32>, &Vec<u32>)| {
        let missing = other.iter().copied().filter(|job| !is_kept(job));
        base.iter().copied().filter(is_kept).chain(missing).collect()
    };
    base.iter().zip(other).map(child).collect()
}

/// O3 as it is without repair.
fn global(batch: &Batch, base: &Rows, other: &Rows, mask: &Mask) -> Rows {
    let kept = kept(batch, base, mask);
    let mut missing = other.iter().flatten().copied().filter(|&job| !kept[job as usize]);
    let mut job = |job: u32| match kept[job as usize] {
        true => job,
        false => missing.next().expect("as many are missing as places are vacant"),
    };
    base.iter().map(|row| row.iter().map(|&old| job(old)).collect()).collect()
}

/// Jobs that are too wide for their rows go to the end of the row where they are in other rows.
fn repaired(batch: &Batch, mut rows: Rows, other: &Rows) -> Rows {
    let mut misfit = vec![false; batch.jobs().len()];
    for (site, row) in rows.iter_mut().enumerate() {
        row.retain(|&job| {
            misfit[job as usize] = !batch.fits(job, site);
            batch.fits(job, site)
        });
    }
    for (row, other) in rows.iter_mut().zip(other) {
        row.extend(other.iter().copied().filter(|&job| misfit[job as usize]));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::tests::{figure, rows, sizes_of_the_example};
    use super::*;

    fn second_parent() -> Rows {
        rows(&[&[10, 6], &[9, 8, 1], &[3, 2, 5, 0, 4, 7]])
    }

    fn columns(bits: &str) -> Mask {
        Mask::Columns(bits.chars().map(|bit| bit == '1').collect())
    }

    #[test]
    fn the_children_of_the_worked_example_come_out() {
        let batch = sizes_of_the_example();
        let (first, second) = (figure(), second_parent());
        let (mask_1, mask_2) = (columns("101010"), columns("011000"));
        for (made, base, other, mask, expected) in [
            (
                filled as fn(&Batch, &Rows, &Rows, &Mask) -> Rows,
                &first,
                &second,
                &mask_1,
                rows(&[&[1], &[0, 9, 10, 8], &[7, 3, 5, 2, 6, 4]]),
            ),
            (appended, &first, &second, &mask_1, rows(&[&[1], &[0, 10, 9, 8], &[7, 5, 6, 3, 2, 4]])),
            (global, &first, &second, &mask_1, rows(&[&[1, 9], &[0, 8, 10, 3], &[7, 2, 5, 4, 6]])),
            (filled, &second, &first, &mask_2, rows(&[&[4, 6], &[0, 8, 1, 3, 10], &[7, 2, 5, 9]])),
            (appended, &second, &first, &mask_2, rows(&[&[6, 4], &[8, 1, 0, 3, 10], &[2, 5, 7, 9]])),
            (global, &second, &first, &mask_2, rows(&[&[4, 6], &[0, 8, 1], &[3, 2, 5, 10, 7, 9]])),
        ] {
            assert_eq!(made(&batch, base, other, mask), expected);
        }
        // Job 9 needs 5 processors and site 1 has 4: it goes to the end of the row of the second parent that has it.
        let (one, other) = (Individual::new(first), Individual::new(second));
        let child = cross(&batch, Obx::Global, &one, &other, &mask_1);
        assert_eq!(child.rows(), &rows(&[&[1], &[0, 8, 10, 3, 9], &[7, 2, 5, 4, 6]]));
    }

    #[test]
    fn a_mask_of_ones_is_the_first_parent_and_one_of_zeros_the_second() {
        let batch = sizes_of_the_example();
        let (one, other) = (Individual::new(figure()), Individual::new(second_parent()));
        for obx in [Obx::Filled, Obx::Appended] {
            assert_eq!(cross(&batch, obx, &one, &other, &columns("111111")).rows(), one.rows());
            assert_eq!(cross(&batch, obx, &one, &other, &columns("000000")).rows(), other.rows());
        }
    }
}
