//! `runner report`: its numbers equal those of the runs, and it lists what is missing, unfinished or damaged.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::Scratch;
use support::skip::skip;

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read_json(path: PathBuf) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

/// Reports on `folders` into `out`, and returns the Markdown and the HTML.
#[track_caller]
fn report(scratch: &Scratch, folders: &[&str]) -> (String, String) {
    let outcome = scratch.runner(&[&["report", "--out", "out"], folders].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let file = |name: &str| read(scratch.path().join("out").join(name));
    (file("report.md"), file("report.html"))
}

/// The cells of the first row that begins with `begins`, in the table whose head begins with `head`.
#[track_caller]
fn row(markdown: &str, head: &str, begins: &str) -> Vec<String> {
    let mut lines = markdown.lines().skip_while(|line| !line.starts_with(head));
    assert!(lines.next().is_some(), "no table `{head}` in:\n{markdown}");
    let mut rows = lines.take_while(|line| line.starts_with('|'));
    let found = rows.find(|line| line.starts_with(begins));
    let found = found.unwrap_or_else(|| panic!("no row `{begins}` in:\n{markdown}"));
    let cells = found.trim_matches('|').split('|');
    cells.map(|cell| cell.trim().to_owned()).collect()
}

/// The value and the error of `0.123 ± 0.045` or `(1.2 ± 0.3) × 10⁻⁵`, bold or not.
fn parse(cell: &str) -> (f64, f64) {
    let cell = cell.replace("\\*", "").replace('*', "").replace('−', "-");
    let (numbers, unit) = match cell.split_once(" × 10") {
        Some((numbers, exponent)) => {
            let digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
            let exponent: String = exponent
                .chars()
                .map(|c| match digits.chars().position(|digit| digit == c) {
                    Some(digit) => digit.to_string(),
                    None => "-".into(),
                })
                .collect();
            (numbers.to_owned(), 10f64.powi(exponent.parse().unwrap()))
        }
        None => (cell.clone(), 1.0),
    };
    let (mean, error) = numbers
        .split_once(" ± ")
        .unwrap_or_else(|| panic!("no error in {cell}"));
    let number = |text: &str| text.trim_matches(['(', ')']).parse::<f64>().unwrap() * unit;
    (number(mean), number(error))
}

/// Copies a run, with `edit` applied to its recipe's text, and other files written over its own.
fn copy_run(from: &Path, to: &Path, edit: impl Fn(String) -> String, files: &[(&str, &str)]) {
    fs::create_dir_all(to.join("figures")).unwrap();
    for name in ["provenance.json", "metrics.jsonl", "evaluation.json"] {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
    for picture in fs::read_dir(from.join("figures")).unwrap() {
        let picture = picture.unwrap();
        fs::copy(picture.path(), to.join("figures").join(picture.file_name())).unwrap();
    }
    fs::write(to.join("recipe.yaml"), edit(read(from.join("recipe.yaml")))).unwrap();
    for (name, text) in files {
        fs::write(to.join(name), text).unwrap();
    }
}

fn with_seed(seed: u64) -> impl Fn(String) -> String {
    move |recipe| {
        assert!(recipe.contains("seed: 1\n"));
        recipe.replacen("seed: 1\n", &format!("seed: {seed}\n"), 1)
    }
}

const EVALUATE: [&str; 2] = [
    "--set",
    "evaluate={every: 2, metrics: {sliced_w2: {samples: 20}, mmd: {samples: 20}}}",
];

/// Mean and standard error are computed here from each run's evaluation.json. Both are printed such that the error has
/// two digits, or one where the mean would have more than six: off by at most half a unit of the last digit, which is
/// less than 0.05 or 0.5 errors.
#[test]
fn means_and_errors_match_the_runs_and_the_best_is_bold() {
    let scratch = Scratch::with_small();
    let mut values: Vec<(u32, Vec<[f64; 2]>)> = Vec::new();
    for particles in [2, 8] {
        let mut of_group = Vec::new();
        for seed in ["0", "1", "2"] {
            let set = format!("algorithm.particles={particles}");
            let folder = scratch.train(&[&EVALUATE[..], &["--set", &set, "--seed", seed]].concat());
            let evaluation = read_json(folder.join("evaluation.json"));
            of_group.push(["mmd", "sliced_w2"].map(|name| evaluation[name].as_f64().unwrap()));
        }
        values.push((particles, of_group));
    }
    let (markdown, html) = report(&scratch, &["runs"]);
    let expected = |group: &[[f64; 2]], i: usize| {
        let n = group.len() as f64;
        let mean = group.iter().map(|values| values[i]).sum::<f64>() / n;
        let squares: f64 = group.iter().map(|values| (values[i] - mean).powi(2)).sum();
        (mean, (squares / (n - 1.0) / n).sqrt())
    };
    let head = "| particles | n | mmd ↓ | sliced_w2 ↓ |";
    for (particles, group) in &values {
        let row = row(&markdown, head, &format!("| {particles} |"));
        assert_eq!(row[1], "3");
        for i in 0..2 {
            let (mean, error) = expected(group, i);
            let (shown_mean, shown_error) = parse(&row[2 + i]);
            assert!(
                (shown_mean - mean).abs() <= 0.51 * error,
                "{row:?}, expected {mean}"
            );
            assert!(
                (shown_error - error).abs() <= 0.51 * error,
                "{row:?}, expected {error}"
            );
            let digits = (shown_mean - mean).abs() <= 1e-5 * mean.abs().max(error)
                || (shown_mean - mean).abs() <= 0.051 * error;
            assert!(digits, "{row:?}, expected {mean}");
            let others = values.iter().map(|(_, group)| expected(group, i).0);
            let best = others.fold(f64::INFINITY, f64::min) == mean;
            assert_eq!(row[2 + i].starts_with("**"), best, "{row:?}");
        }
    }
    assert!(
        markdown.contains("6 runs of 2 experiments: 6 finished"),
        "{markdown}"
    );
    assert!(!markdown.contains("not counted"), "{markdown}");
    assert!(html.contains("sliced_w2 against particles") && html.contains("particles [particles]"));
    // Training was recorded at every step, and evaluated after 2, 4 and 6.
    assert!(
        html.contains("<title id=\"chart")
            && html.contains("evaluate/sliced_w2")
            && html.contains("loss/energy")
    );
}

#[test]
fn one_run_alone_is_reported_in_its_own_folder() {
    let scratch = Scratch::with_small();
    let folder = scratch.train(&EVALUATE);
    let outcome = scratch.runner(&["report", folder.to_str().unwrap()]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for name in ["report.html", "report.md"] {
        let path = folder.join(name);
        assert!(
            outcome.stdout.contains(path.to_str().unwrap()),
            "{}",
            outcome.stdout
        );
    }
    let markdown = read(folder.join("report.md"));
    let evaluation = read_json(folder.join("evaluation.json"));
    let row = row(&markdown, "| recipe | n | mmd ↓ | sliced_w2 ↓ |", "| small | 1 |");
    let expected = evaluation["sliced_w2"].as_f64().unwrap();
    let shown: f64 = row[3].parse().unwrap();
    assert!(
        (shown / expected - 1.0).abs() < 1e-3,
        "{row:?}, expected {expected}"
    );
    assert!(
        !row[3].contains('*'),
        "one run is not the best of anything: {row:?}"
    );
    assert!(read(folder.join("report.html")).contains("data:image/png;base64,"));
}

/// A member in each state; only finished ones count, and the page states why.
#[test]
fn states_are_reported_with_reasons_and_only_finished_runs_count() {
    let scratch = Scratch::with_small();
    let run = scratch.train(&EVALUATE);
    let sweep = scratch.path().join("sweep");
    let member = |name: &str, seed, files: &[(&str, &str)]| {
        copy_run(&run, &sweep.join(name), with_seed(seed), files);
    };
    member(
        "a-00000000-s1",
        1,
        &[("outcome.json", r#"{"code": 0, "message": ""}"#)],
    );
    member("again-00000000-s1", 1, &[]);
    let diverged = r#"{"code": 3, "message": "diverged: energy/prior is <b>1e9</b> | at step 4"}"#;
    member("b-00000000-s2", 2, &[("outcome.json", diverged)]);
    member(
        "c-00000000-s3",
        3,
        &[("outcome.json", r#"{"code": 1, "message": "no space left"}"#)],
    );
    member(
        "d-00000000-s4",
        4,
        &[("outcome.json", r#"{"code": 130, "message": "interrupted"}"#)],
    );
    member("e-00000000-s5", 5, &[("provenance.json", r#"{"outcome": null}"#)]);
    scratch.write(
        "sweep/f-00000000-s6/recipe.yaml",
        &with_seed(6)(read(run.join("recipe.yaml"))),
    );
    let members = ["a", "b", "c", "d", "e", "f", "gone"].map(
        |name| json!({ "name": format!("{name}-00000000-s1"), "recipe": "small", "seed": 1, "values": {} }),
    );
    let file =
        json!({ "version": 1, "name": "states", "title": "All <states>", "names": {}, "members": members });
    scratch.write("sweep/sweep.json", &file.to_string());

    let (markdown, html) = report(&scratch, &["sweep"]);
    let head = "| run | state | reached | reason |";
    for (run, state, reason) in [
        ("again", "repeated", "same seed"),
        ("b", "diverged", "at step 4"),
        ("c", "failed", "no space left"),
        ("d", "interrupted", "--resume"),
        ("e", "killed", "--resume"),
        ("f", "waiting", "not begun"),
    ] {
        let row = row(&markdown, head, &format!("| {run}-"));
        assert_eq!(row[1], state, "{row:?}");
        assert!(row.join("|").contains(reason), "{row:?}");
    }
    assert_eq!(row(&markdown, "| recipe | n |", "| small |")[1], "1");
    assert!(
        markdown.contains("6 of 7 runs are not counted in any mean"),
        "{markdown}"
    );
    assert!(
        markdown.contains("gone-00000000-s1, which has no folder"),
        "{markdown}"
    );
    assert!(html.contains("All &lt;states&gt;") && html.contains("&lt;b&gt;1e9&lt;/b&gt; | at step 4"));
    assert!(!html.contains("<b>"), "text became markup");
}

#[test]
fn damaged_files_are_listed_and_the_rest_is_shown() {
    let scratch = Scratch::with_small();
    let run = scratch.train(&EVALUATE);
    let metrics = read(run.join("metrics.jsonl")) + "{\"step\": 9, \"loss\n\u{1}garbage\n";
    let damage = |name: &str, seed, files: &[(&str, &str)]| {
        copy_run(
            &run,
            &scratch.path().join("all").join(name),
            with_seed(seed),
            files,
        );
    };
    damage("evaluation", 2, &[("evaluation.json", "{\"step\": 6, \"mm")]);
    damage("metrics", 3, &[("metrics.jsonl", &metrics)]);
    damage("recipe", 4, &[("recipe.yaml", "run: [unclosed")]);
    damage("provenance", 5, &[("provenance.json", "nothing")]);
    damage(
        "picture",
        0,
        &[("figures/step_00000006_model.png", "not a picture")],
    );
    damage("progress", 7, &[("progress.json", "{\"seconds\": \"many\"}")]);
    fs::create_dir_all(scratch.path().join("all/no_recipe")).unwrap();
    scratch.write("all/no_recipe/metrics.jsonl", "{}\n");
    scratch.write("all/broken_sweep/sweep.json", "{\"members\": 3}");
    scratch.write(
        "all/not_finite/recipe.yaml",
        &with_seed(8)(read(run.join("recipe.yaml"))),
    );
    scratch.write("all/not_finite/provenance.json", "{\"outcome\": \"finished\"}");
    scratch.write(
        "all/not_finite/evaluation.json",
        "{\"step\": 6, \"mmd\": null, \"sliced_w2\": 0.5}",
    );

    let (markdown, html) = report(&scratch, &["all"]);
    for note in [
        "all/evaluation/evaluation.json is damaged",
        "all/metrics/metrics.jsonl: lines that cannot be read: 2",
        "all/recipe/recipe.yaml",
        "all/provenance/provenance.json is damaged",
        "figures/step\\_00000006\\_model.png is damaged",
        "all/progress/progress.json",
        "all/no\\_recipe has no recipe.yaml",
        "all/broken\\_sweep/sweep.json: ",
    ] {
        let note = note.replace("\\_", "_");
        assert!(markdown.contains(&note), "no `{note}` in:\n{markdown}");
        assert!(html.contains(&note), "no `{note}` in the page");
    }
    // Of evaluation, metrics, picture, progress and not_finite: the first has no numbers, the last no finite mmd.
    let row = row(&markdown, "| recipe | n | mmd ↓ |", "| picture |");
    assert_eq!(row[1], "5", "{row:?}");
    assert!(row[2].contains("over 3 of 5 runs"), "{row:?}");
    assert!(row[3].contains("over 4 of 5 runs"), "{row:?}");
}

#[test]
fn runs_without_evaluation_are_reported_too() {
    let scratch = Scratch::with_small();
    scratch.train(&["--set", "evaluate.metrics={}", "--set", "run.max_steps=0"]);
    let (markdown, _) = report(&scratch, &["runs"]);
    assert!(
        markdown.contains("No run has come to its final evaluation"),
        "{markdown}"
    );
}

#[test]
fn folders_without_runs_are_refused() {
    let scratch = Scratch::new();
    scratch.write("empty/nothing.txt", "");
    scratch
        .runner(&["report", "empty"])
        .refused(&["found no runs in empty", "recipe.yaml"]);
    scratch
        .runner(&["report", "missing"])
        .refused(&["missing is not a folder"]);
    scratch.runner(&["report"]).refused(&["DIR"]);
    assert_eq!(scratch.entries(), ["empty"]);
}

/// Published numbers appear beside ours, with notes on every difference that prevents a comparison.
#[test]
fn published_numbers_come_with_warnings() {
    let scratch = Scratch::new();
    let recipe = scratch
        .runner(&["show", "--recipe", "svhn_small", "--json"])
        .json()["recipe"]
        .clone();
    // JSON is YAML.
    scratch.write("svhn/recipe.yaml", &recipe.to_string());
    scratch.write("svhn/provenance.json", "{\"outcome\": \"finished\"}");
    let evaluation = json!({
        "step": 10, "mse": 0.0123, "frechet_vgg16": 3.25,
        "facts": { "frechet_vgg16": { "weights": "vgg16-397923af.pth" } },
    });
    let mut with_vgg = recipe.clone();
    with_vgg["evaluate"]["metrics"]["frechet_vgg16"] = json!({});
    scratch.write("svhn/recipe.yaml", &with_vgg.to_string());
    scratch.write("svhn/evaluation.json", &evaluation.to_string());
    let (markdown, _) = report(&scratch, &["svhn"]);
    let head = "| recipe | n | mse ↓ | published (mse) | frechet_vgg16 ↓ | fid ↓ | published (fid) |";
    let cells = row(&markdown, head, "| svhn |");
    assert_eq!(cells[2..], ["0.01230", "0.004", "3.250", "–", "27.54 ± 0.42"]);
    for warning in [
        "dataset.limit is 9,000",
        "algorithm.particles is 4; the published numbers were obtained with 10",
        "mse was measured otherwise than published: points = 500 (by default not set)",
        "frechet_vgg16 is taken with the weights vgg16-397923af.pth and has no published counterpart",
        "Published: Table 1 of the paper, EBIPLA",
    ] {
        assert!(markdown.contains(warning), "no `{warning}` in:\n{markdown}");
    }
}

/// `published` describes an experiment and is not part of it.
#[test]
fn published_numbers_do_not_change_the_experiment() {
    let scratch = Scratch::with_small();
    let show = |set: &str| {
        let outcome = scratch.runner(&["show", "--recipe", "small.yaml", "--json", "--set", set]);
        outcome.json()
    };
    let set = "published={source: somewhere, numbers: {mmd: [0.1, 0.02], fid: null}, settings: {algorithm.particles: 10}}";
    let (plain, published) = (show("run.seed=1"), show(set));
    assert_eq!(plain["hash"], published["hash"]);
    assert!(plain["recipe"].get("published").is_none());
    let expected = json!({ "source": "somewhere", "numbers": { "mmd": [0.1, 0.02] }, "settings": { "algorithm.particles": 10.0 } });
    assert_eq!(published["recipe"]["published"], expected);

    let first = scratch.train(&["--set", "run.max_steps=3"]);
    assert_eq!(scratch.train(&["--resume", "--set", set]), first);
    let recipe = read(first.join("recipe.yaml"));
    assert!(recipe.contains("somewhere"), "{recipe}");

    let wrong = "published={numbers: {mmd: much}, sauce: 1}";
    let refused = scratch.runner(&["show", "--recipe", "small.yaml", "--set", wrong]);
    refused.refused(&[
        "published.numbers.mmd",
        "list of number",
        "published.sauce",
        "did you mean `source`",
    ]);
}

/// Two data sets, two methods whose N are different options, three values of N, two seeds: every element of a page.
fn figure(scratch: &Scratch) {
    let run = scratch.train(&EVALUATE);
    let lebm = scratch.train(&[&EVALUATE[..], &["--set", "algorithm.name=lebm"]].concat());
    let mut members = Vec::new();
    for (i, dataset) in ["swiss_roll", "half_moons"].iter().enumerate() {
        for (from, method, key, old) in [
            (&run, "ebipla", "algorithm.particles", "  particles: 2\n"),
            (
                &lebm,
                "lebm",
                "algorithm.posterior_steps",
                "  posterior_steps: 20\n",
            ),
        ] {
            for n in [4u32, 16, 64] {
                for seed in [0, 1] {
                    let name = format!("{method}-{i}{n:07}-s{seed}");
                    let option = old.trim().split(':').next().unwrap();
                    let edit = |recipe: String| {
                        assert!(
                            recipe.contains(old) && recipe.contains("name: swiss_roll"),
                            "{recipe}"
                        );
                        with_seed(seed)(recipe)
                            .replacen(old, &format!("  {option}: {n}\n"), 1)
                            .replacen("name: swiss_roll", &format!("name: {dataset}"), 1)
                    };
                    let value = f64::from(n).sqrt() / (seed as f64 + 3.0);
                    let evaluation =
                        json!({ "step": 6, "mmd": value / 50.0 - 0.01, "sliced_w2": 1.0 / value });
                    let progress = json!({
                        "step": 6, "steps": 6, "steps_taken": 6, "seconds": value, "recording_seconds": 1.0,
                        "generator_gradients": 96 * n, "energy_gradients": 480 * n, "peak_memory_gib": 0.5,
                    });
                    let files = [
                        ("evaluation.json", evaluation.to_string()),
                        ("progress.json", progress.to_string()),
                        ("outcome.json", "{\"code\": 0, \"message\": \"\"}".to_owned()),
                    ];
                    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
                    copy_run(from, &scratch.path().join("figure").join(&name), edit, &files);
                    members.push(json!({
                        "name": name, "recipe": "small", "seed": seed,
                        "values": { "dataset.name": dataset, key: n },
                    }));
                }
            }
        }
    }
    let file = json!({
        "version": 1, "name": "figure", "title": "Data sets × N × method, with a rather_long_name_that_must_break_somewhere",
        "names": { "algorithm.particles": "N", "algorithm.posterior_steps": "N" },
        "members": members,
    });
    scratch.write("figure/sweep.json", &file.to_string());
}

#[test]
fn options_with_the_same_short_name_share_an_axis() {
    let scratch = Scratch::with_small();
    figure(&scratch);
    let (markdown, html) = report(&scratch, &["figure"]);
    let head = "| algorithm | N | n | mmd ↓ | sliced_w2 ↓ |";
    // √4/3 and √4/4 have the mean 7/12 and the error 1/12.
    let cells = row(&markdown, head, "| ebipla | 4 |");
    assert_eq!(cells[2], "2");
    let (mean, error) = parse(&cells[3]);
    assert!(
        (mean - (7.0 / 600.0 - 0.01)).abs() < 1e-4 && (error - 1.0 / 600.0).abs() < 5e-5,
        "{cells:?}"
    );
    // The Swiss roll comes first in the sweep, though not in alphabetical order.
    assert!(markdown.find("### swiss_roll") < markdown.find("### half_moons"));
    let cost = row(
        &markdown,
        "| group | steps | training (s) |",
        "| swiss_roll · lebm · N = 64 |",
    );
    assert_eq!((cost[1].as_str(), cost[5].as_str()), ("6", "6,144"), "{cost:?}");
    assert!(html.contains("ebipla: ") && html.contains("mmd against N"));
}

/// Checks one view of the page.
fn check_view(name: &str, view: &Value, expected_sections: &[&str]) {
    let empty = |key: &str| assert_eq!(view[key], json!([]), "{name}: {key}");
    empty("console");
    empty("requests_outside");
    empty("overflowing");
    assert_eq!(
        view["scroll_width"], view["width"],
        "{name}: the page is wider than the screen"
    );
    assert_eq!(view["scripts"], 0);
    let all = |key: &str| view[key].as_array().unwrap().clone();
    // Whether there are warnings depends on the state of the sources of this build.
    let mut sections = all("sections");
    sections.retain(|id| id != "warnings");
    assert_eq!(sections, expected_sections, "{name}");
    assert!(
        all("links").iter().all(|leads| *leads == true),
        "{name}: a link leads nowhere"
    );
    assert!(!all("images").is_empty(), "{name}: no pictures");
    for image in all("images") {
        assert_eq!(image["loaded"], true, "{name}: {image}");
        assert!(!image["alt"].as_str().unwrap().is_empty());
    }
    for chart in all("charts") {
        let filled = |key: &str, least: usize| {
            let texts = chart[key].as_array().unwrap();
            assert!(texts.len() >= least, "{name}: {key} of {chart}");
            assert!(texts.iter().all(|text| text != ""), "{name}: {key} of {chart}");
        };
        filled("ticks", 2);
        filled("axis_labels", if chart["rows"] == json!([]) { 2 } else { 1 });
        for key in ["title", "description", "caption"] {
            assert!(
                !chart[key].as_str().unwrap().is_empty(),
                "{name}: {key} of {chart}"
            );
        }
        assert!(chart["marks"].as_u64().unwrap() > 0, "{name}: {chart}");
        let letter = chart["letter"].as_f64().unwrap();
        assert!(letter >= 10.0, "{name}: letters of {letter} pixels");
    }
}

/// Screenshots stay in target/report_screenshots.
#[test]
fn the_page_renders_correctly_in_a_real_browser() {
    let program = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".into());
    for (tool, package) in [(program.as_str(), "chromium"), ("python3", "python3")] {
        if Command::new(tool).arg("--version").output().is_err() {
            skip(&format!(
                "{tool} is missing; install Debian's {package}, or set CHROMIUM to its path"
            ));
            return;
        }
    }
    let scratch = Scratch::with_small();
    figure(&scratch);
    report(&scratch, &["figure"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let screenshots = root.join("target/report_screenshots");
    let output = Command::new("python3")
        .arg(root.join("tests/browser/look.py"))
        .args([&program, scratch.path().join("out/report.html").to_str().unwrap()])
        .arg(&screenshots)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let views: Value = serde_json::from_slice(&output.stdout).unwrap();
    let sections = ["runs", "results", "compared", "pictures", "curves", "cost"];
    for (name, view) in views.as_object().unwrap() {
        check_view(name, view, &sections);
        assert!(Path::new(view["screenshot"].as_str().unwrap()).is_file());
    }
    assert_eq!(views.as_object().unwrap().len(), 4);
    assert_ne!(
        views["desk_light"]["background"],
        views["desk_dark"]["background"]
    );

    let view = &views["desk_light"];
    let charts = view["charts"].as_array().unwrap();
    let of = |caption: &str| -> Vec<&Value> {
        charts
            .iter()
            .filter(|chart| chart["caption"] == caption)
            .collect()
    };
    // One for each data set.
    for chart in [of("sliced_w2 against N"), of("mmd against N")].concat() {
        assert_eq!(chart["legend"], json!(["ebipla", "lebm"]));
        let numbers = ["lines", "marks", "errors"].map(|key| chart[key].as_u64().unwrap());
        assert_eq!(numbers, [2, 6, 6], "{chart}");
        let ticks = chart["ticks"].as_array().unwrap();
        assert_eq!(
            ticks[ticks.len() - 3..],
            [json!("4"), json!("16"), json!("64")],
            "{chart}"
        );
    }
    assert_eq!(
        (of("sliced_w2 against N").len(), of("mmd against N").len()),
        (2, 2)
    );
    assert_eq!(of("Seconds per step against N").len(), 1);
    let losses = of("loss/energy");
    assert_eq!(losses.len(), 2);
    for chart in losses {
        assert_eq!(
            (&chart["lines"], &chart["bands"]),
            (&json!(6), &json!(6)),
            "{chart}"
        );
    }
    assert_eq!(view["images"].as_array().unwrap().len(), 12);
    assert_eq!(
        view["bold"].as_array().unwrap().len(),
        8,
        "two methods tie in both columns of both tables"
    );
}
