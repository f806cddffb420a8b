//! Plots as SVG: lines with intervals against an axis, and stacked bars.
//!
//! A drawing names colors by class; the colors are in `plot.css`. Within a page they follow its light or dark
//! look; a file of its own carries the light ones.

use std::fmt::Write as _;

use analysis::statistics::Interval;
use outputs::table::wrapped;

use super::axis::{Scale, short, span, time_labels};
use crate::page::html::escape;

/// Colors and strokes of plots, with variables for the page's look.
pub(crate) const STYLE: &str = include_str!("plot.css");
/// The variables of [`STYLE`] in the light look.
const LIGHT: [(&str, &str); 17] = [
    ("--paper", "#ffffff"),
    ("--ink", "#1d2126"),
    ("--soft", "#5d6670"),
    ("--line", "#d9dcd6"),
    ("--panel", "#ffffff"),
    ("--s0", "#1d2126"),
    ("--s1", "#0072b2"),
    ("--s2", "#d55e00"),
    ("--s3", "#009e73"),
    ("--s4", "#cc79a7"),
    ("--s5", "#e69f00"),
    ("--s6", "#56b4e9"),
    ("--s7", "#8c564b"),
    ("--s8", "#7f7f7f"),
    ("--s9", "#6a3d9a"),
    ("--s10", "#8a8a00"),
    ("--s11", "#008b8b"),
];
/// Colors before they repeat; markers and dashes go on.
const COLORS: usize = 12;
const MARKERS: usize = 6;
/// Colors of the parts of a stack.
pub(crate) const PARTS: usize = 8;
/// Dashes of lines that nobody measured.
const DASHES: usize = 4;

/// One line of a plot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// As the legend has it.
    pub(crate) name: String,
    /// (x, y, interval of y); a point without a value is left out, and the line is broken there.
    pub(crate) points: Vec<(f64, Option<f64>, Option<Interval>)>,
    /// Marks on the horizontal axis.
    pub(crate) marks: Vec<f64>,
    /// Place among the colors.
    pub(crate) color: usize,
}

/// A line that nobody measured.
#[derive(Clone, Debug)]
pub(crate) struct Theory {
    /// As the legend has it.
    pub(crate) name: String,
    /// Its points in the units of the axes.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Lines against an axis.
#[derive(Clone, Debug)]
pub(crate) struct LineChart {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    /// Points of the horizontal axis, and how they are written.
    pub(crate) x: Vec<(f64, String)>,
    /// If given: the axis on top, whose values are those below divided by this.
    pub(crate) x_per: Option<(f64, String)>,
    pub(crate) lines: Vec<Line>,
    pub(crate) theory: Vec<Theory>,
    /// Whether the values are times in seconds.
    pub(crate) y_is_time: bool,
    /// Values that span more than this factor are shown by logarithm.
    pub(crate) log_from: f64,
    /// A value that nothing can be below, if lines may crowd there.
    pub(crate) least_possible: Option<f64>,
}

/// Where a plot is seen. Letters have one size in both, so that the same drawing made smaller could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// On a page or in a file of its own, with its legend beside it.
    Page,
    /// On a screen as wide as a hand, with its legend below it.
    Phone,
}

impl Room {
    /// Of the whole picture.
    pub(super) fn width(self) -> f64 {
        match self {
            Room::Page => WIDTH,
            // What a phone leaves between the margins of the page.
            Room::Phone => 340.0,
        }
    }

    /// Letters of a line over the whole picture.
    fn letters(self) -> usize {
        ((self.width() - 2.0 * MARGIN) / LETTER) as usize
    }
}

pub(super) const WIDTH: f64 = 900.0;
/// Left and right of titles.
const MARGIN: f64 = 14.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 72.0;
/// At most, for names of as many letters as are not cut.
const RIGHT: f64 = 235.0;
/// From a plot to the names of its legend.
const LEGEND_NAME: f64 = 49.0;
const TOP: f64 = 74.0;
const BOTTOM: f64 = 58.0;
/// On a phone.
const PHONE_LEFT: f64 = 56.0;
/// Also the room for half of the last label.
const PHONE_RIGHT: f64 = 18.0;
const PHONE_HEIGHT: f64 = 240.0;
/// From line to line of a title, and of a label.
const TITLE_LINE: f64 = 18.0;
const LABEL_LINE: f64 = 15.0;
/// Width of a letter of a title, about: it is bold.
const TITLE_LETTER: f64 = 8.4;
/// Space between entries of the legend.
const LEGEND_STEP: f64 = 21.0;
/// Width of a letter beside an axis, about.
const LETTER: f64 = 6.4;
/// Pixels between two written values of an axis.
const TICK_GAP: f64 = 5.0;

