//! The inputs that a search starts from: one golden message of each kind and small texts of our own.
//!
//! `cargo run -p stealgrid-fuzz --bin fuzz-corpus` writes them to `fuzz/corpus`. Files there that are not made here
//! are findings: the inputs that once broke something, under names that say what.

use protocol::Message;
use protocol::codec::encode;
use protocol::message::{BalanceMessage, OpaqueMessage};

use crate::golden::{Seed, messages};
use crate::targets::FILE;

/// What the name of every file made here begins with.
pub const SEED: &str = "seed-";

/// The inputs of a target, by its name. None for a name that is no target.
pub fn seeds(target: &str) -> Vec<Seed> {
    let seeds = match target {
        "message" => messages().into_iter().map(|message| (word(&message), encode(&message))).collect(),
        "swf" => texts(&TRACES),
        "config" => configs(),
        "peer" => programs(),
        _ => crate::doors::seeds(target),
    };
    seeds.into_iter().map(|(name, bytes): Seed| (format!("{SEED}{name}"), bytes)).collect()
}

fn word(message: &Message) -> String {
    let kind = format!("{:?}", message.kind()).to_lowercase();
    // Two families ask for work, and say that they have seen something.
    match message {
        Message::Balance(BalanceMessage::Request { .. } | BalanceMessage::Seen { .. }) => {
            format!("balance-{kind}")
        }
        Message::Opaque(OpaqueMessage::Ended { .. }) => "opaque-ended".to_string(),
        Message::Opaque(_) => format!("opaque-{kind}"),
        _ => kind,
    }
}

fn texts(all: &[(&str, &str)]) -> Vec<Seed> {
    all.iter().map(|(name, text)| ((*name).to_string(), text.as_bytes().to_vec())).collect()
}

const TRACES: [(&str, &str); 9] = [
    (
        "log.swf",
        "; Version: 2.2\n; MaxProcs: 4\n; UnixStartTime: 800000000\n; TimeZoneString: Europe/Stockholm\n\
         1 0 -1 60 2 -1 -1 2 120 -1 1 1 1 -1 1 1 -1 -1\n2 5 3 60.5 1 9.25 64 -1 -1 -1 0 2 1 3 2 1 1 7\n",
    ),
    ("unix-times.swf", "1 800000000 -1 60 2 -1 -1 2 120\n2 800000005 -1 0 -1 -1 -1 4 1e3\n"),
    ("blanks.swf", "# remark\n\n \t1\t-5 -1 7 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 99\r\n;end"),
    (
        "log.gwf",
        "# GWF\n# JobID\tSubmitTime\tWaitTime\tRunTime\tNProcs\tAverageCPUTimeUsed\tUsed Memory\tReqNProcs\t\
         ReqTime\tReqMemory\tStatus\tUserID\tGroupID\tExecutableID\tQueueID\tPartitionID\tOrigSiteID\t\
         LastRunSiteID\tJobStructure\n1\t10\t0\t60\t2\t-1\t-1\t2\t90\t-1\t1\tu1\tg1\tx\tq\tp\tfs0\tfs1\tUNITARY\n",
    ),
    (
        "plain.gwf",
        "1 10 0 60 2 -1 -1 2 90 -1 1 1 1 1 1 1 site0 site1 UNITARY -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n",
    ),
    (
        "opendc.gwf",
        "WorkflowID, JobID, SubmitTime, RunTime, NProcs, ReqNProcs, Dependencies\n0, 1, 10, 60, 2, 2, \n\
         0, 2, 11, 5, 1, 1, 1\n",
    ),
    (
        "batsim.json",
        r#"{"nb_res": 8, "jobs": [{"id": 1, "subtime": 0.0, "walltime": 7200.0, "res": 4, "profile": "a",
"extra_data": {"site": 2}}, {"id": "w0!2", "subtime": 1.5, "res": 8, "profile": "b"},
{"id": "third", "subtime": 3, "walltime": 10, "res": 1, "profile": "b", "extra_data": "{\"site\": 1}"}],
"profiles": {"a": {"type": "DelayProfile", "delay": 3600.0}, "b": {"type": "delay", "delay": 0.25}}}"#,
    ),
    (
        "sacct.txt",
        "# TimeZoneString: Europe/Stockholm\n\
         JobID|JobIDRaw|User|Account|Partition|Submit|Start|End|Elapsed|Timelimit|AllocCPUS|State|ReqMem|JobName\n\
         1|1|a|p|b|2024-03-31T01:30:00|2024-03-31T02:30:00|2024-03-31T03:30:00|1-00:01:00.5|UNLIMITED|4|COMPLETED|4Gc|x\n\
         1.batch|1.batch||p||Unknown|Unknown|Unknown|00:01:00||4|COMPLETED||batch\n\
         2_1|3|a|p|b|1709312400|None|2024-03-01T18:00:00Z|00:00:00|01:00|0|CANCELLED by 7|16G|a|b\n\
         2_[2-9%2]|2|a|p|b|1709312400|Unknown|Unknown|00:00:00|01:00|0|PENDING|16G|a\n",
    ),
    (
        "sacct-p.txt",
        "JobIDRaw|Submit|ElapsedRaw|NCPUS|ReqCPUS|State|\n5+0|1709312400|60|4|4|FAILED|\n5+1|1709312400|90|2|4|FAILED|\n\
         5+0|1709312500|60|4|4|COMPLETED|\n",
    ),
];

