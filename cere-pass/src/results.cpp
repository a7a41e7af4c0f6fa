// What a region gives back travels in registers: CodeExtractor hands over every result by address, which a loop
// of a few iterations pays dearly for. C++ because the C API cannot move a body to a function of another type.
#include "extract.h"
#include "llvm-c/Core.h"
#include "llvm/Analysis/CaptureTracking.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {
bool isLifetime(User *U) {
  auto *I = dyn_cast<Instruction>(U);
  return I && I->isLifetimeStartOrEnd();
}

// Whether all that happens to the slot is that the region stores its result there and the caller loads it.
bool plainSlot(AllocaInst *Slot, CallInst &Call, Argument &Inside) {
  Type *Type = Slot->getAllocatedType();
  return all_of(Slot->users(),
                [&](User *U) {
                  auto *Load = dyn_cast<LoadInst>(U);
                  return U == &Call || isLifetime(U) || (Load && Load->isSimple() && Load->getType() == Type);
                }) &&
         all_of(Inside.users(), [&](User *U) {
           auto *Store = dyn_cast<StoreInst>(U);
           return Store && Store->isSimple() && Store->getPointerOperand() == &Inside &&
                  Store->getValueOperand()->getType() == Type;
         });
}

// Uses of a variable that are followed before it counts as one whose address leaves the region.
constexpr unsigned Uses = 4096;

// Whether only the region uses the variable, no earlier or later run of the region in the same frame, and nothing
// that outlives the region can know its address.
bool ofRegionOnly(Value *V, CallInst &Call, Argument &Inside, const LoopInfo &LI, const DominatorTree &DT) {
  auto *Slot = dyn_cast<AllocaInst>(V);
  const BasicBlock &At = *Call.getParent();
  return Slot && Slot->isStaticAlloca() && !Call.getFunction()->callsFunctionThatReturnsTwice() &&
         count(Call.args(), Slot) == 1 && all_of(Slot->users(), [&](User *U) { return U == &Call || isLifetime(U); }) &&
         !PointerMayBeCaptured(&Inside, true, Uses) && beginsInEachStep(*Slot, At, LI.getLoopFor(&At), LI, DT);
}

// A variable that the source leaves undefined on some way through the loop would be whatever a register happens to
// hold: zero instead, so that equal runs give back equal results.
void defineResults(Function &Outlined, size_t Inputs) {
  SmallVector<Value *, 16> Waiting;
  for (size_t I = Inputs; I < Outlined.arg_size(); ++I)
    for (User *U : Outlined.getArg(I)->users())
      if (auto *Store = dyn_cast<StoreInst>(U); Store && Store->getPointerOperand() == Outlined.getArg(I))
        Waiting.push_back(Store->getValueOperand());
  SmallPtrSet<Value *, 16> Known;
  while (!Waiting.empty()) {
    auto *I = dyn_cast<Instruction>(Waiting.pop_back_val());
    if (!I || !(isa<PHINode>(I) || isa<SelectInst>(I) || isa<FreezeInst>(I)) || !Known.insert(I).second)
      continue;
    for (Use &Operand : I->operands()) {
      if (isa<UndefValue>(Operand) && Operand->getType() == I->getType())
        Operand.set(Constant::getNullValue(I->getType()));
      Waiting.push_back(Operand);
    }
  }
}

// The function with another result and without the dropped parameters; the body moves over.
Function *retype(Function &Old, Type *Result, const SmallDenseSet<unsigned> &Dropped) {
  SmallVector<Type *, 16> Types;
  SmallVector<AttributeSet, 16> Attributes;
  for (Argument &A : Old.args())
    if (!Dropped.contains(A.getArgNo())) {
      Types.push_back(A.getType());
      Attributes.push_back(Old.getAttributes().getParamAttrs(A.getArgNo()));
    }
  auto *New = Function::Create(FunctionType::get(Result, Types, false), Old.getLinkage(), Old.getAddressSpace());
  New->copyAttributesFrom(&Old);
  New->setAttributes(AttributeList::get(Old.getContext(), Old.getAttributes().getFnAttrs(), {}, Attributes));
  New->copyMetadata(&Old, 0);
  Old.getParent()->getFunctionList().insert(Old.getIterator(), New);
  New->takeName(&Old);
  New->splice(New->begin(), &Old);
  Old.clearMetadata();
  auto *To = New->arg_begin();
  for (Argument &A : Old.args())
    if (!Dropped.contains(A.getArgNo())) {
      A.replaceAllUsesWith(To);
      To->takeName(&A);
      ++To;
    }
  return New;
}
} // namespace

