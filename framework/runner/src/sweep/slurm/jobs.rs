//! Notes which members were submitted as which jobs: `slurm/jobs.json`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ebipla_core::system::files::write_bytes;
use serde::{Deserialize, Serialize};

use super::array::Array;

/// All arrays that were submitted for a sweep, in that order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Jobs {
    version: u32,
    arrays: Vec<Submitted>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Submitted {
    /// In the names of its files.
    number: u32,
    /// The array's id in Slurm.
    job: String,
    /// When, in UTC.
    submitted: String,
    /// Task i is member i.
    members: Vec<String>,
}

/// Where a member went last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The array's id in Slurm.
    pub job: String,
    /// The task's index in it.
    pub index: usize,
    /// What Slurm wrote about the task, in the sweep's folder.
    pub output: PathBuf,
}

impl Place {
    /// The task as Slurm calls it.
    pub fn task(&self) -> String {
        format!("{}_{}", self.job, self.index)
    }
}

const VERSION: u32 = 1;

impl Jobs {
    /// Those of the sweep in `folder`; `None` if nothing of it was submitted.
    pub fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = file(folder);
        if !path.exists() {
            return Ok(None);
        }
        let jobs: Self = fs::read(&path)
            .map_err(anyhow::Error::from)
            .and_then(|text| Ok(serde_json::from_slice(&text)?))
            .with_context(|| format!("reading {}", path.display()))?;
        let found = jobs.version;
        ensure!(
            found == VERSION,
            "{}: found version {found}, expected {VERSION}",
            path.display()
        );
        Ok(Some(jobs))
    }

    /// Before the first.
    pub fn none() -> Self {
        Self {
            version: VERSION,
            arrays: Vec::new(),
        }
    }

    /// The number for the next array.
    pub fn next_number(&self) -> u32 {
        let numbers = self.arrays.iter().map(|array| array.number);
        numbers.max().unwrap_or(0) + 1
    }

    /// Notes, also on the disk, that an array was submitted.
    pub fn add(&mut self, folder: &Path, array: &Array, job: String) -> anyhow::Result<()> {
        self.arrays.push(Submitted {
            number: array.number,
            job,
            submitted: jiff::Timestamp::now().to_string(),
            members: array.members.iter().map(|&name| name.to_owned()).collect(),
        });
        write_bytes(&file(folder), serde_json::to_string_pretty(self)? + "\n")
    }

    /// Where a member was submitted last.
    pub fn place(&self, member: &str) -> Option<Place> {
        self.arrays.iter().rev().find_map(|array| {
            let index = array.members.iter().position(|name| name == member)?;
            Some(Place {
                job: array.job.clone(),
                index,
                output: format!("slurm/array-{}-task-{index}.txt", array.number).into(),
            })
        })
    }

    /// The ids of all arrays.
    pub fn ids(&self) -> Vec<&str> {
        self.arrays.iter().map(|array| array.job.as_str()).collect()
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("slurm/jobs.json")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::recipe::SlurmSection;

    #[test]
    fn a_member_is_found_where_it_was_submitted_last() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Jobs::read(folder.path()).unwrap().is_none());
        let section = SlurmSection::default();
        let mut jobs = Jobs::none();
        for (job, members) in [("11", vec!["a", "b"]), ("12", vec!["c"]), ("15", vec!["b"])] {
            let array = Array {
                number: jobs.next_number(),
                section: &section,
                members,
            };
            jobs.add(folder.path(), &array, job.into()).unwrap();
        }
        let jobs = Jobs::read(folder.path()).unwrap().unwrap();
        assert_eq!(jobs.ids(), ["11", "12", "15"]);
        assert_eq!(jobs.next_number(), 4);
        let task = |member| jobs.place(member).map(|place| place.task());
        let found = ["a", "b", "c", "d"].map(task);
        assert_eq!(
            found,
            ["11_0", "15_0", "12_0"]
                .map(|id| Some(id.to_owned()))
                .into_iter()
                .chain([None])
                .collect::<Vec<_>>()[..]
        );
        assert_eq!(
            jobs.place("b").unwrap().output,
            Path::new("slurm/array-3-task-0.txt")
        );
    }

    #[test]
    fn a_file_that_is_damaged_or_of_another_version_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("slurm")).unwrap();
        for (text, word) in [
            ("{", "jobs.json"),
            ("{\"version\": 7, \"arrays\": []}", "version 7"),
        ] {
            fs::write(file(folder.path()), text).unwrap();
            let error = format!("{:#}", Jobs::read(folder.path()).unwrap_err());
            assert!(error.contains(word), "{error}");
        }
    }
}
