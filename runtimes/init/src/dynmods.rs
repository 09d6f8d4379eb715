//! Makes moving processes between cgroups fast: `favordynmods`.
//!
//! By default the kernel waits for an RCU grace period (about 10 ms) whenever a process is moved. The mount option
//! `favordynmods` of cgroup2 takes that wait away, for v1 hierarchies too; forks and exits become a trifle slower. The
//! option belongs to the one hierarchy that all mounts of cgroup2 show, so it can be set by mounting it once more, here
//! in a mount namespace that is gone with this process. The other options are kept: a mount sets all of them.

use std::ffi::CString;
use std::fs;
use std::path::Path;

use hearth_init::Outcome;
use rustix::mount::{MountFlags, MountPropagationFlags};

use crate::sys;

const OPTION: &str = "favordynmods";
/// Options of cgroup2 that a mount sets or clears for the whole hierarchy.
const KEPT: &[&str] = &[
    "nsdelegate",
    "memory_localevents",
    "memory_recursiveprot",
    "memory_hugetlb_accounting",
    "pids_localevents",
];

/// Sets the option, mounting on the empty directory `dir`, and looks whether it is set.
pub fn run(dir: &Path) -> Outcome {
    Outcome {
        error: set(dir).err().map(|error| error.to_string()),
    }
}

fn set(dir: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let before = mounted_options(&fs::read_to_string("/proc/self/mountinfo")?);
    if before.iter().any(|option| option == OPTION) {
        return Ok(());
    }
    let options: Vec<_> = std::iter::once(OPTION)
        .chain(
            before
                .iter()
                .map(String::as_str)
                .filter(|option| KEPT.contains(option)),
        )
        .collect();
    sys::unshare_mounts().map_err(|error| format!("a mount namespace: {error}"))?;
    rustix::mount::mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )?;
    let data = CString::new(options.join(","))?;
    rustix::mount::mount("none", dir, "cgroup2", MountFlags::empty(), data.as_c_str())
        .map_err(|error| format!("mounting cgroup2 with {OPTION}: {error}"))?;
    let after = mounted_options(&fs::read_to_string("/proc/self/mountinfo")?);
    if after.iter().any(|option| option == OPTION) {
        Ok(())
    } else {
        Err("the kernel ignored it, as it does outside the host's own cgroup namespace".into())
    }
}

/// Options of the cgroup2 hierarchy in the text of `/proc/self/mountinfo`: fields after the separator `-` are the file
/// system's type, its source and its options. Every mount shows the same ones.
fn mounted_options(mountinfo: &str) -> Vec<String> {
    mountinfo
        .lines()
        .filter_map(|line| line.split_once(" - "))
        .find_map(|(_, rest)| {
            let mut fields = rest.split(' ');
            (fields.next() == Some("cgroup2")).then(|| fields.nth(1).unwrap_or_default())
        })
        .map(|options| options.split(',').map(str::to_owned).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::mounted_options;

    #[test]
    fn options_are_the_hierarchys_not_the_mounts() {
        let text = "31 23 0:28 / /sys/fs/cgroup ro,nosuid shared:4 - tmpfs tmpfs ro,mode=755\n\
                    41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";
        assert_eq!(
            mounted_options(text),
            ["rw", "nsdelegate", "memory_recursiveprot"]
        );
        assert!(mounted_options("").is_empty());
    }
}
