//! Sites whose nodes jobs share: what was written of nodes, local users and programs, and what goes with that.

use std::collections::BTreeMap;
use std::sync::Arc;

use links::quantity::rate;
use scheduler::sharing::local_load::{
    INTERNET, Layout, Redraws, SHELL, Spread, Usage, XWINDOWS, XWINDOWS_INTERNET,
};
use scheduler::sharing::{Cluster, Fairness, LocalLoad, Node, Platform};
use scheduler::spelling::unknown;
use scheduler::strategy::{MetaScheduler, Plan, PoolAlgorithm, Via};
use scheduler::{
    Amount, Application, BrokerRule, Grid, Holds, Initiative, JobSpec, LocalScheduler, LocalUsers, Pass,
    Selection, SharedNodes, Site, Span, Time,
};
use workload::nas;

use super::file::{
    WrittenApplication, WrittenApplications, WrittenGrid, WrittenLocal, WrittenPower, WrittenSite,
};
use super::generated::M_CISNE;
use super::{Experiment, ExperimentError, coallocation, span, wrong};

/// Jobs on a node at most where nobody says: the limit of the published experiments (Lérida, *M-CISNE*, §4.3.3).
const MPL: u32 = 4;
/// Memory of a node where nobody says, in KB: 1 GiB, as theirs.
const MEMORY_KB: u64 = 1_048_576;
/// The link of a node where nobody says, in Mbit/s, as theirs.
const LINK_MBIT: f64 = 1000.0;
/// Until when local users come and go where nobody says.
const LOCAL_UNTIL: Span = Span::from_secs(7 * 86_400);
/// Nodes of one site at most: each costs some hundred bytes per picture of it.
const NODES_MAX: u32 = 100_000;

/// How many processors a site has: places for tasks, where it has nodes.
pub(super) fn processors(site: &WrittenSite, index: usize) -> Result<u32, ExperimentError> {
    let wrong = wrong(format!("grid.sites[{}]", index + 1));
    match (site.processors, site.nodes) {
        (Some(_), Some(_)) => {
            Err(wrong(format!("site {:?} has processors and nodes; keep one of the two", site.name)))
        }
        (None, None) => {
            Err(wrong(format!("site {:?} has neither processors nor nodes; write processors = 8", site.name)))
        }
        (Some(processors), None) => {
            let given = [
                ("mpl", site.mpl.is_some()),
                ("memory", site.memory.is_some()),
                ("power", site.power.is_some()),
                ("link", site.link.is_some()),
                ("local", site.local.is_some()),
            ];
            match given.into_iter().find(|(_, is_given)| *is_given) {
                Some((key, _)) => Err(wrong(format!(
                    "site {:?} has {key}, which is of nodes; write nodes = {processors} in place of processors",
                    site.name
                ))),
                None => Ok(processors),
            }
        }
        (None, Some(nodes)) => {
            let mpl = site.mpl.unwrap_or(MPL);
            if nodes == 0 || nodes > NODES_MAX || mpl == 0 {
                return Err(wrong(format!(
                    "site {:?} needs 1 to {NODES_MAX} nodes, and mpl of at least 1",
                    site.name
                )));
            }
            nodes.checked_mul(mpl).ok_or_else(|| wrong(format!("site {:?} has too many nodes", site.name)))
        }
    }
}

