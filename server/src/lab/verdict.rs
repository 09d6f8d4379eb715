//! Decides on versions whose comparison is over, and activates those that have passed.

use hearth_lab::plot::forest::percent;
use jiff::Timestamp;
use serde_json::Value;

use super::{Lab, LabError};
use crate::engine::EngineError;
use crate::model::{ExperimentState, ExperimentView, GateState, Meant, Revision};
use crate::store::{NewAudit, PendingGate};

/// Events whose figures are told.
const TOLD_MAX: usize = 5;
/// Most characters of a reason: a handler's errors may be in it.
const REASON_CHARS: usize = 1_000;

impl Lab {
    /// Looks at all comparisons that are not decided. What cannot be decided now is looked at again.
    pub(super) async fn decide_gates(&self) {
        let pending = match self.0.store.pending_gates().await {
            Ok(pending) => pending,
            Err(error) => return tracing::warn!(%error, "cannot look for comparisons"),
        };
        for gate in pending {
            if let Err(error) = self.look_at(&gate).await {
                tracing::warn!(function = gate.name, %error, "cannot decide on a version");
            }
        }
    }

    async fn look_at(&self, gate: &PendingGate) -> Result<(), LabError> {
        // Whose turn it is may be booting a version, and others wait here for theirs: it is looked at again in some seconds.
        let Some(_turn) = self.0.deciding.try_on(gate.function) else {
            return Ok(());
        };
        if !self.is_pending(gate).await? {
            return Ok(());
        }
        let view = match self.get(gate.experiment).await {
            Ok(found) => found.view,
            Err(LabError::NotFound(_)) => {
                let reason = "its experiment was deleted";
                return self.decide(gate, GateState::NotJudged, reason).await;
            }
            Err(error) => return Err(error),
        };
        if !view.state.is_over() {
            if Timestamp::now() >= gate.deadline {
                let _ = self.cancel(gate.experiment).await;
                let reason = match view.state {
                    ExperimentState::Queued => "no agent ran it in time",
                    _ => "it was not over in time",
                };
                self.decide(gate, GateState::NotJudged, reason).await?;
            }
            return Ok(());
        }
        let (state, reason) = verdict(&view);
        let reason: String = reason.chars().take(REASON_CHARS).collect();
        if state != GateState::Passed {
            return self.decide(gate, state, &reason).await;
        }
        match self.put_in_service(gate).await {
            Ok(()) => self.decide(gate, state, &reason).await,
            // The server ends; the next one goes on here.
            Err(EngineError::ShuttingDown) => Ok(()),
            Err(EngineError::Changed(_)) => {
                let reason = format!("another version became active meanwhile; {reason}");
                self.decide(gate, GateState::NotJudged, &reason).await
            }
            Err(error) => {
                let reason = format!("{reason}; but it does not start: {error}");
                self.decide(gate, GateState::NotJudged, &reason).await
            }
        }
    }

    /// Whether nobody else has decided meanwhile.
    async fn is_pending(&self, gate: &PendingGate) -> Result<bool, LabError> {
        let said = self.0.store.version_gates(gate.function).await?;
        let same = said
            .get(&gate.version)
            .filter(|said| said.experiment == gate.experiment);
        Ok(same.is_some_and(|said| said.state == GateState::Pending))
    }

    /// Activates a version that has passed. Does nothing where that was done before the server was stopped.
    async fn put_in_service(&self, gate: &PendingGate) -> Result<(), EngineError> {
        let engine = &self.0.engine;
        let view = engine.get(&gate.name)?;
        if view.id == gate.function && view.active_version == gate.version {
            return Ok(());
        }
        let meant = Meant::only(Revision::of_function(gate.function, gate.against));
        engine
            .activate(&gate.name, gate.version, meant)
            .await
            .map(drop)
    }

    /// Keeps what was decided, in the audit log, too.
    pub(super) async fn decide(
        &self,
        gate: &PendingGate,
        state: GateState,
        reason: &str,
    ) -> Result<(), LabError> {
        let store = &self.0.store;
        store
            .end_gate(gate.function, gate.version, state, reason)
            .await?;
        let word = match state {
            GateState::Passed => "passed and active",
            GateState::Refused => "refused",
            _ => "not judged",
        };
        let (version, against, experiment) = (gate.version, gate.against, gate.experiment);
        let record = NewAudit {
            actor_kind: gate.actor_kind,
            actor: gate.actor.clone(),
            action: "function.gate",
            target: gate.name.clone(),
            address: String::new(),
            request_id: String::new(),
            detail: format!(
                "version {version}, {word} beside version {against}: {reason} (experiment {experiment})"
            ),
        };
        store.record_audit(&record).await?;
        tracing::info!(function = gate.name, version, state = word, "gate");
        Ok(())
    }
}

