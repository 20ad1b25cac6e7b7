//! The registered plugins, how they are listed and described, and shell completion.
#![allow(clippy::unwrap_used)]

mod support;

use support::Scratch;

#[test]
fn list_names_every_kind_and_plugin() {
    let outcome = Scratch::new().runner(&["list"]);
    assert_eq!(outcome.code, 0);
    for word in [
        "algorithm\n",
        "  ebipla ",
        "  ebipla_full ",
        "  ebipla_underdamped ",
        "  lebm ",
        "prior_sampler\n",
        "  hmc ",
        "  mala ",
        "  tamed_ula ",
        "  ula ",
        "  underdamped ",
        "energy\n",
        "  mlp ",
        "  quadratic ",
        "generator\n",
        "  identity ",
        "  linear ",
        "dataset\n",
        "  circle ",
        "  gaussian ",
        "  half_moons ",
        "  swiss_roll ",
        "metric\n",
        "  parameter_error ",
        "  sliced_w2 ",
    ] {
        assert!(
            outcome.stdout.contains(word),
            "no `{word}` in\n{}",
            outcome.stdout
        );
    }
}

#[test]
fn list_takes_a_kind_and_prints_json() {
    let plugins = Scratch::new().runner(&["list", "prior_sampler", "--json"]).json();
    let plugins = plugins.as_array().unwrap();
    assert!(plugins.iter().all(|plugin| plugin["kind"] == "prior_sampler"));
    let ula = plugins.iter().find(|plugin| plugin["name"] == "ula").unwrap();
    assert_eq!(ula["crate"], "ebipla_plugins");
    assert_eq!(ula["options"][1]["name"], "step_size");
    assert_eq!(ula["options"][1]["type"], "number > 0 and ≤ 1e6");
    assert_eq!(ula["options"][1]["default"], 0.1);
    assert_eq!(ula["options"][1]["unit"], "latent units²");
}

#[test]
fn describe_prints_every_option_with_type_default_and_unit() {
    let outcome = Scratch::new().runner(&["describe", "algorithm", "ebipla"]);
    assert_eq!(outcome.code, 0);
    for line in [
        "particles  (integer ≥ 1 and ≤ 1e6; default 10; unit: particles)",
        "noise  (lazy | eager; default \"lazy\")",
        "warmup  (section, or null; default null)",
        "    inner_steps  (integer ≥ 1 and ≤ 1e6; default 10; unit: steps)",
    ] {
        assert!(
            outcome.stdout.contains(line),
            "no `{line}` in\n{}",
            outcome.stdout
        );
    }
    let json = Scratch::new()
        .runner(&["describe", "algorithm", "ebipla", "--json"])
        .json();
    assert_eq!(json["options"][6]["options"][0]["name"], "steps");
}

#[test]
fn describe_states_that_evaluations_share_their_random_numbers() {
    let described = Scratch::new().runner(&["describe", "metric", "sliced_w2"]);
    for words in ["run.seed alone", "record.checkpoint.best"] {
        assert!(described.stdout.contains(words), "{}", described.stdout);
    }
    let sampler = Scratch::new().runner(&["describe", "prior_sampler", "ula"]);
    assert!(!sampler.stdout.contains("run.seed"));
}

#[test]
fn describe_suggests_the_nearest_name() {
    let outcome = Scratch::new().runner(&["describe", "prior_sampler", "ulla"]);
    outcome.refused(&["no prior_sampler is called `ulla`", "did you mean `ula`?"]);
}

/// The shell's completions for the words typed so far, the last of which is being completed.
fn complete(scratch: &Scratch, words: &[&str]) -> Vec<String> {
    let index = words.len().to_string();
    let outcome = scratch.runner_with_env(
        &[&["--", "runner"], words].concat(),
        &[
            ("COMPLETE", "bash"),
            ("_CLAP_COMPLETE_INDEX", &index),
            ("_CLAP_IFS", "\n"),
        ],
    );
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn completion_knows_plugins_recipes_and_options() {
    let scratch = Scratch::new();
    let script = scratch.runner_with_env(&[], &[("COMPLETE", "bash")]);
    assert!(script.stdout.contains("complete -"), "{}", script.stdout);

    assert_eq!(complete(&scratch, &["describe", "prior_sampler", "ul"]), ["ula"]);
    scratch.write("recipes/mine.yaml", "");
    let recipes = complete(&scratch, &["--recipe", ""]);
    assert!(
        recipes.contains(&"mine".to_owned()),
        "a recipe of the working folder: {recipes:?}"
    );
    assert!(
        recipes.contains(&"quickstart".to_owned()),
        "one of ours: {recipes:?}"
    );
    let keys = complete(&scratch, &["--recipe", "quickstart", "--set", "prior_sampler.st"]);
    assert!(keys.iter().any(|key| key.contains("step_size=")), "{keys:?}");
    let names = complete(&scratch, &["check", "--set", "prior_sampler.name=u"]);
    assert!(names.iter().any(|name| name.contains("ula")), "{names:?}");
}
