//! The forms on `/lab`.

use super::lab_load::LoadForm;
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
    /// The first version.
    pub first: String,
    /// The second version.
    pub second: String,
    /// Recorded events.
    pub recorded: String,
    /// Calls of each event.
    pub calls: String,
    /// An event.
    pub event: String,
    /// Names of saved events, one a line.
    pub saved: String,
    /// Minutes of the history that are replayed.
    pub last: String,
    /// Factor by which time is scaled.
    pub speed: String,
    /// Settings of the second that differ, a line each.
    pub settings: String,
    /// What copies of a replay may reach.
    pub allow: String,
    /// A load's.
    pub load: LoadForm,
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
            first: String::new(),
            second: String::new(),
            recorded: "0".to_owned(),
            calls: "15".to_owned(),
            event: "{}".to_owned(),
            saved: String::new(),
            last: "60".to_owned(),
            speed: "1".to_owned(),
            settings: String::new(),
            allow: String::new(),
            load: LoadForm::default(),
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
