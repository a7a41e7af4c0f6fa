//! The LLVM plugin. With `CERE_COMMAND` it outlines the unit's loops, puts probes around them and keeps the
//! IR; with `CERE_BIND` it prepares a kept unit for a replay, with `CERE_SPLIT` for a hybrid binary; with
//! `CERE_BRIDGE` it lets edited code run on what was captured, with `CERE_SHAPES` it reports what the pipeline makes of variables, with `CERE_COUNT` it makes code that reports what it
//! executes; with `CERE_CROSS` it makes kept IR that of another architecture; with none it does nothing.
//!
//! Whoever loads a plugin reads its stderr alone: what ends a compile is said there, by `guarded`. LLVM's own diagnostics would
//! depend on the user's flags (`-w`, `-Werror`), and clang and flang word them differently.

mod bind;
mod bridge;
mod captured;
mod cross;
mod error;
mod functions;
mod ir;
mod labels;
mod lost;
mod names;
mod outline;
mod places;
mod probe;
mod retarget;
mod runtime;
mod shapes;
mod shim;
mod sources;
mod split;
mod symbols;
mod team;
mod unit;
mod vectors;

use cere_format::build::{
    BindPlan, BridgePlan, CompileCommand, CountPlan, CrossPlan, ENV_BIND, ENV_BRIDGE, ENV_COMMAND,
    ENV_COUNT, ENV_CROSS, ENV_KEPT_ALONE, ENV_SHAPES, ENV_SPLIT, SplitPlan,
};
use error::{PassError, Result};
use libc::{c_char, c_void};
use llvm_sys::prelude::*;
use serde::de::DeserializeOwned;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// What LLVM wants to know about a plugin: `PassPluginLibraryInfo`, version 2.
#[repr(C)]
pub struct PassPluginLibraryInfo {
    api_version: u32,
    name: *const c_char,
    version: *const c_char,
    register: unsafe extern "C" fn(*mut c_void),
    before_codegen: extern "C" fn(LLVMModuleRef, *mut c_void, u32, *mut c_void) -> bool,
}

/// The plugin's entry point.
#[unsafe(no_mangle)]
pub extern "C" fn llvmGetPassPluginInfo() -> PassPluginLibraryInfo {
    PassPluginLibraryInfo {
        api_version: 2,
        name: c"cere".as_ptr(),
        version: c"0.1".as_ptr(),
        register: shim::cere_register,
        before_codegen,
    }
}

/// Ends the compiler, which has written nothing yet.
fn end(status: i32) -> ! {
    // SAFETY: both have no preconditions.
    unsafe {
        shim::cere_remove_files();
        libc::_exit(status)
    }
}

/// Ends the compile when `work` fails or panics: a panic must not cross into LLVM. The wrapper reads the line on a region.
fn guarded(work: impl FnOnce() -> Result<()>) {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            eprintln!("cere: {error}");
            if let PassError::Region { index, reason, .. } = error {
                eprintln!("CERE-RETRY-SKIP {index} {reason}");
                end(77)
            }
            end(78)
        }
        Err(_) => {
            eprintln!(
                "cere: the pass failed; this is a bug, please report it with the message above"
            );
            end(78)
        }
    }
}

/// The JSON file that an environment variable names, if it is set.
fn from_env<T: DeserializeOwned>(variable: &'static str) -> Result<Option<T>> {
    let Some(file) = path_from_env(variable) else {
        return Ok(None);
    };
    let read = match std::fs::read(&file) {
        Ok(read) => read,
        Err(source) => {
            return Err(PassError::Read {
                file,
                variable,
                source,
            });
        }
    };
    serde_json::from_slice(&read)
        .map(Some)
        .map_err(|source| PassError::Plan {
            file,
            variable,
            source,
        })
}

fn path_from_env(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}

/// Where to write what the pipeline makes of variables, if that is asked for.
fn shapes_wanted() -> Option<PathBuf> {
    path_from_env(ENV_SHAPES)
}

/// What kept IR needs before the pipeline; whether a plan asked for it.
fn prepare(module: LLVMModuleRef) -> Result<bool> {
    if let Some(plan) = from_env::<BindPlan>(ENV_BIND)? {
        retarget::apply(module, &plan.retarget);
        if plan.pinned {
            bind::pin(module, &plan)?;
        }
        return Ok(true);
    }
    if let Some(plan) = from_env::<SplitPlan>(ENV_SPLIT)? {
        retarget::apply(module, &plan.retarget);
        split::prepare(module, &plan)?;
        return Ok(true);
    }
    if let Some(plan) = from_env::<BridgePlan>(ENV_BRIDGE)? {
        bridge::bridge(module, &plan)?;
        // No code is wanted.
        end(0);
    }
    if shapes_wanted().is_some() {
        shapes::mark(module);
        return Ok(true);
    }
    if from_env::<CountPlan>(ENV_COUNT)?.is_some() {
        return Ok(true);
    }
    Ok(false)
}

/// The code that is made from now on reports what it executes.
fn count(unit: &str) {
    let unit = ir::c(unit);
    // SAFETY: the process makes the code of one module; the string is copied.
    unsafe { shim::cere_count_code(unit.as_ptr()) };
}

/// Called by the shim's pass at the start of the pipeline.
#[unsafe(no_mangle)]
extern "C" fn cere_pipeline_start(module: LLVMModuleRef, optimize: bool) {
    guarded(|| {
        if prepare(module)? {
            return ir::verify(module);
        }
        if let Some(command) = from_env::<CompileCommand>(ENV_COMMAND)? {
            unit::instrument(module, command, optimize)?;
            if path_from_env(ENV_KEPT_ALONE).is_some() {
                end(0);
            }
        }
        Ok(())
    });
}

/// Called by the textual pass `cere-retarget`.
#[unsafe(no_mangle)]
extern "C" fn cere_retarget(module: LLVMModuleRef) {
    guarded(|| match prepare(module)? {
        true => ir::verify(module),
        false => Ok(()),
    });
}

/// Called by the textual pass `cere-cross`.
#[unsafe(no_mangle)]
extern "C" fn cere_cross(module: LLVMModuleRef) {
    guarded(|| match from_env::<CrossPlan>(ENV_CROSS)? {
        Some(plan) => {
            cross::cross(module, &plan)?;
            ir::verify(module)
        }
        None => Ok(()),
    });
}

/// Called by the textual pass `cere-bind`: the module becomes one that needs no plugin any more.
#[unsafe(no_mangle)]
extern "C" fn cere_bind(module: LLVMModuleRef) {
    before_codegen(module, std::ptr::null_mut(), 0, std::ptr::null_mut());
}

extern "C" fn before_codegen(
    module: LLVMModuleRef,
    _: *mut c_void,
    _: u32,
    _: *mut c_void,
) -> bool {
    guarded(|| {
        labels::settle(module);
        if let Some(plan) = from_env::<BindPlan>(ENV_BIND)? {
            bind::bind(module, &plan)?;
            ir::verify(module)?;
            if let Some(unit) = plan.counted {
                count(&unit);
            }
        } else if let Some(plan) = from_env::<CountPlan>(ENV_COUNT)? {
            count(&plan.unit);
        } else if let Some(plan) = from_env::<SplitPlan>(ENV_SPLIT)? {
            split::cut(module, &plan)?;
            ir::verify(module)?;
        } else if let Some(path) = shapes_wanted() {
            shapes::write(module, &path)?;
            // No code is wanted.
            end(0);
        }
        Ok(())
    });
    false
}