/// The grid with the nodes that jobs share.
pub(super) fn join(written: &WrittenGrid, grid: Grid, seed: u64) -> Result<Grid, ExperimentError> {
    let sites = written.sites.as_deref().unwrap_or_default();
    if sites.iter().all(|site| site.nodes.is_none()) {
        let given = [
            ("grid.local", written.local.is_some()),
            ("grid.applications", written.applications.is_some()),
            ("grid.fairness", written.fairness.is_some()),
        ];
        return match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) if written.lost_nodes => Err(wrong("--sites ([grid])")(format!(
                "it gives sites processors in place of the nodes of the experiment file, and {key} there is of nodes that jobs share; \
                 leave out --sites, or {key}"
            ))),
            Some((key, _)) => Err(wrong(key)("it is of nodes that jobs share, and no site has nodes".into())),
            None => Ok(grid),
        };
    }
    let fairness = match written.fairness.as_deref() {
        None | Some("proportional") => Fairness::Proportional,
        Some("max-min") => Fairness::MaxMin,
        Some(other) => {
            return Err(wrong("grid.fairness")(format!("{other:?} is none; use proportional or max-min")));
        }
    };
    let applications = Arc::new(applications(written.applications.as_ref())?);
    let most = most_powerful(sites)?;
    let mut locals = local_loads(written, sites, seed)?;
    let mut clusters = Vec::new();
    for (index, site) in sites.iter().enumerate() {
        let Some(nodes) = site.nodes else {
            clusters.push(None);
            continue;
        };
        let wrong = wrong(format!("grid.sites[{}]", index + 1));
        let memory = site.memory.as_deref().map_or(Ok(MEMORY_KB), |text| memory(text).map_err(&wrong))?;
        let link = site.link.as_deref().map_or(Ok(LINK_MBIT), |text| mbit(text).map_err(&wrong))?;
        let node = |number: u32| Node {
            power: power(site, number) / most,
            memory,
            link,
            mpl: site.mpl.unwrap_or(MPL),
        };
        let cluster = Cluster { nodes: (0..nodes).map(node).collect(), uplink: link };
        let platform = Platform::new(&[cluster]).and_then(|platform| platform.with_local(locals.remove(0)));
        let platform = Arc::new(platform.map_err(|error| wrong(error.to_string()))?);
        clusters.push(Some(Arc::new(SharedNodes {
            platform,
            fairness,
            applications: Arc::clone(&applications),
        })));
    }
    grid.with_clusters(clusters).map_err(|error| wrong("--sites ([grid])")(error.to_string()))
}

/// What was written of nodes, local users and programs, by key and with the defaults, for who asks how results were made. Values of sites are in
/// the order of the experiment, or one if all are alike. Nothing where no nodes are shared.
pub(super) fn switches(written: &WrittenGrid) -> BTreeMap<String, String> {
    let sites = written.sites.as_deref().unwrap_or_default();
    let mut switches = BTreeMap::new();
    if sites.iter().all(|site| site.nodes.is_none()) {
        return switches;
    }
    let mut put = |key: &str, value: String| switches.insert(key.to_string(), value);
    let of_sites = |value: &dyn Fn(&WrittenSite) -> String| {
        let of = |site: &WrittenSite| if site.nodes.is_some() { value(site) } else { "-".to_string() };
        let values: Vec<String> = sites.iter().map(of).collect();
        if values.iter().all(|value| *value == values[0]) { values[0].clone() } else { values.join("; ") }
    };
    put("grid.sites.nodes", of_sites(&|site| site.nodes.unwrap_or(0).to_string()));
    put("grid.sites.mpl", of_sites(&|site| site.mpl.unwrap_or(MPL).to_string()));
    put(
        "grid.sites.memory",
        of_sites(&|site| site.memory.clone().unwrap_or_else(|| format!("{MEMORY_KB}KiB"))),
    );
    put(
        "grid.sites.link",
        of_sites(&|site| site.link.clone().unwrap_or_else(|| format!("{LINK_MBIT}Mbit/s"))),
    );
    put(
        "grid.sites.power",
        of_sites(&|site| match &site.power {
            None => "1".to_string(),
            Some(WrittenPower::All(power)) => power.to_string(),
            Some(WrittenPower::Each(powers)) => {
                powers.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")
            }
        }),
    );
    match &written.local {
        Some(local) => put("grid.local", users(local)),
        None => {
            put("grid.sites.local", of_sites(&|site| site.local.as_ref().map_or("nobody".to_string(), users)))
        }
    };
    let program = |known: &WrittenApplication| {
        let bandwidth = known.bandwidth.as_deref().unwrap_or("0");
        format!("{}: computing {}, bandwidth {bandwidth}", known.executable, known.computing)
    };
    put(
        "grid.applications",
        match &written.applications {
            None => "none: all compute".to_string(),
            Some(WrittenApplications::Named(name)) => name.clone(),
            Some(WrittenApplications::List(list)) => list.iter().map(program).collect::<Vec<_>>().join("; "),
        },
    );
    put("grid.fairness", written.fairness.clone().unwrap_or_else(|| "proportional".to_string()));
    switches
}

