//! What the kernel answers a region is kept.

use crate::support::{Captured, Program};
use cere_format::answers::ANSWER_CALL;

/// The results of the calls of this number, and the flags that all have.
fn of(capture: &Captured, number: i64) -> (Vec<i64>, u32) {
    let all = capture.answers.iter();
    let found: Vec<_> = all.filter(|a| i64::from(a.0.number) == number).collect();
    let flags = found.first().map_or(0, |a| a.0.flags);
    assert!(found.iter().all(|a| a.0.flags == flags));
    (found.iter().map(|a| a.0.result).collect(), flags)
}

#[test]
fn what_a_region_asks_is_kept() {
    for level in ["-O0", "-O2"] {
        let program = Program::new("asks.c", &[level]);
        let run = program.capture(&[("outer", &[1]), ("inner", &[1])], &[]);
        let (outer, inner) = (run.get("outer", 1), run.get("inner", 1));
        assert_eq!((&outer.raw.refused, &inner.raw.refused), (&None, &None));
        let exit = |at: u64| outer.exit(at) as i64;
        // The time, through the kernel's page: what the region stored is what was kept.
        let stamps = outer.address("stamps");
        let times = outer.answers.iter();
        let times = times.filter(|a| i64::from(a.0.number) == libc::SYS_clock_gettime);
        let word = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().unwrap());
        for (place, (head, bytes)) in times.clone().enumerate() {
            assert_eq!((head.key as i32, head.flags), (libc::CLOCK_REALTIME, 0));
            let at = stamps + 16 * place as u64;
            assert_eq!(word(&bytes[..8]), exit(at));
            assert_eq!(word(&bytes[8..]), exit(at + 8));
        }
        assert_eq!(times.count(), 4);
        // Random bytes, as many as were asked for; the last ones are still there.
        let random = outer.answers.iter();
        let mut random = random.filter(|a| i64::from(a.0.number) == libc::SYS_getrandom);
        let last = random.next_back().unwrap();
        assert_eq!((last.0.result, last.1.len(), random.count()), (8, 8, 3));
        assert_eq!(word(&last.1), exit(outer.address("bytes")));
        // A system call. The inner region, captured in a run of its own, has its own answers alone.
        for capture in [outer, inner] {
            let process = capture.exit(capture.address("processes")) as i64;
            let answers = (vec![process; 2], ANSWER_CALL);
            assert_eq!(of(capture, libc::SYS_getpid), answers);
            assert_eq!(of(capture, libc::SYS_time).0.len(), 2);
            assert_eq!(
                ["getpid", "clock_gettime"].map(|call| capture.calls(call)),
                [2, 0]
            );
        }
        assert_eq!(inner.answers.len(), 4);
        // The clocks at entry.
        let known = outer.raw.answers.as_ref().unwrap();
        assert_eq!(known.cut, None);
        let mut clocks = known.clocks.iter();
        let clock = clocks.find(|c| c.id == libc::CLOCK_REALTIME).unwrap();
        let (first, nanoseconds) = (exit(stamps), exit(stamps + 8));
        assert!((clock.seconds, clock.nanoseconds) <= (first, nanoseconds));
        let mut functions = known.functions.iter();
        assert!(functions.any(|f| f.0 == "__vdso_clock_gettime"));
    }
}

#[test]
fn a_region_that_is_left_before_it_ends_leaves_the_clock() {
    let program = Program::new("asks.c", &["-O2"]);
    let run = program.capture(&[("leaves", &[1])], &[]);
    assert_eq!(run.captures.len(), 1);
}
