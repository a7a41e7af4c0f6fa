//! Block sizes of a kernel, and what each is bound by.

use serde::Serialize;

/// Bytes of the kernels' elements.
pub const ELEMENT: u64 = 8;

/// Block sizes of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Blocking {
    /// `dgemm` or `stencil`.
    pub kernel: String,
    /// Bits of the vectors that it is made for.
    pub vector_bits: u32,
    /// The sizes, the innermost first.
    pub sizes: Vec<Size>,
}

/// A block size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Size {
    /// Its name: what the examples' sources call it.
    pub name: String,
    /// Elements; `None` where nothing bounds it.
    pub elements: Option<u64>,
    /// What it is.
    pub what: String,
    /// What binds it.
    pub bound: String,
}

impl Blocking {
    /// A size by name; `None` if it has none or nothing bounds it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.sizes.iter().find(|s| s.name == name)?.elements
    }

    /// Flags for a compiler: the width, without which it may split vectors, and definitions: `-DMR=32 -DNR=6`.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let bits = self.vector_bits;
        let width = [
            format!("-mprefer-vector-width={bits}"),
            format!("-DLANES={}", u64::from(bits / 8) / ELEMENT),
        ];
        let bounded = self.sizes.iter();
        let sizes = bounded.filter_map(|size| Some(format!("-D{}={}", size.name, size.elements?)));
        width.into_iter().chain(sizes).collect()
    }
}

/// The largest multiple of `step` that is at most `most`, but at least `step`.
pub fn down(most: u64, step: u64) -> u64 {
    (most / step).max(1) * step
}

pub fn size(name: &str, elements: Option<u64>, what: &str, bound: String) -> Size {
    Size {
        name: name.to_owned(),
        elements,
        what: what.to_owned(),
        bound,
    }
}
