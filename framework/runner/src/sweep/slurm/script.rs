//! The text of an array's batch script, which people may read, change and submit again by hand.

use std::fmt::Write;

use super::array::Array;
use super::quoting::{for_directive, for_shell, without_patterns};

/// What is the same in all scripts of a sweep. Paths are absolute.
#[derive(Clone, Debug)]
pub struct Surroundings<'a> {
    /// Name of the sweep.
    pub name: &'a str,
    /// Its folder.
    pub folder: &'a str,
    /// Where relative paths in recipes start.
    pub directory: &'a str,
    pub program: &'a str,
    /// How many tasks of an array run at a time; `None` leaves it to Slurm.
    pub jobs: Option<u32>,
}

/// The script of an array, which runs the members that are listed in `array-NUMBER.txt`.
pub fn script(array: &Array, surroundings: &Surroundings) -> String {
    let Surroundings {
        name,
        folder,
        program,
        ..
    } = surroundings;
    let number = array.number;
    let mut text = format!(
        "#!/bin/sh\n# Sweep {}: task i runs the member on line i + 1 of array-{number}.txt.\n",
        name.replace(['\n', '\r'], " ")
    );
    for option in options(array, surroundings) {
        let _ = writeln!(text, "#SBATCH {option}");
    }
    text += "\nset -e\n";
    for line in &array.section.setup {
        let _ = writeln!(text, "{line}");
    }
    let threads = match array.section.cpus {
        Some(cpus) => cpus.to_string(),
        None => "\"$SLURM_CPUS_ON_NODE\"".to_owned(),
    };
    let _ = write!(
        text,
        "\n\
         export OMP_NUM_THREADS={threads} RAYON_NUM_THREADS={threads}\n\
         sweep={}\n\
         member=$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" \"$sweep/slurm/array-{number}.txt\")\n\
         # In place of this shell, so that it gets Slurm's signals.\n\
         exec {} member --requeue \"$sweep/$member\" >>\"$sweep/$member/output.txt\" 2>&1\n",
        for_shell(folder),
        for_shell(program),
    );
    text
}

fn options(array: &Array, surroundings: &Surroundings) -> Vec<String> {
    let Surroundings {
        name,
        folder,
        directory,
        jobs,
        ..
    } = surroundings;
    let section = array.section;
    let at_a_time = jobs.map_or_else(String::new, |jobs| format!("%{jobs}"));
    let output = format!(
        "{}/slurm/array-{}-task-%a.txt",
        without_patterns(folder),
        array.number
    );
    let mut options = vec![
        format!("--job-name={}", for_directive(name)),
        format!("--array=0-{}{at_a_time}", array.members.len() - 1),
        "--nodes=1 --ntasks=1".to_owned(),
        format!("--chdir={}", for_directive(directory)),
        // What Slurm itself has to say; a task that is queued again must not wipe it.
        format!("--output={}", for_directive(&output)),
        "--open-mode=append".to_owned(),
        "--requeue".to_owned(),
        // NCCL has a use for SIGUSR1.
        format!("--signal=B:USR2@{}", section.checkpoint_before),
    ];
    let mut add = |option: &str, value: Option<String>| {
        options.extend(value.map(|value| format!("{option}={}", for_directive(&value))));
    };
    add("--partition", section.partition.clone());
    add("--account", section.account.clone());
    add("--time", section.time.clone());
    // Slurm's units are powers of two as well, but it takes whole numbers only.
    let mebibytes = |gib: f64| format!("{}M", (gib * 1024.0).ceil());
    add("--mem", section.memory.map(mebibytes));
    add("--cpus-per-task", section.cpus.map(|cpus| cpus.to_string()));
    add("--gpus", section.gpus.map(|gpus| gpus.to_string()));
    options.extend(section.directives.iter().cloned());
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::SlurmSection;

    #[test]
    fn a_script_says_all_that_slurm_has_to_know() {
        let section = SlurmSection {
            partition: Some("gpu".into()),
            account: Some("my lab".into()),
            time: Some("2:00:00".into()),
            memory: Some(1.5),
            cpus: Some(4),
            gpus: Some(1),
            checkpoint_before: 60,
            setup: vec!["module load cuda".into()],
            directives: vec!["--exclude=node7".into()],
        };
        let array = Array {
            number: 3,
            section: &section,
            members: vec!["a", "b"],
        };
        let surroundings = Surroundings {
            name: "figure1",
            folder: "/data/50% off/figure1",
            directory: "/home/me",
            program: "/opt/it's/runner",
            jobs: Some(8),
        };
        let expected = "\
#!/bin/sh
# Sweep figure1: task i runs the member on line i + 1 of array-3.txt.
#SBATCH --job-name=figure1
#SBATCH --array=0-1%8
#SBATCH --nodes=1 --ntasks=1
#SBATCH --chdir=/home/me
#SBATCH --output=\"/data/50%% off/figure1/slurm/array-3-task-%a.txt\"
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR2@60
#SBATCH --partition=gpu
#SBATCH --account=\"my lab\"
#SBATCH --time=2:00:00
#SBATCH --mem=1536M
#SBATCH --cpus-per-task=4
#SBATCH --gpus=1
#SBATCH --exclude=node7

set -e
module load cuda

export OMP_NUM_THREADS=4 RAYON_NUM_THREADS=4
sweep='/data/50% off/figure1'
member=$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" \"$sweep/slurm/array-3.txt\")
# In place of this shell, so that it gets Slurm's signals.
exec '/opt/it'\\''s/runner' member --requeue \"$sweep/$member\" >>\"$sweep/$member/output.txt\" 2>&1
";
        assert_eq!(script(&array, &surroundings), expected);
    }

    #[test]
    fn what_a_recipe_leaves_open_is_left_to_slurm() {
        let section = SlurmSection::default();
        let array = Array {
            number: 1,
            section: &section,
            members: vec!["a"],
        };
        let surroundings = Surroundings {
            name: "s",
            folder: "/s",
            directory: "/",
            program: "/runner",
            jobs: None,
        };
        let text = script(&array, &surroundings);
        assert!(text.contains("#SBATCH --array=0-0\n"), "{text}");
        assert!(text.contains("OMP_NUM_THREADS=\"$SLURM_CPUS_ON_NODE\""), "{text}");
        for option in [
            "--partition",
            "--account",
            "--time",
            "--mem",
            "--cpus-per-task",
            "--gpus",
        ] {
            assert!(!text.contains(option), "{text}");
        }
    }
}
