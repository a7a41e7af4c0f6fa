// Counts what runs, in the machine code as it is emitted: each straight piece of it (a segment) writes the address of
// its description and the addresses of its memory accesses to the calling thread's buffer. The description, in the
// section cere_counted, names the instructions. Nothing else of the code changes: registers and flags are kept, and
// all of it comes after the last pass that could react to it. C++ because the C API has no machine code.
// The layouts are those of crates/format/src/count.rs.
#include "llvm-c/Core.h"
#include "llvm/CodeGen/MachineFrameInfo.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineMemOperand.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/PseudoSourceValue.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/RegisterTargetPassConfigCallback.h"
#include <map>
#include <optional>

using namespace llvm;

namespace {
// Offsets in the thread's context, which GS points to.
enum Slot { SavedA = 0, SavedC = 8, Cursor = 16, Room = 24 };
// What the words of an access are.
enum Shape : uint8_t { Plain, Masked, Gather, RepCopy, RepSet, Copy, Set, Push, Pop };
enum Flag : uint8_t { Load = 1, Store = 2, NonTemporal = 4, Spill = 8, Thread = 16, Prefetch = 32 };
constexpr unsigned MemoryOperands = 5;

struct Access {
  uint16_t Instruction;
  Shape K;
  uint8_t Flags;
  uint16_t Size;
  uint8_t IndexWords = 0;
  uint8_t MaskWords = 0;
  // Of a gather's positions.
  uint16_t Scale = 1;
};

struct Described {
  uint32_t Name;
  uint32_t Line;
  SmallVector<uint16_t, 4> Written, Read;
};

struct Segment {
  uint32_t Block, Flags = 0;
  uint32_t Callee = 0;
  std::vector<Described> Instructions;
  std::vector<Access> Accesses;
  // Where its address goes in: the instruction that writes it.
  MachineInstr *Header = nullptr;
};
enum SegmentFlag : uint32_t {
  Entry = 1,
  Assembly = 2,
  Call = 4,
  Conditional = 8,
  Indirect = 16,
  BlockStart = 32,
  Return = 64
};

class Strings {
  std::map<std::string, uint32_t> Known;

public:
  std::string Bytes;
  uint32_t at(StringRef Text) {
    auto [It, New] = Known.try_emplace(Text.str(), Bytes.size());
    if (New) {
      Bytes += Text.str();
      Bytes.push_back('\0');
    }
    return It->second;
  }
};

class Writer {
public:
  std::string Bytes;
  void u8(uint8_t N) { Bytes.push_back(char(N)); }
  void u16(uint16_t N) {
    u8(uint8_t(N));
    u8(uint8_t(N >> 8));
  }
  void u32(uint32_t N) {
    u16(uint16_t(N));
    u16(uint16_t(N >> 16));
  }
  void align() { Bytes.resize((Bytes.size() + 7) / 8 * 8); }
  void set32(size_t At, uint32_t N) {
    for (int I = 0; I < 4; I++)
      Bytes[At + size_t(I)] = char(N >> (8 * I));
  }
};

class Counting : public MachineFunctionPass {
  const TargetInstrInfo *TII = nullptr;
  const TargetRegisterInfo *TRI = nullptr;
  std::map<std::string, unsigned> Opcodes, Registers;
  std::string Unit;

  unsigned opcode(const char *Name) const {
    auto It = Opcodes.find(Name);
    return It == Opcodes.end() ? 0 : It->second;
  }
  Register reg(const char *Name) const { return Register(Registers.at(Name)); }

  void learn(const MachineFunction &MF) {
    TII = MF.getSubtarget().getInstrInfo();
    TRI = MF.getSubtarget().getRegisterInfo();
    if (!Opcodes.empty())
      return;
    for (unsigned I = 0; I < TII->getNumOpcodes(); I++)
      Opcodes[TII->getName(I).str()] = I;
    for (unsigned I = 1; I < TRI->getNumRegs(); I++)
      Registers[TRI->getName(I)] = I;
  }

  // The operands of an address in memory that GS holds.
  static const MachineInstrBuilder &slot(const MachineInstrBuilder &B, Register GS, int64_t At) {
    return B.addReg(0).addImm(1).addReg(0).addImm(At).addReg(GS);
  }

  // Inserts before an instruction.
  struct Place {
    Counting &C;
    MachineBasicBlock &MBB;
    MachineBasicBlock::iterator At;
    const DebugLoc DL = DebugLoc();

