//! The `restore` start kind, with a real CRIU: templates become images and come out of them again, as confined as before.

mod confinement;
mod limit;
mod prewarmed;
mod randomness;
mod restart;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hearth_testkit::wait::poll;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Client, Server, descendants, eventually, signal, skip};

/// Longest wait for the server to make an image in its own time.
const TIMEOUT: Duration = Duration::from_secs(60);

const HELLO: &str =
    "import json, random\ndef handler(event, context):\n    return [event, random.random()]\n";

/// Uses the thread pool, timers and the event loop.
const HELLO_NODE: &str = r#"
import fs from "node:fs/promises";
import { scrypt } from "node:crypto";
import { promisify } from "node:util";
import { setTimeout } from "node:timers/promises";
import * as hooks from "snapshot_restore_node";
let before = 0, after = 0;
hooks.register_before_snapshot(() => { before++; });
hooks.register_after_restore(async () => { await setTimeout(1); after++; });
export const handler = async (event) => {
  await fs.readFile(new URL(import.meta.url));
  await setTimeout(2);
  const key = await promisify(scrypt)("secret", "salt", 16);
  const later = key.length === 16 ? "a file, hashed on another thread" : "nothing";
  return [event, Math.random(), [before, after], later];
};
"#;

/// Whether this host has a working CRIU; without one, the test counts as skipped.
pub(crate) async fn available(client: &Client) -> bool {
    let node = client.get("/api/v1/node").await.expect(200).json();
    let criu = &node["capabilities"]["criu"];
    if criu["available"] == json!(true) {
        assert!(criu["version"].is_string(), "{criu}");
        return true;
    }
    skip(&format!("no CRIU on this host: {}", criu["reason"]));
    false
}

/// A server with or without pre-warmed sandboxes.
pub(crate) fn server(ahead: bool) -> Server {
    let switch = if ahead { "on" } else { "off" };
    Server::start_with(&[("HEARTH_PREWARM", switch)])
}

/// Waits until a sandbox is pre-warmed.
pub(crate) async fn prewarmed(client: &Client) {
    eventually("a pre-warmed sandbox", TIMEOUT, || async {
        let node = client.get("/api/v1/node").await.expect(200).json();
        (node["prewarmed_sandboxes"] == json!(1)).then_some(())
    })
    .await;
}

/// How many restores took one.
async fn prewarmed_sandboxes_used(client: &Client) -> u64 {
    let node = client.get("/api/v1/node").await.expect(200).json();
    node["prewarmed_sandboxes_used"].as_u64().expect("a number")
}

async fn function(client: &Client, name: &str) -> Value {
    client
        .get(&format!("/api/v1/functions/{name}"))
        .await
        .expect(200)
        .json()
}

/// Waits until the function has an image.
pub(crate) async fn image_of(client: &Client, name: &str) -> u64 {
    eventually("an image", TIMEOUT, || async {
        let image = function(client, name).await["image"].clone();
        assert_eq!(image["dump_failures"], 0, "{image}");
        image["bytes"].as_u64()
    })
    .await
}

/// Kills the function's template, and waits until the server has noticed.
pub(crate) async fn kill_template(server: &Server, client: &Client, name: &str) {
    // One that is still coming up would only fail to, and the next start be a boot.
    eventually("a template that is up", TIMEOUT, || async {
        (function(client, name).await["template"] == json!(true)).then_some(())
    })
    .await;
    // The one of which the image was made may still be on its way out.
    let templates = descendants(server.pid())
        .into_iter()
        .filter(|process| process.is_template(name));
    let mut killed = 0;
    for template in templates {
        // It may have ended by itself.
        let _ = signal(template.pid, Signal::KILL);
        killed += 1;
    }
    assert!(killed > 0, "a template");
    eventually("the template's end", TIMEOUT, || async {
        (function(client, name).await["template"] == json!(false)).then_some(())
    })
    .await;
}

