//! Defines what a plugin is: a config struct that knows how to build something.

use std::any::Any;
use std::path::Path;

use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tch::Device;

use super::{Kind, OptionSpec, Product, options};
use crate::{Better, ParticleStore, Random, Storage, require_memory};

/// A config struct that builds one thing.
///
/// The struct's doc comment is the plugin's summary, its fields are the options: their doc comments, types and
/// defaults are what `runner describe` prints and what recipes are checked against. Nothing is written twice.
pub trait Plugin: Serialize + DeserializeOwned + JsonSchema + 'static {
    /// What it builds, e.g. `dyn PriorSampler`; this decides the plugin's kind.
    type Builds: Product + ?Sized;

    /// Finds what no option shows alone, such as one number that must divide another.
    fn check(&self) -> Vec<Complaint> {
        Vec::new()
    }

    /// Keys of other sections of a recipe that have no effect with these options, e.g. `optimizer`.
    fn unused(&self) -> &'static [&'static str] {
        &[]
    }

    /// Which values of the number called `number` are better, for metrics; `None` where neither is, or where nobody knows.
    fn better(_number: &str) -> Option<Better> {
        None
    }

    /// Builds it. Everything that can be known by then is in `scope`.
    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<Self::Builds>>;
}

/// Something wrong with an option, found by [`Plugin::check`].
#[derive(Clone, Debug)]
pub struct Complaint {
    /// The option's path below the plugin's section, e.g. `warmup.particles`.
    pub option: &'static str,
    /// What was found, and what would be right.
    pub message: String,
}

/// What a plugin may know while it is built.
///
/// Things are built in the order dataset, generator, energy, prior sampler, metrics, algorithm; what comes later
/// knows what came before.
pub struct Scope<'a> {
    /// What for.
    pub purpose: Purpose,
    /// Where tensors live.
    pub device: Device,
    /// Where clouds of particles are kept.
    pub storage: Storage,
    /// Reads the clouds of a particle dump.
    pub dumps: &'a dyn ParticleSource,
    /// The run's random streams; take one of your own for initial values.
    pub random: &'a mut Random,
    /// The training data (before the dataset is built: no points, no shape).
    pub data: DataFacts,
    /// Dimension of the latent space (0 before the generator is built).
    pub latent_dim: i64,
    /// Standard deviation σ of the decoder.
    pub sigma: f64,
    /// Data points in a mini-batch.
    pub batch_size: usize,
}

impl<'a> Scope<'a> {
    /// On the CPU, with σ = 1 and nothing known yet: for plugins that are built by hand, as tests do.
    pub fn on_cpu(random: &'a mut Random) -> Self {
        Self {
            purpose: Purpose::Start,
            device: Device::Cpu,
            storage: Storage::on(Device::Cpu),
            dumps: &NoDumps,
            random,
            data: DataFacts::default(),
            latent_dim: 0,
            sigma: 1.0,
            batch_size: 1,
        }
    }
}

impl Scope<'_> {
    /// Clouds of `shape` to start a run with, `few` particles in each for now: those of a dump where one is given, else
    /// drawn from N(0, I).
    pub fn initial_particles(
        &mut self,
        few: usize,
        shape: [usize; 3],
        dump: Option<&Path>,
    ) -> anyhow::Result<ParticleStore> {
        let draws = self.random.stream("particle_initialisation", 0);
        let mut store = ParticleStore::few_standard_normal(few, shape, draws, &mut self.storage)?;
        match dump {
            // What is restored does not start from the dump, which may be gone.
            Some(path) if self.purpose != Purpose::Restore => {
                self.dumps.read(path, &mut store, self.purpose)?
            }
            _ => {}
        }
        Ok(store)
    }

    /// Refuses a network of `count` parameters that does not fit into memory with its gradients and an optimiser's two
    /// moments. On a GPU, libtorch says so when they are made.
    pub fn require_parameters(&self, count: u128) -> anyhow::Result<()> {
        const COPIES: u128 = 4;
        match self.device {
            Device::Cpu => require_memory(
                &format!("{count} parameters, with gradients and an optimiser's moments"),
                count.saturating_mul(COPIES * size_of::<f32>() as u128),
            ),
            _ => Ok(()),
        }
    }
}

