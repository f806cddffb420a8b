//! What metrics cost on this machine: how long a scrape of a node takes, with jobs in its queue and without.
//!
//! What counting costs is measured by [`super::throughput::throughput`], once with nodes that count and once with nodes
//! whose environment has [`node::metrics::UNCOUNTED`].

use std::time::{Duration, Instant};

use anyhow::Context as _;
use operation::client::NodeClient;
use operation::fleet::Fleet;
use scheduler::Time;

use super::throughput::{FACTOR, LEAD, PATIENCE, Place, config, occupy, queue};

/// Between two scrapes: long enough for what the one before left behind.
const PAUSE: Duration = Duration::from_millis(3);
/// Scrapes that are not counted.
const WARM_UP: usize = 20;

/// What scrapes took, on the wall clock, from the request to the last byte of the answer.
#[derive(Clone, Debug)]
pub(super) struct Scrapes {
    /// With jobs in the queue.
    pub queued: Vec<Duration>,
    /// With none, before.
    pub empty: Vec<Duration>,
    /// Bytes of the last page.
    pub bytes: usize,
}

/// Scrapes a node so many times with an empty queue and so many times with `jobs` in it.
///
/// # Errors
/// If the nodes do not run or do something else.
pub(super) fn scrape(place: &Place, jobs: u64, times: usize) -> anyhow::Result<Scrapes> {
    let configs = [1, 2].map(|site| config(&place.folder, site, None));
    let mut fleet = Fleet::spawn_each(&place.order(), &configs)?;
    fleet.wait_ready(PATIENCE)?;
    fleet.start(FACTOR, Time::ZERO, LEAD)?;
    std::thread::sleep(LEAD);
    let now = occupy(&mut fleet, 1)?;
    let client = fleet.clients().next().context("there is a node")?.clone();
    let (empty, _) = scrapes(&client, times)?;
    queue(&mut fleet, now, 3, jobs)?;
    let (queued, bytes) = scrapes(&client, times)?;
    fleet.stop(PATIENCE)?;
    Ok(Scrapes { queued, empty, bytes })
}

fn scrapes(client: &NodeClient, times: usize) -> anyhow::Result<(Vec<Duration>, usize)> {
    let (mut took, mut bytes) = (Vec::new(), 0);
    for time in 0..times + WARM_UP {
        std::thread::sleep(PAUSE);
        let begun = Instant::now();
        bytes = client.metrics()?.len();
        if time >= WARM_UP {
            took.push(begun.elapsed());
        }
    }
    Ok((took, bytes))
}
