// Kept IR for another architecture than the one it was made for: triple and data layout change, attributes of the old
// one go, and what cannot mean the same there becomes a trap that says why.
#include "llvm-c/Core.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ModuleSymbolTable.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

// In shim.cpp.
void cere_split_function(Function &F);

namespace {
// Functions of the C library whose arguments mean another thing on another architecture.
const char *const OtherConstants[] = {
    "fesetround",     "fegetround",      "feraiseexcept", "feclearexcept",   "fetestexcept",
    "feenableexcept", "fedisableexcept", "fegetexcept",   "fegetexceptflag", "fesetexceptflag",
    "open",           "open64",          "openat",        "openat64",        "syscall"};
// And those whose structures have another size or another order.
const char *const OtherStructures[] = {"_setjmp",
                                       "setjmp",
                                       "__sigsetjmp",
                                       "longjmp",
                                       "_longjmp",
                                       "siglongjmp",
                                       "getcontext",
                                       "setcontext",
                                       "makecontext",
                                       "swapcontext",
                                       "fegetenv",
                                       "fesetenv",
                                       "feholdexcept",
                                       "feupdateenv",
                                       "pthread_mutex_init",
                                       "pthread_attr_init",
                                       "pthread_mutexattr_init",
                                       "pthread_condattr_init",
                                       "pthread_rwlockattr_init",
                                       "pthread_barrierattr_init",
                                       "stat",
                                       "stat64",
                                       "fstat",
                                       "fstat64",
                                       "lstat",
                                       "lstat64",
                                       "fstatat",
                                       "fstatat64",
                                       "__xstat",
                                       "__fxstat",
                                       "__lxstat",
                                       "epoll_ctl",
                                       "epoll_wait",
                                       "sigaction",
                                       "msgctl",
                                       "semctl",
                                       "shmctl"};

using Sink = void (*)(void *, const char *, size_t, const char *, size_t);

class Crossing {
public:
  Crossing(Module &M, const char *Triple_, const char *Layout, bool Split, const char *Trap, Sink Said, void *Context)
      : M(M), Before(M.getDataLayout()), After(Layout), Split(Split), Trap(Trap), Said(Said), Context(Context) {
    const SmallVector<std::pair<std::string, bool>> Assembled = assembled();
    M.setTargetTriple(Triple(Triple_));
    M.setDataLayout(Layout);
    // Their names stay known: what the unit's assembly defines is the captured image's.
    M.setModuleInlineAsm("");
    for (const auto &[Name, Global] : Assembled)
      M.appendModuleInlineAsm((Global ? ".globl \"" + Name + "\"\n" : "") + "\"" + Name + "\":");
  }

  void run(function_ref<bool(StringRef)> HasIR) {
    flags();
    chooseDefaults();
    for (Function &F : M) {
      if (F.isDeclaration() && !HasIR(F.getName()) && !F.isIntrinsic())
        foreignExtension(F);
      if (F.hasAddressTaken())
        for (unsigned I = 0; I < F.arg_size(); I++)
          extension([&](Attribute::AttrKind K) { F.removeParamAttr(I, K); });
    }
    for (Function &F : make_early_inc_range(M)) {
      if (F.isDeclaration())
        continue;
      if (Split && !F.getFnAttribute("target-features").getValueAsString().contains("+fma"))
        split(F);
      if (std::string Why = whole(F); !Why.empty())
        refuse(F, Why);
      else
        instructions(F, HasIR);
    }
    // Of a function that went as a whole others may have lived.
    for (Function &F : M) {
      if (Gone && !F.isDeclaration() && F.hasLocalLinkage())
        appendToCompilerUsed(M, {&F});
      attributes(F);
    }
  }

private:
  Module &M;
  const DataLayout Before, After;
  // Operations stay apart in functions whose captured processor could not contract them.
  const bool Split;
  // Assembly that ends the process.
  const char *const Trap;
  Sink Said;
  void *Context;
  DenseMap<Type *, bool> Extended, Alike;
  GlobalVariable *Word = nullptr;
  // Whether a whole function was refused.
  bool Gone = false;

