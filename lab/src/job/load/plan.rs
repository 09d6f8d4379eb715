//! What the load generator is to do.

use super::{DURATION_S, Load, Spacing, Target};
use crate::job::spec::JobError;
use crate::load::plan::{CONNECTIONS_MAX, DURATION_MAX, RATE_MAX, REQUESTS_MAX};
use crate::load::{Arrivals, Burst, Plan, Request, Round, Schedule, Trust};
use crate::platform::hearth::Hearth;

/// Steps in which a rate grows.
const STEPS: f64 = 10.0;

/// Most bursts, as in an experiment of STeLLAR's: a plan names each.
const BURSTS_MAX: u64 = 100_000;

/// Longest time to send for, in seconds.
const DURATION_MAX_S: f64 = DURATION_MAX.as_secs() as f64;

/// Connections of an open loop unless told otherwise.
const OPEN_CONNECTIONS: usize = 100;

fn refuse<T>(field: &'static str, rule: impl Into<String>) -> Result<T, JobError> {
    Err(JobError::Field(field, rule.into()))
}

impl Load {
    /// Whether it makes sense and keeps to the load generator's limits.
    ///
    /// # Errors
    /// The first field that does not.
    pub fn check(&self) -> Result<(), JobError> {
        self.subject()?;
        // Any server's.
        let url = self.address(|path| format!("http://localhost{path}"))?;
        self.plan(url).map(drop)
    }

    /// Where requests go. `on_server` makes an address of a server's path.
    pub(in crate::job) fn address(
        &self,
        on_server: impl Fn(&str) -> String,
    ) -> Result<String, JobError> {
        let path = match self.target()? {
            Target::Url(url) if self.path.is_empty() => return Ok(url.to_owned()),
            Target::Url(_) => return refuse("path", "part of the url"),
            Target::Function(name) => Hearth::path(name),
            Target::Chain(name) => {
                // So that what follows is not taken for a part of it.
                let is_name =
                    |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
                if name.is_empty() || !name.bytes().all(is_name) {
                    return refuse("chain", "a chain is named by a-z, 0-9 and -");
                }
                if !self.path.starts_with('/') || self.path.len() < 2 {
                    return refuse("path", "one of the chain's routes, as /order");
                }
                format!("/chain/{name}")
            }
        };
        if !self.path.is_empty() && !self.path.starts_with(['/', '?']) {
            return refuse("path", "begins with / or ?");
        }
        Ok(on_server(&format!("{path}{}", self.path)))
    }

    /// The plan of requests to an address.
    ///
    /// # Errors
    /// The first field that makes no sense or is beyond a limit.
    pub fn plan(&self, url: String) -> Result<Plan, JobError> {
        let schedule = self.schedule()?;
        let by_default = match (self.burst, self.rate) {
            (Some(size), _) => size.min(CONNECTIONS_MAX),
            (None, Some(_)) => OPEN_CONNECTIONS,
            (None, None) => 1,
        };
        let connections = self.connections.unwrap_or(by_default);
        if self.burst.is_some_and(|size| size > connections) {
            return refuse("connections", "as many as a burst has requests, or more");
        }
        let trust = Trust {
            insecure: self.insecure,
            ca_pem: self.ca_pem.clone(),
        };
        if let Err(rule) = trust.check() {
            return refuse("ca_pem", rule);
        }
        let method = self.method.clone();
        let plan = Plan {
            requests: vec![Request {
                method: method.unwrap_or_else(|| {
                    let method = if self.body.is_empty() { "GET" } else { "POST" };
                    method.to_owned()
                }),
                url,
                headers: self.headers.clone(),
                body: self.body.clone(),
            }],
            schedule,
            connections,
            keep_alive: if self.keep_alive { connections } else { 0 },
            timeout_ms: self.timeout_ms,
            capture_bytes: 0,
            faults_max: Some(self.faults_max),
            processor: None,
            trust,
        };
        plan.check()
            .map_err(|error| JobError::Field(error.field, error.rule))?;
        Ok(plan)
    }

