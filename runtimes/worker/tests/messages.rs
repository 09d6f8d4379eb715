//! The bytes of the control and ready sockets.
#![deny(unsafe_code)]

use hearth_worker::message::{
    End, ID_TEXT_BYTES, START_BYTES, Way, exited, fork_failed, id_text, parse_start, ready, start,
};
use hearth_worker::parts::FORK_DESCRIPTORS;

#[test]
fn a_start_message_is_a_tag_and_a_number() {
    assert_eq!((START_BYTES, FORK_DESCRIPTORS), (9, 6));
    for (tag, way) in [(b'F', Way::Fork), (b'B', Way::Become)] {
        let message = [tag, 2, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(parse_start(&message), Some((way, 0x102)));
        assert_eq!(start(way, 0x102), message);
    }
    assert_eq!(parse_start(&[b'F', 2, 1, 0, 0, 0, 0, 0]), None);
    assert_eq!(parse_start(&[b'F', 2, 1, 0, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(parse_start(&[b'G', 2, 1, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(parse_start(&[]), None);
}

#[test]
fn ready_carries_the_pid() {
    assert_eq!(ready(0x0403_0201), [b'R', 1, 2, 3, 4]);
}

#[test]
fn reports_are_json() {
    assert_eq!(
        exited(5, End::Code(3)),
        r#"{"type":"exited","pid":5,"code":3}"#
    );
    assert_eq!(
        exited(5, End::Signal(11)),
        r#"{"type":"exited","pid":5,"signal":11}"#
    );
    let report: serde_json::Value =
        serde_json::from_str(&fork_failed(9, "a \"b\" \\ \n ü", Some(11))).expect("JSON");
    assert_eq!(
        report,
        serde_json::json!({"type": "fork_failed", "seq": 9, "message": "a \"b\" \\ \n ü", "errno": 11})
    );
}

#[test]
fn an_id_is_written_as_a_uuid() {
    let id = [
        0x01, 0x92, 0xf4, 0xab, 0xcd, 0xef, 0x70, 0x12, 0x83, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
        0x00,
    ];
    assert_eq!(
        id_text(&id, &mut [0; ID_TEXT_BYTES]),
        "0192f4ab-cdef-7012-8345-6789abcdef00"
    );
}