  SmallVector<std::pair<std::string, bool>> assembled() {
    SmallVector<std::pair<std::string, bool>> Names;
    if (!M.getModuleInlineAsm().empty())
      ModuleSymbolTable::CollectAsmSymbols(M, [&](StringRef Name, object::BasicSymbolRef::Flags Flags) {
        if (!(Flags & object::BasicSymbolRef::SF_Undefined))
          Names.emplace_back(Name.str(), Flags & object::BasicSymbolRef::SF_Global);
      });
    return Names;
  }

  // Of the module, what only the old architecture has.
  void flags() {
    NamedMDNode *Flags = M.getModuleFlagsMetadata();
    if (!Flags)
      return;
    SmallVector<MDNode *> Kept;
    for (MDNode *Flag : Flags->operands()) {
      const auto *Name = dyn_cast_or_null<MDString>(Flag->getOperand(1));
      const StringRef Text = Name ? Name->getString() : "";
      if (!Text.starts_with("cf-protection") && Text != "Code Model" && Text != "Large Data Threshold" &&
          Text != "ibt-seal")
        Kept.push_back(Flag);
    }
    Flags->clearOperands();
    for (MDNode *Flag : Kept)
      Flags->addOperand(Flag);
  }

  // Of functions that exist for several processors, the one for all.
  void chooseDefaults() {
    for (GlobalIFunc &I : make_early_inc_range(M.ifuncs()))
      if (Function *Default = M.getFunction((I.getName() + ".default").str())) {
        I.replaceAllUsesWith(Default);
        I.eraseFromParent();
      }
  }

  static void extension(function_ref<void(Attribute::AttrKind)> Remove) {
    Remove(Attribute::SExt);
    Remove(Attribute::ZExt);
  }

  static void attributes(Function &F) {
    for (const char *Name : {"target-cpu", "target-features", "tune-cpu", "min-legal-vector-width",
                             "prefer-vector-width", "stackrealign", "no-caller-saved-registers"})
      F.removeFnAttr(Name);
    F.removeFnAttr(Attribute::NoCfCheck);
  }

  // A library of the new architecture does not extend small integers that it returns.
  static void foreignExtension(Function &F) {
    extension([&](Attribute::AttrKind K) { F.removeRetAttr(K); });
    for (User *U : F.users())
      if (auto *Call = dyn_cast<CallBase>(U); Call && Call->getCalledOperand() == &F)
        extension([&](Attribute::AttrKind K) { Call->removeRetAttr(K); });
  }

  static void split(Function &F) {
    cere_split_function(F);
    for (BasicBlock &BB : F)
      for (Instruction &I : BB)
        if (isa<FPMathOperator>(I))
          I.setHasAllowContract(false);
  }

  // Whether values of the type are the old architecture's alone.
  bool extended(Type *T) {
    if (T->isX86_FP80Ty() || T->isX86_AMXTy())
      return true;
    if (!T->getNumContainedTypes())
      return false;
    if (auto Found = Extended.find(T); Found != Extended.end())
      return Found->second;
    Extended[T] = false;
    const bool Is = any_of(T->subtypes(), [&](Type *Part) { return extended(Part); });
    return Extended[T] = Is;
  }

