// Parts of outlining a loop.
#pragma once
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"

using Blocks = llvm::SetVector<llvm::BasicBlock *>;

// Stack that the loop takes must be given back in it, or in blocks behind it that can come along (`Tail`): a reason
// if it is not.
const char *stackUse(llvm::Loop &L, llvm::DominatorTree &DT, Blocks &Tail);

// The loop with this header; null if there is none.
llvm::Loop *loopAt(llvm::LoopInfo &LI, llvm::BasicBlock *Header);

// Landing pads outside the loop that its invokes reach.
llvm::SmallVector<llvm::BasicBlock *, 8> landingPadsOutside(const llvm::Loop &L);
