//! The forward pass: from pieces to one vector per text.
//!
//! Texts of any length are computed together, their tokens in consecutive rows. A widened matrix serves all of them,
//! and nothing is computed for padding. Only attention depends on where a text begins and ends.

use std::ops::Range;

use crate::asset::{Asset, Layer, Norm};
use crate::kernel::Quantised;
use crate::simd::{Lanes, Work, with_lanes};

/// Runs `texts`, lists of piece ids that are neither empty nor longer than the asset's positions. Returns a row of the
/// asset's width and of length 1 per text.
pub(crate) fn run(asset: &Asset<'_>, texts: &[Vec<u32>]) -> Vec<f32> {
    let width = asset.width;
    let mut spans = Vec::with_capacity(texts.len());
    let mut states = Vec::new();
    for ids in texts {
        let first = states.len() / width;
        for (position, id) in ids.iter().enumerate() {
            asset.embed(*id, position, &mut states);
        }
        spans.push(first..first + ids.len());
    }
    with_lanes(Pass {
        asset,
        spans: &spans,
        states: &mut states,
    });
    spans
        .into_iter()
        .flat_map(|span| mean(&states[span.start * width..span.end * width], width))
        .collect()
}

/// The layers applied to the states of all tokens.
struct Pass<'a> {
    asset: &'a Asset<'a>,
    spans: &'a [Range<usize>],
    states: &'a mut [f32],
}

impl Work for Pass<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self {
            asset,
            spans,
            states,
        } = self;
        normalise(&asset.norm, asset.epsilon, states);
        let mut room = Room::default();
        for layer in &asset.layers {
            room.apply(lanes, asset, layer, spans, states);
        }
    }
}

/// The buffers of the layers, reused from one to the next.
#[derive(Default)]
struct Room {
    quantised: Quantised,
    projected: Vec<f32>,
    attended: Vec<f32>,
    output: Vec<f32>,
}

impl Room {
    #[inline(always)]
    fn apply<L: Lanes>(
        &mut self,
        lanes: L,
        asset: &Asset<'_>,
        layer: &Layer<'_>,
        spans: &[Range<usize>],
        states: &mut [f32],
    ) {
        let width = asset.width;
        self.quantised.fill(states, width);
        layer
            .attention
            .apply(lanes, &self.quantised, &mut self.projected);
        self.attended.clear();
        self.attended.resize(states.len(), 0.0);
        for span in spans {
            let projected = &self.projected[span.start * 3 * width..span.end * 3 * width];
            let attended = &mut self.attended[span.start * width..span.end * width];
            attend(projected, attended, width, asset.heads);
        }
        self.quantised.fill(&self.attended, width);
        layer
            .attention_output
            .apply(lanes, &self.quantised, &mut self.output);
        add(&self.output, &layer.attention_norm, asset.epsilon, states);

        self.quantised.fill(states, width);
        layer
            .wide
            .apply(lanes, &self.quantised, &mut self.projected);
        for value in &mut self.projected {
            *value = gelu(*value);
        }
        self.quantised.fill(&self.projected, layer.wide.outputs());
        layer.narrow.apply(lanes, &self.quantised, &mut self.output);
        add(&self.output, &layer.norm, asset.epsilon, states);
    }
}

/// Adds `change` to the states and normalises them.
#[inline(always)]
fn add(change: &[f32], norm: &Norm, epsilon: f32, states: &mut [f32]) {
    for (state, change) in states.iter_mut().zip(change) {
        *state += change;
    }
    normalise(norm, epsilon, states);
}

/// Normalises each token to mean 0 and variance 1, then applies the learned scale and offset.
#[inline(always)]
fn normalise(norm: &Norm, epsilon: f32, states: &mut [f32]) {
    let width = norm.scale.len();
    for token in states.chunks_exact_mut(width) {
        let mean = sum(token) / width as f32;
        let variance = spread(token, mean) / width as f32;
        let factor = 1.0 / (variance + epsilon).sqrt();
        for ((value, scale), shift) in token.iter_mut().zip(&norm.scale).zip(&norm.shift) {
            *value = (*value - mean) * factor * scale + shift;
        }
    }
}

