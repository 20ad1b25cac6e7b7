//! Builds what it takes to look at a model: data, networks, sampler and metrics, without what trains it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use ebipla_core::system::panics::caught;
use ebipla_core::{
    DataFacts, Dataset, Energy, Facts, Generator, Metric, Model, PriorSampler, Purpose, Random, Registry,
    Split, Subject,
};
use tch::{Device, Tensor};

use super::building::{self, build, build_of_kind, chain, scope, wrong};
use super::checkpoint::Checkpoint;
use super::findings::{Findings, Measured};
use crate::{Problem, Recipe};

/// A model with its data, and how it is sampled and measured.
pub struct Setup {
    pub recipe: Recipe,
    pub device: Device,
    pub dataset: Arc<dyn Dataset>,
    pub model: Model,
    /// What samples the prior in evaluation.
    pub sampler: Box<dyn PriorSampler>,
    metrics: Vec<(String, Box<dyn Metric>)>,
    pub(super) random: Random,
    pub(super) batch_size: usize,
    /// Whether it was built on a handful of data points.
    tiny: bool,
}

/// What names of files with averages of weights end in.
pub(super) const AVERAGE: &str = "_average";

impl Setup {
    /// Builds it with fresh weights; what goes wrong here is wrong with the recipe. The disk of the folder `out` takes
    /// what is too much for memory.
    pub fn build(recipe: Recipe, registry: &Registry, purpose: Purpose, out: &Path) -> anyhow::Result<Self> {
        let device = building::device(&recipe)?;
        if let Some(threads) = recipe.run.threads {
            tch::set_num_threads(threads as i32);
        }
        let mut random = Random::new(recipe.run.seed);
        let mut scope = scope(&recipe, device, purpose, out, &mut random);

        let dataset: Box<dyn Dataset> = build_of_kind(&recipe, registry, &mut scope)?;
        let count = dataset.len(Split::Train);
        if recipe.run.batch_size > count {
            let message = format!(
                "found {}, expected at most the {count} training points of the data set",
                recipe.run.batch_size
            );
            let origin = recipe.origin("run.batch_size");
            return Err(wrong(&recipe, Problem::at("run.batch_size", origin, message)).into());
        }
        let dataset: Box<dyn Dataset> = match purpose {
            Purpose::Start | Purpose::Restore => dataset,
            Purpose::Trial => {
                let head = Head::new(dataset, TINY);
                // Some algorithms take all data in a batch: what is whole stays whole, what is not stays in parts.
                scope.batch_size = if recipe.run.batch_size == count {
                    head.len(Split::Train)
                } else {
                    recipe.run.batch_size.min(TINY / 2)
                };
                Box::new(head)
            }
        };
        let dataset: Arc<dyn Dataset> = Arc::from(dataset);
        scope.data = DataFacts {
            count: dataset.len(Split::Train),
            shape: dataset.shape().to_vec(),
        };
        let batch_size = scope.batch_size;

        let generator: Box<dyn Generator> = build_of_kind(&recipe, registry, &mut scope)?;
        scope.latent_dim = generator.latent_dim();
        let energy: Box<dyn Energy> = build_of_kind(&recipe, registry, &mut scope)?;
        let sampler = match build("evaluation_sampler", &recipe, registry, &mut scope)? {
            Some(sampler) => sampler,
            None => build_of_kind(&recipe, registry, &mut scope)?,
        };
        let mut metrics = Vec::new();
        for (name, options) in recipe.metrics() {
            let metric = registry
                .build::<dyn Metric>(name, options, &mut scope)
                .map_err(|error| {
                    let key = format!("evaluate.metrics.{name}");
                    wrong(&recipe, Problem::at(key, None, chain(&error)))
                })?;
            if metric.needs_held_out() && dataset.is_empty(Split::Validation) {
                let key = format!("evaluate.metrics.{name}");
                let message = "it measures on held-out points, but the data set has none; leave it out, or give the data \
                               set a validation split";
                return Err(wrong(&recipe, Problem::at(key, None, message)).into());
            }
            metrics.push((name.to_owned(), metric));
        }
        Ok(Self {
            device,
            dataset,
            model: Model::new(energy, generator, recipe.decoder.sigma),
            sampler,
            metrics,
            random,
            batch_size,
            tiny: purpose == Purpose::Trial,
            recipe,
        })
    }

