//! Draws how scores of normal points and of anomalies are distributed.

use plotters::prelude::*;

use super::Picture;
use super::figure::{Area, DATA, FONT, PANEL, SAMPLES, painted, panel};

/// One panel: the shares of two sets of scores over the same bins. Either may be empty.
pub struct Histogram<'a> {
    pub title: String,
    pub normal: &'a [f64],
    pub anomalies: &'a [f64],
}

const BINS: usize = 60;

/// Draws the panels side by side.
pub fn draw_histograms(histograms: &[Histogram]) -> anyhow::Result<Picture> {
    let size = (histograms.len() as u32 * PANEL, PANEL * 3 / 4);
    painted("histograms", size, |root| {
        let panels = root.split_evenly((1, histograms.len()));
        panels
            .iter()
            .zip(histograms)
            .try_for_each(|(area, histogram)| draw_one(area, histogram))
    })
}

fn draw_one(area: Area, histogram: &Histogram) -> Result<(), Box<dyn std::error::Error>> {
    let bins = Bins::over(histogram.normal, histogram.anomalies);
    let sets = [
        (bins.shares(histogram.normal), "normal", DATA),
        (bins.shares(histogram.anomalies), "anomalies", SAMPLES),
    ];
    let highest = sets
        .iter()
        .flat_map(|(shares, ..)| shares)
        .fold(0.0, |a: f64, b| a.max(*b));
    let axes = (bins.low..bins.high, 0.0..1.08 * highest.max(1e-9));
    let mut chart = panel(area, &histogram.title, &axes)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .label_style((FONT, 13))
        .draw()?;
    for (shares, name, color) in sets {
        if shares.is_empty() {
            continue;
        }
        let bars = shares.iter().enumerate().map(|(i, &share)| {
            let corners = [(bins.edge(i), 0.0), (bins.edge(i + 1), share)];
            Rectangle::new(corners, color.mix(0.55).filled())
        });
        chart
            .draw_series(bars)?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.mix(0.55).filled()));
    }
    chart
        .configure_series_labels()
        .label_font((FONT, 15))
        .background_style(WHITE.mix(0.8))
        .position(SeriesLabelPosition::UpperRight)
        .draw()?;
    Ok(())
}

/// Bins of equal width.
struct Bins {
    low: f64,
    high: f64,
}

impl Bins {
    /// From the lowest to the highest score, but for a few strays (5 in 1000 at each end), which fall into the outer
    /// bins.
    fn over(normal: &[f64], anomalies: &[f64]) -> Self {
        let ends = [normal, anomalies].into_iter().filter_map(|scores| {
            let mut sorted: Vec<_> = scores.iter().copied().filter(|score| score.is_finite()).collect();
            sorted.sort_by(f64::total_cmp);
            let stray = sorted.len() / 200;
            Some((*sorted.get(stray)?, *sorted.get(sorted.len() - 1 - stray)?))
        });
        let (low, high) = ends
            .reduce(|(low, high), (other_low, other_high)| (low.min(other_low), high.max(other_high)))
            .unwrap_or((0.0, 1.0));
        let margin = if high > low { 0.0 } else { 0.5 };
        Self {
            low: low - margin,
            high: high + margin,
        }
    }

    fn edge(&self, bin: usize) -> f64 {
        self.low + (self.high - self.low) * bin as f64 / BINS as f64
    }

    /// The share of the scores in each bin; nothing where there are no scores.
    fn shares(&self, scores: &[f64]) -> Vec<f64> {
        if scores.is_empty() {
            return Vec::new();
        }
        let mut shares = vec![0.0; BINS];
        for score in scores.iter().filter(|score| !score.is_nan()) {
            let position = (score - self.low) / (self.high - self.low) * BINS as f64;
            shares[(position.max(0.0) as usize).min(BINS - 1)] += 1.0 / scores.len() as f64;
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_is_in_a_bin_and_strays_are_in_the_outer_ones() {
        let mut scores: Vec<f64> = (0..1000).map(f64::from).collect();
        scores.extend([1e9, -1e9]);
        let bins = Bins::over(&scores, &[]);
        assert!(
            bins.low >= 0.0 && bins.high < 1000.0,
            "{} {}",
            bins.low,
            bins.high
        );
        let shares = bins.shares(&scores);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(shares[0] > shares[1] && shares[BINS - 1] > shares[BINS - 2]);
        assert!(bins.shares(&[]).is_empty());
    }

    #[test]
    fn scores_that_are_all_the_same_have_a_bin() {
        let bins = Bins::over(&[3.0; 5], &[3.0]);
        assert_eq!((bins.low, bins.high), (2.5, 3.5));
        assert_eq!(bins.shares(&[3.0; 5])[BINS / 2], 1.0);
    }
}