    MachineInstrBuilder build(const char *Name) const { return BuildMI(MBB, At, DL, C.TII->get(C.opcode(Name))); }
    MachineInstrBuilder build(const char *Name, const char *To) const {
      return BuildMI(MBB, At, DL, C.TII->get(C.opcode(Name)), C.reg(To));
    }
    void save(const char *From, int64_t Slot) const { slot(build("MOV64mr"), C.reg("GS"), Slot).addReg(C.reg(From)); }
    void load(const char *To, int64_t Slot) const { slot(build("MOV64rm", To), C.reg("GS"), Slot); }
    // RCX = the cursor, as it was saved before.
    void cursor() const {
      save("RCX", SavedC);
      load("RCX", Cursor);
    }
    void store(const char *From, int64_t Offset) const { memory(build("MOV64mr"), Offset).addReg(C.reg(From)); }
    const MachineInstrBuilder &memory(const MachineInstrBuilder &B, int64_t Offset) const {
      return B.addReg(C.reg("RCX")).addImm(1).addReg(0).addImm(Offset).addReg(0);
    }
    void advance(const char *Register, int64_t By) const {
      build("LEA64r", Register).addReg(C.reg(Register)).addImm(1).addReg(0).addImm(By).addReg(0);
    }
    // The cursor moves on by so many words, and RCX is as before.
    void done(unsigned Words) const {
      advance("RCX", 8 * int64_t(Words));
      save("RCX", Cursor);
      load("RCX", SavedC);
    }
  };

  // The first of the five operands of an address, or none.
  static int memoryOperand(const MachineInstr &MI) {
    const MCInstrDesc &D = MI.getDesc();
    for (unsigned I = 0; I + MemoryOperands <= D.getNumOperands(); I++)
      if (D.operands()[I].OperandType == MCOI::OPERAND_MEMORY)
        return int(I);
    return -1;
  }

  bool isVector(Register R) const {
    return R.isPhysical() &&
           (StringRef(TRI->getName(R)).starts_with("XMM") || StringRef(TRI->getName(R)).starts_with("YMM") ||
            StringRef(TRI->getName(R)).starts_with("ZMM"));
  }
  bool isMask(Register R) const {
    StringRef Name = R.isPhysical() ? TRI->getName(R) : "";
    return Name.size() == 2 && Name[0] == 'K' && isDigit(Name[1]);
  }

  uint8_t vectorWords(Register R) const {
    char Kind = TRI->getName(R)[0];
    return Kind == 'X' ? 2 : Kind == 'Y' ? 4 : 8;
  }

  // Writes a vector register to the buffer.
  void storeVector(const Place &P, Register R, int64_t Offset) {
    const char *Name = TRI->getName(R);
    unsigned Number = unsigned(atoi(Name + 3));
    const char *Op = Name[0] == 'Z'   ? "VMOVDQU64Zmr"
                     : Name[0] == 'Y' ? (Number > 15 ? "VMOVDQU64Z256mr" : "VMOVDQUYmr")
                                      : (Number > 15 ? "VMOVDQU64Z128mr" : "VMOVDQUmr");
    P.memory(P.build(Op), Offset).addReg(R);
  }

  // Whether it loads the offset of a thread-local variable, which linkers accept in MOV and ADD alone.
  bool offsetOfThread(const MachineInstr &MI) const {
    int M = memoryOperand(MI);
    if (M < 0)
      return false;
    const MachineOperand &O = MI.getOperand(unsigned(M) + 3);
    return O.isGlobal() && O.getGlobal()->isThreadLocal() && MI.getOperand(unsigned(M)).isReg() &&
           MI.getOperand(unsigned(M)).getReg() == reg("RIP");
  }

