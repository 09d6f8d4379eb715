//! Each page, rendered: what it must say, and that nothing a function or a user wrote becomes markup.

use askama::Template;
use jiff::{SignedDuration, Timestamp};

mod people;

use super::*;
use crate::chrome::{Badge, Chrome, Tone};
use crate::json::JsonText;
use crate::stage_bar::{StageBar, StageTimes};
use crate::starters::STARTERS;

/// Breaks out of text, of an attribute in double or single quotes, and of a textarea or pre.
const HOSTILE: &str = "</textarea></pre>\"'><script>alert(1)</script>&amp;";

fn html(template: &impl Template) -> String {
    template.render().expect("rendered")
}

/// Every script tag is one of ours, and the hostile text is there, escaped.
fn assert_harmless(html: &str) {
    assert!(!html.contains("<script>"), "{html}");
    assert!(!html.contains("\"'>"), "{html}");
    assert!(html.contains("&#60;script&#62;alert(1)"), "{html}");
}

fn chrome() -> Chrome {
    Chrome {
        csrf: "csrf-1".into(),
        user_name: "ada".into(),
        token_name: String::new(),
        can_write: true,
        can_invoke: true,
        can_admin: true,
        notice: None,
    }
}

fn reader() -> Chrome {
    Chrome {
        can_write: false,
        can_invoke: false,
        can_admin: false,
        ..chrome()
    }
}

fn moment() -> Moment {
    let at: Timestamp = "2025-03-01T12:00:00.5Z".parse().expect("a timestamp");
    Moment {
        at,
        now: at + SignedDuration::from_secs(90),
    }
}

fn head() -> FunctionHead {
    FunctionHead {
        name: "hello".into(),
        runtime: "python3",
        version: 3,
        state: Badge::new("ready", Tone::Good),
        state_reason: Some(HOSTILE.into()),
        idle: 1,
        busy: 2,
        starting: 0,
        queued: 5,
        recent: RecentStats::default(),
    }
}

fn row() -> FunctionRow {
    FunctionRow {
        name: "hello".into(),
        runtime: "python3",
        state: Badge::new("failed", Tone::Bad),
        state_reason: Some(HOSTILE.into()),
        idle: 1,
        busy: 0,
        starting: 0,
        max_concurrency: 8,
        recent: RecentStats {
            count: 1_234,
            errors: 2,
            p50_us: 412,
            p99_us: 1_930,
        },
    }
}

fn error() -> ErrorView {
    ErrorView {
        error_type: HOSTILE.into(),
        message: HOSTILE.into(),
        stack_trace: vec![format!("  File \"main.py\"\n    {HOSTILE}\n")],
    }
}

fn log() -> LogRow {
    LogRow {
        time: moment().at,
        stream: "stderr",
        text: HOSTILE.into(),
    }
}

fn history(rows: Vec<HistoryRow>) -> HistoryView {
    HistoryView {
        function: "hello".into(),
        status: String::new(),
        rows,
        before: None,
        next: None,
    }
}

fn history_row(id: &str) -> HistoryRow {
    HistoryRow {
        id: id.into(),
        received: moment(),
        status: Badge::new("succeeded", Tone::Good),
        rung: "warm",
        version: 3,
        trigger: "invoke",
        total_us: 402,
        run_us: 310,
        request_bytes: 17,
        response_bytes: 2048,
    }
}

fn function(chrome: Chrome, history: HistoryView) -> FunctionPage {
    FunctionPage {
        chrome,
        head: head(),
        url: "http://h/fn/hello".into(),
        public: false,
        curl: "curl -H \"Authorization: Bearer $HEARTH_TOKEN\"".into(),
        event: HOSTILE.into(),
        outcome: None,
        history,
        decisions: vec![DecisionRow {
            name: "forked",
            count: 1_204,
            meaning: "Instances forked off a template that was up",
        }],
        image: ImageRow {
            bytes: Some(4_400_000),
            restores: 3,
            failures: 1,
            note: Some(HOSTILE.into()),
        },
    }
}

