//! How many iterations make a function's service time.

use std::time::Duration;

use hyper::Method;

use super::hearth::{Hearth, HearthError, TRIES};

/// How far from the service time that is asked for the function may be.
const PRECISION: f64 = 0.05;

/// Iterations to begin with: some ms of Python.
const FIRST_TRY: u64 = 200_000;

/// Most iterations: more than the longest service time takes anywhere.
const INCREMENTS_MAX: u64 = 1 << 44;

impl Hearth {
    /// How many iterations keep a function busy for so long, and how long they do, within 5 %. As the server's own clock has it, without
    /// the way to the function.
    ///
    /// # Errors
    /// [`HearthError::Calibration`] if the host is too busy for that, or the server does not answer.
    pub async fn calibrate(
        &self,
        name: &str,
        wanted: Duration,
    ) -> Result<(u64, Duration), HearthError> {
        if wanted.is_zero() {
            return Ok((0, Duration::ZERO));
        }
        let idle = self.busy(name, 0).await?;
        let mut increments = FIRST_TRY;
        let mut got = Duration::ZERO;
        for _ in 0..TRIES {
            got = self.busy(name, increments).await?.saturating_sub(idle);
            let ratio = wanted.as_secs_f64() / got.as_secs_f64().max(1e-6);
            if (1.0 / ratio - 1.0).abs() <= PRECISION {
                return Ok((increments, got));
            }
            // By steps of 100 at most, because short runs are measured badly.
            let next = (increments as f64 * ratio.clamp(0.01, 100.0)) as u64;
            increments = next.clamp(1, INCREMENTS_MAX);
        }
        Err(HearthError::Calibration {
            wanted,
            got,
            increments,
        })
    }

    /// The least of three runs of a function with so many iterations.
    async fn busy(&self, name: &str, increments: u64) -> Result<Duration, HearthError> {
        let path = format!("{}?IncrementLimit={increments}", Self::path(name));
        let mut least = Duration::MAX;
        for _ in 0..3 {
            let answer = self.client().send(Method::GET, &path, None).await?;
            let timing = answer
                .headers
                .get("server-timing")
                .and_then(|value| value.to_str().ok());
            let run = timing.and_then(|text| stage(text, "run"));
            least = least.min(run.unwrap_or(Duration::ZERO));
        }
        Ok(least)
    }
}

/// How long a stage took, by a `Server-Timing` header. None if the header has no such stage.
pub fn stage(header: &str, name: &str) -> Option<Duration> {
    header.split(',').find_map(|entry| {
        let mut parts = entry.trim().split(';');
        if parts.next() != Some(name) {
            return None;
        }
        let ms: f64 = parts
            .find_map(|part| part.trim().strip_prefix("dur="))?
            .parse()
            .ok()?;
        Duration::try_from_secs_f64(ms / 1e3).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_found_in_the_header() {
        let header =
            "queue;dur=0.012, start;dur=0.800;desc=\"fork\", run;dur=1204.001, total;dur=1204.850";
        assert_eq!(stage(header, "run"), Some(Duration::from_micros(1_204_001)));
        assert_eq!(stage(header, "start"), Some(Duration::from_micros(800)));
        assert_eq!(stage(header, "recv"), None);
        assert_eq!(stage("run;dur=x", "run"), None);
        assert_eq!(stage("", "run"), None);
    }
}
