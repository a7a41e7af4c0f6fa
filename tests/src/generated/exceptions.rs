//! C++ programs that throw and catch: loops in tries, tries in loops, handlers with loops, cleanups, hierarchies, rethrows,
//! destructors that throw, functions that must not.

use super::prelude::{CLASSES, SCALARS, prelude, thrown};
use super::random::Random;
use std::fmt::Write;

/// Statements of a function, about.
const STATEMENTS: usize = 30;
/// Statements may lie this deep in each other.
const DEPTH: usize = 5;

/// The program of this seed, with so many functions that may throw and catch.
pub fn program(seed: u64, functions: usize) -> String {
    let mut random = Random::new(seed);
    let mut text = format!("// Seed {seed}.\n{}", prelude(&mut random));
    for number in 0..functions {
        text += &function(&mut random, number, false);
    }
    // The last one may end the program: an exception meets a function that must not throw.
    text += &function(&mut random, functions, true);
    text += "int main() {\n  std::set_terminate(ends);\n";
    for number in 0..=functions {
        writeln!(
            text,
            "  for (word x = {}; x < {}; x += {}) {{\n    word r = 0;\n    fuel = 300;\n    try {{ r = f{number}(x, x * 7 + {number}); }}",
            random.below(4),
            12 + random.below(30),
            1 + random.below(5),
        )
        .expect("text grows");
        text += &handlers(&mut random);
        writeln!(
            text,
            "    catch (...) {{ r = 77; }}\n    printf(\"f{number} %lx %lx %ld\\n\", r, digest, live);\n  }}"
        )
        .expect("text grows");
    }
    text + "}\n"
}

fn handlers(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(3) {
        let (head, value) = caught(random);
        writeln!(text, "    catch ({head}) {{ r = {value}; }}").expect("text grows");
    }
    text
}

/// What a handler declares, and the value that it sees.
fn caught(random: &mut Random) -> (String, String) {
    if random.chance(40) {
        let scalar = *random.pick(&SCALARS.each_ref());
        let by = ["", "", "&"][random.below(3)];
        let value = match scalar {
            "int" | "double" => "(word)e",
            "K0 *" => "e->get()",
            _ => "(word)e[0]",
        };
        return (format!("{scalar} {by}e"), value.to_owned());
    }
    let class = random.below(CLASSES);
    let by = ["", "&", "const &"][random.below(3)];
    let head = match by {
        "const &" => format!("const K{class} &e"),
        _ => format!("K{class} {by}e"),
    };
    (head, "e.get()".to_owned())
}

fn function(random: &mut Random, number: usize, last: bool) -> String {
    let kind = random.pick(&[
        "static ",
        "static inline ",
        "__attribute__((noinline)) static ",
        "",
    ]);
    let must_not = last || random.chance(10);
    let noexcept = if must_not { " noexcept" } else { "" };
    let mut body = Body {
        random,
        number,
        text: String::new(),
        depth: 0,
        loops: 0,
        handlers: 0,
        names: 0,
        left: STATEMENTS,
    };
    while body.left > 0 {
        body.block();
    }
    let text = body.text;
    let text = match must_not && !last {
        true => format!("  try {{\n{text}  }} catch (...) {{ a += 9; }}\n"),
        false => text,
    };
    format!(
        "{kind}word f{number}(word n, word x){noexcept} {{\n  word a = n + 1, b = x, c = 3;\n  \
         if (--fuel < 0) return x;\n{text}  mix(a);\n  mix(b);\n  return a + b * 3 + c * 5;\n}}\n"
    )
}

struct Body<'a> {
    random: &'a mut Random,
    number: usize,
    text: String,
    depth: usize,
    /// Loops that a `break` or a `continue` may name.
    loops: usize,
    /// Handlers around, in this function.
    handlers: usize,
    names: usize,
    /// Statements that this function may still get.
    left: usize,
}

