//! What takes it more than a wrong descriptor.

use std::fs::File;
use std::io::Write as _;

use hearth_chain::{Descriptor, Instance, SendError};
use rustix::io::pwrite;

use super::{Anything, Member, REWRITTEN};

impl Member {
    pub(super) fn send_to_all(&mut self, descriptor: Descriptor) -> Result<(), Anything> {
        let peer = self.peer.map_or(0, |(_, peer)| peer.0);
        for number in (1..16).filter(|&number| number != peer) {
            let stranger = Descriptor {
                target: Instance(number),
                ..descriptor
            };
            let own = (self.me, &self.board);
            self.way.send_to_stranger(own, &stranger)?;
        }
        Ok(())
    }

    /// What of the server's it could change, which is nothing.
    pub(super) fn write_sealed(&self) -> Result<Vec<usize>, Anything> {
        let mut written = Vec::new();
        for (number, file) in self.sealed.iter().enumerate() {
            let shrunk = rustix::fs::ftruncate(file, 0);
            let wrote = pwrite(file, &[0xff; 64], 0);
            // Through its name, with what rights that has.
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
            let opened = File::options().write(true).open(path);
            let by_name = opened.and_then(|mut file| file.write(&[0xff; 64]));
            if shrunk.is_ok() || wrote.is_ok() || by_name.is_ok() {
                written.push(number);
            }
        }
        Ok(written)
    }

    pub(super) fn flood(&mut self, descriptor: Descriptor) -> ! {
        let mut request = descriptor.request;
        loop {
            request = request.wrapping_add(1);
            let next = Descriptor {
                request,
                ..descriptor
            };
            match self.way.send(&next) {
                Ok(()) | Err(SendError::Full(_)) => {}
                Err(_) => std::process::exit(4),
            }
        }
    }

    /// Writes to the block from before it is passed on until it is another one's.
    pub(super) fn rewrite(&mut self, onward: Descriptor) -> Result<(), Anything> {
        let valid = serde_json::to_vec(REWRITTEN)?;
        let texts = [&valid[..], b"{\"half: \xff ", b"12345678901"];
        let mut texts = texts.into_iter().cycle();
        let mut is_sent = false;
        while let Ok(mut payload) = self.pool.check(&onward, Instance::GATEWAY) {
            for text in texts.by_ref().take(1000) {
                let len = payload.write(text)?;
                if !is_sent {
                    is_sent = true;
                    self.way.send(&Descriptor { len, ..onward })?;
                }
            }
        }
        Ok(())
    }
}
