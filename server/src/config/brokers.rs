//! The MQTT brokers of `HEARTH_MQTT_BROKERS`, to which functions and chains may subscribe by their names. They are the
//! administrator's: nobody else says where the server connects, and no secret goes through the API.
//!
//! The program that prepares reads the file and those that it names, as root; the server gets what they say.

mod read;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use hearth_host::memfd::sealed;
use hearth_host::protocol::papers::{PAPERS_MAX, read_sealed};
use serde::{Deserialize, Serialize};

use super::{Config, InvalidSetting};

/// One broker.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broker {
    /// Its host: a name, or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether it is reached by TLS.
    pub tls: bool,
    /// The certificates of its authorities, PEM; none for those that the machine trusts.
    pub ca: Option<String>,
    /// The user name.
    pub username: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// What client identifiers begin with.
    pub client_id: String,
    /// Seconds between signs of life.
    pub keep_alive_s: u16,
}

/// All of them, by name.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brokers(BTreeMap<String, Broker>);

impl Brokers {
    /// The broker of this name.
    pub fn get(&self, name: &str) -> Option<&Broker> {
        self.0.get(name)
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The ports to which they need connections.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.0.values().map(|broker| broker.port)
    }

    /// In memory that can be passed on and not be changed.
    ///
    /// # Errors
    /// When there is no memory, or they are more than [`Self::received`] takes.
    pub fn sealed(&self) -> std::io::Result<OwnedFd> {
        let bytes = serde_json::to_vec(self)?;
        if bytes.len() as u64 > PAPERS_MAX {
            let rule =
                "HEARTH_MQTT_BROKERS: the brokers, with their files, must have less than 1 MiB";
            return Err(std::io::Error::other(rule));
        }
        sealed(&bytes)
    }

    /// What [`Self::sealed`] has passed on; none if nothing was.
    ///
    /// # Errors
    /// When it is something else.
    pub fn received(memory: Option<OwnedFd>) -> std::io::Result<Self> {
        let Some(memory) = memory else {
            return Ok(Self::default());
        };
        let bytes = read_sealed(memory).map_err(std::io::Error::other)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

impl Config {
    /// Reads the brokers, with their passwords and certificates. Without the setting there are none.
    ///
    /// # Errors
    /// What is wrong, by file, broker and field.
    pub fn mqtt_brokers(&self) -> Result<Brokers, InvalidSetting> {
        let named = self.mqtt_brokers.as_deref();
        let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(Brokers::default());
        };
        let invalid = |rule: String| InvalidSetting {
            setting: "HEARTH_MQTT_BROKERS",
            value: path.display().to_string(),
            rule,
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| invalid(format!("must be a file that can be read: {error}")))?;
        let files = path.parent().unwrap_or(Path::new("/"));
        let node = rustix::system::uname();
        read::read(&text, files, &node.nodename().to_string_lossy()).map_err(invalid)
    }
}
