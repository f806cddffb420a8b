//! `stealgrid key`: makes the secrets of a grid, and says what belongs to them.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use experiments::exit;
use node::control::Token;
use node::network::{GridKey, Identity};

/// Make keys and tokens for nodes that are started by hand
///
/// `run` draws them for its nodes by itself. Files are readable by their owner alone and never overwritten.
#[derive(Clone, Debug, Args)]
pub struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum KeyCommand {
    /// Make the key that all nodes of a grid share, in the format of swarm.key, and print its fingerprint
    New {
        /// The file to make
        file: PathBuf,
    },
    /// Make the token that a coordinator must show
    Token {
        /// The file to make
        file: PathBuf,
    },
    /// Make the identity of one node, and print its peer id
    Identity {
        /// The file to make
        file: PathBuf,
    },
    /// Print the peer id of an identity file, for --member
    Id {
        /// The identity file
        file: PathBuf,
    },
    /// Print the fingerprint of a grid's key, to compare two without showing them
    Fingerprint {
        /// The key
        file: PathBuf,
    },
}

/// Runs the command.
///
/// # Errors
/// If stdout is gone.
pub fn command(args: &KeyArgs) -> anyhow::Result<u8> {
    let said = match &args.command {
        KeyCommand::New { file } => new_key(file),
        KeyCommand::Token { file } => new_token(file),
        KeyCommand::Identity { file } => new_identity(file),
        KeyCommand::Id { file } => {
            Identity::read(file).map(|identity| identity.peer_id()).context("failed to read an identity")
        }
        KeyCommand::Fingerprint { file } => {
            GridKey::read(file).map(|key| key.fingerprint()).context("failed to read a key")
        }
    };
    match said {
        Ok(line) => {
            experiments::terminal::say(&format!("{line}\n"))?;
            Ok(exit::DONE)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            Ok(exit::INPUT)
        }
    }
}

/// What is there is kept: a grid would no longer know its nodes.
fn refuse_existing(file: &Path) -> anyhow::Result<()> {
    if file.symlink_metadata().is_ok() {
        anyhow::bail!("failed to make {}: it is there already; name another file", file.display());
    }
    Ok(())
}

fn new_key(file: &Path) -> anyhow::Result<String> {
    refuse_existing(file)?;
    let key = GridKey::random();
    key.write_new(file).context("failed to make a key")?;
    Ok(key.fingerprint())
}

fn new_identity(file: &Path) -> anyhow::Result<String> {
    refuse_existing(file)?;
    Identity::create(file).map(|identity| identity.peer_id()).context("failed to make an identity")
}

fn new_token(file: &Path) -> anyhow::Result<String> {
    refuse_existing(file)?;
    Token::random().write_new(file).context("failed to make a token")?;
    // The token itself is nothing for a terminal.
    Ok(format!("{}", file.display()))
}
