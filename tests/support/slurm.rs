//! A real Slurm for the tests: Debian's daemons in a scratch folder, separate from any other on the machine.

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::skip::skip;

/// Maximum number of tasks in an array here.
pub const MAX_ARRAY_SIZE: usize = 3;

/// Two nodes, so that preemption on the second does not affect the first. They declare more CPUs than the machine may
/// have: most tasks wait most of the time. A credential has the shortest lifetime that Slurm allows, since a task that
/// is queued again must wait for it to expire.
const CONFIGURATION: &str = "\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=@CONTROLLER@
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=@DIR@/munge/socket,cred_expire=5
StateSaveLocation=@DIR@/state
SlurmdSpoolDir=@DIR@/spool-%n
SlurmctldPidFile=@DIR@/slurmctld.pid
SlurmdPidFile=@DIR@/slurmd-%n.pid
SlurmctldLogFile=@DIR@/slurmctld.log
SlurmdLogFile=@DIR@/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=0
ReturnToService=2
JobRequeue=1
KillWait=20
MaxArraySize=@MAX_ARRAY_SIZE@
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=one NodeHostname=localhost NodeAddr=127.0.0.1 Port=@ONE@ CPUs=8 RealMemory=1000 State=UNKNOWN
NodeName=two NodeHostname=localhost NodeAddr=127.0.0.1 Port=@TWO@ CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=one Default=YES MaxTime=INFINITE State=UP PreemptMode=OFF
PartitionName=low Nodes=two MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=high Nodes=two MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
";

/// Runs the daemons while its input is open, and then cleans up: the input is also closed when a test is killed.
const GUARDIAN: &str = "\
munged --foreground --force --key-file=munge/key --socket=\"$PWD/munge/socket\" --pid-file=munge/pid \\
    --seed-file=munge/seed >munge/log 2>&1 &
munged=$!
while [ ! -S munge/socket ]; do
    kill -0 $munged || exit 1
    sleep 0.1
done
slurmctld -D >slurmctld.out 2>&1 &
daemons=$!
for node in one two; do
    slurmd -D -N $node >slurmd-$node.out 2>&1 &
    daemons=\"$daemons $!\"
done
read _
scancel --quiet --full --signal=KILL --state=RUNNING --user=root
scancel --quiet --user=root
for i in 1 2 3 4 5 6 7 8 9 10; do
    [ -z \"$(squeue --noheader)\" ] && break
    sleep 0.5
done
kill $daemons
sleep 0.5
kill -9 $daemons 2>/dev/null
kill $munged
wait
";

/// The programs needed to run Slurm.
const PROGRAMS: [&str; 6] = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol"];

pub struct Slurm {
    folder: TempDir,
    guardian: Child,
}

/// The Slurm that concurrent tests of this program share.
static SHARED: Mutex<Weak<Slurm>> = Mutex::new(Weak::new());

impl Slurm {
    /// The tests' Slurm, started if necessary; reports a skip and returns `None` if it cannot run.
    pub fn get() -> Option<Arc<Self>> {
        let missing: Vec<_> = PROGRAMS.into_iter().filter(|name| find(name).is_none()).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            skip(&format!(
                "{missing} is missing; install the packages slurm-wlm and munge"
            ));
            return None;
        }
        if !Command::new("id")
            .arg("-u")
            .output()
            .is_ok_and(|output| output.stdout == b"0\n")
        {
            skip("only root can start a private Slurm");
            return None;
        }
        // A failed test does not prevent others from running.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let slurm = shared.upgrade().unwrap_or_else(|| Arc::new(Self::start()));
        *shared = Arc::downgrade(&slurm);
        Some(slurm)
    }

    fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("slurm-").tempdir().unwrap();
        let path = folder.path();
        // Clients of any user look for the socket there.
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["munge", "state", "spool-one", "spool-two"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        let key = path.join("munge/key");
        fs::write(&key, [7; 128]).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        // Held until all three are known, so that they differ.
        let ports = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [controller, one, two] = ports.map(|port| port.local_addr().unwrap().port().to_string());
        let configuration = CONFIGURATION
            .replace("@DIR@", path.to_str().unwrap())
            .replace("@MAX_ARRAY_SIZE@", &MAX_ARRAY_SIZE.to_string())
            .replace("@CONTROLLER@", &controller)
            .replace("@ONE@", &one)
            .replace("@TWO@", &two);
        fs::write(path.join("slurm.conf"), configuration).unwrap();
        let guardian = Command::new("sh")
            .args(["-c", GUARDIAN])
            .current_dir(path)
            .env("PATH", search_path())
            .env("SLURM_CONF", path.join("slurm.conf"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let slurm = Self { folder, guardian };
        let idle = slurm.eventually(Duration::from_secs(600), || {
            let states = slurm.ask("sinfo", &["--noheader", "--Node", "--format=%T"]);
            states.lines().count() >= 3 && states.lines().all(|state| state == "idle")
        });
        assert!(idle, "Slurm does not start:\n{}", slurm.logs());
        slurm
    }

    /// Sets a command up to use this Slurm.
    pub fn enter<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("SLURM_CONF", self.path("slurm.conf"))
            .env("PATH", search_path())
    }

    /// The output of one of Slurm's programs.
    pub fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = self
            .enter(Command::new(program).args(arguments))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The output of a program that must succeed.
    pub fn call(&self, program: &str, arguments: &[&str]) -> String {
        let output = self
            .enter(Command::new(program).args(arguments))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Slurm's state of a task such as 12_3; empty if Slurm no longer knows it.
    pub fn state(&self, task: &str) -> String {
        let states = self.ask(
            "squeue",
            &[
                "--noheader",
                "--array",
                "--states=all",
                "--format=%T",
                "--jobs",
                task,
            ],
        );
        states.trim().to_owned()
    }

    /// Waits until a condition holds, and returns whether it does.
    pub fn eventually(&self, patience: Duration, holds: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        loop {
            if holds() {
                return true;
            }
            if start.elapsed() > patience {
                return false;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Logs to print when something goes wrong.
    pub fn logs(&self) -> String {
        let mut text = self.ask("squeue", &["--array", "--states=all"]);
        for name in ["munge/log", "slurmctld.log", "slurmd-one.log", "slurmd-two.log"] {
            let log = fs::read_to_string(self.path(name)).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            text += &format!(
                "== {name}\n{}\n",
                lines[lines.len().saturating_sub(30)..].join("\n")
            );
        }
        text
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // The guardian reads to the end of its input, and then stops the daemons.
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
    }
}

/// The PATH of some users lacks the folders of daemons.
fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

fn find(program: &str) -> Option<PathBuf> {
    let path = search_path();
    std::env::split_paths(&path)
        .map(|folder: PathBuf| Path::new(&folder).join(program))
        .find(|path| path.is_file())
}