/// Reads clouds of particles from files.
pub trait ParticleSource {
    /// Replaces the clouds of `store` by those in the file `path`.
    fn read(&self, path: &Path, store: &mut ParticleStore, purpose: Purpose) -> anyhow::Result<()>;
}

/// For plugins that are built by hand.
struct NoDumps;

impl ParticleSource for NoDumps {
    fn read(&self, path: &Path, _: &mut ParticleStore, _: Purpose) -> anyhow::Result<()> {
        anyhow::bail!("{}: nothing reads particle dumps here", path.display())
    }
}

/// What something is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A run from its beginning.
    Start,
    /// A state that is about to be loaded in place of the initial one.
    Restore,
    /// To see whether everything fits together, on a handful of data points.
    Trial,
}

/// What is known of the training data without looking at it.
#[derive(Clone, Debug, Default)]
pub struct DataFacts {
    /// Number of training points M.
    pub count: usize,
    /// Shape of one data point.
    pub shape: Vec<i64>,
}

/// A plugin as the registry knows it: `inventory::submit! { Registration::of::<Ula>("ula") }`.
pub struct Registration {
    /// The name used in recipes.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    type_name: fn() -> &'static str,
    schema: fn() -> Schema,
    check: fn(&Value) -> serde_json::Result<Vec<Complaint>>,
    unused: fn(&Value) -> serde_json::Result<&'static [&'static str]>,
    better: fn(&str) -> Option<Better>,
    build: fn(&Value, &mut Scope) -> anyhow::Result<Box<dyn Any>>,
}

inventory::collect!(Registration);

impl Registration {
    /// Describes the plugin `P` under the name that recipes use.
    pub const fn of<P: Plugin>(name: &'static str) -> Self {
        Self {
            name,
            kind: <P::Builds as Product>::KIND,
            type_name: std::any::type_name::<P>,
            schema: schema_of::<P>,
            check: |value| Ok(parse::<P>(value)?.check()),
            unused: |value| Ok(parse::<P>(value)?.unused()),
            better: P::better,
            build: |value, scope| Ok(Box::new(parse::<P>(value)?.build(scope)?)),
        }
    }

    /// The full path of the config struct.
    pub fn type_name(&self) -> &'static str {
        (self.type_name)()
    }

    /// The crate that registered it.
    pub fn crate_name(&self) -> &'static str {
        self.type_name().split("::").next().unwrap_or_default()
    }

    /// The first sentence of the config struct's doc comment.
    pub fn summary(&self) -> String {
        options::summary((self.schema)().as_value())
    }

    /// Its options, generated from the config struct.
    pub fn options(&self) -> Vec<OptionSpec> {
        options::options_of((self.schema)().as_value())
    }

    /// Runs the plugin's own check over options that fit the types.
    pub fn check(&self, options: &Value) -> serde_json::Result<Vec<Complaint>> {
        (self.check)(options)
    }

    /// Keys of other sections that have no effect with these options.
    pub fn unused(&self, options: &Value) -> serde_json::Result<&'static [&'static str]> {
        (self.unused)(options)
    }

    /// Which values of a metric's number are better, where that is known.
    pub fn better(&self, number: &str) -> Option<Better> {
        (self.better)(number)
    }

    pub(super) fn build(&self, options: &Value, scope: &mut Scope) -> anyhow::Result<Box<dyn Any>> {
        (self.build)(options, scope)
    }
}

fn parse<P: Plugin>(value: &Value) -> serde_json::Result<P> {
    serde_json::from_value(value.clone())
}

/// The schema of a config struct, with nested structs inline.
pub fn schema_of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>()
}
