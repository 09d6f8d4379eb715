//! One turn: the client asks while the generator sends.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::num::NonZeroU64;
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
/// How long the generator is ahead of the client.
const LEAD: Duration = Duration::from_millis(100);

/// What one turn has shown.
pub(super) struct Turn {
    /// What the client got.
    pub(super) client: Observed,
    /// What the generator sent meanwhile.
    pub(super) packets: u64,
    pub(super) flooded: Duration,
}

/// In the client's namespace: a client for so long, in a flood of so many packets a second.
pub(super) fn take(flood: &Flood, frame: &[u8], rate: u64, time: Duration) -> io::Result<Turn> {
    let stream = TcpStream::connect_timeout(&HOST, PATIENCE)?;
    thread::scope(|scope| {
        // From before the client begins until after it has ended: it takes the kernel tens of milliseconds to begin.
        let generator = scope.spawn(|| send(flood, frame, rate, time + 2 * LEAD));
        // The buckets are empty, and the queues full, when the client begins.
        thread::sleep(LEAD);
        let turn = schedule(gettid(), Scheduling::RealTime).and_then(|()| {
            let (begun, sent) = (Instant::now(), flood.sent()?);
            let client = innocent(stream, time)?;
            Ok(Turn {
                client,
                packets: flood.sent()? - sent,
                flooded: begun.elapsed(),
            })
        });
        generator.join().expect("no panic")?;
        turn
    })
}

/// Sends so many a second for so long. Without a flood, too, the generator works: a processor that must wake up for each answer
/// would cost the client more than a flood does.
fn send(flood: &Flood, frame: &[u8], rate: u64, time: Duration) -> io::Result<()> {
    const NEXT_TO_NONE: NonZeroU64 = NonZeroU64::MIN;
    // Of this thread alone, as Linux has it. On a host with other work it does not get to high rates.
    const LOWEST_PRIORITY: i32 = 19;
    rustix::process::setpriority_process(None, LOWEST_PRIORITY)?;
    flood.send(frame, NonZeroU64::new(rate).unwrap_or(NEXT_TO_NONE), time)
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
