//! Says how much memory the program takes.

/// Memory that is resident now, in GiB; `None` where the system does not tell.
pub fn resident_gib() -> Option<f64> {
    status("VmRSS:")
}

/// The most that was ever resident, in GiB.
pub fn peak_gib() -> Option<f64> {
    status("VmHWM:")
}

fn status(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_taken_is_counted() {
        let taken = vec![1u8; 1 << 28];
        let found = super::resident_gib().unwrap_or_default();
        assert!((0.25..1e4).contains(&found), "{found} {}", taken[1 << 20]);
        drop(taken);
        // The two are counted apart, and each may be some pages behind.
        let peak = super::peak_gib().unwrap_or_default();
        assert!((0.25..1e4).contains(&peak), "{peak}");
    }
}
