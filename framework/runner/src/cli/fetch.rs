//! `runner fetch`: gets the files of a data set, or says how to.

use std::path::Path;

use super::arguments::FetchArguments;
use super::describe::Unknown;
use super::print;
use crate::fetch::entries;
use crate::recipe::Problem;

/// Where data sets look for their files.
const DATA: &str = "data";

pub fn fetch(arguments: &FetchArguments) -> anyhow::Result<()> {
    let name = arguments.dataset.as_str();
    let Some(entry) = entries().into_iter().find(|entry| entry.name == name) else {
        let problem = Problem::at("", None, format!("nothing is known of how to fetch `{name}`"));
        let names = entries().into_iter().map(|entry| entry.name);
        return Err(Unknown(problem.with_names(name, names)).into());
    };
    let folder = arguments
        .out
        .clone()
        .unwrap_or_else(|| Path::new(DATA).join(name));
    crate::fetch::fetch(entry, arguments.from.as_deref(), &folder, |line| {
        // Whoever does not listen still gets the files.
        let _ = print(&format!("{line}\n"));
    })
}
