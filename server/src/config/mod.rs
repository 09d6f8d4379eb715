//! Settings: one struct, each field with its meaning, default and environment variable.

mod network;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::system::{HostMemory, cores};

/// Settings of the server. Every flag has an environment variable of the same meaning; the flag wins.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "hearth",
    version,
    about = "A function platform for one Linux host",
    max_term_width = 100
)]
pub struct Config {
    /// Address of console and API.
    #[arg(
        long,
        env = "HEARTH_LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "ADDRESS:PORT"
    )]
    pub listen: SocketAddr,

    /// Names that console and API answer to, separated by commas, besides localhost, the machine's own names and any
    /// address. A request for another host is refused with 421.
    #[arg(long, env = "HEARTH_HOSTS", value_name = "NAME", value_delimiter = ',')]
    pub hosts: Vec<String>,

    /// Reverse proxies whose X-Forwarded-For, -Proto, -Host and Forwarded count: addresses or networks, separated by
    /// commas. Nobody's count when absent, not even those of this machine.
    #[arg(
        long,
        env = "HEARTH_TRUSTED_PROXIES",
        value_name = "NETWORK",
        value_delimiter = ','
    )]
    pub trusted_proxies: Vec<String>,

    /// Name below which each function has a host of its own: with fn.example.com the function hello answers at
    /// hello.fn.example.com, where its pages are ordinary pages.
    #[arg(long, env = "HEARTH_FUNCTIONS_HOST", value_name = "NAME")]
    pub functions_host: Option<String>,

    /// A second address, of which the whole origin belongs to functions: they answer there below /fn/ as ordinary pages, and
    /// console and API do not.
    #[arg(long, env = "HEARTH_FUNCTIONS_LISTEN", value_name = "ADDRESS:PORT")]
    pub functions_listen: Option<String>,

    /// Directory of the database, code and logs; created with mode 0700.
    #[arg(
        long,
        env = "HEARTH_DATA_DIR",
        default_value = "./data",
        value_name = "DIR"
    )]
    pub data_dir: PathBuf,

    /// The first API token. Generated, printed once and kept in DATA_DIR/admin-token when absent.
    #[arg(
        long,
        env = "HEARTH_ADMIN_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub admin_token: Option<String>,

    /// Network interfaces to attach the XDP ingress programs to, separated by commas.
    #[arg(
        long,
        env = "HEARTH_XDP_INTERFACE",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub xdp_interface: Vec<String>,

    /// Seconds that running requests may go on after SIGTERM or ctrl-C; what is left then is cut off.
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

    /// What to log: a `tracing` filter such as `info` or `hearth=debug`.
    #[arg(
        long,
        env = "HEARTH_LOG",
        default_value = "info",
        value_name = "FILTER"
    )]
    pub log: String,

    /// Spin time in µs before an instance or the server sleeps; trades CPU for latency; 0 disables it. Only while cores are
    /// idle and it pays; never on a single core.
    #[arg(
        long,
        env = "HEARTH_BUSY_POLL_US",
        default_value_t = 200,
        value_name = "MICROSECONDS",
        value_parser = clap::value_parser!(u32).range(0..=MAX_BUSY_POLL_US)
    )]
    pub busy_poll_us: u32,

    /// The interpreter of Python functions; below /usr, because that is what a sandbox sees.
    #[arg(
        long,
        env = "HEARTH_PYTHON",
        default_value = "/usr/bin/python3",
        value_name = "FILE"
    )]
    pub python: PathBuf,

    /// The interpreter of Node.js functions; below /usr, because that is what a sandbox sees. When absent, the one that
    /// set-up has laid beside the runtime's files, else /usr/bin/node.
    #[arg(long, env = "HEARTH_NODE", value_name = "FILE")]
    pub node: Option<PathBuf>,

    /// Whether instances of Node.js functions are forks: `auto` where the start's probe finds that they can be, `off`
    /// never. Else they are processes that boot by themselves.
    #[arg(
        long,
        env = "HEARTH_NODE_FORK",
        default_value = "auto",
        value_name = "auto|off"
    )]
    pub node_fork: NodeFork,

    /// Whether each template keeps one fork made ahead, so that a first request does not wait for one. It takes about a
    /// MiB for each function of which a template is kept.
    #[arg(
        long,
        env = "HEARTH_PREFORK",
        default_value = "on",
        value_name = "on|off"
    )]
    pub prefork: Switch,

    /// Whether a sandbox is kept made ahead for each runtime of which a function without a template has an image, so that
    /// its restore need not make one. It takes about five MiB.
    #[arg(
        long,
        env = "HEARTH_PREWARM",
        default_value = "on",
        value_name = "on|off"
    )]
    pub prewarm: Switch,

    /// MiB that templates, idle instances and images may take together; half of the host's memory when absent.
    #[arg(long, env = "HEARTH_MEMORY_BUDGET_MB", value_name = "MIB")]
    pub memory_budget_mb: Option<u64>,

    /// Directory with the runtimes' files (`python/bootstrap.py` …); looked for beside the executable when absent.
    #[arg(long, env = "HEARTH_RUNTIMES", value_name = "DIR")]
    pub runtimes: Option<PathBuf>,

    /// The `hearth-init` program; looked for beside the executable when absent.
    #[arg(long, env = "HEARTH_INIT", value_name = "FILE")]
    pub init: Option<PathBuf>,

    /// CRIU, by which templates are kept as images: a program, a directory with a private copy of it, or "off". Looked
    /// for beside the executable and in the system when absent.
    #[arg(long, env = "HEARTH_CRIU", value_name = "PATH")]
    pub criu: Option<PathBuf>,

    /// Longest restore of a template from its image, in milliseconds; past it the start falls to a boot. One that boots more
    /// slowly than this has as long as its boot takes.
    #[arg(
        long,
        env = "HEARTH_RESTORE_TIMEOUT_MS",
        default_value_t = 250,
        value_name = "MS"
    )]
    pub restore_timeout_ms: u64,

    /// Size of all images together, in MiB; 0 for none. The one that was not used for longest goes first.
    #[arg(
        long,
        env = "HEARTH_IMAGE_BUDGET_MB",
        default_value_t = 1024,
        value_name = "MIB"
    )]
    pub image_budget_mb: u64,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// See [`Config::node_fork`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum NodeFork {
    /// Where it works.
    Auto,
    /// Never.
    Off,
}

