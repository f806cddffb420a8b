//! Jobs that start at several sites at once: how wide they may be, and what does not go with them.

use brokers::metascheduler::coallocate::{Room, parts};
use scheduler::{Application, COMPUTES, Grid, JobSpec, LocalScheduler, StrategySpec};

use super::{Experiment, ExperimentError, wrong};

/// The grid as a strategy uses it that may spread jobs over its sites.
pub(super) fn join(grid: Grid, strategy: &StrategySpec) -> Grid {
    let spread = strategy.strategy.spread(grid.widths());
    grid.with_spread(spread)
}

/// What cannot be where jobs are spread over sites.
pub(super) fn check(experiment: &Experiment) -> Result<(), ExperimentError> {
    let Experiment { strategy, grid, options, .. } = experiment;
    if !strategy.strategy.nature().coallocates {
        return Ok(());
    }
    let place = |key: &str| wrong(key.to_string());
    let refused = |key: &str, why: String| Err(place(key)(why));
    if let Some(site) = grid.machines().find(|site| grid.cluster(site.id).is_some()) {
        let shares = format!("jobs share the nodes of site {}", site.name);
        if let Some(other) = grid.machines().find(|site| grid.cluster(site.id).is_none()) {
            return refused(
                "--strategy (strategy.name)",
                format!(
                    "{shares}, and site {} has processors: coallocate spreads jobs over one or the other; give all sites nodes, or none",
                    other.name
                ),
            );
        }
        // A part that is lost is stopped, and nodes that are kept for one are known to its site alone. How much a part has done depends on the
        // slowest of all, so no site knows what to learn of it.
        let apart = [
            ("--heartbeat (protocol.heartbeat)", options.heartbeat.is_some(), "heartbeats"),
            ("faults", !experiment.faults.is_empty(), "faults"),
            ("--estimate (workload.estimate)", experiment.forecast.is_some(), "predictors"),
        ];
        if let Some((key, _, what)) = apart.into_iter().find(|(_, is_given, _)| *is_given) {
            return refused(
                key,
                format!(
                    "{shares}, over which coallocate knows no {what} yet; leave them out, or give sites processors"
                ),
            );
        }
    }
    if experiment.local == LocalScheduler::External {
        return refused(
            "--local (strategy.local)",
            "coallocate takes processors that a queue leaves free, of which a command is not told; use fcfs, list or easy".into(),
        );
    }
    Ok(())
}

