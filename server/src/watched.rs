//! A descriptor whose readiness tokio watches.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

/// An owned descriptor, registered with the runtime that made it. Readiness is edge-triggered.
#[derive(Debug)]
pub struct Watched(AsyncFd<OwnedFd>);

impl Watched {
    /// Registers `fd`.
    ///
    /// # Errors
    /// When the descriptor cannot be polled, or there is no runtime.
    pub fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        // SAFETY: the descriptor is owned, hence open and the same until `AsyncFd` is dropped: this type hands out
        // shared references only, so the descriptor cannot be replaced.
        let watched = unsafe { AsyncFd::register_with_interest(fd, interest) };
        Ok(Self(watched.map_err(io::Error::from)?))
    }

    /// Waits until there may be something to read.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn readable(&self) -> io::Result<AsyncFdReadyGuard<'_, OwnedFd>> {
        self.0.readable().await
    }

    /// Tries `operation` until it does not fail with `WouldBlock`, sleeping in between.
    ///
    /// # Errors
    /// What the operation fails with.
    pub async fn io<T>(
        &self,
        interest: Interest,
        mut operation: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.0.async_io(interest, |fd| operation(fd.as_fd())).await
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}
