//! Unpacks one folder of a tar.gz archive; it appears whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Component, Path};

use anyhow::{Context, bail, ensure};
use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

/// Unpacks the folder `kept` of `archive` to `target`.
pub fn unpack(archive: &Path, kept: &str, target: &Path) -> anyhow::Result<()> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = target.with_file_name(name);
    if part.exists() {
        fs::remove_dir_all(&part)?;
    }
    fs::create_dir_all(&part)?;
    let unpacked = unpack_to(archive, kept, &part).and_then(|()| Ok(fs::rename(&part, target)?));
    if unpacked.is_err() {
        // Gives the space back. The first error is the one to report.
        let _ = fs::remove_dir_all(&part);
    }
    unpacked
}

fn unpack_to(archive: &Path, kept: &str, part: &Path) -> anyhow::Result<()> {
    let mut archive = Archive::new(GzDecoder::new(BufReader::new(File::open(archive)?)));
    let mut files = 0;
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let plain = path
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        ensure!(
            plain,
            "the archive is not to be trusted: `{}` leads out of the folder",
            path.display()
        );
        let path: std::path::PathBuf = path
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect();
        let Ok(inside) = path.strip_prefix(kept) else {
            continue;
        };
        let to = part.join(inside);
        match entry.header().entry_type() {
            EntryType::Directory => fs::create_dir_all(&to)?,
            EntryType::Regular => {
                to.parent().map_or(Ok(()), fs::create_dir_all)?;
                let mut file = File::create(&to).with_context(|| format!("writing {}", to.display()))?;
                io::copy(&mut entry, &mut file).with_context(|| format!("writing {}", to.display()))?;
                file.sync_all()?;
                files += 1;
            }
            other => bail!(
                "the archive is not to be trusted: `{}` is neither file nor folder ({other:?})",
                path.display()
            ),
        }
    }
    ensure!(files > 0, "the archive has no files in a folder `{kept}`");
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// An archive with these files; the tar crate would refuse to write some of their names.
    fn archive(folder: &Path, files: &[(&str, EntryType)]) -> std::path::PathBuf {
        let path = folder.join("archive.tar.gz");
        let mut tar = tar::Builder::new(GzEncoder::new(File::create(&path).unwrap(), Compression::fast()));
        for (name, kind) in files {
            let mut header = tar::Header::new_old();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(if *kind == EntryType::Regular { 3 } else { 0 });
            header.set_cksum();
            let content: &[u8] = if *kind == EntryType::Regular { b"abc" } else { b"" };
            tar.append(&header, content).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap().flush().unwrap();
        path
    }

    #[test]
    fn only_the_folder_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("set/", EntryType::Directory),
            ("./set/one.bin", EntryType::Regular),
            ("set/deep/two.bin", EntryType::Regular),
            ("other/three.bin", EntryType::Regular),
        ];
        let target = folder.path().join("target");
        unpack(&archive(folder.path(), &files), "set", &target).unwrap();
        assert_eq!(fs::read(target.join("one.bin")).unwrap(), b"abc");
        assert_eq!(fs::read(target.join("deep/two.bin")).unwrap(), b"abc");
        assert!(!folder.path().join("other").exists() && !target.join("three.bin").exists());
    }

    #[test]
    fn what_leads_out_of_the_folder_is_refused_and_nothing_stays() {
        for (bad, kind) in [
            ("set/../../evil", EntryType::Regular),
            ("/tmp/evil", EntryType::Regular),
            ("set/link", EntryType::Symlink),
            ("set/link", EntryType::Link),
        ] {
            let outer = tempfile::tempdir().unwrap();
            let folder = outer.path().join("inner");
            fs::create_dir(&folder).unwrap();
            let archive = archive(&folder, &[("set/one.bin", EntryType::Regular), (bad, kind)]);
            let error = unpack(&archive, "set", &folder.join("target"))
                .unwrap_err()
                .to_string();
            assert!(error.contains(bad) && error.contains("trusted"), "{error}");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "only the archive");
            assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_damaged_archive_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = archive(folder.path(), &[("set/one.bin", EntryType::Regular)]);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(unpack(&path, "set", &folder.path().join("target")).is_err());
        assert!(!folder.path().join("target").exists());
    }
}
