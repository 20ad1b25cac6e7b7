//! Maps numbers to places along an axis, and chooses the numbers that are written beside it.

use super::super::statistics::{minus, superscript};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Linear,
    /// Of any base: only ticks differ.
    Logarithmic,
    /// To either side of 0, beyond this number.
    Signed(f64),
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
    pub ticks: Vec<(f64, String)>,
}

/// Ticks that an axis should have, more or less.
const TICKS: f64 = 5.0;
/// Numbers from here on cannot be told from infinite ones, nor their differences.
const INFINITE: f64 = 1e300;
/// Never more than these.
const MOST_TICKS: usize = 20;
/// From this ratio on, numbers are shown by their logarithms.
const LOGARITHMIC: f64 = 60.0;
/// Orders of magnitude that are told apart to either side of 0.
const SIGNED_DECADES: i32 = 4;

impl Scale {
    /// For means and the ends of their bars or bands: logarithmic where the means span orders of magnitude, to either
    /// side of 0 if need be.
    pub fn of(means: impl Iterator<Item = f64>, ends: impl Iterator<Item = f64>) -> Self {
        let mut means: Vec<_> = means.filter(|value| value.abs() < INFINITE).collect();
        let (low, high) = range(means.iter().copied());
        let reached = |ends: &mut dyn Iterator<Item = f64>| range(ends.chain([low, high]));
        if low > 0.0 && high / low >= LOGARITHMIC {
            // A bar that comes close to 0, or below, does not decide what is shown.
            let (low, high) = reached(&mut ends.filter(|end| *end > low / 3.0));
            return Self::decades(low, high);
        }
        means.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let (typical, largest) = (means.get(means.len() / 2), means.last());
        let (signed, mut ends) = (low <= 0.0, ends);
        let (low, high) = reached(&mut ends);
        match (typical.map(|value| value.abs()), largest.map(|value| value.abs())) {
            (Some(typical), Some(largest)) if signed && largest > LOGARITHMIC * typical => {
                Self::signed(low, high, typical, largest)
            }
            _ => Self::linear(low, high),
        }
    }

    /// For steps, from 0.
    pub fn from_zero(high: f64) -> Self {
        let high = if high > 0.0 { high } else { 1.0 };
        Self {
            kind: Kind::Linear,
            low: 0.0,
            high,
            ticks: linear_ticks(0.0, high),
        }
    }

    /// For values that somebody chose: each has a tick, and powers are evenly apart.
    pub fn swept(values: &[f64]) -> Self {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (low, high) = range(values.iter().copied());
        let positive = low > 0.0;
        let powers = |base: f64| {
            positive
                && values.iter().all(|value| {
                    let power = (value / low).ln() / base.ln();
                    (power - power.round()).abs() < 1e-9
                })
        };
        let logarithmic =
            values.len() > 1 && (powers(2.0) || powers(10.0) || (positive && high / low >= 16.0));
        let ticks = values.iter().map(|value| (*value, plain(*value))).collect();
        if logarithmic {
            let room = (high / low).powf(0.08);
            return Self {
                kind: Kind::Logarithmic,
                low: low / room,
                high: high * room,
                ticks,
            };
        }
        let room = if high > low { (high - low) * 0.08 } else { 0.5 };
        Self {
            kind: Kind::Linear,
            low: low - room,
            high: high + room,
            ticks,
        }
    }

    fn linear(low: f64, high: f64) -> Self {
        let room = match high - low {
            span if span > 0.0 => span * 0.07,
            _ if low == 0.0 => 1.0,
            _ => low.abs() * 0.1,
        };
        // What is not negative does not reach below 0.
        let floor = if low >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
        let (low, high) = ((low - room).max(floor), high + room);
        Self {
            kind: Kind::Linear,
            low,
            high,
            ticks: linear_ticks(low, high),
        }
    }

