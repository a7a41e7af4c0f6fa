//! Predicts the time of a region from the times of its representatives (CERE thesis, 4.2.2).

use crate::point::valid;

/// A class whose representative was replayed on a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replayed {
    /// Time of all its invocations on the reference.
    pub total: f64,
    /// Time of the representative on the reference, in the unit of `total`.
    pub reference: f64,
    /// Time of the representative on the target.
    pub target: f64,
}

/// A class from which nothing can be predicted.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "class {class} predicts nothing: its representative took {} on the reference and {} on the target, all of it {}",
    of.reference, of.target, of.total
)]
pub struct PredictError {
    /// Its place in the input.
    pub class: usize,
    /// The class.
    pub of: Replayed,
}

/// Time of all invocations of all classes on the target, in the unit of the target's times: each invocation changes as
/// its representative does, so t_target(i) = t_ref(i) * t_target(rep) / t_ref(rep), summed.
pub fn predict(classes: &[Replayed]) -> Result<f64, PredictError> {
    let mut sum = 0.0;
    for (class, of) in classes.iter().copied().enumerate() {
        let time = of.total * (of.target / of.reference);
        if !(valid(time) && valid(of.total) && valid(of.target) && of.reference > 0.0) {
            return Err(PredictError { class, of });
        }
        sum += time;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_by_its_own_representative() {
        let class = |total, reference, target| Replayed {
            total,
            reference,
            target,
        };
        // Ten invocations of 2 that take half as long, one of 100 that takes the same.
        let classes = [class(20.0, 2.0, 1.0), class(100.0, 100.0, 100.0)];
        assert_eq!(predict(&classes), Ok(110.0));
        assert_eq!(predict(&[]), Ok(0.0));
        for bad in [
            class(1.0, 0.0, 1.0),
            class(0.0, 0.0, 0.0),
            class(1.0, 1.0, f64::NAN),
            class(-1.0, 1.0, 1.0),
        ] {
            assert_eq!(predict(&[classes[0], bad]).unwrap_err().class, 1);
        }
    }
}
