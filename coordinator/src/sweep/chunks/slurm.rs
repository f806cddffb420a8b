//! Arrays of jobs of Slurm: an element computes a chunk.
//!
//! An array has no more elements than `MaxArraySize`, which bounds the index and not the number of elements. `squeue` is asked once a
//! minute, for all of them at once, and never what became of one that has ended: accounting may be off, late or wrong.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use experiments::hex::hex;
use experiments::terminal::note;
use sha2::{Digest as _, Sha256};

use super::engines::{Engine, Live, Offered, options};
use super::folder::PlanFolder;

/// How often `squeue` is asked unless the user says otherwise.
const POLL: Duration = Duration::from_secs(60);
/// No user asks more often.
const POLL_MIN: Duration = Duration::from_secs(1);
/// What Slurm says of a job that it could not start on a node: it stays so until somebody releases it.
const STUCK: &str = "launch failed requeued held";
/// Elements of an array if Slurm does not say.
const ARRAY_MAX: usize = 1_001;

/// What stands behind `slurm:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How often `squeue` is asked.
    poll: Duration,
    /// Elements of an array that run at once at most.
    at_once: Option<usize>,
    /// Options of `sbatch`, as they are.
    sbatch: Vec<String>,
}

/// Options that are ours to set.
const OURS: [&str; 6] = ["array", "job-name", "output", "parsable", "wrap", "open-mode"];

impl FromStr for Options {
    type Err = String;

    fn from_str(text: &str) -> Result<Options, String> {
        let mut found = Options { poll: POLL, at_once: None, sbatch: Vec::new() };
        for (key, value) in options(text)? {
            match key.as_str() {
                "poll" => {
                    found.poll = links::quantity::time(&value).map_err(|error| format!("poll: {error}"))?;
                    if found.poll < POLL_MIN {
                        return Err("poll: squeue is asked once a second at most".to_string());
                    }
                }
                "at-once" => {
                    let count = value.parse().ok().filter(|count| *count > 0);
                    found.at_once =
                        Some(count.ok_or("at-once needs a number of elements, as in at-once=50")?);
                }
                _ if OURS.contains(&key.as_str()) => return Err(format!("{key} is set by the sweep itself")),
                _ if value.is_empty() => found.sbatch.push(format!("--{key}")),
                _ => found.sbatch.push(format!("--{key}={value}")),
            }
        }
        Ok(found)
    }
}

/// Slurm, as its commands on the path reach it.
#[derive(Debug)]
pub struct Slurm {
    options: Options,
    program: PathBuf,
    /// Names of our jobs begin so.
    name: String,
    array_max: usize,
    /// Chunks of the offers that `squeue` may speak of.
    offers: BTreeMap<usize, Vec<usize>>,
    is_away: bool,
}

impl Slurm {
    /// Asks Slurm for its limits.
    ///
    /// # Errors
    /// If it is not there.
    pub fn begin(options: Options, folder: &PlanFolder) -> anyhow::Result<Slurm> {
        let asked = said(Command::new("scontrol").args(["show", "config"]))
            .context("failed to ask Slurm for MaxArraySize; is this a machine that submits to it?")?;
        let array_max = array_max(&asked).unwrap_or(ARRAY_MAX);
        anyhow::ensure!(array_max > 0, "Slurm takes no arrays here: MaxArraySize is 0");
        let place = std::path::absolute(folder.path())?;
        let name = format!("stealgrid-{}", &hex(&Sha256::digest(place.as_os_str().as_encoded_bytes()))[..8]);
        let program = std::env::current_exe().context("failed to find this program")?;
        Ok(Slurm { options, program, name, array_max, offers: BTreeMap::new(), is_away: false })
    }

    /// Submits one array. Returns why it was not taken.
    fn submit(&self, folder: &PlanFolder, chunks: &[usize]) -> anyhow::Result<Result<(), String>> {
        let offer = folder.offer(chunks).map_err(|error| anyhow::anyhow!("failed to {error}"))?;
        let place = std::path::absolute(folder.path())?;
        let script = format!(
            "#!/bin/sh\nexec {} sweep work {} --offer {offer}\n",
            of_shell(&self.program)?,
            of_shell(&place)?
        );
        let mut array = format!("0-{}", chunks.len() - 1);
        if let Some(count) = self.options.at_once {
            array += &format!("%{count}");
        }
        let mut command = Command::new("sbatch");
        command.arg("--parsable").args(&self.options.sbatch);
        command.arg(format!("--job-name={}-{offer}", self.name)).arg(format!("--array={array}"));
        command.arg(format!("--output={}", place.join("logs/%A_%a.txt").display())).arg("--open-mode=append");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("failed to start sbatch")?;
        // One that refuses its options reads nothing; its own words say more.
        let _ = child.stdin.take().expect("it is piped").write_all(script.as_bytes());
        let output = child.wait_with_output().context("failed to wait for sbatch")?;
        Ok(match output.status.success() {
            true => Ok(()),
            false => Err(format!("sbatch: {}", in_a_line(&output.stderr))),
        })
    }

