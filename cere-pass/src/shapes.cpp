// Follows the bytes of local variables through a pipeline: each variable carries their description as debug
// information, which LLVM keeps true wherever it splits a variable or makes one bit of it. C++ because the C API cannot
// read expressions of debug information.
#include "llvm-c/Core.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {
// Begins the names of described bytes: `<Mark><offset>.<variable>`.
constexpr StringLiteral Mark = "cere.bytes.";
// Descriptions of a variable, at most; one of more elements is described as a whole, of which no part can be split
// twice.
constexpr size_t Most = 1024;

using Range = std::pair<uint64_t, uint64_t>;

// Offsets and sizes of the scalars that T consists of, or of less than all of them once there are too many.
void scalars(Type *T, const DataLayout &DL, uint64_t At, SmallVectorImpl<Range> &Found) {
  if (Found.size() > Most)
    return;
  if (auto *S = dyn_cast<StructType>(T)) {
    const StructLayout *Layout = DL.getStructLayout(S);
    for (unsigned I = 0; I < S->getNumElements(); ++I)
      scalars(S->getElementType(I), DL, At + Layout->getElementOffset(I), Found);
  } else if (auto *A = dyn_cast<ArrayType>(T)) {
    const uint64_t Size = DL.getTypeAllocSize(A->getElementType());
    for (uint64_t I = 0; I < A->getNumElements() && Found.size() <= Most; ++I)
      scalars(A->getElementType(), DL, At + I * Size, Found);
  } else {
    Found.push_back({At, DL.getTypeStoreSize(T)});
  }
}

bool isMark(const DIGlobalVariableExpression *E) { return E->getVariable()->getName().starts_with(Mark); }

// As `Piece` in src/shapes.rs.
struct Piece {
  uint64_t Offset, Size, At, Form, First, Other;
};
enum Form { Direct, OneOfTwo, Unknown };

Piece read(const DIGlobalVariableExpression *E, uint64_t Offset, uint64_t Room) {
  Piece P = {Offset, *E->getVariable()->getSizeInBits() / 8, 0, Direct, 0, 0};
  ArrayRef<uint64_t> Ops = E->getExpression()->getElements();
  if (auto Fragment = E->getExpression()->getFragmentInfo()) {
    P.Offset += Fragment->OffsetInBits / 8;
    P.Size = Fragment->SizeInBits / 8;
    Ops = Ops.drop_back(3);
  }
  using namespace dwarf;
  if (Ops.size() == 2 && Ops[0] == DW_OP_plus_uconst) {
    P.At = Ops[1];
  } else if (Ops.size() == 9 && Ops[0] == DW_OP_deref_size && Ops[2] == DW_OP_constu && Ops[4] == DW_OP_mul &&
             Ops[5] == DW_OP_constu && Ops[7] == DW_OP_plus && Ops[8] == DW_OP_stack_value) {
    P.Form = OneOfTwo;
    P.First = Ops[6];
    P.Other = Ops[6] + Ops[3];
  } else if (!Ops.empty()) {
    P.Form = Unknown;
  }
  if (P.Form == Direct && P.At + P.Size > Room)
    P.Form = Unknown;
  return P;
}
} // namespace

extern "C" {

// Describes the bytes of the module's local variables.
void cere_mark_bytes(LLVMModuleRef Module_) {
  Module &M = *unwrap(Module_);
  LLVMContext &C = M.getContext();
  const DataLayout &DL = M.getDataLayout();
  for (GlobalVariable &G : M.globals()) {
    if (G.isDeclaration() || !G.hasLocalLinkage() || G.isConstant() || G.getName().starts_with("llvm.") ||
        G.getName().starts_with("cere."))
      continue;
    SmallVector<Range, 8> All;
    scalars(G.getValueType(), DL, 0, All);
    if (All.size() > Most)
      All = {{0, DL.getTypeStoreSize(G.getValueType())}};
    for (auto [Offset, Size] : All) {
      auto *Bytes =
          DIBasicType::get(C, dwarf::DW_TAG_base_type, "", Size * 8, 0, dwarf::DW_ATE_unsigned, DINode::FlagZero);
      const std::string Name = (Twine(Mark) + Twine(Offset) + "." + G.getName()).str();
      auto *V =
          DIGlobalVariable::get(C, nullptr, Name, "", nullptr, 0, Bytes, true, true, nullptr, nullptr, 0, nullptr);
      auto *E =
          DIExpression::get(C, Offset ? ArrayRef<uint64_t>({dwarf::DW_OP_plus_uconst, Offset}) : ArrayRef<uint64_t>());
      G.addDebugInfo(DIGlobalVariableExpression::get(C, V, E));
    }
  }
}

// Tells of which variables' bytes, as they were when they were described, a variable consists now.
void cere_marked_bytes(LLVMValueRef Variable, void (*Sink)(void *, const char *, size_t, const Piece *),
                       void *Context) {
  auto &G = *unwrap<GlobalVariable>(Variable);
  const uint64_t Room = G.getDataLayout().getTypeAllocSize(G.getValueType());
  SmallVector<DIGlobalVariableExpression *, 8> All;
  G.getDebugInfo(All);
  for (const auto *E : All) {
    if (!isMark(E))
      continue;
    auto [Number, Name] = E->getVariable()->getName().drop_front(Mark.size()).split('.');
    uint64_t Offset = 0;
    if (Number.getAsInteger(10, Offset))
      continue;
    const Piece P = read(E, Offset, Room);
    Sink(Context, Name.data(), Name.size(), &P);
  }
}

// Takes the descriptions off again: what the user asked for stays.
void cere_unmark_bytes(LLVMModuleRef Module_) {
  for (GlobalVariable &G : unwrap(Module_)->globals()) {
    SmallVector<DIGlobalVariableExpression *, 8> All;
    G.getDebugInfo(All);
    if (none_of(All, isMark))
      continue;
    G.eraseMetadata(LLVMContext::MD_dbg);
    for (auto *E : All)
      if (!isMark(E))
        G.addDebugInfo(E);
  }
}
}
