//! Gates: new versions of a function that has one are stored, compared with the active one by an experiment, and activated if they are
//! not slower.
//!
//! ```text
//! deploy, activate ──▶ Pending ──▶ Passed: active
//!                        │  │ override by an admin
//!                        │  ▼
//!                        │ Overridden: active
//!                        ▼
//!                      Refused (slower, or fails), NotJudged (noise, no agent in time, cancelled, overtaken)
//! ```
//!
//! `verdict.rs` decides. What a version's state says is what the store has: a restart loses nothing.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Lab, LabError};
use crate::engine::EngineError;
use crate::model::{
    ActorKind, Caller, Code, FunctionPatch, FunctionView, Gate, GateState, Meant, VersionGate,
    VersionView,
};
use crate::store::PendingGate;

/// What became of a version that is to be active.
#[derive(Debug)]
pub enum Deployed {
    /// It is.
    Active {
        /// The function with it.
        function: Box<FunctionView>,
        /// What the gate said of it, which an admin has overridden.
        overridden: Option<String>,
    },
    /// It is being compared.
    Gated(Box<VersionView>),
}

impl Deployed {
    fn active(function: FunctionView) -> Self {
        Self::Active {
            function: Box::new(function),
            overridden: None,
        }
    }
}

impl Lab {
    /// Changes a function as [`crate::engine::Engine::update`] does, unless it has a gate that the new version must pass first. It comes to
    /// its end whether or not it is waited for.
    ///
    /// # Errors
    /// [`LabError`]; the active version stays.
    pub async fn deploy(
        &self,
        name: &str,
        patch: FunctionPatch,
        code: Option<Code>,
        meant: Meant,
        by: &Caller,
    ) -> Result<Deployed, LabError> {
        let (lab, name, by) = (self.clone(), name.to_owned(), by.clone());
        to_its_end(async move { lab.deploy_now(&name, patch, code, meant, &by).await }).await
    }

    async fn deploy_now(
        &self,
        name: &str,
        patch: FunctionPatch,
        code: Option<Code>,
        meant: Meant,
        by: &Caller,
    ) -> Result<Deployed, LabError> {
        let engine = &self.0.engine;
        let is_gated = code.is_some() || engine.changes_work(name, &patch)?;
        let function = self.function_id(name)?;
        // Those without a gate wait for nobody; the others in the order of their versions.
        let _turn = match is_gated && self.gate(name).await?.is_some() {
            true => Some(self.0.deciding.on(function).await),
            false => None,
        };
        let gate = self.gate(name).await?;
        let Some(gate) = gate.filter(|_| is_gated) else {
            let view = engine.update(name, patch, code, meant).await?;
            return Ok(Deployed::active(view));
        };
        // Before anything is stored.
        self.has_room().await?;
        let events = self.saved_events(function, &gate).await?;
        let version = engine.add_version(name, patch, code, meant).await?;
        self.compare(name, version.version, &gate, events, by).await
    }

    /// Activates a version, unless the function's gate must be passed first: by one that was never active, and has not passed it beside
    /// the version that is active now. It comes to its end whether or not it is waited for.
    ///
    /// # Errors
    /// [`LabError`]; the active version stays.
    pub async fn activate(
        &self,
        name: &str,
        version: u32,
        meant: Meant,
        by: &Caller,
        overrides: bool,
    ) -> Result<Deployed, LabError> {
        let (lab, name, by) = (self.clone(), name.to_owned(), by.clone());
        to_its_end(async move {
            lab.activate_now(&name, version, meant, &by, overrides)
                .await
        })
        .await
    }

    async fn activate_now(
        &self,
        name: &str,
        version: u32,
        meant: Meant,
        by: &Caller,
        overrides: bool,
    ) -> Result<Deployed, LabError> {
        let (engine, store) = (&self.0.engine, &self.0.store);
        let function = self.function_id(name)?;
        let Some(gate) = store.gate(function).await? else {
            return Ok(Deployed::active(
                engine.activate(name, version, meant).await?,
            ));
        };
        let _turn = self.0.deciding.on(function).await;
        let said = store.version_gates(function).await?.remove(&version);
        let view = engine.get(name)?;
        let passed = said.as_ref().is_some_and(|said| {
            said.state == GateState::Passed && said.against == view.active_version
        });
        let is_free =
            passed || view.active_version == version || store.was_active(function, version).await?;
        if is_free {
            return Ok(Deployed::active(
                engine.activate(name, version, meant).await?,
            ));
        }
        if overrides {
            let view = Box::new(engine.activate(name, version, meant).await?);
            let overridden = self.note_override(function, version, said).await?;
            return Ok(Deployed::Active {
                function: view,
                overridden: Some(overridden),
            });
        }
        meant.check(view.revision()).map_err(EngineError::from)?;
        // Fails for a version that is not there.
        let gated = self.gated(name, version).await?;
        let is_pending = said.is_some_and(|said| {
            said.state == GateState::Pending && said.against == view.active_version
        });
        if is_pending {
            return Ok(gated);
        }
        self.has_room().await?;
        let events = self.saved_events(function, &gate).await?;
        self.compare(name, version, &gate, events, by).await
    }

