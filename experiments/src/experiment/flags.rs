//! The flags that `simulate` and `run` share: an experiment without a file, or changes to one.

use std::path::PathBuf;

use clap::Args;

use super::file::{FileError, Written, WrittenBrokers, WrittenLog};
use super::suggested::{LOCALS, NETWORKS, STRATEGIES, Suggested};
use super::{ExperimentError, forecasts};
use crate::exit;
use crate::kind;

/// What to run.
#[derive(Clone, Debug, Default, Args)]
pub struct ExperimentArgs {
    /// Experiment file; the flags below change what it says
    #[arg(value_name = "EXPERIMENT.toml", env = "STEALGRID_EXPERIMENT")]
    pub experiment: Option<PathBuf>,

    /// Processors of each site, as in 2,8; or grid1, grid2, grid3: those of Quezada Pina (2012)
    #[arg(long, value_name = "P,P,…", value_parser = sizes, env = "STEALGRID_SIZES", help_heading = "Grid and workload")]
    // In full, so that clap takes it for one value.
    pub sites: Option<std::vec::Vec<u32>>,

    /// Brokers under a strategy broker:X: how many, or each: one beside each site [default: 1]
    #[arg(long, value_name = "N|each", help_heading = "Grid and workload")]
    pub brokers: Option<String>,

    /// Workload log: SWF, GWF, Batsim JSON or sacct, plain, gzip or zstd
    #[arg(long, value_name = "FILE", help_heading = "Grid and workload")]
    pub trace: Option<PathBuf>,

    /// Workload of a bag of tasks in place of a log: TOML, or XPML of the Gridbus broker. Logs of local users in the file stay
    #[arg(long, value_name = "FILE", conflicts_with = "trace", help_heading = "Grid and workload")]
    pub bag: Option<PathBuf>,

    /// Only the first so many jobs
    #[arg(long, value_name = "N", help_heading = "Grid and workload")]
    pub count: Option<usize>,

    /// Only this week of the log, 1 for its first full one
    #[arg(long, value_name = "N", help_heading = "Grid and workload")]
    pub week: Option<i64>,

    /// Only these weekdays, as in mon-fri
    #[arg(long, value_name = "DAYS", help_heading = "Grid and workload")]
    pub days: Option<String>,

