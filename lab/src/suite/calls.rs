//! Carries the order out: calls next to each other, each in an instance of its own.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::output::{Execution, measured};
use super::tool::{Microbenchmark, Tool};
use crate::duet::order::{Call, Role};
use crate::duet::trials::{Fault, Repeat, Trials};
use crate::load::Sketch;
use crate::platform::client::{Client, ClientError};

/// How calls are made.
pub(super) struct Calls<'a> {
    pub client: &'a Client,
    /// The function's name.
    pub function: &'a str,
    pub tool: Tool,
    pub benchmarks: &'a [Microbenchmark],
    /// The trees of the first and the second version.
    pub trees: [&'a str; 2],
    pub parallel: usize,
    pub limit: Duration,
    pub time_s: f64,
    /// Longest call.
    pub within: Duration,
}

/// What came of them.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub trials: Vec<Trials>,
    pub pinned_to: BTreeSet<usize>,
    pub wall: Duration,
    pub measured_ns: f64,
    pub executions_s: f64,
    /// What all executions gave, in ns.
    pub results: Sketch,
}

/// The runner's answer.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    processor: Option<usize>,
    #[serde(default)]
    repeats: Vec<Vec<Execution>>,
}

impl Calls<'_> {
    /// Invokes the function and returns its answer.
    pub(super) async fn invoke(&self, event: &Value) -> Result<Value, ClientError> {
        let path = format!("/api/v1/functions/{}/invoke", self.function);
        let content = Some(("application/json", event.to_string().into_bytes()));
        let sent = self
            .client
            .send_within(Method::POST, &path, content, self.within);
        Ok(sent.await?.json())
    }

    /// Makes all calls. `tell` gets the number of those that are over, and the results so far.
    ///
    /// # Errors
    /// The server is gone. What it refuses, and what fails in the function, is counted.
    pub(super) async fn run(
        &self,
        calls: &[Call],
        tell: impl Fn(usize, &Sketch),
    ) -> Result<Done, ClientError> {
        let began = Instant::now();
        let waiting: RefCell<VecDeque<&Call>> = RefCell::new(calls.iter().collect());
        let done = RefCell::new(Done {
            trials: vec![Trials::default(); self.benchmarks.len()],
            ..Done::default()
        });
        let over = Cell::new(0);
        tell(0, &Sketch::default());
        let workers = (0..self.parallel).map(async |slot| {
            loop {
                let next = waiting.borrow_mut().pop_front();
                let Some(call) = next else {
                    return Ok(());
                };
                if !done.borrow().trials[call.benchmark].is_given_up() {
                    let answer = self.invoke(&self.event(call, slot)).await;
                    self.keep(&mut done.borrow_mut(), call, answer)?;
                }
                over.set(over.get() + 1);
                tell(over.get(), &done.borrow().results);
            }
        });
        try_join_all(workers).await?;
        let mut done = done.into_inner();
        done.wall = began.elapsed();
        Ok(done)
    }

    fn event(&self, call: &Call, slot: usize) -> Value {
        let tree = |role: &Role| match role {
            Role::First | Role::Control => self.trees[0],
            Role::Second => self.trees[1],
        };
        let order: Vec<Vec<&str>> = call
            .repeats
            .iter()
            .map(|roles| roles.iter().map(tree).collect())
            .collect();
        json!({
            "do": "run", "benchmark": self.benchmarks[call.benchmark], "order": order, "slot": slot, "time_s": self.time_s,
            "limit_s": self.limit.as_secs_f64(),
        })
    }

    fn keep(
        &self,
        done: &mut Done,
        call: &Call,
        answer: Result<Value, ClientError>,
    ) -> Result<(), ClientError> {
        let answer = match answer {
            Ok(answer) => serde_json::from_value(answer).map_err(|error| error.to_string()),
            Err(error @ ClientError::Refused { .. }) => Err(error.to_string()),
            Err(gone) => return Err(gone),
        };
        let trials = &mut done.trials[call.benchmark];
        let answer: Answer = match answer {
            Ok(Answer {
                error: Some(error), ..
            })
            | Err(error) => {
                // None of its executions has a duration.
                for role in call.repeats.iter().flatten() {
                    trials.note(*role, Fault::Failed(error.clone()));
                }
                return Ok(());
            }
            Ok(answer) => answer,
        };
        done.pinned_to.extend(answer.processor);
        for (number, (order, executions)) in call.repeats.iter().zip(&answer.repeats).enumerate() {
            let mut repeat = Repeat {
                call: call.number,
                repeat: number,
                order: order.clone(),
                first_ns: f64::NAN,
                second_ns: f64::NAN,
                control_ns: None,
            };
            let mut is_whole = order.len() == executions.len();
            for (role, execution) in order.iter().zip(executions) {
                done.executions_s += execution.took_s;
                let found = match execution.interrupted {
                    true => Err(Fault::Interrupted),
                    false => measured(self.tool, execution).map_err(Fault::Failed),
                };
                match found {
                    Ok(found) => {
                        done.measured_ns += found.all_ns;
                        done.results.note(found.ns as u64);
                        match role {
                            Role::First => repeat.first_ns = found.ns,
                            Role::Second => repeat.second_ns = found.ns,
                            Role::Control => repeat.control_ns = Some(found.ns),
                        }
                    }
                    Err(fault) => {
                        is_whole = false;
                        trials.note(*role, fault);
                    }
                }
            }
            if is_whole {
                trials.repeats.push(repeat);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;
    use crate::duet::order::order;

    fn micro(name: &str) -> Microbenchmark {
        Microbenchmark {
            name: name.to_owned(),
            unit: ".".to_owned(),
            select: format!("^{name}$"),
        }
    }

    fn answered(ns: [f64; 3]) -> Value {
        let execution = |ns: f64| json!({"status": 0, "output": format!("BenchmarkX 1000 {ns} ns/op"), "took_s": 0.5});
        json!(ns.map(execution))
    }

    #[test]
    fn calls_become_trials_and_faults_are_counted() {
        let client = Client::new("http://127.0.0.1:1", "t").expect("an address");
        let benchmarks = [micro("BenchmarkX")];
        let calls = Calls {
            client: &client,
            function: "lab-1",
            tool: Tool::Go,
            benchmarks: &benchmarks,
            trees: ["v1", "v2"],
            parallel: 1,
            limit: Duration::from_secs(20),
            time_s: 1.0,
            within: Duration::from_secs(1),
        };
        let all = order(1, 3, 3, true, 1);
        let event = calls.event(&all[0], 4);
        assert_eq!(
            (&event["slot"], &event["limit_s"]),
            (&json!(4), &json!(20.0))
        );
        assert_eq!(event["benchmark"]["select"], "^BenchmarkX$");
        for (roles, trees) in all[0]
            .repeats
            .iter()
            .zip(event["order"].as_array().expect("repeats"))
        {
            let second = roles
                .iter()
                .position(|role| *role == Role::Second)
                .expect("it runs");
            let of_second = trees
                .as_array()
                .expect("trees")
                .iter()
                .position(|tree| tree == "v2");
            assert_eq!(of_second, Some(second));
        }

        let mut done = Done {
            trials: vec![Trials::default()],
            ..Done::default()
        };
        let interrupted = json!([{"interrupted": true, "took_s": 20.0}, {"status": 0, "output": "PASS", "took_s": 0.1},
            {"status": 0, "output": "BenchmarkX 1 5 ns/op", "took_s": 0.1}]);
        let answer = json!({"processor": 1, "repeats": [answered([10.0, 20.0, 30.0]), answered([11.0, 21.0, 31.0]), interrupted]});
        calls
            .keep(&mut done, &all[0], Ok(answer))
            .expect("the server is there");
        let trials = &done.trials[0];
        assert_eq!(
            (trials.repeats.len(), trials.interrupted, trials.failed),
            (2, 1, 1)
        );
        for (repeat, ns) in trials
            .repeats
            .iter()
            .zip([[10.0, 20.0, 30.0], [11.0, 21.0, 31.0]])
        {
            for (role, ns) in repeat.order.iter().zip(ns) {
                let found = match role {
                    Role::First => repeat.first_ns,
                    Role::Second => repeat.second_ns,
                    Role::Control => repeat.control_ns.expect("a control"),
                };
                assert_eq!(found, ns);
            }
        }
        assert_eq!(done.pinned_to, BTreeSet::from([1]));
        assert_eq!(done.measured_ns, 123_000.0 + 5.0);

        // A call that fails as a whole is as many faults as it has executions.
        let error = ClientError::Refused {
            request: "POST".to_owned(),
            status: StatusCode::BAD_GATEWAY,
            detail: "the instance ended".to_owned(),
        };
        calls
            .keep(&mut done, &all[1], Err(error))
            .expect("the server is there");
        assert_eq!(done.trials[0].failed, 1 + 9);
        assert!(done.trials[0].is_given_up());
        let answer = json!({"error": "go test -c: status 1"});
        calls
            .keep(&mut done, &all[2], Ok(answer))
            .expect("the server is there");
        assert_eq!(
            done.trials[0].error.as_deref(),
            Some("go test -c: status 1")
        );
        let gone = ClientError::Transport("POST".to_owned(), "refused".to_owned());
        assert!(calls.keep(&mut done, &all[2], Err(gone)).is_err());
    }
}
