//! Deliberately slow clients on one thread: each is a connection, the bytes it sends at once, and the bytes it drips.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::client::TOKEN;

/// Between two bytes of one client.
pub const PAUSE: Duration = Duration::from_millis(200);

/// A kind of slow client.
struct Kind {
    /// Sent at once.
    first: String,
    /// Sent again and again, one piece in each step.
    drip: &'static [u8],
}

/// Every phase of a request, on every kind of route.
fn kinds() -> Vec<Kind> {
    let kind = |first: String, drip: &'static [u8]| Kind { first, drip };
    let host = "HTTP/1.1\r\nHost: localhost\r\n";
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    let json = format!("{token}Content-Type: application/json\r\n");
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    vec![
        // Connected, and silent.
        kind(String::new(), b""),
        // A request line, and a head, that never end.
        kind("GET /".into(), b"a"),
        kind(format!("GET /login {host}X-Slow: "), b"a"),
        // Bodies that never come, and that drip, by length and in chunks.
        kind(
            format!("POST /login {host}{form}Content-Length: 5000\r\n\r\n"),
            b"",
        ),
        kind(
            format!("POST /fn/open {host}Content-Length: 5000\r\n\r\n"),
            b"a",
        ),
        kind(
            format!(
                "POST /api/v1/functions/echo/invoke {host}{json}Transfer-Encoding: chunked\r\n\r\n"
            ),
            b"1\r\n1\r\n",
        ),
        kind(
            format!(
                "PUT /api/v1/functions/echo/code {host}{token}Content-Type: application/zip\r\n\
                 Content-Length: 1000000\r\n\r\n"
            ),
            b"a",
        ),
        // Answers that nobody reads: of a function, and without an end.
        kind(format!("GET /fn/stream {host}\r\n"), b""),
        kind(
            format!("GET /api/v1/functions/echo/events {host}{token}\r\n"),
            b"",
        ),
        // Kept alive after a request, for no other.
        kind(format!("GET /healthz {host}\r\n"), b""),
    ]
}

/// All of them.
pub struct Crowd {
    address: SocketAddr,
    kinds: Vec<Kind>,
    clients: Vec<Option<TcpStream>>,
    /// The fewest that were connected at the end of a step.
    pub fewest: usize,
    /// How often the server has closed a connection and its client came back.
    pub reopened: usize,
}

impl Crowd {
    /// Opens this many connections, the same number of each kind.
    pub fn gather(address: SocketAddr, clients: usize) -> anyhow::Result<Self> {
        let mut crowd = Self {
            address,
            kinds: kinds(),
            clients: Vec::new(),
            fewest: clients,
            reopened: 0,
        };
        for number in 0..clients {
            let client = crowd.open(number)?;
            crowd.clients.push(Some(client));
        }
        Ok(crowd)
    }

    fn open(&self, number: usize) -> anyhow::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        stream.write_all(self.kind(number).first.as_bytes())?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn kind(&self, number: usize) -> &Kind {
        &self.kinds[number % self.kinds.len()]
    }

    /// Each drips once; whoever was cut off comes back.
    pub fn step(&mut self) -> anyhow::Result<()> {
        let mut connected = 0;
        for number in 0..self.clients.len() {
            let drip = self.kind(number).drip;
            let is_there = self.clients[number]
                .as_mut()
                .is_some_and(|stream| goes_on(stream, drip));
            if is_there {
                connected += 1;
                continue;
            }
            self.reopened += 1;
            self.clients[number] = None;
            // A server that closes at once is the limit that is measured, not an error.
            self.clients[number] = self.open(number).ok();
        }
        self.fewest = self.fewest.min(connected);
        Ok(())
    }
}

/// Sends what there is to send; whether the connection is still there. What the server says stays unread.
fn goes_on(stream: &mut TcpStream, drip: &[u8]) -> bool {
    let mut byte = [0];
    // Peeking takes nothing from the socket, and tells a connection that was closed unanswered.
    match stream.peek(&mut byte) {
        Ok(0) => return false,
        Err(error) if error.kind() != ErrorKind::WouldBlock => return false,
        _ => {}
    }
    !matches!(stream.write(drip), Err(error) if error.kind() != ErrorKind::WouldBlock)
}
