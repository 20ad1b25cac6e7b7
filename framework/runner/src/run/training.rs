//! Runs the training loop: steps, records, interruptions, and what is written at the end.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use ebipla_core::system::files::write_bytes;
use ebipla_core::system::interrupt::Interrupted;
use ebipla_core::system::memory;
use ebipla_core::system::panics::caught;
use ebipla_core::{Scalars, Split};
use serde_json::{Map, Value};

use super::account::Accounting;
use super::checkpoint::{Checkpoints, identity};
use super::due::Due;
use super::findings::Findings;
use super::pictures::pictures;
use super::progress::Progress;
use super::provenance::{Provenance, data_have_changed};
use super::step_sizes;
use super::{Experiment, Log, RunFolder};
use crate::Home;
use crate::recipe::Bearing;
use crate::record::{self, DumpFacts, EVALUATE, EndFile, Kept, MetricsFile, Moment, TensorBoard};
use crate::system::interrupt::Interrupt;

/// How a run ended, if it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Finished,
    Interrupted,
}

/// Trains, or goes on with it, and writes everything below the run's folder.
pub fn train(
    mut experiment: Experiment,
    folder: &RunFolder,
    home: &Home,
    log: &Log,
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    let recipe = experiment.recipe.clone();
    ensure!(
        !data_have_changed(experiment.dataset.as_ref(), folder.path()),
        "the files of the data set have changed since {} was started (provenance.json, `data`): put back those that it \
         was trained on, or start again without --resume",
        folder.path().display()
    );
    let mut checkpoints = Checkpoints::of(&experiment, folder.path());
    let restored = checkpoints.restore(&mut experiment)?;
    folder.write("recipe.yaml", &recipe.to_yaml())?;
    let mut provenance = Provenance::at_start(home, &experiment);
    provenance.after_those_in(folder.path());
    folder.write("provenance.json", &provenance.to_json()?)?;

    let outcome = caught(|| {
        let mut run = Run::start(&mut experiment, folder.path(), checkpoints, restored, log)?;
        let outcome = run.until_done(interrupt);
        if outcome.is_err() {
            run.failed();
        }
        outcome
    });

    provenance.ended(match &outcome {
        Ok(Outcome::Finished) => "finished".to_owned(),
        Ok(Outcome::Interrupted) => "interrupted".to_owned(),
        Err(error) => format!("{error:#}"),
    });
    let noted = folder.write("provenance.json", &provenance.to_json()?);
    // Why the run failed matters more than that this could not be noted.
    outcome.and_then(|outcome| noted.map(|()| outcome))
}

/// Whether the work was done; an interruption is no error.
fn uninterrupted(work: anyhow::Result<()>) -> anyhow::Result<bool> {
    match work {
        Ok(()) => Ok(true),
        Err(error) if error.is::<Interrupted>() => Ok(false),
        Err(error) => Err(error),
    }
}

struct Run<'a> {
    experiment: &'a mut Experiment,
    folder: &'a Path,
    /// Which folder of that name it is.
    identity: Option<(u64, u64)>,
    checkpoints: Checkpoints,
    /// Steps completed so far.
    done: u64,
    /// What is still to be recorded after them.
    due: Vec<Due>,
    metrics: MetricsFile,
    tensorboard: TensorBoard,
    progress: Progress,
    account: Accounting,
}

impl<'a> Run<'a> {
    /// `restored` is how many steps the checkpoint had that the experiment was restored from, if there was one, and what
    /// was still to be recorded then.
    fn start(
        experiment: &'a mut Experiment,
        folder: &'a Path,
        checkpoints: Checkpoints,
        restored: Option<(u64, Vec<Due>)>,
        log: &Log,
    ) -> anyhow::Result<Self> {
        let total = experiment.total_steps();
        let (done, due) = restored.unzip();
        let epochs = total.div_ceil(experiment.steps_per_epoch());
        tracing::info!(
            "{} data points, {} latent dimensions, {} energy and {} generator parameters, {total} steps",
            experiment.dataset.len(Split::Train),
            experiment.model.generator.latent_dim(),
            experiment.model.energy.parameters().count(),
            experiment.model.generator.parameters().count(),
        );
        for (name, value) in experiment.algorithm.constants() {
            tracing::info!("{name}: {}", value as f32);
        }
        match experiment.model.energy.frozen() {
            Some(frozen) => tracing::info!(
                "prior chains: {}, {} threads",
                frozen.engine(),
                tch::get_num_threads()
            ),
            None => tracing::info!("prior chains: libtorch"),
        }
        // After the last step only the end is left, and all of it is told again.
        let only_end = done.filter(|done| *done >= total);
        if let Some(done) = only_end {
            EndFile::remove(folder, done)?;
        }
        let mut tensorboard = TensorBoard::create(folder)?;
        let start = Moment { step: 0, epoch: 0 };
        match done {
            Some(done) => {
                tracing::info!("resumed after step {done}");
                tensorboard.resumed(done)?;
            }
            None => {
                let recipe = &experiment.recipe;
                let values = recipe.origins().map(|(key, value, _)| (key, value));
                tensorboard.hyper_parameters(values.filter(|(key, _)| Bearing::of(key) != Bearing::Aside))?;
                tensorboard.text(start, "recipe", &format!("```yaml\n{}```", recipe.to_yaml()))?;
                let constants = experiment.algorithm.constants().into_iter();
                let constants: Vec<_> = constants
                    .map(|(name, value)| (format!("constant/{}", name.replace(' ', "_")), value))
                    .collect();
                tensorboard.scalars(start, &constants)?;
            }
        }
        let done = done.unwrap_or(0);
        let due = due.unwrap_or_default();
        let kept = Kept {
            step: done,
            evaluation: only_end.is_none() && !due.contains(&Due::Evaluation),
        };
        step_sizes::report(experiment, done)?;
        Ok(Self {
            metrics: MetricsFile::open(folder, kept)?,
            tensorboard,
            progress: Progress::start(&log.bars, done, total, epochs),
            account: Accounting::open(folder, done, total, epochs)?,
            experiment,
            identity: identity(folder),
            folder,
            checkpoints,
            done,
            due,
        })
    }

