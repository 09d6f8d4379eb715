//! The wire format of protobuf messages, as far as CRIU's image files and requests need it
//! (<https://protobuf.dev/programming-guides/encoding/>).

use std::io;
use std::ops::Range;

/// The value of a field.
pub enum Value<'a> {
    /// Wire type 0.
    Number(u64),
    /// Wire type 2.
    Bytes(&'a [u8]),
    /// Any other.
    Other,
}

/// Finds a field of a message, with the bytes it takes, tag included.
pub fn find(message: &[u8], wanted: u64) -> io::Result<Option<(Value<'_>, Range<usize>)>> {
    let mut at = 0;
    while at < message.len() {
        let (number, value, place) = next_field(message, &mut at)?;
        if number == wanted {
            return Ok(Some((value, place)));
        }
    }
    Ok(None)
}

/// The field of a message that begins at `at`: its number, its value, and the bytes it takes, tag included.
pub fn next_field<'a>(
    message: &'a [u8],
    at: &mut usize,
) -> io::Result<(u64, Value<'a>, Range<usize>)> {
    let begin = *at;
    let tag = number(message, at)?;
    let skip = |count: usize, at: &mut usize| -> io::Result<&'a [u8]> {
        let end = at.checked_add(count).filter(|end| *end <= message.len());
        let end = end.ok_or_else(|| bad("a field that is longer than its message"))?;
        let bytes = &message[*at..end];
        *at = end;
        Ok(bytes)
    };
    let value = match tag & 7 {
        0 => Value::Number(number(message, at)?),
        1 => skip(8, at).map(|_| Value::Other)?,
        2 => {
            let length = usize::try_from(number(message, at)?)
                .map_err(|_| bad("a field that is longer than its message"))?;
            Value::Bytes(skip(length, at)?)
        }
        5 => skip(4, at).map(|_| Value::Other)?,
        _ => return Err(bad("an unknown wire type")),
    };
    Ok((tag >> 3, value, begin..*at))
}

/// Reads a varint.
fn number(bytes: &[u8], at: &mut usize) -> io::Result<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or_else(|| bad("it ends early"))?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(bad("a number of more than 64 bits"))
}

/// Writes a varint.
pub fn write_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A field of wire type 0: its number, and its value.
pub fn push_number(out: &mut Vec<u8>, (field, value): (u64, u64)) {
    write_number(out, field << 3);
    write_number(out, value);
}

/// A field of wire type 2.
pub fn push_bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    write_number(out, field << 3 | 2);
    write_number(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// The message with what `push` writes in the place of a part.
pub fn spliced(message: &[u8], place: Range<usize>, push: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = message[..place.start].to_vec();
    push(&mut out);
    out.extend_from_slice(&message[place.end..]);
    out
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("message: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_read_as_written() {
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]);
        for value in edges.chain([u64::MAX]) {
            let mut bytes = Vec::new();
            write_number(&mut bytes, value);
            let mut at = 0;
            assert_eq!(number(&bytes, &mut at).unwrap(), value);
            assert_eq!(at, bytes.len(), "{value}");
        }
    }

    #[test]
    fn a_field_is_found_behind_others_with_its_place() {
        let mut message = Vec::new();
        push_number(&mut message, (1, 300));
        message.extend([2 << 3 | 1, 0, 0, 0, 0, 0, 0, 0, 0]); // fixed64
        message.extend([3 << 3 | 5, 0, 0, 0, 0]); // fixed32
        let start = message.len();
        push_bytes(&mut message, 4, b"text");
        let end = message.len();
        push_number(&mut message, (5, 1));

        let (value, place) = find(&message, 4).unwrap().unwrap();
        assert!(matches!(value, Value::Bytes(b"text")));
        assert_eq!(place, start..end);
        assert!(find(&message, 6).unwrap().is_none());
        let without = spliced(&message, place, |_| {});
        assert_eq!(without, [&message[..start], &message[end..]].concat());
    }

    #[test]
    fn malformed_fields_are_errors() {
        let cases: [(&[u8], &str); 7] = [
            (b"\x80", "a tag that is cut off"),
            (b"\x08", "no number"),
            (b"\x09\0\0\0\0\0\0\0", "seven bytes of eight"),
            (b"\x0d\0\0\0", "three bytes of four"),
            (b"\x0a\x02x", "one byte of two"),
            (
                b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                "a length past the address space",
            ),
            (b"\x0b", "the start of a group"),
        ];
        for (message, what) in cases {
            assert!(find(message, 99).is_err(), "{what}");
        }
        let endless = [&[0x08][..], &[0xff; 11]].concat();
        assert!(find(&endless, 99).is_err());
    }
}
