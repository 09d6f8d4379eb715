//! Plots as SVG, in the style of `benches`: the colours follow the reader's scheme, light or dark; the background is the page's.
//!
//! - [`bursts`]: the requests of each burst.
//! - [`cdf`]: distributions of latencies.
//! - [`curve`]: one quantity against another.
//! - [`forest`]: one line per comparison, with its interval.
//! - [`histogram`]: the same as counts.
//! - [`percentiles`]: the same as bars. `scale`: the axis of these.
//! - [`stack`]: parts of a whole.
//! - [`versions`]: latency over time, version by version.
//! - [`format`]: numbers for people.

pub mod bursts;
pub mod cdf;
pub mod curve;
pub mod forest;
pub mod format;
pub mod histogram;
pub mod percentiles;
mod scale;
pub mod stack;
pub mod versions;

/// Text for an element's content or an attribute.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The beginning of a plot of this size.
fn open(title: &str, style: &str, width: f64, height: f64) -> String {
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\">\n<title>{title}</title>\n<style>{style}</style>\n"
    )
}
