//! Boots of a function that imports pandas, as pip leaves it: at deploy its byte code is made.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;

use super::first::request_one;
use crate::baselines::function_package;
use crate::client::Connection;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{NO_PREFORK, Runtime, Server, invocation};

/// What of Hearth would spare it the boot.
const BOOTS: [(&str, &str); 2] = [NO_PREFORK, ("HEARTH_CRIU", "off")];
const NAME: &str = "pandas";

/// The category of these requests.
pub const CATEGORY: &str = "first HTTP request to a function that imports pandas";
/// What the report calls them.
pub const BOOT: &str = "boot, byte code made at deploy";

/// Measures them, and the deploy.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let zip: PathBuf = match function_package(NAME) {
        Ok(zip) => zip,
        Err(reason) => {
            document.skip(CATEGORY, format!("{reason:#}"));
            return Ok(());
        }
    };
    let server = Server::start(&BOOTS)?;
    let settings = [
        ("memory_mb", "512"),
        ("idle_timeout_s", "1"),
        ("template_idle_timeout_s", "1"),
    ];
    let begun = Instant::now();
    server.deploy_zip(NAME, Runtime::Python, &std::fs::read(zip)?, &settings)?;
    let deploy = begun.elapsed();
    let orders = json!({ "orders": [{ "at": "2026-03-01T08:00:00", "item": "tea", "count": 2 }] });
    let call = invocation(NAME, orders.to_string().as_bytes());
    let mut samples = Samples::default();
    for _ in 0..scale.pick(12, 1) {
        server.wait(NAME, |function| function["state"] == "asleep")?;
        let mut connection = Connection::open(server.address)?;
        match request_one(&mut connection, &call)? {
            Some(first) if first.start_kind == "boot" => samples.push(first.took),
            other => anyhow::bail!("it started by {:?}", other.map(|first| first.start_kind)),
        }
    }
    document.figure(
        CATEGORY,
        "deploy: upload, unpacking, byte code, boot",
        deploy.as_secs_f64() * 1e3,
        "ms",
    );
    document.add(CATEGORY, BOOT, samples);
    Ok(())
}
