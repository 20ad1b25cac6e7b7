//! The recipe sections that are not plugins.

use std::collections::BTreeMap;

use ebipla_core::registry::OptionSpec;
use ebipla_core::{Better, Kind, OptimizerConfig, PriorChainsSection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SlurmSection;

/// How long to train, on what, and from which seed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunSection {
    /// Seed of all random streams. [any integer]
    pub seed: u64,
    /// Passes over the training data. [epochs]
    pub epochs: u64,
    /// Stops after so many steps, whatever `epochs` says; 0 initialises, writes its outputs and stops. [steps]
    pub max_steps: Option<u64>,
    /// Data points in a mini-batch. [points]
    #[schemars(range(min = 1))]
    pub batch_size: usize,
    /// Where to compute: auto, cpu, cuda or cuda:i.
    pub device: String,
    /// CPU threads; null takes all cores. [threads]
    #[schemars(range(min = 1))]
    pub threads: Option<usize>,
    /// Where particles are kept, which changes no result.
    pub particles: ParticlesSection,
}

impl Default for RunSection {
    fn default() -> Self {
        Self {
            seed: 0,
            epochs: 1,
            max_steps: None,
            batch_size: 128,
            device: "auto".into(),
            threads: None,
            particles: ParticlesSection::default(),
        }
    }
}

/// Where particles are kept.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ParticlesSection {
    /// Whose memory they are kept in.
    pub device: ParticleDevice,
    /// Memory that all particles may take there; a cloud that needs more lives in a file on the disk of --out. [GiB]
    #[schemars(range(min = 0.0))]
    pub memory: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParticleDevice {
    /// That of the device that computes.
    Model,
    /// Main memory; each batch is copied to the device that computes, and back.
    Cpu,
}

impl Default for ParticlesSection {
    fn default() -> Self {
        Self {
            device: ParticleDevice::Model,
            memory: 2.0,
        }
    }
}

/// The decoder p(y|x) = N(y; g(x), σ²I).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecoderSection {
    /// Standard deviation σ of the decoder. [data units]
    #[schemars(range(min = 1e-6))]
    pub sigma: f64,
}

impl Default for DecoderSection {
    fn default() -> Self {
        Self { sigma: 0.3 }
    }
}

/// How the parameters of both networks are updated.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerSection {
    /// For the energy's parameters α.
    pub energy: OptimizerConfig,
    /// For the generator's parameters β.
    pub generator: OptimizerConfig,
}

/// Terms added to the losses.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LossSection {
    /// Adds λ·E U² over posterior and prior samples to the energy's loss, with this λ. [1/energy]
    #[schemars(range(min = 0.0))]
    pub energy_l2: f64,
}

/// When a run counts as diverged. A limit of null never does.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GuardSection {
    /// Looks after every so many steps; 0: only when numbers are recorded. [steps]
    pub every: u64,
    /// Largest mean energy of posterior or prior samples, in absolute value. [energy]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub energy: Option<f64>,
    /// Largest coordinate of a particle or of a prior chain, in absolute value. [latent units]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub latent: Option<f64>,
    /// Largest norm of a network's gradient. [gradient]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub gradient: Option<f64>,
}

impl Default for GuardSection {
    fn default() -> Self {
        Self {
            every: 10,
            energy: Some(1e4),
            latent: Some(1e3),
            gradient: Some(1e7),
        }
    }
}

/// What is measured, and how often.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluateSection {
    /// Interval between evaluations, in steps; 0 evaluates only at the end. All evaluations of a run draw the same random numbers. [steps]
    pub every: u64,
    /// Metrics by name, each with its options.
    pub metrics: BTreeMap<String, Value>,
}

/// What is written, and how often.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecordSection {
    /// Lines of metrics.jsonl.
    pub metrics: Every,
    /// TensorBoard scalars.
    pub tensorboard: Every,
    /// All that it takes to resume the run.
    pub checkpoint: CheckpointRecord,
    /// HDF5 dumps of the particles.
    pub particles: ParticleRecord,
    /// Pictures of the model.
    pub figures: Every,
}

impl Default for RecordSection {
    fn default() -> Self {
        Self {
            metrics: Every { every: 10 },
            tensorboard: Every { every: 10 },
            checkpoint: CheckpointRecord::default(),
            particles: ParticleRecord::default(),
            figures: Every { every: 0 },
        }
    }
}

/// How often checkpoints are written, and how many are kept.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointRecord {
    /// After every so many steps; 0: only at the end. [steps]
    pub every: u64,
    /// How many of the last ones are kept. [checkpoints]
    #[schemars(range(min = 1))]
    pub keep: usize,
    /// Keeps also the best one so far by a metric; null keeps none for being good. Its value is optimistic: it was picked by
    /// the one set of random numbers that all evaluations of the run draw.
    pub best: Option<BestRecord>,
}

/// By which number a checkpoint is the best.
///
/// All evaluations of a run draw the same random numbers, so that the best one suits these as well: its own value is
/// optimistic, and stays so when it is measured again with the run's seed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BestRecord {
    /// A number that `evaluate` gives, e.g. sliced_w2; one is taken whenever it is measured.
    pub metric: String,
    /// Which values are better; null asks the metric, which knows for most of its numbers.
    pub better: Option<Better>,
}

