//! `runner score`: energy-based anomaly scores for a data set.

use std::path::PathBuf;

use anyhow::ensure;
use ebipla_core::{Dataset, Purpose, Random, Split};
use serde_json::{Map, Value, json};

use super::arguments::{Latents, Overrides, ScoreCommand};
use super::score_report::{Report, Scored};
use super::scorer::{Scorer, Scores};
use super::{Metrics, Trained, load, recipe_of};
use crate::cli::{Misuse, Program, print};
use crate::run::{Setup, build_of_kind, scope};

pub fn score(program: &Program, command: &ScoreCommand) -> anyhow::Result<()> {
    let trained = load(
        program,
        &command.run.run_dir,
        &command.run.overrides,
        Metrics::Only(&[]),
    )?;
    let setup = &trained.setup;
    let data = Scoring::build(
        program,
        command,
        setup,
        command.data.as_deref(),
        &command.data_set,
    )?;
    let against = match &command.against {
        Some(name) => Some(Scoring::build(
            program,
            command,
            setup,
            Some(name),
            &command.against_set,
        )?),
        None => None,
    };
    // What is missing is to be found missing before hours of computing.
    let labels = match &command.anomaly_labels[..] {
        [] => None,
        wanted => Some(data.labels(command.split, wanted)?),
    };

    let seed = command.map.seed.unwrap_or(setup.recipe.run.seed);
    let random = Random::new(seed).fork("score");
    let scorer = Scorer::new(setup, command);
    let score = |set: &Scoring| scorer.score(&set.name, set.dataset.as_ref(), command.split, &random);
    let all = score(&data)?;
    let (normal, anomalies) = match (&labels, &against) {
        (Some(labels), _) => {
            let (anomalies, normal) = by_label(all, labels, &command.anomaly_labels)?;
            let name = format!("{} labels {}", data.name, list(&command.anomaly_labels, " "));
            (normal, Some((name, anomalies)))
        }
        (None, Some(against)) => {
            let name = match against.name == data.name {
                true => format!("{} (against)", against.name),
                false => against.name.clone(),
            };
            (all, Some((name, score(against)?)))
        }
        (None, None) => (all, None),
    };
    let report = Report {
        normal: Scored {
            name: data.name.clone(),
            scores: normal,
        },
        anomalies: anomalies.map(|(name, scores)| Scored { name, scores }),
        facts: facts(command, &trained, seed),
    };
    let out = command
        .out
        .clone()
        .unwrap_or_else(|| default_folder(command, &data.name));
    report.write(&out)?;
    if command.json {
        return print(&format!("{:#}\n", report.to_json()));
    }
    print(&format!("{}{}\n", report.to_text(), out.display()))
}

/// A data set to be scored.
struct Scoring {
    name: String,
    dataset: Box<dyn Dataset>,
}

impl Scoring {
    /// Builds it like the run's own, of which it has the options if it is the same.
    fn build(
        program: &Program,
        command: &ScoreCommand,
        setup: &Setup,
        name: Option<&str>,
        options: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let own = setup.recipe.plugin("dataset").map_or("", |(name, _)| name);
        let name = name.unwrap_or(own);
        let mut overrides = command.run.overrides.clone();
        if name != own {
            overrides.set.retain(|(key, _)| !key.starts_with("dataset"));
        }
        overrides.set.push(("dataset.name".into(), name.into()));
        let options = options
            .iter()
            .map(|(key, value)| (format!("dataset.{key}"), value.clone()));
        overrides.set.extend(options);

        let dataset = build(program, command, setup, &overrides)?;
        let [expected, found] = [setup.dataset.shape(), dataset.shape()];
        ensure!(
            expected == found,
            Misuse(format!(
                "data set `{name}` has points of shape {found:?}, but the run was trained on {expected:?}"
            ))
        );
        ensure!(
            !dataset.is_empty(command.split),
            Misuse(format!(
                "data set `{name}` has no points in its split `{}`",
                command.split
            ))
        );
        Ok(Self {
            name: name.to_owned(),
            dataset,
        })
    }

    /// The labels of all points, among which the wanted ones must be.
    fn labels(&self, split: Split, wanted: &[i64]) -> anyhow::Result<Vec<i64>> {
        let name = &self.name;
        let Some(labels) = self.dataset.labels(split) else {
            let message = format!(
                "--anomaly-labels: data set `{name}` has no labels; compare with another data set by --against"
            );
            return Err(Misuse(message).into());
        };
        let labels = Vec::<i64>::try_from(&labels)?;
        for label in wanted {
            ensure!(
                labels.contains(label),
                Misuse(format!(
                    "--anomaly-labels: no point of data set `{name}`, split `{split}`, has the label {label}; if it \
                     leaves that out, override its option by --data-set. Labels there: {}",
                    list(&distinct(&labels), ", ")
                ))
            );
        }
        ensure!(
            labels.iter().any(|label| !wanted.contains(label)),
            Misuse(format!(
                "--anomaly-labels: every point of data set `{name}` has one of these"
            ))
        );
        Ok(labels)
    }
}

fn build(
    program: &Program,
    command: &ScoreCommand,
    setup: &Setup,
    overrides: &Overrides,
) -> anyhow::Result<Box<dyn Dataset>> {
    let run_dir = &command.run.run_dir;
    let recipe = program.recipe(&recipe_of(run_dir, overrides)?)?;
    let mut random = Random::new(recipe.run.seed);
    let mut scope = scope(&recipe, setup.device, Purpose::Restore, run_dir, &mut random);
    Ok(build_of_kind(&recipe, &program.registry, &mut scope)?)
}

/// Anomalies, and what is normal.
fn by_label(scores: Scores, labels: &[i64], wanted: &[i64]) -> anyhow::Result<(Scores, Scores)> {
    let parts = scores.partition(|index| wanted.contains(&labels[index as usize]));
    ensure!(
        parts.0.len() > 0 && parts.1.len() > 0,
        Misuse("--limit is so low that only anomalies, or none, were chosen".into())
    );
    Ok(parts)
}

fn facts(command: &ScoreCommand, trained: &Trained, seed: u64) -> Map<String, Value> {
    let mut facts = Map::new();
    let mut add = |name: &str, value: Value| facts.insert(name.to_owned(), value);
    add("checkpoint", trained.checkpoint.display().to_string().into());
    add("split", command.split.to_string().into());
    let search = command.map.search();
    let map = json!({ "starts": search.starts, "steps": search.steps, "lr": search.lr });
    add("map", map);
    let chain = json!({ "steps": command.chain_steps, "step_size": command.chain_step_size });
    match command.latents {
        Latents::Map => add("latents", "map".into()),
        Latents::Posterior => {
            add("posterior", chain);
            add("latents", "posterior".into())
        }
    };
    add("seed", seed.into());
    facts
}

/// `RUN_DIR/scores/mnist-validation-labels-9`.
fn default_folder(command: &ScoreCommand, data: &str) -> PathBuf {
    let mut name = format!("{data}-{}", command.split);
    if let Some(against) = &command.against {
        name += &format!("-against-{against}");
    }
    if !command.anomaly_labels.is_empty() {
        name += &format!("-labels-{}", list(&command.anomaly_labels, "-"));
    }
    command.run.run_dir.join("scores").join(name)
}

fn list(labels: &[i64], between: &str) -> String {
    let labels: Vec<_> = labels.iter().map(ToString::to_string).collect();
    labels.join(between)
}

fn distinct(labels: &[i64]) -> Vec<i64> {
    let mut labels = labels.to_vec();
    labels.sort_unstable();
    labels.dedup();
    labels
}
