//! `runner fetch`: what it refuses, what has to be done by hand, and that it does not believe a mirror.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use support::Scratch;

#[test]
fn an_unknown_data_set_is_refused_with_those_that_are_known() {
    let outcome = Scratch::new().runner(&["fetch", "minst"]);
    outcome.refused(&[
        "`minst`",
        "did you mean `mnist`?",
        "celeba, celeba_hq, cifar10, fashion_mnist, mnist, svhn",
    ]);
}

#[test]
fn what_has_a_licence_says_what_to_get_and_where_to_put_it() {
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
fn a_mirror_with_other_files_is_not_believed() {
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
    // What was there before stays.
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
fn a_run_without_its_files_says_how_to_get_them() {
    let scratch = Scratch::with_small();
    let outcome = scratch.runner(&["check", "--recipe", "small.yaml", "--set", "dataset.name=svhn"]);
    outcome.refused(&["data/svhn/train_32x32.mat is missing", "runner fetch svhn"]);
}
