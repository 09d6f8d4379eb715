//! Pages to render, with hostile text wherever somebody else wrote it.

use super::*;

/// Breaks out of text, of an attribute in double or single quotes, and of a textarea or pre.
pub(super) const HOSTILE: &str = "</textarea></pre>\"'><script>alert(1)</script>&amp;";

pub(super) fn html(template: &impl Template) -> String {
    template.render().expect("rendered")
}

/// Every script tag is one of ours, and the hostile text is there, escaped.
pub(super) fn assert_harmless(html: &str) {
    assert!(!html.contains("<script>"), "{html}");
    assert!(!html.contains("\"'>"), "{html}");
    assert!(html.contains("&#60;script&#62;alert(1)"), "{html}");
}

pub(super) fn chrome() -> Chrome {
    Chrome {
        csrf: "csrf-1".into(),
        user_name: "ada".into(),
        token_name: String::new(),
        can_write: true,
        can_invoke: true,
        can_admin: true,
        ..Chrome::default()
    }
}

pub(super) fn reader() -> Chrome {
    Chrome {
        can_write: false,
        can_invoke: false,
        can_admin: false,
        ..chrome()
    }
}

pub(super) fn moment() -> Moment {
    let at: Timestamp = "2025-03-01T12:00:00.5Z".parse().expect("a timestamp");
    Moment {
        at,
        now: at + SignedDuration::from_secs(90),
    }
}

pub(super) fn head() -> FunctionHead {
    FunctionHead {
        name: "hello".into(),
        runtime: "python3",
        version: 3,
        revision: "7.3".into(),
        state: Badge::new("ready", Tone::Good),
        state_reason: Some(HOSTILE.into()),
        notes: vec![HOSTILE.into()],
        idle: 1,
        busy: 2,
        starting: 0,
        queued: 5,
        recent: RecentStats::default(),
    }
}

/// A list of one function with numbers.
pub(super) fn list() -> ListView {
    let mut list = ListView {
        query: ListQuery {
            search: HOSTILE.into(),
            sort: "name".into(),
            page: 1,
            ..ListQuery::default()
        },
        matching: 1,
        all: 1_234,
        pages: 1,
        ..ListView::default()
    };
    list.rows.push(FunctionRow {
        name: "hello".into(),
        runtime: "python3",
        copy_of: Some("original".into()),
        max_concurrency: 8,
    });
    list.live.set("hello/p50", "412 µs");
    let p99 = crate::pages::Percentile {
        us: None,
        needs: 100,
        has: 9,
    };
    list.live
        .set_titled("hello/p99".into(), p99.text(), p99.title());
    let state = Badge::new("failed", Tone::Bad);
    list.live
        .set_html("hello/state", badge(state, Some(HOSTILE)));
    list
}

pub(super) fn error() -> ErrorView {
    ErrorView {
        error_type: HOSTILE.into(),
        message: HOSTILE.into(),
        stack_trace: vec![format!("  File \"main.py\"\n    {HOSTILE}\n")],
    }
}

pub(super) fn log() -> LogRow {
    LogRow {
        time: moment().at,
        stream: "stderr",
        text: HOSTILE.into(),
    }
}

pub(super) fn history(rows: Vec<HistoryRow>) -> HistoryView {
    HistoryView {
        function: "hello".into(),
        rows,
    }
}

pub(super) fn invocations(rows: Vec<HistoryRow>) -> InvocationsView {
    InvocationsView {
        function: "hello".into(),
        filter: FilterText::default(),
        wrong: None,
        rows,
        before: None,
        next: None,
        searched_to: None,
    }
}

pub(super) fn invocations_page(
    filter: FilterText,
    wrong: Option<(String, String)>,
) -> InvocationsPage {
    InvocationsPage {
        chrome: chrome(),
        head: head(),
        invocations: InvocationsView {
            filter,
            wrong,
            ..invocations(vec![history_row("id-1")])
        },
    }
}

pub(super) fn history_row(id: &str) -> HistoryRow {
    HistoryRow {
        id: id.into(),
        received: moment(),
        status: Badge::new("succeeded", Tone::Good),
        start_kind: "warm",
        version: 3,
        trigger: "invoke",
        total_us: 402,
        run_us: 310,
        request_bytes: 17,
        response_bytes: 2048,
    }
}

