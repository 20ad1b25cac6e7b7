//! Sends numbers, distributions, pictures and the recipe to TensorBoard.
//!
//! The library writes the records. What they hold is built in [`summaries`], and the file is opened here, since the
//! library's own writer panics on a full disk and does not say when it has written.

mod summaries;

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use ebipla_core::system::files::UNFINISHED;
use protobuf::Message;
use serde_json::Value;
use tch::Tensor;
use tensorboard_proto::event::{Event, SessionLog, SessionLog_SessionStatus};
use tensorboard_proto::summary::{Summary, Summary_Value};
use tensorboard_rs::record_writer::RecordWriter;

use super::{Moment, Picture};

/// What names of event files begin with: TensorBoard looks for it.
const PREFIX: &str = "events.out.tfevents.";

/// What stands in names of event files of what is told at a run's end, before the step.
const END: &str = ".end_";

/// The event file of one run, or of one part of a resumed run.
pub struct TensorBoard {
    writer: RecordWriter<BufWriter<File>>,
    path: PathBuf,
}

/// The event file of what is told at a run's end. It appears whole or not at all, so that a run that is killed before
/// can tell all of it again.
pub struct EndFile {
    pub events: TensorBoard,
    folder: PathBuf,
    step: u64,
}

impl EndFile {
    /// Begins one for the end after `step` steps.
    pub fn begin(run_dir: &Path, step: u64) -> anyhow::Result<Self> {
        let folder = tensorboard_folder(run_dir)?;
        // TensorBoard does not take it for an event file.
        let path = folder.join(format!("{UNFINISHED}end"));
        let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self {
            events: TensorBoard::on(file, path)?,
            folder,
            step,
        })
    }

    /// Gives it its name, which is read after those that are there.
    pub fn finish(self) -> anyhow::Result<()> {
        let unfinished = &self.events.path;
        let end = format!("{END}{:08}", self.step);
        let path = self.folder.join(name_of(next_number(&self.folder)?) + &end);
        File::open(unfinished)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(unfinished, &path))
            .with_context(|| format!("writing {}", path.display()))
    }

    /// Removes those of an end that is told again.
    pub fn remove(run_dir: &Path, step: u64) -> anyhow::Result<()> {
        let folder = tensorboard_folder(run_dir)?;
        let end = format!("{END}{step:08}");
        for name in names(&folder)?.into_iter().filter(|name| name.ends_with(&end)) {
            let path = folder.join(name);
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        Ok(())
    }
}

impl TensorBoard {
    /// Starts an event file in `folder/tensorboard`.
    pub fn create(folder: &Path) -> anyhow::Result<Self> {
        let (file, path) = new_file(&tensorboard_folder(folder)?)?;
        Self::on(file, path)
    }

    fn on(file: File, path: PathBuf) -> anyhow::Result<Self> {
        let mut tensorboard = Self {
            writer: RecordWriter::new(BufWriter::new(file)),
            path,
        };
        let mut version = Event::new();
        version.set_file_version("brain.Event:2".into());
        tensorboard.write(0, version)?;
        Ok(tensorboard)
    }

    /// Tells TensorBoard that the run was taken up again after `done` steps: points of later steps are void.
    pub fn resumed(&mut self, done: u64) -> anyhow::Result<()> {
        let mut session = SessionLog::new();
        session.set_status(SessionLog_SessionStatus::START);
        let mut event = Event::new();
        event.set_session_log(session);
        // TensorBoard drops what is at this step or later, and the point at `done` is to stay.
        self.write(done + 1, event)
    }

    /// Adds a point to the curve of each number.
    pub fn scalars(&mut self, moment: Moment, numbers: &[(String, f64)]) -> anyhow::Result<()> {
        let values = numbers
            .iter()
            .map(|(name, number)| summaries::scalar(name, *number as f32));
        self.add(moment.step, values.collect())
    }

    /// Adds how `values` are distributed.
    pub fn histogram(&mut self, moment: Moment, name: &str, values: &Tensor) -> anyhow::Result<()> {
        // TensorBoard mistakes a histogram for a scalar where the two have the same name.
        match summaries::histogram(&format!("distribution/{name}"), values) {
            Some(histogram) => self.add(moment.step, vec![histogram]),
            // There is nothing finite to show; the scalars say so.
            None => Ok(()),
        }
    }

    /// Adds a picture.
    pub fn picture(&mut self, moment: Moment, name: &str, picture: &Picture) -> anyhow::Result<()> {
        self.add(moment.step, vec![summaries::picture(name, picture)?])
    }

    /// Adds a text in Markdown.
    pub fn text(&mut self, moment: Moment, name: &str, markdown: &str) -> anyhow::Result<()> {
        self.add(moment.step, vec![summaries::text(name, markdown)])
    }

    /// Says with which values the run was started, so that runs compare in the HParams tab.
    pub fn hyper_parameters<'a>(
        &mut self,
        values: impl Iterator<Item = (&'a str, &'a Value)>,
    ) -> anyhow::Result<()> {
        let started = summaries::session_start(values, seconds())?;
        self.add(0, vec![started])
    }

    /// Says how the run ended.
    pub fn ended(&mut self, moment: Moment, finished: bool) -> anyhow::Result<()> {
        let ended = summaries::session_end(finished, seconds())?;
        self.add(moment.step, vec![ended])
    }

    fn add(&mut self, step: u64, values: Vec<Summary_Value>) -> anyhow::Result<()> {
        let mut summary = Summary::new();
        summary.set_value(values.into());
        let mut event = Event::new();
        event.set_summary(summary);
        self.write(step, event)
    }

    fn write(&mut self, step: u64, mut event: Event) -> anyhow::Result<()> {
        event.set_step(step as i64);
        event.set_wall_time(seconds());
        let bytes = event.write_to_bytes()?;
        // Flushed at once, so that a killed process loses nothing that came before a checkpoint.
        self.writer
            .write(&bytes)
            .and_then(|()| self.writer.flush())
            .with_context(|| format!("writing {}", self.path.display()))
    }
}

/// The folder of a run's event files, which is made if it is not there.
fn tensorboard_folder(run_dir: &Path) -> anyhow::Result<PathBuf> {
    let folder = run_dir.join("tensorboard");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Ok(folder)
}

/// The names of all files in a folder.
fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    Ok(names.collect())
}

fn name_of(number: u64) -> String {
    format!("{PREFIX}{number:010}.runner")
}

/// A number for a file that TensorBoard reads after those that are there: it reads them in the order of their names.
fn next_number(folder: &Path) -> anyhow::Result<u64> {
    let number = |name: &str| name.strip_prefix(PREFIX)?.split('.').next()?.parse::<u64>().ok();
    let taken = names(folder)?.iter().filter_map(|name| number(name)).max();
    Ok(taken.map_or(0, |taken| taken + 1).max(seconds() as u64))
}

fn new_file(folder: &Path) -> anyhow::Result<(File, PathBuf)> {
    let mut number = next_number(folder)?;
    loop {
        let path = folder.join(name_of(number));
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            file => {
                let file = file.with_context(|| format!("creating {}", path.display()))?;
                return Ok((file, path));
            }
        }
    }
}

fn seconds() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
