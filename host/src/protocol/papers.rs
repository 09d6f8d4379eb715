//! What has no fixed size about a sandbox: its function's names, program and environment. Comes as a memfd that is sealed
//! against every change, is read once, and then checked field by field.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Component, Path, PathBuf};

use hearth_init::fields::{FieldError, Fields as _};
use hearth_init::fields_of;

use crate::memfd::{all_seals, sealed};

/// Most bytes of papers. Protects the host process's memory; a function's environment is far smaller.
pub const PAPERS_MAX: u64 = 1 << 20;
/// Most arguments of a template, and variables.
const ARGUMENTS_MAX: usize = 64;
const VARIABLES_MAX: usize = 4096;
/// Longest host name (`hostname(7)`).
const HOSTNAME_MAX: usize = 64;
/// The directory in the data directory in which all code is.
pub const CODE: &str = "code";

/// The papers of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Papers {
    /// `[a-z0-9-]`: with its key it names the sandbox's cgroup and directory.
    pub id: String,
    /// Host name inside.
    pub hostname: String,
    /// The code, below the data directory's `code`.
    pub code: PathBuf,
    /// Name of the runtime, and of its directory.
    pub runtime: String,
    /// Program and arguments of the template, as seen inside.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Name of the image to restore the template from.
    pub image: Option<String>,
    /// A certificate, PEM, that it trusts besides those that the host does.
    pub trust: Option<String>,
}

fields_of!(Papers {
    id,
    hostname,
    code,
    runtime,
    argv,
    env,
    image,
    trust,
});

/// Why papers are not accepted.
#[derive(Debug, thiserror::Error)]
pub enum PapersError {
    /// It is no memfd, or not sealed against every change.
    #[error("the papers are not a sealed memfd")]
    Unsealed,
    /// It is too large.
    #[error("the papers have {0} bytes; at most {PAPERS_MAX} are allowed")]
    Size(u64),
    /// They cannot be read.
    #[error("the papers cannot be read: {0}")]
    Read(#[from] io::Error),
    /// They do not decode.
    #[error("the papers are malformed: {0}")]
    Fields(#[from] FieldError),
    /// A field has a value that it must not have.
    #[error("the {0} in the papers is not acceptable")]
    Value(&'static str),
}

impl Papers {
    /// Writes and seals them.
    ///
    /// # Errors
    /// When there is no memory or no descriptor.
    pub fn seal(&self) -> io::Result<OwnedFd> {
        sealed(&self.to_bytes())
    }

    /// Reads and checks them.
    ///
    /// # Errors
    /// [`PapersError`].
    pub fn open(fd: OwnedFd) -> Result<Self, PapersError> {
        let papers = Self::from_bytes(&read_sealed(fd)?)?;
        papers.check()?;
        Ok(papers)
    }

    /// Checks what decoding does not.
    ///
    /// # Errors
    /// [`PapersError::Value`].
    pub fn check(&self) -> Result<(), PapersError> {
        let value = |good: bool, what| good.then_some(()).ok_or(PapersError::Value(what));
        value(is_plain(&self.id), "id")?;
        value(is_plain(&self.runtime), "runtime")?;
        value(
            self.hostname.len() <= HOSTNAME_MAX
                && !self.hostname.is_empty()
                && self
                    .hostname
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')),
            "host name",
        )?;
        value(is_below_code(&self.code), "code directory")?;
        let no_nul = |text: &String| !text.as_bytes().contains(&0);
        value(
            (1..=ARGUMENTS_MAX).contains(&self.argv.len())
                && self.argv[0].starts_with('/')
                && self.argv.iter().all(no_nul),
            "command line",
        )?;
        value(
            self.env.len() <= VARIABLES_MAX
                && self.env.iter().all(|(name, text)| {
                    !name.is_empty() && !name.contains('=') && no_nul(name) && no_nul(text)
                }),
            "environment",
        )?;
        value(
            self.image.as_deref().is_none_or(is_image_name),
            "image name",
        )
    }
}

/// Whether a name is of letters, digits and hyphens: it becomes part of a path.
pub fn is_plain(name: &str) -> bool {
    (1..=super::NAME_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Whether a name can be that of an image: a function's, its version and digits.
pub fn is_image_name(name: &str) -> bool {
    (1..=super::NAME_MAX).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Whether a path leads below [`CODE`] and nowhere else, as far as its words say. Links are another matter, which the
/// kernel sees to.
fn is_below_code(path: &Path) -> bool {
    let mut parts = path.components();
    parts.next() == Some(Component::Normal(CODE.as_ref()))
        && parts.clone().next().is_some()
        && parts.all(|part| matches!(part, Component::Normal(_)))
        && !path.as_os_str().as_encoded_bytes().contains(&0)
}

/// What a sealed memfd holds.
///
/// # Errors
/// [`PapersError`].
pub fn read_sealed(fd: OwnedFd) -> Result<Vec<u8>, PapersError> {
    // Only memory can be sealed: no pipe, which could block, and no device passes.
    let seals = rustix::fs::fcntl_get_seals(&fd).map_err(|_| PapersError::Unsealed)?;
    if !seals.contains(all_seals()) {
        return Err(PapersError::Unsealed);
    }
    let file = File::from(fd);
    let size = file.metadata()?.len();
    if size > PAPERS_MAX {
        return Err(PapersError::Size(size));
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
