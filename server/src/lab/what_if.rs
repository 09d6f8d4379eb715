//! What if: recorded calls run through other settings of the scheduler.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::OwnedMutexGuard;

use super::{Lab, LabError};
use crate::engine::EngineError;
use crate::history::History;
use crate::model::{
    InvalidField, InvocationFilter, InvocationRecord, StartKind, WhatIf, WhatIfCurve, WhatIfPoint,
};
use crate::scheduler::pool::Limits;
use crate::scheduler::simulation::{Call, simulate};

/// Most calls that are simulated.
const CALLS_MAX: usize = 50_000;
/// Calls of a page of the history.
const PAGE: u32 = 1_000;
/// Most settings: each is a simulation, of some milliseconds to a second.
const SETTINGS_MAX: usize = 120;

/// Longest wait for the simulations of others.
const TURN: Duration = Duration::from_secs(20);

/// Idle timeouts of a curve, in seconds, unless others are asked for.
const IDLE_TIMEOUTS: [u32; 10] = [1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600];
/// Instances that are kept, likewise.
const MIN_INSTANCES: [u32; 3] = [0, 1, 2];

/// Whose calls are simulated: a processor is enough for that, whoever asks how often.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns(Arc<tokio::sync::Mutex<()>>);

impl Turns {
    /// Waits for its turn, which lasts until the guard is dropped, but no longer than `within`.
    async fn take(&self, within: Duration) -> Result<OwnedMutexGuard<()>, LabError> {
        let turn = tokio::time::timeout(within, self.0.clone().lock_owned());
        turn.await.map_err(|_| LabError::Simulating)
    }
}

/// Which settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WhatIfAsked {
    /// How far back.
    pub window: Duration,
    /// Idle timeouts in seconds; some that make a curve without any.
    pub idle_timeouts: Vec<u32>,
    /// Instances that are kept; 0, 1 and 2 without any.
    pub min_instances: Vec<u32>,
    /// Most instances; as now without any.
    pub max_concurrency: Vec<u32>,
    /// Memory that all instances share, in MiB; no limit without any.
    pub memory_mib: Vec<u32>,
}

impl Lab {
    /// Runs a function's calls of a window through other settings. None if it has none.
    ///
    /// # Errors
    /// [`LabError::Engine`] when there is no such function, or too much is asked for; [`LabError::Simulating`] when others' take
    /// too long; [`LabError::Store`].
    pub async fn what_if(
        &self,
        history: &History,
        name: &str,
        mut asked: WhatIfAsked,
    ) -> Result<Option<WhatIf>, LabError> {
        let function = self.function_id(name)?;
        let scheduled = self.0.engine.scheduled(name)?;
        let or = |list: &mut Vec<u32>, others: &[u32]| {
            list.sort_unstable();
            list.dedup();
            if list.is_empty() {
                list.extend(others);
            }
        };
        or(&mut asked.idle_timeouts, &IDLE_TIMEOUTS);
        or(&mut asked.min_instances, &MIN_INSTANCES);
        or(&mut asked.max_concurrency, &[scheduled.limits.max]);
        or(&mut asked.memory_mib, &[]);
        let curves =
            asked.min_instances.len() * asked.max_concurrency.len() * asked.memory_mib.len().max(1);
        let settings = curves * asked.idle_timeouts.len();
        if settings > SETTINGS_MAX {
            return Err(EngineError::from(InvalidField {
                field: "idle_timeout_s".to_owned(),
                value: settings.to_string(),
                rule: format!("at most {SETTINGS_MAX} settings: timeouts, times all others"),
            })
            .into());
        }
        // Also when the client is gone: what has begun goes on to its end.
        let one = self.0.simulating.take(TURN).await?;
        let to = Timestamp::now();
        let from = to.checked_sub(asked.window).unwrap_or(Timestamp::MIN);
        let records = recorded(history, function, from).await?;
        let Some(first) = records.first() else {
            return Ok(None);
        };
        let from = first.received_at;
        let workload = Workload::of(&records, from, to, &scheduled);
        let name = name.to_owned();
        // Of the processor, for seconds.
        let simulated = tokio::task::spawn_blocking(move || {
            let _one = one;
            WhatIf {
                function: name,
                from,
                to,
                calls: workload.calls.len() as u64,
                recorded_cold: workload.cold,
                start_ms: workload.start.as_secs_f64() * 1e3,
                instance_mib: workload.instance_mib,
                today: workload.today(scheduled.limits),
                curves: workload.curves(scheduled.limits, &asked),
            }
        });
        let simulated = simulated
            .await
            .map_err(|error| EngineError::Internal(error.to_string()))?;
        Ok(Some(simulated))
    }
}

