//! The first token.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::model::Right;
use crate::store::Store;

/// Name of the file with the generated token.
const TOKEN_FILE: &str = "admin-token";
/// Name under which the first token is listed.
const TOKEN_NAME: &str = "admin";
/// All rights.
const ALL: [Right; 4] = [Right::Read, Right::Invoke, Right::Write, Right::Admin];

/// A token that was generated just now.
#[derive(Debug)]
pub struct NewToken {
    /// To be shown once.
    pub secret: String,
}

/// Makes sure that the first token is valid: the configured one, else the one in the file, else a new one.
///
/// # Errors
/// When the file or the store cannot be read or written.
pub async fn ensure_token(
    data_dir: &Path,
    configured: Option<&str>,
    store: &Store,
) -> anyhow::Result<Option<NewToken>> {
    if let Some(secret) = configured {
        store.ensure_token(TOKEN_NAME, secret, &ALL).await?;
        return Ok(None);
    }
    let file = data_dir.join(TOKEN_FILE);
    match std::fs::read_to_string(&file) {
        Ok(text) if !text.trim().is_empty() => {
            store.ensure_token(TOKEN_NAME, text.trim(), &ALL).await?;
            Ok(None)
        }
        Ok(_) => new_token(&file, store).await.map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            new_token(&file, store).await.map(Some)
        }
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", file.display())),
    }
}

async fn new_token(file: &Path, store: &Store) -> anyhow::Result<NewToken> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).context("cannot read random bytes for the token")?;
    let secret = format!("hth_{}", URL_SAFE_NO_PAD.encode(bytes));
    // Written beside and renamed: a crash leaves a whole token or none.
    let draft = file.with_extension("new");
    let mut out = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&draft)?;
    writeln!(out, "{secret}")?;
    out.sync_all()?;
    store.ensure_token(TOKEN_NAME, &secret, &ALL).await?;
    std::fs::rename(&draft, file)?;
    Ok(NewToken { secret })
}
