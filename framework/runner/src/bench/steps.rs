//! Training steps on images: EBIPLA against LEBM as in the paper's runtime table, and against the machine's limit.

use std::path::Path;

use ebipla_core::{LazyNoise, ParticleStore, Purpose, Random, Storage};
use serde_json::{Value, json};
use tch::{Device, Tensor};

use super::Settings;
use super::cases::made_up;
use super::peers::Peers;
use super::products;
use super::stopwatch::{Contender, race};
use super::table::Table;
use crate::Recipe;
use crate::run::Experiment;

/// A data set of the runtime table: the recipe, images in it, their side, and the paper's LEBM seconds over EBIPLA's.
struct Row {
    recipe: &'static str,
    images: usize,
    side: u32,
    /// Posterior steps of LEBM, as in Pang et al. 2020.
    posterior_steps: u32,
    published: f64,
}

const ROWS: [Row; 3] = [
    Row {
        recipe: "svhn",
        images: 73_257,
        side: 32,
        posterior_steps: 20,
        published: 0.49 / 0.33,
    },
    Row {
        recipe: "cifar10",
        images: 50_000,
        side: 32,
        posterior_steps: 40,
        published: 2.06 / 0.99,
    },
    Row {
        recipe: "celeba64",
        images: 162_770,
        side: 64,
        posterior_steps: 20,
        published: 1.59 / 1.46,
    },
];

/// Images of a batch on a CPU, which would take minutes to measure steps of the paper's 128 on the larger sets.
const CPU_BATCH: usize = 32;

const COLUMNS: [&str; 7] = [
    "s a step",
    "× one pass",
    "GFLOP",
    "GFLOP/s",
    "× limit",
    "LEBM ÷ this",
    "the paper's",
];

/// One table for each data set; peers on the first.
pub fn measure(settings: &Settings, peers: Option<&Peers>) -> anyhow::Result<Vec<Table>> {
    let limit = products::rate(settings.device, settings.rounds)?;
    let tables = ROWS.iter().enumerate().map(|(i, row)| {
        let batch = match settings.device {
            Device::Cpu if i > 0 => CPU_BATCH,
            _ => 128,
        };
        table(settings, row, batch, limit, peers.filter(|_| i == 0))
    });
    tables.collect()
}

