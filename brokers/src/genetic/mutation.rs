//! Small changes of one individual: insert, swap and switch, in one row or between two (§3.6).

use scheduler::draw::Draw;

use super::batch::Batch;
use super::individual::{Individual, Rows};
use super::options::{Elements, Infeasible, Mutation, Options, Queues};

/// How often a mutation is drawn before there is none. Arbitrary, large enough that a move between sites of which one in
/// ten is wide enough is all but sure to be found.
pub const TRIES: usize = 100;

/// A place in rows, both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The site.
    pub row: usize,
    /// The place in its row.
    pub column: usize,
}

/// Takes a job out and puts it elsewhere; the place is one of the rows without it.
///
/// # Panics
/// If there is no such place.
pub fn insert(rows: &mut Rows, from: Place, to: Place) {
    let job = rows[from.row].remove(from.column);
    rows[to.row].insert(to.column, job);
}

/// Lets two jobs change places.
///
/// # Panics
/// If there is no such place.
pub fn exchange(rows: &mut Rows, one: Place, other: Place) {
    let job = rows[one.row][one.column];
    rows[one.row][one.column] = std::mem::replace(&mut rows[other.row][other.column], job);
}

/// Makes one mutation.
pub(super) fn mutate(batch: &Batch, options: &Options, draw: &mut Draw, child: &mut Individual) {
    let kind = options.operator;
    child.change(|rows| {
        for _ in 0..TRIES {
            let Some(places) = drawn(options, rows, draw) else { continue };
            let fits = |from: Place, to: Place| batch.fits(rows[from.row][from.column], to.row);
            let is_feasible = match kind {
                Mutation::Insert => fits(places.0, places.1),
                Mutation::Swap | Mutation::Switch => fits(places.0, places.1) && fits(places.1, places.0),
            };
            if !is_feasible && options.infeasible == Infeasible::Redraw {
                continue;
            }
            match kind {
                Mutation::Insert => insert(rows, places.0, places.1),
                Mutation::Swap | Mutation::Switch => exchange(rows, places.0, places.1),
            }
            if options.infeasible == Infeasible::Repair {
                repair(batch, rows, [places.0.row, places.1.row], draw);
            }
            return;
        }
    });
}

/// Two places to move between; none if the rows drawn have not enough jobs.
fn drawn(options: &Options, rows: &Rows, draw: &mut Draw) -> Option<(Place, Place)> {
    let kind = options.operator;
    // Only rows with a job to give, but an insertion may go to any.
    let full: Vec<usize> = (0..rows.len()).filter(|&row| !rows[row].is_empty()).collect();
    let one = full[draw.below(full.len())];
    let other = match (options.queues, kind) {
        (Queues::One, _) => one,
        (_, Mutation::Insert) => draw.below(rows.len()),
        (_, Mutation::Swap | Mutation::Switch) => full[draw.below(full.len())],
    };
    if options.queues == Queues::Two && one == other {
        return None;
    }
    let (first, second) = (rows[one].len(), rows[other].len());
    let at = |row, column| Place { row, column };
    if one != other {
        return Some(match kind {
            Mutation::Insert => (at(one, draw.below(first)), at(other, draw.below(second + 1))),
            Mutation::Swap => (at(one, draw.below(first)), at(other, draw.below(second))),
            Mutation::Switch => {
                let column = draw.below(first.min(second));
                (at(one, column), at(other, column))
            }
        });
    }
    if first < 2 {
        return None;
    }
    Some(match kind {
        Mutation::Switch if options.switch == Elements::Adjacent => {
            let column = draw.below(first - 1);
            (at(one, column), at(one, column + 1))
        }
        Mutation::Insert | Mutation::Swap | Mutation::Switch => {
            // Any other place.
            let column = draw.below(first);
            (at(one, column), at(one, (column + 1 + draw.below(first - 1)) % first))
        }
    })
}

