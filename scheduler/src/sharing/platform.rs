//! What there is: clusters, their nodes and links, and what local users take of each node over time.
//!
//! Nodes are numbered through all clusters, from 0. What jobs do on them is in [`super::Shared`].

use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::local_load::LocalLoad;

/// A machine that several jobs may share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Power P relative to that of the most powerful node anywhere, above 0 and at most 1 (3.2).
    pub power: f64,
    /// Memory in KB.
    pub memory: u64,
    /// What its link to the switch of the cluster carries, in Mbit/s: above 0, and infinite if nothing can saturate it.
    pub link: f64,
    /// The most tasks of jobs at once, MPL: 4 in the thesis, 1 in its policy BASIC.
    pub mpl: u32,
}

/// Nodes behind one switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// What its link to the central switch between clusters carries, in Mbit/s; only jobs over several clusters use it (4.6.1).
    pub uplink: f64,
}

/// Clusters, and local users on their nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Platform {
    nodes: Vec<Node>,
    uplinks: Vec<f64>,
    /// Where the nodes of each cluster begin, and where the last one ends.
    first: Vec<u32>,
    local: Vec<LocalLoad>,
}

/// What of a platform cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum PlatformError {
    /// A power that is none.
    #[error("node {node} of cluster {cluster} has power {power}, which is not above 0 and at most 1")]
    Power {
        /// The cluster, from 0.
        cluster: usize,
        /// The node within it, from 0.
        node: usize,
        /// What was said.
        power: f64,
    },
    /// A link that carries nothing.
    #[error("the link of node {node} of cluster {cluster} carries {link} Mbit/s, which is not above 0")]
    Link {
        /// The cluster, from 0.
        cluster: usize,
        /// The node within it, from 0.
        node: usize,
        /// What was said.
        link: f64,
    },
    /// A node that no job may use.
    #[error("node {node} of cluster {cluster} has a limit of 0 tasks: allow at least 1")]
    Mpl {
        /// The cluster, from 0.
        cluster: usize,
        /// The node within it, from 0.
        node: usize,
    },
    /// A link between clusters that carries nothing.
    #[error("the uplink of cluster {cluster} carries {uplink} Mbit/s, which is not above 0")]
    Uplink {
        /// The cluster, from 0.
        cluster: usize,
        /// What was said.
        uplink: f64,
    },
    /// Not one local load for each node.
    #[error("there are {loads} local loads for {nodes} nodes: give one for each")]
    Loads {
        /// Local loads.
        loads: usize,
        /// Nodes.
        nodes: usize,
    },
    /// Local users that leave nothing to jobs.
    #[error(
        "local users send {bandwidth} Mbit/s over the link of node {node}, which carries {link}: leave something to jobs"
    )]
    Crowded {
        /// The node, counted through all clusters.
        node: usize,
        /// What local users send, in Mbit/s.
        bandwidth: f64,
        /// What the link carries, in Mbit/s.
        link: f64,
    },
}

impl Platform {
    /// Clusters without local users.
    ///
    /// # Errors
    /// A power, link or limit that is out of its range.
    pub fn new(clusters: &[Cluster]) -> Result<Platform, PlatformError> {
        let carries = |link: f64| link > 0.0;
        let (mut nodes, mut first) = (Vec::new(), vec![0]);
        for (place, cluster) in clusters.iter().enumerate() {
            for (number, node) in cluster.nodes.iter().enumerate() {
                let (cluster, node_number) = (place, number);
                if !(node.power > 0.0 && node.power <= 1.0) {
                    return Err(PlatformError::Power { cluster, node: node_number, power: node.power });
                }
                if !carries(node.link) {
                    return Err(PlatformError::Link { cluster, node: node_number, link: node.link });
                }
                if node.mpl == 0 {
                    return Err(PlatformError::Mpl { cluster, node: node_number });
                }
            }
            if !carries(cluster.uplink) {
                return Err(PlatformError::Uplink { cluster: place, uplink: cluster.uplink });
            }
            nodes.extend_from_slice(&cluster.nodes);
            first.push(u32::try_from(nodes.len()).expect("nodes are counted by 32 bits"));
        }
        let uplinks = clusters.iter().map(|cluster| cluster.uplink).collect();
        let local = vec![LocalLoad::default(); nodes.len()];
        Ok(Platform { nodes, uplinks, first, local })
    }

