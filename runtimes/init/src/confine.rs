//! What the template is confined by, one function for each mechanism: capabilities, resource limits, Landlock.

use hearth_init::Assignment;
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, CpuSet, sched_getaffinity,
    sched_setaffinity,
};

use crate::error::JailError;
use crate::run_criu::Criu;

/// Open files of one process: soft limit (what programs see) and hard limit. Protects the host's file table, and
/// programs that loop over all possible descriptors.
const OPEN_FILES: (u64, u64) = (1024, 4096);
/// Largest core file in bytes. Not 0: with 1 the kernel does not even start a program that collects cores, which it
/// otherwise does, as the host's root, whatever this limit is.
const CORE: u64 = 1;
/// Memory one process may lock, bytes: enough for a crypto library's secrets. Protects the host's reclaim.
const LOCKED_MEMORY: u64 = 8 << 20;
/// Signals that may be queued for the sandbox's user. Protects kernel memory that no cgroup counts.
const PENDING_SIGNALS: u64 = 1024;
/// The newest Landlock whose rights were looked at one by one for what follows; older kernels get what they know.
const LANDLOCK_ABI: ABI = ABI::V6;
/// Beneath these a process may read and execute, and nothing else. `/var` contains only the code: the rules of a
/// pre-warmed sandbox are created before the code is mounted, and a rule does not apply to what is later mounted over
/// its target.
const READABLE: &[&str] = &["/usr", "/opt/hearth", "/var", "/etc", "/proc"];
/// Devices a process may read and write.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Empties the bounding set and permanently disables every way for user 0 or a change of user to regain capabilities.
/// Capabilities held now are kept.
pub fn lock_capabilities() -> Result<(), JailError> {
    rustix::thread::clear_ambient_capability_set()
        .map_err(JailError::privileges("clearing ambient capabilities"))?;
    rustix::thread::set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )
    .map_err(JailError::privileges("securebits"))?;
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL) => break, // past the last one this kernel knows
            Err(error) => return Err(JailError::privileges("the bounding set")(error)),
        }
    }
    Ok(())
}

/// Gives up every capability but these.
pub fn keep_capabilities(keep: CapabilitySet) -> Result<(), JailError> {
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: keep,
            permitted: keep,
            inheritable: CapabilitySet::empty(),
        },
    )
    .map_err(JailError::privileges("dropping capabilities"))
}

/// Leaves this thread, and what it starts, only the processor at this place among those that it may use; counted on from the first where
/// there are fewer.
pub fn pin(place: u32) -> Result<(), JailError> {
    let failed = |source: rustix::io::Errno| JailError::Limit {
        what: "processor",
        source: source.into(),
    };
    let allowed = sched_getaffinity(None).map_err(failed)?;
    let mut places = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let number = place % allowed.count().max(1);
    let mut only = CpuSet::new();
    if let Some(cpu) = places.nth(number as usize) {
        only.set(cpu);
        sched_setaffinity(None, &only).map_err(failed)?;
    }
    Ok(())
}

/// Sets the limits that hold for each process. None is raised: the server may lack the right to.
pub fn limit_resources(function: &Assignment) -> Result<(), JailError> {
    let limits = [
        ("core", Resource::Core, same(CORE)),
        ("nofile", Resource::Nofile, OPEN_FILES),
        ("fsize", Resource::Fsize, same(function.max_file_bytes)),
        ("memlock", Resource::Memlock, same(LOCKED_MEMORY)),
        ("sigpending", Resource::Sigpending, same(PENDING_SIGNALS)),
        ("msgqueue", Resource::Msgqueue, (0, 0)),
        ("nproc", Resource::Nproc, same(function.max_processes)),
        ("nice", Resource::Nice, (0, 0)),
        ("rtprio", Resource::Rtprio, (0, 0)),
    ];
    for (what, resource, (soft, hard)) in limits {
        let most = rustix::process::getrlimit(resource)
            .maximum
            .unwrap_or(u64::MAX);
        let limit = Rlimit {
            current: Some(soft.min(most)),
            maximum: Some(hard.min(most)),
        };
        rustix::process::setrlimit(resource, limit).map_err(|source| JailError::Limit {
            what,
            source: source.into(),
        })?;
    }
    Ok(())
}

fn same(limit: u64) -> (u64, u64) {
    (limit, limit)
}

/// Restricts files and signals by Landlock, as far as this kernel's version of it goes; its first version is
/// required.
///
/// For a restore, CRIU reads its program and the image and writes its log. All of these are reachable only through
/// descriptors of their directories, which restored processes do not have.
pub fn restrict_files(criu: Option<&Criu>) -> Result<(), JailError> {
    let status = landlock_rules(criu)
        .map_err(|error| JailError::Landlock(format!("Landlock rules: {error}")))?;
    if status == RulesetStatus::NotEnforced {
        return Err(JailError::Landlock(
            "the kernel did not enforce the Landlock rules".into(),
        ));
    }
    Ok(())
}

fn landlock_rules(criu: Option<&Criu>) -> Result<RulesetStatus, Box<dyn std::error::Error>> {
    let all = AccessFs::from_all(LANDLOCK_ABI);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        // No rule follows for these: signals end at the sandbox's own processes. Sockets are left to the network namespace,
        // which is the sandbox's own: for TCP, Landlock knows ports but no addresses, so it cannot tell the loopback from
        // what lies beyond; and over an abstract Unix socket CRIU's code inside a template that is dumped answers to CRIU.
        .scope(Scope::from_all(LANDLOCK_ABI) & !Scope::AbstractUnixSocket)?
        .create()?;
    let mut allow =
        |path: &str, access: BitFlags<AccessFs>| -> Result<(), Box<dyn std::error::Error>> {
            (&mut rules).add_rule(PathBeneath::new(PathFd::new(path)?, access))?;
            Ok(())
        };
    // Listing directories is harmless: nothing is in the tree that is not the function's.
    allow("/", AccessFs::ReadDir.into())?;
    for path in READABLE {
        allow(path, AccessFs::from_read(LANDLOCK_ABI))?;
    }
    for path in DEVICES {
        allow(
            path,
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev,
        )?;
    }
    allow("/tmp", all)?;
    allow("/dev/shm", all & !AccessFs::Execute)?;
    if let Some(criu) = criu {
        let read = AccessFs::from_read(LANDLOCK_ABI);
        for (dir, access) in [(&criu.dir, read), (criu.images(), read), (&criu.work, all)] {
            (&mut rules).add_rule(PathBeneath::new(dir, access))?;
        }
    }
    Ok(rules.restrict_self()?.ruleset)
}
