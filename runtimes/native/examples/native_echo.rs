//! A function of a UDP port that sends each datagram back.

use serde::{Deserialize, Serialize};

/// What is read of the event, and the whole answer.
#[derive(Deserialize, Serialize)]
struct Datagram {
    body: String,
    #[serde(rename = "isBase64Encoded")]
    is_base64: bool,
}

fn main() {
    hearth_native::serve(|datagram: Datagram, _| Ok(datagram))
}
