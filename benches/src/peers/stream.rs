//! Messages of known length over a blocking byte stream.

use std::io::{Read, Write};

use super::PAYLOAD;

/// Sends back each message until the stream ends.
pub fn echo(mut stream: impl Read + Write) -> anyhow::Result<()> {
    let mut message = [0_u8; PAYLOAD];
    loop {
        match stream.read_exact(&mut message) {
            Ok(()) => stream.write_all(&message)?,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
