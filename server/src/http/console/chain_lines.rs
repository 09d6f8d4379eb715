//! A chain's settings as lines of text, and back as the API expects them.

use std::fmt::Write as _;

use hearth_web::pages::ChainForm;
use serde_json::{Map, Value, json};

use crate::http::spec::{Fields, Input, invalid};
use crate::model::InvalidField;
use crate::model::chain::{PayloadForm, Settings};

use super::form::Form;
use super::ports_form;

const MEMBER: &str = "must be a member in each line, such as \"cart: cart-function\", \"cart: cart-function version 3\", \
                      \"cart: cart-function x2\" or \"cart: cart-function block\"";
const ROUTE: &str = "must be a route in each line, such as \"checkout: cart, payment\"";
const CPU_US: &str = "must be a member and its µs in each line, such as \"cart: 120\"";
const EDGE: &str = "must be a call in each line, such as \"frontend -> cart\"";

/// The settings as the form shows them.
pub(super) fn present(settings: &Settings) -> ChainForm {
    let mut members = String::new();
    for (name, member) in &settings.members {
        // A `String` takes whatever is written.
        let _ = write!(members, "{name}: {}", member.function);
        if let Some(version) = member.version {
            let _ = write!(members, " version {version}");
        }
        if member.concurrency != 1 {
            let _ = write!(members, " x{}", member.concurrency);
        }
        if member.payload == PayloadForm::Block {
            members.push_str(" block");
        }
        members.push('\n');
    }
    let mut routes = String::new();
    for (name, hops) in &settings.routes {
        let hops: Vec<_> = hops.iter().map(|hop| hop.as_str()).collect();
        let _ = writeln!(routes, "{name}: {}", hops.join(", "));
    }
    let edges: Vec<_> = settings
        .edges
        .iter()
        .map(|(from, to)| format!("{from} -> {to}"))
        .collect();
    let constants: Vec<_> = settings
        .cpu_us
        .iter()
        .map(|(member, us)| format!("{member}: {us}"))
        .collect();
    let cores: Vec<_> = settings.cpu_cores.iter().map(u32::to_string).collect();
    ChainForm {
        name: String::new(),
        members,
        routes,
        edges: edges.join("\n"),
        block_kb: settings.pool.block_kb.to_string(),
        blocks: settings.pool.blocks.to_string(),
        payload_kb: settings
            .pool
            .payload_kb
            .map_or_else(String::new, |kb| kb.to_string()),
        huge_pages: settings.pool.huge_pages,
        transport: settings.transport.as_str().to_owned(),
        timeout_ms: settings.timeout_ms.to_string(),
        cpu: settings.cpu.as_str().to_owned(),
        cpu_us: constants.join("\n"),
        cpu_cores: cores.join(", "),
        public: settings.public,
        triggers: ports_form::present(&settings.triggers),
        port_limits: ports_form::present_limits(settings.port_limits),
    }
}

/// What was typed.
pub(super) fn typed(form: &Form) -> ChainForm {
    let checked = |name: &str| form.text(name) == "true";
    ChainForm {
        name: form.trimmed("name"),
        members: form.lines("members"),
        routes: form.lines("routes"),
        edges: form.lines("edges"),
        block_kb: form.trimmed("block_kb"),
        blocks: form.trimmed("blocks"),
        payload_kb: form.trimmed("payload_kb"),
        huge_pages: checked("huge_pages"),
        transport: form.trimmed("transport"),
        timeout_ms: form.trimmed("timeout_ms"),
        cpu: form.trimmed("cpu"),
        cpu_us: form.lines("cpu_us"),
        cpu_cores: form.trimmed("cpu_cores"),
        public: checked("public"),
        triggers: ports_form::typed(form),
        port_limits: ports_form::typed_limits(form),
    }
}

