//! What the nodes of one run share and nobody else may know, in files that go with the run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use node::config::{IdentitySource, Member as Listed, NodeConfig};
use node::control::Token;
use node::network::{GridKey, Identity};
use node::running::Running;

use super::FleetError;

/// The key of the grid, in the folder of the nodes.
const GRID_KEY: &str = "grid.key";
/// The token of the coordinator.
const TOKEN: &str = "control.token";

/// Files with secrets of one run; removed when dropped, unless a node may still work that only they who have them can
/// speak to: then whoever takes it over removes them.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<PathBuf>);

impl Secrets {
    /// Gives a key and a token to those who have none, and everybody's identity to everybody.
    pub(super) fn share(folder: &Path, configs: &mut [NodeConfig]) -> Result<Secrets, FleetError> {
        let mut made = Secrets::default();
        if configs.iter().any(|config| config.grid_key.is_none() && !config.allow_open_network) {
            let path = made.make_way(folder, GRID_KEY)?;
            GridKey::random().write_new(&path)?;
            for config in configs.iter_mut().filter(|config| !config.allow_open_network) {
                config.grid_key.get_or_insert_with(|| path.clone());
            }
        }
        if configs.iter().any(|config| config.control_token.is_none()) {
            let path = made.make_way(folder, TOKEN)?;
            Token::random().write_new(&path)?;
            for config in configs.iter_mut() {
                config.control_token.get_or_insert_with(|| path.clone());
            }
        }
        let mut listed = Vec::new();
        for config in configs.iter() {
            if let IdentitySource::File(path) = &config.identity {
                listed.push(Listed { site: config.site, peer_id: Identity::from_file(path)?.peer_id() });
            }
        }
        for config in configs.iter_mut() {
            let new: Vec<Listed> =
                listed.iter().filter(|listed| !config.members.contains(listed)).cloned().collect();
            config.members.extend(new);
        }
        Ok(made)
    }

    /// Those that another coordinator has drawn.
    pub(super) fn of(folder: &Path) -> Secrets {
        Secrets([GRID_KEY, TOKEN].iter().map(|name| folder.join(name)).filter(|path| path.exists()).collect())
    }

    /// Makes the nodes forget those that were drawn for them, so that others can be.
    pub(super) fn forget(folder: &Path, configs: &mut [NodeConfig]) {
        let (key, token) = (folder.join(GRID_KEY), folder.join(TOKEN));
        for config in configs {
            config.grid_key.take_if(|path| *path == key);
            config.control_token.take_if(|path| *path == token);
        }
    }

    /// The path of a secret that is to be made, without that of an earlier run.
    fn make_way(&mut self, folder: &Path, name: &str) -> io::Result<PathBuf> {
        let path = folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => self.0.push(path.clone()),
        }
        Ok(path)
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        let folder = self.0.first().and_then(|secret| secret.parent());
        if folder.is_some_and(Running::may_be_any_in) {
            tracing::warn!("a node of the run may still work: its secrets stay");
            return;
        }
        for secret in &self.0 {
            match fs::remove_file(secret) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(file = %secret.display(), %error, "a secret of a run that has ended stays behind");
                }
                _ => {}
            }
        }
    }
}
