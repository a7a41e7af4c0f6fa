//! Parallel work.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The results of `work` for each number below `count`, in order; as many at a time as there are processors.
pub fn several<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    at_most(usize::MAX, count, work)
}

/// The same, with at most `most` at a time.
pub fn at_most<T: Send>(most: usize, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(most);
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= count {
                return done;
            }
            done.push((number, work(number)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(some)).collect();
        let mut done = some();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|d| d.0);
    done.into_iter().map(|d| d.1).collect()
}

#[cfg(test)]
mod tests {
    use super::several;

    #[test]
    fn all_in_order() {
        let squares = several(100, |n| n * n);
        assert!(
            squares
                .iter()
                .enumerate()
                .all(|(n, square)| n * n == *square)
        );
        assert_eq!(squares.len(), 100);
        assert!(several(0, |n| n).is_empty());
    }
}