    /// Only jobs submitted at this time of the log or later: 36h, or seconds
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, help_heading = "Grid and workload")]
    pub from: Option<String>,

    /// Only jobs submitted before this time of the log: 36h, or seconds
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, help_heading = "Grid and workload")]
    pub until: Option<String>,

    /// Keep the times of the log: time 0 is not the start of the part taken
    #[arg(long, help_heading = "Grid and workload")]
    pub keep_times: bool,

    /// Field that is a job's size: requested, allocated, descriptor (nodes by field 21) [default: requested]
    #[arg(long, value_name = "FIELD", help_heading = "Grid and workload")]
    pub size: Option<String>,

    /// What schedulers are told about run times: user, exact, factor:F, or what sites of local, broker:NAME, opaque:NAME and steal:NAME, and
    /// brokers that see into sites, predict from jobs that ended: avg2, last:k=5,by=mean|median|ratio, half, template:k=5, smith, li,
    /// ibl:k=3, linear, combined:by=shorter|middle, decisor:zeta=20, straight:of=NAME [default: user]
    #[arg(long, value_name = "RULE", help_heading = "Grid and workload")]
    pub estimate: Option<String>,

    /// What is thought of a job that runs past its prediction: user (its user's estimate), tsafrir (steps from a minute to
    /// 100 hours), doubling, none [default: user]
    #[arg(long, value_name = "RULE", help_heading = "Grid and workload")]
    pub correction: Option<String>,

    /// Estimate of jobs without a requested time: run-time-of-some (the run time, if other jobs have a requested time), run-time,
    /// drop, refuse, or a time as in 24h [default: run-time-of-some]
    #[arg(long, value_name = "RULE", help_heading = "Grid and workload")]
    pub missing_estimate: Option<String>,

    /// Jobs that run past their requested time: as-is, kill, extend [default: as-is]
    #[arg(long, value_name = "RULE", help_heading = "Grid and workload")]
    pub overrun: Option<String>,

    /// Jobs wider than the widest site: refuse, drop [default: refuse]
    #[arg(long, value_name = "RULE", help_heading = "Grid and workload")]
    pub too_wide: Option<String>,

    /// Where the log says that users are: site:N, queue, partition, recorded [default: it does not, see --deal]
    #[arg(long, value_name = "RULE", help_heading = "Grid and workload")]
    pub origin: Option<String>,

    /// How a log is dealt to sites that does not say where users are: processors (the least loaded by work), users (in
    /// turn), home (the smallest site wide enough) [default: processors]
    #[arg(long, value_name = "RULE", help_heading = "Grid and workload")]
    pub deal: Option<String>,

    /// local, st:X, st-greedy:X, common-pool, pool:fcfs|easy|list, steal:random|nearest|loaded|two-choices,
    /// broker:RULE (random, round-robin, ml, mlp, mpl, lbal-s, mlb, mct, mst, mwt, mwwt-s, genetic, exec=COMMAND),
    /// opaque:RULE (brokers that learn, as ag, mqd, round-robin); options as in st:50,order=bah
    /// or broker:mct,a=0.5; prefix ideal/ for the reference without messages
    /// [default: st:50]
    #[arg(long, value_name = "NAME", value_parser = Suggested(STRATEGIES), hide_possible_values = true, help_heading = "Scheduling")]
    pub strategy: Option<String>,

    /// Scheduler of local queues: fcfs, easy, easy-best-fit, easy-sjbf, easy-smallest, conservative,
    /// conservative-replan, list, exec=COMMAND
    /// [default: easy]
    #[arg(long, value_name = "NAME", value_parser = Suggested(LOCALS), hide_possible_values = true, help_heading = "Scheduling")]
    pub local: Option<String>,

    /// Whom EASY lets overtake first: arrival, sjf (the shortest by its estimate; easy-sjbf), smallest (easy-smallest), fill
    /// (easy-best-fit) [default: arrival]
    #[arg(long, value_name = "ORDER", help_heading = "Scheduling")]
    pub backfill: Option<String>,

    /// When local schedulers decide: batch, per-event [default: batch]
    #[arg(long, value_name = "RULE", help_heading = "Scheduling")]
    pub pass: Option<String>,

    /// Where jobs enter the grid: origin (the site of the user), home (the smallest site wide enough)
    /// [default: origin]
    #[arg(long, value_name = "RULE", help_heading = "Scheduling")]
    pub submit: Option<String>,

    /// How long a submission takes to get there: none, link (as long as a message on that link) [default: none]
    #[arg(long, value_name = "RULE", help_heading = "Scheduling")]
    pub submit_delay: Option<String>,

    /// One-way delay of every message, in trace time, as in 50ms [default: 0ms]
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    pub delay: Option<String>,

    /// Links: lan, metro, continental, world, or a file with the network keys
    #[arg(long, value_name = "MODEL", value_parser = Suggested(NETWORKS), hide_possible_values = true, env = "STEALGRID_NETWORK", help_heading = "Network")]
    pub network: Option<String>,

    /// How an idle site learns of work: standing, polling [default: standing]
    #[arg(long, value_name = "RULE", help_heading = "Network")]
    pub discovery: Option<String>,

    /// Give a job away only if it starts elsewhere earlier by more than this and the round trip, as in 5m
    #[arg(long, value_name = "TIME", help_heading = "Network")]
    pub margin: Option<String>,

    /// When sites tell brokers what happened: change, every:T, probe:D [default: change]
    #[arg(long, value_name = "RULE", help_heading = "Network")]
    pub report: Option<String>,

    /// Seed of everything random [default: 1]
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub seed: Option<u64>,

    /// virtual: nothing waits for the wall clock; scaled:K, for `run`: trace time is wall time times K
    /// [default: virtual for `simulate`; for `run` a scale with which it takes about 40 s]
    #[arg(long, value_name = "CLOCK", env = "STEALGRID_CLOCK", help_heading = "Run")]
    pub clock: Option<String>,

    /// Directory for results, made if missing [default: out/NAME of `run`, out/NAME-simulated of `simulate`,
    /// out/NAME-virtual of `run --clock virtual`]
    #[arg(long, value_name = "DIR", help_heading = "Outputs")]
    pub out: Option<PathBuf>,

    /// Replace results of another experiment or driver, or give up a run that `attach` could go on with
    ///
    /// Results of the same experiment and driver are replaced anyway. Files that stealgrid did not write never are.
    #[arg(long, env = "STEALGRID_REPLACE", help_heading = "Outputs")]
    pub replace: bool,

    /// Do not write events.jsonl.zst
    #[arg(long, help_heading = "Outputs")]
    pub no_events: bool,

    /// Do not write report.html
    #[arg(long, help_heading = "Outputs")]
    pub no_page: bool,

    /// Do not write schedule.swf
    #[arg(long, help_heading = "Outputs")]
    pub no_schedule: bool,

    /// Do not run the ideal reference beside it
    #[arg(long, help_heading = "Outputs")]
    pub no_ideal: bool,

    /// How the summary is printed: terminal, markdown, json, csv
    #[arg(long, value_name = "FORMAT", default_value = "terminal", help_heading = "Outputs")]
    pub format: report::Format,
}

