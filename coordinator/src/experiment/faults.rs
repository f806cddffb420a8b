//! What happens to sites during an experiment, and how others notice: `[[faults]]`, and heartbeats, suspicion and
//! lease in `[protocol]`.

use protocol::Options;
use scheduler::{Grid, SiteId, Span, Strategy, StrategySpec, Time};

use super::file::{WrittenFault, WrittenProtocol};
use super::{ExperimentError, RunOptions, optional_span, span, wrong};

/// Something that happens to a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub site: SiteId,
    /// When, in trace time.
    pub at: Time,
    /// What.
    pub what: What,
}

/// What happens to a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Its process ends as by `kill -9`, with the jobs that it executes.
    Crash {
        /// How long until it begins again with its journal; never if none.
        down: Option<Span>,
    },
    /// Its process stands still, as by SIGSTOP.
    Pause {
        /// How long.
        lasts: Span,
    },
    /// It gives its waiting jobs away, finishes what it executes, and takes no more.
    Leave,
    /// It is not there before.
    Join,
}

impl Fault {
    /// When the site is back, if it was away only for a while.
    pub fn until(&self) -> Option<Time> {
        match self.what {
            What::Crash { down: Some(away) } | What::Pause { lasts: away } => {
                Some(self.at.saturating_add(away))
            }
            What::Crash { down: None } | What::Leave | What::Join => None,
        }
    }

    /// Whether the site takes no jobs from then on.
    pub fn is_final(&self) -> bool {
        matches!(self.what, What::Crash { down: None } | What::Leave)
    }
}

/// Times of the failure detector.
pub(super) struct Presence {
    pub(super) heartbeat: Option<Span>,
    pub(super) suspect_after: Span,
    pub(super) lease: Option<Span>,
}

/// So many heartbeats may be lost before a site is suspected.
const HEARTBEATS_LOST: i64 = 3;

/// When silent sites are suspected and taken over; `longest` is the largest delay.
pub(super) fn presence(given: &WrittenProtocol, longest: Span) -> Result<Presence, ExperimentError> {
    let heartbeat = optional_span("protocol.heartbeat", &given.heartbeat)?;
    let suspect_after = optional_span("protocol.suspect_after", &given.suspect_after)?;
    let lease = optional_span("protocol.lease", &given.lease)?;
    let Some(heartbeat) = heartbeat else {
        return match (suspect_after, lease) {
            (None, None) => {
                let suspect_after = Options::default().suspect_after;
                Ok(Presence { heartbeat, suspect_after, lease })
            }
            (Some(_), _) => Err(needs_heartbeat("protocol.suspect_after")),
            (None, Some(_)) => Err(needs_heartbeat("protocol.lease")),
        };
    };
    if heartbeat <= Span::ZERO {
        return Err(wrong("protocol.heartbeat")("the time between heartbeats must be positive".into()));
    }
    // A heartbeat that is under way all that time is none that is missing.
    let and_delays = |beats: Span| {
        let delays = longest.saturating_mul(2);
        Span::from_micros(beats.as_micros().saturating_add(delays.as_micros()))
    };
    let least = and_delays(heartbeat);
    let suspect_after =
        suspect_after.unwrap_or_else(|| and_delays(heartbeat.saturating_mul(HEARTBEATS_LOST)));
    if suspect_after < least {
        let reason = format!(
            "{suspect_after} s is less than a heartbeat and twice the largest delay, {least} s: sites that are \
             there would be suspected"
        );
        return Err(wrong("protocol.suspect_after")(reason));
    }
    if let Some(lease) = lease
        && lease < suspect_after
    {
        let reason = format!("{lease} s is less than suspect_after, {suspect_after} s");
        return Err(wrong("protocol.lease")(reason));
    }
    Ok(Presence { heartbeat: Some(heartbeat), suspect_after, lease })
}

fn needs_heartbeat(place: &'static str) -> ExperimentError {
    wrong(place)("nobody notices silence without heartbeats; write protocol.heartbeat, too".into())
}

