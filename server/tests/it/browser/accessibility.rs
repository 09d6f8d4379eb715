//! axe-core on the page that is open.
//!
//! axe-core is a tool of the tests only: `npm ci` brings it at the version in the lock file.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::driver::Browser;

/// Findings that must not be there. What axe-core calls moderate or minor is for a person to weigh.
const BLOCKING: [&str; 2] = ["serious", "critical"];

/// Runs every rule of WCAG 2.2 A and AA and axe-core's good practices.
const RUN: &str = "const done = arguments[arguments.length - 1]; \
    axe.run(document, { resultTypes: ['violations'] }).then((result) => done(result.violations), (error) => done(String(error)));";

impl Browser {
    /// Fails with a readable list when axe-core finds something serious or critical on the open page. `page` names it.
    pub async fn check_accessibility(&self, page: &str) {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../node_modules/axe-core/axe.min.js");
        let axe = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}; run `npm ci`", file.display()));
        self.client
            .execute(&axe, vec![])
            .await
            .expect("axe-core is a script");
        let found = self
            .client
            .execute_async(RUN, vec![])
            .await
            .expect("axe-core runs");
        let violations = found
            .as_array()
            .unwrap_or_else(|| panic!("{page}: axe-core failed: {found}"));
        let mut report = String::new();
        for violation in violations {
            if BLOCKING.contains(&violation["impact"].as_str().unwrap_or_default()) {
                describe(violation, &mut report);
            }
        }
        assert!(report.is_empty(), "{page} is not accessible:\n{report}");
    }
}

/// `color-contrast (serious): what it is`, and the elements it is about with what is wrong there.
fn describe(violation: &Value, report: &mut String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Writing to a String cannot fail.
    let _ = writeln!(
        report,
        "- {} ({}): {}",
        text(&violation["id"]),
        text(&violation["impact"]),
        text(&violation["help"])
    );
    for node in violation["nodes"].as_array().into_iter().flatten() {
        let _ = writeln!(report, "    at {}", node["target"]);
        let _ = writeln!(report, "      {}", text(&node["html"]));
        for line in text(&node["failureSummary"]).lines() {
            let _ = writeln!(report, "      {line}");
        }
    }
}
