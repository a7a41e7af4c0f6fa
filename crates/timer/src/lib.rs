//! Timers in context: the time of a kernel whose operands are where its callers have them.
//!
//! A kernel that is timed in a loop finds its operands in the nearest cache, and shows a speed that no caller sees whose
//! data comes from memory. A choice between two kernels by such times is often the wrong one (Whaley and Castaldo,
//! *Achieving accurate and context-sensitive timing for code optimization*, 2008; sections below are its). Here every
//! operand has a [`State`] of its own, which it is in whenever a timed part begins.
//!
//! ```
//! use cere_timer::{Operand, State, Timer};
//! let n = 1000;
//! let dot = Timer::new()
//!     .operand(Operand::new(8 * n, 64, 0, State::Cold)?)
//!     .operand(Operand::new(8 * n, 64, 0, State::Warm)?)
//!     .time(|operands| {
//!         let (x, y) = (operands.values::<f64>(0), operands.values::<f64>(1));
//!         let sum: f64 = x.iter().zip(y).map(|(a, b)| a * b).sum();
//!         std::hint::black_box(sum);
//!     })?;
//! println!("{:.0} ns by {:?}", dot.seconds * 1e9, dot.mode);
//! # Ok::<(), cere_timer::TimerError>(())
//! ```
//!
//! | module | what | section |
//! |---|---|---|
//! | `clock` | wall and processor time, their cost and resolution | 2 |
//! | `aligned` | memory aligned to one boundary and not to another | 5.1 |
//! | `operand` | sizes, alignments, states, values | 3.1, 5 |
//! | `memory`, `sizing`, `flush` | how operands get into their states | 3 |
//! | `team` | the same on all processors | 5.2 |
//! | `sets` | copies of the operands, walked backwards | 4 |
//! | `timer`, `measurement` | the samples and what they show | 2.1 |
//! | `c` | the same from C: `include/cere.h` | |

mod aligned;
mod c;
mod clock;
mod error;
mod flush;
mod measurement;
mod memory;
mod operand;
mod sets;
mod sizing;
mod team;
mod timer;

pub use aligned::Aligned;
pub use clock::{Clock, Resolution};
pub use error::TimerError;
pub use flush::Flush;
pub use measurement::{Measurement, Mode};
pub use operand::{Operand, State, fill_values};
pub use sets::{Operands, Value};
pub use sizing::FlushArea;
pub use timer::{Invocations, Timer};

pub use cere_timing::clock::Usage;
pub use cere_timing::stats::Spread;
