//! Resource limits of a sandbox: pure arithmetic over named limits.

use std::sync::LazyLock;

use crate::protocol::request::Order;

const MIB: u64 = 1 << 20;

/// Processes and threads of one instance (enforced for each on v2, for the sandbox as a whole on v1). Protects the
/// host's process table from fork bombs; a pool of threads has room.
pub const INSTANCE_PIDS: u64 = 64;
/// Processes and threads of PID 1 and the template, and what is being reaped.
pub const TEMPLATE_PIDS: u64 = 32;
/// Most instances of one sandbox.
pub const SANDBOX_INSTANCES_MAX: u32 = 1000;
/// Most processes and threads of one sandbox, however many instances it may have. Protects the host's process table.
pub const SANDBOX_PIDS_MAX: u64 = 32_768;
/// What the template may use beyond one instance's memory: PID 1, the interpreter, and instances about to be moved into
/// their cgroups.
pub const TEMPLATE_EXTRA_MEMORY: u64 = 64 * MIB;
/// What an instance takes while it boots by itself: an interpreter with the function imported.
pub const BOOTED_INSTANCE_MEMORY: u64 = 64 * MIB;
/// Memory that a forked instance has written by the time it is moved into its cgroup. It stays charged to the
/// template's cgroup as long as the instance lives, because charges do not move with a process; so the template's limit
/// must grow with the instances, or a burst of them would hit it. Several times what the bundled runtimes need (about 1
/// MiB).
pub const FORKED_INSTANCE_MEMORY: u64 = 4 * MIB;
/// Period over which CPU time is counted, µs. Short, so that a function over its quota pauses for milliseconds.
pub const CPU_PERIOD_US: u64 = 20_000;
/// Share of one core, in µs of the period, that no single function gets: what the server needs to answer, to kill it
/// and to serve the others. 20 %.
pub const CPU_RESERVE_US: u64 = 4_000;
/// Weight of all sandboxes together, for each core: when they compute on all of them they weigh on each what one thread of the
/// server weighs, which gets half of a core, then, when it needs one. And a function is not worse off than any other process of
/// the host.
pub const SANDBOXES_CPU_WEIGHT: CpuWeight = CPU_WEIGHT;
/// Weight of the server beside them where it has a cgroup of its own (v2), which counts once and not for each thread: the most
/// there is.
pub const SERVER_CPU_WEIGHT: u64 = 10_000;
/// What the buffers of a sandbox's TCP and UDP sockets may take on v1, where they are no part of the memory. Protects the
/// amount of them that the kernel grants to the whole machine (`net.ipv4.tcp_mem`), the server's own among them.
pub const TCP_BUFFERS: u64 = 64 * MIB;
/// What a function's sandbox weighs among the others, as every cgroup does by default: on v1 (`cpu.shares`) and v2
/// (`cpu.weight`).
pub const CPU_WEIGHT: CpuWeight = CpuWeight { v1: 1024, v2: 100 };
/// CPU weight of a sandbox that creates an image, which nothing waits for. Not the minimum: next to busy functions it
/// must finish within the import's timeout.
pub const CPU_WEIGHT_OF_IMAGE: CpuWeight = CpuWeight { v1: 64, v2: 6 };
/// `/tmp` is half of an instance's memory within these bounds; it is memory, and counts as such.
pub const TMP_BYTES: (u64, u64) = (16 * MIB, 512 * MIB);
/// `/dev/shm` likewise, a quarter.
pub const SHM_BYTES: (u64, u64) = (8 * MIB, 128 * MIB);
/// Badness of an instance for the kernel's out-of-memory killer (0 to 1000): before template and PID 1, which have 100,
/// and long before the server.
pub const INSTANCE_OOM_SCORE: &str = "500";

/// The same weight on both versions of cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuWeight {
    /// `cpu.shares`.
    pub v1: u64,
    /// `cpu.weight`.
    pub v2: u64,
}

impl CpuWeight {
    /// This many times as much, up to the kernel's maximum.
    pub fn times(self, count: u64) -> Self {
        Self {
            v1: (self.v1 * count).min(1 << 18),
            v2: (self.v2 * count).min(10_000),
        }
    }
}

/// The limits of one sandbox. Memory in bytes, CPU time in µs per [`CPU_PERIOD_US`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Everything in the sandbox together.
    pub memory: u64,
    /// PID 1 and template.
    pub template_memory: u64,
    /// One instance.
    pub cgroup_memory: u64,
    /// Everything in the sandbox together.
    pub pids: u64,
    /// Everything in the sandbox together.
    pub cpu_quota_us: u64,
    /// Among all sandboxes.
    pub cpu_weight: CpuWeight,
    /// Size of `/tmp`.
    pub tmp: u64,
    /// Size of `/dev/shm`.
    pub shm: u64,
}

