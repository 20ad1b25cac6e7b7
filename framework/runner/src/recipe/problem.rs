//! Words what is wrong with a recipe: where, what was found, what would be right.

use std::fmt;

use super::Origin;

/// One thing wrong with a recipe.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The dotted key, empty where the problem is with a whole file.
    pub key: String,
    pub origin: Option<Origin>,
    /// What was found and what is expected.
    pub message: String,
    /// The nearest valid name.
    pub suggestion: Option<String>,
    /// All valid names.
    pub valid: Vec<String>,
}

impl Problem {
    /// A problem with a value.
    pub fn at(key: impl Into<String>, origin: Option<&Origin>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            origin: origin.cloned(),
            message: message.into(),
            suggestion: None,
            valid: Vec::new(),
        }
    }

    /// Adds the list of valid names, and the one that `found` was probably meant to be.
    pub fn with_names<'a>(mut self, found: &str, valid: impl IntoIterator<Item = &'a str>) -> Self {
        self.valid = valid.into_iter().map(str::to_owned).collect();
        self.suggestion = nearest(found, &self.valid);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (self.key.is_empty(), &self.origin) {
            (false, Some(origin)) => write!(f, "{} ({origin}): {}", self.key, self.message)?,
            (false, None) => write!(f, "{}: {}", self.key, self.message)?,
            (true, Some(origin)) => write!(f, "{origin}: {}", self.message)?,
            (true, None) => f.write_str(&self.message)?,
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, "\n    did you mean `{suggestion}`?")?;
        }
        if !self.valid.is_empty() {
            write!(f, "\n    valid: {}", self.valid.join(", "))?;
        }
        Ok(())
    }
}

/// Everything that was found wrong with a recipe.
#[derive(Clone, Debug)]
pub struct RecipeError {
    pub recipe: String,
    pub problems: Vec<Problem>,
}

impl RecipeError {
    /// One problem.
    pub fn one(recipe: impl Into<String>, problem: Problem) -> Self {
        Self {
            recipe: recipe.into(),
            problems: vec![problem],
        }
    }
}

impl fmt::Display for RecipeError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let count = match self.problems.len() {
            1 => "one problem".to_owned(),
            n => format!("{n} problems"),
        };
        write!(f, "recipe {}: {count}", self.recipe)?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for RecipeError {}

/// The valid name that `found` was probably meant to be.
pub fn nearest(found: &str, valid: &[String]) -> Option<String> {
    let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let found = plain(found);
    valid
        .iter()
        .map(|name| (strsim::jaro_winkler(&found, &plain(name)), name))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_forgives_a_typo_but_not_everything() {
        let valid: Vec<String> = ["steps", "step_size", "temperature"].map(Into::into).into();
        assert_eq!(nearest("stepsize", &valid).as_deref(), Some("step_size"));
        assert_eq!(nearest("temprature", &valid).as_deref(), Some("temperature"));
        assert_eq!(nearest("step", &valid).as_deref(), Some("steps"));
        assert_eq!(nearest("banana", &valid), None);
    }
}
