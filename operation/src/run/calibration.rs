//! Before the clocks start: what the network underneath adds to each directed link, and whether that leaves the
//! configured delays what they are.
//!
//! Each node measures round trips of small frames to all others over the connections that the run uses. Half of the
//! median is the *intrinsic* delay. At K times the wall clock, **effective = configured + intrinsic × K**. A link is
//! out of tolerance if the second part is more than a share of the first, and more than [`FLOOR`]. Links without
//! configured delay have nothing to keep to.

use std::path::Path;

use anyhow::Context as _;
use experiments::drive::Ended;
use links::Model;
use node::control::api::Calibration as Measured;
use outputs::csv_cell;
use outputs::table::Table;
use report::Format;
use scheduler::{Grid, SiteId, Span, Time};

/// Round trips per directed link.
pub const ROUNDS: usize = 15;
/// In trace time: what is less never matters. A tenth of the second in which workload logs count.
pub const FLOOR: Span = Span::from_micros(100_000);
/// Links that are named when they are out of tolerance.
const NAMED_MAX: usize = 5;

/// One directed link. On the wall clock, in microseconds, but for what is configured.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    from: SiteId,
    to: SiteId,
    rounds: usize,
    least: u64,
    median: u64,
    most: u64,
    configured: Span,
}

/// All directed links of a grid at one factor of the clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    factor: f64,
    /// How much of a configured delay the network may add, in percent.
    tolerance: f64,
    pairs: Vec<Pair>,
    /// Links on which not every round trip came back.
    silent: Vec<(SiteId, SiteId)>,
}

impl Calibration {
    /// Sets what was measured beside what is configured for the beginning of the run.
    pub fn new(
        measured: &[Measured],
        model: &Model,
        begin: Time,
        factor: f64,
        tolerance: f64,
    ) -> Calibration {
        let (mut pairs, mut silent) = (Vec::new(), Vec::new());
        for site in measured {
            for link in &site.links {
                let (from, to) = (site.site, link.to);
                if link.micros.len() < ROUNDS {
                    silent.push((from, to));
                }
                let Some(median) = link.median_us() else { continue };
                pairs.push(Pair {
                    from,
                    to,
                    rounds: link.micros.len(),
                    least: link.micros.iter().copied().min().unwrap_or(median),
                    median,
                    most: link.micros.iter().copied().max().unwrap_or(median),
                    configured: model.link(begin, from, to).mean(),
                });
            }
        }
        pairs.sort_by_key(|pair| (pair.from, pair.to));
        silent.sort_unstable();
        Calibration { factor, tolerance, pairs, silent }
    }

    /// What the network adds to messages of a link, in seconds of trace time.
    fn added(&self, pair: &Pair) -> f64 {
        pair.median as f64 / 2e6 * self.factor
    }

    /// The most that it may add, in seconds of trace time; no limit without a configured delay.
    fn limit(&self, pair: &Pair) -> f64 {
        match pair.configured {
            Span::ZERO => f64::INFINITY,
            configured => (configured.as_secs_f64() * self.tolerance / 100.0).max(FLOOR.as_secs_f64()),
        }
    }

    fn within(&self, pair: &Pair) -> bool {
        self.added(pair) <= self.limit(pair)
    }

    /// The link whose limit is exceeded most, or reached most nearly.
    fn worst(&self) -> Option<&Pair> {
        let share = |pair: &Pair| self.added(pair) / self.limit(pair);
        self.pairs.iter().max_by(|a, b| share(a).total_cmp(&share(b)))
    }

