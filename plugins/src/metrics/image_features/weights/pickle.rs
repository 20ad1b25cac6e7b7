//! Reads the pickles in a PyTorch weights file without executing anything.
//!
//! A pickle is a program for a stack machine, whose REDUCE calls any function that it names. This machine knows the
//! instructions that a dictionary of tensors needs, and four functions, which only record their arguments. Everything
//! else is refused. Values that hold others are kept side by side in a heap, so that neither depth nor cycles matter,
//! and each instruction adds at most one value: memory grows with the length of the pickle, which is limited.

use std::collections::HashMap;

use anyhow::{Context, bail, ensure};
use tch::Kind;

/// Far longer than any known dictionary of tensors.
const LONGEST: usize = 4 << 20;

/// No function takes more arguments, and no weight has more dimensions.
const FEW: usize = 8;

/// A value; containers are indices into the heap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    None,
    Bool(bool),
    Int(i128),
    Text(&'a str),
    Tuple(usize),
    List(usize),
    Dict(usize),
    Function(Function),
    StorageType(Kind),
    Storage(usize),
    Tensor(usize),
}

/// Functions that REDUCE may call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
}

/// A run of numbers in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Storage<'a> {
    pub key: &'a str,
    pub kind: Kind,
    /// How many numbers.
    pub count: usize,
}

/// A tensor as a view of a storage.
#[derive(Clone, Debug, PartialEq)]
pub struct View<'a> {
    pub storage: Storage<'a>,
    pub offset: usize,
    pub size: Vec<usize>,
    pub stride: Vec<usize>,
}

/// The contents of a pickle.
#[derive(Debug)]
pub struct Pickle<'a> {
    pub value: Value<'a>,
    /// Its length in bytes.
    pub length: usize,
    heap: Heap<'a>,
}

#[derive(Debug, Default)]
struct Heap<'a> {
    tuples: Vec<Vec<Value<'a>>>,
    lists: Vec<Vec<Value<'a>>>,
    dicts: Vec<Vec<(Value<'a>, Value<'a>)>>,
    storages: Vec<Storage<'a>>,
    tensors: Vec<View<'a>>,
}

impl<'a> Pickle<'a> {
    /// Reads the pickle at the start of `bytes`.
    pub fn read(bytes: &'a [u8]) -> anyhow::Result<Self> {
        let mut machine = Machine {
            bytes: &bytes[..bytes.len().min(LONGEST)],
            at: 0,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            heap: Heap::default(),
        };
        while machine.step()? {}
        let value = machine.pop()?;
        ensure!(
            machine.stack.is_empty() && machine.marks.is_empty(),
            "the pickle leaves values behind"
        );
        Ok(Self {
            value,
            length: machine.at,
            heap: machine.heap,
        })
    }

    /// The entries, if the pickle is a dictionary.
    pub fn dict(&self) -> Option<&[(Value<'a>, Value<'a>)]> {
        match self.value {
            Value::Dict(place) => Some(&self.heap.dicts[place]),
            _ => None,
        }
    }

    /// The items, if the pickle is a list.
    pub fn list(&self) -> Option<&[Value<'a>]> {
        match self.value {
            Value::List(place) => Some(&self.heap.lists[place]),
            _ => None,
        }
    }