    fn until_done(&mut self, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
        let total = self.experiment.total_steps();
        let trained = self.steps(total, interrupt);
        self.progress.finish();
        let trained = uninterrupted(trained)? && self.done >= total;
        let start = Instant::now();
        self.checkpoints.save(self.experiment, self.done, &self.due)?;
        self.account.recorded(start.elapsed())?;
        let start = Instant::now();
        let ended = trained && uninterrupted(self.at_end(self.done))?;
        self.account.recorded(start.elapsed())?;
        if ended {
            return Ok(Outcome::Finished);
        }
        tracing::warn!(
            "interrupted after {} of {total} steps; --resume goes on",
            self.done
        );
        Ok(Outcome::Interrupted)
    }

    /// Takes steps until there are `total` of them, or a signal comes.
    fn steps(&mut self, total: u64, interrupt: &Interrupt) -> anyhow::Result<()> {
        // What an interruption left.
        self.write_due()?;
        while self.done < total && !interrupt.asked() {
            let start = Instant::now();
            let scalars = self.experiment.step(self.done)?;
            self.done += 1;
            let recording = self.after_step(self.done, self.done == total, &scalars)?;
            let moment = self.moment(self.done);
            let gradients = self.experiment.gradients_taken();
            self.account
                .stepped(moment, gradients, start.elapsed(), recording)?;
        }
        Ok(())
    }

    /// Notes that the run failed. Nothing more can go wrong with it: why it failed is what matters.
    fn failed(&mut self) {
        let _ = self.account.recorded(Duration::ZERO);
        let _ = self.tensorboard.ended(self.moment(self.done), false);
    }

    fn moment(&self, done: u64) -> Moment {
        Moment {
            step: done,
            epoch: done.saturating_sub(1) / self.experiment.steps_per_epoch(),
        }
    }

    /// Writes what is due, and returns how long that took.
    fn after_step(&mut self, done: u64, last: bool, scalars: &Scalars) -> anyhow::Result<Duration> {
        // What is written would make a folder of the same name that nobody can resume from. It may just have done so.
        ensure!(
            identity(self.folder) == self.identity,
            "{} has vanished",
            self.folder.display()
        );
        let moment = self.moment(done);
        let record = self.experiment.recipe.record.clone();
        self.progress.advance(moment);

        let to_file = last || record.metrics.due(done);
        let to_tensorboard = last || record.tensorboard.due(done);
        let to_screen = self.progress.due();
        let every = self.experiment.recipe.guard.every;
        let guarded = every > 0 && done.is_multiple_of(every);
        let mut checkpoint = !last && record.checkpoint.due(done);
        let wanted = to_file || to_tensorboard || to_screen || guarded || checkpoint;
        // A GPU has finished the step only when its numbers are there.
        let numbers = wanted.then(|| scalars.read());
        let start = Instant::now();
        if let Some(numbers) = numbers {
            if to_file {
                self.metrics.write(moment, &numbers)?;
            }
            if to_tensorboard {
                self.write_to_tensorboard(moment, &numbers, scalars)?;
            }
            if to_screen {
                self.progress.show(moment, &numbers);
            }
            self.experiment.guard(done, scalars, &numbers)?;
        }
        if !last {
            self.due = self.due_after(done);
            checkpoint |= self.write_due()?;
        }
        // Last, so that whoever resumes from it finds all else written.
        if checkpoint {
            self.checkpoints.save(self.experiment, done, &self.due)?;
        }
        Ok(start.elapsed())
    }

