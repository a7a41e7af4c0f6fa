//! What all plots have: size, grid, ticks, axis titles.

use crate::plot::axis::{Axis, Scale};
use crate::plot::picture::{Anchor, Picture, Place, lines};

/// Left, top, right and bottom edge of the drawing area of a plot in a page.
pub const AREA: (f64, f64, f64, f64) = (84.0, 16.0, 700.0, 256.0);

/// Size of a plot and of the drawing area in it.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Width and height in its own units.
    pub size: Place,
    /// Left, top, right and bottom edge of the drawing area.
    pub area: (f64, f64, f64, f64),
}

/// The frame of plots in a page.
const PAGE: Frame = Frame {
    size: (720.0, 306.0),
    area: AREA,
};

/// A picture with two axes.
pub struct Plot {
    pub picture: Picture,
    /// The scale across.
    pub x: Scale,
    /// The scale upwards.
    pub y: Scale,
    area: (f64, f64, f64, f64),
}

impl Plot {
    /// The axes and the grid of a plot in a page. `label` describes it to those who cannot see it.
    pub fn new(x: &Axis, y: &Axis, label: &str) -> Self {
        Self::in_frame(PAGE, "plot", x, y, label)
    }

    /// The same in a frame of another size, under another class.
    pub fn in_frame(frame: Frame, class: &'static str, x: &Axis, y: &Axis, label: &str) -> Self {
        let (left, top, right, bottom) = frame.area;
        let mut picture = Picture::new(class, frame.size, label);
        let ticks = x.ticks.iter().map(|(value, _)| x.scale.at(*value));
        picture.path(
            "tick",
            &lines(ticks.map(|at| ((at, bottom), (at, bottom + 5.0)))),
        );
        let grid = y.ticks.iter().map(|(value, _)| y.scale.at(*value));
        picture.path("grid", &lines(grid.map(|at| ((left, at), (right, at)))));
        for (number, (value, text)) in x.ticks.iter().enumerate() {
            let at = x.scale.at(*value);
            let odd = if number % 2 == 1 { "odd" } else { "" };
            picture.text(odd, Anchor::middle((at, bottom + 21.0)), text);
        }
        for (value, text) in &y.ticks {
            let at = y.scale.at(*value);
            picture.text("", Anchor::end((left - 8.0, at)).half_height(), text);
        }
        picture.line("axis", (left, bottom), (right, bottom));
        let under = Anchor::end((right, frame.size.1 - 8.0));
        picture.text("title", under, &x.title);
        let beside = Anchor::middle((14.0, (top + bottom) / 2.0)).turned(-90.0);
        picture.text("title", beside, &y.title);
        Self {
            picture,
            x: x.scale,
            y: y.scale,
            area: frame.area,
        }
    }

    /// Where a pair of values is.
    pub fn at(&self, x: f64, y: f64) -> Place {
        (self.x.at(x), self.y.at(y))
    }

    /// Draws a line from top to bottom at `x`.
    pub fn guide(&mut self, x: f64) {
        let (_, top, _, bottom) = self.area;
        let x = self.x.at(x);
        self.picture.line("guide", (x, top), (x, bottom));
    }
}
