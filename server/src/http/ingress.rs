//! `/api/v1/ingress`: what comes to the node's interfaces for functions and chains.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::App;
use super::audit::Audit;
use super::auth::{Admin, Allowed};
use super::functions::to_the_end;
use super::path::Path;
use super::problem::Problem;
use super::spec::{self, Fields, Input, invalid};
use crate::ingress::{
    Dropped, Ingress, IngressInterface, IngressSource, ListError, ListVerdict, ListedPrefix,
    NodeTraffic,
};
use crate::model::{InvalidField, Page, parse_prefix};

/// Longest note, in characters: every entry is stored with the others.
const NOTE_MAX: usize = 200;
const NOTE_RULE: &str = "must be a string of at most 200 characters, without control characters";
const EXPIRY_RULE: &str = "must be a time in the future such as \"2030-01-31T12:00:00Z\", or null";

/// The ingress of the node.
#[derive(Debug, Serialize, ToSchema)]
pub struct NodeIngress {
    /// Interfaces whose packets are counted and limited (`HEARTH_XDP_INTERFACE`).
    pub interfaces: Vec<IngressInterface>,
    /// Packets there since the server started; null without such interfaces.
    pub traffic: Option<NodeTraffic>,
    /// Packets that were dropped, for functions and chains, also for those that are gone; null without such interfaces.
    pub dropped: Option<Dropped>,
    /// Sources that send most to ports of functions and chains, at most 50; those first that are limited now.
    pub sources: Vec<IngressSource>,
}

/// Get what comes to the node's interfaces: packets by kind, sources by rate, and who is limited now.
///
/// Rates are those since the sources were last read, 1 to 30 s ago: of one who asks for the first time they are 0.
#[utoipa::path(
    get,
    path = "/api/v1/ingress",
    tag = "node",
    operation_id = "get_ingress",
    security(("bearer" = ["admin"])),
    responses((status = 200, description = "The ingress of the node", body = NodeIngress)),
)]
pub async fn get(_: Allowed<Admin>, State(app): State<App>) -> Json<NodeIngress> {
    let ingress = app.engine.ingress();
    Json(NodeIngress {
        interfaces: ingress.report().interfaces.clone(),
        traffic: ingress.node_traffic(),
        dropped: ingress.all_dropped(),
        sources: ingress.sources(None),
    })
}

/// What is to happen to a network's packets.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"verdict": "deny", "expires_at": "2030-01-31T12:00:00Z", "note": "scans"}))]
#[allow(dead_code)]
pub struct PutListed {
    /// Let through past the limits of functions and chains, or dropped.
    pub verdict: ListVerdict,
    /// Until when; omit for ever.
    #[schema(required = false, value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<String>,
    /// Why, at most 200 characters.
    #[schema(required = false, max_length = 200)]
    pub note: String,
}

/// List the networks that are exempt from limits or dropped.
#[utoipa::path(
    get,
    path = "/api/v1/ingress/lists",
    tag = "node",
    operation_id = "list_ingress_lists",
    security(("bearer" = ["admin"])),
    responses((status = 200, description = "All of them, in one page", body = Page<ListedPrefix>)),
)]
pub async fn lists(_: Allowed<Admin>, State(app): State<App>) -> Json<Page<ListedPrefix>> {
    let items = app.engine.ingress().listed().await;
    Json(Page { items, next: None })
}

/// Exempt a network from the limits of functions and chains, or drop its packets to their ports.
///
/// It holds at once and survives restarts. The longest network that a source is in decides. Write the `/` as `%2F`.
#[utoipa::path(
    put,
    path = "/api/v1/ingress/lists/{prefix}",
    tag = "node",
    operation_id = "put_ingress_list",
    security(("bearer" = ["admin"])),
    params(("prefix" = String, Path, description = "An address, or a network in CIDR notation")),
    request_body(content = PutListed, content_type = "application/json"),
    responses(
        (status = 200, description = "Changed", body = ListedPrefix),
        (status = 201, description = "Listed", body = ListedPrefix),
    ),
    extensions(("x-errors" = json!([
        "invalid_json", "bad_request_body", "payload_too_large", "unsupported_media_type", "invalid_field"
    ]))),
)]
pub async fn put(
    asked: Allowed<Admin>,
    State(app): State<App>,
    Path(prefix): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<ListedPrefix>), Problem> {
    let ingress = app.engine.ingress();
    // Before the body, which may be anything.
    let network = listable(ingress, &prefix)?;
    let fields = spec::json_fields(request).await?;
    let entry = listed(network, &fields, Timestamp::now())?;
    let status = match enlist(&app, &asked.audit, entry.clone()).await?? {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok((status, Json(entry)))
}

/// Take a network off the lists.
#[utoipa::path(
    delete,
    path = "/api/v1/ingress/lists/{prefix}",
    tag = "node",
    operation_id = "delete_ingress_list",
    security(("bearer" = ["admin"])),
    params(("prefix" = String, Path, description = "An address, or a network in CIDR notation")),
    responses((status = 204, description = "Removed")),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn delete(
    asked: Allowed<Admin>,
    State(app): State<App>,
    Path(prefix): Path<String>,
) -> Result<StatusCode, Problem> {
    let missing = || {
        let shown: String = prefix.chars().take(50).collect();
        Problem::not_found(format!("network {shown:?} on the lists"))
    };
    let network = parse_prefix(&prefix).map_err(|_| missing())?;
    match unlist(&app, &asked.audit, network).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing()),
    }
}

