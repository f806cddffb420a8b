//! Plots of rankings: ranks with their spread, and performance profiles.

use std::fmt::Write as _;

use analysis::ranking::Profile;

use super::axis::{Scale, short};
use super::chart::{ENTRY_GAP, Frame, Room, class, cut, marker_at, picture, write_upwards};
use super::ranking::spread;
use crate::page::html::escape;

/// A strategy in a plot of ranks.
#[derive(Clone, Debug)]
pub(crate) struct RankRow {
    name: String,
    rank: usize,
    /// What most experiments give: low, median, high.
    spread: (f64, f64, f64),
}

impl RankRow {
    /// A strategy with its rank and those in single experiments.
    pub(crate) fn new(name: String, rank: usize, in_experiments: &[usize]) -> RankRow {
        RankRow { name, rank, spread: spread(in_experiments) }
    }
}

/// Strategies from above by rank.
#[derive(Clone, Debug)]
pub(crate) struct RankChart {
    pub(crate) title: String,
    pub(crate) rows: Vec<RankRow>,
}

const ROW: f64 = 19.0;
const TOP: f64 = 46.0;
/// Room for names, and letters of a name that there is room for.
const NAMES: (f64, usize) = (290.0, 42);
/// The same on a phone.
const PHONE_NAMES: (f64, usize) = (150.0, 21);
/// At most, in a column.
const COLUMN_NAMES: (f64, usize) = (190.0, 30);

impl RankChart {
    /// The plot as SVG.
    pub(crate) fn svg(&self) -> String {
        self.drawn(Room::Page)
    }

    /// The same for a phone.
    pub(crate) fn narrow(&self) -> String {
        self.drawn(Room::Phone)
    }

    pub(crate) fn drawn(&self, room: Room) -> String {
        let count = self.rows.len() as f64;
        let (left, letters) = match room {
            Room::Page => NAMES,
            Room::Phone => PHONE_NAMES,
            // What is cut in print cannot be looked up.
            Room::Column => {
                let widest = self.rows.iter().map(|row| room.name_width(&row.name)).fold(0.0, f64::max);
                ((widest + 12.0).min(COLUMN_NAMES.0), COLUMN_NAMES.1)
            }
        };
        let frame = Frame { left, top: TOP, width: room.width() - left - 24.0, height: ROW * count };
        let scale = Scale::Linear(0.5, count.max(2.0) + 0.5);
        let x = |rank: f64| frame.x(scale.place(rank).unwrap_or(0.0));
        let mut svg = String::new();
        let bottom = frame.y(0.0);
        for tick in scale.ticks().into_iter().filter(|tick| tick.fract() == 0.0 && *tick >= 1.0) {
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{0:.1}\" y2=\"{bottom:.1}\"/><text class=\"tick middle\" \
                 x=\"{0:.1}\" y=\"{2:.1}\">{tick}</text>",
                x(tick),
                frame.top,
                bottom + 16.0
            );
        }
        for (place, row) in self.rows.iter().enumerate() {
            let y = frame.top + (place as f64 + 0.5) * ROW;
            let (low, middle, high) = row.spread;
            let words = format!(
                "{}: rank {}, in experiments {} ({} to {})",
                row.name,
                row.rank,
                short(middle),
                short(low),
                short(high)
            );
            let _ = writeln!(
                svg,
                "<text class=\"key end\" x=\"{:.1}\" y=\"{:.1}\">{}</text><rect class=\"band c1\" style=\"opacity:0.3\" \
                 x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"9\"/><path class=\"axis\" d=\"M{:.1},{:.1} v12\"/>\
                 <path class=\"marker c2\" {}><title>{}</title></path>",
                frame.left - 8.0,
                y + 4.0,
                escape(&cut(&row.name, letters)),
                x(low) - 2.0,
                y - 4.5,
                x(high) - x(low) + 4.0,
                x(middle),
                y - 6.0,
                marker_at(room, 3, x(row.rank as f64), y),
                escape(&words)
            );
        }
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/><text class=\"label middle\" \
             x=\"{:.1}\" y=\"{:.1}\">rank, 1 is the best</text>",
            frame.left,
            frame.top,
            frame.width,
            frame.height,
            frame.x(0.5),
            bottom + 33.0
        );
        picture(room, bottom + 44.0, &self.title, &self.title, &svg)
    }
}

