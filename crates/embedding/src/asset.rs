//! The model in the asset: one file, read in place. `tools/embedding/FORMAT.md` describes it.
//!
//! Opening the asset unpacks only the small vectors and the vocabulary, so that the first text of a run waits for
//! little more than its own forward pass. The checksum is verified by a test only, because the asset is part of the
//! program's file.

use std::cmp::Ordering;

use crate::kernel::{GROUP, Linear, Matrix};

const MAGIC: &[u8; 8] = b"MCPZEMB\0";
const VERSION: u32 = 2;
/// Alignment of blocks, in bytes.
const ALIGNMENT: usize = 64;

/// A model that is ready to run.
#[derive(Debug)]
pub(crate) struct Asset<'a> {
    pub(crate) vocabulary: Vocabulary,
    tokens: Matrix<'a>,
    positions: Vec<f32>,
    pub(crate) norm: Norm,
    pub(crate) layers: Vec<Layer<'a>>,
    /// The length of a vector.
    pub(crate) width: usize,
    pub(crate) heads: usize,
    /// Prevents a division by zero in a norm.
    pub(crate) epsilon: f32,
}

/// One layer of the transformer.
#[derive(Debug)]
pub(crate) struct Layer<'a> {
    /// Queries, keys and values in one matrix.
    pub(crate) attention: Linear<'a>,
    pub(crate) attention_output: Linear<'a>,
    pub(crate) attention_norm: Norm,
    pub(crate) wide: Linear<'a>,
    pub(crate) narrow: Linear<'a>,
    pub(crate) norm: Norm,
}

/// The learned scale and offset after normalisation.
#[derive(Debug)]
pub(crate) struct Norm {
    pub(crate) scale: Vec<f32>,
    pub(crate) shift: Vec<f32>,
}

/// The word pieces in byte order, concatenated.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    text: String,
    /// The end of each piece.
    ends: Vec<u32>,
    /// The ids for an unknown word, and for the beginning and end of a text.
    pub(crate) unknown: u32,
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// The asset is not of the version that this code reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the embedding asset is malformed: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// The checksum in the header, which covers everything after it.
#[cfg(any(test, feature = "asset"))]
pub(crate) fn checksum(bytes: &[u8]) -> Option<u32> {
    bytes
        .get(48..)?
        .first_chunk()
        .map(|bytes| u32::from_le_bytes(*bytes))
}

/// Reads blocks one after the other.
struct Blocks<'a> {
    rest: &'a [u8],
}

impl<'a> Blocks<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (block, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Malformed("it is too short"))?;
        let padding = length.next_multiple_of(ALIGNMENT) - length;
        self.rest = rest.get(padding..).ok_or(Malformed("it is too short"))?;
        Ok(block)
    }

    fn floats(&mut self, count: usize) -> Result<Vec<f32>, Malformed> {
        Ok(self
            .halves(count)?
            .iter()
            .map(|half| widen_half(*half))
            .collect())
    }

    fn halves(&mut self, count: usize) -> Result<&'a [[u8; 2]], Malformed> {
        Ok(self.take(count * 2)?.as_chunks().0)
    }

    fn matrix(&mut self, rows: usize, inputs: usize) -> Result<Matrix<'a>, Malformed> {
        let packed = self.take(rows * inputs / 2)?;
        Ok(Matrix {
            packed,
            scales: self.halves(rows * inputs / GROUP)?,
            rows,
            inputs,
        })
    }

    fn linear(&mut self, rows: usize, inputs: usize) -> Result<Linear<'a>, Malformed> {
        Ok(Linear::new(self.matrix(rows, inputs)?, self.floats(rows)?))
    }

    fn norm(&mut self, width: usize) -> Result<Norm, Malformed> {
        Ok(Norm {
            scale: self.floats(width)?,
            shift: self.floats(width)?,
        })
    }
}