  // Whether data of the type lies in memory as before.
  bool alike(Type *T) {
    if (!T->isSized() || T->isScalableTy() || isa<TargetExtType>(T))
      return true;
    if (auto Found = Alike.find(T); Found != Alike.end())
      return Found->second;
    bool Is = Before.getTypeAllocSize(T) == After.getTypeAllocSize(T) &&
              Before.getABITypeAlign(T) <= After.getABITypeAlign(T);
    if (auto *S = dyn_cast<StructType>(T); Is && S) {
      const StructLayout *Old = Before.getStructLayout(S), *New = After.getStructLayout(S);
      for (unsigned I = 0; Is && I < S->getNumElements(); I++)
        Is = Old->getElementOffset(I) == New->getElementOffset(I) && alike(S->getElementType(I));
    } else if (auto *A = dyn_cast<ArrayType>(T); Is && A) {
      Is = alike(A->getElementType());
    }
    return Alike[T] = Is;
  }

  std::string named(Type *T) {
    if (auto *S = dyn_cast<StructType>(T); S && S->hasName())
      return S->getName().str();
    std::string Text;
    raw_string_ostream(Text) << *T;
    return Text;
  }

  // Why no code of the function can be made; empty if it can.
  std::string whole(Function &F) {
    switch (F.getCallingConv()) {
    case CallingConv::C:
    case CallingConv::Fast:
    case CallingConv::Cold:
    case CallingConv::PreserveMost:
    case CallingConv::PreserveAll:
      break;
    default:
      return "it is called as only functions of the captured architecture are";
    }
    if (extended(F.getFunctionType()))
      return "it uses long double, which has 80 bits on the captured architecture alone";
    for (BasicBlock &BB : F)
      for (Instruction &I : BB) {
        SmallVector<Type *, 8> Types = {I.getType()};
        for (Use &U : I.operands())
          Types.push_back(U->getType());
        Type *Memory = nullptr;
        if (auto *A = dyn_cast<AllocaInst>(&I))
          Memory = A->getAllocatedType();
        else if (auto *G = dyn_cast<GetElementPtrInst>(&I))
          Memory = G->getSourceElementType();
        if (Memory && Memory->isStructTy() && cast<StructType>(Memory)->hasName() &&
            cast<StructType>(Memory)->getName().starts_with("struct.__va_list_tag"))
          return "it takes arguments out of a list (va_list), which lies in memory otherwise there";
        if (Memory)
          Types.push_back(Memory);
        for (Type *T : Types)
          if (extended(T) && !(Memory && !isa<AllocaInst>(I)))
            return "it uses long double, which has 80 bits on the captured architecture alone";
        if (Memory && !alike(Memory))
          return "data of type " + named(Memory) + " lies in memory otherwise there";
      }
    return "";
  }

  // What is written before a trap: the reason.
  void say(IRBuilder<> &B, const Function &F, const Twine &Why) {
    if (!Word) {
      Word = M.getGlobalVariable("cere_glue_refusal");
      if (!Word)
        Word = new GlobalVariable(M, B.getPtrTy(), false, GlobalValue::ExternalLinkage, nullptr, "cere_glue_refusal");
      Word->setDSOLocal(true);
    }
    const std::string Text = (F.getName() + "\n" + Why).str();
    auto *Constant = ConstantDataArray::getString(M.getContext(), Text);
    auto *Place = new GlobalVariable(M, Constant->getType(), true, GlobalValue::PrivateLinkage, Constant, "cere.why");
    Place->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    B.CreateStore(Place, Word, /*isVolatile=*/true);
    // No intrinsic: code behind one that never returns is dropped.
    auto *Nothing = FunctionType::get(B.getVoidTy(), false);
    B.CreateCall(Nothing, InlineAsm::get(Nothing, Trap, "~{memory}", /*hasSideEffects=*/true));
  }

  // A value that the optimiser knows nothing of.
  Value *unknown(IRBuilder<> &B, Type *T) {
    if (!T->isSized())
      return PoisonValue::get(T);
    return B.CreateLoad(T, Word, /*isVolatile=*/true);
  }

