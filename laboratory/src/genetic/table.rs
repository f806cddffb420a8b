//! Table II: what the algorithms come to over all batches, and how much better they are than the greedy strategy that the
//! table has for each criterion.

use std::fmt::Write as _;

use outputs::table::Table;
use report::quantity::number;

use super::algorithms::{Algorithm, Method};
use super::allocate::Entry;

/// Where it is written.
pub(super) const FILE: &str = "table.csv";
/// A criterion, and the strategy that is 100 % (§7.1).
const REFERENCES: [(&str, &str); 4] =
    [("makespan", "a1"), ("turnaround", "a3"), ("response", "a2"), ("wait", "a4")];

/// What an algorithm comes to.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    algorithm: String,
    batches: usize,
    /// Means over batches, in the order of [`REFERENCES`].
    means: [f64; 4],
    /// The same with true run times.
    means_with_run_times: [f64; 4],
    /// Makespan over the lower bound.
    ratio_mean: f64,
    ratio_max: f64,
    evaluations_mean: f64,
    generations_mean: f64,
    better: [Option<Better>; 4],
}

/// Percent by which a criterion is less than that of its reference; below zero it is more.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Better {
    /// The mean over batches of what is better in each.
    of_ratios: f64,
    /// What is better in the means over batches.
    of_means: f64,
}

/// All algorithms.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Summary {
    rows: Vec<Row>,
}

impl Summary {
    /// Of those that have a result, in the order typed.
    pub(super) fn of(algorithms: &[Algorithm], entries: &[Entry]) -> Summary {
        let entries_of =
            |name: &str| entries.iter().filter(|one| one.algorithm == name).collect::<Vec<&Entry>>();
        let references = REFERENCES.map(|(_, name)| {
            let method = super::algorithms::parse(name).ok().map(|reference| reference.method);
            let is_typed = |one: &&Algorithm| Some::<Method>(one.method) == method;
            algorithms.iter().find(is_typed).map(|one| entries_of(&one.name)).unwrap_or_default()
        });
        let row = |algorithm: &Algorithm| {
            let own = entries_of(&algorithm.name);
            (!own.is_empty()).then(|| Row::of(&algorithm.name, &own, &references))
        };
        Summary { rows: algorithms.iter().filter_map(row).collect() }
    }

    pub(super) fn text(&self) -> String {
        let mut means = Table::new([
            "algorithm",
            "makespan s",
            "turnaround s",
            "response",
            "wait s",
            "ρ mean",
            "ρ max",
            "evaluations",
            "generations",
        ]);
        let columns = REFERENCES.into_iter().flat_map(|(name, _)| [name.to_string(), "of means".to_string()]);
        let mut better = Table::new(std::iter::once("algorithm".to_string()).chain(columns));
        for row in &self.rows {
            let [makespan, turnaround, response, wait] = row.means.map(number);
            let (ratio_mean, ratio_max) = (format!("{:.3}", row.ratio_mean), format!("{:.3}", row.ratio_max));
            let counts = [row.evaluations_mean, row.generations_mean].map(|count| format!("{count:.1}"));
            let [evaluations, generations] = counts;
            means.push([
                row.algorithm.clone(),
                makespan,
                turnaround,
                response,
                wait,
                ratio_mean,
                ratio_max,
                evaluations,
                generations,
            ]);
            let cell =
                |percent: Option<f64>| percent.map_or("-".to_string(), |percent| format!("{percent:.2}"));
            let cells = row.better.iter().flat_map(|better| {
                [cell(better.map(|better| better.of_ratios)), cell(better.map(|better| better.of_means))]
            });
            better.push(std::iter::once(row.algorithm.clone()).chain(cells));
        }
        let batches = self.rows.iter().map(|row| row.batches).max().unwrap_or(0);
        let fewer = self.rows.iter().filter(|row| row.batches < batches);
        let fewer: Vec<String> = fewer.map(|row| format!("{} of {}", row.algorithm, row.batches)).collect();
        let but = match fewer.is_empty() {
            true => String::new(),
            false => format!(" (stopped: {} only; do not compare these)", fewer.join(", ")),
        };
        format!(
            "means of {batches} batches{but}, with requested times; ρ is the makespan over its lower bound\n\n{}\n\
             percent better than {}:\nthe mean over batches, and of the means\n\n{}",
            means.text(),
            REFERENCES.map(|(name, reference)| format!("{reference} in {name}")).join(", "),
            better.text()
        )
    }

