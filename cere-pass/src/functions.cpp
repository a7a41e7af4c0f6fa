// Whole functions as regions: what stands in the way, and the move of the body to a function of its own. C++ because
// the C API cannot move blocks from one function to another, or remove attributes of a call's arguments.
#include "extract.h"
#include "llvm-c/Core.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {
// How the ABI hands an argument over: the outlined function gets what the wrapper got, as plain values.
constexpr Attribute::AttrKind Passing[] = {Attribute::StructRet, Attribute::ByVal, Attribute::ByRef,
                                           Attribute::Nest,      Attribute::InReg, Attribute::SwiftSelf,
                                           Attribute::ZExt,      Attribute::SExt};
// Arguments that no second call can hand on.
constexpr Attribute::AttrKind Immovable[] = {Attribute::InAlloca, Attribute::Preallocated, Attribute::SwiftError,
                                             Attribute::SwiftAsync};
// Attributes that make each call of a function known to the program or to a tracer.
constexpr StringLiteral Traced[] = {"instrument", "patchable", "xray", "function-instrument"};

bool isTraced(Attribute A) {
  return A.isStringAttribute() &&
         any_of(Traced, [&](StringRef Start) { return A.getKindAsString().starts_with(Start); });
}

bool isPlain(const Type *T) { return !T->isTokenTy() && !T->isX86_AMXTy() && !T->isMetadataTy(); }

const char *signatureRefusal(const Function &F) {
  if (F.hasFnAttribute(Attribute::Naked))
    return "the function is naked";
  if (F.isPresplitCoroutine())
    return "the function is a coroutine";
  if (F.isVarArg())
    return "the function takes variable arguments";
  if (F.hasFnAttribute(Attribute::AlwaysInline))
    return "the function is always inlined: its code belongs to its callers";
  if (F.hasFnAttribute(Attribute::ReturnsTwice))
    return "the function may return more than once, as setjmp does";
  if (F.getCallingConv() == CallingConv::X86_INTR)
    return "the function is a handler of interrupts";
  for (const Argument &A : F.args())
    if (!isPlain(A.getType()) || any_of(Immovable, [&](Attribute::AttrKind Kind) { return A.hasAttribute(Kind); }))
      return "the function has an argument that cannot be handed on";
  return isPlain(F.getReturnType()) ? nullptr : "the function returns what cannot be handed on";
}

const char *refusal(const Instruction &I) {
  const auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return nullptr;
  if (Call->isMustTailCall())
    return "the function ends in a call that has to take its place (musttail)";
  return asksForFrame(I) ? "the function asks for its frame or return address" : nullptr;
}

// The attributes of F for its body: what they say of values stays, how those are handed over does not.
void describeParameters(const Function &F, Function &Body) {
  for (const Argument &A : F.args()) {
    const unsigned I = A.getArgNo();
    if (Type *Copied = A.getParamByValType()) {
      Body.addParamAttr(I, Attribute::NoAlias);
      Body.addParamAttr(I, Attribute::NonNull);
      Body.addDereferenceableParamAttr(I, F.getDataLayout().getTypeAllocSize(Copied));
    }
    for (Attribute::AttrKind Kind : Passing)
      Body.removeParamAttr(I, Kind);
  }
  for (Attribute::AttrKind Kind : {Attribute::InReg, Attribute::ZExt, Attribute::SExt})
    Body.removeRetAttr(Kind);
  for (Attribute A : F.getAttributes().getFnAttrs())
    if (isTraced(A))
      Body.removeFnAttr(A.getKindAsString());
}

// The body takes the debug information along, as its instructions refer to it; the wrapper gets the like.
DISubprogram *splitDebugInfo(Function &F, Function &Body) {
  DISubprogram *Known = F.getSubprogram();
  if (!Known)
    return nullptr;
  DISubprogram *Own = MDNode::replaceWithDistinct(Known->clone());
  Own->replaceRetainedNodes(MDTuple::get(F.getContext(), {}));
  Body.setSubprogram(Known);
  F.setSubprogram(Own);
  return Own;
}
} // namespace

