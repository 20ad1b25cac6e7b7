//! The frame that charts share: its place on the sheet, axes, ticks, and words for those who cannot see it.

use super::super::html::escape;
use super::Scale;

/// The sheet; it is shown at about this many pixels, and a little smaller on a phone.
pub const WIDTH: f64 = 440.0;
/// Height of line charts.
pub const HEIGHT: f64 = 280.0;

/// Where the numbers go.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Frame {
    pub fn x(&self, scale: &Scale, value: f64) -> f64 {
        self.left + scale.place(value) * (self.right - self.left)
    }

    pub fn y(&self, scale: &Scale, value: f64) -> f64 {
        self.bottom - scale.place(value) * (self.bottom - self.top)
    }

    /// Lines and words below, and the axis's name.
    pub fn x_axis(&self, scale: &Scale, label: &str) -> String {
        let mut svg = String::new();
        let mut free_from = f64::NEG_INFINITY;
        for (value, text) in &scale.ticks {
            let x = self.x(scale, *value);
            svg += &format!("<path class=\"tick\" d=\"M{x:.1} {:.1}v5\"/>", self.bottom);
            // Words that would run into each other are left out.
            let half = width_of(text) / 2.0;
            if x - half >= free_from {
                svg += &format!(
                    "<text class=\"tick-label\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    self.bottom + 19.0,
                    escape(text)
                );
                free_from = x + half + 6.0;
            }
        }
        svg += &format!(
            "<path class=\"axis\" d=\"M{:.1} {:.1}H{:.1}\"/>",
            self.left, self.bottom, self.right
        );
        svg + &format!(
            "<text class=\"axis-label x\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
            self.right,
            self.bottom + 38.0,
            escape(&fitted(label, WIDTH))
        )
    }

    /// Lines across, words on the left, and the axis's name above.
    pub fn y_axis(&self, scale: &Scale, label: &str) -> String {
        let mut svg = String::new();
        for (value, text) in &scale.ticks {
            let y = self.y(scale, *value);
            svg += &format!(
                "<path class=\"grid\" d=\"M{:.1} {y:.1}H{:.1}\"/>\
                 <text class=\"tick-label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                self.left,
                self.right,
                self.left - 8.0,
                y + 4.0,
                escape(text)
            );
        }
        svg + &format!(
            "<text class=\"axis-label y\" x=\"0\" y=\"13\">{}</text>\n",
            escape(&fitted(label, WIDTH))
        )
    }
}

/// Room that the words beside an axis take.
pub fn room_for<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(width_of).fold(0.0, f64::max)
}

/// How wide a text is at most, more or less, in the size that ticks have on a phone.
pub fn width_of(text: &str) -> f64 {
    8.2 * text.chars().count() as f64
}

/// A text that takes no more than `width`, cut off where it has to be.
pub fn fitted(text: &str, width: f64) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let fit = (width / width_of("m")) as usize;
    text.chars().take(fit.saturating_sub(1)).chain(['…']).collect()
}

/// The sheet with its title and description; `id` is unique on the page.
pub fn sheet(id: &str, height: f64, title: &str, description: &str, inside: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n\
         <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{inside}</svg>\n",
        escape(title),
        escape(description)
    )
}
