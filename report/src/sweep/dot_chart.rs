//! Names from above with values beside them: one row each, several kinds of values in it.

use std::fmt::Write as _;

use analysis::statistics::Interval;

use super::axis::{Scale, measured, measured_with, short};
use super::chart::{ENTRY_GAP, Frame, Room, class, cut, marker, marker_at, picture};
use super::metric::Unit;
use crate::page::html::escape;

/// Values of one name: for each kind one, with an interval, or none.
#[derive(Clone, Debug)]
pub(crate) struct DotRow {
    pub(crate) name: String,
    pub(crate) values: Vec<Option<(f64, Option<Interval>)>>,
}

/// Names with their values along an axis.
#[derive(Clone, Debug)]
pub(crate) struct DotChart {
    /// What it shows, for who cannot see it, and what stands above it.
    pub(crate) title: String,
    /// Of the axis.
    pub(crate) label: String,
    /// Kinds of values, with the look of each.
    pub(crate) kinds: Vec<(String, usize)>,
    pub(crate) rows: Vec<DotRow>,
    /// Lines from above to below at values that mean something.
    pub(crate) references: Vec<(String, f64)>,
    pub(crate) unit: Unit,
    /// Values that span more than this factor are shown by logarithm.
    pub(crate) log_from: f64,
}

const ROW: f64 = 21.0;
/// From the top to the legend, and from line to line of it.
const LEGEND: f64 = 44.0;
/// Room for names, and letters of a name that there is room for.
const NAMES: (f64, usize) = (250.0, 36);
/// The same on a phone.
const PHONE_NAMES: (f64, usize) = (132.0, 18);

impl DotChart {
    /// The plot as SVG, for a page and for a phone.
    pub(crate) fn drawn(&self) -> (String, String) {
        (self.svg(Room::Page), self.svg(Room::Phone))
    }

    fn svg(&self, room: Room) -> String {
        let (left, letters) = if room == Room::Page { NAMES } else { PHONE_NAMES };
        let mut svg = String::new();
        let top = self.legend(&mut svg, room);
        let frame =
            Frame { left, top, width: room.width() - left - 24.0, height: ROW * self.rows.len() as f64 };
        let values = self.rows.iter().flat_map(|row| row.values.iter().flatten());
        let ends = values.flat_map(|(value, interval)| {
            let ends = interval.map(|interval| [interval.low, interval.high]);
            ends.into_iter().flatten().chain([*value])
        });
        let all: Vec<f64> = ends.chain(self.references.iter().map(|(_, value)| *value)).collect();
        let scale = Scale::of(all.iter().copied(), self.log_from);
        let bottom = frame.y(0.0);
        self.axis(&mut svg, room, &frame, &scale);
        for (place, (_, value)) in self.references.iter().enumerate() {
            let Some(x) = scale.place(*value).map(|share| frame.x(share)) else { continue };
            let _ = writeln!(
                svg,
                "<path class=\"theory t{}\" d=\"M{x:.1},{:.1}V{bottom:.1}\"/>",
                place % 4,
                frame.top
            );
        }
        for (place, row) in self.rows.iter().enumerate() {
            let y = frame.top + (place as f64 + 0.5) * ROW;
            let _ = writeln!(
                svg,
                "<text class=\"key end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                frame.left - 10.0,
                y + 4.0,
                escape(&cut(&row.name, letters))
            );
            // What comes first lies on top.
            for (value, (kind, look)) in row.values.iter().zip(&self.kinds).rev() {
                let Some((value, interval)) = value else { continue };
                let Some(x) = scale.place(*value).map(|share| frame.x(share)) else { continue };
                if let Some((low, high)) =
                    interval.and_then(|ends| scale.place(ends.low).zip(scale.place(ends.high)))
                {
                    let _ = writeln!(
                        svg,
                        "<path class=\"series bar {}\" d=\"M{:.1},{y:.1}H{:.1}\"/>",
                        class(*look),
                        frame.x(low),
                        frame.x(high)
                    );
                }
                let words = format!("{}, {kind}: {}", row.name, measured_with(*value, *interval, self.unit));
                let _ = writeln!(
                    svg,
                    "<path class=\"marker {}\" {}><title>{}</title></path>",
                    class(*look),
                    marker_at(room, *look, x, y),
                    escape(&words)
                );
            }
        }
        picture(room, bottom + 44.0, &self.title, &self.title, &svg)
    }

