//! `stealgrid submit`: hands one job to a node that somebody started by hand, in units of people.
//!
//! A run has its jobs from its experiment, and takes more by orders; this is for nodes without a coordinator.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use experiments::exit;
use experiments::terminal::say;
use node::control::Token;
use operation::client::{ClientError, NodeClient};
use scheduler::{JobId, JobSpec, Labels, Span, Time, TimedJob};

/// Hand a job to a node
///
/// The node must have a token (`stealgrid node --control-token FILE`). Its site is where the user of the job is, and the job may
/// end up elsewhere. Times are trace time. The node waits for a job that is submitted later, also before trace time begins.
///
/// Exit codes: 0 the node has it, 1 it does not answer or refuses, 2 usage, 3 the token cannot be read.
#[derive(Clone, Debug, Args)]
pub struct SubmitArgs {
    /// Where the node listens for orders, as in http://127.0.0.1:9102
    #[arg(value_name = "URL")]
    url: String,

    /// Processors that the job needs
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..))]
    processors: u32,

    /// How long it may run, by its user, as in 1h
    #[arg(long, value_name = "TIME", value_parser = span)]
    time: Span,

    /// How long it does run, as in 30m, which no scheduler is told [default: as long as it may]
    #[arg(long, value_name = "TIME", value_parser = span)]
    run_time: Option<Span>,

    /// When it is submitted, as in 90s of trace time [default: now, or when trace time begins]
    #[arg(long, value_name = "TIME", value_parser = span)]
    at: Option<Span>,

    /// Its number, which no other job of the grid has [default: milliseconds since 1970]
    #[arg(long, value_name = "N")]
    id: Option<u64>,

    /// Number of its user
    #[arg(long, value_name = "N", default_value_t = -1, hide_default_value = true)]
    user: i32,

    /// Bytes that move with it from site to site
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    payload: u64,

    /// File with the token of the node
    #[arg(long, value_name = "FILE")]
    control_token: PathBuf,
}

/// A time with its unit.
fn span(text: &str) -> Result<Span, String> {
    let time = humantime::parse_duration(text).ok().and_then(|time| i64::try_from(time.as_micros()).ok());
    time.map(Span::from_micros)
        .ok_or_else(|| format!("{text:?} is no time; write a whole number and a unit, as in 90s or 1h 30m"))
}

/// Where a node is that is named by a URL or an address.
fn address(url: &str) -> &str {
    let address = url.strip_prefix("http://").unwrap_or(url);
    address.strip_suffix('/').unwrap_or(address)
}

/// Runs the command.
///
/// # Errors
/// If the result cannot be printed.
pub fn command(args: &SubmitArgs) -> anyhow::Result<u8> {
    let token = match Token::read(&args.control_token) {
        Ok(token) => token,
        Err(error) => {
            eprintln!("error: failed to read the token of the node: {error}");
            return Ok(exit::INPUT);
        }
    };
    let client = NodeClient::new(address(&args.url), Some(token));
    match hand_over(args, &client) {
        Ok(said) => say(&said).map(|()| exit::DONE),
        Err(error) => {
            eprintln!("error: failed to hand the job over: {error}");
            Ok(exit::UNEXPECTED)
        }
    }
}

/// What is to be said of a job that the node has.
fn hand_over(args: &SubmitArgs, client: &NodeClient) -> Result<String, ClientError> {
    let status = client.status()?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let id = JobId(args.id.unwrap_or_else(|| u64::try_from(since_1970).unwrap_or(u64::MAX)));
    let now = Time::from_micros(status.trace_time_us).max(Time::ZERO);
    let submit = args.at.map_or(now, |at| Time::ZERO + at);
    let spec = JobSpec {
        id,
        submit,
        processors: args.processors,
        requested: args.time,
        labels: Labels { user: args.user, ..Labels::UNKNOWN },
        origin: status.site,
        payload: args.payload,
    };
    client.jobs(&[TimedJob { spec, run_time: args.run_time.unwrap_or(args.time) }])?;
    Ok(format!("job {id}: {} has it, and submits it at {submit} s of trace time\n", status.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_nodes_are_named_by_address_or_url() {
        assert_eq!(span("1h 30m"), Ok(Span::from_secs(5400)));
        assert!(span("90").unwrap_err().contains("90s"));
        for url in ["http://127.0.0.1:9102", "http://127.0.0.1:9102/", "127.0.0.1:9102"] {
            assert_eq!(address(url), "127.0.0.1:9102");
        }
    }
}
