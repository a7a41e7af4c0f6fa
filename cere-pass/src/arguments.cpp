// What an outlined function may know of its arguments.
#include "llvm-c/Core.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/CaptureTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {
// Values of the caller that are computed from V, V included.
SetVector<const Value *> derived(const Value *V) {
  SetVector<const Value *> All;
  All.insert(V);
  for (size_t I = 0; I < All.size(); ++I)
    for (const User *U : All[I]->users())
      if (isa<GetElementPtrInst>(U) || isa<CastInst>(U) || isa<PHINode>(U) || isa<SelectInst>(U) ||
          isa<FreezeInst>(U) || isa<CallBase>(U))
        All.insert(U);
  return All;
}

// Whether nothing but argument N of the call leads to the object that it points to.
bool onlyWay(CallBase &Call, unsigned N, DominatorTree &DT) {
  const Value *V = Call.getArgOperand(N);
  const auto *A = dyn_cast<Argument>(V);
  if (!isa<AllocaInst>(V) && !isNoAliasCall(V) && !(A && A->hasNoAliasAttr()))
    return false;
  if (PointerMayBeCapturedBefore(V, false, &Call, &DT))
    return false;
  auto Derived = derived(V);
  for (unsigned I = 0; I < Call.arg_size(); ++I)
    if (I != N && Derived.contains(Call.getArgOperand(I)))
      return false;
  return true;
}
} // namespace

extern "C" {

// Hands on to the parameters of an outlined function what its only call says about the arguments. In two steps for
// all regions of a function: what one call does not capture, the next may find uncaptured.
void cere_note_captures(LLVMValueRef Outlined) {
  for (Argument &A : unwrap<Function>(Outlined)->args())
    if (A.getType()->isPointerTy() && !PointerMayBeCaptured(&A, false))
      A.addAttr(Attribute::getWithCaptureInfo(A.getContext(), CaptureInfo::none()));
}

void cere_note_arguments(LLVMValueRef Outlined) {
  Function &F = *unwrap<Function>(Outlined);
  auto &Call = *cast<CallBase>(F.user_back());
  DominatorTree DT(*Call.getFunction());
  const DataLayout &DL = F.getDataLayout();
  LLVMContext &C = F.getContext();
  for (unsigned I = 0; I < Call.arg_size(); ++I) {
    Value *V = Call.getArgOperand(I);
    if (!V->getType()->isPointerTy())
      continue;
    if (auto *A = dyn_cast<AllocaInst>(V)) {
      F.addParamAttr(I, Attribute::getWithAlignment(C, A->getAlign()));
      F.addParamAttr(I, Attribute::NonNull);
      if (auto Size = A->getAllocationSize(DL); Size && !Size->isScalable() && Size->getFixedValue())
        F.addDereferenceableParamAttr(I, Size->getFixedValue());
    } else if (auto *A = dyn_cast<Argument>(V)) {
      for (auto Kind : {Attribute::NonNull, Attribute::Dereferenceable, Attribute::DereferenceableOrNull,
                        Attribute::Alignment, Attribute::NoUndef})
        if (A->hasAttribute(Kind))
          F.addParamAttr(I, A->getAttribute(Kind));
    }
    if (onlyWay(Call, I, DT))
      F.addParamAttr(I, Attribute::NoAlias);
  }
}
}
