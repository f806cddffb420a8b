//! `stealgrid trace generate`: a log made up from a statistical model, or of the tasks of a bag.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use experiments::progress::Progress;
use experiments::{exit, limits};
use scheduler::Grid;
use workload::Trace;
use workload::bag::LengthModel;
use workload::generate::{EstimateModel, Generate, Streams, generate_watched};
use workload::lublin::Kind;
use workload::tsafrir::Tsafrir;

use super::{Failure, write_to};

/// Arguments of `trace generate`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("machine").required(true))]
pub(super) struct GenerateArgs {
    /// The model of jobs
    #[arg(long, value_enum, default_value = "lublin")]
    model: Model,

    /// Type of jobs: batch, interactive, typeless, typed
    #[arg(long = "type", value_name = "TYPE", default_value = "typeless")]
    kind: Kind,

    /// Processors of the one machine
    #[arg(long, value_name = "P", group = "machine", value_parser = clap::value_parser!(u32).range(1..))]
    processors: Option<u32>,

    /// Processors of the sites of a grid, with commas between
    #[arg(long, value_name = "P,P,...", group = "machine", value_delimiter = ',')]
    sites: Option<Vec<u32>>,

    /// In place of a model: a bag of tasks, TOML or XPML, all submitted at 0
    #[arg(
        long,
        value_name = "FILE",
        group = "machine",
        conflicts_with_all = ["model", "kind", "one_stream", "jobs", "load", "estimates", "estimate_max", "estimate_max_share"],
    )]
    bag: Option<PathBuf>,

    /// How long a task of a bag takes: uniform, from 180 to 480 s; linear or affine in its input
    #[arg(long, value_name = "MODEL", default_value = "uniform")]
    lengths: LengthModel,

    /// One stream of jobs for the whole grid, with sizes up to the widest site's; otherwise one for each site
    #[arg(long)]
    one_stream: bool,

    /// Number of jobs
    #[arg(long, value_name = "N", required_unless_present = "bag")]
    jobs: Option<usize>,

    /// Seed: the same one gives the same jobs
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Offered load of all sites together; times are stretched to it [default: as the model has it]
    #[arg(long, value_name = "L")]
    load: Option<f64>,

    /// Where requested times come from
    #[arg(long, value_enum, default_value = "exact")]
    estimates: Estimates,

    /// Longest requested time in seconds; longer run times are cut to it (tsafrir). The default is the limit
    /// of SDSC-SP2 and CTC-SP2, 18 hours
    #[arg(long, value_name = "SECONDS", default_value_t = 64_800)]
    estimate_max: i64,

    /// Share of jobs that request the longest time (tsafrir) [default: the model's 0.217]
    #[arg(long, value_name = "SHARE")]
    estimate_max_share: Option<f64>,

    /// File to write; stdout if not given
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Models of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Model {
    /// Lublin and Feitelson, 2003.
    Lublin,
}

/// Models of requested times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Estimates {
    /// The run times themselves.
    Exact,
    /// Tsafrir, Etsion and Feitelson, 2005.
    Tsafrir,
}

/// Runs the command.
pub(super) fn run(args: &GenerateArgs) -> Result<u8, Failure> {
    let trace = args.trace()?;
    write_to(args.out.as_ref(), trace.records.len(), |mut out| workload::swf::write_trace(&trace, &mut out))?;
    Ok(exit::DONE)
}

impl GenerateArgs {
    fn trace(&self) -> Result<Trace, Failure> {
        let mut trace = match &self.bag {
            Some(bag) => {
                let bag = workload::bag::read_within(bag, &limits::of_logs());
                bag.map_err(|error| Failure::Input(error.into()))?.trace(self.lengths, self.seed)
            }
            None => self.of_model()?,
        };
        trace.header.push_pair("Note", &format!("made by: {}", self.command()));
        Ok(trace)
    }

    fn of_model(&self) -> Result<Trace, Failure> {
        let sites =
            self.sites.clone().or(self.processors.map(|processors| vec![processors])).unwrap_or_default();
        let grid =
            Grid::of_sizes(&sites).map_err(|error| Failure::Usage(anyhow!("generate trace: {error}")))?;
        let estimates = match self.estimates {
            Estimates::Exact => EstimateModel::Exact,
            Estimates::Tsafrir => EstimateModel::Tsafrir(Tsafrir {
                longest: self.estimate_max,
                longest_share: self.estimate_max_share,
            }),
        };
        let request = Generate {
            kind: self.kind,
            grid,
            streams: if self.one_stream { Streams::One } else { Streams::PerSite },
            jobs: self.jobs.unwrap_or_default(),
            seed: self.seed,
            load: self.load,
            estimates,
        };
        let mut progress = Progress::of("jobs drawn", request.jobs as u64);
        generate_watched(&request, &mut || progress.step()).map_err(|error| Failure::Usage(error.into()))
    }

