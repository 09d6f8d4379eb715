//! What calls leave: outcomes, history, one invocation with all that is kept of it.

use hearth_web::chrome::{Badge, Tone};
use hearth_web::json::JsonText;
use hearth_web::pages::*;
use hearth_web::stage_bar::{StageBar, StageTimes};
use jiff::{SignedDuration, Timestamp};

use super::ago;

const GOOD: Badge = Badge::new("succeeded", Tone::Good);
const ID: &str = "01994c3e-8f2a-7c41-9d52-3f6a1b0c9e77";

pub(super) fn log(ms: i64, stream: &'static str, text: &str) -> LogRow {
    LogRow {
        time: Timestamp::now() + SignedDuration::from_millis(ms),
        stream,
        text: text.into(),
    }
}

pub fn no_history(name: &str) -> HistoryView {
    HistoryView {
        function: name.into(),
        rows: Vec::new(),
    }
}

pub fn history() -> HistoryView {
    let row = |number: i64, status, start_kind, total_us, run_us| HistoryRow {
        id: format!("{}{number:02}", &ID[..34]),
        received: ago(number * number * 7),
        status,
        start_kind,
        version: 4,
        trigger: if number % 3 == 0 { "http" } else { "invoke" },
        total_us,
        run_us,
        request_bytes: 17,
        response_bytes: 1_400 * number as u64,
    };
    HistoryView {
        rows: vec![
            row(0, GOOD, "warm", 402, 310),
            row(1, GOOD, "fork", 1_930, 720),
            row(2, Badge::new("failed", Tone::Bad), "warm", 512, 430),
            row(
                6,
                Badge::new("timed out", Tone::Bad),
                "warm",
                30_001_200,
                30_000_100,
            ),
            row(
                12,
                Badge::new("out of memory", Tone::Bad),
                "fork",
                210_400,
                208_000,
            ),
            row(40, GOOD, "boot", 148_300, 690),
        ],
        ..no_history("hello")
    }
}

fn stages() -> StageBar {
    StageBar::new(StageTimes {
        queue: 0,
        start: 812,
        send: 9,
        run: 1_040,
        recv: 14,
        total: 1_932,
    })
}

pub fn succeeded() -> InvokeOutcome {
    InvokeOutcome {
        http_status: 200,
        badge: GOOD,
        result: Some(JsonText::new(
            format!(r#"{{"message":"Hello, <b>world</b>!","invocation":"{ID}"}}"#).as_bytes(),
        )),
        message: String::new(),
        error: None,
        invocation: Some(ID.into()),
        function: "hello".into(),
        headers: vec![
            ("X-Hearth-Invocation-Id".into(), ID.into()),
            ("X-Hearth-Start".into(), "fork".into()),
            ("X-Hearth-Version".into(), "4".into()),
        ],
        image: None,
        started: "started by fork in 812 µs".into(),
        start_kind: Some("fork"),
        stages: Some(stages()),
        logs: vec![
            log(0, "stdout", "saying hello to <script>alert(1)</script>"),
            log(
                1,
                "stderr",
                "DeprecationWarning: a long line that goes on and on until it has to be broken somewhere",
            ),
        ],
    }
}

pub fn raised() -> InvokeOutcome {
    InvokeOutcome {
        http_status: 502,
        badge: Badge::new("function_error", Tone::Bad),
        result: None,
        error: Some(error_view()),
        ..succeeded()
    }
}

fn error_view() -> ErrorView {
    ErrorView {
        error_type: "KeyError".into(),
        message: "'user_id'".into(),
        stack_trace: vec![
            "  File \"/var/task/main.py\", line 12, in handler\n    return greet(event[\"user_id\"])\n".into(),
            "                 ~~~~~^^^^^^^^^^^\n".into(),
        ],
    }
}

pub fn invocation() -> InvocationDetails {
    InvocationDetails {
        id: ID.into(),
        function: "hello".into(),
        version: 4,
        trigger: "invoke",
        status: Badge::new("failed", Tone::Bad),
        start_kind: Some("fork"),
        received: ago(75),
        finished: Some(ago(75)),
        stages: stages(),
        request_bytes: 17,
        response_bytes: 0,
        attempts: 1,
        error: Some(error_view()),
        logs: succeeded().logs,
        event: PayloadView::kept(Some("{\"name\":\"world\"}"), false, 17),
        result: PayloadView::none("There is none: the invocation did not succeed."),
        curl: format!("curl http://127.0.0.1:8080/api/v1/invocations/{ID}"),
    }
}