/// What an experiment that is over says, with its figures.
fn verdict(view: &ExperimentView) -> (GateState, String) {
    let result = view.result.as_ref().unwrap_or(&Value::Null);
    let decision = result["gate"]["decision"].as_str();
    match (view.state, decision) {
        (ExperimentState::Succeeded, Some("held")) => (GateState::Passed, figures(result)),
        (ExperimentState::FellShort, Some("fell_short")) => {
            let reasons = result["gate"]["reasons"].as_array().into_iter().flatten();
            let reasons: Vec<&str> = reasons.filter_map(Value::as_str).take(TOLD_MAX).collect();
            let figures = figures(result);
            let figures = match figures.is_empty() {
                true => figures,
                false => format!(" ({figures})"),
            };
            (
                GateState::Refused,
                format!("{}{figures}", reasons.join("; ")),
            )
        }
        (ExperimentState::Cancelled, _) => (GateState::NotJudged, "it was cancelled".to_owned()),
        _ => {
            let error = view.error.as_deref();
            let reason = error.unwrap_or("its result has no decision");
            let reason = reason.strip_prefix("not judged: ").unwrap_or(reason);
            (GateState::NotJudged, reason.to_owned())
        }
    }
}

/// The change with each event and its interval.
fn figures(result: &Value) -> String {
    let benchmarks = result["benchmarks"].as_array().into_iter().flatten();
    let told = benchmarks.filter_map(|one| {
        let change = &one["change"];
        let estimate = percent(change["estimate"].as_f64()?);
        let interval = &change["percentile"];
        let (low, high) = (interval["low"].as_f64()?, interval["high"].as_f64()?);
        let title: String = one["title"].as_str()?.chars().take(60).collect();
        Some(format!(
            "{title} {estimate}, {} to {}",
            percent(low),
            percent(high)
        ))
    });
    told.take(TOLD_MAX).collect::<Vec<String>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(state: ExperimentState, error: Option<&str>, result: Value) -> ExperimentView {
        ExperimentView {
            id: 1,
            kind: "duet".into(),
            title: String::new(),
            state,
            cancelling: false,
            error: error.map(str::to_owned),
            progress: None,
            result: Some(result),
            created_by: String::new(),
            created_at: Timestamp::UNIX_EPOCH,
            started_at: None,
            ended_at: None,
        }
    }

    fn result(decision: &str, reasons: &[&str]) -> Value {
        json!({
            "benchmarks": [{"title": "small", "change": {
                "estimate": 0.3, "percentile": {"low": 0.25, "high": 0.35}
            }}, {"title": "left out", "change": null}],
            "gate": {"decision": decision, "reasons": reasons},
        })
    }

    #[test]
    fn an_experiment_decides_with_figures_or_does_not_know() {
        let held = view(ExperimentState::Succeeded, None, result("held", &[]));
        assert_eq!(
            verdict(&held),
            (GateState::Passed, "small +30 %, +25 % to +35 %".to_owned())
        );
        let reasons = &["is slower by +30 % with small"];
        let slower = view(
            ExperimentState::FellShort,
            None,
            result("fell_short", reasons),
        );
        let (state, reason) = verdict(&slower);
        assert_eq!(state, GateState::Refused);
        assert_eq!(
            reason,
            "is slower by +30 % with small (small +30 %, +25 % to +35 %)"
        );
        for (state, error, result, expected) in [
            (
                ExperimentState::Failed,
                Some("not judged: too noisy"),
                result("unknown", &["too noisy"]),
                "too noisy",
            ),
            (
                ExperimentState::Cancelled,
                None,
                Value::Null,
                "it was cancelled",
            ),
            // A result that is not a gate's passes nothing.
            (
                ExperimentState::Succeeded,
                None,
                json!({"benchmarks": []}),
                "its result has no decision",
            ),
            (
                ExperimentState::Succeeded,
                None,
                result("fell_short", &[]),
                "its result has no decision",
            ),
        ] {
            let found = verdict(&view(state, error, result));
            assert_eq!(found, (GateState::NotJudged, expected.to_owned()));
        }
    }
}
