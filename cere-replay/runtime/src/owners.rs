//! Which thread of this replay's team stands for the thread that touched a page in vivo, and whether its memory lies where
//! that thread runs (CERE thesis, 3.5.5).

use crate::pages::PAGE;
use crate::team::Team;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Pages asked for at once.
const CHUNK: usize = 4096;

/// The owner of each page, from 0 to `threads` - 1. `pages` are addresses by rising order, with the thread that touched
/// each in vivo, of `captured` threads. With fewer threads than in vivo one stands for several; with more, those that stand for
/// one share each run of neighbouring pages evenly, as static schedules share their iterations.
pub fn owners(pages: &[(u64, u32)], captured: u32, threads: u32) -> Vec<u32> {
    let captured = u64::from(captured.max(1));
    let mut owners = Vec::with_capacity(pages.len());
    let neighbours = |a: &(u64, u32), b: &(u64, u32)| a.0 + PAGE == b.0 && a.1 == b.1;
    for run in pages.chunk_by(neighbours) {
        let length = run.len() as u64;
        for (at, page) in (0u64..).zip(run) {
            let in_vivo = u64::from(page.1).min(captured - 1);
            let share = (in_vivo * length + at) * u64::from(threads) / (captured * length);
            owners.push(share as u32);
        }
    }
    owners
}

/// The memory node of each page of this process, and of each thread of the team; none where the system does not tell.
pub trait Nodes {
    /// Of pages; negative if it has none.
    fn of_pages(&self, pages: &[u64]) -> Option<Vec<i32>>;
    /// Of threads, by number.
    fn of_threads(&self) -> Vec<i32>;
}

/// From the kernel.
pub struct System<'a>(pub &'a Team);

impl Nodes for System<'_> {
    fn of_pages(&self, pages: &[u64]) -> Option<Vec<i32>> {
        let mut nodes = vec![-1i32; pages.len()];
        // SAFETY: asks where the pages lie, and moves none; both arrays have as many entries.
        let result = unsafe {
            let none = std::ptr::null::<i32>();
            let (at, status) = (pages.as_ptr(), nodes.as_mut_ptr());
            libc::syscall(libc::SYS_move_pages, 0, pages.len(), at, none, status, 0)
        };
        (result == 0).then_some(nodes)
    }

    fn of_threads(&self) -> Vec<i32> {
        let nodes: Vec<AtomicI32> = (0..self.0.threads()).map(|_| AtomicI32::new(-1)).collect();
        self.0.each(|number| {
            let mut node = 0u32;
            // SAFETY: the call fills the word.
            let result = unsafe {
                let none = std::ptr::null::<u32>();
                libc::syscall(libc::SYS_getcpu, none, &raw mut node, none)
            };
            if let (0, Some(found)) = (result, nodes.get(number as usize)) {
                found.store(node as i32, Relaxed);
            }
        });
        nodes.iter().map(|node| node.load(Relaxed)).collect()
    }
}

/// What people should know of `pages`, addresses with their owners, if some do not lie on the node that their owner runs on.
pub fn misplaced(pages: &[(u64, u32)], nodes: &impl Nodes) -> Option<String> {
    let threads = nodes.of_threads();
    if threads.iter().all(|node| *node == threads[0]) {
        return None;
    }
    let mut wrong = 0;
    for chunk in pages.chunks(CHUNK) {
        let addresses: Vec<u64> = chunk.iter().map(|p| p.0).collect();
        let Some(found) = nodes.of_pages(&addresses) else {
            return Some(
                "the system does not report on which node memory lies (move_pages)".into(),
            );
        };
        let away = |(page, node): &(&(u64, u32), i32)| {
            let own = threads.get(page.1 as usize).copied().unwrap_or(-1);
            *node >= 0 && own >= 0 && *node != own
        };
        wrong += chunk.iter().zip(found).filter(away).count();
    }
    (wrong > 0).then(|| {
        format!(
            "{wrong} of {} pages do not lie on the memory node of the thread that touches them first: keep the threads in place \
             (--bind, --places)",
            pages.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(threads: &[u32]) -> Vec<(u64, u32)> {
        (1..)
            .map(|n| n * PAGE)
            .zip(threads.iter().copied())
            .collect()
    }

    #[test]
    fn threads_stand_for_those_in_vivo() {
        let four = pages(&[0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(owners(&four, 4, 4), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(owners(&four, 4, 2), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(owners(&four, 4, 1), [0; 8]);
        assert_eq!(owners(&four, 4, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
        // A thread beyond those of the team: the runtime had started more before.
        assert_eq!(owners(&pages(&[0, 7]), 2, 2), [0, 1]);
        // Two arrays of one thread, apart.
        let mut two = pages(&[0, 0, 0, 0]);
        two.extend([(1 << 30, 0), ((1 << 30) + PAGE, 0)]);
        assert_eq!(owners(&two, 1, 2), [0, 0, 1, 1, 0, 1]);
        assert!(owners(&[], 1, 2).is_empty());
    }

    /// A machine where each page lies on the node of the thread that touched it first.
    struct Machine {
        threads: Vec<i32>,
        touched: Vec<(u64, u32)>,
    }

    impl Nodes for Machine {
        fn of_pages(&self, pages: &[u64]) -> Option<Vec<i32>> {
            let of = |page: &u64| {
                let found = self.touched.iter().find(|t| t.0 == *page);
                found.map_or(-2, |t| self.threads[t.1 as usize])
            };
            Some(pages.iter().map(of).collect())
        }

        fn of_threads(&self) -> Vec<i32> {
            self.threads.clone()
        }
    }

    #[test]
    fn pages_lie_with_their_owners() {
        let all = pages(&[0, 0, 1, 1]);
        let share = |threads| -> Vec<(u64, u32)> {
            let owners = owners(&all, 2, threads);
            all.iter().map(|p| p.0).zip(owners).collect()
        };
        for (nodes, threads) in [(vec![0, 1], 2), (vec![0, 0, 1, 1], 4), (vec![1, 1], 2)] {
            let machine = Machine {
                threads: nodes,
                touched: share(threads),
            };
            assert_eq!(misplaced(&share(threads), &machine), None);
        }
        // One thread touched everything: half of it is away from the others' node.
        let machine = Machine {
            threads: vec![0, 1],
            touched: all.iter().map(|p| (p.0, 0)).collect(),
        };
        let warning = misplaced(&share(2), &machine).unwrap();
        assert!(warning.starts_with("2 of 4 pages"), "{warning}");
        // Memory that is not there is nowhere.
        let machine = Machine {
            threads: vec![0, 1],
            touched: Vec::new(),
        };
        assert_eq!(misplaced(&share(2), &machine), None);
    }
}