impl CheckpointRecord {
    /// Whether one is due after `done` steps (the end is the caller's business).
    pub fn due(&self, done: u64) -> bool {
        Every { every: self.every }.due(done)
    }
}

impl Default for CheckpointRecord {
    fn default() -> Self {
        Self {
            every: 1000,
            keep: 2,
            best: None,
        }
    }
}

/// How often particles are dumped, which, and how tightly packed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ParticleRecord {
    /// After every so many steps; 0: only at the end. [steps]
    pub every: u64,
    /// Also after every so many epochs; 0: not. [epochs]
    pub every_epochs: u64,
    /// Only those of so many data points, drawn at random once for the run; null dumps all. [points]
    #[schemars(range(min = 1))]
    pub points: Option<usize>,
    /// How hard to compress (shuffle and deflate), from 1 to 9; 0: not at all. [level]
    #[schemars(range(max = 9))]
    pub deflate: u8,
}

impl ParticleRecord {
    /// Whether a dump is due after `done` steps, with so many to an epoch (the end is the caller's business).
    pub fn due(&self, done: u64, steps_per_epoch: u64) -> bool {
        let every = |every: u64| Every { every }.due(done);
        every(self.every) || every(self.every_epochs.saturating_mul(steps_per_epoch))
    }
}

/// What others published for this experiment, for a report to print beside ours.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PublishedSection {
    /// Where the numbers stand.
    pub source: String,
    /// Numbers by the name that ours have, such as fid or seconds_per_step, each as [value] or [value, standard error].
    pub numbers: BTreeMap<String, Vec<f64>>,
    /// Values of this recipe that they were obtained with, by dotted key; a report warns where a run has others.
    pub settings: BTreeMap<String, f64>,
}

/// How often something is written.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Every {
    /// After every so many steps; 0: only at the end. [steps]
    pub every: u64,
}

impl Every {
    /// Whether it is due after `done` steps (the end is the caller's business).
    pub fn due(&self, done: u64) -> bool {
        self.every > 0 && done.is_multiple_of(self.every)
    }
}

/// What a section of a recipe holds.
#[derive(Clone, Copy, Debug)]
pub enum SectionKind {
    /// A plugin's name and options.
    Plugin(Kind),
    /// Optional: the plugin of another section with other options, or another plugin of that kind.
    Variant { kind: Kind, of: &'static str },
    /// Fixed options.
    Options(fn() -> Vec<OptionSpec>),
    /// The same, but left out where a recipe says nothing: what is told about an experiment, not part of it.
    Notes(fn() -> Vec<OptionSpec>),
}

fn options<T: JsonSchema>() -> Vec<OptionSpec> {
    ebipla_core::registry::options_of_type::<T>()
}

/// All sections, in the order in which a recipe is printed.
pub const SECTIONS: [(&str, SectionKind); 16] = [
    ("run", SectionKind::Options(options::<RunSection>)),
    ("dataset", SectionKind::Plugin(Kind::Dataset)),
    ("energy", SectionKind::Plugin(Kind::Energy)),
    ("generator", SectionKind::Plugin(Kind::Generator)),
    ("decoder", SectionKind::Options(options::<DecoderSection>)),
    ("prior_sampler", SectionKind::Plugin(Kind::PriorSampler)),
    (
        "prior_chains",
        SectionKind::Options(options::<PriorChainsSection>),
    ),
    ("algorithm", SectionKind::Plugin(Kind::Algorithm)),
    ("optimizer", SectionKind::Options(options::<OptimizerSection>)),
    ("loss", SectionKind::Options(options::<LossSection>)),
    ("guard", SectionKind::Options(options::<GuardSection>)),
    ("evaluate", SectionKind::Options(options::<EvaluateSection>)),
    (
        "evaluation_sampler",
        SectionKind::Variant {
            kind: Kind::PriorSampler,
            of: "prior_sampler",
        },
    ),
    ("record", SectionKind::Options(options::<RecordSection>)),
    ("published", SectionKind::Notes(options::<PublishedSection>)),
    ("slurm", SectionKind::Options(options::<SlurmSection>)),
];

#[cfg(test)]
mod tests {
    use ebipla_core::registry::OnlyWith;

    use super::*;

    /// The sections of a recipe; what plugins have, the tests of conformance see.
    #[test]
    fn every_number_of_a_section_has_bounds_and_every_condition_an_option() {
        fn look(section: &str, options: &[OptionSpec]) {
            for option in options {
                let finite = option.unit.as_deref() == Some("any integer") || option.kind.is_bounded();
                assert!(finite, "{section}.{} is an open {}", option.name, option.kind);
                let condition = option.only_with.as_ref().map(OnlyWith::option);
                let known = |name| options.iter().any(|other| other.name == name);
                assert!(condition.is_none_or(known), "{section}.{}", option.name);
                look(&format!("{section}.{}", option.name), &option.options);
            }
        }
        for (name, kind) in SECTIONS {
            if let SectionKind::Options(options) | SectionKind::Notes(options) = kind {
                look(name, &options());
            }
        }
    }
}
