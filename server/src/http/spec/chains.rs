//! Settings of chains from requests. What needs only the types is checked here, each rule by
//! [`chain::Spec::check`].

mod cpu;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fields::{Fields, Input, IntegerRule, invalid, missing};
use super::place::Place;
use super::{port_limits, rules, triggers};
use crate::model::InvalidField;
use crate::model::chain::{
    self, BLOCK_KB, DEFAULT_TIMEOUT_MS, Hop, MAX_BLOCKS, MAX_CONCURRENCY, MAX_TIMEOUT_MS, Member,
    PAYLOAD_KB, Patch, PayloadForm, Pool, Spec, Transport,
};

/// Fields of `PUT /api/v1/chains/{name}` and of its `PATCH`; `POST` has `name`, too.
pub const CHAIN_FIELDS: &[&str] = &[
    "members",
    "routes",
    "edges",
    "pool",
    "transport",
    "timeout_ms",
    "cpu",
    "cpu_us",
    "cpu_cores",
    "public",
    "triggers",
    "port_limits",
];

const NAME: &str = "1 to 64 of a-z, 0-9 and -, starting with a letter";
const MEMBERS: &str = "an object of members such as {\"cart\": {\"function\": \"cart\"}}";
const ROUTES: &str = "an object of routes such as {\"checkout\": [\"cart\", \"payment\"]}";
const EDGES: &str = "a list of pairs of members such as [[\"frontend\", \"cart\"]]";
const PAYLOAD: &str = "\"json\" or \"block\"";
const POOL: &str = "an object with block_kb, blocks, payload_kb and huge_pages";
const TIMEOUT_MS: IntegerRule = IntegerRule {
    field: "timeout_ms",
    min: 1,
    max: MAX_TIMEOUT_MS,
};

/// Reads the body of `POST /api/v1/chains`.
pub fn create_chain(mut fields: Fields) -> Result<Spec, InvalidField> {
    let known: Vec<&str> = ["name"].iter().chain(CHAIN_FIELDS).copied().collect();
    fields.only(&known)?;
    let name = fields
        .take("name", NAME, "a string", |input| {
            let name = input.string()?;
            chain::is_plain_name(name).then(|| name.to_owned())
        })?
        .ok_or_else(|| missing("name", NAME))?;
    whole(name, fields)
}

/// Reads the body of `PUT /api/v1/chains/{name}`.
pub fn replace_chain(name: &str, mut fields: Fields) -> Result<Spec, InvalidField> {
    if let Some(input) = fields.get("name") {
        if input.string() != Some(name) {
            let rule = "must be left out, or be the name in the address: it cannot be changed";
            return Err(input.invalid("name", rule));
        }
        fields.remove("name");
    }
    fields.only(CHAIN_FIELDS)?;
    whole(name.to_owned(), fields)
}

/// Reads the body of `PATCH /api/v1/chains/{name}`. The rules that span fields are for who knows the present ones.
pub fn patch_chain(mut fields: Fields) -> Result<Patch, InvalidField> {
    if let Some(input) = fields.get("name") {
        let rule = "cannot be changed; create another chain instead";
        return Err(input.invalid("name", rule));
    }
    fields.only(CHAIN_FIELDS)?;
    if fields.is_empty() {
        let rule = format!("must set at least one of {}", CHAIN_FIELDS.join(", "));
        return Err(invalid("body", &json!({}), rule));
    }
    Ok(Patch {
        members: members(&mut fields)?,
        routes: routes(&mut fields)?,
        edges: edges(&mut fields)?,
        pool: pool(&mut fields)?,
        transport: transport(&mut fields)?,
        timeout_ms: fields.integer(&TIMEOUT_MS)?,
        cpu: cpu::setting(&mut fields)?,
        cpu_us: cpu::constants(&mut fields)?,
        cpu_cores: cpu::cores(&mut fields)?,
        public: rules::flag(&mut fields, "public")?,
        triggers: triggers::of_chain(&mut fields)?,
        port_limits: port_limits::setting(&mut fields)?,
    })
}

/// All settings, with the defaults of what is left out.
fn whole(name: String, mut fields: Fields) -> Result<Spec, InvalidField> {
    let spec = Spec {
        name,
        members: members(&mut fields)?.ok_or_else(|| missing("members", MEMBERS))?,
        routes: routes(&mut fields)?.ok_or_else(|| missing("routes", ROUTES))?,
        edges: edges(&mut fields)?.unwrap_or_default(),
        pool: pool(&mut fields)?.unwrap_or_default(),
        transport: transport(&mut fields)?.unwrap_or_default(),
        timeout_ms: fields.integer(&TIMEOUT_MS)?.unwrap_or(DEFAULT_TIMEOUT_MS),
        cpu: cpu::setting(&mut fields)?.unwrap_or_default(),
        cpu_us: cpu::constants(&mut fields)?.unwrap_or_default(),
        cpu_cores: cpu::cores(&mut fields)?.unwrap_or_default(),
        public: rules::flag(&mut fields, "public")?.unwrap_or(false),
        triggers: triggers::of_chain(&mut fields)?.unwrap_or_default(),
        port_limits: port_limits::setting(&mut fields)?.unwrap_or_default(),
    };
    spec.check()?;
    Ok(spec)
}

