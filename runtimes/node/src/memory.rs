//! Takes back V8's wish that its heap be left out of forks (`MADV_DONTFORK`): without its heap a child dies at its first
//! step.

use std::io;

use hearth_worker::mappings;

use crate::sys;

/// Makes every mapping that a fork would leave out part of it again, unless it is a device's, for which the flag belongs to
/// the driver.
///
/// Asked once, before the first fork: a template runs no JavaScript between its forks, so V8 maps nothing new.
pub fn copy_all_on_fork() -> io::Result<()> {
    for mapping in mappings::list()? {
        if mapping.has("dc") && !mapping.has("io") {
            sys::copy_on_fork(&mapping.range)?;
        }
    }
    Ok(())
}
