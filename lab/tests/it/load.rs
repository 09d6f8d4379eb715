//! The load generator against servers whose behaviour is known.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use hearth_lab::load::process::Generator;
use hearth_lab::load::{
    Arrivals, Burst, Ended, Fault, Outcome, Plan, Report, Request, Round, Sample, Schedule, Trust,
    run,
};

use crate::support::{Peer, TlsPeer, answer};

fn plan(url: String, schedule: Schedule) -> Plan {
    Plan {
        requests: vec![Request {
            method: "GET".to_owned(),
            url,
            headers: Vec::new(),
            body: String::new(),
        }],
        schedule,
        connections: 4,
        keep_alive: 4,
        timeout_ms: 20_000,
        capture_bytes: 0,
        faults_max: None,
        processor: None,
        trust: Trust::default(),
    }
}

fn closed(count: u64) -> Schedule {
    Schedule::Closed {
        duration_ms: None,
        count: Some(count),
    }
}

fn outcome(plan: &Plan) -> Outcome {
    plan.check().expect("a good plan");
    run(plan, None, &mut |_| {}).expect("it runs")
}

fn faults(outcome: &Outcome) -> Vec<Option<Fault>> {
    outcome.samples.iter().map(|sample| sample.fault).collect()
}

#[test]
fn a_closed_loop_keeps_its_connections_busy_and_sees_the_servers_delay() {
    let delay = Duration::from_millis(20);
    let peer = Peer::answers_after(delay);
    let outcome = outcome(&plan(peer.url(), closed(41)));
    assert_eq!(outcome.ended, Ended::Complete);
    assert_eq!(
        (outcome.samples.len(), peer.requests(), peer.connections()),
        (41, 41, 4)
    );
    for sample in &outcome.samples {
        assert_eq!((sample.fault, sample.status, sample.bytes), (None, 200, 2));
        assert!(
            u128::from(sample.to_first()) >= delay.as_nanos(),
            "{sample:?}"
        );
        assert!(sample.sent <= sample.first && sample.first <= sample.last);
        assert_eq!(sample.intended, sample.sent);
    }
}

#[test]
fn an_open_loop_sends_at_its_times_whatever_the_server_does() {
    let peer = Peer::answers_after(Duration::from_millis(30));
    let schedule = Schedule::Open {
        arrivals: Arrivals::Fixed { rate: 500.0 },
        duration_ms: Some(400),
        count: None,
    };
    let plan = Plan {
        connections: 200,
        keep_alive: 200,
        ..plan(peer.url(), schedule)
    };
    let outcome = outcome(&plan);
    let report = Report::of(&plan, &outcome);
    assert_eq!((report.sent, report.good, report.unsent), (200, 200, 0));
    let mut intended: Vec<u64> = outcome
        .samples
        .iter()
        .map(|sample| sample.intended)
        .collect();
    intended.sort_unstable();
    let expected: Vec<u64> = (0..200).map(|number| number * 2_000_000).collect();
    assert_eq!(intended, expected);
    assert!(
        outcome
            .samples
            .iter()
            .all(|sample| sample.sent >= sample.intended)
    );
    assert!(report.rate_error.is_some() && report.send_delay_ns.is_some());
    assert!(report.processor_ns > 0);
}

