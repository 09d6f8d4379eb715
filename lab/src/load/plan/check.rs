//! Whether a plan makes sense and keeps to the limits.

use std::time::Duration;

use super::{
    Arrivals, BODY_MAX, CAPTURE_MAX, CAPTURED_MAX, CONNECTIONS_MAX, DURATION_MAX, Plan, PlanError,
    RATE_MAX, REQUESTS_MAX, Request, Round, Schedule, TIMEOUT_MAX,
};

/// Headers that say where a request goes and where it ends.
const OWN: [&str; 6] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "expect",
];

fn refuse(field: &'static str, rule: impl Into<String>) -> Result<(), PlanError> {
    let rule = rule.into();
    Err(PlanError { field, rule })
}

/// Fails unless `is_good`.
fn demand(is_good: bool, field: &'static str, rule: &str) -> Result<(), PlanError> {
    if is_good { Ok(()) } else { refuse(field, rule) }
}

fn milliseconds(limit: Duration) -> u64 {
    u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)
}

impl Plan {
    /// Fails with the first field that makes no sense or is beyond a limit.
    pub fn check(&self) -> Result<(), PlanError> {
        demand(!self.requests.is_empty(), "requests", "at least one")?;
        for request in &self.requests {
            request.check()?;
        }
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            return refuse("connections", format!("1 to {CONNECTIONS_MAX}"));
        }
        if !(1..=milliseconds(TIMEOUT_MAX)).contains(&self.timeout_ms) {
            return refuse("timeout_ms", format!("1 to {}", milliseconds(TIMEOUT_MAX)));
        }
        if self.capture_bytes > CAPTURE_MAX {
            return refuse("capture_bytes", format!("at most {CAPTURE_MAX}"));
        }
        match &self.schedule {
            Schedule::Closed { duration_ms, count } => ends(*duration_ms, *count),
            Schedule::Open {
                arrivals,
                duration_ms,
                count,
            } => {
                ends(*duration_ms, *count)?;
                let (slowest, fastest) = arrivals.check()?;
                let longest = duration_ms.map_or(f64::INFINITY, |ms| ms as f64 / 1e3);
                if count.is_none() && longest * fastest > REQUESTS_MAX as f64 {
                    return refuse("rate", format!("at most {REQUESTS_MAX} requests in all"));
                }
                let needed = count.map_or(0.0, |count| count as f64 / slowest);
                let limit = DURATION_MAX.as_secs_f64();
                demand(needed.min(longest) <= limit, "count", "at most 24 h in all")
            }
            Schedule::Bursts { rounds } => self.check_rounds(rounds),
        }
    }

    fn check_rounds(&self, rounds: &[Round]) -> Result<(), PlanError> {
        let mut count = 0;
        let mut pauses = 0_u64;
        for round in rounds {
            pauses = pauses.saturating_add(round.pause_ms);
            for burst in &round.bursts {
                demand(
                    burst.request < self.requests.len(),
                    "request",
                    "one of the requests",
                )?;
                if !(1..=self.connections).contains(&burst.size) {
                    return refuse("size", format!("1 to {} connections", self.connections));
                }
                count += burst.size as u64;
            }
        }
        if !(1..=REQUESTS_MAX).contains(&count) {
            return refuse("rounds", format!("1 to {REQUESTS_MAX} requests in all"));
        }
        if count.saturating_mul(self.capture_bytes as u64) > CAPTURED_MAX {
            let rule = format!("at most {CAPTURED_MAX} for all requests together");
            return refuse("capture_bytes", rule);
        }
        let longest = milliseconds(DURATION_MAX);
        demand(pauses <= longest, "pause_ms", "at most 24 h in all")
    }
}

/// Whether a loop ends, and within the limits.
fn ends(duration_ms: Option<u64>, count: Option<u64>) -> Result<(), PlanError> {
    demand(
        duration_ms.is_some() || count.is_some(),
        "duration_ms",
        "a duration or a count",
    )?;
    if !(1..=milliseconds(DURATION_MAX)).contains(&duration_ms.unwrap_or(1)) {
        return refuse(
            "duration_ms",
            format!("1 to {}", milliseconds(DURATION_MAX)),
        );
    }
    if !(1..=REQUESTS_MAX).contains(&count.unwrap_or(1)) {
        return refuse("count", format!("1 to {REQUESTS_MAX}"));
    }
    Ok(())
}

impl Request {
    fn check(&self) -> Result<(), PlanError> {
        if !["GET", "POST", "PUT"].contains(&self.method.as_str()) {
            return refuse("method", "GET, POST or PUT");
        }
        // A line break would end the head's line and begin another.
        let is_line = |text: &str| {
            text.bytes()
                .all(|byte| byte == b'\t' || (32..127).contains(&byte))
        };
        let is_name = |text: &str| {
            let token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte);
            !text.is_empty() && text.bytes().all(token)
        };
        for (name, value) in &self.headers {
            if OWN.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                return refuse("headers", format!("{name} is the load generator's own"));
            }
            demand(is_name(name), "headers", "names as HTTP has them")?;
            demand(
                is_line(value),
                "headers",
                "values of printable ASCII characters",
            )?;
        }
        if self.body.len() > BODY_MAX {
            return refuse("body", format!("at most {BODY_MAX} bytes"));
        }
        crate::load::endpoint::Endpoint::parse(&self.url)
            .map(|_| ())
            .or_else(|rule| refuse("url", rule))
    }
}

impl Arrivals {
    /// The lowest and the highest rate.
    fn check(&self) -> Result<(f64, f64), PlanError> {
        let (lowest, highest) = match *self {
            Self::Fixed { rate } | Self::Exponential { rate, .. } => (rate, rate),
            Self::Step {
                from,
                by,
                to,
                every_ms,
            } => {
                demand(by > 0.0 && by <= RATE_MAX, "by", "more than 0")?;
                demand(every_ms > 0, "every_ms", "at least 1")?;
                demand(from <= to, "to", "at least what it grows from")?;
                (from, to)
            }
        };
        // Once a day.
        if lowest >= 1.0 / DURATION_MAX.as_secs_f64() && highest <= RATE_MAX {
            return Ok((lowest, highest));
        }
        refuse("rate", format!("above 0 and at most {RATE_MAX}")).map(|()| (0.0, 0.0))
    }
}
