// What stands for what in two versions of a function, outside of one region. Code counts as the same if its effects
// are the same, in the same order, on the same values; values are compared by what computes them, when something asks.
// C++ because it walks instructions and uses, which the C API shows in part.
#include "pairing.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

bool isRegion(const Function *F) { return F && F->getName().starts_with("cere.outlined."); }

CallInst *regionCall(Function &Region) {
  for (User *U : Region.users())
    if (auto *C = dyn_cast<CallInst>(U))
      if (C->getCalledFunction() == &Region && !C->getFunction()->getName().starts_with("cere.invoke."))
        return C;
  return nullptr;
}

unsigned lineOf(const Instruction *I) {
  for (; I; I = I->getNextNode())
    if (const DILocation *L = I->getDebugLoc()) {
      // Of what is inlined, where it is called.
      while (const DILocation *Around = L->getInlinedAt())
        L = Around;
      if (L->getLine())
        return L->getLine();
    }
  return 0;
}

bool sameType(const Type *A, const Type *B) {
  if (A == B)
    return true;
  if (A->getTypeID() != B->getTypeID() || A->getNumContainedTypes() != B->getNumContainedTypes())
    return false;
  if (auto *S = dyn_cast<StructType>(A))
    if (S->isPacked() != cast<StructType>(B)->isPacked() || S->isOpaque() != cast<StructType>(B)->isOpaque())
      return false;
  if (auto *S = dyn_cast<ArrayType>(A))
    if (S->getNumElements() != cast<ArrayType>(B)->getNumElements())
      return false;
  if (auto *S = dyn_cast<VectorType>(A))
    if (S->getElementCount() != cast<VectorType>(B)->getElementCount())
      return false;
  if (isa<IntegerType>(A))
    return false;
  // Types hold no pointers to themselves: pointers are opaque.
  for (unsigned I = 0; I < A->getNumContainedTypes(); ++I)
    if (!sameType(A->getContainedType(I), B->getContainedType(I)))
      return false;
  return A->getNumContainedTypes() > 0;
}

namespace {
// What only tells the optimiser something.
bool isHint(const Instruction &I) {
  if (I.isLifetimeStartOrEnd())
    return true;
  const auto *C = dyn_cast<IntrinsicInst>(&I);
  return C && (C->getIntrinsicID() == Intrinsic::assume || C->isAssumeLikeIntrinsic());
}

// What has an effect, and so a place in the order.
bool isAnchor(const Instruction &I) {
  return I.isTerminator() || (!isHint(I) && (I.mayWriteToMemory() || I.mayThrow() || !I.willReturn()));
}

// Variables of the function with this type whose names the other function does not have.
SmallVector<const AllocaInst *, 4> unknownTo(const Function &Other, const AllocaInst *Like) {
  StringSet<> Names;
  for (const Instruction &I : instructions(Other))
    if (isa<AllocaInst>(I))
      Names.insert(I.getName());
  SmallVector<const AllocaInst *, 4> Found;
  for (const Instruction &I : instructions(*Like->getFunction()))
    if (const auto *A = dyn_cast<AllocaInst>(&I))
      if (sameType(A->getAllocatedType(), Like->getAllocatedType()) && !Names.contains(A->getName()))
        Found.push_back(A);
  return Found;
}

// Whether the variables are the only ones of their type that have other names now.
bool isRenamed(const AllocaInst *A, const AllocaInst *B) {
  auto Only = [](const AllocaInst *V, const Function &Other) {
    auto Found = unknownTo(Other, V);
    return Found.size() == 1 && Found[0] == V;
  };
  return Only(A, *B->getFunction()) && Only(B, *A->getFunction());
}

// Where CodeExtractor has a region leave a result that no register takes.
bool isSlot(const Value *V) { return isa<AllocaInst>(V) && V->getName().contains(".loc"); }

const CallInst *asRegionCall(const Instruction *I) {
  const auto *C = dyn_cast<CallInst>(I);
  return C && isRegion(C->getCalledFunction()) ? C : nullptr;
}

// Whether the effects look alike; what they work on is compared later.
bool sameShape(const Instruction &I, const Instruction &J) {
  // Edited regions take other arguments.
  if (asRegionCall(&I) && asRegionCall(&J))
    return true;
  if (I.getOpcode() != J.getOpcode() || I.getNumOperands() != J.getNumOperands())
    return false;
  const auto *A = dyn_cast<CallBase>(&I), *B = dyn_cast<CallBase>(&J);
  if (!A)
    return true;
  const Function *F = A->getCalledFunction(), *G = B->getCalledFunction();
  if (!F || !G)
    return !F == !G;
  return F->getName() == G->getName();
}

// Effects of its block before the instruction, and behind it.
unsigned effectsBefore(const Instruction *I) {
  unsigned Count = 0;
  for (const Instruction *J = I->getPrevNode(); J; J = J->getPrevNode())
    Count += isAnchor(*J);
  return Count;
}

unsigned effectsBehind(const Instruction *I) {
  unsigned Count = 0;
  for (const Instruction *J = I->getNextNode(); J; J = J->getNextNode())
    Count += isAnchor(*J);
  return Count;
}

// Blocks from which `To` may be reached.
void addLeading(const BasicBlock *To, SmallPtrSetImpl<const BasicBlock *> &Set) {
  SmallVector<const BasicBlock *, 16> Waiting = {To};
  while (!Waiting.empty())
    for (const BasicBlock *P : predecessors(Waiting.pop_back_val()))
      if (Set.insert(P).second)
        Waiting.push_back(P);
}

void addFollowing(const BasicBlock *From, SmallPtrSetImpl<const BasicBlock *> &Set) {
  SmallVector<const BasicBlock *, 16> Waiting = {From};
  while (!Waiting.empty())
    for (const BasicBlock *S : successors(Waiting.pop_back_val()))
      if (Set.insert(S).second)
        Waiting.push_back(S);
}
} // namespace