/// Local users in words.
fn users(local: &WrittenLocal) -> String {
    let or = |given: &Option<String>, default: &str| given.clone().unwrap_or_else(|| default.to_string());
    let mut words = format!(
        "{}, share {}, {}",
        or(&local.profile, "xwin+internet"),
        local.share,
        or(&local.layout, "uniform")
    );
    if let Some(every) = &local.every {
        words += &format!(", every {every} until {}", or(&local.until, &format!("{LOCAL_UNTIL}s")));
    }
    let numbers = [("computing", local.computing), ("memory", local.memory)];
    for (what, value) in numbers.into_iter().filter_map(|(what, value)| Some((what, value?))) {
        words += &format!(", {what} {value}");
    }
    if let Some(link) = &local.link {
        words += &format!(", link {link}");
    }
    words
}

fn power(site: &WrittenSite, node: u32) -> f64 {
    match &site.power {
        None => 1.0,
        Some(WrittenPower::All(power)) => *power,
        Some(WrittenPower::Each(powers)) => powers[node as usize],
    }
}

/// Powers are relative to that of the most powerful node anywhere.
fn most_powerful(sites: &[WrittenSite]) -> Result<f64, ExperimentError> {
    let mut most: f64 = 0.0;
    for (index, site) in sites.iter().enumerate() {
        let Some(nodes) = site.nodes else { continue };
        let wrong = wrong(format!("grid.sites[{}].power", index + 1));
        if let Some(WrittenPower::Each(powers)) = &site.power
            && powers.len() != nodes as usize
        {
            return Err(wrong(format!(
                "there are {} powers for {nodes} nodes; give each node one",
                powers.len()
            )));
        }
        for node in 0..nodes {
            let power = power(site, node);
            if !(power > 0.0 && power.is_finite()) {
                return Err(wrong(format!("{power} is no power above 0")));
            }
            most = most.max(power);
        }
    }
    Ok(most)
}

/// What local users take of each node, site by site that has nodes.
fn local_loads(
    written: &WrittenGrid,
    sites: &[WrittenSite],
    seed: u64,
) -> Result<Vec<Vec<LocalLoad>>, ExperimentError> {
    let with_nodes = || sites.iter().enumerate().filter_map(|(index, site)| Some((index, site, site.nodes?)));
    let sizes: Vec<usize> = with_nodes().map(|(.., nodes)| nodes as usize).collect();
    let own = with_nodes().any(|(_, site, _)| site.local.is_some());
    if own && written.local.is_some() {
        let reason = "sites have local users of their own, too; keep one of the two".to_string();
        return Err(wrong("grid.local")(reason));
    }
    if let Some(local) = &written.local {
        let mut all = spread("grid.local", local)?.draw(&sizes, seed);
        return Ok(sizes.iter().map(|&size| all.drain(..size).collect()).collect());
    }
    let of_site = |(index, site, nodes): (usize, &WrittenSite, u32)| match &site.local {
        None => Ok(vec![LocalLoad::default(); nodes as usize]),
        Some(local) => {
            let place = format!("grid.sites[{}].local", index + 1);
            Ok(spread(&place, local)?.draw(&[nodes as usize], seed.wrapping_add(index as u64)))
        }
    };
    with_nodes().map(of_site).collect()
}

fn spread(place: &str, local: &WrittenLocal) -> Result<Spread, ExperimentError> {
    let wrong = wrong(place.to_string());
    let usage = match local.profile.as_deref() {
        None | Some("xwin+internet") => XWINDOWS_INTERNET,
        Some("xwin") => XWINDOWS,
        Some("internet") => INTERNET,
        Some("shell") => SHELL,
        Some(other) => {
            return Err(wrong(format!(
                "profile {other:?} is none; use xwin+internet, xwin, internet or shell"
            )));
        }
    };
    let or = |given: Option<f64>, profile: f64| given.unwrap_or(profile);
    let bandwidth = local.link.as_deref().map(mbit).transpose().map_err(&wrong)?;
    let usage = Usage::new(
        or(local.computing, usage.computing()),
        or(local.memory, usage.memory()),
        or(bandwidth, usage.bandwidth()),
    );
    let usage = usage.map_err(|error| wrong(error.to_string()))?;
    if !(0.0..=1.0).contains(&local.share) {
        return Err(wrong(format!("share = {} is not between 0 and 1", local.share)));
    }
    let layout = match local.layout.as_deref() {
        None | Some("uniform") => Layout::Uniform,
        Some("grouped") => Layout::Grouped,
        Some(other) => return Err(wrong(format!("layout {other:?} is none; use uniform or grouped"))),
    };
    let redraws = match (&local.every, &local.until) {
        (None, Some(_)) => return Err(wrong("until is of users who come and go; write every, too".into())),
        (None, None) => None,
        (Some(every), until) => {
            let until = until.as_deref().map_or(Ok(LOCAL_UNTIL), |text| span("grid.local", text))?;
            Some(Redraws { every: span("grid.local", every)?, until: Time::ZERO.saturating_add(until) })
        }
    };
    Ok(Spread { usage, share: local.share, layout, redraws })
}

