//! The nodes of a site that jobs share, as a node's configuration has them.

use std::sync::Arc;

use scheduler::sharing::{Cluster, Fairness, LocalLoad, Node, Platform, PlatformError};
use scheduler::{Application, SharedNodes};
use serde::{Deserialize, Serialize};

/// What [`SharedNodes`] is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// All of them.
    nodes: Vec<Node>,
    /// Local users of each.
    local: Vec<LocalLoad>,
    /// How jobs share a link.
    fairness: Fairness,
    /// What is known of programs, by the number of the executable.
    applications: Vec<(i32, Application)>,
}

impl From<&SharedNodes> for Nodes {
    fn from(shared: &SharedNodes) -> Nodes {
        Nodes {
            nodes: shared.platform.nodes().to_vec(),
            local: shared.platform.local().to_vec(),
            fairness: shared.fairness,
            applications: shared
                .applications
                .iter()
                .map(|(&executable, &known)| (executable, known))
                .collect(),
        }
    }
}

impl Nodes {
    /// What they are to a scheduler.
    ///
    /// # Errors
    /// If a node or a load is none.
    pub fn shared(&self) -> Result<Arc<SharedNodes>, PlatformError> {
        let uplink = self.nodes.first().map_or(f64::INFINITY, |node| node.link);
        let platform = Platform::new(&[Cluster { nodes: self.nodes.clone(), uplink }])?;
        Ok(Arc::new(SharedNodes {
            platform: Arc::new(platform.with_local(self.local.clone())?),
            fairness: self.fairness,
            applications: Arc::new(self.applications.iter().copied().collect()),
        }))
    }
}
