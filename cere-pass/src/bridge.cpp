// Lets the code that stands for a captured region in an edited unit run on what was captured: it gets the arguments
// that the captured code got, by what they are, and leaves its results where that left them. C++ because reading
// bitcode into a module's context, AliasAnalysis and CodeExtractor have no C API.
#include "pairing.h"
#include "llvm-c/Core.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/BasicAliasAnalysis.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/CodeExtractor.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace {
// The program's own code again: probes are as if they slept, and blocks that follow one another are one.
void dropProbes(Function &F) {
  SmallVector<CallInst *, 8> Calls;
  for (Instruction &I : instructions(F))
    if (auto *C = dyn_cast<CallInst>(&I); C && isRegion(C->getCalledFunction()))
      Calls.push_back(C);
  for (CallInst *C : Calls) {
    BasicBlock *Fast = C->getParent(), *Head = Fast->getSinglePredecessor();
    auto *Br = Head ? dyn_cast<BranchInst>(Head->getTerminator()) : nullptr;
    if (!Br || !Br->isConditional() || Br->getSuccessor(1) != Fast)
      continue;
    BasicBlock *Slow = Br->getSuccessor(0);
    auto *Armed = dyn_cast<ICmpInst>(Br->getCondition());
    Slow->removePredecessor(Head);
    BranchInst::Create(Fast, Br->getIterator());
    Br->eraseFromParent();
    DeleteDeadBlock(Slow);
    if (!Armed || !Armed->use_empty())
      continue;
    auto *Hook = dyn_cast<LoadInst>(Armed->getOperand(0));
    Armed->eraseFromParent();
    if (Hook && Hook->use_empty())
      Hook->eraseFromParent();
  }
  for (BasicBlock &B : make_early_inc_range(F)) {
    if (B.getSinglePredecessor())
      FoldSingleEntryPHINodes(&B);
    MergeBlockIntoPredecessor(&B);
  }
}

// A type as the source writes it.
std::string typeName(const DIType *T, unsigned Depth = 0) {
  if (!T || Depth > 8)
    return "void";
  if (const auto *D = dyn_cast<DIDerivedType>(T)) {
    switch (D->getTag()) {
    case dwarf::DW_TAG_pointer_type:
      return typeName(D->getBaseType(), Depth + 1) + " *";
    case dwarf::DW_TAG_reference_type:
      return typeName(D->getBaseType(), Depth + 1) + " &";
    case dwarf::DW_TAG_const_type:
      return "const " + typeName(D->getBaseType(), Depth + 1);
    case dwarf::DW_TAG_restrict_type:
    case dwarf::DW_TAG_volatile_type:
      return typeName(D->getBaseType(), Depth + 1);
    default:
      break;
    }
  }
  return T->getName().str();
}

// The variable of the source that a value is, with its declaration.
std::string declaration(Value *V) {
  SmallVector<DbgVariableRecord *, 4> Records;
  if (isa<Instruction>(V) || isa<Argument>(V)) {
    findDbgValues(V, Records);
    if (Records.empty())
      findDbgUsers(V, Records);
  }
  std::string Name = V->getName().str();
  stable_sort(Records, [](auto *A, auto *B) {
    // Those of what is inlined, and of what was optimised away, last.
    auto Rank = [](const DbgVariableRecord *R) {
      const DILocation *At = R->getDebugLoc();
      return std::make_pair(At && At->getInlinedAt(), R->getExpression()->getNumElements());
    };
    return Rank(A) < Rank(B);
  });
  for (DbgVariableRecord *R : Records) {
    const DILocalVariable *D = R->getVariable();
    Name = "`" + typeName(D->getType()) + " " + D->getName().str() + "` (line " + std::to_string(D->getLine()) + ")";
    break;
  }
  if (Records.empty()) {
    Name = Name.empty() ? "a value without a name" : "`" + Name + "`";
    if (const auto *I = dyn_cast<Instruction>(V))
      if (unsigned Line = lineOf(I))
        Name += " (line " + std::to_string(Line) + ")";
  }
  return Name;
}

