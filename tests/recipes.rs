//! How recipes are layered, and which are refused: with exit code 2, before anything is written.
#![allow(clippy::unwrap_used)]

mod support;

use support::{SMALL, Scratch};

/// Trains with a recipe that must be refused, and checks that nothing was written.
#[track_caller]
fn refused(recipe: &str, words: &[&str]) {
    let scratch = Scratch::new();
    scratch.write("wrong.yaml", recipe);
    scratch.runner(&["--recipe", "wrong.yaml"]).refused(words);
    assert_eq!(scratch.entries(), ["wrong.yaml"], "something was written");
}

/// The small recipe with one text replaced by another.
fn with(old: &str, new: &str) -> String {
    assert!(SMALL.contains(old), "{old}");
    SMALL.replace(old, new)
}

#[test]
fn layers_override_each_other_in_order() {
    let scratch = Scratch::with_small();
    scratch.write(
        "bases/sigma.yaml",
        "decoder: { sigma: 0.3 }\nrun: { seed: 2, epochs: 3 }\n",
    );
    scratch.write(
        "bases/steps.yaml",
        "prior_sampler: { steps: 9 }\nrun: { epochs: 4 }\n",
    );
    scratch.write(
        "top.yaml",
        "extends: [small.yaml, bases/sigma.yaml, bases/steps.yaml]\nrun:\n  batch_size: 8\n",
    );
    let arguments = [
        "show",
        "--recipe",
        "top.yaml",
        "--json",
        "--set",
        "prior_sampler.steps=5",
    ];
    let environment = [("EBIPLA__PRIOR_SAMPLER__STEPS", "7"), ("EBIPLA__RUN__SEED", "6")];
    let shown = scratch.runner_with_env(&arguments, &environment).json();
    let (recipe, origins) = (&shown["recipe"], &shown["origins"]);
    assert_eq!(recipe["run"]["batch_size"], 8, "the file wins over its bases");
    assert_eq!(
        recipe["run"]["epochs"], 4,
        "a later base wins over an earlier one"
    );
    assert_eq!(recipe["decoder"]["sigma"], 0.3);
    assert_eq!(recipe["run"]["seed"], 6, "the environment wins over files");
    assert_eq!(
        recipe["prior_sampler"]["steps"], 5,
        "the command line wins over all"
    );
    assert_eq!(origins["run.batch_size"], "top.yaml:3");
    assert_eq!(origins["decoder.sigma"], "bases/sigma.yaml:1");
    assert_eq!(origins["run.seed"], "environment, EBIPLA__RUN__SEED");
    assert_eq!(origins["prior_sampler.steps"], "command line, --set");
    assert_eq!(origins["prior_sampler.temperature"], "default");
}

/// The empty sections of a file that extends another, and overrides on top of them.
#[test]
fn an_empty_section_changes_nothing() {
    let scratch = Scratch::with_small();
    scratch.write(
        "empty.yaml",
        "extends: small.yaml\nrun:\nenergy:\noptimizer: { energy: }\nrecord: { metrics: }\n",
    );
    let show = |recipe: &str, set: &[&str]| {
        let set: Vec<_> = set.iter().flat_map(|text| ["--set", text]).collect();
        let shown = scratch.runner(&[&["show", "--json", "--recipe", recipe], &set[..]].concat());
        shown.json()["recipe"].clone()
    };
    assert_eq!(show("empty.yaml", &[]), show("small.yaml", &[]));
    let set = [
        "run.threads=2",
        "optimizer.energy.lr=0.5",
        "record.metrics.every=7",
    ];
    let recipe = show("empty.yaml", &set);
    assert_eq!(recipe, show("small.yaml", &set));
    assert_eq!(
        (&recipe["run"]["batch_size"], &recipe["run"]["threads"]),
        (&16.into(), &2.into())
    );
    // On the command line it is deliberate.
    let null = scratch.runner(&["show", "--recipe", "small.yaml", "--set", "run=null"]);
    null.refused(&["run (command line, --set)", "expected a mapping"]);
}

