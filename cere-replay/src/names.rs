//! Names of C++ functions in the source's terms.

use cpp_demangle::{DemangleOptions, Symbol};
use std::fmt;

/// Bytes of a demangled name for each byte of the symbol, at most; real names have up to 10. Symbols of a package are not
/// trusted: a short one can stand for a name that fills the memory.
const GROWTH: usize = 64;

/// Text of a bounded length.
struct Bounded {
    text: String,
    limit: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if part.len() > self.limit - self.text.len() {
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

/// The name of the function `symbol` without parameters and return type; other symbols as they are.
pub fn demangle(symbol: &str) -> String {
    let options = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .hide_expression_literal_types();
    let mut name = Bounded {
        text: String::new(),
        limit: symbol.len().saturating_mul(GROWTH),
    };
    let parsed = symbol.starts_with("_Z").then(|| Symbol::new(symbol).ok());
    let written = parsed
        .flatten()
        .is_some_and(|parsed| parsed.structured_demangle(&mut name, &options).is_ok());
    match written {
        true => name.text,
        false => symbol.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_in_the_source() {
        let names = [
            ("main", "main"),
            ("_Zx", "_Zx"),
            ("Zebra", "Zebra"),
            ("_ZL4keepd", "keep"),
            ("_Z3sumIdET_PKS0_m", "sum<double>"),
            ("_ZN5FieldC2Em", "Field::Field"),
            ("_ZNK4GridILj3EE2atEi", "Grid<3>::at"),
        ];
        for (symbol, name) in names {
            assert_eq!(demangle(symbol), name);
        }
    }

    #[test]
    fn a_name_that_doubles_many_times_stays_as_it_is() {
        let mut symbol = "_Z1fI1AI1BS0_E".to_owned();
        for number in 2..36 {
            let digit = char::from_digit(number, 36).unwrap().to_ascii_uppercase();
            symbol += &format!("S0_IS{digit}_S{digit}_E");
        }
        symbol += "Evv";
        assert_eq!(demangle(&symbol), symbol);
    }
}
