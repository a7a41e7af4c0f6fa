//! What a packager needs of an image's file: symbols, sections, relocations, names.

use crate::PackError;
use cere_format::hexadecimal;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Rela, SectionHeader, Sym, VersionTable};
use object::{LittleEndian, SymbolIndex};
use std::path::{Path, PathBuf};

type Header = FileHeader64<LittleEndian>;
const E: LittleEndian = LittleEndian;

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The start of an object's local symbols.
    File,
    /// Code.
    Function,
    /// Code that chooses the function by processor (`ifunc`).
    Chooser,
    /// Data.
    Variable,
    /// An offset in the thread-local block.
    ThreadLocal,
    /// A number that loading does not move.
    Absolute,
    /// Anything else.
    Other,
}

/// A symbol.
#[derive(Debug, Clone)]
pub struct Symbol {
    /// Its name, a version after `@` left out.
    pub name: String,
    /// Version, for dynamic symbols.
    pub version: Option<String>,
    /// Whether only those find it who name its version: another is the default, or there is none.
    pub old: bool,
    /// Value in the file.
    pub value: u64,
    /// Bytes.
    pub size: u64,
    /// What it stands for.
    pub kind: Kind,
    /// Whether it is global or weak.
    pub global: bool,
    /// Whether it is weak.
    pub weak: bool,
    /// Whether the image defines it.
    pub defined: bool,
}

impl Symbol {
    /// The name by which a link finds it.
    pub fn linked_name(&self) -> String {
        match &self.version {
            Some(version) if self.old => format!("{}@{version}", self.name),
            _ => self.name.clone(),
        }
    }
}

/// A dynamic relocation with a symbol.
#[derive(Debug, Clone)]
pub struct Relocation {
    /// Where, in the file's addresses.
    pub offset: u64,
    /// Whether the variable itself is copied there, rather than an address stored.
    pub copy: bool,
    /// The symbol that it names, as the image imports or exports it.
    pub symbol: Symbol,
}

/// The file of an image.
#[derive(Debug)]
pub struct Elf {
    path: PathBuf,
    data: Vec<u8>,
}

/// (address, size, alignment) of the thread-local template.
pub type Template = (u64, u64, u64);

impl Elf {
    /// Reads the file at `path`.
    pub fn read(path: &Path) -> Result<Self, PackError> {
        let data = std::fs::read(path).map_err(|e| PackError::Image {
            path: path.into(),
            reason: e.to_string(),
        })?;
        let elf = Self {
            path: path.into(),
            data,
        };
        let machine = elf.header()?.e_machine(E);
        if machine != elf::EM_X86_64 {
            return Err(elf.bad(format!("it is for another machine ({machine:?})")));
        }
        Ok(elf)
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn bad(&self, reason: impl ToString) -> PackError {
        PackError::Image {
            path: self.path.clone(),
            reason: reason.to_string(),
        }
    }

    fn header(&self) -> Result<&Header, PackError> {
        Header::parse(&*self.data).map_err(|e| self.bad(e))
    }

    fn sections(&self) -> Result<object::read::elf::SectionTable<'_, Header>, PackError> {
        self.header()?
            .sections(E, &*self.data)
            .map_err(|e| self.bad(e))
    }

    /// Address and bytes of a section; none if there is no such section.
    pub fn section(&self, name: &str) -> Result<Option<(u64, &[u8])>, PackError> {
        let Some((_, section)) = self.sections()?.section_by_name(E, name.as_bytes()) else {
            return Ok(None);
        };
        let bytes = section.data(E, &*self.data).map_err(|e| self.bad(e))?;
        Ok(Some((section.sh_addr(E), bytes)))
    }

    fn headers(&self) -> Result<&[elf::ProgramHeader64<LittleEndian>], PackError> {
        self.header()?
            .program_headers(E, &*self.data)
            .map_err(|e| self.bad(e))
    }

    /// The table by which the unwinder finds frames, as an address in the file.
    pub fn frame_table(&self) -> Result<Option<u64>, PackError> {
        let mut headers = self.headers()?.iter();
        let found = headers.find(|h| h.p_type(E) == elf::PT_GNU_EH_FRAME);
        Ok(found.map(|h| h.p_vaddr(E)))
    }

    /// The thread-local template.
    pub fn template(&self) -> Result<Option<Template>, PackError> {
        let found = self.headers()?.iter().find(|h| h.p_type(E) == elf::PT_TLS);
        Ok(found.map(|h| (h.p_vaddr(E), h.p_memsz(E), h.p_align(E).max(1))))
    }

