//! Build files, and what is read in them.

use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

/// Name of the build file, command and programs of the first way.
fn first(files: &[(&str, &str)]) -> (String, String, Vec<String>) {
    let directory = folder(files);
    let way = ways(directory.path()).into_iter().next().expect("a way");
    let name = way.file.file_name().unwrap().to_str().unwrap().to_owned();
    let programs = way.programs.iter().map(|p| p.to_str().unwrap().to_owned());
    (name, way.command.clone(), programs.collect())
}

#[test]
fn makefiles() {
    let (_, command, programs) = first(&[(
        "Makefile",
        "EXE = lulesh2.0\nall: $(EXE) tools\nOBJ = a.o \\\n b.o\n$(EXE): $(OBJ) # linked\n\t@echo x\n\t$(CXX) $(OBJ) -o $@\n\
         %.o: %.cc\n\t$(CXX) -c -o $@ $<\ntools: tool\ntool: tool.o\n\t$(CC) tool.o -lm -o tool\nlib.so: a.o\n\tcc -shared a.o -o lib.so\n",
    )]);
    assert_eq!(command, "make");
    assert_eq!(programs, ["lulesh2.0", "tool"]);
    // The rules that make knows, and what was made before.
    let (_, command, programs) = first(&[("makefile", "app: app.o util.o\n"), ("app.o", "")]);
    assert_eq!(
        (command.as_str(), &programs[..]),
        ("make -B", &["app".to_owned()][..])
    );
    let depends = "-include .depend\napp: app.o\n";
    assert_eq!(first(&[("Makefile", depends), ("app.o", "")]).1, "make");
    let cleans = format!("{depends}clean:\n\trm -f *.o app\n");
    let anew = first(&[("Makefile", &cleans), ("app.o", "")]).1;
    assert_eq!(anew, "make clean && make");
    let odd = "A = $(A) x\nB = $(C)\nC = $(B)$(B)\n$(B): y\n\t$(nothing\n:\n=\n\tz\n";
    assert!(first(&[("Makefile", odd)]).2.is_empty());
}

#[test]
fn cmake_meson_and_ninja() {
    let (name, command, programs) = first(&[
        (
            "CMakeLists.txt",
            "project(Heat C)\n# add_executable(no x.c)\nadd_subdirectory(src)\nadd_executable(run_tests t.c)\nadd_library(l l.c)\n",
        ),
        (
            "src/CMakeLists.txt",
            "ADD_EXECUTABLE( ${PROJECT_NAME}\n  main.c)\nadd_executable(heat::x ALIAS Heat)",
        ),
        ("Makefile", "x: x.o\n"),
        ("main.c", "int main(void) { return 0; }"),
    ]);
    assert_eq!(name, "CMakeLists.txt");
    assert!(
        command.starts_with("cmake -S . -B build-cere "),
        "{command}"
    );
    assert_eq!(programs, ["build-cere/src/Heat", "build-cere/run_tests"]);
    let bin = "set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)\nadd_executable(a a.c)";
    assert_eq!(first(&[("CMakeLists.txt", bin)]).2, ["build-cere/bin/a"]);
    let meson = first(&[
        ("meson.build", "project('a', 'c')\nsubdir('src')\n"),
        (
            "src/meson.build",
            "executable('waves', 'w.c', install : true)",
        ),
    ]);
    assert_eq!(meson.2, ["build-cere/src/waves"]);
    let ninja = "rule x\nbuild a.o: cc a.c\nbuild liba.so: C_SHARED_LIBRARY_LINKER__a a.o\nbuild app: C_EXECUTABLE_LINKER__app a.o\n";
    assert_eq!(first(&[("build.ninja", ninja)]).2, ["app"]);
}

#[test]
fn cargo_packages() {
    let package = |name: &str| format!("[package]\nname = \"{name}\"\n");
    let (_, command, programs) = first(&[
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"crates/*\", \"tool\"]\n",
        ),
        ("crates/a/Cargo.toml", &package("a")),
        ("crates/a/src/main.rs", ""),
        ("crates/b/Cargo.toml", &package("b")),
        ("crates/b/src/lib.rs", ""),
        (
            "tool/Cargo.toml",
            &(package("t") + "[[bin]]\nname = \"tool\"\n"),
        ),
        ("tool/src/bin/second.rs", ""),
    ]);
    assert!(command.starts_with("cargo build --release"), "{command}");
    let at = |name: &str| format!("target/cere/release/{name}");
    assert_eq!(programs, [at("a"), at("tool"), at("second")]);
    assert!(ways(folder(&[("Cargo.toml", "[")]).path()).is_empty());
}

#[test]
fn sources_without_a_build_file() {
    let one = first(&[("sweep.f90", "!$omp parallel do\n"), ("README", "")]);
    assert_eq!(one.1, "gfortran -O2 -g -fopenmp sweep.f90 -o sweep -lm");
    let two = first(&[("main.cpp", ""), ("a b.cpp", "")]);
    assert_eq!(two.1, "c++ -O2 -g 'a b.cpp' main.cpp -o main -lm");
    for none in [
        &[("a.c", ""), ("b.c", "")][..],
        &[("main.c", ""), ("x.f90", "")],
        &[],
    ] {
        assert!(ways(folder(none).path()).is_empty(), "{none:?}");
    }
}
