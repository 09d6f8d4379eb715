//! Settings of network namespaces, below `/proc/sys/net`.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, Mode, OFlags};

/// Writes a setting of the calling thread's network namespace, if this kernel has it.
pub(super) fn set(name: &str, value: &str) -> io::Result<()> {
    match fs::write(format!("/proc/sys/net/{name}"), value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Whether the calling thread's network namespace has IPv6.
pub(super) fn has_ipv6() -> bool {
    let disabled = fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    disabled.is_ok_and(|disabled| disabled.trim() == "0")
}

/// Forwarding in one network namespace, and the settings that go with it: opened, since their paths lead to other ones later.
pub(super) struct Forwarding {
    four: OwnedFd,
    /// The directory of the settings of each interface, where there is IPv6.
    pub(super) six: Option<OwnedFd>,
}

impl Forwarding {
    /// In the calling thread's namespace.
    pub(super) fn open(has_ipv6: bool) -> io::Result<Self> {
        let open = |name: &str, flags: OFlags| {
            let path = format!("/proc/sys/net/{name}");
            rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())
        };
        Ok(Self {
            four: open("ipv4/ip_forward", OFlags::WRONLY)?,
            six: has_ipv6
                .then(|| open("ipv6/conf", OFlags::RDONLY | OFlags::DIRECTORY))
                .transpose()?,
        })
    }

    /// Enables it.
    pub(super) fn enable(&self) -> io::Result<()> {
        rustix::io::pwrite(&self.four, b"1", 0)?;
        let Some(interfaces) = &self.six else {
            return Ok(());
        };
        let all = Setting::open(interfaces, "all/forwarding")?;
        if !all.is(b"0")? {
            return Ok(());
        }
        // By default, a router ignores other routers' advertisements: keep the host's addresses.
        for interface in Dir::read_from(interfaces)?.flatten() {
            let name = format!("{}/accept_ra", interface.file_name().to_string_lossy());
            // Not "." and "..", and none that is gone.
            if let Ok(accept) = Setting::open(interfaces, &name)
                && accept.is(b"1").is_ok_and(|is| is)
            {
                accept.set(b"2")?;
            }
        }
        all.set(b"1")
    }
}

/// A setting of one character.
struct Setting(OwnedFd);

impl Setting {
    fn open(dir: &OwnedFd, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(dir, name, flags, Mode::empty())?))
    }

    fn is(&self, value: &[u8; 1]) -> io::Result<bool> {
        let mut bytes = [0; 1];
        Ok(rustix::io::pread(&self.0, &mut bytes, 0)? == 1 && bytes == *value)
    }

    fn set(&self, value: &[u8; 1]) -> io::Result<()> {
        rustix::io::pwrite(&self.0, value, 0)?;
        Ok(())
    }
}
