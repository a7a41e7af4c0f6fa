//! Plots in SVG: scales, ticks, frames with axes.

pub mod axis;
pub mod frame;