/// Shares of experiments within a factor of the best.
#[derive(Clone, Debug)]
pub(crate) struct ProfileChart {
    /// What it shows, for who cannot see it, and what stands above it.
    pub(crate) title: String,
    pub(crate) heading: String,
    /// The metric in words.
    pub(crate) metric: String,
    /// Names, best first, with the look that each has in all plots.
    pub(crate) lines: Vec<(String, usize, Profile)>,
}

/// Of the frame.
const HEIGHT: f64 = 302.0;
const PHONE_HEIGHT: f64 = 220.0;
const COLUMN_HEIGHT: f64 = 160.0;
/// Below the heading.
const PROFILE_TOP: f64 = 36.0;
const PROFILE_BOTTOM: f64 = 52.0;
/// From the mark of an entry of the legend to its name.
const LEGEND_MARK: f64 = 32.0;
/// Factors beyond this are off the plot: a strategy that is so far behind is not in question.
const FACTOR_MAX: f64 = 1e4;
/// An axis of factors is at least so long.
const FACTOR_MIN: f64 = 1.01;

impl ProfileChart {
    /// The plot as SVG.
    pub(crate) fn svg(&self) -> String {
        self.drawn(Room::Page)
    }

    /// The same for a phone.
    pub(crate) fn narrow(&self) -> String {
        self.drawn(Room::Phone)
    }

    pub(crate) fn drawn(&self, room: Room) -> String {
        let name_width = |(name, ..): &(String, usize, Profile)| room.name_width(&cut(name, NAMES.1));
        let widths: Vec<f64> =
            self.lines.iter().map(|line| LEGEND_MARK + name_width(line) + ENTRY_GAP).collect();
        // Beside the plot as much as the names need, so that none of it is empty.
        let entry = 14.0 + widths.iter().copied().fold(0.0, f64::max) + 4.0;
        let height = match room {
            Room::Page => HEIGHT,
            Room::Phone => PHONE_HEIGHT,
            Room::Column => COLUMN_HEIGHT,
        };
        let right = if room.is_narrow() { 18.0 } else { entry };
        let mut svg = String::new();
        let label = "share of the experiments (%)";
        let left = write_upwards(&mut svg, room, (PROFILE_TOP, height), label) + 4.0 * room.letter() + 8.0;
        let frame = Frame { left, top: PROFILE_TOP, width: room.width() - left - right, height };
        let bottom = frame.y(0.0) + PROFILE_BOTTOM - if room == Room::Column { 10.0 } else { 0.0 };
        let (legend_x, legend_y) = match room {
            Room::Page => (frame.x(1.0) + 14.0, frame.top + 8.0),
            Room::Phone => (14.0, bottom + 8.0),
            Room::Column => (6.0, bottom + 4.0),
        };
        let (rows, columns) = room.legend_columns(&widths, legend_x);
        let factors = self.lines.iter().flat_map(|(_, _, profile)| profile.factors().iter().copied());
        let most = factors.filter(|factor| factor.is_finite()).fold(FACTOR_MIN, f64::max).min(FACTOR_MAX);
        // The logarithm of a factor has its 0 where the best is.
        let scale = if most > 3.0 { Scale::Log(1.0, most, false) } else { Scale::Linear(1.0, most) };
        for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
            let y = frame.y(percent / 100.0);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/><text class=\"tick end\" x=\"{:.1}\" \
                 y=\"{:.1}\">{percent}</text>",
                frame.left,
                frame.x(1.0),
                frame.left - 7.0,
                y + 4.0
            );
        }
        let mut last = f64::NEG_INFINITY;
        for tick in scale.ticks() {
            let Some(share) = scale.place(tick) else { continue };
            let words = short(tick);
            let half = words.chars().count() as f64 * room.letter() / 2.0;
            // In a column not all have room.
            let words = if frame.x(share) - half < last + 5.0 { String::new() } else { words };
            if !words.is_empty() {
                last = frame.x(share) + half;
            }
            let _ = writeln!(
                svg,
                "<line class=\"axis\" x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{0:.1}\" y2=\"{2:.1}\"/><text class=\"tick middle\" \
                 x=\"{0:.1}\" y=\"{3:.1}\">{words}</text>",
                frame.x(share),
                frame.y(0.0),
                frame.y(0.0) + 5.0,
                frame.y(0.0) + 18.0,
            );
        }
        for (line, (name, look, profile)) in self.lines.iter().enumerate() {
            let class = class(*look);
            let best = (frame.x(0.0), frame.y(profile.share_within(1.0)));
            let mut path = format!("M{:.1},{:.1}", best.0, best.1);
            for &factor in profile.factors().iter().filter(|factor| **factor > 1.0) {
                let Some(share) = scale.place(factor) else { break };
                let _ = write!(path, " H{:.1} V{:.1}", frame.x(share), frame.y(profile.share_within(factor)));
            }
            let _ = write!(path, " H{:.1}", frame.x(1.0));
            let x = columns[line / rows];
            let y = legend_y + (line % rows) as f64 * room.legend_step();
            let words =
                format!("{name}: best in {:.0} % of the experiments", 100.0 * profile.share_within(1.0));
            let _ = writeln!(
                svg,
                "<path class=\"series {class}\" style=\"stroke-linejoin:miter\" d=\"{path}\"><title>{}</title></path>\
                 <path class=\"marker {class}\" {}/><path class=\"series {class}\" d=\"M{x:.1},{y:.1} h26\"/>\
                 <path class=\"marker {class}\" {}/><text class=\"key\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                escape(&words),
                marker_at(room, *look, best.0, best.1),
                marker_at(room, *look, x + 13.0, y),
                x + LEGEND_MARK,
                y + 4.0,
                escape(&cut(name, NAMES.1))
            );
        }
        // The whole of it is wider than a phone.
        let best = if room.is_narrow() { "times the best" } else { "times the best of the experiment" };
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/><text class=\"label middle\" \
             x=\"{:.1}\" y=\"{:.1}\">{}, {best}</text>",
            frame.left,
            frame.top,
            frame.width,
            frame.height,
            frame.x(0.5),
            frame.y(0.0) + if room == Room::Column { 32.0 } else { 38.0 },
            escape(&self.metric)
        );
        let below = legend_y + rows as f64 * room.legend_step();
        let height = if room.is_narrow() { below } else { bottom.max(below) };
        picture(room, height, &self.title, &self.heading, &svg)
    }
}

