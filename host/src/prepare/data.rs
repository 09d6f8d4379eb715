//! The data directory: whose it is, and that only one server uses it.
//!
//! It is root's, and its group is the server's, who may make files in it. It is sticky (`chmod +t`), so that the server can
//! neither rename nor remove what is the host process's in it: `run`, `images` and `lock`.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, lchown,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::settings::ServerUser;

/// Root may do all, the server's group may make files, and each owns what it made.
const MODE: u32 = 0o1770;
/// How the names of what a server has in it begin: beside these it has temporary files.
const SERVERS: [&str; 4] = ["admin-token", "code", "hearth.db", "manifests"];
/// The file that is locked. It holds the host process's number.
const LOCK: &str = "lock";
/// How long to wait for a server whose host process is dead: it ends in a moment.
const ENDING: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(10);

/// The data directory, locked for this process and whoever has the descriptor of the lock.
#[derive(Debug)]
pub struct DataDir {
    /// Absolute path.
    pub path: PathBuf,
    /// Released by the kernel when the last holder ends, however it ends.
    pub lock: File,
}

/// Why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another server has it.
    #[error("another server is using it; stop that one or choose another directory")]
    InUse,
    /// It is full of something else.
    #[error("is neither empty nor a data directory of Hearth's; choose another directory")]
    Foreign,
    /// A step failed.
    #[error("cannot be {0}: {1}")]
    Step(&'static str, io::Error),
}

impl DataDir {
    /// Makes the data directory, locks it, and gives it to the server, with what is in it if it was another's before.
    ///
    /// # Errors
    /// [`DataDirError`].
    pub fn prepare(dir: &Path, user: ServerUser) -> Result<Self, DataDirError> {
        let step = |what: &'static str| move |error: io::Error| DataDirError::Step(what, error);
        if !dir.exists() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .map_err(step("created"))?;
        }
        let path = dir.canonicalize().map_err(step("read"))?;
        if is_foreign(&path).map_err(step("read"))? {
            return Err(DataDirError::Foreign);
        }
        let lock = lock(&path.join(LOCK))?;
        give(&path, user).map_err(step("given to the server's user"))?;
        Ok(Self { path, lock })
    }
}

/// Whether it holds things, and none that Hearth makes: it and what is in it shall not change hands by mistake.
fn is_foreign(dir: &Path) -> io::Result<bool> {
    let mut is_empty = true;
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if name == LOCK || is_servers(&name) {
            return Ok(false);
        }
        // Every file system of its own has this one.
        is_empty &= name == "lost+found";
    }
    Ok(!is_empty)
}

fn is_servers(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    SERVERS
        .iter()
        .any(|servers| name.starts_with(servers.as_bytes()))
}

fn lock(path: &Path) -> Result<File, DataDirError> {
    let step = |error: io::Error| DataDirError::Step("locked", error);
    let mut lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW)
        .mode(0o600)
        .open(path)
        .map_err(step)?;
    let meta = lock.metadata().map_err(step)?;
    if !meta.is_file() || meta.nlink() != 1 || meta.uid() != 0 {
        return Err(step(io::Error::other("its lock is not root's; remove it")));
    }
    let deadline = Instant::now() + ENDING;
    while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut holder = String::new();
        let read = File::open(path).and_then(|mut file| file.read_to_string(&mut holder));
        let lives = read.is_err()
            || holder.trim().is_empty()
            || Path::new("/proc").join(holder.trim()).exists();
        if lives || Instant::now() >= deadline {
            return Err(DataDirError::InUse);
        }
        std::thread::sleep(RETRY);
    }
    lock.set_len(0)
        .and_then(|()| lock.write_all(std::process::id().to_string().as_bytes()))
        .map_err(step)?;
    Ok(lock)
}

/// Gives the directory to root and to the server's group. When it was another user's before, what a server made in it is
/// given to this one first: an interrupted run does that again.
fn give(dir: &Path, user: ServerUser) -> io::Result<()> {
    let meta = fs::metadata(dir)?;
    let is_given = (meta.uid(), meta.gid(), meta.mode() & 0o7777) == (0, user.gid, MODE);
    if !is_given {
        // Nobody else comes in meanwhile.
        fs::set_permissions(dir, Permissions::from_mode(0o700))?;
        // A former server's, by its group; or root's, of a version that ran as root.
        let former = meta.gid();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if is_servers(&entry.file_name()) {
                give_tree(&entry.path(), former, user)?;
            }
        }
    }
    lchown(dir, Some(0), Some(user.gid))?;
    fs::set_permissions(dir, Permissions::from_mode(MODE))
}

