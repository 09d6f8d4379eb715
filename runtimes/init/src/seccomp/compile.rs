//! Compiles the lists in `seccomp/` to programs for the kernel. Runs when this crate is built, and in its tests: a
//! sandbox uses the compiled programs.

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

/// Both filters.
pub struct Programs {
    pub enosys: Filter,
    pub allow: Filter,
}

/// A filter, as straight lists.
pub struct Filter {
    /// All of it.
    pub whole: BpfProgram,
    /// Without the calls that need no look at their arguments: it answers to those as to calls that are on no list.
    pub rules: BpfProgram,
}

/// Compiles the lists for an architecture.
pub fn compile_for(arch: &str) -> Result<Programs, Box<dyn std::error::Error>> {
    let enosys: List = serde_json::from_str(ENOSYS)?;
    let allow: List = serde_json::from_str(ALLOW)?;
    let absent = names(&enosys, arch);
    // Allowed here, so that the other filter's ENOSYS is the stricter answer.
    let allowed: Vec<_> = names(&allow, arch)
        .into_iter()
        .chain(absent.iter().copied())
        .collect();
    let compile = |calls: &[&str], rules: &[Rule], otherwise: &Value, answer: &Value| {
        let calls = calls.iter().map(|name| json!({ "syscall": name }));
        let rules = rules
            .iter()
            .map(|rule| json!({ "syscall": rule.call, "args": rule.args }));
        let source = json!({ "filter": {
            "mismatch_action": otherwise,
            "match_action": answer,
            "filter": calls.chain(rules).collect::<Vec<_>>(),
        } });
        let arch = TargetArch::try_from(arch)?;
        seccompiler::compile_from_json(source.to_string().as_bytes(), arch)?
            .remove("filter")
            .ok_or_else(|| Box::<dyn std::error::Error>::from("the filter is missing"))
    };
    let filter = |calls: &[&str], rules: &[Rule], otherwise: Value, answer: Value| {
        Ok::<_, Box<dyn std::error::Error>>(Filter {
            whole: compile(calls, rules, &otherwise, &answer)?,
            rules: compile(&[], rules, &otherwise, &answer)?,
        })
    };
    let error = |errno: i32| json!({ "errno": errno });
    Ok(Programs {
        enosys: filter(&absent, &[], json!("allow"), error(libc::ENOSYS))?,
        allow: filter(&allowed, &allow.rules, error(libc::EPERM), json!("allow"))?,
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
            assert!(programs.allow.whole.len() > 200, "{arch}");
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
            "pkey_alloc",
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
