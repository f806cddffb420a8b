//! A run of three sites that is served, and what is asked of its page over HTTP.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::PROGRAM;
use crate::processes::{self, Run, read};

/// Ample for what takes seconds; reached only by a failing test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// What a server answers: its status, and its body as JSON.
pub(crate) type Answer = (u16, Value);

/// A run of three sites that is served.
pub(crate) struct Served {
    pub(crate) run: Run,
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Served {
    pub(crate) fn start(folder: &Path, experiment: &str, args: &[&str]) -> Served {
        Served::by(Command::new(PROGRAM), folder, experiment, args)
    }

    /// The same, started by this command.
    pub(crate) fn by(mut command: Command, folder: &Path, experiment: &str, args: &[&str]) -> Served {
        let file = folder.join("experiment.toml");
        std::fs::write(&file, experiment).unwrap();
        command.arg("run").arg(file).args(["--serve", "127.0.0.1:0"]).args(args);
        std::fs::write(folder.join("jobs.swf"), processes::jobs()).unwrap();
        let run = Run::of(command, folder);
        let said = |before: &str| {
            let said = read(&folder.join("stderr"));
            let after = said.split_once(before)?.1.split_once('\n')?.0.to_string();
            Some(after)
        };
        let address = until(|| said("note: watch at http://"));
        let file = until(|| said("note: for orders add /#token= and what is in "));
        let token = read(&folder.join(file)).trim().to_string();
        Served { run, address, token }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        ask(&self.address, method, path, headers, body)
    }

    /// How often this was a reason to turn a request away.
    pub(crate) fn turned_away(&self, reason: &str) -> usize {
        turned_away(&self.address, reason)
    }

    pub(crate) fn order_by(&self, name: &str, headers: &str, words: &Value) -> Answer {
        let (status, body) = self.ask("POST", &format!("/orders/{name}"), headers, &words.to_string());
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    pub(crate) fn order(&self, name: &str, words: Value) -> Answer {
        let headers = format!("host: {}\r\nauthorization: Bearer {}\r\n", self.address, self.token);
        self.order_by(name, &headers, &words)
    }

    /// What came of an order that is obeyed.
    pub(crate) fn obeyed(&self, name: &str, words: Value) -> Value {
        let (status, answer) = self.order(name, words);
        assert_eq!(status, 200, "{name}: {answer}");
        answer
    }

    /// Why an order is not obeyed.
    pub(crate) fn refused(&self, name: &str, words: Value, status: u16) -> String {
        let (got, answer) = self.order(name, words);
        assert_eq!(got, status, "{name}: {answer}");
        answer["reason"].as_str().unwrap().to_string()
    }

    /// The next picture of the run.
    pub(crate) fn frame(&self) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET /live HTTP/1.1\r\nhost: {}\r\n\r\n", self.address).unwrap();
        let (mut got, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let count = match stream.read(&mut buffer) {
                // This process was stopped meanwhile, and goes on.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                count => count.unwrap(),
            };
            assert!(count > 0, "the stream ended");
            got.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&got);
            let mut events = text.split("event: frame").skip(1);
            let frame = events
                .find_map(|event| event.split_once("\n\n")?.0.split("data: ").nth(1).map(str::to_string));
            if let Some(frame) = frame {
                // Pieces of the transfer may lie between; then the next one is looked at.
                if let Ok(frame) = serde_json::from_str(&frame) {
                    return frame;
                }
            }
        }
    }

    #[track_caller]
    pub(crate) fn until_frame(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        until(|| Some(self.frame()).filter(&wanted))
    }
}

/// What is answered there: the status and the body.
pub(crate) fn ask(address: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_string())
}

/// How often this was a reason to turn a request away there, as Prometheus reads it.
pub(crate) fn turned_away(address: &str, reason: &str) -> usize {
    let (status, page) = ask(address, "GET", "/metrics", "host: here\r\n", "");
    assert_eq!(status, 200, "{page}");
    let start = format!("stealgrid_run_requests_refused_total{{reason=\"{reason}\"");
    let line = page.lines().find(|line| line.starts_with(&start)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Whether the picture has this site as away: the second of its eleven numbers says since when.
pub(crate) fn is_away(frame: &Value, site: usize) -> bool {
    frame["sites"][11 * site + 1].as_i64().unwrap() >= 0
}

#[track_caller]
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) const EXPERIMENT: &str = r#"
grid.sizes = [4, 8, 16]
workload.trace = "jobs.swf"
network.delay = "2s"
node.journal = "process"
run.calibration_tolerance = 1000.0
run.clock = "scaled:30"
"#;
