//! How a process is made to make a system call, by its architecture: the instructions, and the registers before and after.

pub use this::*;

#[cfg(target_arch = "x86_64")]
mod this {
    /// `syscall`, then `int3`.
    pub const CODE: &[u8] = &[0x0f, 0x05, 0xcc];
    pub type Registers = libc::user_regs_struct;

    pub fn code_address(registers: &Registers) -> u64 {
        registers.rip
    }

    pub fn prepare(registers: &mut Registers, number: i64, arguments: [u64; 6]) {
        registers.rax = number as u64;
        // Not in a system call: nothing to be restarted.
        registers.orig_rax = u64::MAX;
        [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.r8,
            registers.r9,
        ] = arguments;
    }

    pub fn result(registers: &Registers) -> i64 {
        registers.rax as i64
    }
}

#[cfg(target_arch = "aarch64")]
mod this {
    /// `svc #0`, then `brk #0`.
    pub const CODE: &[u8] = &[0x01, 0x00, 0x00, 0xd4, 0x00, 0x00, 0x20, 0xd4];
    pub type Registers = libc::user_regs_struct;

    pub fn code_address(registers: &Registers) -> u64 {
        registers.pc
    }

    pub fn prepare(registers: &mut Registers, number: i64, arguments: [u64; 6]) {
        registers.regs[8] = number as u64;
        registers.regs[..6].copy_from_slice(&arguments);
    }

    pub fn result(registers: &Registers) -> i64 {
        registers.regs[0] as i64
    }
}