fn outcome() -> InvokeOutcome {
    InvokeOutcome {
        http_status: 502,
        badge: Badge::new("function_error", Tone::Bad),
        result: Some(JsonText::new(format!("\"{HOSTILE}\"").as_bytes())),
        message: HOSTILE.into(),
        error: Some(error()),
        invocation: Some("id-1".into()),
        function: "hello".into(),
        headers: vec![("X-Hearth-Invocation-Id", "id-1".into())],
        rung: Some("fork"),
        stages: Some(StageBar::new(StageTimes {
            start: 800,
            run: 1_200,
            total: 2_000,
            ..StageTimes::default()
        })),
        logs: vec![log()],
    }
}

#[test]
fn pages_have_no_inline_script_style_or_handler() {
    let pages = [
        html(&LoginPage::default()),
        html(&FunctionsPage {
            chrome: chrome(),
            rows: vec![row()],
        }),
        html(&new_page()),
        html(&function(chrome(), history(vec![history_row("id-1")]))),
        html(&InvokeOutcomePartial { outcome: outcome() }),
        html(&code_page()),
        html(&settings_page()),
    ];
    for page in pages.into_iter().chain(people::pages()) {
        for forbidden in [
            " style=",
            "<style",
            " onclick",
            " onload",
            " onsubmit",
            "javascript:",
            "hx-on",
            "http-equiv",
        ] {
            assert!(!page.contains(forbidden), "{forbidden} in {page}");
        }
        for script in page.split("<script").skip(1) {
            assert!(script.contains("src=\"/static/"), "{script}");
        }
        for address in page.split("src=\"").chain(page.split("href=\"")).skip(1) {
            assert!(
                !address.starts_with("http"),
                "an asset from another host: {address}"
            );
        }
    }
}

#[test]
fn every_label_and_description_names_an_element() {
    let pages = [
        html(&LoginPage::default()),
        html(&new_page()),
        html(&function(chrome(), history(Vec::new()))),
        html(&code_page()),
        html(&settings_page()),
    ];
    for page in pages.into_iter().chain(people::pages()) {
        let values = |attribute: &str| -> Vec<String> {
            page.split(&format!(" {attribute}=\""))
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
                .flat_map(str::split_ascii_whitespace)
                .map(str::to_owned)
                .collect()
        };
        let ids = values("id");
        for id in ["for", "aria-describedby", "aria-labelledby", "data-copy"]
            .into_iter()
            .flat_map(values)
        {
            assert_eq!(
                ids.iter().filter(|known| **known == id).count(),
                1,
                "{id} in {page}"
            );
        }
    }
}

#[test]
fn an_empty_list_leads_to_the_first_function() {
    let page = html(&FunctionsPage {
        chrome: chrome(),
        rows: Vec::new(),
    });
    assert!(page.contains("Create your first function"));
    assert!(page.contains("/new?starter=hello"));
    let page = html(&FunctionsPage {
        chrome: reader(),
        rows: Vec::new(),
    });
    assert!(!page.contains("/new"), "{page}");
}

#[test]
fn the_list_shows_state_and_numbers() {
    let table = html(&FunctionsTable {
        chrome: chrome(),
        rows: vec![row()],
    });
    for expected in [
        "/functions/hello",
        "failed",
        "1,234",
        "412 µs",
        "1.93 ms",
        "data-poll=\"2000\"",
    ] {
        assert!(table.contains(expected), "{expected} in {table}");
    }
    assert_harmless(&table);
    let mut hostile = row();
    hostile.name = HOSTILE.into();
    assert_harmless(&html(&FunctionsTable {
        chrome: chrome(),
        rows: vec![hostile],
    }));
}

