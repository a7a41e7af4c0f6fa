// Loops that take less than what a capture accepts, as far as the code alone shows it. C++ because ScalarEvolution has
// no C API.
#include "extract.h"
#include "llvm-c/Core.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include <optional>

using namespace llvm;

namespace {
// Instructions of the IR. A capture asks for 2000 cycles, and one that takes several cycles counts as several.
constexpr uint64_t Bound = 1000;
constexpr uint64_t Slow = 20;
// Instructions of a search: more is work.
constexpr size_t Search = 32;

// What an instruction counts; nothing if that is not known.
std::optional<uint64_t> weight(const Instruction &I) {
  if (const auto *Copy = dyn_cast<MemIntrinsic>(&I)) {
    const auto *Length = dyn_cast<ConstantInt>(Copy->getLength());
    return Length ? std::optional(Slow + Length->getLimitedValue(Bound)) : std::nullopt;
  }
  if (const auto *II = dyn_cast<IntrinsicInst>(&I))
    return II->isAssumeLikeIntrinsic() ? 0 : Slow;
  if (isa<CallBase>(I))
    return std::nullopt;
  switch (I.getOpcode()) {
  case Instruction::FDiv:
  case Instruction::FRem:
  case Instruction::SDiv:
  case Instruction::SRem:
  case Instruction::UDiv:
  case Instruction::URem:
    return Slow;
  default:
    return 1;
  }
}

// An upper bound of the instructions of an invocation; nothing if there is none up to Bound.
std::optional<uint64_t> instructions(const Loop &L, LoopInfo &LI, ScalarEvolution &SE) {
  const uint64_t Entries = SE.getSmallConstantMaxTripCount(&L);
  if (Entries == 0 || Entries > Bound)
    return std::nullopt;
  // Where the header ends the loop, it does so before the last step.
  const uint64_t Steps = L.isLoopExiting(L.getHeader()) ? Entries - 1 : Entries;
  uint64_t All = 0;
  for (const Loop *Inner : L)
    if (auto Part = instructions(*Inner, LI, SE))
      All += Steps * *Part;
    else
      return std::nullopt;
  for (const BasicBlock *BB : L.blocks()) {
    if (LI.getLoopFor(BB) != &L)
      continue;
    for (const Instruction &I : *BB)
      if (auto Part = weight(I))
        All += (BB == L.getHeader() ? Entries : Steps) * *Part;
      else
        return std::nullopt;
  }
  return All <= Bound ? std::optional(All) : std::nullopt;
}

// Whether V comes from a value that differs from step to step, without a load in between.
bool varies(const Value *V, const Loop &L, unsigned Depth = 0) {
  const auto *I = dyn_cast<Instruction>(V);
  if (!I || !L.contains(I) || Depth > 4 || isa<LoadInst>(I))
    return false;
  if (isa<PHINode>(I))
    return I->getParent() == L.getHeader();
  return any_of(I->operands(), [&](const Use &U) { return varies(U.get(), L, Depth + 1); });
}

// Whether V is data that the loop reads as it goes, and not the way to the next step, as in a list.
bool isData(const Value *V, const Loop &L, unsigned Depth = 0) {
  const auto *I = dyn_cast<Instruction>(V);
  if (!I || !L.contains(I) || Depth > 4 || isa<PHINode>(I))
    return false;
  if (const auto *Read = dyn_cast<LoadInst>(I)) {
    const bool Way = any_of(L.getHeader()->phis(), [&](const PHINode &P) { return is_contained(P.operands(), Read); });
    return !Way && varies(Read->getPointerOperand(), L);
  }
  return any_of(I->operands(), [&](const Use &U) { return isData(U.get(), L, Depth + 1); });
}

// Whether V depends on what the loop reads, the way to the next step included.
bool isRead(const Value *V, const Loop &L, unsigned Depth = 0) {
  const auto *I = dyn_cast<Instruction>(V);
  if (!I || !L.contains(I) || Depth > 4)
    return false;
  auto Read = [&](const Use &U) {
    const auto *From = dyn_cast<LoadInst>(U.get());
    return From && L.contains(From);
  };
  if (isa<PHINode>(I))
    return any_of(I->operands(), Read);
  return isa<LoadInst>(I) || any_of(I->operands(), [&](const Use &U) { return isRead(U.get(), L, Depth + 1); });
}

// Whether the loop ends where it finds something, and does nothing else. One that also counts its steps may be a check
// of all elements, which finds nothing.
bool isSearch(const Loop &L) {
  size_t Count = 0;
  for (const BasicBlock *BB : L.blocks())
    for (const Instruction &I : *BB) {
      if (I.mayHaveSideEffects() || (isa<CallBase>(I) && !isa<IntrinsicInst>(I)))
        return false;
      Count += !I.isDebugOrPseudoInst();
    }
  if (Count > Search || !L.isInnermost())
    return false;
  SmallVector<BasicBlock *, 4> Exiting;
  L.getExitingBlocks(Exiting);
  bool Found = false;
  for (const BasicBlock *BB : Exiting) {
    const auto *Br = dyn_cast<BranchInst>(BB->getTerminator());
    if (!Br || !Br->isConditional() || !isRead(Br->getCondition(), L))
      return false;
    Found |= isData(Br->getCondition(), L);
  }
  return Found;
}

// Whether the loop ends by a count, as far as a memory of values does not hide it.
bool counts(const Loop &L, ScalarEvolution &SE) {
  SmallVector<BasicBlock *, 4> Exiting;
  L.getExitingBlocks(Exiting);
  SmallVector<const Value *, 8> Conditions;
  for (const BasicBlock *BB : Exiting)
    if (const auto *Br = dyn_cast<BranchInst>(BB->getTerminator()); Br && Br->isConditional())
      Conditions.push_back(Br->getCondition());
  for (size_t I = 0; I < Conditions.size() && I < Search; ++I) {
    if (const auto *Both = dyn_cast<Instruction>(Conditions[I]);
        Both && (isa<SelectInst>(Both) || isa<BinaryOperator>(Both)))
      Conditions.append(Both->value_op_begin(), Both->value_op_end());
    const auto *Compared = dyn_cast<ICmpInst>(Conditions[I]);
    if (Compared && any_of(Compared->operands(), [&](const Use &U) {
          const auto *Step = SE.isSCEVable(U->getType()) ? dyn_cast<SCEVAddRecExpr>(SE.getSCEV(U.get())) : nullptr;
          return Step && Step->getLoop() == &L && Step->isAffine();
        }))
      return true;
  }
  return false;
}
} // namespace

