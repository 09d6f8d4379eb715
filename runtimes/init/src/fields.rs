//! The binary form of what the host and `hearth-init` tell each other: fields in a fixed order, numbers little-endian,
//! text and lists preceded by their length. Whatever is read is checked against what is there: a length is never
//! believed, nothing is allocated for it ahead, and nothing may be left over.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// Why bytes are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// They end in the middle of a field.
    #[error("it is cut short")]
    Short,
    /// Bytes are left over.
    #[error("it is {0} bytes too long")]
    Long(usize),
    /// Text that is not UTF-8.
    #[error("it holds text that is not UTF-8")]
    Text,
    /// A number that stands for none of several choices.
    #[error("it holds the unknown kind {0}")]
    Kind(u8),
}

/// What can be written as bytes and read again.
pub trait Fields: Sized {
    /// Appends it.
    fn write(&self, to: &mut Vec<u8>);

    /// Takes it off the front.
    ///
    /// # Errors
    /// [`FieldError`].
    fn read(from: &mut &[u8]) -> Result<Self, FieldError>;

    /// It alone.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    /// Reads what holds it and nothing else.
    ///
    /// # Errors
    /// [`FieldError`].
    fn from_bytes(mut bytes: &[u8]) -> Result<Self, FieldError> {
        let read = Self::read(&mut bytes)?;
        match bytes.len() {
            0 => Ok(read),
            left => Err(FieldError::Long(left)),
        }
    }
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Result<&'a [u8], FieldError> {
    let (taken, rest) = from.split_at_checked(length).ok_or(FieldError::Short)?;
    *from = rest;
    Ok(taken)
}

fn array<const N: usize>(from: &mut &[u8]) -> Result<[u8; N], FieldError> {
    let (taken, rest) = from.split_first_chunk().ok_or(FieldError::Short)?;
    *from = rest;
    Ok(*taken)
}

fn length(from: &mut &[u8]) -> Result<usize, FieldError> {
    // More than there is, on a machine with small addresses, is too much all the same.
    usize::try_from(u32::read(from)?).map_err(|_| FieldError::Short)
}

fn write_length(length: usize, to: &mut Vec<u8>) {
    // Nothing of 4 GiB is ever written; it would be refused by the reader as cut short.
    u32::try_from(length).unwrap_or(u32::MAX).write(to);
}

/// Numbers as they are.
macro_rules! number {
    ($($type:ty),*) => {$(
        impl Fields for $type {
            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
                Ok(Self::from_le_bytes(array(from)?))
            }
        }
    )*};
}

number!(u8, u16, u32, u64, u128, i32);

impl Fields for bool {
    fn write(&self, to: &mut Vec<u8>) {
        u8::from(*self).write(to);
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        match u8::read(from)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(FieldError::Kind(other)),
        }
    }
}

impl Fields for String {
    fn write(&self, to: &mut Vec<u8>) {
        write_length(self.len(), to);
        to.extend_from_slice(self.as_bytes());
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        let length = length(from)?;
        let text = std::str::from_utf8(take(from, length)?);
        Ok(text.map_err(|_| FieldError::Text)?.to_owned())
    }
}

impl Fields for OsString {
    fn write(&self, to: &mut Vec<u8>) {
        write_length(self.len(), to);
        to.extend_from_slice(self.as_bytes());
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        let length = length(from)?;
        Ok(OsStr::from_bytes(take(from, length)?).to_owned())
    }
}

impl Fields for PathBuf {
    fn write(&self, to: &mut Vec<u8>) {
        self.clone().into_os_string().write(to);
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        Ok(OsString::read(from)?.into())
    }
}

impl<T: Fields> Fields for Option<T> {
    fn write(&self, to: &mut Vec<u8>) {
        self.is_some().write(to);
        if let Some(value) = self {
            value.write(to);
        }
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        bool::read(from)?.then(|| T::read(from)).transpose()
    }
}

impl<T: Fields> Fields for Vec<T> {
    fn write(&self, to: &mut Vec<u8>) {
        write_length(self.len(), to);
        for value in self {
            value.write(to);
        }
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        let mut all = Self::new();
        for _ in 0..length(from)? {
            // Each element takes at least one byte, so the remaining bytes bound the list.
            if from.is_empty() {
                return Err(FieldError::Short);
            }
            all.push(T::read(from)?);
        }
        Ok(all)
    }
}

