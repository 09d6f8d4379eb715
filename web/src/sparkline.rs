//! A small chart of requests and errors a second, drawn by the server and redrawn by `static/js/sparkline.js` in the same
//! shape.

use std::fmt::Write;

/// Width of the drawing, one unit a second.
pub const WIDTH: usize = 300;
/// Height of the drawing.
pub const HEIGHT: usize = 60;

/// Two areas over the last five minutes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sparkline {
    /// Path of the requests.
    pub requests: String,
    /// Path of the errors among them.
    pub errors: String,
    /// Most requests in one second.
    pub most: u32,
}

impl Sparkline {
    /// The paths of requests and errors in each second, oldest first; the newest is at the right edge.
    pub fn new(seconds: &[(u32, u32)]) -> Self {
        let shown = &seconds[seconds.len().saturating_sub(WIDTH)..];
        let most = shown
            .iter()
            .map(|(requests, _)| *requests)
            .max()
            .unwrap_or(0);
        let path = |values: &mut dyn Iterator<Item = u32>| area(values, shown.len(), most);
        Self {
            requests: path(&mut shown.iter().map(|(requests, _)| *requests)),
            errors: path(&mut shown.iter().map(|(_, errors)| *errors)),
            most,
        }
    }
}

/// Path of an area from the bottom; nothing for values that are all 0.
fn area(values: &mut dyn Iterator<Item = u32>, length: usize, most: u32) -> String {
    let mut path = String::new();
    let mut any = false;
    let left = WIDTH - length;
    for (index, value) in values.enumerate() {
        any |= value > 0;
        let height = HEIGHT as f64 * (1.0 - f64::from(value) / f64::from(most.max(1)));
        // Writing to a String cannot fail.
        let _ = write!(path, "L{} {height:.1}", left + index);
    }
    if any {
        format!("M{left} {HEIGHT}{path}V{HEIGHT}Z")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_second_is_at_the_right_edge() {
        let chart = Sparkline::new(&[(0, 0), (10, 0), (5, 5)]);
        assert_eq!(chart.most, 10);
        assert_eq!(chart.requests, "M297 60L297 60.0L298 0.0L299 30.0V60Z");
        assert_eq!(chart.errors, "M297 60L297 60.0L298 60.0L299 30.0V60Z");
        assert_eq!(Sparkline::new(&[(0, 0); 400]), Sparkline::default());
        assert_eq!(Sparkline::new(&[]), Sparkline::default());
    }
}
