//! The way between the host and a store that has a network namespace of its own: a pair of interfaces, by `ip` of iproute2.
//! It ends with the namespace, which ends with the process.

use std::io;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// Networks of stores: of the range for benchmarks (RFC 2544), of which Hearth's sandboxes have another part. The administrator
/// opens them to functions.
pub(super) const NETWORK: &str = "198.18.104.0/24";

/// Most stores of a host at a time: each has a network of four addresses.
const STORES_MAX: u8 = 64;

/// Begins the names of interfaces.
const NAME: &str = "hearth-lab";

/// The interface's name inside.
const INSIDE: &str = "eth0";

/// Longest run of `ip`.
const WITHIN: Duration = Duration::from_secs(10);

/// A pair of interfaces. It is removed by [`Self::remove`], or with the namespace.
#[derive(Debug)]
pub(super) struct Link {
    number: u8,
}

impl Link {
    /// Makes a pair between here and the network namespace of a process, and brings this end up.
    ///
    /// # Errors
    /// What `ip` says.
    pub(super) async fn make(process: u32) -> io::Result<Self> {
        for number in 0..STORES_MAX {
            let link = Self { number };
            let name = link.name();
            let pair = format!("link add {name} type veth peer name {INSIDE} netns {process}");
            match ip(&pair).await {
                Ok(()) => {
                    // Should that fail, it goes with the namespace.
                    ip(&format!("addr add {}/30 dev {name}", link.address(1))).await?;
                    ip(&format!("link set {name} up")).await?;
                    return Ok(link);
                }
                // Of another store.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        let reason = format!("{STORES_MAX} stores are running");
        Err(io::Error::other(reason))
    }

    /// Gives the inner end its address, in whose namespace this process is.
    ///
    /// # Errors
    /// What `ip` says.
    pub(super) async fn set_up(address: Ipv4Addr) -> io::Result<()> {
        ip(&format!("addr add {address}/30 dev {INSIDE}")).await?;
        ip(&format!("link set {INSIDE} up")).await
    }

    /// The address inside.
    pub(super) fn inside(&self) -> Ipv4Addr {
        self.address(2)
    }

    /// Removes both ends.
    pub(super) async fn remove(self) {
        // It may be gone with the namespace already.
        let _ = ip(&format!("link del {}", self.name())).await;
    }

    fn name(&self) -> String {
        format!("{NAME}{}", self.number)
    }

    fn address(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, 104, self.number * 4 + host)
    }
}

/// Runs `ip` with these words.
async fn ip(words: &str) -> io::Result<()> {
    let mut command = Command::new("ip");
    command
        .args(words.split(' '))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(WITHIN, command.output()).await;
    let output = output.map_err(|_| io::ErrorKind::TimedOut)?;
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("the program ip of iproute2 is missing"),
        _ => error,
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let kind = match said.contains("File exists") {
        true => io::ErrorKind::AlreadyExists,
        false => io::ErrorKind::Other,
    };
    let reason = format!("ip {words}: {}", said.trim());
    Err(io::Error::new(kind, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_store_has_a_network_of_its_own_in_the_one_that_is_opened() {
        let (first, last) = (Link { number: 0 }, Link { number: 63 });
        assert_eq!(first.inside().to_string(), "198.18.104.2");
        assert_eq!(last.inside().to_string(), "198.18.104.254");
        assert_eq!(last.address(1).to_string(), "198.18.104.253");
        // As long as the kernel allows.
        assert!(last.name().len() < 16, "{}", last.name());
    }
}
