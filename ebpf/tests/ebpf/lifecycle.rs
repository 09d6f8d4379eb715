//! Attaching, what stands in the way, and the end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hearth_ebpf::limits::Limits;
use hearth_ebpf::{AttachError, Mode, Wanted, interfaces};
use hearth_testkit::wait::poll;

use crate::network::{Namespace, PATIENCE, Wire};
use crate::verdicts::with_function;
use crate::{can_run, load};

/// Between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(1);

fn programs(namespace: &Namespace, interface: &str) -> Vec<u32> {
    let all = namespace.run(interfaces::list).expect("interfaces");
    all.into_iter()
        .find(|one| one.name == interface)
        .expect("there")
        .xdp
}

#[test]
fn a_program_of_somebody_else_stays_and_is_named() {
    if !can_run() {
        return;
    }
    let wire = Wire::new();
    let (mut first, _first_maps) = load();
    let (mut second, _second_maps) = load();
    wire.host.run(|| {
        first.attach("h0", Wanted::Best).expect("attached");
        let before = programs(&wire.host, "h0");
        assert_eq!(before.len(), 1);
        for wanted in [
            Wanted::Best,
            Wanted::Only(Mode::Generic),
            Wanted::Only(Mode::Native),
        ] {
            let refused = second.attach("h0", wanted).expect_err("refused");
            assert!(
                matches!(&refused, AttachError::Occupied { interface, id, name }
                    if interface == "h0" && *id == before[0] && name == "ingress"),
                "{refused}"
            );
            assert_eq!(programs(&wire.host, "h0"), before);
        }
        assert!(first.detach("h0"));
        assert!(!first.detach("h0"));
        assert!(programs(&wire.host, "h0").is_empty());
        second.attach("h0", Wanted::Best).expect("attached");
        drop(second);
        assert!(programs(&wire.host, "h0").is_empty());
    });
}

#[test]
fn an_interface_that_is_not_there_and_drivers_without_xdp() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::new();
    let (mut ingress, _maps) = load();
    namespace.run(|| {
        assert!(matches!(ingress.attach("none", Wanted::Best), Err(AttachError::Unknown(name)) if name == "none"));
        // The loopback's driver has no XDP.
        let refused = ingress.attach("lo", Wanted::Only(Mode::Native)).expect_err("refused");
        assert!(matches!(refused, AttachError::Refused(..)), "{refused}");
        let attachment = ingress.attach("lo", Wanted::Best).expect("attached");
        assert_eq!(attachment.mode, Mode::Generic);
        assert!(attachment.not_native.is_some());
        assert_eq!(ingress.attachments().count(), 1);
    });
}

#[test]
fn nothing_is_counted_twice_on_interfaces_that_lie_on_each_other() {
    if !can_run() {
        return;
    }
    let wire = Wire::new();
    wire.host.ip("link add link h0 name m0 type macvlan");
    wire.host.ip("link add b0 type bridge");
    let (mut ingress, _maps) = load();
    wire.host.run(|| {
        for (first, second) in [("h0", "m0"), ("m0", "h0")] {
            ingress.attach(first, Wanted::Best).expect("attached");
            let refused = ingress.attach(second, Wanted::Best).expect_err("refused");
            assert!(
                matches!(&refused, AttachError::Overlaps { interface, other } if interface == second && other == first),
                "{refused}"
            );
            assert!(ingress.detach(first));
        }
        ingress.attach("h0", Wanted::Best).expect("attached");
        ingress.attach("b0", Wanted::Best).expect("attached: it does not have h0 as a port");
    });
}

/// Started by the next test as a process of its own: attaches in its namespace and waits to be killed.
#[test]
fn helper_that_is_killed() {
    let Some(path) = std::env::var_os("HEARTH_TEST_NAMESPACE") else {
        return;
    };
    let namespace = std::fs::File::open(path).expect("the namespace");
    rustix::thread::move_into_link_name_space(
        std::os::fd::AsFd::as_fd(&namespace),
        Some(rustix::thread::LinkNameSpaceType::Network),
    )
    .expect("entered");
    let (mut ingress, _maps) = load();
    ingress.attach("h0", Wanted::Best).expect("attached");
    ingress.steer(&namespace).expect("attached");
    writeln!(std::io::stdout(), "attached").expect("written");
    // Until it is killed, or the test that started it has ended.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).expect("read");
}