    fn schedule(&self) -> Result<Schedule, JobError> {
        if self.rate.is_none() && self.arrivals != Spacing::Fixed {
            return refuse("arrivals", "only with a rate");
        }
        if self.to_rate.is_some() && (self.rate.is_none() || self.arrivals != Spacing::Step) {
            return refuse("to_rate", "only with a rate and arrivals step");
        }
        if let Some(size) = self.burst {
            if self.rate.is_some() || self.duration_s.is_some() {
                return refuse("burst", "with a count, without rate and duration_s");
            }
            let rounds = self.rounds(size)?;
            return Ok(Schedule::Bursts { rounds });
        }
        let seconds = match (self.duration_s, self.count) {
            (None, None) => Some(DURATION_S),
            (seconds, _) => seconds,
        };
        let is_good = |seconds: f64| seconds > 0.0 && seconds <= DURATION_MAX_S;
        if !seconds.is_none_or(is_good) {
            let rule = format!("more than 0, and at most {DURATION_MAX_S}");
            return refuse("duration_s", rule);
        }
        let (count, duration_ms) = (
            self.count,
            seconds.map(|seconds| (seconds * 1e3).ceil() as u64),
        );
        Ok(match self.rate {
            Some(rate) => Schedule::Open {
                arrivals: self.arrivals(rate, seconds)?,
                duration_ms,
                count,
            },
            None => Schedule::Closed { duration_ms, count },
        })
    }

    /// Bursts of this size, the last one of what is left.
    fn rounds(&self, size: usize) -> Result<Vec<Round>, JobError> {
        if !(1..=CONNECTIONS_MAX).contains(&size) {
            return refuse("burst", format!("1 to {CONNECTIONS_MAX}"));
        }
        let Some(count) = self.count else {
            return refuse("count", "how many requests in all, with bursts");
        };
        if !(1..=REQUESTS_MAX).contains(&count) {
            return refuse("count", format!("1 to {REQUESTS_MAX}"));
        }
        if count.div_ceil(size as u64) > BURSTS_MAX {
            return refuse("count", format!("at most {BURSTS_MAX} bursts"));
        }
        let round = |from: u64| Round {
            pause_ms: self.pause_ms,
            bursts: vec![Burst {
                request: 0,
                size: (count - from).min(size as u64) as usize,
            }],
        };
        Ok((0..count).step_by(size).map(round).collect())
    }