/// A rectangle to draw in.
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Frame {
    pub(super) fn x(&self, share: f64) -> f64 {
        self.left + share * self.width
    }

    pub(super) fn y(&self, share: f64) -> f64 {
        self.top + (1.0 - share) * self.height
    }
}

/// The whole picture around its content, which gives way to a title of several lines.
pub(super) fn picture(width: f64, height: f64, title: &str, content: &str) -> String {
    let lines = wrapped(title, ((width - 2.0 * MARGIN) / TITLE_LETTER) as usize);
    let down = TITLE_LINE * (lines.len() - 1) as f64;
    let height = height + down;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"{}\">\n<rect class=\"sheet\" width=\"{width}\" \
         height=\"{height}\"/>\n",
        escape(title)
    );
    write_lines(&mut svg, "title", &lines, 22.0, TITLE_LINE);
    let _ = match down > 0.0 {
        true => write!(svg, "<g transform=\"translate(0 {down})\">\n{content}</g>\n</svg>\n"),
        false => writeln!(svg, "{content}</svg>"),
    };
    svg
}

/// Lines of text at the left margin, the first at `y`.
fn write_lines(svg: &mut String, class: &str, lines: &[String], y: f64, step: f64) {
    for (place, line) in lines.iter().enumerate() {
        let y = y + step * place as f64;
        let _ = writeln!(svg, "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\">{}</text>", escape(line));
    }
}

/// A picture that needs no page: with its colors, in the light look.
pub(crate) fn standalone(svg: &str) -> String {
    let style = light_style();
    svg.replacen("role=\"img\"", "role=\"img\" font-family=\"DejaVu Sans, Verdana, sans-serif\"", 1).replacen(
        ">\n",
        &format!(">\n<style>\n{style}</style>\n"),
        1,
    )
}

/// [`STYLE`] with the light colors in place of variables.
pub(crate) fn light_style() -> String {
    // The longest names first: --s1 is the beginning of --s10.
    LIGHT
        .iter()
        .rev()
        .fold(STYLE.to_string(), |style, (name, color)| style.replace(&format!("var({name})"), color))
}

impl LineChart {
    /// The plot as SVG.
    pub(crate) fn svg(&self) -> String {
        self.drawn(Room::Page)
    }

    /// The same for a phone.
    pub(crate) fn narrow(&self) -> String {
        self.drawn(Room::Phone)
    }

    fn drawn(&self, room: Room) -> String {
        let xs: Vec<f64> = self.x.iter().map(|(x, _)| *x).collect();
        let x_scale = Scale::of_axis(&xs);
        let y_scale = self.y_scale();
        let label = wrapped(&self.label(&y_scale), room.letters());
        let top = TOP + LABEL_LINE * (label.len() - 1) as f64;
        let (left, right, height) = match room {
            Room::Page => (LEFT, self.room_of_legend(), HEIGHT - TOP - BOTTOM),
            Room::Phone => (PHONE_LEFT, PHONE_RIGHT, PHONE_HEIGHT),
        };
        let frame = Frame { left, top, width: room.width() - left - right, height };
        let mut svg = String::new();
        write_lines(&mut svg, "label", &label, 42.0, LABEL_LINE);
        self.draw_axes(&mut svg, &frame, &x_scale, &y_scale);
        for (index, theory) in self.theory.iter().enumerate() {
            let path = path(theory.points.iter().map(|&(x, y)| Some((x, y))), &frame, &x_scale, &y_scale);
            let _ = writeln!(svg, "<path class=\"theory t{}\" d=\"{path}\"/>", index % DASHES);
        }
        for line in &self.lines {
            draw_band(&mut svg, line, &frame, &x_scale, &y_scale);
        }
        for line in &self.lines {
            self.draw_line(&mut svg, line, &frame, &x_scale, &y_scale);
        }
        let bottom = frame.y(0.0) + BOTTOM;
        let legend = LEGEND_STEP * (self.lines.len() + self.theory.len()) as f64 + 12.0;
        let height = match room {
            Room::Page => {
                self.draw_legend(&mut svg, frame.x(1.0) + 16.0, top + 8.0, LEGEND_LETTERS);
                bottom.max(top + legend)
            }
            Room::Phone => {
                self.draw_legend(&mut svg, MARGIN, bottom + 8.0, room.letters() - LEGEND_MARK);
                bottom + legend
            }
        };
        picture(room.width(), height, &self.title, &svg)
    }