  // Writes the words of an access before its instruction.
  void write(const Place &P, const MachineInstr &MI, Access &A) {
    if (A.K == RepCopy || A.K == RepSet || A.K == Copy || A.K == Set) {
      P.save("RAX", SavedA);
      // The number of repetitions is in RCX, the length of a call in RDX.
      P.build("MOV64rr", "RAX").addReg(reg(A.K == Copy || A.K == Set ? "RDX" : "RCX"));
      P.cursor();
      P.store("RAX", 0);
      P.load("RAX", SavedA);
      P.store("RDI", 8);
      bool Two = A.K == RepCopy || A.K == Copy;
      if (Two)
        P.store("RSI", 16);
      P.done(Two ? 3 : 2);
      return;
    }
    P.save("RAX", SavedA);
    MachineInstrBuilder Lea = P.build("LEA64r", "RAX");
    if (offsetOfThread(MI)) {
      // The linker knows no address of such an entry of the table of offsets; the stack's stands for it.
      Lea.addReg(reg("RSP")).addImm(1).addReg(0).addImm(0).addReg(0);
    } else if (A.K == Push || A.K == Pop) {
      Lea.addReg(reg("RSP")).addImm(1).addReg(0).addImm(A.K == Push ? -int64_t(A.Size) : 0).addReg(0);
    } else {
      int M = memoryOperand(MI);
      for (unsigned I = 0; I < MemoryOperands; I++) {
        MachineOperand O = MI.getOperand(unsigned(M) + I);
        if (O.isReg()) {
          bool Dropped = I == MemoryOperands - 1 || (I == 2 && A.K == Gather);
          O = MachineOperand::CreateReg(Dropped ? Register() : O.getReg(), false);
        }
        Lea.add(O);
      }
    }
    P.cursor();
    P.store("RAX", 0);
    P.load("RAX", SavedA);
    unsigned Words = 1;
    if (A.IndexWords) {
      storeVector(P, MI.getOperand(unsigned(memoryOperand(MI)) + 2).getReg(), 8);
      Words += A.IndexWords;
    }
    if (A.MaskWords) {
      Register Mask = mask(MI);
      if (isVector(Mask))
        storeVector(P, Mask, 8 * int64_t(Words));
      else
        P.memory(P.build(MI.getMF()->getSubtarget().checkFeatures("+avx512bw") ? "KMOVQmk" : "KMOVWmk"),
                 8 * int64_t(Words))
            .addReg(Mask);
      Words += A.MaskWords;
    }
    P.done(Words);
  }

  // The register that says which lanes reach memory, or none.
  Register mask(const MachineInstr &MI) const {
    StringRef Name = TII->getName(MI.getOpcode());
    int M = memoryOperand(MI);
    Register Found;
    // There the mask is what is moved.
    if (Name.starts_with("KMOV"))
      return Found;
    bool Vector = Name.starts_with("VMASKMOV") || Name.starts_with("VPMASKMOV") || Name.starts_with("VGATHER") ||
                  Name.starts_with("VPGATHER");
    for (unsigned I = 0; I < MI.getDesc().getNumOperands(); I++) {
      const MachineOperand &O = MI.getOperand(I);
      if (!O.isReg() || !O.isUse() || (int(I) >= M && I < unsigned(M) + MemoryOperands))
        continue;
      if (isMask(O.getReg()))
        return O.getReg();
      // A masked store's source comes after its mask, a gather's mask last.
      if (Vector && isVector(O.getReg()) && !(Name.contains("MASKMOV") && Found))
        Found = O.getReg();
    }
    return Found;
  }

