//! The plot of measured beside predicted slow-downs of tasks that share a processor.

use analysis::statistics::Interval;

use super::axis::LOG_FROM;
use super::chart::{Line, LineChart, Theory};
use super::figures::Figure;
use super::look::Looks;
use super::metric::Unit;

/// One kind of load beside the tasks.
#[derive(Clone, Debug)]
pub struct Series {
    /// As the legend has it.
    pub name: String,
    /// Tasks, how much slower they were: the least, the middle and the most of what was measured, and what is predicted.
    pub points: Vec<Point>,
}

/// Slow-downs of so many tasks.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Tasks on the processor.
    pub tasks: u32,
    /// What was measured: the least, the median and the most.
    pub measured: [f64; 3],
    /// What the model says.
    pub predicted: f64,
}

/// The plot: slow-downs over tasks, what is predicted as dashes.
pub fn figure(title: &str, note: &str, series: &[Series]) -> Figure {
    let mut looks = Looks::default();
    let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
    let looks = looks.of(&names);
    let line = |(series, look): (&Series, usize)| {
        let point = |point: &Point| {
            let [low, middle, high] = point.measured;
            (f64::from(point.tasks), Some(middle), Some(Interval { low, high }))
        };
        let points = series.points.iter().map(point).collect();
        Line { name: series.name.clone(), points, marks: Vec::new(), look }
    };
    let theory = |series: &Series| Theory {
        name: format!("predicted, {}", series.name),
        points: series.points.iter().map(|point| (f64::from(point.tasks), point.predicted)).collect(),
    };
    let mut tasks: Vec<u32> =
        series.iter().flat_map(|series| series.points.iter().map(|point| point.tasks)).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let chart = LineChart {
        title: title.to_string(),
        heading: title.to_string(),
        x_label: "tasks on a processor".to_string(),
        y_label: "times slower than alone".to_string(),
        x: tasks.into_iter().map(|tasks| (f64::from(tasks), tasks.to_string())).collect(),
        x_per: None,
        lines: series.iter().zip(looks).map(line).collect(),
        theory: series.iter().map(theory).collect(),
        y_unit: Unit::Number,
        log_from: LOG_FROM,
        least_possible: None,
    };
    let (svg, narrow) = (chart.svg(), chart.narrow());
    Figure { id: "sharing".to_string(), panel: None, is_detail: false, svg, narrow, note: note.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_load_has_what_was_measured_and_what_is_predicted() {
        let point =
            |tasks, predicted| Point { tasks, measured: [predicted, predicted, 1.1 * predicted], predicted };
        let series = |name: &str, share| Series {
            name: name.to_string(),
            points: (1..=4).map(|tasks| point(tasks, f64::from(tasks) / (1.0 - share))).collect(),
        };
        let drawn = figure("Slow-downs", "", &[series("nobody else", 0.0), series("a user of 15 %", 0.15)]);
        let svg = drawn.standalone();
        // Two lines, and what the legend says of each.
        assert_eq!(svg.matches("<path class=\"theory t").count(), 4, "{svg}");
        for words in ["nobody else", "a user of 15 %", "predicted", "tasks on a processor"] {
            assert!(svg.contains(words), "{words}");
        }
    }
}
