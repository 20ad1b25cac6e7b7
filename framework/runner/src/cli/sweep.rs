//! `runner sweep`: runs variations of recipes, and shows how they are.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::available_parallelism;

use anyhow::Context;
use ebipla_core::system::device::gpus;
use ebipla_core::system::files::write_bytes;
use serde_json::json;

use super::arguments::{Launcher, SweepArguments, SweepCommand, SweepStatusArguments};
use super::{DIVERGED, FAILED, Misuse, Program, print, submit};
use crate::Recipe;
use crate::recipe::Override;
use crate::run::{State, lock_folder};
use crate::sweep::{
    Axes, Axis, Local, Manifest, ManifestMember, Part, Plan, Request, Seeds, Status, Submitted, SweepError,
    SweepFile, duration, estimate, split_values, status_table,
};
use crate::system::interrupt::INTERRUPTED;

pub fn sweep(program: &Program, arguments: &SweepArguments) -> anyhow::Result<ExitCode> {
    if let Some(SweepCommand::Status(arguments)) = &arguments.command {
        return status(arguments);
    }
    let request = request(program, arguments)?;
    let plan = Plan::compose(&request, &program.registry)?;
    let folder = arguments.out.join(&plan.name);
    // Asked for late: looking for GPUs loads CUDA, which submitting needs not.
    let local = || how(arguments.jobs.or(request.jobs), arguments.fail_fast, &plan);
    if arguments.dry_run {
        return dry_run(program, arguments, &plan, &local());
    }
    let slurm = match arguments.launcher {
        Launcher::Local => None,
        Launcher::Slurm => Some(submit::find_slurm(arguments)?),
    };
    let (manifest, _lock) = open(arguments, &plan, &folder)?;
    let members = members_to_run(arguments, &plan, &manifest, &folder)?;
    if let Some(slurm) = slurm {
        return submit::submit(&slurm, &plan, &members, &folder);
    }
    let local = local();
    tracing::info!(
        "sweep {}: {} of {} members to run, {} at a time with {} threads each, in {}",
        plan.name,
        members.len(),
        manifest.members.len(),
        local.jobs,
        local.threads,
        folder.display()
    );
    let ended = local.run(&members, &program.interrupt)?;
    let statuses = statuses(&manifest, &folder, ask_slurm(&folder).as_ref());
    print(&format!("\n{}", status_table(&manifest, &statuses)))?;
    print(&format!(
        "\nresults: {}\n  runner report {}\n",
        folder.display(),
        folder.display()
    ))?;
    let some = |states: &[State]| ended.states.iter().any(|state| states.contains(state));
    Ok(if ended.interrupted {
        ExitCode::from(INTERRUPTED)
    } else if some(&[State::Failed, State::Killed]) {
        ExitCode::from(FAILED)
    } else if some(&[State::Diverged]) {
        ExitCode::from(DIVERGED)
    } else if some(&[State::Interrupted]) {
        ExitCode::from(INTERRUPTED)
    } else {
        ExitCode::SUCCESS
    })
}

/// What the command line, or the file that it names, asks for.
fn request(program: &Program, arguments: &SweepArguments) -> Result<Request, SweepError> {
    let recipes = program.home.recipe_folders();
    let mut request = match (&arguments.file, &arguments.recipe) {
        (Some(file), _) => SweepFile::load(file, &program.home.sweep_folders(), &recipes)?,
        (None, recipe) => {
            let recipe = recipe.clone().unwrap_or_default();
            Request {
                name: name(&recipe, arguments),
                title: None,
                names: BTreeMap::new(),
                seeds: None,
                jobs: None,
                parts: vec![Part {
                    recipes: vec![recipe],
                    set: Vec::new(),
                    axes: Axes::default(),
                }],
                folders: recipes,
            }
        }
    };
    let axis = |option: &'static str| {
        move |(key, values): &(String, String)| Axis {
            key: key.clone(),
            texts: split_values(values),
            origin: crate::Origin::CommandLine { option },
        }
    };
    let set = |(key, text): &(String, String)| Override::by_option("--set", key, text);
    let device = arguments.device.as_ref();
    let device = device.map(|device| Override::by_option("--device", "run.device", device));
    for part in &mut request.parts {
        part.set
            .extend(arguments.set.iter().map(set).chain(device.clone()));
        part.axes.grid.extend(arguments.grid.iter().map(axis("--grid")));
        part.axes.zip.extend(arguments.zip.iter().map(axis("--zip")));
    }
    if let Some(count) = arguments.seeds {
        request.seeds = Some(Seeds::Count(count));
    }
    Ok(request)
}

