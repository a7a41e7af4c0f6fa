// Loops inside loops that may communicate. What a loop writes, reads or waits for outside the program forbids its
// capture, and would take the loops inside along. C++ because LoopInfo and ScalarEvolution have no C API.
#include "extract.h"
#include "llvm-c/Core.h"
#include "llvm/ADT/SparseBitVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {
// Sets of families of functions that may communicate: all input and output, all of MPI, calls by a pointer, and each
// function of another unit by itself.
using Families = SparseBitVector<>;
enum : unsigned { InputOutput, Messages, Pointers, FirstName };

// Library functions that LLVM knows and that do more than compute and change memory.
constexpr StringLiteral Outward[] = {"access",         "chmod",
                                     "chown",          "closedir",
                                     "ctermid",        "fclose",
                                     "fdopen",         "feof",
                                     "ferror",         "fflush",
                                     "fgetc",          "fgetpos",
                                     "fgets",          "fileno",
                                     "flockfile",      "fopen",
                                     "fopen64",        "fprintf",
                                     "fputc",          "fputs",
                                     "fread",          "fscanf",
                                     "fseek",          "fseeko",
                                     "fseeko64",       "fsetpos",
                                     "fstat",          "fstat64",
                                     "fstatvfs",       "fstatvfs64",
                                     "ftell",          "ftello",
                                     "ftello64",       "ftrylockfile",
                                     "funlockfile",    "fwrite",
                                     "getc",           "getchar",
                                     "getc_unlocked",  "getchar_unlocked",
                                     "gets",           "lchown",
                                     "lstat",          "lstat64",
                                     "mkdir",          "open",
                                     "open64",         "opendir",
                                     "pclose",         "perror",
                                     "popen",          "pread",
                                     "printf",         "putc",
                                     "putchar",        "puts",
                                     "putc_unlocked",  "putchar_unlocked",
                                     "fgetc_unlocked", "fgets_unlocked",
                                     "fputc_unlocked", "fputs_unlocked",
                                     "fread_unlocked", "fwrite_unlocked",
                                     "pwrite",         "read",
                                     "readlink",       "realpath",
                                     "remove",         "rename",
                                     "rewind",         "rmdir",
                                     "scanf",          "setbuf",
                                     "setvbuf",        "stat",
                                     "stat64",         "statvfs",
                                     "statvfs64",      "system",
                                     "tmpfile",        "tmpfile64",
                                     "ungetc",         "unlink",
                                     "utime",          "utimes",
                                     "vfprintf",       "vfscanf",
                                     "vprintf",        "vscanf",
                                     "write",          "__isoc99_scanf",
                                     "__isoc99_fscanf"};

// Functions that LLVM does not know and that only compute or change memory.
constexpr StringLiteral Computing[] = {"rand",      "srand",      "random",         "srandom",         "rand_r",
                                       "drand48",   "erand48",    "lrand48",        "nrand48",         "srand48",
                                       "time",      "clock",      "clock_gettime",  "qsort_r",         "secure_getenv",
                                       "MPI_Wtime", "mpi_wtime_", "posix_memalign", "__errno_location"};
constexpr StringLiteral ComputingStarts[] = {
    "__kmpc_", "omp_",   "_FortranA", "__cxa_",          "_Unwind_",        "__gxx_",        "_ZSt",
    "_ZNSt",   "_ZNKSt", "_ZNSs",     "_ZNKSs",          "__mul",           "__div",         "__udiv",
    "__umod",  "__mod",  "__ctype_",  "__isoc99_sscanf", "__isoc23_sscanf", "__isoc23_strto"};
// Of the C++ library's own.
constexpr StringLiteral Streams[] = {"stream",     "ios_base", "basic_ios",          "filebuf", "streambuf",
                                     "filesystem", "thread",   "condition_variable", "mutex",   "future"};

bool startsWith(StringRef Name, ArrayRef<StringLiteral> Starts) {
  return any_of(Starts, [&](StringRef Start) { return Name.starts_with(Start); });
}

