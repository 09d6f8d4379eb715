//! A function's gate: what is set, and the saved events that it, or a duet, names.

use hearth_lab::job::JobError;
use hearth_lab::job::duet::Duet;
use serde_json::Value;

use super::{Lab, LabError};
use crate::engine::EngineError;
use crate::model::{Gate, InvalidField};

/// Most bytes of all events that a gate compares with: as an experiment's configuration may have.
const EVENTS_MAX: usize = 1 << 20;

impl Lab {
    pub(super) fn function_id(&self, name: &str) -> Result<i64, EngineError> {
        let id = self.0.engine.id_of(name);
        id.ok_or_else(|| EngineError::NotFound(format!("function \"{name}\"")))
    }

    /// A function's gate.
    ///
    /// # Errors
    /// [`LabError::Engine`] when there is no such function, [`LabError::Store`].
    pub async fn gate(&self, name: &str) -> Result<Option<Gate>, LabError> {
        Ok(self.0.store.gate(self.function_id(name)?).await?)
    }

    /// Sets a function's gate, or takes it away. Returns whether there was anything to change.
    ///
    /// # Errors
    /// [`LabError::Engine`] when there is no such function, or a field breaks its rule; [`LabError::Store`].
    pub async fn set_gate(&self, name: &str, gate: Option<Gate>) -> Result<bool, LabError> {
        let function = self.function_id(name)?;
        if let Some(gate) = &gate {
            gate.check().map_err(EngineError::from)?;
            self.saved_events(function, gate).await?;
        }
        Ok(self.0.store.set_gate(function, gate.as_ref()).await?)
    }

    /// Fails unless a duet's saved events are there.
    pub(super) async fn knows_saved(&self, duet: &Duet) -> Result<(), LabError> {
        if duet.saved.is_empty() {
            return Ok(());
        }
        let [(_, first), _] = duet.subjects()?;
        let function = self.function_id(&first.function)?;
        let there = self.0.store.saved_events(function).await?;
        let is_missing = |name: &&String| there.iter().all(|event| event.name != **name);
        match duet.saved.iter().find(is_missing) {
            None => Ok(()),
            Some(name) => {
                let shown: String = name.chars().take(100).collect();
                let rule = format!("there is no saved event {shown:?} of {}", first.function);
                Err(JobError::Field("saved", rule).into())
            }
        }
    }

    /// The saved events that a gate names, each with its name; all of them if it names none.
    pub(super) async fn saved_events(
        &self,
        function: i64,
        gate: &Gate,
    ) -> Result<Vec<(String, Value)>, LabError> {
        let store = &self.0.store;
        let saved = store.saved_events(function).await?;
        if let Some(missing) = gate
            .events
            .iter()
            .find(|name| saved.iter().all(|event| event.name != **name))
        {
            return Err(EngineError::from(InvalidField {
                field: "events".to_owned(),
                value: Value::from(missing.chars().take(100).collect::<String>()).to_string(),
                rule: "must be names of saved events of the function".to_owned(),
            })
            .into());
        }
        let (mut events, mut bytes) = (Vec::new(), 0);
        for event in saved {
            if !gate.events.is_empty() && !gate.events.contains(&event.name) {
                continue;
            }
            let Some(text) = store.saved_event(function, event.id).await? else {
                continue;
            };
            bytes += text.len();
            if bytes > EVENTS_MAX {
                return Err(EngineError::from(InvalidField {
                    field: "events".to_owned(),
                    value: Value::from(gate.events.as_slice()).to_string(),
                    rule: format!(
                        "must be saved events of {EVENTS_MAX} bytes together, at most; without names these are all of the function's"
                    ),
                })
                .into());
            }
            if let Ok(value) = serde_json::from_str(&text) {
                events.push((event.name, value));
            }
        }
        Ok(events)
    }
}
