//! Reads the weights of published networks from a user's file, without trusting it.

mod pickle;
mod pytorch;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use safetensors::SafeTensors;
use sha2::{Digest, Sha256};
use tch::{Device, Kind, Tensor};

/// Far larger than any known network.
const LARGEST: u64 = 2 << 30;

/// A weights file, held in memory.
pub struct WeightsFile {
    pub path: PathBuf,
    /// SHA-256 of the file on disk, in hexadecimal.
    pub sha256: String,
    /// Its contents, decompressed.
    contents: Vec<u8>,
}

/// Tensors by name, not yet read.
type Tensors<'a> = BTreeMap<String, Raw<'a>>;

/// A tensor as the file describes it: a view of some numbers.
struct Raw<'a> {
    kind: Kind,
    numbers: &'a [u8],
    offset: usize,
    size: Vec<usize>,
    stride: Vec<usize>,
}

/// The tensors of a file, from which a network takes those it needs.
pub struct Weights<'a> {
    file: &'a Path,
    tensors: Tensors<'a>,
    device: Device,
}

impl WeightsFile {
    /// Reads the file, and decompresses it if it is gzipped.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let raw = File::open(path)
            .map_err(anyhow::Error::from)
            .and_then(bounded)
            .with_context(|| format!("reading {}", path.display()))?;
        let sha256 = hex(&Sha256::digest(&raw));
        let contents = if raw.starts_with(b"\x1f\x8b") {
            bounded(flate2::read::GzDecoder::new(&raw[..]))
                .with_context(|| format!("unpacking {}", path.display()))?
        } else {
            raw
        };
        Ok(Self {
            path: path.to_owned(),
            sha256,
            contents,
        })
    }

    /// Lets `network` take its weights to `device`. `allowed` names tensors that may remain.
    pub fn load<T>(
        &self,
        device: Device,
        allowed: impl Fn(&str) -> bool,
        network: impl FnOnce(&mut Weights) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let bytes = &self.contents[..];
        let tensors = match bytes {
            [b'P', b'K', ..] => pytorch::read_archive(bytes),
            [0x80, ..] => pytorch::read_legacy(bytes),
            [_, _, _, _, _, _, _, _, b'{', ..] => read_safetensors(bytes),
            _ => Err(anyhow::anyhow!(
                "it is neither a .pth file of PyTorch nor a safetensors file"
            )),
        };
        let mut weights = Weights {
            file: &self.path,
            tensors: tensors.with_context(|| format!("reading {}", self.path.display()))?,
            device,
        };
        let network = network(&mut weights)?;
        if let Some(name) = weights.tensors.keys().find(|name| !allowed(name)) {
            bail!(
                "{} has a tensor `{name}` that the network does not know",
                self.path.display()
            );
        }
        Ok(network)
    }

    /// The file's name without its folder.
    pub fn name(&self) -> String {
        self.path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }
}

impl Weights<'_> {
    /// Takes a tensor of this shape, as f32.
    pub fn take(&mut self, name: &str, shape: &[i64]) -> anyhow::Result<Tensor> {
        let raw = self
            .tensors
            .remove(name)
            .with_context(|| format!("{} has no tensor `{name}`", self.file.display()))?;
        raw.to_tensor(shape)
            .with_context(|| format!("{}: tensor `{name}`", self.file.display()))
            .map(|tensor| tensor.to_device(self.device))
    }
}

impl Raw<'_> {
    fn to_tensor(&self, shape: &[i64]) -> anyhow::Result<Tensor> {
        let found: Vec<_> = self.size.iter().map(|size| *size as i64).collect();
        ensure!(found == shape, "is {found:?}, expected {shape:?}");
        ensure!(
            matches!(
                self.kind,
                Kind::Half | Kind::BFloat16 | Kind::Float | Kind::Double
            ),
            "holds {:?}, expected floating-point numbers",
            self.kind
        );
        let numbers = self.viewed().context("reaches beyond its numbers")?;
        // libtorch copies as many bytes as it is asked to, so the count must be right.
        let count = numbers.len() / self.kind.elt_size_in_bytes();
        let flat = Tensor::f_from_data_size(numbers, &[count as i64], self.kind)?;
        let stride: Vec<_> = self.stride.iter().map(|stride| *stride as i64).collect();
        let tensor = flat.f_as_strided(shape, &stride, 0)?;
        let tensor = tensor.to_kind(Kind::Float).contiguous();
        ensure!(
            i64::try_from(tensor.isfinite().all())? == 1,
            "has numbers that are not finite"
        );
        // A copy even where nothing had to be converted, so that the storage can be freed.
        Ok(tensor.copy())
    }

    /// The bytes from the first to the last number of the view, if all of them exist.
    fn viewed(&self) -> Option<&[u8]> {
        let steps = self.size.iter().zip(&self.stride);
        let last = steps.map(|(size, stride)| size.checked_sub(1)?.checked_mul(*stride));
        let last = last.sum::<Option<usize>>()?;
        let width = self.kind.elt_size_in_bytes();
        let start = self.offset.checked_mul(width)?;
        let length = last.checked_add(1)?.checked_mul(width)?;
        self.numbers.get(start..start.checked_add(length)?)
    }
}

fn read_safetensors(bytes: &[u8]) -> anyhow::Result<Tensors<'_>> {
    let (header, metadata) = SafeTensors::read_metadata(bytes)?;
    let numbers = &bytes[8 + header..];
    let tensors = metadata.tensors().into_iter().map(|(name, info)| {
        let (start, end) = info.data_offsets;
        let raw = Raw {
            kind: info.dtype.try_into()?,
            numbers: &numbers[start..end],
            offset: 0,
            size: info.shape.clone(),
            stride: row_major(&info.shape),
        };
        anyhow::Ok((name, raw))
    });
    tensors.collect()
}

fn row_major(size: &[usize]) -> Vec<usize> {
    let product = |sizes: &[usize]| {
        sizes
            .iter()
            .fold(1, |product: usize, size| product.saturating_mul(*size))
    };
    (1..=size.len()).map(|inner| product(&size[inner..])).collect()
}

/// Reads everything, up to the size limit.
fn bounded(from: impl Read) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let length = from.take(LARGEST + 1).read_to_end(&mut bytes)? as u64;
    ensure!(length <= LARGEST, "it is larger than {} GiB", LARGEST >> 30);
    Ok(bytes)
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file named by an option, or else by an environment variable.
pub fn locate(option: Option<&str>, variable: &str, what: &str) -> anyhow::Result<PathBuf> {
    let from_environment = || std::env::var_os(variable).filter(|path| !path.is_empty());
    let path = option
        .map(PathBuf::from)
        .or_else(|| from_environment().map(PathBuf::from))
        .with_context(|| {
            format!(
                "no weights: set `weights`, or the environment variable {variable}, to the path of {what}"
            )
        })?;
    let found = fs::metadata(&path).with_context(|| format!("weights {}", path.display()))?;
    ensure!(found.is_file(), "weights {}: not a file", path.display());
    Ok(path)
}
