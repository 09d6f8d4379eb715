//! What is said to a CRIU that was started ahead (`criu swrk FD`), and what it says: one request to restore and one
//! answer, each a datagram.
//!
//! Format: CRIU's `images/rpc.proto` (`criu_req`, `criu_opts`, `inherit_fd`, `criu_resp`). Whatever is known when CRIU starts stands on
//! its command line instead, which it obeys in this mode, too.

use std::io;
use std::os::fd::RawFd;

use prost::Message;

/// `criu_req`.
#[derive(Clone, PartialEq, Message)]
struct Request {
    /// `criu_req_type`.
    #[prost(int32, required, tag = "1")]
    kind: i32,
    #[prost(message, optional, tag = "2")]
    options: Option<Options>,
}

/// `criu_req_type::RESTORE`.
const RESTORE: i32 = 2;

/// `criu_opts`.
#[derive(Clone, PartialEq, Message)]
struct Options {
    /// Number of a descriptor, -1 for none.
    #[prost(int32, required, tag = "1")]
    images_fd: i32,
    #[prost(int32, tag = "9")]
    log_level: i32,
    #[prost(string, tag = "10")]
    log_file: String,
    /// What takes the place of descriptors that led outside.
    #[prost(message, repeated, tag = "27")]
    inherit: Vec<Inherit>,
    /// Path of the directory.
    #[prost(string, tag = "68")]
    images_path: String,
}

/// `inherit_fd`.
#[derive(Clone, PartialEq, Message)]
struct Inherit {
    /// Name in the image.
    #[prost(string, required, tag = "1")]
    name: String,
    /// The new one's number.
    #[prost(int32, required, tag = "2")]
    fd: i32,
}

/// Errors and warnings, which is all that is ever shown: a debug log costs milliseconds.
const LOG_LEVEL: i32 = 2;

/// `criu_resp`.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(bool, tag = "2")]
    success: bool,
}

/// The request to restore from a directory, whose path has to be a symbolic link. Each of `inherit` is a descriptor of
/// CRIU's and the name of what it takes the place of.
pub fn restore_request(images: &str, log: &str, inherit: &[(RawFd, String)]) -> Vec<u8> {
    let inherit = inherit.iter().map(|(fd, name)| Inherit {
        name: name.clone(),
        fd: *fd,
    });
    let options = Options {
        images_fd: -1,
        log_level: LOG_LEVEL,
        log_file: log.to_owned(),
        inherit: inherit.collect(),
        images_path: images.to_owned(),
    };
    let request = Request {
        kind: RESTORE,
        options: Some(options),
    };
    request.encode_to_vec()
}

/// Whether an answer says that the request was carried out. CRIU parses what is hostile, and its word is no more than
/// that: what it has done is looked at afterwards.
pub fn succeeded(answer: &[u8]) -> io::Result<bool> {
    Ok(Answer::decode(answer)?.success)
}

#[cfg(test)]
mod tests {
    use super::{restore_request, succeeded};

    #[test]
    fn answers_as_criu_sends_them() {
        let done = b"\x08\x02\x10\x01\x22\x03\x08\xe8\x07";
        assert!(succeeded(done).unwrap());
        let failed =
            b"\x08\x02\x10\x00\x22\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x38\x38";
        assert!(!succeeded(failed).unwrap());
        assert!(!succeeded(b"").unwrap());
        assert!(succeeded(b"\x08").is_err());
    }

    #[test]
    fn the_request_has_what_criu_requires() {
        let inherit = [(3, "socket:[7]".to_owned())];
        let expected =
            b"\x08\x02\x12\x2c\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x48\x02\x52\x05r.log\
            \xda\x01\x0e\x0a\x0asocket:[7]\x10\x03\xa2\x04\x04/img";
        assert_eq!(restore_request("/img", "r.log", &inherit), expected);
    }
}