// What calls in `F` may do to memory, without knowledge of its callers.
struct Effects {
  TargetLibraryInfoImpl Library;
  TargetLibraryInfo TLI;
  AssumptionCache AC;
  DominatorTree DT;
  BasicAAResult Basic;
  AAResults AA;
  explicit Effects(Function &F)
      : Library(F.getParent()->getTargetTriple()), TLI(Library, &F), AC(F), DT(F),
        Basic(F.getDataLayout(), F, TLI, AC, &DT), AA(TLI) {
    AA.addAAResult(Basic);
  }
};

// Builds the function that calls the new code with what was captured.
class Bridge {
public:
  Bridge(Pairing &Found, CallInst &Old, CallInst &New, Instruction *Entry)
      : Found(Found), Old(Old), New(New), Entry(Entry), Memory(*New.getFunction()) {}
  std::string build(StringRef Name);

private:
  Pairing &Found;
  CallInst &Old, &New;
  // Where the new code begins, in its caller.
  Instruction *Entry;
  Effects Memory;
  IRBuilder<> *B = nullptr;
  Value *Block = nullptr;
  StructType *Layout = nullptr;
  DenseMap<Value *, Value *> Made;
  std::string Why;

  Value *argument(unsigned N) {
    Value *At = B->CreateStructGEP(Layout, Block, N + 1);
    return B->CreateLoad(Old.getArgOperand(N)->getType(), At);
  }
  Value *value(Value *V);
  Value *undone(unsigned N, Value *V);
  Value *computed(Instruction *I);
  Value *fresh(AllocaInst *A);
  bool changes(LoadInst &L);
  bool leave();
};

// Whether something may change what the load reads between it and the beginning of the new code, or between that code's
// end and it.
bool Bridge::changes(LoadInst &L) {
  bool Behind = Memory.DT.dominates(&New, &L);
  if (Behind && !Made.count(&New))
    return true;
  MemoryLocation At = MemoryLocation::get(&L);
  Instruction &First = Behind ? static_cast<Instruction &>(New) : L;
  const Instruction *Last = Behind ? &L : Entry;
  SmallPtrSet<BasicBlock *, 16> Seen;
  SmallVector<std::pair<BasicBlock *, BasicBlock::iterator>, 8> Waiting = {
      {First.getParent(), std::next(First.getIterator())}};
  while (!Waiting.empty()) {
    auto [BB, I] = Waiting.pop_back_val();
    bool Ends = false;
    for (; I != BB->end() && !Ends; ++I) {
      Ends = &*I == Last;
      if (!Ends && I->mayWriteToMemory() && isModSet(Memory.AA.getModRefInfo(&*I, At)))
        return true;
    }
    if (!Ends)
      for (BasicBlock *S : successors(BB))
        if (Seen.insert(S).second)
          Waiting.push_back({S, S->begin()});
  }
  return false;
}

// A variable of the caller that only the new code has: its content at the beginning is nobody's. What reads it does so
// behind the new code.
Value *Bridge::fresh(AllocaInst *A) {
  for (User *U : A->users()) {
    auto *I = cast<Instruction>(U);
    if (I != &New && !I->isLifetimeStartOrEnd() && !isa<LoadInst>(I))
      return nullptr;
  }
  auto *Copy = cast<AllocaInst>(A->clone());
  BasicBlock &First = B->GetInsertBlock()->getParent()->getEntryBlock();
  Copy->insertBefore(First.getFirstInsertionPt());
  return Copy;
}

Value *Bridge::computed(Instruction *I) {
  if (auto *A = dyn_cast<AllocaInst>(I))
    return A->isStaticAlloca() ? fresh(A) : nullptr;
  auto *L = dyn_cast<LoadInst>(I);
  bool Pure = !isa<PHINode>(I) && !I->mayHaveSideEffects() && (!I->mayReadFromMemory() || (L && L->isSimple()));
  if (!Pure || (L && changes(*L)))
    return nullptr;
  SmallVector<Value *, 4> Operands;
  for (Value *Operand : I->operands())
    if (Value *Here = value(Operand))
      Operands.push_back(Here);
    else
      return nullptr;
  Instruction *Copy = I->clone();
  for (auto [N, Operand] : enumerate(Operands))
    Copy->setOperand(N, Operand);
  Copy->setDebugLoc(DebugLoc());
  B->Insert(Copy);
  return Copy;
}