    fn arrivals(&self, rate: f64, seconds: Option<f64>) -> Result<Arrivals, JobError> {
        Ok(match self.arrivals {
            Spacing::Fixed => Arrivals::Fixed { rate },
            Spacing::Exponential => Arrivals::Exponential {
                rate,
                seed: self.seed,
            },
            Spacing::Step => {
                let (Some(to), Some(seconds)) = (self.to_rate, seconds) else {
                    return refuse("arrivals", "step needs to_rate and duration_s");
                };
                if !(to > rate && to <= RATE_MAX) {
                    let rule = format!("more than the rate, and at most {RATE_MAX}");
                    return refuse("to_rate", rule);
                }
                Arrivals::Step {
                    from: rate,
                    by: (to - rate) / (STEPS - 1.0),
                    to,
                    every_ms: (seconds * 1e3 / STEPS).ceil() as u64,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn plan(mut config: Value) -> Result<Plan, String> {
        if config.get("function").is_none() && config.get("chain").is_none() {
            config["url"] = json!("http://127.0.0.1:1/");
        }
        let load: Load = serde_json::from_value(config).map_err(|error| error.to_string())?;
        load.check().map_err(|error| error.to_string())?;
        let address = load.address(|path| format!("http://hearth{path}"));
        let address = address.map_err(|error| error.to_string())?;
        load.plan(address).map_err(|error| error.to_string())
    }

    #[test]
    fn bursts_send_as_many_requests_as_asked() {
        let plan = plan(json!({"burst": 100, "count": 250})).expect("a plan");
        let Schedule::Bursts { rounds } = plan.schedule else {
            panic!("bursts");
        };
        let sizes: Vec<usize> = rounds.iter().map(|round| round.bursts[0].size).collect();
        assert_eq!(sizes, [100, 100, 50]);
        assert_eq!((plan.connections, rounds[0].pause_ms), (100, 1_000));
    }

    #[test]
    fn loops_end_after_ten_seconds_or_as_told() {
        let schedule = |config| plan(config).map(|plan| plan.schedule);
        assert_eq!(
            schedule(json!({})),
            Ok(Schedule::Closed {
                duration_ms: Some(10_000),
                count: None
            })
        );
        assert_eq!(
            schedule(json!({"rate": 9, "count": 7})),
            Ok(Schedule::Open {
                arrivals: Arrivals::Fixed { rate: 9.0 },
                duration_ms: None,
                count: Some(7)
            })
        );
        let steps = json!({"rate": 10, "to_rate": 100, "arrivals": "step", "duration_s": 20});
        let Ok(Schedule::Open { arrivals, .. }) = schedule(steps) else {
            panic!("an open loop");
        };
        let expected = Arrivals::Step {
            from: 10.0,
            by: 10.0,
            to: 100.0,
            every_ms: 2_000,
        };
        assert_eq!(arrivals, expected);
    }

    #[test]
    fn functions_and_chains_are_addressed_on_their_server() {
        let request = |config| plan(config).expect("a plan").requests.remove(0);
        let asked = request(json!({"function": "hello", "path": "?a=1", "body": "{}"}));
        assert_eq!(
            (asked.url.as_str(), asked.method.as_str()),
            ("http://hearth/fn/hello?a=1", "POST")
        );
        let asked = request(json!({"chain": "shop", "path": "/cart", "headers": {"x-a": "1"}}));
        assert_eq!(
            (asked.url.as_str(), asked.method.as_str()),
            ("http://hearth/chain/shop/cart", "GET")
        );
        assert_eq!(asked.headers, [("x-a".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_field() {
        for (config, expected) in [
            (json!({"burst": 0, "count": 1}), "burst: 1 to 1000"),
            (json!({"burst": 2000, "count": 1}), "burst: 1 to 1000"),
            (json!({"burst": 1}), "count: how many requests in all"),
            (json!({"burst": 1, "count": 0}), "count: 1 to 5000000"),
            (
                json!({"burst": 1, "count": u64::MAX}),
                "count: 1 to 5000000",
            ),
            (
                json!({"burst": 1, "count": 1, "duration_s": 1}),
                "burst: with a count",
            ),
            (
                json!({"burst": 1, "count": 1, "rate": 1}),
                "burst: with a count",
            ),
            (
                json!({"rate": 9, "arrivals": "step", "duration_s": 1, "to_rate": 9}),
                "to_rate: more than the rate",
            ),
            (
                json!({"rate": 9, "arrivals": "step", "to_rate": 10, "count": 5}),
                "arrivals: step needs",
            ),
            (
                json!({"rate": 9, "to_rate": 10}),
                "to_rate: only with a rate and",
            ),
            (
                json!({"arrivals": "exponential"}),
                "arrivals: only with a rate",
            ),
            (json!({"arrivals": "poisson"}), "unknown variant"),
            (json!({"rate": 0}), "rate: above 0"),
            (json!({"duration_s": 0}), "duration_s: more than 0, and"),
            (json!({"duration_s": 1e9}), "and at most 86400"),
            (
                json!({"burst": 1, "count": 200_000}),
                "count: at most 100000 bursts",
            ),
            (
                json!({"burst": 9, "count": 9, "connections": 8}),
                "connections: as many as a burst",
            ),
            (
                json!({"rate": 9, "arrivals": "step", "duration_s": 1, "to_rate": 1e6}),
                "to_rate: more than the rate, and at most 500000",
            ),
            (json!({"ca_pem": "no"}), "ca_pem: no certificate"),
            (json!({"headers": {"Host": "x"}}), "headers: Host is the"),
            (json!({"connections": 0}), "connections: 1 to 1000"),
            (json!({"method": "DELETE"}), "method: GET, POST or PUT"),
            (json!({"headers": {"a b": "c"}}), "headers: names"),
            (json!({"path": "/x"}), "path: part of the url"),
            (
                json!({"function": "hello", "path": "x"}),
                "path: begins with",
            ),
            (
                json!({"function": "hello@2"}),
                "function: without a version",
            ),
            (json!({"function": "../x"}), "function: a function is named"),
            (json!({"chain": "a/../b"}), "chain: a chain is named"),
            (json!({"chain": "a"}), "path: one of the chain's routes"),
            (json!({"function": "a", "chain": "b"}), "url: one of url"),
            (json!({"rates": 1}), "unknown field"),
        ] {
            let shown = config.to_string();
            let refused = plan(config).expect_err(&shown);
            assert!(refused.contains(expected), "{shown}: {refused}");
        }
    }
}
