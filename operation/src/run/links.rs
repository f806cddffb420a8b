//! What the real network added to the injected delays: `links.csv`, a line for the summary, and a warning when it
//! matters.
//!
//! Effective delay = injected delay + intrinsic delay × factor of the clock. The effective one is measured by the
//! receiving node for every message, the round trip by pings.

use std::path::Path;

use anyhow::Context as _;
use experiments::experiment::jobs::Jobs;
use links::Model;
use node::control::api::{MeasuredDelay, Status};
use outputs::compared::Added;
use outputs::csv_cell;
use report::quantity::{counted, number};
use scheduler::{Grid, SiteId, Span, Time};

/// The intrinsic part of delays matters above this share of the injected delay, or of a job's mean run time.
/// Arbitrary; below it both are hard to tell from noise in any metric.
const SHARE_MAX: f64 = 0.1;

const MICROS: f64 = 1e6;

/// One directed link. Times in microseconds of trace time but for the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    from: SiteId,
    to: SiteId,
    configured: i64,
    measured: Option<MeasuredDelay>,
    /// On the wall clock.
    rtt: Option<u64>,
}

/// All directed links of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Links {
    factor: f64,
    links: Vec<Link>,
}

impl Links {
    /// As the nodes saw them.
    pub fn of(statuses: &[Status], factor: f64) -> Links {
        let mut links: Vec<Link> = statuses
            .iter()
            .flat_map(|receiver| {
                receiver.links.iter().map(|link| Link {
                    from: link.site,
                    to: receiver.site,
                    configured: link.delay_in_us,
                    measured: link.measured,
                    rtt: link.rtt_us,
                })
            })
            .collect();
        links.sort_by_key(|link| (link.from, link.to));
        Links { factor, links }
    }

    /// Of all pairs of sites, with what a function says of each: in virtual time nothing is measured, and nothing but the
    /// model delays a message.
    pub fn modelled(
        grid: &Grid,
        network: &Model,
        delay: impl Fn(SiteId, SiteId) -> Option<MeasuredDelay>,
    ) -> Links {
        let sites = || grid.sites().iter().map(|site| site.id);
        let link = |from, to| Link {
            from,
            to,
            configured: network.link(Time::ZERO, from, to).mean().as_micros(),
            measured: delay(from, to),
            rtt: None,
        };
        let pairs = sites().flat_map(|from| sites().map(move |to| (from, to)));
        let links = pairs.filter(|(from, to)| from != to).map(|(from, to)| link(from, to)).collect();
        Links { factor: 1.0, links }
    }

    /// Writes `links.csv`: one row per directed link.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path, grid: &Grid) -> anyhow::Result<()> {
        let mut text =
            "from,to,messages,configured_delay_s,delay_mean_s,delay_p50_s,delay_max_s,intrinsic_mean_s,\
                        rtt_wall_s,intrinsic_max_s\n"
                .to_string();
        for link in &self.links {
            let seconds = |micros: i64| format!("{:.6}", micros as f64 / MICROS);
            let name = |site: SiteId| csv_cell::text(&grid.site(site).name);
            let mut row = vec![name(link.from), name(link.to)];
            row.push(link.measured.map_or(0, |measured| measured.count).to_string());
            row.push(seconds(link.configured));
            match link.measured {
                Some(MeasuredDelay { mean_us, median_us, max_us, injected_mean_us, .. }) => {
                    row.extend([mean_us, median_us, max_us, mean_us - injected_mean_us].map(seconds));
                }
                None => row.extend(std::iter::repeat_n(String::new(), 4)),
            }
            row.push(link.rtt.map_or(String::new(), |rtt| format!("{:.6}", rtt as f64 / MICROS)));
            row.push(link.measured.map_or(String::new(), |measured| seconds(measured.added_max_us)));
            text.push_str(&row.join(","));
            text.push('\n');
        }
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
    }

    /// Messages, their mean injected delay, and what came on top in the mean, in seconds of trace time. `None`
    /// without messages.
    fn mean(&self) -> Option<(u64, f64, f64)> {
        let (mut messages, mut injected, mut added) = (0, 0.0, 0.0);
        for link in &self.links {
            let Some(MeasuredDelay { count, mean_us, injected_mean_us, .. }) = link.measured else {
                continue;
            };
            messages += count;
            injected += count as f64 * injected_mean_us as f64;
            added += count as f64 * (mean_us - injected_mean_us) as f64;
        }
        let per_message = MICROS * messages as f64;
        (messages > 0).then(|| (messages, injected / per_message, added / per_message))
    }

    /// What came on top, `None` without messages.
    pub fn added(&self) -> Option<Added> {
        let (_, _, mean_s) = self.mean()?;
        let most = self.links.iter().filter_map(|link| Some(link.measured?.added_max_us)).max()?;
        Some(Added { mean: Span::from_micros((mean_s * MICROS) as i64), max: Span::from_micros(most) })
    }

    /// A line for the summary.
    pub fn line(&self) -> String {
        match self.mean() {
            None => "network: no messages".to_string(),
            Some((messages, injected, added)) => format!(
                "network: {}; to an injected delay of {} s the network and the nodes added {} s in the mean \
                 ({} ms of the wall clock); see links.csv",
                counted(messages, "message"),
                number(injected),
                number(added),
                number(added / self.factor * 1e3)
            ),
        }
    }

    /// A warning if what was added changes what is measured.
    pub fn warning(&self, jobs: &Jobs) -> Option<String> {
        let (_, injected, added) = self.mean()?;
        let run_time = jobs.jobs.iter().map(|job| job.run_time.as_secs_f64()).sum::<f64>()
            / jobs.jobs.len().max(1) as f64;
        let (yardstick, of_what) = if injected > 0.0 && injected < run_time {
            (injected, "the injected delay")
        } else {
            (run_time, "the mean run time of a job")
        };
        let share = added / yardstick;
        (share > SHARE_MAX).then(|| {
            format!(
                "the network and the nodes added {added:.3} s of trace time to a message in the mean, {:.0} % of \
                 {of_what}: the run shows longer delays than the experiment asks for; try a smaller factor than \
                 {}, as in --clock scaled:{}",
                share * 100.0,
                self.factor,
                slower(self.factor, share)
            )
        })
    }
}