    /// The tensor that a value represents.
    pub fn tensor(&self, value: Value<'a>) -> Option<&View<'a>> {
        match value {
            Value::Tensor(place) => Some(&self.heap.tensors[place]),
            _ => None,
        }
    }

    /// Every storage that it mentions, possibly repeated.
    pub fn storages(&self) -> &[Storage<'a>] {
        &self.heap.storages
    }
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Value<'a>>,
    /// Stack heights recorded by MARK.
    marks: Vec<usize>,
    memo: HashMap<u32, Value<'a>>,
    heap: Heap<'a>,
}

impl<'a> Machine<'a> {
    /// Runs one instruction; returns false after the last one. The names are those of Python's `pickletools`.
    fn step(&mut self) -> anyhow::Result<bool> {
        let place = self.at;
        let [code] = self.array()?;
        match code {
            // PROTO: additions of newer protocols are refused where they occur.
            0x80 => drop(self.array::<1>()?),
            // FRAME
            0x95 => drop(self.array::<8>()?),
            b'.' => return Ok(false),
            b'(' => self.marks.push(self.stack.len()),
            b'N' => self.stack.push(Value::None),
            0x88 => self.stack.push(Value::Bool(true)),
            0x89 => self.stack.push(Value::Bool(false)),
            b'K' => {
                let [number] = self.array()?;
                self.stack.push(Value::Int(number.into()));
            }
            b'M' => {
                let number = u16::from_le_bytes(self.array()?);
                self.stack.push(Value::Int(number.into()));
            }
            b'J' => {
                let number = i32::from_le_bytes(self.array()?);
                self.stack.push(Value::Int(number.into()));
            }
            0x8a => {
                let [length] = self.array()?;
                let number = self.long(length.into())?;
                self.stack.push(number);
            }
            b'X' => {
                let length = u32::from_le_bytes(self.array()?);
                self.text(length as usize)?;
            }
            0x8c => {
                let [length] = self.array()?;
                self.text(length.into())?;
            }
            b')' => self.tuple(Vec::new()),
            0x85..=0x87 => {
                let start = self.height_below((code - 0x84).into())?;
                let items = self.stack.split_off(start);
                self.tuple(items);
            }
            b't' => {
                let items = self.since_mark()?;
                self.tuple(items);
            }
            b']' => {
                self.stack.push(Value::List(self.heap.lists.len()));
                self.heap.lists.push(Vec::new());
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.since_mark()?;
                self.append(items)?;
            }
            b'}' => self.dict(),
            b's' => {
                let start = self.height_below(2)?;
                let items = self.stack.split_off(start);
                self.set_items(&items)?;
            }
            b'u' => {
                let items = self.since_mark()?;
                self.set_items(&items)?;
            }
            b'q' => {
                let [place] = self.array()?;
                self.remember(place.into())?;
            }
            b'r' => {
                let place = u32::from_le_bytes(self.array()?);
                self.remember(place)?;
            }
            0x94 => self.remember(self.memo.len() as u32)?,
            b'h' => {
                let [place] = self.array()?;
                self.recall(place.into())?;
            }
            b'j' => {
                let place = u32::from_le_bytes(self.array()?);
                self.recall(place)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.stack.push(global(module, name)?);
            }
            // STACK_GLOBAL
            0x93 => match (self.pop()?, self.pop()?) {
                (Value::Text(name), Value::Text(module)) => self.stack.push(global(module, name)?),
                _ => bail!("the pickle calls a function without a name"),
            },
            b'R' => self.reduce()?,
            b'Q' => self.storage()?,
            b'b' => self.build()?,
            other => bail!(
                "the pickle has the instruction {other:#04x} at byte {place}, which no weights file needs"
            ),
        }
        Ok(true)
    }

    fn take(&mut self, length: usize) -> anyhow::Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..length).with_context(|| match self.bytes.len() {
            LONGEST => format!("the pickle is longer than {LONGEST} bytes"),
            _ => "the pickle ends early".to_owned(),
        })?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> anyhow::Result<[u8; N]> {
        Ok(self.take(N)?.try_into()?)
    }

    fn text(&mut self, length: usize) -> anyhow::Result<()> {
        let text =
            std::str::from_utf8(self.take(length)?).context("the pickle has text that is not UTF-8")?;
        self.stack.push(Value::Text(text));
        Ok(())
    }

