//! Files that nobody but their owner may read: keys and tokens.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use zeroize::Zeroizing;

use crate::private;

/// Longest key or token, in bytes. The longest that is made here has a hundred.
const BYTES_MAX: u64 = 4096;

/// So many bytes that nobody can guess. Zeroed when they are dropped, as everything that is read here.
pub(crate) fn random<const N: usize>() -> Zeroizing<[u8; N]> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut bytes[..]).expect("the system gives random bytes");
    bytes
}

/// Makes a file that its owner alone may read; an existing one is left as it is, which is an error.
pub(crate) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = private::options().write(true).create_new(true).open(path)?;
    file.write_all(content).and_then(|()| file.sync_all())
}

/// Reads a file, and warns if others may read it, too.
pub(crate) fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    // Containers often have it so; the warning is for those who did not want it.
    if metadata.permissions().mode() & 0o077 != 0 {
        tracing::warn!(file = %path.display(), "others can read this secret; make it private with chmod 600");
    }
    // With room for all of it, so that no part is left where it grew.
    let mut bytes = Zeroizing::new(Vec::with_capacity(BYTES_MAX as usize + 1));
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
pub(crate) fn read_text(path: &Path) -> io::Result<Zeroizing<String>> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not text");
    let bytes = read(path)?;
    let text = std::str::from_utf8(&bytes).map_err(not_text)?;
    Ok(Zeroizing::new(text.to_string()))
}