#[cfg(test)]
mod tests {
    use analysis::ranking::{Better, Measured};

    use super::*;

    #[test]
    fn ranks_have_a_row_each_and_names_cannot_break_out() {
        let rows = vec![
            RankRow::new("a <b>".to_string(), 1, &[1, 1, 2, 1, 2]),
            RankRow::new("c".to_string(), 2, &[2, 2, 1, 2, 1]),
        ];
        let svg = RankChart { title: "Ranks".to_string(), rows }.svg();

        assert!(svg.contains("a &lt;b&gt;: rank 1, in experiments 1 (1 to 2)"), "{svg}");
        assert_eq!(svg.matches("class=\"marker").count(), 2);
    }

    #[test]
    fn a_profile_climbs_to_all_experiments_unless_it_is_infinitely_behind() {
        let measured = Measured::new(Better::Less, vec![vec![1.0, 4.0, 0.0], vec![2.0, 2.0, 1.0]]);
        let of = Profile::of(&measured).into_iter();
        let lines = of
            .zip([("one", 3), ("other", 0)])
            .map(|(of, (name, color))| (name.to_string(), color, of))
            .collect();
        let [title, heading] = ["Profile"; 2].map(str::to_string);
        let svg = ProfileChart { title, heading, metric: "wait".to_string(), lines }.svg();

        // Short names leave the plot nearly all of the card; the words above are clear of the highest mark.
        assert!(
            svg.contains(&format!("<rect class=\"frame\" x=\"56.6\" y=\"{PROFILE_TOP:.1}\" width=\"75")),
            "{svg}"
        );
        let top = format!("V{PROFILE_TOP:.1} H");
        let paths: Vec<&str> = svg.lines().filter(|line| line.contains("best in")).collect();
        assert_eq!(paths.len(), 2);
        // The colour is that of the series, not of the place.
        assert!(paths[0].contains(&format!("series {}", class(3))), "{}", paths[0]);
        assert!(paths[0].contains("best in 67 %") && paths[0].contains(&top), "{}", paths[0]);
        assert!(paths[1].contains("best in 33 %") && !paths[1].contains(&top), "{}", paths[1]);
    }
}