impl<A: Fields, B: Fields> Fields for (A, B) {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
        self.1.write(to);
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        Ok((A::read(from)?, B::read(from)?))
    }
}

impl<T: Fields> Fields for RangeInclusive<T> {
    fn write(&self, to: &mut Vec<u8>) {
        self.start().write(to);
        self.end().write(to);
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        Ok(T::read(from)?..=T::read(from)?)
    }
}

/// As microseconds.
impl Fields for Duration {
    fn write(&self, to: &mut Vec<u8>) {
        u64::try_from(self.as_micros())
            .unwrap_or(u64::MAX)
            .write(to);
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        Ok(Self::from_micros(u64::read(from)?))
    }
}

/// IPv4 addresses as IPv6 has them (`::ffff:0:0/96`).
impl Fields for IpAddr {
    fn write(&self, to: &mut Vec<u8>) {
        let v6 = match self {
            Self::V4(v4) => v4.to_ipv6_mapped(),
            Self::V6(v6) => *v6,
        };
        v6.to_bits().write(to);
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        Ok(Ipv6Addr::from_bits(u128::read(from)?).to_canonical())
    }
}

/// [`Fields`] of a structure: its fields, in this order.
#[macro_export]
macro_rules! fields_of {
    ($type:ty { $($field:ident),* $(,)? }) => {
        impl $crate::fields::Fields for $type {
            fn write(&self, to: &mut Vec<u8>) {
                $($crate::fields::Fields::write(&self.$field, to);)*
            }

            fn read(from: &mut &[u8]) -> Result<Self, $crate::fields::FieldError> {
                Ok(Self { $($field: $crate::fields::Fields::read(from)?),* })
            }
        }
    };
}

/// [`Fields`] of an enumeration: the number of the variant, one byte, and then its fields, in this order.
#[macro_export]
macro_rules! variants_of {
    ($type:ty {
        $($kind:literal => $variant:ident $(($($item:ident),*))? $({ $($field:ident),* })?,)*
    }) => {
        impl $crate::fields::Fields for $type {
            fn write(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($($item),*))? $({ $($field),* })? => {
                        $crate::fields::Fields::write(&($kind as u8), to);
                        $($($crate::fields::Fields::write($item, to);)*)?
                        $($($crate::fields::Fields::write($field, to);)*)?
                    })*
                }
            }

            fn read(from: &mut &[u8]) -> Result<Self, $crate::fields::FieldError> {
                Ok(match <u8 as $crate::fields::Fields>::read(from)? {
                    $($kind => {
                        $($(let $item = $crate::fields::Fields::read(from)?;)*)?
                        $($(let $field = $crate::fields::Fields::read(from)?;)*)?
                        Self::$variant $(($($item),*))? $({ $($field),* })?
                    })*
                    kind => return Err($crate::fields::FieldError::Kind(kind)),
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    type All = (
        (Option<String>, Vec<(String, u64)>),
        ((PathBuf, bool), (i32, u8)),
    );

    fn sample() -> All {
        (
            (Some("é".into()), vec![("a".into(), 1), (String::new(), 2)]),
            ((PathBuf::from("/x"), true), (-7, 9)),
        )
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = sample().to_bytes();
        assert_eq!(All::from_bytes(&bytes), Ok(sample()));
    }

    #[test]
    fn a_cut_or_longer_one_is_refused() {
        let mut bytes = sample().to_bytes();
        for length in 0..bytes.len() {
            assert!(All::from_bytes(&bytes[..length]).is_err(), "{length}");
        }
        bytes.push(0);
        assert_eq!(All::from_bytes(&bytes), Err(FieldError::Long(1)));
    }

    #[test]
    fn a_length_is_not_believed() {
        for bytes in [[0xff; 4], [0xff, 0xff, 0xff, 0x7f]] {
            assert_eq!(String::from_bytes(&bytes), Err(FieldError::Short));
            assert_eq!(Vec::<u8>::from_bytes(&bytes), Err(FieldError::Short));
            assert_eq!(Vec::<String>::from_bytes(&bytes), Err(FieldError::Short));
        }
        assert_eq!(bool::from_bytes(&[2]), Err(FieldError::Kind(2)));
        assert_eq!(
            String::from_bytes(&[1, 0, 0, 0, 0xff]),
            Err(FieldError::Text)
        );
    }
}