#[test]
fn the_functions_page_follows_the_tokens_rights() {
    let page = html(&function(chrome(), history(Vec::new())));
    for expected in [
        "id=\"invoke-button\"",
        "/functions/hello/settings",
        "5 requests",
        "Not invoked yet.",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert_harmless(&page);
    let page = html(&function(reader(), history(Vec::new())));
    for hidden in ["id=\"invoke-button\"", "/settings", "/code\""] {
        assert!(!page.contains(hidden), "{hidden} in {page}");
    }
}

#[test]
fn the_history_pages_by_key_and_keeps_its_filter() {
    let mut view = history(vec![history_row("id-1")]);
    view.status = "timed_out".into();
    view.next = Some("k&1".into());
    let first = html(&HistoryPartial {
        history: view.clone(),
    });
    assert!(
        first.contains("/functions/hello/history?status=timed_out&#38;before=k%261"),
        "{first}"
    );
    assert!(
        first.contains("data-poll"),
        "the newest page refreshes itself"
    );
    assert!(first.contains("value=\"timed_out\" selected"));
    assert!(first.contains("title=\"2025-03-01 12:00:00.500 UTC\">1 min ago"));
    view.before = Some("k".into());
    view.next = None;
    let second = html(&HistoryPartial { history: view });
    assert!(
        !second.contains("data-poll") && !second.contains("Older"),
        "{second}"
    );
}

#[test]
fn an_outcome_shows_result_error_stages_and_log() {
    let shown = html(&InvokeOutcomePartial { outcome: outcome() });
    for expected in [
        "id=\"result\"",
        "HTTP 502",
        "function_error",
        "<rect class=\"stage-run\"",
        "2.00 ms",
        "X-Hearth-Invocation-Id",
        "/functions/hello/invocations/id-1",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    assert_harmless(&shown);
    // A tracing frame keeps its own indentation.
    assert!(
        shown.contains(">  File &#34;main.py&#34;\n    &#60;"),
        "{shown}"
    );
}

#[test]
fn an_invocation_says_all_there_is() {
    let page = html(&InvocationPage {
        chrome: chrome(),
        invocation: InvocationDetails {
            id: "id-1".into(),
            function: "hello".into(),
            version: 3,
            trigger: "http",
            status: Badge::new("crashed", Tone::Bad),
            rung: None,
            received: moment(),
            finished: None,
            stages: StageBar::new(StageTimes::default()),
            request_bytes: 17,
            response_bytes: 0,
            attempts: 2,
            error: Some(error()),
            logs: Vec::new(),
        },
    });
    for expected in [
        "crashed",
        "17 B",
        "It printed nothing.",
        "Attempts",
        "2025-03-01 12:00:00.500 UTC",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert_harmless(&page);
}

fn new_page() -> NewPage {
    let mut form = FunctionForm::starting_from(STARTERS[0]);
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

#[test]
fn a_refused_form_keeps_what_was_typed() {
    let page = html(&new_page());
    assert_harmless(&page);
    // The parser drops one newline after the tag; the code's own first one stays.
    assert!(page.contains(">\n\n&#60;/textarea&#62;"), "{page}");
    assert!(page.contains("id=\"error-env\">A: must be shorter.</p>"));
    assert!(
        page.contains("<details class=\"more\" open"),
        "the field with the error is in sight"
    );
    assert!(page.contains("value=\"node\" disabled"));
    assert!(page.contains("value=\"outbound\" disabled"));
    for starter in STARTERS {
        assert!(page.contains(&format!("id=\"starter-{}\"", starter.key)));
    }
}

#[test]
fn a_forms_outcome_reaches_every_field() {
    let shown = html(&FormOutcome {
        fields: FunctionForm::FIELDS,
        errors: FieldErrors::one("name", HOSTILE.into()),
        problem: None,
    });
    assert_harmless(&shown);
    for field in FunctionForm::FIELDS {
        assert!(
            shown.contains(&format!("id=\"error-{field}\" hx-swap-oob=\"true\"")),
            "{field}"
        );
    }
    assert!(!shown.contains("id=\"problem\""));
}

#[test]
fn every_field_with_a_message_has_a_place_for_it() {
    for (page, fields) in [
        (html(&new_page()), FunctionForm::FIELDS),
        (html(&code_page()), CodeUpload::FIELDS),
        (html(&settings_page()), SettingsForm::FIELDS),
    ] {
        for field in fields {
            assert_eq!(
                page.matches(&format!("id=\"error-{field}\"")).count(),
                1,
                "{field}"
            );
        }
    }
}

fn code_page() -> CodePage {
    let version = |version, active| VersionRow {
        version,
        active,
        created: moment(),
        code_sha256: "9f86d081884c7d65".into(),
        code_bytes: 2048,
        handler: "main.handler".into(),
        memory_mb: 128,
        timeout_ms: 30_000,
    };
    CodePage {
        chrome: chrome(),
        head: head(),
        handler: HOSTILE.into(),
        form: CodeUpload::default(),
        versions: vec![version(2, true), version(1, false)],
        errors: FieldErrors::default(),
        problem: None,
    }
}

#[test]
fn only_inactive_versions_can_be_activated() {
    let page = html(&code_page());
    assert!(page.contains("/functions/hello/versions/1/activate"));
    assert!(!page.contains("/versions/2/activate"));
    assert!(page.contains("9f86d081884c<"));
    assert_harmless(&page);
}

fn settings_page() -> SettingsPage {
    SettingsPage {
        chrome: chrome(),
        head: head(),
        form: SettingsForm {
            handler: HOSTILE.into(),
            network: "outbound".into(),
            public: true,
            env_names: vec!["KEEP".into(), "DROP".into()],
            env_removed: vec!["DROP".into()],
            ..SettingsForm::default()
        },
        outbound_reason: "no network".into(),
        errors: FieldErrors::default(),
        problem: None,
        delete_error: "Type the function's name to delete it.".into(),
    }
}

#[test]
fn settings_name_variables_but_show_no_value() {
    let page = html(&settings_page());
    assert!(page.contains("value=\"DROP\" checked"));
    assert!(page.contains("value=\"KEEP\">"));
    // What is set stays, so that saving something else does not change it.
    assert!(page.contains("value=\"outbound\" selected>"));
    assert!(page.contains("id=\"error-confirm\">Type the function"));
    assert_harmless(&page);
}

#[test]
fn errors_have_a_page_with_the_requests_id() {
    let mut page = ErrorPage {
        chrome: None,
        status: 404,
        title: "Not found".into(),
        detail: HOSTILE.into(),
        request_id: "r-1".into(),
    };
    let shown = html(&page);
    assert!(
        shown.contains("404") && shown.contains("<code>r-1</code>") && !shown.contains("/logout")
    );
    assert_harmless(&shown);
    page.chrome = Some(chrome());
    assert!(html(&page).contains("/logout"));
}

#[test]
fn changing_forms_carry_the_sessions_token() {
    let pages = [
        html(&new_page()),
        html(&function(chrome(), history(Vec::new()))),
        html(&code_page()),
        html(&settings_page()),
    ];
    for page in pages.into_iter().chain(people::pages_of_a_session()) {
        let forms = page
            .split("<form")
            .skip(1)
            .filter(|form| form.contains("method=\"post\""));
        for form in forms {
            let form = form.split("</form>").next().unwrap_or(form);
            assert!(form.contains("name=\"csrf\" value=\"csrf-1\""), "{form}");
        }
        assert!(page.contains("hx-headers='{\"x-csrf-token\":\"csrf-1\"}'"));
    }
}

#[test]
fn an_image_is_told_of_in_a_sentence() {
    let html = html(&function(chrome(), history(Vec::new())));
    assert!(html.contains("An image of 4.2 MiB, restored 3 times; 1 restore failed."));
    assert_eq!(ImageRow::default().in_words(), "No image of the template.");
}
