//! An instance that was forked ahead of the request that will want it.
#![deny(unsafe_code)]

use hearth_testkit::worker::boot;
use rustix::process::Signal;
use serde_json::json;

const SOURCE: &str = r#"
import { register_after_restore } from "snapshot_restore_node";
let ticks = 0;
let restored = 0;
setInterval(() => { ticks += 1; }, 1);
register_after_restore(() => { restored = Date.now(); console.log("restored"); });
let calls = 0;
export const handler = async (event) => {
  calls += 1;
  return { calls, ticks, late: restored >= event.wanted, random: Math.random(), pid: process.pid };
};
"#;

#[test]
fn it_waits_and_nothing_of_the_functions_runs() {
    let mut template = boot(SOURCE);
    let mut instances: Vec<_> = (0..2).map(|_| template.prefork()).collect();
    template.assert_waiting(&instances.iter().collect::<Vec<_>>());
    for instance in &instances {
        assert_eq!(instance.drain_stdout(), "", "no hook has run");
    }
    let wanted = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock")
        .as_millis() as u64;
    let mut answers = Vec::new();
    for instance in &mut instances {
        instance.go();
        instance.wait_ready().expect("ready");
        let answer = instance.call(&json!({ "wanted": wanted }));
        assert_eq!(answer["calls"], 1, "it has practised without the handler");
        assert_eq!(answer["late"], true, "the hook ran when it was wanted");
        assert_eq!(answer["pid"], instance.pid);
        answers.push(answer);
    }
    assert_ne!(answers[0]["random"], answers[1]["random"]);
    // The function's own timer goes on from where the import left it.
    assert_eq!(answers[0]["ticks"], answers[1]["ticks"]);
}

#[test]
fn one_that_nobody_wants_ends_with_its_server() {
    let mut template = boot(SOURCE);
    let unwanted = template.prefork();
    template.assert_waiting(&[&unwanted]);
    drop(unwanted);
    let ended = template.message();
    assert_eq!(
        (&ended["type"], &ended["code"]),
        (&json!("exited"), &json!(0)),
        "{ended}"
    );
    let killed = template.fork();
    killed.kill(Signal::KILL);
    assert_eq!(template.message()["signal"], 9);
}
