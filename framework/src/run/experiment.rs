//! Builds everything a recipe names, and takes steps with it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use tch::{Device, Tensor};

use super::batches::{Batch, Batches};
use super::findings::{Findings, Measured};
use crate::recipe::ParticleDevice;
use crate::{
    Algorithm, Averages, DataFacts, Dataset, Energy, Facts, Generator, Metric, Model, Optimizer, Persistent,
    PriorChains, PriorSampler, Problem, Product, Random, Recipe, RecipeError, Registry, Scalars, Scope,
    Split, Step, Storage, Subject, device,
};

/// A recipe come alive.
pub struct Experiment {
    pub recipe: Recipe,
    pub device: Device,
    pub dataset: Arc<dyn Dataset>,
    batches: Batches,
    pub model: Model,
    prior_chains: PriorChains,
    /// For evaluation, where it is not that of the training.
    evaluation_sampler: Option<Box<dyn PriorSampler>>,
    pub algorithm: Box<dyn Algorithm>,
    pub metrics: Vec<(String, Box<dyn Metric>)>,
    energy_optimizer: Optimizer,
    generator_optimizer: Optimizer,
    random: Random,
    /// Whether it was built on a handful of data points.
    tiny: bool,
}

/// Data points of a trial.
const TINY: usize = 8;

/// What names of files with averages of weights end in.
const AVERAGE: &str = "_average";

impl Experiment {
    /// Builds everything; what goes wrong here is wrong with the recipe, and nothing has been written.
    ///
    /// The disk of the folder `out` takes what is too much for memory.
    pub fn build(recipe: Recipe, registry: &Registry, purpose: Purpose, out: &Path) -> anyhow::Result<Self> {
        check_best(&recipe)?;
        let device = device::resolve(&recipe.run.device).map_err(|error| {
            wrong(
                &recipe,
                Problem::at("run.device", recipe.origin("run.device"), error.to_string()),
            )
        })?;
        if let Some(threads) = recipe.run.threads {
            tch::set_num_threads(threads as i32);
        }
        let mut random = Random::new(recipe.run.seed);
        let mut scope = Scope {
            purpose,
            device,
            storage: storage(&recipe, device, purpose, out),
            random: &mut random,
            data: DataFacts::default(),
            latent_dim: 0,
            sigma: recipe.decoder.sigma,
            batch_size: recipe.run.batch_size,
        };

        let mut dataset: Box<dyn Dataset> = build_of_kind(&recipe, registry, &mut scope)?;
        let count = dataset.len(Split::Train);
        if recipe.run.batch_size > count {
            let message = format!(
                "found {}, expected at most the {count} training points of the data set",
                recipe.run.batch_size
            );
            let origin = recipe.origin("run.batch_size");
            return Err(wrong(&recipe, Problem::at("run.batch_size", origin, message)).into());
        }
        if purpose == Purpose::Trial {
            dataset = Box::new(Head::new(dataset, TINY));
            // Some algorithms take all data in a batch: what is whole stays whole, what is not stays in parts.
            scope.batch_size = if recipe.run.batch_size == count {
                dataset.len(Split::Train)
            } else {
                recipe.run.batch_size.min(TINY / 2)
            };
        }
        scope.data = DataFacts {
            count: dataset.len(Split::Train),
            shape: dataset.shape().to_vec(),
        };
        let dataset: Arc<dyn Dataset> = Arc::from(dataset);
        let batches = Batches::new(dataset.clone(), scope.batch_size)?;

        let generator: Box<dyn Generator> = build_of_kind(&recipe, registry, &mut scope)?;
        scope.latent_dim = generator.latent_dim();
        let energy: Box<dyn Energy> = build_of_kind(&recipe, registry, &mut scope)?;
        let prior_sampler = build_of_kind(&recipe, registry, &mut scope)?;
        let evaluation_sampler = build("evaluation_sampler", &recipe, registry, &mut scope)?;
        let algorithm = build_of_kind(&recipe, registry, &mut scope)?;
        let mut metrics = Vec::new();
        for (name, options) in recipe.metrics() {
            let metric = registry
                .build::<dyn Metric>(name, options, &mut scope)
                .map_err(|error| {
                    wrong(
                        &recipe,
                        Problem::at(format!("evaluate.metrics.{name}"), None, chain(&error)),
                    )
                })?;
            metrics.push((name.to_owned(), metric));
        }

        Ok(Self {
            device,
            dataset,
            batches,
            energy_optimizer: Optimizer::new(recipe.optimizer.energy.clone(), energy.parameters().tensors()),
            generator_optimizer: Optimizer::new(
                recipe.optimizer.generator.clone(),
                generator.parameters().tensors(),
            ),
            model: Model {
                energy,
                generator,
                sigma: recipe.decoder.sigma,
            },
            prior_chains: PriorChains::new(prior_sampler, recipe.prior_chains.clone()),
            evaluation_sampler,
            algorithm,
            metrics,
            random,
            tiny: size == Size::Tiny,
            recipe,
        })
    }