pub(crate) fn images(server: &Server) -> Vec<PathBuf> {
    std::fs::read_dir(server.data_dir().join("images"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect()
}

#[tokio::test]
async fn a_start_without_a_template_is_a_restore() {
    let server = Server::start();
    let client = server.client();
    if !available(&client).await {
        return;
    }
    client.deploy("hello", HELLO, json!({})).await;
    let bytes = image_of(&client, "hello").await;
    assert!(bytes > 1 << 20, "{bytes}");
    let mut values = Vec::new();
    for round in 0..3 {
        kill_template(&server, &client, "hello").await;
        let answer = client.invoke("hello", &json!(round)).await.expect(200);
        assert_eq!(answer.header("x-hearth-start"), "restore");
        assert_eq!(answer.json()[0], round);
        values.push(answer.json()[1].to_string());
    }
    values.dedup();
    assert_eq!(values.len(), 3, "random numbers repeat: {values:?}");
    let image = function(&client, "hello").await["image"].clone();
    assert_eq!(image["restores"], 3, "{image}");
    assert_eq!(image["note"], Value::Null, "{image}");
    let metrics = client.get("/metrics").await.expect(200).text();
    assert!(
        metrics.contains("hearth_restores_total{function=\"hello\"} 3"),
        "{metrics}"
    );

    // Private, and gone with the function.
    let dir = images(&server).pop().expect("one image");
    let rights = |path: &Path| {
        let meta = std::fs::metadata(path).unwrap();
        (meta.uid(), meta.permissions().mode() & 0o777)
    };
    assert_eq!(rights(&dir), (0, 0o750));
    // Sandboxes that are given them read them; none owns them.
    for entry in std::fs::read_dir(dir.join("criu")).unwrap().flatten() {
        let path = entry.path();
        assert_eq!(rights(&path), (0, 0o644), "{}", path.display());
    }
    client.delete("/api/v1/functions/hello").await.expect(204);
    assert_eq!(images(&server), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_start_of_a_node_function_is_a_restore() {
    let server = Server::start();
    let client = server.client();
    if !available(&client).await {
        return;
    }
    client
        .deploy("hello", HELLO_NODE, json!({"runtime": "node"}))
        .await;
    image_of(&client, "hello").await;
    let mut values = Vec::new();
    for round in 0..3 {
        kill_template(&server, &client, "hello").await;
        if round > 0 {
            prewarmed(&client).await;
        }
        let answer = client.invoke("hello", &json!(round)).await.expect(200);
        assert_eq!(answer.header("x-hearth-start"), "restore");
        let answer = answer.json();
        assert_eq!(answer[0], round);
        assert_eq!(answer[2], json!([1, 1]), "the hooks ran once each");
        assert_eq!(answer[3], "a file, hashed on another thread");
        values.push(answer[1].to_string());
    }
    values.dedup();
    assert_eq!(values.len(), 3, "random numbers repeat: {values:?}");
    assert!(prewarmed_sandboxes_used(&client).await >= 2);
}

/// Memory of every kind that a restore treats in a way of its own: the heap, a mapping that is full, one with holes, one
/// that is read-only, one with advice, one of another protection. The check of them runs in an instance, the drop of a
/// page in the end.
const MEMORY: &str = r#"
import ctypes, hashlib, mmap, os, random

PAGE = mmap.PAGESIZE
source = random.Random(7)
objects = {str(number): [source.random(), str(source.random())] for number in range(40_000)}
large = bytearray(source.randbytes(3_000_000))

def mapping(pages, written):
    memory = mmap.mmap(-1, pages * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in written:
        memory[page * PAGE:(page + 1) * PAGE] = source.randbytes(PAGE)
    return memory

full = mapping(700, range(700))
holes = mapping(1500, range(3, 1500, 7))
sealed = mapping(90, range(90))
advised = mapping(90, range(90))
advised.madvise(mmap.MADV_NOHUGEPAGE)
kept = [full, holes, sealed, advised]
libc = ctypes.CDLL(None, use_errno=True)
place = ctypes.addressof(ctypes.c_char.from_buffer(sealed))
assert libc.mprotect(ctypes.c_void_p(place), 90 * PAGE, 1) == 0

def summed():
    digest = hashlib.sha256(repr(objects).encode())
    for memory in [large, *kept]:
        digest.update(memory)
    return digest.hexdigest()

def protections():
    first = f"{place:x}-"
    with open("/proc/self/maps") as maps:
        return [line.split()[1] for line in maps if line.startswith(first)]

def descriptors():
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            pass  # that of the list itself
    return links

before = summed()

def handler(event, context):
    found = [summed() == before, protections()]
    full.madvise(mmap.MADV_DONTNEED, 5 * PAGE, 10 * PAGE)
    found.append(any(full[5 * PAGE:15 * PAGE]))
    found.append(any(full[15 * PAGE:16 * PAGE]))
    found.append(any("userfaultfd" in link for link in descriptors()))
    return found
"#;

#[tokio::test]
async fn memory_comes_back_as_it_was() {
    let server = Server::start();
    let client = server.client();
    if !available(&client).await {
        return;
    }
    let settings = json!({"memory_mb": 256});
    client.deploy("memory", MEMORY, settings).await;
    image_of(&client, "memory").await;
    // PID 1 has a part in it.
    let files = images(&server)[0].join("criu");
    let aside = std::fs::metadata(files.join("aside-1000.img")).unwrap();
    let rest = std::fs::metadata(files.join("pages-1.img")).unwrap();
    assert!(aside.len() > 10_000_000, "{} bytes", aside.len());
    assert!(rest.len() < aside.len() / 2, "{} bytes", rest.len());
    for _ in 0..2 {
        kill_template(&server, &client, "memory").await;
        let answer = client.invoke("memory", &json!(null)).await.expect(200);
        assert_eq!(answer.header("x-hearth-start"), "restore");
        // What was dropped is zero, and what follows it is not; what PID 1 filled it through is gone.
        assert_eq!(answer.json(), json!([true, ["r--p"], false, true, false]));
    }
}

#[tokio::test]
async fn an_image_goes_when_memory_is_short() {
    let server = Server::start_with(&[("HEARTH_MEMORY_BUDGET_MB", "1")]);
    let client = server.client();
    if !available(&client).await {
        return;
    }
    client.deploy("hello", HELLO, json!({})).await;
    client.invoke("hello", &json!(1)).await.expect(200);
    eventually("the image goes", TIMEOUT, || async {
        let function = function(&client, "hello").await;
        assert_eq!(function["image"]["dump_failures"], 0, "{function}");
        let evicted = function["decisions"]["image_evicted"].as_u64() > Some(0);
        (evicted && function["image"]["bytes"].is_null()).then_some(())
    })
    .await;
    eventually("its files go", TIMEOUT, || async {
        images(&server).is_empty().then_some(())
    })
    .await;
    let answer = client.invoke("hello", &json!(1)).await.expect(200);
    assert_ne!(answer.header("x-hearth-start"), "restore");
}

#[tokio::test]
async fn what_cannot_be_kept_as_an_image_is_said() {
    let server = Server::start();
    let client = server.client();
    if !available(&client).await {
        return;
    }
    let code = "open('/tmp/cache', 'w').write('x')\ndef handler(event, context):\n    return open('/tmp/cache').read()\n";
    client.deploy("cache", code, json!({})).await;
    let note = eventually("a note", TIMEOUT, || async {
        let image = function(&client, "cache").await["image"].clone();
        image["note"].as_str().map(str::to_owned)
    })
    .await;
    assert!(note.contains("/tmp"), "{note}");
    let answer = client.invoke("cache", &json!(1)).await.expect(200);
    assert_eq!(answer.json(), "x");
    assert_eq!(
        function(&client, "cache").await["image"]["bytes"],
        Value::Null
    );
}

#[tokio::test]
async fn criu_can_be_switched_off() {
    let server = Server::start_with(&[("HEARTH_CRIU", "off")]);
    let client = server.client();
    let node = client.get("/api/v1/node").await.expect(200).json();
    let criu = &node["capabilities"]["criu"];
    assert_eq!(criu["available"], false);
    assert!(criu["reason"].as_str().unwrap().contains("HEARTH_CRIU=off"));
    client.deploy("hello", HELLO, json!({})).await;
    client.invoke("hello", &json!(1)).await.expect(200);
}

/// Boots and restores have places of their own.
#[tokio::test]
async fn slow_imports_do_not_hold_up_restores() {
    let server = server(false);
    let client = server.client();
    if !available(&client).await {
        return;
    }
    let code = "def handler(event, context):\n    return event\n";
    client.deploy("asleep", code, json!({})).await;
    image_of(&client, "asleep").await;
    kill_template(&server, &client, "asleep").await;
    let slow = format!("import time\ntime.sleep(10)\n{code}");
    // More than there are places on a machine with two cores, and as many as make others wait on a larger one.
    let places = std::thread::available_parallelism().map_or(2, usize::from) * 2;
    let deploys: Vec<_> = (0..=places)
        .map(|number| {
            let (client, slow) = (client.clone(), slow.clone());
            let name = format!("slow-{number}");
            tokio::spawn(async move { client.try_deploy(&name, &slow, json!({})).await })
        })
        .collect();
    // All of them import, or wait for those that do.
    eventually("the imports", TIMEOUT, || async {
        let templates = descendants(server.pid());
        let importing = templates
            .iter()
            .filter(|process| {
                let function = process.function();
                function.is_some_and(|name| name.starts_with("slow-"))
            })
            .count();
        (importing >= places).then_some(())
    })
    .await;
    let answer = client.invoke("asleep", &json!(1)).await.expect(200);
    assert_eq!(answer.header("x-hearth-start"), "restore");
    assert!(
        deploys.iter().all(|deploy| !deploy.is_finished()),
        "it did not wait for an import"
    );
    for deploy in deploys {
        deploy.abort();
    }
}

#[tokio::test]
async fn a_template_of_too_many_mappings_is_not_dumped() {
    let server = server(false);
    let client = server.client();
    if !available(&client).await {
        return;
    }
    // Every second page may be written, so that no two are one mapping.
    let many = "
import mmap, ctypes
libc = ctypes.CDLL(None)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
area = mmap.mmap(-1, 20_000 * 4096)
start = ctypes.addressof(ctypes.c_char.from_buffer(area))
for page in range(0, 20_000, 2):
    libc.mprotect(start + page * 4096, 4096, 1)
def handler(event, context):
    return sum(1 for line in open('/proc/self/maps'))
";
    client.deploy("many", many, json!({})).await;
    let count = client.invoke("many", &json!({})).await.expect(200).json();
    assert!(count.as_u64() > Some(19_000), "{count}");
    eventually("the refusal", TIMEOUT, || async {
        let image = function(&client, "many").await["image"].clone();
        let note = image["note"].as_str().unwrap_or_default().to_owned();
        note.contains("memory mappings").then_some(())
    })
    .await;
    let code = "def handler(event, context):\n    return event\n";
    client.deploy("few", code, json!({})).await;
    image_of(&client, "few").await;
}

/// While somebody calls some function, what nobody waits for is not made.
#[tokio::test]
async fn images_are_made_when_nobody_calls() {
    const LULL: std::time::Duration = std::time::Duration::from_secs(1);
    let server = server(false);
    let client = server.client();
    if !available(&client).await {
        return;
    }
    let code = "def handler(event, context):\n    return event\n";
    for name in ["called", "other"] {
        client.deploy(name, code, json!({})).await;
    }
    let begun = std::time::Instant::now();
    let (mut last, mut longest) = (begun, std::time::Duration::ZERO);
    while begun.elapsed() < LULL * 3 {
        client.invoke("called", &json!({})).await.expect(200);
        for name in ["called", "other"] {
            let image = function(&client, name).await["image"].clone();
            // A machine with much else to do may have had no call for a second.
            longest = longest.max(last.elapsed());
            let is_none = image["bytes"].is_null() && image["dumps"] == 0;
            assert!(
                is_none || longest >= LULL,
                "{name} after {longest:?}: {image}"
            );
        }
        last = std::time::Instant::now();
        tokio::time::sleep(LULL / 10).await;
    }
    for name in ["called", "other"] {
        image_of(&client, name).await;
    }
}

/// The image of a deleted function holds its environment.
#[tokio::test]
async fn a_function_that_is_deleted_while_its_image_is_made_leaves_none() {
    let server = server(false);
    let client = server.client();
    if !available(&client).await {
        return;
    }
    let directory = server.data_dir().join("images");
    let entries = || -> Vec<String> {
        std::fs::read_dir(&directory)
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(".new-") || name.starts_with("gone-"))
            .collect()
    };
    // Some memory, so that the dump takes a while.
    let code =
        "kept = bytearray(b'x' * 40_000_000)\ndef handler(event, context):\n    return event\n";
    for number in 0..3 {
        let name = format!("gone-{number}");
        let settings = json!({"env": {"SECRET": "of the deleted function"}, "memory_mb": 256});
        client.deploy(&name, code, settings).await;
        // Polls often, to catch the dump in progress.
        let begun = || (!entries().is_empty()).then_some(());
        poll(TIMEOUT, Duration::from_millis(1), begun).expect("the dump begins");
        client
            .delete(&format!("/api/v1/functions/{name}"))
            .await
            .expect(204);
        eventually("nothing is left", TIMEOUT, || async {
            entries().is_empty().then_some(())
        })
        .await;
    }
}
