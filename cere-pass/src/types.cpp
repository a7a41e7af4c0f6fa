// Tells the runtime of each store which type was stored: for telling floating-point results from others where a
// replay's memory differs. Or, before the optimiser changes anything, also where in the source it is (`stores.cpp`).
// C++ because the C API knows neither masked stores nor positions behind instructions.
#include "stores.h"
#include "llvm-c/Core.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {
// As in the runtime; what is above is the address that the value was copied from.
enum Kind { Float = 1, Double = 2, Other = 3 };

class Typing {
  Module &M;
  const DataLayout &DL;
  GlobalVariable *Hook;
  FunctionType *Told;
  // Where stores are; none if that is not told.
  Places *Where;

  Value *word(IRBuilder<> &B, uint64_t N) { return B.getInt64(N); }

  // From: where the value is, if it is not in its place yet.
  void tell(IRBuilder<> &B, Value *Place, Value *Size, Value *What, Value *From = nullptr) {
    SmallVector<Value *, 6> Arguments = {Place, Size, What};
    if (Where)
      Arguments.append({Where->site(), Where->iterations(), From ? From : ConstantPointerNull::get(B.getPtrTy())});
    B.CreateCall(Told, B.CreateLoad(B.getPtrTy(), Hook), Arguments);
  }

  static Kind kind(Type *T) { return T->isFloatTy() ? Float : T->isDoubleTy() ? Double : Other; }

  // The parts of a value of type T that was stored at Place.
  void parts(IRBuilder<> &B, Value *Place, Type *T, uint64_t Offset) {
    if (auto *S = dyn_cast<StructType>(T)) {
      const StructLayout *Layout = DL.getStructLayout(S);
      for (unsigned I = 0; I < S->getNumElements(); ++I)
        parts(B, Place, S->getElementType(I), Offset + Layout->getElementOffset(I));
      return;
    }
    if (auto *A = dyn_cast<ArrayType>(T)) {
      for (uint64_t I = 0; I < A->getNumElements(); ++I)
        parts(B, Place, A->getElementType(), Offset + I * DL.getTypeAllocSize(A->getElementType()));
      return;
    }
    TypeSize Size = DL.getTypeStoreSize(T);
    if (Size.isScalable())
      return;
    tell(B, B.CreatePtrAdd(Place, word(B, Offset)), word(B, Size), word(B, kind(T->getScalarType())));
  }

  // Lanes of a masked store or a scatter: those that the mask leaves out have no bytes.
  void lanes(IRBuilder<> &B, IntrinsicInst &I) {
    auto *T = dyn_cast<FixedVectorType>(I.getArgOperand(0)->getType());
    if (!T)
      return;
    Value *Place = I.getArgOperand(1), *Mask = I.getArgOperand(I.arg_size() - 1);
    Type *E = T->getElementType();
    uint64_t Size = DL.getTypeStoreSize(E);
    for (unsigned N = 0; N < T->getNumElements(); ++N) {
      Value *At =
          Place->getType()->isVectorTy() ? B.CreateExtractElement(Place, N) : B.CreatePtrAdd(Place, word(B, N * Size));
      Value *Bytes = B.CreateSelect(B.CreateExtractElement(Mask, N), word(B, Size), word(B, 0));
      tell(B, At, Bytes, word(B, kind(E)));
    }
  }

  // The address that the stored value was loaded from, if it is only passed on.
  static Value *source(StoreInst &S) {
    auto *L = dyn_cast<LoadInst>(S.getValueOperand());
    if (!L || L->getParent() != S.getParent() || !L->isSimple())
      return nullptr;
    for (Instruction *I = L->getNextNode(); I != &S; I = I->getNextNode())
      if (I->mayWriteToMemory())
        return nullptr;
    return L->getPointerOperand();
  }

  void store(StoreInst &S) {
    IRBuilder<> B(S.getNextNode());
    Type *T = S.getValueOperand()->getType();
    Value *From = T->isFPOrFPVectorTy() ? nullptr : source(S);
    TypeSize Size = DL.getTypeStoreSize(T);
    if (From && !Size.isScalable())
      tell(B, S.getPointerOperand(), word(B, Size), B.CreatePtrToInt(From, B.getInt64Ty()));
    else
      parts(B, S.getPointerOperand(), T, 0);
  }