#[test]
fn an_empty_mapping_clears_earlier_layers() {
    let scratch = Scratch::with_small();
    scratch.write(
        "base.yaml",
        "extends: small.yaml\nevaluate: { metrics: { mmd: {}, sliced_w2: { samples: 20 } } }\n\
         published: { numbers: { fid: [1] } }\n",
    );
    scratch.write("none.yaml", "extends: base.yaml\nevaluate: { metrics: {} }\n");
    scratch.write("silent.yaml", "extends: base.yaml\nevaluate: { metrics: }\n");
    let metrics = |recipe: &str, set: &[&str]| {
        let set: Vec<_> = set.iter().flat_map(|text| ["--set", text]).collect();
        let shown = scratch.runner(&[&["show", "--json", "--recipe", recipe], &set[..]].concat());
        let metrics = shown.json()["recipe"]["evaluate"]["metrics"].clone();
        let names = metrics.as_object().unwrap().keys().cloned();
        names.collect::<Vec<_>>().join(" ")
    };
    for (recipe, set, expected) in [
        ("base.yaml", &[][..], "mmd sliced_w2"),
        ("silent.yaml", &[], "mmd sliced_w2"),
        ("none.yaml", &[], ""),
        ("none.yaml", &["evaluate.metrics.mse={}"], "mse"),
        ("base.yaml", &["evaluate.metrics={}"], ""),
        ("base.yaml", &["evaluate={metrics: {}}"], ""),
        (
            "base.yaml",
            &["evaluate.metrics={}", "evaluate.metrics.mse={}"],
            "mse",
        ),
        (
            "base.yaml",
            &["evaluate.metrics.mse={}", "evaluate.metrics={}"],
            "",
        ),
        ("base.yaml", &["evaluate.metrics={mse: {}}"], "mmd mse sliced_w2"),
        // The options of a metric have fixed keys: an empty mapping changes none of them.
        ("base.yaml", &["evaluate.metrics.sliced_w2={}"], "mmd sliced_w2"),
        ("base.yaml", &["evaluate.metrics.mmd=null"], "sliced_w2"),
    ] {
        assert_eq!(metrics(recipe, set), expected, "{recipe} {set:?}");
    }
    let shown = scratch.runner(&[
        "show",
        "--json",
        "--recipe",
        "base.yaml",
        "--set",
        "published.numbers={}",
    ]);
    assert_eq!(
        shown.json()["recipe"]["published"]["numbers"],
        serde_json::json!({})
    );
}

#[test]
fn extends_is_relative_to_the_file_and_may_be_nested() {
    let scratch = Scratch::new();
    scratch.write("a/b/deep.yaml", SMALL);
    scratch.write("a/middle.yaml", "extends: b/deep.yaml\ndecoder: { sigma: 0.4 }\n");
    scratch.write("c/top.yaml", "extends: [../a/middle.yaml]\n");
    let shown = scratch
        .runner(&["show", "--recipe", "c/top.yaml", "--json"])
        .json();
    assert_eq!(shown["recipe"]["decoder"]["sigma"], 0.4);
    assert_eq!(shown["recipe"]["dataset"]["size"], 40);
}

#[test]
fn extends_finds_recipes_by_name_like_the_command_line() {
    let scratch = Scratch::new();
    scratch.write("recipes/mine.yaml", SMALL);
    scratch.write("a/beside.yaml", "extends: mine\ndecoder: { sigma: 0.4 }\n");
    // A file in the same folder takes precedence over a name.
    scratch.write("a/mine_too.yaml", "extends: [beside, swiss_roll.yaml]\n");
    let shown = |recipe: &str| scratch.runner(&["show", "--recipe", recipe, "--json"]).json();
    let beside = shown("a/beside.yaml");
    assert_eq!(beside["recipe"]["decoder"]["sigma"], 0.4);
    assert_eq!(beside["origins"]["dataset.size"], "recipes/mine.yaml:2");
    let both = shown("a/mine_too.yaml");
    assert_eq!(both["recipe"]["dataset"]["name"], "swiss_roll");
    scratch.write("wrong.yaml", "extends: swis_roll\n");
    scratch
        .runner(&["show", "--recipe", "wrong.yaml"])
        .refused(&["extends (wrong.yaml:1)", "did you mean `swiss_roll`?"]);
}

