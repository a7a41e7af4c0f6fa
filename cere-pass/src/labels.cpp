// Labels whose address is taken (`&&label`). Beside each function that has some lies a table of them, so that a label
// has a number that stays, whatever the optimiser does. C++ because the C API cannot find the address of a block.
#include "llvm-c/Core.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace {
using Values = SmallPtrSet<const Value *, 16>;

// The distances of labels from the table's entries, which need no relocation at run time; 0 for none.
void put(GlobalVariable &Table, ArrayRef<BlockAddress *> Labels) {
  auto *Word = Type::getInt64Ty(Table.getContext());
  SmallVector<Constant *, 16> Entries;
  for (size_t I = 0; I < Labels.size(); I++) {
    if (!Labels[I]) {
      Entries.push_back(ConstantInt::get(Word, 0));
      continue;
    }
    Constant *Index[] = {ConstantInt::get(Word, 0), ConstantInt::get(Word, I)};
    Constant *Entry = ConstantExpr::getInBoundsGetElementPtr(Table.getValueType(), &Table, Index);
    Entries.push_back(
        ConstantExpr::getSub(ConstantExpr::getPtrToInt(Labels[I], Word), ConstantExpr::getPtrToInt(Entry, Word)));
  }
  Table.setInitializer(ConstantArray::get(cast<ArrayType>(Table.getValueType()), Entries));
}

// The labels of a table; null for those that the optimiser has removed.
SmallVector<BlockAddress *, 16> labels(const GlobalVariable &Table) {
  SmallVector<BlockAddress *, 16> Labels;
  for (uint64_t I = 0; I < cast<ArrayType>(Table.getValueType())->getNumElements(); I++) {
    Constant *Entry = Table.getInitializer()->getAggregateElement(I);
    auto *Distance = dyn_cast_or_null<ConstantExpr>(Entry);
    auto *Address = Distance ? dyn_cast<ConstantExpr>(Distance->getOperand(0)) : nullptr;
    Labels.push_back(Address ? dyn_cast<BlockAddress>(Address->getOperand(0)) : nullptr);
  }
  return Labels;
}

// The tables of the module.
SmallVector<GlobalVariable *, 8> tables(Module &M, const char *Prefix) {
  SmallVector<GlobalVariable *, 8> Tables;
  for (GlobalVariable &G : M.globals())
    if (G.getName().starts_with(Prefix) && !G.isDeclaration())
      Tables.push_back(&G);
  return Tables;
}

// The function of a table; null if it has no label any more.
Function *function(const GlobalVariable &Table) {
  for (const BlockAddress *Label : labels(Table))
    if (Label)
      return Label->getFunction();
  return nullptr;
}

// The labels of a function that something uses.
SmallVector<BlockAddress *, 16> labels(Function &F) {
  SmallVector<BlockAddress *, 16> Labels;
  for (BasicBlock &BB : F)
    if (BlockAddress *Label = BB.hasAddressTaken() ? BlockAddress::lookup(&BB) : nullptr) {
      Label->removeDeadConstantUsers();
      if (!Label->use_empty())
        Labels.push_back(Label);
    }
  return Labels;
}

// Lets the linker keep a table where it keeps the function.
void associate(GlobalVariable &Table, Function *F) {
  auto *With = F ? MDNode::get(Table.getContext(), ValueAsMetadata::get(F)) : nullptr;
  Table.setMetadata(LLVMContext::MD_associated, With);
}

// What only passes a label, or a part of its computation, on.
bool passes(const Value *V) {
  return isa<PHINode, SelectInst, CastInst, GetElementPtrInst, BinaryOperator, ConstantExpr, FreezeInst>(V);
}

// The loads from a constant that only this unit knows, if nothing but loads uses it.
bool loads(const GlobalVariable &G, SmallVectorImpl<const LoadInst *> &Loads) {
  if (!G.isConstant() || !G.hasLocalLinkage())
    return false;
  SmallVector<const Value *, 8> Waiting = {&G};
  while (!Waiting.empty())
    for (const User *U : Waiting.pop_back_val()->users()) {
      if (const auto *Load = dyn_cast<LoadInst>(U))
        Loads.push_back(Load);
      else if (isa<GEPOperator>(U))
        Waiting.push_back(U);
      else
        return false;
    }
  return true;
}

// Whether the value `V` ends in indirect branches alone; `Tables` are the constants that it goes through.
bool onlyBranches(const Value *V, SmallPtrSetImpl<GlobalVariable *> &Tables, Values &Seen) {
  if (!Seen.insert(V).second)
    return true;
  for (const User *U : V->users()) {
    if (isa<IndirectBrInst>(U))
      continue;
    if (const auto *G = dyn_cast<GlobalVariable>(U)) {
      SmallVector<const LoadInst *, 8> Loads;
      if (!loads(*G, Loads))
        return false;
      Tables.insert(const_cast<GlobalVariable *>(G));
      for (const LoadInst *Load : Loads)
        if (!onlyBranches(Load, Tables, Seen))
          return false;
      continue;
    }
    if (!passes(U) && !isa<ConstantAggregate>(U))
      return false;
    if (!onlyBranches(U, Tables, Seen))
      return false;
  }
  return true;
}

// Whether a target of an indirect branch comes from labels in the code and from `Tables` alone.
bool known(const Value *V, const SmallPtrSetImpl<GlobalVariable *> &Tables, Values &Seen) {
  if (!Seen.insert(V).second || isa<BlockAddress, ConstantInt, UndefValue>(V))
    return true;
  if (const auto *Load = dyn_cast<LoadInst>(V)) {
    const auto *G = dyn_cast<GlobalVariable>(getUnderlyingObject(Load->getPointerOperand()));
    return G && Tables.contains(G);
  }
  if (!passes(V))
    return false;
  const auto *Choice = dyn_cast<SelectInst>(V);
  return all_of(cast<User>(V)->operands(), [&](const Use &U) {
    return (Choice && U.get() == Choice->getCondition()) || known(U.get(), Tables, Seen);
  });
}

