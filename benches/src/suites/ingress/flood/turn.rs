//! One turn: the client asks while the generator sends.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hearth_ebpf::Flood;
use hearth_host::scheduling::{Scheduling, schedule};
use rustix::thread::gettid;

use super::super::world::HOST;
use crate::client::request;
use crate::load::Observed;

/// How long the client waits for an answer before it gives up for this turn.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most that the generator sends in one call. A call takes some 30 ms, however little it sends: the rate is one of bursts, and
/// of what exceeds the interface's ring the host sees nothing.
const MOST: u64 = 1 << 17;
/// How long it waits when it is ahead.
const PAUSE: Duration = Duration::from_millis(1);

/// What one turn has shown.
pub(super) struct Turn {
    /// What the client got.
    pub(super) client: Observed,
    /// What the generator sent, in which time.
    pub(super) packets: u64,
    pub(super) flooded: Duration,
}

/// In the client's namespace: a client for so long, in a flood of so many packets a second.
pub(super) fn take(flood: &Flood, frame: &[u8], rate: u64, time: Duration) -> io::Result<Turn> {
    let stream = TcpStream::connect_timeout(&HOST, PATIENCE)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let generator = scope.spawn(|| send(flood, frame, rate, &stop));
        // The buckets are empty, and the queues full, when the client begins.
        thread::sleep(time / 10);
        let client = schedule(gettid(), Scheduling::RealTime).and_then(|()| innocent(stream, time));
        stop.store(true, Ordering::Relaxed);
        let (packets, flooded) = generator.join().expect("no panic")?;
        Ok(Turn {
            client: client?,
            packets,
            flooded,
        })
    })
}

/// Sends so many a second until it is to stop. Says how many, in which time.
fn send(flood: &Flood, frame: &[u8], rate: u64, stop: &AtomicBool) -> io::Result<(u64, Duration)> {
    // Of this thread alone, as Linux has it. On a host with other work it does not get to high rates.
    const LOWEST_PRIORITY: i32 = 19;
    rustix::process::setpriority_process(None, LOWEST_PRIORITY)?;
    let (begun, mut sent) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        let due = (rate as f64 * begun.elapsed().as_secs_f64()) as u64;
        let count = due.saturating_sub(sent).min(MOST);
        if count == 0 {
            thread::sleep(PAUSE);
            continue;
        }
        flood.send(frame, count as u32)?;
        sent += count;
    }
    Ok((sent, begun.elapsed()))
}

/// One request after the other over one connection. A client whose answer does not come gives up; its turn counts.
fn innocent(mut stream: TcpStream, turn: Duration) -> io::Result<Observed> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = request("GET", "/", b"");
    let mut observed = Observed::default();
    let begun = Instant::now();
    while begun.elapsed() < turn {
        let asked = Instant::now();
        match exchange(&mut stream, &request) {
            Ok(()) => observed.samples.push(asked.elapsed()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    observed.took = begun.elapsed();
    Ok(observed)
}

fn exchange(stream: &mut TcpStream, request: &[u8]) -> io::Result<()> {
    stream.write_all(request)?;
    let (mut answer, mut filled) = ([0; 1_024], 0);
    while !answer[..filled].ends_with(b"\r\n\r\nok") {
        match stream.read(&mut answer[filled..])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            length => filled += length,
        }
    }
    Ok(())
}