    /// As much as its names need, so that none of the picture is empty.
    fn room_of_legend(&self) -> f64 {
        let names = self.lines.iter().map(|line| &line.name).chain(self.theory.iter().map(|line| &line.name));
        (LEGEND_NAME + names.map(|name| name_width(name)).fold(0.0, f64::max) + MARGIN).min(RIGHT)
    }

    /// What the vertical axis is of.
    fn label(&self, y_scale: &Scale) -> String {
        match y_scale {
            Scale::Above(least, _) => {
                format!("{}, by the logarithm of what is above {}", self.y_label, short(*least))
            }
            _ => self.y_label.clone(),
        }
    }

    fn y_scale(&self) -> Scale {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let column = |(x, _): &(f64, String)| {
            points().filter(|(at, _, _)| at == x).filter_map(|(_, y, _)| *y).collect::<Vec<f64>>()
        };
        let columns: Vec<Vec<f64>> = self.x.iter().map(column).collect();
        let intervals = points().filter_map(|(_, _, interval)| *interval);
        let theory = self.theory.iter().flat_map(|line| &line.points).map(|(_, y)| *y);
        // Points between the marks of the axis, too.
        let values = points().filter_map(|(_, y, _)| *y);
        let bounds: Vec<f64> = intervals
            .flat_map(|interval| [interval.low, interval.high])
            .chain(theory)
            .chain(values)
            .collect();
        Scale::of_lines(&columns, &bounds, self.log_from, self.least_possible)
    }

