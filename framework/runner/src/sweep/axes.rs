//! The values that a sweep varies, and their combinations.

use super::SweepError;
use crate::Origin;
use crate::recipe::Override;

/// One key with the values that it takes.
#[derive(Clone, Debug)]
pub struct Axis {
    pub key: String,
    pub texts: Vec<String>,
    pub origin: Origin,
}

impl Axis {
    fn at(&self, i: usize) -> Override {
        Override {
            key: self.key.clone(),
            text: self.texts[i].clone(),
            origin: self.origin.clone(),
        }
    }
}

/// Keys that vary independently of each other, and keys that vary together.
#[derive(Clone, Debug, Default)]
pub struct Axes {
    pub grid: Vec<Axis>,
    pub zip: Vec<Axis>,
}

impl Axes {
    /// Every combination; the last grid key changes fastest, the zipped keys slowest.
    pub fn combinations(&self) -> Result<Vec<Vec<Override>>, SweepError> {
        self.check()?;
        let mut all = match self.zip.first() {
            Some(first) => (0..first.texts.len())
                .map(|i| self.zip.iter().map(|axis| axis.at(i)).collect())
                .collect(),
            None => vec![Vec::new()],
        };
        for axis in &self.grid {
            let with = |earlier: &Vec<Override>, i| earlier.iter().cloned().chain([axis.at(i)]).collect();
            all = all
                .iter()
                .flat_map(|earlier| (0..axis.texts.len()).map(move |i| with(earlier, i)))
                .collect();
        }
        Ok(all)
    }

    fn check(&self) -> Result<(), SweepError> {
        let mut seen = Vec::new();
        for axis in self.zip.iter().chain(&self.grid) {
            let Axis { key, texts, origin } = axis;
            if texts.is_empty() {
                return Err(SweepError(format!("{key} ({origin}): no values, expected some")));
            }
            if seen.contains(&key) {
                let message = format!("{key} ({origin}): varied twice; put all its values in one place");
                return Err(SweepError(message));
            }
            seen.push(key);
        }
        let lengths: Vec<_> = self.zip.iter().map(|axis| axis.texts.len()).collect();
        if lengths.windows(2).any(|pair| pair[0] != pair[1]) {
            let found: Vec<_> = self
                .zip
                .iter()
                .map(|axis| format!("{} has {}", axis.key, axis.texts.len()))
                .collect();
            let message = format!(
                "zipped keys need equally many values each, but {}",
                found.join(", ")
            );
            return Err(SweepError(message));
        }
        Ok(())
    }
}

/// Splits `1,[2,3],{a: 4, b: 5}` at the commas outside brackets and quotes.
pub fn split_values(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let mut depth = 0;
    let mut quote = None;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                values.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(value) = values.last_mut() {
            value.push(character);
        }
    }
    values.iter().map(|value| value.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn axis(key: &str, values: &str) -> Axis {
        Axis {
            key: key.into(),
            texts: split_values(values),
            origin: Origin::Default,
        }
    }

    fn combinations(grid: &[Axis], zip: &[Axis]) -> Result<Vec<String>, String> {
        let axes = Axes {
            grid: grid.to_vec(),
            zip: zip.to_vec(),
        };
        let all = axes.combinations().map_err(|error| error.to_string())?;
        let text = |set: &Vec<Override>| set.iter().map(|set| set.text.as_str()).collect::<String>();
        Ok(all.iter().map(text).collect())
    }

    #[test]
    fn a_grid_is_a_product_and_a_zip_is_not() {
        let (a, b) = (axis("a", "1,2,3"), axis("b", "x,y,z"));
        let grid = combinations(&[a.clone(), b.clone()], &[]).unwrap();
        assert_eq!(grid.join(" "), "1x 1y 1z 2x 2y 2z 3x 3y 3z");
        assert_eq!(
            combinations(&[], &[a.clone(), b.clone()]).unwrap(),
            ["1x", "2y", "3z"]
        );
        let both = combinations(&[axis("c", "u,v")], &[a, b]).unwrap();
        assert_eq!(both.join(" "), "1xu 1xv 2yu 2yv 3zu 3zv");
        assert_eq!(combinations(&[], &[]).unwrap(), [""]);
    }

    #[test]
    fn what_cannot_be_combined_is_named() {
        let unequal = combinations(&[], &[axis("a", "1,2"), axis("b", "1,2,3")]).unwrap_err();
        assert!(unequal.contains("a has 2, b has 3"), "{unequal}");
        let twice = combinations(&[axis("a", "1")], &[axis("a", "2")]).unwrap_err();
        assert!(twice.contains("a (default): varied twice"), "{twice}");
    }

    #[test]
    fn values_are_split_at_outer_commas() {
        assert_eq!(
            split_values("1, [2, 3],{a: 4, b: 5}"),
            ["1", "[2, 3]", "{a: 4, b: 5}"]
        );
        assert_eq!(split_values("'a,b',c"), ["'a,b'", "c"]);
    }
}