Pairing::Pairing(CallInst &Region, Function &New) : Region(Region), Before(*Region.getFunction()), Now(New) {
  Leading.insert(Region.getParent());
  addLeading(Region.getParent(), Leading);
  addFollowing(Region.getParent(), Following);
  Following.insert(Region.getParent());
}

void Pairing::pair(const Value *V, const Value *W) {
  Known[V] = W;
  Trail.push_back(V);
}

void Pairing::undo(size_t Mark) {
  while (Trail.size() > Mark) {
    const Value *V = Trail.pop_back_val();
    Taken.erase(Known.lookup(V));
    Known.erase(V);
  }
}

bool Pairing::differs(const char *Where, const Instruction *I, const Instruction *J) {
  if (Why.empty()) {
    unsigned Line = J ? lineOf(J) : 0;
    Why = std::string("the code ") + Where + " it differs from that of the captured program";
    if (Line)
      Why += ", at line " + std::to_string(Line);
    else if (I && lineOf(I))
      Why += ", where line " + std::to_string(lineOf(I)) + " was";
  }
  return false;
}

bool Pairing::sameConstant(const Value *V, const Value *W) {
  const auto *A = dyn_cast<Constant>(V), *B = dyn_cast<Constant>(W);
  if (!A || !B || !sameType(A->getType(), B->getType()))
    return false;
  if (const auto *G = dyn_cast<GlobalValue>(A)) {
    const auto *H = dyn_cast<GlobalValue>(B);
    if (!H)
      return false;
    // Literals are numbered.
    const auto *X = dyn_cast<GlobalVariable>(G), *Y = dyn_cast<GlobalVariable>(H);
    if (X && Y && X->isConstant() && Y->isConstant() && X->hasLocalLinkage() && X->hasDefinitiveInitializer() &&
        Y->hasDefinitiveInitializer()) {
      if (X->getInitializer() == Y->getInitializer())
        return true;
      if (isLocation(*X) && isLocation(*Y))
        return sameConstant(X->getInitializer()->getOperand(0), Y->getInitializer()->getOperand(0));
      // They may name one another in circles.
      bool Deep = Depth == 16;
      Depth += !Deep;
      bool Same = !Deep && sameConstant(X->getInitializer(), Y->getInitializer());
      Depth -= !Deep;
      return Same;
    }
    return G->getName() == H->getName();
  }
  if (A == B)
    return true;
  if (A->getValueID() != B->getValueID() || A->getNumOperands() != B->getNumOperands() || !A->getNumOperands())
    return false;
  if (const auto *E = dyn_cast<ConstantExpr>(A)) {
    const auto *F = cast<ConstantExpr>(B);
    if (E->getOpcode() != F->getOpcode())
      return false;
    if (const auto *P = dyn_cast<GEPOperator>(E))
      if (!sameType(P->getSourceElementType(), cast<GEPOperator>(F)->getSourceElementType()))
        return false;
  }
  for (unsigned I = 0; I < A->getNumOperands(); ++I)
    if (!sameConstant(A->getOperand(I), B->getOperand(I)))
      return false;
  return true;
}

