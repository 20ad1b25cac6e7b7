//! Lines over numbers: curves with bands, and measured points with error bars.

use super::super::html::escape;
use super::super::statistics::{four_digits, written};
use super::Scale;
use super::drawing::{Frame, HEIGHT, WIDTH, room_for, sheet};
use super::marker;

pub struct LineChart {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    pub x: Scale,
    pub y: Scale,
    pub series: Vec<Series>,
    /// Whether to say which line is which.
    pub has_legend: bool,
    /// A remark below.
    pub note: String,
}

pub struct Series {
    pub label: String,
    /// Colour, mark and dashes.
    pub style: usize,
    pub points: Vec<Point>,
    /// A curve has a band and few marks, a row of measured points has error bars and a mark each.
    pub is_curve: bool,
}

#[derive(Clone, Debug)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub error: Option<f64>,
    /// What the mean is taken over.
    pub single: Vec<f64>,
}

/// Marks along a curve.
const MARKS: usize = 5;

impl LineChart {
    pub fn to_svg(&self, id: &str) -> String {
        let labels = self.y.ticks.iter().map(|(_, text)| text.as_str());
        let frame = Frame {
            left: room_for(labels) + 12.0,
            right: WIDTH - 12.0,
            top: 26.0,
            bottom: HEIGHT - 46.0,
        };
        let mut svg = format!(
            "<clipPath id=\"{id}-c\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/></clipPath>\n",
            frame.left,
            frame.top - 5.0,
            frame.right - frame.left + 5.0,
            frame.bottom - frame.top + 5.0
        );
        svg += &frame.y_axis(&self.y, &self.y_label);
        svg += &frame.x_axis(&self.x, &self.x_label);
        svg += &format!("<g clip-path=\"url(#{id}-c)\">\n");
        for series in &self.series {
            svg += &self.draw(&frame, series);
        }
        svg += "</g>\n";
        sheet(id, HEIGHT, &self.title, &self.description(), &svg)
    }

    fn draw(&self, frame: &Frame, series: &Series) -> String {
        let place = |x: f64, y: f64| {
            // Far outside is as good as outside, and keeps coordinates short.
            let y = frame.y(&self.y, y).clamp(-HEIGHT, 2.0 * HEIGHT);
            (frame.x(&self.x, x), y)
        };
        let mut svg = format!("<g class=\"{}\">", marker::classes(series.style));
        if series.is_curve {
            svg += &self.band(frame, series);
        }
        let path: Vec<_> = series
            .points
            .iter()
            .map(|point| place(point.x, point.y))
            .map(|(x, y)| format!("{x:.1} {y:.1}"))
            .collect();
        if path.len() > 1 {
            svg += &format!("<path class=\"line\" d=\"M{}\"/>", path.join("L"));
        }
        for (i, point) in series.points.iter().enumerate() {
            let (x, y) = place(point.x, point.y);
            if series.is_curve {
                let every = (series.points.len() / MARKS).max(1);
                // Each line has its marks elsewhere, so that they do not hide each other.
                if i % every == (every / 2 + series.style * every / 5) % every {
                    svg += &marker::shape(series.style, x, y);
                }
                continue;
            }
            for single in &point.single {
                let (x, y) = place(point.x, *single);
                svg += &format!("<circle class=\"single\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\"/>");
            }
            if let Some(error) = point.error {
                let (_, top) = place(point.x, point.y + error);
                let (_, bottom) = place(point.x, point.y - error);
                svg += &format!(
                    "<path class=\"error\" d=\"M{:.1} {top:.1}h8m-4 0V{bottom:.1}m-4 0h8\"/>",
                    x - 4.0
                );
            }
            svg += &marker::shape(series.style, x, y);
        }
        svg + "</g>\n"
    }

    /// From one error below the mean to one above, where there is an error.
    fn band(&self, frame: &Frame, series: &Series) -> String {
        let edge = |point: &Point, sign: f64| {
            let y = point.y + sign * point.error.unwrap_or(0.0);
            let y = frame.y(&self.y, y).clamp(-HEIGHT, 2.0 * HEIGHT);
            format!("{:.1} {y:.1}", frame.x(&self.x, point.x))
        };
        if series.points.iter().all(|point| point.error.is_none()) {
            return String::new();
        }
        let above = series.points.iter().map(|point| edge(point, 1.0));
        let below = series.points.iter().rev().map(|point| edge(point, -1.0));
        let path: Vec<_> = above.chain(below).collect();
        format!("<path class=\"band\" d=\"M{}Z\"/>", path.join("L"))
    }

    /// The same in words, short of every point of a curve.
    fn description(&self) -> String {
        let mut text = format!("{} against {}.", self.y_label, self.x_label);
        for series in &self.series {
            text += &format!(" {}:", series.label);
            match &series.points[..] {
                [first, .., last] if series.is_curve => {
                    text += &format!(
                        " from {} at {} to {} at {}.",
                        four_digits(first.y),
                        first.x,
                        written(last.y, last.error),
                        last.x
                    );
                }
                points => {
                    let points: Vec<_> = points
                        .iter()
                        .map(|point| format!(" {} at {}", written(point.y, point.error), point.x))
                        .collect();
                    text += &(points.join(",") + ".");
                }
            }
        }
        text
    }

    /// Which line is which.
    pub fn legend(&self) -> String {
        if !self.has_legend {
            return String::new();
        }
        let items: String = self
            .series
            .iter()
            .map(|series| {
                format!(
                    "<li>{}<span>{}</span></li>",
                    marker::key(series.style),
                    escape(&series.label)
                )
            })
            .collect();
        format!("<ul class=\"legend\">{items}</ul>\n")
    }
}
