// Stack that a loop takes and gives back.
#include "extract.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace {
// The slot that an instruction's value is kept in at -O0: the alloca that it is stored to.
const AllocaInst *slotOf(const Instruction *Save) {
  for (const User *U : Save->users())
    if (const auto *S = dyn_cast<StoreInst>(U))
      return dyn_cast<AllocaInst>(S->getPointerOperand());
  return nullptr;
}

// Whether `I` gives the stack back to where it was at `Save`.
bool restores(const Instruction &I, const Instruction *Save) {
  const auto *II = dyn_cast<IntrinsicInst>(&I);
  if (!II || II->getIntrinsicID() != Intrinsic::stackrestore)
    return false;
  const Value *To = II->getArgOperand(0);
  if (const auto *Phi = dyn_cast<PHINode>(To); Phi && Phi->hasConstantValue())
    To = Phi->hasConstantValue();
  if (To == Save)
    return true;
  const auto *From = dyn_cast<LoadInst>(To);
  const AllocaInst *Slot = slotOf(Save);
  return From && Slot && From->getPointerOperand() == Slot;
}

const IntrinsicInst *stackSave(const Instruction &I) {
  const auto *II = dyn_cast<IntrinsicInst>(&I);
  return II && II->getIntrinsicID() == Intrinsic::stacksave ? II : nullptr;
}

// The blocks outside the loop in which memory that `Alloca` took is still in use: from the loop's exits to
// where the stack is given back to `Save`. False if it outlives the iteration or the function.
bool livesUntil(AllocaInst *Alloca, Instruction *Save, const Loop &L, Blocks &Tail) {
  SmallPtrSet<BasicBlock *, 16> Seen;
  SmallVector<BasicBlock::iterator, 16> Work{std::next(Alloca->getIterator())};
  while (!Work.empty()) {
    auto It = Work.pop_back_val();
    BasicBlock *BB = It->getParent();
    bool Ended = false;
    for (; It != BB->end() && !Ended; ++It)
      if (restores(*It, Save))
        Ended = true;
    if (!L.contains(BB))
      Tail.insert(BB);
    if (Ended)
      continue;
    if (isa<ReturnInst>(BB->getTerminator()) || isa<ResumeInst>(BB->getTerminator()))
      return false;
    for (BasicBlock *Next : successors(BB)) {
      if (Next == L.getHeader())
        return false;
      if (Seen.insert(Next).second)
        Work.push_back(Next->begin());
    }
  }
  return true;
}

} // namespace

const char *stackUse(Loop &L, DominatorTree &DT, Blocks &Tail) {
  SmallVector<Instruction *, 4> Saves, Restores;
  SmallVector<AllocaInst *, 4> Allocas;
  for (BasicBlock *BB : L.blocks())
    for (Instruction &I : *BB) {
      if (auto *A = dyn_cast<AllocaInst>(&I))
        Allocas.push_back(A);
      else if (stackSave(I))
        Saves.push_back(&I);
      else if (auto *II = dyn_cast<IntrinsicInst>(&I); II && II->getIntrinsicID() == Intrinsic::stackrestore)
        Restores.push_back(&I);
    }
  for (Instruction *R : Restores)
    if (none_of(Saves, [&](Instruction *S) { return restores(*R, S); }))
      return "the loop gives back stack that was taken before it";
  for (AllocaInst *A : Allocas) {
    bool Ends = false;
    for (Instruction *S : Saves) {
      Blocks Behind;
      if (!DT.dominates(S, A) || !livesUntil(A, S, L, Behind))
        continue;
      Tail.insert_range(Behind);
      Ends = true;
      break;
    }
    if (!Ends)
      return "alloca in the loop that outlives it";
  }
  // Only the part up to the giving back comes along.
  for (BasicBlock *BB : to_vector(Tail))
    for (Instruction &I : *BB)
      if (Instruction *Next = I.getNextNode(); any_of(Saves, [&](Instruction *S) { return restores(I, S); }) &&
                                               (isa<InvokeInst>(Next) || !Next->isTerminator())) {
        SplitBlock(BB, Next->getIterator(), &DT);
        break;
      }
  for (BasicBlock *BB : Tail) {
    for (BasicBlock *P : predecessors(BB))
      if (!L.contains(P) && !Tail.contains(P))
        return "stack that the loop takes is still in use where other code joins";
    if (isa<ReturnInst>(BB->getTerminator()))
      SplitBlock(BB, BB->getTerminator()->getIterator(), &DT);
  }
  auto Elsewhere = [&](const Instruction &I) {
    return !L.contains(I.getParent()) && !Tail.contains(const_cast<BasicBlock *>(I.getParent())) &&
           any_of(Saves, [&](Instruction *S) { return restores(I, S); });
  };
  // Behind the region's return all its stack is given back anyway.
  SmallVector<Instruction *, 4> Void;
  for (BasicBlock &BB : *L.getHeader()->getParent())
    for (Instruction &I : BB)
      if (Elsewhere(I))
        Void.push_back(&I);
  for (Instruction *I : Void)
    I->eraseFromParent();
  return nullptr;
}