    fn line(&mut self) -> anyhow::Result<&'a str> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n');
        let line = self.take(length.context("the pickle ends early")?)?;
        self.at += 1;
        std::str::from_utf8(line).context("the pickle has text that is not UTF-8")
    }

    /// An integer in two's complement, up to 16 bytes long.
    fn long(&mut self, length: usize) -> anyhow::Result<Value<'a>> {
        let bytes = self.take(length)?;
        ensure!(length <= 16, "the pickle has a number of {length} bytes");
        let negative = bytes.last().is_some_and(|last| *last >= 0x80);
        let mut whole = [if negative { 0xff } else { 0 }; 16];
        whole[..length].copy_from_slice(bytes);
        Ok(Value::Int(i128::from_le_bytes(whole)))
    }

    fn pop(&mut self) -> anyhow::Result<Value<'a>> {
        let start = self.height_below(1)?;
        Ok(self.stack.split_off(start)[0])
    }

    /// The height of the stack without its last `count` values, which must lie above the last mark.
    fn height_below(&self, count: usize) -> anyhow::Result<usize> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let height = self.stack.len().checked_sub(count);
        height
            .filter(|height| *height >= floor)
            .context("the pickle takes values that do not exist")
    }

    fn since_mark(&mut self) -> anyhow::Result<Vec<Value<'a>>> {
        let mark = self.marks.pop().context("the pickle lacks a mark")?;
        Ok(self.stack.split_off(mark))
    }

    fn tuple(&mut self, items: Vec<Value<'a>>) {
        self.stack.push(Value::Tuple(self.heap.tuples.len()));
        self.heap.tuples.push(items);
    }

    fn dict(&mut self) {
        self.stack.push(Value::Dict(self.heap.dicts.len()));
        self.heap.dicts.push(Vec::new());
    }

    fn append(&mut self, items: Vec<Value<'a>>) -> anyhow::Result<()> {
        let Some(Value::List(place)) = self.stack.last() else {
            bail!("the pickle appends to something that is not a list");
        };
        self.heap.lists[*place].extend(items);
        Ok(())
    }

    fn set_items(&mut self, items: &[Value<'a>]) -> anyhow::Result<()> {
        let Some(Value::Dict(place)) = self.stack.last() else {
            bail!("the pickle sets items of something that is not a dictionary");
        };
        let (pairs, rest) = items.as_chunks();
        ensure!(rest.is_empty(), "the pickle has a key without a value");
        self.heap.dicts[*place].extend(pairs.iter().map(|[key, value]| (*key, *value)));
        Ok(())
    }

    fn remember(&mut self, place: u32) -> anyhow::Result<()> {
        let value = *self
            .stack
            .last()
            .context("the pickle memoizes a value from an empty stack")?;
        self.memo.insert(place, value);
        Ok(())
    }

    fn recall(&mut self, place: u32) -> anyhow::Result<()> {
        let value = self.memo.get(&place);
        self.stack
            .push(*value.context("the pickle recalls a value that it has not memoized")?);
        Ok(())
    }

    fn reduce(&mut self) -> anyhow::Result<()> {
        let arguments = self.pop_tuple()?;
        match (self.pop()?, &arguments[..]) {
            (Value::Function(Function::OrderedDict), []) => self.dict(),
            // Then follow requires_grad, hooks, and perhaps metadata.
            (Value::Function(Function::RebuildTensor), [storage, offset, size, stride, ..]) => {
                let Value::Storage(storage) = *storage else {
                    bail!("the pickle has a tensor without a storage");
                };
                let view = View {
                    storage: self.heap.storages[storage],
                    offset: count(*offset)?,
                    size: self.counts(*size)?,
                    stride: self.counts(*stride)?,
                };
                ensure!(
                    view.size.len() == view.stride.len(),
                    "the pickle has a tensor of {} dimensions with {} strides",
                    view.size.len(),
                    view.stride.len()
                );
                self.stack.push(Value::Tensor(self.heap.tensors.len()));
                self.heap.tensors.push(view);
            }
            (Value::Function(Function::RebuildParameter), [tensor @ Value::Tensor(_), ..]) => {
                self.stack.push(*tensor);
            }
            (what, arguments) => {
                bail!("the pickle calls {what:?} with {} arguments", arguments.len());
            }
        }
        Ok(())
    }

    /// PyTorch's "persistent id" of a storage: ('storage', type, key, location, count), and in old files a view.
    fn storage(&mut self) -> anyhow::Result<()> {
        let parts = self.pop_tuple()?;
        let (Value::Text("storage"), Value::StorageType(kind), Value::Text(key), Value::Text(_), numbers) =
            (match parts[..] {
                [what, kind, key, location, numbers] | [what, kind, key, location, numbers, Value::None] => {
                    (what, kind, key, location, numbers)
                }
                _ => bail!("the pickle refers to something that is not a storage, or to part of one"),
            })
        else {
            bail!("the pickle refers to something that is not a storage");
        };
        self.stack.push(Value::Storage(self.heap.storages.len()));
        self.heap.storages.push(Storage {
            key,
            kind,
            count: count(numbers)?,
        });
        Ok(())
    }

    /// Attributes of a dictionary, such as `_metadata`: ignored.
    fn build(&mut self) -> anyhow::Result<()> {
        self.pop()?;
        ensure!(
            matches!(self.stack.last(), Some(Value::Dict(_))),
            "the pickle sets attributes of something that is not a dictionary"
        );
        Ok(())
    }

    fn pop_tuple(&mut self) -> anyhow::Result<Vec<Value<'a>>> {
        match self.pop()? {
            Value::Tuple(place) => Ok(self.few(place)?.to_vec()),
            other => bail!("the pickle has {other:?} where it needs a tuple"),
        }
    }

    /// A short tuple, which is cheap to copy: copies of a long one could fill the memory.
    fn few(&self, place: usize) -> anyhow::Result<&[Value<'a>]> {
        let items = &self.heap.tuples[place];
        ensure!(
            items.len() <= FEW,
            "the pickle has {} values where at most {FEW} are expected",
            items.len()
        );
        Ok(items)
    }

    fn counts(&self, value: Value) -> anyhow::Result<Vec<usize>> {
        let Value::Tuple(place) = value else {
            bail!("the pickle has {value:?} where it needs a tuple of numbers");
        };
        self.few(place)?.iter().map(|value| count(*value)).collect()
    }
}

