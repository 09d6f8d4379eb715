//! A report as text, CSV and SVG.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::benchmark::Benchmark;
use super::report::Report;
use crate::plot::forest::{self, percent};
use crate::plot::format::time;
use crate::run::noise::{Noise, fdatasync};
use crate::run::{RunError, result};
use crate::statistics::duet::DOUBTFUL_BELOW;
use crate::statistics::{Interval, Verdict};
use crate::stellar::files::create_directory;
use crate::table::render::columns;

fn interval(interval: Interval) -> String {
    format!("{} to {}", percent(interval.low), percent(interval.high))
}

/// What is said of a benchmark.
fn verdict(one: &Benchmark) -> String {
    if one.from_history {
        return "not judged".to_owned();
    }
    if one.comparison.is_none() {
        return "left out".to_owned();
    }
    let word = match one.verdict {
        // The first version differs from itself.
        None => "–",
        Some(Verdict::NoChange) => "no change",
        Some(Verdict::Possible) => "possible change",
        Some(Verdict::Faster) => "faster",
        Some(Verdict::Slower) => "slower",
    };
    if one.is_doubtful() {
        format!("{word}, perhaps noise")
    } else {
        word.to_owned()
    }
}

/// For a terminal.
pub fn text(report: &Report) -> String {
    let what = match report.suite {
        Some(_) => "benchmark",
        None => "event",
    };
    let header = [
        what, "trials", "first", "second", "change", "interval", "BCa", "verdict",
    ];
    let mut lines = vec![header.map(str::to_owned)];
    lines.extend(report.benchmarks.iter().map(|one| {
        let missing = || "–".to_owned();
        let change = one.comparison.map(|comparison| comparison.change);
        [
            one.name.clone(),
            one.trials.repeats.len().to_string(),
            one.first_ns.map_or_else(missing, time),
            one.second_ns.map_or_else(missing, time),
            change.map_or_else(missing, |change| percent(change.estimate)),
            change.map_or_else(missing, |change| interval(change.percentile)),
            change
                .and_then(|change| change.bca)
                .map_or_else(missing, interval),
            verdict(one),
        ]
    }));
    let mut text = columns(&lines);
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{}: {} beside {}; {} of {} compared{}; intervals at {} %",
        if report.is_aa() { "A/A" } else { "duet" },
        report.second,
        report.first,
        report.compared(),
        report.duets().count(),
        match report.control_changes() {
            0 => format!(", {} changed", report.changes().count()),
            _ => String::new(),
        },
        report.bootstrap.confidence * 100.0,
    );
    for one in &report.benchmarks {
        let trials = &one.trials;
        if trials.interrupted + trials.failed > 0 {
            let _ = writeln!(
                text,
                "{}: {} interrupted, {} failed{}",
                one.name,
                trials.interrupted,
                trials.failed,
                trials
                    .error
                    .as_ref()
                    .map_or_else(String::new, |error| format!(": {error}")),
            );
        }
        if let Some(needed) = one.trials_needed {
            let _ = writeln!(
                text,
                "{}: as narrow as asked after {needed} trials",
                one.name
            );
        }
    }
    let wide = report.benchmarks.iter().filter(|one| one.is_wide).count();
    if wide > 0 {
        let _ = writeln!(
            text,
            "{wide} of {}: wider than {} % after all trials",
            report.compared(),
            report.width * 100.0
        );
    }
    for one in report.benchmarks.iter().filter(|one| one.from_history) {
        let _ = writeln!(
            text,
            "{}: not judged, because the first version's times are from the history",
            one.name
        );
    }
    if report.changes().any(Benchmark::is_doubtful) {
        let below = DOUBTFUL_BELOW * 100.0;
        let _ = writeln!(
            text,
            "perhaps noise: below {below} %, experiments do not agree consistently"
        );
    }
    if report.control_changes() > 0 {
        let _ = writeln!(
            text,
            "no verdict: {} beside itself differs, too, so that this host is too noisy now",
            report.first
        );
    }
    if let Some(noise) = &report.noise {
        let _ = writeln!(text, "{}", certificate(noise));
    }
    if let Some(suite) = &report.suite {
        for line in suite.lines() {
            let _ = writeln!(text, "{line}");
        }
    }
    if let Some(replayed) = &report.replayed {
        let _ = writeln!(
            text,
            "{}: {} arrivals within {:.0} s at {} x, in {} parts with copies of their own, {} with their own event, {} left out, sent late by {} (p99)",
            replayed.source,
            replayed.arrivals,
            replayed.span_s,
            replayed.speed,
            replayed.parts,
            replayed.own_events,
            replayed.left_out,
            time(replayed.late_p99_ns),
        );
        let allowed = replayed.network.allowed();
        if !allowed.is_empty() {
            let _ = writeln!(text, "the copies could reach {}", allowed.join(", "));
        }
        if !replayed.lacks.is_empty() {
            let _ = writeln!(text, "the copies lack {}", replayed.lacks.join(", "));
        }
    }
    if let Some(left) = &report.left_behind {
        let _ = writeln!(text, "left behind: {left}");
    }
    if let Some(against) = &report.against {
        let _ = writeln!(text, "{against}");
    }
    text
}

