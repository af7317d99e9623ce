//! Matrix products of small integers: weights of 4 bits with multipliers, activations of 11 bits, sums of 32 bits.
//!
//! The weights are read in place. A few rows at a time are widened to 16 bits and used for all tokens. This costs
//! little compared with the products, and nothing has to be unpacked before the first text.

use crate::asset::widen_half;
use crate::simd::{Lanes, Plain, STEP};

/// The largest activation. With the largest weights, the sum over the widest row still fits.
const LARGEST: f32 = 1023.0;
/// Number of inputs that share a multiplier in a matrix of 4 bits.
pub(crate) const GROUP: usize = 32;
/// Number of weight rows whose products are summed at once, each with [`Lanes::TOKENS`] tokens.
const ROWS: usize = 4;
/// Number of parallel comparisons when the largest number of a token is searched.
const LANES: usize = 8;

/// A matrix stored by rows. A row computes one output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a> {
    /// Two weights per byte. The low halves of a group's bytes are its first half.
    pub(crate) packed: &'a [u8],
    /// The scale of each group's weights, in half precision.
    pub(crate) scales: &'a [[u8; 2]],
    pub(crate) rows: usize,
    /// The length of a row, a multiple of [`GROUP`].
    pub(crate) inputs: usize,
}

/// A linear layer: `output = input * matrix + bias`.
#[derive(Debug, Clone)]
pub(crate) struct Linear<'a> {
    matrix: Matrix<'a>,
    /// The multiplier of each group's weights, in the unit of its row.
    multipliers: Vec<i8>,
    units: Vec<f32>,
    bias: Vec<f32>,
}

/// Activations of several tokens as integers, each token with its own scale.
#[derive(Debug, Default)]
pub(crate) struct Quantised {
    values: Vec<i16>,
    scales: Vec<f32>,
}

impl Quantised {
    /// Converts `tokens`, rows of `width` numbers.
    #[inline(always)]
    pub(crate) fn fill(&mut self, tokens: &[f32], width: usize) {
        self.values.resize(tokens.len(), 0);
        self.scales.resize(tokens.len() / width, 0.0);
        let rows = tokens
            .chunks_exact(width)
            .zip(self.values.chunks_exact_mut(width));
        for ((token, values), scale) in rows.zip(&mut self.scales) {
            *scale = quantise(token, values);
        }
    }
}

/// Fills `values` with the integers of `token`. Returns their scale.
#[inline(always)]
fn quantise(token: &[f32], values: &mut [i16]) -> f32 {
    let mut largest = [0f32; LANES];
    for part in token.chunks_exact(LANES) {
        for (largest, value) in largest.iter_mut().zip(part) {
            *largest = largest.max(value.abs());
        }
    }
    let largest = largest.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let factor = LARGEST / largest;
    for (integer, value) in values.iter_mut().zip(token) {
        *integer = round(value * factor);
    }
    largest / LARGEST
}

impl Matrix<'_> {
    /// The unit of a row, and the multiplier of each group in that unit. The 8 bits of a multiplier lose little
    /// precision compared with the 4 bits of a weight.
    fn multipliers(&self, row: usize) -> (f32, impl Iterator<Item = i16>) {
        let groups = self.inputs / GROUP;
        let scales = &self.scales[row * groups..][..groups];
        let unit = unit(scales);
        (
            unit,
            scales
                .iter()
                .map(move |scale| round(widen_half(*scale) / unit)),
        )
    }

    fn packed(&self, row: usize) -> &[[u8; GROUP / 2]] {
        self.packed[row * self.inputs / 2..][..self.inputs / 2]
            .as_chunks()
            .0
    }

    /// Appends a row's numbers to `numbers`.
    pub(crate) fn append(&self, row: usize, numbers: &mut Vec<f32>) {
        let (unit, multipliers) = self.multipliers(row);
        let mut wide = [0; GROUP];
        for (packed, multiplier) in self.packed(row).iter().zip(multipliers) {
            Plain.unpack(packed, multiplier, &mut wide);
            numbers.extend(wide.iter().map(|number| f32::from(*number) * unit));
        }
    }
}

