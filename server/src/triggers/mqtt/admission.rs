//! Who may connect: anyone where the function or chain is public, else who has a token that may invoke it.

use axum::http::HeaderValue;
use mqtt_proto::v5::ConnectReasonCode as Code;

use super::packets::Connect;
use crate::http::auth;
use crate::model::{Port, PortOwner, PortTrigger, Right};
use crate::triggers::Triggers;

/// A client that was taken in.
pub(super) struct Admitted {
    /// Whose port it was.
    pub(super) owner: PortOwner,
    /// The header in which HTTP has the token, if the client has one.
    token: Option<HeaderValue>,
}

/// Takes a client in, or says why not.
pub(super) fn admit(
    triggers: &Triggers,
    port: Port,
    connect: &Connect,
) -> Result<Admitted, (Code, &'static str)> {
    let owner = match triggers.engine.port_owner(port) {
        Some((owner, PortTrigger::Mqtt { .. })) => owner,
        // Taken away just now.
        _ => return Err((Code::ServerUnavailable, "nobody has this port any more")),
    };
    let token = connect.password.as_deref().and_then(|password| {
        let password = std::str::from_utf8(password).ok()?;
        HeaderValue::try_from(format!("Bearer {password}")).ok()
    });
    let admitted = Admitted { owner, token };
    if !admitted.is_still(triggers) {
        let reason = "the password must be a token that may invoke this";
        return Err((Code::BadUserNameOrPassword, reason));
    }
    if connect.has_method {
        return Err((Code::BadAuthMethod, "there is no other way to log in"));
    }
    if connect.has_will {
        // Better than to lose it silently.
        return Err((Code::ImplementationSpecificError, "wills are not supported"));
    }
    if connect.is_nameless_session {
        let reason = "a session needs a client identifier";
        return Err((Code::ClientIdentifierNotValid, reason));
    }
    Ok(admitted)
}

impl Admitted {
    /// Whether it may still do what it does: tokens end, and functions may be public no more.
    pub(super) fn is_still(&self, triggers: &Triggers) -> bool {
        let is_public = match &self.owner {
            PortOwner::Function(name) => triggers.engine.is_public(name),
            PortOwner::Chain(name) => {
                let target = triggers.app.catalog.target(name);
                target.map(|target| target.spec().public)
            }
        };
        match (is_public, &self.token) {
            (Some(true), _) => true,
            (Some(false), Some(token)) => {
                let caller = auth::require_bearer(&triggers.app, token, Right::Invoke);
                let reaches = caller.and_then(|caller| match &self.owner {
                    PortOwner::Function(name) => auth::reach(&caller, name),
                    PortOwner::Chain(_) => auth::reach_all(&caller),
                });
                reaches.is_ok()
            }
            _ => false,
        }
    }
}
