//! The configuration of a load: requests to a function, a chain or an address, and their latencies.
//!
//! - `plan.rs`: what the load generator is to do. `run.rs`: from there to files and a summary.
//! - `files.rs`: what is written. [`render`]: the same for a terminal.

mod files;
mod plan;
pub mod render;
pub(super) mod run;

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spec::JobError;
use crate::duet::Subject;

pub use run::told;

/// Failed requests after which a load is given up unless told otherwise: a server that refuses each one at once would keep a processor
/// busy for nothing.
pub const FAULTS_MAX: u64 = 1_000;

/// Pause before each burst unless told otherwise, in ms.
pub const PAUSE_MS: u64 = 1_000;

/// Time limit of a request unless told otherwise, in ms.
pub const TIMEOUT_MS: u64 = 30_000;

/// Longest part of an address in a title, in characters.
const TITLE_MAX: usize = 100;

/// Seconds to send for, unless there is a count.
const DURATION_S: f64 = 10.0;

/// Times between the requests of an open loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spacing {
    /// The same between any two.
    #[default]
    Fixed,
    /// Exponentially distributed: a Poisson process.
    Exponential,
    /// Ever shorter: a rate that grows in ten steps.
    Step,
}

/// What is sent, where to and when. Without a rate and bursts a closed loop: each connection sends its next request after the answer to
/// its last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Load {
    /// `load`.
    pub kind: String,
    /// The address; or `function`, or `chain`.
    pub url: Option<String>,
    /// The function.
    pub function: Option<String>,
    /// The chain.
    pub chain: Option<String>,
    /// What follows the address of a function or chain: `/items?page=2`.
    pub path: String,
    /// `GET`, `POST` or `PUT`; `POST` with a body, otherwise `GET`.
    pub method: Option<String>,
    /// Headers, by name.
    #[serde(deserialize_with = "by_name", serialize_with = "as_object")]
    pub headers: Vec<(String, String)>,
    /// Body of each request.
    pub body: String,
    /// Most connections at a time; one, or as many as a burst has requests, or 100 with a rate.
    pub connections: Option<usize>,
    /// Whether connections are used again.
    pub keep_alive: bool,
    /// Seconds to send for; 10 unless there is a count.
    pub duration_s: Option<f64>,
    /// Requests to send.
    pub count: Option<u64>,
    /// Open loop: requests per second, sent at their times whether or not those before are answered.
    pub rate: Option<f64>,
    /// Times between the requests of an open loop.
    pub arrivals: Spacing,
    /// With `step`: the highest rate.
    pub to_rate: Option<f64>,
    /// Seed of the exponential times.
    pub seed: u64,
    /// So many requests at once, again and again.
    pub burst: Option<usize>,
    /// Before each burst.
    pub pause_ms: u64,
    /// Time limit of a request.
    pub timeout_ms: u64,
    /// Failed requests after which it is given up.
    pub faults_max: u64,
    /// With `https`: whether any certificate is believed.
    pub insecure: bool,
    /// With `https`: further certificates that are, as PEM.
    pub ca_pem: Option<String>,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            kind: "load".to_owned(),
            url: None,
            function: None,
            chain: None,
            path: String::new(),
            method: None,
            headers: Vec::new(),
            body: String::new(),
            connections: None,
            keep_alive: true,
            duration_s: None,
            count: None,
            rate: None,
            arrivals: Spacing::Fixed,
            to_rate: None,
            seed: 1,
            burst: None,
            pause_ms: PAUSE_MS,
            timeout_ms: TIMEOUT_MS,
            faults_max: FAULTS_MAX,
            insecure: false,
            ca_pem: None,
        }
    }
}

/// An object's members, of which no two have the same name.
fn by_name<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, String)>, D::Error> {
    Ok(BTreeMap::deserialize(from)?.into_iter().collect())
}

fn as_object<S: Serializer>(headers: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(headers.iter().map(|(name, value)| (name, value)))
}

/// Where requests go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target<'a> {
    Url(&'a str),
    Function(&'a str),
    Chain(&'a str),
}

impl Load {
    /// The function, if it is one.
    ///
    /// # Errors
    /// The field that names none, or a version of one: requests are the active one's.
    pub fn subject(&self) -> Result<Option<Subject>, JobError> {
        let Target::Function(name) = self.target()? else {
            return Ok(None);
        };
        let subject = name.parse::<Subject>();
        let subject = subject.map_err(|rule| JobError::Field("function", rule))?;
        if subject.version.is_some() {
            let rule = "without a version: requests are for the active one".to_owned();
            return Err(JobError::Field("function", rule));
        }
        Ok(Some(subject))
    }

    /// What it answers, in a line.
    pub(super) fn title(&self) -> String {
        let target = match self.target() {
            Ok(Target::Url(name) | Target::Function(name) | Target::Chain(name)) => name,
            Err(_) => "it",
        };
        let target = format!("{target}{}", self.path);
        // Lists and the audit log have it: a query may be a secret.
        let target = target.split('?').next().unwrap_or_default();
        let target: String = target.chars().take(TITLE_MAX).collect();
        match (self.rate, self.burst) {
            (Some(rate), _) => match self.to_rate {
                Some(to) => format!("How fast is {target} at {rate} to {to} requests per second?"),
                None => format!("How fast is {target} at {rate} requests per second?"),
            },
            (None, Some(size)) => format!("How fast is {target} with {size} requests at once?"),
            (None, None) => match self.connections.unwrap_or(1) {
                1 => format!("How fast is {target}, one request at a time?"),
                many => format!("How fast is {target}, {many} requests at a time?"),
            },
        }
    }

    pub(super) fn target(&self) -> Result<Target<'_>, JobError> {
        match (&self.url, &self.function, &self.chain) {
            (Some(url), None, None) => Ok(Target::Url(url)),
            (None, Some(name), None) => Ok(Target::Function(name)),
            (None, None, Some(name)) => Ok(Target::Chain(name)),
            _ => {
                let rule = "one of url, function and chain".to_owned();
                Err(JobError::Field("url", rule))
            }
        }
    }
}