impl<'a> Asset<'a> {
    /// Opens an asset.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, body) = bytes
            .split_at_checked(ALIGNMENT)
            .ok_or(Malformed("it is too short"))?;
        let number = |at: usize| {
            let bytes = header[at..]
                .first_chunk()
                .expect("the header has a fixed length");
            u32::from_le_bytes(*bytes)
        };
        if !header.starts_with(MAGIC) || number(8) != VERSION {
            return Err(Malformed("it is of another version"));
        }
        let [width, layers, heads, inner, pieces, positions, group, text] =
            std::array::from_fn(|at| number(12 + 4 * at) as usize);
        let epsilon = f32::from_bits(number(44));
        if group != GROUP || heads == 0 || !width.is_multiple_of(heads) {
            return Err(Malformed("its sizes are not supported"));
        }
        if !width.is_multiple_of(GROUP) || !inner.is_multiple_of(GROUP) {
            return Err(Malformed("its rows are no whole groups"));
        }
        let mut blocks = Blocks { rest: body };
        let vocabulary = Vocabulary::read(blocks.take(text)?, pieces)?;
        let tokens = blocks.matrix(pieces, width)?;
        let positions = blocks.floats(positions * width)?;
        let norm = blocks.norm(width)?;
        let layers = (0..layers)
            .map(|_| {
                Ok(Layer {
                    attention: blocks.linear(3 * width, width)?,
                    attention_output: blocks.linear(width, width)?,
                    attention_norm: blocks.norm(width)?,
                    wide: blocks.linear(inner, width)?,
                    narrow: blocks.linear(width, inner)?,
                    norm: blocks.norm(width)?,
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            vocabulary,
            tokens,
            positions,
            norm,
            layers,
            width,
            heads,
            epsilon,
        })
    }

    /// The maximum number of pieces of a text.
    pub(crate) fn longest(&self) -> usize {
        self.positions.len() / self.width
    }

    /// Appends the embedding of a piece at a position, before any layer.
    pub(crate) fn embed(&self, id: u32, position: usize, states: &mut Vec<f32>) {
        let first = states.len();
        self.tokens.append(id as usize, states);
        let position = &self.positions[position * self.width..][..self.width];
        states[first..]
            .iter_mut()
            .zip(position)
            .for_each(|(value, position)| *value += position);
    }
}

impl Vocabulary {
    /// Unpacks the pieces. Each is stored as the part that it does not share with the one before.
    fn read(mut packed: &[u8], count: usize) -> Result<Self, Malformed> {
        const CUT: Malformed = Malformed("its vocabulary is cut");
        let (mut text, mut ends) = (
            Vec::with_capacity(packed.len() * 3),
            Vec::with_capacity(count),
        );
        let mut piece = Vec::new();
        while let Some((lengths, rest)) = packed.split_first() {
            let (shared, own) = (usize::from(lengths >> 4), usize::from(lengths & 15));
            let (own, rest) = rest.split_at_checked(own).ok_or(CUT)?;
            if shared > piece.len() {
                return Err(CUT);
            }
            piece.truncate(shared);
            piece.extend_from_slice(own);
            text.extend_from_slice(&piece);
            ends.push(
                u32::try_from(text.len()).map_err(|_| Malformed("its vocabulary is too long"))?,
            );
            packed = rest;
        }
        let text = String::from_utf8(text).map_err(|_| Malformed("its vocabulary is not text"))?;
        if ends.len() != count {
            return Err(Malformed("its vocabulary has another size"));
        }
        if ends.iter().any(|end| !text.is_char_boundary(*end as usize)) {
            return Err(Malformed("its vocabulary has parts of letters"));
        }
        let mut vocabulary = Self {
            text,
            ends,
            unknown: 0,
            first: 0,
            last: 0,
        };
        let special = |piece: &str| {
            vocabulary
                .find(piece)
                .ok_or(Malformed("its vocabulary lacks a special piece"))
        };
        let [unknown, first, last] = [special("[UNK]")?, special("[CLS]")?, special("[SEP]")?];
        (vocabulary.unknown, vocabulary.first, vocabulary.last) = (unknown, first, last);
        Ok(vocabulary)
    }

    /// The id of a piece.
    pub(crate) fn find(&self, piece: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.piece(middle).cmp(piece) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return u32::try_from(middle).ok(),
            }
        }
        None
    }

    fn piece(&self, id: usize) -> &str {
        let start = id
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[id] as usize]
    }
}

/// Converts a number of half precision. Its exponent, moved to the place of single precision, makes it too small by
/// 2^112, which a multiplication corrects; this also works for subnormal numbers.
#[inline(always)]
pub(crate) fn widen_half(half: [u8; 2]) -> f32 {
    let bits = u32::from(u16::from_le_bytes(half));
    let scale = f32::from_bits((127 + 112) << 23);
    f32::from_bits((bits & 0x8000) << 16 | (bits & 0x7fff) << 13) * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_widened() {
        for (half, value) in [
            (0x3c00u16, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
            (0x0000, 0.0),
        ] {
            assert_eq!(widen_half(half.to_le_bytes()), value);
        }
    }

    #[test]
    fn what_is_no_asset_is_refused() {
        for bytes in [
            &[][..],
            &[0; 64],
            b"MCPZEMB\0\x02\0\0\0",
            &[b"MCPZEMB\0\x03\0\0\0", &[0; 99][..]].concat(),
        ] {
            assert!(Asset::open(bytes).is_err());
        }
    }

    #[test]
    fn pieces_are_restored() {
        let packed = b"\x01#\x05[CLS]\x14SEP]\x14UNK]\x03\xc3\xa9a\x21b";
        let vocabulary = Vocabulary::read(packed, 6).unwrap();
        let pieces = ["#", "[CLS]", "[SEP]", "[UNK]", "\u{e9}a", "\u{e9}b"];
        for (id, piece) in (0..).zip(pieces) {
            assert_eq!(vocabulary.find(piece), Some(id), "{piece}");
        }
        for no_piece in ["", "!", "[", "[CLS", "[CLS]x", "\u{e9}", "z"] {
            assert_eq!(vocabulary.find(no_piece), None, "{no_piece}");
        }
        let one_less = Vocabulary::read(packed, 5);
        let cut = Vocabulary::read(&packed[..packed.len() - 1], 6);
        let more_shared_than_there_is = Vocabulary::read(b"\x01a\x21b", 2);
        let half_a_letter = Vocabulary::read(b"\x01a\x01\xc3\x11\xa9", 3);
        for refused in [one_less, cut, more_shared_than_there_is, half_a_letter] {
            assert!(refused.is_err());
        }
    }
}