    /// Writes `calibration.csv`: a row for each directed link.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path, grid: &Grid) -> anyhow::Result<()> {
        std::fs::write(path, self.csv(grid)).with_context(|| format!("failed to write {}", path.display()))
    }

    fn csv(&self, grid: &Grid) -> String {
        let mut text = "from,to,rounds,rtt_min_wall_s,rtt_p50_wall_s,rtt_max_wall_s,intrinsic_wall_s,\
                        intrinsic_s,configured_s,effective_s,within\n"
            .to_string();
        for pair in &self.pairs {
            let wall = |micros: f64| format!("{:.6}", micros / 1e6);
            let (added, configured) = (self.added(pair), pair.configured.as_secs_f64());
            let row = [
                csv_cell::text(&grid.site(pair.from).name),
                csv_cell::text(&grid.site(pair.to).name),
                pair.rounds.to_string(),
                wall(pair.least as f64),
                wall(pair.median as f64),
                wall(pair.most as f64),
                wall(pair.median as f64 / 2.0),
                format!("{added:.6}"),
                format!("{configured:.6}"),
                format!("{:.6}", configured + added),
                self.within(pair).to_string(),
            ];
            text += &row.join(",");
            text.push('\n');
        }
        text
    }

    /// All links, for people or for programs.
    ///
    /// # Errors
    /// None but those of the JSON library, which plain data does not cause.
    pub fn show(&self, grid: &Grid, format: Format) -> anyhow::Result<String> {
        let name = |site: SiteId| grid.site(site).name.clone();
        Ok(match format {
            Format::Csv => self.csv(grid),
            Format::Json => {
                let of_pair = |pair: &Pair| {
                    serde_json::json!({
                        "from": name(pair.from),
                        "to": name(pair.to),
                        "rounds": pair.rounds,
                        "rtt_p50_wall_s": pair.median as f64 / 1e6,
                        "intrinsic_s": self.added(pair),
                        "configured_s": pair.configured.as_secs_f64(),
                        "effective_s": pair.configured.as_secs_f64() + self.added(pair),
                        "within": self.within(pair),
                    })
                };
                let pairs: Vec<_> = self.pairs.iter().map(of_pair).collect();
                let all = serde_json::json!({
                    "factor": self.factor, "tolerance_percent": self.tolerance, "links": pairs,
                });
                serde_json::to_string_pretty(&all)? + "\n"
            }
            Format::Terminal => self.table(grid).text() + &self.line(grid) + "\n",
            Format::Markdown => self.table(grid).markdown() + "\n" + &self.line(grid) + "\n",
        })
    }

    /// All links, as a table.
    pub fn table(&self, grid: &Grid) -> Table {
        let header =
            ["from", "to", "round trip, wall ms", "intrinsic × K, s", "configured, s", "effective, s", ""];
        let mut table = Table::new(header).with_left(1).with_left(6);
        for pair in &self.pairs {
            let (added, configured) = (self.added(pair), pair.configured.as_secs_f64());
            table.push([
                grid.site(pair.from).name.clone(),
                grid.site(pair.to).name.clone(),
                format!("{:.3}", pair.median as f64 / 1e3),
                format!("{added:.3}"),
                format!("{configured:.3}"),
                format!("{:.3}", configured + added),
                if self.within(pair) { "" } else { "OUT OF TOLERANCE" }.to_string(),
            ]);
        }
        table
    }

    /// A line for the summary.
    pub fn line(&self, grid: &Grid) -> String {
        let Some(worst) = self.worst() else { return "calibration: no links".to_string() };
        let (added, configured) = (self.added(worst), worst.configured.as_secs_f64());
        let medians = || self.pairs.iter().map(|pair| pair.median);
        let (least, most) = (medians().min().unwrap_or(0), medians().max().unwrap_or(0));
        let range = format!("{:.2} to {:.2} ms", least as f64 / 1e3, most as f64 / 1e3);
        let links = format!(
            "calibration: {} links, round trips of {range} on the wall clock; worst {} to {}: configured \
             {configured:.3} s, effective {:.3} s",
            self.pairs.len(),
            grid.site(worst.from).name,
            grid.site(worst.to).name,
            configured + added,
        );
        if worst.configured == Span::ZERO {
            return format!("{links} (no delay is configured, so there is no tolerance)");
        }
        let verdict = if self.within(worst) { "within" } else { "OUTSIDE" };
        format!("{links}, {verdict} the tolerance of {} %", self.tolerance)
    }

    /// Adds the line and the table to what is known of the run.
    pub fn tell(&self, grid: &Grid, ended: &mut Ended) {
        ended.lines.insert(0, self.line(grid));
        ended.calibration = Some(self.table(grid));
    }

    /// Why the run should not be: links that are silent, or out of tolerance.
    pub fn refusal(&self, grid: &Grid) -> Option<String> {
        let name = |site: SiteId| &grid.site(site).name;
        if !self.silent.is_empty() {
            let links: Vec<String> =
                self.silent.iter().map(|&(from, to)| format!("{} to {}", name(from), name(to))).collect();
            return Some(format!(
                "calibrate the links: no answer over {}; see the logs of these nodes",
                shortened(&links)
            ));
        }
        let out: Vec<&Pair> = self.pairs.iter().filter(|pair| !self.within(pair)).collect();
        let slow = |pair: &&Pair| {
            format!(
                "{} to {}: configured {:.3} s, the network adds {:.3} s",
                name(pair.from),
                name(pair.to),
                pair.configured.as_secs_f64(),
                self.added(pair)
            )
        };
        let links: Vec<String> = out.iter().map(slow).collect();
        let factor = self.kept_factor()?;
        Some(format!(
            "keep to the configured delays on {} of {} links at {} times the wall clock, tolerance {} %\n  {}\nuse a \
             smaller factor, as in --clock scaled:{}, longer delays, virtual time (--clock virtual), or allow more \
             with --calibration-tolerance (run.calibration_tolerance)",
            out.len(),
            self.pairs.len(),
            self.factor,
            self.tolerance,
            shortened(&links).replace("; ", "\n  "),
            rounded_down(factor)
        ))
    }

    /// The factor at which the worst link that is out of tolerance would just be within; nothing if none is.
    fn kept_factor(&self) -> Option<f64> {
        let out = self.pairs.iter().filter(|pair| !self.within(pair));
        out.map(|pair| self.factor * self.limit(pair) / self.added(pair)).reduce(f64::min)
    }

    /// A slower clock with which the links would be within, and half as late as they may be, if they are not at this one. Nothing
    /// where a link is silent.
    pub fn slower(&self) -> Option<f64> {
        self.kept_factor().filter(|_| self.silent.is_empty()).map(|factor| rounded_down(factor / 2.0))
    }
}

