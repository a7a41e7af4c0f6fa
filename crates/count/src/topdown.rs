//! Where the slots of a processor go, from its counters: the first two levels of the top-down method (Yasin, "A top-down method for
//! performance analysis and counters architecture", ISPASS 2014).
//!
//! | processors | events |
//! |---|---|
//! | Intel from Sapphire Rapids on | `TOPDOWN.*` (0xa4), `UOPS_RETIRED.SLOTS` |
//! | Intel Ice Lake and Tiger Lake | the same, without those of bad speculation and memory |
//! | AMD Zen 4 and later | `de_no_dispatch_per_slot.*` (0x1a0), dispatched and retired operations |

use crate::error::CountError;
use crate::hardware::{Hardware, Kernel, gather};
use cere_replay::counters::Event;
use perf_event::events::{Hardware as Generic, Raw};

/// Shares of the slots, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Topdown {
    /// Operations that retire.
    pub retiring: f64,
    /// Operations that do not, and what follows wrong predictions.
    pub bad_speculation: f64,
    /// Nothing comes from the front end.
    pub front_end: f64,
    /// The back end takes nothing.
    pub back_end: f64,
    /// Of that, because of memory; none: this processor does not tell.
    pub memory: Option<f64>,
}

/// A kind of processor, by its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counters {
    /// From Sapphire Rapids on.
    Intel,
    /// Ice Lake, Tiger Lake.
    IceLake,
    /// Zen 4 and later.
    Amd,
}

/// Slots of a cycle of AMD's.
const AMD_SLOTS: f64 = 6.0;

impl Counters {
    /// Of the processor whose vendor, family and model `/proc/cpuinfo` tells; none: which events it has is not known here.
    #[must_use]
    pub fn of(vendor: &str, family: u32, model: u32) -> Option<Self> {
        match (vendor, family, model) {
            ("GenuineIntel", 6, 0x8f | 0xcf | 0xad | 0xae | 0x97 | 0x9a | 0xb7 | 0xba | 0xbf) => {
                Some(Self::Intel)
            }
            ("GenuineIntel", 6, 0x6a | 0x6c | 0x7d | 0x7e | 0x8c | 0x8d | 0xa7) => {
                Some(Self::IceLake)
            }
            ("AuthenticAMD", 0x19, 0x10..=0x1f | 0x60..=0xaf) => Some(Self::Amd),
            ("AuthenticAMD", 0x1a.., _) => Some(Self::Amd),
            _ => None,
        }
    }

    /// Of this machine's processor.
    #[must_use]
    pub fn here() -> Option<Self> {
        let text = cere_format::proc::cpuinfo();
        let field = |name| {
            cere_format::proc::field(&text, name)
                .next()
                .unwrap_or_default()
        };
        let number = |name| field(name).parse().ok();
        Self::of(field("vendor_id"), number("cpu family")?, number("model")?)
    }

    /// What is counted.
    #[must_use]
    pub fn events(self) -> Vec<Event> {
        let raw = |name, code: u64, mask: u64| {
            // Bits 8 to 11 of AMD's codes lie above the mask.
            Event::new(name, Raw::new(code & 0xff | mask << 8 | (code >> 8) << 32))
        };
        match self {
            Self::Intel => vec![
                raw("slots", 0xa4, 0x01),
                raw("back_end_slots", 0xa4, 0x02),
                raw("bad_speculation_slots", 0xa4, 0x04),
                raw("memory_slots", 0xa4, 0x10),
                raw("retired_slots", 0xc2, 0x02),
            ],
            Self::IceLake => vec![
                raw("slots", 0xa4, 0x01),
                raw("back_end_slots", 0xa4, 0x02),
                raw("retired_slots", 0xc2, 0x02),
                raw("front_end_slots", 0x9c, 0x01),
            ],
            Self::Amd => vec![
                Event::new("cycles", Generic::CPU_CYCLES),
                raw("front_end_slots", 0x1a0, 0x01),
                raw("back_end_slots", 0x1a0, 0x1e),
                raw("dispatched", 0xaa, 0x07),
                raw("retired", 0xc1, 0x00),
            ],
        }
    }