    /// What the thread-local block of a thread that starts holds.
    pub fn template_bytes(&self) -> Result<Vec<u8>, PackError> {
        let found = self.headers()?.iter().find(|h| h.p_type(E) == elf::PT_TLS);
        let Some(header) = found else {
            return Ok(Vec::new());
        };
        let stored = header.p_filesz(E).min(header.p_memsz(E));
        let mut bytes = self
            .bytes(header.p_vaddr(E), stored)
            .unwrap_or_default()
            .to_vec();
        bytes.resize(header.p_memsz(E) as usize, 0);
        Ok(bytes)
    }

    /// Sections of code, [start, end) in the file's addresses. Segments of code may hold constants as well.
    pub fn code(&self) -> Result<Vec<(u64, u64)>, PackError> {
        let sections = self.sections()?;
        let code = sections
            .iter()
            .filter(|s| s.sh_flags(E).0 & elf::SHF_EXECINSTR.0 != 0);
        let ranges = code.map(|s| (s.sh_addr(E), s.sh_addr(E).saturating_add(s.sh_size(E))));
        Ok(ranges.collect())
    }

    /// Whether the file's address `value` is code.
    pub fn executable(&self, value: u64) -> bool {
        self.headers().is_ok_and(|headers| {
            headers.iter().any(|h| {
                let start = h.p_vaddr(E);
                h.p_type(E) == elf::PT_LOAD
                    && h.p_flags(E).0 & elf::PF_X.0 != 0
                    && value >= start
                    && value - start < h.p_memsz(E)
            })
        })
    }

    /// `size` bytes at the file's address `value`, as the file has them.
    pub fn bytes(&self, value: u64, size: u64) -> Option<&[u8]> {
        self.headers().ok()?.iter().find_map(|h| {
            let inside = value.checked_sub(h.p_vaddr(E))?;
            let end = inside.checked_add(size)?;
            if h.p_type(E) != elf::PT_LOAD || end > h.p_filesz(E) {
                return None;
            }
            let start = usize::try_from(h.p_offset(E).checked_add(inside)?).ok()?;
            self.data
                .get(start..start.checked_add(usize::try_from(size).ok()?)?)
        })
    }

    /// The symbol table, in its order; none if the image was stripped.
    pub fn symbols(&self) -> Result<Option<Vec<Symbol>>, PackError> {
        let symbols = self.table(elf::SHT_SYMTAB)?;
        Ok((!symbols.is_empty()).then_some(symbols))
    }

    /// The dynamic symbol table.
    pub fn dynamic_symbols(&self) -> Result<Vec<Symbol>, PackError> {
        self.table(elf::SHT_DYNSYM)
    }

    fn table(&self, kind: elf::SectionType) -> Result<Vec<Symbol>, PackError> {
        let sections = self.sections()?;
        let table = sections
            .symbols(E, &*self.data, kind)
            .map_err(|e| self.bad(e))?;
        let versions = if kind == elf::SHT_DYNSYM {
            sections.versions(E, &*self.data).map_err(|e| self.bad(e))?
        } else {
            None
        };
        let mut symbols = Vec::with_capacity(table.len());
        for (index, symbol) in table.enumerate() {
            let name = table.symbol_name(E, symbol).map_err(|e| self.bad(e))?;
            symbols.push(self.symbol(index, symbol, name, versions.as_ref()));
        }
        Ok(symbols)
    }

    fn symbol(
        &self,
        index: SymbolIndex,
        symbol: &elf::Sym64<LittleEndian>,
        name: &[u8],
        versions: Option<&VersionTable<'_, Header>>,
    ) -> Symbol {
        let value = symbol.st_value(E);
        let section = symbol.st_shndx(E);
        let defined = section != elf::SHN_UNDEF;
        let placed = defined && section != elf::SHN_ABS;
        let kind = match symbol.st_type() {
            elf::STT_FILE => Kind::File,
            elf::STT_FUNC => Kind::Function,
            elf::STT_GNU_IFUNC => Kind::Chooser,
            elf::STT_OBJECT | elf::STT_COMMON => Kind::Variable,
            elf::STT_TLS => Kind::ThreadLocal,
            _ if section == elf::SHN_ABS => Kind::Absolute,
            // Assembly may leave the type out.
            elf::STT_NOTYPE if placed && self.executable(value) => Kind::Function,
            elf::STT_NOTYPE if placed => Kind::Variable,
            _ => Kind::Other,
        };
        let version_index = versions.map(|versions| versions.version_index(E, index));
        let version = versions.zip(version_index).and_then(|(versions, at)| {
            let found = versions.version(at.index()).ok().flatten()?;
            Some(String::from_utf8_lossy(found.name()).into_owned())
        });
        let mut old = defined && version_index.is_some_and(|at| at.is_hidden());
        let mut name = String::from_utf8_lossy(name).into_owned();
        let global = !symbol.is_local();
        if global && let Some(at) = name.find('@').filter(|at| *at > 0) {
            old |= defined && !name[at..].starts_with("@@");
            name.truncate(at);
        }
        Symbol {
            name,
            version,
            old,
            value,
            size: symbol.st_size(E),
            kind,
            global,
            weak: symbol.st_bind() == elf::STB_WEAK,
            defined,
        }
    }