fn table(
    settings: &Settings,
    row: &Row,
    batch: usize,
    limit: f64,
    peers: Option<&Peers>,
) -> anyhow::Result<Table> {
    // At the size of the data, for what particles cost; the images themselves are drawn when they are needed.
    let images = made_up(row.images, row.side);
    let shared = [
        ("run.batch_size", batch.to_string()),
        ("evaluate.metrics.mse", "null".to_owned()),
    ];
    let changes = |more: &[(&'static str, &str)]| {
        let more = more.iter().map(|(key, value)| (*key, (*value).to_owned()));
        images
            .iter()
            .chain(&shared)
            .cloned()
            .chain(more)
            .collect::<Vec<_>>()
    };
    let ebipla = |losses_at: &str| {
        let changes = changes(&[("algorithm.warmup", "null"), ("algorithm.losses_at", losses_at)]);
        settings.recipe(row.recipe, &changes)
    };
    let posterior_steps = row.posterior_steps.to_string();
    let lebm = changes(&[
        ("algorithm.name", "lebm"),
        ("algorithm.posterior_steps", &posterior_steps),
    ]);
    let mut runs = [
        Training::new(settings, "LEBM", settings.recipe(row.recipe, &lebm)?)?,
        Training::new(settings, "EBIPLA, losses after the move", ebipla("updated")?)?,
        Training::new(settings, "EBIPLA, one pass", ebipla("previous")?)?,
    ];
    let latent = runs[0].experiment.model.generator.latent_dim();
    let clouds = runs[2].experiment.algorithm.clouds();
    let particles = clouds.map_or(1, |clouds| clouds.shape()[1]);
    let shape = [row.images, particles, latent as usize];
    let mut clouds = CloudWork::new(settings.device, shape, batch)?;

    let mut contenders: Vec<_> = runs
        .iter_mut()
        .map(|run| Contender::new(run.name, || run.step()))
        .collect();
    contenders.push(Contender::new(
        "of which particles: gather, noise, scatter",
        || {
            clouds.step();
            Ok(())
        },
    ));
    let seconds = race(&mut contenders, settings.rounds)?;
    let last = contenders
        .pop()
        .map(|contender| contender.name)
        .unwrap_or_default();
    drop(contenders);

    let title = format!(
        "Training on images like those of {}: batches of {batch} of {}, N = {particles}, LEBM with {posterior_steps} \
         posterior steps",
        row.recipe, row.images
    );
    let mut table = Table::new(title, &COLUMNS);
    let [lebm_seconds, one_pass, of_particles] = [0, 2, 3].map(|i| seconds[i]);
    for (i, (run, seconds)) in runs.iter().zip(&seconds).enumerate() {
        let operations = run.operations();
        table.row(
            run.name,
            vec![
                Some(*seconds),
                Some(seconds / one_pass),
                operations.map(|operations| operations / 1e9),
                operations.map(|operations| operations / seconds / 1e9),
                operations.map(|operations| seconds * limit / operations),
                (i > 0).then_some(lebm_seconds / seconds),
                (i > 0).then_some(row.published),
            ],
        );
    }
    table.row(last, vec![Some(of_particles), Some(of_particles / one_pass)]);
    for run in &runs {
        table.note(run.evaluations(batch));
    }
    table.note(format!(
        "The limit is a product of large matrices, {:.0} GFLOP/s here. The paper's ratio was taken on an RTX 3090.",
        limit / 1e9
    ));
    if let Some(peers) = peers {
        let task = runs[2].task(settings, row, batch);
        peers.add_to(&mut table, "step.py", &task, |seconds| {
            vec![Some(seconds), Some(seconds / one_pass)]
        })?;
    }
    Ok(table)
}

/// A run that takes steps and records nothing.
struct Training {
    name: &'static str,
    experiment: Experiment,
    done: u64,
}

impl Training {
    fn new(settings: &Settings, name: &'static str, recipe: Recipe) -> anyhow::Result<Self> {
        let experiment = Experiment::build(recipe, settings.registry, Purpose::Start, Path::new(""))?;
        Ok(Self {
            name,
            experiment,
            done: 0,
        })
    }

    fn step(&mut self) -> anyhow::Result<()> {
        // The numbers are there only when the step is done.
        self.experiment.step(self.done)?.read();
        self.done += 1;
        Ok(())
    }

    /// Floating-point operations in the layers of both networks in a step.
    fn operations(&self) -> Option<f64> {
        let taken = self.experiment.gradients_taken();
        Some(self.experiment.model.operations(taken)? as f64)
    }

    /// How often an image of the batch goes through the generator and back in a step.
    fn evaluations(&self, batch: usize) -> String {
        let taken = self.experiment.gradients_taken();
        let each = |rows: u64| rows / batch as u64;
        format!(
            "{}: {} gradients of the generator for each image in a step, {} of them with those of its parameters.",
            self.name,
            each(taken.generator),
            each(taken.with_parameters)
        )
    }

    /// The same step, as a peer is told of it.
    fn task(&self, settings: &Settings, row: &Row, batch: usize) -> Value {
        let value = |key: &str| self.experiment.recipe.value(key).cloned();
        let number = |key: &str| value(key).and_then(|value| value.as_f64()).unwrap_or_default();
        let sigma = self.experiment.recipe.decoder.sigma;
        json!({
            "latent": self.experiment.model.generator.latent_dim(),
            "layers": layers(&self.experiment),
            "slope": value("energy.slope"),
            "hidden": value("energy.hidden"),
            "energy_layers": value("energy.layers"),
            "tilt": value("energy.tilt"),
            "data_points": row.images,
            "particles": value("algorithm.particles"),
            "batch": batch,
            "sigma": sigma,
            "step_size": number("algorithm.step_size") * sigma * sigma,
            "prior_steps": value("prior_sampler.steps"),
            "prior_step_size": value("prior_sampler.step_size"),
            "threads": settings.threads,
            "repeats": settings.rounds,
        })
    }
}

/// Channels, kernel, stride and padding of the generator's layers, from the shapes of its weights: the first makes
/// images of single pixels, the others double them.
fn layers(experiment: &Experiment) -> Vec<[i64; 4]> {
    let weights = experiment.model.generator.parameters().tensors();
    let weights = weights.iter().filter(|weight| weight.dim() == 4).enumerate();
    let layer = |(i, weight): (usize, &Tensor)| match i {
        0 => [weight.size()[1], weight.size()[2], 1, 0],
        _ => [weight.size()[1], weight.size()[2], 2, 1],
    };
    weights.map(layer).collect()
}

/// What a step does with particles besides computing: fetches those of its batch, adds the noise that is due, and puts
/// them back.
struct CloudWork {
    store: ParticleStore,
    noise: LazyNoise,
    batch: i64,
    points: i64,
    random: Random,
    done: u64,
}

impl CloudWork {
    fn new(device: Device, shape: [usize; 3], batch: usize) -> anyhow::Result<Self> {
        let mut random = Random::new(0);
        let store =
            ParticleStore::standard_normal(shape, random.stream("bench", 0), &mut Storage::on(device))?;
        Ok(Self {
            store,
            noise: LazyNoise::new(shape[0], 0, shape[0].div_ceil(batch) as u64, "noise", &random),
            batch: batch as i64,
            points: shape[0] as i64,
            random,
            done: 0,
        })
    }

    fn step(&mut self) {
        self.done += 1;
        let indices = self
            .random
            .stream("batch", self.done)
            .permutation(self.points)
            .narrow(0, 0, self.batch)
            .into();
        let mut x = self.store.gather(&indices);
        x += self
            .noise
            .missed(&indices, self.done, &x.size())
            .to_device(x.device());
        self.noise.settle(&indices, self.done);
        self.store.scatter(&indices, &x);
        products::wait_for(&x);
    }
}