// A result of the region, which some value now stands for.
bool Pairing::bindResult(const Instruction *I, const Value *W) {
  unsigned At = 0;
  if (const auto *L = dyn_cast<LoadInst>(I)) {
    const auto *M = dyn_cast<LoadInst>(W);
    if (!isSlot(L->getPointerOperand()) || (M && isSlot(M->getPointerOperand())))
      return false;
    const Use *Passed = find(Region.args(), L->getPointerOperand());
    if (Passed == Region.arg_end())
      return false;
    At = BySlot + (Passed - Region.arg_begin());
  } else if (const auto *E = dyn_cast<ExtractValueInst>(I)) {
    if (E->getAggregateOperand() != &Region || E->getNumIndices() != 1)
      return false;
    At = *E->idx_begin();
  } else if (I != &Region) {
    return false;
  }
  if (!Behind || !sameType(I->getType(), W->getType()))
    return false;
  auto Found = Results.find(At);
  if (Found != Results.end())
    return Found->second == W;
  Results[At] = W;
  return true;
}

bool Pairing::sameMemory(const Instruction *I, const Instruction *J) const {
  const BasicBlock *B = I->getParent(), *C = J->getParent();
  bool After = B == Region.getParent() && Region.comesBefore(I);
  if (After || (Begins.lookup(B) != C && Ends.lookup(B) == C))
    return Ends.lookup(B) == C && effectsBehind(I) == effectsBehind(J);
  return Begins.lookup(B) == C && effectsBefore(I) == effectsBefore(J);
}

bool Pairing::sameOperands(const Instruction *I, const Instruction *J) {
  if (I->getNumOperands() != J->getNumOperands())
    return false;
  if (I->isCommutative() && I->isBinaryOp()) {
    size_t Mark = Trail.size();
    auto Kept = Results;
    for (unsigned Other : {0u, 1u}) {
      if (same(I->getOperand(0), J->getOperand(Other)) && same(I->getOperand(1), J->getOperand(1 - Other)))
        return true;
      undo(Mark);
      Results = Kept;
    }
    return false;
  }
  for (unsigned N = 0; N < I->getNumOperands(); ++N) {
    const Value *A = I->getOperand(N), *B = J->getOperand(N);
    if (isa<BasicBlock>(A) || isa<MetadataAsValue>(A)) {
      if (isa<BasicBlock>(A) != isa<BasicBlock>(B))
        return false;
      continue;
    }
    if (!same(A, B))
      return false;
  }
  return true;
}