    /// The shares that readings mean; none where an event has no value.
    #[must_use]
    pub fn read(self, found: &Hardware) -> Option<Topdown> {
        let value = |name: &str| {
            let event = found.events.iter().find(|e| e.name == name)?;
            event.value
        };
        let slots = match self {
            Self::Amd => AMD_SLOTS * value("cycles")?,
            Self::Intel | Self::IceLake => value("slots")?,
        };
        let share = |name: &str| Some((value(name)? / slots).clamp(0.0, 1.0));
        let rest = |others: [f64; 3]| (1.0 - others.iter().sum::<f64>()).max(0.0);
        if slots <= 0.0 {
            return None;
        }
        let back_end = share("back_end_slots")?;
        Some(match self {
            Self::Intel => {
                let [retiring, bad] = [share("retired_slots")?, share("bad_speculation_slots")?];
                Topdown {
                    retiring,
                    bad_speculation: bad,
                    front_end: rest([retiring, bad, back_end]),
                    back_end,
                    memory: share("memory_slots"),
                }
            }
            Self::IceLake => {
                let [retiring, front_end] = [share("retired_slots")?, share("front_end_slots")?];
                Topdown {
                    retiring,
                    bad_speculation: rest([retiring, front_end, back_end]),
                    front_end,
                    back_end,
                    memory: None,
                }
            }
            Self::Amd => Topdown {
                retiring: share("retired")?,
                bad_speculation: (share("dispatched")? - share("retired")?).max(0.0),
                front_end: share("front_end_slots")?,
                back_end,
                memory: None,
            },
        })
    }
}

/// The shares in a replay.
///
/// # Errors
/// The counters are not known, cannot be read, or do not tell; the codelet cannot be replayed.
pub fn topdown(kernel: &Kernel) -> Result<Topdown, CountError> {
    let unknown =
        || CountError::NoHardware("the top-down events of this processor are not known".to_owned());
    let counters = Counters::here().ok_or_else(unknown)?;
    let found = gather(&counters.events(), kernel)?;
    let silent =
        || CountError::NoHardware("an event of the top-down method has no value".to_owned());
    counters.read(&found).ok_or_else(silent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::EventCount;
    use cere_format::replay::Verdict;

    fn hardware(of: &[(&'static str, f64)]) -> Hardware {
        let event = |(name, value): &(&'static str, f64)| EventCount {
            name,
            value: Some(*value),
            error: None,
            running: Some(1.0),
        };
        Hardware {
            invocations: 1,
            events: of.iter().map(event).collect(),
            notes: Vec::new(),
            verdict: Verdict::Exact,
        }
    }

    #[test]
    fn shares_add_up() {
        let intel = hardware(&[
            ("slots", 600.0),
            ("back_end_slots", 300.0),
            ("bad_speculation_slots", 60.0),
            ("memory_slots", 200.0),
            ("retired_slots", 180.0),
        ]);
        let found = Counters::Intel.read(&intel).unwrap();
        assert!((found.front_end - 0.1).abs() < 1e-9 && (found.back_end - 0.5).abs() < 1e-9);
        assert!(found.memory.is_some_and(|m| (m - 1.0 / 3.0).abs() < 1e-9));
        let amd = hardware(&[
            ("cycles", 100.0),
            ("front_end_slots", 60.0),
            ("back_end_slots", 240.0),
            ("dispatched", 300.0),
            ("retired", 270.0),
        ]);
        let found = Counters::Amd.read(&amd).unwrap();
        let all = found.retiring + found.bad_speculation + found.front_end + found.back_end;
        assert!((all - 1.0).abs() < 1e-9 && (found.bad_speculation - 0.05).abs() < 1e-9);
        assert_eq!(Counters::IceLake.read(&amd), None);
        assert_eq!(Counters::Intel.read(&hardware(&[("slots", 0.0)])), None);
    }

    #[test]
    fn processors_by_their_numbers() {
        assert_eq!(Counters::of("GenuineIntel", 6, 143), Some(Counters::Intel));
        assert_eq!(
            Counters::of("GenuineIntel", 6, 106),
            Some(Counters::IceLake)
        );
        assert_eq!(Counters::of("AuthenticAMD", 25, 0x11), Some(Counters::Amd));
        assert_eq!(Counters::of("AuthenticAMD", 25, 0x21), None);
        assert_eq!(Counters::of("Other", 6, 143), None);
        assert_eq!(Counters::Amd.events().len(), 5);
    }
}