#[test]
fn nothing_is_left_after_kill_9() {
    if !can_run() {
        return;
    }
    let wire = Wire::new();
    let mut helper = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "lifecycle::helper_that_is_killed", "--nocapture"])
        .env("HEARTH_TEST_NAMESPACE", wire.host.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(helper.stdout.take().expect("its output")).lines();
    assert!(lines.any(|line| line.expect("a line").contains("attached")));
    assert_eq!(programs(&wire.host, "h0").len(), 1);
    helper.kill().expect("killed");
    helper.wait().expect("ended");
    let gone = poll(PATIENCE, LOOK, || {
        programs(&wire.host, "h0").is_empty().then_some(())
    });
    gone.expect("the program is detached");
    // The place is free, and so is the namespace for another that steers.
    let (mut ingress, _maps) = load();
    wire.host
        .run(|| ingress.attach("h0", Wanted::Best).map(drop))
        .expect("attached");
    ingress.steer(&wire.host).expect("attached");
}

/// Ends traffic when it is dropped: by the flag, and by shutting the listener down, which wakes who waits for connections.
struct Ending<'a>(&'a AtomicBool, &'a TcpListener);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        // It may be shut down already.
        let _ = rustix::net::shutdown(self.1, rustix::net::Shutdown::Both);
    }
}

#[test]
fn another_takes_over_under_traffic() {
    if !can_run() {
        return;
    }
    let wire = Wire::new();
    let (mut ingress, first_maps) = with_function();
    wire.host
        .run(|| ingress.attach("h0", Wanted::Best).map(drop))
        .expect("attached");
    let server = wire
        .host
        .run(|| TcpListener::bind("192.0.2.2:7000"))
        .expect("bound");
    let udp = wire
        .host
        .run(|| UdpSocket::bind("192.0.2.2:7000"))
        .expect("bound");
    udp.set_read_timeout(Some(PATIENCE)).expect("set");
    let stop = AtomicBool::new(false);
    let (answered, replaced) = std::thread::scope(|scope| {
        // Whichever of the three ends first, and however, the others end as well.
        let end = Ending(&stop, &server);
        scope.spawn(|| {
            let _end = Ending(&stop, &server);
            while let Ok((mut connection, _)) = server.accept() {
                connection.set_read_timeout(Some(PATIENCE)).expect("set");
                let mut byte = [0];
                connection.read_exact(&mut byte).expect("read");
                connection.write_all(&byte).expect("written");
            }
        });
        let client = scope.spawn(|| {
            let _end = Ending(&stop, &server);
            wire.client.run(|| {
                let mut answered = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    let mut connection = TcpStream::connect("192.0.2.2:7000").expect("connected");
                    connection.set_read_timeout(Some(PATIENCE)).expect("set");
                    connection.write_all(&[7]).expect("written");
                    let mut byte = [0];
                    connection.read_exact(&mut byte).expect("an answer");
                    answered += 1;
                }
                answered
            })
        });
        let mut replaced = 0_u64;
        for _ in 0..20 {
            let (mut next, mut maps) = with_function();
            maps.functions.add(1, Limits::default()).expect("added");
            next.take_over(ingress).expect("taken over");
            ingress = next;
            assert_eq!(ingress.attachments().count(), 1);
            assert_eq!(programs(&wire.host, "h0").len(), 1);
            // The next one comes when this one has met some of the traffic.
            let met = poll(PATIENCE, LOOK, || {
                let packets = maps.functions.traffic(1).expect("counters")[0].packets;
                (packets >= 10).then_some(packets)
            });
            replaced += met.expect("packets meet the program that took over");
        }
        stop.store(true, Ordering::Relaxed);
        let answered = client.join().expect("no request was lost");
        drop(end);
        (answered, replaced)
    });
    assert!(
        answered > 0 && replaced > 0,
        "{answered} answers, {replaced} packets"
    );
    let first = first_maps.functions.traffic(1).expect("counters")[0];
    assert_eq!(first.drops.iter().sum::<u64>(), 0);
}
