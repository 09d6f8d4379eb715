//! `node`: finds the interpreter and tests whether it can fork.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::RuntimeFiles;
use crate::config::{Config, NodeFork};

/// The oldest Node.js that has every one of [`FLAGS`].
const MIN_NODE: (u32, u32) = (20, 11);

/// The distribution's own.
const DEFAULT_NODE: &str = "/usr/bin/node";

/// - Without background threads of V8, which a fork would not have; the one that Node insists on has nothing to do.
/// - Without the collection that V8 begins when a heap has been quiet for eight seconds: the template's has been for
///   longer, so that each of its forks would begin one within its first requests, and with it write to memory that they
///   share. Collections that allocations ask for stay.
/// - A module without a `package.json` is of the kind that its syntax says, with no word about it.
const FLAGS: [&str; 5] = [
    "--single-threaded",
    "--v8-pool-size=1",
    "--no-memory-reducer",
    "--experimental-detect-module",
    "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
];

/// Preloaded into every worker thread.
const IN_THREADS: &str = "--require=/opt/hearth/node/worker/thread.js";

/// V8's limit on its heap. Past it, it collects garbage ever harder and gives up; before it, the cgroup's limit counts
/// everything else, too.
const HEAP_FLAG: &str = "--max-old-space-size";

/// Timeout of the probe. It usually takes a quarter of a second; a hanging child is ended after ten.
const PROBE_DEADLINE: Duration = Duration::from_secs(20);
/// Polling interval for its end.
const PROBE_POLL: Duration = Duration::from_millis(5);
/// Most of the probe's answer that is read: one line.
const ANSWER_BYTES: u64 = 64 * 1024;
/// Most characters to quote of an unexpected output: it is part of a one-line reason.
const LINE_CHARS: usize = 300;

/// The output of `bootstrap.js --probe`.
#[derive(Debug, Deserialize)]
struct Answer {
    version: String,
    fork: bool,
    #[serde(default)]
    reason: String,
}

pub(super) fn probe(dir: &Path, config: &Config) -> RuntimeFiles {
    let dir = dir.join("node");
    // What set-up fetched where the distribution's own is too old.
    let packaged = dir.join("bin/node");
    let (host, inside) = match &config.node {
        Some(node) => (node.clone(), node.display().to_string()),
        None if packaged.is_file() => (packaged, "/opt/hearth/node/bin/node".into()),
        None => (DEFAULT_NODE.into(), DEFAULT_NODE.into()),
    };
    let bootstrap = dir.join("bootstrap.js");
    let answer = match super::missing(&bootstrap) {
        Some(reason) => Err(reason),
        None => ask(&host, &bootstrap),
    };
    let (version, fork) = match answer {
        Ok(answer) => (supported(&host, &answer.version), forks(&answer, config)),
        Err(reason) => (Err(reason.clone()), Err(reason)),
    };
    if let (Ok(version), Err(reason)) = (&version, &fork) {
        tracing::warn!(
            version,
            reason,
            "node cannot fork; its functions start by boot"
        );
    }
    let mut command: Vec<String> = std::iter::once(inside)
        .chain(FLAGS.map(str::to_owned))
        .chain([IN_THREADS.into(), "/opt/hearth/node/bootstrap.js".into()])
        .collect();
    if fork.is_err() {
        command.push("--prefork".into());
    }
    RuntimeFiles {
        dir,
        name: "node",
        command,
        heap_flag: Some(HEAP_FLAG),
        version,
        fork,
        becomes: None,
    }
}

fn forks(answer: &Answer, config: &Config) -> Result<(), String> {
    match config.node_fork {
        NodeFork::Off => Err("HEARTH_NODE_FORK=off".into()),
        NodeFork::Auto if answer.fork => Ok(()),
        NodeFork::Auto => Err(answer.reason.clone()),
    }
}

fn supported(node: &Path, version: &str) -> Result<String, String> {
    let mut parts = version.split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= MIN_NODE => Ok(version.to_owned()),
        _ => Err(format!(
            "{} is Node.js {version}; {}.{} or newer is needed",
            node.display(),
            MIN_NODE.0,
            MIN_NODE.1
        )),
    }
}