  void refuse(Function &F, const std::string &Why) {
    Gone = true;
    Said(Context, F.getName().data(), F.getName().size(), Why.data(), Why.size());
    const auto Linkage = F.getLinkage();
    const auto Visibility = F.getVisibility();
    Comdat *Group = F.getComdat();
    F.deleteBody();
    F.setLinkage(Linkage);
    F.setVisibility(Visibility);
    F.setComdat(Group);
    F.setCallingConv(CallingConv::C);
    F.clearMetadata();
    F.setPersonalityFn(nullptr);
    F.removeFnAttr(Attribute::AlwaysInline);
    F.removeFnAttr(Attribute::NoReturn);
    F.removeFnAttr(Attribute::Memory);
    F.addFnAttr(Attribute::NoInline);
    for (User *U : F.users())
      if (auto *Call = dyn_cast<CallBase>(U); Call && Call->getCalledOperand() == &F)
        Call->setCallingConv(CallingConv::C);
    // The signature may have values that there are none of: nobody passes or returns any.
    if (extended(F.getFunctionType())) {
      auto *Plain = Function::Create(FunctionType::get(Type::getVoidTy(M.getContext()), false), Linkage,
                                     F.getAddressSpace(), "", &M);
      Plain->takeName(&F);
      Plain->setVisibility(Visibility);
      Plain->setDSOLocal(F.isDSOLocal());
      IRBuilder<> B(BasicBlock::Create(M.getContext(), "", Plain));
      say(B, *Plain, Why);
      B.CreateRetVoid();
      F.replaceAllUsesWith(Plain);
      F.eraseFromParent();
      return;
    }
    IRBuilder<> B(BasicBlock::Create(M.getContext(), "", &F));
    say(B, F, Why);
    // As if it went on: callers keep what follows.
    if (F.getReturnType()->isVoidTy())
      B.CreateRetVoid();
    else
      B.CreateRet(unknown(B, F.getReturnType()));
  }

  // Whether assembly needs no instruction: it only orders what the compiler does. Then it holds nothing of the old
  // architecture.
  static bool empty(CallBase &Call) {
    auto *Code = cast<InlineAsm>(Call.getCalledOperand());
    if (!StringRef(Code->getAsmString()).trim().empty())
      return false;
    std::string Constraints;
    for (StringRef Part : llvm::split(Code->getConstraintString(), ","))
      if (Part != "~{dirflag}" && Part != "~{fpsr}" && Part != "~{flags}") {
        // Registers and immediate operands of the old architecture by their letters.
        if (Part.starts_with("~{") ? Part != "~{memory}"
                                   : Part.find_first_not_of("=+&*rmgi0123456789") != StringRef::npos)
          return false;
        Constraints += (Constraints.empty() ? "" : ",") + Part.str();
      }
    Call.setCalledOperand(InlineAsm::get(Code->getFunctionType(), "", Constraints, Code->hasSideEffects()));
    return true;
  }

  // Puts what means the same in the place of a call; whether it did.
  static bool translate(CallBase &Call) {
    IRBuilder<> B(&Call);
    StringRef Name, Text;
    if (const Function *F = Call.getCalledFunction())
      Name = F->getName();
    if (auto *Code = dyn_cast<InlineAsm>(Call.getCalledOperand()))
      Text = StringRef(Code->getAsmString()).trim();
    const auto Is = [&](std::initializer_list<const char *> Names) {
      return any_of(Names, [&](const char *N) { return Name == N || (!Text.empty() && Text == N); });
    };
    if (!Call.use_empty())
      return false;
    if (Is({"llvm.x86.sse2.mfence", "llvm.x86.sse2.lfence", "llvm.x86.sse.sfence", "mfence", "lfence", "sfence"}))
      B.CreateFence(AtomicOrdering::SequentiallyConsistent);
    else if (!Is({"llvm.x86.sse2.pause", "pause", "rep nop", "rep; nop", "nop"}))
      return false;
    Call.eraseFromParent();
    return true;
  }

