//! What a function prints, from wherever: lines tagged with their stream and their invocation.

use std::time::Duration;

use serde_json::json;

use crate::support::{Server, eventually};

#[tokio::test]
async fn everything_written_is_logged_with_its_stream_and_its_invocation() {
    let server = Server::start();
    let client = server.client();
    let code = "import ctypes, logging, os, subprocess, sys\n\
        libc = ctypes.CDLL(None)\n\
        def handler(event, context):\n    \
            print('print', event)\n    \
            print('error', event, file=sys.stderr)\n    \
            os.write(1, b'os.write %d\\n' % event)\n    \
            os.write(2, b'fd two %d\\n' % event)\n    \
            subprocess.run(['/bin/sh', '-c', 'echo child $0; echo child error $0 >&2', str(event)])\n    \
            libc.puts(b'puts %d' % event)\n    \
            libc.fflush(None)\n    \
            logging.warning('logging %d', event)\n    \
            print('no newline', event, end='')\n";
    client.deploy("talks", code, json!({"memory_mb": 64})).await;
    for event in [1, 2] {
        let answer = client.invoke("talks", &json!(event)).await.expect(200);
        let record = client
            .invocation(answer.header("x-hearth-invocation-id"))
            .await;
        let of_stream = |stream: &str| -> Vec<String> {
            let lines = record["logs"].as_array().unwrap();
            let lines = lines.iter().filter(|line| line["stream"] == stream);
            lines
                .map(|line| line["text"].as_str().unwrap().to_owned())
                .collect()
        };
        let id = answer.header("x-hearth-invocation-id");
        let mut stdout = of_stream("stdout");
        // The one of `logging`, in Lambda's format: "[WARNING]\tTIME\tID\tlogging 1".
        let logged = stdout.remove(4);
        assert!(logged.starts_with("[WARNING]\t20"), "{logged}");
        assert!(
            logged.ends_with(&format!("Z\t{id}\tlogging {event}")),
            "{logged}"
        );
        let expected = ["print", "os.write", "child", "puts", "no newline"];
        assert_eq!(stdout, expected.map(|text| format!("{text} {event}")));
        let expected = ["error", "fd two", "child error"];
        assert_eq!(
            of_stream("stderr"),
            expected.map(|text| format!("{text} {event}"))
        );
    }
}

#[tokio::test]
async fn a_line_without_an_end_that_was_read_early_belongs_to_its_invocation() {
    let server = Server::start();
    let client = server.client();
    let code = "import os, time\n\
        def handler(event, context):\n    \
            os.write(1, b'begun')\n    \
            time.sleep(0.2)\n";
    client.deploy("begins", code, json!({})).await;
    let answer = client.invoke("begins", &json!(0)).await.expect(200);
    let id = answer.header("x-hearth-invocation-id");
    let logs = client.invocation(id).await["logs"].clone();
    assert_eq!(logs[0]["text"], "begun", "{logs}");
}

#[tokio::test]
async fn odd_output_is_kept_readable() {
    let server = Server::start();
    let client = server.client();
    let code = "import os, sys\n\
        def handler(event, context):\n    \
            if event == 'bytes': os.write(1, b'\\xff\\xfe caf\\xc3\\xa9\\r\\n\\n')\n    \
            if event == 'surrogate': print('\\ud800')\n    \
            if event == 'long': print('x' * 40000)\n    \
            if event == 'flood': [print('y' * 999) for _ in range(3000)]\n    \
            if event == 'closed': sys.stdout.close(); sys.stderr.close()\n    \
            if event == 'after': print('still here')\n    \
            return 'well'\n";
    client.deploy("odd", code, json!({})).await;
    let mut logs = Vec::new();
    for event in ["bytes", "surrogate", "long", "flood", "closed", "after"] {
        let answer = client.invoke("odd", &json!(event)).await.expect(200);
        assert_eq!(answer.json(), "well", "{event}");
        let record = client
            .invocation(answer.header("x-hearth-invocation-id"))
            .await;
        let lines = record["logs"].as_array().unwrap().clone();
        logs.push(
            lines
                .iter()
                .map(|line| line["text"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(logs[0], ["\u{fffd}\u{fffd} café", ""]);
    assert_eq!(logs[1], ["\\ud800"]);
    assert_eq!(
        logs[2].concat(),
        "x".repeat(40_000),
        "a long line is cut into several"
    );
    let flood: usize = logs[3].iter().map(String::len).sum();
    assert!(flood <= 1 << 20, "{flood} bytes were kept");
    assert!(
        logs[3].last().unwrap().contains("limited"),
        "and it says so"
    );
    assert!(logs[4].is_empty());
    assert_eq!(logs[5], ["still here"], "closed streams are opened again");
}

#[tokio::test]
async fn what_comes_after_the_answer_belongs_to_the_invocation_before() {
    let server = Server::start();
    let client = server.client();
    let code = "import subprocess, threading, time\n\
        def handler(event, context):\n    \
            subprocess.Popen(['/bin/sh', '-c', 'sleep 0.3; echo from a child'])\n    \
            threading.Timer(0.3, print, ['from a thread']).start()\n    \
            print('at once')\n";
    client.deploy("lingers", code, json!({})).await;
    let answer = client.invoke("lingers", &json!(0)).await.expect(200);
    let id = answer.header("x-hearth-invocation-id");
    let logs = eventually("all of it is kept", Duration::from_secs(10), || async {
        let logs = client.invocation(id).await["logs"].clone();
        (logs.as_array().unwrap().len() == 3).then_some(logs)
    })
    .await;
    assert_eq!(logs[0]["text"], "at once");
    assert!(
        logs.to_string().contains("from a child") && logs.to_string().contains("from a thread")
    );
}
