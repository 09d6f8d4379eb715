//! Network settings: which hosts the server serves, which proxies it trusts, and at which interfaces packets are met.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use ipnet::IpNet;

use super::{Config, InvalidSetting};
use crate::model::{normal_host_name, parse_prefix};

const HOSTS_RULE: &str = "must be comma-separated host names such as hearth.example.com, without scheme, port or path; \
                          localhost and this machine's names and addresses are always included";
const PROXIES_RULE: &str =
    "must be comma-separated addresses or networks such as 10.0.0.1 or 172.16.0.0/12";

const RESOLVERS_RULE: &str = "must be comma-separated addresses of DNS servers such as 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53";
const DNS_PORT: u16 = 53;

/// The entries of a list without empty ones: an unset variable in a compose file becomes an empty one.
fn entries(list: &[String]) -> impl Iterator<Item = &str> {
    list.iter()
        .map(|entry| entry.trim())
        .filter(|entry| !entry.is_empty())
}

/// The normalised name, unless it is an address.
fn host(text: &str) -> Option<String> {
    normal_host_name(text).filter(|name| name.parse::<Ipv4Addr>().is_err())
}

impl Config {
    /// The interfaces whose packets meet the ingress. An unset variable in a compose file becomes one without a name.
    pub fn xdp_interfaces(&self) -> &[String] {
        match self.xdp_interface.as_slice() {
            [only] if only.is_empty() => &[],
            all => all,
        }
    }

    /// The names the console serves besides those it always serves.
    ///
    /// # Errors
    /// The first that is not a host name.
    pub fn hosts(&self) -> Result<Vec<String>, InvalidSetting> {
        entries(&self.hosts)
            .map(|entry| {
                host(entry).ok_or_else(|| InvalidSetting {
                    setting: "HEARTH_HOSTS",
                    value: entry.to_owned(),
                    rule: HOSTS_RULE.into(),
                })
            })
            .collect()
    }

    /// The networks of trusted proxies.
    ///
    /// # Errors
    /// The first that is not a network.
    pub fn trusted_proxies(&self) -> Result<Vec<IpNet>, InvalidSetting> {
        entries(&self.trusted_proxies)
            .map(|entry| {
                let network = entry.parse::<IpNet>().ok();
                let alone = || entry.parse::<IpAddr>().ok().map(IpNet::from);
                // A prefix of 0 would trust every client, so it is rejected.
                let network = network.or_else(alone).filter(|net| net.prefix_len() > 0);
                network.ok_or_else(|| InvalidSetting {
                    setting: "HEARTH_TRUSTED_PROXIES",
                    value: entry.to_owned(),
                    rule: PROXIES_RULE.into(),
                })
            })
            .collect()
    }

    /// Private networks that policies of functions may open.
    ///
    /// # Errors
    /// The first that is not a network, or that holds the host's loopback.
    pub fn network_allow_private(&self) -> Result<Vec<IpNet>, InvalidSetting> {
        entries(&self.network_allow_private)
            .map(|entry| {
                let invalid = |rule: String| InvalidSetting {
                    setting: "HEARTH_NETWORK_ALLOW_PRIVATE",
                    value: entry.to_owned(),
                    rule,
                };
                let network = parse_prefix(entry).map_err(|error| {
                    invalid(format!(
                        "must be comma-separated addresses or networks such as 10.1.0.0/16: {error}"
                    ))
                })?;
                let loopback: [IpAddr; 2] =
                    [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                // A prefix of 0 opens everything, which cannot be meant by the name of a network.
                if network.prefix_len() == 0 || loopback.iter().any(|own| network.contains(own)) {
                    return Err(invalid(
                        "must not contain the loopback, which is always the function's own".into(),
                    ));
                }
                Ok(network)
            })
            .collect()
    }

    /// The DNS servers, if they are set.
    ///
    /// # Errors
    /// The first that is not an address.
    pub fn network_resolvers(&self) -> Result<Vec<SocketAddr>, InvalidSetting> {
        entries(&self.network_resolvers)
            .map(|entry| {
                let alone = |_| {
                    entry
                        .parse::<IpAddr>()
                        .map(|address| (address, DNS_PORT).into())
                };
                let server: Result<SocketAddr, _> = entry.parse().or_else(alone);
                server
                    .ok()
                    .filter(|server| server.port() != 0 && !server.ip().is_unspecified())
                    .ok_or_else(|| InvalidSetting {
                        setting: "HEARTH_NETWORK_RESOLVERS",
                        value: entry.to_owned(),
                        rule: RESOLVERS_RULE.into(),
                    })
            })
            .collect()
    }

    /// The address of functions' ports: the server's own by default.
    ///
    /// # Errors
    /// When it is none.
    pub fn trigger_address(&self) -> Result<IpAddr, InvalidSetting> {
        let text = self.trigger_address.as_deref().map(str::trim);
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Ok(self.listen.ip());
        };
        text.parse().map_err(|_| InvalidSetting {
            setting: "HEARTH_TRIGGER_ADDRESS",
            value: text.to_owned(),
            rule: "must be an address of this host such as 192.0.2.7, or 0.0.0.0 or [::] for all"
                .into(),
        })
    }