  // Why the call cannot be made there; empty if it can.
  std::string unable(CallBase &Call, function_ref<bool(StringRef)> HasIR) {
    if (Call.isInlineAsm()) {
      if (empty(Call))
        return "";
      StringRef Text = StringRef(cast<InlineAsm>(Call.getCalledOperand())->getAsmString()).trim();
      return ("it has inline assembly of the captured architecture: " + Text.take_front(60)).str();
    }
    const Function *F = Call.getCalledFunction();
    if (!F)
      return "";
    const StringRef Name = F->getName();
    if (Name.starts_with("llvm.x86."))
      return ("it uses an instruction of the captured architecture (" + Name + ")").str();
    if (F->isIntrinsic()) {
      switch (F->getIntrinsicID()) {
      case Intrinsic::readcyclecounter:
      case Intrinsic::readsteadycounter:
        return "it reads the processor's counter";
      case Intrinsic::vastart:
      case Intrinsic::vacopy:
        return "it takes arguments out of a list (va_list), which lies in memory otherwise there";
      case Intrinsic::eh_sjlj_setjmp:
      case Intrinsic::eh_sjlj_longjmp:
      case Intrinsic::read_register:
      case Intrinsic::write_register:
        return "it names registers of the captured architecture";
      default:
        return "";
      }
    }
    if (!F->isDeclaration() || HasIR(Name))
      return "";
    if (is_contained(OtherConstants, Name))
      return ("it calls " + Name + ", whose arguments are other numbers there").str();
    if (is_contained(OtherStructures, Name))
      return ("it calls " + Name + ", whose structures lie in memory otherwise there").str();
    return passed(Call, Name);
  }

  // Why a function of a library cannot be called as before; empty if it can.
  std::string passed(CallBase &Call, StringRef Name) {
    const auto Packed = [](Type *T) { return T->isVectorTy() && T->getPrimitiveSizeInBits() < 128; };
    const auto Mixed = [&](Type *T) {
      auto *S = dyn_cast<StructType>(T);
      if (!S)
        return Packed(T);
      const auto Floating = [](Type *E) { return E->isFPOrFPVectorTy(); };
      return any_of(S->elements(), Packed) || (any_of(S->elements(), Floating) && !all_of(S->elements(), Floating));
    };
    bool Other = Mixed(Call.getType());
    for (unsigned I = 0; I < Call.arg_size(); I++)
      Other |= Mixed(Call.getArgOperand(I)->getType()) || Call.isByValArgument(I);
    return Other ? ("it calls " + Name + ", which takes or returns structures in other registers there").str() : "";
  }

  void instructions(Function &F, function_ref<bool(StringRef)> HasIR) {
    for (BasicBlock &BB : F)
      for (Instruction &I : make_early_inc_range(BB)) {
        std::string Why;
        if (isa<VAArgInst>(I))
          Why = "it takes arguments out of a list (va_list), which lies in memory otherwise there";
        else if (auto *Call = dyn_cast<CallBase>(&I)) {
          if (translate(*Call))
            continue;
          Why = unable(*Call, HasIR);
        }
        if (Why.empty())
          continue;
        IRBuilder<> B(&I);
        say(B, F, Why);
        if (I.isTerminator()) {
          changeToUnreachable(&I);
          break;
        }
        // What follows stays: what the optimiser makes of variables follows from all that the unit does.
        if (!I.getType()->isVoidTy())
          I.replaceAllUsesWith(unknown(B, I.getType()));
        I.eraseFromParent();
      }
  }
};
} // namespace

extern "C" void cere_cross_module(LLVMModuleRef M, const char *Triple, const char *Layout, bool Split, const char *Trap,
                                  const char *const *Names, size_t Count, Sink Said, void *Context) {
  StringSet<> HasIR;
  for (size_t I = 0; I < Count; I++)
    HasIR.insert(Names[I]);
  Crossing(*unwrap(M), Triple, Layout, Split, Trap, Said, Context).run([&](StringRef Name) {
    return HasIR.contains(Name);
  });
}
