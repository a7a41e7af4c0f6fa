//! The parts of the formats that code outside Rust depends on.

use cere_format::abi;
use cere_format::profile::Trace;

/// The pass writes descriptors field by field: a moved field would be read as another one.
#[test]
fn descriptor_fields_lie_where_the_pass_puts_them() {
    use std::mem::offset_of;
    assert_eq!(offset_of!(abi::RegionDescriptor, magic), 0);
    assert_eq!(offset_of!(abi::RegionDescriptor, hook), 8);
    assert_eq!(offset_of!(abi::RegionDescriptor, unit), 16);
    assert_eq!(offset_of!(abi::RegionDescriptor, index), 24);
    assert_eq!(offset_of!(abi::RegionDescriptor, arguments_size), 28);
    assert_eq!(offset_of!(abi::RegionDescriptor, invoke), 32);
    assert_eq!(offset_of!(abi::RegionDescriptor, outlined), 40);
    assert_eq!(offset_of!(abi::UnitMarker, id), 8);
}

#[test]
fn a_trace_finds_kept_invocations_only() {
    let trace = Trace {
        first: vec![10, 20, 30],
        stride: 4,
        sampled: vec![(4, 40), (8, 80)],
        ..Trace::default()
    };
    assert_eq!(trace.get(0), None);
    assert_eq!(trace.get(1), Some(10));
    assert_eq!(trace.get(3), Some(30));
    assert_eq!(trace.get(4), Some(40));
    assert_eq!(trace.get(5), None);
    assert_eq!(trace.get(8), Some(80));
}