    /// Linear around 0, up to about what is typical, and logarithmic beyond.
    fn signed(low: f64, high: f64, typical: f64, largest: f64) -> Self {
        let last = largest.log10().floor() as i32;
        let first = (typical.log10().floor() as i32).max(last - SIGNED_DECADES);
        let every = (last - first) / 3 + 1;
        let exponents: Vec<_> = (first..=last).rev().step_by(every as usize).collect();
        let below = exponents.iter().map(|exponent| (-1.0, *exponent));
        let above = exponents.iter().rev().map(|exponent| (1.0, *exponent));
        let values = below.chain([(0.0, 0)]).chain(above);
        let mut scale = Self {
            kind: Kind::Signed(10f64.powi(first)),
            low,
            high,
            ticks: Vec::new(),
        };
        // Room at both ends, as on other scales, but by place.
        let unit = 10f64.powi(first);
        let (from, to) = ((low / unit).asinh(), (high / unit).asinh());
        let room = (to - from) * 0.06;
        (scale.low, scale.high) = ((from - room).sinh() * unit, (to + room).sinh() * unit);
        scale.ticks = values
            .map(|(sign, exponent)| sign * 10f64.powi(exponent))
            .filter(|value| scale.shows(*value))
            // Words beside 0 must not run into it.
            .filter(|value| *value == 0.0 || (scale.place(*value) - scale.place(0.0)).abs() > 0.07)
            .map(|value| (value, plain(value)))
            .collect();
        scale
    }

    fn decades(low: f64, high: f64) -> Self {
        let room = (high / low).powf(0.05);
        let (low, high) = (low / room, high * room);
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let few = high / low < 1e3;
        let every = ((last - first) / 6 + 1).max(1);
        let multiples: &[f64] = if few { &[1.0, 3.0] } else { &[1.0] };
        let ticks = (first..=last)
            .filter(|exponent| exponent % every == 0)
            .flat_map(|exponent| multiples.iter().map(move |multiple| (*multiple, exponent)))
            .map(|(multiple, exponent)| (multiple * 10f64.powi(exponent), multiple, exponent))
            .filter(|(value, ..)| (low..=high).contains(value))
            .map(|(value, multiple, exponent)| {
                let text = match exponent {
                    -3..=4 => plain(value),
                    _ if multiple == 1.0 => format!("10{}", superscript(exponent)),
                    _ => format!("{multiple}·10{}", superscript(exponent)),
                };
                (value, text)
            })
            .collect();
        Self {
            kind: Kind::Logarithmic,
            low,
            high,
            ticks,
        }
    }

    pub fn is_logarithmic(&self) -> bool {
        self.kind == Kind::Logarithmic
    }

    pub fn is_signed(&self) -> bool {
        matches!(self.kind, Kind::Signed(_))
    }

    /// 0 at the low end, 1 at the high one.
    pub fn place(&self, value: f64) -> f64 {
        let share = |low: f64, high: f64, value: f64| (value - low) / (high - low);
        match self.kind {
            Kind::Linear => share(self.low, self.high, value),
            // What has no logarithm lies below.
            Kind::Logarithmic if value <= 0.0 => -1.0,
            Kind::Signed(unit) => share(
                (self.low / unit).asinh(),
                (self.high / unit).asinh(),
                (value / unit).asinh(),
            ),
            Kind::Logarithmic => share(self.low.ln(), self.high.ln(), value.ln()),
        }
    }

    /// Whether a value lies on it.
    pub fn shows(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.abs() < INFINITE);
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let rough = (high - low) / TICKS;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|multiple| multiple * power)
        .into_iter()
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(power * 10.0);
    // Numbers that differ in their last digits only have no ticks between them.
    if !step.is_normal() {
        return Vec::new();
    }
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last)
        .take(MOST_TICKS)
        .map(|i| i as f64 * step)
        .map(|value| (value, tick_text(value, step)))
        .collect()
}

/// With as many places as the step needs.
fn tick_text(value: f64, step: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if step >= 1000.0 && value.abs() >= 10_000.0 {
        return minus(format!("{}k", value / 1000.0));
    }
    if step < 1e-5 || value.abs() >= 1e7 {
        return minus(format!("{value:.1e}"));
    }
    let places = (-step.log10().floor()).max(0.0) as usize;
    minus(format!("{value:.places$}"))
}

