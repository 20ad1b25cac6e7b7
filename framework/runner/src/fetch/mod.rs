//! Gets the files of a data set from their official place or a mirror.
//!
//! Whoever has a data set says what `runner fetch` has to know of it:
//! `inventory::submit! { Fetch { name: "mnist", how: How::Files { base, files } } }`.

mod checksum;
mod download;
#[cfg(test)]
mod server;
mod unpack;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use ebipla_core::fetch::{Fetch, How, Remote};
use ebipla_core::system::disk;
use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};

/// Everything that can be fetched, by name.
pub fn entries() -> Vec<&'static Fetch> {
    let mut all: Vec<_> = inventory::iter::<Fetch>().collect();
    all.sort_by_key(|entry| entry.name);
    all
}

/// Where files come from.
enum Place {
    /// An address without its last slash.
    Url(String),
    Folder(PathBuf),
}

impl Place {
    fn of(from: &str) -> anyhow::Result<Self> {
        if from.starts_with("http://") || from.starts_with("https://") {
            return Ok(Self::Url(from.trim_end_matches('/').to_owned()));
        }
        ensure!(
            Path::new(from).is_dir(),
            "--from {from}: there is no such folder, and a mirror's address begins with http:// or https://"
        );
        Ok(Self::Folder(from.into()))
    }
}

/// Puts the files of a data set into `folder`, those that are not there yet; `from` is an address or a folder other than
/// the official one. Each is passed on to `report`.
pub fn fetch(
    entry: &Fetch,
    from: Option<&str>,
    folder: &Path,
    report: impl Fn(String),
) -> anyhow::Result<()> {
    let (base, files) = match &entry.how {
        How::Files { base, files } => (base, files),
        How::ByHand(text) => {
            let folder = folder.display().to_string();
            bail!("{}", text.replace("{folder}", &folder));
        }
    };
    let place = Place::of(from.unwrap_or(base))?;
    let made: Vec<_> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let fetched = get_all(files, &place, folder, report);
    if fetched.is_err() {
        // Those that hold something stay.
        let _ = made.into_iter().try_for_each(fs::remove_dir);
    }
    fetched
}

/// Gets those of the files that `folder` does not have.
fn get_all(files: &[Remote], place: &Place, folder: &Path, report: impl Fn(String)) -> anyhow::Result<()> {
    for file in files {
        let target = folder.join(file.folder.unwrap_or(file.name));
        if file.is_there(&target)? {
            report(format!("{}: is there already", target.display()));
            continue;
        }
        file.get(place, &target)?;
        report(format!("{}: fetched, checksum verified", target.display()));
    }
    Ok(())
}

/// How a file is fetched.
trait Get {
    /// A folder appears only when all of it has been unpacked.
    fn is_there(&self, target: &Path) -> anyhow::Result<bool>;

    fn get(&self, place: &Place, target: &Path) -> anyhow::Result<()>;

    /// A bar, hidden where there is no terminal, once it is sure that the file has room.
    fn progress(&self, part: &Path) -> anyhow::Result<ProgressBar>;
}

impl Get for Remote {
    fn is_there(&self, target: &Path) -> anyhow::Result<bool> {
        if !target.exists() || self.folder.is_some() {
            return Ok(target.exists());
        }
        let found = checksum::md5(target)?;
        ensure!(
            found == self.md5,
            "{} is there, but is not the published file: its MD5 is {found}, expected {}; remove it to fetch it again",
            target.display(),
            self.md5
        );
        Ok(true)
    }

    fn get(&self, place: &Place, target: &Path) -> anyhow::Result<()> {
        let part = target.with_file_name(format!("{}.part", self.name));
        let from = match place {
            Place::Url(base) => format!("{base}/{}", self.name),
            Place::Folder(folder) => folder.join(self.name).display().to_string(),
        };
        let bar = self.progress(&part)?;
        let arrived = match place {
            Place::Url(_) => download::download(&from, &part, self.bytes, &bar),
            Place::Folder(_) => copy(Path::new(&from), &part, &bar),
        };
        bar.finish_and_clear();
        if arrived.is_err() && part.metadata()?.len() == 0 {
            fs::remove_file(&part)?;
        }
        arrived?;
        let found = checksum::md5(&part)?;
        if found != self.md5 {
            fs::remove_file(&part)?;
            bail!(
                "{from} is not the published file: its MD5 is {found}, expected {}; what arrived was removed. \
                 If it was damaged on the way, the same command gets it again",
                self.md5
            );
        }
        match self.folder {
            Some(kept) => {
                unpack::unpack(&part, kept, target).with_context(|| format!("unpacking {from}"))?;
                fs::remove_file(&part)?;
            }
            None => fs::rename(&part, target)?,
        }
        Ok(())
    }

    fn progress(&self, part: &Path) -> anyhow::Result<ProgressBar> {
        let file = File::options().append(true).create(true).open(part);
        let file = file.with_context(|| format!("writing {}", part.display()))?;
        let missing = self.bytes.saturating_sub(file.metadata()?.len());
        let free = disk::free(&file)?;
        ensure!(
            missing <= free,
            "no room for {}: {} are needed, only {} are free",
            part.display(),
            BinaryBytes(missing),
            BinaryBytes(free)
        );
        let style = "{prefix} {wide_bar:.cyan/dim} {bytes}/{total_bytes}  {bytes_per_sec}  ETA {eta}";
        let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
        Ok(ProgressBar::new(self.bytes)
            .with_style(style)
            .with_prefix(self.name))
    }
}

fn copy(source: &Path, part: &Path, bar: &ProgressBar) -> anyhow::Result<()> {
    let mut from = File::open(source).with_context(|| format!("reading {}", source.display()))?;
    let mut to = File::create(part).with_context(|| format!("writing {}", part.display()))?;
    io::copy(&mut bar.wrap_read(&mut from), &mut to)
        .with_context(|| format!("copying {} to {}", source.display(), part.display()))?;
    to.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests;
