//! What surrounds a region: the images that are loaded, the memory that is mapped. Ordinary code.

use super::openmp;
use super::state::State;
use super::threads;
use crate::engine::layout::{self, Around};
use crate::engine::malloc;
use crate::engine::state::Obstacle;
use crate::os::images;
use cere_format::capture::Image;
use cere_format::system::taken_fresh;

/// The loaded images but ours, the program first.
pub fn describe_images(state: &mut State) -> Vec<Image> {
    let own = state.engine.own.clone();
    let mut list = Vec::new();
    for image in images::list_loaded() {
        let start = image.range.0;
        let ours = own.iter().any(|o| o.0 <= start && start < o.1);
        if ours && state.interposed.is_empty() {
            state.interposed = images::read_exported(&image, false).functions;
            if state.interposed.is_empty() {
                state.interposed = malloc::list_functions();
            }
        }
        if ours || !image.path.is_absolute() || start >= image.range.1 {
            continue;
        }
        let known = state.known.iter().find(|k| k.0 == start).map(|k| k.1);
        let instrumented = known.unwrap_or_else(|| {
            let found = images::read_sections(&image).instrumented;
            state.known.push((start, found));
            found
        });
        let fresh = taken_fresh(&image.path) || openmp::is_in_runtime(start);
        let program = list.is_empty() || instrumented || !fresh;
        let chosen = state.chosen.iter().find(|c| c.0 == start);
        let chosen = match chosen {
            _ if program => Vec::new(),
            Some((_, chosen)) => chosen.clone(),
            None => {
                let chosen = images::read_exported(&image, true).chosen;
                state.chosen.push((start, chosen.clone()));
                chosen
            }
        };
        list.push(Image {
            program,
            chosen,
            path: image.path,
            bias: image.bias as u64,
            range: (start as u64, image.range.1 as u64),
            instrumented,
            tls: image.tls.map(|(at, size)| (at as u64, size as u64)),
        });
    }
    list
}

/// Finds out what is mapped: for the capture in progress, or for the page trace with this stack pointer of the program.
pub fn lay_out(state: &mut State, stack: usize) -> Result<(), Obstacle> {
    let (pointer, images, control) = match state.engine.level.as_ref() {
        Some(level) => (
            level.entry.stack_pointer,
            level.images.clone(),
            level.control,
        ),
        None => {
            let images = describe_images(state);
            let control = threads::find_control(&images);
            (stack as u64, images, control)
        }
    };
    let around = Around {
        pointer,
        stack: threads::own_stack().unwrap_or_default(),
        images: &images,
        control,
        runtime: openmp::runtime_range(),
        mapping_limit: state.mapping_limit,
    };
    layout::lay_out(&mut state.engine, &around)
}
