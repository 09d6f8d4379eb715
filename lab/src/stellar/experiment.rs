//! An experiment's configuration.

mod check;
mod together;

pub(crate) use check::PARALLELISM_MAX;

use serde::{Deserialize, Serialize};

use crate::load::origin;

/// Providers that STeLLAR knows, and Hearth. What is measured is this server or the endpoint, whatever a file names: its own files are
/// read as they are.
pub const PROVIDERS: [&str; 8] = [
    "hearth",
    "aws",
    "azure",
    "gcr",
    "google",
    "cloudflare",
    "aliyun",
    "vhive",
];

/// Functions that the lab brings along.
pub const FUNCTIONS: [&str; 3] = ["hellopy", "hellonode", ALONE];

/// The one of them that calls no other function and uses no store.
const ALONE: &str = "hellorust";

/// Largest configuration, in bytes.
pub const TEXT_MAX: usize = 1 << 20;

/// STeLLAR's own, where a file names none.
const COLD_THRESHOLD_MS: f64 = 300.0;

/// Most sub-experiments, because those that are not sequential run at once, each with a load generator.
const SUB_EXPERIMENTS_MAX: usize = 64;

/// STeLLAR's configuration. Fields that it does not have are ignored, as its client ignores them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Experiment {
    /// Whether sub-experiments run one after the other.
    pub sequential: bool,
    /// Where the functions are.
    pub provider: String,
    /// Not used: a function's name says its runtime.
    pub runtime: String,
    /// Hearth's own: an address that stands for all functions; nothing is deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// What is measured.
    pub sub_experiments: Vec<SubExperiment>,
}

impl Default for Experiment {
    fn default() -> Self {
        Self {
            sequential: false,
            provider: "hearth".to_owned(),
            runtime: String::new(),
            endpoint: None,
            sub_experiments: Vec::new(),
        }
    }
}

/// One of an experiment's measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SubExperiment {
    /// Begins the directory's name.
    pub title: String,
    /// One of [`FUNCTIONS`].
    pub function: String,
    /// Not used, as the function is the lab's own.
    pub handler: String,
    /// Not used: the function's name says it.
    pub runtime: String,
    /// `Zip`. Containers are not deployed.
    pub package_type: String,
    /// Not used, as the function is the lab's own.
    pub package_pattern: String,
    /// Memory of the function.
    #[serde(rename = "FunctionMemoryMB")]
    pub function_memory_mb: u32,
    /// Size of its archive, filled up with random bytes.
    #[serde(rename = "FunctionImageSizeMB")]
    pub function_image_size_mb: f64,
    /// Identical functions, which take bursts in turn.
    pub parallelism: usize,
    /// Bursts in all.
    pub bursts: usize,
    /// Requests of a burst, by round, again from the first after the last.
    pub burst_sizes: Vec<usize>,
    /// Seconds before a round, as `iat_type` says.
    #[serde(rename = "IATSeconds")]
    pub iat_seconds: f64,
    /// `stochastic`, `deterministic` or `step`.
    #[serde(rename = "IATType")]
    pub iat_type: String,
    /// How long the function is to be busy, by round; the last one stays.
    pub desired_service_times: Vec<String>,
    /// Bytes that the function makes, and hands on if it is the first of a chain.
    pub payload_length_bytes: usize,
    /// Functions that call each other, one after the other: a chain's members, if there are more than one.
    pub data_transfer_chain_length: usize,
    /// Whether the payload goes through an object store: each function puts it there, and the next one gets it.
    pub storage_transfer: bool,
    /// What is plotted.
    pub visualization: String,
    /// With an endpoint: the replicas' paths below it, one for each. What is deployed has paths of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<String>,
    /// Iterations instead of `desired_service_times`.
    pub busy_spin_increments: Vec<u64>,
    /// Hearth's own: seconds after which an idle instance ends; 0 leaves it to the server. STeLLAR waits for longer than its clouds
    /// keep instances, 15 minutes, where it wants cold ones.
    pub idle_timeout_seconds: u32,
    /// Hearth's own: requests that a function handles at a time, while others wait; 0 is as many as the largest burst has. STeLLAR's
    /// clouds decide that.
    pub concurrency_limit: usize,
    /// Hearth's own: whether the functions of a round take their bursts at even distances over its pause. As STeLLAR does it, each takes
    /// its burst right after the one before, so that all but the first of a round find a host that has just been busy.
    pub spread: bool,
}

