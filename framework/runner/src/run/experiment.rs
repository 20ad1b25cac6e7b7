//! Builds everything a recipe names, and takes steps with it.

use std::ops::Deref;
use std::path::Path;

use anyhow::Context;
use ebipla_core::system::interrupt::Whole;
use ebipla_core::{
    Algorithm, Averages, DataFacts, GradientCount, Optimizer, Parameters, Persistent, PriorChains, Purpose,
    Registry, Scalars, Split, Step, state,
};

use super::Setup;
use super::batches::{Batch, Batches};
use super::building::{build_of_kind, scope, wrong};
use super::checkpoint::{BestBy, Checkpoint};
use super::findings::Findings;
use super::guard::{Advice, Diverged};
use super::setup::AVERAGE;
use crate::recipe::BestRecord;
use crate::{Problem, Recipe, RecipeError};

/// A recipe come alive: a model with its data, and what trains it.
pub struct Experiment {
    setup: Setup,
    batches: Batches,
    prior_chains: PriorChains,
    pub algorithm: Box<dyn Algorithm>,
    energy_optimizer: Optimizer,
    generator_optimizer: Optimizer,
    gradients_taken: GradientCount,
    best: Option<BestBy>,
    /// Whether it has been said which limits of the guard have nothing to watch.
    guard_is_known: bool,
}

/// What is there to look at, it has from its [`Setup`].
impl Deref for Experiment {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

impl Experiment {
    /// Builds everything; what goes wrong here is wrong with the recipe, and nothing has been written.
    ///
    /// The disk of the folder `out` takes what is too much for memory.
    pub fn build(recipe: Recipe, registry: &Registry, purpose: Purpose, out: &Path) -> anyhow::Result<Self> {
        let best = best(&recipe, registry)?;
        let mut setup = Setup::build(recipe, registry, purpose, out)?;
        let Setup {
            recipe,
            device,
            dataset,
            model,
            random,
            batch_size,
            ..
        } = &mut setup;
        let mut scope = scope(recipe, *device, purpose, out, random);
        scope.data = DataFacts {
            count: dataset.len(Split::Train),
            shape: dataset.shape().to_vec(),
        };
        scope.latent_dim = model.generator.latent_dim();
        scope.batch_size = *batch_size;
        let prior_sampler = build_of_kind(recipe, registry, &mut scope)?;
        let algorithm = build_of_kind(recipe, registry, &mut scope)?;
        let optimizers = recipe.optimizer.clone();
        let averaging = |config, network: &Parameters| Optimizer::averaging(config, network.tensors());
        let mut experiment = Self {
            batches: Batches::new(dataset.clone(), *batch_size)?,
            prior_chains: PriorChains::new(prior_sampler, recipe.prior_chains.clone()),
            algorithm,
            energy_optimizer: averaging(optimizers.energy, model.energy.parameters()),
            generator_optimizer: averaging(optimizers.generator, model.generator.parameters()),
            gradients_taken: GradientCount::default(),
            best,
            guard_is_known: false,
            setup,
        };
        for (part, state) in experiment.parts() {
            state::ensure_distinct(part, state)?;
        }
        Ok(experiment)
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
        let _whole = Whole::begin();
        let epoch = k / self.steps_per_epoch();
        let Batch { indices, data } = self.batches.get(k, &mut self.setup.random)?;
        let data = data.to_device(self.device);
        let before = self.model.gradient_count();
        self.energy_optimizer.set_epoch(epoch);
        self.generator_optimizer.set_epoch(epoch);
        let mut scalars = self
            .algorithm
            .step(Step {
                number: k,
                indices: &indices,
                data: &data,
                model: &self.setup.model,
                prior_chains: &mut self.prior_chains,
                energy_optimizer: &mut self.energy_optimizer,
                generator_optimizer: &mut self.generator_optimizer,
                random: &mut self.setup.random,
                energy_l2: self.setup.recipe.loss.energy_l2,
            })
            .with_context(|| format!("in step {k}"))?;
        self.gradients_taken = self.model.gradient_count().since(before);
        if !std::mem::replace(&mut self.guard_is_known, true) {
            for message in self.recipe.guard.unwatched(&scalars) {
                tracing::warn!("{message}");
            }
        }
        scalars.add_number("learning_rate/energy", self.energy_optimizer.learning_rate());
        scalars.add_number(
            "learning_rate/generator",
            self.generator_optimizer.learning_rate(),
        );
        Ok(scalars)
    }