// What a function of another unit belongs to; nothing if it does not communicate.
std::optional<unsigned> family(const Function &F, const TargetLibraryInfo &TLI, StringMap<unsigned> &Names) {
  StringRef Name = F.getName();
  const bool Cxx = Name.starts_with("_Z");
  if (is_contained(Outward, Name) || Name.starts_with("_FortranAio") || startsWith(Name, {"_ZNSo", "_ZNSi", "_ZNSd"}) ||
      (Cxx && startsWith(Name, ComputingStarts) && any_of(Streams, [&](StringRef S) { return Name.contains(S); })))
    return InputOutput;
  LibFunc Known;
  if (F.isIntrinsic() || is_contained(Computing, Name) || startsWith(Name, ComputingStarts) ||
      TLI.getLibFunc(Name, Known))
    return std::nullopt;
  if (startsWith(Name, {"MPI_", "PMPI_", "mpi_", "pmpi_"}))
    return Messages;
  return Names.try_emplace(Name, FirstName + Names.size()).first->second;
}

// What each function of a module leads to.
class Reach {
  DenseMap<const Function *, Families> Of;
  StringMap<unsigned> Names;

  static const Function *callee(const CallBase &Call) {
    const Value *To = Call.getCalledOperand()->stripPointerCastsAndAliases();
    return dyn_cast<Function>(To);
  }

public:
  Families families(const CallBase &Call, const TargetLibraryInfo &TLI, bool Bodies) {
    Families All;
    if (Call.isInlineAsm() || Call.doesNotReturn() || Call.onlyReadsMemory() || Call.onlyAccessesArgMemory())
      return All;
    const Function *To = callee(Call);
    if (!To)
      All.set(Pointers);
    else if (!To->isDeclaration())
      return Bodies ? Of.lookup(To) : All;
    else if (auto Number = family(*To, TLI, Names))
      All.set(*Number);
    return All;
  }

  explicit Reach(const Module &M) {
    TargetLibraryInfoImpl Impl(M.getTargetTriple());
    TargetLibraryInfo TLI(Impl);
    DenseMap<const Function *, SmallSetVector<const Function *, 4>> Callers;
    SmallVector<const Function *, 32> Work;
    for (const Function &F : M) {
      for (const BasicBlock &BB : F) {
        // An error's message, as it were.
        if (isa<UnreachableInst>(BB.getTerminator()))
          continue;
        for (const Instruction &I : BB)
          if (const auto *Call = dyn_cast<CallBase>(&I)) {
            Of[&F] |= families(*Call, TLI, false);
            if (const Function *To = callee(*Call); To && !To->isDeclaration())
              Callers[To].insert(&F);
          }
      }
      Work.push_back(&F);
    }
    while (!Work.empty()) {
      const Function *F = Work.pop_back_val();
      const Families Here = Of.lookup(F);
      for (const Function *Caller : Callers.lookup(F))
        if (Of[Caller] |= Here)
          Work.push_back(Caller);
    }
  }
};

// The loops inside one loop that are worth a region of their own.
class Nest {
  Reach &Calls;
  const TargetLibraryInfo &TLI;
  const DominatorTree &DT;
  LoopInfo &LI;
  ScalarEvolution &SE;
  // The function is called in loops alone: it holds no time loop, and a call that not each step comes to reports an
  // error.
  const bool Repeated;
  // Where the function returns.
  SmallVector<const BasicBlock *, 4> Returns;

  // Whether each step of the loop, each call of the function if that is null, comes to the block, or to a loop that
  // holds it.
  bool inEachStep(const BasicBlock *BB, const Loop *L) const {
    for (const Loop *At = LI.getLoopFor(BB); At; At = At->getParentLoop()) {
      const BasicBlock *Latch = At->getLoopLatch();
      if (!Latch || !DT.dominates(BB, Latch))
        return false;
      if (At == L)
        return true;
      BB = At->getHeader();
    }
    return all_of(Returns, [&](const BasicBlock *Return) { return DT.dominates(BB, Return); });
  }

  // What the loop's calls lead to.
  struct Outward {
    Families All;
    // Of calls that each step comes to.
    Families EachStep;
    // Of all calls but input, output and messages that not each step comes to: a warning, the output of each tenth
    // step.
    Families Sure;

    bool hasKnown() const { return All.test(InputOutput) || All.test(Messages); }
  };

  // Of the blocks of the loop, or of the function if that is null.
  template <typename Range> Outward outward(Range &&All, const Loop *L) {
    Outward Here;
    for (const BasicBlock *BB : All)
      for (const Instruction &I : *BB)
        if (const auto *Call = dyn_cast<CallBase>(&I))
          if (Families Of = Calls.families(*Call, TLI, true); !Of.empty()) {
            const bool Each = inEachStep(BB, L);
            Families Known, Rest = Of;
            Rest.reset(InputOutput);
            Rest.reset(Messages);
            Known.intersectWithComplement(Of, Rest);
            Here.All |= Each || !Repeated ? Of : Known;
            Here.Sure |= Each ? Of : Rest;
            if (Each)
              Here.EachStep |= Of;
          }
    return Here;
  }

public:
  SmallPtrSet<const Loop *, 8> Found;

