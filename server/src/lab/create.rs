//! From a configuration to an experiment.

use hearth_lab::job::{Job, JobError};
use hearth_lab::stellar::experiment::TEXT_MAX;

use super::{ALL_MAX, Lab, LabError, OPEN_MAX, prefix};
use crate::model::{AssignedExperiment, ExperimentDetail};
use crate::store::NewExperiment;

impl Lab {
    /// Creates an experiment, which waits for an agent.
    ///
    /// # Errors
    /// [`LabError::Job`], [`LabError::NoFunction`], [`LabError::Full`], [`LabError::Kept`], [`LabError::Store`].
    pub async fn create(&self, config: &[u8], by: &str) -> Result<ExperimentDetail, LabError> {
        let job = self.read(config).await?;
        let (config, title) = (String::from_utf8_lossy(config), job.title());
        let store = &self.0.store;
        let id = store
            .create_experiment(new(&job, &title, &config, by))
            .await?;
        self.0.bell.notify_one();
        self.get(id).await
    }

    /// Creates an experiment that its creator runs: it is an agent of this one. Returns it, and its title.
    ///
    /// # Errors
    /// As [`Self::create`], and [`LabError::Busy`] while another one runs.
    pub async fn create_taken(
        &self,
        config: &[u8],
        by: &str,
    ) -> Result<(AssignedExperiment, String), LabError> {
        let job = self.read(config).await?;
        let (config, title) = (String::from_utf8_lossy(config), job.title());
        let new = new(&job, &title, &config, by);
        let started = self.0.store.create_started_experiment(new).await?;
        let id = started.ok_or(LabError::Busy)?;
        let assigned = AssignedExperiment {
            id,
            config: serde_json::from_str(&config).unwrap_or_default(),
            prefix: prefix(id),
        };
        Ok((assigned, title))
    }

    /// A configuration that can be run here, if there is room for it.
    async fn read(&self, config: &[u8]) -> Result<Job, LabError> {
        let job = Job::read(config)?;
        for (field, subject) in job.subjects()? {
            if self.0.engine.id_of(&subject.function).is_none() {
                return Err(LabError::NoFunction(field, subject.function));
            }
        }
        match &job {
            Job::Duet(duet) => self.knows_saved(duet).await?,
            Job::Load(load) => {
                let missing = load
                    .chain
                    .as_ref()
                    .filter(|name| self.0.catalog.get(name).is_err());
                if let Some(name) = missing {
                    let rule = format!("there is no chain {name:?}");
                    return Err(JobError::Field("chain", rule).into());
                }
            }
            _ => {}
        }
        self.has_room().await?;
        Ok(job)
    }

    pub(super) async fn has_room(&self) -> Result<(), LabError> {
        let store = &self.0.store;
        if store.open_experiments().await? >= OPEN_MAX {
            return Err(LabError::Full);
        }
        if store.experiments_bytes().await? + TEXT_MAX as u64 > ALL_MAX {
            return Err(LabError::Kept);
        }
        Ok(())
    }
}

fn new<'a>(job: &Job, title: &'a str, config: &'a str, by: &'a str) -> NewExperiment<'a> {
    NewExperiment {
        kind: job.kind(),
        title,
        config,
        created_by: by,
    }
}
