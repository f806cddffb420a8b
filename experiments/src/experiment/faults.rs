//! What happens to sites during an experiment, and how others notice: `[[faults]]`, and heartbeats, suspicion and
//! lease in `[protocol]`.

use analysis::faults::{Deed, Done};
use outputs::{Missed, Why};
use protocol::Options;
use scheduler::event::{BeginCause, EndCause};
use scheduler::spelling::unknown;
use scheduler::{Grid, SiteId, Span, StrategySpec, Time, spelling};

use super::file::{Written, WrittenFault, WrittenProtocol};
use super::{ExperimentError, RunOptions, optional_span, span, wrong};

/// Something that happens to a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its place in the file, from 1.
    pub entry: usize,
    /// The site that it happens to.
    pub site: SiteId,
    /// When, in trace time.
    pub at: Time,
    /// What happens to the site.
    pub what: What,
}

/// What happens to a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Its process ends as by `kill -9`, with the jobs that it executes.
    Crash {
        /// How long until it restarts with its journal; never if none.
        down: Option<Span>,
    },
    /// Its process stands still, as by SIGSTOP.
    Pause {
        /// How long it stands still, in trace time.
        lasts: Span,
    },
    /// It gives its waiting jobs away, finishes what it executes, and takes no more.
    Leave,
    /// It is not there before.
    Join,
}

impl What {
    /// What the driver says when it has done it.
    fn done(self) -> Done {
        match self {
            What::Crash { down: Some(_) } => Done::Ended(EndCause::Crash),
            What::Crash { down: None } => Done::Ended(EndCause::Death),
            What::Pause { .. } => Done::Ended(EndCause::Pause),
            What::Leave => Done::Dismissed,
            What::Join => Done::Begun(BeginCause::Join),
        }
    }

    /// The word for it in a file.
    pub fn name(self) -> &'static str {
        match self {
            What::Crash { .. } => "crash",
            What::Pause { .. } => "pause",
            What::Leave => "leave",
            What::Join => "join",
        }
    }
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
    let and_delays = |heartbeats: Span| {
        let delays = longest.saturating_mul(2);
        Span::from_micros(heartbeats.as_micros().saturating_add(delays.as_micros()))
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
    written: &Written,
    grid: &Grid,
    strategy: &StrategySpec,
) -> Result<Vec<Fault>, ExperimentError> {
    let mut faults = Vec::with_capacity(written.faults.len());
    for (entry, fault) in (1..).zip(&written.faults) {
        let wrong = wrong(place(written, entry));
        let (site, at, what) = one(fault, grid).map_err(&wrong)?;
        faults.push(Fault { entry, site, at, what });
    }
    faults.sort_by_key(|fault| (fault.at, fault.site));
    if let Some(fault) = faults.first()
        && strategy.ideal
    {
        let reason = format!("nothing happens to the sites of {strategy}, a reference; leave the faults out");
        return Err(wrong(place(written, fault.entry))(reason));
    }
    if !strategy.strategy.nature().talks
        && let Some(fault) = faults.iter().find(|fault| matches!(fault.what, What::Leave | What::Join))
    {
        let name = &grid.site(fault.site).name;
        let reason = format!("sites of {strategy} take no jobs from {name}; write crash or pause");
        return Err(wrong(place(written, fault.entry))(reason));
    }
    for site in grid.sites().iter().map(|site| site.id) {
        in_order(&faults, grid, site).map_err(|(entry, reason)| wrong(place(written, entry))(reason))?;
    }
    let ends: Vec<&Fault> =
        faults.iter().filter(|fault| fault.is_final() && !grid.is_broker(fault.site)).collect();
    if let Some(last) = ends.last().filter(|_| ends.len() == grid.len() - grid.brokers()) {
        let name = &grid.site(last.site).name;
        let reason = format!("no other site stays to take over what {name} has; leave this entry out");
        return Err(wrong(place(written, last.entry))(reason));
    }
    Ok(faults)
}

/// The file and the entry, counted from 1.
fn place(written: &Written, entry: usize) -> String {
    match &written.path {
        Some(path) => format!("{}: faults[{entry}]", path.display()),
        None => format!("faults[{entry}]"),
    }
}

