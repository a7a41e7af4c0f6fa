//! The first thread's tree of regions: each under its chain of callers.

use super::room;
use super::tables::{Own, Tables};
use cere_format::profile_raw::RawNode;
use std::sync::atomic::{Ordering, compiler_fence};

/// The first thread enters the region of this slot in the tree: the node.
#[inline(always)]
pub unsafe fn enter_node<const FIRST: bool>(own: &Own<FIRST>, slot: u32, recursive: bool) -> u32 {
    // SAFETY: the caller's tables.
    unsafe {
        let caller = match (*own.state()).depth {
            0 => 0,
            depth => (*own.active(depth as usize - 1)).node,
        };
        let node = find_node(&own.tables, caller, slot, recursive);
        let place = own.tables.node(node as usize);
        (*place).invocations += 1;
        (*place).active += 1;
        node
    }
}

/// The node of `region` called from `caller`; a recursive region keeps the node it has in the chain.
unsafe fn find_node(tables: &Tables, caller: u32, region: u32, recursive: bool) -> u32 {
    // SAFETY: the caller's tables.
    unsafe {
        if recursive {
            let mut up = caller;
            while up != 0 {
                if (*tables.node(up as usize)).region == region {
                    return up;
                }
                up = (*tables.node(up as usize)).parent;
            }
        }
        let first = (*tables.node(caller as usize)).child;
        let (mut before, mut at) = (0, first);
        while at != 0 {
            let found = tables.node(at as usize);
            if (*found).region == region {
                // To the front: a caller with a hundred callees enters few of them often.
                if before != 0 {
                    (*tables.node(before as usize)).sibling = (*found).sibling;
                    (*found).sibling = first;
                    (*tables.node(caller as usize)).child = at;
                }
                return at;
            }
            (before, at) = (at, (*found).sibling);
        }
        let header = tables.header();
        let fresh = (*header).nodes as usize;
        if !room::has_room(tables, room::NODES, fresh) {
            return caller;
        }
        let parent = tables.node(caller as usize);
        *tables.node(fresh) = RawNode {
            region,
            parent: caller,
            child: 0,
            sibling: (*parent).child,
            active: 0,
            reserved: 0,
            invocations: 0,
            inclusive: 0,
            own: 0,
        };
        (*header).nodes += 1;
        compiler_fence(Ordering::SeqCst);
        (*parent).child = fresh as u32;
        fresh as u32
    }
}
