//! What a setting may be: the rules that clap's types cannot hold.

use super::Config;

/// An invalid setting.
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

/// Shortest admin token accepted: shorter ones can be guessed over the network.
const MIN_ADMIN_TOKEN: usize = 16;
/// Largest memory budget: 64 TiB, more than any host has; a larger number is in the wrong unit.
const MAX_MEMORY_BUDGET_MB: u64 = 64 * 1024 * 1024;
/// A restore takes about 15 ms: with less than 1 ms none succeeds; more than a minute is too long for a start.
const RESTORE_TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1..=60_000;
/// A tebibyte: far above any disk's share for images, far below where bytes overflow.
const IMAGE_BUDGET_MB_MAX: u64 = 1 << 20;

/// Whether an interface can have this name: `dev_valid_name` of the kernel.
fn is_interface(name: &str) -> bool {
    (1..16).contains(&name.len())
        && ![".", ".."].contains(&name)
        && !name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace())
}

impl Config {
    /// Checks what clap's types cannot.
    ///
    /// # Errors
    /// [`InvalidSetting`] names the first invalid setting.
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
        self.network_allow_private()?;
        self.network_resolvers()?;
        self.trigger_address()?;
        self.trigger_ports()?;
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
                rule: "must be a path below /usr, the only part of the host visible in a sandbox"
                    .into(),
            });
        }
        if let Some(name) = self
            .xdp_interfaces()
            .iter()
            .find(|name| !is_interface(name))
        {
            return Err(InvalidSetting {
                setting: "HEARTH_XDP_INTERFACE",
                value: name.clone(),
                rule: "must be comma-separated names of network interfaces such as eth0".into(),
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
