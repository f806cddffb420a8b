//! Names of files in JSON: as text where they are text, else as a list of bytes, which JSON has no text for.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use serde::{Deserialize, Serialize};

/// A name as it is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<OsString> for Written {
    fn from(name: OsString) -> Written {
        name.into_string().map_or_else(|name| Written::Bytes(name.into_vec()), Written::Text)
    }
}

impl From<Written> for OsString {
    fn from(written: Written) -> OsString {
        match written {
            Written::Text(text) => text.into(),
            Written::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

/// A path.
pub(super) mod one {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::Written;

    pub(in super::super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        Written::from(path.as_os_str().to_os_string()).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        Written::deserialize(deserializer).map(|written| OsString::from(written).into())
    }
}

/// Arguments of a command.
pub(super) mod several {
    use std::ffi::OsString;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::Written;

    pub(in super::super) fn serialize<S: Serializer>(
        names: &[OsString],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let written: Vec<Written> = names.iter().cloned().map(Written::from).collect();
        written.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<OsString>, D::Error> {
        Vec::<Written>::deserialize(deserializer).map(|names| names.into_iter().map(OsString::from).collect())
    }
}
