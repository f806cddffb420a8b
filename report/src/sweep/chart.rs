//! Plots as SVG: lines with intervals against an axis, and stacked bars.
//!
//! A drawing names colors by class; the colors are in `plot.css`. Within a page they follow its light or dark
//! look; a file of its own carries the light ones.

use std::fmt::Write as _;

use analysis::statistics::Interval;
use outputs::table::wrapped;

use super::axis::{Scale, measured, measured_with, rounded, short, time_labels, with_unit, without_unit};
use super::metric::Unit;
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
pub(crate) const COLORS: usize = 12;
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
    /// Its look, see [`super::look`].
    pub(crate) look: usize,
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
    /// What it shows, for who cannot see it.
    pub(crate) title: String,
    /// What stands above it: of the title what the vertical axis does not say.
    pub(crate) heading: String,
    /// Both without units, which the marks decide.
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    /// Points of the horizontal axis, and how they are written, if they are.
    pub(crate) x: Vec<(f64, String)>,
    /// If given: the axis on top, whose values are those below divided by this.
    pub(crate) x_per: Option<(f64, String)>,
    pub(crate) lines: Vec<Line>,
    pub(crate) theory: Vec<Theory>,
    pub(crate) y_unit: Unit,
    /// Values that span more than this factor are shown by logarithm.
    pub(crate) log_from: f64,
    /// A value that nothing can be below, if lines may crowd there.
    pub(crate) least_possible: Option<f64>,
}

/// Where a plot is seen. Letters keep their size, so that the same drawing made smaller could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// On a page or in a file of its own, with its legend beside it.
    Page,
    /// On a screen as wide as a hand, with its legend below it.
    Phone,
    /// In print, in one column of a paper, which has a caption in place of a heading.
    Column,
}

impl Room {
    /// Of the whole picture.
    pub(super) fn width(self) -> f64 {
        match self {
            Room::Page => WIDTH,
            // What a phone leaves between the margins of the page.
            Room::Phone => 340.0,
            // As many pixels of a browser as a column has, so that sizes of letters are known in points.
            Room::Column => COLUMN_CM / 2.54 * 96.0,
        }
    }

    /// Whether the legend has no place beside the plot.
    pub(super) fn is_narrow(self) -> bool {
        self != Room::Page
    }

    /// Width of a letter beside an axis, about.
    pub(super) fn letter(self) -> f64 {
        if self == Room::Column { 5.7 } else { LETTER }
    }

    /// Of the rectangle that lines are in.
    fn height(self) -> f64 {
        match self {
            Room::Page => HEIGHT,
            Room::Phone => 240.0,
            Room::Column => 160.0,
        }
    }

    /// Between entries of the legend.
    pub(super) fn legend_step(self) -> f64 {
        if self == Room::Column { 14.0 } else { LEGEND_STEP }
    }

    /// From the mark of an entry to its name.
    fn legend_mark(self) -> f64 {
        if self == Room::Column { 25.0 } else { LEGEND_MARK }
    }

    /// As much of the size of a usual marker.
    fn marker_scale(self) -> f64 {
        if self == Room::Column { 0.7 } else { 1.0 }
    }

    /// Values written beside an axis.
    fn marks_max(self) -> usize {
        if self == Room::Column { 5 } else { usize::MAX }
    }

    /// How wide a name of a legend is, about and at most.
    pub(super) fn name_width(self, name: &str) -> f64 {
        // Letters of 10 in place of 12.
        let scale = if self == Room::Column { 10.0 / 12.0 } else { 1.0 };
        scale * name_width(name)
    }
}