#[test]
fn recipes_are_found_by_name() {
    let scratch = Scratch::new();
    scratch.write("recipes/mine.yaml", SMALL);
    for name in ["mine", "mine.yaml", "recipes/mine.yaml", "quickstart"] {
        assert_eq!(scratch.runner(&["show", "--recipe", name]).code, 0, "{name}");
    }
    let outcome = scratch.runner(&["show", "--recipe", "quikstart"]);
    outcome.refused(&["no such recipe", "did you mean `quickstart`?"]);
}

#[test]
fn changing_a_name_drops_the_old_plugins_options() {
    let scratch = Scratch::with_small();
    scratch.write("other.yaml", "extends: small.yaml\nenergy: { name: other }\n");
    let outcome = scratch.runner(&["show", "--recipe", "other.yaml"]);
    outcome.refused(&["energy.name (other.yaml:2): unknown energy `other`"]);
    assert!(
        !outcome.stderr.contains("hidden"),
        "the old options were kept: {}",
        outcome.stderr
    );

    // A base that names another plugin, with an option that the new one lacks.
    scratch.write(
        "base.yaml",
        &format!(
            "{}\nprior_sampler: {{ name: hmc, leapfrog_steps: 3 }}\n",
            without_sampler()
        ),
    );
    scratch.write("top.yaml", "extends: base.yaml\n");
    let arguments = ["show", "--recipe", "top.yaml", "--json"];
    let shown = scratch
        .runner(&[&arguments[..], &["--set", "prior_sampler.name=ula"]].concat())
        .json();
    assert_eq!(shown["recipe"]["prior_sampler"]["steps"], 60, "ula's own default");

    // Repeating the same name changes nothing.
    let shown = scratch
        .runner(&[
            "show",
            "--recipe",
            "small.yaml",
            "--json",
            "--set",
            "prior_sampler.name=ula",
        ])
        .json();
    assert_eq!(shown["recipe"]["prior_sampler"]["steps"], 3);
}

