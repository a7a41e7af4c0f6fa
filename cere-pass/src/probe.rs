//! The dormant probe around a region: descriptor, slow path, trampoline.

use crate::{ir, shim};
use cere_format::abi::*;
use cere_format::build::{Region, RegionKind};
use llvm_sys::core::*;
use llvm_sys::debuginfo::{LLVMGetSubprogram, LLVMInstructionGetDebugLoc};
use llvm_sys::prelude::*;
use llvm_sys::target::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMIntPredicate, LLVMLinkage, LLVMTypeKind};
use std::ptr::null_mut;

const EMPTY: *const libc::c_char = c"".as_ptr();

/// Names `outlined`, builds its trampoline, slow path and descriptor, and lets its only call go through the
/// probe.
///
/// # Safety
/// All values are live and belong to `module`; `outlined` has exactly one call. `unwinds`: exceptions may pass functions
/// that do not say so.
pub unsafe fn add(
    module: LLVMModuleRef,
    outlined: LLVMValueRef,
    marker: LLVMValueRef,
    region: &Region,
    unwinds: bool,
) {
    // SAFETY: all values are live and of this module.
    unsafe {
        let context = LLVMGetModuleContext(module);
        let index = region.index;
        let call = LLVMGetUser(LLVMGetFirstUse(outlined));
        let parent = LLVMGetBasicBlockParent(LLVMGetInstructionParent(call));
        ir::set_name(outlined, &format!("{OUTLINED_SYMBOL_PREFIX}{index}"));
        let kind = LLVMGlobalGetValueType(outlined);
        let result = LLVMGetReturnType(kind);
        let mut parameters = vec![null_mut(); LLVMCountParamTypes(kind) as usize];
        LLVMGetParamTypes(kind, parameters.as_mut_ptr());

        let void = LLVMGetTypeKind(result) == LLVMTypeKind::LLVMVoidTypeKind;
        let mut fields = vec![if void {
            LLVMInt64TypeInContext(context)
        } else {
            result
        }];
        fields.extend(&parameters);
        let block = LLVMStructTypeInContext(context, fields.as_mut_ptr(), fields.len() as u32, 0);
        let size = LLVMABISizeOfType(LLVMGetModuleDataLayout(module), block);

        let build = Build {
            context,
            module,
            index,
            parent,
            outlined,
            kind,
            result,
            parameters,
            block,
            void,
            unwinds,
        };
        let invoke = build.invoke();
        let kind = match region.kind {
            RegionKind::Loop => KIND_LOOP,
            RegionKind::Parallel => KIND_PARALLEL,
            RegionKind::Function => KIND_FUNCTION,
        };
        let descriptor = build.descriptor(marker, size, invoke, kind);
        let probed = build.probed(descriptor, invoke);
        build.site(call, descriptor, probed);
    }
}

struct Build {
    context: LLVMContextRef,
    module: LLVMModuleRef,
    index: u32,
    parent: LLVMValueRef,
    outlined: LLVMValueRef,
    kind: LLVMTypeRef,
    result: LLVMTypeRef,
    parameters: Vec<LLVMTypeRef>,
    block: LLVMTypeRef,
    void: bool,
    unwinds: bool,
}

impl Build {
    fn pointer(&self) -> LLVMTypeRef {
        // SAFETY: the context is live.
        unsafe { LLVMPointerTypeInContext(self.context, 0) }
    }

    fn hook_type(&self) -> LLVMTypeRef {
        // SAFETY: the context is live.
        unsafe {
            let mut parameters = [
                self.pointer(),
                LLVMInt32TypeInContext(self.context),
                self.pointer(),
            ];
            LLVMFunctionType(
                LLVMVoidTypeInContext(self.context),
                parameters.as_mut_ptr(),
                3,
                0,
            )
        }
    }

    fn trampoline_type(&self) -> LLVMTypeRef {
        let mut parameter = self.pointer();
        // SAFETY: the context is live.
        unsafe { LLVMFunctionType(LLVMVoidTypeInContext(self.context), &mut parameter, 1, 0) }
    }

    fn may_unwind(&self) -> bool {
        // SAFETY: the function is live.
        unsafe {
            LLVMGetEnumAttributeAtIndex(
                self.outlined,
                LLVMAttributeFunctionIndex,
                ir::kind("nounwind"),
            )
            .is_null()
        }
    }