  Nest(Reach &Calls, const TargetLibraryInfo &TLI, const DominatorTree &DT, LoopInfo &LI, ScalarEvolution &SE,
       bool Repeated)
      : Calls(Calls), TLI(TLI), DT(DT), LI(LI), SE(SE), Repeated(Repeated) {}

  // A loop inside is a region where it communicates less than the loop around it: it may be captured though that cannot
  // be. One without further loops inside is short more often: there `Often` the loop around it has to communicate.
  template <typename Range> void look(const Range &Loops, const Families &Around, bool Often) {
    for (const Loop *Inner : Loops) {
      const Outward Here = outward(Inner->blocks(), Inner);
      const bool Less = Around.contains(Here.Sure) && Here.Sure != Around && (Often || !Inner->isInnermost());
      const bool Region = Less && worthProbe(*Inner, LI, SE);
      if (Region)
        Found.insert(Inner);
      if (!Here.All.empty())
        look(*Inner, Region ? Here.All : Around, Region ? !Here.EachStep.empty() : Often);
    }
  }

  void look(const Loop &L) { lookInside(outward(L.blocks(), &L), L); }

  void look(const Function &F) {
    for (const BasicBlock &BB : F)
      if (isa<ReturnInst>(BB.getTerminator()))
        Returns.push_back(&BB);
    lookInside(outward(map_range(F, [](const BasicBlock &BB) { return &BB; }), nullptr), LI);
  }

private:
  template <typename Range> void lookInside(const Outward &Here, const Range &Loops) {
    if (!Here.All.empty())
      look(Loops, Here.All, !Here.EachStep.empty() || Here.hasKnown());
  }
};
} // namespace

extern "C" {

// What calls of a module lead to, for `cere_loops_inside`.
void *cere_reach(LLVMModuleRef M) { return new Reach(*unwrap(M)); }
void cere_forget_reach(void *Calls) { delete static_cast<Reach *>(Calls); }

// Loops inside the loop with this header, or in the function if that is null, by header, in program order: those that
// are worth a region, because what is around them may communicate; without `Calls` all that are inside it directly.
// `Repeated`: the function is called in loops alone.
size_t cere_loops_inside(LLVMValueRef Fn, LLVMBasicBlockRef Header, void *Calls, bool Repeated,
                         LLVMBasicBlockRef *Headers, LLVMMetadataRef *Locations, size_t Room) {
  Function &F = *unwrap<Function>(Fn);
  DominatorTree DT(F);
  LoopInfo LI(DT);
  const Loop *L = Header ? loopAt(LI, unwrap(Header)) : nullptr;
  if (Header && (!L || L->isInnermost()))
    return 0;
  SmallPtrSet<const Loop *, 8> Found;
  if (L)
    Found.insert_range(*L);
  else
    Found.insert_range(LI);
  if (Calls) {
    TargetLibraryInfoImpl Impl(F.getParent()->getTargetTriple());
    TargetLibraryInfo TLI(Impl, &F);
    AssumptionCache AC(F);
    ScalarEvolution SE(F, TLI, AC, DT, LI);
    Nest Inside(*static_cast<Reach *>(Calls), TLI, DT, LI, SE, Repeated);
    if (L)
      Inside.look(*L);
    else
      Inside.look(F);
    Found = Inside.Found;
  }
  size_t Count = 0;
  for (BasicBlock &BB : F)
    if (const Loop *Inner = loopAt(LI, &BB); Inner && Found.contains(Inner)) {
      if (Count < Room) {
        Headers[Count] = wrap(&BB);
        Locations[Count] = wrap(static_cast<Metadata *>(startOf(*Inner).get()));
      }
      ++Count;
    }
  return Count;
}

// How many loops the one with this header lies in, itself among them.
unsigned cere_depth(LLVMValueRef Fn, LLVMBasicBlockRef Header) {
  DominatorTree DT(*unwrap<Function>(Fn));
  LoopInfo LI(DT);
  return LI.getLoopDepth(unwrap(Header));
}
}