/// A setting that makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("{setting}={value}: {rule}")]
pub struct InvalidSetting {
    /// Its environment variable.
    pub setting: &'static str,
    /// What was given.
    pub value: String,
    /// What would be right.
    pub rule: String,
}

/// Shortest admin token that is accepted: shorter ones can be guessed over the network.
const MIN_ADMIN_TOKEN: usize = 16;

/// Largest memory budget: 64 TiB, more than a host has; a larger number was meant in another unit.
const MAX_MEMORY_BUDGET_MB: u64 = 64 * 1024 * 1024;
/// The budget where neither the setting nor the host says what it has.
const FALLBACK_BUDGET: u64 = 1 << 30;
/// Longest busy poll: what is not there after a millisecond is worth a sleep.
const MAX_BUSY_POLL_US: i64 = 1000;
/// Longest drain: the longest that a function may run, and its answer.
const MAX_DRAIN_S: i64 = 1000;
/// A restore takes about 15 ms: less than one makes no restore succeed; what takes longer than a minute is no start.
const RESTORE_TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1..=60_000;
/// A tebibyte: far above any disk's share for images, far below where bytes overflow.
const IMAGE_BUDGET_MB_MAX: u64 = 1 << 20;

impl Config {
    /// The memory budget in bytes.
    pub fn memory_budget(&self) -> u64 {
        match self.memory_budget_mb {
            Some(mib) => mib * 1024 * 1024,
            None => {
                let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
                match HostMemory::parse(&meminfo, "").total {
                    0 => FALLBACK_BUDGET,
                    total => total / 2,
                }
            }
        }
    }

    /// The busy poll that makes sense here: on a single core whoever looks keeps away what it looks for.
    pub fn busy_poll(&self) -> Duration {
        let several = cores() > 1;
        if several {
            Duration::from_micros(self.busy_poll_us.into())
        } else {
            Duration::ZERO
        }
    }

