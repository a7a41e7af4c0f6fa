// Takes one cause of time out of code, for a replay that is timed and not compared: decremental analysis (Koliai et
// al., "Quantifying performance bottleneck cost through differential analysis", ICS 2013). The rest of the code stays
// as it is.
#include "llvm-c/Core.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace {
// The kind of register that holds values of the type; none: no single one does.
const char *registerOf(Type *T) {
  if (T->isPointerTy() || T->isIntegerTy(16) || T->isIntegerTy(32) || T->isIntegerTy(64))
    return "r";
  if (T->isFloatTy() || T->isDoubleTy())
    return "x";
  auto *V = dyn_cast<FixedVectorType>(T);
  Type *Element = V ? V->getElementType() : nullptr;
  if (!V || !(Element->isFloatTy() || Element->isDoubleTy() || Element->isIntegerTy()) || Element->isIntegerTy(1))
    return nullptr;
  const unsigned Bits = V->getPrimitiveSizeInBits().getFixedValue();
  return Bits == 128 || Bits == 256 ? "x" : Bits == 512 ? "v" : nullptr;
}

// The value is needed: nothing that computes it is left out.
bool use(Value *V, IRBuilder<> &B) {
  const char *Register = registerOf(V->getType());
  if (!Register)
    return false;
  auto *Type = FunctionType::get(B.getVoidTy(), {V->getType()}, false);
  B.CreateCall(InlineAsm::get(Type, "", Register, true), {V});
  return true;
}

// The same value, of which the compiler knows nothing.
Value *opaque(Value *V, const char *Register, IRBuilder<> &B) {
  auto *Type = FunctionType::get(V->getType(), {V->getType()}, false);
  return B.CreateCall(InlineAsm::get(Type, "", std::string("=") + Register + ",0", true), {V});
}

// Whether an address, a direction of a branch or an argument of a call comes from the value.
bool steers(Value *Of) {
  SmallPtrSet<Value *, 32> Seen;
  SmallVector<Value *, 32> Waiting = {Of};
  while (!Waiting.empty()) {
    Value *V = Waiting.pop_back_val();
    if (!Seen.insert(V).second)
      continue;
    if (Seen.size() > 4096)
      return true;
    for (const Use &U : V->uses()) {
      auto *I = dyn_cast<Instruction>(U.getUser());
      auto *S = dyn_cast_or_null<StoreInst>(I);
      if (!I || (I->isTerminator() && !isa<ReturnInst>(I)) || isa<GetElementPtrInst, LoadInst, IntToPtrInst>(I) ||
          (isa<CallBase>(I) && !isa<IntrinsicInst>(I) && !cast<CallBase>(I)->isInlineAsm()) ||
          (S && U.getOperandNo() == 1))
        return true;
      if (!S)
        Waiting.push_back(I);
    }
  }
  return false;
}

// No iteration waits for the result of the one before: each takes the value with which the loop began.
unsigned breakChains(Function &F) {
  DominatorTree Tree(F);
  LoopInfo Loops(Tree);
  unsigned Broken = 0;
  for (Loop *L : Loops.getLoopsInPreorder()) {
    BasicBlock *Header = L->getHeader(), *Latch = L->getLoopLatch(), *Before = L->getLoopPredecessor();
    if (!Latch || !Before || Header->getFirstInsertionPt() == Header->end())
      continue;
    for (PHINode &P : make_early_inc_range(Header->phis())) {
      const char *Register = registerOf(P.getType());
      auto *Next = dyn_cast<Instruction>(P.getIncomingValueForBlock(Latch));
      const bool Float = P.getType()->isFPOrFPVectorTy();
      if (!Register || !Next || Next == &P || !L->contains(Next) || P.getType()->isPointerTy() ||
          (!Float && steers(&P)))
        continue;
      IRBuilder<> B(&*Header->getFirstInsertionPt());
      Value *Same = opaque(P.getIncomingValueForBlock(Before), Register, B);
      P.replaceUsesWithIf(Same, [&](Use &U) {
        auto *I = cast<Instruction>(U.getUser());
        return L->contains(I) && !(isa<PHINode>(I) && I->getParent() == Header) && I != Same;
      });
      IRBuilder<> End(Latch->getTerminator());
      Broken += use(Next, End);
    }
  }
  return Broken;
}

