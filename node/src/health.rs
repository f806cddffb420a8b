//! Asks whether a program is well, for images that have nothing else to ask with.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::exit;

/// Programs answer at once if they are well.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Ask whether a node or coordinator is well: exit code 0 if it answers with success, else 1 and the reason
#[derive(Clone, Debug, Args)]
pub struct HealthArgs {
    /// What to ask, as in http://127.0.0.1:9100; its /healthz, if it has no path
    url: String,
}

/// Runs the command.
pub fn run(args: &HealthArgs) -> ExitCode {
    let url = asked(&args.url);
    match well(&url) {
        Ok(()) => ExitCode::from(exit::DONE),
        Err(reason) => {
            eprintln!("error: {url}: {reason}");
            ExitCode::from(exit::UNEXPECTED)
        }
    }
}

/// What is asked: `/healthz` where no path is given, by HTTP where nothing else is said.
fn asked(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let place = rest.strip_suffix('/').unwrap_or(rest);
    let path = if place.contains(['/', '?', '#']) { "" } else { "/healthz" };
    let place = if path.is_empty() { rest } else { place };
    format!("{scheme}://{place}{path}")
}

fn well(url: &str) -> Result<(), String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        .build()
        .into();
    let mut answer = agent.get(url).call().map_err(|error| error.to_string())?;
    if answer.status().is_success() {
        return Ok(());
    }
    let text = answer.body_mut().read_to_string().unwrap_or_default();
    Err(format!("{} {}", answer.status(), text.trim_end()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Gives one answer.
    fn server(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            write!(stream, "HTTP/1.1 {answer}").unwrap();
        });
        format!("http://{address}/healthz")
    }

    #[test]
    fn what_has_no_path_is_asked_for_its_health() {
        for (given, expected) in [
            ("http://127.0.0.1:9101", "http://127.0.0.1:9101/healthz"),
            ("http://127.0.0.1:9101/", "http://127.0.0.1:9101/healthz"),
            ("node-1:9101", "http://node-1:9101/healthz"),
            ("http://127.0.0.1:9101/readyz", "http://127.0.0.1:9101/readyz"),
            ("http://127.0.0.1:9101/a/", "http://127.0.0.1:9101/a/"),
        ] {
            assert_eq!(asked(given), expected);
        }
    }

    #[test]
    fn success_is_well_and_everything_else_is_not() {
        assert_eq!(well(&server("200 OK\r\ncontent-length: 3\r\n\r\nok\n")), Ok(()));
        let error = well(&server("503 Busy\r\ncontent-length: 5\r\n\r\nstuck")).unwrap_err();
        assert_eq!(error, "503 Service Unavailable stuck");
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(well(&format!("http://{nobody}/healthz")).is_err());
    }
}
