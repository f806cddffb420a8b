//! A node that a coordinator started must not outlive it, however the coordinator ends; or only once its clock runs.

use std::io::Read as _;

use tokio::sync::oneshot;

/// Makes the kernel end this process with its parent, unless it may outlive it, and watches stdin as well: the kernel's
/// way is bound to the parent's *thread* and does not reach across containers, while a closed pipe is seen everywhere.
///
/// The receiver resolves when stdin is closed.
pub(crate) fn watch(may_outlive: bool) -> std::io::Result<oneshot::Receiver<()>> {
    #[cfg(target_os = "linux")]
    if !may_outlive {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    }
    let (closed, receiver) = oneshot::channel();
    // A thread of its own, because a blocked read would keep the runtime from ending. It ends with the process.
    std::thread::Builder::new().name("stdin".to_string()).spawn(move || {
        let mut ignored = [0; 256];
        let mut stdin = std::io::stdin().lock();
        while stdin.read(&mut ignored).is_ok_and(|count| count > 0) {}
        // Nobody listens any more if the node is stopping.
        let _ = closed.send(());
    })?;
    Ok(receiver)
}
