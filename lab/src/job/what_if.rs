//! The configuration of a what-if: a function's recorded calls, run through other settings of the scheduler. The server simulates, and
//! nothing is sent to the function.

use std::fs;
use std::path::Path;

use hyper::Method;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::compare::was_cancelled;
use super::run::{JobRunError, Outcome, Runner};
use super::spec::JobError;
use crate::duet::Subject;
use crate::plot::curve::{self, name_of};
use crate::plot::format::number;
use crate::run::{RunError, result};
use crate::stellar::files::create_directory;
use crate::table::render::columns;

/// Which settings. Where a list is empty, the server chooses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WhatIf {
    /// `whatif`.
    pub kind: String,
    /// The function.
    pub function: String,
    /// How far back, 60s to 7d.
    pub window: String,
    /// Seconds after which an idle instance ends.
    pub idle_timeout_s: Vec<u32>,
    /// Instances that are kept.
    pub min_instances: Vec<u32>,
    /// Most instances.
    pub max_concurrency: Vec<u32>,
    /// MiB of all instances together.
    pub memory_mib: Vec<u32>,
}

impl Default for WhatIf {
    fn default() -> Self {
        Self {
            kind: "whatif".to_owned(),
            function: String::new(),
            window: "1d".to_owned(),
            idle_timeout_s: Vec::new(),
            min_instances: Vec::new(),
            max_concurrency: Vec::new(),
            memory_mib: Vec::new(),
        }
    }
}

impl WhatIf {
    /// The function, by its name alone.
    ///
    /// # Errors
    /// It names none, or a version of one.
    pub fn subject(&self) -> Result<Subject, JobError> {
        let subject = self.function.parse::<Subject>();
        let subject = subject.map_err(|rule| JobError::Field("function", rule))?;
        if subject.version.is_some() {
            let rule = "without a version: calls are of the function".to_owned();
            return Err(JobError::Field("function", rule));
        }
        Ok(subject)
    }

    /// Whether the server can be asked for it; what its numbers may be, the server knows.
    ///
    /// # Errors
    /// The first field that makes no sense.
    pub fn check(&self) -> Result<(), JobError> {
        self.subject()?;
        let is_window = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if self.window.is_empty() || !self.window.bytes().all(is_window) {
            let rule = "60s to 7d, as 30m or 1d".to_owned();
            return Err(JobError::Field("window", rule));
        }
        Ok(())
    }

    /// Where the server is asked.
    pub fn path(&self) -> String {
        let mut path = format!(
            "/api/v1/functions/{}/what-if?window={}",
            self.function, self.window
        );
        for (name, list) in [
            ("idle_timeout_s", &self.idle_timeout_s),
            ("min_instances", &self.min_instances),
            ("max_concurrency", &self.max_concurrency),
            ("memory_mib", &self.memory_mib),
        ] {
            let list: Vec<String> = list.iter().map(u32::to_string).collect();
            if !list.is_empty() {
                path += &format!("&{name}={}", list.join(","));
            }
        }
        path
    }
}

