//! Functions that the audit counts the calls of.

use hearth_ebpf::audit::Kind;

/// Names that are parts of a function's symbol, and what its calls count as.
pub(super) type Wanted = (&'static [&'static str], Kind);

/// Where the server turns bytes into values, and values into bytes, for a request. Functions: a closure's symbol has more behind its
/// name, where theirs have the hash.
pub(super) const IN_SERVER: [Wanted; 7] = [
    (
        &["h1..role..Server", "Http1Transaction", "5parse17h"],
        Kind::HeadsParsed,
    ),
    (
        &["h1..role..Server", "Http1Transaction", "6encode17h"],
        Kind::HeadsWritten,
    ),
    (&["hearth", "7trigger5event5build17h"], Kind::JsonWritten),
    (
        &["hearth", "7trigger7body_of9with_body17h"],
        Kind::JsonWritten,
    ),
    (&["hearth", "7trigger8answered5shape17h"], Kind::JsonParsed),
    (&["hearth", "7answers13response_head17h"], Kind::JsonParsed),
    (&["hearth", "7request12check_result17h"], Kind::JsonParsed),
];
/// The same of a native function, and all of its JSON library.
pub(super) const IN_MEMBERS: [Wanted; 5] = [
    (&["hearth_native4http9with_body17h"], Kind::JsonWritten),
    (&["hearth_native4http4head17h"], Kind::JsonWritten),
    (&["hearth_native4http7as_text17h"], Kind::JsonParsed),
    (&["hearth_native4http8value_of17h"], Kind::JsonParsed),
    (&["serde_json"], Kind::JsonAtAll),
];
