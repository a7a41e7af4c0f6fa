// Parts of outlining a loop.
#pragma once
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"

namespace llvm {
class ScalarEvolution;
}

using Blocks = llvm::SetVector<llvm::BasicBlock *>;

// Stack that the loop takes must be given back in it, or in blocks behind it that can come along (`Tail`): a reason
// if it is not.
const char *stackUse(llvm::Loop &L, llvm::DominatorTree &DT, Blocks &Tail);

// The loop with this header; null if there is none.
llvm::Loop *loopAt(llvm::LoopInfo &LI, llvm::BasicBlock *Header);

// Where a loop starts in the source; null if nothing in it has a place.
llvm::DebugLoc startOf(const llvm::Loop &L);

// Whether the instruction asks for its function's frame or return address.
bool asksForFrame(const llvm::Instruction &I);

// Landing pads outside the loop that its invokes reach.
llvm::SmallVector<llvm::BasicBlock *, 8> landingPadsOutside(const llvm::Loop &L);

// Whether a loop inside another one may take long enough for a probe, as far as the code alone shows it.
bool worthProbe(const llvm::Loop &L, llvm::LoopInfo &LI, llvm::ScalarEvolution &SE);

// Whether the variable's content before the loop matters to no run of the block's loop: its life begins anew in each
// step of the loop around it. True if there is none.
bool beginsInEachStep(const llvm::AllocaInst &Variable, const llvm::BasicBlock &At, const llvm::Loop *Around,
                      const llvm::LoopInfo &LI, const llvm::DominatorTree &DT);
