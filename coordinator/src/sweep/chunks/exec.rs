//! A command of the user: one for each chunk, or one that is told all of them, a line each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;

use super::engines::{Engine, Live, Offered};
use super::folder::PlanFolder;

/// How often ended commands are looked for.
const LOOK: Duration = Duration::from_millis(200);

/// What stands behind `exec:`, as words. No shell reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    words: Vec<String>,
}

impl FromStr for Options {
    type Err = String;

    fn from_str(text: &str) -> Result<Options, String> {
        match shlex::split(text) {
            Some(words) if !words.is_empty() => Ok(Options { words }),
            Some(_) => {
                Err("exec needs a command, as in exec:'ssh node1 stealgrid sweep work {plan} {chunk}'"
                    .to_string())
            }
            None => Err(format!("a quotation mark of {text:?} is open")),
        }
    }
}

impl Options {
    /// Whether each chunk has a command of its own.
    fn is_of_one(&self) -> bool {
        self.words.iter().any(|word| word.contains("{chunk}"))
    }
}

/// Commands that run, and chunks that wait for one.
#[derive(Debug)]
pub struct Exec {
    options: Options,
    /// Commands that run at a time at most, where each chunk has its own.
    at_once: usize,
    waiting: VecDeque<usize>,
    running: Vec<(Child, BTreeSet<usize>)>,
}

impl Exec {
    /// With so many commands at a time.
    pub fn new(options: Options, at_once: usize) -> Exec {
        Exec { options, at_once, waiting: VecDeque::new(), running: Vec::new() }
    }

    fn start(&self, folder: &PlanFolder, chunk: Option<usize>, list: &str) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("failed to find this program")?;
        let place = std::path::absolute(folder.path())?;
        let known = BTreeMap::from([
            (
                "{plan}",
                place
                    .to_str()
                    .context("failed to use the folder of the plan: a command needs text")?
                    .to_string(),
            ),
            (
                "{program}",
                program.to_str().context("failed to name this program: a command needs text")?.to_string(),
            ),
            ("{chunk}", chunk.map(|chunk| chunk.to_string()).unwrap_or_default()),
        ]);
        let fill =
            |word: &String| known.iter().fold(word.clone(), |word, (name, value)| word.replace(name, value));
        let words: Vec<String> = self.options.words.iter().map(fill).collect();
        let name = chunk.map_or("all".to_string(), |chunk| chunk.to_string());
        let log = folder.logs().join(format!("{name}.txt"));
        let log = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("failed to write {}", log.display()))?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        // Ended all together, with what they have started.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().with_context(|| format!("failed to start {}", words[0]))?;
        // One that does not read it has ended, or knows its chunk.
        let _ = child.stdin.take().expect("it is piped").write_all(list.as_bytes());
        Ok(child)
    }

    fn fill(&mut self, folder: &PlanFolder) -> anyhow::Result<()> {
        while self.running.len() < self.at_once {
            let Some(chunk) = self.waiting.pop_front() else { break };
            let child = self.start(folder, Some(chunk), "")?;
            self.running.push((child, BTreeSet::from([chunk])));
        }
        Ok(())
    }
}

impl Engine for Exec {
    fn offer(&mut self, folder: &PlanFolder, chunks: &[usize]) -> anyhow::Result<Offered> {
        if self.options.is_of_one() {
            self.waiting.extend(chunks);
            self.fill(folder)?;
        } else {
            let list: String = chunks.iter().map(|chunk| format!("{chunk}\n")).collect();
            let child = self.start(folder, None, &list)?;
            self.running.push((child, chunks.iter().copied().collect()));
        }
        Ok(Offered { taken: chunks.to_vec(), refused: None })
    }

    fn look(&mut self, folder: &PlanFolder) -> Option<Live> {
        // One whose end cannot be learned has ended.
        self.running.retain_mut(|(child, _)| matches!(child.try_wait(), Ok(None)));
        // What cannot be started now is offered again by the next look.
        self.fill(folder).ok()?;
        let running = self.running.iter().flat_map(|(_, chunks)| chunks).copied().collect();
        Some(Live { waiting: self.waiting.iter().copied().collect(), running, reason: None })
    }

    fn look_every(&self) -> Duration {
        LOOK
    }

    fn leave(&mut self) -> String {
        self.waiting.clear();
        for (child, _) in &mut self.running {
            let group = rustix::process::Pid::from_child(child);
            // One that has ended by itself is what is wanted, too.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
        }
        for (mut child, _) in self.running.drain(..) {
            let _ = child.wait();
        }
        "the same command goes on".to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell_and_a_command_knows_its_chunk_or_is_told_all() {
        let options: Options = "ssh 'a b' stealgrid sweep work {plan} {chunk}".parse().unwrap();
        assert_eq!(options.words[1], "a b");
        assert!(options.is_of_one());
        assert!(!"parallel -j2 {program} sweep work {plan}".parse::<Options>().unwrap().is_of_one());
        assert!("".parse::<Options>().unwrap_err().contains("needs a command"));
        assert!("a 'b".parse::<Options>().unwrap_err().contains("open"));
    }
}
