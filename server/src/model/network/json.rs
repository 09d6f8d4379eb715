//! The setting in JSON: `"none"`, `"internet"`, or an object.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{AdditionalProperties, SchemaType, Type};
use utoipa::openapi::{
    ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema, SchemaFormat,
};
use utoipa::{PartialSchema, ToSchema};

use super::{
    Limits, MAX_BYTES_PER_SECOND, MAX_CONNECTIONS, MAX_RULES, Network, NetworkPolicy, Rule,
};

/// The setting of a copy, in the OpenAPI document.
#[derive(Debug)]
pub struct NetworkOfCopies;

/// As it is stored and shown.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Word(Word),
    Policy {
        allow: Vec<String>,
        #[serde(default)]
        dry_run: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<LimitsForm>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    None,
    #[serde(alias = "outbound")]
    Internet,
}

#[derive(Serialize, Deserialize)]
struct LimitsForm {
    connections: u32,
    connections_per_second: u32,
    bytes_per_second: u64,
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match self {
            Self::None => Form::Word(Word::None),
            Self::Policy(_) if *self == Self::internet() => Form::Word(Word::Internet),
            Self::Policy(policy) => Form::Policy {
                allow: policy.rules.iter().map(Rule::to_string).collect(),
                dry_run: policy.dry_run,
                limits: (policy.limits != Limits::default()).then_some(LimitsForm {
                    connections: policy.limits.connections,
                    connections_per_second: policy.limits.connections_per_second,
                    bytes_per_second: policy.limits.bytes_per_second,
                }),
            },
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Form::deserialize(deserializer)? {
            Form::Word(Word::None) => Self::None,
            Form::Word(Word::Internet) => Self::internet(),
            Form::Policy {
                allow,
                dry_run,
                limits,
            } => {
                let mut policy = NetworkPolicy::parse(allow.iter().map(String::as_str))
                    .map_err(D::Error::custom)?;
                policy.dry_run = dry_run;
                if let Some(limits) = limits {
                    policy.limits = Limits {
                        connections: limits.connections,
                        connections_per_second: limits.connections_per_second,
                        bytes_per_second: limits.bytes_per_second,
                    };
                }
                Self::Policy(Arc::new(policy))
            }
        })
    }
}

fn number(description: &str, maximum: u64, default: u64) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(0))
        .maximum(Some(maximum as f64))
        .default(Some(default.into()))
        .description(Some(description))
}

/// Name of the object's schema, and of its limits'. They have one: tools that make clients name their types by it.
const RULES: &str = "NetworkRules";
const LIMITS: &str = "NetworkLimits";

fn rules() -> ObjectBuilder {
    let entry = ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .min_length(Some(1))
        .max_length(Some(280));
    let allow = ArrayBuilder::new()
        .items(entry)
        .max_items(Some(MAX_RULES))
        .description(Some(
            "What may be reached: NAME[:PORTS[/PROTOCOL]] with * for labels, ADDRESS[/LENGTH][:PORTS[/PROTOCOL]] with \
             IPv6 in brackets, or internet. Without ports 443 and 80, without a protocol TCP.",
        ));
    let dry_run = ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Boolean))
        .default(Some(false.into()))
        .description(Some(
            "Allow everything public, and record what the rules would have refused.",
        ));
    ObjectBuilder::new()
        .description(Some("What may be reached; everything else is refused."))
        .property("allow", allow)
        .required("allow")
        .property("dry_run", dry_run)
        .property("limits", Ref::from_schema_name(LIMITS))
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
}

fn limits() -> ObjectBuilder {
    let usual = Limits::default();
    let most = u64::from(MAX_CONNECTIONS);
    let connections = number("Connections at one time.", most, usual.connections.into());
    let per_second = usual.connections_per_second.into();
    let bytes = "Bytes per second, in and out each.";
    ObjectBuilder::new()
        .description(Some(
            "Limits of the function, for all its instances together; 0 means none.",
        ))
        .property("connections", connections)
        .property(
            "connections_per_second",
            number("New connections per second.", most, per_second),
        )
        .property(
            "bytes_per_second",
            number(bytes, MAX_BYTES_PER_SECOND, usual.bytes_per_second),
        )
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
}

impl PartialSchema for Network {
    fn schema() -> RefOr<Schema> {
        let word = ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .enum_values(Some(["none", "internet", "outbound"]))
            .description(Some(
                "none: a private loopback alone. internet: all public addresses; outbound is its old name.",
            ));
        OneOfBuilder::new()
            .item(word)
            .item(Ref::from_schema_name(RULES))
            .description(Some("What a function may reach over the network."))
            .into()
    }
}

impl ToSchema for Network {
    fn name() -> std::borrow::Cow<'static, str> {
        "Network".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((RULES.into(), rules().into()));
        schemas.push((LIMITS.into(), limits().into()));
    }
}

impl PartialSchema for NetworkOfCopies {
    fn schema() -> RefOr<Schema> {
        let none = ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .enum_values(Some(["none"]))
            .description(Some("A private loopback alone."));
        OneOfBuilder::new()
            .item(none)
            .item(Ref::from_schema_name(RULES))
            .description(Some(
                "What a copy may reach over the network: what is named, without `internet` and without a dry run.",
            ))
            .into()
    }
}

impl ToSchema for NetworkOfCopies {
    fn name() -> std::borrow::Cow<'static, str> {
        "NetworkOfCopies".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Network::schemas(schemas);
    }
}
