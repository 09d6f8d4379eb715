//! Deploys the lab's functions to a Hearth server and removes them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::client::{Client, ClientError};
use super::package::{BOOTSTRAP, archive, form};
use super::transfer::{Transfer, TransferError};

/// How often the number of iterations is tried before that is given up.
pub(super) const TRIES: usize = 10;

/// Longest removal of a function, whose running requests end meanwhile.
pub(super) const REMOVE_WITHIN: Duration = Duration::from_secs(30);

/// How long functions together are waited for whose deploys were not: most import in a second, and whoever has cancelled waits, too.
const MADE_WITHIN: Duration = Duration::from_secs(40);

/// How often.
const MADE_EACH: Duration = Duration::from_millis(250);

/// One of the lab's functions.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// `hellopy`, `hellonode` or `hellorust`.
    pub source: String,
    /// Memory in MB.
    pub memory_mb: u32,
    /// Size of the archive in MB; random bytes fill it up.
    pub image_mb: f64,
    /// Requests at a time.
    pub concurrency: usize,
    /// Longest service time, which its time limit allows for.
    pub busy: Duration,
    /// Seconds after which an idle instance ends; 0 leaves it to the server.
    pub idle_timeout_s: u32,
    /// Its storage transfers, if it has any.
    pub transfer: Option<Transfer>,
}

/// A Hearth server, and what the lab has deployed to it.
#[derive(Debug)]
pub struct Hearth {
    client: Client,
    /// Names of functions, from before they are asked for until they are gone.
    deployed: Mutex<Vec<String>>,
    /// Those of them that were asked for and not answered: a server carries on with what it was asked, whoever has gone meanwhile.
    pub(super) unanswered: Mutex<Vec<String>>,
    /// Names of chains, likewise.
    chains: Mutex<Vec<String>>,
}

impl Function {
    /// Its time limit, in ms.
    pub(super) fn timeout_ms(&self) -> u64 {
        let transfer = self.transfer.as_ref().map_or(0, Transfer::time_ms);
        30_000 + 2 * self.busy.as_millis() as u64 + transfer
    }
}

/// Why a function cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum HearthError {
    /// The server refuses, or does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Functions cannot use the store.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The archive cannot be made.
    #[error("an archive of the function: {0}")]
    Archive(String),
    /// The service time cannot be reached.
    #[error(
        "{wanted:?} of service time: {got:?} with {increments} iterations, after {TRIES} tries"
    )]
    Calibration {
        /// The service time that is asked for.
        wanted: Duration,
        /// The last one that was reached.
        got: Duration,
        /// With so many iterations.
        increments: u64,
    },
}

