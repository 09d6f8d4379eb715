//! The lab's pages.

use super::*;

fn card() -> ExperimentCard {
    ExperimentCard {
        id: 7,
        kind: "Duet",
        title: "Is <b>b</b> faster?".to_owned(),
        state: Badge::new("running", Tone::Busy),
        summary: "calls: 3 of 15".to_owned(),
        by: "ada".to_owned(),
        created: Moment {
            at: Timestamp::UNIX_EPOCH,
            now: Timestamp::UNIX_EPOCH,
        },
    }
}

fn live(is_open: bool) -> ExperimentLive {
    ExperimentLive {
        id: 7,
        state: Badge::new("running", Tone::Busy),
        is_open,
        cancelling: false,
        what: "calls".to_owned(),
        done: 3,
        total: 15,
        left: "about 40 s".to_owned(),
        error: String::new(),
        measured: ResultTable::default(),
        distribution: LiveDistribution::default(),
    }
}

fn lab(waits: bool) -> LabPage {
    LabPage {
        chrome: chrome(),
        list: ExperimentCards {
            cards: vec![card()],
            waits,
            server: "http://localhost:8080".to_owned(),
            ..ExperimentCards::default()
        },
        form: LabForm::default(),
        workloads: vec![("empty", "nothing")],
        runtimes: vec!["python3", "node"],
        factors: vec![
            ("warm", "an instance is idle", true),
            ("burst-500", "many", false),
        ],
        functions: vec!["hello".to_owned()],
        tools: vec![("go", "go test -bench"), ("pyperf", "Python")],
        processors: 2,
        errors: FieldErrors::default(),
        problem: String::new(),
    }
}

fn experiment(is_open: bool) -> ExperimentPage {
    ExperimentPage {
        chrome: chrome(),
        card: card(),
        live: live(is_open),
        result: ResultTable {
            headings: vec!["Event", "Change"],
            rows: vec![(
                "a".to_owned(),
                "why <it> failed".to_owned(),
                vec!["+5 %".to_owned()],
            )],
        },
        remarks: vec!["Too noisy.".to_owned()],
        plots: vec![PlotView {
            file: "experiment-7-cdf".into(),
            name: "Changes".to_owned(),
            address: "/lab/7/files/forest.svg".to_owned(),
            data: "data:image/svg+xml;base64,PHN2Zz4=".to_owned(),
        }],
        plots_left: 3,
        files: vec![ExperimentFileRow {
            path: "a/b.csv".to_owned(),
            address: "/lab/7/files/a%2Fb.csv".to_owned(),
            size: "1 KiB".to_owned(),
        }],
        others: vec![(7, "Another".to_owned())],
        config: "{\"first\": \"</pre>\"}".to_owned(),
    }
}

fn compared() -> ExperimentComparePage {
    let one = experiment(false);
    let plot = ComparedPlot {
        plot: one.plots.into_iter().next(),
        missing: String::new(),
    };
    let none = ComparedPlot {
        plot: None,
        missing: "No <such> plot.".to_owned(),
    };
    let run = ComparedRun {
        card: card(),
        result: one.result.clone(),
    };
    ExperimentComparePage {
        chrome: chrome(),
        runs: [run.clone(), run],
        differences: one.result,
        nothing: "Nothing.",
        agreement: "Of 2 benchmarks the runs agree on 1.".to_owned(),
        plots: vec![[plot, none]],
        plots_left: 2,
    }
}

/// All pages.
pub(super) fn pages() -> Vec<String> {
    vec![html(&lab(true)), html(&experiment(true)), html(&compared())]
}

/// Values of all boxes that are checked.
fn checked(page: &str) -> Vec<&str> {
    let boxes = page.split("<input type=\"checkbox\"").skip(1);
    let boxes = boxes.filter_map(|one| one.split_once('>').map(|(attributes, _)| attributes));
    let checked = boxes.filter(|one| one.ends_with(" checked"));
    checked
        .filter_map(|one| one.split("value=\"").nth(1)?.split('"').next())
        .collect()
}

#[test]
fn experiments_are_cards_and_who_runs_them_is_said_when_nobody_does() {
    let page = html(&lab(true));
    assert!(
        page.contains("Is &#60;b&#62;b&#60;/b&#62; faster?"),
        "{page}"
    );
    assert!(page.contains("HEARTH_TOKEN=… hearth lab agent") && page.contains("calls: 3 of 15"));
    assert_eq!(page.matches("name=\"factor\"").count(), 2);
    // Connections are used again, and a duet and a suite have a control.
    let all = ["true", "warm", "empty", "python3", "node", "true", "true"];
    assert_eq!(checked(&page), all);
    assert!(page.contains("name=\"load_loop\" value=\"closed\" checked"));
    assert!(page.contains("id=\"no-agent\"") && !html(&lab(false)).contains("id=\"no-agent\""));
    assert!(page.contains("hx-get=\"/lab?part=list\""), "{page}");
    // Older ones stay on the page when it is refreshed.
    let mut older = lab(false);
    older.list.before = Some(31);
    let older = html(&older);
    assert!(
        older.contains("hx-get=\"/lab?part=list&amp;before=31\""),
        "{older}"
    );
    // What was chosen, not what is chosen at first.
    let mut refused = lab(false);
    (refused.form.kind, refused.problem) = ("tail".to_owned(), "Choose one.".to_owned());
    let refused = html(&refused);
    assert!(refused.contains("Choose one."));
    let rest = ["true", "empty", "python3", "node", "true", "true"];
    assert_eq!(checked(&refused), rest);
    let mut refused = lab(false);
    refused.form.kind = "overhead".to_owned();
    refused.form.runtimes = vec!["node".to_owned()];
    let rest = ["true", "warm", "node", "true", "true"];
    assert_eq!(checked(&html(&refused)), rest);
}