bool Pairing::sameInstruction(const Instruction *I, const Instruction *J) {
  if (I->getOpcode() != J->getOpcode() || !sameType(I->getType(), J->getType()))
    return false;
  if (const auto *A = dyn_cast<AllocaInst>(I)) {
    const auto *B = cast<AllocaInst>(J);
    bool Named = A->getName() == B->getName() || (isSlot(A) && isSlot(B)) || isRenamed(A, B);
    return Named && sameType(A->getAllocatedType(), B->getAllocatedType()) && Taken.insert(B).second;
  }
  if (const auto *A = dyn_cast<PHINode>(I)) {
    const auto *B = cast<PHINode>(J);
    if (A->getNumIncomingValues() != B->getNumIncomingValues())
      return false;
    for (unsigned N = 0; N < A->getNumIncomingValues(); ++N) {
      const BasicBlock *From = A->getIncomingBlock(N);
      const BasicBlock *There = Ends.lookup(From);
      if (!There && !Settled) {
        Deferred.insert(A);
        continue;
      }
      int At = There ? B->getBasicBlockIndex(There) : -1;
      if (At < 0 || !same(A->getIncomingValue(N), B->getIncomingValue(At)))
        return false;
    }
    return true;
  }
  if (const auto *A = dyn_cast<GetElementPtrInst>(I)) {
    if (!sameType(A->getSourceElementType(), cast<GetElementPtrInst>(J)->getSourceElementType()))
      return false;
  } else if (const auto *A = dyn_cast<CallBase>(I)) {
    const auto *B = cast<CallBase>(J);
    if (!Behind && changedCallee(A, B))
      return false;
    if (!sameType(A->getFunctionType(), B->getFunctionType()) || A->getNumOperandBundles() != B->getNumOperandBundles())
      return false;
    if (A->getIntrinsicID() != B->getIntrinsicID())
      return false;
  } else if (!I->isSameOperationAs(J,
                                   Instruction::CompareIgnoringAlignment | Instruction::CompareUsingIntersectedAttrs)) {
    return false;
  }
  if (I->mayReadFromMemory() && !isAnchor(*I) && !sameMemory(I, J))
    return false;
  return sameOperands(I, J);
}

bool Pairing::same(const Value *V, const Value *W) {
  auto Found = Known.find(V);
  if (Found != Known.end())
    return Found->second == W;
  if (isa<InlineAsm>(V))
    return V == W;
  if (isa<Constant>(V) || isa<Constant>(W)) {
    if (const auto *I = dyn_cast<Instruction>(V))
      return bindResult(I, W);
    return sameConstant(V, W);
  }
  if (const auto *A = dyn_cast<Argument>(V)) {
    const auto *B = dyn_cast<Argument>(W);
    if (!B || A->getArgNo() != B->getArgNo() || !sameType(A->getType(), B->getType()))
      return false;
    pair(V, W);
    return true;
  }
  const auto *I = dyn_cast<Instruction>(V);
  if (I && bindResult(I, W))
    return true;
  const auto *J = dyn_cast<Instruction>(W);
  if (!I || !J || I == &Region || (isAnchor(*I) && !isa<AllocaInst>(I)))
    return false;
  size_t Mark = Trail.size();
  auto Kept = Results;
  pair(V, W);
  if (sameInstruction(I, J))
    return true;
  undo(Mark);
  Results = Kept;
  return false;
}

// Whether a function of the unit that is called before the region does something else now; or one that it calls.
bool Pairing::changedCallee(const CallBase *A, const CallBase *B) {
  SmallSetVector<const Function *, 8> All;
  if (const Function *F = A->getCalledFunction())
    All.insert(F);
  const Module &Now = *B->getModule();
  for (size_t N = 0; N < All.size(); ++N) {
    const Function *F = All[N], *G = Now.getFunction(F->getName());
    if (F->isDeclaration() || isRegion(F))
      continue;
    if (!G || G->isDeclaration() || !sameDefinition(*F, *G)) {
      if (Why.empty())
        Why = "the function " + F->getName().str() + ", which is called before it, is not that of the captured program";
      return true;
    }
    for (const Instruction &I : instructions(*F))
      if (const auto *C = dyn_cast<CallBase>(&I))
        if (const Function *Next = C->getCalledFunction())
          All.insert(Next);
  }
  return false;
}

// Whether a region may be one that was edited: what it was is nowhere in the function any more.
bool Pairing::isGone(const CallInst &A) {
  return none_of(instructions(Now), [&](const Instruction &I) {
    const CallInst *C = asRegionCall(&I);
    return C && sameDefinition(*A.getCalledFunction(), *C->getCalledFunction());
  });
}

// Both calls are of the same region, maybe edited. An edited one may take other arguments, if there are as many regions
// as before.
bool Pairing::sameRegion(const CallInst &A, const CallInst &B) {
  if (!sameType(A.getType(), B.getType()))
    return false;
  bool Passed = A.arg_size() == B.arg_size();
  for (unsigned N = 0; Passed && N < A.arg_size(); ++N)
    Passed = same(A.getArgOperand(N), B.getArgOperand(N));
  if (sameDefinition(*A.getCalledFunction(), *B.getCalledFunction()))
    return Passed;
  auto IsRegion = [](const Instruction &I) { return asRegionCall(&I) != nullptr; };
  bool AsMany = count_if(instructions(Before), IsRegion) == count_if(instructions(Now), IsRegion);
  return isGone(A) && (Passed || AsMany);
}

