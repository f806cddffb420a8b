//! `[execution]`: what runs the jobs of real processes, as it is written. A simulation has timers.

use std::time::Duration;

use node::executor::{By, OUTPUT_BYTES, Settings, SettingsError, Slurm, Wall};
use scheduler::spelling::unknown;

use super::file::Written;
use super::{Clock, Experiment, ExperimentError, duration, wrong};

/// What `[execution]` says.
///
/// # Errors
/// If a value means nothing, or nothing could run jobs so.
pub(super) fn resolve(written: &Written) -> Result<Settings, ExperimentError> {
    let said = &written.execution;
    let by = match said.by.as_deref() {
        None | Some("timer") => By::Timer,
        Some("process") => By::Process,
        Some("slurm") => By::Slurm,
        Some("slurm:queue") => By::SlurmQueue,
        Some(other) => {
            return Err(wrong("execution.by")(unknown(
                "way to run jobs",
                other,
                "timer, process, slurm or slurm:queue",
            )));
        }
    };
    let wall = match said.wall.as_deref() {
        None | Some("none") => Wall::None,
        Some("requested") => Wall::Requested,
        Some(text) => Wall::Millis(millis(duration("execution.wall", text)?)),
    };
    let defaults = Slurm::default();
    let poll_millis = match &said.slurm.poll {
        None => defaults.poll_millis,
        Some(text) => u32::try_from(millis(duration("execution.slurm.poll", text)?)).unwrap_or(u32::MAX),
    };
    let settings = Settings {
        by,
        command: said.command.clone().unwrap_or_default(),
        environment: said.environment.clone().unwrap_or_default(),
        folder: None,
        nice: said.nice.unwrap_or(0),
        memory_bytes: said.memory.as_deref().map(|text| bytes("execution.memory", text)).transpose()?,
        wall,
        output_bytes: match &said.output {
            Some(text) => bytes("execution.output", text)?,
            None => OUTPUT_BYTES,
        },
        slurm: Slurm {
            conf: said.slurm.conf.clone(),
            partition: said.slurm.partition.clone(),
            account: said.slurm.account.clone(),
            options: said.slurm.options.clone().unwrap_or_default(),
            poll_millis,
        },
    };
    let place = |error: SettingsError| wrong("[execution]")(error.to_string());
    settings.check().map_err(place)?;
    Ok(settings)
}

/// Whether these jobs could be commands.
///
/// # Errors
/// If somebody would have to know beforehand when they end.
pub(super) fn check(experiment: &Experiment) -> Result<(), ExperimentError> {
    let by = experiment.execution.by;
    if by == By::Timer {
        return Ok(());
    }
    let wrong = wrong("execution.by");
    let execution = &experiment.execution;
    execution
        .goes_with(&experiment.strategy.strategy, experiment.local)
        .map_err(|error| wrong(error.to_string()))?;
    let name = by.name();
    if experiment.run.clock == Some(Clock::Virtual) {
        return Err(wrong(format!(
            "{name:?} takes the time that commands take, and virtual time waits for nobody; write run.clock = \"scaled:1\", or \
             \"timer\""
        )));
    }
    if experiment.grid.is_shared() {
        return Err(wrong(format!(
            "with {name:?} nobody can say how jobs that share nodes slow each other down; give sites processors, or write \"timer\""
        )));
    }
    if experiment.strategy.strategy.nature().coallocates {
        return Err(wrong(format!(
            "with {name:?} each part of a job at several sites would be a command that knows nothing of the others; leave out \
             coallocate, or write \"timer\""
        )));
    }
    Ok(())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn bytes(place: &'static str, text: &str) -> Result<u64, ExperimentError> {
    // A rate of them each second is read alike.
    links::quantity::rate(&format!("{text}/s"))
        .map_err(|_| wrong(place)(format!("{text:?} is no number of bytes; write 512MB, 1GB or 1GiB")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Result<Experiment, String> {
        let mut written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
        written.workload.trace = Some("none.swf".into());
        if written.grid.sites.is_none() {
            written.grid.sizes = Some(vec![8, 2]);
        }
        Experiment::resolve(&written).map_err(|error| error.to_string())
    }

    #[test]
    fn jobs_are_timers_unless_somebody_says_what_they_are() {
        let timer = resolved("").unwrap();
        assert!(timer.execution.is_timer());
        assert!(!timer.file.text().contains("execution"), "{}", timer.file.text());
        let text = "[execution]\nby = \"process\"\ncommand = [\"sleep\", \"{run_time}\"]\nnice = 5\nmemory = \"1GiB\"\nwall = \"requested\"\n";
        let process = resolved(text).unwrap();
        assert_eq!(process.execution.command, ["sleep", "{run_time}"]);
        assert_eq!(
            (process.execution.memory_bytes, process.execution.wall),
            (Some(1 << 30), Wall::Requested)
        );
        assert_ne!(timer.digest(), process.digest());
        // The file of results runs the same again.
        assert_eq!(
            resolved(&process.file.text().replace("trace =", "# trace =")).unwrap().execution,
            process.execution
        );
    }

    #[test]
    fn what_commands_cannot_be_is_refused_with_the_remedy() {
        let process = "[execution]\nby = \"process\"\ncommand = [\"true\"]\n";
        for (text, expected) in [
            ("[execution]\nby = \"fork\"".to_string(), "timer, process, slurm or slurm:queue"),
            (
                process.replace("process", "slurm:queue") + "[strategy]\nname = \"pool:list\"",
                "write \"slurm\"",
            ),
            ("[execution]\nby = \"process\"".to_string(), "each job is a command"),
            ("[execution]\ncommand = [\"true\"]".to_string(), "write by = \"process\""),
            (format!("{process}memory = \"much\""), "512MB"),
            (format!("{process}wall = \"soon\""), "execution.wall"),
            (format!("{process}[run]\nclock = \"virtual\""), "virtual time waits for nobody"),
            (format!("{process}[execution.slurm]\npoll = \"1ms\""), ""),
            (process.replace("process", "slurm") + "[execution.slurm]\npoll = \"1ms\"", "many ask"),
            (format!("{process}[[grid.sites]]\nname = \"a\"\nnodes = 4"), "slow each other down"),
        ] {
            match resolved(&text) {
                Err(error) => assert!(!expected.is_empty() && error.contains(expected), "{text}: {error}"),
                Ok(_) => assert!(expected.is_empty(), "{text}"),
            }
        }
    }
}