    fn draw_axes(&self, svg: &mut String, frame: &Frame, x_scale: &Scale, y_scale: &Scale) {
        let (bottom, right) = (frame.y(0.0), frame.x(1.0));
        let ticks = if self.y_is_time { y_scale.time_ticks() } else { y_scale.ticks() };
        let written = match self.y_is_time {
            true => time_labels(&ticks),
            false => ticks.iter().map(|tick| short(*tick)).collect(),
        };
        for (tick, words) in ticks.into_iter().zip(written) {
            let Some(share) = y_scale.place(tick) else { continue };
            let y = frame.y(share);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\"/><text class=\"tick end\" \
                 x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                frame.left,
                frame.left - 8.0,
                y + 4.0,
                escape(&words)
            );
        }
        let mut last = f64::NEG_INFINITY;
        for (value, words) in &self.x {
            let Some(share) = x_scale.place(*value) else { continue };
            let x = frame.x(share);
            let _ = writeln!(
                svg,
                "<line class=\"axis\" x1=\"{x:.1}\" y1=\"{bottom:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>",
                bottom + 5.0
            );
            let half = words.chars().count() as f64 * LETTER / 2.0;
            if x - half >= last + TICK_GAP {
                last = x + half;
                let _ = writeln!(
                    svg,
                    "<text class=\"tick middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                    bottom + 19.0,
                    escape(words)
                );
            }
        }
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            frame.left, frame.top, frame.width, frame.height
        );
        if let Some(gap) = x_scale.gap() {
            draw_break(svg, frame.x(gap), bottom);
        }
        if let Some(gap) = y_scale.gap() {
            draw_break(svg, frame.left, frame.y(gap));
        }
        let middle = frame.x(0.5);
        let _ = writeln!(
            svg,
            "<text class=\"label middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
            bottom + 42.0,
            escape(&self.x_label)
        );
        if let (Some((per, words)), Scale::Log(low, high, _)) = (&self.x_per, x_scale) {
            for tick in Scale::Log(low / per, high / per, false).ticks() {
                let Some(share) = x_scale.place(tick * per) else { continue };
                let x = frame.x(share);
                let _ = writeln!(
                    svg,
                    "<line class=\"axis\" x1=\"{x:.1}\" y1=\"{0:.1}\" x2=\"{x:.1}\" y2=\"{1:.1}\"/><text class=\"tick \
                     small middle\" x=\"{x:.1}\" y=\"{2:.1}\">{3}</text>",
                    frame.top,
                    frame.top - 4.0,
                    frame.top - 8.0,
                    escape(&short(tick))
                );
            }
            let _ = writeln!(
                svg,
                "<text class=\"tick small end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                right,
                frame.top - 22.0,
                escape(words)
            );
        }
    }

    fn draw_line(&self, svg: &mut String, line: &Line, frame: &Frame, x_scale: &Scale, y_scale: &Scale) {
        let class = class(line.color);
        let points = line.points.iter().map(|&(x, y, _)| y.map(|y| (x, y)));
        let path = path(points, frame, x_scale, y_scale);
        let _ = writeln!(svg, "<path class=\"series {class}\" d=\"{path}\"/>");
        for (x, y, interval) in &line.points {
            let Some(y) = y else { continue };
            let (Some(at), Some(up)) = (x_scale.place(*x), y_scale.place(*y)) else { continue };
            let words = self.x.iter().find(|(value, _)| value == x).map_or(String::new(), |(_, w)| w.clone());
            let range = interval.map_or(String::new(), |interval| {
                format!(" ({} to {})", short(interval.low), short(interval.high))
            });
            let title = format!("{}, {words}: {}{range}", line.name, short(*y));
            let _ = writeln!(
                svg,
                "<path class=\"marker {class}\" d=\"{}\"><title>{}</title></path>",
                marker(line.color, frame.x(at), frame.y(up)),
                escape(&title)
            );
        }
        for mark in &line.marks {
            let Some(at) = x_scale.place(*mark) else { continue };
            let (x, y) = (frame.x(at), frame.y(0.0));
            let _ = writeln!(
                svg,
                "<path class=\"mark {class}\" d=\"M{x:.1},{y:.1} l-5,-10 h10 z\"><title>{}</title></path>",
                escape(&format!("{} crosses the baseline at {}", line.name, super::axis::span(*mark)))
            );
        }
    }

    fn draw_legend(&self, svg: &mut String, x: f64, y: f64, letters: usize) {
        let mut y = y;
        for line in &self.lines {
            let class = class(line.color);
            let _ = writeln!(
                svg,
                "<path class=\"series {class}\" d=\"M{x:.1},{y:.1} h26\"/><path class=\"marker {class}\" d=\"{}\"/><text \
                 class=\"key\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                marker(line.color, x + 13.0, y),
                x + 33.0,
                y + 4.0,
                escape(&cut(&line.name, letters))
            );
            y += LEGEND_STEP;
        }
        for (index, line) in self.theory.iter().enumerate() {
            let _ = writeln!(
                svg,
                "<path class=\"theory t{}\" d=\"M{x:.1},{y:.1} h26\"/><text class=\"key\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                index % DASHES,
                x + 33.0,
                y + 4.0,
                escape(&cut(&line.name, letters))
            );
            y += LEGEND_STEP;
        }
    }
}

/// Letters of a name that the legend has room for.
const LEGEND_LETTERS: usize = 27;
/// Letters that would have room where the mark before a name is.
const LEGEND_MARK: usize = 6;

/// How wide a name of a legend is, about and at most: capital letters are wide.
pub(super) fn name_width(name: &str) -> f64 {
    name.chars().map(|letter| if letter.is_uppercase() { 9.7 } else { 7.0 }).sum()
}

/// As much of a name as there is room for.
pub(crate) fn cut(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_string();
    }
    name.chars().take(letters - 1).chain(['\u{2026}']).collect()
}

/// Two strokes across the axis.
fn draw_break(svg: &mut String, x: f64, y: f64) {
    let _ = writeln!(
        svg,
        "<rect class=\"sheet\" x=\"{:.1}\" y=\"{:.1}\" width=\"5\" height=\"8\"/><path class=\"axis\" d=\"M{:.1},{:.1} l4,-10 \
         M{:.1},{:.1} l4,-10\"/>",
        x - 2.5,
        y - 4.0,
        x - 4.5,
        y + 5.0,
        x + 0.5,
        y + 5.0
    );
}

/// The way through points; where one is missing, or zero is left behind, a new way begins.
fn path(
    points: impl Iterator<Item = Option<(f64, f64)>>,
    frame: &Frame,
    x_scale: &Scale,
    y_scale: &Scale,
) -> String {
    let mut path = String::new();
    let mut pen_down = false;
    for point in points {
        let place = point.and_then(|(x, y)| Some((x_scale.place(x)?, y_scale.place(y)?)));
        let Some((x, y)) = place else {
            pen_down = false;
            continue;
        };
        let _ = write!(path, "{}{:.1},{:.1}", if pen_down { 'L' } else { 'M' }, frame.x(x), frame.y(y));
        pen_down = true;
    }
    path
}

