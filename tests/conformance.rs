//! What every registered plugin must do: document itself, refuse unknown options, build from its defaults.
#![allow(clippy::unwrap_used)]

mod support;

use ebipla_datasets as _;
use ebipla_framework::{Kind, OptionSpec, OptionType, Registration, Registry};
use ebipla_plugins as _;
use support::Scratch;

fn plugins() -> Vec<&'static Registration> {
    let registry = Registry::collect().unwrap();
    Kind::ALL
        .into_iter()
        .flat_map(|kind| registry.of_kind(kind).collect::<Vec<_>>())
        .collect()
}

#[test]
fn every_plugin_documents_itself() {
    for plugin in plugins() {
        let name = format!("{} `{}`", plugin.kind, plugin.name);
        assert!(
            plugin.summary().ends_with('.'),
            "{name}: the summary is no sentence: {}",
            plugin.summary()
        );
        documented(&name, &plugin.options());
    }
}

fn documented(owner: &str, options: &[OptionSpec]) {
    for option in options {
        assert!(
            !option.doc.is_empty(),
            "{owner}: `{}` has no doc comment",
            option.name
        );
        let number = matches!(
            option.kind.inner(),
            OptionType::Integer(_) | OptionType::Number(_)
        );
        assert!(
            !number || option.unit.is_some(),
            "{owner}: `{}` states no unit",
            option.name
        );
        documented(owner, &option.options);
    }
}

/// Options that set a plugin of this kind in the small recipe, with all 40 points in a batch, since some algorithms
/// take nothing less. Metrics get a Gaussian model, about which even those that need a closed form know all.
fn choose(plugin: &Registration) -> Vec<String> {
    let chosen = match plugin.kind {
        Kind::Metric => format!("evaluate.metrics.{}={{}}", plugin.name),
        Kind::Dataset => format!("dataset={{name: {}, size: 40}}", plugin.name),
        kind => format!("{kind}.name={}", plugin.name),
    };
    let mut overrides = vec![chosen, "run.batch_size=40".into()];
    if plugin.kind == Kind::Metric {
        overrides.extend(["energy.name=quadratic".into(), "generator.name=identity".into()]);
    }
    overrides
}

/// Metrics of images, which take weights that a user has to supply.
const WITH_WEIGHTS: [&str; 4] = ["fid", "frechet_inception", "frechet_vgg16", "precision_recall"];

/// Every plugin that needs nothing but its defaults.
fn plugins_that_build() -> impl Iterator<Item = &'static Registration> {
    plugins()
        .into_iter()
        .filter(|plugin| plugin.kind != Kind::Metric || !WITH_WEIGHTS.contains(&plugin.name))
}

fn set(overrides: &[String]) -> Vec<&str> {
    overrides
        .iter()
        .flat_map(|text| ["--set", text.as_str()])
        .collect()
}

#[test]
fn every_plugin_builds_from_its_defaults_and_takes_a_step() {
    for plugin in plugins_that_build() {
        let scratch = Scratch::with_small();
        let overrides = choose(plugin);
        let outcome = scratch.runner(&[&["check", "--recipe", "small.yaml"], &set(&overrides)[..]].concat());
        assert_eq!(
            outcome.code, 0,
            "{} `{}`: {}",
            plugin.kind, plugin.name, outcome.stderr
        );
    }
}

#[test]
fn a_metric_without_its_weights_says_what_to_supply() {
    for name in WITH_WEIGHTS {
        let scratch = Scratch::with_small();
        let metric = format!("evaluate.metrics.{name}={{}}");
        let unset = [("EBIPLA_INCEPTION", ""), ("EBIPLA_VGG16", "")];
        let outcome = scratch.runner_with_env(&["check", "--recipe", "small.yaml", "--set", &metric], &unset);
        outcome.refused(&[&format!("evaluate.metrics.{name}"), "set `weights`", ".pth"]);
    }
}

#[test]
fn every_plugin_refuses_an_unknown_option() {
    for plugin in plugins() {
        let scratch = Scratch::with_small();
        let mut overrides = choose(plugin);
        let section = match plugin.kind {
            Kind::Metric => format!("evaluate.metrics.{}", plugin.name),
            kind => kind.to_string(),
        };
        if plugin.kind == Kind::Metric {
            overrides.remove(0);
        }
        overrides.push(format!("{section}.no_such_option=1"));
        let outcome = scratch.runner(&[&["check", "--recipe", "small.yaml"], &set(&overrides)[..]].concat());
        outcome.refused(&["no_such_option", "unknown option"]);
    }
}

#[test]
fn every_plugin_is_deterministic_under_a_seed() {
    for plugin in plugins_that_build() {
        let scratch = Scratch::with_small();
        let overrides = choose(plugin);
        let mut arguments = set(&overrides);
        arguments.extend(["--set", "run.max_steps=2"]);
        let [first, second] = [(); 2].map(|()| support::metrics(&scratch.train(&arguments)));
        assert_eq!(first, second, "{} `{}`", plugin.kind, plugin.name);
    }
}