// Loops that a loop around them runs again and again: one that follows what it reads, character by character or link by
// link, is mostly short.
bool worthProbe(const Loop &L, LoopInfo &LI, ScalarEvolution &SE) {
  return !instructions(L, LI, SE) && !isSearch(L) && (!L.isInnermost() || counts(L, SE));
}

extern "C" {

// Functions whose calls in the module are all in loops, directly or through functions that are called like this, and
// whose address is not taken. `Closed`: without those that another module may call, and those that nothing calls.
size_t cere_called_in_loops(LLVMModuleRef M, bool Closed, LLVMValueRef *Functions, size_t Room) {
  struct Calls {
    bool Unknown = false;
    SmallVector<Function *, 4> Plain;
  };
  MapVector<Function *, Calls> All;
  DenseMap<Function *, std::unique_ptr<LoopInfo>> Loops;
  for (Function &F : *unwrap(M))
    if (!F.isDeclaration()) {
      DominatorTree DT(F);
      Loops[&F] = std::make_unique<LoopInfo>(DT);
      All[&F].Unknown = Closed ? !F.isDiscardableIfUnused() || F.use_empty() : F.getName() == "main";
    }
  for (auto &[F, Of] : All)
    for (const Use &U : F->uses()) {
      auto *Call = dyn_cast<CallBase>(U.getUser());
      if (!Call || !Call->isCallee(&U))
        Of.Unknown = true;
      else if (Function *Caller = Call->getFunction(); !Loops[Caller]->getLoopFor(Call->getParent()))
        Of.Plain.push_back(Caller);
    }
  for (bool Changed = true; Changed;) {
    Changed = false;
    for (auto &[F, Of] : All)
      if (!Of.Unknown && any_of(Of.Plain, [&](Function *Caller) { return All[Caller].Unknown; }))
        Of.Unknown = Changed = true;
  }
  size_t Count = 0;
  for (auto &[F, Of] : All)
    if (!Of.Unknown) {
      if (Count < Room)
        Functions[Count] = wrap(F);
      ++Count;
    }
  return Count;
}

// Why an invocation of the loop is too short for a region, given that its function is called in loops, if at all
// (`Closed`: nowhere else); null if nothing shows that it is.
const char *cere_too_short(LLVMValueRef Fn, LLVMBasicBlockRef Header, bool Closed) {
  Function &F = *unwrap<Function>(Fn);
  DominatorTree DT(F);
  LoopInfo LI(DT);
  Loop *L = loopAt(LI, unwrap(Header));
  if (!L)
    return nullptr;
  TargetLibraryInfoImpl Impl(F.getParent()->getTargetTriple());
  TargetLibraryInfo TLI(Impl, &F);
  AssumptionCache AC(F);
  ScalarEvolution SE(F, TLI, AC, DT, LI);
  if (instructions(*L, LI, SE))
    return F.use_empty() ? "too short: at most 1000 instructions, in a function that its unit does not call"
                         : "too short: at most 1000 instructions, in a function that is called in loops";
  return Closed && isSearch(*L) ? "too short: a search in a function that is called in loops" : nullptr;
}
}
