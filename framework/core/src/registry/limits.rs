//! Bounds numbers where their schema leaves them open: what is beyond would abort, overflow f32 or never end.

use super::OptionType;
use super::options::Range;

/// The largest integer where its unit has no other.
const INTEGER: f64 = 1e9;
/// The largest number in absolute value where its unit has no other.
const NUMBER: f64 = 1e6;

/// The largest values by unit.
const BY_UNIT: [(&str, f64); 12] = [
    ("threads", 1024.0),
    ("CPUs", 65_536.0),
    ("units", 65_536.0),
    ("channels", 65_536.0),
    ("layers", 1000.0),
    ("particles", 1e6),
    ("dimensions", 1e6),
    ("directions", 1e5),
    ("starts", 1e4),
    ("times", 1e4),
    // Just below the largest f32: a limit that is never reached is none.
    ("energy", 1e30),
    ("gradient", 1e30),
];

/// Seeds are the exception: any of them is as good as any other.
const ANY_INTEGER: &str = "any integer";

impl OptionType {
    /// Fills in the bounds that `self` leaves open by those of its unit. Numbers under names of a user's choice are notes,
    /// and stay as they are.
    pub(super) fn limit(&mut self, unit: Option<&str>) {
        let known = BY_UNIT.iter().find(|(name, _)| Some(*name) == unit);
        let most = |otherwise| known.map_or(otherwise, |(_, most)| *most);
        match self {
            Self::Integer(_) if unit == Some(ANY_INTEGER) => {}
            Self::Integer(range) => range.fill(most(INTEGER)),
            Self::Number(range) => range.fill(most(NUMBER)),
            Self::Optional(inner) | Self::List(inner, _) => inner.limit(unit),
            _ => {}
        }
    }
}

impl OptionType {
    /// Whether every number in it has an end on both sides.
    pub fn is_bounded(&self) -> bool {
        match self {
            Self::Integer(range) | Self::Number(range) => range.is_finite(),
            Self::Optional(inner) | Self::List(inner, _) => inner.is_bounded(),
            _ => true,
        }
    }
}

impl Range {
    fn fill(&mut self, most: f64) {
        if self.above.or(self.at_least).is_none() {
            self.at_least = Some(-most);
        }
        if self.below.or(self.at_most).is_none() {
            self.at_most = Some(most);
        }
    }

    fn is_finite(&self) -> bool {
        let ends = [self.above.or(self.at_least), self.below.or(self.at_most)];
        ends.iter().all(|end| end.is_some_and(f64::is_finite))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_ends_are_closed_by_the_unit() {
        let limited = |range: Range, unit| {
            let mut kind = OptionType::Optional(Box::new(OptionType::Number(range)));
            kind.limit(unit);
            kind.to_string()
        };
        let above = Range {
            above: Some(0.0),
            ..Range::default()
        };
        assert_eq!(
            limited(Range::default(), None),
            "number ≥ -1e6 and ≤ 1e6, or null"
        );
        assert_eq!(
            limited(above.clone(), Some("energy")),
            "number > 0 and ≤ 1e30, or null"
        );
        let mut both = above;
        both.below = Some(0.5);
        assert_eq!(limited(both, Some("energy")), "number > 0 and < 0.5, or null");
        let mut seed = OptionType::Integer(Range::default());
        seed.limit(Some("any integer"));
        assert_eq!(seed.to_string(), "integer");
    }
}
