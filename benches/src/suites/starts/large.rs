//! Starts of functions whose import leaves a lot of memory: a written heap, and popular packages.

use std::io::{Cursor, Write};
use std::path::Path;

use anyhow::{Context, ensure};
use zip::write::SimpleFileOptions;

use super::asleep::fall_asleep;
use super::first::{request_one, requests};
use crate::baselines::packages;
use crate::client::Connection;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

/// The category of these requests.
pub const CATEGORY: &str = "first HTTP request without an instance, by what the import leaves";

/// What is imported.
struct Case {
    title: &'static str,
    runtime: Runtime,
    code: &'static str,
    /// Names of what of the packages goes into the zip; all that the others need comes along.
    packages: &'static [&'static str],
}

const CASES: [Case; 6] = [
    Case {
        title: "python3: 64 MiB",
        runtime: Runtime::Python,
        code: "data = bytearray(b'x') * (64 << 20)\ndef handler(event, context):\n    return event\n",
        packages: &[],
    },
    Case {
        title: "python3: 512 MiB",
        runtime: Runtime::Python,
        code: "data = bytearray(b'x') * (512 << 20)\ndef handler(event, context):\n    return event\n",
        packages: &[],
    },
    Case {
        title: "node: 64 MiB",
        runtime: Runtime::Node,
        code: "const data = Buffer.alloc(64 << 20, 1);\nexport const handler = async (event) => event;\n",
        packages: &[],
    },
    Case {
        title: "node: 512 MiB",
        runtime: Runtime::Node,
        code: "const data = Buffer.alloc(512 << 20, 1);\nexport const handler = async (event) => event;\n",
        packages: &[],
    },
    Case {
        title: "python3: numpy",
        runtime: Runtime::Python,
        code: "import numpy\ndef handler(event, context):\n    return float(numpy.arange(1000.0).sum())\n",
        packages: &["numpy", "numpy.libs"],
    },
    Case {
        title: "python3: FastAPI, httpx, pydantic",
        runtime: Runtime::Python,
        code: "import fastapi, httpx, pydantic\n\
               class Event(pydantic.BaseModel):\n    filler: str\n\
               app = fastapi.FastAPI()\n\
               def handler(event, context):\n    return Event(**event).model_dump()\n",
        packages: &[
            "annotated_doc",
            "annotated_types",
            "anyio",
            "certifi",
            "fastapi",
            "h11",
            "httpcore",
            "httpx",
            "idna",
            "opentelemetry",
            "opentelemetry_api-1.45.2.dist-info",
            "pydantic",
            "pydantic_core",
            "starlette",
            "typing_extensions.py",
            "typing_inspection",
        ],
    },
];

/// Measures forks, then restores of the same functions.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let budget = document.system_info.memory_bytes / 2 / (1 << 20);
    let server = Server::start(&[("HEARTH_MEMORY_BUDGET_MB", &budget.to_string())])?;
    for (number, case) in CASES.iter().enumerate() {
        let name = format!("large-{number}");
        if let Err(reason) = measure(&server, &name, case, scale, document) {
            document.skip(case.title, format!("{reason:#}"));
        }
    }
    Ok(())
}

fn measure(
    server: &Server,
    name: &str,
    case: &Case,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    if let Err(reason) = server.runtime(case.runtime)? {
        anyhow::bail!(reason);
    }
    let zip = archive(case)?;
    let settings = [
        ("memory_mb", "1024"),
        ("idle_timeout_s", "1"),
        ("template_idle_timeout_s", "1"),
    ];
    server.deploy_zip(name, case.runtime, &zip, &settings)?;
    let forks = requests(server, name, scale.pick(56, 2))?;
    document.add(CATEGORY, &format!("{}, fork", case.title), forks);
    let call = invocation(name, &event(1024));
    let mut restores = Samples::default();
    for _ in 0..scale.pick(12, 1) {
        fall_asleep(server, name)?;
        let mut connection = Connection::open(server.address)?;
        match request_one(&mut connection, &call)? {
            Some(first) if first.start_kind == "restore" => restores.push(first.took),
            _ => {}
        }
    }
    if restores.len() > 0 {
        document.add(CATEGORY, &format!("{}, restore", case.title), restores);
    }
    server.delete(name)
}

/// A zip of the handler with its packages, as `pip install -t` leaves them.
fn archive(case: &Case) -> anyhow::Result<Vec<u8>> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file(case.runtime.file(), stored)?;
    zip.write_all(case.code.as_bytes())?;
    if !case.packages.is_empty() {
        let from = packages()?;
        for package in case.packages {
            let path = from.join(package);
            ensure!(path.exists(), "{} is missing", path.display());
            add(&mut zip, stored, &from, &path)?;
        }
    }
    Ok(zip.finish()?.into_inner())
}

fn add(
    zip: &mut zip::ZipWriter<Cursor<Vec<u8>>>,
    options: SimpleFileOptions,
    root: &Path,
    path: &Path,
) -> anyhow::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            let path = entry?.path();
            if !path.ends_with("__pycache__") {
                add(zip, options, root, &path)?;
            }
        }
        return Ok(());
    }
    let name = path.strip_prefix(root)?;
    zip.start_file(name.to_str().context("a name in UTF-8")?, options)?;
    zip.write_all(&std::fs::read(path)?)?;
    Ok(())
}