/// How noisy the machine was, in a line: of a comparison.
pub fn certificate(noise: &Noise) -> String {
    let control = match noise.control {
        Some(control) => format!("A/A {} of {} changed", control.changes, control.compared),
        None => "no A/A beside it".to_owned(),
    };
    line(Some(control), noise)
}

/// The same of anything else.
pub fn machine(noise: &Noise) -> String {
    line(None, noise)
}

fn line(control: Option<String>, noise: &Noise) -> String {
    let mut parts = Vec::from_iter(control);
    let [before, after] = noise.yardstick_ns;
    parts.push(format!(
        "yardstick {} before, {} after",
        time(before),
        time(after)
    ));
    let source = noise.clock_source.as_deref().unwrap_or("unknown");
    let step = time(noise.clock_step_ns as f64);
    parts.push(format!("clock {source}, {step} a reading"));
    if let Some(steal) = noise.steal_share {
        parts.push(format!("steal {:.1} %", steal * 100.0));
    }
    if let Some(device) = noise.fdatasync {
        let (median, max) = (time(device.median_ns), time(device.max_ns));
        parts.push(format!("fdatasync {median} (p50), {max} (max)"));
    }
    format!("noise: {}", parts.join("; "))
}

/// All trials as CSV.
pub fn csv(report: &Report) -> String {
    let mut text = "event,call,repeat,order,first_ns,second_ns,control_ns\n".to_owned();
    for one in &report.benchmarks {
        for repeat in &one.trials.repeats {
            let order: Vec<String> = repeat
                .order
                .iter()
                .map(|role| format!("{role:?}").to_lowercase())
                .collect();
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{}",
                quoted(&one.name),
                repeat.call,
                repeat.repeat,
                order.join(" "),
                repeat.first_ns,
                repeat.second_ns,
                repeat
                    .control_ns
                    .map_or_else(String::new, |ns| ns.to_string()),
            );
        }
    }
    text
}

/// A field of a CSV file (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A line for each benchmark that is not left out.
pub fn svg(report: &Report) -> String {
    let names: Vec<String> = report
        .benchmarks
        .iter()
        .map(|one| match one.from_history {
            true => format!("{} (not judged)", one.name),
            false => one.name.clone(),
        })
        .collect();
    let rows = report.benchmarks.iter().zip(&names);
    let rows = rows.filter_map(|(one, name)| {
        let comparison = one.comparison?;
        Some(forest::Row {
            name,
            estimate: comparison.change.estimate,
            interval: comparison.change.percentile,
            // No colour where there is no verdict.
            verdict: one.verdict.unwrap_or(Verdict::NoChange),
        })
    });
    let rows: Vec<forest::Row<'_>> = rows.collect();
    forest::draw(&format!("{} beside {}", report.second, report.first), &rows)
}

impl Report {
    /// Creates a directory below `out`, named by the time of the begin, and writes the files.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(&mut self, out: &Path) -> Result<PathBuf, RunError> {
        let failed = |path: &Path, error| RunError::File(path.to_owned(), error);
        fs::create_dir_all(out).map_err(|error| failed(out, error))?;
        let name = self.began_at.as_second().to_string();
        let directory = create_directory(out, &name).map_err(|error| failed(out, error))?;
        if let Some(noise) = &mut self.noise {
            // A device that cannot be measured says nothing.
            noise.fdatasync = fdatasync(&directory).ok();
        }
        for (name, text) in [("trials.csv", csv(self)), ("forest.svg", svg(self))] {
            let path = directory.join(name);
            fs::write(&path, text).map_err(|error| failed(&path, error))?;
        }
        let path = directory.join("result.json");
        result::write(&path, self).map_err(|error| failed(&path, error))?;
        Ok(directory)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::duet::run::WIDTH;
    use jiff::Timestamp;
    use serde_json::Value;