    /// The command that makes the same trace again.
    fn command(&self) -> String {
        let out = self.out.as_ref().map(|out| format!("--out {}", out.display()));
        if let Some(bag) = &self.bag {
            let lengths = LengthModel::ALL.iter().find(|(_, model)| *model == self.lengths);
            let lengths = lengths.map(|(name, _)| format!("--lengths {name}"));
            let bag = format!("stealgrid trace generate --bag {}", bag.display());
            let words = [Some(bag), lengths, Some(format!("--seed {}", self.seed)), out];
            return words.into_iter().flatten().collect::<Vec<_>>().join(" ");
        }
        let mut words = vec!["stealgrid trace generate --model lublin".to_string()];
        words.push(format!("--type {}", self.kind));
        if let Some(processors) = self.processors {
            words.push(format!("--processors {processors}"));
        }
        if let Some(sites) = &self.sites {
            let sites: Vec<String> = sites.iter().map(u32::to_string).collect();
            words.push(format!("--sites {}", sites.join(",")));
        }
        if self.one_stream {
            words.push("--one-stream".to_string());
        }
        words.push(format!("--jobs {} --seed {}", self.jobs.unwrap_or_default(), self.seed));
        words.extend(self.load.map(|load| format!("--load {load}")));
        if self.estimates == Estimates::Tsafrir {
            words.push(format!("--estimates tsafrir --estimate-max {}", self.estimate_max));
            words.extend(self.estimate_max_share.map(|share| format!("--estimate-max-share {share}")));
        } else {
            words.push("--estimates exact".to_string());
        }
        words.extend(out);
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: GenerateArgs,
    }

    const SHIPPED: &str = include_str!("../../../configs/traces/seven-sites.swf");

    #[test]
    fn the_shipped_trace_is_what_the_command_in_its_header_makes() {
        let command =
            SHIPPED.lines().find_map(|line| line.split_once("made by: stealgrid trace ")).unwrap().1;
        let args = Line::try_parse_from(command.split_whitespace()).unwrap().args;
        let Ok(trace) = args.trace() else { panic!("the command fails") };
        let mut bytes = Vec::new();
        workload::swf::write_trace(&trace, &mut bytes).unwrap();

        // Not assert_eq: the two traces would be printed.
        assert!(
            bytes == SHIPPED.as_bytes(),
            "run the command in the header again, and say why in the commit"
        );
    }

    #[test]
    fn every_argument_that_matters_is_in_the_command() {
        let line = "generate --model lublin --type typed --sites 4,8 --one-stream --jobs 5 --seed 3 --load 0.5 \
                    --estimates tsafrir --estimate-max 7200 --estimate-max-share 0.2 --out x.swf";
        let args = Line::try_parse_from(line.split_whitespace()).unwrap().args;

        assert_eq!(
            args.command(),
            format!("stealgrid trace {}", line.split_whitespace().collect::<Vec<_>>().join(" "))
        );
    }

    #[test]
    fn a_bag_becomes_a_log_that_says_how_it_was_made() {
        let bag = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/bags/tiny-mc.xml");
        let line = format!("generate --bag {bag} --lengths linear --seed 3 --out x.swf");
        let args = Line::try_parse_from(line.split(' ')).unwrap().args;
        let Ok(trace) = args.trace() else { panic!("the bag cannot be read") };
        assert_eq!(trace.records.len(), 500);
        let mut bytes = Vec::new();
        workload::swf::write_trace(&trace, &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(&format!("made by: stealgrid trace {line}\n")), "{text:.400}");
        assert!(Line::try_parse_from(["generate", "--bag", bag, "--sites", "4"]).is_err());
        assert!(Line::try_parse_from(["generate", "--bag", bag, "--jobs", "4"]).is_err());
    }

    #[test]
    fn a_machine_is_required_and_only_one() {
        assert!(Line::try_parse_from(["generate", "--jobs", "1"]).is_err());
        assert!(
            Line::try_parse_from(["generate", "--jobs", "1", "--processors", "4", "--sites", "4"]).is_err()
        );
    }
}