fn draw_band(svg: &mut String, line: &Line, frame: &Frame, x_scale: &Scale, y_scale: &Scale) {
    let corner = |x: f64, y: f64| Some((frame.x(x_scale.place(x)?), frame.y(y_scale.place(y)?)));
    let mut above = Vec::new();
    let mut below = Vec::new();
    for (x, _, interval) in &line.points {
        let Some(interval) = interval else { continue };
        if let (Some(high), Some(low)) = (corner(*x, interval.high), corner(*x, interval.low)) {
            above.push(high);
            below.push(low);
        }
    }
    if above.len() < 2 {
        return;
    }
    let corners: Vec<String> =
        above.iter().chain(below.iter().rev()).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(svg, "<polygon class=\"band {}\" points=\"{}\"/>", class(line.color), corners.join(" "));
}

/// The classes of the color, marker and dash of a line.
pub(super) fn class(color: usize) -> String {
    // Where colors repeat, dashes do not.
    format!("c{} d{}", color % COLORS, (color / 2 + color / COLORS) % 3)
}

/// The outline of a marker: circle, square, triangle, diamond, triangle down, cross.
pub(super) fn marker(color: usize, x: f64, y: f64) -> String {
    match (color + color / COLORS) % MARKERS {
        0 => format!("M{:.1},{y:.1} a4,4 0 1,0 8,0 a4,4 0 1,0 -8,0 z", x - 4.0),
        1 => format!("M{:.1},{:.1} h7.4 v7.4 h-7.4 z", x - 3.7, y - 3.7),
        2 => format!("M{x:.1},{:.1} l4.8,8.6 h-9.6 z", y - 5.0),
        3 => format!("M{x:.1},{:.1} l5.2,5.2 l-5.2,5.2 l-5.2,-5.2 z", y - 5.2),
        4 => format!("M{x:.1},{:.1} l4.8,-8.6 h-9.6 z", y + 5.0),
        _ => format!("M{:.1},{:.1} h3 v3.4 h3.4 v3 h-3.4 v3.4 h-3 v-3.4 h-3.4 v-3 h3.4 z", x - 1.5, y - 4.9),
    }
}

/// Stacks of parts against an axis, one drawing for each of several things.
#[derive(Clone, Debug)]
pub(crate) struct BarChart {
    pub(crate) title: String,
    pub(crate) y_label: String,
    /// What is written below the stacks.
    pub(crate) x: Vec<String>,
    /// Names of the parts, from below.
    pub(crate) parts: Vec<String>,
    /// One drawing each.
    pub(crate) panes: Vec<Pane>,
}

/// One drawing of stacks.
#[derive(Clone, Debug)]
pub(crate) struct Pane {
    /// Title above the drawing.
    pub(crate) name: String,
    /// For each place the size of each part. Drawn as shares of their sum.
    pub(crate) stacks: Vec<Vec<f64>>,
}

/// Drawings in a row.
const PANES_ACROSS: usize = 3;
const PANE_HEIGHT: f64 = 190.0;
const PANE_LEFT: f64 = 52.0;
const PANE_TOP: f64 = 84.0;

impl BarChart {
    /// The plot as SVG.
    pub(crate) fn svg(&self) -> String {
        self.drawn(Room::Page)
    }

    /// The same for a phone.
    pub(crate) fn narrow(&self) -> String {
        self.drawn(Room::Phone)
    }