impl Hearth {
    /// The server that a client speaks with.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            deployed: Mutex::default(),
            unanswered: Mutex::default(),
            chains: Mutex::default(),
        }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What the server says of itself.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub async fn node(&self) -> Result<Value, ClientError> {
        Ok(self
            .client
            .send(Method::GET, "/api/v1/node", None)
            .await?
            .json())
    }

    /// The path of a function's URL.
    pub fn path(name: &str) -> String {
        format!("/fn/{name}")
    }

    /// Deploys a function; it is ready then.
    ///
    /// # Errors
    /// The server refuses, or does not answer. The function may be there nevertheless; [`Self::remove_all`] removes it.
    pub async fn deploy(&self, name: &str, function: &Function) -> Result<(), HearthError> {
        let (runtime, file, source) = match function.source.as_str() {
            "hellonode" => ("node", "main.mjs", include_str!("functions/hellonode.mjs")),
            "hellorust" => ("provided", "bootstrap", BOOTSTRAP),
            _ => ("python3", "main.py", include_str!("functions/hellopy.py")),
        };
        let mut settings = json!({
            "name": name,
            "runtime": runtime,
            "memory_mb": function.memory_mb,
            "max_concurrency": function.concurrency,
            "timeout_ms": function.timeout_ms(),
        });
        if runtime == "provided" {
            // Which of the program's functions it is.
            settings["handler"] = "bootstrap.stellar".into();
        }
        if function.idle_timeout_s > 0 {
            settings["idle_timeout_s"] = function.idle_timeout_s.into();
        }
        let archive = archive(file, source, function.image_mb)
            .map_err(|error| HearthError::Archive(error.to_string()))?;
        if let Some(transfer) = &function.transfer {
            transfer.add_to(name, &mut settings);
        }
        let deployed = self.deploy_code(name, &settings, &archive).await;
        deployed.map_err(|error| match (error, &function.transfer) {
            (HearthError::Client(error), Some(transfer)) => transfer.explain(error),
            (error, _) => error,
        })
    }

    /// Deploys code with these settings, which name it; it is ready then.
    ///
    /// # Errors
    /// As [`Self::deploy`].
    pub async fn deploy_code(
        &self,
        name: &str,
        settings: &Value,
        archive: &[u8],
    ) -> Result<(), HearthError> {
        let (media_type, form) = form(settings, "code.zip", archive);
        let content = (media_type.as_str(), form);
        self.make(name, "/api/v1/functions", content).await?;
        Ok(())
    }

    pub(super) fn names(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        // Nothing panics while it is held.
        self.deployed
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn chains(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        // As above.
        self.chains
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Removes a function. One that is not there is removed already, unless it may yet be made.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub async fn remove(&self, name: &str) -> Result<(), ClientError> {
        self.remove_until(name, Instant::now() + MADE_WITHIN).await
    }

    /// The same, and waits no longer than that for one that may yet be made.
    async fn remove_until(&self, name: &str, until: Instant) -> Result<(), ClientError> {
        while !self.delete(name).await? && self.may_come(name) && Instant::now() < until {
            sleep(MADE_EACH).await;
        }
        self.answered(name);
        self.names().retain(|one| one != name);
        Ok(())
    }

    /// Whether it was there.
    async fn delete(&self, name: &str) -> Result<bool, ClientError> {
        let path = format!("/api/v1/functions/{name}");
        let client = &self.client;
        let deleted = client.send_within(Method::DELETE, &path, None, REMOVE_WITHIN);
        match deleted.await {
            Ok(_) => Ok(true),
            Err(ClientError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes all chains and functions that were deployed. A server that does not answer is not asked for each of them.
    ///
    /// # Errors
    /// Those that could not be removed, each with the reason.
    pub async fn remove_all(&self) -> Result<(), String> {
        let names = self.names().clone();
        let chains = self.chains().clone();
        let mut left = Vec::new();
        let mut is_silent = false;
        let until = Instant::now() + MADE_WITHIN;
        // A function cannot go while it is a chain's member.
        let all = chains.iter().map(|name| (name, true));
        for (name, is_chain) in all.chain(names.iter().map(|name| (name, false))) {
            if is_silent {
                left.push(format!("{name} (not asked for any more)"));
                continue;
            }
            let removed = match is_chain {
                true => self.remove_chain(name).await,
                false => self.remove_until(name, until).await,
            };
            if let Err(error) = removed {
                is_silent = matches!(error, ClientError::Timeout(..));
                left.push(format!("{name} ({error})"));
            }
        }
        match left.is_empty() {
            true => Ok(()),
            false => Err(left.join("; ")),
        }
    }

    /// The same since the server has known the function, for one that others call, too: a window of time would lose some of theirs.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub async fn starts_in_all(&self, name: &str) -> Result<BTreeMap<String, u64>, ClientError> {
        let metrics = self.client.send(Method::GET, "/metrics", None).await?;
        Ok(metric(&String::from_utf8_lossy(&metrics.body), name))
    }

    /// How a function's instances were started, counted over the last day: `warm` for requests that found one.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub async fn starts(&self, name: &str) -> Result<BTreeMap<String, u64>, ClientError> {
        let path = format!("/api/v1/functions/{name}/stats?window=1d");
        let stats = self.client.send(Method::GET, &path, None).await?.json();
        Ok(serde_json::from_value(stats["starts"].clone()).unwrap_or_default())
    }
}

/// The starts of a function in the server's metrics.
fn metric(text: &str, function: &str) -> BTreeMap<String, u64> {
    let head = format!("hearth_starts_total{{function=\"{function}\",start=\"");
    let starts = text.lines().filter_map(|line| {
        let (start, count) = line.strip_prefix(&head)?.split_once("\"} ")?;
        let count = count.split_whitespace().next()?.parse::<f64>().ok()?;
        Some((start.to_owned(), count as u64))
    });
    starts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_read_from_metrics() {
        let text = "# TYPE hearth_starts counter\n\
            hearth_starts_total{function=\"hello\",start=\"warm\"} 12\n\
            hearth_starts_total{function=\"hello\",start=\"fork\"} 2.0\n\
            hearth_starts_total{function=\"hello-2\",start=\"fork\"} 7\n";
        let found = metric(text, "hello");
        assert_eq!((found.len(), found["warm"], found["fork"]), (2, 12, 2));
        assert!(metric("", "hello").is_empty());
    }
}
