//! Orders that were given during a run, as people read them.

use outputs::RunResult;

use super::quantity::grouped;

/// Orders named one by one; all are in `manifest.json`.
const ORDERS_NAMED: usize = 20;

/// A sentence, and a line for each of the first orders; none without orders.
pub fn orders_lines(result: &RunResult) -> Vec<String> {
    let orders = &result.about.orders;
    if orders.is_empty() {
        return Vec::new();
    }
    let count = match orders.len() {
        1 => "1 order was".to_string(),
        count => format!("{} orders were", grouped(count as u64)),
    };
    let first = format!("{count} given while the run lasted: it is not the experiment alone");
    let named = orders.iter().take(ORDERS_NAMED).map(ToString::to_string);
    let left = orders.len().saturating_sub(ORDERS_NAMED);
    let more = (left > 0).then(|| format!("and {} more (manifest.json)", grouped(left as u64)));
    let apart = orders.iter().filter_map(|given| given.apart).max();
    let apart =
        apart.map(|apart| format!("clocks that were stopped stood {apart} s of trace time apart at most"));
    std::iter::once(first).chain(named).chain(more).chain(apart).collect()
}

#[cfg(test)]
mod tests {
    use scheduler::{Span, Time};

    use super::*;
    use outputs::fixtures::{about, outcome};
    use outputs::orders::{Given, Nothing, Order};

    #[test]
    fn a_run_with_orders_says_so_and_names_the_first() {
        let mut result = RunResult::new(about(), outcome(&[4], &[(0, 4, 10, 1, 0)]), None);
        assert_eq!(orders_lines(&result), [""; 0]);
        let given = |seconds| {
            let order = Order::Pause(Nothing {});
            let apart = Some(Span::from_micros(7 * seconds));
            Given { apart, ..Given::new(Time::from_secs(seconds), order, format!("pause {seconds}")) }
        };
        result.about.orders = (0..25).map(given).collect();

        let lines = orders_lines(&result);

        assert_eq!(lines[0], "25 orders were given while the run lasted: it is not the experiment alone");
        assert_eq!(lines[1], "at 0 s: pause 0");
        assert_eq!((lines.len(), lines[21].as_str()), (23, "and 5 more (manifest.json)"));
        assert_eq!(lines[22], "clocks that were stopped stood 0.000168 s of trace time apart at most");
        let page = {
            let mut page = Vec::new();
            let allocation = outputs::Allocation::of(&result.outcome);
            crate::page::write(&mut page, &result, &allocation).unwrap();
            String::from_utf8(page).unwrap()
        };
        for text in [page, crate::summary::terminal(&result), crate::summary::markdown(&result)] {
            assert!(
                text.replace("\n  ", " ").contains("it is not the experiment alone")
                    && text.contains("at 3 s: pause 3"),
                "{text}"
            );
        }
    }
}
