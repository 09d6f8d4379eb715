//! Settings: one struct, each field with its meaning, default and environment variable.

mod brokers;
mod check;
mod effective;
mod network;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

pub use brokers::{Broker, Brokers};
pub use check::InvalidSetting;
pub use values::{Auto, NodeFork, Switch};

/// Settings of the server. Every flag has an environment variable of the same meaning; the flag wins.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "hearth",
    version,
    about = "A function platform for one Linux host",
    after_help = "hearth lab measures functions and other HTTP endpoints: hearth lab --help",
    max_term_width = 100
)]
pub struct Config {
    /// Address of the console and API.
    #[arg(
        long,
        env = "HEARTH_LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "ADDRESS:PORT"
    )]
    pub listen: SocketAddr,

    /// Host names that the console and API serve, comma-separated; localhost, this machine's names and all IP addresses
    /// are always included. Requests for other hosts get 421.
    #[arg(long, env = "HEARTH_HOSTS", value_name = "NAME", value_delimiter = ',')]
    pub hosts: Vec<String>,

    /// Reverse proxies whose X-Forwarded-For, -Proto, -Host and Forwarded headers are trusted: addresses or networks,
    /// comma-separated. Default: none, not even this machine.
    #[arg(
        long,
        env = "HEARTH_TRUSTED_PROXIES",
        value_name = "NETWORK",
        value_delimiter = ','
    )]
    pub trusted_proxies: Vec<String>,

    /// Parent domain that gives each function its own host: with fn.example.com, the function hello is served at
    /// hello.fn.example.com, without the sandboxing that pages below /fn/ get.
    #[arg(long, env = "HEARTH_FUNCTIONS_HOST", value_name = "NAME")]
    pub functions_host: Option<String>,

    /// Second address that serves only functions, below /fn/, on an origin of their own, without the sandboxing that
    /// pages below /fn/ otherwise get.
    #[arg(long, env = "HEARTH_FUNCTIONS_LISTEN", value_name = "ADDRESS:PORT")]
    pub functions_listen: Option<String>,

    /// Private networks that policies of functions may name, comma-separated. Without it, none opens a private, link-local
    /// or reserved address.
    #[arg(
        long,
        env = "HEARTH_NETWORK_ALLOW_PRIVATE",
        value_name = "NETWORK",
        value_delimiter = ','
    )]
    pub network_allow_private: Vec<String>,

    /// DNS servers for functions' names, comma-separated. Default: those of /etc/resolv.conf.
    #[arg(
        long,
        env = "HEARTH_NETWORK_RESOLVERS",
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    pub network_resolvers: Vec<String>,

    /// Whether functions' TCP connections go past the rules of connection tracking where these would let them through. They
    /// do not on a host with a firewall of its own.
    #[arg(
        long,
        env = "HEARTH_NETWORK_FAST",
        default_value = "auto",
        value_name = "auto|off"
    )]
    pub network_fast: Auto,

    /// Address of functions' own ports: one of this host's, or 0.0.0.0 or :: for all. Default: that of HEARTH_LISTEN.
    #[arg(long, env = "HEARTH_TRIGGER_ADDRESS", value_name = "ADDRESS")]
    pub trigger_address: Option<String>,

    /// Ports that functions may have.
    #[arg(
        long,
        env = "HEARTH_TRIGGER_PORTS",
        default_value = "1024-65535",
        value_name = "FIRST-LAST"
    )]
    pub trigger_ports: String,

    /// File with the MQTT brokers to which functions and chains may subscribe: JSON, an object for each name. Read once, with
    /// the password files that it names, before the server drops its privileges.
    #[arg(long, env = "HEARTH_MQTT_BROKERS", value_name = "FILE")]
    pub mqtt_brokers: Option<PathBuf>,

    /// User as which the server runs, apart from the process that needs root: a name or a number. Default: the user
    /// hearth if there is one, otherwise a number that no other user has.
    #[arg(long, env = "HEARTH_USER", value_name = "USER")]
    pub user: Option<String>,

    /// Data directory (database, code, logs); created for the server's user alone.
    #[arg(
        long,
        env = "HEARTH_DATA_DIR",
        default_value = "./data",
        value_name = "DIR"
    )]
    pub data_dir: PathBuf,

    /// Admin API token. If absent, one is generated, printed once and stored in DATA_DIR/admin-token.
    #[arg(
        long,
        env = "HEARTH_ADMIN_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub admin_token: Option<String>,

    /// Network interfaces to attach the XDP ingress programs to, comma-separated.
    #[arg(
        long,
        env = "HEARTH_XDP_INTERFACE",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub xdp_interface: Vec<String>,

    /// Seconds that running requests have to finish after SIGTERM or Ctrl-C before they are aborted.
    #[arg(
        long,
        env = "HEARTH_DRAIN_S",
        default_value_t = 30,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u32).range(0..=MAX_DRAIN_S)
    )]
    pub drain_s: u32,

    /// Lowers limits of `limits.rs`, for Hearth's own tests: `name=value,…`.
    #[arg(long, env = "HEARTH_TEST_LIMITS", default_value = "", hide = true)]
    pub test_limits: String,

    /// Controllers of the start policy to do without, for Hearth's own benchmarks: `burst,periodic`.
    #[arg(long, env = "HEARTH_TEST_WITHOUT", default_value = "", hide = true)]
    pub test_without: String,

    /// Log filter in `tracing` syntax, such as `info` or `hearth=debug`.
    #[arg(
        long,
        env = "HEARTH_LOG",
        default_value = "info",
        value_name = "FILTER"
    )]
    pub log: String,

    /// Spin time in µs before an instance or the server sleeps; trades CPU for latency; 0 disables it. Spins only while
    /// cores are idle and spinning pays off; never on a single core.
    #[arg(
        long,
        env = "HEARTH_BUSY_POLL_US",
        default_value_t = 200,
        value_name = "MICROSECONDS",
        value_parser = clap::value_parser!(u32).range(0..=MAX_BUSY_POLL_US)
    )]
    pub busy_poll_us: u32,

    /// Interpreter of Python functions; must be below /usr, which sandboxes can see.
    #[arg(
        long,
        env = "HEARTH_PYTHON",
        default_value = "/usr/bin/python3",
        value_name = "FILE"
    )]
    pub python: PathBuf,

    /// Interpreter of Node.js functions; must be below /usr, which sandboxes can see. Default: the one that `make
    /// setup` placed beside the runtime's files, otherwise /usr/bin/node.
    #[arg(long, env = "HEARTH_NODE", value_name = "FILE")]
    pub node: Option<PathBuf>,

    /// Start instances of Node.js functions by fork: `auto` if a probe at start-up finds that it works, `off` never.
    /// Without fork, each instance boots.
    #[arg(
        long,
        env = "HEARTH_NODE_FORK",
        default_value = "auto",
        value_name = "auto|off"
    )]
    pub node_fork: NodeFork,

    /// Keep one pre-forked instance per template, so that a first request does not wait for a fork. Costs about 1 MiB
    /// per template.
    #[arg(
        long,
        env = "HEARTH_PREFORK",
        default_value = "on",
        value_name = "on|off"
    )]
    pub prefork: Switch,

    /// Keep one pre-warmed sandbox per runtime with images to restore, so that a restore does not wait for one. Costs
    /// about 5 MiB each.
    #[arg(
        long,
        env = "HEARTH_PREWARM",
        default_value = "on",
        value_name = "on|off"
    )]
    pub prewarm: Switch,

    /// Memory budget in MiB for templates, idle instances and images together. Default: half of the host's memory.
    #[arg(long, env = "HEARTH_MEMORY_BUDGET_MB", value_name = "MIB")]
    pub memory_budget_mb: Option<u64>,

    /// Directory with the runtimes' files (`python/bootstrap.py` …). Default: beside the executable.
    #[arg(long, env = "HEARTH_RUNTIMES", value_name = "DIR")]
    pub runtimes: Option<PathBuf>,

    /// The `hearth-init` program. Default: beside the executable.
    #[arg(long, env = "HEARTH_INIT", value_name = "FILE")]
    pub init: Option<PathBuf>,

    /// CRIU, which stores templates as images: a program, a directory with a private copy, or "off". Default: beside
    /// the executable, otherwise the system's.
    #[arg(long, env = "HEARTH_CRIU", value_name = "PATH")]
    pub criu: Option<PathBuf>,

    /// Timeout in ms for restoring a template from its image; on timeout the start falls back to a boot. A template
    /// whose boot takes longer than this gets as long as its boot.
    #[arg(
        long,
        env = "HEARTH_RESTORE_TIMEOUT_MS",
        default_value_t = 250,
        value_name = "MS"
    )]
    pub restore_timeout_ms: u64,

    /// Maximum total size of images in MiB; 0 disables images. The least recently used image is removed first.
    #[arg(
        long,
        env = "HEARTH_IMAGE_BUDGET_MB",
        default_value_t = 1024,
        value_name = "MIB"
    )]
    pub image_budget_mb: u64,
}

