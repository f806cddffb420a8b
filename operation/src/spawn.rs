//! Nodes as processes, for the coordinator: start one, read its ready line, and never leave it behind; or adopt one that
//! another coordinator has left.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use node::bounded;
use node::config::NodeConfig;
use node::control::api::ReadyLine;
use node::control::{Token, TokenError};
use node::private;
use node::running::{ProcessMark, Running};
use scheduler::SiteId;

use crate::client::NodeClient;
use crate::registration::{Desk, Registered};

/// How long a node may take to print its ready line. Starting takes milliseconds; a loaded machine takes longer.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// How often a process is looked at while waiting for its end.
const POLL: Duration = Duration::from_millis(10);
/// How long a killed process may take to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// How long a node on another machine may take to accept a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);
/// How often such a node is looked for.
const LOOK_AGE_MAX: Duration = Duration::from_millis(300);
/// How much of a node's log an error shows.
const LOG_LINES: usize = 5;
/// How many bytes of it these lines have at most: the log of a run of weeks may be long.
const LOG_BYTES: u64 = 1 << 14;

/// Why a node process is not there.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A file beside the node, or the process itself.
    #[error("{what}: {error}")]
    File {
        /// What was tried.
        what: String,
        /// What the system said.
        error: io::Error,
    },
    /// The token of its control interface.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// It ended instead of getting ready.
    #[error("node {name} ended with {status} instead of getting ready:\n{log}")]
    Ended {
        /// Name of the site.
        name: String,
        /// Exit status of its process.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// It registered, and did not say that it is up.
    #[error("node {name} is not up: {seen}; its log, on its machine or of its container, says why")]
    Absent {
        /// Name of the site.
        name: String,
        /// What is known of its process.
        seen: String,
    },
    /// It printed nothing in time, or something else.
    #[error("node {name} did not say that it is ready: {reason}; its log is {}", .log.display())]
    Silent {
        /// Name of the site.
        name: String,
        /// What happened instead.
        reason: String,
        /// The file that its log goes to.
        log: PathBuf,
    },
}

/// How to start a node process.
#[derive(Clone, Debug)]
pub struct SpawnOrder {
    /// The program: `stealgrid-node`, or one that has it as a command.
    pub program: PathBuf,
    /// Arguments before those of the node, such as the command's name.
    pub arguments: Vec<String>,
    /// A folder for `<name>.json` (the configuration) and `<name>.log` (what the node writes to stderr).
    pub folder: PathBuf,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As its parent was told.
    Status(ExitStatus),
    /// Nobody told: it was adopted.
    Unknown,
}

impl End {
    /// Its exit code; none if it was killed, or nobody told.
    pub fn code(self) -> Option<i32> {
        match self {
            End::Status(status) => status.code(),
            End::Unknown => None,
        }
    }

    /// Whether it is known to have failed.
    pub fn is_failure(self) -> bool {
        matches!(self, End::Status(status) if !status.success())
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Status(status) => status.fmt(f),
            End::Unknown => f.write_str("an exit status that nobody was told"),
        }
    }
}

/// A node process. Dropping it kills the process, unless it was adopted and not bound.
#[derive(Debug)]
pub struct NodeProcess {
    process: Process,
    ready: ReadyLine,
    token: Option<Token>,
    log: PathBuf,
}

#[derive(Debug)]
enum Process {
    Child { child: Child, reader: Option<JoinHandle<()>> },
    Adopted { mark: ProcessMark, bound: bool },
    Registered(Remote),
}

/// A process that nobody here started.
#[derive(Debug)]
struct Remote {
    desk: Arc<Desk>,
    /// The number that it drew.
    process: u64,
    /// When it was last seen to be there.
    seen: Instant,
    /// Whether it has ended, or was left.
    over: bool,
}

impl NodeProcess {
    /// Starts a node and waits until it is up.
    ///
    /// Call it on a thread that lives as long as the node should: the kernel ends the node with the thread that
    /// started it.
    ///
    /// # Errors
    /// If it does not start, or ends or stays silent instead of getting ready.
    pub fn spawn(order: &SpawnOrder, config: &NodeConfig) -> Result<NodeProcess, SpawnError> {
        NodeProcess::spawn_with(order, config, false)
    }

    /// Starts a node that has ended once more. Its log goes on.
    ///
    /// # Errors
    /// As for [`NodeProcess::spawn`].
    pub fn spawn_again(order: &SpawnOrder, config: &NodeConfig) -> Result<NodeProcess, SpawnError> {
        NodeProcess::spawn_with(order, config, true)
    }

    /// Takes over a node that runs and that another process has started. It is left alone when dropped until
    /// [`NodeProcess::bind`].
    ///
    /// # Errors
    /// If its token cannot be read.
    pub fn adopt(
        order: &SpawnOrder,
        config: &NodeConfig,
        running: Running,
    ) -> Result<NodeProcess, SpawnError> {
        let token = config.control_token.as_deref().map(Token::read).transpose()?;
        let log = order.folder.join(format!("{}.log", name_of(config)));
        Ok(NodeProcess {
            process: Process::Adopted { mark: running.process, bound: false },
            ready: running.ready,
            token,
            log,
        })
    }

