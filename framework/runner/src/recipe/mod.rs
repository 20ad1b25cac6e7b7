//! Composes a recipe from its layers, checks it, and remembers where every value came from.

mod bearing;
mod compose;
mod layer;
mod locate;
mod nothing_said;
mod problem;
mod sections;
mod shipped;
mod slurm_section;
mod validate;
mod yaml;
mod yaml_error;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use bearing::{Bearing, only};
pub use layer::{Origin, Override};
pub use locate::{RecipeFolders, find as find_recipe, recipe_names, stem};
pub use problem::{Problem, RecipeError};
pub use sections::{
    BestRecord, DecoderSection, EvaluateSection, GuardSection, LossSection, OptimizerSection, ParticleDevice,
    ParticleRecord, PublishedSection, RecordSection, RunSection, SECTIONS, SectionKind,
};
pub use shipped::{SHIPPED, read as read_recipe};
pub use slurm_section::SlurmSection;
pub use yaml::{parse as parse_yaml, parse_as as parse_yaml_as, to_yaml};

use ebipla_core::{PriorChainsSection, Registry};

/// A recipe that has been composed and found right: every value is there, defaults included.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The file's name without its ending.
    pub name: String,
    /// All sections in the order in which they are printed.
    pub values: Map<String, Value>,
    origins: Vec<(String, Origin)>,
    /// Values that were given and have no effect.
    warnings: Vec<Problem>,
    pub run: RunSection,
    pub decoder: DecoderSection,
    pub prior_chains: PriorChainsSection,
    pub optimizer: OptimizerSection,
    pub loss: LossSection,
    pub guard: GuardSection,
    pub evaluate: EvaluateSection,
    pub record: RecordSection,
    pub slurm: SlurmSection,
}

/// Where a recipe's layers come from.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A path, or a name to look up.
    pub recipe: String,
    /// Values over those of files and environment; later ones win.
    pub set: Vec<Override>,
    /// Where names are looked up.
    pub folders: RecipeFolders,
}

impl Recipe {
    /// Composes and checks a recipe; reports as many problems at once as can be found.
    pub fn load(request: &Request, registry: &Registry) -> Result<Self, RecipeError> {
        let environment = std::env::vars().collect::<Vec<_>>();
        let path: PathBuf = locate::find("recipe", &request.recipe, &request.folders)?;
        let layers = compose::layers(&path, &environment, &request.set, &request.folders)?;
        validate::resolve(&path, layers, registry)
    }

    /// Reads back what [`Self::to_yaml`] wrote; the environment has no say.
    pub fn load_resolved(path: &Path, registry: &Registry) -> Result<Self, RecipeError> {
        let layers = compose::layers(path, &[], &[], &RecipeFolders::default())?;
        validate::resolve(path, layers, registry)
    }

    /// Warns of values that were given and have no effect.
    pub fn log_warnings(&self) {
        for warning in &self.warnings {
            tracing::warn!("{warning}");
        }
    }

    /// The plugin of a section, with its options (without the name); `None` if the recipe leaves the section out.
    pub fn plugin(&self, section: &str) -> Option<(&str, Value)> {
        let section = self.values.get(section)?.as_object()?;
        let mut options = section.clone();
        options.remove("name");
        Some((section.get("name")?.as_str()?, Value::Object(options)))
    }

    /// The metrics asked for, with their options.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.evaluate
            .metrics
            .iter()
            .map(|(name, options)| (name.as_str(), options))
    }

    /// Every value with its dotted key and origin, in printing order.
    pub fn origins(&self) -> impl Iterator<Item = (&str, &Value, &Origin)> {
        self.origins
            .iter()
            .filter_map(|(key, origin)| Some((key.as_str(), self.value(key)?, origin)))
    }

    /// Where the value of `key` came from.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.origins
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, origin)| origin)
    }

    pub fn value(&self, key: &str) -> Option<&Value> {
        let mut parts = key.split('.');
        let first = self.values.get(parts.next()?)?;
        parts.try_fold(first, |value, part| match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            value => value.get(part),
        })
    }

    /// A short hash of the resolved values, the seed and what does not change the numbers left out.
    pub fn hash(&self) -> String {
        let values = only(&self.values, Bearing::is_hashed);
        let digest = Sha256::digest(canonical(&Value::Object(values)).as_bytes());
        digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// What a run's folder is called: stable, and different for different experiments.
    pub fn folder_name(&self) -> String {
        format!("{}-{}-s{}", self.name, self.hash(), self.run.seed)
    }

    /// The resolved recipe as a YAML file that gives the same recipe again.
    pub fn to_yaml(&self) -> String {
        to_yaml(&self.values)
    }
}

/// JSON with sorted keys.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<_> = map
                .iter()
                .map(|(key, value)| format!("{key:?}:{}", canonical(value)))
                .collect();
            pairs.sort();
            format!("{{{}}}", pairs.join(","))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}
