//! Figures, not tests.

use std::io::Write as _;
use std::time::Instant;

use crate::harness::{Harness, fresh_pair};

/// Figures, not a test: `cargo test -p hearth --test sandbox_host -- --ignored --nocapture figures`.
#[tokio::test]
#[ignore = "prints figures"]
async fn how_long_a_sandbox_takes() {
    const TIMES: usize = 50;
    let harness = Harness::new("say('up')\nimport time; time.sleep(600)");
    let shell = ["/bin/sh", "-c", "echo up >&3; sleep 600"].map(String::from);
    for (what, argv) in [("python3", None), ("sh", Some(shell.to_vec()))] {
        let (mut created, mut heard, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let mut spec = harness.spec();
            spec.uid_base = fresh_pair();
            if let Some(argv) = &argv {
                spec.argv.clone_from(argv);
            }
            let start = Instant::now();
            let sandbox = harness.create_from(spec).await;
            created.push(start.elapsed());
            sandbox.hear_bytes().await;
            heard.push(start.elapsed());
            let start = Instant::now();
            sandbox.live.destroy().await;
            gone.push(start.elapsed());
        }
        for (step, times) in [
            ("created", &mut created),
            ("first message", &mut heard),
            ("destroyed", &mut gone),
        ] {
            times.sort_unstable();
            let (p50, p90) = (times[TIMES / 2], times[TIMES * 9 / 10]);
            writeln!(std::io::stdout(), "{what} {step}: p50 {p50:?} p90 {p90:?}").expect("print");
        }
    }
    harness.finish().await;
}