  void accesses(const MachineInstr &MI, uint16_t Index, std::vector<Access> &Out, StringRef Callee) {
    StringRef Name = TII->getName(MI.getOpcode());
    auto Implicit = [&](Shape K, uint8_t Flags, uint16_t Size) { Out.push_back({Index, K, Flags, Size}); };
    if (Name.starts_with("REP_MOVS") || Name.starts_with("REP_STOS")) {
      char Size = Name[8];
      uint16_t Bytes = Size == 'B' ? 1 : Size == 'W' ? 2 : Size == 'D' ? 4 : 8;
      bool Move = Name.starts_with("REP_MOVS");
      return Implicit(Move ? RepCopy : RepSet, uint8_t(Move ? Load | Store : Store), Bytes);
    }
    int M = memoryOperand(MI);
    bool Hint = Name.starts_with("PREFETCH");
    // A fence is a locked instruction on the stack, which LLVM does not call an access.
    bool Fence = Name.ends_with("Locked");
    if (M >= 0 && (MI.mayLoadOrStore() || Hint || Fence) && !Name.starts_with("LEA") && !Name.starts_with("NOOP")) {
      Access A{Index, Plain, 0, 0};
      const MachineFrameInfo &Frame = MI.getMF()->getFrameInfo();
      for (const MachineMemOperand *O : MI.memoperands()) {
        if (O->getSize().hasValue())
          A.Size = uint16_t(std::max<uint64_t>(A.Size, O->getSize().getValue().getKnownMinValue()));
        if (O->isNonTemporal() && O->isStore())
          A.Flags |= NonTemporal;
        if (const auto *S = dyn_cast_or_null<FixedStackPseudoSourceValue>(O->getPseudoValue()))
          if (Frame.isSpillSlotObjectIndex(S->getFrameIndex()))
            A.Flags |= Spill;
      }
      if (Name.starts_with("MOVNT") || Name.starts_with("VMOVNT"))
        A.Flags |= NonTemporal;
      if (Hint)
        A.Flags |= Prefetch;
      else if (Fence)
        A.Flags |= Load | Store;
      else if (Name.starts_with("PUSH"))
        A.Flags |= Load;
      else if (Name.starts_with("POP") && !Name.starts_with("POPCNT"))
        A.Flags |= Store;
      else
        A.Flags |= uint8_t((MI.mayLoad() ? Load : 0) | (MI.mayStore() ? Store : 0));
      Register Segment = MI.getOperand(unsigned(M) + 4).getReg();
      if (Segment == reg("FS"))
        A.Flags |= Thread;
      Register Lanes = mask(MI);
      if (Lanes)
        A.MaskWords = isVector(Lanes) ? vectorWords(Lanes) : 1;
      Register Positions = MI.getOperand(unsigned(M) + 2).getReg();
      if (Positions && isVector(Positions)) {
        A.K = Gather;
        A.IndexWords = vectorWords(Positions);
        A.Scale = uint16_t(MI.getOperand(unsigned(M) + 1).getImm());
      } else if (Lanes)
        A.K = Masked;
      Out.push_back(A);
    }
    if (MI.isCall()) {
      if (Callee == "memcpy" || Callee == "memmove" || Callee == "memset") {
        bool Move = Callee != "memset";
        Implicit(Move ? Copy : Set, uint8_t(Move ? Load | Store : Store), 1);
      }
      // A jump to another function leaves nothing on the stack.
      if (!MI.isReturn())
        Implicit(Push, Store, 8);
    } else if (MI.isReturn())
      Implicit(Pop, Load, 8);
    else if (Name.starts_with("PUSH"))
      Implicit(Push, Store, Name.contains("16") ? 2 : 8);
    else if (Name.starts_with("POP") && !Name.starts_with("POPCNT"))
      Implicit(Pop, Load, Name.contains("16") ? 2 : 8);
  }

  uint16_t whole(MCRegister R) const {
    unsigned Widest = R;
    for (MCPhysReg S : TRI->superregs(R))
      Widest = S;
    return uint16_t(Widest);
  }

  Described describe(const MachineInstr &MI, Strings &S) const {
    Described D{S.at(TII->getName(MI.getOpcode())), MI.getDebugLoc() ? MI.getDebugLoc().getLine() : 0, {}, {}};
    for (const MachineOperand &O : MI.operands()) {
      if (!O.isReg() || !O.getReg().isPhysical() || O.getReg() == reg("RIP") || O.getReg() == reg("RSP") ||
          O.getReg() == reg("SSP") || O.getReg() == reg("MXCSR") || O.getReg() == reg("FPCW"))
        continue;
      auto &To = O.isDef() ? D.Written : D.Read;
      if ((O.isDef() || !O.isUndef()) && To.size() < 255)
        To.push_back(whole(O.getReg().asMCReg()));
    }
    return D;
  }

  StringRef callee(const MachineInstr &MI) const {
    if (TII->getName(MI.getOpcode()).starts_with("TLS_"))
      return "__tls_get_addr";
    for (const MachineOperand &O : MI.operands()) {
      // A pointer that is called has a name as well.
      if (O.isGlobal() && isa<Function, GlobalAlias, GlobalIFunc>(O.getGlobal()))
        return O.getGlobal()->getName();
      if (O.isSymbol())
        return O.getSymbolName();
    }
    return "";
  }

  // What only describes code, or is no code.
  static bool isNothing(const MachineInstr &MI) {
    return MI.isMetaInstruction() || MI.isPosition() || MI.isDebugInstr() || MI.isCFIInstruction();
  }

  // Calls what the third byte of the cursor, or `All`, says of sending buffers.
  void room(const Place &P, std::optional<int64_t> All) const {
    if (All)
      P.build("MOV64ri32", "RCX").addImm(*All);
    else
      slot(P.build("MOVZX32rm8", "ECX"), reg("GS"), Cursor + 2);
    P.advance("RSP", -128);
    slot(P.build("CALL64m"), reg("GS"), Room);
    P.advance("RSP", 128);
  }