impl Default for SubExperiment {
    fn default() -> Self {
        Self {
            title: String::new(),
            function: "hellopy".to_owned(),
            handler: String::new(),
            runtime: String::new(),
            package_type: "Zip".to_owned(),
            package_pattern: "**".to_owned(),
            function_memory_mb: 128,
            function_image_size_mb: 0.0,
            parallelism: 1,
            bursts: 0,
            burst_sizes: Vec::new(),
            iat_seconds: 0.0,
            iat_type: "stochastic".to_owned(),
            desired_service_times: Vec::new(),
            payload_length_bytes: 0,
            data_transfer_chain_length: 1,
            storage_transfer: false,
            visualization: "cdf".to_owned(),
            routes: Vec::new(),
            busy_spin_increments: Vec::new(),
            idle_timeout_seconds: 0,
            concurrency_limit: 0,
            spread: false,
        }
    }
}

/// Why an experiment is refused.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// It is no JSON, or a field has another type.
    #[error("not an experiment: {0}")]
    Json(#[from] serde_json::Error),
    /// It is larger than [`TEXT_MAX`].
    #[error("larger than {TEXT_MAX} bytes")]
    TooLarge,
    /// A provider that nothing is deployed to.
    #[error("Provider {0:?} is unknown here; known are: {1}")]
    Provider(String, String),
    /// A field makes no sense, or asks for what there is not.
    #[error("{place}{field}: {rule}")]
    Field {
        /// `SubExperiments[1] (warm): `, or nothing.
        place: String,
        /// The field.
        field: &'static str,
        /// What would be right.
        rule: String,
    },
}

impl SubExperiment {
    /// Bytes of an answer that are kept: as many as have the request's id and a time stamp of each function.
    #[must_use]
    pub(crate) fn capture_bytes(&self) -> usize {
        match self.is_chain() {
            true => 4_096,
            false => 512,
        }
    }

    /// Whether `Visualization` asks for this plot.
    pub(crate) fn shows(&self, plot: &str) -> bool {
        [plot, "all"].contains(&self.visualization.as_str())
    }

    /// Latency in ms from which STeLLAR's bar chart takes a request as cold, where that is asked for: `bar-<ms>` says it.
    pub(crate) fn cold_threshold_ms(&self) -> Option<f64> {
        if self.shows("bar") {
            return Some(COLD_THRESHOLD_MS);
        }
        let given = self.visualization.strip_prefix("bar-")?.parse::<f64>();
        given.ok().filter(|ms| ms.is_finite() && *ms >= 0.0)
    }

    /// Whether its functions are members of a chain.
    #[must_use]
    pub fn is_chain(&self) -> bool {
        self.data_transfer_chain_length > 1
    }
}

impl Experiment {
    /// Reads a configuration and checks it. With an endpoint nothing is deployed.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(text: &[u8], has_endpoint: bool) -> Result<Self, ExperimentError> {
        if text.len() > TEXT_MAX {
            return Err(ExperimentError::TooLarge);
        }
        let mut experiment: Self = serde_json::from_slice(text)?;
        if experiment.provider.is_empty() {
            experiment.provider = "hearth".to_owned();
        }
        if !PROVIDERS.contains(&experiment.provider.as_str()) {
            return Err(ExperimentError::Provider(
                experiment.provider,
                PROVIDERS.join(", "),
            ));
        }
        let count = experiment.sub_experiments.len();
        if !(1..=SUB_EXPERIMENTS_MAX).contains(&count) {
            return Err(ExperimentError::Field {
                place: String::new(),
                field: "SubExperiments",
                rule: format!("1 to {SUB_EXPERIMENTS_MAX}"),
            });
        }
        if let Some(url) = &experiment.endpoint {
            origin(url).map_err(|rule| ExperimentError::Field {
                place: String::new(),
                field: "Endpoint",
                rule,
            })?;
        }
        let has_endpoint = has_endpoint || experiment.endpoint.is_some();
        for (number, one) in experiment.sub_experiments.iter_mut().enumerate() {
            one.fill_in();
            one.check(has_endpoint)
                .map_err(|(field, rule)| ExperimentError::Field {
                    place: format!("SubExperiments[{number}] ({}): ", one.title),
                    field,
                    rule,
                })?;
        }
        experiment
            .check_together(has_endpoint)
            .map_err(|(field, rule)| ExperimentError::Field {
                place: String::new(),
                field,
                rule,
            })?;
        Ok(experiment)
    }
}

#[cfg(test)]
mod tests;