/// A sweep of a recipe is called after it and what is varied, so that more values or seeds join the same folder.
fn name(recipe: &str, arguments: &SweepArguments) -> String {
    let recipe = Path::new(recipe).file_stem().unwrap_or_default();
    let keys = arguments.zip.iter().chain(&arguments.grid);
    let keys = keys.map(|(key, _)| key.trim_end_matches(".name").rsplit('.').next().unwrap_or(key));
    let keys: Vec<_> = keys.collect();
    let varied = match keys[..] {
        [] => "seed".to_owned(),
        _ => keys.join("-"),
    };
    format!("{}-by-{varied}", recipe.to_string_lossy())
}

/// So many at a time, and what is there for each.
fn how(jobs: Option<u32>, fail_fast: bool, plan: &Plan) -> Local {
    let cores = available_parallelism().map_or(1, usize::from);
    // A recipe that names one GPU of several knows which one it wants.
    let takes_any = |recipe: &Recipe| matches!(&recipe.run.device[..], "auto" | "cuda");
    let gpus = match plan.members.iter().all(|member| takes_any(&member.recipe)) {
        true => gpus(),
        false => Vec::new(),
    };
    let places = if gpus.is_empty() { cores } else { gpus.len() };
    let jobs = jobs.map_or(places, |jobs| jobs as usize);
    let jobs = jobs.min(plan.members.len()).max(1);
    Local {
        jobs,
        threads: (cores / jobs).max(1),
        gpus,
        fail_fast,
    }
}

/// Writes the manifest and each member's recipe; a sweep that is there must be meant to go on.
///
/// Nobody else may change it or start its members as long as the file is open.
fn open(arguments: &SweepArguments, plan: &Plan, folder: &Path) -> anyhow::Result<(Manifest, File)> {
    let is_there = Manifest::is_in(folder);
    let goes_on = arguments.resume || arguments.only_failed || (arguments.resume_or_start && is_there);
    match (is_there, goes_on) {
        (true, true) | (false, false) => {}
        (true, false) => {
            let message = format!(
                "{} is there already: --resume goes on with it and adds what is new, --only-failed repeats failures, \
                 --out DIR makes another",
                folder.display()
            );
            return Err(SweepError(message).into());
        }
        (false, true) => {
            let message = format!(
                "there is no sweep in {} to go on with; --resume-or-start starts one",
                folder.display()
            );
            return Err(SweepError(message).into());
        }
    }
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let Some(lock) = lock_folder(folder)? else {
        let message = format!("another process runs the sweep in {}", folder.display());
        return Err(Misuse(message).into());
    };
    let mut manifest = plan.manifest();
    if goes_on {
        let earlier = Manifest::read(folder)?;
        if arguments.only_failed {
            manifest = earlier;
        } else {
            manifest.keep(earlier);
        }
    }
    for member in &plan.members {
        let path = folder.join(member.name()).join("recipe.yaml");
        if !path.exists() {
            write_bytes(&path, member.recipe.to_yaml())?;
        }
    }
    manifest.write(folder)?;
    Ok((manifest, lock))
}