fn applications(
    written: Option<&WrittenApplications>,
) -> Result<BTreeMap<i32, Application>, ExperimentError> {
    match written {
        None => Ok(BTreeMap::new()),
        Some(WrittenApplications::List(list)) => listed(list),
        Some(WrittenApplications::Named(name)) if name == M_CISNE => {
            let known = |row: &nas::Application| Application {
                computing: row.computing(),
                bandwidth: f64::from(row.bandwidth()),
            };
            Ok((1..).zip(nas::APPLICATIONS.iter().map(known)).collect())
        }
        Some(WrittenApplications::Named(name)) => Err(wrong("grid.applications")(unknown(
            "table of applications",
            name,
            "m-cisne, or a list of { executable = 1, computing = 0.5 }",
        ))),
    }
}

fn listed(written: &[WrittenApplication]) -> Result<BTreeMap<i32, Application>, ExperimentError> {
    let mut all = BTreeMap::new();
    for (entry, application) in written.iter().enumerate() {
        let wrong = wrong(format!("grid.applications[{}]", entry + 1));
        if !(0.0..=1.0).contains(&application.computing) {
            return Err(wrong(format!("computing = {} is not between 0 and 1", application.computing)));
        }
        let bandwidth =
            application.bandwidth.as_deref().map_or(Ok(0.0), |text| mbit(text).map_err(&wrong))?;
        let known = Application { computing: application.computing, bandwidth };
        if all.insert(application.executable, known).is_some() {
            return Err(wrong(format!("executable {} is there twice; keep one", application.executable)));
        }
    }
    Ok(all)
}

/// Memory in KB of 1024 bytes, as in `1GB` (10^9 bytes) or `1GiB`.
fn memory(text: &str) -> Result<u64, String> {
    // A rate of it each second is read alike.
    let bytes = rate(&format!("{text}/s"));
    bytes.map(|bytes| bytes / 1024).map_err(|_| format!("{text:?} is no memory; write 512MB, 1GB or 1GiB"))
}

fn mbit(text: &str) -> Result<f64, String> {
    rate(text).map(|bytes| bytes as f64 * 8.0 / 1e6)
}