impl Body<'_> {
    fn line(&mut self, line: &str) {
        for _ in 0..=self.depth {
            self.text += "  ";
        }
        self.text += line;
        self.text.push('\n');
    }

    fn block(&mut self) {
        self.depth += 1;
        for _ in 0..1 + self.random.below(3) {
            self.statement();
        }
        self.depth -= 1;
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn variable(&mut self) -> &'static str {
        self.random.pick(&["a", "b", "c"])
    }

    fn expression(&mut self) -> String {
        let (u, v) = (self.variable(), self.variable());
        let k = self.random.below(50);
        match self.random.below(4) {
            0 => format!("{u} + {k}"),
            1 => format!("{u} * 3 + {v}"),
            2 => format!("({u} ^ {v} >> 3) + {k}"),
            _ => format!("{u} - {v} + x"),
        }
    }

    fn condition(&mut self) -> String {
        let (of, modulus) = (self.expression(), 2 + self.random.below(6));
        format!("({of}) % {modulus} == {}", self.random.below(modulus))
    }

    fn statement(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.depth > DEPTH || self.left == 0 {
            return self.simple();
        }
        match self.random.below(20) {
            0..=4 => self.try_catch(),
            5..=8 => self.any_loop(),
            9 | 10 => self.branch(),
            11 | 12 => self.guarded(),
            13 => self.choice(),
            _ => self.simple(),
        }
    }

    fn simple(&mut self) {
        let (to, of) = (self.variable(), self.expression());
        let line = match self.random.below(16) {
            0..=3 => format!("{to} += may{}({of});", self.random.below(3)),
            4 | 5 if self.number > 0 => {
                let callee = self.random.below(self.number);
                format!("{to} = f{callee}(n + 1, {of});")
            }
            6 => {
                let condition = self.condition();
                let what = thrown(self.random, "b");
                format!("if ({condition}) throw {what};")
            }
            7 if self.handlers > 0 => {
                let condition = self.condition();
                format!("if ({condition}) throw;")
            }
            8 if self.loops > 0 => {
                let condition = self.condition();
                let way = self.random.pick(&["break", "continue"]);
                format!("if ({condition}) {way};")
            }
            9 if self.random.chance(30) => {
                let condition = self.condition();
                format!("if ({condition}) return {of};")
            }
            10 => format!("mix({of});"),
            11 => self.allocation(),
            12 => self.once(),
            _ => format!("{to} = {of};"),
        };
        self.line(&line);
    }

    /// An array of objects one of whose constructors may throw.
    fn allocation(&mut self) -> String {
        let name = self.fresh("p");
        let (of, length) = (self.expression(), self.expression());
        match self.random.below(2) {
            0 => format!("{{ Guard *{name} = new Guard(may1({of})); delete {name}; }}"),
            _ => format!(
                "{{ struct Each {{ Guard g; Each() : g(may0(digest)) {{}} }}; Each *{name} = new Each[1 + ({length}) % 4]; delete[] {name}; a += {of}; }}"
            ),
        }
    }

    /// A variable whose initialiser may throw, and then runs again.
    fn once(&mut self) -> String {
        let name = self.fresh("s");
        let of = self.expression();
        format!("{{ static word {name} = may1({of}); b += {name}; }}")
    }

    fn branch(&mut self) {
        let condition = self.condition();
        self.line(&format!("if ({condition}) {{"));
        self.block();
        if self.random.chance(40) {
            self.line("} else {");
            self.block();
        }
        self.line("}");
    }

    fn choice(&mut self) {
        let of = self.expression();
        let ways = 2 + self.random.below(3);
        self.line(&format!("switch (({of}) % {}) {{", ways + 1));
        let loops = std::mem::take(&mut self.loops);
        for way in 0..ways {
            self.line(&format!("case {way}: {{"));
            self.block();
            let end = if self.random.chance(75) {
                "} break;"
            } else {
                "}"
            };
            self.line(end);
        }
        self.loops = loops;
        self.line("}");
    }

    /// A block with objects that are destroyed on every way out of it.
    fn guarded(&mut self) {
        let name = self.fresh("g");
        let of = self.expression();
        self.line("{");
        let line = match self.random.below(8) {
            0 => format!("Bomb {name}({of});"),
            1 => format!("Bomb {name}[2] = {{Bomb({of}), Bomb(b + 1)}};"),
            2 => format!("Several<Guard> {name}({of});"),
            3 => format!("Guard {name}(may1({of})), {name}b({name});"),
            4 => format!("word {name}[1 + ({of}) % 5]; {name}[0] = c; a += {name}[0];"),
            5 => format!("Guard {name}[2] = {{Guard({of}), Guard(may2(a))}};"),
            _ => format!("Guard {name}({of});"),
        };
        self.line(&line);
        self.block();
        self.line("}");
    }

    fn any_loop(&mut self) {
        let name = self.fresh("i");
        let bound = self.random.below(9);
        let of = self.expression();
        let (head, tail) = match self.random.below(5) {
            0 => (
                format!("for (word {name} = 0; {name} < ({of}) % 10 && --fuel > 0; {name}++) {{"),
                "}".to_owned(),
            ),
            1 => (
                format!("while (({of}) % 5 && --fuel > 0) {{"),
                "}".to_owned(),
            ),
            2 => (
                "do {".to_owned(),
                format!("}} while (({of}) % 3 && --fuel > 0);"),
            ),
            3 => (
                format!("for (Guard {name}(1); {name}.k < {bound} && --fuel > 0; {name}.k++) {{"),
                "}".to_owned(),
            ),
            _ => (
                format!("for (word {name} = 0; {name} < {bound} && --fuel > 0; {name}++) {{"),
                "}".to_owned(),
            ),
        };
        self.line(&head);
        self.loops += 1;
        self.line("  b++;");
        self.block();
        self.loops -= 1;
        self.line(&tail);
    }

    fn try_catch(&mut self) {
        self.line("try {");
        self.block();
        self.handlers += 1;
        for _ in 0..self.random.below(4) {
            let (head, value) = caught(self.random);
            let to = self.variable();
            self.line(&format!("}} catch ({head}) {{"));
            self.line(&format!("  {to} += {value};"));
            self.block();
        }
        if self.random.chance(40) {
            self.line("} catch (...) {");
        } else {
            let (head, _) = caught(self.random);
            self.line(&format!("}} catch ({head}) {{"));
        }
        self.block();
        self.handlers -= 1;
        self.line("}");
    }
}