  // What a segment begins with. After a team has joined, what its threads wrote is sent.
  void head(const Place &P, Segment &G, bool Joined, GlobalVariable *Table) {
    P.save("RCX", SavedC);
    room(P, Joined ? std::optional<int64_t>(-1) : std::nullopt);
    P.save("RAX", SavedA);
    P.load("RCX", Cursor);
    G.Header = P.build("LEA64r", "RAX").addReg(reg("RIP")).addImm(1).addReg(0).addGlobalAddress(Table).addReg(0);
    P.store("RAX", 0);
    P.load("RAX", SavedA);
    P.done(1);
  }

  void segments(MachineBasicBlock &MBB, std::vector<Segment> &Out, Strings &S, bool First, GlobalVariable *Table) {
    auto It = MBB.begin();
    auto Begin = [&](uint32_t Flags) {
      Out.push_back({});
      Out.back().Block = uint32_t(MBB.getNumber());
      Out.back().Flags = Flags;
    };
    bool Opened = false, Joined = false;
    uint32_t Next = BlockStart | (First ? uint32_t(Entry) : 0);
    while (It != MBB.end()) {
      MachineInstr &MI = *It;
      ++It;
      if (isNothing(MI))
        continue;
      bool Landing = TII->getName(MI.getOpcode()).starts_with("ENDBR");
      // What is between the mark of an indirect target and the rest would be before it otherwise.
      if (!Opened) {
        Begin(Next);
        Opened = true;
        MachineBasicBlock::iterator At = MI;
        if (Landing)
          At = It;
        head({*this, MBB, At}, Out.back(), Joined, Table);
        Joined = false;
      }
      Segment &G = Out.back();
      uint16_t Index = uint16_t(G.Instructions.size());
      G.Instructions.push_back(describe(MI, S));
      StringRef Callee = MI.isCall() ? callee(MI) : "";
      if (MI.isInlineAsm())
        G.Flags |= Assembly;
      if (MI.isConditionalBranch())
        G.Flags |= Conditional;
      if (MI.isIndirectBranch())
        G.Flags |= Indirect;
      // With code between two branches the printer sees only the last one, and leaves out the label that the first
      // needs.
      for (const MachineOperand &O : MI.operands())
        if (O.isMBB())
          O.getMBB()->setLabelMustBeEmitted();
      size_t Known = G.Accesses.size();
      accesses(MI, Index, G.Accesses, Callee);
      for (size_t I = Known; I < G.Accesses.size(); I++)
        write({*this, MBB, MI}, MI, G.Accesses[I]);
      bool Fork = MI.isCall() && Callee.starts_with("__kmpc_fork_");
      if (Fork) {
        Joined = true;
        // What came before is sent first.
        Place P{*this, MBB, MI};
        P.save("RCX", SavedC);
        room(P, 2);
        P.load("RCX", SavedC);
      }
      // A jump to it is made a call, so that the end of the team is noticed here. The call and the return that come of
      // it are not described. The callee finds no arguments on the stack: then it is never jumped to.
      bool Jump = Fork && TII->getName(MI.getOpcode()) == "TAILJMPd64";
      if (MI.isReturn() && !Jump)
        G.Flags |= Return;
      bool Full = G.Instructions.size() >= 4000 && !MI.isTerminator();
      if (MI.isCall()) {
        G.Flags |= Call;
        G.Callee = S.at(Callee);
      }
      if (Jump) {
        Place P{*this, MBB, MI};
        P.advance("RSP", -8);
        MachineInstrBuilder Call = P.build("CALL64pcrel32");
        Call.add(MI.getOperand(0));
        P.advance("RSP", 8);
        Begin(Return);
        head(P, Out.back(), true, Table);
        P.build("RET64");
        MI.eraseFromParent();
        Joined = false;
        continue;
      }
      // What follows a conditional branch in its block runs only if it is not taken.
      if (MI.isCall() || MI.isConditionalBranch() || Full) {
        Opened = false;
        Next = 0;
      }
    }
    if (Joined) {
      Place P{*this, MBB, MBB.end()};
      P.save("RCX", SavedC);
      room(P, -1);
      P.load("RCX", SavedC);
    }
    // A function may begin with a block without code: that it was entered is told all the same.
    if (First && !Opened && Out.empty()) {
      Begin(Next);
      head({*this, MBB, MBB.end()}, Out.back(), false, Table);
    }
  }

