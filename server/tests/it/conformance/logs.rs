//! What a function prints, from wherever: lines tagged with their stream and their invocation.

use serde_json::json;

use super::{Language, Subject, for_every_language};

for_every_language!(
    everything_written_is_logged_with_its_invocation,
    the_log_of_a_failure_is_kept,
);

async fn everything_written_is_logged_with_its_invocation(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    for n in [1, 2] {
        let answer = subject.send("talk", json!(n)).await.expect(200);
        let record = subject.record(&answer).await;
        let of_stream = |stream: &str| -> Vec<String> {
            let lines = record["logs"].as_array().expect("a list");
            let lines = lines.iter().filter(|line| line["stream"] == stream);
            lines
                .map(|line| line["text"].as_str().unwrap_or_default().to_owned())
                .collect()
        };
        let expected = ["print", "descriptor", "child", "no newline"];
        assert_eq!(
            of_stream("stdout"),
            expected.map(|text| format!("{text} {n}"))
        );
        assert_eq!(
            of_stream("stderr"),
            ["error", "child error"].map(|text| format!("{text} {n}"))
        );
    }
}

async fn the_log_of_a_failure_is_kept(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    let code = language.choose(
        "import os\ndef handler(event, context):\n    print('last words', flush=True)\n    os._exit(1)\n",
        "exports.handler = async () => { console.log('last words'); process.exit(1); };\n",
    );
    subject.deploy("dies", code, json!({})).await.expect(201);
    let answer = subject.client.invoke("dies", &json!(null)).await;
    let record = subject.record(&answer).await;
    answer.problem(502, "function_crashed");
    assert_eq!(record["logs"][0]["text"], "last words", "{record}");
}
