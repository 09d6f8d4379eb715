//! Network namespaces of a test's or a benchmark's own, made with `ip` of iproute2.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace that goes with this value. Its loopback is up.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one, with `label` in its name.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn make(label: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ht-{label}-{}-{number}", std::process::id());
        ip(["netns", "add", &name])?;
        let namespace = Self { name };
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// What `ip` knows it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.name)
    }

    /// Runs `ip` in it, with these words.
    ///
    /// # Errors
    /// What it says.
    pub fn ip(&self, words: &str) -> io::Result<()> {
        ip(["-n", &self.name].into_iter().chain(words.split(' ')))
    }

    /// What a program prints that runs in it.
    ///
    /// # Errors
    /// If `ip` cannot be run; what the program says if it fails.
    pub fn look(&self, program: &str, arguments: &[&str]) -> io::Result<String> {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.name, program])
            .args(arguments)
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("{program} {arguments:?}: {said}")));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Puts the calling thread into it, and with it all that the thread starts.
    ///
    /// # Errors
    /// If it is gone.
    pub fn enter(&self) -> io::Result<()> {
        enter(&self.path())
    }

    /// Does something in it, in a thread of its own.
    ///
    /// # Errors
    /// What that says, or that the namespace is gone.
    pub fn within<T: Send>(&self, what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        within(&self.path(), what)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It goes for good with the last process in it.
        let _ = ip(["netns", "del", &self.name]);
    }
}

/// Puts the calling thread into the network namespace with this path.
///
/// # Errors
/// If there is none.
pub fn enter(path: &Path) -> io::Result<()> {
    let namespace = File::open(path)?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(())
}

/// Does something in the network namespace with this path, in a thread of its own.
///
/// # Errors
/// What that says, or that there is no such namespace.
///
/// # Panics
/// If it does.
pub fn within<T: Send>(path: &Path, what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            enter(path)?;
            what()
        });
        inside.join().expect("no panic")
    })
}

fn ip<'a>(arguments: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let output = Command::new("ip")
        .args(&arguments)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let what = arguments.join(" ");
    Err(io::Error::other(format!("ip {what}: {}", said.trim())))
}
