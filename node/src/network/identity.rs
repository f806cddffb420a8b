//! The key a node proves its identity with: derived from the run, or kept in a file.
//!
//! Derived keys let every node compute the peer id of every other, so that Noise authenticates *sites*. They are
//! as secret as the seed, which is not at all: they keep runs apart, they do not keep attackers out. A deployment
//! beyond one experiment uses files.

use std::path::{Path, PathBuf};

use libp2p::PeerId;
use libp2p::identity::Keypair;
use scheduler::SiteId;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::secret_file;

/// A node's key pair.
#[derive(Clone)]
pub struct Identity {
    keypair: Keypair,
}

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Reading or writing failed.
    #[error("identity file {}: {error}", .path.display())]
    File {
        /// The file of the key.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The content is no key.
    #[error(
        "identity file {}: {reason}; restore it from a backup, or name another file: one that is missing is made, with a new identity",
        .path.display()
    )]
    Corrupt {
        /// The file of the key.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Identity {
    /// The key of a site in a run: the same for the same run name, seed and site, on every machine.
    pub fn derived(run: &str, seed: u64, site: SiteId) -> Identity {
        let mut hash = Sha256::new();
        hash.update(b"stealgrid node identity 1\0");
        hash.update((run.len() as u64).to_le_bytes());
        hash.update(run.as_bytes());
        hash.update(seed.to_le_bytes());
        hash.update(site.0.to_le_bytes());
        let mut secret: Zeroizing<[u8; 32]> = Zeroizing::new(hash.finalize().into());
        // Its keys are zeroed by libp2p when they are dropped.
        let keypair =
            Keypair::ed25519_from_bytes(&mut secret[..]).expect("any 32 bytes are an Ed25519 secret");
        Identity { keypair }
    }

    /// A key that nobody has had.
    pub fn drawn() -> Identity {
        Identity { keypair: Keypair::generate_ed25519() }
    }

    /// The key in a file; makes one, readable by its owner alone, if the file is not there.
    ///
    /// # Errors
    /// If the file cannot be read or written, or holds no key.
    pub fn from_file(path: &Path) -> Result<Identity, IdentityError> {
        match Identity::read(path) {
            Err(IdentityError::File { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
                Identity::create(path)
            }
            read => read,
        }
    }

    /// The key in a file.
    ///
    /// # Errors
    /// If the file cannot be read or holds no key.
    pub fn read(path: &Path) -> Result<Identity, IdentityError> {
        let bytes = secret_file::read(path)
            .map_err(|error| IdentityError::File { path: path.to_path_buf(), error })?;
        let keypair = Keypair::from_protobuf_encoding(&bytes).map_err(|error| IdentityError::Corrupt {
            path: path.to_path_buf(),
            reason: error.to_string(),
        })?;
        Ok(Identity { keypair })
    }

    /// A new key in a new file that its owner alone can read.
    ///
    /// # Errors
    /// If there is a file already, or it cannot be written.
    pub fn create(path: &Path) -> Result<Identity, IdentityError> {
        let Identity { keypair } = Identity::drawn();
        let bytes = Zeroizing::new(keypair.to_protobuf_encoding().expect("an Ed25519 key can be encoded"));
        secret_file::write_new(path, &bytes)
            .map_err(|error| IdentityError::File { path: path.to_path_buf(), error })?;
        Ok(Identity { keypair })
    }

    /// The public name that belongs to the key, as it stands in addresses after `/p2p/`.
    pub fn peer_id(&self) -> String {
        self.peer().to_string()
    }

    pub(super) fn peer(&self) -> PeerId {
        self.keypair.public().to_peer_id()
    }

    pub(super) fn keypair(&self) -> Keypair {
        self.keypair.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_derived_identity_never_changes() {
        // A changed value would lock the nodes of two versions out of each other's runs.
        assert_eq!(
            Identity::derived("demo", 7, SiteId(1)).peer_id(),
            "12D3KooWKMVvcGofAjdbL9HuohozD73iWyvuYRF8ZDpQGqPFJaBh"
        );
    }

    #[test]
    fn run_seed_and_site_all_change_the_identity() {
        let ids = [
            Identity::derived("demo", 7, SiteId(1)).peer_id(),
            Identity::derived("demo2", 7, SiteId(1)).peer_id(),
            Identity::derived("demo", 8, SiteId(1)).peer_id(),
            Identity::derived("demo", 7, SiteId(2)).peer_id(),
        ];
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
    }

    #[test]
    fn a_file_is_made_private_once_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");

        let made = Identity::from_file(&path).unwrap();
        let read = Identity::from_file(&path).unwrap();

        assert_eq!(made.peer_id(), read.peer_id());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_corrupt_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, b"not a key").unwrap();

        let error = Identity::from_file(&path).err().unwrap().to_string();

        assert!(error.contains("one that is missing is made"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"not a key");
    }
}
