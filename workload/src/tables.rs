//! Tables that are given for logs and are none: what they probably are, and how to get one that can be read.
//!
//! Each reader can only tell what it misses in a line; this looks at what the first line names.

use crate::gwf;

/// Names that only `sacct` and `squeue` give their columns, in small letters.
const OF_SLURM: [&str; 15] = [
    "jobidraw",
    "jobname",
    "elapsed",
    "elapsedraw",
    "alloccpus",
    "ncpus",
    "reqcpus",
    "nnodes",
    "timelimit",
    "timelimitraw",
    "exitcode",
    "state",
    "st",
    "time_limit",
    "nodelist(reason)",
];
/// What they call a job.
const OF_JOBS: [&str; 2] = ["jobid", "jobidraw"];
/// Names that make a title, if all of them are words: fewer may be a job with a typing error.
const TITLE: usize = 4;

/// Why a file that begins with this line is no log, and what to do; `None` if it may be one.
pub(crate) fn problem(line: &[u8]) -> Option<String> {
    let line = line.trim_ascii();
    if matches!(line.first(), None | Some(b';' | b'{')) || line.contains(&b'|') {
        return None;
    }
    if gwf::is_header(line) || gwf::is_opendc_header(line) {
        return None;
    }
    let text = String::from_utf8_lossy(line).to_lowercase();
    let text = text.trim_start_matches('#');
    let words: Vec<&str> = text
        .split(|letter: char| letter.is_whitespace() || ",;".contains(letter))
        .map(|word| word.trim_matches('"'))
        .filter(|word| !word.is_empty())
        .collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    if has(&OF_JOBS) && has(&OF_SLURM) {
        return Some(
            "it looks like a table of Slurm without | between its fields, and not like a log; ask `sacct --parsable2`, without \
             --delimiter"
                .to_string(),
        );
    }
    let is_word = |word: &&str| word.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
    if line.starts_with(b"#") || words.len() < TITLE || !words.iter().all(is_word) {
        return None;
    }
    Some(if line.contains(&b',') {
        "it looks like CSV that is no log by its columns; say in a map what they hold, and convert it with `trace convert \
         --columns MAP.toml`"
            .to_string()
    } else {
        "its first line is a title, and no job; put a ; in front of it if the rest is SWF".to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_told_by_the_names_of_its_columns() {
        for (line, said) in [
            ("JobID,Submit,Start,End,Elapsed,AllocCPUS,State", "parsable2"),
            ("JobID\tSubmit\tStart\tState", "parsable2"),
            ("  JobID    JobName  Partition    Account  AllocCPUS      State ExitCode ", "parsable2"),
            (" JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)", "parsable2"),
            ("JobID Submit Wait Run Procs CPU Mem ReqProcs ReqTime ReqMem Status User", "title"),
            ("job_id,user,gpu_num,state,submit_time", "--columns"),
        ] {
            assert!(problem(line.as_bytes()).is_some_and(|problem| problem.contains(said)), "{line}");
        }
        for line in [
            "; a comment about JobID and State",
            "JobID|Submit|State",
            "JobID SubmitTime WaitTime RunTime NProcs",
            "JobID,SubmitTime,WaitTime,RunTime,NProcs",
            "WorkflowID, JobID , SubmitTime, RunTime , NProcs , ReqNProcs , Dependencies",
            "1 0 -1 60 2 -1 -1 2 120",
            "one 0 -1 60 2 -1 -1 2 120",
            "{\"jobs\"",
            "",
        ] {
            assert_eq!(problem(line.as_bytes()), None, "{line}");
        }
    }
}
