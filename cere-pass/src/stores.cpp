// The same of the values that become a region's scalar results, which are stored only when it ends: each counts as if
// it was stored where the result goes. C++ because LoopInfo has no C API.
#include "stores.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace {
// Whether the function calls a region, and stores its results.
bool isInvoke(const Function &F) { return F.getName().starts_with("cere.invoke."); }

// Whether a loop begins with it: a value goes from iteration to iteration.
bool carries(PHINode &P) {
  DominatorTree Tree(*P.getFunction());
  return any_of(P.blocks(), [&](BasicBlock *From) { return Tree.dominates(P.getParent(), From); });
}

// What computes a value, behind what only passes it on: variables in memory, calls of the module's functions,
// iterations.
class Computed {
  SmallPtrSet<Value *, 32> Seen;

  // What was stored through a pointer to a variable of its own.
  void stored(Value *Variable) {
    for (User *U : Variable->users()) {
      if (auto *S = dyn_cast<StoreInst>(U); S && S->getPointerOperand() == Variable)
        find(S->getValueOperand());
      auto *C = dyn_cast<CallBase>(U);
      Function *Callee = C ? C->getCalledFunction() : nullptr;
      for (unsigned I = 0; Callee && !Callee->isDeclaration() && I < C->arg_size() && I < Callee->arg_size(); ++I)
        if (C->getArgOperand(I) == Variable)
          stored(Callee->getArg(I));
    }
  }

  void returned(CallBase &C, int Part) {
    Function *Callee = C.getCalledFunction();
    if (!Callee || Callee->isDeclaration()) {
      All.insert(&C);
      return;
    }
    for (Instruction &I : instructions(*Callee))
      if (auto *R = dyn_cast<ReturnInst>(&I); R && R->getReturnValue())
        part(R->getReturnValue(), Part);
  }

  // A part of a structure; -1: of what is none.
  void part(Value *V, int Part) {
    if (Part < 0)
      return find(V);
    for (auto *I = dyn_cast<InsertValueInst>(V); I; I = dyn_cast<InsertValueInst>(V)) {
      if (I->getNumIndices() == 1 && int(I->getIndices()[0]) == Part)
        return find(I->getInsertedValueOperand());
      V = I->getAggregateOperand();
    }
  }

public:
  SmallSetVector<Instruction *, 8> All;

  void find(Value *V) {
    auto *I = dyn_cast<Instruction>(V);
    if (!I || !Seen.insert(V).second)
      return;
    auto *P = dyn_cast<PHINode>(I);
    if (isa<FreezeInst, BitCastInst>(I) || (P && (P->getNumIncomingValues() == 1 || carries(*P)))) {
      for (Value *From : I->operands())
        find(From);
    } else if (auto *L = dyn_cast<LoadInst>(I); L && isa<AllocaInst>(L->getPointerOperand())) {
      stored(L->getPointerOperand());
    } else if (auto *E = dyn_cast<ExtractValueInst>(I)) {
      auto *C = dyn_cast<CallBase>(E->getAggregateOperand());
      if (C && E->getNumIndices() == 1)
        returned(*C, int(E->getIndices()[0]));
    } else if (auto *C = dyn_cast<CallBase>(I)) {
      returned(*C, -1);
    } else {
      All.insert(I);
    }
  }
};

// The same address at the start of the function, if it follows from the function's arguments.
Value *again(Value *V, IRBuilder<> &B, unsigned Depth = 0) {
  if (isa<Argument>(V) || isa<Constant>(V))
    return V;
  auto *I = dyn_cast<Instruction>(V);
  if (!I || Depth > 8 || !isa<GetElementPtrInst, LoadInst>(I))
    return nullptr;
  SmallVector<Value *, 4> Operands;
  for (Value *From : I->operands()) {
    Operands.push_back(again(From, B, Depth + 1));
    if (!Operands.back())
      return nullptr;
  }
  Instruction *Copy = I->clone();
  for (unsigned N = 0; N < Operands.size(); ++N)
    Copy->setOperand(N, Operands[N]);
  return B.Insert(Copy);
}
} // namespace

Places::Places(Module &M)
    : M(M), Pointer(PointerType::get(M.getContext(), 0)), Half(Type::getInt32Ty(M.getContext())) {}

Constant *Places::constant(Constant *Value) {
  return new GlobalVariable(M, Value->getType(), true, GlobalValue::PrivateLinkage, Value, "cere.place");
}

Constant *Places::text(StringRef Text) {
  Constant *&Known = Texts[Text];
  if (!Known)
    Known = constant(ConstantDataArray::getString(M.getContext(), Text));
  return Known;
}

bool Places::isOwn(Instruction &I) {
  auto *S = dyn_cast<StoreInst>(&I);
  auto *Memory = dyn_cast<MemIntrinsic>(&I);
  Value *Place = S ? S->getPointerOperand() : Memory ? Memory->getRawDest() : nullptr;
  return Place && isa<AllocaInst>(getUnderlyingObject(Place, 0));
}

