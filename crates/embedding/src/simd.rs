//! The widest vector instructions of the processor, detected at run time and used without unsafe code.

#[cfg(target_arch = "x86_64")]
use pulp::x86::V3;

/// Number of parallel sums.
pub(crate) const LANES: usize = 8;

/// How a kind of processor multiplies and adds.
pub(crate) trait Lanes: Copy {
    /// [`LANES`] sums.
    type Sum: Copy;

    fn zero(self) -> Self::Sum;

    /// Adds the products of neighbouring numbers to the sums.
    fn multiply_add(self, sum: Self::Sum, a: &[i16; LANES * 2], b: &[i16; LANES * 2]) -> Self::Sum;

    /// [`Lanes::multiply_add`] for signed bytes.
    fn multiply_add_bytes(
        self,
        sum: Self::Sum,
        a: &[i16; LANES * 2],
        b: &[u8; LANES * 2],
    ) -> Self::Sum;

    /// The total of each of four [`LANES`] sums.
    fn totals(self, sums: [Self::Sum; 4]) -> [i32; 4];

    /// Unpacks two numbers per byte, the low halves first. Each number is reduced by 8 and multiplied by `multiplier`.
    fn unpack(self, packed: &[u8; LANES * 2], multiplier: i16, wide: &mut [i16; LANES * 4]);
}

/// Work that uses vectors. All functions that it calls must be inlined, because other functions are compiled for the
/// oldest processor.
pub(crate) trait Work {
    fn run<L: Lanes>(self, lanes: L);
}

/// Vectors that the compiler makes of plain code.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl Lanes for Plain {
    type Sum = [i32; LANES];

    #[inline(always)]
    fn zero(self) -> Self::Sum {
        [0; LANES]
    }

    #[inline(always)]
    fn multiply_add(
        self,
        mut sum: Self::Sum,
        a: &[i16; LANES * 2],
        b: &[i16; LANES * 2],
    ) -> Self::Sum {
        for lane in 0..LANES {
            sum[lane] += i32::from(a[2 * lane]) * i32::from(b[2 * lane])
                + i32::from(a[2 * lane + 1]) * i32::from(b[2 * lane + 1]);
        }
        sum
    }

    #[inline(always)]
    fn multiply_add_bytes(
        self,
        sum: Self::Sum,
        a: &[i16; LANES * 2],
        b: &[u8; LANES * 2],
    ) -> Self::Sum {
        self.multiply_add(sum, a, &b.map(|byte| i16::from(byte.cast_signed())))
    }

    #[inline(always)]
    fn totals(self, sums: [Self::Sum; 4]) -> [i32; 4] {
        sums.map(|sum| sum.iter().sum())
    }

    #[inline(always)]
    fn unpack(self, packed: &[u8; LANES * 2], multiplier: i16, wide: &mut [i16; LANES * 4]) {
        let (low, high) = wide.split_at_mut(LANES * 2);
        for (low, byte) in low.iter_mut().zip(packed) {
            *low = (i16::from(byte & 15) - 8) * multiplier;
        }
        for (high, byte) in high.iter_mut().zip(packed) {
            *high = (i16::from(byte >> 4) - 8) * multiplier;
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for V3 {
    type Sum = pulp::i32x8;

    #[inline(always)]
    fn zero(self) -> Self::Sum {
        self.splat_i32x8(0)
    }

    #[inline(always)]
    fn multiply_add(self, sum: Self::Sum, a: &[i16; LANES * 2], b: &[i16; LANES * 2]) -> Self::Sum {
        let products = self.multiply_wrapping_add_adjacent_i16x16(pulp::cast(*a), pulp::cast(*b));
        self.wrapping_add_i32x8(sum, products)
    }

    #[inline(always)]
    fn multiply_add_bytes(
        self,
        sum: Self::Sum,
        a: &[i16; LANES * 2],
        b: &[u8; LANES * 2],
    ) -> Self::Sum {
        self.multiply_add(
            sum,
            a,
            &pulp::cast(self.convert_i8x16_to_i16x16(pulp::cast(*b))),
        )
    }

    #[inline(always)]
    fn totals(self, [a, b, c, d]: [Self::Sum; 4]) -> [i32; 4] {
        let (ab, cd) = (
            self.horizontal_add_pack_i32x8(a, b),
            self.horizontal_add_pack_i32x8(c, d),
        );
        let [low, high]: [[i32; 4]; 2] = pulp::cast(self.horizontal_add_pack_i32x8(ab, cd));
        [
            low[0] + high[0],
            low[1] + high[1],
            low[2] + high[2],
            low[3] + high[3],
        ]
    }

    #[inline(always)]
    fn unpack(self, packed: &[u8; LANES * 2], multiplier: i16, wide: &mut [i16; LANES * 4]) {
        let bytes = self.convert_u8x16_to_i16x16(pulp::cast(*packed));
        let (eight, multiplier) = (self.splat_i16x16(8), self.splat_i16x16(multiplier));
        let low = self.and_i16x16(bytes, self.splat_i16x16(15));
        let high = self.shr_const_i16x16::<4>(bytes);
        // A closure in `map` would not be inlined, and each instruction would become a call.
        let low = self.wrapping_mul_i16x16(self.wrapping_sub_i16x16(low, eight), multiplier);
        let high = self.wrapping_mul_i16x16(self.wrapping_sub_i16x16(high, eight), multiplier);
        *wide = pulp::cast([low, high]);
    }
}

/// Runs `work` with the best vectors of this processor.
pub(crate) fn with_lanes(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = V3::try_new() {
        return simd.vectorize(Vectorized { work, simd });
    }
    work.run(Plain);
}

/// A closure cannot be forced to be inlined, so this is a type.
#[cfg(target_arch = "x86_64")]
struct Vectorized<W> {
    work: W,
    simd: V3,
}

#[cfg(target_arch = "x86_64")]
impl<W: Work> pulp::NullaryFnOnce for Vectorized<W> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.work.run(self.simd);
    }
}
