//! `runner report`: one page and one Markdown file about any set of runs and sweeps.

use std::path::PathBuf;

use ebipla_core::system::files::write_bytes;

use super::arguments::ReportArguments;
use super::{Misuse, Program, print};
use crate::report;

pub fn report(program: &Program, arguments: &ReportArguments) -> anyhow::Result<()> {
    for folder in &arguments.dirs {
        if !folder.is_dir() {
            return Err(Misuse(format!("{} is not a folder", folder.display())).into());
        }
    }
    let Some(report) = report::report(&arguments.dirs, &program.registry) else {
        let folders: Vec<_> = arguments
            .dirs
            .iter()
            .map(|dir| dir.display().to_string())
            .collect();
        let message = format!(
            "found no runs in {}: expected a run's folder, with recipe.yaml in it, a sweep's, with sweep.json, or one \
             above such folders",
            folders.join(", ")
        );
        return Err(Misuse(message).into());
    };
    let out = match (&arguments.out, &arguments.dirs[..]) {
        (Some(out), _) => out.clone(),
        (None, [only]) => only.clone(),
        (None, _) => PathBuf::from("report"),
    };
    let (html, markdown) = (out.join("report.html"), out.join("report.md"));
    write_bytes(&html, report.html)?;
    write_bytes(&markdown, report.markdown)?;
    print(&format!(
        "report: {}\n        {}\n",
        html.display(),
        markdown.display()
    ))
}
