//! Prior chains: the engine in use against libtorch by hand and by autograd, and against matrix products alone.

use std::path::Path;

use ebipla_core::{Chains, Energy, Kind, Parameters, PriorSampler, Purpose};
use serde_json::json;
use tch::Tensor;

use super::Settings;
use super::cases::made_up;
use super::peers::Peers;
use super::products::{LayerProducts, wait_for};
use super::stopwatch::{Contender, race};
use super::table::Table;
use crate::Recipe;
use crate::run::Setup;

/// An energy whose gradient nobody has written down.
struct Autograd<'a>(&'a dyn Energy);

impl Energy for Autograd<'_> {
    fn parameters(&self) -> &Parameters {
        self.0.parameters()
    }

    fn energy(&self, x: &Tensor) -> Tensor {
        self.0.energy(x)
    }
}

const COLUMNS: [&str; 4] = ["ms a step", "GFLOP/s", "× products", "× in use"];

/// One table for each energy, and one for the samplers.
pub fn measure(settings: &Settings, peers: Option<&Peers>) -> anyhow::Result<Vec<Table>> {
    let synthetic = settings.recipe("swiss_roll", &[])?;
    let images = settings.recipe("svhn", &made_up(256, 32))?;
    Ok(vec![
        engines(settings, synthetic, peers)?,
        engines(settings, images, peers)?,
        samplers(settings)?,
    ])
}

/// What the chains of an experiment run with.
struct Bench {
    setup: Setup,
    chains: i64,
    /// Gradients that a chain takes.
    gradients: u64,
}

impl Bench {
    fn new(settings: &Settings, recipe: Recipe) -> anyhow::Result<Self> {
        let chains = recipe.run.batch_size as i64;
        let setup = Setup::build(recipe, settings.registry, Purpose::Start, Path::new(""))?;
        Ok(Self {
            chains,
            gradients: setup.sampler.gradient_evaluations(),
            setup,
        })
    }

    /// Runs chains as training does.
    fn in_use(&self) -> anyhow::Result<()> {
        self.run(|sampler, start, draws| {
            ebipla_core::chains::run(sampler, self.setup.model.energy.as_ref(), start, draws)
        })
    }

    /// Runs chains with libtorch alone.
    fn with(&self, energy: &dyn Energy) -> anyhow::Result<()> {
        self.run(|sampler, start, draws| sampler.sample(energy, start, draws))
    }

    fn run(
        &self,
        sample: impl Fn(&dyn PriorSampler, Tensor, &mut ebipla_core::Draws) -> anyhow::Result<Chains>,
    ) -> anyhow::Result<()> {
        let mut random = self.setup.streams_for("bench");
        let mut draws = random.stream("chains", 0);
        let latent = self.setup.model.generator.latent_dim();
        let start = draws.normal(&[self.chains, latent], self.setup.device);
        wait_for(&sample(self.setup.sampler.as_ref(), start, &mut draws)?.last);
        Ok(())
    }

    fn products(&self) -> LayerProducts {
        LayerProducts::of(self.setup.model.energy.parameters(), self.chains)
    }

    /// Floating-point operations in the layers of a step of all chains: forth and back.
    fn operations(&self) -> Option<f64> {
        let energy = self.setup.model.energy.multiplications()?;
        Some(4.0 * energy as f64 * self.chains as f64)
    }

    /// A row of the table for something that takes so many seconds a step: its ratios are to what others take.
    fn row(&self, seconds: f64, others: &[f64]) -> Vec<Option<f64>> {
        let rate = self.operations().map(|operations| operations / seconds / 1e9);
        let ratios = others.iter().map(|other| Some(seconds / other));
        [Some(seconds * 1e3), rate].into_iter().chain(ratios).collect()
    }
}

fn engines(settings: &Settings, recipe: Recipe, peers: Option<&Peers>) -> anyhow::Result<Table> {
    let title = format!(
        "Prior chains of {}: {} chains, a step of {}",
        recipe.name,
        recipe.run.batch_size,
        recipe.plugin("prior_sampler").map_or("", |(name, _)| name)
    );
    let bench = Bench::new(settings, recipe)?;
    let energy = bench.setup.model.energy.as_ref();
    let engine = energy.frozen().map(|frozen| frozen.engine());
    let mut products = bench.products();
    let mut contenders = vec![
        Contender::new("matrix products alone, libtorch", || {
            products.multiply(bench.gradients)
        }),
        Contender::new("libtorch, gradient by autograd", || bench.with(&Autograd(energy))),
        Contender::new("libtorch, gradient by hand", || bench.with(energy)),
    ];
    if let Some(engine) = engine {
        contenders.push(Contender::new(engine, || bench.in_use()));
    }
    let steps = bench.gradients as f64;
    let seconds = race(&mut contenders, settings.rounds)?;
    let limit = seconds[0] / steps;
    let in_use = seconds[seconds.len() - 1] / steps;
    let mut table = Table::new(title, &COLUMNS);
    for (contender, seconds) in contenders.iter().zip(&seconds) {
        table.row(&contender.name, bench.row(seconds / steps, &[limit, in_use]));
    }
    if let Some(last) = contenders.last() {
        table.note(format!("In use here: {}.", last.name));
    }
    let Some(peers) = peers else {
        return Ok(table);
    };
    let value = |key: &str| bench.setup.recipe.value(key).cloned();
    let task = json!({
        "latent": bench.setup.model.generator.latent_dim(),
        "hidden": value("energy.hidden"),
        "layers": value("energy.layers"),
        "activation": value("energy.activation"),
        "tilt": value("energy.tilt"),
        "chains": bench.chains,
        "steps": bench.gradients,
        "step_size": value("prior_sampler.step_size"),
        "threads": settings.threads,
        "repeats": settings.rounds,
    });
    peers.add_to(&mut table, "chains.py", &task, |seconds| {
        bench.row(seconds, &[limit, in_use])
    })?;
    Ok(table)
}

/// Every sampler with its own defaults on the energy of the synthetic experiments.
fn samplers(settings: &Settings) -> anyhow::Result<Table> {
    let mut table = Table::new("Prior samplers on swiss_roll, by gradient", &COLUMNS[..3]);
    for plugin in settings.registry.of_kind(Kind::PriorSampler) {
        let changes = [("prior_sampler.name", plugin.name.to_owned())];
        let bench = Bench::new(settings, settings.recipe("swiss_roll", &changes)?)?;
        if bench.gradients == 0 {
            continue;
        }
        let mut products = bench.products();
        let mut contenders = [
            Contender::new("products", || products.multiply(bench.gradients)),
            Contender::new(plugin.name, || bench.in_use()),
        ];
        let seconds = race(&mut contenders, settings.rounds)?;
        let [limit, own] = [0, 1].map(|i| seconds[i] / bench.gradients as f64);
        table.row(plugin.name, bench.row(own, &[limit]));
    }
    Ok(table)
}