    /// Mini-batches in one pass over the data, a ragged last one included.
    pub fn steps_per_epoch(&self) -> u64 {
        self.batches.per_epoch()
    }

    /// How many steps the recipe asks for.
    pub fn total_steps(&self) -> u64 {
        let all = self.recipe.run.epochs.saturating_mul(self.steps_per_epoch());
        self.recipe.run.max_steps.map_or(all, |most| most.min(all))
    }

    /// Takes step number `k`, counted from 0.
    pub fn step(&mut self, k: u64) -> anyhow::Result<Scalars> {
        let epoch = k / self.steps_per_epoch();
        let Batch { indices, data } = self.batches.get(k, &mut self.random)?;
        let data = data.to_device(self.device);
        self.energy_optimizer.set_epoch(epoch);
        self.generator_optimizer.set_epoch(epoch);
        let mut scalars = self
            .algorithm
            .step(Step {
                number: k,
                indices: &indices,
                data: &data,
                model: &self.model,
                prior_chains: &mut self.prior_chains,
                energy_optimizer: &mut self.energy_optimizer,
                generator_optimizer: &mut self.generator_optimizer,
                random: &mut self.random,
                energy_l2: self.recipe.loss.energy_l2,
            })
            .with_context(|| format!("in step {k}"))?;
        scalars.add_number("learning_rate/energy", self.energy_optimizer.learning_rate());
        scalars.add_number(
            "learning_rate/generator",
            self.generator_optimizer.learning_rate(),
        );
        Ok(scalars)
    }

