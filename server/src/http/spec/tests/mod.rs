//! Every field of the contract: out of range, of the wrong type, unknown, missing; as JSON and as a form.

mod bodies;
mod json;

use super::*;

/// What an upload holds.
fn content(code: &Code) -> Vec<u8> {
    match code {
        Code::Inline(upload) | Code::Zip(upload) => {
            upload.part(0, usize::MAX).expect("it can be read")
        }
        Code::Edits { .. } => panic!("edits are no upload"),
    }
}

/// What source holds.
fn source(code: &Code) -> String {
    assert!(matches!(code, Code::Inline(_)), "{code:?}");
    String::from_utf8(content(code)).expect("text")
}
