//! Charts as vector graphics that take their colours from the page.

mod dot_plot;
mod drawing;
mod line_chart;
mod marker;
mod scale;

pub use dot_plot::{DotPlot, Row};
pub use line_chart::{LineChart, Point, Series};
pub use scale::Scale;

use super::html::escape;

pub enum Chart {
    Lines(LineChart),
    Dots(DotPlot),
}

impl Chart {
    pub fn title(&self) -> &str {
        match self {
            Self::Lines(chart) => &chart.title,
            Self::Dots(chart) => &chart.title,
        }
    }

    /// A figure with its caption; `id` is unique on the page.
    pub fn to_html(&self, id: &str) -> String {
        let (svg, legend, note) = match self {
            Self::Lines(chart) => (chart.to_svg(id), chart.legend(), chart.note.as_str()),
            Self::Dots(chart) => (chart.to_svg(id), String::new(), chart.note.as_str()),
        };
        let mut html = format!(
            "<figure class=\"chart\">\n<figcaption>{}</figcaption>\n",
            escape(self.title())
        );
        html += &legend;
        html += &svg;
        if !note.is_empty() {
            html += &format!("<p class=\"note\">{}</p>\n", escape(note));
        }
        html + "</figure>\n"
    }
}
