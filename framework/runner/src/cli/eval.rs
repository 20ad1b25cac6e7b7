//! `runner eval`: measures a finished run again, with other metrics or another sampler if asked to.

use serde_json::Value;

use super::arguments::EvalArguments;
use super::trained::{Metrics, Trained, load};
use super::{Program, print};

pub fn eval(program: &Program, arguments: &EvalArguments) -> anyhow::Result<()> {
    let metrics = match &arguments.metrics[..] {
        [] => Metrics::Own,
        wanted => Metrics::Only(wanted),
    };
    let run = &arguments.run;
    let trained = load(program, &run.run_dir, &run.overrides, metrics)?;
    let Trained {
        setup, checkpoint, ..
    } = trained;
    let found = setup.evaluate()?;
    if arguments.json {
        return print(&format!("{:#}\n", Value::Object(found.to_json())));
    }
    print(&format!("{}\n{}", checkpoint.display(), found.to_text()))
}
