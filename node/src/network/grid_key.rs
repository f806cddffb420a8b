//! The key that all nodes of a grid share: without it no byte of a connection can be understood.
//!
//! A private network of libp2p (pnet): the file has the format that its other implementations use as `swarm.key`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use libp2p::pnet::PreSharedKey;
use zeroize::Zeroizing;

use crate::secret_file;

/// The first two lines of a file.
const PROTOCOL: &str = "/key/swarm/psk/1.0.0/";
const ENCODING: &str = "/base16/";

/// The shared key of a grid. `Debug` shows a fingerprint only. Zeroed when it is dropped; the copy that libp2p has for as
/// long as the network is up is not.
#[derive(Clone, PartialEq, Eq)]
pub struct GridKey(Zeroizing<[u8; 32]>);

/// Why a file of a grid's key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GridKeyError {
    /// Reading or writing failed.
    #[error("grid key {}: {error}; make one with `stealgrid key new FILE`", .path.display())]
    File {
        /// The file of the key.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The content is no key.
    #[error(
        "grid key {}: write the three lines /key/swarm/psk/1.0.0/, /base16/ and 64 hexadecimal digits, or make one \
         with `stealgrid key new FILE`",
        .path.display()
    )]
    Corrupt {
        /// The file of the key.
        path: PathBuf,
    },
}

impl GridKey {
    /// A key that nobody can guess.
    pub fn random() -> GridKey {
        GridKey(secret_file::random())
    }

    /// The key in a file.
    ///
    /// # Errors
    /// If the file cannot be read or holds no key.
    pub fn read(path: &Path) -> Result<GridKey, GridKeyError> {
        let text = secret_file::read_text(path)
            .map_err(|error| GridKeyError::File { path: path.to_path_buf(), error })?;
        GridKey::parse(&text).ok_or_else(|| GridKeyError::Corrupt { path: path.to_path_buf() })
    }

    fn parse(text: &str) -> Option<GridKey> {
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let [PROTOCOL, ENCODING, digits] = lines.as_slice() else { return None };
        let is_plain = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut key = Zeroizing::new([0; 32]);
        for (index, byte) in key.iter_mut().enumerate().filter(|_| is_plain) {
            *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
        }
        is_plain.then_some(GridKey(key))
    }

    /// Writes the key to a new file that its owner alone can read.
    ///
    /// # Errors
    /// If there is a file already, or it cannot be written.
    pub fn write_new(&self, path: &Path) -> Result<(), GridKeyError> {
        secret_file::write_new(path, Zeroizing::new(self.shared().to_key_file()).as_bytes())
            .map_err(|error| GridKeyError::File { path: path.to_path_buf(), error })
    }

    /// What tells two keys apart without giving them away.
    pub fn fingerprint(&self) -> String {
        self.shared().fingerprint().to_string()
    }

    pub(super) fn shared(&self) -> PreSharedKey {
        PreSharedKey::new(*self.0)
    }
}

impl fmt::Debug for GridKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GridKey({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_written_as_a_private_swarm_key_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("swarm.key");
        let key = GridKey::random();

        key.write_new(&path).unwrap();

        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("/key/swarm/psk/1.0.0/\n/base16/\n"), "{text}");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(GridKey::read(&path).unwrap(), key);
        assert!(key.write_new(&path).is_err(), "an existing key is kept");
        assert_ne!(GridKey::random(), key);
    }

    /// That the memory is overwritten is the promise of the type.
    #[test]
    fn a_key_is_zeroed_when_it_is_dropped() {
        fn is_zeroed<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("swarm.key");
        GridKey::random().write_new(&path).unwrap();
        is_zeroed(&GridKey::read(&path).unwrap().0);
    }

    #[test]
    fn other_files_are_refused_with_the_format() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("swarm.key");
        let head = "/key/swarm/psk/1.0.0/\n/base16/\n";
        let wrong = [
            String::new(),
            head.to_string(),
            format!("{head}{}", "0".repeat(63)),
            format!("{head}{}g", "0".repeat(63)),
            format!("{head}{}\u{e4}", "0".repeat(62)),
            format!("{head}{}\nmore", "0".repeat(64)),
            format!("/key/swarm/psk/2.0.0/\n/base16/\n{}", "0".repeat(64)),
        ];
        for text in wrong {
            std::fs::write(&path, &text).unwrap();
            let error = GridKey::read(&path).unwrap_err().to_string();
            assert!(error.contains("64 hexadecimal digits"), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        let key = GridKey::random();
        let digits = key.shared().to_key_file().lines().nth(2).unwrap().to_string();
        assert!(!format!("{key:?}").contains(&digits));
    }
}