extern "C" {

// Lets variables that only the region uses live in it, and turns results that fit the registers of a return into
// return values: up to three words, the number of the exit among them, and two floating-point values. `Inputs` is
// brought up to date. Returns the function to go on with.
LLVMValueRef cere_return_results(LLVMValueRef Outlined, size_t *Inputs) {
  Function &Old = *unwrap<Function>(Outlined);
  auto &Call = *cast<CallInst>(Old.user_back());
  defineResults(Old, *Inputs);
  Type *Exit = Old.getReturnType();
  unsigned Words = Exit->isVoidTy() ? 0 : 1, Floats = 0;
  SmallVector<Type *, 5> Fields;
  if (Words)
    Fields.push_back(Exit);
  SmallVector<unsigned, 4> Chosen, Sunk;
  DominatorTree DT(*Call.getFunction());
  LoopInfo LI(DT);
  for (unsigned I = 0; I < *Inputs; ++I)
    if (ofRegionOnly(Call.getArgOperand(I), Call, *Old.getArg(I), LI, DT))
      Sunk.push_back(I);
  for (unsigned I = *Inputs; I < Call.arg_size(); ++I) {
    auto *Slot = dyn_cast<AllocaInst>(Call.getArgOperand(I));
    if (!Slot || !plainSlot(Slot, Call, *Old.getArg(I)))
      continue;
    Type *T = Slot->getAllocatedType();
    bool Word = T->isPointerTy() || (T->isIntegerTy() && T->getIntegerBitWidth() <= 64);
    if (Word ? Words == 3 : !(T->isFloatTy() || T->isDoubleTy()) || Floats == 2)
      continue;
    ++(Word ? Words : Floats);
    Chosen.push_back(I);
    Fields.push_back(T);
  }
  // The caller reads each result behind the call. In a loop it hands it on to the region around, so that it is defined
  // where the exit that was taken leaves it alone.
  if (LI.getLoopFor(Call.getParent()))
    for (unsigned I = *Inputs; I < Call.arg_size(); ++I)
      if (auto *Slot = dyn_cast<AllocaInst>(Call.getArgOperand(I)); Slot && !is_contained(Chosen, I))
        new StoreInst(Constant::getNullValue(Slot->getAllocatedType()), Slot, Call.getIterator());
  if (Chosen.empty() && Sunk.empty())
    return Outlined;
  *Inputs -= Sunk.size();
  Type *Result = Chosen.empty() ? Exit : Fields.size() == 1 ? Fields[0] : StructType::get(Old.getContext(), Fields);
  SmallDenseSet<unsigned> Dropped(Chosen.begin(), Chosen.end());
  Dropped.insert(Sunk.begin(), Sunk.end());
  Function *New = retype(Old, Result, Dropped);
  unsigned First = Exit->isVoidTy() ? 0 : 1;

  for (unsigned I : Sunk) {
    auto *Slot = cast<AllocaInst>(Call.getArgOperand(I));
    for (User *U : make_early_inc_range(Slot->users()))
      if (U != &Call)
        cast<Instruction>(U)->eraseFromParent();
    SmallVector<DbgVariableRecord *, 4> Records;
    findDbgUsers(Slot, Records);
    for (DbgVariableRecord *Record : Records)
      Record->eraseFromParent();
    Call.setArgOperand(I, PoisonValue::get(Slot->getType()));
    Old.getArg(I)->replaceAllUsesWith(Slot);
    Slot->moveBefore(New->getEntryBlock().begin());
    Slot->setDebugLoc(DebugLoc());
  }

  // Inside: a local slot each. Zero where an exit leaves it alone, so that equal runs return equal values.
  IRBuilder<> B(&New->getEntryBlock(), New->getEntryBlock().begin());
  SmallVector<AllocaInst *, 4> Local;
  for (unsigned I : Chosen)
    Local.push_back(B.CreateAlloca(Fields[First + Local.size()], nullptr, Old.getArg(I)->getName()));
  for (auto [Slot, I] : zip(Local, Chosen)) {
    B.CreateStore(Constant::getNullValue(Slot->getAllocatedType()), Slot);
    Old.getArg(I)->replaceAllUsesWith(Slot);
  }
  for (BasicBlock &BB : *New) {
    auto *Return = dyn_cast<ReturnInst>(BB.getTerminator());
    if (!Return || Chosen.empty())
      continue;
    B.SetInsertPoint(Return);
    Value *All = PoisonValue::get(Result);
    if (First)
      All = B.CreateInsertValue(All, Return->getReturnValue(), 0);
    for (auto [N, Slot] : enumerate(Local)) {
      Value *V = B.CreateLoad(Slot->getAllocatedType(), Slot);
      All = Fields.size() == 1 ? V : B.CreateInsertValue(All, V, First + N);
    }
    B.CreateRet(All);
    Return->eraseFromParent();
  }

  // Outside.
  SmallVector<Value *, 16> Arguments;
  for (unsigned I = 0; I < Call.arg_size(); ++I)
    if (!Dropped.contains(I))
      Arguments.push_back(Call.getArgOperand(I));
  B.SetInsertPoint(&Call);
  CallInst *Again = B.CreateCall(New, Arguments);
  Again->setDebugLoc(Call.getDebugLoc());
  if (First)
    Call.replaceAllUsesWith(Chosen.empty() ? Again : B.CreateExtractValue(Again, 0));
  SmallVector<AllocaInst *, 4> Slots;
  for (auto [N, I] : enumerate(Chosen)) {
    auto *Slot = cast<AllocaInst>(Call.getArgOperand(I));
    Value *V = Fields.size() == 1 ? Again : B.CreateExtractValue(Again, First + N);
    for (User *U : make_early_inc_range(Slot->users()))
      if (auto *Load = dyn_cast<LoadInst>(U)) {
        Load->replaceAllUsesWith(V);
        Load->eraseFromParent();
      } else if (isLifetime(U)) {
        cast<Instruction>(U)->eraseFromParent();
      }
    Slots.push_back(Slot);
  }
  Call.eraseFromParent();
  for (AllocaInst *Slot : Slots)
    Slot->eraseFromParent();
  Old.eraseFromParent();
  return wrap(New);
}
}
