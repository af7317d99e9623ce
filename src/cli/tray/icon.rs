//! The picture of the item: the mark of mcpzip, drawn, so that no theme need have it.

use ksni::Icon;

use super::state::{Daemon, State};

/// The sides of the pictures that panels can choose from.
const SIDES: [u8; 4] = [16, 22, 32, 48];

/// The mark is drawn in a square of this side.
const SQUARE: f32 = 32.0;

/// The strokes of the mark: their ends.
const STROKES: [[f32; 4]; 6] = [
    [4.0, 6.0, 10.0, 6.0],
    [10.0, 6.0, 15.0, 16.0],
    [4.0, 16.0, 15.0, 16.0],
    [4.0, 26.0, 10.0, 26.0],
    [10.0, 26.0, 15.0, 16.0],
    [17.0, 16.0, 28.0, 16.0],
];
const HALF_WIDTH: f32 = 1.7;
const KNOT: [f32; 3] = [16.0, 16.0, 3.6];

/// The two bars of a pause, and the dot of calls that wait: below and above the long stroke.
const BARS: [[f32; 4]; 2] = [[21.0, 21.5, 21.0, 28.5], [27.0, 21.5, 27.0, 28.5]];
const DOT: [f32; 3] = [24.5, 6.5, 5.5];

const TEAL: [u8; 3] = [0x14, 0xb8, 0xa6];
const GREY: [u8; 3] = [0x8b, 0x93, 0x9e];
const AMBER: [u8; 3] = [0xf5, 0x9e, 0x0b];
const RED: [u8; 3] = [0xf4, 0x3f, 0x5e];

/// The picture of a state, in several sizes.
pub(super) fn drawn(state: &State) -> Vec<Icon> {
    let draw = |side: &u8| {
        let pixels = 0..usize::from(*side) * usize::from(*side);
        let data = pixels.flat_map(|at| pixel(state, at, *side));
        Icon {
            width: i32::from(*side),
            height: i32::from(*side),
            data: data.collect(),
        }
    };
    SIDES.iter().map(draw).collect()
}

/// A pixel as alpha, red, green and blue: the mean of nine points in it.
fn pixel(state: &State, at: usize, side: u8) -> [u8; 4] {
    const POINTS: [f32; 3] = [1.0 / 6.0, 0.5, 5.0 / 6.0];
    let side = usize::from(side);
    let (x, y) = (at % side, at / side);
    let mut sums = [0_u32; 4];
    for (right, below) in POINTS
        .iter()
        .flat_map(|right| POINTS.map(|below| (right, below)))
    {
        let scaled = |at: usize, part: f32| (small(at) + part) * SQUARE / small(side);
        if let Some(colour) = point(state, scaled(x, *right), scaled(y, below)) {
            sums[0] += 1;
            (0..3).for_each(|one| sums[one + 1] += u32::from(colour[one]));
        }
    }
    let [hit, colours @ ..] = sums;
    let mean = |sum: u32| u8::try_from(sum / hit.max(1)).unwrap_or(u8::MAX);
    let alpha = u8::try_from(hit * 255 / 9).unwrap_or(u8::MAX);
    let [red, green, blue] = colours.map(mean);
    [alpha, red, green, blue]
}

fn small(number: usize) -> f32 {
    f32::from(u16::try_from(number).unwrap_or(u16::MAX))
}

/// The colour of a point of the square, if it is on the mark.
fn point(state: &State, x: f32, y: f32) -> Option<[u8; 3]> {
    let is_on = |[from_x, from_y, to_x, to_y]: [f32; 4]| {
        let (along, down) = (to_x - from_x, to_y - from_y);
        let length = along * along + down * down;
        let part = (((x - from_x) * along + (y - from_y) * down) / length).clamp(0.0, 1.0);
        let (dx, dy) = (x - from_x - part * along, y - from_y - part * down);
        dx * dx + dy * dy <= HALF_WIDTH * HALF_WIDTH
    };
    let is_in = |[centre_x, centre_y, radius]: [f32; 3]| {
        let (dx, dy) = (x - centre_x, y - centre_y);
        dx * dx + dy * dy <= radius * radius
    };
    if state.waiting > 0 && is_in(DOT) {
        return Some(RED);
    }
    if state.is_paused && BARS.into_iter().any(is_on) {
        return Some(AMBER);
    }
    let colour = match (&state.daemon, state.is_paused) {
        (_, true) => AMBER,
        (Daemon::Running { .. }, false) => TEAL,
        _ => GREY,
    };
    (is_in(KNOT) || STROKES.into_iter().any(is_on)).then_some(colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_a_picture_of_its_own_in_each_size() {
        let running = Daemon::Running {
            servers: 1,
            failed: 0,
            sessions: 1,
        };
        let state = |daemon: &Daemon, is_paused, waiting| State {
            daemon: daemon.clone(),
            is_paused,
            waiting,
            fault: None,
        };
        let states = [
            state(&Daemon::Absent, false, 0),
            state(&running, false, 0),
            state(&running, true, 0),
            state(&running, false, 2),
            state(&running, true, 2),
        ];
        let drawn: Vec<Vec<Icon>> = states.iter().map(drawn).collect();
        for (at, icons) in drawn.iter().enumerate() {
            for icon in icons {
                let side = usize::try_from(icon.width).unwrap();
                assert_eq!(icon.data.len(), side * side * 4);
                // The corners are clear, and the knot is not.
                assert_eq!(icon.data[0], 0);
                assert_eq!(icon.data[(side * side / 2 + side / 2) * 4], 255);
            }
            for other in &drawn[at + 1..] {
                assert!(
                    icons
                        .iter()
                        .zip(other)
                        .all(|(one, two)| one.data != two.data)
                );
            }
        }
    }
}