    /// Measures every metric that the recipe asks for.
    pub fn evaluate(&self) -> anyhow::Result<Findings> {
        let _averages = self.averages();
        let mut all = Findings::default();
        for (name, metric) in &self.metrics {
            let mut random = self.streams_for("evaluation");
            let subject = Subject {
                model: &self.model,
                prior_sampler: self.evaluation_sampler(),
                dataset: self.dataset.as_ref(),
                device: self.device,
                random: &mut random,
                quick: self.tiny,
            };
            let facts = self.with_settings(metric.facts(&subject));
            let scalars = metric
                .measure(subject)
                .with_context(|| format!("measuring {name}"))?;
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
        let chains = self
            .evaluation_sampler()
            .sample_from_noise(&self.model, n, self.device, &mut draws)?;
        let samples = self.model.decode(&chains.last, &mut draws);
        Ok((chains.last, samples))
    }

    fn evaluation_sampler(&self) -> &dyn PriorSampler {
        self.evaluation_sampler
            .as_deref()
            .unwrap_or_else(|| self.prior_chains.sampler())
    }

    /// Everything with a state, under names that stay the same.
    pub fn parts(&mut self) -> [(&'static str, &mut dyn Persistent); 4] {
        [
            ("energy_optimizer", &mut self.energy_optimizer),
            ("generator_optimizer", &mut self.generator_optimizer),
            ("prior_chains", &mut self.prior_chains),
            ("algorithm", &mut *self.algorithm),
        ]
    }

    /// Writes the weights to `folder`, and their averages where they are kept.
    pub fn save_weights(&self, folder: &Path) -> anyhow::Result<()> {
        let save = |suffix: &str| {
            let file = |name: &str| folder.join(format!("{name}{suffix}.safetensors"));
            self.model.energy.parameters().save(&file("energy"))?;
            self.model.generator.parameters().save(&file("generator"))
        };
        save("")?;
        if self.has_averages() {
            let _averages = self.averages();
            save(AVERAGE)?;
        }
        Ok(())
    }

    /// Replaces the weights by those in `folder`.
    pub fn load_weights(&self, folder: &Path) -> anyhow::Result<()> {
        self.load_from(folder, "")
    }

    /// The same with those that a run evaluates with: averages where it keeps them.
    pub fn load_for_evaluation(&mut self, folder: &Path) -> anyhow::Result<()> {
        self.load_from(folder, if self.has_averages() { AVERAGE } else { "" })?;
        self.energy_optimizer.restart_averages();
        self.generator_optimizer.restart_averages();
        Ok(())
    }

    fn load_from(&self, folder: &Path, suffix: &str) -> anyhow::Result<()> {
        let file = |name: &str| folder.join(format!("{name}{suffix}.safetensors"));
        self.model.energy.parameters().load(&file("energy"))?;
        self.model.generator.parameters().load(&file("generator"))
    }

    /// Whether a network is evaluated with averages of its parameters.
    pub fn has_averages(&self) -> bool {
        self.energy_optimizer.has_averages() || self.generator_optimizer.has_averages()
    }

    /// Puts the averages of the parameters in their place, as long as they are held.
    pub fn averages(&self) -> [Averages; 2] {
        [
            self.energy_optimizer.averages(),
            self.generator_optimizer.averages(),
        ]
    }

    /// Streams apart from those of the training, so that looking at a run does not change it.
    pub fn streams_for(&self, purpose: &str) -> Random {
        self.random.fork(purpose)
    }
}

/// Whether the number by which a checkpoint is the best will be measured.
fn check_best(recipe: &Recipe) -> Result<(), RecipeError> {
    let Some(best) = &recipe.record.checkpoint.best else {
        return Ok(());
    };
    // Behind a slash stands which of a metric's numbers it is.
    let metric = best.metric.split('/').next().unwrap_or_default();
    if recipe.metrics().any(|(name, _)| name == metric) {
        return Ok(());
    }
    let key = "record.checkpoint.best.metric";
    let message = format!("`{}` is not among evaluate.metrics", best.metric);
    let names: Vec<_> = recipe.metrics().map(|(name, _)| name).collect();
    let problem = Problem::at(key, recipe.origin(key), message).with_names(metric, names);
    Err(wrong(recipe, problem))
}

fn storage(recipe: &Recipe, device: Device, purpose: Purpose, out: &Path) -> Storage {
    let particles = &recipe.run.particles;
    let storage = match particles.device {
        ParticleDevice::Model => Storage::on(device),
        ParticleDevice::Cpu => Storage::on(device).in_main_memory(),
    };
    match purpose {
        Purpose::Start | Purpose::Restore => storage.with_budget(particles.memory, out),
        Purpose::Trial => storage,
    }
}

/// Builds the plugin of the section that is called like its kind.
fn build_of_kind<T: Product + ?Sized>(
    recipe: &Recipe,
    registry: &Registry,
    scope: &mut Scope,
) -> Result<Box<T>, RecipeError> {
    let section = T::KIND.name();
    build(section, recipe, registry, scope)?
        .ok_or_else(|| wrong(recipe, Problem::at(section, None, "the section is missing")))
}

/// Builds the plugin that a section names, if the recipe has that section.
fn build<T: Product + ?Sized>(
    section: &str,
    recipe: &Recipe,
    registry: &Registry,
    scope: &mut Scope,
) -> Result<Option<Box<T>>, RecipeError> {
    let Some((name, options)) = recipe.plugin(section) else {
        return Ok(None);
    };
    let built = registry.build::<T>(name, &options, scope).map_err(|error| {
        let origin = recipe.origin(&format!("{section}.name"));
        wrong(recipe, Problem::at(section, origin, chain(&error)))
    })?;
    Ok(Some(built))
}

fn wrong(recipe: &Recipe, problem: Problem) -> RecipeError {
    RecipeError::one(recipe.name.clone(), problem)
}

fn chain(error: &anyhow::Error) -> String {
    format!("{error:#}")
}

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

    fn log_density(&self, y: &Tensor) -> Option<Tensor> {
        self.whole.log_density(y)
    }
}
