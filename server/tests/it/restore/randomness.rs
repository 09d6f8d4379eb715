//! No state of a random generator comes out of an image: neither the C library's, nor an interpreter's, nor that of a
//! library which relies on the kernel to wipe its memory in forked children.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use hearth_testkit::figures::{self, Mapping};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{TIMEOUT, available, function, image_of, images, kill_template, prewarmed};
use crate::support::{Client, Server, descendants, eventually};

const PYTHON: &str = include_str!("randomness.py");
const NODE: &str = include_str!("randomness.js");

/// Instances at the same time, and restores one after another.
const INSTANCES: usize = 4;
const RESTORES: usize = 3;

/// What the functions fill memory with that children find empty, and other memory.
const WIPED: u8 = 0xa7;
const KEPT: u8 = 0x5c;
const PAGE: usize = 4096;

/// The flags that say what the kernel does with a mapping; the others count what is in it, or follow from these.
const SPECIAL: [&str; 14] = [
    "wf", "dp", "dc", "dd", "mg", "hg", "nh", "sr", "rr", "gd", "lo", "nr", "ht", "sl",
];

fn flags_of<'a>(flags: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    flags
        .filter(|flag| SPECIAL.contains(flag))
        .map(str::to_owned)
        .collect()
}

/// A process's mappings by first address, with the end and the flags.
fn mappings(pid: u32) -> BTreeMap<u64, (u64, BTreeSet<String>)> {
    let all = figures::mappings(pid).unwrap();
    let flags = |mapping: &Mapping| flags_of(mapping.flags.iter().map(String::as_str));
    all.iter()
        .map(|mapping| (mapping.range.start, (mapping.range.end, flags(mapping))))
        .collect()
}

/// The flags of everything that is mapped in a range, if all of it is mapped.
fn flags_in(
    mappings: &BTreeMap<u64, (u64, BTreeSet<String>)>,
    range: Range<u64>,
) -> Option<BTreeSet<&BTreeSet<String>>> {
    let mut next = range.start;
    let mut found = BTreeSet::new();
    while next < range.end {
        let (_, (end, flags)) = mappings.range(..=next).next_back()?;
        found.insert(flags);
        next = Some(*end).filter(|end| *end > next)?;
    }
    Some(found)
}

/// The host's number of the template that runs.
fn template(server: &Server, function: &str) -> u32 {
    let all = descendants(server.pid());
    let templates = all.iter().filter(|process| process.is_template(function));
    templates
        .map(|process| process.pid)
        .next()
        .expect("a template")
}

/// The first page of a mapping.
fn page_at(pid: u32, at: u64) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    memory.read_exact_at(&mut page, at).unwrap();
    page
}

/// How many whole pages of this byte the files of the image hold.
fn pages_of(server: &Server, byte: u8) -> usize {
    let files = std::fs::read_dir(images(server)[0].join("criu")).unwrap();
    let count = |bytes: Vec<u8>| {
        let pages = bytes.chunks_exact(PAGE);
        pages
            .filter(|page| page.iter().all(|found| *found == byte))
            .count()
    };
    files
        .map(|file| count(std::fs::read(file.unwrap().path()).unwrap()))
        .sum()
}

/// Whether this kernel has memory that it may drop.
fn has_droppable_memory() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|number| number.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap(), numbers.next().unwrap());
    version >= (6, 11)
}

#[tokio::test]
async fn every_mapping_keeps_its_flags_and_what_forks_find_empty_is_empty() {
    let server = Server::start();
    let client = server.client();
    if !available(&client).await {
        return;
    }
    let settings = json!({"memory_mb": 256});
    client.deploy("dice", PYTHON, settings).await;
    image_of(&client, "dice").await;
    assert_eq!(pages_of(&server, WIPED), 0, "what is wiped is in the image");
    assert!(pages_of(&server, KEPT) >= 3, "what is not wiped is not");

    kill_template(&server, &client, "dice").await;
    let answer = client.invoke("dice", &json!("mappings")).await.expect(200);
    assert_eq!(answer.header("x-hearth-start"), "restore");
    let answer = answer.json();
    let made: HashMap<String, Option<u64>> = serde_json::from_value(answer[0].clone()).unwrap();
    let before: Vec<(u64, u64, String, Vec<String>)> =
        serde_json::from_value(answer[1].clone()).unwrap();
    let template = template(&server, "dice");
    let after = mappings(template);

    let mut seen = BTreeSet::new();
    for (start, end, name, flags) in &before {
        let flags = flags_of(flags.iter().map(String::as_str));
        // Ordinary memory may have come, gone, and been moved into other pages since the function looked.
        if flags.is_empty() || name.starts_with("[v") {
            continue;
        }
        let found = flags_in(&after, *start..*end);
        let expected = BTreeSet::from([&flags]);
        assert_eq!(found, Some(expected), "{start:x}-{end:x} {name}: {flags:?}");
        seen.extend(flags);
    }
    assert!(
        seen.is_superset(&flags_of(["wf", "dc", "dd"].into_iter())),
        "{seen:?}"
    );
    assert_eq!(seen.contains("dp"), has_droppable_memory(), "{seen:?}");

    for (name, at) in made {
        let Some(at) = at else { continue };
        let wiped = name.starts_with("wiped") || name.starts_with("droppable");
        let byte = if wiped { 0 } else { KEPT };
        assert!(page_at(template, at) == [byte; PAGE], "{name}");
    }
    let image = client
        .get("/api/v1/functions/dice")
        .await
        .expect(200)
        .json()["image"]
        .clone();
    assert_eq!(image["restore_failures"], 0, "{image}");
}