impl ExperimentArgs {
    /// The exit code for a value that means nothing: a flag that was typed is one of usage; what a file says, or a file
    /// that cannot be read, is one of input.
    pub fn code(&self, error: &ExperimentError) -> u8 {
        if self.is_typed(error) && !error.lacks_a_file { exit::USAGE } else { exit::INPUT }
    }

    /// What is wrong: a flag that was typed, or a line of the file if that says this.
    pub fn blame(&self, error: &ExperimentError, text: Option<&str>) -> String {
        // A network is named by its flag, and is wrong in a file of its own.
        let typed = self.is_typed(error) || error.flag() == Some("--network") && self.network.is_some();
        match (&self.experiment, text) {
            (Some(path), Some(text)) if !typed => error.of_file(path, text),
            _ => error.to_string(),
        }
    }

    /// That the sites are missing because an experiment, which has some, was given for a log. Reads after "failed to".
    pub fn mistaken(&self, error: &ExperimentError) -> Option<String> {
        let path = self.trace.as_deref().filter(|_| self.experiment.is_none() && self.sites.is_none())?;
        let reason = kind::no_log(path).filter(|_| error.flag() == Some("--sites"))?;
        Some(format!("read trace {}: {reason}", path.display()))
    }

    fn is_typed(&self, error: &ExperimentError) -> bool {
        match error.flag() {
            // Without a file, a flag is what is missing.
            Some("--sites") => self.sites.is_some() || self.experiment.is_none(),
            Some("--brokers") => self.brokers.is_some(),
            Some("--report") => self.report.is_some(),
            Some("--trace") => self.trace.is_some() || self.bag.is_some() || self.experiment.is_none(),
            Some("--days") => self.days.is_some(),
            Some("--from") => self.from.is_some(),
            Some("--until") => self.until.is_some(),
            Some("--size") => self.size.is_some(),
            Some("--estimate") => self.estimate.is_some(),
            Some("--correction") => self.correction.is_some(),
            Some("--backfill") => self.backfill.is_some(),
            Some("--missing-estimate") => self.missing_estimate.is_some(),
            Some("--overrun") => self.overrun.is_some(),
            Some("--too-wide") => self.too_wide.is_some(),
            Some("--origin") => self.origin.is_some(),
            Some("--deal") => self.deal.is_some(),
            Some("--strategy") => self.strategy.is_some(),
            Some("--local") => self.local.is_some(),
            Some("--pass") => self.pass.is_some(),
            Some("--submit") => self.submit.is_some(),
            Some("--delay") => self.delay.is_some(),
            Some("--discovery") => self.discovery.is_some(),
            Some("--margin") => self.margin.is_some(),
            Some("--clock") => self.clock.is_some(),
            _ => false,
        }
    }

