//! Tells how scores are distributed, and how well they tell anomalies from what is normal.

use std::fmt::Write;
use std::path::Path;

use ebipla_core::system::files::write_bytes;
use serde_json::{Map, Value, json};

use super::scorer::Scores;
use crate::record::{Histogram, draw_histograms};
use crate::trained::{auprc, auroc};

/// Scores of what is normal, and of anomalies if there are some.
pub struct Report {
    pub normal: Scored,
    pub anomalies: Option<Scored>,
    /// How the scores came about.
    pub facts: Map<String, Value>,
}

/// A set of points with a name.
pub struct Scored {
    pub name: String,
    pub scores: Scores,
}

/// One kind of score.
struct Column {
    name: &'static str,
    normal: Vec<f64>,
    anomalies: Vec<f64>,
}

impl Report {
    fn columns(&self) -> Vec<Column> {
        let nothing = Scores::default();
        let anomalies = self.anomalies.as_ref().map_or(&nothing, |set| &set.scores);
        let pairs = self.normal.scores.columns().into_iter().zip(anomalies.columns());
        pairs
            .map(|((name, normal), (_, anomalies))| Column {
                name,
                normal,
                anomalies,
            })
            .collect()
    }

    /// Writes `scores.csv`, `summary.json` and `histogram.png` to `folder`.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        write_bytes(&folder.join("scores.csv"), self.to_csv())?;
        write_bytes(&folder.join("summary.json"), format!("{:#}\n", self.to_json()))?;
        let columns = self.columns();
        let histograms: Vec<_> = columns
            .iter()
            .map(|column| Histogram {
                title: match self.anomalies {
                    Some(_) => format!("{}, AUROC {:.3}", column.name, column.auroc()),
                    None => column.name.to_owned(),
                },
                normal: &column.normal,
                anomalies: &column.anomalies,
            })
            .collect();
        draw_histograms(&histograms)?.write_png(&folder.join("histogram.png"))
    }

    /// One line for each point.
    fn to_csv(&self) -> String {
        let mut text = "set,index,anomaly,energy,reconstruction,total\n".to_owned();
        let sets = [(Some(&self.normal), 0), (self.anomalies.as_ref(), 1)];
        for (set, anomaly) in sets
            .into_iter()
            .filter_map(|(set, anomaly)| Some((set?, anomaly)))
        {
            let [energy, reconstruction, total] = set.scores.columns().map(|(_, values)| values);
            for (i, index) in set.scores.indices.iter().enumerate() {
                let name = &set.name;
                let (u, v, sum) = (energy[i], reconstruction[i], total[i]);
                let _ = writeln!(text, "{name},{index},{anomaly},{u},{v},{sum}");
            }
        }
        text
    }

    pub fn to_json(&self) -> Value {
        let mut all = self.facts.clone();
        let set = |set: &Scored| json!({ "name": set.name, "points": set.scores.len() });
        all.insert("normal".into(), set(&self.normal));
        if let Some(anomalies) = &self.anomalies {
            all.insert("anomalies".into(), set(anomalies));
            let count = anomalies.scores.len() as f64;
            let share = count / (count + self.normal.scores.len() as f64);
            all.insert("anomaly_share".into(), share.into());
        }
        let columns = self.columns().into_iter();
        let scores = columns.map(|column| (column.name.to_owned(), column.to_json(self.anomalies.is_some())));
        all.insert("scores".into(), Value::Object(scores.collect()));
        Value::Object(all)
    }

    pub fn to_text(&self) -> String {
        let mut text = format!(
            "normal     {}, {} points\n",
            self.normal.name,
            self.normal.scores.len()
        );
        let columns = self.columns();
        let Some(anomalies) = &self.anomalies else {
            let _ = writeln!(text, "{:<16} {:>12} {:>12}", "", "mean", "std");
            for column in columns {
                let (mean, std) = moments(&column.normal);
                let _ = writeln!(text, "{:<16} {mean:>12.4} {std:>12.4}", column.name);
            }
            return text;
        };
        let _ = writeln!(
            text,
            "anomalies  {}, {} points",
            anomalies.name,
            anomalies.scores.len()
        );
        let _ = writeln!(
            text,
            "{:<16} {:>12} {:>12} {:>8} {:>8}",
            "", "normal", "anomalies", "AUROC", "AUPRC"
        );
        for column in columns {
            let [normal, anomalies] = [&column.normal, &column.anomalies].map(|scores| moments(scores).0);
            let _ = writeln!(
                text,
                "{:<16} {normal:>12.4} {anomalies:>12.4} {:>8.4} {:>8.4}",
                column.name,
                column.auroc(),
                column.auprc()
            );
        }
        text
    }
}

impl Column {
    fn auroc(&self) -> f64 {
        auroc(&self.normal, &self.anomalies)
    }

    fn auprc(&self) -> f64 {
        auprc(&self.normal, &self.anomalies)
    }

    fn to_json(&self, compared: bool) -> Value {
        let of = |scores: &[f64]| {
            let (mean, std) = moments(scores);
            json!({ "mean": mean, "std": std })
        };
        let mut all = json!({ "normal": of(&self.normal) });
        if compared {
            all["anomalies"] = of(&self.anomalies);
            all["auroc"] = self.auroc().into();
            all["auprc"] = self.auprc().into();
        }
        all
    }
}

/// Mean and standard deviation.
fn moments(scores: &[f64]) -> (f64, f64) {
    let n = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / n;
    let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}