/// The unit in which the largest scale of a row becomes a multiplier of 127. Without their signs, numbers of half precision have the
/// order of their bits, and many integers are compared at once.
fn unit(scales: &[[u8; 2]]) -> f32 {
    let sizes = scales
        .iter()
        .map(|scale| u16::from_le_bytes(*scale) & 0x7fff);
    let largest = widen_half(sizes.max().unwrap_or_default().to_le_bytes());
    largest.max(f32::MIN_POSITIVE) / f32::from(i8::MAX)
}

/// Rounds a number that was scaled to fit. The addition of a large number leaves no bits for a fraction, so the low
/// bits of the sum are the integer.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the number was scaled to fit"
)]
pub(crate) fn round(value: f32) -> i16 {
    const SHIFT: f32 = 12_582_912.0;
    ((value + SHIFT).to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32) as i16
}

impl<'a> Linear<'a> {
    pub(crate) fn new(matrix: Matrix<'a>, bias: Vec<f32>) -> Self {
        let (mut units, mut multipliers) = (
            Vec::with_capacity(matrix.rows),
            Vec::with_capacity(matrix.scales.len()),
        );
        for row in 0..matrix.rows {
            let (unit, of_row) = matrix.multipliers(row);
            units.push(unit);
            #[expect(clippy::cast_possible_truncation, reason = "the unit makes them fit")]
            multipliers.extend(of_row.map(|multiplier| multiplier as i8));
        }
        Self {
            matrix,
            multipliers,
            units,
            bias,
        }
    }

    pub(crate) fn outputs(&self) -> usize {
        self.matrix.rows
    }

    /// Writes the products with all tokens of `input` into `output`, a row per token.
    #[inline(always)]
    pub(crate) fn apply<L: Lanes>(&self, lanes: L, input: &Quantised, output: &mut Vec<f32>) {
        let (width, outputs) = (self.matrix.inputs, self.matrix.rows);
        output.resize(input.scales.len() * outputs, 0.0);
        let mut panel = vec![0i16; ROWS * width];
        for first in (0..outputs).step_by(ROWS) {
            for (row, wide) in (first..outputs).zip(panel.chunks_exact_mut(width)) {
                let multipliers = &self.multipliers[row * width / GROUP..][..width / GROUP];
                let groups = self
                    .matrix
                    .packed(row)
                    .iter()
                    .zip(wide.as_chunks_mut::<GROUP>().0);
                for ((packed, wide), multiplier) in groups.zip(multipliers) {
                    lanes.unpack(packed, i16::from(*multiplier), wide);
                }
            }
            let rows = ROWS.min(outputs - first);
            let (units, bias) = (
                &self.units[first..first + rows],
                &self.bias[first..first + rows],
            );
            let mut products = [[0; ROWS]; 4];
            let tokens = input
                .values
                .chunks(L::TOKENS * width)
                .zip(input.scales.chunks(L::TOKENS));
            for ((values, scales), output) in tokens.zip(output.chunks_mut(L::TOKENS * outputs)) {
                match scales.len() {
                    1 => sums::<L, 1>(lanes, &panel, values, width, &mut products),
                    2 => sums::<L, 2>(lanes, &panel, values, width, &mut products),
                    3 => sums::<L, 3>(lanes, &panel, values, width, &mut products),
                    _ => sums::<L, 4>(lanes, &panel, values, width, &mut products),
                }
                for (token, scale) in scales.iter().enumerate() {
                    let output = &mut output[token * outputs + first..][..rows];
                    for row in 0..rows {
                        output[row] =
                            products[token][row] as f32 * (units[row] * scale) + bias[row];
                    }
                }
            }
        }
    }
}

/// Writes the dot products of `N` tokens with each row of the panel.
#[inline(always)]
fn sums<L: Lanes, const N: usize>(
    lanes: L,
    panel: &[i16],
    tokens: &[i16],
    width: usize,
    products: &mut [[i32; ROWS]; 4],
) {
    let mut sums = [[lanes.zero(); ROWS]; N];
    let mut rows: [&[[i16; STEP]]; ROWS] = [&[]; ROWS];
    for row in 0..ROWS {
        rows[row] = steps(&panel[row * width..][..width]);
    }
    let mut inputs: [&[[i16; STEP]]; N] = [&[]; N];
    for token in 0..N {
        inputs[token] = steps(&tokens[token * width..][..width]);
    }
    for step in 0..width / STEP {
        for token in 0..N {
            for row in 0..ROWS {
                sums[token][row] =
                    lanes.multiply_add(sums[token][row], &rows[row][step], &inputs[token][step]);
            }
        }
    }
    for token in 0..N {
        products[token] = lanes.totals(sums[token]);
    }
}