    /// The experiment as written: the file if there is one, changed by the flags.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn written(&self) -> Result<Written, FileError> {
        self.written_by(self.text()?.as_deref())
    }

    /// What the file says, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn text(&self) -> Result<Option<String>, FileError> {
        self.experiment.as_deref().map(Written::read).transpose()
    }

    /// The experiment as written by a file that says this, changed by the flags.
    ///
    /// # Errors
    /// If the file cannot be understood.
    pub fn written_by(&self, text: Option<&str>) -> Result<Written, FileError> {
        let mut written = match (&self.experiment, text) {
            (Some(path), Some(text)) => Written::parse(text, path)?,
            _ => Written::default(),
        };
        if let Some(sizes) = &self.sites {
            written.grid.sizes = Some(sizes.clone());
            let had = written.grid.sites.take();
            written.grid.lost_nodes = had.iter().flatten().any(|site| site.nodes.is_some());
        }
        if let Some(trace) = &self.trace {
            written.workload.trace = Some(trace.clone());
            written.workload.logs = None;
            written.workload.bag = None;
        }
        if let Some(bag) = &self.bag {
            written.workload.bag = Some(bag.clone());
            written.workload.trace = None;
            // Beside a bag there may be local users, and nobody else.
            let is_local = |logs: &mut Vec<WrittenLog>| {
                logs.iter().all(|log| log.role.as_deref() == Some("local")).then(|| std::mem::take(logs))
            };
            written.workload.logs = written.workload.logs.as_mut().and_then(is_local);
        }
        fn change<T: Clone>(place: &mut Option<T>, flag: &Option<T>) {
            if flag.is_some() {
                place.clone_from(flag);
            }
        }
        change(&mut written.workload.count, &self.count);
        change(&mut written.workload.week, &self.week);
        change(&mut written.workload.days, &self.days);
        change(&mut written.workload.from, &self.from);
        change(&mut written.workload.until, &self.until);
        change(&mut written.workload.size, &self.size);
        change(&mut written.workload.estimate, &self.estimate);
        change(&mut written.workload.correction, &self.correction);
        change(&mut written.workload.missing_estimate, &self.missing_estimate);
        change(&mut written.workload.overrun, &self.overrun);
        change(&mut written.workload.too_wide, &self.too_wide);
        change(&mut written.workload.origin, &self.origin);
        change(&mut written.workload.deal, &self.deal);
        change(&mut written.strategy.name, &self.strategy);
        change(&mut written.strategy.local, &self.local);
        change(&mut written.strategy.backfill, &self.backfill);
        forecasts::overridden(
            &mut written,
            self.estimate.is_some(),
            self.correction.is_some(),
            self.local.is_some(),
            self.backfill.is_some(),
        );
        change(&mut written.strategy.pass, &self.pass);
        change(&mut written.strategy.submit, &self.submit);
        change(&mut written.strategy.submit_delay, &self.submit_delay);
        if self.network.is_some() {
            written.network = links::Written { model: self.network.clone(), ..links::Written::default() };
        }
        if self.delay.is_some() {
            written.network.clear_base();
            written.network.delay.clone_from(&self.delay);
        }
        change(&mut written.protocol.discovery, &self.discovery);
        change(&mut written.protocol.margin, &self.margin);
        change(&mut written.protocol.report, &self.report);
        if let Some(brokers) = &self.brokers {
            written.grid.brokers = Some(WrittenBrokers::Named(brokers.clone()));
            written.brokers.clear();
        }
        change(&mut written.seed, &self.seed);
        change(&mut written.run.clock, &self.clock);
        change(&mut written.outputs.dir, &self.out);
        for (given, place) in [
            (self.no_events, &mut written.outputs.events),
            (self.no_page, &mut written.outputs.page),
            (self.no_schedule, &mut written.outputs.schedule),
            (self.no_ideal, &mut written.outputs.ideal),
        ] {
            if given {
                *place = Some(false);
            }
        }
        if self.keep_times {
            written.workload.keep_times = Some(true);
        }
        Ok(written)
    }
}