// The value, if the captured argument `N` is computed from it by a step that can be undone.
Value *Bridge::undone(unsigned N, Value *V) {
  auto *I = dyn_cast<Instruction>(Old.getArgOperand(N));
  if (!I || !I->getType()->isIntegerTy())
    return nullptr;
  if ((isa<SExtInst>(I) || isa<ZExtInst>(I)) && Found.same(I->getOperand(0), V))
    return B->CreateTrunc(argument(N), V->getType());
  auto *C = I->isBinaryOp() ? dyn_cast<ConstantInt>(I->getOperand(1)) : nullptr;
  if (!C || !Found.same(I->getOperand(0), V))
    return nullptr;
  switch (I->getOpcode()) {
  case Instruction::Add:
    return B->CreateSub(argument(N), C);
  case Instruction::Sub:
    return B->CreateAdd(argument(N), C);
  case Instruction::Xor:
    return B->CreateXor(argument(N), C);
  default:
    return nullptr;
  }
}

// The value in the bridge; null if nothing that was captured gives it.
Value *Bridge::value(Value *V) {
  if (isa<Constant>(V) || isa<MetadataAsValue>(V) || isa<InlineAsm>(V))
    return V;
  auto Place = Made.find(V);
  if (Place != Made.end())
    return Place->second;
  Value *Here = nullptr;
  if (auto *L = dyn_cast<LoadInst>(V))
    // What the new code has left.
    if (auto *Slot = dyn_cast<AllocaInst>(L->getPointerOperand());
        Slot && Made.count(&New) && is_contained(New.args(), cast<Value>(Slot)))
      return B->CreateLoad(L->getType(), value(Slot));
  for (unsigned N = 0; N < Old.arg_size() && !Here; ++N)
    if (Found.same(Old.getArgOperand(N), V))
      Here = argument(N);
  for (unsigned N = 0; N < Old.arg_size() && !Here; ++N)
    Here = undone(N, V);
  if (auto *I = dyn_cast<Instruction>(V); I && !Here)
    Here = computed(I);
  if (!Here && Why.empty())
    Why = "the new code needs " + declaration(V) + ", which the captured code did not have";
  Made[V] = Here;
  return Here;
}

// Leaves the results where the captured code left them.
bool Bridge::leave() {
  auto *Type = Old.getType();
  auto *Several = dyn_cast<StructType>(Type);
  unsigned Count = Type->isVoidTy() ? 0 : Several ? Several->getNumElements() : 1;
  for (unsigned N = 0; N < Count; ++N)
    if (!Found.Results.count(N)) {
      Why = "the code behind the captured loop uses its result " + std::to_string(N + 1) +
            ", and nothing in the new code stands for that";
      return false;
    }
  for (auto [N, W] : Found.Results) {
    Value *Here = value(const_cast<Value *>(W));
    if (!Here)
      return false;
    Value *At = N >= Pairing::BySlot ? argument(N - Pairing::BySlot)
                : Several            ? B->CreateStructGEP(Several, B->CreateStructGEP(Layout, Block, 0), N)
                                     : B->CreateStructGEP(Layout, Block, 0);
    B->CreateStore(Here, At);
  }
  return true;
}

// Empty if all is there, else what is not.
std::string Bridge::build(StringRef Name) {
  Function &Callee = *New.getCalledFunction();
  LLVMContext &C = Callee.getContext();
  SmallVector<Type *, 8> Fields = {Old.getType()->isVoidTy() ? Type::getInt64Ty(C) : Old.getType()};
  for (Value *A : Old.args())
    Fields.push_back(A->getType());
  Layout = StructType::get(C, Fields);
  auto *Kind = FunctionType::get(Type::getVoidTy(C), {PointerType::get(C, 0)}, false);
  auto *F = Function::Create(Kind, GlobalValue::InternalLinkage, Name, Callee.getParent());
  for (Attribute A : Callee.getAttributes().getFnAttrs())
    if (A.isStringAttribute() || A.hasAttribute(Attribute::UWTable) || A.hasAttribute(Attribute::NoUnwind))
      F->addFnAttr(A);
  F->addFnAttr(Attribute::NoInline);
  Block = F->getArg(0);
  IRBuilder<> Builder(BasicBlock::Create(C, "", F));
  B = &Builder;
  SmallVector<Value *, 8> Arguments;
  for (Value *A : New.args()) {
    Value *Here = value(A);
    if (!Here)
      return Why;
    Arguments.push_back(Here);
  }
  CallInst *All = Builder.CreateCall(&Callee, Arguments);
  All->setCallingConv(Callee.getCallingConv());
  Made[&New] = All;
  if (!leave())
    return Why;
  Builder.CreateRetVoid();
  return "";
}

