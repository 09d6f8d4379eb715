//! The layout of all messages: a head of numbers at fixed places, little-endian, then a name and a text with their
//! lengths, then zeroes. What a message has no use for is zero, and checked to be: every message has one encoding.

/// Longest name in a message: that of an image, which holds a function's name, a version and 16 digits.
pub const NAME_MAX: usize = 127;

/// Size of the numbers.
const HEAD: usize = 64;
/// Where the name is, after its length.
const NAME: usize = HEAD + 1;
/// Where the text is, after its length.
const TEXT: usize = HEAD + 1 + NAME_MAX + 2;

/// Size of a message without text.
pub(super) const WITHOUT_TEXT: usize = HEAD + 1 + NAME_MAX;
/// Size of a message with text.
pub(super) const WITH_TEXT: usize = 1024;
/// Longest text.
pub(super) const TEXT_MAX: usize = WITH_TEXT - TEXT;

const _: () = assert!(WITHOUT_TEXT == 192 && TEXT < WITH_TEXT && NAME_MAX <= u8::MAX as usize);

/// Bytes that are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Messages have one size only.
    #[error("it has {0} bytes")]
    Size(usize),
    /// No message begins like that.
    #[error("its kind is {0}")]
    Kind(u8),
    /// A length is larger than what it measures can be.
    #[error("a length is too large")]
    Length,
    /// A name or a text is no UTF-8.
    #[error("it holds text that is not UTF-8")]
    Text,
    /// An unused field is not zero, or a choice is out of range.
    #[error("it is not in its one valid form")]
    Form,
    /// Another number of descriptors came with it.
    #[error("it has {0} descriptors")]
    Descriptors(usize),
}

/// All that any message can hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) number: u32,
    pub(super) sequence: u64,
    pub(super) key: u64,
    pub(super) leaf: u64,
    pub(super) amount: u64,
    pub(super) count: u32,
    pub(super) micros: u64,
    pub(super) more: u64,
    pub(super) name: String,
    pub(super) text: String,
}

impl Frame {
    /// Writes it into a message of `N` bytes. A name or text that is too long is cut: nothing that matters is.
    pub(super) fn encode<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        bytes[0] = self.kind;
        bytes[1] = self.flags;
        bytes[4..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.key.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.leaf.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.amount.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.count.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.micros.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.more.to_le_bytes());
        let name = cut(&self.name, NAME_MAX);
        bytes[HEAD] = name.len() as u8;
        bytes[NAME..NAME + name.len()].copy_from_slice(name);
        if N > TEXT {
            let text = cut(&self.text, N - TEXT);
            bytes[TEXT - 2..TEXT].copy_from_slice(&(text.len() as u16).to_le_bytes());
            bytes[TEXT..TEXT + text.len()].copy_from_slice(text);
        }
        bytes
    }

    /// Reads a message of `N` bytes.
    pub(super) fn decode<const N: usize>(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes: &[u8; N] = bytes.try_into().map_err(|_| Malformed::Size(bytes.len()))?;
        let name = usize::from(bytes[HEAD]);
        if name > NAME_MAX {
            return Err(Malformed::Length);
        }
        let mut text: &[u8] = &[];
        if N > TEXT {
            let length = usize::from(u16::from_le_bytes([bytes[TEXT - 2], bytes[TEXT - 1]]));
            text = bytes[TEXT..].get(..length).ok_or(Malformed::Length)?;
        }
        let string = |bytes: &[u8]| -> Result<String, Malformed> {
            let text = std::str::from_utf8(bytes).map_err(|_| Malformed::Text)?;
            Ok(text.to_owned())
        };
        let frame = Self {
            kind: bytes[0],
            flags: bytes[1],
            number: u32_at(bytes, 4),
            sequence: u64_at(bytes, 8),
            key: u64_at(bytes, 16),
            leaf: u64_at(bytes, 24),
            amount: u64_at(bytes, 32),
            count: u32_at(bytes, 40),
            micros: u64_at(bytes, 48),
            more: u64_at(bytes, 56),
            name: string(&bytes[NAME..NAME + name])?,
            text: string(text)?,
        };
        Ok(frame)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// As much of a text as fits.
fn cut(text: &str, most: usize) -> &[u8] {
    let end = text.floor_char_boundary(most.min(text.len()));
    &text.as_bytes()[..end]
}