/// Longest busy poll: after a millisecond, sleeping costs less.
const MAX_BUSY_POLL_US: i64 = 1000;
/// Longest drain: the longest function timeout, plus time for the response.
const MAX_DRAIN_S: i64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn config(args: &[&str]) -> Config {
        Config::parse_from(std::iter::once("hearth").chain(args.iter().copied()))
    }

    #[test]
    fn defaults_make_sense() {
        assert!(config(&[]).check().is_ok());
        let empty = config(&["--admin-token", ""]);
        assert!(empty.check().is_ok() && empty.admin_token().is_none());
    }

    #[test]
    fn a_wrong_setting_is_named() {
        let error = config(&["--admin-token", "short"]).check().unwrap_err();
        assert_eq!(error.setting, "HEARTH_ADMIN_TOKEN");
        assert!(
            !error.to_string().contains("short"),
            "the token must not be printed: {error}"
        );
        let error = config(&["--log", "a=b=c"]).check().unwrap_err();
        assert_eq!(error.setting, "HEARTH_LOG");
        let error = config(&["--python", "/opt/python3"]).check().unwrap_err();
        assert!(error.to_string().contains("/opt/python3"), "{error}");
        let error = config(&["--node", "/opt/node"]).check().unwrap_err();
        assert_eq!(error.setting, "HEARTH_NODE");
        let error = config(&["--memory-budget-mb", "0"]).check().unwrap_err();
        assert_eq!(error.setting, "HEARTH_MEMORY_BUDGET_MB");
        assert!(
            config(&["--xdp-interface", "eth0,br-lan.10"])
                .check()
                .is_ok()
        );
        let error = config(&["--xdp-interface", "eth0,a/b"])
            .check()
            .unwrap_err();
        assert_eq!(error.value, "a/b");
        let error = config(&["--restore-timeout-ms", "0"]).check().unwrap_err();
        assert_eq!(error.setting, "HEARTH_RESTORE_TIMEOUT_MS");
        let error = config(&["--image-budget-mb", "99999999"])
            .check()
            .unwrap_err();
        assert_eq!(error.setting, "HEARTH_IMAGE_BUDGET_MB");
    }
}
