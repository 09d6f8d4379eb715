//! What users of the online boutique do: tasks by weight, as SPRIGHT's Locust file has them, and the requests that each consists of.

use std::time::Duration;

use anyhow::Context;
use fastrand::Rng;
use serde_json::{Value, json};

use crate::client::request;

const PRODUCTS: [&str; 9] = [
    "0PUK6V6EV0",
    "1YMWWN1N4O",
    "2ZYFJ3GM2N",
    "66VCHSJNUP",
    "6E92ZMYYFZ",
    "9SIQT8TOJO",
    "L9ECAV7KIM",
    "LS4PSXUNUM",
    "OLJCESPC7Z",
];
const CURRENCIES: [&str; 4] = ["EUR", "USD", "JPY", "CAD"];

/// A request to the front end, with the calls that it makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sequence {
    Index,
    SetCurrency,
    BrowseProduct,
    ViewCart,
    AddToCart,
    Checkout,
}

impl Sequence {
    pub(super) const ALL: [Self; 6] = [
        Self::Index,
        Self::SetCurrency,
        Self::BrowseProduct,
        Self::ViewCart,
        Self::AddToCart,
        Self::Checkout,
    ];

    /// As tasks and the report call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::SetCurrency => "setCurrency",
            Self::BrowseProduct => "browseProduct",
            Self::ViewCart => "viewCart",
            Self::AddToCart => "addToCart",
            Self::Checkout => "checkout",
        }
    }

    /// What a task of this name sends, in order: one has to look at a product to put it into the cart, and to put one there to buy it.
    fn of_task(self) -> &'static [Self] {
        match self {
            Self::Index => &[Self::Index],
            Self::SetCurrency => &[Self::SetCurrency],
            Self::BrowseProduct => &[Self::BrowseProduct],
            Self::ViewCart => &[Self::ViewCart],
            Self::AddToCart => &[Self::BrowseProduct, Self::AddToCart],
            Self::Checkout => &[Self::BrowseProduct, Self::AddToCart, Self::Checkout],
        }
    }
}

/// How a request reaches its services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By the chain's front end.
    Chain,
    /// Each service over HTTP, one after the other.
    HopByHop,
}

/// A user's request: its steps are sent one after the other.
pub(super) struct Asked {
    pub(super) sequence: Sequence,
    pub(super) steps: Vec<Vec<u8>>,
}

/// The weights of the tasks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mix {
    weights: [u64; 6],
    quantities: Vec<u64>,
}

impl Mix {
    /// By the load profile that ships with the workload.
    pub(super) fn of(load: &Value) -> anyhow::Result<Self> {
        let mut weights = [0; 6];
        for (weight, task) in weights.iter_mut().zip(Sequence::ALL) {
            let found = load["tasks"][task.name()].as_u64();
            *weight = found.with_context(|| format!("no weight of {}", task.name()))?;
        }
        let quantities = load["quantities"].as_array().context("no quantities")?;
        let quantities: Vec<u64> = quantities.iter().filter_map(Value::as_u64).collect();
        anyhow::ensure!(
            !quantities.is_empty() && weights.iter().sum::<u64>() > 0,
            "a mix of nothing"
        );
        Ok(Self {
            weights,
            quantities,
        })
    }

    /// The task of this number below the sum of the weights.
    fn task(&self, mut number: u64) -> Sequence {
        for (weight, task) in self.weights.iter().zip(Sequence::ALL) {
            match number.checked_sub(*weight) {
                Some(left) => number = left,
                None => return task,
            }
        }
        Sequence::Index
    }

