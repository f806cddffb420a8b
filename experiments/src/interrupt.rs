//! Stopping when the user asks for it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;

use crate::exit;

/// Set when the user asks to stop.
#[derive(Clone, Default)]
pub struct Interrupt {
    stop: Arc<AtomicBool>,
    /// What a process leaves behind that ends at once, unless it does this.
    last: Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>,
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt").field("stop", &self.stop).finish_non_exhaustive()
    }
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
                if let Some(deed) = flag.last.get() {
                    deed();
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

    /// Who stops at once does this before.
    pub fn before_the_end(&self, deed: impl Fn() + Send + Sync + 'static) {
        // There is one run in a process.
        let _ = self.last.set(Box::new(deed));
    }
}
