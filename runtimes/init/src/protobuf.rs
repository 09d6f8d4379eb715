//! Changes fields of a protobuf message and leaves the others as they are, byte for byte. To decode and encode the whole
//! message would lose the fields that are not declared here, and each version of CRIU has more of them.
//!
//! The wire format is `prost::encoding`'s, which derived messages use too.

use std::io;

use prost::encoding::{
    DecodeContext, WireType, bytes, decode_key, decode_varint, skip_field, uint64,
};

/// What becomes of a field.
pub enum Change {
    /// It stays.
    Keep,
    /// It is left out.
    Remove,
    /// It has this number.
    Number(u64),
    /// It has these bytes, of a string or of a message.
    Bytes(Vec<u8>),
}

/// The message with its fields changed. `change` gets the number of each field and its bytes, none if it is a number.
pub fn changed(
    message: &[u8],
    mut change: impl FnMut(u32, &[u8]) -> io::Result<Change>,
) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(message.len() + 64);
    let mut rest = message;
    while !rest.is_empty() {
        let field = rest;
        let (number, kind) = decode_key(&mut rest)?;
        let mut value = rest;
        skip_field(kind, number, &mut rest, DecodeContext::default())?;
        let content = match kind {
            WireType::LengthDelimited => {
                decode_varint(&mut value)?;
                &value[..value.len() - rest.len()]
            }
            _ => &[],
        };
        match change(number, content)? {
            Change::Keep => out.extend_from_slice(&field[..field.len() - rest.len()]),
            Change::Remove => {}
            Change::Number(new) => uint64::encode(number, &new, &mut out),
            Change::Bytes(new) => bytes::encode(number, &new, &mut out),
        }
    }
    Ok(out)
}

/// A message with new numbers in these fields. Does not add missing fields.
pub fn with_numbers(message: &[u8], numbers: &[(u32, u64)]) -> io::Result<Vec<u8>> {
    changed(message, |field, _| {
        let new = numbers.iter().find(|(number, _)| *number == field);
        Ok(new.map_or(Change::Keep, |(_, new)| Change::Number(*new)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of all kinds, and where the text is.
    fn message() -> (Vec<u8>, std::ops::Range<usize>) {
        let mut message = Vec::new();
        uint64::encode(1, &300, &mut message);
        message.extend([2 << 3 | 1, 0, 0, 0, 0, 0, 0, 0, 0]); // fixed64
        message.extend([3 << 3 | 5, 0, 0, 0, 0]); // fixed32
        let start = message.len();
        message.extend(b"\x22\x04text");
        let end = message.len();
        message.extend([5 << 3, 0x81, 0]); // a number that is longer than it need be
        (message, start..end)
    }

    #[test]
    fn what_is_not_changed_stays_byte_for_byte() {
        let (message, text) = message();
        let mut fields = Vec::new();
        let same = changed(&message, |number, bytes| {
            fields.push((number, bytes.to_vec()));
            Ok(Change::Keep)
        });
        assert_eq!(same.unwrap(), message);
        let none = Vec::new;
        let expected = [
            (1, none()),
            (2, none()),
            (3, none()),
            (4, b"text".to_vec()),
            (5, none()),
        ];
        assert_eq!(fields, expected);

        let only = |field, change: fn() -> Change| {
            changed(&message, |number, _| {
                Ok(if number == field {
                    change()
                } else {
                    Change::Keep
                })
            })
            .unwrap()
        };
        let (before, after) = (&message[..text.start], &message[text.end..]);
        assert_eq!(only(4, || Change::Remove), [before, after].concat());
        let longer = only(4, || Change::Bytes(vec![b'x'; 200]));
        assert_eq!(
            longer,
            [before, b"\x22\xc8\x01", &[b'x'; 200], after].concat()
        );
        assert_eq!(only(9, || Change::Remove), message);
        assert_eq!(
            only(1, || Change::Number(7)),
            [b"\x08\x07", &message[3..]].concat()
        );
    }

    #[test]
    fn numbers_change_in_fields_that_are_there() {
        let (message, _) = message();
        let after = with_numbers(&message, &[(5, 300), (6, 9)]).unwrap();
        assert_eq!(
            after,
            [&message[..message.len() - 3], b"\x28\xac\x02"].concat()
        );
    }

    #[test]
    fn malformed_fields_are_errors() {
        let cases: [(&[u8], &str); 8] = [
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
            (b"\x00\x01", "a field without a number"),
        ];
        for (message, what) in cases {
            assert!(with_numbers(message, &[]).is_err(), "{what}");
        }
        let endless = [&[0x08][..], &[0xff; 11]].concat();
        assert!(with_numbers(&endless, &[]).is_err());
    }
}
