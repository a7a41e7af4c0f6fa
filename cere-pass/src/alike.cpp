// Whether definitions of two modules are the same, whatever their values are called. C++ because it walks constants and
// types, which the C API shows in part.
#include "pairing.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/Endian.h"

using namespace llvm;

// A place in the source, as Rust's panics get it: the name of a file of Rust's, its length, line and column.
bool isLocation(const GlobalVariable &G) {
  const auto *S = dyn_cast<ConstantStruct>(G.getInitializer());
  if (!S || !S->getType()->isPacked() || S->getNumOperands() != 2 || !G.getName().starts_with("alloc_"))
    return false;
  const auto *Name = dyn_cast<GlobalVariable>(S->getOperand(0)->stripPointerCasts());
  const auto *Rest = dyn_cast<ConstantDataSequential>(S->getOperand(1));
  if (!Name || !Name->hasDefinitiveInitializer() || !Rest || Rest->getNumElements() != 16 ||
      Rest->getElementByteSize() != 1)
    return false;
  const Constant *Text = Name->getInitializer();
  if (const auto *Only = dyn_cast<ConstantStruct>(Text); Only && Only->getNumOperands() == 1)
    Text = Only->getOperand(0);
  const auto *Bytes = dyn_cast<ConstantDataSequential>(Text);
  if (!Bytes || !Bytes->isString())
    return false;
  uint64_t Length = support::endian::read64le(Rest->getRawDataValues().data());
  return Bytes->getAsString().take_front(Length).ends_with(".rs") && Bytes->getAsString().size() <= Length + 1 &&
         Bytes->getAsString().size() >= Length;
}

namespace {
// A number for what a definition does.
class Definition {
public:
  uint64_t of(const Function &F);
  uint64_t of(const Constant *C);

private:
  uint64_t Sum = 0;
  DenseMap<const Function *, uint64_t> Known;
  DenseMap<const Value *, uint64_t> Local;

  void add(uint64_t N) { Sum = (Sum ^ N) * 0x100000001b3ull + (Sum >> 29); }
  void add(StringRef S) {
    for (char C : S)
      add(static_cast<unsigned char>(C));
    add(S.size());
  }
  void add(const Type *T);
  void add(const Constant *C);
  void add(const Instruction &I);
  void add(const Value *V);
  void add(const APInt &N) {
    for (unsigned W = 0; W < N.getNumWords(); ++W)
      add(N.getRawData()[W]);
  }
  template <typename What> uint64_t apart(What Work) {
    uint64_t Before = Sum;
    Sum = 14695981039346656037ull;
    Work();
    std::swap(Before, Sum);
    return Before;
  }
};

void Definition::add(const Type *T) {
  add(T->getTypeID());
  if (const auto *N = dyn_cast<IntegerType>(T))
    add(N->getBitWidth());
  if (const auto *A = dyn_cast<ArrayType>(T))
    add(A->getNumElements());
  if (const auto *V = dyn_cast<VectorType>(T))
    add(V->getElementCount().getKnownMinValue());
  for (const Type *Part : T->subtypes())
    add(Part);
}

void Definition::add(const Constant *C) {
  add(C->getType());
  add(C->getValueID());
  if (const auto *F = dyn_cast<Function>(C); F && isRegion(F)) {
    // Regions are numbered.
    DenseMap<const Value *, uint64_t> Kept;
    std::swap(Kept, Local);
    uint64_t Body = of(*F);
    std::swap(Kept, Local);
    return add(Body);
  }
  if (const auto *G = dyn_cast<GlobalVariable>(C);
      G && G->isConstant() && G->hasLocalLinkage() && G->hasDefinitiveInitializer())
    // Literals are numbered.
    return add(isLocation(*G) ? G->getInitializer()->getAggregateElement(0u) : G->getInitializer());
  if (const auto *G = dyn_cast<GlobalValue>(C))
    // Regions are numbered, and so are their probes.
    return add(G->getName().starts_with("cere.") ? StringRef("cere") : G->getName());
  if (const auto *N = dyn_cast<ConstantInt>(C))
    return add(N->getValue());
  if (const auto *N = dyn_cast<ConstantFP>(C))
    return add(N->getValueAPF().bitcastToAPInt());
  if (const auto *D = dyn_cast<ConstantDataSequential>(C))
    return add(D->getRawDataValues());
  if (const auto *E = dyn_cast<ConstantExpr>(C)) {
    add(E->getOpcode());
    if (const auto *P = dyn_cast<GEPOperator>(E))
      add(P->getSourceElementType());
  }
  for (const Use &Part : C->operands())
    if (const auto *P = dyn_cast<Constant>(Part.get()))
      add(P);
}

void Definition::add(const Instruction &I) {
  add(I.getOpcode());
  add(I.getType());
  if (const auto *C = dyn_cast<CmpInst>(&I))
    add(C->getPredicate());
  if (const auto *P = dyn_cast<GetElementPtrInst>(&I))
    add(P->getSourceElementType());
  if (const auto *A = dyn_cast<AllocaInst>(&I))
    add(A->getAllocatedType());
  if (const auto *E = dyn_cast<ExtractValueInst>(&I))
    for (unsigned N : E->indices())
      add(N);
  if (const auto *E = dyn_cast<InsertValueInst>(&I))
    for (unsigned N : E->indices())
      add(N);
  if (const auto *E = dyn_cast<ShuffleVectorInst>(&I))
    for (int N : E->getShuffleMask())
      add(static_cast<uint64_t>(N));
  if (const auto *R = dyn_cast<AtomicRMWInst>(&I))
    add(R->getOperation());
  const auto *P = dyn_cast<PHINode>(&I);
  if (!P) {
    for (const Use &Operand : I.operands())
      add(Operand.get());
    return;
  }
  // In any order.
  uint64_t All = 0;
  for (unsigned N = 0; N < P->getNumIncomingValues(); ++N)
    All += apart([&] {
      add(P->getIncomingValue(N));
      add(Local.lookup(P->getIncomingBlock(N)));
    });
  add(All);
}

void Definition::add(const Value *V) {
  if (const auto *C = dyn_cast<Constant>(V))
    add(C);
  else if (const auto *A = dyn_cast<InlineAsm>(V))
    add(A->getAsmString()), add(A->getConstraintString());
  else
    add(Local.lookup(V));
}

uint64_t Definition::of(const Constant *C) {
  return apart([&] { add(C); });
}

uint64_t Definition::of(const Function &F) {
  auto [Place, New] = Known.insert({&F, 0});
  if (!New)
    return Place->second;
  uint64_t Found = apart([&] {
    uint64_t Number = 1;
    for (const Argument &A : F.args())
      Local[&A] = Number++;
    for (const BasicBlock &B : F) {
      Local[&B] = Number++;
      for (const Instruction &I : B)
        Local[&I] = Number++;
    }
    add(F.getFunctionType());
    for (const Instruction &I : instructions(F))
      add(I);
  });
  Known[&F] = Found;
  return Found;
}
} // namespace

bool sameDefinition(const Function &A, const Function &B) { return Definition().of(A) == Definition().of(B); }

bool sameInitialValue(const GlobalVariable &A, const GlobalVariable &B) {
  if (!A.hasInitializer() || !B.hasInitializer())
    return A.hasInitializer() == B.hasInitializer();
  return Definition().of(A.getInitializer()) == Definition().of(B.getInitializer());
}