    /// A user's next task: its requests, without those that call no service where services are called one by one.
    pub(super) fn next(&self, way: Way, user: usize, random: &mut Rng) -> Vec<Asked> {
        let all: u64 = self.weights.iter().sum();
        let task = self.task(random.u64(..all));
        let product = PRODUCTS[random.usize(..PRODUCTS.len())];
        let quantity = self.quantities[random.usize(..self.quantities.len())];
        let currency = CURRENCIES[random.usize(..CURRENCIES.len())];
        let sequences = task.of_task().iter();
        let asked = sequences.map(|&sequence| Asked {
            sequence,
            steps: match way {
                Way::Chain => vec![by_chain(sequence, user, product, quantity, currency)],
                Way::HopByHop => one_by_one(sequence, user, product, quantity, currency),
            },
        });
        asked.filter(|asked| !asked.steps.is_empty()).collect()
    }
}

/// The request to the front end, as the reference's client sends it.
fn by_chain(
    sequence: Sequence,
    user: usize,
    product: &str,
    quantity: u64,
    currency: &str,
) -> Vec<u8> {
    let (method, path) = match sequence {
        Sequence::Index => ("GET", "?".to_owned()),
        Sequence::SetCurrency => ("POST", format!("/setCurrency?currency={currency}&")),
        Sequence::BrowseProduct => ("GET", format!("/product/{product}?")),
        Sequence::ViewCart => ("GET", "/cart?".to_owned()),
        Sequence::AddToCart => (
            "POST",
            format!("/cart?product={product}&quantity={quantity}&"),
        ),
        Sequence::Checkout => ("POST", "/cart/checkout?".to_owned()),
    };
    let path = format!("/chain/boutique/shop{path}user=u{user}");
    request(method, &path, b"")
}

/// The calls of a sequence, as the front end and `checkout` make them for a cart with this one item.
fn one_by_one(
    sequence: Sequence,
    user: usize,
    product: &str,
    quantity: u64,
    currency: &str,
) -> Vec<Vec<u8>> {
    let call = |service: &str, event: Value| {
        let path = format!("/api/v1/functions/boutique-{service}/invoke");
        request("POST", &path, event.to_string().as_bytes())
    };
    let user = format!("u{user}");
    let items = json!({ product: quantity });
    let currencies = || call("currency", json!({"do": "GetSupportedCurrencies"}));
    let convert = || {
        let event = json!({"do": "Convert", "cents": 899, "to": currency});
        call("currency", event)
    };
    let cart = |what: &str| call("cart", json!({"do": what, "user": user}));
    let shown = || {
        let event = json!({"do": "GetProduct", "product": product});
        call("productcatalog", event)
    };
    let recommended = || {
        let event = json!({"do": "ListRecommendations", "products": [product]});
        call("recommendation", event)
    };
    let shipping = |what: &str| call("shipping", json!({"do": what, "items": items}));
    let ad = || call("ad", json!({"do": "GetAds"}));
    match sequence {
        Sequence::Index => vec![
            currencies(),
            call("productcatalog", json!({"do": "ListProducts"})),
            cart("GetCart"),
            ad(),
        ],
        Sequence::SetCurrency => Vec::new(),
        Sequence::BrowseProduct => vec![
            shown(),
            currencies(),
            cart("GetCart"),
            convert(),
            recommended(),
            ad(),
        ],
        Sequence::ViewCart => vec![
            currencies(),
            cart("GetCart"),
            recommended(),
            shipping("GetQuote"),
            convert(),
            shown(),
            convert(),
        ],
        Sequence::AddToCart => {
            let item =
                json!({"do": "AddItem", "user": user, "product": product, "quantity": quantity});
            vec![shown(), call("cart", item)]
        }
        Sequence::Checkout => {
            let charge = json!({"do": "Charge", "cents": 899, "currency": currency});
            let order = json!({
                "items": [{"product": product, "quantity": quantity}],
                "total_cents": 899,
                "currency": currency,
            });
            let confirmation =
                json!({"do": "SendOrderConfirmation", "to": "someone@example.com", "order": order});
            vec![
                cart("GetCart"),
                shown(),
                convert(),
                shipping("GetQuote"),
                convert(),
                call("payment", charge),
                shipping("ShipOrder"),
                cart("EmptyCart"),
                call("email", confirmation),
                recommended(),
                currencies(),
            ]
        }
    }
}