    use super::super::against::{Earlier, Relation};
    use super::super::benchmark::benchmarks;
    use super::super::order::Role;
    use super::super::report::{Stage, is_from_history};
    use super::super::trials::{Repeat, Trials};
    use super::*;
    use crate::run::environment::Environment;
    use crate::statistics::Bootstrap;

    pub(crate) fn trials(count: usize, second: f64, control: f64) -> Trials {
        let repeat = |number: usize| {
            let noise = (number * 7 % 11) as f64 / 10.0;
            Repeat {
                call: number / 3,
                repeat: number % 3,
                order: vec![Role::Second, Role::First, Role::Control],
                first_ns: 100.0 + noise,
                second_ns: second + noise,
                control_ns: Some(control + if number.is_multiple_of(2) { 0.1 } else { -0.1 }),
            }
        };
        Trials {
            repeats: (0..count).map(repeat).collect(),
            interrupted: usize::from(count < 10),
            ..Trials::default()
        }
    }

    pub(crate) fn report(all: Vec<(&str, Trials)>) -> Report {
        let bootstrap = Bootstrap {
            resamples: 500,
            ..Bootstrap::default()
        };
        let all = all.into_iter();
        let all = all
            .map(|(name, trials)| (name.to_owned(), trials))
            .collect();
        Report {
            lab_version: "1",
            began_at: Timestamp::UNIX_EPOCH,
            ended_at: Timestamp::UNIX_EPOCH,
            first: "hello@1".to_owned(),
            second: "hello@2".to_owned(),
            stage: Some(Stage::Run),
            calls: 15,
            repeats: 3,
            invocations: 1,
            seed: 1,
            bootstrap,
            benchmarks: benchmarks(all, crate::duet::unit::Unit::Trial, &bootstrap, WIDTH, 3),
            against: None,
            replayed: None,
            suite: None,
            left_behind: None,
            noise: None,
            steal_share: None,
            environment: Environment::read(),
            width: WIDTH,
            node: Value::Null,
        }
        .certified([1e5, 2e5])
    }

    fn three(control: f64) -> Report {
        report(vec![
            ("a, b", trials(45, 130.0, control)),
            ("same", trials(45, 100.0, control)),
            ("rare", trials(9, 100.0, control)),
        ])
    }

    #[test]
    fn a_report_says_what_changed_and_what_was_left_out() {
        let mut report = three(100.5);
        assert_eq!((report.compared(), report.changes().count()), (2, 1));
        let said = text(&report);
        assert!(
            said.contains("slower") && said.contains("no change"),
            "{said}"
        );
        assert!(
            said.contains("left out") && said.contains("rare: 1 interrupted"),
            "{said}"
        );
        assert!(
            said.contains("duet: hello@2 beside hello@1; 2 of 3 compared, 1 changed"),
            "{said}"
        );
        assert!(said.contains("as narrow as asked after"), "{said}");
        assert!(!said.contains("wider than"), "{said}");
        report.width = 0.02;
        report.benchmarks[1].is_wide = true;
        let said = text(&report);
        let wide = "1 of 2: wider than 2 % after all trials";
        assert!(said.contains(wide), "{said}");
        let csv = csv(&report);
        assert_eq!(csv.lines().count(), 1 + 99);
        assert!(
            csv.contains("\"a, b\",0,0,second first control,100,130,100.6"),
            "{csv}"
        );
        assert!(svg(&report).contains("range slower"));

        let earlier = serde_json::to_string(&report).expect("JSON");
        let earlier: Earlier = serde_json::from_str(&earlier).expect("it is read again");
        report.set_against(&earlier);
        let Some(Relation::Found(against)) = report.against else {
            panic!("neither is noisy: {:?}", report.against);
        };
        assert_eq!(
            (against.benchmarks, against.agree, against.covered_both),
            (2, 2, 2)
        );
        assert!(text(&report).contains(
            "of 2 benchmarks of the earlier experiment 2 agree, 0 are possible changes; \
             one-sided coverage: 2 medians in the earlier intervals, 2 earlier medians in these; two-sided: 2"
        ));
        // Those of the first versions of the lab have no more than this.
        let comparison = report.benchmarks[0].comparison;
        let old = serde_json::json!({"benchmarks": [{"name": "a, b", "comparison": comparison}]});
        report.set_against(&serde_json::from_value(old).expect("it is read"));
        assert!(text(&report).contains("of 1 benchmarks of the earlier experiment 1 agree"));
    }