/// Asks, and writes `what-if.json`, `what-if.csv` and `curve.svg`.
pub(super) async fn run(
    job: &WhatIf,
    runner: &Runner,
    mut cancelled: watch::Receiver<bool>,
) -> Result<Outcome, JobRunError> {
    let path = job.path();
    let asked = tokio::select! {
        asked = runner.client.send(Method::GET, &path, None) => asked,
        Ok(_) = cancelled.wait_for(|is_cancelled| *is_cancelled) => return Ok(was_cancelled(&runner.out)),
    };
    let found = asked.map_err(RunError::from)?.json();
    let failed = |path: &Path, error| RunError::File(path.to_owned(), error);
    fs::create_dir_all(&runner.out).map_err(|error| failed(&runner.out, error))?;
    let name = Timestamp::now().as_second().to_string();
    let directory =
        create_directory(&runner.out, &name).map_err(|error| failed(&runner.out, error))?;
    for (name, text) in [
        ("curve.svg", curve::what_if(&found)),
        ("what-if.csv", csv(&found)),
    ] {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    let path = directory.join("what-if.json");
    result::write(&path, &found).map_err(|error| failed(&path, error))?;
    Ok(Outcome {
        text: text(&found),
        summary: json!({ "what_if": found }),
        directory,
        fell_short: false,
        error: None,
        was_cancelled: false,
    })
}

/// What CSV has of a point, beside the settings of its curve.
const FIGURES: [&str; 7] = [
    "idle_timeout_s",
    "cold",
    "cold_share",
    "queued",
    "refused",
    "memory_mib",
    "most_instances",
];

/// A line for each setting, the present ones first; empty where there is no limit.
pub fn csv(found: &Value) -> String {
    let figure = |of: &Value, name: &str| match &of[name] {
        Value::Null => String::new(),
        figure => figure.to_string(),
    };
    let settings = "today,min_instances,max_concurrency,memory_limit_mib";
    let mut text = format!("{settings},{}\n", FIGURES.join(","));
    let curves = found["curves"].as_array().into_iter().flatten();
    let curves = curves.map(|curve| (false, curve));
    for (is_today, curve) in std::iter::once((true, &found["today"])).chain(curves) {
        for point in curve["points"].as_array().into_iter().flatten() {
            let mut fields = vec![is_today.to_string()];
            let settings = ["min_instances", "max_concurrency", "memory_mib"];
            fields.extend(settings.map(|name| figure(curve, name)));
            fields.extend(FIGURES.map(|name| figure(point, name)));
            text += &fields.join(",");
            text.push('\n');
        }
    }
    text
}

/// For a terminal: a line for each setting, the present ones first.
pub fn text(found: &Value) -> String {
    let header = [
        "settings",
        "idle timeout",
        "cold",
        "share",
        "queued",
        "refused",
        "MiB",
        "instances",
    ];
    let mut lines = vec![header.map(str::to_owned)];
    let mut add = |name: &str, curve: &Value| {
        for point in curve["points"].as_array().into_iter().flatten() {
            let figure = |name: &str| point[name].as_f64().map_or_else(String::new, number);
            let share = point["cold_share"].as_f64().unwrap_or_default();
            lines.push([
                name.to_owned(),
                format!("{} s", point["idle_timeout_s"]),
                figure("cold"),
                format!("{} %", number(share * 100.0)),
                figure("queued"),
                figure("refused"),
                figure("memory_mib"),
                figure("most_instances"),
            ]);
        }
    };
    add(
        &format!("today: {}", name_of(&found["today"])),
        &found["today"],
    );
    for curve in found["curves"].as_array().into_iter().flatten() {
        add(&name_of(curve), curve);
    }
    let mut text = columns(&lines);
    let figure = |name: &str| found[name].as_f64().map_or_else(String::new, number);
    text += &format!(
        "{} calls, {} of them cold when they came; a start takes {} ms, an instance {} MiB\n",
        figure("calls"),
        figure("recorded_cold"),
        figure("start_ms"),
        figure("instance_mib"),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_has_a_line_for_each_setting() {
        let point = |idle: u32, cold: u32| {
            json!({"idle_timeout_s": idle, "cold": cold, "cold_share": 0.5, "queued": 0, "refused": 0,
                "memory_mib": 1.5, "most_instances": 2})
        };
        let curve = |memory: Value, points: Vec<Value>| json!({"min_instances": 0, "max_concurrency": 8, "memory_mib": memory, "points": points});
        let found = json!({
            "today": curve(Value::Null, vec![point(300, 1)]),
            "curves": [curve(json!(64), vec![point(1, 4), point(60, 2)])],
        });
        assert_eq!(
            csv(&found),
            "today,min_instances,max_concurrency,memory_limit_mib,idle_timeout_s,cold,cold_share,queued,refused,memory_mib,most_instances\n\
             true,0,8,,300,1,0.5,0,0,1.5,2\n\
             false,0,8,64,1,4,0.5,0,0,1.5,2\n\
             false,0,8,64,60,2,0.5,0,0,1.5,2\n"
        );
    }

    #[test]
    fn a_what_if_asks_for_what_it_names() {
        let read = |value: Value| serde_json::from_value::<WhatIf>(value).expect("fields");
        let all = read(
            json!({"kind": "whatif", "function": "hello", "window": "2h",
            "idle_timeout_s": [10, 60], "memory_mib": [64]}),
        );
        all.check().expect("good");
        assert_eq!(
            all.path(),
            "/api/v1/functions/hello/what-if?window=2h&idle_timeout_s=10,60&memory_mib=64"
        );
        for (bad, field) in [
            (json!({}), "function"),
            (json!({"function": "hello@1"}), "function"),
            (json!({"function": "a/b"}), "function"),
            (json!({"function": "hello", "window": "1d&x=1"}), "window"),
            (json!({"function": "hello", "window": ""}), "window"),
        ] {
            let refused = read(bad.clone()).check().expect_err("bad");
            assert_eq!(
                refused.setting().map(|(name, _)| name),
                Some(field),
                "{bad}"
            );
        }
    }
}
