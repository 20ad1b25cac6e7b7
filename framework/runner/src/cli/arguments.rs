//! The arguments of every command.

use std::path::PathBuf;

use clap::{Args, FromArgMatches, Subcommand, ValueEnum};
use ebipla_core::Kind;

use super::trained::arguments::{
    ComposeCommand, InterpolateCommand, ReconstructCommand, RunDirectory, SampleCommand, ScoreCommand,
};
use crate::bench::Part;
use crate::recipe::Override;

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the run failed, 2 the command line or a recipe is wrong (nothing was written), \
3 diverged, 130 interrupted.
Shell completion: source <(COMPLETE=bash runner), also zsh, fish, elvish.";

#[derive(Subcommand)]
pub enum Command {
    /// Train (the same as without a command)
    Run(RunArguments),
    /// Run many variations of recipes, on this machine or a cluster
    Sweep(SweepArguments),
    /// Start, or go on with, the member of a sweep that a folder belongs to
    #[command(hide = true)]
    Member(MemberArguments),
    /// List the registered plugins
    List(ListArguments),
    /// Describe one plugin: every option with type, default and unit
    Describe(DescribeArguments),
    /// Print a resolved recipe with the origin of each value
    Show(ShowArguments),
    /// Build everything, take a step on tiny data and restore a checkpoint, without keeping anything
    Check(CheckArguments),
    /// Measure a run's last checkpoint again, with the random numbers of its other evaluations
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
    /// Measure how fast this machine computes, as ratios within one run
    Bench(BenchArguments),
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
    pub fn overrides(&self) -> Vec<Override> {
        let set = self
            .set
            .iter()
            .map(|(key, text)| Override::by_option("--set", key, text));
        let seed = self
            .seed
            .map(|seed| Override::by_option("--seed", "run.seed", seed.to_string()));
        let device = self.device.as_ref();
        let device = device.map(|device| Override::by_option("--device", "run.device", device));
        set.chain(seed).chain(device).collect()
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
    /// The same, or start where there is none: one command for a job script that may be run again
    #[arg(long, conflicts_with = "resume")]
    pub resume_or_start: bool,
}

#[derive(Args)]
pub struct ListArguments {
    /// Only this kind
    #[arg(value_parser = super::names::kind())]
    pub kind: Option<Kind>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct DescribeArguments {
    /// The kind of plugin
    #[arg(value_parser = super::names::kind())]
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

#[derive(Args)]
pub struct BenchArguments {
    /// What to measure [default: everything]
    #[arg(value_enum, value_name = "PART")]
    pub parts: Vec<Part>,
    /// Have PyTorch and JAX do the same, once `./runner setup --peers` has installed them
    #[arg(long)]
    pub peers: bool,
    /// How often everything is measured, in turn
    #[arg(long, value_name = "ROUNDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Threads of libtorch and of prior chains [default: libtorch's own choice]
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// auto, cpu, cuda or cuda:i
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SweepArguments {
    #[command(subcommand)]
    pub command: Option<SweepCommand>,
    /// A sweep file, or the name of one in recipes/sweeps/, with or without .yaml
    #[arg(long, value_name = "NAME_OR_PATH")]
    pub file: Option<String>,
    /// Instead of a sweep file: a recipe, or the name of one in recipes/
    #[arg(
        long,
        value_name = "NAME_OR_PATH",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    pub recipe: Option<String>,
    /// A key with values to combine with those of the others; may be repeated
    #[arg(long, value_name = "KEY=V1,V2", value_parser = key_value)]
    pub grid: Vec<(String, String)>,
    /// A key whose values go together with those of other zipped keys; may be repeated
    #[arg(long, value_name = "KEY=V1,V2", value_parser = key_value)]
    pub zip: Vec<(String, String)>,
    /// How many seeds each combination is run with, counted up from the recipe's own
    #[arg(long, value_name = "COUNT")]
    pub seeds: Option<u64>,
    /// Override a value for all members; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Override run.device: auto, cpu, cuda or cuda:i
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// The folder in which the sweep's own folder is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Where members run: as processes here, or as tasks of a Slurm cluster, asked for as the recipe's `slurm` says
    #[arg(long, value_enum, default_value_t)]
    pub launcher: Launcher,
    /// How many members run at a time [default: one for each GPU, or for each core; Slurm: as it sees fit]
    #[arg(long, value_name = "JOBS", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
    /// Print the members and what they will cost, by a few steps of each, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on with a sweep: with its unfinished members, each from its last checkpoint, and with new ones
    #[arg(long)]
    pub resume: bool,
    /// The same, or start where there is none: one command for a job script that may be run again
    #[arg(long, conflicts_with = "resume")]
    pub resume_or_start: bool,
    /// Go on with the failed and diverged members of a sweep, each from its last checkpoint
    #[arg(long, conflicts_with_all = ["resume", "resume_or_start"])]
    pub only_failed: bool,
    /// Stop everything when a member fails
    #[arg(long)]
    pub fail_fast: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Launcher {
    #[default]
    Local,
    Slurm,
}

#[derive(Subcommand)]
pub enum SweepCommand {
    /// Show how the members of a sweep are
    Status(SweepStatusArguments),
}

#[derive(Args)]
pub struct SweepStatusArguments {
    /// The sweep's folder
    pub dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct MemberArguments {
    /// The member's folder, with its recipe.yaml
    pub folder: PathBuf,
    /// Stop after a checkpoint when the process that started this one is gone
    #[arg(long)]
    pub with_parent: bool,
    /// When Slurm announces the time limit by SIGUSR2, ask it for another turn
    #[arg(long)]
    pub requeue: bool,
}

/// Splits `a.b=v`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected KEY=VALUE, e.g. prior_sampler.step_size=0.01".into()),
    }
}
