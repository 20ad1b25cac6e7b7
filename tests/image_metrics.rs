//! Metrics of images in the real program, with weights that are not part of this repository.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::skip::skip;
use support::{SMALL, Scratch};

/// VGG-16 from the folder `shared/` beside the repository, or from the one that EBIPLA_SHARED names.
fn vgg16() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let folder = std::env::var_os("EBIPLA_SHARED").map_or(beside, PathBuf::from);
    let path = folder.join("data/weights/vgg16_imagenet_f16.safetensors");
    if !path.exists() {
        skip(&format!("{} is missing", path.display()));
        return None;
    }
    Some(path)
}

/// For an untrained model of grey images, the numbers are reproducible and come with everything that they depend on.
#[test]
fn numbers_come_with_their_facts_and_are_reproducible() {
    let Some(weights) = vgg16() else {
        return;
    };
    let scratch = Scratch::new();
    let recipe = SMALL
        .replace(
            "{ name: swiss_roll, size: 40,",
            "{ name: blobs, size: 40, channels: 1, image_size: 28,",
        )
        .replace("{ name: linear }", "{ name: small_generator, width: 2 }");
    let metrics = "evaluate: { metrics: { frechet_vgg16: { samples: 30, batch: 7 }, \
                   precision_recall: { samples: 30, reference: 20 } } }\n";
    scratch.write("grey.yaml", &format!("{recipe}{metrics}"));
    let environment = [
        ("EBIPLA_VGG16", weights.to_str().unwrap()),
        ("EBIPLA_CACHE", scratch.path().to_str().unwrap()),
    ];
    let run = ["--recipe", "grey.yaml", "--set", "run.max_steps=0"];
    let outcome = scratch.runner_with_env(&run, &environment);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let folder = outcome.folder(&scratch);
    let text = fs::read_to_string(folder.join("evaluation.json")).unwrap();
    let evaluation: Value = serde_json::from_str(&text).unwrap();
    assert!(
        evaluation["frechet_vgg16"].as_f64().unwrap() > 0.0,
        "{evaluation}"
    );
    let facts = &evaluation["facts"]["frechet_vgg16"];
    assert_eq!(facts["samples"], 30);
    assert_eq!(facts["reference"], "all 40 training images");
    assert_eq!(facts["sampler"]["name"], "ula");
    assert_eq!(facts["sampler"]["steps"], 3);
    assert_eq!(facts["dataset"]["name"], "blobs");
    assert_eq!(facts["weights_sha256"].as_str().unwrap().len(), 64);
    let facts = &evaluation["facts"]["precision_recall"];
    assert_eq!(facts["reference"], "20 of 40 training images, evenly spread");
    assert_eq!(fs::read_dir(scratch.path().join("moments")).unwrap().count(), 1);

    let folder = folder.to_str().unwrap();
    let again = scratch
        .runner_with_env(&["eval", folder, "--json"], &environment)
        .json();
    for name in [
        "frechet_vgg16",
        "precision_recall/precision",
        "precision_recall/recall",
        "facts",
    ] {
        assert_eq!(again[name], evaluation[name], "{name}");
    }
    let printed = scratch.runner_with_env(&["eval", folder, "--metrics", "frechet_vgg16"], &environment);
    assert!(
        printed.stdout.contains("    sampler: name ula, steps 3,"),
        "{}",
        printed.stdout
    );
    let refused = scratch.runner_with_env(&["eval", folder, "--metrics", "fid"], &environment);
    refused.refused(&["EBIPLA_INCEPTION"]);
}
