//! The widest vector instructions of the processor, detected at run time and used without unsafe code.

#[cfg(target_arch = "x86_64")]
use pulp::x86::{V3, V4};

/// The number of products that are added in one step.
pub(crate) const STEP: usize = 32;

/// How a kind of processor multiplies and adds.
pub(crate) trait Lanes: Copy {
    /// Parallel sums.
    type Sum: Copy;

    /// The number of tokens whose sums fit into the registers, each with four rows: 1 to 4.
    const TOKENS: usize;

    fn zero(self) -> Self::Sum;

    /// Adds the products of the numbers to the sums.
    fn multiply_add(self, sum: Self::Sum, a: &[i16; STEP], b: &[i16; STEP]) -> Self::Sum;

    /// [`Lanes::multiply_add`] for signed bytes.
    fn multiply_add_bytes(self, sum: Self::Sum, a: &[i16; STEP], b: &[u8; STEP]) -> Self::Sum;

    /// The total of each of four sums.
    fn totals(self, sums: [Self::Sum; 4]) -> [i32; 4];

    /// Unpacks two numbers per byte, the low halves first. Each number is reduced by 8 and multiplied by `multiplier`.
    fn unpack(self, packed: &[u8; STEP / 2], multiplier: i16, wide: &mut [i16; STEP]);
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
    type Sum = [i32; 8];

    const TOKENS: usize = 2;

    #[inline(always)]
    fn zero(self) -> Self::Sum {
        [0; 8]
    }

    #[inline(always)]
    fn multiply_add(self, mut sum: Self::Sum, a: &[i16; STEP], b: &[i16; STEP]) -> Self::Sum {
        for at in 0..STEP / 2 {
            sum[at % 8] += i32::from(a[2 * at]) * i32::from(b[2 * at])
                + i32::from(a[2 * at + 1]) * i32::from(b[2 * at + 1]);
        }
        sum
    }

    #[inline(always)]
    fn multiply_add_bytes(self, sum: Self::Sum, a: &[i16; STEP], b: &[u8; STEP]) -> Self::Sum {
        self.multiply_add(sum, a, &b.map(|byte| i16::from(byte.cast_signed())))
    }

    #[inline(always)]
    fn totals(self, sums: [Self::Sum; 4]) -> [i32; 4] {
        sums.map(|sum| sum.iter().sum())
    }

    #[inline(always)]
    fn unpack(self, packed: &[u8; STEP / 2], multiplier: i16, wide: &mut [i16; STEP]) {
        let (low, high) = wide.split_at_mut(STEP / 2);
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

    const TOKENS: usize = 2;

    #[inline(always)]
    fn zero(self) -> Self::Sum {
        self.splat_i32x8(0)
    }

    #[inline(always)]
    fn multiply_add(self, sum: Self::Sum, a: &[i16; STEP], b: &[i16; STEP]) -> Self::Sum {
        let ([a, more_a], [b, more_b]): ([pulp::i16x16; 2], [pulp::i16x16; 2]) =
            (pulp::cast(*a), pulp::cast(*b));
        let products = self.multiply_wrapping_add_adjacent_i16x16(a, b);
        let sum = self.wrapping_add_i32x8(sum, products);
        let products = self.multiply_wrapping_add_adjacent_i16x16(more_a, more_b);
        self.wrapping_add_i32x8(sum, products)
    }

    #[inline(always)]
    fn multiply_add_bytes(self, sum: Self::Sum, a: &[i16; STEP], b: &[u8; STEP]) -> Self::Sum {
        let [b, more]: [pulp::i8x16; 2] = pulp::cast(*b);
        let (b, more) = (
            self.convert_i8x16_to_i16x16(b),
            self.convert_i8x16_to_i16x16(more),
        );
        self.multiply_add(sum, a, &pulp::cast([b, more]))
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
    fn unpack(self, packed: &[u8; STEP / 2], multiplier: i16, wide: &mut [i16; STEP]) {
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

#[cfg(target_arch = "x86_64")]
impl Lanes for V4 {
    type Sum = pulp::i32x16;

    const TOKENS: usize = 4;

    #[inline(always)]
    fn zero(self) -> Self::Sum {
        self.splat_i32x16(0)
    }

    #[inline(always)]
    fn multiply_add(self, sum: Self::Sum, a: &[i16; STEP], b: &[i16; STEP]) -> Self::Sum {
        let products = self.multiply_wrapping_add_adjacent_i16x32(pulp::cast(*a), pulp::cast(*b));
        let sum = self.wrapping_add_u32x16(pulp::cast(sum), pulp::cast(products));
        pulp::cast(sum)
    }

    #[inline(always)]
    fn multiply_add_bytes(self, sum: Self::Sum, a: &[i16; STEP], b: &[u8; STEP]) -> Self::Sum {
        self.multiply_add(
            sum,
            a,
            &pulp::cast(self.convert_i8x32_to_i16x32(pulp::cast(*b))),
        )
    }

    #[inline(always)]
    fn totals(self, [a, b, c, d]: [Self::Sum; 4]) -> [i32; 4] {
        let narrow: V3 = *self;
        let half = |sum: Self::Sum| {
            let [low, high]: [pulp::i32x8; 2] = pulp::cast(sum);
            narrow.wrapping_add_i32x8(low, high)
        };
        narrow.totals([half(a), half(b), half(c), half(d)])
    }

    #[inline(always)]
    fn unpack(self, packed: &[u8; STEP / 2], multiplier: i16, wide: &mut [i16; STEP]) {
        let narrow: V3 = *self;
        narrow.unpack(packed, multiplier, wide);
    }
}

/// Runs `work` with the best vectors of this processor.
pub(crate) fn with_lanes(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = V4::try_new() {
            return simd.vectorize(Vectorized { work, simd });
        }
        if let Some(simd) = V3::try_new() {
            return simd.vectorize(Vectorized { work, simd });
        }
    }
    work.run(Plain);
}

/// A closure cannot be forced to be inlined, so this is a type.
#[cfg(target_arch = "x86_64")]
struct Vectorized<W, L> {
    work: W,
    simd: L,
}

#[cfg(target_arch = "x86_64")]
impl<W: Work, L: Lanes> pulp::NullaryFnOnce for Vectorized<W, L> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.work.run(self.simd);
    }
}