    /// The configured token. An empty one counts as none: that is what an unset variable of a compose file becomes.
    pub fn admin_token(&self) -> Option<&str> {
        self.admin_token
            .as_deref()
            .filter(|token| !token.is_empty())
    }

    /// Checks what clap's types cannot.
    ///
    /// # Errors
    /// [`InvalidSetting`] names the first setting that makes no sense.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if let Some(token) = self.admin_token()
            && (token.len() < MIN_ADMIN_TOKEN || !token.bytes().all(|b| b.is_ascii_graphic()))
        {
            return Err(InvalidSetting {
                setting: "HEARTH_ADMIN_TOKEN",
                value: "(hidden)".into(),
                rule: format!(
                    "must be at least {MIN_ADMIN_TOKEN} printable ASCII characters without spaces"
                ),
            });
        }
        if let Err(error) = self.log.parse::<tracing_subscriber::EnvFilter>() {
            return Err(InvalidSetting {
                setting: "HEARTH_LOG",
                value: self.log.clone(),
                rule: format!("must be a tracing filter such as info or hearth=debug ({error})"),
            });
        }
        self.hosts()?;
        self.trusted_proxies()?;
        self.functions_host()?;
        self.functions_listen()?;
        if let Some(budget) = self.memory_budget_mb
            && !(1..=MAX_MEMORY_BUDGET_MB).contains(&budget)
        {
            return Err(InvalidSetting {
                setting: "HEARTH_MEMORY_BUDGET_MB",
                value: budget.to_string(),
                rule: format!("must be a number of MiB from 1 to {MAX_MEMORY_BUDGET_MB}"),
            });
        }
        for (setting, file) in [
            ("HEARTH_PYTHON", Some(&self.python)),
            ("HEARTH_NODE", self.node.as_ref()),
        ] {
            let Some(file) = file.filter(|file| !file.starts_with("/usr")) else {
                continue;
            };
            return Err(InvalidSetting {
                setting,
                value: file.display().to_string(),
                rule: "must be a path below /usr, the only part of the host that a sandbox sees"
                    .into(),
            });
        }
        if !self.xdp_interface.is_empty() {
            return Err(InvalidSetting {
                setting: "HEARTH_XDP_INTERFACE",
                value: self.xdp_interface.join(","),
                rule: "this version has no XDP ingress yet; leave the setting out".into(),
            });
        }
        if !RESTORE_TIMEOUT_MS.contains(&self.restore_timeout_ms) {
            return Err(InvalidSetting {
                setting: "HEARTH_RESTORE_TIMEOUT_MS",
                value: self.restore_timeout_ms.to_string(),
                rule: format!(
                    "must be {} to {} milliseconds",
                    RESTORE_TIMEOUT_MS.start(),
                    RESTORE_TIMEOUT_MS.end()
                ),
            });
        }
        if self.image_budget_mb > IMAGE_BUDGET_MB_MAX {
            return Err(InvalidSetting {
                setting: "HEARTH_IMAGE_BUDGET_MB",
                value: self.image_budget_mb.to_string(),
                rule: format!("must be 0 (no images) to {IMAGE_BUDGET_MB_MAX} MiB"),
            });
        }
        if self.data_dir.exists() && !self.data_dir.is_dir() {
            return Err(InvalidSetting {
                setting: "HEARTH_DATA_DIR",
                value: self.data_dir.display().to_string(),
                rule: "must be a directory, or a path where one can be created".into(),
            });
        }
        Ok(())
    }
}

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
        let error = config(&["--xdp-interface", "eth0"]).check().unwrap_err();
        assert_eq!(error.value, "eth0");
        let error = config(&["--restore-timeout-ms", "0"]).check().unwrap_err();
        assert_eq!(error.setting, "HEARTH_RESTORE_TIMEOUT_MS");
        let error = config(&["--image-budget-mb", "99999999"])
            .check()
            .unwrap_err();
        assert_eq!(error.setting, "HEARTH_IMAGE_BUDGET_MB");
    }
}