/// The newest calls that had an instance, oldest first.
async fn recorded(
    history: &History,
    function: i64,
    from: Timestamp,
) -> Result<Vec<InvocationRecord>, LabError> {
    let mut found = Vec::new();
    let mut before: Option<String> = None;
    'pages: loop {
        let filter = InvocationFilter::default();
        let page = history
            .list(function, &filter, before.as_deref(), PAGE)
            .await?;
        let Some(page) = page else {
            break;
        };
        for record in page.items {
            if record.received_at < from || found.len() >= CALLS_MAX {
                break 'pages;
            }
            if record.start.is_some() {
                found.push(record);
            }
        }
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    found.sort_by_key(|record| record.received_at);
    Ok(found)
}

/// Calls and what the simulation needs beside them.
struct Workload {
    calls: Vec<Call>,
    cold: u64,
    start: Duration,
    instance_mib: f64,
    end: Duration,
}

impl Workload {
    fn of(
        records: &[InvocationRecord],
        from: Timestamp,
        to: Timestamp,
        scheduled: &crate::engine::Scheduled,
    ) -> Self {
        let micros = Duration::from_micros;
        let since =
            |time: Timestamp| Duration::try_from(time.duration_since(from)).unwrap_or_default();
        let calls = records.iter().map(|record| {
            let stages = &record.stages_us;
            Call {
                at: since(record.received_at),
                took: micros(stages.total.saturating_sub(stages.queue + stages.start)),
            }
        });
        let is_cold = |record: &&InvocationRecord| record.start != Some(StartKind::Warm);
        let mut starts: Vec<u64> = records
            .iter()
            .filter(is_cold)
            .map(|record| record.stages_us.start)
            .collect();
        starts.sort_unstable();
        Self {
            calls: calls.collect(),
            cold: starts.len() as u64,
            start: match starts.get(starts.len() / 2) {
                Some(median) => micros(*median),
                None => scheduled.start_cost,
            },
            instance_mib: scheduled.instance_bytes as f64 / f64::from(1 << 20),
            end: since(to),
        }
    }

    fn point(&self, limits: Limits) -> WhatIfPoint {
        let found = simulate(&self.calls, limits, self.start, self.end);
        let seconds = self.end.as_secs_f64().max(f64::MIN_POSITIVE);
        WhatIfPoint {
            idle_timeout_s: u32::try_from(limits.idle_timeout.as_secs()).unwrap_or(u32::MAX),
            cold: found.cold,
            cold_share: found.cold as f64 / self.calls.len().max(1) as f64,
            queued: found.queued,
            refused: found.refused,
            memory_mib: found.instance_seconds / seconds * self.instance_mib,
            most_instances: found.most,
        }
    }

    fn today(&self, limits: Limits) -> WhatIfCurve {
        WhatIfCurve {
            min_instances: limits.min,
            max_concurrency: limits.max,
            memory_mib: None,
            points: vec![self.point(limits)],
        }
    }

    fn curves(&self, now: Limits, asked: &WhatIfAsked) -> Vec<WhatIfCurve> {
        let mut budgets: Vec<Option<u32>> = asked.memory_mib.iter().copied().map(Some).collect();
        if budgets.is_empty() {
            budgets.push(None);
        }
        let mut curves = Vec::new();
        for &memory_mib in &budgets {
            for &max_concurrency in &asked.max_concurrency {
                // One at least: a function without an instance answers nothing.
                let fit = memory_mib.map_or(u32::MAX, |mib| {
                    (f64::from(mib) / self.instance_mib).max(1.0) as u32
                });
                let most = max_concurrency.min(fit);
                for &min_instances in &asked.min_instances {
                    let limits = Limits {
                        min: min_instances.min(most),
                        ..now.with_max(most)
                    };
                    let point = |seconds: &u32| {
                        self.point(Limits {
                            idle_timeout: Duration::from_secs(u64::from(*seconds)),
                            ..limits
                        })
                    };
                    curves.push(WhatIfCurve {
                        min_instances,
                        max_concurrency,
                        memory_mib,
                        points: asked.idle_timeouts.iter().map(point).collect(),
                    });
                }
            }
        }
        curves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_too_long_for_the_simulations_of_others_is_sent_away() {
        let turns = Turns::default();
        let first = turns.take(TURN).await.expect("nobody simulates");
        let refused = turns.take(Duration::from_millis(1)).await;
        let refused = refused.expect_err("the first goes on");
        assert!(matches!(refused, LabError::Simulating), "{refused}");
        let ends = async { drop(first) };
        let (second, ()) = tokio::join!(turns.take(TURN), ends);
        let _second = second.expect("the first has ended meanwhile");
        let refused = turns.take(Duration::from_millis(1)).await;
        assert!(refused.is_err(), "the second goes on");
    }
}
