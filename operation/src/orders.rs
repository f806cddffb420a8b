//! What orders given to a run mean for its links and sites.
//!
//! What they say is in [`outputs::orders`], how they arrive in [`crate::serve::orders`], how they are carried out in
//! [`crate::run::orders`].

use links::{Between, Cut};
use outputs::orders::{Given, Order};
use scheduler::{Grid, SiteId, Time};

/// Whether orders did what no simulation of the experiment does, and none can be made to do.
pub fn cannot_be_simulated(given: &[Given]) -> bool {
    given.iter().any(|given| matches!(given.order, Order::Kill(_)))
}

/// The partitions that orders have made, those that were never restored until `end`.
pub fn cuts(given: &[Given], end: Time) -> Vec<Cut> {
    let mut open: Vec<(SiteId, SiteId, Time)> = Vec::new();
    let mut cuts = Vec::new();
    let mut close = |(from, to, at): (SiteId, SiteId, Time), until: Time| {
        let between = Between::OneWay { from: Some([from].into()), to: Some([to].into()) };
        if at < until {
            cuts.push(Cut { at, until, between });
        }
    };
    for Given { at, order, .. } in given {
        match order {
            Order::Cut(ends) => {
                for (from, to) in ends.ways() {
                    if !open.iter().any(|way| (way.0, way.1) == (from, to)) {
                        open.push((from, to, *at));
                    }
                }
            }
            Order::Restore(ends) => {
                for (from, to) in ends.ways() {
                    if let Some(place) = open.iter().position(|way| (way.0, way.1) == (from, to)) {
                        close(open.remove(place), *at);
                    }
                }
            }
            _ => {}
        }
    }
    open.into_iter().for_each(|way| close(way, end));
    cuts
}

/// A site of the grid by its number.
///
/// # Errors
/// If there is none.
pub fn site_of(grid: &Grid, site: SiteId) -> Result<SiteId, String> {
    match site.0 != 0 && site.index() < grid.len() {
        true => Ok(site),
        false => Err(format!("site {site} is none of the grid; its sites are 1 to {}", grid.len())),
    }
}

#[cfg(test)]
mod tests {
    use outputs::orders::Ends;

    use super::*;

    fn given(seconds: i64, order: Order) -> Given {
        Given::new(Time::from_secs(seconds), order, String::new())
    }

    fn ends(from: u32, to: u32, one_way: bool) -> Ends {
        Ends { from: SiteId(from), to: SiteId(to), one_way }
    }

    #[test]
    fn a_cut_lasts_until_it_is_restored_and_a_second_one_changes_nothing() {
        let orders = [
            given(5, Order::Cut(ends(1, 2, false))),
            given(6, Order::Cut(ends(1, 2, true))),
            given(6, Order::Restore(ends(2, 3, false))),
            given(9, Order::Restore(ends(1, 2, true))),
        ];
        let way = |from: u32, to: u32, at: i64, until: i64| Cut {
            at: Time::from_secs(at),
            until: Time::from_secs(until),
            between: Between::OneWay { from: Some([SiteId(from)].into()), to: Some([SiteId(to)].into()) },
        };
        assert_eq!(cuts(&orders, Time::from_secs(20)), [way(1, 2, 5, 9), way(2, 1, 5, 20)]);
        assert_eq!(cuts(&orders[..1], Time::from_secs(5)), [], "for no time");
    }
}