/// The attention of one text: for each token and head, the weighted sum of all tokens' values. `projected` has a row of
/// queries, keys and values per token; the queries are scaled already.
#[inline(always)]
fn attend(projected: &[f32], attended: &mut [f32], width: usize, heads: usize) {
    let tokens = attended.len() / width;
    let size = width / heads;
    let mut keys = vec![0.0; size * tokens];
    let mut weights = vec![0.0; tokens];
    for head in 0..heads {
        for (token, projected) in projected.chunks_exact(3 * width).enumerate() {
            for (row, key) in projected[width + head * size..][..size].iter().enumerate() {
                keys[row * tokens + token] = *key;
            }
        }
        for (token, projected_token) in projected.chunks_exact(3 * width).enumerate() {
            weights.fill(0.0);
            for (query, keys) in projected_token[head * size..][..size]
                .iter()
                .zip(keys.chunks_exact(tokens))
            {
                for (weight, key) in weights.iter_mut().zip(keys) {
                    *weight += query * key;
                }
            }
            soften(&mut weights);
            let mixed = &mut attended[token * width + head * size..][..size];
            for (weight, projected) in weights.iter().zip(projected.chunks_exact(3 * width)) {
                for (mixed, value) in mixed
                    .iter_mut()
                    .zip(&projected[2 * width + head * size..][..size])
                {
                    *mixed += weight * value;
                }
            }
        }
    }
}

/// The softmax.
#[inline(always)]
fn soften(weights: &mut [f32]) {
    let mut largest = f32::MIN;
    for weight in weights.iter() {
        largest = largest.max(*weight);
    }
    for weight in weights.iter_mut() {
        *weight = exp(*weight - largest);
    }
    let factor = 1.0 / sum(weights);
    for weight in weights.iter_mut() {
        *weight *= factor;
    }
}

/// The mean of a text's tokens, normalised to length 1.
fn mean(states: &[f32], width: usize) -> Vec<f32> {
    let mut vector = vec![0.0; width];
    for token in states.chunks_exact(width) {
        vector
            .iter_mut()
            .zip(token)
            .for_each(|(sum, value)| *sum += value);
    }
    let length = spread(&vector, 0.0).sqrt().max(f32::MIN_POSITIVE);
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

/// The sum of the values, computed in as many parallel sums as vectors have room for.
#[inline(always)]
fn sum(values: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    let (parts, rest) = values.as_chunks::<16>();
    for part in parts {
        for lane in 0..16 {
            sums[lane] += part[lane];
        }
    }
    let mut total = 0.0;
    for value in sums.iter().chain(rest) {
        total += value;
    }
    total
}

/// The sum of the squared differences from `mean`.
#[inline(always)]
fn spread(values: &[f32], mean: f32) -> f32 {
    let mut sums = [0.0; 16];
    let (parts, rest) = values.as_chunks::<16>();
    for part in parts {
        for lane in 0..16 {
            sums[lane] += (part[lane] - mean) * (part[lane] - mean);
        }
    }
    let mut total = 0.0;
    for value in rest {
        total += (value - mean) * (value - mean);
    }
    for sum in sums {
        total += sum;
    }
    total
}

/// `x * Φ(x)` with the normal distribution Φ, by Abramowitz and Stegun 7.1.26 with an error below 2e-7.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    let z = (x * std::f32::consts::FRAC_1_SQRT_2).abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let polynomial = ((((1.061_405_4 * t - 1.453_152) * t + 1.421_413_8) * t - 0.284_496_74) * t
        + 0.254_829_6)
        * t;
    let tail = 0.5 * polynomial * exp(-z * z);
    x * if x < 0.0 { tail } else { 1.0 - tail }
}

/// The exponential of a number that is not positive: a power of two from the bits, times a series for the rest.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    let r = (x - whole * 0.693_359_4) + whole * 2.121_944_4e-4;
    let series = 1.0
        + r * (1.0
            + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r / 720.0)))));
    power * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_right_below_zero() {
        for n in 0..8_600u16 {
            let x = -f32::from(n) / 100.0;
            let exact = f64::from(x).exp();
            assert!(
                (f64::from(exp(x)) / exact - 1.0).abs() < 1e-6,
                "exp({x}) is {}, not {exact}",
                exp(x)
            );
        }
        assert!(exp(-1e30) < 1e-37);
    }

    #[test]
    fn gelu_is_right_at_known_points() {
        for (x, exact) in [
            (0.0, 0.0),
            (1.0, 0.841_344_8),
            (-1.0, -0.158_655_25),
            (2.5, 2.484_475_8),
            (-3.0, -0.004_049_694),
        ] {
            assert!(
                (gelu(x) - exact).abs() < 1e-6,
                "gelu({x}) is {}, not {exact}",
                gelu(x)
            );
        }
    }

    #[test]
    fn softened_weights_are_a_distribution() {
        let mut weights = [0.0, -1.0, 3.0, -100.0];
        soften(&mut weights);
        assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!(
            (weights[2] / weights[0] - 20.085_537).abs() < 1e-3,
            "{weights:?}"
        );
    }
}
