use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn rule(text: &str) -> Rule {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    match text.parse::<Rule>() {
        Ok(rule) => panic!("{text} was read as {rule}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn entries_are_written_in_one_way() {
    for (text, written) in [
        ("api.stripe.com", "api.stripe.com"),
        ("API.Stripe.COM.", "api.stripe.com"),
        (" api.stripe.com:443 ", "api.stripe.com:443"),
        ("api.stripe.com:443/tcp", "api.stripe.com:443"),
        ("api.stripe.com:443/UDP", "api.stripe.com:443/udp"),
        ("*.amazonaws.com", "*.amazonaws.com"),
        ("*.s3.*.amazonaws.com:*", "*.s3.*.amazonaws.com:*"),
        ("db:5432", "db:5432"),
        ("_mongodb._tcp.example.com", "_mongodb._tcp.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        (
            "*.BÜCHER.example:8000-8063",
            "*.xn--bcher-kva.example:8000-8063",
        ),
        ("198.51.100.0/24:5432/tcp", "198.51.100.0/24:5432"),
        ("198.51.100.7", "198.51.100.7"),
        ("198.51.100.7/32", "198.51.100.7"),
        ("0.0.0.0/0:22-22", "0.0.0.0/0:22"),
        ("[2001:db8::]/32:53/udp", "[2001:db8::]/32:53/udp"),
        ("2001:db8::/32", "[2001:db8::]/32"),
        ("2001:DB8:0::1", "[2001:db8::1]"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("[2001:db8::1]:443", "[2001:db8::1]:443"),
        ("example.com:1-65535", "example.com:*"),
        ("Internet", "internet"),
        ("outbound", "internet"),
    ] {
        assert_eq!(rule(text).to_string(), written, "{text}");
    }
}

#[test]
fn a_wrong_entry_gets_the_right_syntax() {
    for (text, expected) in [
        ("", "must not be empty"),
        ("  ", "must not be empty"),
        ("none", "an empty list allows nothing"),
        ("*", "write internet"),
        ("*.*", "write internet"),
        ("https://api.stripe.com/v1", "write api.stripe.com"),
        ("api.stripe.com/v1", "without a path"),
        ("api.stripe.com/udp", "api.stripe.com:443/udp"),
        ("api-*.example.com", "must be a whole label"),
        ("**.example.com", "must be a whole label"),
        ("example.*", "the last label must not be *"),
        ("exa mple.com", "not a host name"),
        ("-a.example.com", "not a host name"),
        ("a..example.com", "not a host name"),
        (".", "not a host name"),
        ("a.example.com..", "not a host name"),
        ("bü cher.example", "not a host name"),
        ("1.2.3", "not an address"),
        ("300.1.1.1", "not an address"),
        ("198.51.100.0/33", "not an address"),
        ("198.51.100.0/", "not an address"),
        ("198.51.100.7/24", "write 198.51.100.0/24"),
        ("2001:db8::1/32", "write 2001:db8::/32"),
        ("[2001:db8::1", "brackets"),
        ("2001:db8::1:443:x", "brackets"),
        ("2001:db8::/32:53", "brackets"),
        ("[2001:db8::/32]", "not an address"),
        ("[198.51.100.7]", "not an address"),
        ("::ffff:10.0.0.1", "as IPv4: 10.0.0.1"),
        ("example.com:", "not a port"),
        ("example.com:0", "not a port"),
        ("example.com:65536", "not a port"),
        ("example.com:+1", "not a port"),
        ("example.com:9-8", "not a port"),
        ("example.com:1-", "not a port"),
        ("example.com:https", "not a port"),
        ("example.com:1-65", "at most 64"),
        ("example.com:443/icmp", "not a protocol"),
        ("example.com:443/", "not a protocol"),
        ("localhost", "own loopback"),
        ("db.localhost:1", "own loopback"),
    ] {
        assert!(
            refusal(text).contains(expected),
            "{text}: {}",
            refusal(text)
        );
    }
    assert!(refusal(&"a.".repeat(200)).contains("at most"));
}

#[test]
fn wildcards_stand_for_labels() {
    let matches = |pattern: &str, name: &str| {
        NamePattern::parse(pattern)
            .expect("a pattern")
            .matches(name)
    };
    for (pattern, name, expected) in [
        ("example.com", "example.com", true),
        ("example.com", "a.example.com", false),
        ("example.com", "com", false),
        ("*.example.com", "example.com", false),
        ("*.example.com", "a.example.com", true),
        ("*.example.com", "a.b.c.example.com", true),
        ("*.example.com", "a.badexample.com", false),
        ("*.example.com", "example.com.evil.test", false),
        ("*.example.com", ".example.com", false),
        ("*.example.com", "a..example.com", false),
        ("a.*.example.com", "a.b.example.com", true),
        ("a.*.example.com", "a.b.c.example.com", false),
        ("a.*.example.com", "a.example.com", false),
        ("*.s3.*.test", "x.y.s3.eu.test", true),
        ("*.s3.*.test", "s3.eu.test", false),
        ("*.*.test", "a.test", false),
        ("*.*.test", "a.b.test", true),
        ("*.*.test", "a.b.c.test", true),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn special_ranges_need_the_administrator() {
    let refused = |text: &str, open: &[&str]| {
        let open: Vec<IpNet> = open.iter().map(|net| net.parse().unwrap()).collect();
        let policy = NetworkPolicy::parse([text]).unwrap();
        policy
            .check_ranges(&open)
            .err()
            .map(|invalid| invalid.to_string())
    };
    for text in [
        "10.1.0.0/16:5432",
        "127.0.0.1",
        "169.254.169.254",
        "192.168.1.1",
        "172.16.0.0/12",
        "100.64.0.0/10",
        "224.0.0.1",
        "255.255.255.255",
        "0.0.0.0",
        "::1",
        "fe80::1",
        "fd00::/8",
        "ff02::1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "2001::1",
        "::",
        "5f00::/16",
    ] {
        let reason = refused(text, &[]).unwrap_or_else(|| panic!("{text} was allowed"));
        assert!(reason.contains("HEARTH_NETWORK_ALLOW_PRIVATE"), "{reason}");
    }
    for text in [
        "198.51.100.0/24",
        "2001:db8::/32",
        "0.0.0.0/0:22",
        "[::]/0:22",
        "8.8.8.8",
        "2600::/12",
    ] {
        assert_eq!(refused(text, &[]), None);
    }
    assert_eq!(refused("10.1.0.0/16:5432", &["10.0.0.0/8"]), None);
    assert!(refused("10.1.0.0/16:5432", &["10.1.2.0/24", "fd00::/8"]).is_some());
    let mapped: IpAddr = "::ffff:169.254.169.254".parse().unwrap();
    assert!(special_range(mapped).is_some());
}

#[test]
fn what_is_allowed() {
    let policy = NetworkPolicy::parse([
        "api.example.com",
        "*.example.org:5000-5001/udp",
        "198.51.100.0/24:5432",
    ])
    .unwrap();
    let names = |name: &str| BTreeSet::from([Arc::from(name)]);
    let at = |address: &str, name: &str, port, protocol| {
        policy.allows(address.parse().unwrap(), &names(name), port, protocol)
    };
    assert!(at("203.0.113.1", "api.example.com", 443, Protocol::Tcp));
    assert!(at("203.0.113.1", "api.example.com", 80, Protocol::Tcp));
    assert!(!at("203.0.113.1", "api.example.com", 443, Protocol::Udp));
    assert!(!at("203.0.113.1", "api.example.com", 22, Protocol::Tcp));
    assert!(at("203.0.113.1", "a.example.org", 5001, Protocol::Udp));
    assert!(!at("203.0.113.1", "a.example.net", 443, Protocol::Tcp));
    assert!(at("198.51.100.9", "", 5432, Protocol::Tcp));
    assert!(!at("198.51.101.9", "", 5432, Protocol::Tcp));
    assert!(policy.allows_name("api.example.com") && !policy.allows_name("example.com"));
    let internet = NetworkPolicy::parse(["internet"]).unwrap();
    assert!(internet.allows(
        "8.8.8.8".parse().unwrap(),
        &BTreeSet::new(),
        1,
        Protocol::Udp
    ));
    assert!(!internet.allows(
        "10.0.0.1".parse().unwrap(),
        &BTreeSet::new(),
        1,
        Protocol::Udp
    ));
}

#[test]
fn the_setting_in_json() {
    let read = |value: serde_json::Value| serde_json::from_value::<Network>(value);
    assert_eq!(read(json!("none")).unwrap(), Network::None);
    assert_eq!(read(json!("internet")).unwrap(), Network::internet());
    assert_eq!(read(json!("outbound")).unwrap(), Network::internet());
    assert_eq!(
        read(json!({"allow": ["outbound"]})).unwrap(),
        Network::internet()
    );
    assert_eq!(
        serde_json::to_value(Network::internet()).unwrap(),
        json!("internet")
    );
    let policy =
        json!({"allow": ["A.example", "a.example.", "[2001:db8::]/32:53/udp"], "dry_run": true});
    let written = serde_json::to_value(read(policy).unwrap()).unwrap();
    assert_eq!(
        written,
        json!({"allow": ["a.example", "[2001:db8::]/32:53/udp"], "dry_run": true})
    );
    let limited = json!({"allow": ["internet"], "dry_run": false,
        "limits": {"connections": 5, "connections_per_second": 0, "bytes_per_second": 7}});
    let network = read(limited.clone()).unwrap();
    assert_eq!(serde_json::to_value(&network).unwrap(), limited);
    assert_eq!(
        network.to_string(),
        "internet; at most 5 connections; unlimited connections per second; at most 7 bytes per second"
    );
    assert!(read(json!({"allow": ["a b"]})).is_err());
    assert!(read(json!("all")).is_err());
}

#[test]
fn a_policy_has_a_bounded_number_of_entries() {
    let entries: Vec<String> = (0..=MAX_RULES).map(|n| format!("n{n}.example")).collect();
    let all = || entries.iter().map(String::as_str);
    assert_eq!(
        NetworkPolicy::parse(all().skip(1)).unwrap().rules.len(),
        MAX_RULES
    );
    let error = NetworkPolicy::parse(all()).unwrap_err();
    assert_eq!((error.index, error.error), (MAX_RULES, RuleError::TooMany));
    let error = NetworkPolicy::parse(["a.example", "b c"]).unwrap_err();
    assert_eq!((error.index, error.text.as_str()), (1, "b c"));
}

fn any_network() -> impl Strategy<Value = IpNet> {
    prop_oneof![
        (any::<u32>(), 0_u8..=32).prop_map(|(address, length)| {
            IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::from_bits(address), length)).trunc()
        }),
        (any::<u128>(), 0_u8..=128).prop_map(|(address, length)| {
            IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::from_bits(address), length)).trunc()
        }),
    ]
    .prop_filter("IPv4 in the notation of IPv6", |network| {
        match network.addr() {
            IpAddr::V6(address) => address.to_ipv4_mapped().is_none(),
            IpAddr::V4(_) => true,
        }
    })
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let label = "[a-z0-9_]([a-z0-9-]{0,20}[a-z0-9])?";
    let name = (
        prop::collection::vec(prop_oneof![3 => label, 1 => "\\*"], 0..5),
        "[a-z]{2,8}",
    )
        .prop_map(|(mut labels, last)| {
            labels.push(last);
            labels.join(".")
        })
        .prop_filter_map("a name", |name| NamePattern::parse(&name).ok());
    let target = prop_oneof![
        name.prop_map(Target::Name),
        any_network().prop_map(Target::Network)
    ];
    let ports = prop_oneof![
        Just(Ports::ALL),
        (1_u16.., 1_u16..).prop_map(|(a, b)| Ports::Range(a.min(b), a.max(b))),
        (1_u16..=65_000, 0_u16..64).prop_map(|(first, more)| Ports::Range(first, first + more)),
    ];
    let protocol = prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp)];
    let how = prop_oneof![Just((Ports::Web, Protocol::Tcp)), (ports, protocol)];
    (target, how)
        .prop_map(|(target, (ports, protocol))| Rule::Allow {
            target,
            ports,
            protocol,
        })
        .prop_filter("too many ports", |rule| match rule {
            Rule::Allow {
                target: Target::Name(_),
                ports: Ports::Range(first, last),
                ..
            } => (*first, *last) == (1, u16::MAX) || last - first < 64,
            _ => true,
        })
        // Two names are words of the language.
        .prop_filter("a word", |rule| {
            !["internet", "outbound", "none"].contains(&rule.to_string().as_str())
        })
}

proptest! {
    #[test]
    fn what_was_written_is_read(rule in any_rule()) {
        prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
    }

    #[test]
    fn whatever_is_read_is_written_and_read_again(text in "[a-zA-Z0-9*.:/\\[\\]_ ü-]{0,40}") {
        if let Ok(rule) = text.parse::<Rule>() {
            prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
        }
    }

    /// A name that a pattern stands for ends with the pattern's last label and has at least as many labels.
    #[test]
    fn a_pattern_never_reaches_out_of_its_domain(
        pattern in "(\\*\\.)?([a-c]\\.){0,2}(\\*\\.)?[a-c]{1,2}",
        name in "([a-c]{1,2}\\.){0,4}[a-c]{1,2}",
    ) {
        if let Ok(parsed) = NamePattern::parse(&pattern) && parsed.matches(&name) {
            prop_assert!(name.rsplit('.').next() == pattern.rsplit('.').next());
            prop_assert!(name.split('.').count() >= pattern.split('.').count());
        }
    }
}
