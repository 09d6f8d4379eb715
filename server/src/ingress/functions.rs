//! Ports and limits of functions and chains in the kernel's maps.

use hearth_ebpf::MapError;
use hearth_ebpf::limits::{Limits, Rate};
use hearth_ebpf::packet::{TCP, UDP};

use super::{Dropped, Ingress, Kernel};
use crate::model::{Port, PortLimits, PortOwner, PortRate, Protocol};

impl Ingress {
    /// Why it limits nothing here; none where it does.
    pub fn not_limiting(&self) -> Option<&'static str> {
        let counts = !self.0.report.interfaces.is_empty();
        (!counts).then_some(
            "packets are limited at the interfaces of HEARTH_XDP_INTERFACE, which names none",
        )
    }

    /// From here on these are an owner's limits, whatever ports it has.
    pub fn limit(&self, owner: &PortOwner, limits: PortLimits) {
        let Some(kernel) = &self.0.kernel else {
            return;
        };
        let mut kernel = kernel.lock();
        match limits.is_none() {
            true => kernel.limits.remove(owner),
            false => kernel.limits.insert(owner.clone(), limits),
        };
        if let Some(number) = kernel.numbers.of(owner)
            && let Err(error) = kernel.maps.functions.limit(number, in_kernel(limits))
        {
            tracing::error!(%owner, %error, "cannot change limits in the kernel");
        }
    }

    /// Makes these, and no others, an owner's ports in the kernel. Each changes in one step, new ones first.
    pub fn settle(&self, owner: &PortOwner, ports: impl IntoIterator<Item = Port>) {
        let Some(kernel) = &self.0.kernel else {
            return;
        };
        let ports = ports.into_iter().collect();
        if let Err(error) = self.change(&mut kernel.lock(), owner, ports) {
            tracing::error!(%owner, %error, "cannot change ports in the kernel");
        }
    }

    fn change(
        &self,
        kernel: &mut Kernel,
        owner: &PortOwner,
        ports: Vec<Port>,
    ) -> Result<(), MapError> {
        let Kernel {
            maps,
            numbers,
            limits,
            dropped_before,
            ..
        } = kernel;
        let Some(change) = numbers.settle(owner, ports) else {
            return Err(MapError::Full);
        };
        let number = change.number;
        if change.is_new {
            if change.was_used
                && let Ok([received, _]) = maps.functions.traffic(number)
            {
                *dropped_before += Dropped::from(&received);
            }
            let limits = limits.get(owner).copied().unwrap_or_default();
            maps.functions.add(number, in_kernel(limits))?;
            if let Some(datagrams) = &self.0.datagrams {
                datagrams.reset(number);
            }
        }
        for port in change.given {
            match port.protocol {
                Protocol::Tcp => maps
                    .ports
                    .give_tcp(port.number, number, self.steers(port))?,
                Protocol::Udp => {
                    let redirect = self.0.datagrams.is_some();
                    maps.ports.give_udp(port.number, number, redirect)?;
                }
            }
        }
        for port in change.taken {
            let protocol = match port.protocol {
                Protocol::Tcp => TCP,
                Protocol::Udp => UDP,
            };
            maps.ports.take(protocol, port.number)?;
        }
        Ok(())
    }
}

/// Sources are told apart even where they are not limited, to be shown.
fn in_kernel(limits: PortLimits) -> Limits {
    let rate = |rate: PortRate| Rate {
        rate: rate.per_second.into(),
        burst: rate.burst.into(),
    };
    Limits {
        source: limits.per_source.map(rate),
        total: limits.total.map(rate),
        tracks_sources: true,
    }
}