    fn drawn(&self, room: Room) -> String {
        let most = if room == Room::Page { PANES_ACROSS } else { 1 };
        let across = most.min(self.panes.len().max(1));
        let pane_width = (room.width() - MARGIN) / across as f64;
        let mut svg = String::new();
        let (mut x, mut y) = (MARGIN, 36.0);
        for (index, part) in self.parts.iter().enumerate() {
            let width = 36.0 + 7.4 * part.chars().count() as f64;
            if x > MARGIN && x + width > room.width() {
                (x, y) = (MARGIN, y + LEGEND_STEP);
            }
            let _ = writeln!(
                svg,
                "<rect class=\"part p{index}\" x=\"{x:.1}\" y=\"{y}\" width=\"12\" height=\"12\"/><text class=\"key\" \
                 x=\"{:.1}\" y=\"{}\">{}</text>",
                x + 17.0,
                y + 10.0,
                escape(part)
            );
            x += width;
        }
        let label = wrapped(&self.y_label, room.letters());
        write_lines(&mut svg, "tick", &label, y + 30.0, LABEL_LINE);
        let top = PANE_TOP + y - 36.0 + LABEL_LINE * (label.len() - 1) as f64;
        for (index, pane) in self.panes.iter().enumerate() {
            let frame = Frame {
                left: (index % across) as f64 * pane_width + PANE_LEFT,
                top: top + (index / across) as f64 * (PANE_HEIGHT + 24.0) + 14.0,
                width: pane_width - PANE_LEFT - 6.0,
                height: PANE_HEIGHT - 46.0,
            };
            self.draw_pane(&mut svg, &frame, &pane.name, &pane.stacks);
        }
        let rows = self.panes.len().div_ceil(across);
        picture(room.width(), top + rows as f64 * (PANE_HEIGHT + 24.0), &self.title, &svg)
    }

