//! The server under test, as its users start it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use hearth_testkit::server::Launch;
use hearth_testkit::wait::poll;
use serde_json::{Value, json};

use crate::client::{Connection, TOKEN, request, request_of};
use crate::process::binding;
pub use crate::runtime::Runtime;

/// How long to wait for what the server does in its own time.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often to look meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// A running server, with an empty data directory unless it is given one.
pub struct Server {
    server: hearth_testkit::server::Server,
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether each template keeps a pre-forked instance.
    pub has_preforked: bool,
}

/// What switches pre-forked instances off, so that a start without one can be measured.
pub const NO_PREFORK: (&str, &str) = ("HEARTH_PREFORK", "off");

impl Server {
    /// Starts it with further settings, given as environment variables.
    pub fn start(settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::launch(Launch::of(executable()?), settings)
    }

    /// The same with another build of the server, which has its runtimes and `hearth-init` beside it.
    pub fn start_program(program: &Path, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::launch(Launch::of(program.to_owned()), settings)
    }

    /// Starts it with a data directory that outlives it.
    pub fn start_in(data: PathBuf, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::launch(Launch::of(executable()?).in_directory(data), settings)
    }

    fn launch(launch: Launch, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let server = launch
            .through(binding()?)
            .settings(&[("HEARTH_ADMIN_TOKEN", TOKEN)])
            .settings(settings)
            .start()?;
        Ok(Self {
            address: server.address(),
            has_preforked: !settings.contains(&NO_PREFORK),
            server,
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Its data directory.
    pub fn data(&self) -> &Path {
        self.server.data_dir()
    }

    /// Stops it as a service manager does, so that it writes all it has in memory.
    pub fn stop(mut self) {
        self.server.terminate();
        self.server.wait();
    }

    /// A call of the API with a JSON answer.
    pub fn call(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let call = request(method, &format!("/api/v1{path}"), body.as_bytes());
        Connection::open(self.address)?
            .exchange(&call)?
            .json()
            .with_context(|| format!("{method} {path}"))
    }

    /// Whether functions of this language can be deployed; the reason why not.
    pub fn runtime(&self, runtime: Runtime) -> anyhow::Result<Result<(), String>> {
        self.has_runtime(runtime.name())
    }

    /// The same of a runtime by its name.
    pub fn has_runtime(&self, name: &str) -> anyhow::Result<Result<(), String>> {
        let node = self.call("GET", "/node", &Value::Null)?;
        Ok(available(&node["capabilities"]["runtimes"][name]))
    }

    /// Whether it can do something else that it names; the reason why not.
    pub fn capability(&self, name: &str) -> anyhow::Result<Result<(), String>> {
        let node = self.call("GET", "/node", &Value::Null)?;
        Ok(available(&node["capabilities"][name]))
    }

    /// Waits until it has a pre-warmed sandbox for a restore, or needs none because no function sleeps any more.
    pub fn wait_for_prewarmed(&self, name: &str) -> anyhow::Result<()> {
        let is_asleep = || -> anyhow::Result<bool> {
            let function = self.function(name)?;
            Ok(function["state"] == "asleep" && function["image"]["bytes"].is_u64())
        };
        let is_there = || -> anyhow::Result<bool> {
            let node = self.call("GET", "/node", &Value::Null)?;
            Ok(!is_asleep()? || node["prewarmed_sandboxes"] != 0)
        };
        let made = poll(TIMEOUT, LOOK, || {
            is_there()
                .map(|is_there| is_there.then_some(()))
                .transpose()
        });
        made.context("no sandbox was pre-warmed")?
    }

    /// Deploys a function with further settings.
    pub fn deploy(
        &self,
        name: &str,
        runtime: Runtime,
        code: &str,
        settings: &Value,
    ) -> anyhow::Result<()> {
        let code = json!({ "inline": code });
        let mut body = json!({ "name": name, "runtime": runtime.name(), "code": code });
        for (key, value) in settings.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        self.call("POST", "/functions", &body)?;
        Ok(())
    }

    /// Deploys a zip, with settings as form fields.
    pub fn deploy_zip(
        &self,
        name: &str,
        runtime: Runtime,
        zip: &[u8],
        settings: &[(&str, &str)],
    ) -> anyhow::Result<()> {
        self.deploy_file(name, runtime.name(), ("code.zip", zip), settings)
    }

    /// Deploys an executable, with settings as form fields.
    pub fn deploy_program(
        &self,
        name: &str,
        program: &[u8],
        settings: &[(&str, &str)],
    ) -> anyhow::Result<()> {
        self.deploy_file(name, "native", ("program", program), settings)
    }

    fn deploy_file(
        &self,
        name: &str,
        runtime: &str,
        (file, code): (&str, &[u8]),
        settings: &[(&str, &str)],
    ) -> anyhow::Result<()> {
        const BOUNDARY: &str = "hearth-bench-boundary";
        let mut form = Vec::with_capacity(code.len() + 1024);
        let fixed = [("name", name), ("runtime", runtime)];
        for (field, value) in fixed.iter().chain(settings) {
            let part = format!(
                "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n"
            );
            form.extend_from_slice(part.as_bytes());
        }
        form.extend_from_slice(
            format!(
                "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"code\"; filename=\"{file}\"\r\n\r\n"
            )
            .as_bytes(),
        );
        form.extend_from_slice(code);
        form.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let media_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let call = request_of("POST", "/api/v1/functions", &media_type, &form);
        Connection::open(self.address)?.exchange(&call)?.good()
    }

    /// Deletes a function.
    pub fn delete(&self, name: &str) -> anyhow::Result<()> {
        let call = request("DELETE", &format!("/api/v1/functions/{name}"), b"");
        Connection::open(self.address)?.exchange(&call)?.good()
    }

    /// The function as the API shows it.
    pub fn function(&self, name: &str) -> anyhow::Result<Value> {
        self.call("GET", &format!("/functions/{name}"), &Value::Null)
    }

    /// Waits until the function is as `wanted` says.
    pub fn wait(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let found = poll(TIMEOUT, LOOK, || {
            let function = self.function(name);
            function
                .map(|function| wanted(&function).then_some(function))
                .transpose()
        });
        match found {
            Some(found) => found,
            None => anyhow::bail!(
                "{name} does not come to what is waited for: {}",
                self.function(name)?
            ),
        }
    }
}

/// A request that invokes a function.
pub fn invocation(name: &str, event: &[u8]) -> Vec<u8> {
    request("POST", &format!("/api/v1/functions/{name}/invoke"), event)
}

/// An event of this many bytes of JSON; nothing for 0.
pub fn event(bytes: usize) -> Vec<u8> {
    let around = r#"{"filler":""}"#.len();
    match bytes {
        0 => Vec::new(),
        bytes => json!({ "filler": "x".repeat(bytes.saturating_sub(around)) })
            .to_string()
            .into_bytes(),
    }
}

fn available(capability: &Value) -> Result<(), String> {
    if capability["available"] == true {
        return Ok(());
    }
    Err(capability["reason"]
        .as_str()
        .unwrap_or("this version of Hearth has no such thing")
        .to_owned())
}

/// A native function: an example of the crate `hearth-native`.
pub fn program(example: &str) -> anyhow::Result<Vec<u8>> {
    let path = executable()?.with_file_name("examples").join(example);
    std::fs::read(&path).with_context(|| format!("{}: scripts/bench.sh builds it", path.display()))
}

/// `hearth`, which is built into the same directory.
pub fn executable() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("hearth");
    anyhow::ensure!(
        path.is_file(),
        "{} is missing: scripts/bench.sh builds it",
        path.display()
    );
    Ok(path)
}