    /// The dynamic relocations.
    fn loader_relocations(&self) -> Result<Vec<&elf::Rela64<LittleEndian>>, PackError> {
        let mut found = Vec::new();
        for section in self.sections()?.iter() {
            if section.sh_flags(E).0 & elf::SHF_ALLOC.0 == 0 {
                continue;
            }
            if let Some((all, _)) = section.rela(E, &*self.data).map_err(|e| self.bad(e))? {
                found.extend(all);
            }
        }
        Ok(found)
    }

    /// Places, in the file's addresses, that the loader fills with what finds a thread-local variable; with the variable's name if
    /// it has one.
    pub fn thread_local_slots(&self) -> Result<Vec<(u64, String)>, PackError> {
        let symbols = self.dynamic_symbols()?;
        let kinds = [
            elf::R_X86_64_DTPMOD64,
            elf::R_X86_64_TPOFF64,
            elf::R_X86_64_TLSDESC,
        ];
        let all = self.loader_relocations()?.into_iter();
        let slots = all.filter(|r| kinds.contains(&r.r_type(E, false)));
        let named = slots.map(|r| {
            let symbol = symbols.get(r.r_sym(E, false) as usize);
            let name = symbol.map_or(String::new(), |s| s.name.clone());
            (r.r_offset(E), name)
        });
        Ok(named.collect())
    }

    /// Places, in the file's addresses, that the loader fills with what the chooser at `value` returns.
    pub fn chosen_slots(&self, value: u64) -> Result<Vec<u64>, PackError> {
        let all = self.loader_relocations()?.into_iter();
        let slots = all.filter(|r| {
            r.r_type(E, false) == elf::R_X86_64_IRELATIVE && r.r_addend(E) == value as i64
        });
        Ok(slots.map(|r| r.r_offset(E)).collect())
    }

    /// The dynamic relocations that name a symbol and put its address, or the variable itself, somewhere.
    pub fn relocations(&self) -> Result<Vec<Relocation>, PackError> {
        let symbols = self.dynamic_symbols()?;
        let mut found = Vec::new();
        for relocation in self.loader_relocations()? {
            let copy = match relocation.r_type(E, false) {
                elf::R_X86_64_COPY => true,
                elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => false,
                elf::R_X86_64_64 if relocation.r_addend(E) == 0 => false,
                _ => continue,
            };
            if let Some(symbol) = symbols.get(relocation.r_sym(E, false) as usize)
                && !symbol.name.is_empty()
            {
                found.push(Relocation {
                    offset: relocation.r_offset(E),
                    copy,
                    symbol: symbol.clone(),
                });
            }
        }
        Ok(found)
    }

    /// What tells this build of the image from all others, in hexadecimal; none if it was linked without.
    pub fn build_id(&self) -> Result<Option<String>, PackError> {
        let note = self.section(".note.gnu.build-id")?;
        // The sizes of name and content, the type, and the name `GNU`.
        let id = note.and_then(|(_, bytes)| bytes.get(16..));
        Ok(id.filter(|id| !id.is_empty()).map(hexadecimal))
    }

    /// The name by which others link it, or its file's name.
    pub fn soname(&self) -> Result<String, PackError> {
        let sections = self.sections()?;
        if let Some((entries, link)) = sections.dynamic(E, &*self.data).map_err(|e| self.bad(e))? {
            let strings = sections
                .strings(E, &*self.data, link)
                .map_err(|e| self.bad(e))?;
            for entry in entries {
                if entry.d_tag(E) == elf::DT_SONAME {
                    let at = u32::try_from(entry.d_val(E)).map_err(|e| self.bad(e))?;
                    let name = strings
                        .get(at)
                        .map_err(|()| self.bad("a name is cut off"))?;
                    return Ok(String::from_utf8_lossy(name).into_owned());
                }
            }
        }
        Ok(self
            .path
            .file_name()
            .map_or(String::new(), |n| n.to_string_lossy().into_owned()))
    }
}