/// The network that a text says, if it can be listed on this node.
pub(super) fn listable(ingress: &Ingress, prefix: &str) -> Result<IpNet, InvalidField> {
    let refused = |rule: String| invalid("prefix", &prefix.into(), rule);
    // As in `[2001:db8::]/32`, which rules of functions need for the port behind it.
    let plain = prefix.replace(['[', ']'], "");
    let network = parse_prefix(&plain).map_err(|error| refused(error.to_string()))?;
    match ingress.not_limiting() {
        Some(reason) => Err(refused(format!("cannot be listed on this node: {reason}"))),
        None => Ok(network),
    }
}

/// Lists a network, and says so in the audit log. Says whether it is new, or why it cannot be listed.
pub(super) async fn enlist(
    app: &App,
    audit: &Audit,
    entry: ListedPrefix,
) -> Result<Result<bool, InvalidField>, Problem> {
    audit.target(entry.prefix.to_string());
    audit.detail(match entry.verdict {
        ListVerdict::Allow => "allow",
        ListVerdict::Deny => "deny",
    });
    if let Some(end) = entry.expires_at {
        audit.detail(format!("expires {end}"));
    }
    let (ingress, store) = (app.engine.ingress().clone(), app.store.clone());
    to_the_end(async move {
        let prefix = entry.prefix.to_string();
        match ingress.list(&store, entry).await {
            Ok(is_new) => Ok(Ok(is_new)),
            Err(ListError::Store(error)) => Err(Problem::from(error)),
            Err(error) => Ok(Err(invalid("prefix", &prefix.into(), error.to_string()))),
        }
    })
    .await
}

/// Takes a network off the lists, and says so in the audit log. Says whether it was on one.
pub(super) async fn unlist(app: &App, audit: &Audit, network: IpNet) -> Result<bool, Problem> {
    audit.target(network.to_string());
    let (ingress, store) = (app.engine.ingress().clone(), app.store.clone());
    to_the_end(async move {
        let unlisted = ingress.unlist(&store, network).await;
        unlisted.map_err(Problem::internal)
    })
    .await
}

/// The entry that fields describe.
pub(super) fn listed(
    prefix: IpNet,
    fields: &Fields,
    now: Timestamp,
) -> Result<ListedPrefix, InvalidField> {
    fields.only(&["verdict", "expires_at", "note"])?;
    let verdict = fields.get("verdict").and_then(Input::string);
    let verdict = match verdict {
        Some("allow") => ListVerdict::Allow,
        Some("deny") => ListVerdict::Deny,
        _ => {
            let rule = "must be \"allow\" or \"deny\"";
            let none = Input::Json(Value::Null);
            return Err(fields
                .get("verdict")
                .unwrap_or(&none)
                .invalid("verdict", rule));
        }
    };
    let given = |name: &str| {
        let input = fields.get(name);
        input.filter(|input| !matches!(input, Input::Json(Value::Null)))
    };
    let expires_at = given("expires_at").map(|input| {
        let time = input.string().and_then(|text| text.parse().ok());
        time.filter(|time: &Timestamp| *time > now)
            .ok_or_else(|| input.invalid("expires_at", EXPIRY_RULE))
    });
    let note = given("note").map(|input| {
        let is_good =
            |text: &&str| text.chars().count() <= NOTE_MAX && !text.chars().any(char::is_control);
        let text = input.string().filter(is_good);
        text.map(str::to_owned)
            .ok_or_else(|| input.invalid("note", NOTE_RULE))
    });
    Ok(ListedPrefix {
        prefix,
        verdict,
        expires_at: expires_at.transpose()?,
        note: note.transpose()?.unwrap_or_default(),
        created_at: now,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_wrong_field_is_named() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let read = |body: Value| {
            let Value::Object(object) = body else {
                panic!("an object");
            };
            let prefix = "192.0.2.0/24".parse().unwrap();
            listed(prefix, &Fields::from_json(object), now).map_err(|error| error.field)
        };
        let good =
            json!({"verdict": "deny", "expires_at": "2026-01-02T00:00:00Z", "note": "scans"});
        let entry = read(good).unwrap();
        assert_eq!(
            (entry.verdict, entry.note.as_str()),
            (ListVerdict::Deny, "scans")
        );
        assert!(entry.expires_at.is_some());
        assert_eq!(read(json!({"verdict": "allow"})).unwrap().expires_at, None);
        for (body, field) in [
            (json!({}), "verdict"),
            (json!({"verdict": "drop"}), "verdict"),
            (
                json!({"verdict": "deny", "expires_at": "2025-12-31T00:00:00Z"}),
                "expires_at",
            ),
            (json!({"verdict": "deny", "expires_at": 3}), "expires_at"),
            (json!({"verdict": "deny", "note": "a\nb"}), "note"),
            (json!({"verdict": "deny", "note": "x".repeat(201)}), "note"),
            (json!({"verdict": "deny", "until": 1}), "until"),
        ] {
            assert_eq!(read(body.clone()), Err(field.to_owned()), "{body}");
        }
    }
}
