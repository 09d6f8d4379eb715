//! A sub-experiment's defaults and limits.

use std::time::Duration;

use super::{ALONE, FUNCTIONS, SubExperiment};
use crate::load::plan::{CAPTURED_MAX, DURATION_MAX, REQUESTS_MAX};
use crate::stellar::{duration, schedule};
use crate::store::OBJECT_MAX;

/// Longest title, which becomes part of a directory's name.
const TITLE_MAX: usize = 100;

/// Most bursts of a sub-experiment.
const BURSTS_MAX: usize = 100_000;

/// Largest burst, the largest of the paper.
const BURST_MAX: usize = 500;

/// Most replicas: a prepared interpreter each.
pub(crate) const PARALLELISM_MAX: usize = 200;

/// Longest pause, in seconds.
const IAT_MAX: f64 = 86_400.0;

/// Longest service time.
const SERVICE_TIME_MAX: Duration = Duration::from_mins(5);

/// Most service times, or increments: a request of its own for each, and each function.
const SERVICE_TIMES_MAX: usize = 100;

/// Largest archive with a filler that Hearth takes, in MB.
const IMAGE_MAX: f64 = 200.0;

/// Longest idle time, in seconds: Hearth's own limit.
const IDLE_TIMEOUT_MAX: u32 = 86_400;

/// Longest route.
const ROUTE_MAX: usize = 1_024;

/// Longest chain: what a chain of Hearth may have in members.
const CHAIN_MAX: usize = 64;

/// Largest payload that a chain's functions hand on, in bytes: what a chain may have, less what is beside it.
const TRANSFER_MAX: usize = (64 << 20) - (1 << 20);

/// Largest payload that a function is asked to make, in bytes.
const PAYLOAD_MAX: usize = 64 << 20;

