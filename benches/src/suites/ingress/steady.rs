//! Exchanges with a function's port while others are added and removed: none may be lost.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hearth_ebpf::limits::Limits;
use hearth_ebpf::{Capacity, Ingress, Maps, Mode, Wanted};

use super::world::{HOST, world};
use super::{LOST, PORT};
use crate::results::Document;
use crate::scale::Scale;

/// The port whose exchanges are counted, and those that change.
const STEADY: u16 = 9_000;
const CHANGING: std::ops::Range<u16> = 20_000..20_100;
const TURN: Duration = Duration::from_secs(5);
const QUICK_TURN: Duration = Duration::from_millis(100);
/// After this a datagram is lost.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let (host, client) = world()?;
    let mut ingress = Ingress::load(Capacity::default())?;
    let mut maps = Maps::new(ingress.descriptors()?)?;
    maps.functions.add(1, Limits::default())?;
    maps.functions.add(2, Limits::default())?;
    maps.ports.give_udp(STEADY, 1, false)?;
    host.within(|| {
        let attached = ingress.attach("h0", Wanted::Only(Mode::Native));
        attached.map(drop).map_err(io::Error::other)
    })?;
    let address = SocketAddr::new(HOST.ip(), STEADY);
    let server = host.within(|| UdpSocket::bind(address))?;
    let socket = client.within(|| UdpSocket::bind("192.0.2.1:0"))?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    server.set_read_timeout(Some(PATIENCE))?;
    // The server answers until the client has ended: its last exchange is not lost.
    let [stop, ended] = [AtomicBool::new(false), AtomicBool::new(false)];
    let until = Instant::now() + scale.pick(TURN, QUICK_TURN);
    let (exchanges, lost, changes) = thread::scope(|scope| {
        scope.spawn(|| {
            let mut datagram = [0; 8];
            while !ended.load(Ordering::Relaxed) {
                if let Ok((length, from)) = server.recv_from(&mut datagram) {
                    // The client counts what does not come.
                    let _ = server.send_to(&datagram[..length], from);
                }
            }
        });
        let client = scope.spawn(|| exchange(&socket, &stop));
        let changed = change(&mut maps, until);
        stop.store(true, Ordering::Relaxed);
        let exchanged = client.join().expect("no panic");
        ended.store(true, Ordering::Relaxed);
        let (exchanges, lost) = exchanged?;
        anyhow::Ok((exchanges, lost, changed?))
    })?;
    // All that was answered went by the port that is counted.
    let [received, _] = maps.functions.traffic(1)?;
    let uncounted = (exchanges - lost).saturating_sub(received.packets);
    document.figure(
        PORT,
        "ports added and removed, to count what is lost",
        changes as f64,
        "",
    );
    document.figure(
        PORT,
        "exchanges with another port meanwhile",
        exchanges as f64,
        "",
    );
    document.figure(PORT, LOST, (lost + uncounted) as f64, "");
    Ok(())
}

/// Adds the ports and removes them, again and again. Says how many changes those were.
fn change(maps: &mut Maps, until: Instant) -> anyhow::Result<u64> {
    let mut changes = 0;
    while Instant::now() < until {
        for port in CHANGING {
            maps.ports.give_udp(port, 2, false)?;
            maps.ports.take(hearth_ebpf::packet::UDP, port)?;
            changes += 2;
        }
    }
    Ok(changes)
}

/// Sends a number and waits for it to come back. Says how many were sent, and how many of those were lost.
fn exchange(socket: &UdpSocket, stop: &AtomicBool) -> io::Result<(u64, u64)> {
    let (mut sent, mut lost) = (0_u64, 0);
    while !stop.load(Ordering::Relaxed) {
        sent += 1;
        socket.send(&sent.to_ne_bytes())?;
        lost += u64::from(!comes(socket, sent));
    }
    Ok((sent, lost))
}

/// Waits for a number. One that was given up may come before it.
fn comes(socket: &UdpSocket, number: u64) -> bool {
    let mut answer = [0; 8];
    while socket.recv(&mut answer).is_ok() {
        if answer == number.to_ne_bytes() {
            return true;
        }
    }
    false
}
