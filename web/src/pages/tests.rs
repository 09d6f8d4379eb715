//! Each page, rendered: what it must say, and that nothing a function or a user wrote becomes markup.

use askama::Template;
use jiff::{SignedDuration, Timestamp};

mod people;

use super::*;
use crate::chrome::{Badge, Chrome, Section, Tone};
use crate::json::JsonText;
use crate::live::Values;
use crate::sparkline::Sparkline;
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
        ..Chrome::default()
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

/// A list of one function with numbers.
fn list() -> ListView {
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
        max_concurrency: 8,
    });
    list.live.set("hello/p50", "412 µs");
    let state = Badge::new("failed", Tone::Bad);
    list.live
        .set_html("hello/state", badge(state, Some(HOSTILE)));
    list
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
        rows,
    }
}

fn invocations(rows: Vec<HistoryRow>) -> InvocationsView {
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

fn invocations_page(filter: FilterText, wrong: Option<(String, String)>) -> InvocationsPage {
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
        headers: vec![("X-Hearth-Invocation-Id".into(), "id-1".into())],
        image: None,
        rung: Some("fork"),
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

#[test]
fn pages_have_no_inline_script_style_or_handler() {
    let pages = [
        html(&LoginPage::default()),
        html(&FunctionsPage {
            chrome: chrome(),
            list: list(),
        }),
        html(&overview()),
        html(&new_page()),
        html(&function(chrome(), history(vec![history_row("id-1")]))),
        html(&invocations_page(FilterText::default(), None)),
        html(&logs_page("", vec![log_line()])),
        html(&InvokeOutcomePartial { outcome: outcome() }),
        html(&code_page()),
        html(&versions_page()),
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
        html(&versions_page()),
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

fn overview() -> OverviewPage {
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

#[test]
fn an_empty_overview_leads_to_the_first_function() {
    let mut page = overview();
    page.is_empty = true;
    let shown = html(&page);
    assert!(shown.contains("Deploy your first function"));
    for starter in STARTERS {
        assert!(shown.contains(&format!("/new?template={}", starter.key)));
    }
    page.chrome = reader();
    let shown = html(&page);
    assert!(!shown.contains("/new"), "{shown}");
    let list = html(&FunctionsPage {
        chrome: chrome(),
        list: ListView::default(),
    });
    assert!(list.contains("Deploy your first function") && !list.contains("list-search"));
}

#[test]
fn the_overview_says_how_things_are() {
    let page = html(&overview());
    for expected in [
        "data-live-topic=\"overview=1\"",
        "data-value=\"12345\">12,345<",
        "/functions/hello/invocations/id-1",
        "/functions?state=ready",
        "1 not available",
        "aria-current=\"page\"",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert_harmless(&page);
}

#[test]
fn the_list_shows_state_and_numbers() {
    let table = html(&FunctionsTable {
        chrome: chrome(),
        list: list(),
    });
    for expected in [
        "/functions/hello",
        "failed",
        "1 of 1,234 functions",
        "data-live=\"hello/p50\">412 µs",
        "aria-sort=\"ascending\"",
    ] {
        assert!(table.contains(expected), "{expected} in {table}");
    }
    assert_harmless(&html(&FunctionsPage {
        chrome: chrome(),
        list: list(),
    }));
    let mut hostile = list();
    hostile.rows[0].name = HOSTILE.into();
    assert_harmless(&html(&FunctionsTable {
        chrome: chrome(),
        list: hostile,
    }));
}

#[test]
fn addresses_of_the_list_say_only_what_is_not_usual() {
    let mut query = ListQuery {
        sort: "name".into(),
        page: 1,
        ..ListQuery::default()
    };
    assert_eq!(query.with_page(1), "");
    assert_eq!(query.with_page(2), "?page=2");
    assert_eq!(query.sorted_by("p99"), "?sort=-p99");
    assert_eq!(query.sorted_by("name"), "?sort=-name");
    query.search = "a&b".into();
    query.sort = "p99".into();
    query.descending = true;
    assert_eq!(query.sorted_by("p99"), "?q=a%26b&sort=p99");
    assert_eq!(query.topic(), "list=1&q=a%26b&sort=-p99");
    assert_eq!(query.order_of("p99"), "descending");
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
    assert!(!page.contains("id=\"invoke-button\""), "{page}");
    for tab in Tab::ALL {
        let link = format!(
            "href=\"/functions/hello{}\" id=\"{}\"",
            tab.path(),
            tab.id()
        );
        assert_eq!(page.matches(&link).count(), 1, "{link}");
    }
    assert_eq!(page.matches("aria-current=\"page\"").count(), 1);
}

#[test]
fn invocations_are_paged_by_key_and_keep_their_filter() {
    let mut view = invocations(vec![history_row("id-1")]);
    view.filter.status = "timed_out".into();
    view.filter.min_ms = " 0.5 ".into();
    view.next = Some("k&1".into());
    let first = html(&InvocationsPartial {
        invocations: view.clone(),
    });
    assert!(
        first.contains(
            "/functions/hello/invocations?status=timed_out&#38;min_ms=0.5&#38;before=k%261"
        ),
        "{first}"
    );
    assert!(
        first.contains("data-poll"),
        "the newest page refreshes itself"
    );
    assert!(first.contains("title=\"2025-03-01 12:00:00.500 UTC\">1 min ago"));
    assert!(first.contains(">Older</a>") && !first.contains("Searched"));
    view.searched_to = Some(moment());
    let partly = html(&InvocationsPartial {
        invocations: view.clone(),
    });
    assert!(
        partly.contains("Searched back to <time") && partly.contains(">Continue searching</a>"),
        "{partly}"
    );
    view.searched_to = None;
    view.before = Some("k".into());
    view.next = None;
    let second = html(&InvocationsPartial { invocations: view });
    assert!(
        !second.contains("data-poll") && !second.contains("Older</a>"),
        "{second}"
    );
}

fn logs_page(query: &str, lines: Vec<LogLineRow>) -> LogsPage {
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

fn log_line() -> LogLineRow {
    LogLineRow {
        line: log(),
        pieces: vec![(false, HOSTILE.into()), (true, HOSTILE.into())],
        invocation: Some("0190-abcdef".into()),
    }
}

#[test]
fn found_words_are_marked_and_nothing_of_a_line_is_markup() {
    let mut page = logs_page(HOSTILE, vec![log_line()]);
    page.logs.next = Some("7".into());
    let found = html(&page);
    assert_harmless(&found);
    assert_eq!(found.matches("<mark>").count(), 1, "{found}");
    assert!(found.contains("/functions/hello/invocations/0190-abcdef\""));
    assert!(
        found.contains(">abcdef</a>") && found.contains("&#38;before=7\""),
        "{found}"
    );
    assert!(!found.contains("data-tail"), "{found}");
    let live = html(&logs_page("", Vec::new()));
    assert!(
        live.contains("data-tail=\"/api/v1/functions/hello/logs?limit=200&#38;follow=true\""),
        "{live}"
    );
    page.logs.wrong = Some("must have a word".into());
    let wrong = html(&LogsPartial { logs: page.logs });
    assert!(wrong.contains("The search must have a word.") && !wrong.contains("<mark>"));
}

#[test]
fn a_wrong_filter_is_explained_and_stays_as_it_was_typed() {
    let filter = FilterText {
        status: "failed".into(),
        max_ms: HOSTILE.into(),
        ..FilterText::default()
    };
    let wrong = ("max_ms".to_owned(), "must be a number".to_owned());
    let page = html(&invocations_page(filter, Some(wrong)));
    assert!(page.contains("Longest must be a number."), "{page}");
    assert!(page.contains("value=\"failed\" selected"), "{page}");
    assert_eq!(page.matches("aria-invalid=\"true\"").count(), 1, "{page}");
    assert!(!page.contains("data-poll=\"3000\""), "{page}");
    assert_harmless(&page);
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
            event: PayloadView::kept(Some(HOSTILE), true, 5_000),
            result: PayloadView::none("There is none"),
            curl: "curl http://h/api/v1/invocations/id-1".into(),
        },
    });
    for expected in [
        "crashed",
        "The beginning of 4.9 KiB.",
        "There is none",
        "href=\"/functions/hello?event=id-1\"",
        "curl http://h/api/v1/invocations/id-1",
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
        // Those of a runtime that is not there are not offered.
        let offered = page.contains(&format!("id=\"starter-{}\"", starter.key));
        assert_eq!(offered, starter.runtime == "python3", "{}", starter.key);
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
        (html(&code_page()), CODE_FIELDS),
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

fn commands() -> Vec<Command> {
    vec![Command {
        what: "Do it",
        line: HOSTILE.into(),
    }]
}

fn file_entry(path: &str, bytes: Option<u64>, inside: Option<FileList>) -> FileEntry {
    FileEntry {
        name: path.rsplit('/').next().unwrap_or(path).into(),
        path: path.into(),
        opened: path == "pkg/mod.py",
        bytes,
        inside,
    }
}

fn files(entries: Vec<FileEntry>) -> FileList {
    FileList {
        function: "hello".into(),
        version: 2,
        entries,
        left_out: 0,
    }
}

fn code_page() -> CodePage {
    let inside = files(vec![file_entry("pkg/mod.py", Some(12), None)]);
    CodePage {
        chrome: chrome(),
        head: head(),
        handler: HOSTILE.into(),
        version: 2,
        files: files(vec![
            file_entry("lib", None, None),
            file_entry("pkg", None, Some(inside)),
            file_entry(HOSTILE, Some(2048), None),
        ]),
        file: OpenFile {
            opened: "pkg/mod.py".into(),
            path: HOSTILE.into(),
            kind: FileKind::Text,
            text: format!("\n{HOSTILE}"),
            bytes: 12,
        },
        upload: false,
        commands: commands(),
        errors: FieldErrors::default(),
        problem: Some(DeployProblem {
            title: "No".into(),
            error: Some(error()),
            place: Some(CodePlace {
                path: HOSTILE.into(),
                line: 7,
            }),
            ..DeployProblem::default()
        }),
    }
}

#[test]
fn the_code_page_shows_the_tree_the_file_and_the_line() {
    let page = html(&code_page());
    assert_harmless(&page);
    // The way to the open file is unfolded, the other directory waits for a click.
    assert!(page.contains(
        "href=\"/functions/hello/code?path=pkg%2Fmod.py\" data-file=\"pkg/mod.py\" aria-current"
    ));
    assert!(page.contains("/functions/hello/code/files?version=2&dir=lib"));
    assert!(page.contains("data-line=\"7\""));
    assert!(page.contains("2.0 KiB"));
    let mut binary = code_page();
    binary.file.kind = FileKind::Binary;
    binary.chrome = reader();
    let page = html(&binary);
    assert!(page.contains("This file is not text."));
    assert!(!page.contains("id=\"review-button\""));
}

fn diff() -> DiffView {
    DiffView {
        files: vec![FileDiff {
            path: HOSTILE.into(),
            renamed_from: Some("old.py".into()),
            change: FileChange::Renamed,
            added: 1_200,
            removed: 1,
            hunks: vec![Hunk {
                place: "Lines 1 to 2".into(),
                lines: vec![
                    DiffLine {
                        side: Side::Before,
                        number: 1,
                        text: HOSTILE.into(),
                    },
                    DiffLine {
                        side: Side::After,
                        number: 1,
                        text: "new".into(),
                    },
                ],
            }],
            note: String::new(),
        }],
        files_left_out: 2,
        settings: vec![SettingRow {
            name: "env.SECRET".into(),
            before: "set".into(),
            after: "set to another value".into(),
        }],
    }
}

#[test]
fn a_diff_says_in_words_what_it_shows_in_colours() {
    let page = html(&CodeReviewPartial {
        diff: diff(),
        version: 2,
    });
    assert_harmless(&page);
    for expected in [
        "this changes 3 files, 1 setting",
        "removed: ",
        "added: ",
        "+1,200 −1",
        "old.py → ",
        "And 2 more files.",
        "set to another value",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert!(
        html(&CodeReviewPartial {
            diff: DiffView::default(),
            version: 1
        })
        .contains("Nothing differs.")
    );
}

fn versions_page() -> VersionsPage {
    let version = |version, before| VersionRow {
        version,
        active: version == 3,
        created: moment(),
        author: Some(HOSTILE.into()),
        code_sha256: "9f86d081884c7d65".into(),
        code_bytes: 2048,
        before,
        code: version != 2,
        settings: match version {
            2 => diff().settings,
            _ => Vec::new(),
        },
    };
    VersionsPage {
        chrome: chrome(),
        head: head(),
        versions: vec![version(3, Some(2)), version(2, Some(1)), version(1, None)],
        commands: commands(),
    }
}

#[test]
fn only_inactive_versions_can_be_gone_back_to() {
    let page = html(&versions_page());
    assert_harmless(&page);
    for expected in [
        "href=\"/functions/hello/versions/1/activate\" data-method=\"post\"",
        "data-confirm-title=\"Roll back to version 1?\"",
        "/functions/hello/versions/3/diff?against=2",
        "/functions/hello/versions/1/code.zip",
        "first version",
        "env.SECRET: set → set to another value",
        "9f86d081884c<",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert!(!page.contains("/versions/3/activate"));
    assert!(!page.contains("/versions/1/diff"));
}

#[test]
fn two_versions_are_compared_on_a_page_of_their_own() {
    let page = html(&VersionDiffPage {
        chrome: chrome(),
        head: head(),
        before: 1,
        after: 3,
        numbers: vec![3, 2, 1],
        diff: diff(),
    });
    assert!(page.contains("From version 1 to 3"));
    assert!(page.contains("<option value=\"3\" selected>"));
    let page = html(&VersionActivatePage {
        chrome: chrome(),
        head: head(),
        version: 1,
    });
    assert!(page.contains("Activate version 1"));
}

#[test]
fn the_chooser_offers_saved_events_and_samples() {
    let mut picker = EventPicker {
        function: "hello".into(),
        saved: vec![SavedEventRow {
            id: 7,
            name: HOSTILE.into(),
        }],
        picked: "saved-7".into(),
        name: HOSTILE.into(),
        can_write: true,
        said: HOSTILE.into(),
        error: "Give the event a name.".into(),
    };
    let page = html(&picker);
    assert_harmless(&page);
    assert!(page.contains("<option value=\"saved-7\""));
    assert!(page.contains("value=\"sample-http\""));
    assert!(page.contains("id=\"error-event-name\">Give the event a name."));
    picker.can_write = false;
    assert!(!html(&picker).contains("save-event"));
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
        commands: commands(),
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
