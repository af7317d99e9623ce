//! How near one vector is to many.

use crate::kernel::round;
use crate::simd::{LANES, Lanes, Work, with_lanes};

/// A vector in bytes, as it is kept: a quarter of the size, and the cosine changes in the third digit only.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// What the numbers are to be multiplied by.
    pub scale: f32,
    /// The numbers, signed.
    pub bytes: Vec<u8>,
}

impl Vector {
    /// The nearest vector in bytes.
    #[must_use]
    pub fn new(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(f32::MIN_POSITIVE, |largest, value| largest.max(value.abs()));
        let factor = f32::from(i8::MAX) / largest;
        let bytes = vector.iter().map(|value| round(value * factor).to_le_bytes()[0]).collect();
        Self { scale: 1.0 / factor, bytes }
    }
}

/// The products of `vector` with each row of `rows`, vectors in bytes of the same width: their cosines, where all have
/// length 1. The row's scale is yet to be multiplied with.
#[must_use]
pub fn similarities(vector: &[f32], rows: &[u8]) -> Vec<f32> {
    let mut found = Vec::with_capacity(rows.len() / vector.len().max(1));
    let largest = vector.iter().fold(f32::MIN_POSITIVE, |largest, value| largest.max(value.abs()));
    let factor = f32::from(i16::MAX) / 4.0 / largest;
    let query = vector.iter().map(|value| round(value * factor)).collect();
    with_lanes(Scan { query, unit: 1.0 / factor, rows, found: &mut found });
    found
}

struct Scan<'a> {
    query: Vec<i16>,
    unit: f32,
    rows: &'a [u8],
    found: &'a mut Vec<f32>,
}

impl Work for Scan<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let steps = self.query.as_chunks::<{ LANES * 2 }>().0;
        for rows in self.rows.chunks(4 * self.query.len()) {
            let mut sums = [lanes.zero(); 4];
            for (row, sum) in rows.chunks_exact(self.query.len()).zip(&mut sums) {
                for (step, part) in steps.iter().zip(row.as_chunks::<{ LANES * 2 }>().0) {
                    *sum = lanes.multiply_add_bytes(*sum, step, part);
                }
            }
            for total in lanes.totals(sums).into_iter().take(rows.len() / self.query.len()) {
                self.found.push(total as f32 * self.unit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similarity_is_the_cosine() {
        let unit = |vector: Vec<f32>| {
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.into_iter().map(|x| x / length).collect::<Vec<_>>()
        };
        let vectors: Vec<Vec<f32>> =
            (1..5).map(|n| unit((0..96).map(|at| ((at * n) as f32).sin()).collect())).collect();
        let kept: Vec<Vector> = vectors.iter().map(|vector| Vector::new(vector)).collect();
        let rows: Vec<u8> = kept.iter().flat_map(|vector| vector.bytes.clone()).collect();
        for vector in &vectors {
            for ((found, kept), other) in similarities(vector, &rows).iter().zip(&kept).zip(&vectors) {
                let exact: f32 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
                assert!((found * kept.scale - exact).abs() < 0.01, "{} is not {exact}", found * kept.scale);
            }
        }
    }
}