/// What cannot be where sites that share nodes steal jobs or exchange them through a global queue: they tell each other what is left of their nodes,
/// as of the latest start or end, and nobody says when jobs end.
fn check_exchange(experiment: &Experiment, shares: &str) -> Result<(), ExperimentError> {
    let Experiment { strategy, grid, options, .. } = experiment;
    let rules = &strategy.strategy;
    let name = |why: String| Err(wrong("--strategy (strategy.name)")(format!("{shares}{why}")));
    let selects = rules.steal().map(|steal| steal.select).or(rules.balance().map(|balance| balance.select));
    let reserves = selects == Some(Selection::Easy)
        || rules.pool().is_some_and(|pool| pool.algorithm == PoolAlgorithm::Easy);
    if reserves {
        return name(format!(
            ", and when these end nobody knows, so {strategy} can reserve none of them; write select=first-fit, pool:list or pool:fcfs"
        ));
    }
    if let Some(pool) = rules.pool()
        && (strategy.ideal || pool.via == Via::Gossip)
    {
        return name(format!(
            ", and on which nodes jobs of one instant are depends on who comes first, of which {strategy} knows nothing; write pool:{}",
            if pool.algorithm == PoolAlgorithm::List { "list" } else { "fcfs" }
        ));
    }
    if let Some(balance) = rules.balance()
        && (balance.initiative == Initiative::Push || balance.amount == Amount::Half)
    {
        return name(format!(
            ", and {strategy} gives jobs away that may never have their memory there; write mode=pull and amount=fit or one"
        ));
    }
    let users =
        grid.machines().filter_map(|site| grid.cluster(site.id)).flat_map(|nodes| nodes.platform.local());
    if users.into_iter().any(|users| users.changes().len() > 1) {
        return Err(wrong("grid.local")(format!(
            "local users move, and under {strategy} nobody is told when they leave memory to jobs; leave out every, or use local or a broker"
        )));
    }
    let refused = [
        ("--margin (protocol.margin)", options.margin.is_some(), "the margin"),
        ("protocol.prefetch", options.steal.prefetch.is_some(), "prefetch"),
        ("protocol.view", options.view.is_some(), "the view"),
        ("--heartbeat (protocol.heartbeat)", options.heartbeat.is_some(), "the heartbeat"),
        ("faults", !experiment.faults.is_empty(), "faults"),
        ("--estimate (workload.estimate)", experiment.forecast.is_some(), "the predictor"),
    ];
    match refused.into_iter().find(|(_, is_given, _)| *is_given) {
        Some((key, _, what)) => Err(wrong(key)(format!(
            "{shares}, with which {strategy} does not know {what} yet; leave it out, or use local or a broker that sees into sites"
        ))),
        None => Ok(()),
    }
}

/// What cannot be where jobs share nodes.
pub(super) fn check(experiment: &Experiment) -> Result<(), ExperimentError> {
    let grid = &experiment.grid;
    if let Some(rules) = experiment.strategy.strategy.broker() {
        let none = MetaScheduler::default();
        let (filter, estimator) = (rules.meta.filter, rules.meta.estimator);
        let asked = [
            (format!("filter={}", filter.name()), filter != none.filter),
            (format!("estimator={}", estimator.name()), estimator != none.estimator),
        ];
        let bare = grid.machines().find(|site| grid.cluster(site.id).is_none());
        if let (Some((asked, _)), Some(site)) = (asked.iter().find(|(_, is_asked)| *is_asked), bare) {
            let instead = format!("write nodes = {} in grid.sites, or leave it out", site.processors);
            return Err(wrong("--strategy (strategy.name)")(format!(
                "{asked} is of nodes that jobs share, and site {} has processors; {instead}",
                site.name
            )));
        }
    }
    let Some(site) = grid.sites().iter().find(|site| grid.cluster(site.id).is_some()) else { return Ok(()) };
    let nature = experiment.strategy.strategy.nature();
    let rules = experiment.strategy.strategy.broker();
    let place = |key| wrong(key);
    let shares = format!("jobs share the nodes of site {}", site.name);
    if nature.asks || nature.offers {
        return check_exchange(experiment, &shares);
    }
    let fits = nature.queues && !nature.learns && !nature.external;
    if !fits || rules.is_some_and(|rules| rules.plans_batches() || rules.plan != Plan::Resynchronised) {
        return Err(place("--strategy (strategy.name)")(format!(
            "{shares}, which {} knows nothing of; use local, st:, steal: or pool:, or a broker that sees into sites and plans no \
             batches, such as broker:mcisne",
            experiment.strategy
        )));
    }
    if !matches!(experiment.local, LocalScheduler::Fcfs | LocalScheduler::List | LocalScheduler::Easy) {
        return Err(place("--local (strategy.local)")(format!(
            "{shares}; {} is not made for that: use fcfs, list or easy",
            experiment.local.name()
        )));
    }
    if experiment.pass == Pass::PerEvent {
        return Err(place("--pass (strategy.pass)")(format!(
            "{shares}; sites decide once per instant: write batch"
        )));
    }
    Ok(())
}

/// Whether sites have the memory that jobs ask for.
pub(super) struct Memory<'a> {
    experiment: &'a Experiment,
    /// Of each site in the order of the experiment; of none, if none has nodes that have memory.
    holds: Vec<Holds>,
}

