//! The form for a duet on `/lab`.

/// The form, as typed.
#[derive(Debug, Clone)]
pub struct DuetForm {
    /// The first version.
    pub first: String,
    /// The second version; empty for the first.
    pub second: String,
    /// An event; may be empty.
    pub event: String,
    /// Names of saved events, one a line.
    pub saved: String,
    /// Recorded events.
    pub recorded: String,
    /// Calls of each event.
    pub calls: String,
    /// Repeats of each call.
    pub repeats: String,
    /// Invocations of each execution.
    pub invocations: String,
    /// What is measured: `run` or `total`.
    pub stage: String,
    /// Confidence of the intervals in per cent.
    pub confidence: String,
    /// Width of an interval in per cent: the fewest trials are told after which one was no wider.
    pub width: String,
    /// Per cent by which the second version may be slower; empty to ask which one is faster.
    pub threshold: String,
    /// Whether the first version runs twice in each repeat.
    pub control: bool,
}

impl Default for DuetForm {
    fn default() -> Self {
        Self {
            first: String::new(),
            second: String::new(),
            event: "{}".to_owned(),
            saved: String::new(),
            recorded: "0".to_owned(),
            calls: "15".to_owned(),
            repeats: "3".to_owned(),
            invocations: "10".to_owned(),
            stage: "run".to_owned(),
            confidence: "99".to_owned(),
            width: "2".to_owned(),
            threshold: String::new(),
            control: true,
        }
    }
}
