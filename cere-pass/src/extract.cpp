// Outlining a loop: what stands in the way, the changes that remove it, and the extraction itself. C++ because
// LoopInfo, CodeExtractor and the landing-pad splitting have no C API.
#include "extract.h"
#include "llvm-c/Core.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/CaptureTracking.h"
#include "llvm/Analysis/CycleAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/CodeExtractor.h"

using namespace llvm;

bool asksForFrame(const Instruction &I) {
  const auto *C = dyn_cast<CallBase>(&I);
  switch (C ? C->getIntrinsicID() : Intrinsic::not_intrinsic) {
  case Intrinsic::returnaddress:
  case Intrinsic::frameaddress:
  case Intrinsic::addressofreturnaddress:
  case Intrinsic::sponentry:
  case Intrinsic::eh_dwarf_cfa:
  case Intrinsic::localescape:
    return true;
  default:
    return false;
  }
}

namespace {
const char *refusal(const Function &F, const Loop &L) {
  if (F.hasFnAttribute(Attribute::Naked))
    return "the function is naked";
  if (F.isPresplitCoroutine())
    return "the function is a coroutine";
  for (const BasicBlock *BB : L.blocks()) {
    if (BB->hasAddressTaken() || isa<IndirectBrInst>(BB->getTerminator()))
      return "computed goto in the loop";
    if (isa<CallBrInst>(BB->getTerminator()))
      return "asm goto in the loop";
    for (const Instruction &I : *BB) {
      if (I.isEHPad() && !isa<LandingPadInst>(I))
        return "funclet exception handling";
      if (I.getType()->isTokenTy() || I.getType()->isX86_AMXTy())
        return "values in the loop that no argument can carry";
      const auto *C = dyn_cast<CallBase>(&I);
      if (!C)
        continue;
      if (C->hasFnAttr(Attribute::ReturnsTwice))
        return "setjmp in the loop";
      if (isa<InvokeInst>(C) && F.hasFnAttribute(Attribute::AlwaysInline))
        return "exceptions in a function that is always inlined";
      if (asksForFrame(*C))
        return "the loop asks for its frame or return address";
    }
  }
  return nullptr;
}

// va_start in the loop: the outlined function has no variable arguments, so it copies a list that starts at the
// function's entry.
void copyArgumentLists(Function &F, Loop &L) {
  SmallVector<IntrinsicInst *, 2> Starts;
  for (BasicBlock *BB : L.blocks())
    for (Instruction &I : *BB)
      if (auto *II = dyn_cast<IntrinsicInst>(&I); II && II->getIntrinsicID() == Intrinsic::vastart)
        Starts.push_back(II);
  if (Starts.empty())
    return;
  BasicBlock &Entry = F.getEntryBlock();
  IRBuilder<> B(&Entry, Entry.getFirstInsertionPt());
  // struct __va_list_tag of the x86-64 ABI.
  AllocaInst *List = B.CreateAlloca(ArrayType::get(B.getInt8Ty(), 24), nullptr, "cere.va");
  List->setAlignment(Align(16));
  B.SetInsertPoint(Entry.getTerminator());
  B.CreateIntrinsic(Intrinsic::vastart, {List->getType()}, {List});
  for (IntrinsicInst *Start : Starts) {
    B.SetInsertPoint(Start);
    B.CreateIntrinsic(Intrinsic::vacopy, {List->getType()}, {Start->getArgOperand(0), List});
    Start->eraseFromParent();
  }
}

// Blocks behind the loop that only compute what the code behind them needs from each exit: inside, their
// results are one, not one for each exit. Worth it where exits meet.
void joinExits(Blocks &Set) {
  MapVector<BasicBlock *, SmallVector<BasicBlock *, 4>> Meeting;
  for (BasicBlock *BB : Set)
    for (BasicBlock *Exit : successors(BB)) {
      if (Set.contains(Exit))
        continue;
      auto *Br = dyn_cast<BranchInst>(Exit->getTerminator());
      bool Plain = Br && Br->isUnconditional() && !Exit->hasAddressTaken() && Exit->sizeWithoutDebug() <= 8 &&
                   all_of(predecessors(Exit), [&](BasicBlock *P) { return Set.contains(P); }) &&
                   none_of(*Exit, [](Instruction &I) {
                     return I.isEHPad() || isa<CallBase>(I) || isa<AllocaInst>(I) || I.mayReadOrWriteMemory();
                   });
      auto &Ways = Meeting[Plain ? Br->getSuccessor(0) : Exit];
      if (Plain && !Set.contains(Br->getSuccessor(0)) && !is_contained(Ways, Exit))
        Ways.push_back(Exit);
    }
  for (auto &[Place, Ways] : Meeting)
    if (Ways.size() > 1)
      Set.insert_range(Ways);
}

// Whether the block ends in a panic of Rust's that only `Set` leads to.
bool panics(const BasicBlock &BB, const Blocks &Set) {
  if (!isa<UnreachableInst>(BB.getTerminator()) || BB.hasAddressTaken() || BB.isEHPad() ||
      any_of(predecessors(&BB), [&](const BasicBlock *P) { return !Set.contains(const_cast<BasicBlock *>(P)); }))
    return false;
  return any_of(BB, [](const Instruction &I) {
    const auto *C = dyn_cast<CallInst>(&I);
    const Function *F = C ? C->getCalledFunction() : nullptr;
    return F && C->doesNotReturn() &&
           (F->getName().starts_with("_R") || (F->getName().starts_with("_ZN") && F->getName().contains("17h")));
  });
}

// Where a loop may panic belongs to it: each bound that is checked would be an exit else, with results of its own.
void keepPanicsInside(Blocks &Set) {
  Blocks Panics, Others;
  for (BasicBlock *BB : Set)
    for (BasicBlock *Exit : successors(BB))
      if (!Set.contains(Exit))
        (panics(*Exit, Set) ? Panics : Others).insert(Exit);
  if (!Others.empty())
    Set.insert_range(Panics);
}

// A value that the loop computes from nothing of its own, computed once more before the loop; null if it is not
// that simple.
Value *computedBefore(Value *V, const Blocks &Set, Instruction *Before, unsigned Depth = 0) {
  auto *I = dyn_cast<Instruction>(V);
  if (!I || !Set.contains(I->getParent()))
    return V;
  if (Depth > 4 || !(isa<GetElementPtrInst>(I) || isa<CastInst>(I) || isa<BinaryOperator>(I) || isa<CmpInst>(I)) ||
      I->mayHaveSideEffects() || !isSafeToSpeculativelyExecute(I))
    return nullptr;
  SmallVector<Value *, 4> Operands;
  for (Value *Operand : I->operands())
    if (Value *Outside = computedBefore(Operand, Set, Before, Depth + 1))
      Operands.push_back(Outside);
    else
      return nullptr;
  Instruction *Copy = I->clone();
  for (auto [N, Operand] : enumerate(Operands))
    Copy->setOperand(N, Operand);
  Copy->dropPoisonGeneratingFlags();
  Copy->insertBefore(Before->getIterator());
  return Copy;
}

// Addresses and the like that the code behind the loop shares with it are no results of the loop.
void keepInvariantsOutside(const Loop &L, const Blocks &Set) {
  BasicBlock *Before = L.getLoopPreheader();
  if (!Before)
    return;
  for (BasicBlock *BB : Set)
    for (Instruction &I : *BB) {
      auto Behind = [&](Use &U) { return !Set.contains(cast<Instruction>(U.getUser())->getParent()); };
      if (none_of(I.uses(), Behind))
        continue;
      if (Value *Copy = computedBefore(&I, Set, Before->getTerminator()); Copy && Copy != &I)
        I.replaceUsesWithIf(Copy, Behind);
    }
}

// CodeExtractor lets a variable that only the loop names live in it, and asks no more of the code behind the loop
// than to be without side effects: it may still read the variable by an address that the loop left somewhere.
// Without the markers of its lifetime the variable stays. So does one that a run of the loop finds as an earlier one
// left it.
void keepOutside(Function &F, const Loop &L, const LoopInfo &LI, const DominatorTree &DT, const Blocks &Set) {
  SmallVector<Instruction *, 8> Markers;
  for (Instruction &I : F.getEntryBlock()) {
    SmallVector<Instruction *, 8> Outside;
    for (User *U : I.users())
      if (auto *Use = cast<Instruction>(U); !Set.contains(Use->getParent()))
        Outside.push_back(Use);
    auto *Variable = dyn_cast<AllocaInst>(&I);
    if (Variable && all_of(Outside, [](Instruction *U) { return U->isLifetimeStartOrEnd(); }) &&
        (PointerMayBeCaptured(&I, true) || !beginsInEachStep(*Variable, *L.getHeader(), L.getParentLoop(), LI, DT)))
      Markers.append(Outside);
  }
  for (Instruction *Marker : Markers)
    Marker->eraseFromParent();
}

} // namespace