extern "C" {

// Why the function cannot be a region as a whole; null if nothing is known to forbid it.
const char *cere_refuse_function(LLVMValueRef Fn) {
  const Function &F = *unwrap<Function>(Fn);
  if (const char *Reason = signatureRefusal(F))
    return Reason;
  for (const BasicBlock &BB : F) {
    if (BB.hasAddressTaken())
      return "the function has labels whose address is taken";
    for (const Instruction &I : BB)
      if (const char *Reason = refusal(I))
        return Reason;
  }
  return nullptr;
}

// Moves the body to a function of its own, which the old one calls with its arguments.
LLVMValueRef cere_outline_function(LLVMValueRef Fn, size_t *Inputs) {
  Function &F = *unwrap<Function>(Fn);
  auto *Body =
      Function::Create(F.getFunctionType(), GlobalValue::ExternalLinkage, F.getAddressSpace(), "cere", F.getParent());
  Body->copyAttributesFrom(&F);
  Body->setCallingConv(CallingConv::C);
  Body->setVisibility(GlobalValue::DefaultVisibility);
  Body->setDLLStorageClass(GlobalValue::DefaultStorageClass);
  Body->setLinkage(GlobalValue::InternalLinkage);
  Body->setSection("");
  Body->setPartition("");
  Body->setPrefixData(nullptr);
  Body->setPrologueData(nullptr);
  Body->setMetadata(LLVMContext::MD_prof, F.getMetadata(LLVMContext::MD_prof));
  describeParameters(F, *Body);
  DISubprogram *Own = splitDebugInfo(F, *Body);
  Body->splice(Body->begin(), &F);
  SmallVector<Value *, 8> Arguments;
  for (auto [Old, New] : zip(F.args(), Body->args())) {
    Old.replaceAllUsesWith(&New);
    New.takeName(&Old);
    Arguments.push_back(&Old);
  }
  IRBuilder<> B(BasicBlock::Create(F.getContext(), "", &F));
  if (Own)
    B.SetCurrentDebugLocation(DILocation::get(F.getContext(), Own->getLine(), 0, Own));
  CallInst *Call = B.CreateCall(Body, Arguments);
  if (F.getReturnType()->isVoidTy())
    B.CreateRetVoid();
  else
    B.CreateRet(Call);
  *Inputs = F.arg_size();
  return wrap(Body);
}

// Calls of the function in `Part`, which is its body or outlined of it, go to the body: they belong to the outermost
// call. Not where each call is traced, copies an argument, or may go to another definition.
void cere_join_recursion(LLVMValueRef Fn, LLVMValueRef Body_, LLVMValueRef Part) {
  Function &F = *unwrap<Function>(Fn), &Body = *unwrap<Function>(Body_);
  const bool Copies = any_of(F.args(), [](const Argument &A) { return A.hasByValAttr(); });
  if (Copies || F.isInterposable() || any_of(F.getAttributes().getFnAttrs(), isTraced))
    return;
  for (Use &U : make_early_inc_range(F.uses())) {
    auto *Call = dyn_cast<CallBase>(U.getUser());
    if (!Call || !Call->isCallee(&U) || Call->getFunction() != unwrap<Function>(Part) ||
        Call->getFunctionType() != F.getFunctionType())
      continue;
    Call->setCalledOperand(&Body);
    Call->setCallingConv(CallingConv::C);
    for (unsigned I = 0; I < Call->arg_size(); ++I)
      for (Attribute::AttrKind Kind : Passing)
        Call->removeParamAttr(I, Kind);
    for (Attribute::AttrKind Kind : {Attribute::InReg, Attribute::ZExt, Attribute::SExt})
      Call->removeRetAttr(Kind);
  }
}
}