  // The name without the prefix that makes it unique.
  static bool isOwn(StringRef Name) { return Name.contains("cere.invoke.") || Name.contains("cere.probed."); }

public:
  static char ID;
  explicit Counting(std::string Unit) : MachineFunctionPass(ID), Unit(std::move(Unit)) {}
  StringRef getPassName() const override { return "CERE counting"; }

  bool runOnMachineFunction(MachineFunction &MF) override {
    Module &M = *const_cast<Module *>(MF.getFunction().getParent());
    // What chooses a function when the program is loaded runs before any buffer is there.
    bool Chooses =
        any_of(M.ifuncs(), [&](const GlobalIFunc &F) { return F.getResolverFunction() == &MF.getFunction(); });
    if (isOwn(MF.getName()) || Chooses)
      return false;
    learn(MF);
    // Its size is known when all is described.
    Type *Byte = Type::getInt8Ty(M.getContext());
    auto *Stand = new GlobalVariable(M, Byte, false, GlobalValue::PrivateLinkage, nullptr, "cere.counted.stand");
    Strings S;
    S.at("");
    uint32_t Name = S.at(MF.getName());
    DISubprogram *SP = MF.getFunction().getSubprogram();
    uint32_t File = S.at(SP && SP->getFile() ? SP->getFile()->getFilename() : "");
    uint32_t UnitAt = S.at(Unit);
    std::vector<Segment> All;
    bool First = true;
    for (MachineBasicBlock &MBB : MF) {
      segments(MBB, All, S, First, Stand);
      First = false;
    }
    Writer W;
    W.u32(0x31544343); // "CCT1"
    W.u32(0);          // Bytes in all.
    W.u32(uint32_t(All.size()));
    W.u32(0); // Where the strings are.
    W.u32(Name);
    W.u32(File);
    W.u32(UnitAt);
    std::vector<uint32_t> Where;
    for (const Segment &G : All) {
      W.align();
      Where.push_back(uint32_t(W.Bytes.size()));
      W.u32(0);
      W.u32(G.Block);
      W.u32(G.Flags);
      W.u32(G.Callee);
      W.u32(uint32_t(G.Instructions.size()));
      W.u32(uint32_t(G.Accesses.size()));
      for (const Access &A : G.Accesses) {
        W.u16(A.Instruction);
        W.u8(A.K);
        W.u8(A.Flags);
        W.u16(A.Size);
        W.u8(A.IndexWords);
        W.u8(A.MaskWords);
        W.u16(A.Scale);
      }
      for (const Described &D : G.Instructions) {
        W.u32(D.Name);
        W.u32(D.Line);
        W.u8(uint8_t(D.Written.size()));
        W.u8(uint8_t(D.Read.size()));
        for (uint16_t R : D.Written)
          W.u16(R);
        for (uint16_t R : D.Read)
          W.u16(R);
      }
      W.align();
      W.set32(Where.back(), uint32_t(W.Bytes.size() - Where.back()));
    }
    W.align();
    W.set32(12, uint32_t(W.Bytes.size()));
    W.Bytes += S.Bytes;
    W.align();
    W.set32(4, uint32_t(W.Bytes.size()));
    Constant *Content = ConstantDataArray::getString(M.getContext(), W.Bytes, false);
    auto *Table = new GlobalVariable(M, Content->getType(), true, GlobalValue::PrivateLinkage, Content, "cere.counted");
    Table->setSection("cere_counted");
    Table->setAlignment(Align(8));
    for (size_t I = 0; I < All.size(); I++)
      for (MachineOperand &O : All[I].Header->operands())
        if (O.isGlobal())
          O.ChangeToGA(Table, Where[I]);
    Stand->eraseFromParent();
    return true;
  }
};
char Counting::ID = 0;
} // namespace

// From here on, code that this process makes is counted.
extern "C" void cere_count_code(const char *Unit) {
  std::string Id = Unit;
  static auto *Registered =
      new RegisterTargetPassConfigCallback([Id](TargetMachine &, legacy::PassManagerBase &, TargetPassConfig *Config) {
        Config->insertPass(&UnpackMachineBundlesID, new Counting(Id));
      });
  (void)Registered;
}