/// A column of a paper in two: 3.35 inches.
const COLUMN_CM: f64 = 8.5;
pub(super) const WIDTH: f64 = 900.0;
/// Left and right of titles.
const MARGIN: f64 = 14.0;
/// Of a heading, in which drawings begin; who has none is moved up by it.
const HEADING: f64 = 22.0;
/// Of the rectangle of lines.
const HEIGHT: f64 = 316.0;
/// At most, for names of as many letters as are not cut.
const RIGHT: f64 = 235.0;
/// From a plot to its legend, and from the mark there to the name.
const LEGEND_GAP: f64 = 16.0;
const LEGEND_MARK: f64 = 33.0;
/// Below the heading, without and with an axis on top.
const TOP: f64 = 36.0;
const TOP_OF_TWO: f64 = 62.0;
/// For the marks of the horizontal axis and its label.
const BOTTOM: f64 = 56.0;
/// Also the room for half of the last mark.
const NARROW_RIGHT: f64 = 18.0;
/// From line to line of a title, and of a label.
const TITLE_LINE: f64 = 18.0;
const LABEL_LINE: f64 = 15.0;
/// Width of a letter of a title, about: it is bold.
const TITLE_LETTER: f64 = 8.4;
/// Right of an entry of the legend, if there is another.
pub(super) const ENTRY_GAP: f64 = 6.0;
/// Space between entries of the legend.
const LEGEND_STEP: f64 = 21.0;
/// Width of a letter beside an axis, about.
const LETTER: f64 = 6.4;
/// Pixels between two written values of an axis.
const TICK_GAP: f64 = 5.0;
/// Error bars of one place stand beside each other, all within the width of a marker.
const BARS_WIDTH: f64 = 5.0;

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

/// The whole picture around its content, which gives way to a heading of several lines, and moves up without one.
pub(super) fn picture(room: Room, height: f64, title: &str, heading: &str, content: &str) -> String {
    let width = room.width();
    // A paper has a caption.
    let heading = if room == Room::Column { "" } else { heading };
    let lines = match heading {
        "" => Vec::new(),
        heading => wrapped(heading, ((width - 2.0 * MARGIN) / TITLE_LETTER) as usize),
    };
    let down = if lines.is_empty() { -HEADING } else { TITLE_LINE * (lines.len() - 1) as f64 };
    let height = height + down;
    let (class, size) = match room {
        Room::Column => {
            let high = height * COLUMN_CM / width;
            (" column", format!("width=\"{COLUMN_CM}cm\" height=\"{high:.3}cm\""))
        }
        _ => ("", format!("width=\"{width}\" height=\"{height}\"")),
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot{class}\" viewBox=\"0 0 {width} {height}\" {size} role=\"img\" \
         aria-label=\"{}\">\n<rect class=\"sheet\" width=\"{width}\" height=\"{height}\"/>\n",
        escape(title)
    );
    write_lines(&mut svg, "title", &lines, 22.0, TITLE_LINE);
    let _ = match down {
        0.0 => writeln!(svg, "{content}</svg>"),
        _ => write!(svg, "<g transform=\"translate(0 {down})\">\n{content}</g>\n</svg>\n"),
    };
    svg
}

/// The label of a vertical axis along it, in lines that end at `x`; how much of the width they take.
pub(super) fn write_upwards(svg: &mut String, room: Room, frame_y: (f64, f64), label: &str) -> f64 {
    let (top, height) = frame_y;
    let lines = label_lines(room, height, label);
    for (place, line) in lines.iter().enumerate() {
        let (x, y) = (label_left(room) + LABEL_LINE * (place as f64 + 0.7), top + height / 2.0);
        let _ = writeln!(
            svg,
            "<text class=\"label middle\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\">{}</text>",
            escape(line)
        );
    }
    label_left(room) + LABEL_LINE * lines.len() as f64
}

fn label_lines(room: Room, height: f64, label: &str) -> Vec<String> {
    // It may be longer than its axis by what is above and below.
    wrapped(label, ((height + 24.0) / room.letter()) as usize)
}