/// Folders and labels of the planned members that are to be run now.
fn members_to_run(
    arguments: &SweepArguments,
    plan: &Plan,
    manifest: &Manifest,
    folder: &Path,
) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let planned: Vec<_> = plan.members.iter().map(|member| member.name()).collect();
    let submitted = match arguments.launcher {
        Launcher::Local => ask_slurm(folder),
        // Not knowing which are queued, it would submit them twice.
        Launcher::Slurm => Submitted::ask(folder)?,
    };
    let statuses = statuses(manifest, folder, submitted.as_ref());
    let members = manifest.members.iter().zip(statuses);
    let planned = members.filter(|(member, _)| planned.contains(&member.name));
    let (taken, free): (Vec<_>, Vec<_>) = planned.partition(|(_, status)| status.is_taken());
    match &taken[..] {
        [] => {}
        [(member, _)] => tracing::warn!(
            "{} is running or queued; it is left alone",
            manifest.label(member)
        ),
        _ => tracing::warn!(
            "{} members are running or queued; they are left alone",
            taken.len()
        ),
    }
    let wanted = |state: State| match arguments.only_failed {
        true => state.is_failure(),
        false => state.is_unfinished(),
    };
    let to_run = free.into_iter().filter(|(_, status)| wanted(status.state));
    let to_run = to_run.map(|(member, _)| (folder.join(&member.name), manifest.label(member)));
    Ok(to_run.collect())
}

/// How all members are by their files, and by what Slurm says of those that were submitted to it.
fn statuses(manifest: &Manifest, folder: &Path, submitted: Option<&Submitted>) -> Vec<Status> {
    let of = |member: &ManifestMember| {
        let status = Status::of(&folder.join(&member.name));
        match submitted.and_then(|submitted| submitted.task(&member.name)) {
            Some(task) => status.with_slurm(task),
            None => status,
        }
    };
    manifest.members.iter().map(of).collect()
}

/// What Slurm says, where there is no harm in not knowing.
fn ask_slurm(folder: &Path) -> Option<Submitted> {
    Submitted::ask(folder).unwrap_or_else(|error| {
        tracing::warn!("by the files alone, since Slurm does not answer: {error:#}");
        None
    })
}

fn status(arguments: &SweepStatusArguments) -> anyhow::Result<ExitCode> {
    let manifest = Manifest::read(&arguments.dir)?;
    let statuses = statuses(&manifest, &arguments.dir, ask_slurm(&arguments.dir).as_ref());
    if arguments.json {
        let members = manifest.members.iter().zip(&statuses);
        let members: Vec<_> = members
            .map(|(member, status)| json!({ "member": member, "status": status }))
            .collect();
        print(&format!(
            "{:#}\n",
            json!({ "name": manifest.name, "members": members })
        ))?;
    } else {
        print(&status_table(&manifest, &statuses))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the plan; members that differ in their seed alone cost the same and are measured once.
fn dry_run(
    program: &Program,
    arguments: &SweepArguments,
    plan: &Plan,
    local: &Local,
) -> anyhow::Result<ExitCode> {
    let manifest = plan.manifest();
    let place = arguments.out.ancestors().find(|folder| folder.is_dir());
    let place = place.unwrap_or(Path::new("."));
    tch::set_num_threads(local.threads as i32);
    let mut known = BTreeMap::new();
    let mut total = 0.0;
    let mut wrong = 0;
    for (planned, member) in plan.members.iter().zip(&manifest.members) {
        let found = known
            .entry(planned.recipe.hash())
            .or_insert_with(|| estimate(planned.recipe.clone(), &program.registry, place));
        let cost = match found {
            Ok(estimate) => {
                total += estimate.seconds();
                format!(
                    "{} steps of {:.1} ms: {}",
                    estimate.steps,
                    1e3 * estimate.seconds_per_step,
                    duration(estimate.seconds())
                )
            }
            Err(error) => {
                wrong += 1;
                format!("cannot be built: {error:#}")
            }
        };
        print(&format!(
            "{}\n    {}\n    {cost}\n",
            manifest.label(member),
            member.name
        ))?;
    }
    let jobs = local.jobs as f64;
    print(&format!(
        "\n{} members, {} of training in all, {} with {} at a time; evaluation and records come on top\n",
        plan.members.len(),
        duration(total),
        duration(total / jobs),
        local.jobs
    ))?;
    if wrong > 0 {
        let message = format!(
            "{wrong} of {} members cannot be built, see above",
            plan.members.len()
        );
        return Err(SweepError(message).into());
    }
    Ok(ExitCode::SUCCESS)
}
