//! Marks of different shapes, so that lines can be told apart without their colours.

/// Colours and shapes before they repeat; then lines are dashed otherwise.
pub const STYLES: usize = 8;

/// The shape of a style around a point; filled with the style's colour by its class.
pub fn shape(style: usize, x: f64, y: f64) -> String {
    let r = 4.2;
    let polygon = |corners: &[(f64, f64)]| {
        let corners: Vec<_> = corners
            .iter()
            .map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * r, y + dy * r))
            .collect();
        format!("<polygon class=\"mark\" points=\"{}\"/>", corners.join(" "))
    };
    match style % STYLES {
        0 => format!("<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\"/>"),
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)]),
        3 => polygon(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
        4 => polygon(&[(0.0, 1.15), (1.1, -0.85), (-1.1, -0.85)]),
        5 => format!("<circle class=\"mark hollow\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\"/>"),
        6 => polygon(&[
            (-0.35, -1.1),
            (0.35, -1.1),
            (0.35, -0.35),
            (1.1, -0.35),
            (1.1, 0.35),
            (0.35, 0.35),
            (0.35, 1.1),
            (-0.35, 1.1),
            (-0.35, 0.35),
            (-1.1, 0.35),
            (-1.1, -0.35),
            (-0.35, -0.35),
        ]),
        _ => polygon(&[(-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)]),
    }
}

/// Classes of the group in which a style is drawn.
pub fn classes(style: usize) -> String {
    format!("s{} d{}", style % STYLES, (style / STYLES) % 3)
}

/// A short line with its mark, for a legend.
pub fn key(style: usize) -> String {
    format!(
        "<svg class=\"key\" viewBox=\"0 0 28 12\" width=\"28\" height=\"12\" aria-hidden=\"true\">\
         <g class=\"{}\"><path class=\"line\" d=\"M1 6H27\"/>{}</g></svg>",
        classes(style),
        shape(style, 14.0, 6.0)
    )
}
