//! `runner fetch`: refusals, instructions for manual downloads, and verification of mirrors.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use support::Scratch;

#[test]
fn an_unknown_data_set_is_refused_with_a_list_of_known_ones() {
    let outcome = Scratch::new().runner(&["fetch", "minst"]);
    outcome.refused(&[
        "`minst`",
        "did you mean `mnist`?",
        "celeba, celeba_hq, cifar10, fashion_mnist, mnist, svhn",
    ]);
}

#[test]
fn licensed_data_sets_print_instructions() {
    for (name, place) in [
        ("celeba", "data/celeba/img_align_celeba/000001.jpg"),
        ("celeba_hq", "data/celeba_hq/CelebA-HQ-img/0.jpg"),
    ] {
        let scratch = Scratch::new();
        let outcome = scratch.runner(&["fetch", name]);
        assert_eq!(outcome.code, 1);
        for word in ["https://", "non-commercial", place] {
            assert!(outcome.stderr.contains(word), "{}", outcome.stderr);
        }
        assert!(scratch.entries().is_empty());
    }
    let elsewhere = Scratch::new().runner(&["fetch", "celeba", "--out", "faces"]);
    assert!(
        elsewhere.stderr.contains(" faces/list_eval_partition.txt"),
        "{}",
        elsewhere.stderr
    );
}

#[test]
fn a_mirror_with_other_files_is_rejected() {
    let scratch = Scratch::new();
    scratch.write("mirror/train-images-idx3-ubyte.gz", "something else");
    let outcome = scratch.runner(&["fetch", "mnist", "--from", "mirror"]);
    assert_eq!(outcome.code, 1);
    for word in [
        "mirror/train-images",
        "not the published file",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    ] {
        assert!(outcome.stderr.contains(word), "{}", outcome.stderr);
    }
    assert_eq!(scratch.entries(), ["mirror"], "it leaves no empty folders");
    // Existing files stay.
    fs::create_dir(scratch.path().join("data")).unwrap();
    scratch.runner(&["fetch", "mnist", "--from", "mirror"]);
    assert_eq!(fs::read_dir(scratch.path().join("data")).unwrap().count(), 0);

    let empty = Scratch::new();
    fs::create_dir(empty.path().join("mirror")).unwrap();
    let outcome = empty.runner(&["fetch", "svhn", "--from", "mirror"]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("mirror/train_32x32.mat"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_run_without_its_files_reports_how_to_get_them() {
    let scratch = Scratch::with_small();
    let outcome = scratch.runner(&["check", "--recipe", "small.yaml", "--set", "dataset.name=svhn"]);
    outcome.refused(&["data/svhn/train_32x32.mat is missing", "runner fetch svhn"]);
}