// Both have the same effect here.
bool Pairing::sameAnchor(Instruction *I, Instruction *J) {
  const CallInst *A = asRegionCall(I), *B = asRegionCall(J);
  if (!A != !B)
    return false;
  if (A) {
    if (!sameRegion(*A, *B))
      return false;
    Others.push_back({A, B});
  } else if (!sameInstruction(I, J)) {
    return false;
  }
  if (!I->getType()->isVoidTy())
    pair(I, J);
  return true;
}

// From the entry on, up to the region.
bool Pairing::forward() {
  SmallVector<std::pair<BasicBlock *, BasicBlock *>, 16> Waiting = {{&Before.getEntryBlock(), &Now.getEntryBlock()}};
  Begins[&Before.getEntryBlock()] = &Now.getEntryBlock();
  while (!Waiting.empty()) {
    auto [B, C] = Waiting.pop_back_val();
    auto J = C->getFirstNonPHIIt();
    Instruction *Last = nullptr, *Other = nullptr;
    for (Instruction &I : *B) {
      if (&I == &Region)
        break;
      if (!isAnchor(I))
        continue;
      while (J != C->end() && !isAnchor(*J))
        ++J;
      if (J == C->end() || !sameAnchor(&I, &*J)) {
        Other = J == C->end() ? C->getTerminator() : &*J;
        break;
      }
      Last = &*J++;
    }
    if (Other) {
      // What does not lead to the region matters no further.
      if (Leading.contains(B))
        return differs("before", B->getTerminator(), Other);
      continue;
    }
    if (B == Region.getParent()) {
      while (J != C->end() && !isAnchor(*J))
        ++J;
      From = J == C->end() ? C->getTerminator() : &*J;
      if (Last == From)
        return differs("before", &Region, Last);
      continue;
    }
    Ends[B] = C;
    auto *T = B->getTerminator(), *U = C->getTerminator();
    for (unsigned N = 0; N < T->getNumSuccessors(); ++N) {
      BasicBlock *S = T->getSuccessor(N), *D = U->getSuccessor(N);
      auto [Place, New] = Begins.insert({S, D});
      if (!New && Place->second != D)
        return differs("before", T, U);
      if (New && (Leading.contains(S) || !Following.contains(S)))
        Waiting.push_back({S, D});
    }
  }
  return From || differs("before", &Region, nullptr);
}

// Blocks where the function ends, behind the region.
bool Pairing::pairExits(Pairs &Waiting) {
  SmallVector<BasicBlock *, 4> Old, New;
  for (BasicBlock &B : Before)
    if (succ_empty(&B) && Following.contains(&B) && !Ends.contains(&B))
      Old.push_back(&B);
  addFollowing(From->getParent(), FollowingNow);
  FollowingNow.insert(From->getParent());
  for (BasicBlock &B : Now)
    if (succ_empty(&B) && FollowingNow.contains(&B) && !Ended.contains(&B))
      New.push_back(&B);
  // The new code may end the program in more ways.
  auto Stops = [](BasicBlock *B) { return isa<UnreachableInst>(B->getTerminator()); };
  if (any_of(New, Stops) && none_of(Old, Stops))
    erase_if(New, Stops);
  if (Old.size() != New.size())
    return differs("behind", Old.empty() ? nullptr : Old[0]->getTerminator(),
                   New.empty() ? nullptr : New[0]->getTerminator());
  for (auto [B, C] : zip(Old, New))
    endAlike(B, C, Waiting);
  return true;
}

void Pairing::endAlike(BasicBlock *B, BasicBlock *C, Pairs &Waiting) {
  Ends[B] = C;
  Ended.insert(C);
  Waiting.push_back({B, C});
}

