//! Requests over a veth whose end the ingress is attached to, and not, in turns.

use crate::results::Document;
use crate::scale::Scale;

pub fn run(_scale: Scale, _document: &mut Document) -> anyhow::Result<()> {
    Ok(())
}
