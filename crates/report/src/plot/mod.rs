//! Plots in SVG: scales, axes, frames, and the elements that are drawn.

pub mod axis;
pub mod frame;
pub mod picture;
