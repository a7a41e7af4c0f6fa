// A function as it was and as it is now: what stands for what outside of one region.
#pragma once
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

// Whether the function holds the body of a region.
bool isRegion(const llvm::Function *F);

// The call by which a region's function runs while its probe sleeps; null if there is none.
llvm::CallInst *regionCall(llvm::Function &Region);

// The line of an instruction, or of the nearest one behind it; 0 if none is known.
unsigned lineOf(const llvm::Instruction *I);

// Whether the functions do the same, those that they call apart; whether variables begin with the same value.
bool sameDefinition(const llvm::Function &A, const llvm::Function &B);
bool sameInitialValue(const llvm::GlobalVariable &A, const llvm::GlobalVariable &B);

// Whether the constant is a place in the source, which an edit moves: as Rust's panics get it.
bool isLocation(const llvm::GlobalVariable &G);

// Whether types are laid out alike: two modules call the same structure otherwise.
bool sameType(const llvm::Type *A, const llvm::Type *B);

// Pairs the code of `Old` outside of the region whose call is `Region` with that of `New`. In `New` what has no
// counterpart stands for the region: the hole.
class Pairing {
public:
  Pairing(llvm::CallInst &Region, llvm::Function &New);

  // Whether there is a hole; else `Why` says which code differs.
  bool run();

  // Whether the values are the same where the region is entered. Remembered.
  bool same(const llvm::Value *V, const llvm::Value *W);

  std::string Why;
  // The hole: from here, at these instructions, up to there.
  llvm::Instruction *From = nullptr, *To = nullptr;
  // What stands for each result of the region, by its place in the type that it returns, or from `BySlot` on by the
  // argument that says where it is to be left.
  static constexpr unsigned BySlot = 1u << 16;
  llvm::MapVector<unsigned, const llvm::Value *> Results;
  // The calls of other regions, before and now.
  llvm::SmallVector<std::pair<const llvm::CallInst *, const llvm::CallInst *>, 4> Others;

private:
  using Pairs = llvm::SmallVector<std::pair<llvm::BasicBlock *, llvm::BasicBlock *>, 16>;
  llvm::CallInst &Region;
  llvm::Function &Before, &Now;
  llvm::DenseMap<const llvm::Value *, const llvm::Value *> Known;
  llvm::SmallVector<const llvm::Value *, 32> Trail;
  llvm::SmallPtrSet<const llvm::Value *, 8> Taken;
  // Blocks whose beginnings, and whose ends, are the same.
  llvm::DenseMap<const llvm::BasicBlock *, const llvm::BasicBlock *> Begins, Ends;
  // Blocks that lead to the region, and blocks that it leads to.
  llvm::SmallPtrSet<const llvm::BasicBlock *, 16> Leading, Following, FollowingNow, Ended;
  // Effects behind the region that look alike; phis that some of those feed.
  llvm::SmallVector<std::pair<llvm::Instruction *, llvm::Instruction *>, 16> Alike;
  llvm::SmallSetVector<const llvm::PHINode *, 4> Deferred;
  // Literals that are within one another.
  unsigned Depth = 0;
  bool Behind = false, Settled = false;

  void pair(const llvm::Value *V, const llvm::Value *W);
  void undo(size_t Mark);
  bool sameConstant(const llvm::Value *V, const llvm::Value *W);
  bool sameInstruction(const llvm::Instruction *I, const llvm::Instruction *J);
  bool sameOperands(const llvm::Instruction *I, const llvm::Instruction *J);
  bool sameMemory(const llvm::Instruction *I, const llvm::Instruction *J) const;
  bool changedCallee(const llvm::CallBase *A, const llvm::CallBase *B);
  bool bindResult(const llvm::Instruction *I, const llvm::Value *W);
  bool isGone(const llvm::CallInst &A);
  bool sameRegion(const llvm::CallInst &A, const llvm::CallInst &B);
  bool sameAnchor(llvm::Instruction *I, llvm::Instruction *J);
  bool forward();
  bool backward();
  bool settle();
  bool alignBackward(llvm::BasicBlock *B, llvm::BasicBlock *C);
  bool pairExits(Pairs &Waiting);
  bool pairPredecessors(llvm::BasicBlock *B, llvm::BasicBlock *C, Pairs &Waiting);
  void endAlike(llvm::BasicBlock *B, llvm::BasicBlock *C, Pairs &Waiting);
  bool differs(const char *Where, const llvm::Instruction *I, const llvm::Instruction *J);
};