/// When tasks are due that come at this mean rate, independently of each other: offsets from the beginning, in order.
pub(super) fn arrivals(per_second: f64, time: Duration, random: &mut Rng) -> Vec<Duration> {
    let mut due = Vec::new();
    let mut at = 0.0;
    loop {
        // From 0 exclusively.
        at -= (1.0 - random.f64()).ln() / per_second;
        if at >= time.as_secs_f64() {
            return due;
        }
        due.push(Duration::from_secs_f64(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> Mix {
        let load = include_str!("../../../../server/workloads/boutique/load.json");
        Mix::of(&serde_json::from_str(load).expect("JSON")).expect("a mix")
    }

    #[test]
    fn tasks_come_by_the_weights_of_the_profile() {
        let mix = shipped();
        let sum: u64 = mix.weights.iter().sum();
        let mut counts = [0; 6];
        for number in 0..sum {
            counts[mix.task(number) as usize] += 1;
        }
        assert_eq!(counts, [1, 2, 10, 3, 2, 1]);
        assert!(Mix::of(&json!({"tasks": {"index": 1}, "quantities": [1]})).is_err());
        let nothing = Sequence::ALL.map(|task| (task.name().to_owned(), json!(0)));
        let nothing = Value::Object(nothing.into_iter().collect());
        assert!(Mix::of(&json!({"tasks": nothing, "quantities": [1]})).is_err());
    }

    #[test]
    fn who_buys_has_looked_and_filled_the_cart_before() {
        let mix = Mix {
            weights: [0, 0, 0, 0, 0, 1],
            quantities: vec![3],
        };
        let mut random = Rng::with_seed(1);
        let asked = mix.next(Way::Chain, 7, &mut random);
        let heads: Vec<String> = asked
            .iter()
            .map(|asked| String::from_utf8_lossy(&asked.steps[0]).into_owned())
            .collect();
        assert!(heads[0].starts_with("GET /chain/boutique/shop/product/"));
        assert!(heads[1].starts_with("POST /chain/boutique/shop/cart?product="));
        assert!(heads[1].contains("&quantity=3&user=u7 HTTP/1.1"));
        assert!(heads[2].starts_with("POST /chain/boutique/shop/cart/checkout?user=u7 "));
    }

    /// The descriptors that the reference's sequences send, with one item: two for the request, two for each call.
    #[test]
    fn each_sequence_has_as_many_calls_as_the_reference() {
        let calls =
            Sequence::ALL.map(|sequence| one_by_one(sequence, 1, PRODUCTS[0], 1, "EUR").len());
        let descriptors = [10, 2, 14, 16, 6, 26];
        // Of the order's, two are those of the call of `checkout`.
        let other = [0, 0, 0, 0, 0, 2];
        for ((calls, descriptors), other) in calls.iter().zip(descriptors).zip(other) {
            assert_eq!(2 + 2 * calls + other, descriptors);
        }
    }

    #[test]
    fn nothing_is_asked_where_nothing_is_called() {
        let mix = Mix {
            weights: [0, 1, 0, 0, 0, 0],
            quantities: vec![1],
        };
        let mut random = Rng::with_seed(1);
        assert!(mix.next(Way::HopByHop, 1, &mut random).is_empty());
        assert_eq!(mix.next(Way::Chain, 1, &mut random).len(), 1);
    }

    #[test]
    fn arrivals_have_the_rate_and_are_in_order() {
        let due = arrivals(1_000.0, Duration::from_secs(20), &mut Rng::with_seed(4));
        assert!(due.is_sorted() && due.last() < Some(&Duration::from_secs(20)));
        // Six standard deviations.
        assert!((19_150..20_850).contains(&due.len()), "{}", due.len());
    }
}
