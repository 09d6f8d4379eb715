//! Chains of one of the lab's functions, whose instances call each other.

use hyper::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::client::ClientError;
use super::hearth::{Function, Hearth, HearthError, REMOVE_WITHIN};

/// A block of the chain's pool, in KiB. Larger payloads have several.
const BLOCK_KB: usize = 64;

/// Bytes of a call beside the payload that it transfers, at most.
const BESIDE: usize = 64 << 10;

/// Instances that a chain may have, and one of its members.
pub(crate) const INSTANCES_MAX: usize = 120;
const CONCURRENCY_MAX: usize = 64;

/// Longest time limit of a chain, in ms.
const TIMEOUT_MAX_MS: u64 = 900_000;

/// Blocks of a pool at least, and at most.
const BLOCKS: (usize, usize) = (256, 65_536);

/// The name of a chain's member; the first is 0.
pub(crate) fn member(number: usize) -> String {
    format!("f{number}")
}

impl Hearth {
    /// The path of a chain's only route.
    pub fn chain_path(name: &str) -> String {
        format!("/chain/{name}/r")
    }

    /// Puts a chain in service: so many members, all of the function of the same name, of which each may call the next with a payload of
    /// so many bytes. Requests that find all instances busy wait.
    ///
    /// # Errors
    /// The server refuses, or does not answer. The chain may be there nevertheless; [`Self::remove_all`] removes it.
    pub async fn deploy_chain(
        &self,
        name: &str,
        function: &Function,
        length: usize,
        payload_bytes: usize,
    ) -> Result<(), HearthError> {
        self.chains().push(name.to_owned());
        let settings = settings(name, function, length, payload_bytes).to_string();
        let content = Some(("application/json", settings.into_bytes()));
        self.client()
            .send(Method::POST, "/api/v1/chains", content)
            .await?;
        Ok(())
    }

    /// Removes a chain. One that is not there is removed already.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub async fn remove_chain(&self, name: &str) -> Result<(), ClientError> {
        let path = format!("/api/v1/chains/{name}");
        let removed = self
            .client()
            .send_within(Method::DELETE, &path, None, REMOVE_WITHIN);
        match removed.await {
            Ok(_) => {}
            Err(ClientError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => {}
            Err(error) => return Err(error),
        }
        self.chains().retain(|one| one != name);
        Ok(())
    }
}

fn settings(name: &str, function: &Function, length: usize, payload_bytes: usize) -> Value {
    let concurrency = function
        .concurrency
        .min(INSTANCES_MAX / length)
        .clamp(1, CONCURRENCY_MAX);
    let members: Map<String, Value> = (0..length)
        .map(|number| {
            let settings = json!({"function": name, "concurrency": concurrency});
            (member(number), settings)
        })
        .collect();
    let edges: Vec<[String; 2]> = (1..length)
        .map(|number| [member(number - 1), member(number)])
        .collect();
    let payload_kb = (payload_bytes + BESIDE).div_ceil(BLOCK_KB << 10).min(1024) * BLOCK_KB;
    // A request has its own blocks, and one payload for each call; payloads have one half of the pool.
    let run = payload_kb / BLOCK_KB;
    let blocks = 2 * run * concurrency * length + 16 * concurrency * length;
    json!({
        "name": name,
        "members": members,
        "routes": {"r": [member(0)]},
        "edges": edges,
        "timeout_ms": (function.timeout_ms() * length as u64).min(TIMEOUT_MAX_MS),
        "pool": {
            "block_kb": BLOCK_KB,
            "blocks": blocks.clamp(BLOCKS.0, BLOCKS.1),
            "payload_kb": payload_kb,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_function_may_call_the_next_and_payloads_have_room() {
        let function = Function {
            source: "hellopy".to_owned(),
            memory_mb: 128,
            image_mb: 0.0,
            concurrency: 100,
            busy: Duration::ZERO,
            idle_timeout_s: 0,
            transfer: None,
        };
        let chain = settings("x", &function, 3, 1 << 20);
        assert_eq!(chain["edges"], json!([["f0", "f1"], ["f1", "f2"]]));
        assert_eq!(
            chain["members"]["f2"],
            json!({"function": "x", "concurrency": 40})
        );
        let pool = &chain["pool"];
        assert_eq!(pool["payload_kb"], 1024 + 64);
        let blocks = pool["blocks"].as_u64().expect("a number");
        assert!(blocks / 2 >= 17 * 40 * 2, "{pool}");
        let largest = settings("x", &function, 2, 63 << 20);
        assert_eq!(largest["pool"]["payload_kb"], 64 * 1024 - 960);
        assert_eq!(largest["pool"]["blocks"], 65_536);
    }
}
