//! Invocations, their outcome, and log lines.

use super::*;

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
        first.contains("data-calls=\"/functions/hello/invocations?status"),
        "the newest page follows: {first}"
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
        !second.contains("data-calls=") && !second.contains("Older</a>"),
        "{second}"
    );
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
    page.logs.wrong = Some("must contain a word".into());
    let wrong = html(&LogsPartial { logs: page.logs });
    assert!(wrong.contains("The search must contain a word.") && !wrong.contains("<mark>"));
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
    assert!(page.contains("Max ms must be a number."), "{page}");
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
        explanation: Default::default(),
        chrome: chrome(),
        invocation: InvocationDetails {
            id: "id-1".into(),
            function: "hello".into(),
            version: 3,
            trigger: "http",
            status: Badge::new("crashed", Tone::Bad),
            start_kind: None,
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
        "No output.",
        "Attempts",
        "2025-03-01 12:00:00.500 UTC",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert_harmless(&page);
}

#[test]
fn an_image_is_told_of_in_a_sentence() {
    let html = html(&function(chrome(), history(Vec::new())));
    assert!(html.contains("Template image: 4.2 MiB, restored 3 times; 1 restore failed."));
    assert_eq!(ImageRow::default().in_words(), "No template image.");
}

#[test]
fn titles_begin_with_the_function_and_crumbs_end_with_a_page() {
    let logs = html(&logs_page("", Vec::new()));
    assert!(
        logs.contains("<title>hello · Logs · Hearth</title>"),
        "{logs}"
    );
    assert!(logs.contains(">Functions</a></nav>"), "{logs}");
}

#[test]
fn log_lines_are_dated_by_day() {
    let line = |time: &str| {
        let mut row = log_line();
        row.line.time = time.parse().expect("a time");
        row
    };
    let lines = vec![
        line("2025-01-31T22:00:00Z"),
        line("2025-01-31T23:59:59.999Z"),
        line("2025-02-01T00:00:00Z"),
    ];
    let page = html(&logs_page("x", lines));
    let headings: Vec<_> = page
        .split("<li class=\"log-day\">")
        .skip(1)
        .map(|rest| &rest[..10])
        .collect();
    assert_eq!(headings, ["2025-01-31", "2025-02-01"]);
    assert!(page.contains("data-zone>UTC<"), "{page}");
}

#[test]
fn large_numbers_are_grouped_and_times_are_told_in_their_unit() {
    let words: Vec<_> = crate::pages::fields::NUMBER_FIELDS
        .iter()
        .map(|field| (field.rule(), field.default_in_words()))
        .collect();
    assert_eq!(words[1], ("1 to 900,000".into(), "30,000 (30 s)".into()));
    assert_eq!(words[3], ("1 to 86,400".into(), "300 (5 min)".into()));
    assert_eq!(words[5], ("0 to 2,592,000".into(), "3,600 (1 h)".into()));
}