fn count(value: Value) -> anyhow::Result<usize> {
    match value {
        Value::Int(number) => number
            .try_into()
            .with_context(|| format!("the pickle has {number} where it needs a count")),
        other => bail!("the pickle has {other:?} where it needs a count"),
    }
}

fn global<'a>(module: &str, name: &str) -> anyhow::Result<Value<'a>> {
    let storage = |kind| Ok(Value::StorageType(kind));
    match (module, name) {
        ("collections", "OrderedDict") => Ok(Value::Function(Function::OrderedDict)),
        ("torch._utils", "_rebuild_tensor_v2") => Ok(Value::Function(Function::RebuildTensor)),
        ("torch._utils", "_rebuild_parameter") => Ok(Value::Function(Function::RebuildParameter)),
        ("torch", "HalfStorage") => storage(Kind::Half),
        ("torch", "BFloat16Storage") => storage(Kind::BFloat16),
        ("torch", "FloatStorage") => storage(Kind::Float),
        ("torch", "DoubleStorage") => storage(Kind::Double),
        ("torch", "ByteStorage") => storage(Kind::Uint8),
        ("torch", "CharStorage") => storage(Kind::Int8),
        ("torch", "ShortStorage") => storage(Kind::Int16),
        ("torch", "IntStorage") => storage(Kind::Int),
        ("torch", "LongStorage") => storage(Kind::Int64),
        ("torch", "BoolStorage") => storage(Kind::Bool),
        _ => bail!("the pickle calls {module}.{name}, which no weights file needs: refusing to open it"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn refused(bytes: &[u8]) -> String {
        format!("{:#}", Pickle::read(bytes).unwrap_err())
    }

    /// `{'a': (1, -2, True, None)}` as Python writes it, and a state that is ignored.
    #[test]
    fn reads_pickles_written_by_python() {
        let bytes = b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01(K\x01J\xfe\xff\xff\xff\x88Ntq\x02s}b.rest";
        let pickle = Pickle::read(bytes).unwrap();
        assert_eq!(pickle.length, bytes.len() - 4);
        let [(Value::Text("a"), Value::Tuple(place))] = pickle.dict().unwrap() else {
            panic!("{pickle:?}");
        };
        let expected = [Value::Int(1), Value::Int(-2), Value::Bool(true), Value::None];
        assert_eq!(pickle.heap.tuples[*place], expected);
    }

    #[test]
    fn refuses_every_function_that_weights_do_not_need() {
        for name in [
            "os\nsystem",
            "builtins\neval",
            "torch\nload",
            "posix\nsystem",
            "collections\ndefaultdict",
        ] {
            let error = refused(&[b"\x80\x02c", name.as_bytes(), b"\nX\x04\0\0\0true\x85R."].concat());
            assert!(error.contains(&name.replace('\n', ".")), "{error}");
        }
        assert!(refused(b"\x80\x04\x8c\x02os\x8c\x06system\x93.").contains("os.system"));
        // INST and OBJ call functions as well; EXT1 fetches one.
        for program in [&b"(ios\nsystem\n."[..], b"(cos\nsystem\no.", b"\x82\x01."] {
            assert!(refused(program).contains("which no weights file needs"));
        }
    }

    #[test]
    fn every_truncation_is_an_error() {
        let whole = b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01(X\x01\x00\x00\x00ah\x01u}q\x02b.";
        assert!(Pickle::read(whole).is_ok());
        for length in 0..whole.len() {
            assert!(Pickle::read(&whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let cases: [(&[u8], &str); 14] = [
            (b"0.", "instruction 0x30"),
            (b".", "do not exist"),
            (b"NN.", "leaves values behind"),
            (b"(N.", "leaves values behind"),
            (b"N(0.", "instruction 0x30"),
            (b"N(.", "do not exist"),
            (b"t.", "lacks a mark"),
            (b"h\x07.", "not memoized"),
            (b"}(Nu.", "without a value"),
            (b"N(NNu.", "not a dictionary"),
            (b"NNa.", "not a list"),
            (b"X\xff\xff\xff\xffa.", "ends early"),
            (b"\x8a\xff.", "ends early"),
            (b"NNb.", "not a dictionary"),
        ];
        for (bytes, words) in cases {
            let error = refused(bytes);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_tensor_must_have_a_storage_and_sizes() {
        let storage =
            b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQ";
        let tensor = |storage: &[u8], rest: &[u8]| {
            [b"ctorch._utils\n_rebuild_tensor_v2\n(", storage, rest, b"tR."].concat()
        };
        let whole = tensor(
            storage,
            b"K\x00K\x02K\x03\x86K\x03K\x01\x86\x89ccollections\nOrderedDict\n)R",
        );
        let pickle = Pickle::read(&whole).unwrap();
        let expected = View {
            storage: Storage {
                key: "0",
                kind: Kind::Float,
                count: 6,
            },
            offset: 0,
            size: vec![2, 3],
            stride: vec![3, 1],
        };
        assert_eq!(pickle.tensor(pickle.value), Some(&expected));
        for (storage, rest, words) in [
            (&b"N"[..], &b"K\x00))\x89N"[..], "without a storage"),
            (storage, b"J\xff\xff\xff\xff))\x89N", "-1 where it needs a count"),
            (storage, b"K\x00K\x02\x85)\x89N", "1 dimensions with 0 strides"),
            (storage, b"K\x00N)\x89N", "tuple of numbers"),
            (storage, b"K\x00", "2 arguments"),
        ] {
            let error = refused(&tensor(storage, rest));
            assert!(error.contains(words), "{error}");
        }
    }

    /// A million nested tuples, and a dictionary inside itself.
    #[test]
    fn depth_and_cycles_are_harmless() {
        let deep = [&b")"[..], &[0x85; 1_000_000], b"."].concat();
        assert!(Pickle::read(&deep).is_ok());
        assert!(Pickle::read(b"}q\x00X\x01\x00\x00\x00ah\x00s.").is_ok());
        let wide = [&b"ccollections\nOrderedDict\n("[..], &[b'N'; 1000], b"tR."].concat();
        assert!(refused(&wide).contains("1000 values where at most 8 are expected"));
        assert!(refused(&[b'N'; LONGEST + 1]).contains("longer than"));
    }
}
