//! Files that nobody but their owner may read: keys and tokens.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Longest key or token, in bytes. The longest that is made here has a hundred.
const BYTES_MAX: u64 = 4096;

/// So many bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// Makes a file that its owner alone may read; an existing one is left as it is, which is an error.
pub(crate) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content).and_then(|()| file.sync_all())
}

/// Reads a file, and warns if others may read it, too.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    // Containers often have it so; the warning is for those who did not want it.
    if metadata.permissions().mode() & 0o077 != 0 {
        tracing::warn!(file = %path.display(), "others can read this secret; make it private with chmod 600");
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it has more than {BYTES_MAX} bytes"),
        ));
    }
    Ok(bytes)
}

/// The same as text; bytes that are none are invalid data.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not text");
    String::from_utf8(read(path)?).map_err(not_text)
}
