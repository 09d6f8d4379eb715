//! The workloads: functions, routes, calls and load of each.

/// A chain with its functions.
pub struct Workload {
    /// Its key in addresses, and the name of its chain.
    pub key: &'static str,
    /// What it is called.
    pub label: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Name and source of each function; all are Python.
    pub functions: &'static [(&'static str, &'static str)],
    /// Its routes, of its functions.
    pub routes: &'static [(&'static str, &'static [&'static str])],
    /// Calls between its functions.
    pub calls: &'static [(&'static str, &'static [&'static str])],
    /// How many instances a function has in the chain, where it is not one: those that mostly wait for others.
    pub concurrency: &'static [(&'static str, u32)],
    /// How it is to be loaded, as JSON.
    pub load: &'static str,
}

macro_rules! source {
    ($file:literal) => {
        include_str!(concat!("../../../../workloads/", $file))
    };
}

/// All of them.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        key: "boutique",
        label: "Online boutique",
        summary: "Ten services of a shop that call each other: six tasks, from a look at the products to an order.",
        functions: &[
            ("boutique-frontend", source!("boutique/frontend.py")),
            ("boutique-currency", source!("boutique/currency.py")),
            (
                "boutique-productcatalog",
                source!("boutique/productcatalog.py"),
            ),
            ("boutique-cart", source!("boutique/cart.py")),
            (
                "boutique-recommendation",
                source!("boutique/recommendation.py"),
            ),
            ("boutique-shipping", source!("boutique/shipping.py")),
            ("boutique-checkout", source!("boutique/checkout.py")),
            ("boutique-payment", source!("boutique/payment.py")),
            ("boutique-email", source!("boutique/email.py")),
            ("boutique-ad", source!("boutique/ad.py")),
        ],
        routes: &[("shop", &["boutique-frontend"])],
        calls: &[
            (
                "boutique-frontend",
                &[
                    "boutique-currency",
                    "boutique-productcatalog",
                    "boutique-cart",
                    "boutique-recommendation",
                    "boutique-shipping",
                    "boutique-checkout",
                    "boutique-ad",
                ],
            ),
            (
                "boutique-checkout",
                &[
                    "boutique-cart",
                    "boutique-productcatalog",
                    "boutique-currency",
                    "boutique-shipping",
                    "boutique-payment",
                    "boutique-email",
                ],
            ),
        ],
        concurrency: &[("boutique-frontend", 4), ("boutique-checkout", 2)],
        load: source!("boutique/load.json"),
    },
    Workload {
        key: "motion",
        label: "Motion detection",
        summary: "A sensor and an actuator, 1 ms each: the light goes on where something moves.",
        functions: &[
            ("motion-sensor", source!("motion/sensor.py")),
            ("motion-actuator", source!("motion/actuator.py")),
        ],
        routes: &[("motion", &["motion-sensor", "motion-actuator"])],
        calls: &[],
        concurrency: &[],
        load: source!("motion/load.json"),
    },
    Workload {
        key: "parking",
        label: "Parking",
        summary: "Pictures of parking spaces: plates are detected, looked up, written down and charged, on two routes.",
        functions: &[
            ("parking-detection", source!("parking/detection.py")),
            ("parking-search", source!("parking/search.py")),
            ("parking-index", source!("parking/index.py")),
            ("parking-persist", source!("parking/persist.py")),
            ("parking-charging", source!("parking/charging.py")),
        ],
        routes: &[
            (
                "new-car",
                &[
                    "parking-detection",
                    "parking-search",
                    "parking-index",
                    "parking-persist",
                    "parking-charging",
                ],
            ),
            (
                "known-car",
                &["parking-detection", "parking-search", "parking-charging"],
            ),
        ],
        calls: &[],
        concurrency: &[],
        load: source!("parking/load.json"),
    },
];
