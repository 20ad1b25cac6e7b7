//! The arguments of every command.

use std::path::PathBuf;

use clap::{Args, FromArgMatches, Subcommand};

use super::trained::arguments::{
    ComposeCommand, InterpolateCommand, ReconstructCommand, RunDirectory, SampleCommand, ScoreCommand,
};
use crate::Kind;

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the run failed, 2 the command line or a recipe is wrong (nothing was written), \
3 diverged, 130 interrupted.
Shell completion: source <(COMPLETE=bash runner), also zsh, fish, elvish.";

#[derive(Subcommand)]
pub enum Command {
    /// Train (the same as without a command)
    Run(RunArguments),
    /// List the registered plugins
    List(ListArguments),
    /// Describe one plugin: every option with type, default and unit
    Describe(DescribeArguments),
    /// Print a resolved recipe with the origin of each value
    Show(ShowArguments),
    /// Build everything and take a step on tiny data, without writing
    Check(CheckArguments),
    /// Measure a run's last checkpoint again
    Eval(EvalArguments),
    /// Draw samples from a run's model
    Sample(SampleCommand),
    /// Show data beside what a run's model makes of their latents
    Reconstruct(ReconstructCommand),
    /// Walk from the latents of one data point to those of another
    Interpolate(InterpolateCommand),
    /// Score the points of a data set by how unlikely they are to a run's model
    Score(ScoreCommand),
    /// Sample from the sum of the energies of runs over the same latent space
    Compose(ComposeCommand),
    /// Say what particle dumps hold, or write one for NumPy
    Particles(ParticlesArguments),
    /// Make a page with tables, charts and pictures of runs and sweeps
    Report(ReportArguments),
    /// Get the files of a data set: download, verify, unpack
    Fetch(FetchArguments),
}

impl Command {
    /// The command line as clap sees it: the arguments of `run` are also those of no command.
    pub fn line() -> clap::Command {
        let line = clap::Command::new("runner")
            .version(env!("CARGO_PKG_VERSION"))
            .after_help(EXIT_CODES)
            .arg_required_else_help(true)
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true);
        // Last, since the arguments of `run` bring a text of their own.
        RunArguments::augment_args(Self::augment_subcommands(line))
            .about("Trains latent energy-based models with interacting particles")
    }

    /// Parses the command line; ends the program where it is wrong.
    pub fn parse() -> Self {
        let mut matches = Self::line().get_matches();
        let parsed = if matches.subcommand().is_some() {
            Self::from_arg_matches_mut(&mut matches)
        } else {
            RunArguments::from_arg_matches_mut(&mut matches).map(Self::Run)
        };
        parsed.unwrap_or_else(|error| error.exit())
    }
}

/// Which recipe, with which overrides.
#[derive(Args, Clone)]
pub struct RecipeArguments {
    /// A recipe file, or the name of one in recipes/, with or without .yaml
    #[arg(long, value_name = "NAME_OR_PATH")]
    pub recipe: String,
    /// Override a value, e.g. prior_sampler.step_size=0.01; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Override run.seed
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Override run.device: auto, cpu, cuda or cuda:i
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
}

impl RecipeArguments {
    /// All overrides, the short forms last.
    pub fn overrides(&self) -> Vec<(String, String)> {
        let seed = self.seed.map(|seed| ("run.seed".to_owned(), seed.to_string()));
        let device = self
            .device
            .clone()
            .map(|device| ("run.device".to_owned(), device));
        self.set.iter().cloned().chain(seed).chain(device).collect()
    }
}

#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub recipe: RecipeArguments,
    /// The folder in which the run's own folder is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Continue the last run of this recipe and seed from its last checkpoint
    #[arg(long)]
    pub resume: bool,
}

#[derive(Args)]
pub struct ListArguments {
    /// Only this kind
    #[arg(value_enum)]
    pub kind: Option<Kind>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct DescribeArguments {
    /// The kind of plugin
    #[arg(value_enum)]
    pub kind: Kind,
    /// Its name
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ShowArguments {
    #[command(flatten)]
    pub recipe: RecipeArguments,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct CheckArguments {
    #[command(flatten)]
    pub recipe: RecipeArguments,
}

#[derive(Args)]
pub struct EvalArguments {
    #[command(flatten)]
    pub run: RunDirectory,
    /// Only these metrics, also such as its recipe does not have
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ParticlesArguments {
    /// A run's folder, its folder of dumps, or one dump
    pub dir: PathBuf,
    /// Only the dump after so many steps
    #[arg(long, value_name = "STEP")]
    pub step: Option<u64>,
    /// Write that dump, or the last one, as a NumPy file
    #[arg(long, value_name = "FILE.npy")]
    pub export: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ReportArguments {
    /// Folders of runs or sweeps, or folders above such
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Where report.html and report.md go [default: the one DIR, or ./report]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

#[derive(Args)]
pub struct FetchArguments {
    /// The data set
    pub dataset: String,
    /// A mirror's address, or a folder that has the files
    #[arg(long, value_name = "URL_OR_DIR")]
    pub from: Option<String>,
    /// Where the files go [default: data/DATASET]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Splits `a.b=v`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected KEY=VALUE, e.g. prior_sampler.step_size=0.01".into()),
    }
}
