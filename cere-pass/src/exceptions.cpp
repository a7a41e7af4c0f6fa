// Loops that exceptions leave, or are caught in.
#include "extract.h"
#include "llvm-c/Core.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace {
// Stands for llvm.eh.typeid.for, which CodeExtractor refuses to move.
constexpr char TypeId[] = "cere.typeid";
} // namespace

SmallVector<BasicBlock *, 8> landingPadsOutside(const Loop &L) {
  SmallSetVector<BasicBlock *, 8> Pads;
  for (BasicBlock *BB : L.blocks())
    if (auto *I = dyn_cast<InvokeInst>(BB->getTerminator()))
      if (!L.contains(I->getUnwindDest()))
        Pads.insert(I->getUnwindDest());
  return Pads.takeVector();
}

extern "C" {

// Landing pads outside the loop with this header that its invokes reach: the loop gets its own.
void cere_own_landing_pads(LLVMValueRef Fn, LLVMBasicBlockRef Header) {
  DominatorTree DT(*unwrap<Function>(Fn));
  LoopInfo LI(DT);
  const Loop *L = loopAt(LI, unwrap(Header));
  if (!L)
    return;
  for (BasicBlock *Pad : landingPadsOutside(*L)) {
    SmallSetVector<BasicBlock *, 8> Preds;
    for (BasicBlock *P : predecessors(Pad))
      if (L->contains(P))
        Preds.insert(P);
    SmallVector<BasicBlock *, 2> New;
    SplitLandingPadPredecessors(Pad, Preds.getArrayRef(), ".cere", ".rest", New);
  }
}

// A landing pad's selector is a number that means a type in its own function only. Once a loop moves to another
// function with its pads, the code that tells the types apart may stay behind. So each pad turns its selector into
// a number that both agree on, and the comparisons use that number. The pads of every loop that moves are its own by
// then: what a pad's selector means is asked beside the pad, and has to move with it.
void cere_number_types(LLVMValueRef Fn) {
  Function &F = *unwrap<Function>(Fn);
  MapVector<const Value *, unsigned> Numbers;
  SmallVector<IntrinsicInst *, 8> Asked;
  SmallVector<LandingPadInst *, 8> Pads;
  for (BasicBlock &BB : F)
    for (Instruction &I : BB)
      if (auto *II = dyn_cast<IntrinsicInst>(&I); II && II->getIntrinsicID() == Intrinsic::eh_typeid_for) {
        Asked.push_back(II);
        Numbers.insert({II->getArgOperand(0)->stripPointerCasts(), Numbers.size() + 1});
      } else if (auto *P = dyn_cast<LandingPadInst>(&I); P && P->getNumClauses()) {
        Pads.push_back(P);
      }
  if (Asked.empty())
    return;
  IRBuilder<> B(F.getContext());
  Type *Int = B.getInt32Ty();
  FunctionCallee Id = F.getParent()->getOrInsertFunction(TypeId, Int, B.getPtrTy());
  for (IntrinsicInst *II : Asked) {
    II->replaceAllUsesWith(ConstantInt::get(Int, Numbers[II->getArgOperand(0)->stripPointerCasts()]));
    II->eraseFromParent();
  }
  for (LandingPadInst *P : Pads) {
    B.SetInsertPoint(P->getParent(), std::next(P->getIterator()));
    B.SetCurrentDebugLocation(P->getDebugLoc());
    Value *Exception = B.CreateExtractValue(P, 0);
    Value *Selector = B.CreateExtractValue(P, 1);
    Value *Zero = ConstantInt::get(Int, 0);
    Value *Number = B.CreateSelect(B.CreateICmpSLT(Selector, Zero), Selector, Zero);
    for (unsigned I = 0; I < P->getNumClauses(); ++I) {
      if (!P->isCatch(I))
        continue;
      auto Known = Numbers.find(P->getClause(I)->stripPointerCasts());
      if (Known == Numbers.end())
        continue;
      Value *Is = B.CreateICmpEQ(Selector, B.CreateCall(Id, {P->getClause(I)}));
      Number = B.CreateSelect(Is, ConstantInt::get(Int, Known->second), Number);
    }
    Value *First = B.CreateInsertValue(PoisonValue::get(P->getType()), Exception, 0);
    Value *Pair = B.CreateInsertValue(First, Number, 1);
    P->replaceUsesWithIf(Pair, [&](Use &U) { return U.getUser() != Exception && U.getUser() != Selector; });
  }
}

// Puts llvm.eh.typeid.for back.
void cere_restore_types(LLVMModuleRef M) {
  Function *Placeholder = unwrap(M)->getFunction(TypeId);
  if (!Placeholder)
    return;
  for (User *U : make_early_inc_range(Placeholder->users())) {
    auto *Call = cast<CallInst>(U);
    IRBuilder<> B(Call);
    Call->replaceAllUsesWith(
        B.CreateIntrinsic(Intrinsic::eh_typeid_for, {Call->getArgOperand(0)->getType()}, {Call->getArgOperand(0)}));
    Call->eraseFromParent();
  }
  Placeholder->eraseFromParent();
}
}
