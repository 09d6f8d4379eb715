//! What the preview shows of one function.

use hearth_web::chrome::{Badge, Tone};
use hearth_web::pages::*;
use hearth_web::starters::STARTERS;

use super::{ago, chrome, known};

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
        gate: (number == 3).then(|| GateRow {
            badge: Badge::new("refused by the gate", Tone::Bad),
            against: 2,
            experiment: 7,
            reason: "is slower by +12 % with small (small +12 %, +10 % to +14 %)".into(),
        }),
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
            network: hearth_web::pages::NetworkForm {
                mode: "rules".into(),
                allow: "api.stripe.com\n*.amazonaws.com:443".into(),
                dry_run: false,
            },
            public: false,
            triggers: "tcp 9000\nudp 9001 batch 64 wait 2".to_owned(),
            port_limits: hearth_web::pages::PortLimitsForm {
                source_rate: "100".into(),
                source_burst: "200".into(),
                ..Default::default()
            },
            cors: hearth_web::pages::CorsForm::default(),
            env: Vec::new(),
            env_names: vec!["API_KEY".into(), "STAGE".into()],
            env_removed: Vec::new(),
        },
        outbound_reason: String::new(),
        limits_reason: String::new(),
        gate: GateForm {
            on: true,
            threshold: "5".into(),
            confidence: "99".into(),
            events: String::new(),
            recorded: "20".into(),
            error: String::new(),
        },
        commands: commands(),
        errors: FieldErrors::default(),
        problem: None,
        delete_error: String::new(),
        loaded: 4,
        revision: "4".to_owned(),
    }
}