/// The settings as the API expects them. Numbers that are out of range, and what is none, are passed on for its rules to
/// reject.
pub(super) fn fields(form: &ChainForm, named: bool) -> Result<Fields, InvalidField> {
    let mut fields = Fields::default();
    let mut add = |name: &str, value: Value| fields.add(name.to_owned(), Input::Json(value));
    if named {
        add("name", form.name.as_str().into())?;
    }
    add(
        "members",
        named_lines(&form.members, "members", MEMBER, member)?,
    )?;
    add("routes", named_lines(&form.routes, "routes", ROUTE, route)?)?;
    let edges = lines(&form.edges).map(|line| {
        let pair = line.split_once("->").or_else(|| line.split_once('→'));
        let edge = pair.map(|(from, to)| json!([from.trim(), to.trim()]));
        edge.ok_or_else(|| invalid("edges", &line.into(), EDGE))
    });
    add("edges", edges.collect::<Result<Value, _>>()?)?;
    let pool = json!({
        "block_kb": number(&form.block_kb), "blocks": number(&form.blocks), "payload_kb": optional(&form.payload_kb),
        "huge_pages": form.huge_pages,
    });
    add("pool", pool)?;
    add("transport", form.transport.as_str().into())?;
    add("timeout_ms", number(&form.timeout_ms))?;
    add("cpu", form.cpu.as_str().into())?;
    let constant = |rest: &str| Some(number(rest));
    add(
        "cpu_us",
        named_lines(&form.cpu_us, "cpu_us", CPU_US, constant)?,
    )?;
    let cores = form
        .cpu_cores
        .split([',', ' '])
        .filter(|core| !core.is_empty());
    add("cpu_cores", cores.map(number).collect())?;
    add("public", form.public.into())?;
    add("triggers", ports_form::routed_value(&form.triggers)?)?;
    add("port_limits", ports_form::limits_value(&form.port_limits)?)?;
    Ok(fields)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// `name: rest` of each line. A name that occurs twice would hide a line.
fn named_lines(
    text: &str,
    field: &'static str,
    rule: &str,
    read: impl Fn(&str) -> Option<Value>,
) -> Result<Value, InvalidField> {
    let mut object = Map::new();
    for line in lines(text) {
        let item = line.split_once(':').and_then(|(name, rest)| {
            let name = name.trim();
            Some((name.to_owned(), read(rest.trim())?))
        });
        let Some((name, value)) = item else {
            return Err(invalid(field, &line.into(), rule));
        };
        if object.contains_key(&name) {
            let rule = format!("must have {name:?} in one line only");
            return Err(invalid(field, &line.into(), rule));
        }
        object.insert(name, value);
    }
    Ok(Value::Object(object))
}

fn member(rest: &str) -> Option<Value> {
    let mut words = rest.split_whitespace();
    let mut member = json!({"function": words.next()?});
    while let Some(word) = words.next() {
        let (field, text) = match word {
            "block" => {
                if member.get("payload").is_some() {
                    return None;
                }
                member["payload"] = "block".into();
                continue;
            }
            "version" => ("version", words.next()?),
            word => ("concurrency", word.strip_prefix(['x', '×'])?),
        };
        if member.get(field).is_some() {
            return None;
        }
        member[field] = text.parse::<u64>().ok()?.into();
    }
    Some(member)
}

fn route(rest: &str) -> Option<Value> {
    let hops: Vec<_> = rest
        .split([',', '→'])
        .map(str::trim)
        .filter(|hop| !hop.is_empty())
        .collect();
    (!hops.is_empty()).then(|| json!(hops))
}

/// Nothing where nothing was typed.
fn optional(text: &str) -> Value {
    match text {
        "" => Value::Null,
        text => number(text),
    }
}

fn number(text: &str) -> Value {
    text.parse::<u64>()
        .map_or_else(|_| text.into(), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::spec::replace_chain;
    use crate::model::chain::Spec;

    fn shop() -> ChainForm {
        ChainForm {
            members: "cart: cart-py version 3 x2 block\n\n pay : payment\n".into(),
            routes: "checkout: cart, pay\nback: cart → gateway → pay".into(),
            edges: "cart -> pay\n".into(),
            block_kb: "16".into(),
            blocks: "64".into(),
            payload_kb: "256".into(),
            transport: "ring".into(),
            timeout_ms: "500".into(),
            cpu: "proportional".into(),
            cpu_us: "cart: 120\npay: 9".into(),
            cpu_cores: "3, 1".into(),
            public: true,
            triggers: "tcp 9000\nudp 9001 route back".into(),
            ..ChainForm::default()
        }
    }

    fn read(form: &ChainForm) -> Result<Spec, InvalidField> {
        replace_chain("shop", fields(form, false)?)
    }

    #[test]
    fn what_is_shown_is_read_back_the_same() {
        let spec = read(&shop()).unwrap();
        assert_eq!(spec.members["cart"].version, Some(3));
        assert_eq!(spec.members["cart"].concurrency, 2);
        assert_eq!(spec.routes["back"].len(), 3);
        assert_eq!(spec.pool.payload_kb, Some(256));
        assert_eq!(spec.triggers[1].route(), Some("back"));
        assert_eq!(spec.cpu_us["cart"], 120);
        assert_eq!(spec.cpu_cores, [3, 1]);
        let shown = present(&spec.clone().into());
        assert_eq!(
            shown.members,
            "cart: cart-py version 3 x2 block\npay: payment\n"
        );
        assert_eq!(read(&shown).unwrap(), spec);
    }

    #[test]
    fn each_wrong_line_names_its_field() {
        let with = |change: fn(&mut ChainForm)| {
            let mut form = shop();
            change(&mut form);
            read(&form).unwrap_err().field
        };
        assert_eq!(with(|form| form.members = "cart".into()), "members");
        assert_eq!(
            with(|form| form.members = "cart: f version".into()),
            "members"
        );
        assert_eq!(
            with(|form| form.members = "cart: f x2 x3".into()),
            "members"
        );
        assert_eq!(with(|form| form.members = "cart: f 3".into()), "members");
        assert_eq!(
            with(|form| form.members = "cart: f\ncart: g".into()),
            "members"
        );
        assert_eq!(
            with(|form| form.members = "cart: f x99".into()),
            "members.cart.concurrency"
        );
        assert_eq!(with(|form| form.routes = "checkout: ,".into()), "routes");
        assert_eq!(
            with(|form| form.routes = "checkout: cart, x".into()),
            "routes.checkout[1]"
        );
        assert_eq!(with(|form| form.edges = "cart pay".into()), "edges");
        assert_eq!(with(|form| form.edges = "cart -> x".into()), "edges[0][1]");
        assert_eq!(with(|form| form.cpu = "all".into()), "cpu");
        assert_eq!(with(|form| form.cpu_us = "cart".into()), "cpu_us");
        assert_eq!(with(|form| form.cpu_cores = "1 x".into()), "cpu_cores[1]");
        assert_eq!(with(|form| form.cpu_us = "cart: x".into()), "cpu_us.cart");
        assert_eq!(with(|form| form.triggers = "udp".into()), "triggers");
        assert_eq!(
            with(|form| form.triggers = "udp 1 route x".into()),
            "triggers[0].route"
        );
        assert_eq!(
            with(|form| form.port_limits.total_burst = "1".into()),
            "limit_total_rate"
        );
        assert_eq!(with(|form| form.blocks = "many".into()), "pool.blocks");
        assert_eq!(
            with(|form| form.payload_kb = "some".into()),
            "pool.payload_kb"
        );
        assert_eq!(
            with(|form| form.payload_kb = "20".into()),
            "pool.payload_kb"
        );
        assert_eq!(with(|form| form.timeout_ms = String::new()), "timeout_ms");
    }
}