/// What was written, in the order of time.
pub(super) fn resolve(
    written: &[WrittenFault],
    grid: &Grid,
    strategy: &StrategySpec,
) -> Result<Vec<Fault>, ExperimentError> {
    let mut faults: Vec<Fault> =
        written.iter().map(|fault| one(fault, grid)).collect::<Result<_, ExperimentError>>()?;
    faults.sort_by_key(|fault| (fault.at, fault.site));
    if !faults.is_empty() && strategy.ideal {
        let reason = format!("nothing happens to the sites of {strategy}, a reference; leave the faults out");
        return Err(wrong(PLACE)(reason));
    }
    if strategy.strategy == Strategy::Local
        && let Some(fault) = faults.iter().find(|fault| matches!(fault.what, What::Leave | What::Join))
    {
        let name = &grid.site(fault.site).name;
        let reason = format!("sites of {strategy} take no jobs from {name}; write crash or pause");
        return Err(wrong(PLACE)(reason));
    }
    for site in grid.sites().iter().map(|site| site.id) {
        in_order(&faults, grid, site)?;
    }
    Ok(faults)
}

const PLACE: &str = "[[faults]]";

fn one(written: &WrittenFault, grid: &Grid) -> Result<Fault, ExperimentError> {
    let wrong = wrong(PLACE);
    let site = grid.sites().iter().find(|site| site.name == written.site);
    let Some(site) = site else {
        let names: Vec<&str> = grid.sites().iter().map(|site| site.name.as_str()).collect();
        return Err(wrong(format!("there is no site {:?}; the grid has {}", written.site, names.join(", "))));
    };
    let at = Time::ZERO.saturating_add(span(PLACE, &written.at)?);
    let lasts = optional_span(PLACE, &written.lasts)?;
    if lasts.is_some_and(|lasts| lasts <= Span::ZERO) {
        return Err(wrong(format!("{} is away for no time at all; write for = \"30m\"", written.site)));
    }
    let what = match (written.what.as_str(), lasts) {
        ("crash", down) => What::Crash { down },
        ("pause", Some(lasts)) => What::Pause { lasts },
        ("pause", None) => {
            return Err(wrong(format!(
                "how long {} stands still is missing; write for = \"30m\"",
                site.name
            )));
        }
        ("leave", None) => What::Leave,
        ("join", None) => What::Join,
        ("leave" | "join", Some(_)) => {
            return Err(wrong(format!("{} of {} takes no time; leave out for", written.what, site.name)));
        }
        (other, _) => {
            return Err(wrong(format!("unknown fault {other:?}; use crash, pause, leave or join")));
        }
    };
    Ok(Fault { site: site.id, at, what })
}

/// A site joins before anything else happens to it, and nothing happens to one that is away.
fn in_order(faults: &[Fault], grid: &Grid, site: SiteId) -> Result<(), ExperimentError> {
    let name = &grid.site(site).name;
    let mut before: Option<&Fault> = None;
    for fault in faults.iter().filter(|fault| fault.site == site) {
        let wrong = wrong(PLACE);
        if let Some(before) = before {
            if fault.what == What::Join {
                return Err(wrong(format!("{name} joins at {} s, after something happened to it", fault.at)));
            }
            if before.is_final() {
                let reason = format!(
                    "{name} is gone for good at {} s, but there is more at {} s",
                    before.at, fault.at
                );
                return Err(wrong(reason));
            }
            if before.until().is_some_and(|until| fault.at < until) {
                let reason =
                    format!("at {} s {name} is still away because of the fault at {} s", fault.at, before.at);
                return Err(wrong(reason));
            }
        }
        before = Some(fault);
    }
    Ok(())
}

