//! Worker processes and what they work on: who gets which run next, and what becomes of a worker that dies.
//!
//! Runs with the same workload are one batch. A worker takes a whole batch, so that it prepares each workload once;
//! when no batch is left untouched, it takes half of the longest that another is at.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use outputs::sweep::Cell;

use super::database::Ending;
use super::file::PlannedRun;
use super::progress::LOOK_EVERY;
use super::worker::{Answer, Assignment};

/// Of what a dying worker says, so much is kept.
const LAST_WORDS: usize = 2000;

/// A run that came to an end.
pub struct Ended {
    /// Its place in the plan.
    pub index: usize,
    /// What was measured, or why nothing was.
    pub ending: Ending,
    /// How long it took.
    pub wall_s: f64,
    /// Whether the worker ended over it.
    pub crashed: bool,
}

impl Ended {
    /// Whether it was not measured.
    pub fn is_failed(&self) -> bool {
        matches!(self.ending, Ending::Failed(_))
    }
}

/// Runs that nobody works on yet.
struct Pending {
    /// Batches that no worker has begun.
    batches: VecDeque<VecDeque<usize>>,
    /// The rest of the batch that each worker is at.
    at: Vec<VecDeque<usize>>,
    stopped: bool,
}

impl Pending {
    /// Batches of runs, in order of their first run.
    fn new(runs: &[PlannedRun], todo: &[usize], workers: usize) -> Pending {
        let mut batches: VecDeque<VecDeque<usize>> = VecDeque::new();
        let mut place = std::collections::BTreeMap::new();
        for &index in todo {
            let next = batches.len();
            let batch = *place.entry(&runs[index].workload).or_insert(next);
            if batch == next {
                batches.push_back(VecDeque::new());
            }
            batches[batch].push_back(index);
        }
        Pending { batches, at: vec![VecDeque::new(); workers], stopped: false }
    }

    fn next(&mut self, worker: usize) -> Option<usize> {
        if self.stopped {
            return None;
        }
        if self.at[worker].is_empty() {
            self.at[worker] = self.batches.pop_front().unwrap_or_else(|| self.half_of_the_longest());
        }
        self.at[worker].pop_front()
    }

    fn half_of_the_longest(&mut self) -> VecDeque<usize> {
        let longest = self.at.iter_mut().max_by_key(|batch| batch.len());
        longest.map_or_else(VecDeque::new, |batch| batch.split_off(batch.len() / 2))
    }
}

/// Threads that each feed one worker process.
pub struct Pool {
    pending: Arc<Mutex<Pending>>,
    children: Arc<Mutex<Vec<Option<Child>>>>,
    threads: Vec<JoinHandle<()>>,
}