// What is computed in the hole's first block from values before it, and from no memory, is computed before it.
void keepBefore(Instruction *From, Instruction *To) {
  SmallPtrSet<Value *, 16> Inside;
  for (Instruction &I : make_early_inc_range(make_range(From->getIterator(), From->getParent()->end()))) {
    if (&I == To)
      break;
    bool Moves = &I != From && !I.isTerminator() && !isa<PHINode>(I) && !I.mayReadOrWriteMemory() &&
                 isSafeToSpeculativelyExecute(&I) &&
                 none_of(I.operands(), [&](Value *V) { return Inside.contains(V); });
    if (Moves)
      I.moveBefore(From->getIterator());
    else
      Inside.insert(&I);
  }
}

// The one call in the hole; the hole becomes a function of its own unless it is the call of a region already.
CallInst *callInHole(Pairing &Found, std::string &Why) {
  BasicBlock *First = Found.From->getParent(), *Last = Found.To->getParent();
  if (First == Last && Found.From == Found.To) {
    Why = "the loop is gone: nothing is left between the code before it and the code behind it (was it fused with "
          "another loop?)";
    return nullptr;
  }
  if (auto *C = dyn_cast<CallInst>(Found.From))
    if (First == Last && isRegion(C->getCalledFunction()) && C->getNextNode() == Found.To)
      return C;
  Function &F = *First->getParent();
  keepBefore(Found.From, Found.To);
  // The end first: the other place may be in the same block.
  BasicBlock *Tail = SplitBlock(Last, Found.To->getIterator());
  BasicBlock *Head = SplitBlock(First, Found.From->getIterator());
  SetVector<BasicBlock *> Set;
  Set.insert(Head);
  for (size_t I = 0; I < Set.size(); ++I)
    for (BasicBlock *S : successors(Set[I]))
      if (S != Tail)
        Set.insert(S);
  for (BasicBlock *BB : Set)
    for (BasicBlock *P : predecessors(BB))
      if (BB != Head && !Set.contains(P)) {
        Why = "the new code is entered at several places";
        return nullptr;
      }
  DominatorTree DT(F);
  CodeExtractorAnalysisCache Cache(F);
  CodeExtractor CE(Set.getArrayRef(), &DT, false, nullptr, nullptr, nullptr, false, true, nullptr, "cere");
  SetVector<Value *> In, Out;
  Function *New = CE.isEligible() ? CE.extractCodeRegion(Cache, In, Out) : nullptr;
  if (!New) {
    Why = "the new code cannot be taken out of its function";
    return nullptr;
  }
  New->setLinkage(GlobalValue::InternalLinkage);
  New->removeFnAttr(Attribute::AlwaysInline);
  New->addFnAttr(Attribute::NoInline);
  New->setAlignment(Align(64));
  auto *Call = dyn_cast<CallInst>(New->user_back());
  if (!Call || !New->getReturnType()->isVoidTy()) {
    Why = "the new code leaves to several places";
    return nullptr;
  }
  // Results are read from where it leaves them.
  for (auto &[N, W] : Found.Results)
    for (unsigned I = In.size(); I < Call->arg_size(); ++I)
      for (User *U : New->getArg(I)->users())
        if (auto *S = dyn_cast<StoreInst>(U); S && S->getValueOperand() == W)
          for (User *L : Call->getArgOperand(I)->users())
            if (isa<LoadInst>(L))
              W = L;
  return Call;
}