/// A factor at which a share of delays that matters would not.
fn slower(factor: f64, share: f64) -> f64 {
    let factor = factor * SHARE_MAX / share;
    let unit = 10f64.powf(factor.log10().floor());
    (factor / unit).floor().max(1.0) * unit
}

#[cfg(test)]
mod tests {
    use scheduler::{JobId, JobSpec, Labels, TimedJob};

    use super::*;

    /// Two links of a run at 1000 times the wall clock: 1 s injected on each, 0.5 s and 0.1 s added.
    fn links() -> Links {
        let link = |from, to, count, mean_us| Link {
            from: SiteId(from),
            to: SiteId(to),
            configured: 1_000_000,
            measured: Some(measured(count, mean_us)),
            rtt: Some(300),
        };
        Links { factor: 1000.0, links: vec![link(1, 2, 3, 1_500_000), link(2, 1, 1, 1_100_000)] }
    }

    fn measured(count: u64, mean_us: i64) -> MeasuredDelay {
        let (min_us, max_us) = (1_005_000, 2_000_000);
        MeasuredDelay {
            count,
            mean_us,
            injected_mean_us: 1_000_000,
            added_min_us: 5_000,
            added_max_us: 700_000,
            median_us: mean_us,
            min_us,
            max_us,
            overtaken: 0,
        }
    }

    fn jobs(run_time: i64) -> Jobs {
        let spec = JobSpec {
            id: JobId(1),
            submit: Time::ZERO,
            processors: 1,
            requested: Span::from_secs(run_time),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        let job = TimedJob { spec, run_time: Span::from_secs(run_time) };
        Jobs { jobs: vec![job], ..Jobs::default() }
    }

    #[test]
    fn every_link_has_a_row_also_a_silent_one() {
        let folder = std::env::temp_dir().join(format!("stealgrid-links-{}", std::process::id()));
        let mut links = links();
        links.links[1].measured = None;
        links.write(&folder, &Grid::of_sizes(&[2, 8]).unwrap()).unwrap();
        let text = std::fs::read_to_string(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        let rows: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(rows[0], "site1,site2,3,1.000000,1.500000,1.500000,2.000000,0.500000,0.000300,0.700000");
        assert_eq!(rows[1], "site2,site1,0,1.000000,,,,,0.000300,");
    }

    /// An experiment of others names its sites.
    #[test]
    fn a_site_is_no_formula() {
        let grid = Grid::new([("-1+1".to_string(), 4), ("+2".to_string(), 4)]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("links.csv");
        links().write(&path, &grid).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let rows: Vec<&str> = text.lines().skip(1).collect();
        assert!(rows[0].starts_with("'-1+1,+2,3,1.000000,"), "{text}");
        assert!(rows[1].starts_with("+2,'-1+1,1,1.000000,"), "a number is none: {text}");
    }

    #[test]
    fn means_are_over_messages() {
        let (messages, injected, added) = links().mean().unwrap();
        assert_eq!((messages, injected), (4, 1.0));
        assert!((added - 0.4).abs() < 1e-9, "{added}");
        let Added { mean, max } = links().added().unwrap();
        assert_eq!((mean.as_micros(), max.as_micros()), (400_000, 700_000));
    }

    #[test]
    fn a_warning_comes_when_the_network_matters_and_says_what_to_try() {
        let warning = links().warning(&jobs(100)).unwrap();
        assert!(warning.contains("40 % of the injected delay"), "{warning}");
        assert!(warning.ends_with("--clock scaled:200"), "{warning}");
        // Jobs shorter than the injected delay are the measure then.
        assert!(links().warning(&jobs(1)).unwrap().contains("run time of a job"));

        let mut quick = links();
        for link in &mut quick.links {
            link.measured = Some(measured(1, 1_010_000));
        }
        assert_eq!(quick.warning(&jobs(100)), None);
    }
}
