//! The data the preview shows: ordinary values, long ones, and ones that try to break out of the markup.

mod calls;
mod function;

use calls::log;
use hearth_web::chrome::{Badge, Chrome, Tone};
use hearth_web::live::Values;
use hearth_web::pages::*;
use hearth_web::sparkline::Sparkline;
use hearth_web::starters::STARTERS;
use jiff::{SignedDuration, Timestamp};

pub use calls::{history, invocation, no_history, raised, succeeded};
pub use function::*;

pub fn chrome() -> Chrome {
    Chrome {
        csrf: "sample".into(),
        user_name: "ada".into(),
        token_name: String::new(),
        can_write: true,
        can_invoke: true,
        can_admin: true,
        ..Chrome::default()
    }
}

fn ago(seconds: i64) -> Moment {
    let now = Timestamp::now();
    Moment {
        at: now - SignedDuration::from_secs(seconds),
        now,
    }
}

pub fn login_failed() -> LoginPage {
    LoginPage {
        error: "Unknown token. Copy all of it, without quotes.".into(),
        ..LoginPage::default()
    }
}

pub fn functions() -> FunctionsPage {
    let mut list = ListView {
        query: ListQuery {
            sort: "name".into(),
            page: 1,
            ..ListQuery::default()
        },
        matching: 3,
        all: 3,
        pages: 1,
        ..ListView::default()
    };
    let long = "a-name-that-is-as-long-as-a-name-may-be-and-then-it-must-be-wrapped";
    for (name, state, cells) in [
        (
            "hello",
            Badge::new("ready", Tone::Good),
            ["4", "41.6", "0 %", "412 µs", "1.93 ms"],
        ),
        (
            "thumbnail",
            Badge::new("failed", Tone::Bad),
            ["0", "0", "–", "–", "–"],
        ),
        (
            long,
            Badge::new("asleep", Tone::Quiet),
            ["1", "0.2", "12 %", "1.23 s", "14.0 s"],
        ),
    ] {
        for (key, text) in ["instances", "rate", "errors", "p50", "p99"]
            .iter()
            .zip(cells)
        {
            list.live.set(format!("{name}/{key}"), text);
        }
        list.live
            .set_html(format!("{name}/state"), badge(state, None));
        list.rows.push(FunctionRow {
            name: name.into(),
            runtime: "python3",
            copy_of: None,
            max_concurrency: 8,
        });
    }
    FunctionsPage {
        chrome: chrome(),
        list,
    }
}

pub fn new() -> NewPage {
    NewPage {
        chrome: chrome(),
        form: FunctionForm::starting_from(STARTERS[0], "hello".into()),
        starter: STARTERS[0].key.into(),
        native_reason: String::new(),
        provided_reason: String::new(),
        node_reason: String::new(),
        node_boots: "it was killed by signal 11".into(),
        outbound_reason: "this version of Hearth has no outbound network for functions".into(),
        errors: FieldErrors::default(),
        problem: None,
    }
}

pub fn new_failed() -> NewPage {
    let mut page = new();
    page.form.name = "Hello".into();
    page.form.memory_mb = "1".into();
    page.errors = FieldErrors::one(
        "memory_mb",
        "Must be a whole number from 32 to 16384.".into(),
    );
    page.problem = Some(import_problem());
    page
}

pub fn import_problem() -> DeployProblem {
    DeployProblem {
        title: "The code does not import. Nothing was changed.".into(),
        detail: String::new(),
        error: Some(ErrorView {
            error_type: "ModuleNotFoundError".into(),
            message: "No module named 'requests'".into(),
            stack_trace: vec![
                "  File \"/var/task/main.py\", line 3, in <module>\n    import requests\n".into(),
            ],
        }),
        output: vec![log(1, "stdout", "loading …")],
        place: Some(CodePlace {
            path: "main.py".into(),
            line: 3,
        }),
        request_id: "5f2c7d0a9b3e41f800000000000000a1".into(),
    }
}

pub fn error() -> ErrorPage {
    ErrorPage {
        chrome: Some(chrome()),
        status: 404,
        title: "Not found".into(),
        detail: "There is no function \"helo\".".into(),
        request_id: "5f2c7d0a9b3e41f800000000000000a1".into(),
    }
}

pub fn overview() -> OverviewPage {
    let mut live = Values::default();
    for (key, text) in [
        ("rate", "41.6"),
        ("error-rate", "0.2"),
        ("most", "96"),
        ("instances", "2 busy, 6 idle"),
        ("cpu", "12 % of 2 processors"),
        ("memory", "3.1 GiB of 24 GiB"),
        ("disk", "41 GiB of 80 GiB"),
        ("kept", "212 MiB of 12 GiB"),
        ("load", "0.42, 0.51, 0.60"),
        ("resident", "96 MiB"),
        ("uptime", "3 h 12 min"),
        ("state-ready", "3"),
        ("state-failed", "1"),
    ] {
        live.set(key, text);
    }
    live.set_count("invocations", 1_204_881);
    for (key, part) in [
        ("cpu", 0.12),
        ("memory", 0.13),
        ("disk", 0.51),
        ("kept", 0.02),
    ] {
        live.set_bar(key, part, 1.0);
    }
    let seconds: Vec<(u32, u32)> = (0..300_u32)
        .map(|s| ((s * s) % 97, u32::from(s % 50 == 0)))
        .collect();
    OverviewPage {
        chrome: chrome(),
        is_empty: false,
        live,
        requests: Sparkline::new(&seconds),
        states: vec![
            (Badge::new("ready", Tone::Good), "state-ready", "ready"),
            (Badge::new("failed", Tone::Bad), "state-failed", "failed"),
        ],
        capabilities: vec![
            CapabilityRow {
                name: "landlock".into(),
                available: true,
                version: "7".into(),
                reason: String::new(),
            },
            CapabilityRow {
                name: "criu".into(),
                available: false,
                version: String::new(),
                reason: "no program of this name".into(),
            },
        ],
        host: "build-7, Linux 6.18".into(),
        version: "0.1.0",
    }
}

fn known(us: u64) -> hearth_web::pages::Percentile {
    hearth_web::pages::Percentile {
        us: Some(us),
        ..Default::default()
    }
}
