//! The forms on `/lab`.

use super::lab_duet::DuetForm;
use super::lab_load::LoadForm;
use super::lab_replay::ReplayForm;
use super::lab_suite::SuiteForm;

/// The forms, as typed.
#[derive(Debug, Clone)]
pub struct LabForm {
    /// Which one was sent: `load`, `tail`, `overhead`, `duet`, `replay`, `suite`, `stellar`; empty at first.
    pub kind: String,
    /// Samples of each factor.
    pub samples: String,
    /// Names of the factors that are chosen.
    pub factors: Vec<String>,
    /// Warm samples of an overhead study.
    pub overhead_samples: String,
    /// Its cold samples.
    pub cold: String,
    /// Names of its workloads that are chosen.
    pub workloads: Vec<String>,
    /// Names of its runtimes that are chosen.
    pub runtimes: Vec<String>,
    /// A load's.
    pub load: LoadForm,
    /// A duet's.
    pub duet: DuetForm,
    /// A replay's.
    pub replay: ReplayForm,
    /// A suite's.
    pub suite: SuiteForm,
    /// An experiment in STeLLAR's format.
    pub config: String,
}

impl Default for LabForm {
    fn default() -> Self {
        Self {
            kind: String::new(),
            samples: "200".to_owned(),
            factors: Vec::new(),
            overhead_samples: "200".to_owned(),
            cold: "0".to_owned(),
            workloads: Vec::new(),
            runtimes: Vec::new(),
            load: LoadForm::default(),
            duet: DuetForm::default(),
            replay: ReplayForm::default(),
            suite: SuiteForm::default(),
            config: STELLAR.to_owned(),
        }
    }
}

/// What the form for STeLLAR's format begins with.
const STELLAR: &str = r#"{
  "Sequential": true,
  "SubExperiments": [
    {"Title": "warm", "Bursts": 60, "BurstSizes": [1], "IATType": "deterministic", "IATSeconds": 1}
  ]
}"#;
