//! Says with which values of another option an option has an effect.

use std::fmt;

use serde_json::{Map, Value};

/// A condition on another option of the same section, stated as `#[schemars(extend("only_with" = "activation=leaky_relu"))]`.
/// Words are separated by bars; without words, the other option must not be null.
#[derive(Clone, Debug, PartialEq)]
pub struct OnlyWith {
    option: String,
    words: Vec<String>,
}

impl OnlyWith {
    pub(super) fn of(schema: &Map<String, Value>) -> Option<Self> {
        let text = schema.get("only_with")?.as_str()?;
        let (option, words) = text.split_once('=').unwrap_or((text, ""));
        Some(Self {
            option: option.to_owned(),
            words: words.split_terminator('|').map(str::to_owned).collect(),
        })
    }

    /// Whether it holds among the options of a section.
    pub fn holds(&self, section: &Map<String, Value>) -> bool {
        let Some(value) = section.get(&self.option) else {
            return false;
        };
        match value.as_str() {
            _ if self.words.is_empty() => !value.is_null(),
            Some(word) => self.words.iter().any(|known| known == word),
            None => self.words.contains(&value.to_string()),
        }
    }

    /// The other option.
    pub fn option(&self) -> &str {
        &self.option
    }
}

impl fmt::Display for OnlyWith {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let words = self.words.join(" or ");
        let sign = if words.is_empty() { "" } else { "=" };
        write!(f, "only with {}{sign}{words}", self.option)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn condition(text: &str) -> Option<OnlyWith> {
        OnlyWith::of(json!({ "only_with": text }).as_object()?)
    }

    #[test]
    fn conditions_hold_for_their_words() {
        let section = json!({ "name": "sgd", "limit": null, "validation": "a.h5" });
        let section = section.as_object().cloned().unwrap_or_default();
        for (text, shown, holds) in [
            ("name=adam|sgd", "only with name=adam or sgd", true),
            ("name=adam", "only with name=adam", false),
            ("limit", "only with limit", false),
            ("validation", "only with validation", true),
            ("limit=null", "only with limit=null", true),
            ("validation=null", "only with validation=null", false),
            ("missing", "only with missing", false),
        ] {
            let found = condition(text).map(|found| (found.to_string(), found.holds(&section)));
            assert_eq!(found, Some((shown.to_owned(), holds)));
        }
    }
}