    fn due_after(&self, done: u64) -> Vec<Due> {
        let recipe = &self.experiment.recipe;
        let (record, evaluate) = (&recipe.record, recipe.evaluate.every);
        let steps_per_epoch = self.experiment.steps_per_epoch();
        let all = [
            (Due::Evaluation, evaluate > 0 && done.is_multiple_of(evaluate)),
            (Due::Particles, record.particles.due(done, steps_per_epoch)),
            (Due::Figures, record.figures.due(done)),
        ];
        all.into_iter()
            .filter_map(|(due, is)| is.then_some(due))
            .collect()
    }

    /// Writes the records that are due, and returns whether the model is the best so far. What an interruption leaves is
    /// still due.
    fn write_due(&mut self) -> anyhow::Result<bool> {
        let moment = self.moment(self.done);
        let mut is_best = false;
        while let Some(due) = self.due.first() {
            match due {
                Due::Evaluation => {
                    let found = self.evaluate(moment)?;
                    is_best = self.checkpoints.are_best(self.done, &found.to_numbers())?;
                }
                Due::Particles => self.dump_particles(moment)?,
                Due::Figures => self.draw(moment)?,
            }
            self.due.remove(0);
            self.checkpoints.set_due(self.done, &self.due)?;
        }
        Ok(is_best)
    }

    fn write_to_tensorboard(
        &mut self,
        moment: Moment,
        numbers: &[(String, f64)],
        scalars: &Scalars,
    ) -> anyhow::Result<()> {
        let mut numbers = numbers.to_vec();
        numbers.push(("speed/steps_per_second".into(), self.progress.rate(moment.step)));
        numbers.extend(memory::resident_gib().map(|gib| ("memory/resident_gib".into(), gib)));
        self.tensorboard.scalars(moment, &numbers)?;
        for (name, values) in scalars.distributions() {
            self.tensorboard.histogram(moment, name, values)?;
        }
        Ok(())
    }

    /// Records what is told at the end. A run that is killed here, after its last checkpoint, does all of it again when it
    /// is resumed.
    fn at_end(&mut self, done: u64) -> anyhow::Result<()> {
        let mut end = EndFile::begin(self.folder, done)?;
        std::mem::swap(&mut self.tensorboard, &mut end.events);
        let recorded = self.record_end(self.moment(done));
        std::mem::swap(&mut self.tensorboard, &mut end.events);
        recorded.and_then(|()| end.finish())
    }

    fn record_end(&mut self, moment: Moment) -> anyhow::Result<()> {
        let done = moment.step;
        // At the start the networks had learnt nothing.
        if done > 0 {
            step_sizes::report(self.experiment, done)?;
        }
        self.dump_particles(moment)?;
        self.draw(moment)?;
        let found = self.evaluate(moment)?;
        if self.checkpoints.are_best(done, &found.to_numbers())? {
            self.checkpoints.prune()?;
        }
        let found = found.to_json();
        if !found.is_empty() {
            let mut all = Map::new();
            all.insert("step".into(), done.into());
            all.extend(found);
            let path = self.folder.join("evaluation.json");
            write_bytes(&path, format!("{:#}\n", Value::Object(all)))?;
        }
        self.tensorboard.ended(moment, true)
    }

    fn evaluate(&mut self, moment: Moment) -> anyhow::Result<Findings> {
        let found = self.experiment.evaluate()?;
        let named: Vec<_> = found
            .numbers()
            .map(|(name, number)| (format!("{EVALUATE}{name}"), number))
            .collect();
        if !named.is_empty() {
            self.metrics.write(moment, &named)?;
            self.tensorboard.scalars(moment, &named)?;
            for (name, number) in found.numbers() {
                tracing::info!("{name}: {number:.5}");
            }
        }
        Ok(found)
    }

    fn dump_particles(&self, moment: Moment) -> anyhow::Result<()> {
        let Some(clouds) = self.experiment.algorithm.clouds() else {
            return Ok(());
        };
        let facts = DumpFacts {
            moment,
            recipe: &self.experiment.recipe,
        };
        let mut random = self.experiment.streams_for("particle_dump");
        let start = Instant::now();
        let path = record::dump_particles(self.folder, clouds, &facts, &mut random)?;
        tracing::debug!(
            "wrote {} in {:.3} s",
            path.display(),
            start.elapsed().as_secs_f64()
        );
        Ok(())
    }

    fn draw(&mut self, moment: Moment) -> anyhow::Result<()> {
        for (name, picture) in caught(|| pictures(self.experiment, moment.step))? {
            let file = format!("figures/step_{:08}_{name}.png", moment.step);
            picture.write_png(&self.folder.join(file))?;
            self.tensorboard.picture(moment, name, &picture)?;
        }
        Ok(())
    }
}