fn one(written: &WrittenFault, grid: &Grid) -> Result<(SiteId, Time, What), String> {
    let site = grid.sites().iter().find(|site| site.name == written.site);
    let Some(site) = site else {
        let names: Vec<&str> = grid.sites().iter().map(|site| site.name.as_str()).collect();
        let hint = spelling::hint(&written.site, &names);
        return Err(format!("there is no site {:?}{hint}; the grid has {}", written.site, names.join(", ")));
    };
    let reason = |error: ExperimentError| error.reason;
    let at = Time::ZERO.saturating_add(span("at", &written.at).map_err(reason)?);
    let lasts = optional_span("for", &written.lasts).map_err(reason)?;
    if lasts.is_some_and(|lasts| lasts <= Span::ZERO) {
        return Err(format!("{} is away for no time at all; write for = \"30m\"", written.site));
    }
    let what = match (written.what.as_str(), lasts) {
        ("crash", down) => What::Crash { down },
        ("pause", Some(lasts)) => What::Pause { lasts },
        ("pause", None) => {
            return Err(format!("how long {} stands still is missing; write for = \"30m\"", site.name));
        }
        ("leave", None) => What::Leave,
        ("join", None) => What::Join,
        ("leave" | "join", Some(_)) => {
            return Err(format!("{} of {} takes no time; leave out for", written.what, site.name));
        }
        (other, _) => {
            return Err(unknown("fault", other, "crash, pause, leave or join"));
        }
    };
    Ok((site.id, at, what))
}

/// A site joins before anything else happens to it, and nothing happens to one that is away. The entry that is wrong,
/// and why.
fn in_order(faults: &[Fault], grid: &Grid, site: SiteId) -> Result<(), (usize, String)> {
    let name = &grid.site(site).name;
    let mut before: Option<&Fault> = None;
    for fault in faults.iter().filter(|fault| fault.site == site) {
        let wrong = |reason: String| Err((fault.entry, reason));
        if let Some(before) = before {
            if fault.what == What::Join {
                return wrong(format!("{name} joins at {} s, after something happened to it", fault.at));
            }
            if before.is_final() {
                return wrong(format!(
                    "{name} is gone for good at {} s, but there is more at {} s",
                    before.at, fault.at
                ));
            }
            if before.until().is_some_and(|until| fault.at < until) {
                return wrong(format!(
                    "at {} s {name} is still away because of the fault at {} s",
                    fault.at, before.at
                ));
            }
        }
        before = Some(fault);
    }
    Ok(())
}

/// Whether the grid can cope with what happens.
pub(super) fn check(
    written: &Written,
    faults: &[Fault],
    options: &Options,
    run: &RunOptions,
) -> Result<(), ExperimentError> {
    for fault in faults {
        let wrong = wrong(place(written, fault.entry));
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
        if fault.what == What::Leave && options.lease.is_none() {
            let reason = "what is on its way to a site that leaves must be taken over; write lease = \"1h\" under \
                          [protocol]";
            return Err(wrong(reason.into()));
        }
        if fault.what == (What::Crash { down: None }) && options.lease.is_none() {
            let reason = "a crash for good loses jobs unless they are taken over; write lease = \"1h\" under [protocol]";
            return Err(wrong(reason.into()));
        }
    }
    Ok(())
}