    pub(super) fn csv(&self) -> String {
        let mut text = "algorithm,batches,makespan_s,turnaround_s,response_ratio,wait_s,rho_mean,rho_max,\
                        evaluations_mean,generations_mean"
            .to_string();
        for (name, reference) in REFERENCES {
            let _ = write!(
                text,
                ",{name}_better_than_{reference}_percent,{name}_better_than_{reference}_of_means_percent"
            );
        }
        text.push_str(",run_makespan_s,run_turnaround_s,run_response_ratio,run_wait_s\n");
        for row in &self.rows {
            let _ = write!(text, "{},{}", row.algorithm, row.batches);
            let counts = [row.ratio_mean, row.ratio_max, row.evaluations_mean, row.generations_mean];
            for value in row.means.into_iter().chain(counts) {
                let _ = write!(text, ",{value:.6}");
            }
            for better in row.better {
                match better {
                    Some(better) => {
                        let _ = write!(text, ",{:.6},{:.6}", better.of_ratios, better.of_means);
                    }
                    None => text.push_str(",,"),
                }
            }
            for value in row.means_with_run_times {
                let _ = write!(text, ",{value:.6}");
            }
            text.push('\n');
        }
        text
    }
}

impl Row {
    fn of(name: &str, own: &[&Entry], references: &[Vec<&Entry>; 4]) -> Row {
        let mean = |value: &dyn Fn(&Entry) -> f64| mean(own.iter().map(|entry| value(entry)));
        let ratio = |entry: &Entry| entry.requested.makespan_s / entry.lower_bound_s;
        let of = |place: usize| mean(&|entry| entry.requested.values()[place]);
        Row {
            algorithm: name.to_string(),
            batches: own.len(),
            means: [0, 1, 2, 3].map(of),
            means_with_run_times: [0, 1, 2, 3]
                .map(|place| mean(&|entry| entry.with_run_times.values()[place])),
            ratio_mean: mean(&ratio),
            ratio_max: own.iter().map(|entry| ratio(entry)).fold(0.0, f64::max),
            evaluations_mean: mean(&|entry| entry.evaluations as f64),
            generations_mean: mean(&|entry| f64::from(entry.generations)),
            better: [0, 1, 2, 3].map(|place| Better::of(place, own, &references[place])),
        }
    }
}

impl Better {
    /// Over the batches that both have; none if there are none, or the reference has nothing that could be less.
    fn of(place: usize, own: &[&Entry], reference: &[&Entry]) -> Option<Better> {
        let pair = |entry: &&Entry| {
            let other = reference.iter().find(|other| other.batch == entry.batch)?;
            Some((entry.requested.values()[place], other.requested.values()[place]))
        };
        let pairs: Vec<(f64, f64)> = own.iter().filter_map(pair).collect();
        if pairs.is_empty() || pairs.iter().any(|pair| pair.1 <= 0.0) {
            return None;
        }
        let percent = |(value, reference): (f64, f64)| 100.0 * (reference - value) / reference;
        let means = (mean(pairs.iter().map(|pair| pair.0)), mean(pairs.iter().map(|pair| pair.1)));
        Some(Better { of_ratios: mean(pairs.iter().copied().map(percent)), of_means: percent(means) })
    }
}

/// In the order given.
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::super::allocate::Figures;
    use super::*;

    fn entry(batch: usize, algorithm: &str, makespan_s: f64, wait_s: f64) -> Entry {
        let figures = Figures { makespan_s, turnaround_s: wait_s + 1.0, response_ratio: 2.0, wait_s };
        Entry {
            batch,
            algorithm: algorithm.to_string(),
            rows: Vec::new(),
            requested: figures,
            lower_bound_s: 5.0,
            evaluations: 10,
            generations: 2,
            seed: 1,
            stopped: false,
            with_run_times: figures,
        }
    }

    #[test]
    fn improvements_and_ratios_are_over_batches_and_of_means() {
        let names = ["A1", "b1", "a4"].map(|name| super::super::algorithms::parse(name).unwrap());
        let entries = [
            entry(1, "A1", 10.0, 4.0),
            entry(2, "A1", 40.0, 4.0),
            entry(1, "b1", 5.0, 2.0),
            entry(2, "b1", 40.0, 8.0),
            entry(1, "a4", 10.0, 4.0),
            entry(2, "a4", 10.0, 1.0),
        ];
        let summary = Summary::of(&names, &entries);
        let row = &summary.rows[1];
        assert_eq!((row.batches, row.means[0], row.ratio_mean, row.ratio_max), (2, 22.5, 4.5, 8.0));
        // 50 % and 0 % are better; 22.5 s of 25 s.
        assert_eq!(row.better[0], Some(Better { of_ratios: 25.0, of_means: 10.0 }));
        // 50 % better and 700 % worse; 5 s over 2.5 s.
        assert_eq!(row.better[3], Some(Better { of_ratios: -325.0, of_means: -100.0 }));
        // Neither a2 nor a3 is there.
        assert_eq!((row.better[1], row.better[2]), (None, None));
        assert_eq!(summary.rows[0].better[0], Some(Better { of_ratios: 0.0, of_means: 0.0 }));
        let text = summary.text();
        assert!(text.contains("25.00") && text.contains("-325.00"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= experiments::terminal::COLUMNS), "{text}");
        let csv = summary.csv();
        let cells: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(cells, [22; 4]);
        assert!(csv.contains(
            "\nb1,2,22.500000,6.000000,2.000000,5.000000,4.500000,8.000000,10.000000,2.000000,25.000000,"
        ));
    }
}