Loop *loopAt(LoopInfo &LI, BasicBlock *Header) {
  Loop *L = LI.getLoopFor(Header);
  return L && L->getHeader() == Header ? L : nullptr;
}

bool beginsInEachStep(const AllocaInst &Variable, const BasicBlock &At, const Loop *Around, const LoopInfo &LI,
                      const DominatorTree &DT) {
  return !Around || any_of(Variable.users(), [&](const User *U) {
    const auto *Start = dyn_cast<IntrinsicInst>(U);
    return Start && Start->getIntrinsicID() == Intrinsic::lifetime_start &&
           LI.getLoopFor(Start->getParent()) == Around && DT.dominates(Start->getParent(), &At);
  });
}

DebugLoc startOf(const Loop &L) {
  DebugLoc Start = L.getStartLoc();
  if (Start && Start.getLine())
    return Start;
  // Some front ends leave branches without a place.
  for (const BasicBlock *BB : L.blocks())
    for (const Instruction &I : *BB)
      if (const DebugLoc &At = I.getDebugLoc(); At && At.getLine())
        return At;
  return Start;
}

extern "C" {

// Outermost loops of F, by header, in program order. A null location where there is none.
size_t cere_loops(LLVMValueRef Fn, LLVMBasicBlockRef *Headers, LLVMMetadataRef *Locations, size_t Room) {
  Function &F = *unwrap<Function>(Fn);
  DominatorTree DT(F);
  LoopInfo LI(DT);
  CycleInfo CI;
  CI.compute(F);
  size_t Count = 0;
  auto Add = [&](BasicBlock *Header, DebugLoc Location) {
    if (Count < Room) {
      Headers[Count] = wrap(Header);
      Locations[Count] = wrap(static_cast<Metadata *>(Location.get()));
    }
    ++Count;
  };
  for (BasicBlock &BB : F) {
    const Cycle *C = CI.getCycle(&BB);
    while (C && C->getParentCycle())
      C = C->getParentCycle();
    if (C && !C->isReducible()) {
      if (C->getHeader() == &BB)
        Add(&BB, BB.getTerminator()->getDebugLoc());
      continue;
    }
    Loop *L = loopAt(LI, &BB);
    if (L && !L->getParentLoop())
      Add(&BB, startOf(*L));
  }
  return Count;
}

// Why the loop with this header cannot be outlined; null if nothing is known to forbid it. `Inside`: it lies in another
// one.
const char *cere_refusal(LLVMValueRef Fn, LLVMBasicBlockRef Header, bool Inside) {
  Function &F = *unwrap<Function>(Fn);
  DominatorTree DT(F);
  LoopInfo LI(DT);
  Loop *L = loopAt(LI, unwrap(Header));
  if (!L || (!Inside && L->getParentLoop()))
    return "the loop has several entries";
  return refusal(F, *L);
}

bool cere_has_invoke(LLVMValueRef Fn, LLVMBasicBlockRef Header) {
  DominatorTree DT(*unwrap<Function>(Fn));
  LoopInfo LI(DT);
  Loop *L = loopAt(LI, unwrap(Header));
  return L && any_of(L->blocks(), [](BasicBlock *BB) { return isa<InvokeInst>(BB->getTerminator()); });
}

// Outlines the loop with this header. Null with a reason if it cannot be.
LLVMValueRef cere_outline(LLVMValueRef Fn, LLVMBasicBlockRef Header, size_t *Inputs, size_t *Exits,
                          const char **Reason) {
  Function &F = *unwrap<Function>(Fn);
  DominatorTree DT(F);
  LoopInfo LI(DT);
  Loop *L = loopAt(LI, unwrap(Header));
  if (!L) {
    *Reason = "the loop has several entries";
    return nullptr;
  }
  Blocks Set, Tail;
  Set.insert_range(L->blocks());
  for (BasicBlock *Pad : landingPadsOutside(*L)) {
    if (any_of(predecessors(Pad), [&](BasicBlock *P) { return !L->contains(P); })) {
      *Reason = "a landing pad of the loop that other code reaches";
      return nullptr;
    }
    Set.insert(Pad);
  }
  if ((*Reason = stackUse(*L, DT, Tail)))
    return nullptr;
  Set.insert_range(Tail);
  keepPanicsInside(Set);
  joinExits(Set);
  keepInvariantsOutside(*L, Set);
  copyArgumentLists(F, *L);
  keepOutside(F, *L, LI, DT, Set);
  Blocks Out;
  for (BasicBlock *BB : Set)
    for (BasicBlock *Next : successors(BB))
      if (!Set.contains(Next))
        Out.insert(Next);
  *Exits = Out.size();
  DT.recalculate(F);
  CodeExtractorAnalysisCache Cache(F);
  CodeExtractor CE(Set.getArrayRef(), &DT, false, nullptr, nullptr, nullptr, false, true, nullptr, "cere");
  if (!CE.isEligible()) {
    *Reason = "CodeExtractor refuses: not eligible";
    return nullptr;
  }
  SetVector<Value *> In, Results;
  Function *New = CE.extractCodeRegion(Cache, In, Results);
  if (!New) {
    *Reason = "CodeExtractor refuses: extraction failed";
    return nullptr;
  }
  *Inputs = In.size();
  return wrap(New);
}
}
