//! A link that is cut without anybody being told: noticed in time, however full it is, and dialed anew.

use std::sync::atomic::AtomicUsize;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;

/// How long a link may be silent in these tests: pings every half second.
const SILENCE: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_cut_link_is_noticed_in_time_although_nothing_can_be_written() {
    // More than the buffers of both sockets take.
    notice(&[7; 128 * 1024], 100).await;
}

#[tokio::test]
async fn a_cut_link_is_noticed_in_time_although_nothing_is_to_be_written() {
    notice(&[], 0).await;
}

async fn notice(frame: &[u8], count: usize) {
    let limits = Limits { link_silence_secs: SILENCE.as_secs() as u32, ..Limits::default() };
    let two = |site| {
        let processors = PROCESSORS[..2].to_vec();
        NetworkConfig { processors, limits: limits.clone(), ..config(site) }
    };
    let one = Network::start(two(1)).await.unwrap();
    let other = Network::start(two(2)).await.unwrap();
    let wire = Wire::to(&other).await;
    one.handle().connect(vec![(SiteId(2), wire.address.clone())]).await.unwrap();
    tokio::time::timeout(PATIENCE, one.handle().ready()).await.expect("it becomes ready");

    wire.cut();
    let begun = Instant::now();
    for _ in 0..count {
        one.handle().send(outgoing(2, frame));
    }
    until(&one, |state| !state.links[&SiteId(2)].connected).await;
    let took = begun.elapsed();
    // Twice the time is ample for a machine that is busy otherwise; a system gives up after a quarter of an hour.
    assert!(took < 2 * SILENCE, "noticed after {took:?}");
    assert!(one.handle().counters().counts().silences() >= 1);

    // Only the connections of before are cut.
    until(&one, |state| state.links[&SiteId(2)].connected).await;
    shutdown(vec![one, other]).await;
}

/// Carries bytes to a node until it is cut: then it takes and gives nothing, and closes nothing.
struct Wire {
    address: String,
    /// Connections up to this number carry nothing.
    cut: watch::Sender<usize>,
    made: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Wire {
    async fn to(node: &Network) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("/ip4/127.0.0.1/tcp/{}", listener.local_addr().unwrap().port());
        let words = super::address(node);
        let port: u16 = words.rsplit('/').next().unwrap().parse().unwrap();
        let (cut, _) = watch::channel(0);
        let made = Arc::new(AtomicUsize::new(0));
        let (cuts, count) = (cut.clone(), Arc::clone(&made));
        let task = tokio::spawn(async move {
            loop {
                let (mut here, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, Ordering::Relaxed) + 1;
                let mut cut = cuts.subscribe();
                tokio::spawn(async move {
                    let mut there = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    let stop = async {
                        // An error means that the test is over.
                        let _ = cut.wait_for(|cut| *cut >= number).await;
                    };
                    tokio::select! {
                        () = stop => std::future::pending::<()>().await,
                        _ = tokio::io::copy_bidirectional(&mut here, &mut there) => {}
                    }
                });
            }
        });
        Wire { address, cut, made, task }
    }

    fn cut(&self) {
        self.cut.send_replace(self.made.load(Ordering::Relaxed));
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}
