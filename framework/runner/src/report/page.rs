//! What a report consists of, before it becomes HTML or Markdown.

use super::chart::Chart;
use super::pictures::PictureTable;

pub struct Page {
    pub title: String,
    /// A few words on what this is, below the title.
    pub summary: Vec<String>,
    pub sections: Vec<Section>,
}

pub struct Section {
    /// Where links within the page lead to.
    pub id: &'static str,
    pub title: &'static str,
    pub blocks: Vec<Block>,
}

pub enum Block {
    Heading(String),
    Text(String),
    /// A remark on charts or pictures, which Markdown does not have.
    Remark(String),
    /// Things to know before believing the rest.
    Warnings(Vec<String>),
    Table(Table),
    Charts(Vec<Chart>),
    Pictures(PictureTable),
    /// Text as it stands in a file.
    Code(String),
    /// Shown when it is asked for.
    Folded(String, Vec<Block>),
}

#[derive(Default)]
pub struct Table {
    pub caption: String,
    pub head: Vec<Head>,
    pub rows: Vec<Vec<Cell>>,
}

pub struct Head {
    pub text: String,
    /// In smaller letters below.
    pub aside: String,
    pub numeric: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub text: String,
    /// In smaller letters below.
    pub aside: String,
    pub bold: bool,
    /// Whether to draw the eye to it.
    pub alarming: bool,
}

impl Head {
    pub fn words(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            aside: String::new(),
            numeric: false,
        }
    }

    pub fn numbers(text: impl Into<String>, aside: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            aside: aside.into(),
            numeric: true,
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Cell {
    /// What there is, or a dash.
    pub fn maybe(text: Option<String>) -> Self {
        text.unwrap_or_else(|| "–".into()).into()
    }
}