/// A field and what would be right.
pub(super) type Refused = (&'static str, String);

fn within<T: PartialOrd + std::fmt::Display>(
    value: T,
    low: T,
    high: T,
    field: &'static str,
) -> Result<(), Refused> {
    if low <= value && value <= high {
        return Ok(());
    }
    Err((field, format!("{value} is not within {low} and {high}")))
}

fn one_of(value: &str, known: &[&str], field: &'static str) -> Result<(), Refused> {
    if known.contains(&value) {
        return Ok(());
    }
    Err((
        field,
        format!("{value:?} is not one of {}", known.join(", ")),
    ))
}

impl SubExperiment {
    /// Gives empty fields their defaults, as STeLLAR's client does.
    pub(super) fn fill_in(&mut self) {
        let default = Self::default();
        for (field, value) in [
            (&mut self.function, default.function),
            (&mut self.package_type, default.package_type),
            (&mut self.package_pattern, default.package_pattern),
            (&mut self.iat_type, default.iat_type),
            (&mut self.visualization, default.visualization),
        ] {
            if field.is_empty() {
                *field = value;
            }
        }
        for (field, value) in [
            (&mut self.parallelism, default.parallelism),
            (
                &mut self.data_transfer_chain_length,
                default.data_transfer_chain_length,
            ),
        ] {
            if *field == 0 {
                *field = value;
            }
        }
        if self.function_memory_mb == 0 {
            self.function_memory_mb = default.function_memory_mb;
        }
        if self.desired_service_times.is_empty() {
            self.desired_service_times.push("0ms".to_owned());
        }
    }

    pub(super) fn check(&self, has_endpoint: bool) -> Result<(), Refused> {
        let is_name = !self.title.chars().any(|c| c.is_control() || c == '/');
        if self.title.is_empty()
            || self.title.len() > TITLE_MAX
            || !is_name
            || self.title.starts_with('.')
        {
            let rule = format!("1 to {TITLE_MAX} bytes without a slash, not beginning with a dot");
            return Err(("Title", rule));
        }
        within(self.bursts, 1, BURSTS_MAX, "Bursts")?;
        if self.burst_sizes.is_empty() {
            return Err(("BurstSizes", "at least one".to_owned()));
        }
        for size in &self.burst_sizes {
            within(*size, 1, BURST_MAX, "BurstSizes")?;
        }
        within(self.parallelism, 1, PARALLELISM_MAX, "Parallelism")?;
        within(self.iat_seconds, 0.0, IAT_MAX, "IATSeconds")?;
        one_of(
            &self.iat_type,
            &["stochastic", "deterministic", "step"],
            "IATType",
        )?;
        within(
            self.payload_length_bytes,
            0,
            if self.storage_transfer {
                OBJECT_MAX as usize
            } else {
                PAYLOAD_MAX
            },
            "PayloadLengthBytes",
        )?;
        if self.cold_threshold_ms().is_none() {
            let known = ["cdf", "histogram", "bar", "bar-<ms>", "all", "none"];
            one_of(&self.visualization, &known, "Visualization")?;
        }
        let largest = self.largest_burst();
        let most = REQUESTS_MAX.min(CAPTURED_MAX / self.capture_bytes() as u64);
        if self.bursts.saturating_mul(largest) as u64 > most {
            return Err((
                "Bursts",
                format!("with BurstSizes more than {most} requests"),
            ));
        }
        if schedule::seconds(self) > DURATION_MAX.as_secs_f64() {
            return Err(("IATSeconds", "with Bursts more than 24 h".to_owned()));
        }
        for (count, field) in [
            (self.desired_service_times.len(), "DesiredServiceTimes"),
            (self.busy_spin_increments.len(), "BusySpinIncrements"),
        ] {
            if count > SERVICE_TIMES_MAX {
                return Err((field, format!("at most {SERVICE_TIMES_MAX}")));
            }
        }
        let has_spin = self.service_times()?.iter().any(|time| !time.is_zero());
        if has_endpoint && has_spin && self.busy_spin_increments.is_empty() {
            let rule = "only 0ms with an endpoint, or BusySpinIncrements: how fast its function spins is not known";
            return Err(("DesiredServiceTimes", rule.to_owned()));
        }
        if self.storage_transfer && has_endpoint {
            let rule = "false with an endpoint: which storage its function uses is not known";
            return Err(("StorageTransfer", rule.to_owned()));
        }
        within(
            self.data_transfer_chain_length,
            1,
            if has_endpoint { 1 } else { CHAIN_MAX },
            "DataTransferChainLength",
        )?;
        if has_endpoint {
            return self.check_routes();
        }
        if self.is_chain() && !self.storage_transfer {
            within(
                self.payload_length_bytes,
                0,
                TRANSFER_MAX,
                "PayloadLengthBytes",
            )?;
        }
        within(self.concurrency_limit, 0, BURST_MAX, "ConcurrencyLimit")?;
        one_of(&self.function, &FUNCTIONS, "Function")?;
        if self.function == ALONE && (self.is_chain() || self.storage_transfer) {
            let rule = format!("{ALONE} has no transfers: hellopy and hellonode have");
            return Err(("Function", rule));
        }
        one_of(&self.package_type, &["Zip"], "PackageType")?;
        within(self.function_memory_mb, 32, 16_384, "FunctionMemoryMB")?;
        within(
            self.idle_timeout_seconds,
            0,
            IDLE_TIMEOUT_MAX,
            "IdleTimeoutSeconds",
        )?;
        within(
            self.function_image_size_mb,
            0.0,
            IMAGE_MAX,
            "FunctionImageSizeMB",
        )
    }

    /// A route for each replica, or none at all.
    fn check_routes(&self) -> Result<(), Refused> {
        let count = self.routes.len();
        if count > 0 && count < self.parallelism {
            let replicas = self.parallelism;
            let rule =
                format!("{count} for {replicas} replicas (Parallelism): one for each, or none");
            return Err(("Routes", rule));
        }
        let is_path = |route: &String| {
            let is_printable = |c: char| c.is_ascii_graphic() && c != '#';
            route.len() <= ROUTE_MAX && route.chars().all(is_printable)
        };
        match self.routes.iter().find(|route| !is_path(route)) {
            Some(route) => Err((
                "Routes",
                format!("{route:?} is no path of at most {ROUTE_MAX} bytes, such as invoke/hello"),
            )),
            None => Ok(()),
        }
    }

    /// Requests at a time, at most.
    pub(super) fn largest_burst(&self) -> usize {
        self.burst_sizes.iter().copied().max().unwrap_or(1)
    }

    /// `DesiredServiceTimes`, parsed.
    pub(crate) fn service_times(&self) -> Result<Vec<Duration>, (&'static str, String)> {
        let parse = |text: &String| {
            let limit = SERVICE_TIME_MAX;
            let time = duration::parse(text).filter(|time| *time <= limit);
            time.ok_or_else(|| {
                let rule = format!("{text:?} is no duration of at most {limit:?}, such as 100ms");
                ("DesiredServiceTimes", rule)
            })
        };
        self.desired_service_times.iter().map(parse).collect()
    }
}