    /// Takes the weights from a checkpoint that a run evaluates with: averages where it keeps them.
    pub fn load_for_evaluation(&self, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        let optimizer = &self.recipe.optimizer;
        let averaged = optimizer.energy.average.is_some() || optimizer.generator.average.is_some();
        self.load_files(checkpoint, if averaged { AVERAGE } else { "" })
    }

    pub(super) fn load_files(&self, checkpoint: &Checkpoint, suffix: &str) -> anyhow::Result<()> {
        let file = |name: &str| checkpoint.file(&format!("{name}{suffix}.safetensors"));
        self.model.energy.parameters().load(&file("energy")?)?;
        self.model.generator.parameters().load(&file("generator")?)
    }

    /// Measures every metric that the recipe asks for.
    pub fn evaluate(&self) -> anyhow::Result<Findings> {
        let mut all = Findings::default();
        for (name, metric) in &self.metrics {
            let mut random = self.streams_for("evaluation");
            let subject = Subject {
                model: &self.model,
                prior_sampler: self.sampler.as_ref(),
                dataset: self.dataset.as_ref(),
                device: self.device,
                random: &mut random,
                quick: self.tiny,
            };
            let facts = self.with_settings(metric.facts(&subject));
            let scalars = caught(|| metric.measure(subject)).with_context(|| format!("measuring {name}"))?;
            all.add(Measured {
                metric: name.clone(),
                numbers: scalars.read(),
                facts,
            });
        }
        Ok(all)
    }

    /// Adds how samples were drawn and what the data are to what a metric has to say, if it has anything.
    fn with_settings(&self, mut facts: Facts) -> Facts {
        if !facts.is_empty() {
            let section = |name: &str| self.recipe.value(name).filter(|value| value.is_object()).cloned();
            let sampler = section("evaluation_sampler").or_else(|| section("prior_sampler"));
            let settings = [("sampler", sampler), ("dataset", section("dataset"))];
            facts.extend(settings.map(|(name, section)| (name.to_owned(), section.into())));
        }
        facts
    }

    /// `n` latents from the prior sampler and what the decoder makes of them.
    pub fn sample(&self, n: i64) -> anyhow::Result<(Tensor, Tensor)> {
        let mut random = self.streams_for("figures");
        let mut draws = random.stream("samples", 0);
        let chains = ebipla_core::chains::run_from_noise(
            self.sampler.as_ref(),
            &self.model,
            n,
            self.device,
            &mut draws,
        )?;
        let samples = self.model.decode(&chains.last, &mut draws);
        Ok((chains.last, samples))
    }

    /// Streams apart from those of the training, so that looking at a run does not change it.
    pub fn streams_for(&self, purpose: &str) -> Random {
        self.random.fork(purpose)
    }
}

/// Data points of a trial.
const TINY: usize = 8;

/// The first few points of a data set.
struct Head {
    whole: Box<dyn Dataset>,
    count: usize,
}

impl Head {
    fn new(whole: Box<dyn Dataset>, count: usize) -> Self {
        Self { whole, count }
    }
}

impl Dataset for Head {
    fn shape(&self) -> &[i64] {
        self.whole.shape()
    }

    fn len(&self, split: Split) -> usize {
        self.whole.len(split).min(self.count)
    }

    fn get(&self, split: Split, indices: &Tensor) -> anyhow::Result<Tensor> {
        self.whole.get(split, indices)
    }

    fn labels(&self, split: Split) -> Option<Tensor> {
        let labels = self.whole.labels(split)?;
        Some(labels.narrow(0, 0, self.len(split) as i64))
    }

    fn identity(&self, split: Split) -> Option<String> {
        self.whole.identity(split)
    }

    fn log_density(&self, y: &Tensor) -> Option<Tensor> {
        self.whole.log_density(y)
    }
}