pub(super) fn function(chrome: Chrome, history: HistoryView) -> FunctionPage {
    FunctionPage {
        chrome,
        head: head(),
        url: "http://h/fn/hello".into(),
        public: false,
        curl: "curl -H \"Authorization: Bearer $HEARTH_TOKEN\"".into(),
        event: HOSTILE.into(),
        explicit_event: false,
        picker: EventPicker {
            function: "hello".into(),
            can_write: true,
            ..EventPicker::default()
        },
        http: HttpForm::default(),
        by_http: false,
        outcome: None,
        history,
        decisions: vec![DecisionRow {
            name: "forked",
            count: 1_204,
            meaning: "Instances forked from a running template",
        }],
        starts: StartRow {
            by: "restore".into(),
            reason: Some(HOSTILE.into()),
        },
        image: ImageRow {
            bytes: Some(4_400_000),
            restores: 3,
            failures: 1,
            note: Some(HOSTILE.into()),
        },
    }
}

pub(super) fn outcome() -> InvokeOutcome {
    InvokeOutcome {
        http_status: 502,
        badge: Badge::new("function_error", Tone::Bad),
        result: Some(JsonText::new(format!("\"{HOSTILE}\"").as_bytes())),
        message: HOSTILE.into(),
        error: Some(error()),
        invocation: Some("id-1".into()),
        function: "hello".into(),
        headers: vec![("X-Hearth-Invocation-Id".into(), "id-1".into())],
        image: None,
        start_kind: Some("fork"),
        started: "started by fork in 0.80 ms".into(),
        stages: Some(StageBar::new(StageTimes {
            start: 800,
            run: 1_200,
            total: 2_000,
            ..StageTimes::default()
        })),
        logs: vec![log()],
    }
}

pub(super) fn overview() -> OverviewPage {
    let mut live = Values::default();
    let failures = FailuresPartial {
        rows: vec![FailureRow {
            id: "id-1".into(),
            function: "hello".into(),
            status: Badge::new("failed", Tone::Bad),
            error_type: HOSTILE.into(),
            at: moment(),
        }],
    };
    live.set_html("failures", html(&failures));
    live.set_count("invocations", 12_345);
    OverviewPage {
        chrome: Chrome {
            section: Section::Overview,
            ..chrome()
        },
        is_empty: false,
        live,
        requests: Sparkline::new(&[(1, 0), (2, 1)]),
        states: vec![(Badge::new("ready", Tone::Good), "state-ready", "ready")],
        capabilities: vec![CapabilityRow {
            name: "criu".into(),
            available: false,
            version: String::new(),
            reason: HOSTILE.into(),
        }],
        host: HOSTILE.into(),
        version: "0.1.0",
    }
}

pub(super) fn logs_page(query: &str, lines: Vec<LogLineRow>) -> LogsPage {
    LogsPage {
        chrome: chrome(),
        head: head(),
        logs: LogsView {
            function: "hello".into(),
            query: query.into(),
            invocation: None,
            wrong: None,
            lines,
            is_older: false,
            next: None,
        },
    }
}

pub(super) fn log_line() -> LogLineRow {
    LogLineRow {
        line: log(),
        pieces: vec![(false, HOSTILE.into()), (true, HOSTILE.into())],
        invocation: Some("0190-abcdef".into()),
    }
}

pub(super) fn new_page() -> NewPage {
    let mut form = FunctionForm::starting_from(STARTERS[0], String::new());
    form.name = HOSTILE.into();
    form.code = format!("\n{HOSTILE}");
    form.env = vec![EnvRow {
        name: "A".into(),
        value: HOSTILE.into(),
    }];
    NewPage {
        chrome: chrome(),
        form,
        starter: "hello".into(),
        native_reason: "not here".into(),
        provided_reason: "not here either".into(),
        node_reason: "not here".into(),
        node_boots: "not here".into(),
        outbound_reason: "no network".into(),
        errors: FieldErrors::one("env.A", "A: must be shorter.".into()),
        problem: Some(DeployProblem {
            title: HOSTILE.into(),
            error: Some(error()),
            output: vec![log()],
            ..DeployProblem::default()
        }),
    }
}

pub(super) fn settings_page() -> SettingsPage {
    SettingsPage {
        chrome: chrome(),
        head: head(),
        form: SettingsForm {
            handler: HOSTILE.into(),
            start: "restore".into(),
            network: NetworkForm {
                mode: "rules".into(),
                allow: HOSTILE.into(),
                dry_run: true,
            },
            public: true,
            env_names: vec!["KEEP".into(), "DROP".into()],
            env_removed: vec!["DROP".into()],
            ..SettingsForm::default()
        },
        outbound_reason: "no network".into(),
        limits_reason: "no interface".into(),
        gate: GateForm {
            on: true,
            threshold: HOSTILE.into(),
            confidence: HOSTILE.into(),
            events: HOSTILE.into(),
            recorded: HOSTILE.into(),
            error: HOSTILE.into(),
        },
        commands: commands(),
        errors: FieldErrors::default(),
        problem: None,
        delete_error: "Type the function's name to confirm.".into(),
        loaded: 3,
        revision: HOSTILE.into(),
    }
}
