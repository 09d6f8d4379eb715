//! A trivial HTTP server: answers whatever it reads, with epoll on one thread that is pinned to the last processor. It takes less
//! per request than any client does, so that what differs between load generators is theirs.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZero;
use std::thread;

use rustix::event::epoll;
use rustix::thread::{CpuSet, sched_setaffinity};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Room for a request. Longer ones would be answered more than once.
const REQUEST_MAX: usize = 4096;

/// Stands for the listening socket among the numbers of connections.
const LISTENER: u64 = u64::MAX;

/// The processor that it runs on: the last one.
pub fn processor() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get) - 1
}

/// Serves until the process is killed.
pub fn serve(listener: &TcpListener) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor());
    sched_setaffinity(None, &set)?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let data = epoll::EventData::new_u64(LISTENER);
    epoll::add(&epoll, listener, data, epoll::EventFlags::IN)?;
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = [0; REQUEST_MAX];
    loop {
        events.clear();
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let number = event.data.u64();
            if number == LISTENER {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                let data = epoll::EventData::new_u64(connections.len() as u64);
                epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
                connections.push(Some(stream));
                continue;
            }
            let place = &mut connections[number as usize];
            let Some(stream) = place else { continue };
            let is_good = matches!(stream.read(&mut buffer), Ok(read) if read > 0)
                && stream.write_all(ANSWER).is_ok();
            if !is_good {
                *place = None;
            }
        }
    }
}