fn members(fields: &mut Fields) -> Result<Option<BTreeMap<String, Member>>, InvalidField> {
    let Some(object) = object(fields, "members", MEMBERS)? else {
        return Ok(None);
    };
    let mut members = BTreeMap::new();
    for (name, value) in object {
        let place = Place::new("members").within(&name);
        let rule =
            "an object such as {\"function\": \"cart\", \"version\": null, \"concurrency\": 8}";
        let Value::Object(member) = &value else {
            return Err(place.wrong(&value, rule));
        };
        place.only(member, &["function", "version", "concurrency", "payload"])?;
        let function = match member.get("function") {
            Some(Value::String(function)) => function.clone(),
            other => {
                let found = other.unwrap_or(&Value::Null);
                return Err(place
                    .within("function")
                    .wrong(found, "the name of a function"));
            }
        };
        let version = match member.get("version") {
            None | Some(Value::Null) => None,
            Some(found) => {
                let rule = "the number of a version of the function, or null for its active one";
                Some(
                    place
                        .within("version")
                        .integer(found, 1, u32::MAX, Some(rule))?,
                )
            }
        };
        let concurrency = match member.get("concurrency") {
            None => 1,
            Some(found) => place
                .within("concurrency")
                .integer(found, 1, MAX_CONCURRENCY, None)?,
        };
        let payload = match member.get("payload") {
            None => PayloadForm::default(),
            Some(found) => found
                .as_str()
                .and_then(PayloadForm::named)
                .ok_or_else(|| place.within("payload").wrong(found, PAYLOAD))?,
        };
        let member = Member {
            function,
            version,
            concurrency,
            payload,
        };
        members.insert(name, member);
    }
    Ok(Some(members))
}

fn routes(fields: &mut Fields) -> Result<Option<BTreeMap<String, Vec<Hop>>>, InvalidField> {
    let Some(object) = object(fields, "routes", ROUTES)? else {
        return Ok(None);
    };
    let mut routes = BTreeMap::new();
    for (name, value) in object {
        let place = Place::new("routes").within(&name);
        let Value::Array(items) = &value else {
            let rule = "a list of members such as [\"cart\", \"payment\"]";
            return Err(place.wrong(&value, rule));
        };
        let hops = items.iter().zip(0..).map(|(item, at)| match item {
            Value::String(name) => Ok(Hop::from(name.clone())),
            other => Err(place.item(at).wrong(other, "the name of a member")),
        });
        routes.insert(name, hops.collect::<Result<_, _>>()?);
    }
    Ok(Some(routes))
}

fn edges(fields: &mut Fields) -> Result<Option<Vec<(String, String)>>, InvalidField> {
    let value = match fields.remove("edges") {
        None => return Ok(None),
        Some(input) => json_of("edges", input, EDGES)?,
    };
    let Value::Array(items) = &value else {
        return Err(Place::new("edges").wrong(&value, EDGES));
    };
    let edges = items
        .iter()
        .zip(0..)
        .map(|(item, at)| match item.as_array().map(Vec::as_slice) {
            Some([Value::String(from), Value::String(to)]) => Ok((from.clone(), to.clone())),
            _ => {
                let rule = "a pair of members, caller and callee, such as [\"frontend\", \"cart\"]";
                Err(Place::new("edges").item(at).wrong(item, rule))
            }
        });
    edges.collect::<Result<_, _>>().map(Some)
}

fn pool(fields: &mut Fields) -> Result<Option<Pool>, InvalidField> {
    let Some(object) = object(fields, "pool", POOL)? else {
        return Ok(None);
    };
    let place = Place::new("pool");
    place.only(&object, &["block_kb", "blocks", "payload_kb", "huge_pages"])?;
    let mut pool = Pool::default();
    if let Some(found) = object.get("block_kb") {
        let rule = "a power of two from 4 to 8192";
        pool.block_kb = place.within("block_kb").integer(
            found,
            *BLOCK_KB.start(),
            *BLOCK_KB.end(),
            Some(rule),
        )?;
    }
    if let Some(found) = object.get("blocks") {
        pool.blocks = place.within("blocks").integer(found, 1, MAX_BLOCKS, None)?;
    }
    if let Some(found) = object.get("payload_kb").filter(|found| !found.is_null()) {
        let rule = "a multiple of block_kb up to 65536, or null for one block";
        let payload_kb = place.within("payload_kb").integer(
            found,
            *PAYLOAD_KB.start(),
            *PAYLOAD_KB.end(),
            Some(rule),
        )?;
        pool.payload_kb = Some(payload_kb);
    }
    if let Some(found) = object.get("huge_pages") {
        let wrong = || place.within("huge_pages").wrong(found, "true or false");
        pool.huge_pages = found.as_bool().ok_or_else(wrong)?;
    }
    Ok(Some(pool))
}

