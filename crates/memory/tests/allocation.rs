//! Nothing is allocated while accesses run, also not in a process that replaces the allocator.

use cere_memory::geometry::Replacement;
use cere_memory::options::{Frames, Prefetcher};
use cere_memory::{Access, Geometry, Hierarchy, Kind, Options};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed to the system's allocator, whose contract this is; the counter is atomic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn none() {
    let prefetcher = Prefetcher {
        level: 1,
        streams: 4,
        distance: 8,
        degree: 2,
    };
    for (replacement, prefetcher, sampling) in [
        (None, Some(prefetcher), None),
        (Some(Replacement::TreePlru), None, None),
        (Some(Replacement::Random), None, Some(4)),
    ] {
        let options = Options {
            cores: 2,
            replacement,
            prefetcher,
            sampling,
            frames: Frames::Random,
            // Fewer than are touched.
            footprint_pages: 100,
            ..Options::default()
        };
        let mut memory = Hierarchy::new(&Geometry::named("zen3").unwrap(), &options).unwrap();
        let kinds = [
            Kind::Load,
            Kind::Store,
            Kind::ReadModifyWrite,
            Kind::Prefetch,
            Kind::NonTemporal,
        ];
        let mut accesses = Vec::new();
        for i in 0..100_000u64 {
            accesses.push(Access {
                address: (i * i) % (1 << 22),
                size: 1 + (i % 100) as u32,
                kind: kinds[(i / 7 % 5) as usize],
            });
        }
        let before = CALLS.load(Ordering::Relaxed);
        memory.run(0, &accesses);
        memory.run(1, &accesses);
        memory.warm(1, &accesses[..1000]);
        memory.fence(0);
        memory.reset_counters();
        memory.run(0, &accesses);
        let after = CALLS.load(Ordering::Relaxed);
        assert_eq!(after, before);
        assert!(!memory.counters().footprint.complete);
    }
}
