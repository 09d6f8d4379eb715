//! The codes of CoAP's messages (RFC 7252, 5.2 and 12.1): methods and answers.

/// A code: three bits of class, five of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(pub(super) u8);

impl Code {
    pub(super) const EMPTY: Self = Self(0);
    pub(super) const GET: Self = Self(1);
    pub(super) const DELETED: Self = Self::new(2, 2);
    pub(super) const CHANGED: Self = Self::new(2, 4);
    pub(super) const CONTENT: Self = Self::new(2, 5);
    pub(super) const CONTINUE: Self = Self::new(2, 31);
    pub(super) const BAD_REQUEST: Self = Self::new(4, 0);
    pub(super) const BAD_OPTION: Self = Self::new(4, 2);
    pub(super) const NOT_FOUND: Self = Self::new(4, 4);
    pub(super) const METHOD_NOT_ALLOWED: Self = Self::new(4, 5);
    pub(super) const NOT_ACCEPTABLE: Self = Self::new(4, 6);
    pub(super) const INCOMPLETE: Self = Self::new(4, 8);
    pub(super) const TOO_LARGE: Self = Self::new(4, 13);
    pub(super) const TOO_MANY: Self = Self::new(4, 29);
    pub(super) const INTERNAL: Self = Self::new(5, 0);
    pub(super) const BAD_GATEWAY: Self = Self::new(5, 2);
    pub(super) const UNAVAILABLE: Self = Self::new(5, 3);
    pub(super) const TIMEOUT: Self = Self::new(5, 4);
    pub(super) const NO_PROXY: Self = Self::new(5, 5);

    pub(super) const fn new(class: u8, detail: u8) -> Self {
        Self(class << 5 | detail)
    }

    /// As written: `2.05`. Only those that an answer can have.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (class, detail) = text.split_once('.')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if class.len() != 1 || detail.len() != 2 || !digits(class) || !digits(detail) {
            return None;
        }
        let (class, detail) = (class.parse().ok()?, detail.parse().ok()?);
        // 2.31 is the server's own.
        let fits = matches!(class, 2 | 4 | 5) && detail < 32;
        Some(Self::new(class, detail)).filter(|code| fits && *code != Self::CONTINUE)
    }

    /// Whether it is an error.
    pub(super) fn is_error(self) -> bool {
        self.0 >> 5 >= 4
    }

    /// The method's name; none if there is no such method.
    pub(super) fn method(self) -> Option<&'static str> {
        Some(match self.0 {
            1 => "GET",
            2 => "POST",
            3 => "PUT",
            4 => "DELETE",
            // RFC 8132.
            5 => "FETCH",
            6 => "PATCH",
            7 => "iPATCH",
            _ => return None,
        })
    }
}
