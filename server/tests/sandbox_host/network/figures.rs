//! Figures, not tests: `cargo test --release -p hearth --test sandbox_host -- --ignored --nocapture network::figures`.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hearth::sandbox::{KernelPolicy, Protocol};

use super::world::{PUBLIC, STREAM, TCP, World, harness, to, with_policy, within};
use crate::harness::{fresh_pair, processes_of};

const TIMES: usize = 60;

fn print(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let (p50, p90) = (times[times.len() / 2], times[times.len() * 9 / 10]);
    writeln!(io::stdout(), "{what}: p50 {p50:?} p90 {p90:?}").expect("print");
}

fn policy() -> KernelPolicy {
    KernelPolicy {
        allow: vec![
            to(PUBLIC[0], 32, Protocol::Tcp, TCP),
            to(PUBLIC[0], 32, Protocol::Tcp, STREAM),
        ],
        ..KernelPolicy::default()
    }
}

#[tokio::test]
#[ignore = "prints figures"]
async fn what_a_network_costs() {
    let _world = World::enter();
    let harness = harness();
    let shell = ["/bin/sh", "-c", "echo up >&3; sleep 600"].map(String::from);
    let (mut plain, mut with, mut gone, mut gone_with) = (vec![], vec![], vec![], vec![]);
    for _ in 0..TIMES {
        for (network, created, destroyed) in [
            (None, &mut plain, &mut gone),
            (Some(policy()), &mut with, &mut gone_with),
        ] {
            let mut spec = harness.spec();
            (spec.uid_base, spec.network) = (fresh_pair(), network);
            spec.argv = shell.to_vec();
            let start = Instant::now();
            let sandbox = harness.create_from(spec).await;
            sandbox.hear_bytes().await;
            created.push(start.elapsed());
            let start = Instant::now();
            sandbox.live.destroy().await;
            destroyed.push(start.elapsed());
        }
    }
    print("first message, no network", &mut plain);
    print("first message, a policy", &mut with);
    print("destroyed, no network", &mut gone);
    print("destroyed, a policy", &mut gone_with);

    let sandbox = with_policy(&harness, policy()).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    let mut allowed = vec![];
    for number in 0..500_u32 {
        let ip = std::net::Ipv4Addr::from_bits(0x5db8_0000 + number).into();
        let start = Instant::now();
        let asked = outbound.allow(ip, Protocol::Tcp, 443..=443, Duration::from_secs(60));
        asked.await.expect("allowed");
        allowed.push(start.elapsed());
    }
    print("an address is allowed", &mut allowed);

    let connect = || {
        let mut times = vec![];
        for _ in 0..1000 {
            let start = Instant::now();
            let mut stream = TcpStream::connect((PUBLIC[0], TCP))?;
            stream.write_all(b"ping")?;
            stream.read_exact(&mut [0; 4])?;
            times.push(start.elapsed());
        }
        Ok(times)
    };
    let pull = || {
        let mut stream = TcpStream::connect((PUBLIC[0], STREAM))?;
        let (start, mut got, mut bytes) = (Instant::now(), 0_usize, vec![0; 1 << 17]);
        while start.elapsed() < Duration::from_secs(2) {
            got += stream.read(&mut bytes)?;
        }
        Ok(got as f64 / start.elapsed().as_secs_f64() / 1e9)
    };
    let pid = processes_of(harness.uid())[0];
    let (inside, host) = (format!("/proc/{pid}/ns/net"), "/proc/thread-self/ns/net");
    for _ in 0..3 {
        for (what, namespace) in [("two plain namespaces", host), ("a policy", &inside)] {
            let mut times = within(namespace, connect).expect("connected");
            print(
                &format!("a connection with one exchange, {what}"),
                &mut times,
            );
            let rate = within(namespace, pull).expect("pulled");
            writeln!(io::stdout(), "throughput, {what}: {rate:.2} GB/s").expect("print");
        }
    }
    harness.end(sandbox).await;
}
