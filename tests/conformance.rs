//! Requirements on every registered plugin: documents itself, refuses unknown options, builds from its defaults.
#![allow(clippy::unwrap_used)]

mod support;

use ebipla_core::{Kind, OptionSpec, OptionType, Registration, Registry};
use ebipla_datasets as _;
use ebipla_plugins as _;
use support::{Scratch, data};

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
            "{name}: the summary is not a sentence: {}",
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

/// Seeds may be any integer; user-defined notes are not options.
#[test]
fn every_number_has_bounds_and_every_condition_an_option() {
    for plugin in plugins() {
        bounded(&format!("{} `{}`", plugin.kind, plugin.name), &plugin.options());
    }
}

fn bounded(owner: &str, options: &[OptionSpec]) {
    for option in options {
        let finite = option.unit.as_deref() == Some("any integer") || option.kind.is_bounded();
        assert!(finite, "{owner}: `{}` is an open {}", option.name, option.kind);
        if let Some(condition) = &option.only_with {
            let known = options.iter().any(|other| other.name == condition.option());
            assert!(
                known,
                "{owner}: `{}` counts {condition}, which is not an option",
                option.name
            );
        }
        bounded(owner, &option.options);
    }
}

/// Numbers at the ends of their ranges.
fn extremes(kind: &OptionType) -> Vec<f64> {
    let OptionType::Number(range) = kind.inner() else {
        return Vec::new();
    };
    let low = range.at_least.or(range.above.map(|above| above + 1e-300));
    let high = range.at_most.or(range.below.map(|below| below - 1e-6));
    low.into_iter().chain(high).collect()
}

/// The results need not be finite, but errors are reported in our own words.
#[test]
fn numbers_at_the_ends_of_their_ranges_break_nothing() {
    for plugin in plugins_that_build() {
        let scratch = scratch_for(plugin);
        let section = match plugin.kind {
            Kind::Metric => format!("evaluate.metrics.{}", plugin.name),
            kind => kind.to_string(),
        };
        for option in plugin.options() {
            for value in extremes(&option.kind) {
                let mut overrides = choose(plugin);
                overrides.push(format!("{section}.{}={value:e}", option.name));
                let outcome =
                    scratch.runner(&[&["check", "--recipe", "small.yaml"], &set(&overrides)[..]].concat());
                let name = format!("{} `{}`: {}={value:e}", plugin.kind, plugin.name, option.name);
                assert!(
                    (0..=2).contains(&outcome.code),
                    "{name}: {}: {}",
                    outcome.code,
                    outcome.stderr
                );
                assert!(
                    !outcome.stderr.contains("internal error"),
                    "{name}: {}",
                    outcome.stderr
                );
            }
        }
    }
}

/// A folder with the small recipe, and with the files that the plugin needs.
fn scratch_for(plugin: &Registration) -> Scratch {
    let scratch = Scratch::with_small();
    if reads_files(plugin) {
        data::write(&scratch.path().join("data").join(plugin.name), plugin.name);
    }
    scratch
}

/// Synthetic data sets have an option for their size.
fn reads_files(plugin: &Registration) -> bool {
    plugin.kind == Kind::Dataset && plugin.options().iter().all(|option| option.name != "size")
}

/// Options that select a plugin of this kind in the small recipe, with all 40 points in a batch, as some algorithms
/// require. Metrics get a Gaussian model, which satisfies even those that need a closed form.
fn choose(plugin: &Registration) -> Vec<String> {
    let chosen = match plugin.kind {
        Kind::Metric => format!("evaluate.metrics.{}={{}}", plugin.name),
        Kind::Dataset if reads_files(plugin) => format!("dataset={{name: {}, limit: 40}}", plugin.name),
        Kind::Dataset => format!("dataset={{name: {}, size: 40}}", plugin.name),
        kind => format!("{kind}.name={}", plugin.name),
    };
    let mut overrides = vec![chosen, "run.batch_size=40".into()];
    match (plugin.kind, plugin.name) {
        (Kind::Metric, _) => {
            overrides.extend(["energy.name=quadratic".into(), "generator.name=identity".into()]);
        }
        // A linear generator of many pixels is steep.
        (Kind::Dataset, _) => overrides.push("algorithm.step_size=1e-6".into()),
        (Kind::Generator, name) => overrides.extend(images_for(name)),
        _ => {}
    }
    overrides
}

/// Images for an image generator, and a width that keeps it fast.
fn images_for(generator: &str) -> Vec<String> {
    let (channels, side) = match generator {
        "conv_decoder" => return vec![images(3, 32)],
        "svhn_generator" | "cifar10_generator" => (3, 32),
        "celeba64_generator" => (3, 64),
        "celeba_hq_generator" => (3, 256),
        "small_generator" => (1, 28),
        _ => return Vec::new(),
    };
    vec![images(channels, side), "generator.width=2".into()]
}

fn images(channels: u32, side: u32) -> String {
    format!("dataset={{name: blobs, size: 40, channels: {channels}, image_size: {side}}}")
}

/// Metrics of images, whose weights a user must supply.
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
        let scratch = scratch_for(plugin);
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
fn a_metric_without_weights_reports_what_to_supply() {
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
        let scratch = scratch_for(plugin);
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
        let scratch = scratch_for(plugin);
        let overrides = choose(plugin);
        let mut arguments = set(&overrides);
        arguments.extend(["--set", "run.max_steps=2"]);
        let [first, second] = [(); 2].map(|()| support::metrics(&scratch.train(&arguments)));
        assert_eq!(first, second, "{} `{}`", plugin.kind, plugin.name);
    }
}