/// Gives what the former server has made. A file with several names may be somebody else's, by a link that the former
/// server made: it is left alone.
fn give_tree(path: &Path, former: u32, user: ServerUser) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    let is_its = meta.uid() == 0 || meta.gid() == former;
    if is_its && (meta.is_dir() || meta.nlink() == 1) {
        lchown(path, Some(user.uid), Some(user.gid))?;
    }
    if meta.is_dir() {
        // Packages were sealed in a way that only root could get over.
        if is_its && meta.mode() & 0o200 == 0 {
            fs::set_permissions(path, Permissions::from_mode(meta.mode() & 0o7777 | 0o200))?;
        }
        for entry in fs::read_dir(path)? {
            give_tree(&entry?.path(), former, user)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: ServerUser = ServerUser {
        uid: 1_234_567,
        gid: 1_234_568,
    };

    fn owner(path: &Path) -> (u32, u32) {
        let meta = fs::symlink_metadata(path).unwrap();
        (meta.uid(), meta.gid())
    }

    #[test]
    fn what_a_server_of_roots_left_becomes_the_servers() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::write(&outside, "").unwrap();
        let data = dir.path().join("data");
        for name in ["code/abc", "run/x", "images/y"] {
            fs::create_dir_all(data.join(name)).unwrap();
        }
        fs::write(data.join("code/abc/main.py"), "").unwrap();
        std::os::unix::fs::symlink(&outside, data.join("code/link")).unwrap();
        fs::hard_link(&outside, data.join("code/hard")).unwrap();
        let prepared = DataDir::prepare(&data, USER).unwrap();
        for name in ["code", "code/abc", "code/abc/main.py", "code/link"] {
            assert_eq!(owner(&data.join(name)), (USER.uid, USER.gid), "{name}");
        }
        for name in ["run", "run/x", "images", "images/y", "lock"] {
            assert_eq!(owner(&data.join(name)), (0, 0), "{name}");
        }
        assert_eq!(owner(&outside), (0, 0), "through neither link");
        assert_eq!(owner(&data), (0, USER.gid));
        let mode = fs::metadata(&data).unwrap().mode();
        assert_eq!(mode & 0o7777, MODE);
        assert!(matches!(
            DataDir::prepare(&data, USER),
            Err(DataDirError::InUse)
        ));
        drop(prepared);
        DataDir::prepare(&data, USER).unwrap();
    }

    #[test]
    fn what_is_not_hearths_does_not_change_hands() {
        let dir = tempfile::tempdir().unwrap();
        let before = fs::metadata(dir.path()).unwrap();
        fs::write(dir.path().join("letters"), "").unwrap();
        let refused = DataDir::prepare(dir.path(), USER);
        assert!(matches!(refused, Err(DataDirError::Foreign)), "{refused:?}");
        let after = fs::metadata(dir.path()).unwrap();
        assert_eq!((after.gid(), after.mode()), (before.gid(), before.mode()));
        // Beside what is Hearth's, it stays whose it is.
        fs::write(dir.path().join("hearth.db"), "").unwrap();
        DataDir::prepare(dir.path(), USER).unwrap();
        assert_eq!(owner(&dir.path().join("letters")), (0, 0));
        assert_eq!(owner(&dir.path().join("hearth.db")), (USER.uid, USER.gid));
    }

    #[test]
    fn a_lock_that_a_server_has_made_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join(LOCK);
        let refused = || {
            matches!(
                DataDir::prepare(dir.path(), USER),
                Err(DataDirError::Step("locked", _))
            )
        };
        fs::write(dir.path().join("hearth.db"), "precious").unwrap();
        std::os::unix::fs::symlink("hearth.db", &lock).unwrap();
        assert!(refused(), "a link");
        fs::remove_file(&lock).unwrap();
        fs::hard_link(dir.path().join("hearth.db"), &lock).unwrap();
        assert!(refused(), "another name of a file");
        fs::remove_file(&lock).unwrap();
        fs::write(&lock, "").unwrap();
        lchown(&lock, Some(USER.uid), None).unwrap();
        assert!(refused(), "a file of its own");
        assert_eq!(fs::read(dir.path().join("hearth.db")).unwrap(), b"precious");
    }
}
