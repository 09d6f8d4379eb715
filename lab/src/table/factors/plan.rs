//! The experiment that measures factors.

use super::Factor;
use crate::stellar::experiment::{ExperimentError, PARALLELISM_MAX};
use crate::stellar::{Experiment, SubExperiment};

/// Seconds after which idle instances end where they are to be cold. The paper waits for 10 to 15 minutes instead.
const COLD_IDLE_S: u32 = 1;

/// Least of the pauses where instances are to be cold, to which STeLLAR's distribution adds: an end may wait two seconds more for a moment
/// without requests. Irregular, because Hearth starts instances ahead of calls at regular times.
const COLD_PAUSE_S: f64 = 4.0;

/// The least one where they are to be warm. The paper's are 3 s.
const WARM_PAUSE_S: f64 = 2.0;

/// Least distance between two bursts of a round: a host that was busy so long ago is as slow as one that was for seconds.
const DISTANCE_S: f64 = 0.2;

impl Factor {
    /// Bursts at the beginning, of so many samples, that are left out: the first to each function, which finds no instance, and a server
    /// that still has work of the deploys.
    pub fn warm_up(&self, samples: usize) -> u32 {
        self.replicas(samples) as u32
    }

    /// Functions that take turns in each round.
    fn replicas(&self, samples: usize) -> usize {
        match self.samples_each {
            0 => self.replicas,
            each => samples.div_ceil(each).clamp(self.replicas, PARALLELISM_MAX),
        }
    }

    /// As STeLLAR would be told.
    fn sub_experiment(&self, samples: usize) -> SubExperiment {
        // A burst of 100 is 100 samples, but all of one moment: a twentieth as many bursts as single requests, and at least five.
        let replicas = self.replicas(samples);
        let bursts = if self.burst == 1 {
            samples.next_multiple_of(replicas)
        } else {
            (samples / 20).max(5)
        };
        SubExperiment {
            title: self.name.to_owned(),
            function: self.function.to_owned(),
            function_memory_mb: self.memory_mb,
            function_image_size_mb: self.image_mb,
            parallelism: replicas,
            bursts: bursts + self.warm_up(samples) as usize,
            burst_sizes: vec![self.burst],
            iat_seconds: self.pause_s(replicas),
            iat_type: if self.is_cold {
                "stochastic"
            } else {
                "deterministic"
            }
            .to_owned(),
            desired_service_times: vec![format!("{}ms", self.busy_ms)],
            payload_length_bytes: self.payload,
            data_transfer_chain_length: self.chain,
            storage_transfer: self.storage,
            concurrency_limit: self.limit,
            // Otherwise a row mixes requests to a host that has just been busy with those after a pause, and its tail is the latter.
            spread: true,
            visualization: match self.burst {
                1 => "cdf",
                _ => "all",
            }
            .to_owned(),
            idle_timeout_seconds: if self.is_cold { COLD_IDLE_S } else { 0 },
            ..SubExperiment::default()
        }
    }

    /// Before a round, in which its functions take their bursts at even distances.
    fn pause_s(&self, replicas: usize) -> f64 {
        let least = if self.is_cold {
            COLD_PAUSE_S
        } else {
            WARM_PAUSE_S
        };
        (replicas as f64 * DISTANCE_S).max(least)
    }
}

/// The experiment that measures these factors, one after the other.
///
/// # Errors
/// Numbers of samples beyond the experiments' limits.
pub fn experiment(factors: &[&Factor], samples: usize) -> Result<Experiment, ExperimentError> {
    let experiment = Experiment {
        sequential: true,
        sub_experiments: factors
            .iter()
            .map(|factor| factor.sub_experiment(samples))
            .collect(),
        ..Experiment::default()
    };
    // By way of its text, so that the same limits hold as for everybody's.
    Experiment::read(&serde_json::to_vec(&experiment)?, false)
}
