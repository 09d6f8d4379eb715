//! A directory that becomes the function's archive: trees are copied into it, and programs run to complete them.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use super::output::end;

/// What the server unpacks at most: bytes, files and directories below each other.
pub(super) const BYTES_MAX: u64 = 512 << 20;
const FILES_MAX: usize = 50_000;
const DEPTH_MAX: usize = 32;

/// Longest run of a program: one that installs packages, or compiles a standard library.
const PROGRAM_WITHIN: Duration = Duration::from_mins(10);

/// Directories of version control and caches, which no benchmark needs.
const LEFT_OUT: [&str; 11] = [
    ".git",
    ".hg",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules/.bin",
    "node_modules/.cache",
];

/// Why a suite cannot be staged.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// A tree is not what its tool needs.
    #[error("{0}")]
    Tree(String),
    /// All is larger than a function may be.
    #[error("{0}: {1}")]
    TooLarge(PathBuf, String),
    /// A program cannot be run.
    #[error("{0}: {1}")]
    Program(String, String),
    /// A program failed, with what it said.
    #[error("{0} failed:\n{1}")]
    Failed(String, String),
}

/// The directory, removed when this is dropped.
#[derive(Debug)]
pub struct Stage {
    /// The archive's files are in `function`; others beside it.
    directory: TempDir,
    root: PathBuf,
    files: usize,
    bytes: u64,
}

impl Stage {
    /// An empty one, where temporary files are.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create() -> Result<Self, StageError> {
        let place = std::env::temp_dir();
        let failed = |error| StageError::File(place.clone(), error);
        let directory = TempDir::with_prefix("hearth-suite-").map_err(failed)?;
        let root = directory.path().join("function");
        fs::create_dir(&root).map_err(failed)?;
        Ok(Self {
            root: root.canonicalize().map_err(failed)?,
            directory,
            files: 0,
            bytes: 0,
        })
    }

    /// Where a name is in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A directory beside the staged files that is no part of the archive.
    ///
    /// # Errors
    /// What the file system says.
    pub fn aside(&self, name: &str) -> Result<PathBuf, StageError> {
        let path = self.directory.path().join("aside").join(name);
        fs::create_dir_all(&path).map_err(|error| StageError::File(path.clone(), error))?;
        Ok(path)
    }

    /// Writes a file.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, name: &str, content: &str) -> Result<(), StageError> {
        let path = self.path(name);
        let parent = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, content))
            .map_err(|error| StageError::File(path, error))
    }

    /// Copies a tree, without what [`LEFT_OUT`] names, without `node_modules` unless they are wanted, and without links to directories.
    ///
    /// # Errors
    /// There is no such directory, a file cannot be read, or all together is larger than a function may be.
    pub fn copy(&mut self, from: &Path, to: &str, with_modules: bool) -> Result<(), StageError> {
        let is_wanted = |path: &Path| {
            let is_module = !with_modules && path.file_name() == Some(OsStr::new("node_modules"));
            !is_module && !LEFT_OUT.iter().any(|name| path.ends_with(name))
        };
        self.copy_directory(from, &self.path(to), &is_wanted, DEPTH_MAX)
    }

    /// Copies the files of a directory, but not those below it, that are wanted.
    ///
    /// # Errors
    /// As [`Self::copy`].
    pub fn copy_files(
        &mut self,
        from: &Path,
        to: &str,
        is_wanted: impl Fn(&Path) -> bool,
    ) -> Result<(), StageError> {
        let is_wanted = |path: &Path| !path.is_dir() && is_wanted(path);
        self.copy_directory(from, &self.path(to), &is_wanted, 1)
    }

    fn copy_directory(
        &mut self,
        from: &Path,
        to: &Path,
        is_wanted: &dyn Fn(&Path) -> bool,
        depth: usize,
    ) -> Result<(), StageError> {
        let failed = |error| StageError::File(from.to_owned(), error);
        if depth == 0 {
            let reason = format!("more than {DEPTH_MAX} directories below each other");
            return Err(StageError::TooLarge(from.to_owned(), reason));
        }
        let entries = fs::read_dir(from).map_err(failed)?;
        fs::create_dir_all(to).map_err(|error| StageError::File(to.to_owned(), error))?;
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let (path, target) = (entry.path(), to.join(entry.file_name()));
            if !is_wanted(&path) {
                continue;
            }
            if entry.file_type().map_err(failed)?.is_dir() {
                self.copy_directory(&path, &target, is_wanted, depth - 1)?;
            } else if path.is_file() {
                self.copy_file(&path, &target)?;
            }
        }
        Ok(())
    }

    /// Copies a file with its mode; what a link leads to, if it is one.
    ///
    /// # Errors
    /// As [`Self::copy`].
    pub fn copy_file(&mut self, from: &Path, to: &Path) -> Result<(), StageError> {
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(|error| StageError::File(to.to_owned(), error))?;
        }
        let copied =
            fs::copy(from, to).map_err(|error| StageError::File(from.to_owned(), error))?;
        self.bytes += copied;
        self.files += 1;
        let reason = match (self.bytes > BYTES_MAX, self.files > FILES_MAX) {
            (true, _) => format!("more than {} MiB to be packed", BYTES_MAX >> 20),
            (_, true) => format!("more than {FILES_MAX} files to be packed"),
            _ => return Ok(()),
        };
        Err(StageError::TooLarge(from.to_owned(), reason))
    }
}

