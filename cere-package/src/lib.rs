//! TODO(owner).
