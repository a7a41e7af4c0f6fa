// Parts of outlining a loop.
#pragma once
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"

using Blocks = llvm::SetVector<llvm::BasicBlock *>;

// Stack that the loop takes must be given back in it, or in blocks behind it that can come along (`Tail`): a reason
// if it is not.
const char *stackUse(llvm::Loop &L, llvm::DominatorTree &DT, Blocks &Tail);

// Landing pads outside the loop that its invokes reach: the loop gets its own, which joins it. Whether there are any.
bool ownLandingPads(llvm::Loop &L, Blocks &Set);