/// Left of the label of a vertical axis.
fn label_left(room: Room) -> f64 {
    if room == Room::Page { MARGIN - 6.0 } else { 2.0 }
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

    pub(crate) fn drawn(&self, room: Room) -> String {
        let xs: Vec<f64> = self.x.iter().map(|(x, _)| *x).collect();
        let x_scale = Scale::of_axis(&xs);
        let y_scale = self.y_scale();
        let (ticks, unit) = self.y_marks(&y_scale, room);
        // In print an axis on top would take a tenth of the height.
        let top = if self.x_per.is_some() && room != Room::Column { TOP_OF_TWO } else { TOP };
        let mut svg = String::new();
        let label = with_unit(&self.label(&y_scale), unit.as_deref());
        let labels = write_upwards(&mut svg, room, (top, room.height()), &label);
        let widest = ticks.iter().map(|(_, words)| words.chars().count()).max().unwrap_or(0);
        let left = labels + widest as f64 * room.letter() + 14.0;
        let right = if room.is_narrow() { NARROW_RIGHT } else { self.room_of_legend() };
        let frame = Frame { left, top, width: room.width() - left - right, height: room.height() };
        self.draw_axes(&mut svg, room, &frame, (&x_scale, &y_scale), &ticks);
        for (index, theory) in self.theory.iter().enumerate() {
            let path = path(theory.points.iter().map(|&(x, y)| Some((x, y))), &frame, &x_scale, &y_scale);
            let _ = writeln!(svg, "<path class=\"theory t{}\" d=\"{path}\"/>", index % DASHES);
        }
        for (place, line) in self.lines.iter().enumerate() {
            match room {
                Room::Page | Room::Phone => draw_band(&mut svg, line, &frame, &x_scale, &y_scale),
                // Bands of several lines, each over the others, make one gray in print.
                Room::Column => {
                    let step = (BARS_WIDTH / self.lines.len() as f64).min(1.5);
                    let aside = step * (place as f64 - (self.lines.len() - 1) as f64 / 2.0);
                    draw_bars(&mut svg, line, &frame, (&x_scale, &y_scale), aside);
                }
            }
        }
        for line in &self.lines {
            self.draw_line(&mut svg, room, line, &frame, (&x_scale, &y_scale));
        }
        let bottom = frame.y(0.0) + if room == Room::Column { BOTTOM - 14.0 } else { BOTTOM };
        let height = match room {
            Room::Page => {
                let legend = self.draw_legend(&mut svg, room, (frame.x(1.0) + LEGEND_GAP, top + 8.0));
                bottom.max(top + legend + 12.0)
            }
            Room::Phone => bottom + 12.0 + self.draw_legend(&mut svg, room, (MARGIN, bottom + 8.0)),
            Room::Column => bottom + 2.0 + self.draw_legend(&mut svg, room, (6.0, bottom + 4.0)),
        };
        picture(room, height, &self.title, &self.heading, &svg)
    }

    /// Values beside the vertical axis with their words, and the unit for its label.
    fn y_marks(&self, y_scale: &Scale, room: Room) -> (Vec<(f64, String)>, Option<String>) {
        let is_time = self.y_unit == Unit::Time;
        let all = if is_time { y_scale.time_ticks() } else { y_scale.ticks() };
        let every = all.len().div_ceil(room.marks_max()).max(1);
        let ticks: Vec<f64> = all.into_iter().step_by(every).collect();
        let (words, unit) = match self.y_unit {
            Unit::Time => without_unit(&time_labels(&ticks)),
            Unit::Share => (ticks.iter().map(|tick| short(100.0 * tick)).collect(), Some("%".to_string())),
            Unit::Number => (ticks.iter().map(|tick| short(*tick)).collect(), None),
        };
        (ticks.into_iter().zip(words).collect(), unit)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let lines = self.lines.iter().map(|line| line.name.as_str());
        lines.chain(self.theory.iter().map(|line| line.name.as_str()))
    }

    /// As much as its names need, so that none of the picture is empty.
    fn room_of_legend(&self) -> f64 {
        let names = self.names().map(name_width).fold(0.0, f64::max);
        (LEGEND_GAP + LEGEND_MARK + names + MARGIN).min(RIGHT)
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

    fn draw_axes(
        &self,
        svg: &mut String,
        room: Room,
        frame: &Frame,
        (x_scale, y_scale): (&Scale, &Scale),
        ticks: &[(f64, String)],
    ) {
        let (bottom, right) = (frame.y(0.0), frame.x(1.0));
        for (tick, words) in ticks {
            let Some(share) = y_scale.place(*tick) else { continue };
            let y = frame.y(share);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\"/><text class=\"tick end\" \
                 x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                frame.left,
                frame.left - 6.0,
                y + 4.0,
                escape(words)
            );
        }
        // What has no words is only within the axis.
        let marks = || self.x.iter().filter(|(_, words)| !words.is_empty());
        let words: Vec<String> = marks().map(|(_, words)| words.clone()).collect();
        let (words, unit) = without_unit(&words);
        let mut last = f64::NEG_INFINITY;
        for ((value, _), words) in marks().zip(words) {
            let Some(share) = x_scale.place(*value) else { continue };
            let x = frame.x(share);
            let _ = writeln!(
                svg,
                "<line class=\"axis\" x1=\"{x:.1}\" y1=\"{bottom:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>",
                bottom + 5.0
            );
            let half = words.chars().count() as f64 * room.letter() / 2.0;
            if x - half >= last + TICK_GAP {
                last = x + half;
                let _ = writeln!(
                    svg,
                    "<text class=\"tick middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                    bottom + if room == Room::Column { 15.0 } else { 19.0 },
                    escape(&words)
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
            bottom + if room == Room::Column { 30.0 } else { 40.0 },
            escape(&with_unit(&self.x_label, unit.as_deref()))
        );
        if room == Room::Column {
            return;
        }
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

    /// A value of the horizontal axis as a sentence has it.
    fn x_words(&self, x: f64) -> String {
        let words: Vec<String> = self.x.iter().map(|(_, words)| words.clone()).collect();
        match (self.x.iter().find(|(value, _)| *value == x), without_unit(&words).1) {
            (Some((_, words)), Some(_)) => words.clone(),
            (Some((_, words)), None) => format!("{} {words}", self.x_label),
            // Between the marks.
            (None, Some(_)) => rounded(x),
            (None, None) => format!("{} {}", self.x_label, short(x)),
        }
    }

    fn draw_line(
        &self,
        svg: &mut String,
        room: Room,
        line: &Line,
        frame: &Frame,
        (x_scale, y_scale): (&Scale, &Scale),
    ) {
        let class = class(line.look);
        let points = line.points.iter().map(|&(x, y, _)| y.map(|y| (x, y)));
        let path = path(points, frame, x_scale, y_scale);
        let _ = writeln!(svg, "<path class=\"series {class}\" d=\"{path}\"/>");
        for (x, y, interval) in &line.points {
            let Some(y) = y else { continue };
            let (Some(at), Some(up)) = (x_scale.place(*x), y_scale.place(*y)) else { continue };
            // Two lines: a phone has no room for one.
            let title = format!(
                "{}, {}\n{}: {}",
                line.name,
                self.x_words(*x),
                self.y_label,
                measured_with(*y, *interval, self.y_unit)
            );
            let _ = writeln!(
                svg,
                "<path class=\"marker {class}\" {}><title>{}</title></path>",
                marker_at(room, line.look, frame.x(at), frame.y(up)),
                escape(&title)
            );
        }
        for mark in &line.marks {
            let Some(at) = x_scale.place(*mark) else { continue };
            let (x, y) = (frame.x(at), frame.y(0.0));
            let half = 5.0 * room.marker_scale();
            let _ = writeln!(
                svg,
                "<path class=\"mark {class}\" d=\"M{x:.1},{y:.1} l-{half},-{0} h{0} z\"><title>{1}</title></path>",
                2.0 * half,
                escape(&format!("{}: as good as the baseline at {}", line.name, self.x_words(*mark)))
            );
        }
    }

    /// In as many columns as there is room for; how high it is.
    fn draw_legend(&self, svg: &mut String, room: Room, (left, top): (f64, f64)) -> f64 {
        let mark = room.legend_mark();
        let names: Vec<String> = self.names().map(|name| cut(name, room.legend_letters())).collect();
        let widths: Vec<f64> = names.iter().map(|name| mark + room.name_width(name) + ENTRY_GAP).collect();
        let (rows, columns) = room.legend_columns(&widths, left);
        let stroke = mark - 7.0;
        for (place, name) in names.iter().enumerate() {
            let (x, y) = (columns[place / rows], top + (place % rows) as f64 * room.legend_step());
            let _ = match self.lines.get(place) {
                Some(line) => {
                    let class = class(line.look);
                    let marker = marker_at(room, line.look, x + stroke / 2.0, y);
                    write!(
                        svg,
                        "<path class=\"series {class}\" d=\"M{x:.1},{y:.1} h{stroke}\"/><path class=\"marker {class}\" {marker}/>"
                    )
                }
                None => {
                    let dash = (place - self.lines.len()) % DASHES;
                    write!(svg, "<path class=\"theory t{dash}\" d=\"M{x:.1},{y:.1} h{stroke}\"/>")
                }
            };
            let _ = writeln!(
                svg,
                "<text class=\"key\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + mark,
                y + 4.0,
                escape(name)
            );
        }
        rows as f64 * room.legend_step()
    }
}

impl Room {
    /// How many entries of a legend stand below each other, and where its columns begin: as many as there is room for.
    pub(super) fn legend_columns(self, widths: &[f64], left: f64) -> (usize, Vec<f64>) {
        let most = if self == Room::Column { 4 } else { 1 };
        let of = |columns: usize| {
            let rows = widths.len().div_ceil(columns).max(1);
            let places = widths.chunks(rows).scan(left, |x, column| {
                let here = *x;
                *x += column.iter().copied().fold(0.0, f64::max);
                Some((here, *x))
            });
            let (begins, ends): (Vec<f64>, Vec<f64>) = places.unzip();
            (rows, begins, ends.last().copied().unwrap_or(left))
        };
        let fitting = (2..=most).rev().map(of).find(|(.., end)| *end - ENTRY_GAP <= self.width());
        let (rows, begins, _) = fitting.unwrap_or_else(|| of(1));
        (rows, begins)
    }

    /// Letters of a name that its legend has room for.
    fn legend_letters(self) -> usize {
        match self {
            Room::Page => LEGEND_LETTERS,
            Room::Phone | Room::Column => {
                ((self.width() - MARGIN - self.legend_mark()) / self.letter()) as usize
            }
        }
    }
}

/// Letters of a name that the legend has room for.
const LEGEND_LETTERS: usize = 27;
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
    let _ = writeln!(svg, "<polygon class=\"band {}\" points=\"{}\"/>", class(line.look), corners.join(" "));
}

/// Intervals as strokes, so far aside from their points.
fn draw_bars(svg: &mut String, line: &Line, frame: &Frame, (x_scale, y_scale): (&Scale, &Scale), aside: f64) {
    let bar = |(x, _, interval): &(f64, Option<f64>, Option<Interval>)| {
        let (at, interval) = (x_scale.place(*x)?, (*interval)?);
        let (high, low) = (y_scale.place(interval.high)?, y_scale.place(interval.low)?);
        let x = frame.x(at) + aside;
        Some(format!("M{x:.1},{:.1}V{:.1}", frame.y(high), frame.y(low)))
    };
    let bars: String = line.points.iter().filter_map(bar).collect();
    if !bars.is_empty() {
        let _ = writeln!(svg, "<path class=\"series bar c{}\" d=\"{bars}\"/>", line.look % COLORS);
    }
}

/// The classes of the color and dash of a look.
pub(super) fn class(look: usize) -> String {
    // No two colors have one dash and one marker, so that gray print tells them apart; where colors repeat, dashes do not.
    format!("c{} d{}", look % COLORS, (look + look / MARKERS) % 3)
}

/// The place and outline of a marker, as attributes of a path.
pub(super) fn marker_at(room: Room, look: usize, x: f64, y: f64) -> String {
    match room.marker_scale() {
        1.0 => format!("d=\"{}\"", marker(look, x, y)),
        scale => {
            format!("transform=\"translate({x:.1} {y:.1}) scale({scale})\" d=\"{}\"", marker(look, 0.0, 0.0))
        }
    }
}

/// The outline of a marker: circle, square, triangle, diamond, triangle down, cross.
pub(super) fn marker(look: usize, x: f64, y: f64) -> String {
    match (look + look / COLORS) % MARKERS {
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
    /// What it shows, for who cannot see it, and what stands above it.
    pub(crate) title: String,
    pub(crate) heading: String,
    pub(crate) x_label: String,
    /// Without the percent.
    pub(crate) y_label: String,
    /// What is written below the stacks.
    pub(crate) x: Vec<String>,
    /// Names of the parts, from below, with the look of each, below [`PARTS`].
    pub(crate) parts: Vec<(String, usize)>,
    /// Of the parts.
    pub(crate) unit: Unit,
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

/// Looks of parts, by what is in the names of their columns and how the causes of waits and of the deficiency are called.
/// One cause has one color in both.
const PART_LOOKS: [(&str, usize); 12] = [
    ("full", 0),
    ("drain", 0),
    ("queue", 1),
    ("foreign", 1),
    ("ineligible", 2),
    ("lost", 2),
    ("transit", 3),
    ("asked", 4),
    ("blind", 5),
    ("offered", 6),
    ("parts", 7),
    ("total", 7),
];

/// Looks of the parts of a stack by their columns; others have what is free.
pub(crate) fn part_looks(columns: &[&str]) -> Vec<usize> {
    let known = |column: &&str| {
        let is_in = |(word, _): &&(&str, usize)| column.split('_').any(|part| part == *word);
        PART_LOOKS.iter().find(is_in).map(|(_, look)| *look)
    };
    let mut taken = [false; PARTS];
    let given: Vec<Option<usize>> = columns
        .iter()
        .map(|column| known(column).filter(|&look| !std::mem::replace(&mut taken[look], true)))
        .collect();
    let rest = |look: Option<usize>| {
        look.unwrap_or_else(|| {
            let free = taken.iter().position(|taken| !taken).unwrap_or(0);
            taken[free] = true;
            free
        })
    };
    given.into_iter().map(rest).collect()
}

/// Drawings in a row.
const PANES_ACROSS: usize = 3;
const PANE_HEIGHT: f64 = 190.0;
const PANE_HEIGHT_IN_PRINT: f64 = 150.0;
/// For its marks, and, of the first in a row, for the label.
const PANE_LEFT: f64 = 44.0;
const PANE_LABEL: f64 = 20.0;
const PANE_TOP: f64 = 66.0;

impl BarChart {
    /// The plot as SVG.
    pub(crate) fn svg(&self) -> String {
        self.drawn(Room::Page)
    }

    /// The same for a phone.
    pub(crate) fn narrow(&self) -> String {
        self.drawn(Room::Phone)
    }

    pub(crate) fn drawn(&self, room: Room) -> String {
        let most = match room {
            Room::Page => PANES_ACROSS,
            Room::Phone => 1,
            Room::Column => 2,
        };
        let across = most.min(self.panes.len().max(1));
        let pane_width = (room.width() - PANE_LABEL - 6.0) / across as f64;
        let mut svg = String::new();
        let (mut x, mut y) = (MARGIN, 36.0);
        // The squares of two lines do not touch.
        let side = room.legend_step().min(16.0) - 4.0;
        for (part, look) in &self.parts {
            let width = 30.0 + room.name_width(part);
            if x > MARGIN && x + width > room.width() {
                (x, y) = (MARGIN, y + room.legend_step());
            }
            let _ = writeln!(
                svg,
                "<rect class=\"part p{look}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{side}\" height=\"{side}\"/><text class=\"key\" \
                 x=\"{:.1}\" y=\"{}\">{}</text>",
                y + 6.0 - side / 2.0,
                x + 17.0,
                y + 10.0,
                escape(part)
            );
            x += width;
        }
        let top = PANE_TOP + y - 36.0;
        let rows = self.panes.len().div_ceil(across);
        let pane_height = if room == Room::Column { PANE_HEIGHT_IN_PRINT } else { PANE_HEIGHT };
        let step = pane_height + 24.0;
        for (index, pane) in self.panes.iter().enumerate() {
            let (column, row) = (index % across, index / across);
            let frame = Frame {
                left: PANE_LABEL + column as f64 * pane_width + PANE_LEFT,
                top: top + row as f64 * step + 14.0,
                width: pane_width - PANE_LEFT - 6.0,
                height: pane_height - 46.0,
            };
            if column == 0 {
                write_upwards(&mut svg, room, (frame.top, frame.height), &self.y_label);
            }
            self.draw_pane(&mut svg, room, &frame, pane);
        }
        let bottom = top + rows as f64 * step;
        let _ = writeln!(
            svg,
            "<text class=\"label middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            room.width() / 2.0,
            bottom + 4.0,
            escape(&self.x_label)
        );
        picture(room, bottom + 14.0, &self.title, &self.heading, &svg)
    }

    fn draw_pane(&self, svg: &mut String, room: Room, frame: &Frame, Pane { name, stacks }: &Pane) {
        let letters = ((frame.width + 6.0) / room.letter()) as usize;
        let _ = writeln!(
            svg,
            "<text class=\"key\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            frame.left,
            frame.top - 6.0,
            escape(&cut(name, letters.min(LEGEND_LETTERS)))
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
        // As many of the words below as have room beside each other.
        let every = (11.0 / step.max(1.0)).ceil() as usize;
        for (place, stack) in stacks.iter().enumerate() {
            let left = frame.left + place as f64 * step + step * 0.12;
            let whole: f64 = stack.iter().sum();
            let mut from = 0.0;
            for ((part, look), size) in self.parts.iter().zip(stack).filter(|_| whole > 0.0) {
                let share = size / whole;
                let (bottom, top) = (frame.y(from), frame.y(from + share));
                if bottom - top > 0.05 {
                    let words = format!("{:.1} %, {}", 100.0 * share, measured(*size, self.unit));
                    let _ = writeln!(
                        svg,
                        "<rect class=\"part p{look}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
                         <title>{}</title></rect>",
                        step * 0.76,
                        bottom - top,
                        escape(&format!("{name}, {}: {part} {words}", self.x[place]))
                    );
                }
                from += share;
            }
            if place % every != 0 {
                continue;
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
    use crate::sweep::axis::span;

    #[test]
    fn looks_that_share_a_color_have_other_dashes_and_markers_and_those_of_all_colors_differ_without_color() {
        let marker = |look| marker(look, 0.0, 0.0);
        let dash = |look| class(look).split(' ').nth(1).map(str::to_string);
        for look in 0..2 * COLORS {
            for other in 0..look {
                let shared = look % COLORS == other % COLORS;
                let alike = class(look) == class(other) || shared && marker(look) == marker(other);
                assert!(!alike, "{look} and {other}");
                let gray = look < COLORS && (dash(look), marker(look)) == (dash(other), marker(other));
                assert!(!gray, "{look} and {other} in gray");
            }
        }
    }

    fn chart() -> LineChart {
        let interval = Interval { low: 1.0, high: 3.0 };
        LineChart {
            title: "A <title> & more".to_string(),
            heading: "A <title> & more".to_string(),
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
                look: 1,
            }],
            theory: vec![Theory { name: "proved".to_string(), points: vec![(0.0, 3.0), (60.0, 3.0)] }],
            y_unit: Unit::Number,
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
        chart.heading = "Average weighted response time, steady, against local, paired".to_string();
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
        assert!(place(&narrow, "class=\"key\"", "y") > place(&narrow, ">delay (s, min)</text>", "y"));
    }

    /// The width that is printed and the sizes of letters give points.
    #[test]
    fn in_a_column_no_letter_is_below_seven_points_and_intervals_are_strokes() {
        let mut chart = chart();
        chart.y_unit = Unit::Time;
        let svg = standalone(&chart.drawn(Room::Column));

        let (_, after) = svg.split_once("viewBox=\"0 0 ").unwrap();
        let units: f64 = after.split(' ').next().unwrap().parse().unwrap();
        assert!(svg.contains("width=\"8.5cm\""), "{svg}");
        let points = |size: f64| size * 8.5 / units / 2.54 * 72.0;
        let sizes: Vec<f64> = svg
            .lines()
            .filter(|line| line.starts_with(".plot.column"))
            .filter_map(|line| line.split_once("font-size: ")?.1.split("px").next()?.parse().ok())
            .collect();
        assert!(sizes.len() >= 2 && sizes.iter().all(|size| points(*size) >= 7.0), "{sizes:?}");
        for class in ["title", "label", "key", "tick", "small"] {
            assert!(svg.contains(&format!(".plot.column .{class}")), "{class} has a size of its own");
        }
        assert!(!svg.contains("class=\"band") && svg.contains("class=\"series bar c1\""), "{svg}");
        assert!(!svg.contains("class=\"title\""), "a paper has a caption");
        assert!(!svg.contains("delay / p_w"));
    }

    #[test]
    fn axes_have_units_and_so_have_points() {
        let mut chart = chart();
        chart.y_unit = Unit::Time;
        for point in &mut chart.lines[0].points {
            point.1 = point.1.map(|y| 60.0 * y);
            point.2 = Some(Interval { low: 60.0, high: 240.0 });
        }
        chart.theory.clear();
        let svg = chart.svg();
        assert!(svg.contains(">wait (min)</text>") && svg.contains(">delay (s, min)</text>"), "{svg}");
        assert!(svg.contains("<title>st:50, 1 min\nwait: 2.5 min (1 to 4)</title>"), "{svg}");
        assert!(svg.contains("st:50: as good as the baseline at 30 s"));
        chart.y_unit = Unit::Share;
        assert!(chart.svg().contains(">wait (%)</text>"));
    }

    #[test]
    fn without_a_heading_the_drawing_moves_up() {
        let mut chart = chart();
        let high = |svg: &str| -> f64 {
            svg.split("viewBox=\"0 0 900 ").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let with = high(&chart.svg());
        chart.heading.clear();
        let svg = chart.svg();
        assert_eq!(high(&svg), with - HEADING);
        assert!(
            !svg.contains("class=\"title\"") && svg.contains("aria-label=\"A &lt;title&gt; &amp; more\"")
        );
    }

    #[test]
    fn a_cause_has_one_color_whatever_it_is_a_cause_of() {
        let waits = part_looks(&["wait_full_s", "wait_in_transit_s", "wait_asked_s"]);
        assert_eq!(waits, [0, 3, 4]);
        assert_eq!(part_looks(&["deficiency_in_transit_s", "deficiency_drain_s"]), [3, 0]);
        assert_eq!(part_looks(&["site_a_wait_s", "site_b_wait_s"]), [0, 1]);
        assert_eq!(part_looks(&["wait_full_s", "deficiency_drain_s"]), [0, 1], "one gives way");
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
        let parts: Vec<(String, usize)> =
            (0..PARTS).map(|part| (format!("a part of some kind {part}"), part)).collect();
        let panes = vec![Pane { name: "st:50".to_string(), stacks: vec![vec![1.0; PARTS]] }; 2];
        let chart = BarChart {
            title: "t".to_string(),
            heading: "t".to_string(),
            x_label: "delay".to_string(),
            y_label: "s".to_string(),
            x: vec!["0".to_string()],
            parts,
            unit: Unit::Time,
            panes,
        };
        for room in [Room::Page, Room::Phone, Room::Column] {
            let (svg, width) = (chart.drawn(room), room.width());
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
            assert!(
                places.iter().all(|x| x + room.name_width("a part of some kind 1") < width),
                "{width}: {places:?}"
            );
        }
    }

    #[test]
    fn stacks_are_shares_of_their_sum() {
        let chart = BarChart {
            title: "causes".to_string(),
            heading: "causes".to_string(),
            x_label: "delay".to_string(),
            y_label: "s".to_string(),
            x: vec!["0".to_string(), "1 s".to_string()],
            parts: vec![("a".to_string(), 0), ("b".to_string(), 1)],
            unit: Unit::Time,
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
