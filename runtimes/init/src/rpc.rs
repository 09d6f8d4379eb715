//! What is said to a CRIU that was started ahead (`criu swrk FD`), and what it says: one request to restore and one
//! answer, each a datagram.
//!
//! Format: CRIU's `images/rpc.proto` (`criu_req`, `criu_opts`, `inherit_fd`, `criu_resp`). Whatever is known when CRIU starts stands on
//! its command line instead, which it obeys in this mode, too.

use std::io;
use std::os::fd::RawFd;

use crate::protobuf::{Value, find, push_bytes, push_number};

/// `criu_req`: its type, here RESTORE, and options.
const TYPE: (u64, u64) = (1, 2);
const OPTIONS: u64 = 2;
/// `criu_opts`: a required number of a descriptor, here -1 for none; the directory's path instead; how much is logged, here
/// errors and warnings, which is all that is ever shown: a debug log costs milliseconds; where to.
const IMAGES_FD: (u64, u64) = (1, u64::MAX);
const IMAGES_PATH: u64 = 68;
const LOG_LEVEL: (u64, u64) = (9, 2);
const LOG_FILE: u64 = 10;
/// `criu_opts`: what takes the place of a descriptor that led outside. Its name in the image, and the new one's number.
const INHERIT: u64 = 27;
const INHERIT_NAME: u64 = 1;
const INHERIT_FD: u64 = 2;

/// `criu_resp`: whether it worked.
const SUCCESS: u64 = 2;

/// The request to restore from a directory, whose path has to be a symbolic link. Each of `inherit` is a descriptor of
/// CRIU's and the name of what it takes the place of.
pub fn restore_request(images: &str, log: &str, inherit: &[(RawFd, String)]) -> Vec<u8> {
    let mut options = Vec::new();
    push_number(&mut options, IMAGES_FD);
    push_bytes(&mut options, IMAGES_PATH, images.as_bytes());
    push_number(&mut options, LOG_LEVEL);
    push_bytes(&mut options, LOG_FILE, log.as_bytes());
    for (fd, name) in inherit {
        let mut entry = Vec::new();
        push_bytes(&mut entry, INHERIT_NAME, name.as_bytes());
        // A number below 0 would be sent as its two's complement.
        push_number(&mut entry, (INHERIT_FD, i64::from(*fd).cast_unsigned()));
        push_bytes(&mut options, INHERIT, &entry);
    }
    let mut request = Vec::new();
    push_number(&mut request, TYPE);
    push_bytes(&mut request, OPTIONS, &options);
    request
}

/// Whether an answer says that the request was carried out. CRIU parses what is hostile, and its word is no more than
/// that: what it has done is looked at afterwards.
pub fn succeeded(answer: &[u8]) -> io::Result<bool> {
    Ok(matches!(
        find(answer, SUCCESS)?,
        Some((Value::Number(1), _))
    ))
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
    fn as_a_protobuf_library_writes_it() {
        let inherit = [(3, "socket:[7]".to_owned())];
        let expected = b"\x08\x02\x12\x2c\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xa2\x04\x04/img\x48\x02\x52\x05r.log\
            \xda\x01\x0e\x0a\x0asocket:[7]\x10\x03";
        assert_eq!(restore_request("/img", "r.log", &inherit), expected);
    }
}
