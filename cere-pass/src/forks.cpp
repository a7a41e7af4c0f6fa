// Parallel regions of OpenMP: the calls that fork a team, and the functions that its threads run.
#include "llvm-c/Core.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/CodeExtractor.h"

using namespace llvm;

namespace {
// Entries of the runtime's interface (openmp/runtime/src/kmp.h) that fork a team and return when it has joined.
constexpr StringLiteral Forks[] = {"__kmpc_fork_call", "__kmpc_fork_call_if", "__kmpc_fork_teams"};
// Those that say what the calling thread's next team is like.
constexpr StringLiteral Pushes[] = {"__kmpc_push_num_threads", "__kmpc_push_num_threads_strict",
                                    "__kmpc_push_proc_bind", "__kmpc_push_num_teams", "__kmpc_push_num_teams_51"};

StringRef callee(const Instruction &I) {
  const auto *C = dyn_cast<CallInst>(&I);
  const Function *F = C ? C->getCalledFunction() : nullptr;
  return F ? F->getName() : "";
}

bool isFork(const Instruction &I) { return is_contained(Forks, callee(I)); }
bool isPush(const Instruction &I) { return is_contained(Pushes, callee(I)); }

// The runtime calls what it is handed: bodies of regions and tasks, their copies and reductions.
bool handedToRuntime(const Function &F) {
  return any_of(F.uses(), [](const Use &U) {
    const auto *C = dyn_cast<CallBase>(U.getUser());
    const Function *To = C ? C->getCalledFunction() : nullptr;
    return To && !C->isCallee(&U) && To->getName().starts_with("__kmpc_");
  });
}

// Whether F runs in no other way than by the runtime: that calls it, or local functions do of which the same is true.
bool byRuntimeOnly(const Function &F, unsigned Depth = 0) {
  if (handedToRuntime(F))
    return true;
  if (!F.hasLocalLinkage() || F.use_empty() || Depth == 8)
    return false;
  return all_of(F.uses(), [&](const Use &U) {
    const auto *C = dyn_cast<CallBase>(U.getUser());
    return C && C->isCallee(&U) && C->getFunction() != &F && byRuntimeOnly(*C->getFunction(), Depth + 1);
  });
}

// What was pushed on the one way to the fork, last first.
SmallVector<CallInst *, 4> pushed(CallInst &Fork) {
  SmallVector<CallInst *, 4> Found;
  SmallPtrSet<BasicBlock *, 8> Seen;
  Instruction *I = Fork.getPrevNode();
  BasicBlock *BB = Fork.getParent();
  while (true) {
    for (; I; I = I->getPrevNode()) {
      if (isFork(*I))
        return Found;
      if (isPush(*I))
        Found.push_back(cast<CallInst>(I));
    }
    BB = BB->getSinglePredecessor();
    if (!BB || !Seen.insert(BB).second)
      return Found;
    I = BB->getTerminator();
  }
}
} // namespace

extern "C" {

// Calls in F that fork a team, in program order. None in what the runtime calls: a team within a team is part of the
// outer one's region.
size_t cere_forks(LLVMValueRef Fn, LLVMValueRef *Calls, size_t Room) {
  Function &F = *unwrap<Function>(Fn);
  if (byRuntimeOnly(F))
    return 0;
  size_t Count = 0;
  for (BasicBlock &BB : F)
    for (Instruction &I : BB)
      if (isFork(I)) {
        if (Count < Room)
          Calls[Count] = wrap(&I);
        ++Count;
      }
  return Count;
}

// Whether the function runs within parallel regions and tasks only.
bool cere_in_parallel(LLVMValueRef Fn) { return byRuntimeOnly(*unwrap<Function>(Fn)); }

// Outlines the call of a fork with what was pushed for it. Null with a reason if it cannot be.
LLVMValueRef cere_outline_fork(LLVMValueRef Call, size_t *Inputs, const char **Reason) {
  auto &Fork = *unwrap<CallInst>(Call);
  Function &F = *Fork.getFunction();
  Instruction *First = &Fork;
  for (CallInst *Push : pushed(Fork)) {
    // Where another way leads on from the push, what it says stays there for that way.
    bool Here = Push->getParent() == Fork.getParent();
    Instruction *Near = Here ? Push : Push->clone();
    if (Here)
      Near->moveBefore(First->getIterator());
    else
      Near->insertBefore(First->getIterator());
    First = Near;
  }
  BasicBlock *Body = SplitBlock(First->getParent(), First->getIterator());
  SplitBlock(Body, std::next(Fork.getIterator()));
  DominatorTree DT(F);
  CodeExtractorAnalysisCache Cache(F);
  CodeExtractor CE({Body}, &DT, false, nullptr, nullptr, nullptr, false, false, nullptr, "cere");
  SetVector<Value *> In, Results;
  Function *New = CE.isEligible() ? CE.extractCodeRegion(Cache, In, Results) : nullptr;
  if (!New)
    *Reason = "CodeExtractor refuses the call that forks the team";
  *Inputs = In.size();
  return wrap(New);
}
}
