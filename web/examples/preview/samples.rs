//! The data the preview shows: ordinary values, long ones, and ones that try to break out of the markup.

mod calls;

use calls::log;
use hearth_web::chrome::{Badge, Chrome, Tone};
use hearth_web::live::Values;
use hearth_web::pages::*;
use hearth_web::sparkline::Sparkline;
use hearth_web::starters::STARTERS;
use jiff::{SignedDuration, Timestamp};

pub use calls::{history, invocation, no_history, raised, succeeded};

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

pub fn head(name: &str) -> FunctionHead {
    FunctionHead {
        name: name.into(),
        runtime: "python3",
        version: 4,
        revision: "1.4".into(),
        state: Badge::new("ready", Tone::Good),
        state_reason: None,
        notes: vec!["The import drew 16 random bytes (main.py:3).".into()],
        idle: 3,
        busy: 1,
        starting: 0,
        queued: 0,
        recent: RecentStats {
            count: 12_480,
            errors: 3,
            p50: known(412),
            p99: known(1_930),
        },
    }
}

pub fn function(name: &str, history: HistoryView) -> FunctionPage {
    FunctionPage {
        chrome: chrome(),
        head: head(name),
        url: format!("http://127.0.0.1:8080/fn/{name}"),
        public: false,
        curl: format!(
            "curl http://127.0.0.1:8080/api/v1/functions/{name}/invoke -H \"Authorization: Bearer $HEARTH_TOKEN\" -d "
        ),
        event: "{\n  \"name\": \"world\"\n}".into(),
        explicit_event: false,
        picker: EventPicker {
            function: name.into(),
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
            reason: Some("the import left 2 threads running (ThreadPoolExecutor-0_0, ThreadPoolExecutor-0_1), which a fork would not have".into()),
        },
        image: ImageRow {
            bytes: Some(4_400_000),
            restores: 3,
            failures: 1,
            note: Some("Error (criu/files-reg.c:2311): File var/task/main.py has bad mode".into()),
        },
    }
}

fn commands() -> Vec<Command> {
    vec![Command {
        what: "Deploy a file or a zip archive as a new version",
        line: "curl -X PUT http://127.0.0.1:8080/api/v1/functions/hello/code -F code=@main.py"
            .into(),
    }]
}

pub fn code() -> CodePage {
    let entry = |path: &str, bytes| FileEntry {
        name: path.into(),
        path: path.into(),
        bytes,
        inside: None,
        opened: path == "main.py",
    };
    CodePage {
        chrome: chrome(),
        head: head("hello"),
        handler: "main.handler".into(),
        version: 4,
        files: FileList {
            function: "hello".into(),
            version: 4,
            entries: vec![
                entry("vendored", None),
                entry("helper.py", Some(120)),
                entry("main.py", Some(1_240)),
            ],
            left_out: 0,
        },
        file: OpenFile {
            opened: "main.py".into(),
            path: "main.py".into(),
            kind: FileKind::Text,
            text: STARTERS[0].code.into(),
            bytes: 1_240,
        },
        upload: false,
        commands: commands(),
        errors: FieldErrors::default(),
        problem: None,
    }
}

pub fn versions() -> VersionsPage {
    let version = |number: u32| VersionRow {
        version: number,
        active: number == 4,
        created: ago(i64::from(5 - number) * 7_000),
        author: Some("ada".into()),
        code_sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
        code_bytes: 412 * u64::from(number),
        before: number.checked_sub(1).filter(|before| *before > 0),
        code: number != 3,
        starts: StartRow {
            by: "fork".into(),
            reason: None,
        },
        settings: match number {
            3 => vec![SettingRow {
                name: "memory_mb".into(),
                before: "128 MiB".into(),
                after: "256 MiB".into(),
            }],
            _ => Vec::new(),
        },
        notes: Vec::new(),
    };
    VersionsPage {
        chrome: chrome(),
        head: head("hello"),
        versions: [4, 3, 2, 1].map(version).to_vec(),
        commands: commands(),
    }
}

pub fn settings() -> SettingsPage {
    SettingsPage {
        chrome: chrome(),
        head: head("hello"),
        form: SettingsForm {
            handler: "main.handler".into(),
            memory_mb: "128".into(),
            timeout_ms: "30000".into(),
            max_concurrency: "8".into(),
            idle_timeout_s: "300".into(),
            min_instances: "0".into(),
            keep_warm: false,
            template_idle_timeout_s: "3600".into(),
            start: "auto".into(),
            body: "base64".into(),
            network: "none".into(),
            public: false,
            cors: hearth_web::pages::CorsForm::default(),
            env: Vec::new(),
            env_names: vec!["API_KEY".into(), "STAGE".into()],
            env_removed: Vec::new(),
        },
        outbound_reason: String::new(),
        commands: commands(),
        errors: FieldErrors::default(),
        problem: None,
        delete_error: String::new(),
        loaded: 4,
        revision: "4".to_owned(),
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
