//! A minimal HTTP server, as the lower bound for all others: a blocking thread per connection, which finds the end of
//! the head and the length of the body, and echoes the body.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Room for a head with a first part of the body.
const CHUNK: usize = 64 * 1024;

/// Serves until the process is killed.
pub fn serve(listener: &TcpListener) -> anyhow::Result<()> {
    loop {
        let (connection, _) = listener.accept()?;
        connection.set_nodelay(true)?;
        std::thread::spawn(move || {
            // A client that goes away ends its thread.
            let _ = echo(connection);
        });
    }
}

fn echo(mut connection: TcpStream) -> std::io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut filled = 0;
    let mut answer = Vec::new();
    loop {
        let (start, length) = loop {
            if let Some(found) = head(&buffer[..filled]) {
                break found;
            }
            match connection.read(&mut buffer[filled..])? {
                0 => return Ok(()),
                read => filled += read,
            }
        };
        let end = start + length;
        if buffer.len() < end {
            buffer.resize(end, 0);
        }
        if filled < end {
            connection.read_exact(&mut buffer[filled..end])?;
        }
        answer.clear();
        write!(
            answer,
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n"
        )?;
        answer.extend_from_slice(&buffer[start..end]);
        connection.write_all(&answer)?;
        // Its clients send no request before they have the answer.
        filled = 0;
    }
}

/// Where the body begins and how long it is, once the head is complete.
fn head(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))?;
    Some((end, length.trim().parse().ok()?))
}
