//! Strides after Hoste and Eeckhout (2006): distances between the addresses of successive accesses, of the same instruction
//! and of any.

use crate::metrics::values::Values;

/// Bytes up to which strides are counted.
const STEPS: [u64; 5] = [0, 8, 64, 512, 4096];

/// Counts of strides.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sums {
    /// Of the same instruction: loads, stores.
    own: [Histogram; 2],
    /// Of any instruction.
    any: [Histogram; 2],
    /// Accesses that have a stride and one before it.
    repeated: u64,
    /// Those of them whose stride is the one before.
    regular: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Histogram {
    all: u64,
    within: [u64; STEPS.len()],
}

impl Histogram {
    #[inline]
    fn add(&mut self, stride: u64) {
        self.all += 1;
        for (count, step) in self.within.iter_mut().zip(STEPS) {
            *count += u64::from(stride <= step);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.all += other.all;
        for (sum, own) in self.within.iter_mut().zip(other.within) {
            *sum += own;
        }
    }
}

/// The last accesses of an instruction.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    address: u64,
    stride: i64,
    /// Accesses so far, up to 2.
    seen: u8,
}

/// The strides of one thread.
#[derive(Debug)]
pub struct Strides {
    /// By access of the code: loads and stores apart.
    last: Vec<[Last; 2]>,
    any: [Option<u64>; 2],
    sums: Sums,
}

impl Strides {
    /// Of code with so many accesses.
    #[must_use]
    pub fn new(accesses: usize) -> Self {
        Self {
            last: vec![[Last::default(); 2]; accesses],
            any: [None; 2],
            sums: Sums::default(),
        }
    }

    /// The access number `access` of the code reads (or, if `store`, writes) `address`.
    #[inline]
    pub fn touch(&mut self, access: usize, store: bool, address: u64) {
        let kind = usize::from(store);
        if let Some(before) = self.any[kind].replace(address) {
            self.sums.any[kind].add(address.abs_diff(before));
        }
        let last = &mut self.last[access][kind];
        if last.seen > 0 {
            let stride = address.wrapping_sub(last.address) as i64;
            self.sums.own[kind].add(stride.unsigned_abs());
            if last.seen > 1 {
                self.sums.repeated += 1;
                self.sums.regular += u64::from(stride == last.stride);
            }
            last.stride = stride;
        }
        last.address = address;
        last.seen = (last.seen + 1).min(2);
    }

    /// Adds the counts to `all`.
    pub fn finish(&self, all: &mut Sums) {
        for kind in [0, 1] {
            all.own[kind].merge(&self.sums.own[kind]);
            all.any[kind].merge(&self.sums.any[kind]);
        }
        all.repeated += self.sums.repeated;
        all.regular += self.sums.regular;
    }
}

impl Sums {
    /// Writes the metrics of the group.
    pub fn fill(&self, values: &mut Values) {
        for (kind, name) in ["load", "store"].into_iter().enumerate() {
            let own = &self.own[kind];
            let any = &self.any[kind];
            let once = format!("no {name} of it is executed twice");
            let (prefix, any_prefix) = (format!("stride_{name}"), format!("stride_any_{name}"));
            values.histogram(&prefix, &STEPS, &own.within, own.all, &once);
            values.histogram(&any_prefix, &STEPS, &any.within, any.all, &once);
        }
        let why = "no access of it is executed three times";
        values.share("stride_regular", self.regular, self.repeated, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_streams() {
        let mut strides = Strides::new(2);
        for i in 0..1001 {
            strides.touch(0, false, 0x1000 + 8 * i);
            strides.touch(1, true, 0x90_0000 - 800 * i);
        }
        let (mut sums, mut values) = (Sums::default(), Values::default());
        strides.finish(&mut sums);
        sums.fill(&mut values);
        let value = |name: &str| values.value(name).unwrap();
        assert_eq!((value("stride_load_0"), value("stride_load_8")), (0.0, 1.0));
        assert_eq!(
            (value("stride_store_512"), value("stride_store_4096")),
            (0.0, 1.0)
        );
        assert_eq!(value("stride_any_load_8"), 1.0);
        assert_eq!(value("stride_regular"), 1.0);
    }

    #[test]
    fn instructions_are_told_apart() {
        let mut strides = Strides::new(2);
        for i in 0..1000 {
            strides.touch(0, false, 64 * i);
            strides.touch(1, false, 0x100_0000 + 64 * (i * i % 17));
        }
        let (mut sums, mut values) = (Sums::default(), Values::default());
        strides.finish(&mut sums);
        sums.fill(&mut values);
        assert!(values.value("stride_load_64").unwrap() > 0.5);
        assert_eq!(values.value("stride_any_load_4096"), Some(0.0));
        assert!(values.value("stride_regular").unwrap() < 0.7);
        assert!(values.value("stride_store_0").is_none());
    }
}
