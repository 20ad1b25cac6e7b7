//! The arguments of the commands that look at trained runs.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use ebipla_core::{MapSearch, Split};

use super::points::Point;
use crate::cli::arguments::key_value;

/// A trained run, with overrides.
#[derive(Args, Clone)]
pub struct RunDirectory {
    /// The run's folder
    pub run_dir: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
}

#[derive(Args, Clone)]
pub struct Overrides {
    /// Override a value of the run's recipe, e.g. evaluation_sampler.steps=5000; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Override run.device: auto, cpu, cuda or cuda:i
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
}

impl Overrides {
    /// Values that were set, for the attributes of a file.
    pub fn to_text(&self) -> String {
        let set = self.set.iter().map(|(key, value)| format!("{key}={value}"));
        set.collect::<Vec<_>>().join(" ")
    }
}

/// How many samples of what kind, and where they go.
#[derive(Args)]
pub struct SampleArguments {
    /// How many samples
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
    /// The file: .png (images in a grid, or points in the plane), .npy or .h5
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Seed of the samples [default: that of the run]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Write the latents as well: in the .h5 file, or beside the others as FILE_latents.npy
    #[arg(long)]
    pub latents: bool,
    /// Whether samples are g(x) alone, or have the decoder's noise
    #[arg(long, value_enum, default_value_t = Decoding::Auto)]
    pub decoding: Decoding,
}

/// What is made of a latent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Decoding {
    /// Images without noise, other data with it
    Auto,
    /// g(x)
    Mean,
    /// g(x) + σξ
    Noisy,
}

#[derive(Args)]
pub struct SampleCommand {
    #[command(flatten)]
    pub run: RunDirectory,
    #[command(flatten)]
    pub samples: SampleArguments,
}

/// How MAP latents are searched for.
#[derive(Args)]
pub struct MapArguments {
    /// MAP latents: random starts, of which the best counts
    #[arg(long, value_name = "N", default_value_t = MapSearch::default().starts, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub map_starts: u32,
    /// MAP latents: Adam steps from each start
    #[arg(long, value_name = "N", default_value_t = MapSearch::default().steps, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub map_steps: u32,
    /// MAP latents: learning rate at first
    #[arg(long, value_name = "LR", default_value_t = MapSearch::default().lr, value_parser = positive)]
    pub map_lr: f64,
    /// Seed of the random starts [default: that of the run]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
}

impl MapArguments {
    pub fn search(&self) -> MapSearch {
        MapSearch {
            starts: self.map_starts,
            steps: self.map_steps,
            lr: self.map_lr,
        }
    }
}

#[derive(Args)]
pub struct ReconstructCommand {
    #[command(flatten)]
    pub run: RunDirectory,
    /// The file: .png (data above reconstructions), .npy or .h5
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Which part of the data: training points are made from their particles, others from MAP latents
    #[arg(long, value_parser = crate::cli::names::split(), default_value_t = Split::Validation)]
    pub split: Split,
    /// How many points, the first ones of the split
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
    #[command(flatten)]
    pub map: MapArguments,
}

#[derive(Args)]
pub struct InterpolateCommand {
    #[command(flatten)]
    pub run: RunDirectory,
    /// Where to begin, e.g. train:3 (one of its particles) or validation:7 (its MAP latent); may be repeated
    #[arg(long, value_name = "SPLIT:INDEX", requires = "to", conflicts_with = "pairs")]
    pub from: Vec<Point>,
    /// Where to end; as often as --from
    #[arg(long, value_name = "SPLIT:INDEX", requires = "from")]
    pub to: Vec<Point>,
    /// So many random pairs of points instead
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub pairs: Option<u32>,
    /// Where random pairs are taken from
    #[arg(long, value_parser = crate::cli::names::split(), default_value_t = Split::Validation)]
    pub split: Split,
    /// Latents on the way, both ends included
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..))]
    pub steps: u32,
    /// The file: .png (a row for each pair, with the data at both ends), .npy or .h5
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    #[command(flatten)]
    pub map: MapArguments,
}

#[derive(Args)]
pub struct ScoreCommand {
    #[command(flatten)]
    pub run: RunDirectory,
    /// The data set to score; if it is that of the run, it has the run's options [default: that of the run]
    #[arg(long, value_name = "DATASET")]
    pub data: Option<String>,
    /// Override one of its options, e.g. exclude_labels=[]; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub data_set: Vec<(String, String)>,
    /// Which part of it
    #[arg(long, value_parser = crate::cli::names::split(), default_value_t = Split::Validation)]
    pub split: Split,
    /// A data set of anomalies, of which the same part is scored
    #[arg(long, value_name = "DATASET", conflicts_with = "anomaly_labels")]
    pub against: Option<String>,
    /// Override one of its options; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, requires = "against")]
    pub against_set: Vec<(String, String)>,
    /// Points of the scored data set with these labels are the anomalies
    #[arg(long, value_name = "L1,L2", value_delimiter = ',', action = ArgAction::Append)]
    pub anomaly_labels: Vec<i64>,
    /// At most so many points of each data set, chosen at random
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// At which latents points are scored
    #[arg(long, value_enum, default_value_t = Latents::Map)]
    pub latents: Latents,
    /// Posterior: steps of the Langevin chain from the MAP latent, of which the second half is averaged
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub chain_steps: u32,
    /// Posterior: step size of the chain, in units of σ²
    #[arg(long, value_name = "H", default_value_t = 0.1, value_parser = positive)]
    pub chain_step_size: f64,
    /// Points that are computed at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch: u32,
    /// The folder for scores.csv, summary.json and histogram.png [default: RUN_DIR/scores/DATA]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub map: MapArguments,
}

/// Which latents stand for a data point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Latents {
    /// The most probable ones
    Map,
    /// The mean of the posterior, by a short Langevin chain
    Posterior,
}

#[derive(Args)]
pub struct ComposeCommand {
    /// The runs' folders; the first one's sampler is used
    #[arg(value_name = "RUN_DIR", required = true)]
    pub run_dirs: Vec<PathBuf>,
    /// The weight of each energy [default: 1 each]
    #[arg(
        long,
        value_name = "W1,W2",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    pub weights: Vec<f64>,
    /// The run whose generator decodes, counted from 1
    #[arg(long, value_name = "I", default_value_t = 1)]
    pub generator_of: usize,
    /// Overrides of the first run's recipe
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub samples: SampleArguments,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(number),
        _ => Err("expected a number above 0".into()),
    }
}
