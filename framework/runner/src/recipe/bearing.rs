//! Says what a value of a recipe has to do with the experiment: the one list of what makes two runs the same.

use serde_json::{Map, Value};

/// What a value decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearing {
    /// What is trained, and how.
    Experiment,
    /// Which of equally good runs of an experiment it is.
    Seed,
    /// How long it is trained.
    Length,
    /// On what it is computed, which changes numbers by rounding alone.
    Arithmetic,
    /// What the final numbers mean.
    Measuring,
    /// When a run is looked at, which changes no number.
    Looking,
    /// Nothing about any number: what is written, where particles are kept, what a cluster is asked for, and notes.
    Aside,
}

/// Every key that decides something else than the experiment; it goes for all keys below as well.
const BEARINGS: [(&str, Bearing); 13] = [
    ("run.seed", Bearing::Seed),
    ("run.epochs", Bearing::Length),
    ("run.max_steps", Bearing::Length),
    ("run.device", Bearing::Arithmetic),
    ("run.threads", Bearing::Arithmetic),
    ("run.particles", Bearing::Aside),
    ("guard", Bearing::Looking),
    ("evaluate.every", Bearing::Looking),
    ("evaluate.metrics", Bearing::Measuring),
    ("evaluation_sampler", Bearing::Measuring),
    ("record", Bearing::Aside),
    ("published", Bearing::Aside),
    ("slurm", Bearing::Aside),
];

impl Bearing {
    /// That of a dotted key.
    pub fn of(key: &str) -> Self {
        let below = |known: &str| {
            key.strip_prefix(known)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let listed = BEARINGS.iter().find(|(known, _)| below(known));
        listed.map_or(Bearing::Experiment, |(_, bearing)| *bearing)
    }

    /// The listed keys of this bearing.
    pub fn keys(self) -> impl Iterator<Item = &'static str> {
        let listed = BEARINGS.iter().filter(move |(_, bearing)| *bearing == self);
        listed.map(|(key, _)| *key)
    }

    /// Whether runs of another name: their folders are apart.
    pub fn is_hashed(self) -> bool {
        !matches!(self, Bearing::Seed | Bearing::Aside)
    }

    /// Whether another value makes another experiment, whose numbers do not go into one mean.
    pub fn tells_experiments_apart(self) -> bool {
        matches!(self, Bearing::Experiment | Bearing::Length | Bearing::Measuring)
    }

    /// Whether it may change between two parts of a run.
    pub fn may_change(self) -> bool {
        !matches!(self, Bearing::Experiment | Bearing::Seed)
    }
}

/// The values of a recipe whose bearing is `wanted`.
pub fn only(values: &Map<String, Value>, wanted: fn(Bearing) -> bool) -> Map<String, Value> {
    below("", values, wanted)
}

fn below(path: &str, values: &Map<String, Value>, wanted: fn(Bearing) -> bool) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in values {
        let key = super::yaml::join(path, name);
        if wanted(Bearing::of(&key)) {
            let value = match value {
                Value::Object(inside) => below(&key, inside, wanted).into(),
                other => other.clone(),
            };
            kept.insert(name.clone(), value);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::recipe::{SECTIONS, SectionKind};
    use serde_json::json;

    #[test]
    fn every_listed_key_is_one_of_recipes() {
        for (key, bearing) in BEARINGS {
            assert_ne!(bearing, Bearing::Experiment);
            let (section, option) = key.split_once('.').unwrap_or((key, ""));
            let (_, kind) = SECTIONS.iter().find(|(name, _)| *name == section).unwrap();
            let known = match kind {
                SectionKind::Options(specs) => specs().iter().any(|spec| spec.name == option),
                _ => false,
            };
            assert!(known || option.is_empty(), "{key}");
        }
    }

    #[test]
    fn a_key_has_the_bearing_of_what_it_is_below() {
        assert_eq!(Bearing::of("slurm.time"), Bearing::Aside);
        assert_eq!(Bearing::of("slurmy"), Bearing::Experiment);
        assert_eq!(Bearing::of("run"), Bearing::Experiment);
        assert_eq!(Bearing::of("run.particles.memory"), Bearing::Aside);
        assert_eq!(Bearing::of("evaluate.metrics.fid.samples"), Bearing::Measuring);
    }

    /// What each use takes of one recipe.
    #[test]
    fn one_list_serves_all_uses() {
        let recipe = json!({
            "run": { "seed": 3, "epochs": 2, "threads": 1, "particles": { "memory": 2.0 } },
            "energy": { "name": "mlp" },
            "evaluate": { "every": 5, "metrics": { "mmd": {} } },
            "record": { "metrics": { "every": 1 } },
            "slurm": { "time": "1:00" },
        });
        let of = |wanted| Value::Object(only(recipe.as_object().unwrap(), wanted));
        let hashed = json!({
            "run": { "epochs": 2, "threads": 1 },
            "energy": { "name": "mlp" },
            "evaluate": { "every": 5, "metrics": { "mmd": {} } },
        });
        assert_eq!(of(Bearing::is_hashed), hashed);
        let experiment = json!({
            "run": { "epochs": 2 },
            "energy": { "name": "mlp" },
            "evaluate": { "metrics": { "mmd": {} } },
        });
        assert_eq!(of(Bearing::tells_experiments_apart), experiment);
    }
}