/// Calls `look` with each end, and without one every `LOOK_EVERY`, until there are no more or it breaks.
///
/// # Errors
/// That of `look`.
pub fn watch(
    ended: &Receiver<Ended>,
    mut look: impl FnMut(Option<Ended>) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<()> {
    loop {
        let end = match ended.recv_timeout(LOOK_EVERY) {
            Ok(end) => Some(end),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        if look(end)?.is_break() {
            return Ok(());
        }
    }
}

/// What all feeders share.
struct Feeder {
    worker: usize,
    runs: Arc<Vec<PlannedRun>>,
    kept: PathBuf,
    pending: Arc<Mutex<Pending>>,
    children: Arc<Mutex<Vec<Option<Child>>>>,
    ended: Sender<Ended>,
}

impl Pool {
    /// Starts `jobs` workers on the runs `todo`; each end is sent to `ended`, which closes after the last.
    /// Full results of runs that are kept go below `kept`.
    pub fn start(
        jobs: usize,
        runs: Arc<Vec<PlannedRun>>,
        todo: &[usize],
        kept: &Path,
        ended: Sender<Ended>,
    ) -> std::io::Result<Pool> {
        let pending = Arc::new(Mutex::new(Pending::new(&runs, todo, jobs)));
        let children = Arc::new(Mutex::new((0..jobs).map(|_| None).collect()));
        let mut threads = Vec::with_capacity(jobs);
        for worker in 0..jobs {
            let feeder = Feeder {
                worker,
                runs: runs.clone(),
                kept: kept.to_path_buf(),
                pending: pending.clone(),
                children: children.clone(),
                ended: ended.clone(),
            };
            let thread = std::thread::Builder::new().name(format!("worker {worker}"));
            threads.push(thread.spawn(move || feeder.feed())?);
        }
        Ok(Pool { pending, children, threads })
    }

    /// Process ids of the workers, for people who want to look at them.
    pub fn ids(&self) -> Vec<u32> {
        locked(&self.children).iter().flatten().map(Child::id).collect()
    }

    /// Ends all workers at once. Runs that they were at have no result.
    pub fn stop(self) {
        locked(&self.pending).stopped = true;
        for child in locked(&self.children).iter_mut().flatten() {
            // One that has ended by itself is what is wanted, too.
            child.kill().ok();
        }
        self.join();
    }

    /// Waits for the end of all runs.
    pub fn join(self) {
        for thread in self.threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// A panic of another thread leaves lists of numbers as they were.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pipes of a worker.
struct Pipes {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    stderr: JoinHandle<String>,
}

impl Feeder {
    fn feed(self) {
        let mut pipes: Option<Pipes> = None;
        loop {
            let next = locked(&self.pending).next(self.worker);
            let Some(index) = next else { break };
            let (ending, wall_s, crashed) = match self.run(&mut pipes, index) {
                Ok(answer) => {
                    let (ending, wall_s) = ending(answer);
                    (ending, wall_s, false)
                }
                Err(reason) => (Ending::Failed(reason), 0.0, true),
            };
            if locked(&self.pending).stopped {
                break;
            }
            if self.ended.send(Ended { index, ending, wall_s, crashed }).is_err() {
                break;
            }
        }
        if let Some(pipes) = pipes {
            drop(pipes.stdin);
            self.wait();
        }
    }

    /// One run by the worker, which is started first if there is none.
    fn run(&self, pipes: &mut Option<Pipes>, index: usize) -> Result<Answer, String> {
        if pipes.is_none() {
            *pipes = Some(self.spawn().map_err(|error| format!("no worker can be started: {error}"))?);
        }
        let open = pipes.as_mut().expect("opened above");
        let run = &self.runs[index];
        let order = Assignment {
            position: run.position,
            experiment: run.experiment.clone(),
            keep: run.keep.then(|| self.kept.join(run.position.to_string())),
        };
        match ask(open, &order) {
            Ok(answer) if answer.position == run.position => Ok(answer),
            Ok(_) => Err("the worker answered for another run".to_string()),
            Err(error) => {
                let dead = pipes.take().expect("it was open");
                drop(dead.stdin);
                let how = self.wait();
                let words = dead.stderr.join().unwrap_or_default();
                let words = words.trim();
                let said = if words.is_empty() { error.to_string() } else { words.to_string() };
                Err(format!("the worker ended ({how}): {said}"))
            }
        }
    }

    fn spawn(&self) -> std::io::Result<Pipes> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("sweep-worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C on the terminal is for the sweep, which ends its workers itself.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(mut stderr)) = (stdin, stdout, stderr) else {
            unreachable!("all three are piped");
        };
        locked(&self.children)[self.worker] = Some(child);
        let stderr = std::thread::Builder::new().name("last words".to_string()).spawn(move || {
            let (mut kept, mut buffer) = (Vec::new(), [0; 1024]);
            while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                kept.extend_from_slice(&buffer[..count]);
                let excess = kept.len().saturating_sub(LAST_WORDS);
                kept.drain(..excess);
            }
            String::from_utf8_lossy(&kept).into_owned()
        })?;
        Ok(Pipes { stdin, stdout: BufReader::new(stdout), stderr })
    }

    /// Waits for the worker's end, in words.
    fn wait(&self) -> String {
        let child = locked(&self.children)[self.worker].take();
        match child.map(|mut child| child.wait()) {
            Some(Ok(status)) => status.to_string(),
            Some(Err(error)) => error.to_string(),
            None => "unknown".to_string(),
        }
    }
}

fn ask(pipes: &mut Pipes, order: &Assignment) -> std::io::Result<Answer> {
    let mut line = serde_json::to_string(order)?;
    line.push('\n');
    pipes.stdin.write_all(line.as_bytes())?;
    pipes.stdin.flush()?;
    line.clear();
    if pipes.stdout.read_line(&mut line)? == 0 {
        return Err(std::io::Error::other("it said nothing"));
    }
    Ok(serde_json::from_str(&line)?)
}

fn ending(answer: Answer) -> (Ending, f64) {
    let ending = match answer.result {
        Ok(measures) => {
            Ending::Done(measures.into_iter().map(|(name, number)| (name, Cell::from(number))).collect())
        }
        Err(reason) => Ending::Failed(reason),
    };
    (ending, answer.wall_s)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn runs(workloads: &[&str]) -> Vec<PlannedRun> {
        let run = |(position, workload): (usize, &&str)| PlannedRun {
            position,
            digest: position.to_string(),
            values: BTreeMap::new(),
            experiment: toml::Table::new(),
            workload: workload.to_string(),
            keep: false,
        };
        (1..).zip(workloads).map(run).collect()
    }

    #[test]
    fn a_worker_stays_with_a_workload_and_helps_when_none_is_left() {
        let runs = runs(&["a", "b", "a", "b", "b", "b"]);
        let mut pending = Pending::new(&runs, &[0, 1, 2, 3, 4, 5], 2);

        let order = [0, 1, 0, 0, 1, 1, 0, 1].map(|worker| pending.next(worker));

        // Worker 0 ends "a" with its second run, then takes half of what is left of "b".
        assert_eq!(order, [Some(0), Some(1), Some(2), Some(4), Some(3), Some(5), None, None]);
    }

    #[test]
    fn every_run_is_given_out_once() {
        let runs = runs(&["a", "a", "a", "b", "c", "c", "a", "d", "d"]);
        let todo: Vec<usize> = (0..runs.len()).collect();
        for workers in 1..5 {
            let mut pending = Pending::new(&runs, &todo, workers);
            let mut given: Vec<usize> = Vec::new();
            for turn in 0.. {
                match pending.next(turn % workers) {
                    Some(index) => given.push(index),
                    None if given.len() == runs.len() => break,
                    None => {}
                }
            }
            given.sort_unstable();
            assert_eq!(given, todo);
        }
    }
}
