// Outlining a loop: what stands in the way, the changes that remove it, and the extraction itself. C++ because
// LoopInfo, CodeExtractor and the landing-pad splitting have no C API.
#include "llvm-c/Core.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/CaptureTracking.h"
#include "llvm/Analysis/CycleAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/CodeExtractor.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace {
using Blocks = SetVector<BasicBlock *>;

// Stands for llvm.eh.typeid.for, which CodeExtractor refuses to move.
constexpr char TypeId[] = "cere.typeid";

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

// Stack that the loop takes must be given back in it, or in blocks behind it that can come along (`Tail`).
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
      if (any_of(Saves, [&](Instruction *S) { return restores(I, S); }) && !I.getNextNode()->isTerminator()) {
        SplitBlock(BB, I.getNextNode()->getIterator(), &DT);
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
      switch (C->getIntrinsicID()) {
      case Intrinsic::returnaddress:
      case Intrinsic::frameaddress:
      case Intrinsic::addressofreturnaddress:
      case Intrinsic::sponentry:
      case Intrinsic::eh_dwarf_cfa:
      case Intrinsic::localescape:
        return "the loop asks for its frame or return address";
      default:
        break;
      }
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

// Landing pads outside the loop that its invokes reach: the loop gets its own, which joins it.
bool ownLandingPads(Loop &L, Blocks &Set) {
  Blocks Outside;
  for (BasicBlock *BB : L.blocks())
    if (auto *I = dyn_cast<InvokeInst>(BB->getTerminator()))
      if (!L.contains(I->getUnwindDest()))
        Outside.insert(I->getUnwindDest());
  for (BasicBlock *Pad : Outside) {
    SmallVector<BasicBlock *, 8> Preds, New;
    for (BasicBlock *P : predecessors(Pad))
      if (L.contains(P) && !is_contained(Preds, P))
        Preds.push_back(P);
    SplitLandingPadPredecessors(Pad, Preds, ".cere", ".rest", New);
    Set.insert(New.front());
  }
  return !Outside.empty();
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
// Without the markers of its lifetime the variable stays.
void keepEscapingOutside(Function &F, const Blocks &Set) {
  SmallVector<Instruction *, 8> Markers;
  for (Instruction &I : F.getEntryBlock()) {
    SmallVector<Instruction *, 8> Outside;
    for (User *U : I.users())
      if (auto *Use = cast<Instruction>(U); !Set.contains(Use->getParent()))
        Outside.push_back(Use);
    if (isa<AllocaInst>(I) && all_of(Outside, [](Instruction *U) { return U->isLifetimeStartOrEnd(); }) &&
        PointerMayBeCaptured(&I, true))
      Markers.append(Outside);
  }
  for (Instruction *Marker : Markers)
    Marker->eraseFromParent();
}

Loop *loopAt(LoopInfo &LI, BasicBlock *Header) {
  Loop *L = LI.getLoopFor(Header);
  return L && L->getHeader() == Header ? L : nullptr;
}

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
      Add(&BB, L->getStartLoc());
  }
  return Count;
}

// Why the loop with this header cannot be outlined; null if nothing is known to forbid it.
const char *cere_refusal(LLVMValueRef Fn, LLVMBasicBlockRef Header) {
  Function &F = *unwrap<Function>(Fn);
  DominatorTree DT(F);
  LoopInfo LI(DT);
  Loop *L = loopAt(LI, unwrap(Header));
  if (!L || L->getParentLoop())
    return "the loop has several entries";
  return refusal(F, *L);
}

bool cere_has_invoke(LLVMValueRef Fn, LLVMBasicBlockRef Header) {
  DominatorTree DT(*unwrap<Function>(Fn));
  LoopInfo LI(DT);
  Loop *L = loopAt(LI, unwrap(Header));
  return L && any_of(L->blocks(), [](BasicBlock *BB) { return isa<InvokeInst>(BB->getTerminator()); });
}

// A landing pad's selector is a number that means a type in its own function only. Once a loop moves to another
// function with its pads, the code that tells the types apart may stay behind. So each pad turns its selector into
// a number that both agree on, and the comparisons use that number.
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
  if (ownLandingPads(*L, Set))
    DT.recalculate(F);
  if ((*Reason = stackUse(*L, DT, Tail)))
    return nullptr;
  Set.insert_range(Tail);
  joinExits(Set);
  keepInvariantsOutside(*L, Set);
  copyArgumentLists(F, *L);
  keepEscapingOutside(F, Set);
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
