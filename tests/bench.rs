//! `runner bench` runs and reports what it compared. No test asserts speed.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use support::Scratch;
use support::skip::skip;

#[test]
fn chains_are_compared_with_matrix_products() {
    let outcome = Scratch::new().runner(&["bench", "chains", "--rounds", "1", "--threads", "1", "--json"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let found = outcome.json();
    assert_eq!(found["machine"]["threads"], 1);
    let tables = found["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 3);
    let rows = |table: &Value| table["rows"].as_array().unwrap().clone();
    for table in &tables[..2] {
        let names: Vec<_> = rows(table).iter().map(|row| row["name"].to_string()).collect();
        for word in [
            "matrix products alone",
            "by autograd",
            "by hand",
            "perceptron in tiles",
        ] {
            assert!(names.iter().any(|name| name.contains(word)), "{word}: {names:?}");
        }
    }
    let samplers: Vec<_> = rows(&tables[2]).iter().map(|row| row["name"].clone()).collect();
    for sampler in ["hmc", "mala", "tamed_ula", "ula", "underdamped"] {
        assert!(samplers.contains(&sampler.into()), "{samplers:?}");
    }
    for row in tables.iter().flat_map(rows) {
        for column in ["ms a step", "GFLOP/s", "× products"] {
            assert!(row[column].as_f64().unwrap() > 0.0, "{row}");
        }
    }
}

#[test]
fn refuses_what_cannot_be_measured() {
    let scratch = Scratch::new();
    scratch
        .runner(&["bench", "chians"])
        .refused(&["chians", "chains", "steps", "growth", "records"]);
    scratch
        .runner(&["bench", "--device", "tpu"])
        .refused(&["tpu", "cuda:i"]);
    let packages = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".deps/bench");
    if packages.exists() {
        skip("PyTorch and JAX are installed, so the bench does not ask for them");
        return;
    }
    scratch
        .runner(&["bench", "chains", "--peers"])
        .refused(&["PyTorch and JAX", "./runner setup --peers"]);
}
