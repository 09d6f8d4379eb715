//! Servers whose behaviour is known.

mod tls;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

pub use tls::TlsPeer;

/// What to do with the request of this number, counted over all connections from 0.
pub type Behaviour = dyn Fn(usize, &mut TcpStream) -> std::io::Result<bool> + Send + Sync;

/// A server that does the same with each connection.
pub struct Peer {
    pub address: SocketAddr,
    requests: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl Peer {
    /// One that does this with each request; false ends the connection. Its threads end with their connections.
    pub fn start(
        behaviour: impl Fn(usize, &mut TcpStream) -> std::io::Result<bool> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let behaviour: Arc<Behaviour> = Arc::new(behaviour);
        let requests = Arc::new(AtomicUsize::new(0));
        let connections = Arc::new(AtomicUsize::new(0));
        let (counter, opened) = (requests.clone(), connections.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                opened.fetch_add(1, Ordering::Relaxed);
                let (behaviour, counter) = (behaviour.clone(), counter.clone());
                thread::spawn(move || serve(stream, &*behaviour, &counter));
            }
        });
        Self {
            address,
            requests,
            connections,
        }
    }

    /// One that answers each after so long.
    pub fn answers_after(delay: Duration) -> Self {
        Self::start(move |_, stream| {
            thread::sleep(delay);
            answer(stream, b"ok")?;
            Ok(true)
        })
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Requests so far.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Answers with 200.
pub fn answer(stream: &mut TcpStream, body: &[u8]) -> std::io::Result<()> {
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    stream.write_all(&bytes)
}

fn serve(mut stream: TcpStream, behaviour: &Behaviour, counter: &AtomicUsize) {
    stream.set_nodelay(true).expect("no delay");
    let mut buffer = [0; 16 << 10];
    let mut filled = 0;
    // Requests here have no body, and clients wait for the answer.
    loop {
        match stream.read(&mut buffer[filled..]) {
            Ok(0) | Err(_) => return,
            Ok(read) => filled += read,
        }
        if !buffer[..filled].ends_with(b"\r\n\r\n") {
            continue;
        }
        filled = 0;
        let number = counter.fetch_add(1, Ordering::Relaxed);
        if !behaviour(number, &mut stream).unwrap_or(false) {
            return;
        }
    }
}