/// Words after the switches of the command line.
const WORDS: [&str; 16] = [
    "ideal/st:50,fetch=2s",
    "pool:easy,via=gossip",
    "lognormal:20ms,0.5",
    "uniform:1ms..50ms",
    "normal:5ms,1ms",
    "pareto:1ms,1.5",
    "constant:3ms",
    "factor:2.5",
    "site:2",
    "mon-fri",
    "Europe/Stockholm",
    "job-id,submit,user",
    "conservative-replan",
    "per-event",
    "requested",
    "extend",
];

const LINKS: &str = r#"model = "world"
jitter = "uniform:0ms,20ms"
loss = 0.01
bandwidth = "10MB/s"
[[links]]
from = ["site1"]
both = true
at = "1h"
delay = "2s"
bandwidth = "unlimited"
[[partitions]]
groups = [["site1"], ["site2", "site3"]]
at = "10m"
until = "20m"
"#;
const MATRIX: &str =
    "matrix_file = \"m.csv\"\nmatrix_unit = \"ms\"\nround_trip = true\n\u{c}0,10,20\n10,0,5\n20,5,0\n";
const PLACES: &str = "[coordinates]\ndegrees = [[59.3, 18.1], [35.7, 139.7], [-33.9, 151.2]]\nspeed = 200000\n\
                      constant = \"1ms\"\n";
fn configs() -> Vec<Seed> {
    let mut seeds = texts(&[("links.toml", LINKS), ("matrix.toml", MATRIX), ("coordinates.toml", PLACES)]);
    assert!(MATRIX.contains(FILE), "the matrix comes with its file");
    let words = WORDS.iter().chain(&crate::targets::STRATEGIES);
    seeds.extend(words.map(|word| {
        let name = word.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
        (name, word.as_bytes().to_vec())
    }));
    seeds
}

/// One program for each strategy, at the middle site of three: jobs are submitted, start and end, and every kind of
/// message comes from either neighbor.
fn programs() -> Vec<Seed> {
    let all = crate::targets::STRATEGIES.iter().zip(0u8..).map(|(name, strategy)| (name, 1, strategy));
    // At a site and at a broker, in turn.
    let sites = [1, 4].into_iter().cycle();
    let brokers = crate::targets::BROKERS.iter().zip(sites).zip(crate::targets::BROKERS_FROM..=u8::MAX);
    let brokers = brokers.map(|((name, site), strategy)| (name, site, strategy));
    all.chain(brokers)
        .map(|(name, site, strategy)| {
            // Brokers that hear in each of three ways, count what is on its way, and stand in for each other.
            let limits = if strategy < crate::targets::BROKERS_FROM { 0xff } else { 0xf0 | (strategy % 3) };
            let mut program = vec![0, site, strategy, 0, 0b0101_0100, limits, strategy % 8];
            for round in 0..24u8 {
                program.extend([7, round, 9, 7, 3, 1, 10, 12]);
                // A message of each kind, from site 1 or 3, with small numbers.
                program.extend([0, 1 + 2 * (round & 1), round]);
                program.extend((0..24).map(|place: u8| (place * 5 + round) % 7));
                if strategy >= crate::targets::BROKERS_FROM {
                    let first = if name.starts_with("opaque") { 246 } else { 250 };
                    program.extend([0, if site == 1 { 4 } else { 1 }, first + round % 4]);
                    program.extend((0..24).map(|place: u8| (place * 5 + round) % 7));
                }
                program.extend([6, 0, 1, 1, 1, 1, 10, 14, 5, 9, 0, 13]);
            }
            let name = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
            (name, program)
        })
        .collect()
}