impl<'a> Memory<'a> {
    pub(super) fn of(experiment: &'a Experiment) -> Memory<'a> {
        let Experiment { grid, .. } = experiment;
        let sites = if grid.is_shared() { grid.sites() } else { &[] };
        Memory { experiment, holds: sites.iter().map(|site| Holds::new(&grid.capacity(site.id))).collect() }
    }

    /// Why a job cannot be in this experiment: a site that it could come to never has the memory for it, and it would wait there for ever.
    ///
    /// It is enough that one site has it where whoever sends jobs looks at that: the upper queue of M-CISNE does. A job that stays needs it
    /// where it enters. Others send jobs to whatever is wide enough, and so do those who take over what a site had that is gone.
    pub(super) fn lacks(&self, job: &JobSpec, local_users: &LocalUsers) -> Option<String> {
        let Experiment { grid, strategy, submit, options, .. } = self.experiment;
        if self.holds.is_empty() {
            return None;
        }
        if grid.spreads() && grid.machines().all(|site| !self.holds[site.id.index()].holds(job)) {
            return coallocation::never_starts(grid, strategy, job);
        }
        let wide_enough = || grid.machines().filter(|site| grid.width(site.id) >= job.processors);
        let lacks = |site: &&Site| !self.holds[site.id.index()].holds(job);
        let lacking = wide_enough().find(lacks)?;
        let whole = format!(
            "job {} needs {} KB of memory for each of {} tasks",
            job.id,
            job.memory(),
            job.processors
        );
        let remedy = "leave the job out, or give the nodes more memory";
        if wide_enough().all(|site| lacks(&site)) {
            return Some(format!(
                "{whole}, which no site has at all times on so many nodes beside its local users; {remedy}"
            ));
        }
        let never =
            |site: &Site| format!("site {} never has on so many nodes beside its local users", site.name);
        if options.heartbeat.is_some() {
            return Some(format!(
                "{whole}, which {}; with protocol.heartbeat another site may take over what one had, whatever its memory: {remedy}, or leave \
                 out the heartbeats",
                never(lacking)
            ));
        }
        let rules = strategy.strategy.broker();
        let enters = match rules {
            Some(_) => local_users.site(grid, job),
            // What its user's site is too narrow for goes home.
            None => {
                let enters = submit.rank_among_sites(grid, strategy.strategy, job);
                enters.map(|rank| {
                    if grid.widths()[rank] < job.processors {
                        grid.home_rank(job.processors)
                    } else {
                        Some(rank)
                    }
                })?
            }
        };
        let stays = enters.map(|rank| grid.site(grid.at_rank(rank)));
        if let Some(site) = stays.filter(lacks) {
            return Some(format!(
                "{whole}, which {}, where it is submitted and stays; {remedy}",
                never(site)
            ));
        }
        let looks = rules.is_none_or(|rules| rules.rule == BrokerRule::Mcisne);
        if stays.is_some() || looks {
            return None;
        }
        Some(format!(
            "{whole}, which {}, and {strategy} does not look at that before it sends a job there; use broker:mcisne, which does, or {remedy}",
            never(lacking)
        ))
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{JobId, Labels, SiteId};

    use super::*;

    /// Two sites of four nodes, of 1 GiB and 2 GiB; the local users of the second leave 65 % of it.
    const SITES: &str = "workload.trace = \"log.swf\"\n\
        [[grid.sites]]\nname = \"small\"\nnodes = 4\nmemory = \"1GiB\"\n\
        [[grid.sites]]\nname = \"large\"\nnodes = 4\nmemory = \"2GiB\"\nlocal = { share = 1.0 }\n";

    /// Whether a job of two tasks of so many KB, submitted at a site, is refused, and with which words.
    fn refusal(head: &str, memory: i64, origin: u32) -> Option<String> {
        let written = toml::from_str(&format!("{head}\n{SITES}")).expect("TOML");
        let experiment = Experiment::resolve(&written).expect("an experiment");
        let job = JobSpec {
            id: JobId(7),
            submit: Time::ZERO,
            processors: 2,
            requested: Span::from_secs(60),
            labels: Labels { memory, ..Labels::UNKNOWN },
            origin: SiteId(origin),
            payload: 0,
        };
        Memory::of(&experiment).lacks(&job, &LocalUsers::default())
    }

    /// Parts of eight tasks at two sites of four nodes send 16/7 of what a task does over the link of each.
    #[test]
    fn a_job_is_refused_that_no_parts_would_ever_fit() {
        let never = |by: &str, tasks: u32, memory: i64| {
            let head = format!(
                "strategy.name = \"broker:mcisne,coallocate={by}\"\n\
                 grid.applications = [{{ executable = 3, computing = 0.5, bandwidth = \"600Mbit/s\" }}]\n"
            );
            let written = toml::from_str(&format!("{head}{SITES}")).expect("TOML");
            let experiment = Experiment::resolve(&written).expect("an experiment");
            let job = JobSpec {
                id: JobId(7),
                submit: Time::ZERO,
                processors: tasks,
                requested: Span::from_secs(60),
                labels: Labels { memory, executable: 3, ..Labels::UNKNOWN },
                origin: SiteId(1),
                payload: 0,
            };
            Memory::of(&experiment).lacks(&job, &LocalUsers::default())
        };
        for (by, tasks, memory) in
            [("dp", 8, 1000), ("dp", 8, 1_048_576), ("super", 8, 1000), ("nonsaturated", 4, 1000)]
        {
            assert_eq!(never(by, tasks, memory), None, "{by} {tasks} {memory}");
        }
        for (by, tasks, memory) in [
            ("nonsaturated", 8, 1000),
            ("nonoptimal", 8, 1000),
            ("jones85", 8, 1000),
            ("dp", 9, 1000),
            ("dp", 8, 1_048_577),
        ] {
            let refused = never(by, tasks, memory).expect("it would wait for ever");
            assert!(refused.contains(&format!("broker:mcisne,coallocate={by} finds no parts")), "{refused}");
        }
    }

    #[test]
    fn what_decides_on_nodes_is_among_the_switches() {
        let said = |text: &str| {
            let text = format!("workload.trace = \"log.swf\"\nstrategy.name = \"local\"\n{text}");
            let experiment =
                Experiment::resolve(&toml::from_str(&text).expect("TOML")).expect("an experiment");
            let mut said = experiment.switches();
            said.retain(|key, _| key.starts_with("grid."));
            said.into_iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>()
        };
        let defaults = [
            "grid.applications = none: all compute",
            "grid.fairness = proportional",
            "grid.sites.link = 1000Mbit/s",
            "grid.sites.local = nobody",
            "grid.sites.memory = 1048576KiB",
            "grid.sites.mpl = 4",
            "grid.sites.nodes = 4; 8",
            "grid.sites.power = 1",
        ];
        let two = "[[grid.sites]]\nname = \"a\"\nnodes = 4\n";
        assert_eq!(said(&format!("{two}[[grid.sites]]\nname = \"b\"\nnodes = 8\n")), defaults);
        let written = [
            "grid.applications = 3: computing 0.5, bandwidth 50Mbit/s; 4: computing 1, bandwidth 0",
            "grid.fairness = max-min",
            "grid.local = shell, share 0.5, grouped, every 20min until 604800s, memory 0.4",
            "grid.sites.link = 100Mbit/s; -",
            "grid.sites.memory = 2GB; -",
            "grid.sites.mpl = 2; -",
            "grid.sites.nodes = 2; -",
            "grid.sites.power = 1, 0.5; -",
        ];
        let text = "[grid]\nfairness = \"max-min\"\nlocal = { profile = \"shell\", share = 0.5, layout = \"grouped\", every = \"20min\", memory = 0.4 }\n\
            applications = [{ executable = 3, computing = 0.5, bandwidth = \"50Mbit/s\" }, { executable = 4, computing = 1.0 }]\n\
            [[grid.sites]]\nname = \"a\"\nnodes = 2\nmpl = 2\nmemory = \"2GB\"\npower = [1.0, 0.5]\nlink = \"100Mbit/s\"\n\
            [[grid.sites]]\nname = \"b\"\nprocessors = 8\n";
        assert_eq!(said(text), written);
        assert!(said("grid.sizes = [2, 8]").is_empty());
    }

    #[test]
    fn stealing_and_pools_over_nodes_are_refused_where_nothing_of_nodes_is_said() {
        let of = |strategy: &str, more: &str| {
            let text = format!(
                "workload.trace = \"log.swf\"\nstrategy.name = \"{strategy}\"\n{more}\n\
                 [[grid.sites]]\nname = \"a\"\nnodes = 4\n[[grid.sites]]\nname = \"b\"\nnodes = 8\n"
            );
            let experiment = Experiment::resolve(&toml::from_str(&text).expect("TOML"));
            experiment.map(drop).map_err(|error| error.to_string())
        };
        for strategy in [
            "st:50",
            "st:50,select=best-fit",
            "ideal/st:50",
            "st-greedy:50",
            "common-pool",
            "pool:list",
            "pool:fcfs",
            "steal:random",
            "steal:loaded,amount=one",
        ] {
            assert_eq!(of(strategy, ""), Ok(()), "{strategy}");
        }
        for (strategy, more, reason) in [
            ("st:50,select=easy", "", "can reserve none of them"),
            ("steal:random,select=easy", "", "can reserve none of them"),
            ("pool:easy", "", "can reserve none of them"),
            ("ideal/pool:list", "", "write pool:list"),
            ("pool:fcfs,via=gossip", "", "write pool:fcfs"),
            ("steal:random,mode=push", "", "write mode=pull"),
            ("steal:random,amount=half", "", "amount=fit or one"),
            ("st:50", "protocol.margin = \"1min\"", "does not know the margin yet"),
            ("st:50", "protocol.prefetch = \"1min\"", "does not know prefetch yet"),
            ("pool:list", "protocol.heartbeat = \"1min\"", "does not know the heartbeat yet"),
            ("steal:random", "workload.estimate = \"avg2\"", "does not know the predictor yet"),
            ("st:50", "grid.local = { share = 0.5, every = \"20min\" }", "local users move"),
        ] {
            let refused = of(strategy, more).expect_err(strategy);
            assert!(refused.contains(reason), "{strategy} {more}: {refused}");
        }
        assert_eq!(of("st:50", "grid.local = { share = 0.5 }"), Ok(()), "they stay");
    }

    #[test]
    fn more_weights_than_clusters_are_refused() {
        let of = |w: &str| {
            let name = format!("strategy.name = \"broker:mcisne,select=ptt,w={w}\"\n{SITES}");
            Experiment::resolve(&toml::from_str(&name).expect("TOML"))
                .map(drop)
                .map_err(|error| error.to_string())
        };
        for w in ["0.5", "0.5/1"] {
            assert_eq!(of(w), Ok(()), "{w}");
        }
        for (w, given) in [("0.5/1/0", 3), ("0.5/0.5/0.5/0.5", 4)] {
            let refused = of(w).expect_err(w);
            assert!(refused.contains(&format!("w has {given} weights and the grid 2 clusters")), "{refused}");
        }
    }

    #[test]
    fn a_job_is_refused_only_where_it_may_come_to_a_site_without_its_memory() {
        const MORE_THAN_SMALL: i64 = 1_048_577;
        let upper = "strategy.name = \"broker:mcisne\"";
        let local = "strategy.name = \"local\"\nstrategy.submit = \"origin\"";
        for strategy in [upper, local, "strategy.name = \"broker:mpl\""] {
            assert_eq!(refusal(strategy, 1_048_576, 1), None, "all sites have it");
            let all = refusal(strategy, 2 * 1_048_576, 2).expect("no site has it beside local users");
            assert!(all.contains("which no site has at all times"), "{all}");
        }
        assert_eq!(refusal(upper, MORE_THAN_SMALL, 1), None, "it goes to the other site");
        assert_eq!(refusal(local, MORE_THAN_SMALL, 2), None, "it stays where the memory is");
        for (head, origin, reason) in [
            (
                local,
                1,
                "which site small never has on so many nodes beside its local users, where it is submitted",
            ),
            ("strategy.name = \"local\"\nstrategy.submit = \"home\"", 2, "site small never has"),
            ("strategy.name = \"broker:mpl\"", 2, "broker:mpl does not look at that"),
            ("strategy.name = \"ideal/broker:random\"", 2, "use broker:mcisne"),
            (&format!("{upper}\nprotocol.heartbeat = \"10s\""), 2, "leave out the heartbeats"),
        ] {
            let refused = refusal(head, MORE_THAN_SMALL, origin).expect("it is refused");
            assert!(refused.contains(reason), "{head}: {refused}");
        }
    }
}
