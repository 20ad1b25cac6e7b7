//! Means and standard errors over seeds, and how they are written.

/// A mean over runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    /// Standard error of the mean; one run has none.
    pub error: Option<f64>,
    pub n: usize,
}

impl Estimate {
    /// `None` of nothing.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (n > 1).then(|| (squares / (n as f64 - 1.0) / n as f64).sqrt());
        Some(Self { mean, error, n })
    }

    /// The error with two digits and the mean with as many places: `0.0173 ± 0.0012`. One number has four digits.
    pub fn text(&self) -> String {
        written(self.mean, self.error)
    }
}

/// A value and its error, if it has one.
pub fn written(mean: f64, error: Option<f64>) -> String {
    // Equal numbers may have a mean that is off in its last digit.
    let Some(error) = error.filter(|error| *error > 1e-12 * mean.abs()) else {
        let exact = error.map_or("", |_| " ± 0");
        return format!("{}{exact}", four_digits(mean));
    };
    if !mean.is_finite() || !error.is_finite() {
        return format!("{} ± {}", four_digits(mean), four_digits(error));
    }
    let size = mean.abs().max(error);
    if !(1e-3..1e6).contains(&size) {
        let exponent = size.log10().floor() as i32;
        let unit = 10f64.powi(exponent);
        let (mean, error) = (mean / unit, error / unit);
        let places = places(mean, error);
        return minus(format!(
            "({mean:.places$} ± {error:.places$}) × 10{}",
            superscript(exponent)
        ));
    }
    let places = places(mean, error);
    minus(format!("{mean:.places$} ± {error:.places$}"))
}

/// Decimal places that show two digits of `error`, or one where the mean would get more than six.
fn places(mean: f64, error: f64) -> usize {
    let one = -error.log10().floor();
    let six = 5.0 - mean.abs().max(error).log10().floor();
    (one + 1.0).min(six.max(one)).clamp(0.0, 15.0) as usize
}

/// A number with four significant digits.
pub fn four_digits(value: f64) -> String {
    if !value.is_finite() {
        return "not finite".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let exponent = value.abs().log10().floor() as i32;
    if (-4..6).contains(&exponent) {
        let places = (3 - exponent).max(0) as usize;
        return minus(format!("{value:.places$}"));
    }
    let mantissa = value / 10f64.powi(exponent);
    minus(format!("{mantissa:.3} × 10{}", superscript(exponent)))
}

/// A whole number with its thousands apart.
pub fn whole(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("−{text}") } else { text }
}

/// With the sign of minus instead of a hyphen.
pub fn minus(text: String) -> String {
    text.replace('-', "−")
}

pub fn superscript(exponent: i32) -> String {
    exponent
        .to_string()
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            c => char::from_u32('⁰' as u32 + c as u32 - '0' as u32).unwrap_or(c),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Of 1, 2, 4, 5: mean 3, squared deviations 4 + 1 + 1 + 4 = 10, variance 10/3, error √(10/12).
    #[test]
    fn the_standard_error_is_that_of_the_mean() {
        let found = Estimate::of(&[1.0, 2.0, 4.0, 5.0]).unwrap();
        assert_eq!((found.mean, found.n), (3.0, 4));
        assert!((found.error.unwrap() - (10f64 / 12.0).sqrt()).abs() < 1e-15);
        assert_eq!(Estimate::of(&[2.5]).unwrap().error, None);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn errors_decide_how_many_places_are_shown() {
        assert_eq!(written(27.5432, Some(0.4218)), "27.54 ± 0.42");
        assert_eq!(written(0.017291, Some(0.00123)), "0.0173 ± 0.0012");
        assert_eq!(written(-12345.6, Some(789.0)), "−12346 ± 789");
        assert_eq!(written(-0.0000389, Some(0.0000041)), "(−3.89 ± 0.41) × 10⁻⁵");
        assert_eq!(written(0.01018659, Some(0.00000077)), "0.0101866 ± 0.0000008");
        assert_eq!(written(2.0, Some(0.0)), "2.000 ± 0");
        assert_eq!(written(-1.5518, Some(2e-16)), "−1.552 ± 0");
        assert_eq!(written(-3.5451173, None), "−3.545");
        assert_eq!(written(0.00001234567, None), "1.235 × 10⁻⁵");
        assert_eq!(written(f64::NAN, None), "not finite");
        assert_eq!(whole(1234567.0), "1,234,567");
        assert_eq!(superscript(-10), "⁻¹⁰");
    }
}
