//! What a process says of itself while it works: a log on stderr and, if it is built with the feature `otel`, spans for
//! a collector of OpenTelemetry.
//!
//! `RUST_LOG` chooses what is logged. Spans go where `OTEL_EXPORTER_OTLP_ENDPOINT` says, and nowhere if it is not set;
//! they do not depend on what is logged.

mod jobs;
#[cfg(feature = "otel")]
mod otel;

use std::ffi::OsStr;
use std::io::{IsTerminal as _, Write as _};

use clap::{Args, ValueEnum};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

pub(crate) use self::jobs::JobSpans;

/// How a process logs, on its command line.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct LogArgs {
    /// How the log on stderr is written; RUST_LOG says how much [default: text]
    #[arg(long, value_enum, value_name = "FORMAT", env = "STEALGRID_LOG_FORMAT", help_heading = "Log")]
    pub log_format: Option<LogFormat>,
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people, with colours in a terminal
    #[default]
    Text,
    /// One JSON object a line, for programs
    Json,
}

impl LogArgs {
    /// The same as arguments for another process.
    pub fn to_arguments(self) -> Vec<String> {
        let Some(format) = self.log_format.and_then(|format| format.to_possible_value()) else {
            return Vec::new();
        };
        vec!["--log-format".to_string(), format.get_name().to_string()]
    }

    /// Logs from now on: what `RUST_LOG` says, else `default`, such as `info`. Spans that are still open are exported
    /// when what is returned is dropped. Does nothing if the embedding program has its own subscriber.
    ///
    /// # Errors
    /// If spans are to be exported and cannot be.
    pub fn start(self, default: &str) -> anyhow::Result<Telemetry> {
        let filter = filter(std::env::var("RUST_LOG").ok().as_deref(), default);
        // Told that a line could not be written, it would say so on the same stderr, and panic when that fails, too.
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
        let lines = match self.log_format.unwrap_or_default() {
            LogFormat::Text => lines
                .with_ansi(is_coloured(
                    std::env::var_os("NO_COLOR").as_deref(),
                    std::io::stderr().is_terminal(),
                ))
                .boxed(),
            LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
        };
        let registry = tracing_subscriber::registry().with(lines.with_filter(filter));
        #[cfg(feature = "otel")]
        {
            let (layer, export) = otel::layer()?.unzip();
            let _ = registry.with(layer).try_init();
            Ok(Telemetry { _export: export })
        }
        #[cfg(not(feature = "otel"))]
        {
            let _ = registry.try_init();
            Ok(Telemetry {})
        }
    }
}

/// Whether lines have colors: on a terminal, unless `NO_COLOR` has a value (no-color.org).
fn is_coloured(no_color: Option<&OsStr>, is_terminal: bool) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// What is logged by what was asked for: a level, and levels of modules, with commas between. What cannot be read is said
/// on stderr, and the default holds.
fn filter(asked: Option<&str>, default: &str) -> Targets {
    let parse = |text: &str| {
        let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        // A word that is no level would be a module of which everything is logged, and of all others nothing.
        let is_level =
            |part: &&str| !part.contains('[') && part.contains('=') || part.parse::<LevelFilter>().is_ok();
        match parts.iter().find(|part| !is_level(part)) {
            Some(part) => Err(format!(
                "{part:?} is no level (error, warn, info, debug, trace, off) and no MODULE=level"
            )),
            None => parts.join(",").parse::<Targets>().map_err(|error| error.to_string()),
        }
    };
    let asked = asked.filter(|text| !text.trim().is_empty()).and_then(|text| match parse(text) {
        Ok(targets) => Some(targets),
        Err(reason) => {
            // Nobody can be asked to look at a log that does not work.
            let _ = writeln!(std::io::stderr(), "note: RUST_LOG is not followed: {reason}");
            None
        }
    });
    asked.unwrap_or_else(|| parse(default).unwrap_or_default())
}

/// Keep it as long as the process works.
#[must_use = "spans are exported until it is dropped"]
#[derive(Debug)]
pub struct Telemetry {
    #[cfg(feature = "otel")]
    _export: Option<otel::Export>,
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn colors_are_for_terminals_of_those_who_want_some() {
        assert!(is_coloured(None, true) && is_coloured(Some(OsStr::new("")), true));
        assert!(!is_coloured(Some(OsStr::new("1")), true) && !is_coloured(None, false));
    }

    #[test]
    fn levels_are_read_with_or_without_modules_and_what_is_neither_is_not_followed() {
        let says = |asked: Option<&str>, module: &str, level: Level| {
            filter(asked, "info").would_enable(module, &level)
        };
        for asked in [
            None,
            Some(""),
            Some("inof"),
            Some("a=debug=x"),
            Some("node[span]=debug"),
            Some("info,"),
            Some("info"),
        ] {
            assert!(says(asked, "node::site", Level::INFO), "{asked:?}");
            assert!(!says(asked, "node::site", Level::DEBUG), "{asked:?}");
        }
        let asked = Some("warn, stealgrid::jobs=debug");
        assert!(says(asked, "stealgrid::jobs", Level::DEBUG));
        assert!(!says(asked, "node::site", Level::INFO));
    }
}
