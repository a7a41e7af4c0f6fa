// Where stores are in the source, and in which iterations of the loops around them.
#ifndef CERE_STORES_H
#define CERE_STORES_H
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

class Places {
  llvm::Module &M;
  llvm::Type *Pointer, *Half;
  llvm::StringMap<llvm::Constant *> Texts;
  // Of the function that was entered: counters of its loops, one each, and the numbers and lines of those around a
  // block, the outermost first.
  llvm::AllocaInst *Counters = nullptr;
  llvm::DenseMap<llvm::BasicBlock *, llvm::SmallVector<std::pair<unsigned, unsigned>, 4>> Around;
  llvm::Constant *Site = nullptr;

  llvm::Constant *text(llvm::StringRef Text);
  llvm::Constant *constant(llvm::Constant *Value);
  llvm::GlobalVariable *slot(llvm::StoreInst &Result);

public:
  explicit Places(llvm::Module &M);
  // Whether it stores to a variable of its function's, which nobody compares.
  static bool isOwn(llvm::Instruction &I);
  // Counts the iterations of the function's loops.
  void enter(llvm::Function &F);
  // The next reports are of this instruction.
  void at(llvm::Instruction &I);
  // Its place: struct Site in cere-replay/runtime/src/stores.rs.
  llvm::Value *site() const { return Site; }
  llvm::Value *iterations() const;
  // What computes the scalar results of regions, with a variable that holds the result's place.
  llvm::MapVector<llvm::Instruction *, llvm::GlobalVariable *> results();
};
#endif
