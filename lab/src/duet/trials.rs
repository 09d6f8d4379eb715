//! Carries the order out and keeps what counts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::order::{Call, Role};
use crate::statistics::Trial;

/// A benchmark is given up after so many executions that failed or were interrupted: one that never ends would take its time limit each
/// time.
pub const FAULTS_MAX: usize = 10;

/// Longest reason that is kept: a handler's message may be megabytes.
const REASON_MAX: usize = 500;

/// Why an execution has no duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It took longer than its limit.
    Interrupted,
    /// It failed, for this reason.
    Failed(String),
}

/// One repeat that both versions completed. Durations are in ns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Which call.
    pub call: usize,
    /// Which repeat of it.
    pub repeat: usize,
    /// Who ran when.
    pub order: Vec<Role>,
    /// The first version's.
    pub first_ns: f64,
    /// The second version's.
    pub second_ns: f64,
    /// The control's, where there is one.
    pub control_ns: Option<f64>,
}

/// What came of a benchmark's trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trials {
    /// In the order in which they ran.
    pub repeats: Vec<Repeat>,
    /// Executions that took longer than their limit.
    pub interrupted: usize,
    /// Executions that failed.
    pub failed: usize,
    /// Those of both that were the second version's.
    pub second_faults: usize,
    /// Why the last one failed.
    pub error: Option<String>,
}

impl Trials {
    /// Both versions.
    pub fn pairs(&self) -> Vec<Trial> {
        let pair = |repeat: &Repeat| Trial {
            first: repeat.first_ns,
            second: repeat.second_ns,
        };
        self.repeats.iter().map(pair).collect()
    }

    /// The first version and itself.
    pub fn controls(&self) -> Vec<Trial> {
        let pair = |repeat: &Repeat| {
            Some(Trial {
                first: repeat.first_ns,
                second: repeat.control_ns?,
            })
        };
        self.repeats.iter().filter_map(pair).collect()
    }

    /// Executions without a duration.
    pub fn faults(&self) -> usize {
        self.interrupted + self.failed
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.faults() >= FAULTS_MAX
    }

    pub(crate) fn note(&mut self, role: Role, fault: Fault) {
        self.second_faults += usize::from(role == Role::Second);
        match fault {
            Fault::Interrupted => self.interrupted += 1,
            Fault::Failed(reason) => {
                self.failed += 1;
                self.error = Some(reason.chars().take(REASON_MAX).collect());
            }
        }
    }
}

/// Runs all calls. `prepare` comes before each, `execute` gives the duration of one version's run of a benchmark, and `tell` gets the
/// calls that are over. A repeat counts only if each of its executions has a duration.
pub async fn run<P, E>(
    calls: &[Call],
    benchmarks: usize,
    prepare: P,
    execute: E,
    tell: impl Fn(usize),
) -> Vec<Trials>
where
    P: AsyncFn(usize),
    E: AsyncFn(Role, usize) -> Result<Duration, Fault>,
{
    let mut all = vec![Trials::default(); benchmarks];
    for (done, call) in calls.iter().enumerate() {
        tell(done);
        let trials = &mut all[call.benchmark];
        if trials.is_given_up() {
            continue;
        }
        prepare(call.benchmark).await;
        for (number, order) in call.repeats.iter().enumerate() {
            let [mut first_ns, mut second_ns, mut control_ns] = [None; 3];
            for role in order {
                let ns = match execute(*role, call.benchmark).await {
                    Ok(duration) => Some(duration.as_nanos() as f64),
                    Err(fault) => {
                        trials.note(*role, fault);
                        None
                    }
                };
                match role {
                    Role::First => first_ns = ns,
                    Role::Second => second_ns = ns,
                    Role::Control => control_ns = ns,
                }
            }
            let is_controlled = !order.contains(&Role::Control) || control_ns.is_some();
            if let (Some(first_ns), Some(second_ns), true) = (first_ns, second_ns, is_controlled) {
                trials.repeats.push(Repeat {
                    call: call.number,
                    repeat: number,
                    order: order.clone(),
                    first_ns,
                    second_ns,
                    control_ns,
                });
            }
            if trials.is_given_up() {
                break;
            }
        }
    }
    tell(calls.len());
    all
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::super::order::order;
    use super::*;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(work)
    }

    #[test]
    fn repeats_count_when_both_versions_have_a_duration() {
        let calls = order(3, 15, 3, true, 7);
        let executions = Cell::new(0);
        let (prepared, told) = (RefCell::new(Vec::new()), Cell::new(0));
        let execute = async |role: Role, benchmark: usize| {
            executions.set(executions.get() + 1);
            match (benchmark, role) {
                (0, Role::Second) => Ok(Duration::from_micros(20)),
                // Now and then.
                (1, Role::Second) if executions.get() % 30 == 0 => {
                    Err(Fault::Failed("502".to_owned()))
                }
                (2, Role::First) => Err(Fault::Interrupted),
                _ => Ok(Duration::from_micros(10)),
            }
        };
        let prepare = async |benchmark| prepared.borrow_mut().push(benchmark);
        let all = block_on(run(&calls, 3, prepare, execute, |done| told.set(done)));
        assert_eq!(told.get(), 45);
        assert_eq!(
            (all[0].repeats.len(), all[0].failed, all[0].interrupted),
            (45, 0, 0)
        );
        assert!(
            all[0]
                .pairs()
                .iter()
                .all(|trial| trial.change() == Some(1.0))
        );
        assert!(
            all[0]
                .controls()
                .iter()
                .all(|trial| trial.change() == Some(0.0))
        );
        assert_eq!(all[1].repeats.len(), 45 - all[1].failed);
        assert_eq!(all[1].second_faults, all[1].failed);
        assert_eq!(all[1].error.is_some(), all[1].failed > 0);
        // Given up after ten, in the fourth call.
        assert_eq!((all[2].repeats.len(), all[2].interrupted), (0, FAULTS_MAX));
        let calls_of_2 = prepared.borrow().iter().filter(|one| **one == 2).count();
        assert_eq!(calls_of_2, 4);
    }
}
