//! One row for each of several things, a dot with an error bar in each.

use super::super::html::escape;
use super::super::statistics::Estimate;
use super::drawing::{Frame, WIDTH, fitted, sheet};
use super::{Scale, marker};

pub struct DotPlot {
    pub title: String,
    pub x_label: String,
    pub x: Scale,
    pub rows: Vec<Row>,
    /// A remark below.
    pub note: String,
}

pub struct Row {
    pub label: String,
    pub style: usize,
    pub estimate: Estimate,
    /// What the mean is taken over.
    pub single: Vec<f64>,
}

/// Height of a row; its label stands above its line, so that it may be long.
const ROW: f64 = 38.0;

impl DotPlot {
    pub fn to_svg(&self, id: &str) -> String {
        let bottom = 6.0 + ROW * self.rows.len() as f64 + 6.0;
        let frame = Frame {
            left: 10.0,
            right: WIDTH - 10.0,
            top: 6.0,
            bottom,
        };
        let mut svg = String::new();
        for (value, _) in &self.x.ticks {
            let x = frame.x(&self.x, *value);
            svg += &format!(
                "<path class=\"grid\" d=\"M{x:.1} {:.1}V{bottom:.1}\"/>",
                frame.top
            );
        }
        svg += &frame.x_axis(&self.x, &self.x_label);
        for (i, row) in self.rows.iter().enumerate() {
            let y = frame.top + ROW * i as f64 + 27.0;
            let x = |value: f64| frame.x(&self.x, value);
            svg += &format!(
                "<text class=\"row-label\" x=\"{:.1}\" y=\"{:.1}\">{}</text><path class=\"grid\" d=\"M{:.1} {y:.1}H{:.1}\"/>",
                frame.left,
                y - 12.0,
                escape(&fitted(&row.label, WIDTH - 20.0)),
                frame.left,
                frame.right
            );
            svg += &format!("<g class=\"{}\">", marker::classes(row.style));
            for single in &row.single {
                svg += &format!(
                    "<circle class=\"single\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"2\"/>",
                    x(*single)
                );
            }
            let Estimate { mean, error, .. } = row.estimate;
            if let Some(error) = error {
                svg += &format!(
                    "<path class=\"error\" d=\"M{:.1} {:.1}v8m0 -4H{:.1}m0 -4v8\"/>",
                    x(mean - error).max(frame.left),
                    y - 4.0,
                    x(mean + error)
                );
            }
            svg += &marker::shape(row.style, x(mean), y);
            svg += "</g>\n";
        }
        sheet(id, bottom + 46.0, &self.title, &self.description(), &svg)
    }

    fn description(&self) -> String {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| format!("{}: {}", row.label, row.estimate.text()))
            .collect();
        format!("{}. {}.", self.x_label, rows.join(", "))
    }
}