fn plain(value: f64) -> String {
    let rounded: f64 = format!("{value:.6e}").parse().unwrap_or(value);
    match rounded.abs() {
        size if size != 0.0 && !(1e-4..1e6).contains(&size) => minus(format!("{rounded:e}")),
        _ => minus(rounded.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(means: impl IntoIterator<Item = f64>) -> Scale {
        Scale::of(means.into_iter(), std::iter::empty())
    }

    fn texts(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            texts(&Scale::from_zero(2000.0)),
            ["0", "500", "1000", "1500", "2000"]
        );
        assert_eq!(
            texts(&Scale::from_zero(40_000.0)),
            ["0", "10k", "20k", "30k", "40k"]
        );
        let scale = of([-0.031, 0.022]);
        assert_eq!(
            texts(&scale),
            ["−0.02", "0.00", "0.02"].map(|text| if text == "0.00" { "0" } else { text })
        );
        assert!((scale.place(-0.031) - 0.07 / 1.14).abs() < 1e-12);
    }

    #[test]
    fn orders_of_magnitude_are_shown_by_logarithms() {
        let scale = of([0.5, 500.0]);
        assert!(scale.is_logarithmic());
        assert_eq!(texts(&scale), ["1", "10", "100"]);
        assert!(!of([-1.0, 500.0]).is_logarithmic());
        assert!(!of([10.0, 500.0]).is_logarithmic());
    }

    #[test]
    fn bars_are_shown_whole_unless_there_is_no_logarithm_for_them() {
        let scale = Scale::of([1.0, 2.0].into_iter(), [-3.0, 5.0].into_iter());
        assert!(!scale.is_logarithmic() && scale.shows(-3.0) && scale.shows(5.0));
        let scale = Scale::of([1.0, 200.0].into_iter(), [-3.0, 0.001, 500.0].into_iter());
        assert!(scale.is_logarithmic() && !scale.shows(0.1) && scale.shows(500.0));
    }

    #[test]
    fn outliers_to_either_side_of_zero_do_not_flatten_the_rest() {
        let values = (0..100).map(|i| f64::from(i) / 100.0 - 0.5).chain([-1500.0]);
        let scale = of(values);
        assert!(scale.is_signed());
        assert_eq!(texts(&scale), ["−1000", "−10", "0"]);
        let [far, low, high] = [-1500.0, -0.4, 0.4].map(|value| scale.place(value));
        assert!(far > 0.0 && high < 1.0 && high - low > 0.15, "{far} {low} {high}");
    }

    #[test]
    fn swept_powers_are_evenly_apart() {
        let scale = Scale::swept(&[16.0, 4.0, 64.0, 4.0]);
        assert_eq!(texts(&scale), ["4", "16", "64"]);
        let [a, b, c] = [4.0, 16.0, 64.0].map(|value| scale.place(value));
        assert!((b - a - (c - b)).abs() < 1e-12 && a > 0.0 && c < 1.0);
        assert!(!Scale::swept(&[1.0, 2.0, 3.0]).is_logarithmic());
        assert!(Scale::swept(&[0.001, 0.01]).is_logarithmic());
    }

    #[test]
    fn degenerate_ranges_still_have_a_place_for_everything() {
        for scale in [
            of([3.0]),
            of([0.0]),
            of([f64::NAN]),
            of([0.0; 0]),
            Scale::swept(&[7.0]),
            Scale::swept(&[]),
            Scale::from_zero(0.0),
            of([0.0, 5e-324]),
            of([-1e308, 1e308]),
            of([1e16, 1e16 + 2.0]),
        ] {
            assert!(scale.ticks.len() <= MOST_TICKS);
            assert!(!scale.place(3.0).is_nan(), "{scale:?}");
        }
        assert_eq!(Scale::swept(&[7.0]).place(7.0), 0.5);
    }
}