  // What an atomic instruction leaves; a floating-point number may travel as an integer of its size. Where an exchange
  // fails, what another thread left is of the same type.
  void exchanged(Instruction &I, Value *Place, Value *New) {
    if (auto *Cast = dyn_cast<BitCastInst>(New))
      New = Cast->getOperand(0);
    IRBuilder<> B(I.getNextNode());
    parts(B, Place, New->getType(), 0);
  }

  // A value that becomes the result whose place `Slot` holds, as if it was stored there.
  void computed(Instruction &I, GlobalVariable *Slot) {
    IRBuilder<> First(&*I.getFunction()->getEntryBlock().getFirstInsertionPt());
    AllocaInst *Spilled = First.CreateAlloca(I.getType());
    IRBuilder<> B(isa<PHINode>(I) ? &*I.getParent()->getFirstInsertionPt() : I.getNextNode());
    B.CreateStore(&I, Spilled);
    tell(B, B.CreateLoad(B.getPtrTy(), Slot), word(B, DL.getTypeStoreSize(I.getType())), word(B, kind(I.getType())),
         Spilled);
  }

  void report(Instruction &I) {
    if (auto *S = dyn_cast<StoreInst>(&I))
      return store(*S);
    if (auto *Update = dyn_cast<AtomicRMWInst>(&I))
      return exchanged(I, Update->getPointerOperand(), Update->getValOperand());
    if (auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I))
      return exchanged(I, Exchange->getPointerOperand(), Exchange->getNewValOperand());
    auto *II = cast<IntrinsicInst>(&I);
    if (II->isTerminator())
      return;
    IRBuilder<> B(II->getNextNode());
    if (auto *Copy = dyn_cast<MemTransferInst>(II))
      tell(B, Copy->getRawDest(), B.CreateZExt(Copy->getLength(), B.getInt64Ty()),
           B.CreatePtrToInt(Copy->getRawSource(), B.getInt64Ty()));
    else if (auto *Fill = dyn_cast<MemSetInst>(II); Fill && Where)
      tell(B, Fill->getRawDest(), B.CreateZExt(Fill->getLength(), B.getInt64Ty()), word(B, Other));
    else if (II->getIntrinsicID() == Intrinsic::masked_store || II->getIntrinsicID() == Intrinsic::masked_scatter)
      lanes(B, *II);
  }

  static bool reports(Instruction &I) {
    auto *S = dyn_cast<StoreInst>(&I);
    return S ? S->getPointerAddressSpace() == 0 : isa<IntrinsicInst, AtomicRMWInst, AtomicCmpXchgInst>(I);
  }

public:
  Typing(Module &M, Places *Where) : M(M), DL(M.getDataLayout()), Where(Where) {
    LLVMContext &C = M.getContext();
    Type *Pointer = PointerType::get(C, 0), *Word = Type::getInt64Ty(C);
    SmallVector<Type *, 6> Arguments = {Pointer, Word, Word};
    if (Where)
      Arguments.append(3, Pointer);
    Told = FunctionType::get(Type::getVoidTy(C), Arguments, false);
    Hook = new GlobalVariable(M, Pointer, false, GlobalValue::ExternalLinkage, nullptr, "cere_glue_store");
    Hook->setVisibility(GlobalValue::HiddenVisibility);
    Hook->setDSOLocal(true);
  }

  void run() {
    MapVector<Instruction *, GlobalVariable *> Results;
    if (Where)
      Results = Where->results();
    for (Function &F : M) {
      SmallVector<Instruction *, 64> Stores;
      for (Instruction &I : instructions(F))
        if (reports(I) && !(Where && Places::isOwn(I)))
          Stores.push_back(&I);
      if (Where && !F.isDeclaration())
        Where->enter(F);
      for (Instruction *I : Stores) {
        if (Where)
          Where->at(*I);
        report(*I);
      }
      for (auto [I, Slot] : Results)
        if (I->getFunction() == &F) {
          Where->at(*I);
          computed(*I, Slot);
        }
    }
  }
};
} // namespace

extern "C" void cere_tell_types(LLVMModuleRef M) { Typing(*unwrap(M), nullptr).run(); }

extern "C" void cere_tell_stores(LLVMModuleRef M) {
  Places Where(*unwrap(M));
  Typing(*unwrap(M), &Where).run();
}