// The function of the new module that stands for `P` of the old one.
Function *counterpart(Function &P, Module &New, StringRef As, std::string &Why) {
  if (!isRegion(&P)) {
    StringRef Name = As.empty() ? P.getName() : As;
    Function *Q = New.getFunction(Name);
    if (!Q || Q->isDeclaration()) {
      Why = "the function " + Name.str() + " is not in the new source: name the one that stands for it by --as " +
            P.getName().str() + "=NEW";
      return nullptr;
    }
    dropProbes(P);
    dropProbes(*Q);
    return Q;
  }
  // A loop around it.
  CallInst *Call = regionCall(P);
  Function *Around = Call ? counterpart(*Call->getFunction(), New, As, Why) : nullptr;
  if (!Around) {
    if (Why.empty())
      Why = "the loop around it is not in the captured program";
    return nullptr;
  }
  Pairing Found(*Call, *Around);
  if (!Found.run()) {
    Why = Found.Why;
    return nullptr;
  }
  auto *C = dyn_cast<CallInst>(Found.From);
  Function *Q = C && C->getNextNode() == Found.To ? C->getCalledFunction() : nullptr;
  if (!isRegion(Q)) {
    Why = "the loop around it is no single loop any more";
    return nullptr;
  }
  dropProbes(P);
  dropProbes(*Q);
  return Q;
}

// What the functions that `Root` leads to use and that is laid out otherwise than in the captured program; empty if
// nothing is.
std::string otherLayout(Function &Root, Module &Old) {
  StringMap<SmallVector<StructType *, 1>> Structures;
  for (StructType *S : Old.getIdentifiedStructTypes())
    Structures[S->getName().rtrim("0123456789").rtrim('.')].push_back(S);
  auto Differs = [&](Type *T) {
    auto *S = dyn_cast<StructType>(T);
    if (!S || S->isLiteral() || !S->hasName())
      return false;
    auto Known = Structures.find(S->getName().rtrim("0123456789").rtrim('.'));
    return Known != Structures.end() && none_of(Known->second, [&](StructType *K) { return sameType(K, S); });
  };
  SmallSetVector<Function *, 16> All;
  All.insert(&Root);
  for (size_t N = 0; N < All.size(); ++N)
    for (Instruction &I : instructions(*All[N])) {
      if (auto *G = dyn_cast<GetElementPtrInst>(&I); G && Differs(G->getSourceElementType()))
        return "the structure " + G->getSourceElementType()->getStructName().split('.').second.str() +
               " is laid out otherwise than in the captured program";
      for (Value *Operand : I.operands()) {
        Value *V = Operand->stripPointerCasts();
        if (auto *E = dyn_cast<ConstantExpr>(V); E && E->getOpcode() == Instruction::GetElementPtr)
          V = E->getOperand(0)->stripPointerCasts();
        if (auto *F = dyn_cast<Function>(V); F && !F->isDeclaration())
          All.insert(F);
        auto *G = dyn_cast<GlobalVariable>(V);
        auto *H = G ? Old.getNamedGlobal(G->getName()) : nullptr;
        if (!H || G->getName().starts_with("cere.") || G->getName().starts_with("."))
          continue;
        uint64_t Now = Old.getDataLayout().getTypeAllocSize(G->getValueType());
        uint64_t Then = Old.getDataLayout().getTypeAllocSize(H->getValueType());
        if (!G->isConstant() && Now == Then && !sameInitialValue(*G, *H))
          return "the initial value of " + G->getName().str() + " is another one, and captured memory has the old one";
        if (Now != Then && !(G->isConstant() && H->isConstant()))
          return "the variable " + G->getName().str() + " has " + std::to_string(Now) + " bytes, and " +
                 std::to_string(Then) + " in the captured program";
      }
    }
  return "";
}

// Constants with other values than captured ones are not those.
void keepNewConstants(Module &New, Module &Old) {
  for (GlobalVariable &G : New.globals()) {
    GlobalVariable *H = Old.getNamedGlobal(G.getName());
    if (!H || !G.isConstant() || !G.hasInitializer() || G.getName().starts_with("cere.") || sameInitialValue(G, *H))
      continue;
    G.setLinkage(GlobalValue::InternalLinkage);
    G.setComdat(nullptr);
    G.setName("cere.new." + G.getName());
  }
}

