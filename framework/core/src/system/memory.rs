//! Says how much memory the program takes, and how much it can still have.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use indicatif::BinaryBytes;

/// Memory that is resident now, in GiB; `None` where the system does not tell.
pub fn resident_gib() -> Option<f64> {
    gib(kib_of("/proc/self/status", "VmRSS:")?)
}

/// The most that was ever resident, in GiB.
pub fn peak_gib() -> Option<f64> {
    gib(kib_of("/proc/self/status", "VmHWM:")?)
}

fn gib(kib: u64) -> Option<f64> {
    Some(kib as f64 / f64::from(1 << 20))
}

/// Refuses what needs more main memory than is available, before the system kills the program for it. `what` is the
/// subject of the message, e.g. "1000000 samples of sliced_w2".
pub fn require_memory(what: &str, bytes: u128) -> anyhow::Result<()> {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let Some(available) = available() else {
        return Ok(());
    };
    ensure!(
        bytes <= available,
        "{what}: takes {} of memory, but {} are available",
        BinaryBytes(bytes),
        BinaryBytes(available)
    );
    Ok(())
}

/// Bytes that the program can still take: what the system has, or what its control group leaves.
fn available() -> Option<u64> {
    let system = kib_of("/proc/meminfo", "MemAvailable:")? * 1024;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let left = groups
        .lines()
        .flat_map(folders_of)
        .filter_map(|folder| left_in(&folder));
    Some(left.fold(system, u64::min))
}

/// The folders of a line of `/proc/self/cgroup` that may limit memory: the group's own, and those around it.
fn folders_of(line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
        return Vec::new();
    };
    let root = match controllers {
        "" => "/sys/fs/cgroup",
        _ if controllers.split(',').any(|name| name == "memory") => "/sys/fs/cgroup/memory",
        _ => return Vec::new(),
    };
    let all = Path::new(group.trim_start_matches('/')).ancestors();
    all.map(|group| Path::new(root).join(group)).collect()
}

/// What a control group leaves of its limit. Files that it has in memory give way.
fn left_in(folder: &Path) -> Option<u64> {
    let number =
        |name: &str| -> Option<u64> { fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok() };
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let statistics = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let files = ["inactive_file ", "active_file "].map(|name| {
        let value = statistics.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    });
    Some(limit.saturating_sub(used.saturating_sub(files.iter().sum())))
}

/// A value in a file whose lines are names and values in kB.
fn kib_of(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_taken_is_counted() {
        let taken = vec![1u8; 1 << 28];
        let found = resident_gib().unwrap_or_default();
        assert!((0.25..1e4).contains(&found), "{found} {}", taken[1 << 20]);
        drop(taken);
        // The two are counted apart, and each may be some pages behind.
        let peak = peak_gib().unwrap_or_default();
        assert!((0.25..1e4).contains(&peak), "{peak}");
    }

    #[test]
    fn more_than_there_is_is_refused_with_both_numbers() {
        require_memory("nothing", 0).unwrap();
        let refused = require_memory("a network", 1 << 50).unwrap_err().to_string();
        assert!(
            refused.starts_with("a network: takes 1.00 PiB of memory, but ")
                && refused.ends_with("are available"),
            "{refused}"
        );
    }

    #[test]
    fn a_control_group_leaves_its_limit_without_what_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("memory.max", "max\n");
        write("memory.current", "300\n");
        assert_eq!(left_in(folder.path()), None);
        write("memory.max", "1000\n");
        assert_eq!(left_in(folder.path()), Some(700));
        write("memory.stat", "anon 5\ninactive_file 150\nactive_file 20\n");
        assert_eq!(left_in(folder.path()), Some(870));
    }

    #[test]
    fn groups_are_found_with_those_around_them() {
        let folders = |line| {
            folders_of(line)
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            folders("0::/a/b"),
            ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"]
        );
        assert_eq!(
            folders("4:cpu,memory:/job"),
            ["/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory/"]
        );
        assert!(folders("3:cpu:/job").is_empty() && folders("").is_empty());
    }
}