/// Jobs that are too wide for one of these rows go to the end of one that is drawn.
fn repair(batch: &Batch, rows: &mut Rows, of: [usize; 2], draw: &mut Draw) {
    for site in of {
        while let Some(column) = rows[site].iter().position(|&job| !batch.fits(job, site)) {
            let job = rows[site].remove(column);
            let first = batch.first_site(job);
            rows[first + draw.below(batch.sizes().len() - first)].push(job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Purpose;
    use super::super::tests::{figure, rows, sizes_of_the_example};
    use super::*;

    /// Counted from 1, as in the text.
    fn at(row: usize, column: usize) -> Place {
        Place { row: row - 1, column: column - 1 }
    }

    #[test]
    fn the_six_operators_do_what_their_examples_show() {
        type Move = fn(&mut Rows, Place, Place);
        for (operator, made, from, to, expected) in [
            (
                "1Q-Insert",
                insert as Move,
                at(3, 2),
                at(3, 4),
                [&[1, 4][..], &[0, 3, 10, 8], &[7, 5, 2, 9, 6]],
            ),
            ("2Q-Insert", insert, at(3, 4), at(2, 2), [&[1, 4], &[0, 2, 3, 10, 8], &[7, 9, 5, 6]]),
            ("1Q-Swap", exchange, at(3, 1), at(3, 4), [&[1, 4], &[0, 3, 10, 8], &[2, 9, 5, 7, 6]]),
            ("2Q-Swap", exchange, at(2, 3), at(3, 2), [&[1, 4], &[0, 3, 9, 8], &[7, 10, 5, 2, 6]]),
            ("1Q-Switch", exchange, at(2, 2), at(2, 3), [&[1, 4], &[0, 10, 3, 8], &[7, 9, 5, 2, 6]]),
            ("2Q-Switch", exchange, at(2, 4), at(3, 4), [&[1, 4], &[0, 3, 10, 2], &[7, 9, 5, 8, 6]]),
        ] {
            let mut found = figure();
            made(&mut found, from, to);
            assert_eq!(found, rows(&expected), "{operator}");
        }
    }

    /// What is drawn of Figure 2's matrix, many times.
    fn moves(operator: Mutation, options: &Options) -> Vec<(Place, Place)> {
        let options = Options { operator, ..options.clone() };
        let mut draw = Purpose::Initial.draw(1, 1);
        (0..2000).filter_map(|_| drawn(&options, &figure(), &mut draw)).collect()
    }

    #[test]
    fn queues_and_elements_say_between_what_places_jobs_move() {
        let with = |queues, switch| Options { queues, switch, ..Options::default() };
        for kind in [Mutation::Insert, Mutation::Swap, Mutation::Switch] {
            let one_row = |(from, to): &(Place, Place)| from.row == to.row;
            let one = moves(kind, &with(Queues::One, Elements::Adjacent));
            assert!(one.iter().all(one_row) && one.iter().all(|(from, to)| from != to));
            let two = moves(kind, &with(Queues::Two, Elements::Adjacent));
            assert!(!two.is_empty() && !two.iter().any(one_row));
            let mixed = moves(kind, &Options::default()).iter().filter(|places| one_row(places)).count();
            // One pair of three rows in three is one row twice.
            assert!((550..=780).contains(&mixed), "{kind:?} {mixed}");
        }
        let apart = |(from, to): &(Place, Place)| from.column.abs_diff(to.column);
        let one_row = |switch| moves(Mutation::Switch, &with(Queues::One, switch));
        assert!(one_row(Elements::Adjacent).iter().all(|places| apart(places) == 1));
        assert!(one_row(Elements::Random).iter().any(|places| apart(places) == 4));
        assert!(
            moves(Mutation::Switch, &with(Queues::Two, Elements::Adjacent))
                .iter()
                .all(|places| apart(places) == 0)
        );
    }

    /// 2Q-Switch of the third places of rows 2 and 3 would put job 5, which needs 12 processors, at a site of 8.
    #[test]
    fn what_does_not_fit_is_drawn_again_repaired_or_counted_as_asked() {
        let batch = sizes_of_the_example();
        let start = Individual::new(figure());
        let mutated = |infeasible, seed| {
            let mut child = start.clone();
            let (operator, queues) = (Mutation::Switch, Queues::Two);
            let options = Options { operator, infeasible, queues, ..Options::default() };
            let mut draw = Purpose::Initial.draw(seed, 1);
            mutate(&batch, &options, &mut draw, &mut child);
            child.evaluate(&batch, &mut super::super::RowScheduler::new());
            child
        };
        let seeds = 0..200;
        let misfits = |infeasible| {
            seeds.clone().filter(|&seed| mutated(infeasible, seed).criteria().misfits > 0).count()
        };
        assert_eq!(misfits(Infeasible::Redraw), 0);
        assert_eq!(misfits(Infeasible::Repair), 0);
        assert!(misfits(Infeasible::Penalty) > 50);
        assert!(seeds.clone().all(|seed| mutated(Infeasible::Redraw, seed).rows() != start.rows()));
        let switched = rows(&[&[1, 4], &[0, 3, 5, 8], &[7, 9, 10, 2, 6]]);
        assert!(seeds.clone().any(|seed| mutated(Infeasible::Penalty, seed).rows() == &switched));
        assert!(!seeds.clone().any(|seed| mutated(Infeasible::Redraw, seed).rows() == &switched));
    }
}
