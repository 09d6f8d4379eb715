//! Where the cgroup hierarchies are mounted, and the server's own place in them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroup::{Directories, Version};

/// The controllers, found.
#[derive(Debug)]
pub enum Found {
    /// The server's own directory in each hierarchy.
    V1(Directories),
    /// One hierarchy for all.
    V2 {
        /// Where it is mounted.
        mount: PathBuf,
        /// The server's own directory.
        own: PathBuf,
    },
}

/// Finds memory, pids and cpu: all on v1 or all on v2.
pub fn find() -> Result<Found, String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    find_in(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
}

fn find_in(cgroup: &str, mountinfo: &str) -> Result<Found, String> {
    let v1 = |controller| own_v1(controller, cgroup, mountinfo);
    match (v1("memory")?, v1("pids")?, v1("cpu")?) {
        (Some(memory), Some(pids), Some(cpu)) => Ok(Found::V1(Directories {
            version: Version::V1,
            // One that another controller has as well has no cores for its processes, and could not take any.
            cpuset: v1("cpuset")?.filter(|dir| ![&memory, &pids, &cpu].contains(&dir)),
            memory,
            pids,
            cpu,
        })),
        (None, None, None) => {
            let own = cgroup
                .lines()
                .find_map(|line| line.strip_prefix("0::"))
                .ok_or("the kernel has no cgroup2")?;
            let mount = mounts(mountinfo)
                .find(|mount| mount.kind == "cgroup2")
                .ok_or("cgroup2 is not mounted")?;
            Ok(Found::V2 {
                own: mount.locate(own)?,
                mount: mount.point,
            })
        }
        (memory, pids, cpu) => {
            let on = |found: Option<PathBuf>| if found.is_some() { "v1" } else { "v2" };
            Err(format!(
                "they are on different versions: memory {}, pids {}, cpu {}",
                on(memory),
                on(pids),
                on(cpu)
            ))
        }
    }
}

/// Where cgroup2 is mounted, if it is.
#[cfg(test)]
pub(crate) fn v2_mount(mountinfo: &str) -> Option<PathBuf> {
    mounts(mountinfo)
        .find(|mount| mount.kind == "cgroup2")
        .map(|mount| mount.point)
}

/// The server's directory in the v1 hierarchy of a controller; none when the controller is not on v1.
fn own_v1(controller: &str, cgroup: &str, mountinfo: &str) -> Result<Option<PathBuf>, String> {
    // hierarchy:controllers:path
    let own = cgroup.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let names = fields.next()?;
        names
            .split(',')
            .any(|name| name == controller)
            .then(|| fields.next())?
    });
    let Some(own) = own else { return Ok(None) };
    mounts(mountinfo)
        .find(|mount| {
            mount.kind == "cgroup" && mount.options.split(',').any(|name| name == controller)
        })
        .ok_or_else(|| format!("the v1 hierarchy of {controller} is not mounted"))?
        .locate(own)
        .map(Some)
}

/// One line of `/proc/self/mountinfo`.
struct Mount<'a> {
    /// What of the hierarchy is mounted.
    root: &'a str,
    /// Where.
    point: PathBuf,
    kind: &'a str,
    options: &'a str,
}

impl Mount<'_> {
    /// The directory of a cgroup whose path in the hierarchy is `path`.
    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        // A container without a cgroup namespace sees the host's paths, and a mount of its own part only.
        let below = match self.root {
            "/" => Some(path),
            root => path.strip_prefix(root),
        };
        match below.map(|below| below.trim_start_matches('/')) {
            Some(below) if !below.split('/').any(|part| part == "..") => Ok(if below.is_empty() {
                self.point.clone()
            } else {
                self.point.join(below)
            }),
            _ => Err(format!(
                "the server's own cgroup {path} is not visible below {}",
                self.point.display()
            )),
        }
    }
}

/// Fields: id, parent, device, root, mount point, options, any number of tags, `-`, type, source, super options.
fn mounts(mountinfo: &str) -> impl Iterator<Item = Mount<'_>> {
    mountinfo.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let mut right = right.split(' ');
        Some(Mount {
            root: left.next()?,
            point: unescape(left.next()?),
            kind: right.next()?,
            options: right.nth(1)?,
        })
    })
}

/// Spaces and the like are written as `\040` there.
fn unescape(text: &str) -> PathBuf {
    let plain = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (code, plain)| {
        text.replace(code, plain)
    });
    Path::new(&plain).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_in_its_own_hierarchy() {
        let cgroup = "8:pids:/\n4:memory:/user/a:b\n2:cpuacct:/\n1:cpu:/x\n0::/\n";
        let mounts = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      35 31 0:32 / /sys/fs/cgroup/memory rw shared:3 - cgroup cgroup rw,memory\n\
                      39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let Ok(Found::V1(found)) = find_in(cgroup, mounts) else {
            panic!("not v1")
        };
        assert_eq!(found.memory, Path::new("/sys/fs/cgroup/memory/user/a:b"));
        assert_eq!(found.pids, Path::new("/sys/fs/cgroup/pids"));
        assert_eq!(found.cpu, Path::new("/sys/fs/cgroup/cpu/x"));
        assert_eq!(found.distinct().len(), 3);
    }

    #[test]
    fn controllers_mounted_together_in_a_container() {
        let cgroup = "3:cpu,cpuacct:/docker/c1\n2:memory,pids:/docker/c1/sub\n";
        let mounts = "1 0 0:1 /docker/c1 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      2 0 0:2 /docker/c1 /sys/fs/cgroup/m\\040p rw - cgroup cgroup rw,memory,pids\n";
        let Ok(Found::V1(found)) = find_in(cgroup, mounts) else {
            panic!("not v1")
        };
        assert_eq!(found.cpu, Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(found.memory, Path::new("/sys/fs/cgroup/m p/sub"));
        assert_eq!(found.distinct().len(), 2);
    }

    #[test]
    fn one_hierarchy() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let Ok(Found::V2 { mount, own }) = find_in("0::/system.slice/hearth.service\n", mounts)
        else {
            panic!("not v2")
        };
        assert_eq!(mount, Path::new("/sys/fs/cgroup"));
        assert_eq!(own, Path::new("/sys/fs/cgroup/system.slice/hearth.service"));
        assert!(find_in("0::/../other\n", mounts).is_err());
    }

    #[test]
    fn controllers_on_both_are_refused() {
        let mounts = "1 0 0:1 / /c/memory rw - cgroup cgroup rw,memory\n";
        let refusal = find_in("2:memory:/\n0::/\n", mounts).expect_err("mixed");
        assert!(refusal.contains("pids v2"), "{refusal}");
    }
}