#[inline(always)]
fn steps(row: &[i16]) -> &[[i16; STEP]] {
    row.as_chunks().0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Work, with_lanes};

    /// Repeatable random-looking numbers.
    fn numbers(seed: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(seed), |n| {
            Some(n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
        })
        .skip(1)
        .map(|n| n >> 8)
    }

    /// The product, which must be equal with every kind of vector instructions.
    fn product(linear: &Linear<'_>, input: &[f32]) -> Vec<f32> {
        struct Product<'a>(&'a Linear<'a>, &'a [f32], &'a mut Vec<f32>);
        impl Work for Product<'_> {
            #[inline(always)]
            fn run<L: Lanes>(self, lanes: L) {
                let mut quantised = Quantised::default();
                quantised.fill(self.1, self.0.matrix.inputs);
                self.0.apply(lanes, &quantised, self.2);
            }
        }
        let (mut best, mut plain) = (Vec::new(), Vec::new());
        with_lanes(Product(linear, input, &mut best));
        Product(linear, input, &mut plain).run(Plain);
        assert_eq!(best, plain);
        best
    }

    #[test]
    fn products_are_what_plain_sums_give() {
        for (inputs, rows, tokens) in [(64, 4, 1), (384, 7, 3), (1_536, 5, 4)] {
            let packed: Vec<u8> = numbers(1)
                .take(inputs * rows / 2)
                .map(|n| n.to_le_bytes()[0])
                .collect();
            // Numbers of both signs, from 0.5 to 2.
            let scale =
                |n: u32| u16::try_from(0x3800 + n % 0x800 + (n >> 12 & 1) * 0x8000).unwrap();
            let scales: Vec<[u8; 2]> = numbers(2)
                .take(inputs / GROUP * rows)
                .map(|n| scale(n).to_le_bytes())
                .collect();
            let bias: Vec<f32> = numbers(4)
                .take(rows)
                .map(|n| (n % 100) as f32 / 10.0)
                .collect();
            let matrix = Matrix {
                packed: &packed,
                scales: &scales,
                rows,
                inputs,
            };
            let input: Vec<f32> = numbers(7)
                .take(tokens * inputs)
                .map(|n| (n % 2_001) as f32 / 1e3 - 1.0)
                .collect();
            let output = product(&Linear::new(matrix, bias.clone()), &input);
            for (token, output) in input.chunks(inputs).zip(output.chunks(rows)) {
                for row in 0..rows {
                    let weights = exact(&matrix, row);
                    let exact: f32 =
                        weights.iter().zip(token).map(|(w, x)| w * x).sum::<f32>() + bias[row];
                    let norm = weights.iter().map(|w| w * w).sum::<f32>().sqrt();
                    assert!(
                        (exact - output[row]).abs() < 0.02 * norm,
                        "{exact} is not {}",
                        output[row]
                    );
                }
            }
        }
    }

    /// A row as floats, computed in plain steps.
    fn exact(matrix: &Matrix<'_>, row: usize) -> Vec<f32> {
        let weight = |at: usize| {
            let group = (row * matrix.inputs + at) / GROUP;
            let (byte, is_high) = (
                group * GROUP / 2 + at % (GROUP / 2),
                at % GROUP >= GROUP / 2,
            );
            let step = if is_high {
                matrix.packed[byte] >> 4
            } else {
                matrix.packed[byte] & 15
            };
            (f32::from(step) - 8.0) * widen_half(matrix.scales[group])
        };
        (0..matrix.inputs).map(weight).collect()
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let (packed, scales) = (vec![0u8; 768], vec![0x3c00u16.to_le_bytes(); 48]);
        let matrix = Matrix {
            packed: &packed,
            scales: &scales,
            rows: 1,
            inputs: 1_536,
        };
        let output = product(&Linear::new(matrix, vec![0.0]), &[1.0; 1_536]);
        let expected = -8.0 * 1_536.0;
        assert!(
            (output[0] / expected - 1.0).abs() < 1e-4,
            "{} is not {expected}",
            output[0]
        );
    }
}