    /// A new internal function that is compiled for the same target as the outlined one.
    unsafe fn function(&self, prefix: &str, kind: LLVMTypeRef) -> LLVMValueRef {
        // SAFETY: everything is live; LLVM fills as many attributes as it counted.
        unsafe {
            let name = ir::c(&format!("{prefix}{}", self.index));
            let function = LLVMAddFunction(self.module, name.as_ptr(), kind);
            LLVMSetLinkage(function, LLVMLinkage::LLVMInternalLinkage);
            let count =
                LLVMGetAttributeCountAtIndex(self.outlined, LLVMAttributeFunctionIndex) as usize;
            let mut attributes = vec![null_mut(); count];
            LLVMGetAttributesAtIndex(
                self.outlined,
                LLVMAttributeFunctionIndex,
                attributes.as_mut_ptr(),
            );
            for attribute in attributes {
                let wanted = if LLVMIsStringAttribute(attribute) != 0 {
                    let mut length = 0;
                    let data = LLVMGetStringAttributeKind(attribute, &mut length);
                    let key = std::slice::from_raw_parts(data.cast::<u8>(), length as usize);
                    let traced: [&[u8]; 4] =
                        [b"instrument", b"patchable", b"xray", b"function-instrument"];
                    !traced.iter().any(|prefix| key.starts_with(prefix))
                } else {
                    let kind = LLVMGetEnumAttributeKind(attribute);
                    [
                        "uwtable",
                        "nounwind",
                        "sspstrong",
                        "ssp",
                        "sspreq",
                        "optsize",
                        "minsize",
                        "noredzone",
                        "nocf_check",
                    ]
                    .iter()
                    .any(|name| ir::kind(name) == kind)
                };
                if wanted {
                    LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute);
                }
            }
            ir::add_enum(self.context, function, "noinline");
            function
        }
    }

    unsafe fn field(
        &self,
        builder: LLVMBuilderRef,
        block: LLVMValueRef,
        field: usize,
    ) -> LLVMValueRef {
        // SAFETY: the field exists.
        unsafe { LLVMBuildStructGEP2(builder, self.block, block, field as u32, EMPTY) }
    }

    unsafe fn invoke(&self) -> LLVMValueRef {
        // SAFETY: everything is live and of this module.
        unsafe {
            let function = self.function(INVOKE_SYMBOL_PREFIX, self.trampoline_type());
            let builder = LLVMCreateBuilderInContext(self.context);
            LLVMPositionBuilderAtEnd(
                builder,
                LLVMAppendBasicBlockInContext(self.context, function, EMPTY),
            );
            let block = LLVMGetParam(function, 0);
            let mut arguments = Vec::new();
            for (i, &parameter) in self.parameters.iter().enumerate() {
                let field = self.field(builder, block, i + 1);
                arguments.push(LLVMBuildLoad2(builder, parameter, field, EMPTY));
            }
            let count = arguments.len() as u32;
            let call = LLVMBuildCall2(
                builder,
                self.kind,
                self.outlined,
                arguments.as_mut_ptr(),
                count,
                EMPTY,
            );
            LLVMSetInstructionCallConv(call, LLVMGetFunctionCallConv(self.outlined));
            if !self.void {
                LLVMBuildStore(builder, call, self.field(builder, block, 0));
            }
            LLVMBuildRetVoid(builder);
            LLVMDisposeBuilder(builder);
            function
        }
    }

    unsafe fn descriptor(
        &self,
        marker: LLVMValueRef,
        size: u64,
        invoke: LLVMValueRef,
        kind: u32,
    ) -> LLVMValueRef {
        // SAFETY: everything is live and of this module.
        unsafe {
            let long = LLVMInt64TypeInContext(self.context);
            let int = LLVMInt32TypeInContext(self.context);
            let mut fields = [
                LLVMConstInt(long, REGION_MAGIC, 0),
                LLVMConstNull(self.pointer()),
                marker,
                LLVMConstInt(int, self.index.into(), 0),
                LLVMConstInt(int, size, 0),
                invoke,
                self.outlined,
                LLVMConstInt(long, 0, 0),
                LLVMConstInt(int, kind.into(), 0),
                LLVMConstInt(int, 0, 0),
            ];
            let value =
                LLVMConstStructInContext(self.context, fields.as_mut_ptr(), fields.len() as u32, 0);
            let name = ir::c(&format!("{REGION_SYMBOL_PREFIX}{}", self.index));
            let global = LLVMAddGlobal(self.module, LLVMTypeOf(value), name.as_ptr());
            LLVMSetInitializer(global, value);
            LLVMSetLinkage(global, LLVMLinkage::LLVMInternalLinkage);
            LLVMSetSection(global, ir::c(REGION_SECTION).as_ptr());
            LLVMSetAlignment(global, 64);
            // Not in llvm.used: the probe's volatile load keeps it. Where the optimiser drops the parent,
            // the region and all that it calls have to go too, or the link misses what only dead code names.
            global
        }
    }

    unsafe fn hook(
        &self,
        builder: LLVMBuilderRef,
        hook: LLVMValueRef,
        descriptor: LLVMValueRef,
        event: u32,
        block: LLVMValueRef,
    ) {
        // SAFETY: everything is live and of this module.
        unsafe {
            let event = LLVMConstInt(LLVMInt32TypeInContext(self.context), event.into(), 0);
            let mut arguments = [descriptor, event, block];
            LLVMBuildCall2(
                builder,
                self.hook_type(),
                hook,
                arguments.as_mut_ptr(),
                3,
                EMPTY,
            );
        }
    }

    unsafe fn probed(&self, descriptor: LLVMValueRef, invoke: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: everything is live and of this module.
        unsafe {
            let mut parameters = vec![self.pointer()];
            parameters.extend(&self.parameters);
            let kind = LLVMFunctionType(
                self.result,
                parameters.as_mut_ptr(),
                parameters.len() as u32,
                0,
            );
            let function = self.function(PROBED_SYMBOL_PREFIX, kind);
            ir::add_enum(self.context, function, "cold");
            let append = || LLVMAppendBasicBlockInContext(self.context, function, EMPTY);
            let builder = LLVMCreateBuilderInContext(self.context);
            LLVMPositionBuilderAtEnd(builder, append());
            let hook = LLVMGetParam(function, 0);
            let block = LLVMBuildAlloca(builder, self.block, c"block".as_ptr());
            for i in 0..self.parameters.len() {
                let value = LLVMGetParam(function, i as u32 + 1);
                LLVMBuildStore(builder, value, self.field(builder, block, i + 1));
            }
            self.hook(builder, hook, descriptor, EVENT_ENTER, block);
            let mut argument = block;
            let trampoline = self.trampoline_type();
            match self.personality() {
                Some(personality) => {
                    LLVMSetPersonalityFn(function, personality);
                    let (normal, unwind) = (append(), append());
                    LLVMBuildInvoke2(
                        builder,
                        trampoline,
                        invoke,
                        &mut argument,
                        1,
                        normal,
                        unwind,
                        EMPTY,
                    );
                    LLVMPositionBuilderAtEnd(builder, unwind);
                    let mut pair = [self.pointer(), LLVMInt32TypeInContext(self.context)];
                    let pair = LLVMStructTypeInContext(self.context, pair.as_mut_ptr(), 2, 0);
                    let pad = LLVMBuildLandingPad(builder, pair, null_mut(), 0, EMPTY);
                    LLVMSetCleanup(pad, 1);
                    self.hook(builder, hook, descriptor, EVENT_UNWIND, block);
                    LLVMBuildResume(builder, pad);
                    LLVMPositionBuilderAtEnd(builder, normal);
                }
                None => {
                    LLVMBuildCall2(builder, trampoline, invoke, &mut argument, 1, EMPTY);
                }
            }
            self.hook(builder, hook, descriptor, EVENT_LEAVE, block);
            if self.void {
                LLVMBuildRetVoid(builder);
            } else {
                let value =
                    LLVMBuildLoad2(builder, self.result, self.field(builder, block, 0), EMPTY);
                LLVMBuildRet(builder, value);
            }
            LLVMDisposeBuilder(builder);
            function
        }
    }

    /// The personality of the slow path; `None` if no unwinding passes it.
    unsafe fn personality(&self) -> Option<LLVMValueRef> {
        // SAFETY: everything is live and of this module.
        unsafe {
            if !self.may_unwind() {
                return None;
            }
            if LLVMHasPersonalityFn(self.parent) != 0 {
                return Some(LLVMGetPersonalityFn(self.parent));
            }
            if !self.unwinds {
                return None;
            }
            // The one for cleanups alone: part of the compiler's own library, so any link has it, while a C++
            // runtime may not be there.
            let name = c"__gcc_personality_v0";
            let known = LLVMGetNamedFunction(self.module, name.as_ptr());
            if !known.is_null() {
                return Some(known);
            }
            let kind = LLVMFunctionType(LLVMInt32TypeInContext(self.context), null_mut(), 0, 1);
            Some(LLVMAddFunction(self.module, name.as_ptr(), kind))
        }
    }

    unsafe fn site(&self, call: LLVMValueRef, descriptor: LLVMValueRef, probed: LLVMValueRef) {
        // SAFETY: everything is live and of this module; the call moves into a block of its own.
        unsafe {
            let head = LLVMGetInstructionParent(call);
            let tail = shim::cere_split_before(call);
            let fast = LLVMInsertBasicBlockInContext(self.context, tail, c"cere.fast".as_ptr());
            let slow =
                LLVMAppendBasicBlockInContext(self.context, self.parent, c"cere.slow".as_ptr());
            let location = LLVMInstructionGetDebugLoc(call);
            let builder = LLVMCreateBuilderInContext(self.context);
            if !LLVMGetSubprogram(self.parent).is_null() && !location.is_null() {
                LLVMSetCurrentDebugLocation2(builder, location);
            }

            LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(head));
            LLVMPositionBuilderAtEnd(builder, head);
            let byte = LLVMInt8TypeInContext(self.context);
            let mut offset =
                LLVMConstInt(LLVMInt64TypeInContext(self.context), HOOK_OFFSET as u64, 0);
            let address = LLVMConstInBoundsGEP2(byte, descriptor, &mut offset, 1);
            let hook = LLVMBuildLoad2(builder, self.pointer(), address, c"cere.hook".as_ptr());
            LLVMSetVolatile(hook, 1);
            let none = LLVMConstNull(self.pointer());
            let armed = LLVMBuildICmp(builder, LLVMIntPredicate::LLVMIntNE, hook, none, EMPTY);
            let branch = LLVMBuildCondBr(builder, armed, slow, fast);
            self.unlikely(branch);

            LLVMPositionBuilderAtEnd(builder, fast);
            LLVMInstructionRemoveFromParent(call);
            LLVMInsertIntoBuilder(builder, call);
            LLVMBuildBr(builder, tail);

            LLVMPositionBuilderAtEnd(builder, slow);
            let mut arguments = vec![hook];
            arguments.extend((0..LLVMGetNumArgOperands(call)).map(|i| LLVMGetOperand(call, i)));
            let kind = LLVMGlobalGetValueType(probed);
            let count = arguments.len() as u32;
            let other = LLVMBuildCall2(builder, kind, probed, arguments.as_mut_ptr(), count, EMPTY);
            LLVMBuildBr(builder, tail);

            if !self.void {
                LLVMPositionBuilderBefore(builder, LLVMGetFirstInstruction(tail));
                let phi = LLVMBuildPhi(builder, self.result, EMPTY);
                LLVMReplaceAllUsesWith(call, phi);
                let (mut values, mut blocks) = ([call, other], [fast, slow]);
                LLVMAddIncoming(phi, values.as_mut_ptr(), blocks.as_mut_ptr(), 2);
            }
            LLVMDisposeBuilder(builder);
        }
    }

    unsafe fn unlikely(&self, branch: LLVMValueRef) {
        // SAFETY: the branch is live; metadata belongs to its context.
        unsafe {
            let int = LLVMInt32TypeInContext(self.context);
            let weight = |n| LLVMValueAsMetadata(LLVMConstInt(int, n, 0));
            let name = "branch_weights";
            let mut nodes = [
                LLVMMDStringInContext2(self.context, name.as_ptr().cast(), name.len()),
                weight(1),
                weight(1_000_000),
            ];
            let node = LLVMMDNodeInContext2(self.context, nodes.as_mut_ptr(), nodes.len());
            let kind = LLVMGetMDKindIDInContext(self.context, c"prof".as_ptr(), 4);
            LLVMSetMetadata(branch, kind, LLVMMetadataAsValue(self.context, node));
        }
    }
}
