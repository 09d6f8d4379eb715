//! Why an upload was rejected.

/// Why an upload was rejected. Each variant has a stable name ([`PackageError::code`]) and a sentence that says what
/// was found and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The disk would not take it. Not the uploader's fault.
    #[error("cannot write the code: {0}")]
    Io(#[from] std::io::Error),
    /// It is no zip archive.
    #[error("the upload is not a zip archive: {0}")]
    NotAZip(&'static str),
    /// The archive contradicts itself, ends early or fails its checksums.
    #[error("the archive is damaged: {0}; create it again and retry")]
    Damaged(String),
    /// It has the 64-bit extensions, which only archives far beyond the limits need.
    #[error(
        "the archive uses Zip64, which is not supported; it is needed only above 65,534 files or 4 GiB"
    )]
    Zip64,
    /// It holds too many files.
    #[error("the archive has {found}{} entries; at most {limit} are allowed", or_more(*found))]
    TooManyEntries {
        /// What its end record says; 65,535 means that or more.
        found: u64,
        /// [`super::MAX_ENTRIES`].
        limit: usize,
    },
    /// It unpacks to too much.
    #[error("the archive unpacks to more than {} MiB", limit >> 20)]
    TooLarge {
        /// [`super::MAX_UNPACKED_BYTES`].
        limit: u64,
    },
    /// It expands as no real code does.
    #[error(
        "{entry} expands more than {limit}-fold, as a decompression bomb does; leave it out or store it uncompressed"
    )]
    Bomb {
        /// The entry, quoted, or "the archive".
        entry: String,
        /// [`super::MAX_RATIO`].
        limit: u64,
    },
    /// A name that is not a plain relative path.
    #[error("the archive's entry {entry} {reason}; names must be plain relative paths")]
    Name {
        /// The name, quoted and shortened.
        entry: String,
        /// What is wrong with it: a verb phrase.
        reason: &'static str,
    },
    /// Neither a file nor a directory.
    #[error("the archive's entry {entry} is a {kind}; only files and directories are allowed")]
    Special {
        /// The name, quoted and shortened.
        entry: String,
        /// "symbolic link", "device" …
        kind: &'static str,
    },
    /// It needs a password.
    #[error("the archive's entry {entry} is encrypted; create the archive without a password")]
    Encrypted {
        /// The name, quoted and shortened.
        entry: String,
    },
    /// Compressed by something other than deflate.
    #[error(
        "the archive's entry {entry} is compressed with {method}; only deflate and no compression are supported"
    )]
    Compression {
        /// The name, quoted and shortened.
        entry: String,
        /// The method's name or number.
        method: String,
    },
    /// Two entries for one path.
    #[error("the archive contains {entry} twice, or both as a file and as a directory")]
    Duplicate {
        /// The name, quoted and shortened.
        entry: String,
    },
    /// An edit that cannot be carried out.
    #[error("{path} {reason}")]
    Edit {
        /// The file, quoted and shortened.
        path: String,
        /// What is wrong with it: a verb phrase.
        reason: &'static str,
    },
    /// Inline source for a module name that no single file can have.
    #[error(
        "a single source file is named after the handler's module, and \"{module}\" is not a valid name: use letters, \
         digits and _ before the last dot of the handler, or upload a zip archive"
    )]
    Module {
        /// The module.
        module: String,
    },
    /// The handler's module is not in the archive.
    #[error("the code has no {expected} at its root, which {required_by} requires; it has {found}")]
    MissingModule {
        /// The file that was looked for first.
        expected: String,
        /// "the handler setting", "the runtime provided".
        required_by: &'static str,
        /// Some of what is there.
        found: String,
    },
    /// A program's file is not one that this host can execute.
    #[error("{file} {reason}")]
    NotExecutable {
        /// The file.
        file: String,
        /// What is wrong with it: a verb phrase.
        reason: String,
    },
}

impl PackageError {
    /// Stable name of the reason, for the API's `reason` member.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io(_) => "io",
            Self::NotAZip(_) => "not_a_zip",
            Self::Damaged(_) => "damaged_archive",
            Self::Zip64 => "zip64",
            Self::TooManyEntries { .. } => "too_many_entries",
            Self::TooLarge { .. } => "too_large",
            Self::Bomb { .. } => "decompression_bomb",
            Self::Name { .. } => "unsafe_name",
            Self::Special { .. } => "special_file",
            Self::Encrypted { .. } => "encrypted",
            Self::Compression { .. } => "unsupported_compression",
            Self::Duplicate { .. } => "duplicate_name",
            Self::Edit { .. } => "bad_edit",
            Self::Module { .. } => "bad_module_name",
            Self::MissingModule { .. } => "missing_module",
            Self::NotExecutable { .. } => "not_executable",
        }
    }
}

/// Zip64's way of saying that the real number is elsewhere.
fn or_more(found: u64) -> &'static str {
    match found {
        65_535 => " or more",
        _ => "",
    }
}

/// Longest part of a hostile name to repeat in errors.
const SHOWN_NAME_CHARS: usize = 80;

/// A name for a message: quoted, control characters escaped, shortened.
pub(super) fn quoted(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let mut shown: String = text.chars().take(SHOWN_NAME_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}