/// The generator's own error. A busy host is slow now and then, so these are medians, and the bounds are far from what they
/// usually are (well below a millisecond): only a generator that measures or sends wrongly is beyond them.
#[test]
fn latencies_are_the_servers_and_requests_are_sent_on_time() {
    const DELAY_NS: f64 = 200e6;
    let peer = Peer::answers_after(Duration::from_nanos(DELAY_NS as u64));
    let schedule = Schedule::Open {
        arrivals: Arrivals::Fixed { rate: 40.0 },
        duration_ms: None,
        count: Some(80),
    };
    let plan = Plan {
        connections: 40,
        keep_alive: 40,
        ..plan(peer.url(), schedule)
    };
    let report = Report::of(&plan, &outcome(&plan));
    assert_eq!((report.good, report.unsent), (80, 0), "{report:?}");
    for latency in [report.to_first_byte, report.to_last_byte] {
        for of in [latency.uncorrected_ns, latency.corrected_ns] {
            let median = of.expect("latencies").median;
            assert!((DELAY_NS..2.0 * DELAY_NS).contains(&median), "{report:?}");
        }
    }
    let delay = report.send_delay_ns.expect("delays").median;
    assert!(delay < 20e6, "{report:?}");
    let error = report.rate_error.expect("a planned rate");
    assert!(error.abs() < 0.2, "{report:?}");
}

/// A server that stands still for a while, behind a single connection: of all that should have been sent meanwhile one was. Measured
/// from sending, one is slow; from the intended times, all of them are.
#[test]
fn coordinated_omission_is_corrected() {
    let peer = Peer::start(|number, stream| {
        if number == 50 {
            thread::sleep(Duration::from_millis(400));
        }
        answer(stream, b"ok")?;
        Ok(true)
    });
    let schedule = Schedule::Open {
        arrivals: Arrivals::Fixed { rate: 1_000.0 },
        duration_ms: None,
        count: Some(600),
    };
    let plan = Plan {
        connections: 1,
        keep_alive: 1,
        ..plan(peer.url(), schedule)
    };
    let outcome = outcome(&plan);
    let slow = |of: fn(&Sample) -> u64| {
        let all = outcome.samples.iter().map(of);
        all.filter(|latency| *latency >= 200_000_000).count()
    };
    assert_eq!(outcome.samples.len(), 600);
    let (uncorrected, corrected) = (slow(Sample::to_last), slow(Sample::to_last_corrected));
    assert!(uncorrected >= 1);
    // 400 requests were due in the pause, and half of them waited for at least half of it.
    assert!(
        corrected >= 150 && corrected > 10 * uncorrected,
        "{corrected}, {uncorrected}"
    );
}

#[test]
fn what_was_due_and_never_sent_is_told() {
    let peer = Peer::answers_after(Duration::from_millis(100));
    let schedule = Schedule::Open {
        arrivals: Arrivals::Exponential {
            rate: 1_000.0,
            seed: 1,
        },
        duration_ms: Some(300),
        count: None,
    };
    let plan = Plan {
        connections: 2,
        ..plan(peer.url(), schedule)
    };
    let report = Report::of(&plan, &outcome(&plan));
    // Two connections of 10 requests per second each.
    assert!(report.sent <= 8, "{report:?}");
    assert!(
        (240..=360).contains(&(report.sent + report.unsent)),
        "{report:?}"
    );
    assert!(
        report.rate_error.is_some_and(|error| error < -0.5),
        "{report:?}"
    );
}

