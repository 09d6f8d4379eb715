//! The form for a replay on `/lab`.

/// The form, as typed.
#[derive(Debug, Clone)]
pub struct ReplayForm {
    /// The first version, whose function's history is replayed.
    pub first: String,
    /// The second version; empty for the first.
    pub second: String,
    /// Settings of the second that differ, a line each.
    pub settings: String,
    /// What copies may reach.
    pub allow: String,
    /// Where the requests are from: `last` minutes of the history, a `window` of it, or a `trace`.
    pub source: String,
    /// Minutes of the history up to now.
    pub last: String,
    /// Start of the window: date and time in UTC.
    pub from: String,
    /// Its end; empty for now.
    pub to: String,
    /// Lines of a trace of Azure's.
    pub trace: String,
    /// The trace's function; empty for all.
    pub function: String,
    /// Seconds after the trace's beginning.
    pub from_s: String,
    /// Seconds from there on; empty for all.
    pub for_s: String,
    /// Factor by which time is scaled.
    pub speed: String,
    /// What is measured: `run` or `total`.
    pub stage: String,
    /// Confidence of the intervals in per cent.
    pub confidence: String,
}

impl Default for ReplayForm {
    fn default() -> Self {
        Self {
            first: String::new(),
            second: String::new(),
            settings: String::new(),
            allow: String::new(),
            source: "last".to_owned(),
            last: "60".to_owned(),
            from: String::new(),
            to: String::new(),
            trace: String::new(),
            function: String::new(),
            from_s: "0".to_owned(),
            for_s: String::new(),
            speed: "1".to_owned(),
            stage: "run".to_owned(),
            confidence: "99".to_owned(),
        }
    }
}