    /// What makes a checkpoint the best, if one is to be kept for that.
    pub fn best(&self) -> Option<BestBy> {
        self.best.clone()
    }

    /// Whether the numbers of step `done`, which are those of `scalars`, are within the recipe's limits.
    pub fn guard(&self, done: u64, scalars: &Scalars, numbers: &[(String, f64)]) -> Result<(), Diverged> {
        let limits = &self.recipe.guard;
        limits.check(done, scalars, numbers, |quantity| self.advice().about(quantity))
    }

    /// What to try against divergence.
    fn advice(&self) -> Advice<'_> {
        Advice {
            recipe: &self.recipe,
            optimizers_used: [&self.energy_optimizer, &self.generator_optimizer].map(Optimizer::is_used),
        }
    }

    /// How many gradients the last step took.
    pub fn gradients_taken(&self) -> GradientCount {
        self.gradients_taken
    }

    /// Measures every metric that the recipe asks for, with averages where they are kept.
    pub fn evaluate(&self) -> anyhow::Result<Findings> {
        let _averages = self.averages();
        self.setup.evaluate()
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

    /// Refuses weights and particles that are not finite. The numbers of a step are taken before its update, and only on its
    /// batch: they do not show this.
    pub fn ensure_finite(&mut self, step: u64) -> Result<(), Diverged> {
        self.ensure_finite_weights(step)?;
        let mut not_finite = None;
        for (_, state) in self.parts() {
            for (name, store) in state::clouds(state) {
                let found = || store.not_finite().map(|(point, value)| (name, point, value));
                not_finite = not_finite.or_else(found);
            }
        }
        match not_finite {
            None => Ok(()),
            Some((name, point, value)) => {
                let quantity = format!("a number among the {name} of data point {point}");
                let advice = self.advice().about("latent/posterior");
                Err(Diverged::not_finite(quantity, value, step, advice))
            }
        }
    }

    fn ensure_finite_weights(&self, step: u64) -> Result<(), Diverged> {
        let networks = [
            ("energy", self.model.energy.parameters()),
            ("generator", self.model.generator.parameters()),
        ];
        for (network, parameters) in networks {
            // A sum in double precision is finite where all numbers of single precision are.
            let sums = parameters.tensors().into_iter();
            let mut sums = sums.map(|tensor| tensor.sum(tch::Kind::Double).double_value(&[]));
            if let Some(sum) = sums.find(|sum| !sum.is_finite()) {
                let advice = self.advice().about(&format!("weights/{network}"));
                let quantity = format!("a weight of the {network}");
                return Err(Diverged::not_finite(quantity, sum, step, advice));
            }
        }
        Ok(())
    }

    /// Replaces the weights by those of a checkpoint.
    pub fn load_weights(&self, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        self.load_files(checkpoint, "")
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
}

/// The number by which a checkpoint is the best, which must be measured, and which of its values are better.
fn best(recipe: &Recipe, registry: &Registry) -> Result<Option<BestBy>, RecipeError> {
    let Some(BestRecord { metric, better }) = &recipe.record.checkpoint.best else {
        return Ok(None);
    };
    let problem = |option: &str, message: String| {
        let key = format!("record.checkpoint.best.{option}");
        let origin = recipe.origin(&key).cloned();
        Problem::at(key, origin.as_ref(), message)
    };
    // Behind a slash stands which of a metric's numbers it is.
    let owner = metric.split('/').next().unwrap_or_default();
    if !recipe.metrics().any(|(name, _)| name == owner) {
        let names: Vec<_> = recipe.metrics().map(|(name, _)| name).collect();
        let problem = problem("metric", format!("`{metric}` is not among evaluate.metrics"));
        return Err(wrong(recipe, problem.with_names(owner, names)));
    }
    let better = match (registry.better(metric), *better) {
        (Some(known), Some(other)) if known != other => {
            let message =
                format!("found `{other}`, but {known} values of `{metric}` are better; leave it out");
            return Err(wrong(recipe, problem("better", message)));
        }
        (None, None) => {
            let message =
                format!("`{metric}` does not say which of its values are better: set `lower` or `higher`");
            return Err(wrong(recipe, problem("better", message)));
        }
        (known, set) => known.or(set),
    };
    Ok(better.map(|better| BestBy {
        metric: metric.clone(),
        better,
    }))
}
