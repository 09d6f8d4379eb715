//! What a suite's report says beside a duet's.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::tool::Tool;

/// How a suite was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    /// The tool.
    pub tool: Tool,
    /// Benchmarks that only the first version has.
    pub only_first: Vec<String>,
    /// Benchmarks that only the second version has.
    pub only_second: Vec<String>,
    /// Calls at a time.
    pub parallel: usize,
    /// Processors of the server's host.
    pub processors: usize,
    /// Those that executions were pinned to. Empty where they could not be pinned.
    pub pinned_to: BTreeSet<usize>,
    /// After so many seconds an execution is interrupted.
    pub limit_s: f64,
    /// Seconds that the tool was asked to measure for.
    pub time_s: f64,
    /// Memory of an instance in MB.
    pub memory_mb: u32,
    /// Seconds from the first call to the end of the last.
    pub wall_s: f64,
    /// Seconds of iterations that tools have measured, all executions together.
    pub measured_s: f64,
    /// Seconds for which the executions' processes ran, all together.
    pub executions_s: f64,
    /// `wall_s` over `measured_s`. None without a result.
    pub ratio: Option<f64>,
}

impl Suite {
    /// What it says, line by line.
    pub fn lines(&self) -> Vec<String> {
        let only = [("first", &self.only_first), ("second", &self.only_second)];
        let only = only.into_iter().flat_map(|(version, names)| {
            names
                .iter()
                .map(move |name| format!("{name}: only the {version} version has it"))
        });
        let mut lines: Vec<String> = only.collect();
        let pinned: Vec<String> = self.pinned_to.iter().map(ToString::to_string).collect();
        let pinned = match pinned.as_slice() {
            [] => "not pinned".to_owned(),
            all => format!("each pinned to one processor (number {})", all.join(", ")),
        };
        lines.push(format!(
            "{}: {} at a time on {} processors, {pinned}",
            self.tool.name(),
            self.parallel,
            self.processors,
        ));
        lines.extend(self.ratio.map(|ratio| {
            let (wall, measured) = (self.wall_s, self.measured_s);
            format!("took {wall:.1} s for {measured:.1} s of benchmark time: {ratio:.2} x")
        }));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_says_what_was_pinned_and_what_it_took() {
        let suite = Suite {
            tool: Tool::Go,
            only_first: vec!["BenchmarkOld".to_owned()],
            only_second: vec!["BenchmarkNew".to_owned()],
            parallel: 2,
            processors: 4,
            pinned_to: BTreeSet::from([2, 3]),
            limit_s: 20.0,
            time_s: 1.0,
            memory_mb: 2048,
            wall_s: 110.0,
            measured_s: 100.0,
            executions_s: 105.0,
            ratio: Some(1.1),
        };
        let expected = [
            "BenchmarkOld: only the first version has it",
            "BenchmarkNew: only the second version has it",
            "go: 2 at a time on 4 processors, each pinned to one processor (number 2, 3)",
            "took 110.0 s for 100.0 s of benchmark time: 1.10 x",
        ];
        assert_eq!(suite.lines(), expected);
        let text = serde_json::to_string(&suite).expect("JSON");
        assert_eq!(serde_json::from_str::<Suite>(&text).expect("JSON"), suite);
        let unpinned = Suite {
            pinned_to: BTreeSet::new(),
            ratio: None,
            ..suite
        };
        assert!(unpinned.lines()[2].ends_with("not pinned"));
        assert_eq!(unpinned.lines().len(), 3);
    }
}
