//! Composes and checks all members of a sweep before the first of them starts.

use std::collections::{BTreeMap, BTreeSet};

use ebipla_core::Registry;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Axes, Manifest, ManifestMember, SweepError};
use crate::recipe::{self, Bearing, Override, RecipeFolders};
use crate::{Origin, Recipe};

/// What a sweep is to vary.
#[derive(Clone, Debug)]
pub struct Request {
    pub name: String,
    pub title: Option<String>,
    /// Short names of keys.
    pub names: BTreeMap<String, String>,
    pub seeds: Option<Seeds>,
    /// How many members run at a time, if that matters.
    pub jobs: Option<u32>,
    pub parts: Vec<Part>,
    /// Where recipes are looked up.
    pub folders: RecipeFolders,
}

/// Some recipes with the values that vary in them.
#[derive(Clone, Debug)]
pub struct Part {
    pub recipes: Vec<String>,
    pub set: Vec<Override>,
    pub axes: Axes,
}

/// Which seeds each combination is run with.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected how many seeds, or a list of seeds")]
pub enum Seeds {
    /// So many, counted up from the recipe's own.
    Count(u64),
    These(Vec<u64>),
}

/// The members of a sweep, all of them right.
#[derive(Debug)]
pub struct Plan {
    pub name: String,
    title: Option<String>,
    names: BTreeMap<String, String>,
    pub members: Vec<Planned>,
}

/// One member.
#[derive(Debug)]
pub struct Planned {
    pub recipe: Recipe,
    /// The keys that the sweep varies, the seed apart.
    varied: Vec<String>,
}

impl Planned {
    /// Name of its folder, which depends on its resolved recipe alone.
    pub fn name(&self) -> String {
        self.recipe.folder_name()
    }

    /// What the sweep has set that bears on numbers.
    pub fn values(&self) -> Map<String, Value> {
        let value = |key: &String| Some((key.clone(), self.recipe.value(key)?.clone()));
        let varied = self
            .varied
            .iter()
            .filter(|key| Bearing::of(key) != Bearing::Aside);
        varied.filter_map(value).collect()
    }
}

/// How many different problems are told at once.
const TOLD: usize = 5;

impl Plan {
    pub fn compose(request: &Request, registry: &Registry) -> Result<Self, SweepError> {
        let mut members = Vec::new();
        let mut problems = Vec::new();
        for part in &request.parts {
            let combinations = part.axes.combinations()?;
            for recipe in &part.recipes {
                for varied in &combinations {
                    match seeds_of(request, part, recipe, varied, registry) {
                        Ok(of_seeds) => members.extend(of_seeds),
                        Err(error) if problems.contains(&error) => {}
                        Err(error) => problems.push(error),
                    }
                }
            }
        }
        if !problems.is_empty() {
            let more = problems.len().saturating_sub(TOLD);
            problems.truncate(TOLD);
            let more = match more {
                0 => String::new(),
                more => format!("\n… and {more} more"),
            };
            return Err(SweepError(problems.join("\n") + &more));
        }
        no_twins(&members)?;
        Ok(Self {
            name: request.name.clone(),
            title: request.title.clone(),
            names: request.names.clone(),
            members,
        })
    }

    pub fn manifest(&self) -> Manifest {
        let member = |planned: &Planned| ManifestMember {
            name: planned.name(),
            recipe: planned.recipe.name.clone(),
            seed: planned.recipe.run.seed,
            values: planned.values(),
        };
        Manifest {
            version: Manifest::VERSION,
            name: self.name.clone(),
            title: self.title.clone(),
            names: self.names.clone(),
            members: self.members.iter().map(member).collect(),
        }
    }
}

/// The members of one combination.
fn seeds_of(
    request: &Request,
    part: &Part,
    recipe: &str,
    varied: &[Override],
    registry: &Registry,
) -> Result<Vec<Planned>, String> {
    let load = |seed: Option<u64>| {
        let seed = seed.map(|seed| Override {
            key: "run.seed".into(),
            text: seed.to_string(),
            origin: Origin::CommandLine { option: "--seeds" },
        });
        let request = recipe::Request {
            recipe: recipe.to_owned(),
            set: part.set.iter().chain(varied).cloned().chain(seed).collect(),
            folders: request.folders.clone(),
        };
        let recipe = Recipe::load(&request, registry).map_err(|error| error.to_string())?;
        Ok(Planned {
            recipe,
            varied: varied.iter().map(|set| set.key.clone()).collect(),
        })
    };
    let first = load(None)?;
    let seeds = match &request.seeds {
        None => return Ok(vec![first]),
        Some(Seeds::These(seeds)) => seeds.clone(),
        Some(Seeds::Count(count)) => (0..*count).map(|i| first.recipe.run.seed + i).collect(),
    };
    if seeds.is_empty() {
        return Err("no seeds, expected at least one".into());
    }
    seeds.into_iter().map(|seed| load(Some(seed))).collect()
}

/// Two members with one folder would run in each other's way.
fn no_twins(members: &[Planned]) -> Result<(), SweepError> {
    let mut names = BTreeSet::new();
    for member in members {
        if !names.insert(member.name()) {
            let message = format!(
                "two members are the same run, {}: {}. Values of {} do not make another run",
                member.name(),
                Value::Object(member.values()),
                Bearing::Aside.keys().collect::<Vec<_>>().join(", ")
            );
            return Err(SweepError(message));
        }
    }
    Ok(())
}
