//! Which processor the replay runs on.

use libc::cpu_set_t;

/// Where the process runs, and where it might have run before.
pub struct Pinned {
    /// The processors allowed at first; none if the system does not say.
    allowed: Option<cpu_set_t>,
    /// The one it stays on, if the system lets it.
    to: Option<u32>,
    /// Why not.
    refused: Option<String>,
}

/// The number of this processor; 0 where the system does not say.
pub fn current() -> u32 {
    // SAFETY: takes nothing.
    let processor = unsafe { libc::sched_getcpu() };
    u32::try_from(processor).unwrap_or(0)
}

fn set(set: &cpu_set_t) -> std::io::Result<()> {
    // SAFETY: a whole set of processors.
    match unsafe { libc::sched_setaffinity(0, size_of_val(set), set) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn only(processor: u32) -> cpu_set_t {
    // SAFETY: a set of zeros is empty; the number is checked.
    unsafe {
        let mut set: cpu_set_t = std::mem::zeroed();
        if (processor as i32) < libc::CPU_SETSIZE {
            libc::CPU_SET(processor as usize, &mut set);
        }
        set
    }
}

impl Pinned {
    /// Stays on this processor: its caches are warm and its clock is the same.
    pub fn here() -> Self {
        // SAFETY: a set of zeros is empty; the call fills it.
        let allowed = unsafe {
            let mut set: cpu_set_t = std::mem::zeroed();
            (libc::sched_getaffinity(0, size_of_val(&set), &mut set) == 0).then_some(set)
        };
        let processor = current();
        let pinned = set(&only(processor));
        Self {
            allowed,
            to: pinned.is_ok().then_some(processor),
            refused: pinned.err().map(|e| e.to_string()),
        }
    }

    /// Stays where it may run.
    pub fn nowhere() -> Self {
        Self {
            allowed: None,
            to: None,
            refused: None,
        }
    }

    /// Whether it stays on one.
    pub fn is_pinned(&self) -> bool {
        self.to.is_some()
    }

    /// What people should know.
    pub fn note(&self) -> Option<String> {
        let reason = self.refused.as_ref()?;
        Some(format!(
            "the system does not let the replay stay on one processor ({reason}): repetitions that it moves are discarded"
        ))
    }

    /// Runs `f` on every processor that the process may have run on, as far as the system allows, and comes back.
    pub fn everywhere(&self, f: impl Fn()) {
        let all = 0..libc::CPU_SETSIZE as u32;
        let may = |processor: u32| {
            let Some(allowed) = &self.allowed else {
                return false;
            };
            // SAFETY: the numbers are those of the set.
            unsafe { libc::CPU_ISSET(processor as usize, allowed) }
        };
        let mut ran = false;
        for processor in all.filter(|p| may(*p)) {
            if set(&only(processor)).is_ok() {
                f();
                ran = true;
            }
        }
        if !ran {
            f();
        }
        match (self.to, &self.allowed) {
            (Some(processor), _) => drop(set(&only(processor))),
            (None, Some(allowed)) => drop(set(allowed)),
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn on_every_processor_and_back() {
        let pinned = Pinned::here();
        assert_eq!(pinned.is_pinned(), pinned.note().is_none());
        let before = current();
        let seen = RefCell::new(Vec::new());
        pinned.everywhere(|| seen.borrow_mut().push(current()));
        let seen = seen.into_inner();
        assert!(!seen.is_empty());
        if pinned.is_pinned() {
            assert_eq!(current(), before);
            assert!(seen.contains(&before) && seen.is_sorted(), "{seen:?}");
        }
    }
}