void Places::enter(Function &F) {
  Around.clear();
  Counters = nullptr;
  DominatorTree Tree(F);
  LoopInfo Loops(Tree);
  auto All = Loops.getLoopsInPreorder();
  if (All.empty())
    return;
  IRBuilder<> First(&*F.getEntryBlock().getFirstInsertionPt());
  Type *Word = First.getInt64Ty();
  Counters = First.CreateAlloca(ArrayType::get(Word, All.size()));
  DenseMap<Loop *, std::pair<unsigned, unsigned>> Numbers;
  for (Loop *L : All) {
    DebugLoc Line = startOf(*L);
    Numbers[L] = {unsigned(Numbers.size()), Line ? Line.getLine() : 0};
  }
  for (BasicBlock &B : F)
    for (Loop *L = Loops.getLoopFor(&B); L; L = L->getParentLoop())
      Around[&B].insert(Around[&B].begin(), Numbers[L]);
  for (Loop *L : All) {
    BasicBlock *Header = L->getHeader();
    auto Start = Header->getFirstInsertionPt();
    if (Start == Header->end())
      continue;
    IRBuilder<> B(&*Start);
    Value *Counter = B.CreateConstInBoundsGEP2_64(Counters->getAllocatedType(), Counters, 0, Numbers[L].first);
    B.CreateStore(B.CreateAdd(B.CreateLoad(Word, Counter), B.getInt64(1)), Counter);
    for (BasicBlock *P : predecessors(Header)) {
      if (L->contains(P))
        continue;
      IRBuilder<> Before(P->getTerminator());
      Value *Same = Before.CreateConstInBoundsGEP2_64(Counters->getAllocatedType(), Counters, 0, Numbers[L].first);
      Before.CreateStore(Before.getInt64(0), Same);
    }
  }
}

void Places::at(Instruction &I) {
  DebugLoc Line = I.getDebugLoc();
  // What merges values may have no line: that of one of them.
  for (Value *From : I.operands())
    if (auto *O = dyn_cast<Instruction>(From); O && !Line && isa<PHINode>(I))
      Line = O->getDebugLoc();
  SmallVector<Constant *, 8> Loops;
  for (auto [Number, Start] : Around.lookup(I.getParent()))
    Loops.append({ConstantInt::get(Half, Number), ConstantInt::get(Half, Start)});
  auto *Scope = Line ? Line->getScope()->getSubprogram() : nullptr;
  bool Result = isa<StoreInst>(I) && isInvoke(*I.getFunction());
  StringRef Function = Scope ? Scope->getName() : Result ? "" : I.getFunction()->getName();
  // As loops that were taken out of it are called.
  Function.consume_back(".cere");
  auto Number = [&](uint64_t N) { return ConstantInt::get(Half, N); };
  Constant *Parts[] = {text(Line ? Line->getFilename() : ""),
                       text(Function),
                       constant(ConstantArray::get(ArrayType::get(Half, Loops.size()), Loops)),
                       Number(Line ? Line.getLine() : 0),
                       Number(Loops.size() / 2),
                       Number(Result)};
  Site = constant(ConstantStruct::getAnon(M.getContext(), Parts));
}

Value *Places::iterations() const {
  return Counters ? static_cast<Value *>(Counters) : ConstantPointerNull::get(cast<PointerType>(Pointer));
}

GlobalVariable *Places::slot(StoreInst &Result) {
  IRBuilder<> B(&*Result.getFunction()->getEntryBlock().getFirstInsertionPt());
  Value *Place = again(Result.getPointerOperand(), B);
  if (!Place)
    return nullptr;
  auto *Slot = new GlobalVariable(M, Pointer, false, GlobalValue::InternalLinkage,
                                  ConstantPointerNull::get(cast<PointerType>(Pointer)), "cere.result");
  B.CreateStore(Place, Slot);
  return Slot;
}

MapVector<Instruction *, GlobalVariable *> Places::results() {
  MapVector<Instruction *, GlobalVariable *> Found;
  for (Function &F : M) {
    if (F.isDeclaration() || !isInvoke(F))
      continue;
    SmallVector<StoreInst *, 8> Stores;
    for (Instruction &I : instructions(F))
      if (auto *S = dyn_cast<StoreInst>(&I); S && !isOwn(I) && S->getValueOperand()->getType()->isSingleValueType())
        Stores.push_back(S);
    for (StoreInst *S : Stores) {
      Computed Values;
      Values.find(S->getValueOperand());
      auto Elsewhere = [&](Instruction *I) { return I->getFunction() != &F && !I->isTerminator(); };
      GlobalVariable *Slot = any_of(Values.All, Elsewhere) ? slot(*S) : nullptr;
      for (Instruction *I : Values.All)
        if (Slot && Elsewhere(I))
          Found.insert({I, Slot});
    }
  }
  return Found;
}
