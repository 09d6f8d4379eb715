//! Starts of functions whose zip contains further code, as an application's packages do, that is not imported.

use std::io::{Cursor, Write};
use std::time::Instant;

use anyhow::Context;
use zip::write::SimpleFileOptions;

use super::first::requests;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server};

/// Size of one module of the further code.
const MODULE: usize = 100 * 1024;

/// The category of these requests.
pub const CATEGORY: &str = "first HTTP request without an instance, by further code in the zip";
/// The figures of the deploys.
const DEPLOYS: &str = "deploy, by further code in the zip";

/// Measures first requests by the size of the zip, in turns.
pub fn run(server: &Server, scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let sizes = scale.pick([0, 10, 100], [0, 1, 2]);
    for runtime in Runtime::ALL {
        if server.runtime(runtime)?.is_err() {
            continue;
        }
        let mut functions = Vec::new();
        for size in sizes {
            let name = format!("size-{}-{size}", runtime.name());
            let zip = archive(runtime, size)?;
            let begun = Instant::now();
            server
                .deploy_zip(&name, runtime, &zip, &[])
                .with_context(|| format!("a zip with {size} MB"))?;
            document.figure(
                DEPLOYS,
                &title(runtime, size),
                begun.elapsed().as_secs_f64() * 1e3,
                "ms",
            );
            functions.push((name, title(runtime, size), Samples::default()));
        }
        for _ in 0..scale.pick(10, 1) {
            for (name, _, samples) in &mut functions {
                samples.extend(&requests(server, name, scale.pick(10, 2))?);
            }
        }
        for (_, title, samples) in functions {
            document.add(CATEGORY, &title, samples);
        }
    }
    Ok(())
}

fn title(runtime: Runtime, megabytes: usize) -> String {
    format!("{}: {megabytes} MB", runtime.name())
}

/// A zip with the handler and so much else, as text that does not shrink to nothing.
fn archive(runtime: Runtime, megabytes: usize) -> anyhow::Result<Vec<u8>> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file(runtime.file(), stored)?;
    zip.write_all(runtime.echo().as_bytes())?;
    let comment = match runtime {
        Runtime::Python => "#",
        Runtime::Node => "//",
    };
    for index in 0..megabytes * 1_000_000 / MODULE {
        let suffix = runtime.file().trim_start_matches("main");
        zip.start_file(format!("package/module_{index}{suffix}"), stored)?;
        let mut module = String::with_capacity(MODULE);
        let mut state = index as u64 + 1;
        while module.len() < MODULE {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            module.push_str(&format!("{comment} {state:016x}\n"));
        }
        zip.write_all(module.as_bytes())?;
    }
    Ok(zip.finish()?.into_inner())
}
