//! What a coordinator must show before a node obeys it: a bearer token, compared in constant time.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::secret_file;

/// Bytes of a token that is drawn: as hard to guess as a key.
const RANDOM_BYTES: usize = 32;
/// The shortest token that is taken from a file.
const LEN_MIN: usize = 32;
/// What stands before the token in the header.
const SCHEME: &str = "Bearer ";

/// A token. Not shown by `Debug`, and in no logs of a node.
/// Zeroed when it is dropped.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Reading or writing failed.
    #[error("token file {}: {error}; make one with `stealgrid key token FILE`", .path.display())]
    File {
        /// The file of the token.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The content is no token.
    #[error(
        "token file {}: a token is one line of at least {LEN_MIN} visible ASCII characters; make one with \
         `stealgrid key token FILE`",
        .path.display()
    )]
    Corrupt {
        /// The file of the token.
        path: PathBuf,
    },
}

/// Why a request is not obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unauthorised {
    /// The node has no token.
    #[error("this node was started without a token and obeys nobody; start it with --control-token FILE")]
    NoToken,
    /// The request has none.
    #[error(
        "the request shows no token; send the content of the node's token file as `Authorization: Bearer TOKEN`"
    )]
    Missing,
    /// The request has another.
    #[error("the token is not that of this node; use the file that the node was started with")]
    Wrong,
}

impl Token {
    /// A token that nobody can guess.
    pub fn random() -> Token {
        let mut text = Zeroizing::new(String::with_capacity(2 * RANDOM_BYTES));
        for byte in secret_file::random::<RANDOM_BYTES>().iter() {
            write!(text, "{byte:02x}").expect("a string takes everything");
        }
        Token(text)
    }

    /// The token in a file.
    ///
    /// # Errors
    /// If the file cannot be read or holds no token.
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let text = secret_file::read_text(path)
            .map_err(|error| TokenError::File { path: path.to_path_buf(), error })?;
        let token = text.trim_end();
        if token.len() < LEN_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Corrupt { path: path.to_path_buf() });
        }
        Ok(Token(Zeroizing::new(token.to_string())))
    }

    /// Writes the token to a new file that its owner alone can read.
    ///
    /// # Errors
    /// If there is a file already, or it cannot be written.
    pub fn write_new(&self, path: &Path) -> Result<(), TokenError> {
        secret_file::write_new(path, Zeroizing::new(format!("{}\n", *self.0)).as_bytes())
            .map_err(|error| TokenError::File { path: path.to_path_buf(), error })
    }

    /// The token itself, for those who are to have it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the value of an `Authorization` header shows the token, compared in constant time.
    ///
    /// # Errors
    /// Why it does not, in words.
    pub fn check_shown(&self, header: Option<&[u8]>) -> Result<(), String> {
        Token::check(Some(self), header).map_err(|why| match why {
            Unauthorised::Missing | Unauthorised::NoToken => {
                "the request shows no token; send it as `Authorization: Bearer TOKEN`".to_string()
            }
            Unauthorised::Wrong => "the token is another one".to_string(),
        })
    }

    /// The value of the header that shows the token.
    pub fn header(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{SCHEME}{}", *self.0))
    }

    /// Whether a header shows the token. Takes as long for a token that is almost right as for any other of its
    /// length.
    pub fn check(token: Option<&Token>, header: Option<&[u8]>) -> Result<(), Unauthorised> {
        let token = token.ok_or(Unauthorised::NoToken)?;
        let header = header.ok_or(Unauthorised::Missing)?;
        let shown = header.strip_prefix(SCHEME.as_bytes()).ok_or(Unauthorised::Missing)?;
        if bool::from(shown.ct_eq(token.0.as_bytes())) { Ok(()) } else { Err(Unauthorised::Wrong) }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_the_token_itself_is_obeyed() {
        let token = Token::random();
        let check = |header: Option<&str>| Token::check(Some(&token), header.map(str::as_bytes));
        assert_eq!(check(Some(token.header().as_str())), Ok(()));
        assert_eq!(check(None), Err(Unauthorised::Missing));
        assert_eq!(check(Some("Basic abc")), Err(Unauthorised::Missing));
        let (other, longer) = (Token::random().header().to_string(), format!("{}0", *token.header()));
        for wrong in ["Bearer ".to_string(), other, longer] {
            assert_eq!(check(Some(&wrong)), Err(Unauthorised::Wrong), "{wrong}");
        }
        assert_eq!(Token::check(None, Some(token.header().as_bytes())), Err(Unauthorised::NoToken));
        assert_eq!(format!("{token:?}"), "Token(hidden)");
    }

    /// That the memory is overwritten is the promise of the type.
    #[test]
    fn secrets_are_zeroed_when_they_are_dropped() {
        fn is_zeroed<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::random();
        token.write_new(&path).unwrap();
        is_zeroed(&token.0);
        is_zeroed(&token.header());
        is_zeroed(&secret_file::random::<32>());
        is_zeroed(&secret_file::read(&path).unwrap());
        is_zeroed(&secret_file::read_text(&path).unwrap());
    }

    #[test]
    fn a_file_is_private_never_overwritten_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::random();

        token.write_new(&path).unwrap();

        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Token::read(&path).unwrap().header(), token.header());
        assert!(Token::random().write_new(&path).is_err());
        for text in ["short", "two words that are long enough for a token", ""] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(Token::read(&path), Err(TokenError::Corrupt { .. })), "{text}");
        }
    }
}