#[test]
fn bursts_are_sent_at_once_and_after_the_answers_to_the_one_before() {
    // Answers a burst when it has all of it: none of its connections is free for another of its requests.
    let arrived = Arc::new((Mutex::new(0), Condvar::new()));
    let peer = Peer::start(move |number, stream| {
        let whole = [30, 35, 535].into_iter().find(|whole| number < *whole);
        let whole = whole.expect("no request more");
        let (count, more) = &*arrived;
        *count.lock().expect("no panic") += 1;
        more.notify_all();
        let waiting = count.lock().expect("no panic");
        let wait =
            more.wait_timeout_while(waiting, Duration::from_secs(20), |count| *count < whole);
        drop(wait.expect("no panic"));
        answer(stream, b"ok")?;
        Ok(true)
    });
    let burst = |size| Burst { request: 0, size };
    let rounds = vec![
        Round {
            pause_ms: 20,
            bursts: vec![burst(30), burst(5)],
        },
        Round {
            pause_ms: 20,
            bursts: vec![burst(500)],
        },
    ];
    let plan = Plan {
        connections: 500,
        keep_alive: 2,
        capture_bytes: 1,
        ..plan(peer.url(), Schedule::Bursts { rounds })
    };
    let outcome = outcome(&plan);
    assert!(outcome.samples.iter().all(|sample| sample.fault.is_none()));
    assert!(
        outcome
            .samples
            .iter()
            .all(|sample| sample.body.as_deref() == Some(b"o"))
    );
    let mut bursts: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in &outcome.samples {
        bursts.entry(sample.burst).or_default().push(sample);
    }
    let sizes: Vec<usize> = bursts.values().map(Vec::len).collect();
    assert_eq!(sizes, [30, 5, 500]);
    let first = |burst: u32| bursts[&burst].iter().map(|sample| sample.sent).min();
    let last = |burst: u32| bursts[&burst].iter().map(|sample| sample.last).max();
    assert!(first(0) >= Some(20_000_000));
    assert!(first(1) >= last(0) && first(2) >= last(1).map(|last| last + 20_000_000));
    // Two connections were kept of the first burst.
    let reused = |burst: u32| {
        bursts[&burst]
            .iter()
            .filter(|one| one.connected == 0)
            .count()
    };
    assert_eq!((reused(0), reused(1), reused(2)), (0, 2, 2));
    assert_eq!(peer.connections(), 30 + 3 + 498);
}

#[test]
fn a_server_that_stops_half_way_costs_one_request_each_time() {
    let peer = Peer::start(|number, stream| {
        if number.is_multiple_of(2) {
            answer(stream, b"ok")?;
            return Ok(true);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")?;
        Ok(false)
    });
    let one = Plan {
        connections: 1,
        keep_alive: 1,
        ..plan(peer.url(), closed(6))
    };
    let outcome = outcome(&one);
    let closed = Some(Fault::Closed);
    assert_eq!(faults(&outcome), [None, closed, None, closed, None, closed]);
    assert!(outcome.samples[1].first > 0 && outcome.samples[1].bytes == 4);
}

#[test]
fn a_server_that_never_answers_or_goes_on_costs_the_time_limit() {
    for half in [
        b"".as_slice(),
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
    ] {
        let peer = Peer::start(move |_, stream| {
            stream.write_all(half)?;
            Ok(true)
        });
        let plan = Plan {
            timeout_ms: 50,
            ..plan(peer.url(), closed(8))
        };
        let outcome = outcome(&plan);
        assert_eq!(outcome.ended, Ended::Complete);
        assert_eq!(faults(&outcome), [Some(Fault::Timeout); 8]);
        assert!(
            outcome
                .samples
                .iter()
                .all(|sample| sample.to_last() >= 50_000_000)
        );
    }
}

#[test]
fn other_statuses_bad_answers_and_refused_connections_are_faults() {
    let busy = Peer::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n")?;
        Ok(true)
    });
    let outcome_of = |url: String| outcome(&plan(url, closed(5)));
    let refused = outcome_of(busy.url());
    assert_eq!(faults(&refused), [Some(Fault::Status); 5]);
    assert!(refused.samples.iter().all(|sample| sample.status == 429));
    // A bad status is a whole answer: its connection is used again.
    assert!(busy.connections() <= 4);

    let other = Peer::start(|_, stream| {
        stream.write_all(b"220 mail.example ESMTP\r\n")?;
        Ok(true)
    });
    assert_eq!(
        faults(&outcome_of(other.url())),
        [Some(Fault::Malformed); 5]
    );

    let gone = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", gone.local_addr().expect("its address"));
    drop(gone);
    assert_eq!(faults(&outcome_of(url.clone())), [Some(Fault::Connect); 5]);

    let bounded = Plan {
        faults_max: Some(20),
        ..plan(url, closed(100_000))
    };
    let outcome = outcome(&bounded);
    assert_eq!(outcome.ended, Ended::TooManyFaults);
    assert!(outcome.samples.len() < 100);
}

