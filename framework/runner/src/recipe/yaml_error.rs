//! Says in plain words what is wrong with YAML: its library speaks to those who program with it.

use serde_saphyr::Error;

/// What is wrong, with the line where it was noticed.
#[derive(Debug)]
pub struct YamlError {
    pub line: Option<u64>,
    pub message: String,
}

impl YamlError {
    pub fn of(error: &Error) -> Self {
        Self {
            line: error.location().map(|location| location.line()),
            message: in_words(error.without_snippet()),
        }
    }

    /// Behind the name of the file.
    pub fn with_line(&self) -> String {
        match self.line {
            Some(line) => format!("line {line}: {}", self.message),
            None => self.message.clone(),
        }
    }
}

fn in_words(error: &Error) -> String {
    match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("`{key}` is given twice"),
        Error::DuplicateMappingKey { key: None, .. } => "a key is given twice".into(),
        Error::MultipleDocuments { .. } => {
            "a second document begins here: a file has one, take out the `---`".into()
        }
        Error::Unexpected { .. } => "this cannot stand here: expected a single word or number".into(),
        Error::InvalidScalar { .. } => "the value is not what its tag (`!!…`) says: take out the tag".into(),
        Error::NonFiniteFloat { value, .. } => format!("found `{value}`, expected a finite number"),
        Error::UnknownAnchor { .. } => {
            "`*` refers to no anchor (`&name`) above; put a text that begins with `*` in quotes".into()
        }
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("unknown key `{field}`; valid: {}", expected.join(", "))
        }
        Error::SerdeMissingField { field, .. } => format!("`{field}` is missing"),
        Error::SerdeInvalidType {
            unexpected, expected, ..
        }
        | Error::SerdeInvalidValue {
            unexpected, expected, ..
        } => {
            format!("found {unexpected}, expected {expected}")
        }
        Error::ExternalMessage { msg, .. } => of_syntax(msg),
        Error::Message { msg, .. } => msg.clone(),
        Error::AliasError { error, .. } => in_words(error),
        _ => "this is not valid YAML".into(),
    }
}

/// Words of the parser, each with an explanation for the author of a recipe.
const OF_PARSER: [(&str, &str); 12] = [
    ("tab", "a tab: YAML is indented by spaces"),
    ("unclosed bracket", "a `{` or `[` that is never closed"),
    ("misplaced bracket", "a `}` or `]` too many"),
    (
        "expected ',' or",
        "a `,` is missing between two entries in brackets, or the closing bracket",
    ),
    (
        "escape",
        "`\\` begins an escape in double quotes: use single quotes, or `\\\\`",
    ),
    (
        "quote",
        "a quote that is never closed, or a next line that is not indented",
    ),
    (
        "block sequence entries",
        "`-` begins an item of a list: put it on a line of its own",
    ),
    (
        "mapping values are not allowed",
        "a second `:` in the line: put the value in quotes",
    ),
    (
        "unexpected character",
        "a text that begins with this character has to be in quotes",
    ),
    (
        "directive",
        "a `%` at the beginning of a line: put the text in quotes",
    ),
    ("expected key", "the indentation fits no line above"),
    (
        "simple key",
        "expected `key: value`; is the `:` missing, or the space behind it?",
    ),
];

fn of_syntax(message: &str) -> String {
    let known = OF_PARSER.iter().find(|(word, _)| message.contains(word));
    known
        .map_or("this is not valid YAML", |(_, meaning)| meaning)
        .to_owned()
}
