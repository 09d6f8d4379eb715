//! Addresses and networks as policies write them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::error::RuleError;

/// An address, or a network in CIDR notation whose host part is zero.
///
/// # Errors
/// [`RuleError`] says what would be right.
pub fn parse_prefix(text: &str) -> Result<IpNet, RuleError> {
    let network = match text.split_once('/') {
        None => {
            let address: IpAddr = text
                .parse()
                .map_err(|_| RuleError::Address(text.to_owned()))?;
            IpNet::from(address)
        }
        Some(_) => text
            .parse::<IpNet>()
            .map_err(|_| RuleError::Address(text.to_owned()))?,
    };
    if network.addr() != network.network() {
        return Err(RuleError::HostPart {
            text: text.to_owned(),
            network: network.trunc().to_string(),
        });
    }
    if let IpAddr::V6(address) = network.addr()
        && let Some(mapped) = mapped(address, network.prefix_len())
    {
        return Err(RuleError::Mapped(mapped.to_string()));
    }
    Ok(network)
}

/// The IPv4 address that an IPv6 address writes in another way.
fn mapped(address: Ipv6Addr, length: u8) -> Option<Ipv4Addr> {
    if length < 96 {
        return None;
    }
    address.to_ipv4_mapped()
}

/// Writes a network: an address without its length, IPv6 in brackets.
pub(super) fn write(network: &IpNet, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match network.addr() {
        IpAddr::V4(address) => write!(f, "{address}")?,
        IpAddr::V6(address) => write!(f, "[{address}]")?,
    }
    if network.prefix_len() < network.max_prefix_len() {
        write!(f, "/{}", network.prefix_len())?;
    }
    Ok(())
}
