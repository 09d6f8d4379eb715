//! Storage transfers: what a function needs to use an object store, and what keeps it from that.

use hyper::{Method, StatusCode};
use serde_json::Value;

use super::client::ClientError;
use super::hearth::{Hearth, HearthError};
use crate::store::Access;

/// Bytes in a ms of each transfer, at least, that a function's time limit allows for.
const BYTES_PER_MS: u64 = 4 << 10;

/// A function's storage transfers.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// The store.
    pub store: Access,
    /// Bytes of a payload.
    pub bytes: usize,
    /// Functions that call each other: all of this one's code.
    pub functions: usize,
}

/// Why functions cannot use the store.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// Their network setting may not name it.
    #[error(
        "functions may not reach the object store at {authority}: {detail}. The server's administrator opens it: \
         HEARTH_NETWORK_ALLOW_PRIVATE={network}"
    )]
    Closed {
        /// Host and port.
        authority: String,
        /// What to open.
        network: String,
        /// As the server says it.
        detail: String,
    },
    /// They do not get through, or it does not take their token.
    #[error(
        "a function could not put an object into the store and get it back ({0}). A firewall on the server's host may drop what it \
         forwards; the function's log, and its destinations under Network, say more"
    )]
    Unreachable(ClientError),
}

impl Transfer {
    /// Time to put a payload and to get it, in ms, which the time limit allows for.
    pub(super) fn time_ms(&self) -> u64 {
        2 * self.bytes as u64 / BYTES_PER_MS
    }

    /// Adds to a function's settings what it needs to use the store, and its only way out: to the store.
    pub(super) fn add_to(&self, name: &str, settings: &mut Value) {
        settings["env"] = self.store.environment(name, self.functions);
        settings["network"] = self.store.policy();
    }

    /// Says of a refused deploy what the administrator can do, if it was the way to the store that was refused.
    pub(super) fn explain(&self, error: ClientError) -> HearthError {
        match error {
            ClientError::Refused { status, detail, .. }
                if status == StatusCode::UNPROCESSABLE_ENTITY
                    && detail.contains("network.allow") =>
            {
                HearthError::Transfer(TransferError::Closed {
                    authority: self.store.authority.clone(),
                    network: self.store.network.clone(),
                    detail,
                })
            }
            error => error.into(),
        }
    }
}

impl Hearth {
    /// Has a function put one byte into its store and get it back.
    ///
    /// # Errors
    /// It does not.
    pub async fn check_transfer(&self, name: &str, bucket: &str) -> Result<(), HearthError> {
        let path = format!(
            "{}?PayloadLengthBytes=1&Bucket={bucket}&StorageTransfer=true",
            Self::path(name)
        );
        let done = self.client().send(Method::GET, &path, None).await;
        done.map_err(TransferError::Unreachable)?;
        Ok(())
    }
}