    /// A node that has registered for a site, once it is up; not the one that `former` is, unless that answers again.
    ///
    /// # Errors
    /// If it is not within `patience`.
    pub fn registered(
        desk: &Arc<Desk>,
        config: &NodeConfig,
        token: &Token,
        former: Option<&NodeProcess>,
        patience: Duration,
    ) -> Result<NodeProcess, SpawnError> {
        let name = name_of(config);
        let former = former.and_then(|former| match &former.process {
            Process::Registered(remote) => Some(remote.process),
            _ => None,
        });
        let is_right = |up: &Registered| former != Some(up.process) || answers(&up.ready.http);
        let up = desk.registered(config.site, patience, is_right);
        let absent = || SpawnError::Absent { name, seen: desk.seen(config.site) };
        let Registered { process, ready } = up.ok_or_else(absent)?;
        let remote = Remote { desk: Arc::clone(desk), process, seen: Instant::now(), over: false };
        let (token, log) = (Some(token.clone()), PathBuf::new());
        Ok(NodeProcess { process: Process::Registered(remote), ready, token, log })
    }

    /// From now on the node ends with this value, however it was started.
    pub fn bind(&mut self) {
        if let Process::Adopted { bound, .. } = &mut self.process {
            *bound = true;
        }
    }

    fn spawn_with(order: &SpawnOrder, config: &NodeConfig, again: bool) -> Result<NodeProcess, SpawnError> {
        let name = name_of(config);
        let file_error = |what: String| move |error| SpawnError::File { what, error };
        let token = config.control_token.as_deref().map(Token::read).transpose()?;
        let config_path = order.folder.join(format!("{name}.json"));
        let text = serde_json::to_string(config).expect("a configuration is plain data");
        write_new(&config_path, &text).map_err(file_error(format!("write {}", config_path.display())))?;
        let log = order.folder.join(format!("{name}.log"));
        let log_file = match again {
            true => private::options().create(true).append(true).open(&log),
            false => private::create(&log),
        };
        let log_file = log_file.map_err(file_error(format!("write {}", log.display())))?;
        let mut child = Command::new(&order.program)
            .args(&order.arguments)
            .arg("--config")
            .arg(&config_path)
            .arg("--die-with-parent")
            // A Ctrl-C at the terminal is for the coordinator, which stops its nodes when it has their events.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .map_err(file_error(format!("start {}", order.program.display())))?;
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut process = Starting { child: Some(child), reader: None };
        let (line_sender, lines) = mpsc::sync_channel(1);
        let reader = std::thread::Builder::new().spawn(move || {
            // The rest is read as well, so that the node never blocks on a full pipe.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Only the first is wanted, and only while somebody waits for it.
                let _ = line_sender.try_send(line);
            }
        });
        process.reader = Some(reader.map_err(file_error("start a thread".to_string()))?);
        let line = match lines.recv_timeout(READY_PATIENCE) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let status = process.wait().map_err(file_error(format!("wait for node {name}")))?;
                return Err(SpawnError::Ended { name, status, log: tail(&log) });
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let reason = format!("nothing within {READY_PATIENCE:?}");
                return Err(SpawnError::Silent { name, reason, log });
            }
        };
        let ready = match serde_json::from_str(&line) {
            Ok(ready) => ready,
            Err(error) => {
                let reason = format!("{line:?} is no ready line: {error}");
                return Err(SpawnError::Silent { name, reason, log });
            }
        };
        let (child, reader) = process.release();
        Ok(NodeProcess { process: Process::Child { child, reader }, ready, token, log })
    }

    /// What the node said when it was up.
    pub fn ready_line(&self) -> &ReadyLine {
        &self.ready
    }

    /// A client of its control interface.
    pub fn client(&self) -> NodeClient {
        NodeClient::new(&self.ready.http, self.token.clone())
    }

    /// What its control interface wants to see.
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Where it writes its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The end of its log, for messages.
    pub fn log_tail(&self) -> String {
        match &self.process {
            Process::Registered(_) => "its log is where it runs".to_string(),
            _ => tail(&self.log),
        }
    }

    /// Its process id; none of a node that registered, which may be on another machine.
    pub fn id(&self) -> Option<u32> {
        match &self.process {
            Process::Child { child, .. } => Some(child.id()),
            Process::Adopted { mark, .. } => Some(mark.id),
            Process::Registered(_) => None,
        }
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn ended(&mut self) -> io::Result<Option<End>> {
        match &mut self.process {
            Process::Child { child, .. } => Ok(child.try_wait()?.map(End::Status)),
            Process::Adopted { mark, .. } => Ok((!mark.is_alive()).then_some(End::Unknown)),
            Process::Registered(remote) => {
                if remote.over || remote.is_replaced(self.ready.site) || !remote.is_there(&self.ready.http) {
                    return Ok(Some(End::Unknown));
                }
                Ok(None)
            }
        }
    }

    /// Tells the node to stop and waits for its end; kills it after `patience`. `None` if it had to be killed.
    ///
    /// # Errors
    /// If the system does not say how it ended.
    pub fn stop(mut self, patience: Duration) -> io::Result<Option<End>> {
        let deadline = Instant::now() + patience;
        // If it does not answer, waiting and killing takes care of it.
        let _ = NodeClient::with_timeout(&self.ready.http, self.token.clone(), patience).stop();
        if let Process::Registered(remote) = &mut self.process {
            // It may be restarted by whoever runs it.
            remote.over = true;
        }
        while Instant::now() < deadline {
            if let Some(end) = self.ended()? {
                return Ok(Some(end));
            }
            std::thread::sleep(POLL);
        }
        Ok(None)
    }
}