/// The server ends connections while they are idle, with and without saying so in the answer.
#[test]
fn a_connection_that_the_server_has_ended_is_not_used_again() {
    let peer = Peer::start(|_, stream| {
        answer(stream, b"ok")?;
        Ok(false)
    });
    let round = Round {
        pause_ms: 20,
        bursts: vec![Burst {
            request: 0,
            size: 3,
        }],
    };
    let rounds = vec![round; 4];
    let outcome = outcome(&plan(peer.url(), Schedule::Bursts { rounds }));
    assert_eq!(faults(&outcome), [None; 12]);
    assert_eq!(peer.connections(), 12);
}

#[test]
fn the_end_of_the_control_descriptor_cancels_a_run() {
    let peer = Peer::start(|_, _| {
        thread::sleep(Duration::from_secs(60));
        Ok(false)
    });
    let (mine, theirs) = UnixStream::pair().expect("a pair");
    let canceller = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        drop(mine);
    });
    let plan = plan(peer.url(), closed(100));
    let outcome = run(&plan, Some(theirs.as_fd()), &mut |_| {}).expect("it runs");
    canceller.join().expect("done");
    assert_eq!(outcome.ended, Ended::Cancelled);
    assert!(outcome.samples.is_empty());
}

fn generator() -> Generator {
    Generator {
        program: env!("CARGO_BIN_EXE_hearth-lab").into(),
        arguments: vec!["generator".into()],
    }
}

#[tokio::test]
async fn the_process_gives_the_samples_that_it_took() {
    let peer = Peer::answers_after(Duration::from_millis(1));
    let plan = Plan {
        capture_bytes: 8,
        ..plan(peer.url(), closed(500))
    };
    let mut told = 0;
    let (report, samples) = generator()
        .run(&plan, |_| told += 1)
        .await
        .expect("it runs");
    assert_eq!((report.sent, report.good, samples.len()), (500, 500, 500));
    assert_eq!(report.ended, Ended::Complete);
    assert!(
        samples
            .iter()
            .all(|sample| sample.body.as_deref() == Some(b"ok"))
    );
    assert!(report.processor_ns > 0 && report.processor_ns < report.elapsed_ns * 2);
    assert!(report.to_first_byte.corrected_ns.is_none());
}

/// Processors that a process, or each of its threads, may run on, as the kernel writes them.
fn allowed(process: &str) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    let status = threads.filter_map(|thread| {
        let path = thread.expect("a thread").path().join("status");
        // Of one that has ended meanwhile there is none.
        std::fs::read_to_string(path).ok()
    });
    let line = |status: String| {
        let mut lines = status.lines();
        let found = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        found.expect("a list").trim().to_owned()
    };
    status.map(line).collect()
}

#[tokio::test]
async fn the_process_runs_on_its_processor_alone() {
    let all = rustix::thread::sched_getaffinity(None).expect("processors");
    let last = (0..rustix::thread::CpuSet::MAX_CPU).rfind(|processor| all.is_set(*processor));
    let last = last.expect("one at least");
    for processor in [None, Some(last)] {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("process");
        // The shell becomes the generator, whose id is known then.
        let script = "echo $$ >\"$0\" && exec \"$1\" generator";
        let generator = Generator {
            program: "/bin/sh".into(),
            arguments: vec![
                "-c".into(),
                script.into(),
                file.clone().into(),
                env!("CARGO_BIN_EXE_hearth-lab").into(),
            ],
        };
        // Looked at in the middle of the run: while a request waits for its answer.
        let seen = Arc::new(Mutex::new(Vec::new()));
        let looked = seen.clone();
        let peer = Peer::start(move |_, stream| {
            let process = std::fs::read_to_string(&file).expect("the process's id");
            *looked.lock().expect("no panic") = allowed(process.trim());
            answer(stream, b"ok")?;
            Ok(true)
        });
        let plan = Plan {
            processor,
            ..plan(peer.url(), closed(1))
        };
        let (report, _) = generator.run(&plan, |_| {}).await.expect("it runs");
        assert_eq!(report.good, 1);
        let expected = match processor {
            // As this process, of which it is a child.
            None => allowed("self").remove(0),
            Some(processor) => processor.to_string(),
        };
        let seen = seen.lock().expect("no panic");
        assert!(!seen.is_empty(), "no thread was seen");
        assert!(seen.iter().all(|list| *list == expected), "{seen:?}");
    }
}

