//! Checks what CRIU restored before any of it runs, instead of trusting it.

use std::fs;

use hearth_init::INNER_UID;
use rustix::process::Pid;

use crate::error::JailError;

/// Looks whether every thread of these has no more rights than one of a booted template.
pub fn rights(processes: &[Pid]) -> Result<(), JailError> {
    let mut seen = 0;
    for pid in processes {
        let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
        for task in fs::read_dir(&tasks).map_err(JailError::restore)? {
            let path = task.map_err(JailError::restore)?.path().join("status");
            let status = fs::read_to_string(path).map_err(JailError::restore)?;
            if let Some(wrong) = looser_than_booted(&status) {
                return Err(JailError::Restore(format!(
                    "process {} has {wrong}, unlike a booted one",
                    pid.as_raw_nonzero()
                )));
            }
            seen += 1;
        }
    }
    if seen == 0 {
        return Err(JailError::Restore("CRIU restored nothing".into()));
    }
    Ok(())
}

/// The first line of a process's status that gives it more than a template may have.
fn looser_than_booted(status: &str) -> Option<String> {
    const NONE: &str = "0000000000000000";
    let user = format!("{INNER_UID}\t{INNER_UID}\t{INNER_UID}\t{INNER_UID}");
    let expected = [
        ("Uid", user.as_str()),
        ("Gid", user.as_str()),
        ("Groups", ""),
        ("CapInh", NONE),
        ("CapPrm", NONE),
        ("CapEff", NONE),
        ("CapBnd", NONE),
        ("CapAmb", NONE),
        ("NoNewPrivs", "1"),
        // 2: a filter, which PID 1 has just installed.
        ("Seccomp", "2"),
    ];
    expected.into_iter().find_map(|(name, value)| {
        let found = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim);
        (found != Some(value)).then(|| format!("{name} {}", found.unwrap_or("missing")))
    })
}

#[cfg(test)]
mod tests {
    use super::looser_than_booted;

    const BOOTED: &str = "Name:\tpython3\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t \n\
        CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n\
        CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t2\n";

    #[test]
    fn every_right_too_many_is_seen() {
        assert_eq!(looser_than_booted(BOOTED), None);
        for (from, to) in [
            ("Uid:\t1000", "Uid:\t0"),
            ("CapBnd:\t0", "CapBnd:\t1"),
            ("CapAmb:\t0", "CapAmb:\t1"),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0"),
            ("Seccomp:\t2", "Seccomp:\t0"),
            ("Groups:\t", "Groups:\t4"),
            ("Seccomp:\t2", ""),
        ] {
            assert!(
                looser_than_booted(&BOOTED.replace(from, to)).is_some(),
                "{to}"
            );
        }
    }
}