// Whether nothing outside the code and constants of its own knows a label of the function: then the labels can be where
// the code is. `Tables` are these constants.
bool closed(const Function &F, ArrayRef<BlockAddress *> Labels, SmallPtrSetImpl<GlobalVariable *> &Tables) {
  Values Seen, Targets;
  for (const BlockAddress *Label : Labels)
    if (Label && !onlyBranches(Label, Tables, Seen))
      return false;
  for (const BasicBlock &BB : F)
    if (const auto *Branch = dyn_cast<IndirectBrInst>(BB.getTerminator()))
      if (!known(Branch->getAddress(), Tables, Targets))
        return false;
  return true;
}
} // namespace

extern "C" {

// Makes the tables, each called `Prefix` and its function.
void cere_list_labels(LLVMModuleRef Module_, const char *Prefix) {
  Module &M = *unwrap(Module_);
  for (Function &F : M) {
    if (F.isDeclaration() || F.hasAvailableExternallyLinkage())
      continue;
    const auto Labels = labels(F);
    if (Labels.empty())
      continue;
    auto *Kind = ArrayType::get(Type::getInt64Ty(M.getContext()), Labels.size());
    auto *Table = new GlobalVariable(M, Kind, true, GlobalValue::InternalLinkage, nullptr,
                                     Twine(Prefix) + GlobalValue::dropLLVMManglingEscape(F.getName()));
    put(*Table, Labels);
    Table->setSection("cere_labels");
    Table->setComdat(F.getComdat());
    associate(*Table, &F);
    appendToCompilerUsed(M, {Table});
  }
}

// Lets labels have their captured `Addresses` (0: not known), at which a replay puts jumps to where the table says, so
// that memory and code agree on them. Where only code and constants of its own know them, these go with the code
// instead, under names that the captured image does not have. False if the table is not the one of so many labels.
bool cere_bind_labels(LLVMModuleRef Module_, LLVMValueRef Table_, const uint64_t *Addresses, size_t Count) {
  Module &M = *unwrap(Module_);
  auto &Table = *unwrap<GlobalVariable>(Table_);
  const auto Labels = labels(Table);
  if (Labels.size() != Count)
    return false;
  const auto *First = find_if(Labels, [](const BlockAddress *L) { return L; });
  if (First == Labels.end())
    return true;
  Table.setInitializer(nullptr);
  for (BlockAddress *Label : Labels)
    if (Label)
      Label->removeDeadConstantUsers();
  SmallPtrSet<GlobalVariable *, 4> Tables;
  if (closed(*(*First)->getFunction(), Labels, Tables)) {
    put(Table, Labels);
    for (GlobalVariable *G : Tables)
      G->setName("cere.own.labels");
    return true;
  }
  SmallVector<BasicBlock *, 16> Blocks;
  for (BlockAddress *Label : Labels)
    Blocks.push_back(Label ? Label->getBasicBlock() : nullptr);
  auto *Word = Type::getInt64Ty(M.getContext());
  auto *Pointer = PointerType::get(M.getContext(), 0);
  for (size_t I = 0; I < Count; I++)
    if (Labels[I] && Addresses[I])
      Labels[I]->replaceAllUsesWith(ConstantExpr::getIntToPtr(ConstantInt::get(Word, Addresses[I]), Pointer));
  SmallVector<BlockAddress *, 16> Again;
  for (BasicBlock *Block : Blocks)
    Again.push_back(Block ? BlockAddress::get(Block) : nullptr);
  put(Table, Again);
  return true;
}

// Whether memory may hold labels of the function beside constants of its own.
bool cere_has_open_labels(LLVMValueRef Function_) {
  auto &F = *unwrap<Function>(Function_);
  SmallPtrSet<GlobalVariable *, 4> Tables;
  const auto Labels = labels(F);
  return !Labels.empty() && !closed(F, Labels, Tables);
}

// Adds the tables of the functions in `Seen`, values that are kept.
void cere_reach_labels(Module &M, SmallPtrSetImpl<const Value *> &Seen, const char *Prefix) {
  for (const GlobalVariable *Table : tables(M, Prefix))
    if (const Function *F = function(*Table); F && Seen.contains(F))
      Seen.insert(Table);
}

// Lets the pipeline keep the tables.
void cere_keep_labels(LLVMModuleRef Module_, const char *Prefix) {
  Module &M = *unwrap(Module_);
  for (GlobalVariable *Table : tables(M, Prefix))
    appendToCompilerUsed(M, {Table});
}

// Before code is made: what the optimiser has left of a label that it removed is no distance, and it may have made
// another function of one.
void cere_settle_labels(LLVMModuleRef Module_, const char *Prefix) {
  for (GlobalVariable *Table : tables(*unwrap(Module_), Prefix)) {
    associate(*Table, function(*Table));
    put(*Table, labels(*Table));
  }
}

// Removes the tables.
void cere_forget_labels(LLVMModuleRef Module_, const char *Prefix) {
  Module &M = *unwrap(Module_);
  const auto Tables = tables(M, Prefix);
  removeFromUsedLists(M, [&](Constant *C) { return is_contained(Tables, C->stripPointerCasts()); });
  for (GlobalVariable *Table : Tables) {
    Table->setInitializer(nullptr);
    Table->eraseFromParent();
  }
}
}
