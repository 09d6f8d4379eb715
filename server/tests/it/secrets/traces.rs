//! That no trace of a brokered secret is anywhere near the function: memory, environment, files, cores, logs, history, images.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::{BASIC, EARLY, PASSWORD, PATH, PYTHON, Setting, VALUE, call, settings};
use crate::support::{Client, eventually};

/// Largest file that is looked into.
const FILE_MAX: u64 = 256 << 20;

fn holds(bytes: &[u8], value: &str) -> bool {
    let value = value.as_bytes();
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == value[0]) {
        rest = &rest[at..];
        if rest.starts_with(value) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

/// The processes of all sandboxes of this test's server: by their users, and by whose descendants they are.
fn sandboxed(host: u32) -> Vec<u32> {
    crate::support::descendants(host)
        .into_iter()
        .map(|process| process.pid)
        .filter(|pid| {
            let owner = fs::metadata(format!("/proc/{pid}")).map(|meta| meta.uid());
            // PID 1 is not dumpable and shows as the inner root's: that is one of the pair, too.
            owner.is_ok_and(|uid| hearth_host::UIDS.contains(&uid))
        })
        .collect()
}

/// Where in a process the value is.
fn in_process(pid: u32, value: &str, found: &mut Vec<String>) -> usize {
    let mut looked = 0;
    for name in ["environ", "cmdline"] {
        if fs::read(format!("/proc/{pid}/{name}")).is_ok_and(|bytes| holds(&bytes, value)) {
            found.push(format!("{pid}'s {name}"));
        }
    }
    let (Ok(maps), Ok(memory)) = (
        fs::read_to_string(format!("/proc/{pid}/maps")),
        File::open(format!("/proc/{pid}/mem")),
    ) else {
        return 0;
    };
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let range = words.next().unwrap_or_default();
        let readable = words.next().is_some_and(|access| access.starts_with('r'));
        let bounds = range.split_once('-');
        let parse = |text: &str| u64::from_str_radix(text, 16).unwrap_or_default();
        let Some((from, to)) = bounds.map(|(from, to)| (parse(from), parse(to))) else {
            continue;
        };
        if !readable || line.contains("[vvar") || to - from > FILE_MAX {
            continue;
        }
        let mut bytes = vec![0; (to - from) as usize];
        if memory.read_exact_at(&mut bytes, from).is_ok() {
            looked += bytes.len();
            if holds(&bytes, value) {
                found.push(format!("{pid}'s memory: {line}"));
            }
        }
    }
    looked
}

/// Where below a directory the value is.
fn in_files(dir: &Path, value: &str, found: &mut Vec<String>) -> usize {
    let mut looked = 0;
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(meta) = fs::symlink_metadata(&path) else {
            continue;
        };
        if meta.is_dir() {
            looked += in_files(&path, value, found);
        } else if meta.is_file()
            && meta.len() <= FILE_MAX
            && let Ok(bytes) = fs::read(&path)
        {
            looked += 1;
            if holds(&bytes, value) {
                found.push(path.display().to_string());
            }
        }
    }
    looked
}

/// Aborts in an instance. No core is written, and if one was, it would be the memory that [`in_process`] reads.
async fn abort(client: &Client) {
    let aborted = call(client, json!({"abort": "/tmp"})).await;
    assert_eq!(aborted, json!([Signal::ABORT.as_raw(), false]));
}

/// Everything that there is of the functions of a server.
fn traces(setting: &Setting, value: &str) -> Vec<String> {
    let mut found = Vec::new();
    let processes = sandboxed(setting.server().pid());
    assert!(processes.len() >= 3, "{processes:?}");
    let mut bytes = 0;
    for pid in &processes {
        bytes += in_process(*pid, value, &mut found);
        for place in ["tmp", "etc", "dev/shm", "var", "run", "opt"] {
            let root = format!("/proc/{pid}/root/{place}");
            in_files(Path::new(&root), value, &mut found);
        }
    }
    assert!(bytes > 10 << 20, "{bytes} bytes of memory were looked at");
    let files = in_files(setting.server().data_dir(), value, &mut found);
    assert!(files > 5, "{files} files were looked at");
    found
}

/// Waits for the image of this function's template.
async fn image(setting: &Setting, function: &str) {
    let path = format!("/api/v1/functions/{function}");
    eventually("an image", Duration::from_secs(60), || async {
        let view = setting.client().get(&path).await;
        view.expect(200).json()["image"]["bytes"].as_u64()
    })
    .await;
}

#[tokio::test]
async fn no_trace_of_a_brokered_secret_is_left() {
    let setting = Setting::new().await;
    let client = setting.client();
    let mut given = settings("python3");
    given["min_instances"] = 1.into();
    client.deploy("f", PYTHON, given.clone()).await;
    let mut restored = given.clone();
    restored["start"] = "restore".into();
    client.deploy("early", EARLY, restored).await;
    image(&setting, "early").await;
    for url in [
        "https://api.example.com/a",
        "https://api.example.com/to/other.example.com",
        "https://basic.example.com:8443/b",
    ] {
        call(&client, json!({"url": url})).await;
    }
    client
        .post("/api/v1/functions/early/invoke", &json!({}))
        .await
        .expect(200);
    abort(&client).await;
    let sent = setting.upstream.take().concat();
    let logs = client.get(&format!("{PATH}/logs")).await.expect(200).text();
    let said = setting
        .server()
        .has_logged("", Duration::from_secs(1))
        .await;
    for (value, as_sent) in [(VALUE, VALUE), (PASSWORD, BASIC)] {
        assert!(sent.contains(as_sent), "{sent}");
        for value in [value, as_sent] {
            assert_eq!(traces(&setting, value), Vec::<String>::new(), "{value}");
            assert!(!logs.contains(value) && !said.contains(value));
        }
    }
}

/// Everything that [`no_trace_of_a_brokered_secret_is_left`] looks into: there is a secret in it that the function has.
#[tokio::test]
async fn a_trace_would_be_found() {
    let setting = Setting::new().await;
    let client = setting.client();
    let mut given = settings("python3");
    given["min_instances"] = 1.into();
    given["secrets"] = json!([{"secret": "stripe", "env": "KEY"}]);
    client.deploy("f", PYTHON, given.clone()).await;
    given["start"] = "restore".into();
    client.deploy("early", EARLY, given).await;
    image(&setting, "early").await;
    abort(&client).await;
    let found = traces(&setting, VALUE);
    for place in ["memory", "environ", "/images/"] {
        assert!(
            found.iter().any(|at| at.contains(place)),
            "{place}: {found:?}"
        );
    }
    // Neither holds it unsealed.
    for file in ["hearth.db", "secrets.key"] {
        assert!(!found.iter().any(|at| at.contains(file)), "{found:?}");
    }
}
