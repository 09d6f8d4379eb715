//! The form for a suite on `/lab`.

/// The form, as typed.
#[derive(Debug, Clone)]
pub struct SuiteForm {
    /// The tool.
    pub tool: String,
    /// The first version's directory.
    pub first: String,
    /// The second version's; empty for the first.
    pub second: String,
    /// Where benchmarks are, one a line; all without any.
    pub paths: String,
    /// Text in the name of all benchmarks that run; empty for all.
    pub only: String,
    /// Calls of each benchmark.
    pub calls: String,
    /// Repeats of each call.
    pub repeats: String,
    /// Calls at a time; empty for half of the processors.
    pub parallel: String,
    /// Seconds that the tool measures for.
    pub time: String,
    /// Seconds after which an execution is interrupted.
    pub limit: String,
    /// Memory of an instance in MB.
    pub memory: String,
    /// Whether the first version runs twice in each repeat.
    pub control: bool,
    /// Whether Go's packages that need a C compiler are compiled.
    pub cgo: bool,
}

impl Default for SuiteForm {
    fn default() -> Self {
        Self {
            tool: "go".to_owned(),
            first: String::new(),
            second: String::new(),
            paths: String::new(),
            only: String::new(),
            calls: "15".to_owned(),
            repeats: "3".to_owned(),
            parallel: String::new(),
            time: "1".to_owned(),
            limit: "20".to_owned(),
            memory: "2048".to_owned(),
            control: true,
            cgo: false,
        }
    }
}