impl Limits {
    /// The limits of a sandbox on a host with `cores` CPUs and `physical` bytes of memory.
    pub fn new(order: &Order, cores: u64, physical: u64) -> Self {
        let instances = u64::from(order.max_instances);
        let cgroup_memory = order.memory_bytes.min(physical);
        let before_instance_cgroup = if order.forks {
            FORKED_INSTANCE_MEMORY
        } else {
            BOOTED_INSTANCE_MEMORY
        };
        let template_memory = cgroup_memory
            .saturating_add(TEMPLATE_EXTRA_MEMORY)
            .saturating_add(before_instance_cgroup.saturating_mul(instances))
            .min(physical);
        let memory = cgroup_memory
            .saturating_mul(instances)
            .saturating_add(template_memory)
            .min(physical);
        let all_cores = cores.max(1) * CPU_PERIOD_US;
        Self {
            memory,
            template_memory,
            cgroup_memory,
            pids: (TEMPLATE_PIDS + INSTANCE_PIDS * instances).min(SANDBOX_PIDS_MAX),
            cpu_quota_us: (instances.max(1) * CPU_PERIOD_US).min(all_cores - CPU_RESERVE_US),
            cpu_weight: match order.dumpable {
                true => CPU_WEIGHT_OF_IMAGE,
                false => CPU_WEIGHT,
            },
            tmp: (cgroup_memory / 2).clamp(TMP_BYTES.0, TMP_BYTES.1),
            shm: (cgroup_memory / 4).clamp(SHM_BYTES.0, SHM_BYTES.1),
        }
    }

    /// The limits on this machine, which is asked once: finding out how many cores there are reads a dozen files.
    pub fn here(order: &Order) -> Self {
        static MACHINE: LazyLock<(u64, u64)> = LazyLock::new(|| {
            let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
            let info = rustix::system::sysinfo();
            let physical = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit));
            (cores, physical)
        });
        let (cores, physical) = *MACHINE;
        Self::new(order, cores, physical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(memory_mib: u64, max_instances: u32) -> Order {
        Order {
            processor: None,
            uid_base: 1_900_000_000,
            memory_bytes: memory_mib * MIB,
            max_instances,
            forks: true,
            dumpable: false,
            restore_limit: None,
            network: false,
        }
    }

    #[test]
    fn grows_with_the_instances() {
        let limits = Limits::new(&order(128, 8), 4, 16 << 30);
        assert_eq!(limits.cgroup_memory, 128 * MIB);
        assert_eq!(limits.template_memory, (192 + 8 * 4) * MIB);
        assert_eq!(limits.memory, (192 + 8 * (4 + 128)) * MIB);
        assert_eq!(limits.pids, 32 + 8 * 64);
        assert_eq!(limits.cpu_quota_us, 4 * 20_000 - 4_000);
        assert_eq!((limits.tmp, limits.shm), (64 * MIB, 32 * MIB));
    }

    #[test]
    fn instances_that_boot_have_room_to() {
        let order = Order {
            forks: false,
            ..order(128, 8)
        };
        let limits = Limits::new(&order, 4, 16 << 30);
        assert_eq!(limits.template_memory, (192 + 8 * 64) * MIB);
        assert_eq!(limits.memory, (192 + 8 * (64 + 128)) * MIB);
    }

    #[test]
    fn never_more_than_the_machine_has() {
        let limits = Limits::new(&order(16_384, 1000), 1, 2 << 30);
        assert_eq!(limits.memory, 2 << 30);
        assert_eq!(limits.template_memory, 2 << 30);
        assert_eq!(limits.pids, SANDBOX_PIDS_MAX);
        assert_eq!(limits.cpu_quota_us, 16_000);
        assert_eq!((limits.tmp, limits.shm), (512 * MIB, 128 * MIB));
    }

    #[test]
    fn what_an_image_is_made_of_goes_after_functions() {
        let order = Order {
            dumpable: true,
            ..order(128, 8)
        };
        let limits = Limits::new(&order, 4, 16 << 30);
        assert_eq!(limits.cpu_weight, CPU_WEIGHT_OF_IMAGE);
    }

    #[test]
    fn one_instance_gets_one_core() {
        assert_eq!(Limits::new(&order(32, 1), 8, 8 << 30).cpu_quota_us, 20_000);
    }
}
