//! Cgroups of both versions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the hierarchies are mounted.
pub const ROOT: &str = "/sys/fs/cgroup";

/// A process's place in one hierarchy.
#[derive(Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// The hierarchy's controllers with commas between them; "" is version 2's.
    pub controllers: String,
    /// Its path in the hierarchy, which begins with `/`.
    pub path: String,
}

/// The cgroups of a process, one for each hierarchy.
///
/// # Errors
/// When the process is gone.
pub fn of(pid: u32) -> io::Result<Vec<Cgroup>> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let places = text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        Some(Cgroup {
            controllers: fields.next()?.to_owned(),
            path: fields.next()?.to_owned(),
        })
    });
    Ok(places.collect())
}

/// The directory of a process's cgroup in the hierarchy that has a controller.
///
/// # Errors
/// When the process is gone, or there is no such hierarchy.
pub fn directory(pid: u32, controller: &str) -> io::Result<PathBuf> {
    let all = of(pid)?;
    let cgroup = all
        .iter()
        .find(|cgroup| cgroup.controllers.split(',').any(|name| name == controller))
        .or_else(|| all.iter().find(|cgroup| cgroup.controllers.is_empty()));
    let below = cgroup.map(|cgroup| cgroup.path.trim_start_matches('/'));
    // The hierarchy's mount, or the only one.
    let mounts = [Path::new(ROOT).join(controller), ROOT.into()];
    below
        .and_then(|below| {
            mounts
                .map(|mount| mount.join(below))
                .into_iter()
                .find(|dir| dir.is_dir())
        })
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{controller}: {all:?}")))
}

/// Whether a process is in a cgroup of an instance.
pub fn is_of_an_instance(pid: u32) -> bool {
    of(pid).is_ok_and(|all| all.iter().any(|cgroup| cgroup.path.contains("/instance-")))
}

/// The cgroups of all hierarchies that are wanted.
pub fn directories(wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from(ROOT)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let path = entry.path();
                if wanted(&path) {
                    found.push(path.clone());
                }
                open.push(path);
            }
        }
    }
    found
}
