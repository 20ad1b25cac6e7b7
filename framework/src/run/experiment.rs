//! Builds everything a recipe names, and takes steps with it.

use std::ops::Deref;
use std::path::Path;

use anyhow::Context;

use super::Setup;
use super::batches::{Batch, Batches};
use super::building::{build_of_kind, scope, wrong};
use super::findings::Findings;
use super::setup::AVERAGE;
use crate::interrupt::Guard;
use crate::{
    Algorithm, Averages, DataFacts, GradientCount, Optimizer, Persistent, PriorChains, Problem, Purpose,
    Recipe, RecipeError, Registry, Scalars, Split, Step,
};

/// A recipe come alive: a model with its data, and what trains it.
pub struct Experiment {
    setup: Setup,
    batches: Batches,
    prior_chains: PriorChains,
    pub algorithm: Box<dyn Algorithm>,
    energy_optimizer: Optimizer,
    generator_optimizer: Optimizer,
    gradients_taken: GradientCount,
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
        check_best(&recipe)?;
        for warning in &recipe.warnings {
            tracing::warn!("{warning}");
        }
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
        let optimizers = &recipe.optimizer;
        Ok(Self {
            batches: Batches::new(dataset.clone(), *batch_size)?,
            prior_chains: PriorChains::new(prior_sampler, recipe.prior_chains.clone()),
            algorithm,
            energy_optimizer: Optimizer::new(optimizers.energy.clone(), model.energy.parameters().tensors()),
            generator_optimizer: Optimizer::new(
                optimizers.generator.clone(),
                model.generator.parameters().tensors(),
            ),
            gradients_taken: GradientCount::default(),
            setup,
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
        let _whole = Guard::whole();
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
        scalars.add_number("learning_rate/energy", self.energy_optimizer.learning_rate());
        scalars.add_number(
            "learning_rate/generator",
            self.generator_optimizer.learning_rate(),
        );
        Ok(scalars)
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

    /// Replaces the weights by those in `folder`.
    pub fn load_weights(&self, folder: &Path) -> anyhow::Result<()> {
        self.load_files(folder, "")
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
