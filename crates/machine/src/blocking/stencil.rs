//! Blocks of stencils by the layer condition: what lies between two uses of an element fits a cache (Stengel, Treibig, Hager,
//! Wellein: Quantifying performance bottlenecks of stencil computations using the execution-cache-memory model, ICS 2015).

use super::parameters::Parameters;
use super::sizes::{Blocking, ELEMENT, down, size};

/// Rows of the stencil of 5 points: two stay, the third and that of the result come in.
const ROWS_2D: u64 = 2 + 2 * 2;
/// Rows of the stencil of 7 points: two of the middle plane stay; its third, those of the planes before and after and that of the
/// result come in.
const ROWS_3D: u64 = 2 + 2 * 4;
/// Planes: two stay, the third and that of the result come in.
const PLANES: u64 = 2 + 2 * 2;

/// Blocks of a stencil of 5 points in two dimensions and one of 7 points in three, in `f64`, out of place.
///
/// What stays in a level counts once, what streams through it twice. Sizes are the largest for which each element comes from the
/// level beyond once: shorter rows and smaller planes need no block.
#[must_use]
pub fn stencil(machine: &Parameters) -> Blocking {
    let line = machine.line / ELEMENT;
    let (l1, l2) = (machine.l1 / ELEMENT, machine.l2 / ELEMENT);
    let block = |words: u64, rows: u64| down((words / rows).saturating_sub(2), line);
    // Whole rows of the block come from beyond L1 once, so its planes are as long as L1 lets them be.
    let bx = block(l1, ROWS_3D);
    let by = (l2 / PLANES / (bx + 2)).saturating_sub(2).max(1);
    let kib = |bytes: u64| format!("{} KiB", bytes >> 10);
    Blocking {
        kernel: "stencil".to_owned(),
        vector_bits: machine.bits,
        sizes: vec![
            size(
                "BX2_L1",
                Some(block(l1, ROWS_2D)),
                "columns of a block in two dimensions whose rows stay in L1",
                format!("L1, {}: {ROWS_2D} (BX + 2) <= {l1}", kib(machine.l1)),
            ),
            size(
                "BX2_L2",
                Some(block(l2, ROWS_2D)),
                "the same in L2",
                format!("L2, {}: {ROWS_2D} (BX + 2) <= {l2}", kib(machine.l2)),
            ),
            size(
                "BX3",
                Some(bx),
                "columns of a block in three dimensions whose rows stay in L1",
                format!("L1, {}: {ROWS_3D} (BX + 2) <= {l1}", kib(machine.l1)),
            ),
            size(
                "BY3",
                Some(by),
                "rows of that block, whose planes stay in L2",
                format!(
                    "L2, {}: {PLANES} (BX + 2) (BY + 2) <= {l2}",
                    kib(machine.l2)
                ),
            ),
        ],
    }
}
