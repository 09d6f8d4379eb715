//! Makes a filter answer fast, and short: what depends on nothing but the call's number is looked up by halving, and only
//! the rest goes through a straight list, which stands behind it and has the rules about arguments alone.
//!
//! When a filter is installed, the kernel translates it, and runs it once for each call there is, to know which it need
//! not ask about later: with a straight list of hundreds of comparisons that takes longer than anything else in the start
//! of a sandbox's program.

use std::ops::Range;

use seccompiler::{BpfProgram, sock_filter};

use super::compile::Filter;

/// Numbers that are looked up, from 0 on: more than any architecture here has.
const NUMBERS: u32 = 1024;

/// Instructions that seccompiler makes (`linux/bpf_common.h`).
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_NOT_LESS: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Fields of `struct seccomp_data`: the call's number, the architecture. The arguments come last.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// What a filter says to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This, always.
    Always(u32),
    /// It depends on more than the number.
    Depends,
}

/// What a filter is not that can be made fast.
#[derive(Debug)]
pub struct Odd(&'static str);

impl std::fmt::Display for Odd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Odd {}

/// The filter, made fast.
pub fn quick(filter: &Filter) -> Result<BpfProgram, Odd> {
    let architecture = architecture(&filter.whole)?;
    let mut answers: Vec<(Range<u32>, Answer)> = Vec::new();
    for number in 0..NUMBERS {
        let answer = answer(&filter.whole, architecture, number, None)?;
        match answers.last_mut() {
            Some((numbers, last)) if *last == answer => numbers.end = number + 1,
            _ => answers.push((number..number + 1, answer)),
        }
    }
    // Whatever is not a plain number of this architecture goes to the straight list, too: none of the calls that are not in
    // it have such a number.
    let mut program = vec![
        step(LOAD, 0, 0, ARCHITECTURE),
        step(JUMP_EQUAL, 1, 0, architecture),
        TO_STRAIGHT,
        step(LOAD, 0, 0, NUMBER),
        step(JUMP_NOT_LESS, 0, 1, NUMBERS),
        TO_STRAIGHT,
    ];
    program.extend(halved(&answers));
    let length = program.len();
    for (index, step) in program.iter_mut().enumerate() {
        if *step == TO_STRAIGHT {
            step.k = (length - index - 1) as u32;
        }
    }
    program.extend_from_slice(&filter.rules);
    Ok(program)
}

/// What a straight list compares the architecture with, first of all.
fn architecture(straight: &[sock_filter]) -> Result<u32, Odd> {
    match straight {
        [load, compare, ..]
            if (load.code, load.k, compare.code) == (LOAD, ARCHITECTURE, JUMP_EQUAL) =>
        {
            Ok(compare.k)
        }
        _ => Err(Odd("a filter that does not begin with the architecture")),
    }
}

/// A jump to the straight list, until its length is known.
const TO_STRAIGHT: sock_filter = step(JUMP, 0, 0, u32::MAX);

const fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Looks the number up in these answers.
fn halved(answers: &[(Range<u32>, Answer)]) -> BpfProgram {
    match answers {
        [] => vec![TO_STRAIGHT],
        [(_, Answer::Always(value))] => vec![step(RETURN, 0, 0, *value)],
        [(_, Answer::Depends)] => vec![TO_STRAIGHT],
        _ => {
            let (low, high) = answers.split_at(answers.len() / 2);
            let border = high[0].0.start;
            let low = halved(low);
            let mut program = match u8::try_from(low.len()) {
                Ok(length) => vec![step(JUMP_NOT_LESS, length, 0, border)],
                // Further than such a jump reaches.
                Err(_) => vec![
                    step(JUMP_NOT_LESS, 0, 1, border),
                    step(JUMP, 0, 0, low.len() as u32),
                ],
            };
            program.extend(low);
            program.extend(halved(high));
            program
        }
    }
}

/// What a program answers to a call with these arguments, or to one of which they are not known.
pub fn answer(
    program: &[sock_filter],
    architecture: u32,
    number: u32,
    arguments: Option<&[u32; 12]>,
) -> Result<Answer, Odd> {
    let (mut at, mut value) = (0, 0_u32);
    // It only jumps forwards.
    while let Some(step) = program.get(at) {
        at += 1;
        let jump = |condition: bool| usize::from(if condition { step.jt } else { step.jf });
        match step.code {
            LOAD if step.k == NUMBER => value = number,
            LOAD if step.k == ARCHITECTURE => value = architecture,
            LOAD if step.k >= ARGUMENTS && step.k.is_multiple_of(4) => {
                let Some(arguments) = arguments else {
                    return Ok(Answer::Depends);
                };
                let word = arguments.get((step.k - ARGUMENTS) as usize / 4);
                value = *word.ok_or(Odd("a look past the arguments"))?;
            }
            AND => value &= step.k,
            JUMP => at += step.k as usize,
            JUMP_EQUAL => at += jump(value == step.k),
            JUMP_GREATER => at += jump(value > step.k),
            JUMP_NOT_LESS => at += jump(value >= step.k),
            JUMP_ANY_BIT => at += jump(value & step.k != 0),
            RETURN => return Ok(Answer::Always(step.k)),
            _ => return Err(Odd("an instruction that is not known")),
        }
    }
    Err(Odd("a filter without an end"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::compile;

    #[test]
    fn the_fast_one_says_the_same() {
        let mut state = 7_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u32
        };
        for arch in ["x86_64", "aarch64"] {
            let programs = compile::compile_for(arch).unwrap();
            for filter in [programs.enosys, programs.allow] {
                let quick = quick(&filter).unwrap();
                let architecture = architecture(&filter.whole).unwrap();
                let numbers = (0..2 * NUMBERS).chain([u32::MAX, 1 << 30, 1 << 30 | 59, 1 << 31]);
                for number in numbers {
                    for architecture in [architecture, 0x4000_0003] {
                        for round in 0..40 {
                            // Small values and single bits, which conditions are about, and any.
                            let arguments = std::array::from_fn(|_| match round % 4 {
                                0 => 0,
                                1 => random() % 64,
                                2 => 1 << (random() % 32),
                                _ => random(),
                            });
                            let ask = |program: &[sock_filter]| {
                                answer(program, architecture, number, Some(&arguments)).unwrap()
                            };
                            assert_eq!(
                                ask(&quick),
                                ask(&filter.whole),
                                "{arch} {number} {arguments:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_number_is_found_in_few_steps() {
        let programs = compile::compile_for("x86_64").unwrap();
        let quick = quick(&programs.allow).unwrap();
        // The last that is allowed without a condition, and so the furthest away in the straight list.
        let architecture = architecture(&programs.allow.whole).unwrap();
        let settled = (0..NUMBERS).filter(|number| {
            answer(&quick, architecture, *number, None).unwrap() != Answer::Depends
        });
        assert!(settled.count() > NUMBERS as usize - 50);
        assert!(quick.len() - programs.allow.rules.len() < 512);
    }
}