#[tokio::test]
async fn the_process_refuses_bad_plans_and_ends_with_its_parent() {
    let bad = Plan {
        connections: 0,
        ..plan("http://127.0.0.1:1/".to_owned(), closed(1))
    };
    let error = generator().run(&bad, |_| {}).await.expect_err("refused");
    assert!(error.to_string().contains("connections"), "{error}");

    let peer = Peer::start(|_, _| {
        thread::sleep(Duration::from_secs(60));
        Ok(false)
    });
    let endless = plan(peer.url(), closed(1));
    let generator = generator();
    let running = generator.run(&endless, |_| {});
    assert!(
        tokio::time::timeout(Duration::from_millis(300), running)
            .await
            .is_err()
    );
}

#[test]
fn an_https_server_is_measured_if_its_certificate_is_trusted() {
    let peer = TlsPeer::start(b"secret answer");
    let trusting = |trust: Trust, url: String| Plan {
        trust,
        capture_bytes: 100,
        ..plan(url, closed(23))
    };
    let known = Trust {
        ca_pem: Some(peer.authority.clone()),
        ..Trust::default()
    };
    let anybody = Trust {
        insecure: true,
        ..Trust::default()
    };
    for trust in [known.clone(), anybody] {
        let outcome = outcome(&trusting(trust, peer.url("localhost")));
        assert_eq!(faults(&outcome), [None; 23]);
        for sample in &outcome.samples {
            assert_eq!(sample.body.as_deref(), Some(&b"secret answer"[..]));
            assert!(sample.sent <= sample.first && sample.first <= sample.last);
        }
    }
    // Four connections, each with a handshake of its own.
    assert_eq!(peer.handshakes(), 8);
    // Neither a stranger's certificate nor one of another name.
    for (trust, host) in [
        (Trust::default(), "localhost"),
        (known.clone(), "127.0.0.1"),
    ] {
        let outcome = outcome(&trusting(trust, peer.url(host)));
        assert_eq!(faults(&outcome), [Some(Fault::Connect); 23]);
    }
    // A large body takes several writes, and connections of their own several handshakes.
    let large = Plan {
        requests: vec![Request {
            method: "POST".to_owned(),
            body: "b".repeat(3 << 20),
            ..trusting(known.clone(), peer.url("localhost")).requests[0].clone()
        }],
        keep_alive: 0,
        ..trusting(known.clone(), peer.url("localhost"))
    };
    let before = peer.handshakes();
    let large = Plan {
        schedule: closed(3),
        ..large
    };
    assert_eq!(faults(&outcome(&large)), [None; 3]);
    assert!(peer.handshakes() > before);
    let nothing = Trust {
        ca_pem: Some("no certificate".to_owned()),
        ..Trust::default()
    };
    let refused = run(&trusting(nothing, peer.url("localhost")), None, &mut |_| {});
    assert!(refused.is_err_and(|error| error.to_string().contains("--ca")));
    // A server that speaks no TLS.
    let plain = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = plain.local_addr().expect("its address").port();
    thread::spawn(move || {
        for stream in plain.incoming().flatten() {
            // The client may be gone.
            let _ = (&stream).write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let url = format!("https://localhost:{port}/");
    let outcome = outcome(&trusting(known, url));
    assert_eq!(faults(&outcome), [Some(Fault::Connect); 23]);
}
