//! Many connections on one thread, using epoll: a thread per connection would compete with the server under test.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::client::{Answer, Connection};

/// Longest time without any answer.
const SILENCE: Duration = Duration::from_secs(60);

/// A request that was answered, or all of its steps.
pub struct Answered<'a> {
    /// When its first byte was sent.
    pub begun: Instant,
    /// When the answer was whole.
    pub ended: Instant,
    /// The last answer.
    pub answer: Answer<'a>,
}

/// Sends the request on every connection, one after the other without waiting, and once more on each connection where
/// `answered` says so. Returns when all are answered.
pub fn exchange(
    connections: Vec<Connection>,
    request: &[u8],
    answered: impl FnMut(Answered<'_>) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    exchange_steps(connections, &[request], answered)
}

/// The same with requests that each connection sends one after the other. All answers but the last must be good.
pub fn exchange_steps(
    mut connections: Vec<Connection>,
    steps: &[&[u8]],
    mut answered: impl FnMut(Answered<'_>) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let first = steps.first().context("no request")?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let count = connections.len();
    for (number, connection) in (0..).zip(&connections) {
        connection.stream.set_nonblocking(true)?;
        // Edge-triggered: nothing to change when a request does not fit into the socket at once.
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(
            &epoll,
            &connection.stream,
            EventData::new_u64(number),
            flags,
        )?;
    }
    // Of those that are not done.
    let mut begun = Vec::with_capacity(count);
    for connection in &mut connections {
        begun.push(Some(Instant::now()));
        connection.begin(first)?;
    }
    let mut places = vec![0; count];
    let mut open = count;
    let mut events = Vec::with_capacity(count);
    let silence = Timespec::try_from(SILENCE)?;
    while open > 0 {
        events.clear();
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&epoll, room, Some(&silence)) {
            Ok(0) => bail!("{open} of {count} connections got no answer"),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        for event in &events {
            let number = event.data.u64() as usize;
            let of_nobody = "an event of nobody";
            let connection = connections.get_mut(number).context(of_nobody)?;
            let since = begun.get_mut(number).context(of_nobody)?;
            let Some(began) = *since else {
                continue;
            };
            let place = places.get_mut(number).context(of_nobody)?;
            if !connection.go_on(steps[*place])? {
                continue;
            }
            if let Some(next) = steps.get(*place + 1) {
                connection.answer()?.good()?;
                *place += 1;
                connection.begin(next)?;
                continue;
            }
            *place = 0;
            let again = answered(Answered {
                begun: began,
                ended: Instant::now(),
                answer: connection.answer()?,
            })?;
            *since = again.then(Instant::now);
            if again {
                connection.begin(first)?;
            } else {
                open -= 1;
            }
        }
    }
    Ok(())
}
