//! Blocking sockets with messages of known length.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use super::{Call, Way};
use crate::peers::{PAYLOAD, connect_unix, parse};

/// To the peer at this path.
pub fn unix(path: &str) -> anyhow::Result<Box<dyn Way>> {
    let stream = connect_unix(path)?;
    Ok(there_and_back(
        stream.try_clone()?,
        stream,
        None::<UnixStream>,
    ))
}

/// To the peer at this address.
pub fn tcp(address: &str) -> anyhow::Result<Box<dyn Way>> {
    let stream = TcpStream::connect(parse(address)?)?;
    stream.set_nodelay(true)?;
    Ok(there_and_back(
        stream.try_clone()?,
        stream,
        None::<TcpStream>,
    ))
}

/// Both ends in this thread.
pub fn unix_pair() -> anyhow::Result<Box<dyn Way>> {
    let (near, far) = UnixStream::pair()?;
    Ok(there_and_back(near.try_clone()?, near, Some(far)))
}

/// Both ends in this thread.
pub fn tcp_pair() -> anyhow::Result<Box<dyn Way>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok(there_and_back(near.try_clone()?, near, Some(far)))
}

/// Writes a message and reads it back; what goes into `far`, if that is here, is sent back in between.
fn there_and_back<S, F>(mut out: S, mut back: S, mut far: Option<F>) -> Box<dyn Way>
where
    S: Read + Write + 'static,
    F: Read + Write + 'static,
{
    let payload = [7_u8; PAYLOAD];
    let (mut passing, mut copy) = ([0_u8; PAYLOAD], [0_u8; PAYLOAD]);
    Box::new(Call(move || {
        out.write_all(&payload)?;
        if let Some(far) = &mut far {
            far.read_exact(&mut passing)?;
            far.write_all(&passing)?;
        }
        back.read_exact(&mut copy)?;
        Ok(())
    }))
}
