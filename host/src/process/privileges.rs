//! From root to a user with few capabilities or none: what the server and the gateway have in common, read top to bottom.
//! The numbers are those of the server's list in `server/docs/privileges.md`.

use std::io;

use rustix::process::{DumpableBehavior, Signal};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets, Gid, Uid};

use crate::settings::ServerUser;

/// Makes this process, which must have one thread only, this user's, with these capabilities and no way to others.
///
/// # Errors
/// The step that failed.
pub fn drop_to(user: ServerUser, keep: CapabilitySet) -> Result<(), (&'static str, io::Error)> {
    let step = |what: &'static str| move |errno: rustix::io::Errno| (what, errno.into());

    // 3. No way to ever get a capability: not by exec, not by a change of user, which takes none away here, either.
    rustix::thread::clear_ambient_capability_set().map_err(step("ambient capabilities"))?;
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL) => break, // past the last one this kernel knows
            Err(errno) => return Err(step("the bounding set")(errno)),
        }
    }
    rustix::thread::set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )
    .map_err(step("securebits"))?;

    // 4. A user of its own, without any other group.
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    rustix::thread::set_thread_groups(&[]).map_err(step("groups"))?;
    rustix::thread::set_thread_res_gid(gid, gid, gid).map_err(step("the group"))?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).map_err(step("the user"))?;

    // 5. No capability but these, and never again one.
    let sets = CapabilitySets {
        effective: keep,
        permitted: keep,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, sets).map_err(step("capabilities"))?;
    rustix::thread::set_no_new_privs(true).map_err(step("no_new_privs"))?;

    // 6. It ends with the host process; and no other process looks into it. Changing users has cleared the one and
    //    set the other; both are said all the same. It stays in the host process's session, because the scheduler
    //    shares processors out among sessions (sched(7), autogroup): in one of its own it had to wait for that of a
    //    client on the same host. That it cannot type into the session's terminal is up to the system call filter.
    // Read once, from a file or by a call that are closed to it from here on (getauxval(3)).
    rustix::param::page_size();
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(step("dying with the host process"))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(step("hiding from /proc"))
}
