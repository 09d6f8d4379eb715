//! Makes an instance a member of a chain, and tells it of its peers. From then on it takes no request from its channel.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use hearth_abi::Kind;
use uuid::Uuid;

use super::Instance;
use super::template::message;
use crate::channel::ChannelError;

/// Longest time that an instance may let its control socket be full. It takes messages between two requests; as many as a chain
/// has instances fit.
const ROOM_DEADLINE: Duration = Duration::from_secs(5);

/// An instance that cannot be told of its chain. It is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The instance is gone, or the system refused.
    #[error("it could not be told of its chain: {0}")]
    Socket(#[from] std::io::Error),
    /// It does not take messages.
    #[error("it did not listen to its chain for {} s", ROOM_DEADLINE.as_secs())]
    Deaf,
    /// Its channel is broken.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

impl Instance {
    /// Ends the use of its channel: it waits for the first message of [`Self::tell`] from now on.
    ///
    /// # Errors
    /// [`JoinError`].
    pub async fn begin_joining(&mut self) -> Result<(), JoinError> {
        self.channel.send(Kind::Join, &Uuid::nil(), &[]).await?;
        self.channel.ring();
        Ok(())
    }

    /// Sends a message on the control socket, with descriptors.
    ///
    /// # Errors
    /// [`JoinError`].
    pub async fn tell(
        &self,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), JoinError> {
        let sent = message::send(&self.control, bytes, descriptors);
        match tokio::time::timeout(ROOM_DEADLINE, sent).await {
            Ok(sent) => Ok(sent?),
            Err(_) => Err(JoinError::Deaf),
        }
    }
}