// Blocks behind the region that lead to a pair of blocks, each with that whose end looks alike.
bool Pairing::pairPredecessors(BasicBlock *B, BasicBlock *C, Pairs &Waiting) {
  SmallSetVector<BasicBlock *, 4> Old, New;
  for (BasicBlock *P : predecessors(B))
    if (!Ends.contains(P) && Following.contains(P))
      Old.insert(P);
  for (BasicBlock *P : predecessors(C))
    if (!Ended.contains(P) && FollowingNow.contains(P))
      New.insert(P);
  auto Alike = [&](BasicBlock *P, BasicBlock *Q) {
    Instruction *T = P->getTerminator(), *U = Q->getTerminator();
    if (!sameShape(*T, *U))
      return false;
    for (unsigned N = 0; N < T->getNumSuccessors(); ++N)
      if ((T->getSuccessor(N) == B) != (U->getSuccessor(N) == C))
        return false;
    return true;
  };
  if (Old.size() != New.size())
    return differs("behind", B->getTerminator(), C->getTerminator());
  for (BasicBlock *P : Old) {
    auto *Q = find_if(New, [&](BasicBlock *Q) { return !Ended.contains(Q) && Alike(P, Q); });
    if (Q == New.end())
      return differs("behind", P->getTerminator(), C->getTerminator());
    endAlike(P, *Q, Waiting);
  }
  return true;
}

// A block's effects from its end on, up to the region if it is in there.
bool Pairing::alignBackward(BasicBlock *B, BasicBlock *C) {
  auto J = C->rbegin();
  auto Next = [&] {
    while (J != C->rend() && !isAnchor(*J))
      ++J;
    return J != C->rend() && !(C == From->getParent() && J->comesBefore(From));
  };
  for (Instruction &I : reverse(*B)) {
    if (&I == &Region)
      break;
    if (!isAnchor(I))
      continue;
    if (!Next() || !sameShape(I, *J))
      return differs("behind", &I, J == C->rend() ? &C->front() : &*J);
    Alike.push_back({&I, &*J++});
  }
  bool More = Next();
  if (B != Region.getParent())
    return !More || differs("behind", B->getTerminator(), &*J);
  // Behind the last effect that is not the suffix's.
  To = More ? J->getNextNode() : &*C->getFirstNonPHIIt();
  if (C == From->getParent() && To->comesBefore(From))
    To = From;
  return true;
}

// From the exits on, back to the region.
bool Pairing::backward() {
  Behind = true;
  for (auto [_, C] : Ends)
    Ended.insert(C);
  Pairs Waiting, Heads;
  if (!pairExits(Waiting))
    return false;
  // Where a loop around leads back.
  for (auto [B, C] : Begins)
    if (Following.contains(B) && Leading.contains(B) && Ends.contains(B))
      Heads.push_back({const_cast<BasicBlock *>(B), const_cast<BasicBlock *>(C)});
  for (auto [B, C] : Heads)
    if (!pairPredecessors(B, C, Waiting))
      return false;
  while (!Waiting.empty()) {
    auto [B, C] = Waiting.pop_back_val();
    if (!alignBackward(B, C))
      return false;
    if (B == Region.getParent())
      continue;
    auto [Place, New] = Begins.insert({B, C});
    if (!New && Place->second != C)
      return differs("behind", B->getTerminator(), C->getTerminator());
    if (!pairPredecessors(B, C, Waiting))
      return false;
  }
  return To ? settle() : differs("behind", &Region, nullptr);
}

// What was found alike is the same.
bool Pairing::settle() {
  Settled = true;
  // In the order in which values are made, but for loops.
  for (BasicBlock *B : ReversePostOrderTraversal<Function *>(&Before))
    for (auto [I, J] : reverse(Alike))
      if (I->getParent() == B && !sameAnchor(I, J))
        return differs("behind", I, J);
  for (const PHINode *A : Deferred) {
    const Value *B = Known.lookup(A);
    if (B && !sameInstruction(A, cast<PHINode>(B)))
      return differs("behind", A, cast<PHINode>(B));
  }
  for (auto [B, C] : Ends) {
    const Instruction *T = B->getTerminator(), *U = C->getTerminator();
    for (unsigned N = 0; N < T->getNumSuccessors(); ++N) {
      const BasicBlock *There = Begins.lookup(T->getSuccessor(N));
      if (There && There != U->getSuccessor(N))
        return differs("behind", T, U);
    }
  }
  return true;
}

bool Pairing::run() { return forward() && backward(); }
