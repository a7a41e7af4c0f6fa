//! Small helpers over the C API.

use crate::error::{PassError, Result};
use crate::shim;
use libc::c_char;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::ffi::{CStr, CString};

/// Attribute index of the function itself.
pub const FUNCTION: u32 = u32::MAX;

/// A C string without interior zeroes.
pub fn c(text: &str) -> CString {
    CString::new(text).expect("no zero byte in a name")
}

/// Functions of a module, collected so that the module may change meanwhile.
pub fn functions(module: LLVMModuleRef) -> Vec<LLVMValueRef> {
    // SAFETY: the module is live; the iteration ends at null.
    unsafe { chain(LLVMGetFirstFunction(module), |f| LLVMGetNextFunction(f)) }
}

/// The function of this name, declared or defined.
pub fn function(module: LLVMModuleRef, name: &str) -> Option<LLVMValueRef> {
    // SAFETY: the module is live.
    let found = unsafe { LLVMGetNamedFunction(module, c(name).as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The variable of this name, declared or defined.
pub fn variable(module: LLVMModuleRef, name: &str) -> Option<LLVMValueRef> {
    // SAFETY: the module is live.
    let found = unsafe { LLVMGetNamedGlobal(module, c(name).as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// LLVM's own variables that list others.
pub const LISTS: [&str; 4] = [
    "llvm.used",
    "llvm.compiler.used",
    "llvm.global_ctors",
    "llvm.global_dtors",
];

/// Variables of a module, but for LLVM's own lists: adding to one makes another variable of it, and frees the old one.
pub fn globals(module: LLVMModuleRef) -> Vec<LLVMValueRef> {
    // SAFETY: the module is live.
    let all = unsafe { chain(LLVMGetFirstGlobal(module), |g| LLVMGetNextGlobal(g)) };
    let listing = |v: &LLVMValueRef| LISTS.contains(&name(*v).as_str());
    all.into_iter().filter(|v| !listing(v)).collect()
}

/// Those of the values that are defined here.
pub fn defined(values: Vec<LLVMValueRef>) -> Vec<LLVMValueRef> {
    // SAFETY: the values are live.
    let is = |value: &LLVMValueRef| unsafe { LLVMIsDeclaration(*value) } == 0;
    values.into_iter().filter(is).collect()
}

/// Removes lists.
pub fn drop_lists(module: LLVMModuleRef, lists: &[&str]) {
    for list in lists {
        // SAFETY: the module is live; nothing refers to these lists.
        unsafe {
            let list = LLVMGetNamedGlobal(module, c(list).as_ptr());
            if !list.is_null() {
                LLVMDeleteGlobal(list);
            }
        }
    }
}

/// Aliases of a module.
pub fn aliases(module: LLVMModuleRef) -> Vec<LLVMValueRef> {
    // SAFETY: the module is live; nothing refers to this list meanwhile.
    unsafe {
        chain(LLVMGetFirstGlobalAlias(module), |a| {
            LLVMGetNextGlobalAlias(a)
        })
    }
}

/// Functions of a module that a resolver chooses.
pub fn ifuncs(module: LLVMModuleRef) -> Vec<LLVMValueRef> {
    // SAFETY: the module is live; nothing refers to this list meanwhile.
    unsafe {
        chain(LLVMGetFirstGlobalIFunc(module), |i| {
            LLVMGetNextGlobalIFunc(i)
        })
    }
}

/// Fails if the verifier rejects a module.
pub fn verify(module: LLVMModuleRef) -> Result<()> {
    // SAFETY: the module is live; the shim returns a malloc'ed string or null.
    match take_string(unsafe { shim::cere_verify_module(module) }) {
        None => Ok(()),
        Some(message) => Err(PassError::Verifier(one_line(&message))),
    }
}

/// Text of several lines as one.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Instructions of a function.
pub fn instructions(function: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut all = Vec::new();
    // SAFETY: the function is live; both iterations end at null.
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            all.extend(chain(LLVMGetFirstInstruction(block), |i| {
                LLVMGetNextInstruction(i)
            }));
            block = LLVMGetNextBasicBlock(block);
        }
    }
    all
}

fn chain(first: LLVMValueRef, next: impl Fn(LLVMValueRef) -> LLVMValueRef) -> Vec<LLVMValueRef> {
    std::iter::successors((!first.is_null()).then_some(first), |&v| {
        let v = next(v);
        (!v.is_null()).then_some(v)
    })
    .collect()
}

/// Name of a value; lossy.
pub fn name(value: LLVMValueRef) -> String {
    let mut length = 0;
    // SAFETY: the value is live and owns the bytes.
    unsafe {
        let data = LLVMGetValueName2(value, &mut length);
        String::from_utf8_lossy(std::slice::from_raw_parts(data.cast(), length)).into_owned()
    }
}

/// Renames a value.
pub fn set_name(value: LLVMValueRef, name: &str) {
    // SAFETY: the value is live; LLVM copies the name.
    unsafe { LLVMSetValueName2(value, name.as_ptr().cast(), name.len()) }
}

/// Takes a string that the shim or LLVM allocated with malloc.
pub fn take_string(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: a malloc'ed C string, ours from here on.
    unsafe {
        let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        Some(owned)
    }
}

/// Kind of an enum attribute.
pub fn kind(name: &str) -> u32 {
    // SAFETY: a name and its length.
    unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) }
}

/// Adds an enum attribute to a function.
pub fn add_enum(context: LLVMContextRef, function: LLVMValueRef, name: &str) {
    // SAFETY: context and function are live and belong together.
    unsafe {
        LLVMAddAttributeAtIndex(
            function,
            FUNCTION,
            LLVMCreateEnumAttribute(context, kind(name), 0),
        )
    }
}

/// Removes an enum attribute from a function.
pub fn remove_enum(function: LLVMValueRef, name: &str) {
    // SAFETY: the function is live.
    unsafe { LLVMRemoveEnumAttributeAtIndex(function, FUNCTION, kind(name)) }
}

/// Sets a string attribute of a function; an empty value removes it.
pub fn set_string(context: LLVMContextRef, function: LLVMValueRef, key: &str, value: &str) {
    // SAFETY: context and function are live; LLVM copies the strings.
    unsafe {
        LLVMRemoveStringAttributeAtIndex(function, FUNCTION, key.as_ptr().cast(), key.len() as u32);
        if !value.is_empty() {
            let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
            let attribute =
                LLVMCreateStringAttribute(context, k, key.len() as u32, v, value.len() as u32);
            LLVMAddAttributeAtIndex(function, FUNCTION, attribute);
        }
    }
}

/// Whether a function has an enum attribute.
pub fn has_enum(function: LLVMValueRef, name: &str) -> bool {
    // SAFETY: the function is live.
    unsafe { !LLVMGetEnumAttributeAtIndex(function, FUNCTION, kind(name)).is_null() }
}

/// Whether a function has a string attribute.
pub fn has_string(function: LLVMValueRef, key: &str) -> bool {
    // SAFETY: the function is live.
    unsafe {
        let length = key.len() as u32;
        !LLVMGetStringAttributeAtIndex(function, FUNCTION, key.as_ptr().cast(), length).is_null()
    }
}

/// Whether a value is a call or an invoke.
pub fn is_call(value: LLVMValueRef) -> bool {
    // SAFETY: the value is live.
    unsafe { !LLVMIsACallInst(value).is_null() || !LLVMIsAInvokeInst(value).is_null() }
}

/// Calls of a function, invokes among them.
pub fn calls(function: LLVMValueRef) -> Vec<LLVMValueRef> {
    let there = |used: LLVMUseRef| (!used.is_null()).then_some(used);
    // SAFETY: the function is live; the iteration ends at null.
    unsafe {
        let first = there(LLVMGetFirstUse(function));
        let uses = std::iter::successors(first, |&used| there(LLVMGetNextUse(used)));
        let is = |user: &LLVMValueRef| is_call(*user) && LLVMGetCalledValue(*user) == function;
        uses.map(|used| LLVMGetUser(used)).filter(is).collect()
    }
}
