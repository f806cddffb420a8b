//! Stopping when the user asks for it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;

use crate::exit;

/// Set when the user asks to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    stop: Arc<AtomicBool>,
    /// Where nodes are that may outlive this process.
    nodes: Arc<OnceLock<PathBuf>>,
}

impl Interrupt {
    /// Set by Ctrl-C, SIGTERM and SIGHUP from now on. A second one ends the process at once.
    ///
    /// # Errors
    /// If the process handles signals already.
    pub fn on_signals() -> anyhow::Result<Interrupt> {
        Interrupt::saying("stopping; results so far are kept (once more to stop at once)")
    }

    /// The same of what has no results, in other words.
    ///
    /// # Errors
    /// If the process handles signals already.
    pub fn saying(words: &'static str) -> anyhow::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let flag = interrupt.clone();
        ctrlc::set_handler(move || {
            if flag.stop.swap(true, Ordering::Relaxed) {
                if let Some(folder) = flag.nodes.get() {
                    node::fleet::end_all(folder);
                }
                std::process::exit(exit::INCOMPLETE.into());
            }
            eprintln!("{words}");
        })
        .context("failed to handle Ctrl-C")?;
        Ok(interrupt)
    }

    /// Whether to stop.
    pub fn is_set(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks to stop, as the user does.
    pub fn set(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Who stops at once ends the nodes of this folder, too.
    pub fn also_end(&self, folder: &Path) {
        // There is one run in a process.
        let _ = self.nodes.set(folder.to_path_buf());
    }
}