// Multiplications in the place of divisions and roots. Of integers what is quick and no larger.
unsigned divide(Function &F) {
  unsigned Replaced = 0;
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    IRBuilder<> B(&I);
    Value *By = nullptr;
    const unsigned Code = I.getOpcode();
    auto *Call = dyn_cast<CallInst>(&I);
    const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
    const bool Root = Callee && (Callee->getIntrinsicID() == Intrinsic::sqrt || Callee->getName() == "sqrt" ||
                                 Callee->getName() == "sqrtf");
    const bool Integer = Code == Instruction::SDiv || Code == Instruction::UDiv || Code == Instruction::SRem ||
                         Code == Instruction::URem;
    if (isa<FPMathOperator>(&I))
      B.setFastMathFlags(I.getFastMathFlags());
    if (Code == Instruction::FDiv)
      By = B.CreateFMul(I.getOperand(0), I.getOperand(1));
    else if (Root && Call->getType()->isFPOrFPVectorTy())
      By = B.CreateFMul(I.getOperand(0), I.getOperand(0));
    else if (Integer && !isa<Constant>(I.getOperand(1)))
      By = B.CreateAnd(I.getOperand(0), I.getOperand(1));
    if (!By || By == &I)
      continue;
    I.replaceAllUsesWith(By);
    I.eraseFromParent();
    Replaced++;
  }
  return Replaced;
}

// What would be stored is computed, and not stored.
unsigned leaveOutStores(Function &F) {
  DominatorTree Tree(F);
  LoopInfo Loops(Tree);
  unsigned Left = 0;
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *S = dyn_cast<StoreInst>(&I);
    if (!S || !S->isSimple() || !Loops.getLoopFor(S->getParent()) ||
        isa<AllocaInst>(getUnderlyingObject(S->getPointerOperand(), 0)))
      continue;
    IRBuilder<> B(S);
    if (!isa<Constant>(S->getValueOperand()) && !use(S->getValueOperand(), B))
      continue;
    S->eraseFromParent();
    Left++;
  }
  return Left;
}

// Whether loops are taken as free of dependences when the vectoriser comes.
bool AllParallel = false;

// No iteration of an innermost loop depends on another through memory, and sums may be taken in any order.
void makeParallel(Function &F) {
  DominatorTree Tree(F);
  LoopInfo Loops(Tree);
  LLVMContext &C = F.getContext();
  for (Instruction &I : instructions(F))
    if (isa<FPMathOperator>(&I))
      I.setFast(true);
  for (Loop *L : Loops.getLoopsInPreorder()) {
    if (!L->isInnermost())
      continue;
    MDNode *Group = MDNode::getDistinct(C, {});
    for (BasicBlock *B : L->blocks())
      for (Instruction &I : *B)
        if (I.mayReadOrWriteMemory())
          I.setMetadata(LLVMContext::MD_access_group, Group);
    auto Property = [&](StringRef Name, Metadata *Value) -> Metadata * {
      return MDNode::get(C, {MDString::get(C, Name), Value});
    };
    auto *Yes = ConstantAsMetadata::get(ConstantInt::getTrue(C));
    Metadata *Parts[] = {nullptr, Property("llvm.loop.parallel_accesses", Group),
                         Property("llvm.loop.vectorize.enable", Yes)};
    MDNode *Id = MDNode::getDistinct(C, Parts);
    Id->replaceOperandWith(0, Id);
    L->setLoopID(Id);
  }
}

struct ParallelPass : PassInfoMixin<ParallelPass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    if (!AllParallel)
      return PreservedAnalyses::all();
    makeParallel(F);
    return PreservedAnalyses::none();
  }
};
} // namespace

// In shim.cpp.
void cere_register_parallel(PassBuilder &PB) {
  PB.registerVectorizerStartEPCallback(
      [](FunctionPassManager &FPM, OptimizationLevel) { FPM.addPass(ParallelPass()); });
}

extern "C" {
void cere_all_parallel() { AllParallel = true; }

// After the optimiser has run; how many places were changed. What: 0 chains, 1 divisions, 2 stores.
size_t cere_ablate(LLVMModuleRef M, unsigned What) {
  size_t Changed = 0;
  for (Function &F : *unwrap(M))
    if (!F.isDeclaration())
      Changed += What == 0 ? breakChains(F) : What == 1 ? divide(F) : leaveOutStores(F);
  return Changed;
}
}
