//! What is refused.

use super::error::GeometryError;
use super::levels::{Geometry, Inclusion, Level, MAX_LEVELS, MAX_LINES, Replacement, Tlb};

impl Level {
    fn check(&self) -> Result<(), GeometryError> {
        let level = || self.name.clone();
        for (what, value) in [
            ("size", self.size),
            ("line", self.line.into()),
            ("ways", self.ways.into()),
        ] {
            if value == 0 {
                return Err(GeometryError::Zero {
                    level: level(),
                    what,
                });
            }
        }
        if !self.line.is_power_of_two() || !(32..=4096).contains(&self.line) {
            return Err(GeometryError::Line {
                level: level(),
                line: self.line,
            });
        }
        if !self
            .size
            .is_multiple_of(u64::from(self.line) * u64::from(self.ways))
        {
            return Err(GeometryError::Sets {
                level: level(),
                size: self.size,
                line: self.line,
                ways: self.ways,
            });
        }
        self.check_replacement(self.replacement)
    }

    /// Whether the level can have this policy.
    pub(crate) fn check_replacement(&self, policy: Replacement) -> Result<(), GeometryError> {
        let odd = !self.ways.is_power_of_two() || self.ways > 64;
        match policy {
            Replacement::TreePlru if odd => Err(GeometryError::Plru {
                level: self.name.clone(),
                ways: self.ways,
            }),
            _ => Ok(()),
        }
    }
}

impl Geometry {
    /// Whether it can be simulated with one core.
    ///
    /// # Errors
    /// The first of what is refused.
    pub fn check(&self) -> Result<(), GeometryError> {
        if self.levels.len() > MAX_LEVELS {
            return Err(GeometryError::Levels(self.levels.len()));
        }
        self.levels.iter().try_for_each(Level::check)?;
        for pair in self.levels.windows(2) {
            let (before, level) = (&pair[0], &pair[1]);
            let victim = level.inclusion == Inclusion::Victim;
            let name = || level.name.clone();
            if level.line < before.line {
                return Err(GeometryError::Shrinks {
                    level: name(),
                    what: "line",
                    value: level.line.into(),
                    before: before.line.into(),
                });
            }
            if level.size < before.size && !victim {
                return Err(GeometryError::Shrinks {
                    level: name(),
                    what: "size",
                    value: level.size,
                    before: before.size,
                });
            }
            if victim && level.line != before.line {
                return Err(GeometryError::Victim { level: name() });
            }
            if before.shared && !level.shared {
                return Err(GeometryError::Private { level: name() });
            }
        }
        if let Some(first) = self.levels.first()
            && first.inclusion == Inclusion::Victim
        {
            return Err(GeometryError::Victim {
                level: first.name.clone(),
            });
        }
        self.check_tlbs()?;
        self.check_total(1)
    }

    fn check_tlbs(&self) -> Result<(), GeometryError> {
        if self.tlbs.len() > 2 {
            return Err(GeometryError::Tlbs(self.tlbs.len()));
        }
        for (index, &Tlb { entries, ways }) in self.tlbs.iter().enumerate() {
            let level = index + 1;
            if entries == 0 || ways == 0 || !entries.is_multiple_of(ways) {
                return Err(GeometryError::Tlb {
                    level,
                    entries,
                    ways,
                });
            }
            if index > 0 && entries < self.tlbs[index - 1].entries {
                return Err(GeometryError::TlbShrinks { level, entries });
            }
        }
        Ok(())
    }

    /// Whether so many cores stay within [`MAX_LINES`].
    pub(crate) fn check_total(&self, cores: usize) -> Result<(), GeometryError> {
        let cores = cores as u64;
        let lines = self.levels.iter().map(|l| {
            let copies = if l.shared { 1 } else { cores };
            (l.size / u64::from(l.line)).saturating_mul(copies)
        });
        let entries = self.tlbs.iter().map(|t| u64::from(t.entries) * cores);
        let total = lines.chain(entries).fold(0u64, u64::saturating_add);
        if total > MAX_LINES {
            return Err(GeometryError::TooLarge(total));
        }
        Ok(())
    }
}
