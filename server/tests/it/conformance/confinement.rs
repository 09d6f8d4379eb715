//! The sandbox is as tight around every runtime: what a function's own process, and a program it starts, may not do.

use serde_json::{Value, json};

use super::{Language, Subject, for_every_language};

for_every_language!(
    files_outside_tmp_are_out_of_reach,
    nobody_gains_privileges,
    processes_are_bounded,
);

async fn files_outside_tmp_are_out_of_reach(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    assert_eq!(subject.run("write", json!("/tmp/mine")).await, json!(null));
    for path in [
        "/x",
        "/var/task/x",
        "/usr/x",
        "/opt/hearth/x",
        "/etc/passwd",
        "/proc/sys/kernel/hostname",
    ] {
        let problem = subject
            .send("write", json!(path))
            .await
            .problem(502, "function_error");
        assert!(
            ["OSError", "PermissionError", "Error"]
                .contains(&problem["errorType"].as_str().unwrap_or_default()),
            "{path}: {problem}"
        );
    }
    let root = shell(&subject, "ls / /opt/hearth").await;
    assert!(!root.contains("root") && !root.contains("home"), "{root}");
    let own = subject.server.data_dir().display().to_string();
    assert_eq!(
        shell(&subject, &format!("ls {own} 2>/dev/null | wc -l"))
            .await
            .trim(),
        "0"
    );
}

async fn nobody_gains_privileges(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    let status = shell(&subject, "cat /proc/self/status /proc/$PPID/status").await;
    let of = |name: &str| -> Vec<String> {
        let lines = status.lines().filter_map(|line| line.strip_prefix(name));
        lines.map(|rest| rest.trim().to_owned()).collect()
    };
    for name in ["CapEff:", "CapPrm:", "CapBnd:", "CapAmb:", "CapInh:"] {
        let sets = of(name);
        assert!(
            !sets.is_empty() && sets.iter().all(|set| set.trim_matches('0').is_empty()),
            "{name} {sets:?}"
        );
    }
    assert!(
        of("NoNewPrivs:").iter().all(|value| value == "1"),
        "{status}"
    );
    assert!(of("Seccomp:").iter().all(|value| value == "2"), "{status}");
    assert!(
        of("Uid:").iter().all(|ids| ids == "1000\t1000\t1000\t1000"),
        "{status}"
    );
    let visible = shell(&subject, "cat /proc/[0-9]*/comm").await;
    let unexpected: Vec<&str> = visible
        .lines()
        .filter(|name| {
            !["hearth-init", "python3", "node", "sh", "cat", "MainThread"].contains(name)
        })
        .collect();
    assert!(unexpected.is_empty(), "{visible}");
    assert_eq!(
        shell(&subject, "unshare -r true 2>/dev/null; echo $?")
            .await
            .trim(),
        "1"
    );
}

async fn processes_are_bounded(language: Language) {
    let subject = Subject::new(language, json!({"timeout_ms": 20000, "max_concurrency": 1})).await;
    let script = "i=0; while [ $i -lt 300 ]; do sleep 60 & i=$((i+1)); done; echo all";
    let said = subject.send("run", json!(["/bin/sh", "-c", script])).await;
    // The shell gives up, or the interpreter could not even start it; either way the function serves again.
    assert!(
        said.status != 200 || said.json() != json!("all\n"),
        "{}",
        said.text()
    );
    subject
        .send("exit", json!(0))
        .await
        .problem(502, "function_crashed");
    assert_eq!(subject.run("echo", json!(1)).await, 1);
}

async fn shell(subject: &Subject, script: &str) -> String {
    match subject.run("run", json!(["/bin/sh", "-c", script])).await {
        Value::String(text) => text,
        other => panic!("{script}: {other}"),
    }
}