// What differs outside of what runs: functions, loops of the same function, initial values.
std::string notTried(Pairing &Found, Function &Body, Module &New, Module &Old, Function &P, Function &Q) {
  SmallSetVector<const Function *, 16> Run;
  Run.insert(&Body);
  for (size_t N = 0; N < Run.size(); ++N)
    for (const Instruction &I : instructions(*Run[N]))
      if (const auto *C = dyn_cast<CallBase>(&I))
        if (const Function *F = C->getCalledFunction(); F && !F->isDeclaration())
          Run.insert(F);
  std::string Names;
  auto Add = [&](const Twine &Name) { Names += (Names.empty() ? "" : ", ") + Name.str(); };
  for (auto [A, B] : Found.Others)
    if (!sameDefinition(*A->getCalledFunction(), *B->getCalledFunction()))
      Add("the loop at line " + Twine(lineOf(B)));
  for (Function &F : New) {
    const Function *G = Old.getFunction(F.getName());
    if (F.isDeclaration() || !G || G->isDeclaration() || &F == &Q || G == &P || F.getName().starts_with("cere.") ||
        Run.contains(&F))
      continue;
    if (!sameDefinition(*G, F))
      Add(F.getName());
  }
  for (GlobalVariable &G : New.globals()) {
    const GlobalVariable *H = Old.getNamedGlobal(G.getName());
    if (H && !G.getName().starts_with("cere.") && !G.getName().starts_with("llvm.") && !G.isConstant() &&
        !sameInitialValue(G, *H))
      Add("the initial value of " + G.getName());
  }
  return Names;
}

// The names of the unit's own regions are not those of the captured ones.
void renameRegions(Module &M) {
  for (GlobalObject &G : M.global_objects())
    for (StringRef Prefix : {"cere.outlined.", "cere.invoke.", "cere.probed.", "cere.region."})
      if (G.getName().starts_with(Prefix))
        G.setName("cere.new." + G.getName().drop_front(5).str());
}
} // namespace

extern "C" {

// Lets what stands in the module for region `Index` of the unit in `File` run in its place. Null, or a message. `Note`
// gets what else differs.
char *cere_bridge(LLVMModuleRef M, const char *File, unsigned Index, const char *As, char **Note) {
  Module &New = *unwrap(M);
  auto Buffer = MemoryBuffer::getFile(File);
  if (!Buffer)
    return copy("the captured unit cannot be read");
  auto Read = parseBitcodeFile(**Buffer, New.getContext());
  if (!Read) {
    consumeError(Read.takeError());
    return copy("the captured unit is no bitcode");
  }
  Module &Old = **Read;
  std::string Number = std::to_string(Index);
  Function *Region = Old.getFunction("cere.outlined." + Number);
  CallInst *Call = Region ? regionCall(*Region) : nullptr;
  if (!Call)
    return copy("the captured unit lacks the region");
  std::string Why;
  Function *Q = counterpart(*Call->getFunction(), New, As, Why);
  if (!Q)
    return copy(Why);
  Pairing Found(*Call, *Q);
  if (!Found.run())
    return copy(Found.Why);
  Instruction *Entry = Found.From;
  CallInst *There = callInHole(Found, Why);
  if (!There)
    return copy(Why);
  if (Entry->getFunction() != Q)
    Entry = There;
  Why = otherLayout(*There->getCalledFunction(), Old);
  if (!Why.empty())
    return copy(Why);
  std::string Made = Bridge(Found, *Call, *There, Entry).build("cere.bridge");
  if (!Made.empty())
    return copy(Made);
  Function *Body = There->getCalledFunction();
  std::string Others = notTried(Found, *Body, New, Old, *Call->getFunction(), *Q);
  if (!Others.empty())
    *Note = copy(Others);
  keepNewConstants(New, Old);
  renameRegions(New);
  Body->setName("cere.outlined." + Number);
  Function *Bridged = New.getFunction("cere.bridge");
  Bridged->setName("cere.invoke." + Number);
  appendToCompilerUsed(New, {Bridged});
  return nullptr;
}
}
