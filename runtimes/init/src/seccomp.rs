//! The system call filter, compiled from the commented lists in `seccomp/` when this crate was built.
//!
//! Two filters are installed, and the kernel takes the stricter answer of the two:
//! - one answers ENOSYS to the calls that C libraries fall back from when a kernel is too old for them;
//! - one allows what is on the list and answers EPERM to everything else.

use seccompiler::sock_filter;

use crate::error::JailError;

#[cfg(test)]
mod compile;
#[cfg(test)]
mod quick;

/// `ENOSYS` and `ALLOW`, by `build.rs`.
mod programs {
    use seccompiler::sock_filter;

    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}

/// Both programs, in the order in which to install them.
pub const FILTERS: [&[sock_filter]; 2] = [&programs::ENOSYS, &programs::ALLOW];

/// Installs the filters permanently in this thread and thereby in all its children. Sets `no_new_privs`.
pub fn install() -> Result<(), JailError> {
    for program in FILTERS {
        seccompiler::apply_filter(program)
            .map_err(|error| JailError::Seccomp(format!("installing the filter: {error}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_is_what_the_lists_say() {
        let programs = compile::compile_for(std::env::consts::ARCH).unwrap();
        for (built, filter) in FILTERS.into_iter().zip([programs.enosys, programs.allow]) {
            assert_eq!(built, quick::quick(&filter).unwrap());
            // The kernel's limit for one program.
            assert!(built.len() < 4096);
        }
    }
}