/// Runs the probe: one fork of the very process that templates are, and in it what functions do.
fn ask(node: &Path, bootstrap: &Path) -> Result<Answer, String> {
    let mut child = Command::new(node)
        .args(FLAGS)
        .arg(bootstrap)
        .arg("--probe")
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} cannot be run: {error}", node.display()))?;
    let ended = wait(&mut child);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    if let Ok(Some(_)) = ended {
        read(child.stdout.take(), &mut stdout);
        read(child.stderr.take(), &mut stderr);
    }
    if let Ok(answer) = serde_json::from_slice(&stdout) {
        return Ok(answer);
    }
    let said = String::from_utf8_lossy(&stderr);
    let why = match ended {
        Ok(Some(status)) => {
            // A version that is too old fails on the flags already.
            if let Some(version) = says_version(node) {
                supported(node, &version)?;
            }
            let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
            lines()
                .find(|line| line.contains("Error"))
                .or_else(|| lines().next())
                .map_or_else(
                    || format!("no answer, {status}"),
                    |line| line.chars().take(LINE_CHARS).collect(),
                )
        }
        Ok(None) => format!("no answer within {} s", PROBE_DEADLINE.as_secs()),
        Err(error) => error.to_string(),
    };
    Err(format!("{} failed the probe: {why}", node.display()))
}

/// The output of `node --version`, without its `v`.
fn says_version(node: &Path) -> Option<String> {
    let output = Command::new(node)
        .arg("--version")
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.trim().strip_prefix('v')?.to_owned())
}

/// Waits for the probe's end; kills it after the timeout and returns nothing.
fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + PROBE_DEADLINE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(PROBE_POLL);
    }
}

fn read(pipe: Option<impl io::Read>, into: &mut Vec<u8>) {
    if let Some(pipe) = pipe {
        // An unreadable value is also invalid.
        let _ = pipe.take(ANSWER_BYTES).read_to_end(into);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use clap::Parser as _;

    use super::*;

    /// A directory with a bootstrap, and an interpreter in it that runs `script`.
    fn probed(script: &str, arguments: &[&str]) -> RuntimeFiles {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("node/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(dir.path().join("node/bootstrap.js"), "").unwrap();
        let node = bin.join("node");
        std::fs::write(&node, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&node, std::fs::Permissions::from_mode(0o755)).unwrap();
        let arguments = std::iter::once(&"hearth").chain(arguments);
        probe(dir.path(), &Config::parse_from(arguments))
    }

    #[test]
    fn a_node_that_forks_does() {
        let files = probed(r#"echo '{"version":"20.11.1","fork":true}'"#, &[]);
        assert_eq!(files.version.as_deref(), Ok("20.11.1"));
        assert_eq!(files.fork, Ok(()));
        assert_eq!(
            files.argv("main.handler", 64),
            [
                "/opt/hearth/node/bin/node",
                "--max-old-space-size=64",
                "--single-threaded",
                "--v8-pool-size=1",
                "--no-memory-reducer",
                "--experimental-detect-module",
                "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
                "--require=/opt/hearth/node/worker/thread.js",
                "/opt/hearth/node/bootstrap.js"
            ]
        );
    }

    #[test]
    fn a_node_that_does_not_fork_boots() {
        let no =
            r#"echo '{"version":"24.1.0","fork":false,"reason":"it was killed by signal 11"}'"#;
        let files = probed(no, &[]);
        assert_eq!(files.version.as_deref(), Ok("24.1.0"));
        assert_eq!(files.fork, Err("it was killed by signal 11".into()));
        assert_eq!(
            files.argv("main.handler", 64).last().map(String::as_str),
            Some("--prefork")
        );
        let yes = r#"echo '{"version":"24.1.0","fork":true}'"#;
        let off = probed(yes, &["--node-fork", "off"]);
        assert_eq!(off.fork, Err("HEARTH_NODE_FORK=off".into()));
    }

    #[test]
    fn a_node_that_cannot_be_used_says_why() {
        let old = probed(r#"echo '{"version":"18.20.4","fork":true}'"#, &[]);
        assert!(old.version.unwrap_err().contains("18.20.4; 20.11 or newer"));
        let broken = probed("echo 'Error: no such module' >&2; exit 1", &[]);
        assert!(broken.version.unwrap_err().contains("no such module"));
        let silent = probed("exit 0", &[]);
        assert!(silent.version.unwrap_err().contains("exit status: 0"));
        let words = probed("echo 'cannot load this' >&2; exit 3", &[]);
        assert!(words.version.unwrap_err().ends_with("cannot load this"));
        // One that knows none of the flags.
        let ancient = probed(
            r#"if [ "$1" = --version ]; then echo v16.20.2; else echo "bad option: $3" >&2; exit 9; fi"#,
            &[],
        );
        assert!(
            ancient
                .version
                .unwrap_err()
                .contains("16.20.2; 20.11 or newer")
        );
    }
}