/// Whether the grid can cope with what happens.
pub(super) fn check(faults: &[Fault], options: &Options, run: &RunOptions) -> Result<(), ExperimentError> {
    let wrong = wrong(PLACE);
    for fault in faults {
        let (what, needs_journal) = match fault.what {
            What::Crash { down: Some(_) } => ("a crash", true),
            What::Crash { down: None } => ("a crash for good", true),
            What::Pause { .. } => ("a pause", false),
            What::Leave => ("leaving", true),
            What::Join => ("joining", true),
        };
        if needs_journal && run.journal.is_none() {
            return Err(wrong(format!("{what} needs journals; write journal = \"process\" under [node]")));
        }
        let members = matches!(fault.what, What::Leave | What::Join | What::Crash { down: None });
        if members && options.heartbeat.is_none() {
            return Err(wrong(format!("{what} must be noticed; write heartbeat = \"1m\" under [protocol]")));
        }
        if fault.what == (What::Crash { down: None }) && options.lease.is_none() {
            let reason = "a crash for good loses jobs unless they are taken over; write lease = \"1h\" under [protocol]";
            return Err(wrong(reason.into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::experiment::file::Written;

    const COPES: &str = "node.journal = \"process\"\nprotocol.heartbeat = \"1m\"\nprotocol.lease = \"1h\"\n";

    fn resolved(text: &str) -> Result<Experiment, String> {
        let mut written: Written = toml::from_str(text).unwrap();
        written.grid.sizes = Some(vec![8, 2]);
        written.workload.trace = Some("none.swf".into());
        Experiment::resolve(&written).map_err(|error| error.to_string())
    }

    #[test]
    fn faults_are_read_in_the_order_of_time() {
        let text = format!(
            "{COPES}faults = [{{ site = \"site2\", what = \"leave\", at = \"2h\" }}, \
             {{ site = \"site1\", what = \"crash\", at = \"1h\", for = \"30m\" }}, \
             {{ site = \"site1\", what = \"pause\", at = \"2h\", for = \"1m\" }}]"
        );
        let experiment = resolved(&text).unwrap();
        let whats: Vec<What> = experiment.faults.iter().map(|fault| fault.what).collect();
        let down = Some(Span::from_secs(1800));
        assert_eq!(whats, [What::Crash { down }, What::Pause { lasts: Span::from_secs(60) }, What::Leave]);
        assert_eq!(experiment.faults[0].until(), Some(Time::from_secs(5400)));
        // What is sent to a site that is away is lost.
        assert!(experiment.options.retry.is_some());
    }

    #[test]
    fn times_of_the_detector_have_defaults_that_follow_the_heartbeat_and_the_delay() {
        let experiment = resolved("protocol.heartbeat = \"1m\"\nnetwork.delay = \"10s\"").unwrap();
        assert_eq!(experiment.options.heartbeat, Some(Span::from_secs(60)));
        assert_eq!(experiment.options.suspect_after, Span::from_secs(200));
        assert_eq!(experiment.options.lease, None);
        assert_eq!(resolved("").unwrap().options.heartbeat, None);
    }

    #[test]
    fn what_nobody_could_cope_with_is_refused_with_what_to_write() {
        let of = |fault: &str| format!("faults = [{{ {fault} }}]");
        let cases = [
            (of("site = \"x\", what = \"leave\", at = \"1h\""), "the grid has site1, site2"),
            (of("site = \"site1\", what = \"explode\", at = \"1h\""), "use crash, pause, leave or join"),
            (of("site = \"site1\", what = \"pause\", at = \"1h\""), "write for"),
            (of("site = \"site1\", what = \"join\", at = \"1h\", for = \"1h\""), "leave out for"),
            (of("site = \"site1\", what = \"crash\", at = \"1h\", for = \"1h\""), "needs journals"),
            (of("site = \"site1\", what = \"leave\", at = \"soon\""), "\"soon\" is not a time"),
            ("protocol.lease = \"1h\"".to_string(), "write protocol.heartbeat"),
            ("protocol.suspect_after = \"1h\"".to_string(), "write protocol.heartbeat"),
            (
                "protocol = { heartbeat = \"1m\", suspect_after = \"61s\" }\nnetwork.delay = \"1s\""
                    .to_string(),
                "62 s",
            ),
            (
                "protocol = { heartbeat = \"1m\", lease = \"2m\" }".to_string(),
                "less than suspect_after, 180 s",
            ),
            (
                format!(
                    "node.journal = \"disk\"\nprotocol.heartbeat = \"1m\"\n{}",
                    of("site = \"site1\", what = \"crash\", at = \"1h\"")
                ),
                "write lease",
            ),
            (
                format!(
                    "{COPES}faults = [{{ site = \"site1\", what = \"leave\", at = \"1h\" }}, \
                     {{ site = \"site1\", what = \"pause\", at = \"2h\", for = \"1m\" }}]"
                ),
                "gone for good",
            ),
            (
                format!(
                    "{COPES}strategy.name = \"ideal/st:50\"\n{}",
                    of("site = \"site1\", what = \"leave\", at = \"1h\"")
                ),
                "a reference",
            ),
        ];
        for (text, expected) in cases {
            let error = resolved(&text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
