//! Named arrays of numbers: six element types, any shape.

use std::io::{self, Write};

use crate::Result;
use crate::model_file::ModelFileError;

/// Numbers turned into bytes at once.
const PIECE: usize = 4096;

/// The numbers of an array.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Numbers {
    /// Bytes: flags, text, nested archives.
    U8(Vec<u8>),
    /// 32-bit unsigned integers: indices.
    U32(Vec<u32>),
    /// 64-bit unsigned integers: keys, counts.
    U64(Vec<u64>),
    /// 64-bit signed integers: cell numbers of a grid.
    I64(Vec<i64>),
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
}

/// An array: numbers and their shape, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    shape: Vec<usize>,
    numbers: Numbers,
}

impl Array {
    /// An array of this shape.
    ///
    /// # Errors
    /// [`ModelFileError::WrongShape`] if the numbers do not fill it.
    pub fn new<T: Element>(shape: &[usize], numbers: Vec<T>) -> Result<Self> {
        let array = Self { shape: shape.to_vec(), numbers: T::wrap(numbers) };
        if n_elements(shape) == Some(array.len()) {
            Ok(array)
        } else {
            let found = vec![array.len()];
            Err(ModelFileError::WrongShape { name: String::new(), expected: array.shape, found }.into())
        }
    }

    /// The shape; empty for a single number.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How many numbers.
    pub fn len(&self) -> usize {
        match &self.numbers {
            Numbers::U8(v) => v.len(),
            Numbers::U32(v) => v.len(),
            Numbers::U64(v) => v.len(),
            Numbers::I64(v) => v.len(),
            Numbers::F32(v) => v.len(),
            Numbers::F64(v) => v.len(),
        }
    }

    /// Whether it holds no number.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The safetensors name of the element type: `"F64"`.
    pub fn type_name(&self) -> &'static str {
        match &self.numbers {
            Numbers::U8(_) => u8::NAME,
            Numbers::U32(_) => u32::NAME,
            Numbers::U64(_) => u64::NAME,
            Numbers::I64(_) => i64::NAME,
            Numbers::F32(_) => f32::NAME,
            Numbers::F64(_) => f64::NAME,
        }
    }

    /// Size in bytes.
    pub fn n_bytes(&self) -> usize {
        let width = match &self.numbers {
            Numbers::U8(_) => 1,
            Numbers::U32(_) | Numbers::F32(_) => 4,
            Numbers::U64(_) | Numbers::I64(_) | Numbers::F64(_) => 8,
        };
        self.len() * width
    }

    /// The numbers, if they are of this type.
    pub fn slice<T: Element>(&self) -> Option<&[T]> {
        T::unwrap(&self.numbers)
    }

    /// Writes the little-endian bytes, a piece at a time.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.numbers {
            Numbers::U8(v) => out.write_all(v),
            Numbers::U32(v) => write_numbers(v, u32::to_le_bytes, out),
            Numbers::U64(v) => write_numbers(v, u64::to_le_bytes, out),
            Numbers::I64(v) => write_numbers(v, i64::to_le_bytes, out),
            Numbers::F32(v) => write_numbers(v, f32::to_le_bytes, out),
            Numbers::F64(v) => write_numbers(v, f64::to_le_bytes, out),
        }
    }

    /// The array of `bytes`, whose number the caller has checked against type and shape.
    pub(crate) fn read(type_name: &str, shape: &[usize], bytes: &[u8]) -> Option<Self> {
        let numbers = match type_name {
            u8::NAME => Numbers::U8(bytes.to_vec()),
            u32::NAME => Numbers::U32(bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect()),
            u64::NAME => Numbers::U64(bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes).collect()),
            i64::NAME => Numbers::I64(bytes.as_chunks().0.iter().copied().map(i64::from_le_bytes).collect()),
            f32::NAME => Numbers::F32(bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect()),
            f64::NAME => Numbers::F64(bytes.as_chunks().0.iter().copied().map(f64::from_le_bytes).collect()),
            _ => return None,
        };
        let array = Self { shape: shape.to_vec(), numbers };
        (n_elements(shape) == Some(array.len()) && array.n_bytes() == bytes.len()).then_some(array)
    }
}

/// Numbers as bytes through a small buffer: no copy of a large array is made.
fn write_numbers<T: Copy, const N: usize>(
    numbers: &[T],
    bytes: impl Fn(T) -> [u8; N],
    out: &mut impl Write,
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(PIECE * N);
    for piece in numbers.chunks(PIECE) {
        buffer.clear();
        piece.iter().for_each(|x| buffer.extend_from_slice(&bytes(*x)));
        out.write_all(&buffer)?;
    }
    Ok(())
}

/// The number of elements of a shape, unless it overflows.
pub(crate) fn n_elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side))
}

/// The bytes of one element, by safetensors name.
pub(crate) fn element_width(type_name: &str) -> Option<usize> {
    match type_name {
        u8::NAME => Some(1),
        u32::NAME | f32::NAME => Some(4),
        u64::NAME | i64::NAME | f64::NAME => Some(8),
        _ => None,
    }
}

/// A number that an array can hold.
pub trait Element: Copy + Sized + sealed::Sealed {
    /// Its safetensors name.
    const NAME: &'static str;

    /// Numbers of this type as an array's.
    fn wrap(numbers: Vec<Self>) -> Numbers;

    /// An array's numbers, if they are of this type.
    fn unwrap(numbers: &Numbers) -> Option<&[Self]>;
}

mod sealed {
    /// Closes the list of element types: each is part of the file format.
    pub trait Sealed {}
}

macro_rules! element {
    ($type:ty, $variant:ident) => {
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const NAME: &'static str = stringify!($variant);

            fn wrap(numbers: Vec<Self>) -> Numbers {
                Numbers::$variant(numbers)
            }

            fn unwrap(numbers: &Numbers) -> Option<&[Self]> {
                match numbers {
                    Numbers::$variant(v) => Some(v),
                    _ => None,
                }
            }
        }
    };
}

element!(u8, U8);
element!(u32, U32);
element!(u64, U64);
element!(i64, I64);
element!(f32, F32);
element!(f64, F64);