    /// The ports that functions may have.
    ///
    /// # Errors
    /// When they are none.
    pub fn trigger_ports(&self) -> Result<RangeInclusive<u16>, InvalidSetting> {
        let text = self.trigger_ports.trim();
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(first..=last),
            _ => Err(InvalidSetting {
                setting: "HEARTH_TRIGGER_PORTS",
                value: text.to_owned(),
                rule: "must be a range of ports such as 1024-65535".into(),
            }),
        }
    }

    /// The second listener's address.
    ///
    /// # Errors
    /// When it is invalid or the console's own.
    pub fn functions_listen(&self) -> Result<Option<SocketAddr>, InvalidSetting> {
        let Some(text) = self.functions_listen.as_deref().map(str::trim) else {
            return Ok(None);
        };
        if text.is_empty() {
            return Ok(None);
        }
        let invalid = |rule: &str| InvalidSetting {
            setting: "HEARTH_FUNCTIONS_LISTEN",
            value: text.to_owned(),
            rule: rule.into(),
        };
        let address: SocketAddr = text
            .parse()
            .map_err(|_| invalid("must be an address and a port such as 127.0.0.1:8081"))?;
        // Port 0 is another one each time.
        if address.port() != 0 && address.port() == self.listen.port() {
            return Err(invalid(
                "must use a different port than HEARTH_LISTEN, because browsers tell origins apart by port",
            ));
        }
        Ok(Some(address))
    }

    /// The name below which functions have hosts of their own.
    ///
    /// # Errors
    /// When it is no name, or one of the console's names lies below it.
    pub fn functions_host(&self) -> Result<Option<String>, InvalidSetting> {
        let Some(text) = self.functions_host.as_deref().map(str::trim) else {
            return Ok(None);
        };
        if text.is_empty() {
            return Ok(None);
        }
        let invalid = |rule: String| InvalidSetting {
            setting: "HEARTH_FUNCTIONS_HOST",
            value: text.to_owned(),
            rule,
        };
        let name = host(text).ok_or_else(|| {
            invalid(
                "must be a host name such as fn.example.com, without scheme, port or path; \
                     functions answer at NAME.fn.example.com"
                    .into(),
            )
        })?;
        for console in self.hosts()? {
            if console == name || console.ends_with(&format!(".{name}")) {
                return Err(invalid(format!(
                    "must not contain the console's host {console} (HEARTH_HOSTS): names below it belong to functions"
                )));
            }
        }
        Ok(Some(name))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn config(args: &[&str]) -> Config {
        Config::parse_from(std::iter::once("hearth").chain(args.iter().copied()))
    }

    #[test]
    fn names_and_networks_are_read() {
        let config = config(&[
            "--hosts",
            "Console.Example.com., b,",
            "--trusted-proxies",
            "10.0.0.1, 172.16.0.0/12,::1,fd00::/8",
            "--functions-host",
            "FN.example.com",
        ]);
        assert_eq!(config.hosts().unwrap(), ["console.example.com", "b"]);
        let networks = config.trusted_proxies().unwrap();
        let networks: Vec<_> = networks.iter().map(ToString::to_string).collect();
        assert_eq!(
            networks,
            ["10.0.0.1/32", "172.16.0.0/12", "::1/128", "fd00::/8"]
        );
        let functions = config.functions_host().unwrap();
        assert_eq!(functions.as_deref(), Some("fn.example.com"));
        assert!(config.check().is_ok());
    }

    #[test]
    fn what_functions_may_reach_is_read() {
        let config = config(&[
            "--network-allow-private",
            "10.1.0.0/16, fd00::/8,192.168.1.7",
            "--network-resolvers",
            "192.0.2.53,192.0.2.54:5353,2001:db8::53,[2001:db8::53]:54",
        ]);
        let open: Vec<_> = config.network_allow_private().unwrap();
        let open: Vec<_> = open.iter().map(ToString::to_string).collect();
        assert_eq!(open, ["10.1.0.0/16", "fd00::/8", "192.168.1.7/32"]);
        let servers: Vec<_> = config.network_resolvers().unwrap();
        let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
        let expected = [
            "192.0.2.53:53",
            "192.0.2.54:5353",
            "[2001:db8::53]:53",
            "[2001:db8::53]:54",
        ];
        assert_eq!(servers, expected);
    }

    #[test]
    fn ports_of_functions_are_read() {
        let default = config(&["--listen", "192.0.2.7:80"]);
        assert_eq!(default.trigger_address().unwrap().to_string(), "192.0.2.7");
        assert_eq!(default.trigger_ports().unwrap(), 1024..=65535);
        let own = config(&["--trigger-address", "::", "--trigger-ports", "53 - 53"]);
        assert_eq!(own.trigger_address().unwrap().to_string(), "::");
        assert_eq!(own.trigger_ports().unwrap(), 53..=53);
        for wrong in ["", "0-1", "2-1", "1-65536", "a-b", "1-2-3"] {
            let error = config(&["--trigger-ports", wrong]).check().unwrap_err();
            assert_eq!(error.setting, "HEARTH_TRIGGER_PORTS", "{wrong}");
        }
        let error = config(&["--trigger-address", "eth0"]).check().unwrap_err();
        assert_eq!(error.setting, "HEARTH_TRIGGER_ADDRESS");
    }

    #[test]
    fn what_would_open_the_host_or_is_no_address_is_refused() {
        for wrong in [
            "10.1.2.3/16",
            "127.0.0.0/8",
            "::1",
            "0.0.0.0/0",
            "::/0",
            "lan",
            "10.0.0.0/40",
        ] {
            let error = config(&["--network-allow-private", wrong])
                .check()
                .unwrap_err();
            assert_eq!(error.setting, "HEARTH_NETWORK_ALLOW_PRIVATE", "{wrong}");
        }
        for wrong in ["dns.example", "0.0.0.0", "192.0.2.53:0", "192.0.2.53:x"] {
            let error = config(&["--network-resolvers", wrong]).check().unwrap_err();
            assert_eq!(error.setting, "HEARTH_NETWORK_RESOLVERS", "{wrong}");
        }
    }

    #[test]
    fn what_is_no_name_or_network_is_named() {
        for (args, setting) in [
            (&["--hosts", "https://a.example"][..], "HEARTH_HOSTS"),
            (&["--hosts", "a.example:8080"], "HEARTH_HOSTS"),
            (&["--hosts", "*"], "HEARTH_HOSTS"),
            (&["--hosts", "a,b c"], "HEARTH_HOSTS"),
            (&["--hosts", "127.0.0.1"], "HEARTH_HOSTS"),
            (&["--trusted-proxies", "proxy"], "HEARTH_TRUSTED_PROXIES"),
            (
                &["--trusted-proxies", "10.0.0.0/33"],
                "HEARTH_TRUSTED_PROXIES",
            ),
            (
                &["--trusted-proxies", "0.0.0.0/0"],
                "HEARTH_TRUSTED_PROXIES",
            ),
            (&["--functions-listen", "8081"], "HEARTH_FUNCTIONS_LISTEN"),
            (
                &["--functions-listen", "localhost:8081"],
                "HEARTH_FUNCTIONS_LISTEN",
            ),
            (
                &["--functions-listen", "0.0.0.0:8080"],
                "HEARTH_FUNCTIONS_LISTEN",
            ),
            (&["--functions-host", "http://fn"], "HEARTH_FUNCTIONS_HOST"),
            (
                &["--functions-host", "*.fn.example"],
                "HEARTH_FUNCTIONS_HOST",
            ),
            (&["--functions-host", "127.0.0.1"], "HEARTH_FUNCTIONS_HOST"),
            (
                &["--functions-host", "fn.example", "--hosts", "a.fn.example"],
                "HEARTH_FUNCTIONS_HOST",
            ),
            (
                &["--functions-host", "fn.example", "--hosts", "fn.example"],
                "HEARTH_FUNCTIONS_HOST",
            ),
        ] {
            let error = config(args).check().expect_err("refused");
            assert_eq!(error.setting, setting, "{args:?}");
            assert!(!error.to_string().contains('\n'), "{error}");
        }
        let empty = [
            "--hosts",
            "",
            "--trusted-proxies",
            "",
            "--functions-host",
            "",
            "--functions-listen",
            "",
        ];
        assert!(config(&empty).check().is_ok());
    }
}