impl Remote {
    /// Whether another process is the site now.
    fn is_replaced(&self, site: SiteId) -> bool {
        self.desk.process(site) != Some(self.process)
    }

    /// Whether something listens where the node does, by a look that is not too old.
    fn is_there(&mut self, http: &str) -> bool {
        if self.seen.elapsed() < LOOK_AGE_MAX {
            return true;
        }
        let there = answers(http);
        if there {
            self.seen = Instant::now();
        }
        there
    }
}

/// Whether something listens there.
fn answers(http: &str) -> bool {
    let address = http.parse::<SocketAddr>();
    address.is_ok_and(|address| TcpStream::connect_timeout(&address, CONNECT_PATIENCE).is_ok())
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        match &mut self.process {
            Process::Child { child, reader } => end(child, reader.take()),
            Process::Adopted { bound: false, .. } => {}
            // What restarted in its place may listen where it did, as a container keeps its address.
            Process::Registered(remote) if remote.over || remote.is_replaced(self.ready.site) => {}
            Process::Registered(_) => {
                // It works for nobody; if it does not answer, it ends after its patience.
                let _ =
                    NodeClient::with_timeout(&self.ready.http, self.token.clone(), CONNECT_PATIENCE).stop();
            }
            Process::Adopted { mark, bound: true } => {
                mark.kill();
                let deadline = Instant::now() + KILL_PATIENCE;
                while mark.is_alive() && Instant::now() < deadline {
                    std::thread::sleep(POLL);
                    // It may not have been possible at once.
                    mark.kill();
                }
            }
        }
    }
}

/// The name of the site that a node is told to be.
pub(crate) fn name_of(config: &NodeConfig) -> String {
    let index = config.site.0.checked_sub(1);
    let entry = index.and_then(|index| config.grid.get(index as usize));
    entry.map_or_else(|| format!("site{}", config.site.0), |site| site.name.clone())
}

/// Writes a file unless it says the same already. What it said before is there until the new text is whole: on a full
/// disk, too.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if bounded::read_text(path, text.len() as u64).is_ok_and(|before| before == text) {
        return Ok(());
    }
    let new = path.with_extension("new");
    let written = private::create(&new).and_then(|mut file| file.write_all(text.as_bytes()));
    written.and_then(|()| std::fs::rename(&new, path)).inspect_err(|_| {
        // It takes room that somebody else may need.
        let _ = std::fs::remove_file(&new);
    })
}

/// A process that has not said that it is ready; killed when dropped.
struct Starting {
    child: Option<Child>,
    reader: Option<JoinHandle<()>>,
}

impl Starting {
    fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.as_mut().expect("it is released last").wait()
    }

    fn release(mut self) -> (Child, Option<JoinHandle<()>>) {
        (self.child.take().expect("it is released once"), self.reader.take())
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            end(child, self.reader.take());
        }
    }
}

/// Kills a process, if it still runs, and leaves neither a zombie nor a thread.
fn end(child: &mut Child, reader: Option<JoinHandle<()>>) {
    // Errors mean that it has ended already.
    let _ = child.kill();
    let _ = child.wait();
    if let Some(reader) = reader {
        // The reader cannot panic.
        let _ = reader.join();
    }
}

/// The last lines of a log.
fn tail(path: &Path) -> String {
    last_lines(path, LOG_LINES, LOG_BYTES)
}

/// The last lines of a file, of at most so many bytes together, with what is no text made some; none if it cannot be read.
fn last_lines(path: &Path, lines: usize, most: u64) -> String {
    let read = || {
        let mut file = File::open(path)?;
        let from = file.metadata()?.len().saturating_sub(most);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_end_of_a_long_log_is_read_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.log");
        assert_eq!(last_lines(&path, 2, 100), "");
        let log: String = (0..10_000).map(|line| format!("line {line}\n")).collect();
        fs::write(&path, log).unwrap();
        assert_eq!(last_lines(&path, 2, 100), "line 9998\nline 9999");
        assert_eq!(last_lines(&path, 100, 13), "98\nline 9999", "as many bytes as allowed");
        // One that nobody could keep: it has holes in place of what was written.
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(last_lines(&path, 2, 100).len(), 100);
    }
}
