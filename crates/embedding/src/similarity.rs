//! The similarity of a vector to many vectors that are stored as bytes.

use crate::kernel::round;
use crate::simd::{Lanes, STEP, Work, with_lanes};

/// The products of `vector` with each row of `rows`, vectors of bytes of the same width. If all vectors have length 1,
/// these are cosines up to the scale of the row.
#[must_use]
pub fn products(vector: &[f32], rows: &[u8]) -> Vec<f32> {
    let mut found = Vec::with_capacity(rows.len() / vector.len().max(1));
    let largest = vector
        .iter()
        .fold(f32::MIN_POSITIVE, |largest, value| largest.max(value.abs()));
    let factor = f32::from(i16::MAX) / 4.0 / largest;
    let query = vector.iter().map(|value| round(value * factor)).collect();
    with_lanes(Scan {
        query,
        unit: 1.0 / factor,
        rows,
        found: &mut found,
    });
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
        let steps = self.query.as_chunks::<STEP>().0;
        for rows in self.rows.chunks(4 * self.query.len()) {
            let mut sums = [lanes.zero(); 4];
            for (row, sum) in rows.chunks_exact(self.query.len()).zip(&mut sums) {
                for (step, part) in steps.iter().zip(row.as_chunks::<STEP>().0) {
                    *sum = lanes.multiply_add_bytes(*sum, step, part);
                }
            }
            for total in lanes
                .totals(sums)
                .into_iter()
                .take(rows.len() / self.query.len())
            {
                self.found.push(total as f32 * self.unit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_what_plain_sums_give() {
        let vector: Vec<f32> = (0..96).map(|at| (at as f32).sin()).collect();
        let rows: Vec<u8> = (0..96 * 7u32)
            .map(|at| (at * 37 % 256).to_le_bytes()[0])
            .collect();
        let found = products(&vector, &rows);
        assert_eq!(found.len(), 7);
        for (found, row) in found.iter().zip(rows.chunks(96)) {
            let exact: f32 = row
                .iter()
                .zip(&vector)
                .map(|(a, b)| f32::from(a.cast_signed()) * b)
                .sum();
            assert!((found - exact).abs() < 0.5, "{found} is not {exact}");
        }
    }
}