/// Which faults never happened, by what the driver says that it did.
pub fn missed(faults: &[Fault], grid: &Grid, deeds: &[Deed]) -> Vec<Missed> {
    let mut left: Vec<Option<&Deed>> = deeds.iter().map(Some).collect();
    let mut missed = Vec::new();
    for fault in faults {
        let is_it =
            |deed: &&Deed| deed.site == fault.site && deed.at >= fault.at && deed.what == fault.what.done();
        if let Some(done) = left.iter_mut().find(|deed| deed.as_ref().is_some_and(is_it)) {
            *done = None;
            continue;
        }
        let mut before = deeds.iter().rev().filter(|deed| deed.site == fault.site && deed.at <= fault.at);
        let is_away = before.next().is_some_and(|deed| !matches!(deed.what, Done::Begun(_)));
        let over = fault.what == What::Join || !is_away;
        missed.push(Missed {
            entry: fault.entry,
            site: grid.site(fault.site).name.clone(),
            what: fault.what.name(),
            at: fault.at,
            why: if over { Why::RunOver } else { Why::SiteAway },
        });
    }
    missed
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
                    "{COPES}faults = [{{ site = \"site2\", what = \"crash\", at = \"2h\" }}, \
                     {{ site = \"site1\", what = \"leave\", at = \"1h\" }}]"
                ),
                "faults[1]: no other site stays to take over what site2 has",
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

    #[test]
    fn an_error_names_the_file_and_the_entry_that_is_wrong() {
        let entry = |site: &str, what: &str, at: &str| {
            format!("[[faults]]\nsite = \"{site}\"\nwhat = \"{what}\"\nat = \"{at}\"\n")
        };
        let head = "grid.sizes = [8, 2]\nworkload.trace = \"none.swf\"\nnode.journal = \"process\"\n\
                    protocol = { heartbeat = \"1m\", lease = \"1h\" }\n";
        let of = |faults: [String; 2]| {
            let text = format!("{head}{}", faults.concat());
            let written = Written::parse(&text, std::path::Path::new("some/crashes.toml")).unwrap();
            Experiment::resolve(&written).unwrap_err().to_string()
        };
        // The order of entries is not that of time.
        for (faults, expected) in [
            (
                [entry("site1", "leave", "2h"), entry("site2", "explode", "1h")],
                "understand some/crashes.toml: faults[2]: unknown fault \"explode\"; use crash, pause, leave or join",
            ),
            (
                [entry("site1", "crash", "2h"), entry("site1", "leave", "1h")],
                "understand some/crashes.toml: faults[1]: site1 is gone for good at 3600 s, but there is more at 7200 s",
            ),
            (
                [entry("site1", "leave", "1h"), entry("site2", "leave", "often")],
                "understand some/crashes.toml: faults[2]: \"often\" is not a time",
            ),
        ] {
            let error = of(faults);
            assert!(error.starts_with(expected), "{error}");
        }
        let text = format!("{head}{}", entry("site2", "crash", "1h")).replace("\"process\"", "\"disk\"");
        let text = text.replace(", lease = \"1h\"", "");
        let written = Written::parse(&text, std::path::Path::new("c.toml")).unwrap();
        let error = Experiment::resolve(&written).unwrap_err().to_string();
        assert!(error.starts_with("understand c.toml: faults[1]: a crash for good loses jobs"), "{error}");
        let written =
            Written::parse(&text.replace("crash", "leave"), std::path::Path::new("c.toml")).unwrap();
        let error = Experiment::resolve(&written).unwrap_err().to_string();
        assert!(error.starts_with("understand c.toml: faults[1]: what is on its way to a site"), "{error}");
    }

    #[test]
    fn a_fault_that_the_driver_does_not_tell_of_never_happened() {
        let grid = Grid::of_sizes(&[2, 8]).unwrap();
        let seconds = Time::from_secs;
        let fault = |entry, site, at, what| Fault { entry, site: SiteId(site), at: seconds(at), what };
        let down = Some(Span::from_secs(10));
        let faults = [
            fault(3, 1, 10, What::Crash { down }),
            fault(1, 1, 30, What::Crash { down }),
            fault(2, 2, 40, What::Crash { down: None }),
            fault(4, 2, 50, What::Pause { lasts: Span::from_secs(1) }),
            fault(5, 1, 60, What::Leave),
        ];
        let deed = |site, at, what| Deed { site: SiteId(site), at: seconds(at), what };
        let deeds = [
            deed(1, 10, Done::Ended(EndCause::Crash)),
            deed(1, 20, Done::Begun(BeginCause::Restart)),
            deed(2, 35, Done::Ended(EndCause::Found)),
            // A real process is killed a little late.
            deed(1, 61, Done::Dismissed),
        ];
        let found: Vec<_> = missed(&faults, &grid, &deeds).iter().map(|m| (m.entry, m.what, m.why)).collect();
        assert_eq!(
            found,
            [(1, "crash", Why::RunOver), (2, "crash", Why::SiteAway), (4, "pause", Why::SiteAway)]
        );
        let join = [fault(1, 2, 90, What::Join)];
        let absent = [deed(2, 0, Done::Ended(EndCause::Absent))];
        assert_eq!(missed(&join, &grid, &absent)[0].why, Why::RunOver);
        assert_eq!(missed(&join, &grid, &[deed(2, 91, Done::Begun(BeginCause::Join))]), []);
    }
}
