//! Requests to sleeping functions: restored from their image where CRIU works, else booted. Many functions fall asleep
//! at the same time, because the shortest timeout is a second.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde_json::json;

use super::first::request_one;
use crate::client::Connection;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

/// The category of these requests.
pub const CATEGORY: &str = "first HTTP request to a function asleep, 1 KB";
/// What switches images off, so that the start kind below can be measured.
const NO_IMAGES: [(&str, &str); 1] = [("HEARTH_CRIU", "off")];
/// What switches pre-warmed sandboxes off.
const NO_PREWARM: [(&str, &str); 1] = [("HEARTH_PREWARM", "off")];

/// What a request finds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ahead {
    /// An image, and a pre-warmed sandbox.
    Sandbox,
    /// An image and a pre-warmed sandbox; the image is read from the disk.
    OnDisk,
    /// An image.
    Image,
    Nothing,
}

/// Measures with images and without.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let with_images = Server::start(&[])?;
    match with_images.capability("criu")? {
        Ok(()) => {
            measure(&with_images, Ahead::Sandbox, scale, document)?;
            measure(&with_images, Ahead::OnDisk, scale, document)?;
            drop(with_images);
            measure(&Server::start(&NO_PREWARM)?, Ahead::Image, scale, document)?;
        }
        Err(reason) => document.skip("starts by restore", reason),
    }
    measure(&Server::start(&NO_IMAGES)?, Ahead::Nothing, scale, document)
}

fn measure(
    server: &Server,
    ahead: Ahead,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let settings = json!({ "idle_timeout_s": 1, "template_idle_timeout_s": 1 });
    for runtime in Runtime::ALL {
        if server.runtime(runtime)?.is_err() {
            continue;
        }
        let names: Vec<String> = (0..scale.pick(20, 2))
            .map(|number| format!("asleep-{}-{number}", runtime.name()))
            .collect();
        for name in &names {
            server.deploy(name, runtime, runtime.usual(), &settings)?;
        }
        let mut found: BTreeMap<String, Samples> = BTreeMap::new();
        for _ in 0..scale.pick(6, 1) {
            for name in &names {
                server.wait(name, |function| function["state"] == "asleep")?;
            }
            for name in &names {
                let call = invocation(name, &event(1024));
                if matches!(ahead, Ahead::Sandbox | Ahead::OnDisk) {
                    server.wait_for_prewarmed(name)?;
                }
                if ahead == Ahead::OnDisk {
                    forget_images(&server.data().join("images"))?;
                }
                let mut connection = Connection::open(server.address)?;
                // One that was called again before it slept, or made ready ahead, took another start kind.
                if let Some(first) = request_one(&mut connection, &call)? {
                    found.entry(first.start_kind).or_default().push(first.took);
                }
            }
        }
        for (start_kind, samples) in found {
            let name = match (start_kind.as_str(), ahead) {
                ("restore", Ahead::Sandbox) => "restore, pre-warmed sandbox",
                ("restore", Ahead::OnDisk) => "restore, pre-warmed sandbox, cold page cache",
                ("restore", Ahead::Image) => "restore, no pre-warmed sandbox",
                ("boot", Ahead::Nothing) => "boot",
                // Before it had an image, or made ready ahead.
                _ => continue,
            };
            document.add(CATEGORY, &title(runtime, name), samples);
        }
        for name in &names {
            server.delete(name)?;
        }
    }
    Ok(())
}

/// Waits until a function sleeps, with an image and a pre-warmed sandbox where there are such things.
pub fn fall_asleep(server: &Server, name: &str) -> anyhow::Result<()> {
    server.wait(name, |function| function["state"] == "asleep")?;
    server.wait_for_prewarmed(name)
}

/// Has the kernel drop what it caches of the files below a directory. What the server removes meanwhile, as it does when it
/// replaces an image, needs no dropping.
fn forget_images(path: &Path) -> io::Result<()> {
    match forget(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn forget(path: &Path) -> io::Result<()> {
    let kind = std::fs::symlink_metadata(path)?.file_type();
    if kind.is_dir() {
        for entry in std::fs::read_dir(path)? {
            forget_images(&entry?.path())?;
        }
    } else if kind.is_file() {
        let file = std::fs::File::open(path)?;
        // What has not been written yet cannot be dropped.
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}

/// What the report calls a start kind of a runtime.
pub fn title(runtime: Runtime, start_kind: &str) -> String {
    format!("{}: {start_kind}", runtime.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_is_removed_meanwhile_is_passed_over() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("image")).expect("made");
        std::fs::write(dir.path().join("image/pages"), "pages").expect("written");
        forget_images(dir.path()).expect("nothing is wrong");
        forget_images(&dir.path().join("gone")).expect("gone is gone");
    }
}
