//! Cuts a byte stream into MQTT's packets, each bounded in size and in time.

use std::io;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout_at};

/// How long a packet that has begun may take to come, however it trickles in.
const PACKET: Duration = Duration::from_secs(30);
/// Bytes that are read at once, if they are there. Memory is taken as bytes come, not by what a packet says of its length.
const PIECE: usize = 4 << 10;

/// Why there is no further packet.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("the connection has failed: {0}")]
    Io(#[from] io::Error),
    #[error("a packet has {0} bytes, and may have fewer")]
    TooLarge(usize),
    #[error("a packet's length is malformed")]
    Malformed,
    #[error("a packet did not come to its end in time")]
    Late,
    #[error("the connection has ended within a packet")]
    Half,
}

/// See the module.
pub(super) struct Frames<R> {
    reader: R,
    buffer: BytesMut,
    /// When the packet that is on its way has to be there.
    due: Option<Instant>,
    most: usize,
    /// [`PACKET`], but in tests.
    limit: Duration,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// Packets of at most so many bytes.
    pub(super) fn new(reader: R, most: usize) -> Self {
        Self {
            reader,
            buffer: BytesMut::new(),
            due: None,
            most,
            limit: PACKET,
        }
    }

    /// From here on packets may have so many bytes.
    pub(super) fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// Nothing was read for a while, by the server's choice: a packet that has begun is given its time again.
    pub(super) fn resume(&mut self) {
        self.due = self.due.map(|_| Instant::now() + self.limit);
    }

    /// The next packet; none at the stream's end. May be cancelled.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        loop {
            if let Some(length) = length(&self.buffer, self.most)?
                && self.buffer.len() >= length
            {
                let packet = self.buffer.split_to(length).freeze();
                // The next one, if it has begun, has its own time.
                let has_begun = self.buffer.has_remaining();
                self.due = has_begun.then(|| Instant::now() + self.limit);
                return Ok(Some(packet));
            }
            self.buffer.reserve(PIECE);
            let read = self.reader.read_buf(&mut self.buffer);
            let read = match self.due {
                None => read.await?,
                Some(due) => timeout_at(due, read)
                    .await
                    .map_err(|_| FrameError::Late)??,
            };
            match read {
                0 if self.buffer.has_remaining() => return Err(FrameError::Half),
                0 => return Ok(None),
                _ => self.due = self.due.or_else(|| Some(Instant::now() + self.limit)),
            }
        }
    }
}

/// Bytes of the packet that begins here, its header included; none if that cannot be seen yet.
fn length(bytes: &[u8], most: usize) -> Result<Option<usize>, FrameError> {
    let mut rest = 0;
    for (at, byte) in bytes.iter().skip(1).take(4).enumerate() {
        rest |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let length = 2 + at + rest;
            return match length > most {
                true => Err(FrameError::TooLarge(length)),
                false => Ok(Some(length)),
            };
        }
    }
    match bytes.len() < 5 {
        true => Ok(None),
        false => Err(FrameError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn packets_are_cut_out_of_the_stream() {
        let stream = [&[0xc0, 0, 0x30, 0x82, 1][..], &[7; 130], &[0xc0]].concat();
        let mut frames = Frames::new(&stream[..], 1000);
        let mut next = async || {
            frames
                .next()
                .await
                .map(|frame| frame.map(|bytes| bytes.len()))
        };
        assert_eq!(next().await.expect("one"), Some(2));
        assert_eq!(next().await.expect("another"), Some(133));
        assert!(matches!(next().await, Err(FrameError::Half)));
        let mut ended = Frames::new(&[0xc0, 0][..], 1000);
        assert!(ended.next().await.expect("one").is_some());
        assert!(ended.next().await.expect("the end").is_none());
    }

    #[test]
    fn lengths_are_bounded_before_the_packet_is_there() {
        assert_eq!(length(&[0x30], 10).expect("fine"), None);
        assert_eq!(length(&[0x30, 0x80], 10).expect("fine"), None);
        assert_eq!(length(&[0x30, 8], 10).expect("fine"), Some(10));
        assert!(matches!(
            length(&[0x30, 9], 10),
            Err(FrameError::TooLarge(11))
        ));
        let endless = [0x30, 0xff, 0xff, 0xff, 0xff];
        assert!(matches!(length(&endless, 10), Err(FrameError::Malformed)));
    }

    #[tokio::test]
    async fn a_packet_that_trickles_in_is_late() {
        let (mut client, server) = tokio::io::duplex(64);
        let trickle = tokio::spawn(async move {
            use tokio::io::AsyncWriteExt as _;
            for byte in [0x30, 100].into_iter().chain([0; 100]) {
                if client.write_all(&[byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let mut frames = Frames {
            limit: Duration::from_millis(50),
            ..Frames::new(server, 1000)
        };
        assert!(matches!(frames.next().await, Err(FrameError::Late)));
        trickle.abort();
    }

    #[tokio::test]
    async fn a_packet_that_begins_in_anothers_bytes_is_late_too() {
        let (mut client, server) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut client, &[0xc0, 0, 0xc0])
            .await
            .expect("sent");
        let mut frames = Frames {
            limit: Duration::from_millis(50),
            ..Frames::new(server, 1000)
        };
        assert!(frames.next().await.expect("one").is_some());
        // As after a pause; the time begins again, and ends.
        frames.resume();
        assert!(matches!(frames.next().await, Err(FrameError::Late)));
    }

    #[test]
    fn arbitrary_pieces() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        bolero::check!()
            .with_iterations(20_000)
            .with_max_len(512)
            .for_each(|input: &[u8]| {
                let mut frames = Frames::new(input, 300);
                let mut read = Vec::new();
                runtime.block_on(async {
                    while let Ok(Some(frame)) = frames.next().await {
                        assert!((2..=300).contains(&frame.len()));
                        read.extend_from_slice(&frame);
                    }
                });
                assert!(input.starts_with(&read));
            });
    }
}
