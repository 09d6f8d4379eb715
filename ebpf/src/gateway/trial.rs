//! The programs without interfaces, for tests.

use std::io;
use std::net::IpAddr;

use aya::programs::{SchedClassifier, TestRun as _, TestRunOptions};

use super::Gateway;
use super::records::{Route, octets};
use crate::programs::told;

/// Longer than any frame that is tried.
const FRAME: usize = 2048;
/// The loopback, which is everywhere, as if it were a sandbox's.
const LOOPBACK: u32 = 1;
/// The slot whose interface it is.
pub const SLOT: u16 = (LOOPBACK.wrapping_sub(1000) & 0xfff) as u16;

impl Gateway {
    /// Runs a program once on a frame, which has come by the interface of [`SLOT`]: what it says, and the frame afterwards.
    ///
    /// # Errors
    /// What the kernel says.
    ///
    /// # Panics
    /// If there is no such program.
    pub fn test_run(&self, name: &str, frame: &[u8]) -> io::Result<(i32, Vec<u8>)> {
        self.test_run_marked(name, frame, 0)
    }

    /// The same with a frame that has a mark.
    ///
    /// # Errors
    /// What the kernel says.
    ///
    /// # Panics
    /// If there is no such program.
    pub fn test_run_marked(
        &self,
        name: &str,
        frame: &[u8],
        mark: u32,
    ) -> io::Result<(i32, Vec<u8>)> {
        let program = self.object.program(name).expect("the object has it");
        let program: &SchedClassifier = program.try_into().map_err(io::Error::other)?;
        let mut after = vec![0; FRAME];
        // The first fields of `struct __sk_buff`: length and kind, which are the kernel's to say, and the mark.
        let mut context = [0; 12];
        context[8..].copy_from_slice(&mark.to_ne_bytes());
        let run = program.test_run(TestRunOptions {
            ctx_in: Some(&context),
            data_in: Some(frame),
            data_out: Some(&mut after),
            repeat: 1,
            ..TestRunOptions::default()
        });
        let run = run.map_err(|error| io::Error::other(told(&error)))?;
        after.truncate(run.data_size_out as usize);
        Ok((run.return_value.cast_signed(), after))
    }

    /// Has seen a destination, to which the host goes with this address.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn test_route(&self, to: IpAddr, source: IpAddr, until: u64) -> io::Result<()> {
        let route = Route {
            source: octets(source),
            until,
            class: 0,
            next: 0,
        };
        self.routes.set(&octets(to), &route)
    }
}
