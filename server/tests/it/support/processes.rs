//! Processes as the host sees them.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The number that a template has in its sandbox; what it forks comes after.
const TEMPLATE: u32 = 1000;

/// A process of a sandbox, as the host sees it.
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub uid: u32,
    /// `/proc/PID/status`.
    status: String,
    /// The value of `HEARTH_FUNCTION` in its environment; PID 1 has none.
    pub function: Option<String>,
}

impl Process {
    fn read(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let function = environment
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(b"HEARTH_FUNCTION="))
            .map(|name| String::from_utf8_lossy(name).into_owned());
        let mut process = Self {
            pid,
            parent: 0,
            uid: 0,
            status,
            function,
        };
        process.parent = process.field("PPid").parse().ok()?;
        process.uid = process
            .field("Uid")
            .split_whitespace()
            .next()?
            .parse()
            .ok()?;
        Some(process)
    }

    /// A field of its status, or "".
    pub fn field(&self, name: &str) -> &str {
        self.status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .unwrap_or_default()
            .trim()
    }

    /// Identity of one of its namespaces.
    pub fn namespace(&self, name: &str) -> String {
        let link = fs::read_link(format!("/proc/{}/ns/{name}", self.pid));
        link.expect("root may look").display().to_string()
    }

    /// Whether it has ended and nobody has waited for it.
    pub fn is_zombie(&self) -> bool {
        self.field("State").starts_with('Z')
    }

    /// Its pid in its own namespace: the last of them.
    pub fn number_inside(&self) -> u32 {
        let numbers = self.field("NSpid").split_whitespace().last();
        numbers.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Whether it is a template of this function.
    pub fn is_template(&self, function: &str) -> bool {
        self.number_inside() == TEMPLATE && self.function.as_deref() == Some(function)
    }

    /// Whether a template of this function forked it: an instance, or a fork made ahead.
    pub fn is_fork(&self, function: &str) -> bool {
        self.number_inside() > TEMPLATE && self.function.as_deref() == Some(function)
    }
}

/// Whether the process runs: it is there, and no zombie.
pub fn is_alive(pid: u32) -> bool {
    Process::read(pid).is_some_and(|process| !process.is_zombie())
}

/// The processes that have a path in their command line or environment, whoever their parent is by now.
pub fn mentioning(path: &Path) -> Vec<u32> {
    let path = path.as_os_str().as_bytes();
    fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            ["cmdline", "environ"].iter().any(|file| {
                let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                text.windows(path.len()).any(|window| window == path)
            })
        })
        .collect()
}

/// The server that a host process has started.
pub fn serve_pid(host: u32) -> Option<u32> {
    let children = family(host).into_iter();
    children
        .map(|process| process.pid)
        .find(|pid| is_server(*pid))
}

fn is_server(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(b"serve")
}

/// Every descendant of a host process in a sandbox, those included that nobody has waited for.
pub fn descendants(host: u32) -> Vec<Process> {
    let mut family = family(host);
    family.retain(|process| !is_server(process.pid));
    family
}

fn family(root: u32) -> Vec<Process> {
    let all: Vec<Process> = fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut family = HashSet::from([root]);
    loop {
        let before = family.len();
        family.extend(
            all.iter()
                .filter(|process| family.contains(&process.parent))
                .map(|process| process.pid)
                .collect::<Vec<_>>(),
        );
        if family.len() == before {
            break;
        }
    }
    all.into_iter()
        .filter(|process| process.pid != root && family.contains(&process.pid))
        .collect()
}