/// A program with its arguments, for [`output`].
pub(super) fn program(path: &Path, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(path);
    command.args(arguments).current_dir(directory);
    command
}

/// Runs a program to its end, which a drop of this brings about at once, and returns what it printed.
///
/// # Errors
/// It cannot be started, takes too long or fails.
pub(super) async fn output(command: &mut Command) -> Result<String, StageError> {
    let name = {
        let command = command.as_std();
        let arguments = command.get_args().map(OsStr::to_string_lossy);
        let program = Path::new(command.get_program()).file_name();
        let program = program.unwrap_or_default().to_string_lossy();
        let all: Vec<_> = std::iter::once(program).chain(arguments).collect();
        all.join(" ")
    };
    command.stdin(Stdio::null()).kill_on_drop(true);
    let Ok(done) = timeout(PROGRAM_WITHIN, command.output()).await else {
        let reason = format!("takes longer than {} s", PROGRAM_WITHIN.as_secs());
        return Err(StageError::Program(name, reason));
    };
    let done = done.map_err(|error| StageError::Program(name.clone(), error.to_string()))?;
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        return Ok(printed);
    }
    let said = printed + &String::from_utf8_lossy(&done.stderr);
    Err(StageError::Failed(name, end(said.trim()).to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_tree_is_copied_without_what_no_benchmark_needs() {
        let tree = tempfile::tempdir().expect("a directory");
        let file = |name: &str| {
            let path = tree.path().join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(&path, name).expect("written");
            path
        };
        for name in [
            ".git/HEAD",
            "a/b.go",
            "node_modules/x/i.js",
            "node_modules/.bin/x",
            "__pycache__/a.pyc",
        ] {
            file(name);
        }
        let script = file("run.sh");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("set");
        std::os::unix::fs::symlink("/", tree.path().join("everything")).expect("linked");
        std::os::unix::fs::symlink("run.sh", tree.path().join("link.sh")).expect("linked");

        let mut stage = Stage::create().expect("a stage");
        stage.copy(tree.path(), "v1", false).expect("copied");
        stage.copy(tree.path(), "v2", true).expect("copied");
        let is_there = |name: &str| stage.path(name).exists();
        assert!(is_there("v1/a/b.go") && is_there("v1/link.sh"));
        assert!(is_there("v2/node_modules/x/i.js") && !is_there("v1/node_modules"));
        for name in [
            "v1/.git",
            "v1/__pycache__",
            "v1/everything",
            "v2/node_modules/.bin",
        ] {
            assert!(!is_there(name), "{name}");
        }
        let mode = fs::metadata(stage.path("v1/run.sh"))
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
        let archive = super::super::archive::pack(stage.root()).expect("an archive");
        let mut archive = zip::ZipArchive::new(io::Cursor::new(archive)).expect("an archive");
        assert_eq!(
            archive.by_name("v1/run.sh").expect("packed").unix_mode(),
            Some(0o100_755)
        );
        let root = stage.root().to_owned();
        drop(stage);
        assert!(!root.exists());
    }

    #[tokio::test]
    async fn a_program_that_fails_is_named_with_what_it_said() {
        let here = Path::new("/");
        let mut command = program(
            Path::new("/bin/sh"),
            here,
            &["-c", "echo out; echo wrong >&2; exit 3"],
        );
        let error = output(&mut command)
            .await
            .expect_err("it fails")
            .to_string();
        assert!(
            error.starts_with("sh -c") && error.contains("out\nwrong"),
            "{error}"
        );
        let error = output(&mut program(Path::new("/nowhere"), here, &[]))
            .await
            .expect_err("there is none");
        assert!(matches!(error, StageError::Program(..)), "{error}");
    }
}