fn without_sampler() -> String {
    let lines = SMALL.lines().filter(|line| !line.starts_with("prior_sampler"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn overrides_take_the_type_of_the_option() {
    let scratch = Scratch::with_small();
    let set = |value| scratch.runner(&["show", "--recipe", "small.yaml", "--json", "--set", value]);
    assert_eq!(set("run.epochs=1e2").json()["recipe"]["run"]["epochs"], 100);
    assert_eq!(
        set("prior_sampler.step_size=1").json()["recipe"]["prior_sampler"]["step_size"],
        1.0
    );
    assert_eq!(
        set("optimizer.energy.betas=[0.1, 0.2]").json()["recipe"]["optimizer"]["energy"]["betas"],
        serde_json::json!([0.1, 0.2])
    );
    assert_eq!(
        set("run.max_steps=null").json()["recipe"]["run"]["max_steps"],
        serde_json::Value::Null
    );
    let warmed = set("algorithm.warmup={steps: 5}").json();
    assert_eq!(warmed["recipe"]["algorithm"]["warmup"]["steps"], 5);
    assert_eq!(
        warmed["recipe"]["algorithm"]["warmup"]["inner_steps"], 10,
        "defaults fill a nested section"
    );
    set("run.epochs=many").refused(&["run.epochs (command line, --set): found `many`, expected integer ≥ 0"]);
    set("epochs").refused(&["KEY=VALUE"]);
}

#[test]
fn a_missing_underscore_is_suggested() {
    let scratch = Scratch::new();
    let arguments = ["--recipe", "quickstart.yaml", "--set", "prior_sampler.stepsize=1"];
    scratch.runner(&arguments).refused(&[
        "prior_sampler.stepsize",
        "command line, --set",
        "did you mean `step_size`?",
        "valid: steps, step_size",
    ]);
    assert!(scratch.entries().is_empty());
}

#[test]
fn command_line_errors_name_the_command_line() {
    let scratch = Scratch::with_small();
    for (set, key) in [
        ("decodr.sigma=1", "decodr"),
        ("run.seed.x=1", "run.seed"),
        ("evaluate.metrics.nmd.samples=1", "evaluate.metrics.nmd"),
        ("generator.layers.0.kernel=1", "generator.layers"),
    ] {
        let found = scratch.runner(&["show", "--recipe", "small.yaml", "--set", set]);
        found.refused(&[&format!("{key} (command line, --set): ")]);
        assert!(!found.stderr.contains("(default)"), "{}", found.stderr);
    }
    let environment = [("EBIPLA__DECODR__SIGMA", "1")];
    scratch
        .runner_with_env(&["show", "--recipe", "small.yaml"], &environment)
        .refused(&["decodr (environment, EBIPLA__DECODR__SIGMA): unknown section"]);
}

#[test]
fn unknown_names_are_refused_with_the_nearest_one() {
    refused(
        &with("decoder:", "decodr:"),
        &[
            "decodr (wrong.yaml:5): unknown section",
            "did you mean `decoder`?",
            "valid: run, dataset",
        ],
    );
    refused(
        &with("hidden: 8", "hiden: 8"),
        &[
            "energy.hiden (wrong.yaml:3): unknown option of energy `mlp`",
            "did you mean `hidden`?",
        ],
    );
    refused(
        &with("name: swiss_roll", "name: swissroll"),
        &[
            "dataset.name (wrong.yaml:2): unknown dataset `swissroll`",
            "did you mean `swiss_roll`?",
        ],
    );
    refused(
        &format!("{SMALL}evaluate: {{ metrics: {{ slicedw2: {{}} }} }}\n"),
        &[
            "evaluate.metrics.slicedw2 (wrong.yaml:9): unknown metric",
            "did you mean `sliced_w2`?",
        ],
    );
    refused(
        &with("generator: { name: linear }\n", ""),
        &[
            "generator.name: missing",
            "valid: celeba64_generator, celeba_hq_generator",
        ],
    );
}

#[test]
fn wrong_types_are_refused() {
    refused(
        &with("steps: 3", "steps: three"),
        &["prior_sampler.steps (wrong.yaml:6): found `three`, expected integer ≥ 1"],
    );
    refused(
        &with("steps: 3", "steps: 2.5"),
        &["prior_sampler.steps (wrong.yaml:6): found `2.5`"],
    );
    refused(
        &with("activation: silu", "activation: tanh"),
        &["energy.activation (wrong.yaml:3): found `tanh`, expected silu | relu"],
    );
    refused(
        &with(
            "energy: { name: mlp, hidden: 8, layers: 2, activation: silu }",
            "energy: mlp",
        ),
        &["energy (wrong.yaml:3): found `mlp`, expected a mapping"],
    );
    refused(
        &with("sigma: 0.2", "sigma: .nan"),
        &["wrong.yaml:5: found `.nan`, expected a finite number"],
    );
    refused("- a\n- b\n", &["a recipe is a mapping"]);
}

#[test]
fn numbers_out_of_range_are_refused() {
    refused(
        &with("step_size: 0.01", "step_size: 0"),
        &["prior_sampler.step_size (wrong.yaml:6): found `0`, expected number > 0"],
    );
    refused(
        &with("step_size: 0.5", "step_size: -1"),
        &["algorithm.step_size (wrong.yaml:7): found `-1`, expected number > 0"],
    );
    refused(
        &with("particles: 2", "particles: 4, warmup: { particles: 3 }"),
        &["algorithm.particles (wrong.yaml:7): found 4, expected a multiple of warmup.particles (3)"],
    );
    refused(
        &with("batch_size: 16", "batch_size: 41"),
        &["run.batch_size (wrong.yaml:1): found 41, expected at most the 40 training points"],
    );
    refused(
        &with("device: cpu", "device: gpu"),
        &["run.device (wrong.yaml:1): found `gpu`, expected auto, cpu"],
    );
    refused(
        &with("device: cpu", "device: \"cuda:7\""),
        &["run.device (wrong.yaml:1)", "./runner setup --cuda"],
    );
}

#[test]
fn values_beyond_any_machine_are_refused_before_they_are_tried() {
    for (key, value) in [
        ("run.threads", "100000"),
        ("prior_sampler.step_size", "1e300"),
        ("algorithm.step_size", "1e300"),
        ("energy.hidden", "1000000000"),
        ("energy.layers", "1000000"),
        ("prior_sampler.steps", "1000000000"),
        ("evaluate.metrics.mse.batch", "1000000"),
    ] {
        let scratch = Scratch::with_small();
        let set = format!("{key}={value}");
        let outcome = scratch.runner(&["check", "--recipe", "small.yaml", "--set", &set]);
        outcome.refused(&[&format!("{key} (command line, --set): found"), " and ≤ "]);
    }
}

#[test]
fn requests_beyond_memory_are_refused_with_both_sizes() {
    let images = "dataset={name: blobs, size: 40, image_size: 32}";
    for (sets, key, what) in [
        (
            vec!["energy.hidden=65536", "energy.layers=1000"],
            "energy",
            "4290738061313 parameters, with",
        ),
        (
            vec![
                "generator.latent_dim=1000000",
                "dataset={name: blobs, size: 40, image_size: 4096}",
            ],
            "generator",
            "50331698331648 parameters",
        ),
        (
            vec!["dataset={name: gaussian, size: 1000000000, dim: 1000}"],
            "dataset",
            "1000001000 points of 1000",
        ),
        (
            vec!["dataset={name: swiss_roll, size: 1000000000, validation: 1000000000}"],
            "dataset",
            "2000000000 points",
        ),
        (
            vec!["evaluate.metrics.sliced_w2.samples=1000000000", images],
            "evaluate.metrics.sliced_w2",
            "1000000000 samples for sliced_w2",
        ),
        (
            vec!["evaluate.metrics.mmd.samples=1000000000", images],
            "evaluate.metrics.mmd",
            "1000000000 samples for mmd",
        ),
    ] {
        let scratch = Scratch::with_small();
        let sets: Vec<_> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let outcome = scratch.runner(&[&["check", "--recipe", "small.yaml"], &sets[..]].concat());
        outcome.refused(&[key, what, "takes", "of memory, but", "are available"]);
    }
}

#[test]
fn options_without_effect_cause_a_warning() {
    let warnings = |sets: &[&str]| -> Vec<String> {
        let scratch = Scratch::with_small();
        let sets: Vec<_> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let outcome = scratch.runner(&[&["check", "--recipe", "small.yaml"], &sets[..]].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let effectless = outcome
            .stderr
            .lines()
            .filter(|line| line.contains("has no effect"));
        effectless.map(ToString::to_string).collect()
    };
    for (set, others, why) in [
        (
            "optimizer.energy.momentum=0.9",
            &[][..],
            "only with name=sgd, which is adam",
        ),
        (
            "optimizer.generator.betas=[0.5, 0.9]",
            &["optimizer.generator.name=sgd"],
            "only with name=adam, which is sgd",
        ),
        (
            "optimizer.generator.eps=1e-6",
            &["optimizer.generator.name=sgd"],
            "only with name=adam or rmsprop",
        ),
        ("optimizer.energy.smoothing=0.9", &[], "only with name=rmsprop"),
        (
            "energy.slope=0.1",
            &[],
            "only with activation=leaky_relu, which is silu",
        ),
        (
            "prior_chains.restarts=0.1",
            &[],
            "only with start=persistent or posterior, which is noise",
        ),
        (
            "optimizer.energy.lr=0.1",
            &["algorithm={name: ebipla_full, particles: 2}", "run.batch_size=40"],
            "algorithm `ebipla_full` does not use it",
        ),
    ] {
        let found = warnings(&[&[set], others].concat());
        let key = set.split('=').next().unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains(&format!("{key} (command line, --set): ")) && found[0].contains(why),
            "{found:?}"
        );
    }
    // Options with an effect, and options set to their current values.
    assert_eq!(
        warnings(&[
            "energy={activation: leaky_relu, slope: 0.1}",
            "optimizer.energy.momentum=0"
        ]),
        [""; 0]
    );
    assert_eq!(
        warnings(&[
            "optimizer.energy={name: sgd, momentum: 0.9}",
            "prior_chains={start: persistent, restarts: 0.1}"
        ]),
        [""; 0]
    );
}

/// The small recipe with images of 16 × 16 pixels, and `layers` after its own 8 lines.
fn decoding(layers: &str) -> String {
    with(
        "{ name: swiss_roll, size: 40, validation: 50 }",
        "{ name: blobs, size: 40, image_size: 16 }",
    )
    .replace("generator: { name: linear }\n", "")
        + "generator:\n  name: conv_decoder\n  layers:\n"
        + layers
}

const OPENING: &str = "  - { channels: 8, kernel: 8, stride: 1, padding: 0 }\n";

#[test]
fn lists_of_sections_are_checked_item_by_item() {
    let last = |options| decoding(&format!("{OPENING}  - {{ {options} }}\n"));
    refused(
        &last("channels: 3, kernal: 4"),
        &[
            "generator.layers.1.kernal (wrong.yaml:12): unknown option",
            "did you mean `kernel`?",
        ],
    );
    refused(
        &last("kernel: 4"),
        &["generator.layers.1.channels: missing: expected integer"],
    );
    refused(
        &last("channels: 0"),
        &["generator.layers.1.channels (wrong.yaml:12): found `0`, expected integer ≥ 1"],
    );
    refused(
        &last("channels: 3, kernel: 1, stride: 1, padding: 4"),
        &["generator.layers (wrong.yaml:11): layer 1 makes images of side 0 from images of side 8"],
    );
    refused(
        &decoding("    none\n"),
        &["generator.layers (wrong.yaml:11): found `none`, expected list of sections"],
    );

    let scratch = Scratch::new();
    scratch.write("right.yaml", &last("channels: 3"));
    let show = |set: &[&str]| {
        scratch
            .runner(&[&["show", "--recipe", "right.yaml", "--json"], set].concat())
            .json()
    };
    let shown = show(&[]);
    assert_eq!(
        shown["recipe"]["generator"]["layers"][1]["kernel"], 4,
        "the default"
    );
    assert_eq!(shown["origins"]["generator.layers.1.channels"], "right.yaml:12");
    assert_eq!(shown["origins"]["generator.layers.1.kernel"], "default");
    let shown = show(&[
        "--set",
        "generator.layers=[{channels: 3, kernel: 16, stride: 1, padding: 0}]",
    ]);
    assert_eq!(
        shown["recipe"]["generator"]["layers"].as_array().unwrap().len(),
        1
    );
    assert_eq!(
        shown["origins"]["generator.layers.0.kernel"],
        "command line, --set"
    );
}

#[test]
fn generators_that_do_not_fit_the_data_are_refused() {
    let images =
        |size: &str| decoding(&format!("{OPENING}  - {{ channels: 3 }}\n")).replace("image_size: 16", size);
    refused(
        &images("image_size: 28, channels: 1"),
        &[
            "generator (wrong.yaml:9): building generator `conv_decoder`: makes images of the shape [3, 16, 16]",
            "the data are [1, 28, 28]",
            "layers: [{channels: 128, kernel: 7, stride: 1, padding: 0}, {channels: 64}, {channels: 1}]",
        ],
    );
    refused(
        &with("{ name: linear }", "{ name: small_generator }"),
        &[
            "generator (wrong.yaml:4): building generator `small_generator`: takes data that are images",
            "found the shape [2]",
        ],
    );
}

#[test]
fn metrics_that_do_not_fit_are_refused() {
    refused(
        &format!("{SMALL}evaluate: {{ metrics: {{ sliced_w2: {{ chain_lengths: [10, 1] }} }} }}\n"),
        &[
            "evaluate.metrics.sliced_w2.chain_lengths (wrong.yaml:9)",
            "increasing",
        ],
    );
    let other = with("{ name: linear }", "{ name: linear, latent_dim: 3 }");
    refused(
        &format!("{other}evaluate: {{ metrics: {{ log_likelihood: {{}} }} }}\n"),
        &["evaluate.metrics.log_likelihood", "latents of 2 numbers, found 3"],
    );
}

#[test]
fn faulty_files_are_named() {
    refused(
        "extends: [nowhere.yaml, neither.yaml]\n",
        &[
            "2 problems",
            "extends (wrong.yaml:1): no such recipe: nowhere.yaml is not a file, and not a name in recipes or",
            "no such recipe: neither.yaml",
        ],
    );
    refused("run:\n  seed: 1\n  seed: 2\n", &["wrong.yaml:3", "seed"]);
    refused("run: { seed: 1\n", &["wrong.yaml:"]);
    let scratch = Scratch::new();
    scratch.write("a.yaml", "extends: b.yaml\n");
    scratch.write("b.yaml", "extends: a.yaml\n");
    scratch
        .runner(&["show", "--recipe", "a.yaml"])
        .refused(&["circle: a.yaml → b.yaml → a.yaml"]);
}

#[test]
fn all_problems_are_reported_at_once() {
    let recipe = with("hidden: 8", "hiden: 8")
        .replace("steps: 3", "steps: 0")
        .replace("name: ebipla", "name: ebipa")
        .replace("decoder", "decodr");
    refused(
        &recipe,
        &[
            "4 problems",
            "energy.hiden",
            "prior_sampler.steps",
            "algorithm.name",
            "decodr",
        ],
    );
}

#[test]
fn check_takes_a_step_and_writes_nothing() {
    let scratch = Scratch::with_small();
    let outcome = scratch.runner(&["check", "--recipe", "small.yaml"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(scratch.entries(), ["small.yaml"]);
    let wrong = scratch.runner(&["check", "--recipe", "small.yaml", "--set", "run.batch_size=41"]);
    wrong.refused(&["run.batch_size"]);
}

#[test]
fn every_shipped_recipe_passes_check() {
    let recipes = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/recipes")).unwrap();
    let mut checked = 0;
    for recipe in recipes
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
    {
        let name = recipe.file_stem().unwrap().to_str().unwrap();
        let mut arguments = vec!["check", "--recipe", recipe.to_str().unwrap()];
        arguments.extend(stand_ins(name).iter().flat_map(|text| ["--set", text]));
        let outcome = Scratch::new().runner(&arguments);
        assert_eq!(outcome.code, 0, "{name}: {}", outcome.stderr);
        checked += 1;
    }
    assert!(checked > 0);
}

/// Synthetic images of the right shape for a recipe whose data a fresh clone lacks. The largest network is made
/// narrower; otherwise it alone would take minutes.
fn stand_ins(recipe: &str) -> &'static [&'static str] {
    match recipe.split('_').next() {
        Some("svhn" | "cifar10") => &["dataset={name: blobs}"],
        Some("mnist") => &["dataset={name: blobs, image_size: 28, channels: 1}"],
        Some("celeba") if recipe.starts_with("celeba_hq") => {
            &["dataset={name: blobs, image_size: 256}", "generator.width=8"]
        }
        Some("celeba" | "celeba64") => &["dataset={name: blobs, image_size: 64}"],
        _ => &[],
    }
}
