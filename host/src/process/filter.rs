//! A system call filter: what is not allowed is answered ENOSYS, by which a C library finds another way where there is one.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// Why there is no filter, or no Landlock.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a process may call.
#[derive(Default)]
pub struct Calls(BTreeMap<i64, Vec<SeccompRule>>);

impl Calls {
    /// Allows these, whatever their arguments, and to map memory that cannot be executed, and to start threads.
    ///
    /// # Errors
    /// When there is no such rule.
    pub fn new(all: impl IntoIterator<Item = i64>) -> Result<Self, Failure> {
        let mut calls = Self(all.into_iter().map(|call| (call, Vec::new())).collect());
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            calls.masked(call, 2, libc::PROT_EXEC, 0)?;
        }
        // `clone3`, whose flags no filter can see, is answered ENOSYS: this is what comes instead.
        calls.masked(libc::SYS_clone, 0, libc::CLONE_THREAD, libc::CLONE_THREAD)?;
        Ok(calls)
    }

    /// Allows one under these conditions.
    pub(super) fn allow(&mut self, call: i64, rules: Vec<SeccompRule>) {
        self.0.insert(call, rules);
    }

    /// Allows one with these values of an argument, of whose bits the kernel looks at 32.
    ///
    /// # Errors
    /// When there is no such rule.
    pub fn one_of(
        &mut self,
        call: i64,
        argument: u8,
        values: impl IntoIterator<Item = u64>,
    ) -> Result<(), Failure> {
        let mut rules = Vec::new();
        for value in values {
            let (length, op) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq);
            let condition = SeccompCondition::new(argument, length, op, value)?;
            rules.push(SeccompRule::new(vec![condition])?);
        }
        self.allow(call, rules);
        Ok(())
    }

    fn masked(&mut self, call: i64, argument: u8, mask: i32, value: i32) -> Result<(), Failure> {
        let condition = SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Qword,
            SeccompCmpOp::MaskedEq(u64::from(mask.cast_unsigned())),
            u64::from(value.cast_unsigned()),
        )?;
        self.allow(call, vec![SeccompRule::new(vec![condition])?]);
        Ok(())
    }

    /// Allows the calling thread, and those that it starts, nothing else from here on.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn restrict(self) -> Result<(), Failure> {
        seccompiler::apply_filter(&self.program()?)?;
        Ok(())
    }

    /// The filter as the kernel takes it.
    ///
    /// # Errors
    /// When it cannot be said in the kernel's words.
    pub fn program(self) -> Result<BpfProgram, Failure> {
        let filter = SeccompFilter::new(
            self.0,
            SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
            SeccompAction::Allow,
            std::env::consts::ARCH.try_into()?,
        )?;
        Ok(filter.try_into()?)
    }
}