    /// The chunk of an element, by the name and the index of its job.
    fn chunk(&mut self, folder: &PlanFolder, job: &str, index: &str) -> Option<usize> {
        let offer: usize = job.strip_prefix(&self.name)?.strip_prefix('-')?.parse().ok()?;
        let chunks = match self.offers.entry(offer) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => place.insert(folder.offered(offer).ok()?),
        };
        chunks.get(index.parse::<usize>().ok()?).copied()
    }
}

impl Engine for Slurm {
    fn offer(&mut self, folder: &PlanFolder, chunks: &[usize]) -> anyhow::Result<Offered> {
        let mut taken = Vec::new();
        for part in chunks.chunks(self.array_max) {
            match self.submit(folder, part)? {
                Ok(()) => taken.extend_from_slice(part),
                Err(reason) => return Ok(Offered { taken, refused: Some(reason) }),
            }
        }
        Ok(Offered { taken, refused: None })
    }

    fn look(&mut self, folder: &PlanFolder) -> Option<Live> {
        // States of a letter or two; elements apart; no job of others.
        let asked = said(Command::new("squeue").args(["--me", "-h", "-r", "-o", "%j %K %t %F %r"]));
        let text = match asked {
            Ok(text) => text,
            Err(error) => {
                if !self.is_away {
                    note(&format!(
                        "Slurm does not say what it has; results are looked for meanwhile: {error:#}"
                    ));
                }
                self.is_away = true;
                return None;
            }
        };
        self.is_away = false;
        let mut live = Live::default();
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.splitn(5, ' ');
            let (Some(job), Some(index), Some(state)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Some(chunk) = self.chunk(folder, job, index) else { continue };
            let (array, reason) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            if reason == STUCK {
                // Its chunk is offered again. That it cannot be taken out of the queue is nobody's loss.
                let _ = said(Command::new("scancel").arg(format!("{array}_{index}")));
                continue;
            }
            if state == "PD" {
                live.waiting.insert(chunk);
                *reasons.entry(reason.to_string()).or_default() += 1;
            } else {
                live.running.insert(chunk);
            }
        }
        live.reason = reasons.into_iter().max_by_key(|(_, count)| *count).map(|(reason, _)| reason);
        Some(live)
    }

    fn look_every(&self) -> Duration {
        self.options.poll
    }

    fn leave(&mut self) -> String {
        let names: Vec<String> = self.offers.keys().map(|offer| format!("{}-{offer}", self.name)).collect();
        let cancel = if names.is_empty() {
            String::new()
        } else {
            format!(", `scancel -n {}` ends them", names.join(","))
        };
        format!("jobs stay with Slurm{cancel}; the same command goes on")
    }
}

/// What a program says, if it succeeds.
fn said(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("failed to start {name}"))?;
    anyhow::ensure!(output.status.success(), "{name}: {}", in_a_line(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn in_a_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}

fn array_max(config: &str) -> Option<usize> {
    let value = config.lines().find_map(|line| line.trim().strip_prefix("MaxArraySize"))?;
    value.trim_start_matches([' ', '=']).trim().parse().ok()
}

/// A path as shells take it.
fn of_shell(path: &Path) -> anyhow::Result<String> {
    let text =
        path.to_str().with_context(|| format!("failed to use {}: Slurm needs text", path.display()))?;
    Ok(shlex::try_quote(text).with_context(|| format!("failed to use {}", path.display()))?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_sbatch_go_through_and_ours_do_not() {
        let options: Options = "partition=main,exclusive,poll=5s,at-once=10".parse().unwrap();
        assert_eq!(options.sbatch, ["--exclusive", "--partition=main"]);
        assert_eq!((options.poll, options.at_once), (Duration::from_secs(5), Some(10)));
        for (wrong, word) in
            [("array=1-5", "array"), ("poll=10ms", "once a second"), ("at-once=0", "at-once=50")]
        {
            let error = wrong.parse::<Options>().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn the_size_of_arrays_is_read_from_what_slurm_says() {
        let config =
            "MailProg                = /usr/bin/mail\nMaxArraySize            = 1001\nMaxBatchRequeue = 5\n";
        assert_eq!(array_max(config), Some(1001));
        assert_eq!(array_max("MaxJobCount = 3"), None);
    }
}
