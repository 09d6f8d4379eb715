//! Descriptors in `files.img` that lead out of the sandbox. CRIU identifies a pipe or a socket by its inode, which
//! differs from dump to dump. It is replaced by a number that is the same in every image, so that CRIU knows what to
//! put there before it has the image.
//!
//! Format: CRIU's `images/fdinfo.proto` (`file_entry`), `images/pipe.proto`, `images/sk-unix.proto`.

use std::io;

use hearth_init::criu::Outside;

use prost::Message as _;

use super::records::File;
use super::{entry_at, header, odd, push_entry};
use crate::protobuf::{Change, changed, with_numbers};

/// Fields of `file_entry` that hold a `unix_sk_entry` and a `pipe_entry`.
const SOCKET: u32 = 16;
const PIPE: u32 = 18;
/// Field of both that holds the inode.
const INODE: u32 = 2;

/// The file with other inodes for what led out of the sandbox.
pub fn renamed(file: &[u8], from: &Outside, to: &Outside) -> io::Result<Vec<u8>> {
    let mut at = header(file)?;
    let magic = file.get(..at).ok_or_else(|| odd("it ends early"))?;
    let mut out = magic.to_vec();
    while at < file.len() {
        let (start, end) = entry_at(file, at)?;
        push_entry(&mut out, &renamed_entry(&file[start..end], from, to)?)?;
        at = end;
    }
    Ok(out)
}

fn renamed_entry(message: &[u8], from: &Outside, to: &Outside) -> io::Result<Vec<u8>> {
    let File { socket, pipe } = File::decode(message)?;
    let kinds = [
        (SOCKET, socket, &[(from.control, to.control)][..]),
        (
            PIPE,
            pipe,
            &[(from.stdout, to.stdout), (from.stderr, to.stderr)],
        ),
    ];
    for (kind, file, names) in kinds {
        let Some(file) = file else {
            continue;
        };
        let Some(inode) = file.inode.map(u64::from) else {
            return Err(odd("a pipe or a socket without an inode"));
        };
        if names.iter().any(|(_, new)| *new == inode) {
            return Err(odd("a pipe or a socket with the number of another one"));
        }
        if let Some((_, new)) = names.iter().find(|(old, _)| *old == inode) {
            return changed(message, |field, file| match field == kind {
                true => Ok(Change::Bytes(with_numbers(file, &[(INODE, *new)])?)),
                false => Ok(Change::Keep),
            });
        }
    }
    Ok(message.to_vec())
}

#[cfg(test)]
mod tests {
    use prost::encoding::bytes;

    use super::super::tests::{file, message};
    use super::*;

    const FROM: Outside = Outside {
        control: 48_862,
        stdout: 49_557,
        stderr: 49_558,
    };
    const TO: Outside = Outside {
        control: 1 << 31,
        stdout: 5,
        stderr: 6,
    };

    /// A `file_entry` with its type and number, and what describes it.
    fn entry(kind: u32, described: &[(u32, u64)]) -> Vec<u8> {
        let mut entry = message(&[(1, 2), (2, 23)]);
        bytes::encode(kind, &message(described), &mut entry);
        entry
    }

    #[test]
    fn only_what_led_outside_has_another_number() {
        let image = |control, stdout, stderr| {
            file(&[
                entry(3, &[(1, 1), (2, 49_557)]),
                entry(PIPE, &[(1, 23), (2, stdout), (3, 1)]),
                entry(PIPE, &[(1, 24), (2, stderr), (3, 1)]),
                entry(PIPE, &[(1, 24), (2, 48_862), (3, 1)]),
                entry(SOCKET, &[(1, 29), (2, 48_861), (8, 0)]),
                entry(SOCKET, &[(1, 25), (2, control), (8, 48_861)]),
            ])
        };
        let before = image(FROM.control, FROM.stdout, FROM.stderr);
        let after = renamed(&before, &FROM, &TO).unwrap();
        assert_eq!(after, image(TO.control, TO.stdout, TO.stderr));
        // A pipe of the function's own that has the number already would become one of ours.
        assert!(renamed(&after, &FROM, &TO).is_err());
        for length in 0..before.len() {
            // What ends between two entries looks like a shorter file.
            if let Ok(cut) = renamed(&before[..length], &FROM, &TO) {
                assert!(after[8..].starts_with(&cut[8..]));
            }
        }
    }
}