fn shortened(links: &[String]) -> String {
    let mut text = links.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
    if links.len() > NAMED_MAX {
        text += &format!("; and {} more", links.len() - NAMED_MAX);
    }
    text
}

/// To one digit, with something to spare.
fn rounded_down(factor: f64) -> f64 {
    one_digit(factor * 0.8)
}

/// Rounded down to one digit, as factors of the clock are written.
pub fn one_digit(factor: f64) -> f64 {
    let unit = 10f64.powf(factor.log10().floor());
    (factor / unit).floor().max(1.0) * unit
}

#[cfg(test)]
mod tests {
    use node::control::api::RoundTrips;

    use super::*;

    /// Two sites with round trips of 2 ms there and 4 ms back.
    fn calibration(delay: Span, factor: f64, tolerance: f64) -> Calibration {
        let of_site = |site, to, micros| Measured {
            site: SiteId(site),
            links: vec![RoundTrips { to: SiteId(to), micros: vec![micros; ROUNDS] }],
        };
        let measured = [of_site(1, 2, 2000), of_site(2, 1, 4000)];
        Calibration::new(&measured, &Model::constant(delay), Time::ZERO, factor, tolerance)
    }

    fn grid() -> Grid {
        Grid::of_sizes(&[2, 8]).unwrap()
    }

    #[test]
    fn effective_is_configured_plus_half_a_round_trip_times_the_factor() {
        let calibration = calibration(Span::from_secs(100), 1000.0, 10.0);
        let csv = calibration.csv(&grid());
        let rows: Vec<&str> = csv.lines().skip(1).collect();
        assert_eq!(
            rows[0],
            "site1,site2,15,0.002000,0.002000,0.002000,0.001000,1.000000,100.000000,101.000000,true"
        );
        assert!(rows[1].ends_with("0.002000,2.000000,100.000000,102.000000,true"), "{}", rows[1]);
        let line = calibration.line(&grid());
        assert!(
            line.contains("worst site2 to site1: configured 100.000 s, effective 102.000 s, within"),
            "{line}"
        );
        assert_eq!(calibration.refusal(&grid()), None);
    }

    /// An experiment of others names its sites.
    #[test]
    fn a_site_is_no_formula() {
        let grid = Grid::new([("-1+1".to_string(), 4), ("+a".to_string(), 4)]).unwrap();
        let csv = calibration(Span::ZERO, 1.0, 10.0).csv(&grid);
        let rows: Vec<&str> = csv.lines().skip(1).collect();
        assert!(rows[0].starts_with("'-1+1,'+a,15,"), "{csv}");
        assert!(rows[1].starts_with("'+a,'-1+1,15,"), "{csv}");
    }

    #[test]
    fn a_link_beyond_the_tolerance_is_named_with_what_to_try() {
        let calibration = calibration(Span::from_secs(15), 1000.0, 10.0);
        let refusal = calibration.refusal(&grid()).unwrap();
        assert!(refusal.contains("on 1 of 2 links at 1000 times"), "{refusal}");
        assert!(
            refusal.contains("site2 to site1: configured 15.000 s, the network adds 2.000 s"),
            "{refusal}"
        );
        assert!(refusal.contains("--clock scaled:600"), "{refusal}");
        assert!(calibration.line(&grid()).contains("OUTSIDE the tolerance of 10 %"));
        // As much as that is allowed with a larger tolerance.
        assert_eq!(self::calibration(Span::from_secs(15), 1000.0, 14.0).refusal(&grid()), None);
    }

    #[test]
    fn tiny_delays_have_a_floor_and_none_have_no_tolerance() {
        // 0.1 s and 0.2 s are added.
        let refusal = calibration(Span::from_micros(10), 100.0, 10.0).refusal(&grid()).unwrap();
        assert!(refusal.contains("on 1 of 2 links"), "{refusal}");
        assert_eq!(calibration(Span::from_micros(10), 40.0, 10.0).refusal(&grid()), None);
        assert_eq!(calibration(Span::ZERO, 1e6, 10.0).refusal(&grid()), None);
    }

    #[test]
    fn a_silent_link_is_an_error() {
        let measured =
            [Measured { site: SiteId(1), links: vec![RoundTrips { to: SiteId(2), micros: vec![7] }] }];
        let calibration = Calibration::new(&measured, &Model::ZERO, Time::ZERO, 1.0, 10.0);
        assert!(calibration.refusal(&grid()).unwrap().contains("no answer over site1 to site2"));
    }
}
