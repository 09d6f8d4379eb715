//! The line through points that is nearest to them (least squares).

/// `y = intercept + slope · x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Change of y with x.
    pub slope: f64,
    /// y where x is 0.
    pub intercept: f64,
    /// Share of the variance of y that the line explains (R²); 1 if y does not vary.
    pub explained: f64,
}

impl Line {
    /// The line nearest to these points; none if all have the same x.
    #[must_use]
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
        let sum = |of: fn(f64, f64) -> f64| {
            let each = points.iter().map(|(x, y)| of(x - mean_x, y - mean_y));
            each.sum::<f64>()
        };
        let (xx, xy, yy) = (sum(|x, _| x * x), sum(|x, y| x * y), sum(|_, y| y * y));
        // Neither no point nor one, nor many above each other.
        (xx > 0.0).then(|| {
            let slope = xy / xx;
            Self {
                slope,
                intercept: mean_y - slope * mean_x,
                explained: if yy > 0.0 { slope * xy / yy } else { 1.0 },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(line: Line, expected: [f64; 3]) {
        let found = [line.slope, line.intercept, line.explained];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{line:?}");
        }
    }

    #[test]
    fn a_line_is_found() {
        let exact = Line::through(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]);
        assert_near(exact.expect("a line"), [2.0, 3.0, 1.0]);
        let flat = Line::through(&[(1.0, 4.0), (3.0, 4.0)]);
        assert_near(flat.expect("a line"), [0.0, 4.0, 1.0]);
        // The first of Anscombe's quartet (The American Statistician 27 (1), 1973).
        let x = [10., 8., 13., 9., 11., 14., 6., 4., 12., 7., 5.];
        let y = [
            8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68,
        ];
        let points: Vec<_> = x.into_iter().zip(y).collect();
        let line = Line::through(&points).expect("a line");
        assert_near(line, [0.500_090_909, 3.000_090_909, 0.666_542_459]);
    }

    #[test]
    fn points_above_each_other_have_no_line() {
        assert_eq!(Line::through(&[]), None);
        assert_eq!(Line::through(&[(1.0, 2.0)]), None);
        assert_eq!(Line::through(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }
}
