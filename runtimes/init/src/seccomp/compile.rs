//! Compiles the lists in `seccomp/` to programs for the kernel. Runs when this crate is built, and in its tests: a sandbox
//! has the programs at hand.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, TargetArch};
use serde::Deserialize;
use serde_json::{Value, json};

const ALLOW: &str = include_str!("../../seccomp/allow.json");
const ENOSYS: &str = include_str!("../../seccomp/enosys.json");

/// A list of system calls.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// What the list is; for readers.
    #[serde(rename = "comment")]
    _comment: String,
    /// Calls that need no look at their arguments.
    groups: Vec<Group>,
    /// Calls that depend on their arguments: any one rule that matches is enough.
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    /// Who needs them; for readers.
    #[serde(rename = "why")]
    _why: String,
    /// The only architecture that has them.
    arch: Option<String>,
    calls: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// Who needs it; for readers.
    #[serde(rename = "why")]
    _why: String,
    call: String,
    /// Conditions as seccompiler's JSON has them; all of them have to hold.
    args: Vec<Value>,
}

/// Both programs, as straight lists.
pub struct Programs {
    pub enosys: BpfProgram,
    pub allow: BpfProgram,
}

/// Compiles the lists for an architecture.
pub fn compile_for(arch: &str) -> Result<Programs, Box<dyn std::error::Error>> {
    let enosys: List = serde_json::from_str(ENOSYS)?;
    let allow: List = serde_json::from_str(ALLOW)?;
    let absent = names(&enosys, arch);
    let mut rules: Vec<Value> = names(&allow, arch)
        .iter()
        // Allowed here, so that the other filter's ENOSYS is the stricter answer.
        .chain(&absent)
        .map(|name| json!({ "syscall": name }))
        .collect();
    rules.extend(
        allow
            .rules
            .iter()
            .map(|rule| json!({ "syscall": rule.call, "args": rule.args })),
    );
    let source = json!({
        "allow": {
            "mismatch_action": { "errno": libc::EPERM },
            "match_action": "allow",
            "filter": rules,
        },
        "enosys": {
            "mismatch_action": "allow",
            "match_action": { "errno": libc::ENOSYS },
            "filter": absent.iter().map(|name| json!({ "syscall": name })).collect::<Vec<_>>(),
        },
    });
    let mut programs: BTreeMap<_, _> =
        seccompiler::compile_from_json(source.to_string().as_bytes(), TargetArch::try_from(arch)?)?
            .into_iter()
            .collect();
    let mut take = |name: &str| programs.remove(name).ok_or("a filter is missing");
    Ok(Programs {
        enosys: take("enosys")?,
        allow: take("allow")?,
    })
}

/// Names of a list's unconditional calls on an architecture.
fn names<'a>(list: &'a List, arch: &str) -> Vec<&'a str> {
    list.groups
        .iter()
        .filter(|group| group.arch.as_deref().is_none_or(|only| only == arch))
        .flat_map(|group| &group.calls)
        .map(String::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiles_for_every_architecture() {
        for arch in ["x86_64", "aarch64"] {
            let programs = compile_for(arch).expect(arch);
            assert!(programs.allow.len() > 200, "{arch}");
        }
    }

    #[test]
    fn no_call_is_listed_twice() {
        // seccompiler would join an unconditional and a conditional entry into the conditional one.
        for arch in ["x86_64", "aarch64"] {
            let allow: List = serde_json::from_str(ALLOW).expect("allow.json");
            let enosys: List = serde_json::from_str(ENOSYS).expect("enosys.json");
            let mut all = names(&allow, arch);
            all.extend(names(&enosys, arch));
            let conditional: std::collections::BTreeSet<_> =
                allow.rules.iter().map(|rule| rule.call.as_str()).collect();
            all.extend(conditional);
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count, "{arch}");
        }
    }

    #[test]
    fn what_must_never_be_allowed_is_not() {
        const NEVER: &[&str] = &[
            "acct",
            "add_key",
            "bpf",
            "chroot",
            "delete_module",
            "fanotify_init",
            "finit_module",
            "fsconfig",
            "fsmount",
            "fsopen",
            "fspick",
            "init_module",
            "io_uring_enter",
            "io_uring_register",
            "kcmp",
            "kexec_file_load",
            "kexec_load",
            "keyctl",
            "lookup_dcookie",
            "mount",
            "mount_setattr",
            "move_mount",
            "move_pages",
            "name_to_handle_at",
            "nfsservctl",
            "open_by_handle_at",
            "open_tree",
            "perf_event_open",
            "pidfd_getfd",
            "pivot_root",
            "process_madvise",
            "process_vm_readv",
            "process_vm_writev",
            "ptrace",
            "quotactl",
            "reboot",
            "request_key",
            "seccomp",
            "setdomainname",
            "setgid",
            "setgroups",
            "sethostname",
            "setns",
            "setresgid",
            "setresuid",
            "setuid",
            "swapoff",
            "swapon",
            "sync",
            "syslog",
            "umount2",
            "unshare",
            "userfaultfd",
            "vhangup",
            "vmsplice",
        ];
        for arch in ["x86_64", "aarch64"] {
            let allow: List = serde_json::from_str(ALLOW).expect("allow.json");
            for name in names(&allow, arch) {
                assert!(!NEVER.contains(&name), "{name} on {arch}");
            }
            for rule in &allow.rules {
                assert!(!NEVER.contains(&rule.call.as_str()), "{}", rule.call);
                assert!(!rule.args.is_empty(), "{} has no condition", rule.call);
            }
        }
    }
}