    /// Keeps that an admin has activated a version all the same. Returns what the gate had said. It is the caller's turn.
    async fn note_override(
        &self,
        function: i64,
        version: u32,
        said: Option<VersionGate>,
    ) -> Result<String, LabError> {
        let Some(said) = said else {
            return Ok("it had not been compared".to_owned());
        };
        let words = match said.state {
            GateState::Pending => {
                let _ = self.cancel(said.experiment).await;
                format!("experiment {} was not over", said.experiment)
            }
            _ => {
                let reason = said.reason.unwrap_or_default();
                format!("{reason} (experiment {})", said.experiment)
            }
        };
        let store = &self.0.store;
        store
            .end_gate(function, version, GateState::Overridden, &words)
            .await?;
        Ok(words)
    }

    /// Has a version that is stored compared with the active one, with these saved events. It is the caller's turn.
    async fn compare(
        &self,
        name: &str,
        version: u32,
        gate: &Gate,
        events: Vec<(String, Value)>,
        by: &Caller,
    ) -> Result<Deployed, LabError> {
        let view = self.0.engine.get(name)?;
        let against = view.active_version;
        if against == version {
            return Ok(Deployed::active(view));
        }
        let (names, events): (Vec<String>, Vec<Value>) = events.into_iter().unzip();
        let config = json!({
            "kind": "duet",
            "first": format!("{name}@{against}"),
            "second": format!("{name}@{version}"),
            "events": events,
            "names": names,
            "recorded": gate.recorded,
            "confidence": gate.confidence_percent / 100.0,
            "threshold": gate.threshold_percent / 100.0,
        });
        let made = self.create(config.to_string().as_bytes(), by.name()).await;
        let experiment = made?.view.id;
        // Not before there is room for this one.
        self.overtake(view.id, version).await?;
        let within = Duration::from_secs(gate.within_s.into());
        let deadline = Timestamp::now().checked_add(within);
        let pending = PendingGate {
            function: view.id,
            name: name.to_owned(),
            version,
            against,
            experiment,
            actor_kind: match by {
                Caller::User(_) => ActorKind::User,
                Caller::Token(_) => ActorKind::Token,
            },
            actor: by.name().to_owned(),
            deadline: deadline.unwrap_or(Timestamp::MAX),
        };
        self.0.store.begin_gate(&pending).await?;
        tracing::info!(
            function = name,
            version,
            experiment,
            "compared before it is active"
        );
        self.gated(name, version).await
    }

    async fn gated(&self, name: &str, version: u32) -> Result<Deployed, LabError> {
        let versions = self.0.engine.versions(name).await?;
        let found = versions.into_iter().find(|one| one.version == version);
        let missing = || EngineError::NotFound(format!("version {version} of function \"{name}\""));
        Ok(Deployed::Gated(Box::new(found.ok_or_else(missing)?)))
    }

    /// Gives up a function's comparisons, of which only the newest counts, and that one is not begun yet. It is the caller's turn.
    async fn overtake(&self, function: i64, version: u32) -> Result<(), LabError> {
        let pending = self.0.store.pending_gates().await?;
        for other in pending.iter().filter(|other| other.function == function) {
            let _ = self.cancel(other.experiment).await;
            let reason = match other.version == version {
                true => "another version became active meanwhile".to_owned(),
                false => format!("version {version} is to become active instead"),
            };
            self.decide(other, GateState::NotJudged, &reason).await?;
        }
        Ok(())
    }
}

/// Runs a change on a task of its own: whoever asked for it may be gone before it is kept that it was done.
async fn to_its_end(
    change: impl Future<Output = Result<Deployed, LabError>> + Send + 'static,
) -> Result<Deployed, LabError> {
    let done = tokio::spawn(change).await;
    done.map_err(|error| EngineError::Internal(error.to_string()))?
}
