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
