// What the C API of LLVM lacks, and nothing else. Every function is called from Rust (src/shim.rs).
#include "llvm-c/Core.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Object/ModuleSymbolTable.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/GlobalStatus.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include <functional>

using namespace llvm;

extern "C" void cere_pipeline_start(LLVMModuleRef M, bool Optimize);
extern "C" void cere_retarget(LLVMModuleRef M);
extern "C" void cere_bind(LLVMModuleRef M);
extern "C" void cere_cross(LLVMModuleRef M);
// In ablate.cpp.
void cere_register_parallel(PassBuilder &PB);
// In labels.cpp.
extern "C" void cere_reach_labels(Module &M, SmallPtrSetImpl<const Value *> &Seen, const char *Prefix);

namespace {
struct StartPass : PassInfoMixin<StartPass> {
  bool Optimize;
  explicit StartPass(bool Optimize) : Optimize(Optimize) {}
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    cere_pipeline_start(wrap(&M), Optimize);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

struct RetargetPass : PassInfoMixin<RetargetPass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    cere_retarget(wrap(&M));
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

struct CrossPass : PassInfoMixin<CrossPass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    cere_cross(wrap(&M));
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

struct BindPass : PassInfoMixin<BindPass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    cere_bind(wrap(&M));
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

char *copy(const std::string &S) { return strdup(S.c_str()); }

// The functions, variables and other constants that the functions `Roots` lead to.
SmallPtrSet<const Value *, 32> reached(LLVMValueRef *Roots, size_t Count) {
  SmallPtrSet<const Value *, 32> Seen;
  SmallVector<const Value *, 64> Waiting;
  auto Reach = [&](const Value *V) {
    if (isa<Constant>(V) && Seen.insert(V).second)
      Waiting.push_back(V);
  };
  for (size_t I = 0; I < Count; I++)
    Reach(unwrap(Roots[I]));
  while (!Waiting.empty()) {
    const auto *C = cast<Constant>(Waiting.pop_back_val());
    for (const Use &U : C->operands())
      Reach(U.get());
    if (const auto *F = dyn_cast<Function>(C))
      for (const BasicBlock &BB : *F)
        for (const Instruction &I : BB)
          for (const Use &U : I.operands())
            Reach(U.get());
    if (const auto *B = dyn_cast<BlockAddress>(C))
      Reach(B->getFunction());
  }
  return Seen;
}
} // namespace

// A multiplication and an addition that may be contracted become two instructions.
void cere_split_function(Function &F) {
  for (BasicBlock &BB : F)
    for (Instruction &I : make_early_inc_range(BB)) {
      auto *Both = dyn_cast<IntrinsicInst>(&I);
      if (!Both || Both->getIntrinsicID() != Intrinsic::fmuladd)
        continue;
      IRBuilder<> B(Both);
      B.setFastMathFlags(Both->getFastMathFlags());
      Value *Product = B.CreateFMul(Both->getArgOperand(0), Both->getArgOperand(1));
      Both->replaceAllUsesWith(B.CreateFAdd(Product, Both->getArgOperand(2)));
      Both->eraseFromParent();
    }
}

extern "C" {

void cere_register(PassBuilder &PB) {
  cere_register_parallel(PB);
  PB.registerPipelineStartEPCallback(
      [](ModulePassManager &MPM, OptimizationLevel Level) { MPM.addPass(StartPass(Level != OptimizationLevel::O0)); });
  PB.registerPipelineParsingCallback(
      [](StringRef Name, ModulePassManager &MPM, ArrayRef<PassBuilder::PipelineElement>) {
        if (Name == "cere-retarget")
          MPM.addPass(RetargetPass());
        else if (Name == "cere-cross")
          MPM.addPass(CrossPass());
        else if (Name == "cere-bind")
          MPM.addPass(BindPass());
        else
          return false;
        return true;
      });
}

LLVMBasicBlockRef cere_split_before(LLVMValueRef Instruction_) {
  auto *I = unwrap<Instruction>(Instruction_);
  return wrap(SplitBlock(I->getParent(), I->getIterator()));
}

// A message if the verifier rejects the function.
char *cere_verify(LLVMValueRef Fn) {
  std::string Text;
  raw_string_ostream OS(Text);
  return verifyFunction(*unwrap<Function>(Fn), &OS) ? copy(Text) : nullptr;
}

// A message if the verifier rejects the module. Faulty debug information is dropped by the compiler, not an error.
char *cere_verify_module(LLVMModuleRef M) {
  std::string Text;
  raw_string_ostream OS(Text);
  bool BrokenDebugInfo = false;
  return verifyModule(*unwrap(M), &OS, &BrokenDebugInfo) ? copy(Text) : nullptr;
}

// Removes the files that the compiler is writing, as if a signal had ended it.
void cere_remove_files() { sys::RunInterruptHandlers(); }

void cere_append_used(LLVMModuleRef M, LLVMValueRef Global) { appendToUsed(*unwrap(M), {unwrap<GlobalValue>(Global)}); }

void cere_append_compiler_used(LLVMModuleRef M, LLVMValueRef Global) {
  appendToCompilerUsed(*unwrap(M), {unwrap<GlobalValue>(Global)});
}

// Whether `Roots` reach any of `Values`.
bool cere_reach_any(LLVMValueRef *Roots, size_t Count, LLVMValueRef *Values, size_t Number) {
  const auto Seen = reached(Roots, Count);
  return any_of(ArrayRef(Values, Number), [&](LLVMValueRef V) { return Seen.contains(unwrap(V)); });
}

// Turns a function's definition into a declaration of one elsewhere.
void cere_drop_body(LLVMValueRef Fn) {
  auto &F = *unwrap<Function>(Fn);
  F.deleteBody();
  F.setComdat(nullptr);
  F.clearMetadata();
}

// Leaves the definitions that `Roots` reach, with the tables of their labels, and declarations of all others.
void cere_keep_reached(LLVMModuleRef Module_, LLVMValueRef *Roots, size_t Count, const char *LabelsPrefix) {
  Module &M = *unwrap(Module_);
  auto Seen = reached(Roots, Count);
  cere_reach_labels(M, Seen, LabelsPrefix);
  for (GlobalVariable &G : make_early_inc_range(M.globals()))
    if (!G.isDeclaration() && !Seen.contains(&G) && !G.getName().starts_with("llvm.")) {
      G.setInitializer(nullptr);
      G.setComdat(nullptr);
      G.clearMetadata();
      G.setLinkage(GlobalValue::ExternalLinkage);
    }
  // What stands for another symbol needs its definition: it goes with it. Only what goes as well uses it.
  const auto Erase = [&](auto &&Symbols) {
    for (GlobalValue &S : make_early_inc_range(Symbols))
      if (!Seen.contains(&S)) {
        S.replaceAllUsesWith(PoisonValue::get(S.getType()));
        S.eraseFromParent();
      }
  };
  Erase(M.aliases());
  Erase(M.ifuncs());
  for (Function &F : M)
    if (!F.isDeclaration() && !Seen.contains(&F))
      cere_drop_body(wrap(&F));
  // A section cannot be ordered after that of a symbol which is elsewhere.
  for (GlobalObject &O : M.global_objects())
    if (const MDNode *Beside = O.getMetadata(LLVMContext::MD_associated))
      if (const auto *Of = mdconst::extract_or_null<GlobalValue>(Beside->getOperand(0)); !Of || Of->isDeclaration())
        O.eraseMetadata(LLVMContext::MD_associated);
}

// Whether a variable's initialiser holds addresses of labels, which only the copy of the function beside it has.
bool cere_holds_labels(LLVMValueRef Variable) {
  SmallPtrSet<const Constant *, 16> Seen;
  std::function<bool(const Constant *)> Holds = [&](const Constant *C) {
    if (isa<BlockAddress>(C))
      return true;
    if (isa<GlobalValue>(C) || !Seen.insert(C).second)
      return false;
    return any_of(C->operands(), [&](const Use &U) { return Holds(cast<Constant>(U)); });
  };
  return Holds(unwrap<GlobalVariable>(Variable)->getInitializer());
}

// Whether the function is known as a value to the OpenMP runtime alone: nobody compares its address.
bool cere_is_for_runtime(LLVMValueRef Fn) {
  auto *F = unwrap<Function>(Fn);
  bool Given = false;
  for (const Use &U : F->uses()) {
    auto *Call = dyn_cast<CallBase>(U.getUser());
    if (!Call)
      return false;
    if (Call->isCallee(&U))
      continue;
    const Function *To = Call->getCalledFunction();
    if (!To || !To->getName().starts_with("__kmpc_"))
      return false;
    Given = true;
  }
  return Given && F->hasLocalLinkage();
}

// Lets a variable keep its shape and alignment through the pipeline: what is in llvm.compiler.used is neither split,
// shrunk nor removed, and what has a section and an alignment of its own is not aligned further.
void cere_pin(LLVMValueRef Variable) {
  auto &G = *unwrap<GlobalVariable>(Variable);
  if (G.hasLocalLinkage() && !G.isConstant())
    appendToCompilerUsed(*G.getParent(), {&G});
  if (!G.isStrongDefinitionForLinker())
    return;
  if (!G.getAlign())
    G.setAlignment(G.getDataLayout().getPreferredAlign(&G));
  if (!G.hasSection())
    G.setSection(".cere.pinned");
}

// Whether the variable always has its initial value.
bool cere_unwritten(LLVMValueRef Variable) {
  auto &G = *unwrap<GlobalVariable>(Variable);
  GlobalStatus Status;
  return G.isConstant() || (G.hasLocalLinkage() && !GlobalStatus::analyzeGlobal(&G, Status) &&
                            Status.StoredType == GlobalStatus::NotStored);
}

// Whether a constant is only read: nobody can tell a copy of it.
bool cere_only_read(LLVMValueRef Variable) {
  auto &G = *unwrap<GlobalVariable>(Variable);
  SmallVector<const Value *, 8> Waiting = {&G};
  while (!Waiting.empty()) {
    const Value *V = Waiting.pop_back_val();
    for (const Use &U : V->uses()) {
      const User *By = U.getUser();
      if (isa<GEPOperator>(By) || isa<BitCastOperator>(By))
        Waiting.push_back(By);
      else if (const auto *Copy = dyn_cast<MemTransferInst>(By);
               Copy ? &U != &Copy->getRawSourceUse() : !isa<LoadInst>(By))
        return false;
    }
  }
  return G.isConstant() && G.hasLocalLinkage();
}

// The module as bitcode, use-list order kept.
void cere_bitcode(LLVMModuleRef M, void (*Sink)(void *, const char *, size_t), void *Context) {
  SmallString<0> Buffer;
  raw_svector_ostream OS(Buffer);
  WriteBitcodeToFile(*unwrap(M), OS, true);
  Sink(Context, Buffer.data(), Buffer.size());
}

// Name of a function with its scopes, no parameters; null if the symbol is not mangled.
char *cere_demangle(const char *Symbol) {
  ItaniumPartialDemangler D;
  if (D.partialDemangle(Symbol) || !D.isFunction())
    return nullptr;
  size_t N = 0;
  return D.getFunctionName(nullptr, &N);
}

// The scopes and the name of a DISubprogram, e.g. Fortran's module::procedure.
char *cere_scoped_name(LLVMMetadataRef Subprogram) {
  auto *SP = cast<DISubprogram>(unwrap(Subprogram));
  std::string Name = SP->getName().str();
  for (DIScope *S = SP->getScope(); S; S = S->getScope())
    if (!isa<DIFile>(S) && !isa<DICompileUnit>(S) && !S->getName().empty())
      Name = S->getName().str() + "::" + Name;
  return copy(Name);
}

// Where a place in library code stands in the user's: the location that it was inlined at, or the call, if that is the
// only one, and so on outwards. The function there; null if there is none.
LLVMValueRef cere_user_place(LLVMValueRef Function, LLVMMetadataRef *Location,
                             bool (*IsLibrary)(const void *, const char *, size_t), const void *Facts) {
  auto Library = [&](const DILocation *L) {
    SmallString<128> Path(L->getFilename());
    sys::path::make_absolute(L->getDirectory(), Path);
    return IsLibrary(Facts, Path.data(), Path.size());
  };
  auto *F = unwrap<llvm::Function>(Function);
  auto *L = cast_or_null<DILocation>(unwrap(*Location));
  // Libraries are deep, and functions may call one another in circles.
  for (unsigned Depth = 0; L && Depth < 32; ++Depth) {
    for (const DILocation *I = L; I; I = I->getInlinedAt())
      if (!Library(I)) {
        *Location = wrap(I);
        return wrap(F);
      }
    if (!F->hasOneUse())
      return nullptr;
    auto *Call = dyn_cast<CallBase>(F->user_back());
    if (!Call || Call->getCalledFunction() != F)
      return nullptr;
    F = Call->getFunction();
    L = Call->getDebugLoc();
  }
  return nullptr;
}

// The symbol of the function that a place is in, before anything was inlined; null if the debug information has none.
char *cere_linkage_name(LLVMMetadataRef Location) {
  auto *L = cast_or_null<DILocation>(unwrap(Location));
  DISubprogram *SP = L ? L->getScope()->getSubprogram() : nullptr;
  return SP && !SP->getLinkageName().empty() ? copy(SP->getLinkageName().str()) : nullptr;
}

// The files of the compile units, a line each.
char *cere_compiled(LLVMModuleRef M) {
  std::string Lines;
  for (DICompileUnit *Unit : unwrap(M)->debug_compile_units()) {
    SmallString<128> Path(Unit->getFilename());
    sys::path::make_absolute(Unit->getDirectory(), Path);
    Lines += Path.str().str() + "\n";
  }
  return copy(Lines);
}

void cere_split_contractions(LLVMModuleRef M) {
  for (Function &F : *unwrap(M))
    cere_split_function(F);
}

void cere_forget_errno(LLVMModuleRef M) {
  static const char *const Names[] = {"acos", "acosh", "asin", "asinh", "atan",  "atan2", "atanh", "cbrt",
                                      "cos",  "cosh",  "erf",  "erfc",  "exp",   "exp10", "exp2",  "expm1",
                                      "fmod", "hypot", "log",  "log10", "log1p", "log2",  "pow",   "remainder",
                                      "sin",  "sinh",  "sqrt", "tan",   "tanh",  "tgamma"};
  for (Function &F : *unwrap(M)) {
    StringRef Name = F.getName();
    if (!F.isDeclaration() || !F.getReturnType()->isFloatingPointTy())
      continue;
    bool Known = is_contained(Names, Name) ||
                 ((Name.ends_with("f") || Name.ends_with("l")) && is_contained(Names, Name.drop_back()));
    if (!Known)
      continue;
    F.setDoesNotAccessMemory();
    F.setDoesNotThrow();
    F.setWillReturn();
  }
}

void cere_set_dso_local(LLVMValueRef G) { unwrap<GlobalValue>(G)->setDSOLocal(true); }

void cere_copy_dso_local(LLVMValueRef From, LLVMValueRef To) {
  unwrap<GlobalValue>(To)->setDSOLocal(unwrap<GlobalValue>(From)->isDSOLocal());
}

// Lets every call of an ifunc ask the resolver: in a replay the loader would run that before the captured memory is
// there.
void cere_resolve_at_calls(LLVMModuleRef Module_) {
  Module &M = *unwrap(Module_);
  for (GlobalIFunc &I : make_early_inc_range(M.ifuncs())) {
    auto *Type = cast<FunctionType>(I.getValueType());
    auto *F = Function::Create(Type, I.getLinkage(), I.getAddressSpace(), "", &M);
    F->setVisibility(I.getVisibility());
    F->setDSOLocal(I.isDSOLocal());
    F->takeName(&I);
    IRBuilder<> B(BasicBlock::Create(M.getContext(), "", F));
    Value *Chosen = B.CreateCall(FunctionType::get(B.getPtrTy(), false), I.getResolver());
    SmallVector<Value *, 8> Arguments;
    for (Argument &A : F->args())
      Arguments.push_back(&A);
    CallInst *Call = B.CreateCall(Type, Chosen, Arguments);
    Call->setTailCallKind(CallInst::TCK_MustTail);
    if (Type->getReturnType()->isVoidTy())
      B.CreateRetVoid();
    else
      B.CreateRet(Call);
    I.replaceAllUsesWith(F);
    I.eraseFromParent();
  }
}

// Turns an ifunc into a reference to the one of this name elsewhere.
void cere_declare_ifunc(LLVMModuleRef M, LLVMValueRef IFunc, const char *Name) {
  auto *I = unwrap<GlobalIFunc>(IFunc);
  auto *F = Function::Create(cast<FunctionType>(I->getValueType()), GlobalValue::ExternalLinkage, I->getAddressSpace(),
                             "", unwrap(M));
  F->setVisibility(I->hasLocalLinkage() ? GlobalValue::HiddenVisibility : I->getVisibility());
  F->setDSOLocal(I->isDSOLocal());
  I->replaceAllUsesWith(F);
  I->eraseFromParent();
  F->setName(Name);
}

// The symbols that the module's own assembly defines.
void cere_assembly_symbols(LLVMModuleRef M, void (*Sink)(void *, const char *, size_t, bool), void *Context) {
  ModuleSymbolTable::CollectAsmSymbols(*unwrap(M), [&](StringRef Name, object::BasicSymbolRef::Flags Flags) {
    if (!(Flags & object::BasicSymbolRef::SF_Undefined))
      Sink(Context, Name.data(), Name.size(), Flags & object::BasicSymbolRef::SF_Global);
  });
}

// An alias needs a definition behind it: where there is none any more its users take the thing itself.
void cere_resolve_aliases(LLVMModuleRef M) {
  for (GlobalAlias &A : make_early_inc_range(unwrap(M)->aliases())) {
    const GlobalObject *Object = A.getAliaseeObject();
    if (!Object || !Object->isDeclarationForLinker())
      continue;
    A.replaceAllUsesWith(A.getAliasee());
    A.eraseFromParent();
  }
}

// Replaces every use of a function (or an alias of one) as a value by another constant; calls, personalities, aliases
// and the lists of used symbols keep it.
void cere_replace_values(LLVMValueRef Fn, LLVMValueRef By) {
  auto *F = unwrap<GlobalValue>(Fn);
  auto *To = unwrap<Constant>(By);
  std::function<bool(const Constant *)> Kept = [&](const Constant *C) {
    if (isa<BlockAddress>(C) || isa<DSOLocalEquivalent>(C) || isa<NoCFIValue>(C) || isa<GlobalAlias>(C) ||
        isa<GlobalIFunc>(C))
      return true;
    if (const auto *G = dyn_cast<GlobalVariable>(C))
      return G->getName().starts_with("llvm.");
    if (isa<GlobalValue>(C))
      return false;
    return any_of(C->users(), [&](const User *U) { return isa<Constant>(U) && Kept(cast<Constant>(U)); });
  };
  SmallVector<Use *, 16> Direct;
  SetVector<Constant *> Constants;
  for (Use &U : F->uses()) {
    if (auto *Call = dyn_cast<CallBase>(U.getUser()); Call && Call->isCallee(&U))
      continue;
    if (auto *C = dyn_cast<Constant>(U.getUser()); C && !isa<GlobalVariable>(C)) {
      if (!isa<Function>(C) && !Kept(C))
        Constants.insert(C);
      continue;
    }
    if (auto *G = dyn_cast<GlobalVariable>(U.getUser()); G && Kept(G))
      continue;
    Direct.push_back(&U);
  }
  for (Use *U : Direct)
    U->set(To);
  for (Constant *C : Constants)
    C->handleOperandChange(F, To);
}
}