    /// Kinds and references in lines below the heading; where the frame begins.
    fn legend(&self, svg: &mut String, room: Room) -> f64 {
        let (mut x, mut y) = (14.0, LEGEND);
        let mut next = |width: f64| {
            if x > 14.0 && x + width > room.width() {
                (x, y) = (14.0, y + room.legend_step());
            }
            let at = (x, y);
            x += width + ENTRY_GAP;
            at
        };
        for (kind, look) in &self.kinds {
            let (x, y) = next(26.0 + room.name_width(kind));
            let _ = writeln!(
                svg,
                "<path class=\"marker {}\" d=\"{}\"/><text class=\"key\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
                class(*look),
                marker(*look, x + 6.0, y - 4.0),
                x + 17.0,
                escape(kind)
            );
        }
        for (place, (name, value)) in self.references.iter().enumerate() {
            let words = match self.unit {
                Unit::Number => format!("{name} {}", short((value * 100.0).round() / 100.0)),
                unit => format!("{name} {}", measured(*value, unit)),
            };
            let (x, y) = next(38.0 + room.name_width(&words));
            let _ = writeln!(
                svg,
                "<path class=\"theory t{}\" d=\"M{x:.1},{:.1}h22\"/><text class=\"key\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
                place % 4,
                y - 4.0,
                x + 28.0,
                escape(&words)
            );
        }
        y + 14.0
    }

    fn axis(&self, svg: &mut String, room: Room, frame: &Frame, scale: &Scale) {
        let bottom = frame.y(0.0);
        let ticks = if self.unit == Unit::Time { scale.time_ticks() } else { scale.ticks() };
        // Marks are as wide as their words, which must not touch.
        let every = (ticks.len() as f64 * 44.0 / frame.width).ceil().max(1.0) as usize;
        for tick in ticks.into_iter().step_by(every) {
            let Some(x) = scale.place(tick).map(|share| frame.x(share)) else { continue };
            let words = if self.unit == Unit::Number { short(tick) } else { measured(tick, self.unit) };
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/><text class=\"tick middle\" \
                 x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                frame.top,
                bottom + 16.0,
                escape(&words)
            );
        }
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/><text class=\"label middle\" \
             x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            frame.left,
            frame.top,
            frame.width,
            frame.height,
            if room == Room::Page { frame.x(0.5) } else { room.width() / 2.0 },
            bottom + 33.0,
            escape(&self.label)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_a_mark_under_its_name_and_a_reference_a_line() {
        let row = |name: &str, values: [Option<f64>; 2]| DotRow {
            name: name.to_string(),
            values: values.map(|value| value.map(|value| (value, None))).to_vec(),
        };
        let chart = DotChart {
            title: "Errors".to_string(),
            label: "error".to_string(),
            kinds: vec![("whole".to_string(), 1), ("half".to_string(), 2)],
            rows: vec![row("one", [Some(0.25), Some(0.75)]), row("<two>", [Some(1.0), None])],
            references: vec![("best".to_string(), 0.5)],
            unit: Unit::Number,
            log_from: 20.0,
        };
        let (wide, narrow) = chart.drawn();
        for svg in [wide, narrow] {
            assert_eq!(svg.matches("<title>").count(), 3, "{svg}");
            assert!(svg.contains("<title>one, half: 0.75</title>") && !svg.contains("<two>"), "{svg}");
            assert!(svg.contains("best 0.5"), "{svg}");
            // In the legend and in the frame.
            assert_eq!(svg.matches("class=\"theory t0\"").count(), 2, "{svg}");
        }
    }
}