fn transport(fields: &mut Fields) -> Result<Option<Transport>, InvalidField> {
    let names: Vec<_> = Transport::ALL
        .map(|one| format!("\"{}\"", one.as_str()))
        .into();
    let rule = format!("one of {}", names.join(", "));
    fields.take("transport", &rule, "a string", |input| {
        let name = input.string()?;
        Transport::ALL.into_iter().find(|one| one.as_str() == name)
    })
}

fn object(
    fields: &mut Fields,
    name: &'static str,
    rule: &str,
) -> Result<Option<Map<String, Value>>, InvalidField> {
    match fields.remove(name) {
        None => Ok(None),
        Some(input) => match json_of(name, input, rule)? {
            Value::Object(object) => Ok(Some(object)),
            other => Err(Place::new(name).wrong(&other, rule)),
        },
    }
}

fn json_of(name: &str, input: Input, rule: &str) -> Result<Value, InvalidField> {
    match input {
        Input::Json(value) => Ok(value),
        other => Err(other.invalid(name, format!("must be {rule}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::chain::Cpu;

    fn fields(value: Value) -> Fields {
        let Value::Object(object) = value else {
            panic!("an object")
        };
        Fields::from_json(object)
    }

    fn shop() -> Value {
        json!({
            "name": "shop",
            "members": {"cart": {"function": "cart", "version": 2, "concurrency": 8}, "pay": {"function": "p"}},
            "routes": {"checkout": ["cart", "gateway", "pay"]},
            "edges": [["cart", "pay"]],
            "pool": {"block_kb": 16, "blocks": 64, "payload_kb": 256, "huge_pages": true},
            "transport": "ring", "timeout_ms": 500, "public": true, "cpu": "proportional", "cpu_us": {"cart": 120, "pay": 9}, "cpu_cores": [2, 0],
            "triggers": [{"protocol": "tcp", "port": 9000}, {"protocol": "udp", "port": 9000, "route": "checkout"}],
            "port_limits": {"total": {"per_second": 9}},
        })
    }

    /// A place in a value, made if it is not there.
    fn place<'a>(of: &'a mut Value, parent: &str, name: &str) -> &'a mut Value {
        let parent = of.pointer_mut(parent).unwrap();
        match name.parse::<usize>() {
            Ok(at) if parent.is_array() => &mut parent[at],
            _ => &mut parent[name],
        }
    }

    #[test]
    fn every_setting_is_read_and_what_is_left_out_has_its_default() {
        let spec = create_chain(fields(shop())).unwrap();
        assert_eq!(serde_json::to_value(&spec).unwrap()["pool"], shop()["pool"]);
        assert_eq!(spec.members["cart"].version, Some(2));
        assert_eq!(spec.transport, Transport::Ring);
        assert!(spec.public && spec.timeout_ms == 500);
        assert_eq!((spec.cpu, spec.cpu_us["cart"]), (Cpu::Proportional, 120));
        assert_eq!(spec.cpu_cores, [2, 0]);
        assert!(spec.dedicated_cores().is_empty(), "they are shared");
        let lines: Vec<_> = spec.triggers.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["tcp 9000", "udp 9000 route checkout"]);
        let limit = spec.port_limits.total.unwrap();
        assert_eq!((limit.per_second, limit.burst), (9, 9));
        assert_eq!(spec.routes["checkout"][1], Hop::Gateway);

        let least = json!({"members": {"a": {"function": "f"}}, "routes": {"r": ["a"]}});
        let spec = replace_chain("shop", fields(least)).unwrap();
        assert_eq!(spec.pool, Pool::default());
        assert_eq!(spec.members["a"].concurrency, 1);
        assert_eq!((spec.timeout_ms, spec.public), (30_000, false));
        assert!(spec.cpu == Cpu::Shared && spec.cpu_us.is_empty() && spec.cpu_cores.is_empty());
        assert!(spec.edges.is_empty() && spec.transport == Transport::Auto);
        assert!(spec.triggers.is_empty() && spec.port_limits.is_none());
        assert_eq!(replace_chain("shop", fields(shop())).unwrap().name, "shop");
    }

    #[test]
    fn a_change_has_only_what_it_names() {
        let patch = patch_chain(fields(json!({"timeout_ms": 1, "pool": {"blocks": 2}}))).unwrap();
        assert_eq!(patch.fields(), ["pool", "timeout_ms"]);
        assert_eq!(
            patch.pool.unwrap().block_kb,
            64,
            "the pool is replaced whole"
        );
        for (body, field) in [
            (json!({}), "body"),
            (json!({"name": "x"}), "name"),
            (json!({"route": {}}), "route"),
        ] {
            assert_eq!(patch_chain(fields(body)).unwrap_err().field, field);
        }
        let other = replace_chain("another", fields(shop()));
        assert_eq!(other.unwrap_err().field, "name");
    }

    #[test]
    fn each_wrong_type_and_unknown_field_is_named() {
        for (pointer, value, field) in [
            ("/name", json!(7), "name"),
            ("/name", json!("A"), "name"),
            ("/members", json!([]), "members"),
            ("/members/cart", json!("cart"), "members.cart"),
            (
                "/members/cart/function",
                json!(null),
                "members.cart.function",
            ),
            ("/members/cart/version", json!("2"), "members.cart.version"),
            ("/members/cart/version", json!(1.5), "members.cart.version"),
            (
                "/members/cart/concurrency",
                json!(null),
                "members.cart.concurrency",
            ),
            (
                "/members/cart/payload",
                json!("bytes"),
                "members.cart.payload",
            ),
            ("/members/cart/memory", json!(1), "members.cart.memory"),
            ("/routes", json!("checkout"), "routes"),
            ("/routes/checkout", json!("cart"), "routes.checkout"),
            ("/routes/checkout", json!(["cart", 7]), "routes.checkout[1]"),
            (
                "/routes/checkout",
                json!(["cart", "x"]),
                "routes.checkout[1]",
            ),
            ("/edges", json!({}), "edges"),
            ("/edges", json!([["cart"]]), "edges[0]"),
            ("/edges", json!([["cart", "pay", "cart"]]), "edges[0]"),
            ("/edges", json!([["cart", "pay"], "cart"]), "edges[1]"),
            ("/pool", json!(64), "pool"),
            ("/pool/block_kb", json!(3), "pool.block_kb"),
            ("/pool/block_kb", json!(5), "pool.block_kb"),
            ("/pool/blocks", json!(-1), "pool.blocks"),
            ("/pool/payload_kb", json!("64"), "pool.payload_kb"),
            ("/pool/payload_kb", json!(1), "pool.payload_kb"),
            ("/pool/payload_kb", json!(24), "pool.payload_kb"),
            ("/pool/huge_pages", json!("yes"), "pool.huge_pages"),
            ("/pool/size", json!(1), "pool.size"),
            ("/transport", json!("tcp"), "transport"),
            ("/cpu", json!("all"), "cpu"),
            ("/cpu_us", json!(9), "cpu_us"),
            ("/cpu_cores", json!(2), "cpu_cores"),
            ("/cpu_cores", json!("2"), "cpu_cores"),
            ("/cpu_cores", json!([2, "3"]), "cpu_cores[1]"),
            ("/cpu_cores", json!([-1]), "cpu_cores[0]"),
            ("/cpu_cores", json!([0, 128]), "cpu_cores[1]"),
            ("/cpu_cores", json!([1, 0, 1]), "cpu_cores[2]"),
            ("/cpu_us", json!({"cart": 1}), "cpu_us.pay"),
            ("/cpu_us/cart", json!(0), "cpu_us.cart"),
            ("/cpu_us/basket", json!(1), "cpu_us.basket"),
            ("/transport", json!(null), "transport"),
            ("/timeout_ms", json!(0), "timeout_ms"),
            ("/public", json!("true"), "public"),
            ("/cores", json!(2), "cores"),
            ("/triggers", json!({}), "triggers"),
            ("/triggers/0/port", json!(0), "triggers[0].port"),
            ("/triggers/1/port", json!("9"), "triggers[1].port"),
            ("/triggers/0/route", json!(3), "triggers[0].route"),
            (
                "/triggers/1/route",
                json!(["checkout"]),
                "triggers[1].route",
            ),
            ("/triggers/1/route", json!("x"), "triggers[1].route"),
            ("/triggers/1/path", json!("x"), "triggers[1].path"),
            ("/triggers/1/mode", json!("raw"), "triggers[1].mode"),
            (
                "/port_limits/total",
                json!({"per_second": 0}),
                "port_limits.total.per_second",
            ),
            ("/port_limits", json!(9), "port_limits"),
        ] {
            let mut body = shop();
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            *place(&mut body, parent, name) = value;
            let found = create_chain(fields(body)).unwrap_err();
            assert_eq!(found.field, field, "{pointer}: {found}");
        }
        for required in ["name", "members", "routes"] {
            let mut body = shop();
            body.as_object_mut().unwrap().remove(required);
            let found = create_chain(fields(body)).unwrap_err();
            assert_eq!(
                (found.field.as_str(), found.value.as_str()),
                (required, "null")
            );
        }
    }
}
