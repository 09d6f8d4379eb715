//! The form for a load on `/lab`.

/// The form, as typed.
#[derive(Debug, Clone)]
pub struct LoadForm {
    /// A function, a path on this server, or an address.
    pub target: String,
    /// `GET`, `POST` or `PUT`; empty for `POST` with a body and `GET` without one.
    pub method: String,
    /// Body of each request.
    pub body: String,
    /// Headers, a line each.
    pub headers: String,
    /// `closed`, `open` or `bursts`.
    pub kind: String,
    /// Most connections at a time; empty for as many as the loop has by default.
    pub connections: String,
    /// Seconds to send for.
    pub duration: String,
    /// Requests of all bursts.
    pub count: String,
    /// Requests per second.
    pub rate: String,
    /// `fixed`, `exponential` or `step`.
    pub arrivals: String,
    /// The highest rate.
    pub to_rate: String,
    /// Requests of a burst.
    pub burst: String,
    /// Milliseconds before each.
    pub pause: String,
    /// Time limit of a request in ms.
    pub timeout: String,
    /// Whether connections are used again.
    pub keep_alive: bool,
}

impl Default for LoadForm {
    fn default() -> Self {
        Self {
            target: String::new(),
            method: String::new(),
            body: String::new(),
            headers: String::new(),
            kind: "closed".to_owned(),
            connections: String::new(),
            duration: "10".to_owned(),
            count: "1000".to_owned(),
            rate: "100".to_owned(),
            arrivals: "fixed".to_owned(),
            to_rate: "1000".to_owned(),
            burst: "100".to_owned(),
            pause: "1000".to_owned(),
            timeout: "30000".to_owned(),
            keep_alive: true,
        }
    }
}