    fn draw_pane(&self, svg: &mut String, frame: &Frame, name: &str, stacks: &[Vec<f64>]) {
        let _ = writeln!(
            svg,
            "<text class=\"key\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            frame.left,
            frame.top - 6.0,
            escape(&cut(name, LEGEND_LETTERS))
        );
        for percent in [0.0, 50.0, 100.0] {
            let y = frame.y(percent / 100.0);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/><text class=\"tick small end\" \
                 x=\"{:.1}\" y=\"{:.1}\">{percent} %</text>",
                frame.left,
                frame.x(1.0),
                frame.left - 6.0,
                y + 3.5,
            );
        }
        let step = frame.width / stacks.len().max(1) as f64;
        for (place, stack) in stacks.iter().enumerate() {
            let left = frame.left + place as f64 * step + step * 0.12;
            let whole: f64 = stack.iter().sum();
            let mut from = 0.0;
            for (part, size) in stack.iter().enumerate().filter(|_| whole > 0.0) {
                let share = size / whole;
                let (bottom, top) = (frame.y(from), frame.y(from + share));
                if bottom - top > 0.05 {
                    let words = format!("{:.1} %, {}", 100.0 * share, span(*size));
                    let _ = writeln!(
                        svg,
                        "<rect class=\"part p{part}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
                         <title>{}</title></rect>",
                        step * 0.76,
                        bottom - top,
                        escape(&format!("{name}, {}: {} {words}", self.x[place], self.parts[part]))
                    );
                }
                from += share;
            }
            let middle = left + step * 0.38;
            let _ = writeln!(
                svg,
                "<text class=\"tick small end\" transform=\"translate({:.1} {:.1}) rotate(-45)\">{}</text>",
                middle + 4.0,
                frame.y(0.0) + 12.0,
                escape(&self.x[place])
            );
        }
        let _ = writeln!(
            svg,
            "<line class=\"axis\" x1=\"{:.1}\" y1=\"{1:.1}\" x2=\"{2:.1}\" y2=\"{1:.1}\"/>",
            frame.left,
            frame.y(0.0),
            frame.x(1.0)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_share_a_color_have_other_dashes_and_markers() {
        for color in 0..24 {
            for other in 0..color {
                let alike = class(color) == class(other)
                    || color % COLORS == other % COLORS && marker(color, 0.0, 0.0) == marker(other, 0.0, 0.0);
                assert!(!alike, "{color} and {other}");
            }
        }
    }

    fn chart() -> LineChart {
        let interval = Interval { low: 1.0, high: 3.0 };
        LineChart {
            title: "A <title> & more".to_string(),
            x_label: "delay".to_string(),
            y_label: "wait".to_string(),
            x: [0.0, 1.0, 60.0].map(|x| (x, span(x))).to_vec(),
            x_per: Some((10.0, "delay / p_w".to_string())),
            lines: vec![Line {
                name: "st:50".to_string(),
                points: vec![
                    (0.0, Some(2.0), Some(interval)),
                    (1.0, None, None),
                    (60.0, Some(2.5), Some(interval)),
                ],
                marks: vec![30.0],
                color: 1,
            }],
            theory: vec![Theory { name: "proved".to_string(), points: vec![(0.0, 3.0), (60.0, 3.0)] }],
            y_is_time: false,
            log_from: crate::sweep::axis::LOG_FROM,
            least_possible: None,
        }
    }

    #[test]
    fn a_missing_point_breaks_the_line() {
        let svg = chart().svg();

        let line = svg.lines().find(|line| line.contains("class=\"series")).unwrap();
        let path = line.split("d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(path.matches('M').count(), 2, "{path}");
        assert!(!path.contains('L'), "{path}");
        assert_eq!(svg.matches("<title>st:50, ").count(), 2, "two points were measured");
        assert_eq!(svg.matches("class=\"mark ").count(), 1);
    }

    #[test]
    fn on_a_phone_titles_have_lines_and_the_legend_is_below() {
        let mut chart = chart();
        chart.title = "Average weighted response time, steady, against local, paired".to_string();
        let place = |svg: &str, words: &str, side: &str| -> f64 {
            let line = svg.lines().find(|line| line.contains(words)).unwrap();
            let (_, at) = line.rsplit_once("<text").unwrap().1.split_once(&format!(" {side}=\"")).unwrap();
            at.split('"').next().unwrap().parse().unwrap()
        };
        let (wide, narrow) = (chart.svg(), chart.narrow());

        assert!(wide.contains("viewBox=\"0 0 900 ") && narrow.contains("viewBox=\"0 0 340 "));
        assert_eq!([&wide, &narrow].map(|svg| svg.matches("class=\"title\"").count()), [1, 2]);
        assert!(narrow.contains("<g transform=\"translate(0 18)\">") && !wide.contains("<g "));
        assert!(place(&wide, "class=\"key\"", "x") > 600.0);
        assert!(place(&narrow, "class=\"key\"", "x") < 60.0);
        assert!(place(&narrow, "class=\"key\"", "y") > place(&narrow, ">delay</text>", "y"));
    }

    #[test]
    fn names_are_escaped() {
        let svg = chart().svg();

        assert!(svg.contains("A &lt;title&gt; &amp; more"));
        assert!(!svg.contains("<title> &"));
    }

    #[test]
    fn a_file_of_its_own_has_all_its_colors() {
        let svg = standalone(&chart().svg());

        assert!(!svg.contains("var("), "every variable has a value");
        assert!(svg.contains("stroke: #0072b2"));
        assert!(!light_style().contains("#0072b21"), "--s1 is not the beginning of --s11");
    }

    #[test]
    fn parts_of_stacks_that_have_no_room_go_to_the_next_line() {
        let parts: Vec<String> = (0..PARTS).map(|part| format!("a part of some kind {part}")).collect();
        let panes = vec![Pane { name: "st:50".to_string(), stacks: vec![vec![1.0; PARTS]] }; 2];
        let chart = BarChart {
            title: "t".to_string(),
            y_label: "s".to_string(),
            x: vec!["0".to_string()],
            parts,
            panes,
        };
        for (svg, width) in [(chart.svg(), 900.0), (chart.narrow(), 340.0)] {
            let keys = svg.lines().filter(|line| line.contains("class=\"key\"") && line.contains("a part"));
            let places: Vec<f64> = keys
                .map(|line| {
                    line.split("<text class=\"key\" x=\"")
                        .nth(1)
                        .unwrap()
                        .split('"')
                        .next()
                        .unwrap()
                        .parse()
                        .unwrap()
                })
                .collect();
            assert_eq!(places.len(), PARTS);
            assert!(places.iter().all(|x| x + 7.0 * 21.0 < width), "{width}: {places:?}");
        }
    }

    #[test]
    fn stacks_are_shares_of_their_sum() {
        let chart = BarChart {
            title: "causes".to_string(),
            y_label: "s".to_string(),
            x: vec!["0".to_string(), "1 s".to_string()],
            parts: vec!["a".to_string(), "b".to_string()],
            panes: vec![Pane { name: "st:50".to_string(), stacks: vec![vec![1.0, 3.0], vec![0.0, 2.0]] }],
        };
        let svg = chart.svg();

        let heights: Vec<f64> = svg
            .lines()
            .filter(|line| line.contains("<title>"))
            .map(|line| line.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();

        assert_eq!(heights.len(), 3, "nothing is drawn for nothing");
        assert!((heights[1] / heights[0] - 3.0).abs() < 0.02, "{heights:?}");
        assert!((heights[2] / heights[0] - 4.0).abs() < 0.02, "the whole of the second: {heights:?}");
    }
}
