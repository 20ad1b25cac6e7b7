//! Runs members on this machine: one process each, so many at a time.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};

use super::Status;
use super::table::{counts, duration, progress};
use crate::run::{Ending, State};
use crate::system::interrupt::{INTERRUPTED, Interrupt, end_only_by_itself};
use live::Live;

mod live;

/// How members are run.
#[derive(Clone, Debug)]
pub struct Local {
    /// How many at a time.
    pub jobs: usize,
    /// Threads of each, where its recipe does not say.
    pub threads: usize,
    /// One of these each, in turn; empty where there are none.
    pub gpus: Vec<String>,
    /// Stop starting others, and interrupt those that run, when one fails.
    pub fail_fast: bool,
}

/// How the members ended that were to be run; those that were not started any more are still waiting.
#[derive(Debug, Default)]
pub struct Ended {
    pub states: Vec<State>,
    pub interrupted: bool,
}

/// A member's process.
struct Running {
    folder: PathBuf,
    label: String,
    child: Child,
    slot: usize,
    start: Instant,
}

const POLL: Duration = Duration::from_millis(100);

impl Local {
    /// Runs members given by folder and label. Each is told of as soon as it ends.
    pub fn run(&self, members: &[(PathBuf, String)], interrupt: &Interrupt) -> anyhow::Result<Ended> {
        end_only_by_itself();
        let program = std::env::current_exe().context("finding this program")?;
        let mut waiting: VecDeque<_> = members.iter().cloned().collect();
        let mut running: Vec<Running> = Vec::new();
        let mut ended = Ended::default();
        let mut live = Live::new(members.len());
        let mut stopping = false;
        loop {
            while !stopping && running.len() < self.jobs {
                let Some((folder, label)) = waiting.pop_front() else {
                    break;
                };
                let slot = (0..self.jobs).find(|slot| running.iter().all(|other| other.slot != *slot));
                let member = self.start(&program, folder, label, slot.unwrap_or(0))?;
                tracing::info!("started      {}", member.label);
                running.push(member);
            }
            if running.is_empty() {
                break;
            }
            std::thread::sleep(POLL);
            let mut i = 0;
            while i < running.len() {
                let Some(status) = running[i].child.try_wait()? else {
                    i += 1;
                    continue;
                };
                let state = tell(&running.remove(i), status);
                ended.states.push(state);
                stopping |= self.fail_fast && state.is_failure();
                if stopping {
                    signal_all(&running, Signal::INT);
                }
            }
            if interrupt.asked() && !ended.interrupted {
                ended.interrupted = true;
                stopping = true;
                tracing::warn!("stopping: members write a checkpoint; a second signal ends them at once");
                signal_all(&running, Signal::INT);
            }
            live.show(&running, &ended.states, waiting.len());
        }
        let unstarted = waiting.len();
        ended
            .states
            .extend(std::iter::repeat_n(State::Waiting, unstarted));
        Ok(ended)
    }

    fn start(&self, program: &Path, folder: PathBuf, label: String, slot: usize) -> anyhow::Result<Running> {
        let path = folder.join("output.txt");
        let output = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        Ending::remove(&folder);
        let mut command = Command::new(program);
        command
            .args(["member", "--with-parent"])
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            // Ctrl-C reaches the whole group of a terminal; members hear of it from us alone, once.
            .process_group(0)
            // What libtorch and rayon go by where the recipe leaves it open.
            .env("OMP_NUM_THREADS", self.threads.to_string())
            .env("RAYON_NUM_THREADS", self.threads.to_string());
        if let Some(gpu) = self.gpus.get(slot % self.gpus.len().max(1)) {
            command.env("CUDA_VISIBLE_DEVICES", gpu);
        }
        let child = command
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Running {
            folder,
            label,
            child,
            slot,
            start: Instant::now(),
        })
    }
}

/// Says how a member ended, and why if it failed.
fn tell(member: &Running, exit: ExitStatus) -> State {
    let status = Status::of(&member.folder);
    let label = &member.label;
    let took = duration(member.start.elapsed().as_secs_f64());
    match status.state {
        State::Finished => tracing::info!("finished     {label}  in {took}  {}", progress(&status)),
        State::Interrupted => tracing::warn!("interrupted  {label}  {}", progress(&status)),
        State::Failed | State::Diverged => {
            let reason = status.reason.as_deref().unwrap_or_default();
            tracing::error!("{:<11}  {label}  after {took}: {reason}", status.state);
        }
        _ => {
            let by = match (exit.signal(), exit.code()) {
                (Some(9), _) => "by signal 9, as when memory runs out".to_owned(),
                (Some(signal), _) => format!("by signal {signal}"),
                (None, Some(code)) if code == i32::from(INTERRUPTED) => "by a second signal".to_owned(),
                (None, code) => format!("with exit code {}", code.unwrap_or(-1)),
            };
            let output = member.folder.join("output.txt");
            tracing::error!(
                "killed       {label}  after {took}, {by}; see {}",
                output.display()
            );
            return State::Killed;
        }
    }
    status.state
}

/// A process that is gone already needs no signal.
fn signal_all(running: &[Running], signal: Signal) {
    for member in running {
        if let Some(pid) = Pid::from_raw(member.child.id() as i32) {
            let _ = kill_process(pid, signal);
        }
    }
}