/// Sizes of sites between commas, or the name of a published grid.
///
/// # Errors
/// In words, if one is no number.
pub fn sizes(text: &str) -> Result<Vec<u32>, String> {
    // Quezada Pina (2012): tables 1 and 2, and the text for the third.
    Ok(match text {
        "grid1" => vec![100, 128, 240, 430, 1024, 1152, 1368],
        "grid2" => vec![64, 64, 64, 64, 100, 144, 240, 430, 1024],
        "grid3" => vec![4, 4, 4, 4, 8, 8, 8, 16, 16, 32, 32],
        _ => text
            .split(',')
            .map(|size| size.trim().parse().map_err(|_| size.trim()))
            .collect::<Result<_, _>>()
            .map_err(|size| {
                format!("{size:?} is no number of processors; write sizes as in 2,8, or grid1, grid2, grid3")
            })?,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: ExperimentArgs,
    }

    #[test]
    fn a_bag_takes_the_place_of_a_log_but_not_of_local_users() {
        let args = Line::try_parse_from(["simulate", "x.toml", "--bag", "b.xml"]).unwrap().args;
        let workload = |text: &str| args.written_by(Some(text)).unwrap().workload;
        let of = |role: &str| format!("[workload]\nlogs = [{{ site = \"a\", trace = \"a.swf\"{role} }}]");
        let bag = Some(PathBuf::from("b.xml"));
        let found = workload("[workload]\ntrace = \"a.swf\"");
        assert_eq!((found.trace, &found.bag), (None, &bag));
        let found = workload(&of(", role = \"local\""));
        assert_eq!((found.logs.map(|logs| logs.len()), &found.bag), (Some(1), &bag));
        let found = workload(&of(""));
        assert_eq!((found.logs.map(|logs| logs.len()), &found.bag), (None, &bag));
        assert!(Line::try_parse_from(["simulate", "--bag", "b.xml", "--trace", "a.swf"]).is_err());
    }

    #[test]
    fn sites_in_place_of_nodes_clash_with_what_is_of_nodes() {
        let sites = "[[grid.sites]]\nname = \"a\"\nnodes = 4\n";
        let refused = |flags: &[&str], key: &str| {
            let args = Line::try_parse_from(["simulate", "x.toml"].iter().chain(flags)).unwrap().args;
            let text = format!("workload.trace = \"a.swf\"\n{key}\n{sites}");
            let written = args.written_by(Some(&text)).unwrap();
            crate::experiment::Experiment::resolve(&written).map(drop).map_err(|error| error.to_string())
        };
        for key in
            ["grid.local = { share = 0.5 }", "grid.applications = \"m-cisne\"", "grid.fairness = \"max-min\""]
        {
            assert_eq!(refused(&["--strategy", "local"], key), Ok(()), "{key}");
            let error = refused(&["--sites", "2,8"], key).expect_err(key);
            let name = key.split(' ').next().unwrap_or_default();
            assert!(error.starts_with("understand --sites ([grid]): it gives sites processors"), "{error}");
            assert!(error.ends_with(&format!("leave out --sites, or {name}")), "{error}");
        }
        assert_eq!(refused(&["--sites", "2,8"], ""), Ok(()));
    }

    #[test]
    fn a_grid_is_sizes_or_a_name() {
        assert_eq!(sizes("2, 8").unwrap(), [2, 8]);
        // Totals as the publication's tables give them, and the number of sites.
        for (name, sites, processors) in [("grid1", 7, 4442), ("grid2", 9, 2194), ("grid3", 11, 136)] {
            let sizes = sizes(name).unwrap();
            assert_eq!((sizes.len(), sizes.iter().sum::<u32>()), (sites, processors), "{name}");
        }
        let error = sizes("grid4").unwrap_err();
        assert!(error.ends_with("write sizes as in 2,8, or grid1, grid2, grid3"), "{error}");
    }
}