    /// The clusters of several platforms, one after the other, with their local users. None of what they are is out of its range.
    pub fn joined<'a>(platforms: impl Iterator<Item = &'a Platform>) -> Platform {
        let mut all = Platform { nodes: Vec::new(), uplinks: Vec::new(), first: vec![0], local: Vec::new() };
        for platform in platforms {
            let before = all.nodes.len() as u32;
            all.nodes.extend_from_slice(&platform.nodes);
            all.uplinks.extend_from_slice(&platform.uplinks);
            all.first.extend(platform.first.iter().skip(1).map(|first| before + first));
            all.local.extend_from_slice(&platform.local);
        }
        all
    }

    /// The same with local users, one load for each node through all clusters.
    ///
    /// # Errors
    /// If there is not one for each, or one fills a link.
    pub fn with_local(mut self, local: Vec<LocalLoad>) -> Result<Platform, PlatformError> {
        if local.len() != self.nodes.len() {
            return Err(PlatformError::Loads { loads: local.len(), nodes: self.nodes.len() });
        }
        for (node, (load, Node { link, .. })) in local.iter().zip(&self.nodes).enumerate() {
            let most = load.changes().iter().map(|(_, usage)| usage.bandwidth()).fold(0.0, f64::max);
            if most >= *link {
                return Err(PlatformError::Crowded { node, bandwidth: most, link: *link });
            }
        }
        self.local = local;
        Ok(self)
    }

    /// How many clusters there are.
    pub fn clusters(&self) -> usize {
        self.uplinks.len()
    }

    /// The numbers of a cluster's nodes; none if there is no such cluster.
    pub fn nodes_of(&self, cluster: usize) -> Option<Range<u32>> {
        Some(*self.first.get(cluster)?..*self.first.get(cluster + 1)?)
    }

    /// Which cluster a node is in.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn cluster_of(&self, node: u32) -> usize {
        assert!((node as usize) < self.nodes.len(), "node {node} is none of {}", self.nodes.len());
        self.first.partition_point(|&first| first <= node) - 1
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What the link of a cluster to the central switch carries, in Mbit/s.
    pub fn uplinks(&self) -> &[f64] {
        &self.uplinks
    }

    /// Local users on each node.
    pub fn local(&self) -> &[LocalLoad] {
        &self.local
    }
}

#[cfg(test)]
mod tests {
    use super::super::local_load::{Usage, XWINDOWS_INTERNET};
    use super::*;

    const NODE: Node = Node { power: 1.0, memory: 1 << 20, link: 100.0, mpl: 4 };

    #[test]
    fn nodes_are_numbered_through_clusters() {
        let cluster = |nodes| Cluster { nodes: vec![NODE; nodes], uplink: 100.0 };
        let platform = Platform::new(&[cluster(2), cluster(0), cluster(3)]).unwrap();
        assert_eq!([0, 1, 2].map(|place| platform.nodes_of(place)), [Some(0..2), Some(2..2), Some(2..5)]);
        assert_eq!(platform.nodes_of(3), None);
        assert_eq!([0, 1, 2, 4].map(|node| platform.cluster_of(node)), [0, 0, 2, 2]);
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_place() {
        let of = |node| Platform::new(&[Cluster { nodes: vec![NODE, node], uplink: 1.0 }]).unwrap_err();
        for power in [0.0, 1.5, f64::NAN] {
            let refused = of(Node { power, ..NODE });
            assert!(matches!(refused, PlatformError::Power { cluster: 0, node: 1, .. }), "{refused}");
        }
        assert_eq!(of(Node { link: 0.0, ..NODE }), PlatformError::Link { cluster: 0, node: 1, link: 0.0 });
        assert_eq!(of(Node { mpl: 0, ..NODE }), PlatformError::Mpl { cluster: 0, node: 1 });
        let refused = Platform::new(&[Cluster { nodes: vec![NODE], uplink: -1.0 }]).unwrap_err();
        assert_eq!(refused, PlatformError::Uplink { cluster: 0, uplink: -1.0 });
        let platform = Platform::new(&[Cluster { nodes: vec![NODE], uplink: 1.0 }]).unwrap();
        let refused = platform.clone().with_local(Vec::new()).unwrap_err();
        assert_eq!(refused, PlatformError::Loads { loads: 0, nodes: 1 });
        let all = LocalLoad::constant(Usage::new(0.1, 0.1, 100.0).unwrap());
        let refused = platform.clone().with_local(vec![all]).unwrap_err();
        assert_eq!(refused, PlatformError::Crowded { node: 0, bandwidth: 100.0, link: 100.0 });
        assert!(platform.with_local(vec![LocalLoad::constant(XWINDOWS_INTERNET)]).is_ok());
    }
}