/// What several instances at the same time drew, the first of which is a restore unless there is a template.
async fn draw(client: &Client, start_kind: Option<&str>) -> Vec<Value> {
    let mut calls = JoinSet::new();
    for _ in 0..INSTANCES {
        let client = client.clone();
        calls.spawn(async move { client.invoke("dice", &json!(INSTANCES)).await.expect(200) });
    }
    let answers = calls.join_all().await;
    if let Some(start_kind) = start_kind {
        let on = |answer: &&crate::support::Answer| answer.header("x-hearth-start") == start_kind;
        assert!(answers.iter().any(|answer| on(&answer)), "no {start_kind}");
    }
    let drawn = answers.iter().flat_map(|answer| match answer.json() {
        Value::Array(drawn) => drawn,
        other => panic!("{other}"),
    });
    drawn.collect()
}

/// Looks whether any source gave a value twice.
fn all_differ(drawn: &[Value]) {
    let mut sources: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for values in drawn {
        for (source, value) in values.as_object().expect("values by source") {
            sources.entry(source).or_default().push(value.to_string());
        }
    }
    assert!(!sources.is_empty());
    let mut repeated = Vec::new();
    for (source, values) in &sources {
        assert_eq!(values.len(), drawn.len(), "{source}");
        let different: BTreeSet<&String> = values.iter().collect();
        if different.len() < values.len() {
            repeated.push(format!("{source}: {} of {}", different.len(), values.len()));
        }
    }
    assert_eq!(repeated, Vec::<String>::new(), "fewer values than draws");
}

/// Restores in a row, with and without a pre-warmed sandbox, each with several instances at the same time.
async fn across_restores(code: &str, runtime: &str) {
    let server = Server::start();
    let client = server.client();
    if !available(&client).await {
        return;
    }
    let settings = json!({"runtime": runtime, "memory_mb": 256, "max_concurrency": INSTANCES});
    client.deploy("dice", code, settings).await;
    image_of(&client, "dice").await;
    let mut drawn = draw(&client, None).await;
    for round in 0..RESTORES {
        // A start under way would restore the template at once.
        eventually("no start under way", TIMEOUT, || async {
            (function(&client, "dice").await["instances"]["starting"] == 0).then_some(())
        })
        .await;
        kill_template(&server, &client, "dice").await;
        if round > 0 {
            prewarmed(&client).await;
        }
        drawn.extend(draw(&client, Some("restore")).await);
        // Of the same restored template, from its pre-forked instance by now.
        drawn.extend(draw(&client, None).await);
    }
    all_differ(&drawn);
}

#[tokio::test]
async fn no_value_is_drawn_twice_across_restores_instances_and_their_forks() {
    across_restores(PYTHON, "python3").await;
}

#[tokio::test]
async fn no_value_is_drawn_twice_by_node_across_restores_and_instances() {
    across_restores(NODE, "node").await;
}

/// Every other page of a mapping is wiped in forks.
const PATCHWORK: &str = "
import ctypes, mmap
memory = mmap.mmap(-1, 2400 * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for page in range(0, 2400, 2):
    memory.madvise(18, page * mmap.PAGESIZE, mmap.PAGESIZE)
def handler(event, context):
    return event
";

#[tokio::test]
async fn a_function_with_more_wiped_mappings_than_can_be_restored_is_booted() {
    let server = Server::start();
    let client = server.client();
    if !available(&client).await {
        return;
    }
    client.deploy("patchwork", PATCHWORK, json!({})).await;
    let note = eventually("a note", TIMEOUT, || async {
        let image = function(&client, "patchwork").await["image"].clone();
        image["note"].as_str().map(str::to_owned)
    })
    .await;
    assert!(note.contains("mappings that are wiped in forks"), "{note}");
    assert_eq!(images(&server), Vec::<std::path::PathBuf>::new());
    kill_template(&server, &client, "patchwork").await;
    let answer = client.invoke("patchwork", &json!(7)).await.expect(200);
    assert_eq!(answer.header("x-hearth-start"), "boot");
    assert_eq!(answer.json(), 7);
}
