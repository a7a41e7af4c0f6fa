//! Runs of an instrumented program under the preload library.
//!
//! | module | what |
//! |---|---|
//! | [`launch`] | one run |
//! | [`mod@energy`] | the energy of whole runs |
//! | [`input`] | the program's stdin, for runs that must read the same |
//! | [`reads`] | whether another run would read the same |
//! | [`profile`] | the times of regions |
//! | [`selection`] | the regions that matter |
//! | [`classes`] | the invocations that stand for a region |
//! | [`capture`] | codelets |

pub mod capture;
pub mod classes;
pub mod energy;
pub mod input;
pub mod launch;
pub mod profile;
pub mod reads;
pub mod selection;
pub mod whole;