/// Why a job would wait for ever that no site has the nodes for, on sites of which nothing executes, whatever their local users do.
pub(super) fn never_starts(grid: &Grid, strategy: &StrategySpec, job: &JobSpec) -> Option<String> {
    let by = strategy.strategy.broker().filter(|rules| rules.coallocates())?.meta.coallocation;
    let mut program: Application = COMPUTES;
    let mut rooms = Vec::new();
    for (place, site) in grid.machines().enumerate() {
        let nodes = grid.cluster(site.id)?;
        program = nodes.program(job);
        let left = nodes.memory_always_left();
        let with_memory = left.len() - left.partition_point(|&left| left < job.memory());
        let powers = vec![1.0; with_memory.min(job.processors as usize)];
        let link = nodes.platform.uplinks()[0];
        rooms.push(Room { place, powers, link, consumed: 0.0 });
    }
    let found = parts(by, job, program, &rooms, false);
    found.is_none().then(|| {
        format!(
            "job {} of {} tasks, each with {} KB of memory and {} Mbit/s, fits no site, and {strategy} finds no parts for it that have this on \
             all nodes and links between sites, even if nothing else executes; leave the job out, give sites more of it, or spread jobs by \
             another rule",
            job.id,
            job.processors,
            job.memory(),
            program.bandwidth
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Experiment, jobs};

    fn resolved(text: &str) -> Result<Experiment, String> {
        let text = format!("workload.trace = \"log.swf\"\n{text}");
        let written = toml::from_str(&text).map_err(|error| error.to_string())?;
        Experiment::resolve(&written).map_err(|error| error.to_string())
    }

    #[test]
    fn the_grid_takes_what_the_strategy_spreads_over_it() {
        for (strategy, widest) in [
            ("ideal/broker:mcisne", 8),
            ("ideal/broker:mcisne,coallocate=dp", 14),
            ("broker:mcisne,coallocate=dp", 14),
            ("ideal/broker:mcisne,coallocate=super,phases=two", 14),
            ("ideal/broker:mcisne,coallocate=jones85", 9),
            ("ideal/broker:mst", 8),
        ] {
            let text = format!("grid.sizes = [2, 4, 8]\nstrategy.name = \"{strategy}\"");
            assert_eq!(resolved(&text).unwrap().grid.widest_job(), widest, "{strategy}");
        }
    }

    #[test]
    fn a_job_too_wide_for_all_sites_together_is_refused_by_what_they_take() {
        let refused = |strategy: &str| {
            let text = format!(
                "grid.sizes = [8, 16]\nworkload.trace = \"built-in:seven-sites\"\nstrategy.name = \"{strategy}\""
            );
            let experiment = Experiment::resolve(&toml::from_str(&text).unwrap()).unwrap();
            jobs::read(&experiment).map(drop).unwrap_err().to_string()
        };
        let alone = refused("ideal/broker:mcisne");
        assert!(alone.contains("the widest site has 16; use a wider site"), "{alone}");
        let together = refused("ideal/broker:mcisne,coallocate=dp");
        let taken = "over all sites together ideal/broker:mcisne,coallocate=dp starts jobs of at most 24; use more sites";
        assert!(together.contains(taken), "{together}");
    }

    #[test]
    fn a_job_too_wide_for_all_sites_together_is_dropped_with_what_they_take() {
        let notes = |strategy: &str| {
            let text = format!(
                "grid.sizes = [8, 16]\nworkload.trace = \"built-in:seven-sites\"\nworkload.too_wide = \"drop\"\nstrategy.name = \"{strategy}\""
            );
            let experiment = Experiment::resolve(&toml::from_str(&text).unwrap()).unwrap();
            jobs::read(&experiment).unwrap().notes.join("\n")
        };
        let alone = notes("ideal/broker:mcisne");
        assert!(alone.contains("dropped: wider than the widest site: "), "{alone}");
        let together = notes("ideal/broker:mcisne,coallocate=dp");
        assert!(
            together.contains("dropped: wider than the 24 processors that a job may be spread over: "),
            "{together}"
        );
    }

    #[test]
    fn what_does_not_go_with_it_is_refused_by_name() {
        let sizes = "grid.sizes = [2, 8]\n";
        let both = "[[grid.sites]]\nname = \"a\"\nnodes = 4\n[[grid.sites]]\nname = \"b\"\nprocessors = 16\n";
        let nodes = "[[grid.sites]]\nname = \"a\"\nnodes = 4\n";
        let messages = "strategy.name = \"broker:mcisne,coallocate=dp\"\n";
        let ideal = "strategy.name = \"ideal/broker:mcisne,coallocate=dp\"\n";
        for (text, reason) in [
            (format!("{ideal}{both}"), "give all sites nodes, or none"),
            (format!("{messages}protocol.heartbeat = \"10s\"\n{nodes}"), "knows no heartbeats yet"),
            (format!("{messages}workload.estimate = \"avg2\"\n{nodes}"), "knows no predictors yet"),
            (format!("{ideal}workload.estimate = \"half\"\n{nodes}"), "knows no predictors yet"),
            (format!("{sizes}{ideal}strategy.local = \"exec=cat\""), "use fcfs, list or easy"),
        ] {
            let error = resolved(&text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        for strategy in [messages, ideal] {
            let predicted = resolved(&format!("{strategy}{sizes}workload.estimate = \"avg2\"")).unwrap();
            assert!(predicted.forecast.is_some(), "{strategy}");
        }
    }
}