#[test]
fn a_suite_that_is_refused_says_so_at_the_field_and_keeps_what_was_typed() {
    let mut refused = lab(false);
    refused.form.kind = "suite".to_owned();
    refused.form.suite.tool = "pyperf".to_owned();
    refused.form.suite.repeats = "0".to_owned();
    let fine = html(&refused);
    assert!(
        fine.contains("<option value=\"pyperf\" selected>"),
        "{fine}"
    );
    assert!(fine.contains("id=\"new-suite\" open") && fine.contains("<details class=\"more\">"));
    refused.errors = FieldErrors::one("suite_repeats", "Not <enough>.".to_owned());
    let page = html(&refused);
    let field = "id=\"error-suite_repeats\">Not &#60;enough&#62;.</p>";
    assert!(
        page.contains(field) && page.contains("<details class=\"more\" open>"),
        "{page}"
    );
    assert_eq!(page.matches("aria-invalid").count(), 1, "{page}");
}

#[test]
fn a_duet_or_a_replay_that_is_refused_says_so_at_its_own_field() {
    let mut refused = lab(false);
    refused.form.kind = "duet".to_owned();
    refused.form.duet.first = "no<body>".to_owned();
    refused.form.duet.stage = "total".to_owned();
    refused.errors = FieldErrors::one("first", "There is no function.".to_owned());
    let page = html(&refused);
    assert!(page.contains("id=\"new-duet\" open") && page.contains("value=\"no&#60;body&#62;\""));
    assert!(page.contains("id=\"error-first\">There is no function.</p>"));
    assert!(page.contains("id=\"error-replay-first\"></p>"), "{page}");
    assert_eq!(page.matches("<option value=\"total\" selected>").count(), 1);
    assert!(!page.contains("<details class=\"more\" open>"), "{page}");

    let mut refused = lab(false);
    refused.form.kind = "replay".to_owned();
    refused.form.replay.source = "window".to_owned();
    refused.form.replay.from = "2026-01-02T03:04".to_owned();
    refused.errors = FieldErrors::one("replay_confidence", "Too high.".to_owned());
    let page = html(&refused);
    assert!(page.contains("id=\"new-replay\" open") && page.contains("value=\"window\" checked"));
    assert!(
        page.contains("step=\"1\" value=\"2026-01-02T03:04\""),
        "{page}"
    );
    assert!(page.contains("id=\"error-replay_confidence\">Too high.</p>"));
    assert_eq!(page.matches("<details class=\"more\" open>").count(), 1);
    assert_eq!(page.matches("aria-invalid").count(), 1, "{page}");
}

#[test]
fn an_experiment_shows_its_progress_its_result_and_its_files() {
    let page = html(&experiment(true));
    assert!(page.contains("3 of 15, about 40 s left") && page.contains("cancel-experiment"));
    assert!(
        page.contains("data-poll") && page.contains("data-label=\"Change\">+5 %"),
        "{page}"
    );
    assert!(page.contains("/lab/7/files/a%2Fb.csv") && !page.contains("</pre>\""));
    let over = html(&experiment(false));
    assert!(over.contains("delete-experiment") && !over.contains("data-poll"));
}

#[test]
fn latencies_are_drawn_as_they_come() {
    let none = html(&experiment(true));
    assert!(!none.contains("live-distribution"), "{none}");
    let mut page = experiment(true);
    page.live.distribution = LiveDistribution {
        caption: "To the first byte: 1 request".to_owned(),
        bars: vec![[0.0, 0.0, 600.0, 100.0]],
        count: 1,
        ends: ["1 ms".to_owned(), "2 ms".to_owned()],
        median: "1.5 ms".to_owned(),
        p99: String::new(),
    };
    let one = html(&page);
    assert!(one.contains("1 request, p50 1.5 ms</figcaption>"), "{one}");
    assert!(one.contains("<rect x=\"0\" y=\"0\" width=\"600\" height=\"100\"/>"));
    page.live.distribution.count = 200;
    page.live.distribution.caption = "To the first byte: 200 requests".to_owned();
    page.live.distribution.p99 = "1.9 ms".to_owned();
    assert!(html(&page).contains("200 requests, p50 1.5 ms, p99 1.9 ms"));
}

#[test]
fn two_runs_are_side_by_side() {
    let page = html(&compared());
    assert_eq!(
        page.matches("Is &#60;b&#62;b&#60;/b&#62; faster?").count(),
        4,
        "{page}"
    );
    assert!(page.contains("No &#60;such&#62; plot.") && page.contains("2 more plots"));
    let mut nothing = compared();
    nothing.differences = ResultTable::default();
    assert!(html(&nothing).contains("Nothing."));
}
