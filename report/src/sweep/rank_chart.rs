//! Plots of rankings: ranks with their spread, and performance profiles.

use std::fmt::Write as _;

use analysis::ranking::Profile;

use super::axis::{Scale, short};
use super::chart::{Frame, Room, class, cut, marker, name_width, picture};
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

impl RankChart {
    /// The plot as SVG.
    pub(crate) fn svg(&self) -> String {
        self.drawn(Room::Page)
    }

    /// The same for a phone.
    pub(crate) fn narrow(&self) -> String {
        self.drawn(Room::Phone)
    }

    fn drawn(&self, room: Room) -> String {
        let count = self.rows.len() as f64;
        let (left, letters) = if room == Room::Page { NAMES } else { PHONE_NAMES };
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
                 <path class=\"marker c2\" d=\"{}\"><title>{}</title></path>",
                frame.left - 8.0,
                y + 4.0,
                escape(&cut(&row.name, letters)),
                x(low) - 2.0,
                y - 4.5,
                x(high) - x(low) + 4.0,
                x(middle),
                y - 6.0,
                marker(3, x(row.rank as f64), y),
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
        picture(room.width(), bottom + 44.0, &self.title, &svg)
    }
}

/// Shares of experiments within a factor of the best.
#[derive(Clone, Debug)]
pub(crate) struct ProfileChart {
    pub(crate) title: String,
    /// Names, best first, with the number whose colour each has in all plots.
    pub(crate) lines: Vec<(String, usize, Profile)>,
}

/// Of the frame.
const HEIGHT: f64 = 302.0;
const PHONE_HEIGHT: f64 = 220.0;
/// Below the words at the vertical axis, and half of its highest mark.
const PROFILE_TOP: f64 = 54.0;
const PROFILE_BOTTOM: f64 = 52.0;
/// Between names of the legend, and from its mark to its name.
const LEGEND_STEP: f64 = 21.0;
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

    fn drawn(&self, room: Room) -> String {
        let names = self.lines.iter().map(|(name, ..)| name_width(&cut(name, NAMES.1)));
        // Beside the plot as much as the names need, so that none of it is empty.
        let legend = 14.0 + LEGEND_MARK + names.fold(0.0, f64::max) + 10.0;
        let (right, height) = if room == Room::Page { (legend, HEIGHT) } else { (18.0, PHONE_HEIGHT) };
        let frame = Frame { left: 60.0, top: PROFILE_TOP, width: room.width() - 60.0 - right, height };
        let bottom = frame.y(0.0) + PROFILE_BOTTOM;
        let (legend_x, legend_y) = match room {
            Room::Page => (frame.x(1.0) + 14.0, frame.top + 8.0),
            Room::Phone => (14.0, bottom + 8.0),
        };
        let factors = self.lines.iter().flat_map(|(_, _, profile)| profile.factors().iter().copied());
        let most = factors.filter(|factor| factor.is_finite()).fold(FACTOR_MIN, f64::max).min(FACTOR_MAX);
        // The logarithm of a factor has its 0 where the best is.
        let scale = if most > 3.0 { Scale::Log(1.0, most, false) } else { Scale::Linear(1.0, most) };
        let mut svg = String::new();
        for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
            let y = frame.y(percent / 100.0);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/><text class=\"tick end\" x=\"{:.1}\" \
                 y=\"{:.1}\">{percent} %</text>",
                frame.left,
                frame.x(1.0),
                frame.left - 7.0,
                y + 4.0
            );
        }
        for tick in scale.ticks() {
            let Some(share) = scale.place(tick) else { continue };
            let _ = writeln!(
                svg,
                "<line class=\"axis\" x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{0:.1}\" y2=\"{2:.1}\"/><text class=\"tick middle\" \
                 x=\"{0:.1}\" y=\"{3:.1}\">{4}</text>",
                frame.x(share),
                frame.y(0.0),
                frame.y(0.0) + 5.0,
                frame.y(0.0) + 18.0,
                short(tick)
            );
        }
        for (line, (name, color, profile)) in self.lines.iter().enumerate() {
            let class = class(*color);
            let mut path = format!("M{:.1},{:.1}", frame.x(0.0), frame.y(profile.share_within(1.0)));
            for &factor in profile.factors().iter().filter(|factor| **factor > 1.0) {
                let Some(share) = scale.place(factor) else { break };
                let _ = write!(path, " H{:.1} V{:.1}", frame.x(share), frame.y(profile.share_within(factor)));
            }
            let _ = write!(path, " H{:.1}", frame.x(1.0));
            let (x, y) = (legend_x, legend_y + line as f64 * LEGEND_STEP);
            let words =
                format!("{name}: best in {:.0} % of the experiments", 100.0 * profile.share_within(1.0));
            let _ = writeln!(
                svg,
                "<path class=\"series {class}\" style=\"stroke-linejoin:miter\" d=\"{path}\"><title>{}</title></path>\
                 <path class=\"series {class}\" d=\"M{x:.1},{y:.1} h26\"/><text class=\"key\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                escape(&words),
                x + LEGEND_MARK,
                y + 4.0,
                escape(&cut(name, NAMES.1))
            );
        }
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/><text class=\"label middle\" \
             x=\"{:.1}\" y=\"{:.1}\">times the best of the experiment</text><text class=\"label\" x=\"14\" y=\"38\">share of \
             the experiments</text>",
            frame.left,
            frame.top,
            frame.width,
            frame.height,
            frame.x(0.5),
            frame.y(0.0) + 38.0
        );
        let height = match room {
            Room::Page => bottom.max(legend_y + self.lines.len() as f64 * LEGEND_STEP),
            Room::Phone => bottom + self.lines.len() as f64 * LEGEND_STEP + 8.0,
        };
        picture(room.width(), height, &self.title, &svg)
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
        let svg = ProfileChart { title: "Profile".to_string(), lines }.svg();

        // Short names leave the plot nearly all of the card; the words above are clear of the highest mark.
        assert!(
            svg.contains(&format!("<rect class=\"frame\" x=\"60.0\" y=\"{PROFILE_TOP:.1}\" width=\"74")),
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
