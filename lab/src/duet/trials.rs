//! Carries the order out and keeps what counts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::order::{Role, Round};
use super::unit::Unit;
use crate::load::Sketch;
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
    /// Results of both versions.
    pub fn pairs(&self, unit: Unit) -> Vec<Trial> {
        unit.of(self.repeats.iter().map(|repeat| {
            let trial = Trial {
                first: repeat.first_ns,
                second: repeat.second_ns,
            };
            (repeat.call, trial)
        }))
    }

    /// Results of the first version and itself.
    pub fn controls(&self, unit: Unit) -> Vec<Trial> {
        unit.of(self.repeats.iter().filter_map(|repeat| {
            let trial = Trial {
                first: repeat.first_ns,
                second: repeat.control_ns?,
            };
            Some((repeat.call, trial))
        }))
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

/// Who runs what, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Number of the round.
    pub round: usize,
    /// Number of the benchmark.
    pub benchmark: usize,
    /// Which version.
    pub role: Role,
    /// Whether nobody has run in this round before.
    pub is_new: bool,
}

/// Runs all rounds, of which so many make a call. `prepare` comes before each turn of a trial, `execute` gives its duration, and `tell`
/// gets the trials that are over, with the durations so far. A trial counts only if each of its executions has a duration.
pub async fn run<P, E>(
    rounds: &[Round],
    repeats: usize,
    prepare: P,
    execute: E,
    tell: impl Fn(usize, &Sketch),
) -> Vec<Trials>
where
    P: AsyncFn(Turn),
    E: AsyncFn(Turn) -> Result<Duration, Fault>,
{
    let benchmarks = rounds.first().map_or(0, Vec::len);
    let mut all = vec![Trials::default(); benchmarks];
    let mut durations = Sketch::default();
    for (round, its) in rounds.iter().enumerate() {
        let mut is_new = true;
        for (done, (benchmark, order)) in its.iter().enumerate() {
            tell(round * benchmarks + done, &durations);
            let trials = &mut all[*benchmark];
            if trials.is_given_up() {
                continue;
            }
            let turn = |role: &Role| Turn {
                round,
                benchmark: *benchmark,
                role: *role,
                is_new,
            };
            for role in order {
                prepare(turn(role)).await;
            }
            let [mut first_ns, mut second_ns, mut control_ns] = [None; 3];
            for role in order {
                let ns = match execute(turn(role)).await {
                    Ok(duration) => {
                        durations.note(duration.as_nanos() as u64);
                        Some(duration.as_nanos() as f64)
                    }
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
            is_new = false;
            if let (Some(first_ns), Some(second_ns), true) = (first_ns, second_ns, is_controlled) {
                trials.repeats.push(Repeat {
                    call: round / repeats,
                    repeat: round % repeats,
                    order: order.clone(),
                    first_ns,
                    second_ns,
                    control_ns,
                });
            }
        }
    }
    tell(rounds.len() * benchmarks, &durations);
    all
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::super::order::rounds;
    use super::*;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(work)
    }

    #[test]
    fn repeats_count_when_both_versions_have_a_duration() {
        let rounds = rounds(3, 45, true, 7);
        let executions = Cell::new(0_usize);
        let (prepared, told) = (RefCell::new(Vec::new()), Cell::new((0, 0)));
        let execute = async |turn: Turn| {
            executions.set(executions.get() + 1);
            match (turn.benchmark, turn.role) {
                (0, Role::Second) => Ok(Duration::from_micros(20)),
                // Now and then.
                (1, Role::Second) if executions.get().is_multiple_of(30) => {
                    Err(Fault::Failed("502".to_owned()))
                }
                (2, Role::First) => Err(Fault::Interrupted),
                _ => Ok(Duration::from_micros(10)),
            }
        };
        let prepare = async |turn| prepared.borrow_mut().push(turn);
        let tell = |done, durations: &Sketch| told.set((done, durations.count()));
        let all = block_on(run(&rounds, 3, prepare, execute, tell));
        // Each execution that has a duration, whether its trial counts or not.
        let faults: usize = all.iter().map(Trials::faults).sum();
        assert_eq!(told.get(), (135, (executions.get() - faults) as u64));
        let last = all[0].repeats.last().expect("trials");
        assert_eq!((last.call, last.repeat), (14, 2));
        assert_eq!(
            (all[0].repeats.len(), all[0].failed, all[0].interrupted),
            (45, 0, 0)
        );
        assert!(
            all[0]
                .pairs(Unit::Trial)
                .iter()
                .all(|trial| trial.change() == Some(1.0))
        );
        assert!(
            all[0]
                .controls(Unit::Trial)
                .iter()
                .all(|trial| trial.change() == Some(0.0))
        );
        assert_eq!(all[1].repeats.len(), 45 - all[1].failed);
        assert_eq!(all[1].second_faults, all[1].failed);
        assert_eq!(all[1].error.is_some(), all[1].failed > 0);
        // Given up after ten rounds.
        assert_eq!((all[2].repeats.len(), all[2].interrupted), (0, FAULTS_MAX));
        let prepared = prepared.borrow();
        let turns_of_2 = prepared.iter().filter(|turn| turn.benchmark == 2).count();
        assert_eq!(turns_of_2, 3 * FAULTS_MAX);
    }
}