    #[test]
    fn what_is_set_beside_the_history_is_not_judged() {
        let mut report = three(100.5);
        let recorded = report.benchmarks[0].clone();
        assert_eq!(recorded.verdict, Some(Verdict::Slower));
        report.benchmarks[0] = recorded.with_history();
        assert_eq!((report.compared(), report.changes().count()), (1, 0));
        let said = text(&report);
        assert!(
            said.contains("a, b: not judged, because") && !said.contains("slower"),
            "{said}"
        );
        let plot = svg(&report);
        assert!(
            plot.contains("a, b (not judged)") && !plot.contains("range slower"),
            "{plot}"
        );
        let summary = report.summary();
        let [recorded, same] = [0, 1].map(|index| &summary["benchmarks"][index]);
        assert_eq!(recorded["verdict"], Value::Null);
        assert!(is_from_history(&summary, recorded) && !is_from_history(&summary, same));
        // Earlier versions of the lab judged it, and did not say what it is.
        let old = serde_json::json!({"title": "recorded", "verdict": "slower"});
        assert!(is_from_history(&serde_json::json!({"replayed": {}}), &old));
        assert!(!is_from_history(&summary, &old));
    }

    #[test]
    fn where_a_version_differs_from_itself_there_is_no_verdict() {
        let report = three(120.0);
        assert_eq!(report.control_changes(), 3 - 1);
        let said = text(&report);
        assert!(
            said.contains("no verdict: hello@1 beside itself differs"),
            "{said}"
        );
        assert!(!said.contains("slower"), "{said}");
        assert!(said.contains("; 2 of 3 compared; intervals"), "{said}");
        let all = serde_json::to_value(&report).expect("JSON");
        for one in all["benchmarks"].as_array().expect("a list") {
            assert_eq!(one["verdict"], Value::Null);
            assert_eq!(one["comparison"]["decision"], Value::Null);
        }
        assert!(
            said.contains("noise: A/A 2 of 2 changed; yardstick 100 µs before, 200 µs after"),
            "{said}"
        );
        assert!(!svg(&report).contains("range slower"));
        assert_eq!(report.summary()["benchmarks"][0]["verdict"], Value::Null);

        let mut quiet = three(100.5);
        assert_eq!(quiet.summary()["benchmarks"][0]["verdict"], "slower");
        let out = tempfile::tempdir().expect("a directory");
        quiet.create(out.path()).expect("written");
        assert!(quiet.summary()["noise"]["fdatasync"]["median_ns"].as_f64() > Some(0.0));
        assert!(text(&quiet).contains("noise: A/A 0 of 2 changed"));

        let earlier = |report: &Report| -> Earlier {
            let text = serde_json::to_string(report).expect("JSON");
            serde_json::from_str(&text).expect("it is read again")
        };
        let different = Report {
            first: quiet.second.clone(),
            ..three(100.5)
        };
        for (mut now, then, which) in [
            (three(100.5), &report, "the earlier experiment"),
            (three(100.5), &different, "the earlier experiment"),
            (three(120.0), &quiet, "this experiment"),
            (three(120.0), &report, "both experiments"),
        ] {
            now.set_against(&earlier(then));
            let said = text(&now);
            let why = format!("no agreement: in {which} the first version differs from itself");
            assert!(said.contains(&why) && !said.contains(" agree,"), "{said}");
            let kept = serde_json::to_value(&now.against).expect("JSON");
            assert!(kept["no_agreement"].is_string() && kept["agree"].is_null());
        }
    }

    #[test]
    fn an_a_a_experiment_whose_control_differs_says_so_in_its_certificate() {
        for (control, outcome) in [(120.0, "2 of 2"), (100.5, "0 of 2")] {
            let first = vec![
                ("one", trials(45, 100.0, control)),
                ("other", trials(45, 100.0, control)),
            ];
            let itself = Report {
                second: "hello@1".to_owned(),
                ..report(first)
            };
            let said = text(&itself.certified([1e5, 2e5]));
            let outcome = format!("noise: A/A {outcome} changed");
            assert!(said.contains(&outcome), "{said}");
        }
    }
}
