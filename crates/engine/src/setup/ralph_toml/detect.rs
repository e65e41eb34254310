//! Gates that fit a project, guessed from the files at its root: what `ralph init` can propose.
//!
//! Two tables. `SCRIPTS` has the names that people give to what they run themselves (entries of `package.json`, targets of a Makefile); their own
//! word counts first. `ROWS` has the kinds of projects, how each is recognised, and its commands. A linter is proposed only where it is configured.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use ralph_core::text::opening;
use serde_json::Value;

/// More gates than this are not proposed.
const MOST: usize = 4;

/// What is known about a project.
#[derive(Debug, Clone, Default)]
pub(super) struct Root {
    /// The names of the files and folders at the root.
    pub names: BTreeSet<String>,
    /// The contents of those of [`Root::FILES`] that exist, and of some of Python's tests.
    pub contents: BTreeMap<String, String>,
}

/// A gate that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proposal {
    /// No two of a project have the same.
    pub name: String,
    /// A line for the shell.
    pub command: String,
    /// The reason, for people: ``package.json has a script `test` ``.
    pub why: String,
    /// It can take minutes, because it builds first.
    pub is_slow: bool,
}

/// What a gate is for, in the order in which gates are proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Aim {
    Tests,
    Types,
    Lint,
    Format,
}

use Aim::{Format, Lint, Tests, Types};

impl Aim {
    fn name(self) -> &'static str {
        match self {
            Tests => "tests",
            Types => "types",
            Lint => "lint",
            Format => "format",
        }
    }
}

/// Something that is seen at the root.
enum Clue {
    /// One of these is there.
    Named(&'static [&'static str]),
    /// A file whose name ends like this is there.
    Ending(&'static [&'static str]),
    /// One of these files has these words.
    Says(&'static [&'static str], &'static str),
    /// This file has the table `[name]`, or one below it.
    Table(&'static str, &'static str),
    /// A file of Python's tests has these words.
    PythonTest(&'static str),
}

use Clue::{Ending, Named, PythonTest, Says, Table};

/// A kind of project, and a command that proves something about it. All clues must be seen; the first is the reason.
struct Row {
    kind: &'static str,
    aim: Aim,
    clues: &'static [Clue],
    /// What stands in braces is in `PLACEHOLDERS`.
    command: &'static str,
}

const fn row(kind: &'static str, aim: Aim, clues: &'static [Clue], command: &'static str) -> Row {
    Row { kind, aim, clues, command }
}

const PYTHON: &[&str] = &["pyproject.toml", "setup.py", "setup.cfg"];
const PYTHON_NEEDS: &[&str] =
    &["pyproject.toml", "requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "Pipfile", "setup.cfg", "setup.py"];
const GEMFILE: &[&str] = &["Gemfile"];
const COMPOSER: &[&str] = &["composer.json"];
const PACKAGE: Clue = Named(&["package.json"]);

/// Of one kind and aim the first row that fits counts.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("cargo", Tests, &[Named(&["Cargo.toml"]), Table(".config/nextest.toml", "profile")], "cargo nextest run{workspace} --no-fail-fast"),
    row("cargo", Tests, &[Named(&["Cargo.toml"])], "cargo test{workspace} --no-fail-fast"),
    row("cargo", Lint, &[Named(&["clippy.toml", ".clippy.toml"]), Named(&["Cargo.toml"])], "cargo clippy{workspace} --all-targets -- -D warnings"),
    row("cargo", Lint, &[Table("Cargo.toml", "lints")], "cargo clippy{workspace} --all-targets -- -D warnings"),
    row("cargo", Lint, &[Table("Cargo.toml", "workspace.lints")], "cargo clippy{workspace} --all-targets -- -D warnings"),
    row("cargo", Format, &[Named(&["rustfmt.toml", ".rustfmt.toml"]), Named(&["Cargo.toml"])], "cargo fmt --all --check"),

    row("node", Tests, &[Table("bunfig.toml", "test")], "bun test"),
    row("node", Types, &[Named(&["tsconfig.json"]), Says(&["package.json"], "\"typescript\"")], "{node}tsc --noEmit"),
    row("node", Lint, &[Named(&["eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts",
        ".eslintrc", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yml", ".eslintrc.yaml"]), PACKAGE], "{node}eslint ."),
    row("node", Lint, &[Named(&["biome.json", "biome.jsonc"]), PACKAGE], "{node}biome check ."),

    row("deno", Tests, &[Named(&["deno.json", "deno.jsonc"])], "deno test"),
    row("deno", Lint, &[Says(&["deno.json", "deno.jsonc"], "\"lint\"")], "deno lint"),

    row("python", Tests, &[Named(&["pytest.ini", ".pytest.ini", "conftest.py"])], "{python}pytest"),
    row("python", Tests, &[Table("pyproject.toml", "tool.pytest")], "{python}pytest"),
    row("python", Tests, &[Table("setup.cfg", "tool:pytest")], "{python}pytest"),
    row("python", Tests, &[Table("tox.ini", "pytest")], "{python}pytest"),
    row("python", Tests, &[Says(PYTHON_NEEDS, "pytest")], "{python}pytest"),
    row("python", Tests, &[Named(&["manage.py"])], "{python}python manage.py test"),
    row("python", Tests, &[Table("tox.ini", "testenv")], "{python}tox"),
    row("python", Tests, &[Named(&["tox.ini", "tox.toml"])], "{python}tox"),
    row("python", Tests, &[Table("pyproject.toml", "tool.tox")], "{python}tox"),
    row("python", Tests, &[Named(&["noxfile.py"])], "{python}nox"),
    // Without a word in any setting, the tests themselves tell which program they are for.
    row("python", Tests, &[PythonTest("import pytest")], "{python}pytest"),
    row("python", Tests, &[PythonTest("\ndef test_")], "{python}pytest"),
    row("python", Tests, &[PythonTest("unittest"), Named(&["tests"])], "{python}python -m unittest discover -v -s tests"),
    row("python", Tests, &[PythonTest("unittest"), Named(&["test"])], "{python}python -m unittest discover -v -s test"),
    row("python", Tests, &[PythonTest("unittest")], "{python}python -m unittest discover -v"),
    row("python", Tests, &[Named(&["tests"]), Named(PYTHON)], "{python}python -m unittest discover -v -s tests"),
    row("python", Types, &[Table("mypy.ini", "mypy"), Says(&["mypy.ini"], "files")], "{python}mypy"),
    row("python", Types, &[Named(&["mypy.ini", ".mypy.ini"])], "{python}mypy ."),
    row("python", Types, &[Table("pyproject.toml", "tool.mypy"), Says(&["pyproject.toml"], "\nfiles =")], "{python}mypy"),
    row("python", Types, &[Table("pyproject.toml", "tool.mypy")], "{python}mypy ."),
    row("python", Types, &[Table("setup.cfg", "mypy")], "{python}mypy ."),
    row("python", Types, &[Named(&["pyrightconfig.json"])], "{python}pyright"),
    row("python", Types, &[Table("pyproject.toml", "tool.pyright")], "{python}pyright"),
    row("python", Lint, &[Named(&["ruff.toml", ".ruff.toml"])], "{python}ruff check"),
    row("python", Lint, &[Table("pyproject.toml", "tool.ruff")], "{python}ruff check"),
    row("python", Lint, &[Named(&[".flake8"])], "{python}flake8"),
    row("python", Lint, &[Table("setup.cfg", "flake8")], "{python}flake8"),
    row("python", Lint, &[Table("tox.ini", "flake8")], "{python}flake8"),
    row("python", Format, &[Table("pyproject.toml", "tool.ruff.format")], "{python}ruff format --check"),
    row("python", Format, &[Table("pyproject.toml", "tool.black")], "{python}black --check ."),

    row("go", Tests, &[Named(&["go.mod"])], "go test -v ./..."),
    row("go", Tests, &[Named(&["go.work"])], "go list -f '{{.Dir}}/...' -m | xargs go test -v"),
    row("go", Lint, &[Named(&[".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"])], "golangci-lint run"),

    row("maven", Tests, &[Named(&["pom.xml"])], "{mvn} -B test"),
    row("gradle", Tests, &[Named(&["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"])], "{gradle} --console=plain test"),
    row("dotnet", Tests, &[Ending(&[".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"])], "dotnet test"),

    row("mix", Tests, &[Named(&["mix.exs"])], "mix test"),
    row("mix", Lint, &[Named(&[".credo.exs"]), Named(&["mix.exs"])], "mix credo"),
    row("mix", Format, &[Named(&[".formatter.exs"]), Named(&["mix.exs"])], "mix format --check-formatted"),

    row("ruby", Tests, &[Named(&[".rspec"])], "{ruby}rspec"),
    row("ruby", Tests, &[Says(GEMFILE, "rspec"), Named(&["spec"])], "{ruby}rspec"),
    row("ruby", Tests, &[Says(GEMFILE, "rails"), Named(&["test"])], "{ruby}rails test"),
    row("ruby", Tests, &[Says(&["Rakefile"], "TestTask")], "{ruby}rake test"),
    row("ruby", Tests, &[Says(&["Rakefile"], "task :test")], "{ruby}rake test"),
    row("ruby", Tests, &[Says(&["Rakefile"], "task test:")], "{ruby}rake test"),
    row("ruby", Tests, &[Says(&["Rakefile"], "RSpec::Core::RakeTask")], "{ruby}rake spec"),
    row("ruby", Lint, &[Named(&[".rubocop.yml"])], "{ruby}rubocop"),

    row("php", Tests, &[Says(COMPOSER, "\"pestphp/pest\"")], "vendor/bin/pest"),
    row("php", Tests, &[Named(&["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"])], "vendor/bin/phpunit"),
    row("php", Types, &[Named(&["phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon"])], "vendor/bin/phpstan analyse --no-progress"),
    row("php", Lint, &[Named(&["phpcs.xml", "phpcs.xml.dist", ".phpcs.xml", ".phpcs.xml.dist"])], "vendor/bin/phpcs"),

    row("swift", Tests, &[Named(&["Package.swift"])], "swift test"),
    row("swift", Lint, &[Named(&[".swiftlint.yml"])], "swiftlint lint --strict --quiet"),

    row("cmake", Tests, &[Says(&["CMakeLists.txt"], "enable_testing")], CTEST),
    row("cmake", Tests, &[Says(&["CMakeLists.txt"], "include(CTest)")], CTEST),
];

const CTEST: &str = "cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure";

/// What stands for a placeholder: the first whose clue is seen, else the last word.
type Placeholder = (&'static str, &'static [(Clue, &'static str)], &'static str);

#[rustfmt::skip]
const PLACEHOLDERS: &[Placeholder] = &[
    ("{workspace}", &[(Table("Cargo.toml", "workspace"), " --workspace")], ""),
    ("{python}", &[
        (Named(&["uv.lock"]), "uv run "), (Named(&["poetry.lock"]), "poetry run "), (Named(&["pdm.lock"]), "pdm run "),
        (Table("pyproject.toml", "tool.uv"), "uv run "), (Table("pyproject.toml", "tool.poetry"), "poetry run "),
        (Named(&["Pipfile"]), "pipenv run "),
    ], ""),
    ("{node}", &[
        (Says(&["package.json"], "\"pnpm@"), "pnpm exec "), (Says(&["package.json"], "\"yarn@"), "yarn "), (Says(&["package.json"], "\"bun@"), "bunx "),
        (Named(&["pnpm-lock.yaml"]), "pnpm exec "), (Named(&["yarn.lock"]), "yarn "), (Named(&["bun.lock", "bun.lockb"]), "bunx "),
    ], "npx --no-install "),
    ("{ruby}", &[(Named(GEMFILE), "bundle exec ")], ""),
    ("{mvn}", &[(Named(&["mvnw"]), "./mvnw")], "mvn"),
    ("{gradle}", &[(Named(&["gradlew"]), "./gradlew")], "gradle"),
];

/// The names that people give to their own commands, the best first.
const SCRIPTS: &[(Aim, &[&str])] = &[
    (Tests, &["test", "tests", "test:ci", "test:unit", "test-ci", "unit"]),
    (Types, &["typecheck", "type-check", "types", "check-types", "check:types", "tsc"]),
    (Lint, &["lint", "lint:check", "lint:ci", "eslint"]),
    (Format, &["format:check", "check:format", "fmt:check", "format-check", "fmt-check"]),
];

struct Found {
    kind: &'static str,
    aim: Aim,
    command: String,
    why: String,
}

/// The first of an aim is called like it, further ones like their kind, too.
fn named(found: Vec<Found>) -> Vec<Proposal> {
    let mut taken = BTreeSet::new();
    let name = |one: Found| {
        let plain = one.aim.name();
        let name = if taken.insert(one.aim) { plain.to_owned() } else { format!("{} {plain}", one.kind) };
        let is_slow = one.aim == Tests || (one.kind, one.aim) == ("cargo", Lint);
        Proposal { name, command: one.command, why: one.why, is_slow }
    };
    found.into_iter().map(name).collect()
}

impl Root {
    /// The files whose contents help, from the project's root. None of them has to exist.
    pub(super) const FILES: &[&str] = &[
        "Cargo.toml",
        ".config/nextest.toml",
        "package.json",
        "tsconfig.json",
        "bunfig.toml",
        "deno.json",
        "deno.jsonc",
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
        "tox.ini",
        "mypy.ini",
        "Pipfile",
        "requirements.txt",
        "requirements-dev.txt",
        "dev-requirements.txt",
        "Gemfile",
        "Rakefile",
        "composer.json",
        "CMakeLists.txt",
        "GNUmakefile",
        "makefile",
        "Makefile",
        "justfile",
        "Justfile",
        ".justfile",
    ];

    /// Whether a file holds tests of Python's, by its name.
    pub(super) fn is_python_test(path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path).strip_suffix(".py");
        name.is_some_and(|name| name.starts_with("test_") || name.ends_with("_test"))
    }

    /// The gates that fit, in the order in which they should be measured.
    pub(super) fn proposals(&self) -> Vec<Proposal> {
        let mut found = Vec::new();
        for (kind, scripts) in [("node", package_scripts(self)), ("deno", deno_tasks(self)), ("php", composer_scripts(self))] {
            found.extend(scripts.into_iter().map(|(aim, command, why)| Found { kind, aim, command, why }));
        }
        for row in ROWS {
            let is_known = found.iter().any(|other| (other.kind, other.aim) == (row.kind, row.aim));
            let Some(why) = row.clues.first().and_then(|clue| self.sees(clue)).filter(|_| !is_known && self.fits(row)) else { continue };
            found.push(Found { kind: row.kind, aim: row.aim, command: self.filled(row.command), why });
        }
        // A Makefile mostly calls what was found already, and hides the names of the tests.
        for (aim, command, why) in targets(self) {
            if !found.iter().any(|other| other.aim == aim) {
                found.push(Found { kind: "make", aim, command, why });
            }
        }
        found.sort_by_key(|one| one.aim);
        found.truncate(MOST);
        named(found)
    }

    fn text(&self, file: &str) -> Option<&str> {
        self.contents.get(file).map(String::as_str)
    }

    /// What is seen, in words.
    fn sees<'t>(&'t self, clue: &Clue) -> Option<String> {
        match clue {
            Named(names) => names.iter().find(|name| self.names.contains(**name)).map(|name| format!("there is {name}")),
            Ending(ends) => {
                let name = self.names.iter().find(|name| ends.iter().any(|end| name.ends_with(end)))?;
                Some(format!("there is {name}"))
            }
            Says(files, words) => {
                let file = files.iter().find(|file| self.text(file).is_some_and(|text| text.contains(words)))?;
                Some(format!("{file} names {}", words.trim().trim_matches('"')))
            }
            PythonTest(words) => {
                let is_said = |(file, text): &(&String, &String)| Self::is_python_test(file) && text.contains(words);
                self.contents.iter().find(is_said).map(|(file, _)| format!("there is {file}"))
            }
            Table(file, table) => {
                let header = |line: &'t str| -> Option<&'t str> {
                    let name = line.trim_start().strip_prefix('[')?.trim_start_matches('[').split(']').next()?;
                    let below = name.trim().strip_prefix(table)?;
                    (below.is_empty() || below.starts_with(['.', ':'])).then_some(name.trim())
                };
                self.text(file)?.lines().find_map(header).map(|name| format!("{file} has a section [{}]", opening(name, 60)))
            }
        }
    }

    fn fits(&self, row: &Row) -> bool {
        // A tsconfig.json that only refers to others checks nothing by itself.
        let only_refers =
            || row.command.ends_with("tsc --noEmit") && self.text("tsconfig.json").is_some_and(|text| text.contains("\"references\""));
        row.clues.iter().all(|clue| self.sees(clue).is_some()) && !only_refers()
    }

    fn filled(&self, command: &str) -> String {
        let fill = |command: String, (mark, choices, otherwise): &Placeholder| {
            let choice = choices.iter().find(|(clue, _)| self.sees(clue).is_some()).map_or(*otherwise, |(_, words)| words);
            command.replace(mark, choice)
        };
        let command = PLACEHOLDERS.iter().fold(command.to_owned(), fill);
        match command.strip_prefix("python ") {
            // Where nothing brings one along, most systems have it under this name only.
            Some(rest) => format!("python3 {rest}"),
            // Unlike the program, the module also finds what is in the project's own folder.
            None if command == "pytest" => "python3 -m pytest".to_owned(),
            None => command,
        }
    }

    fn json(&self, file: &str) -> Option<Value> {
        serde_json::from_str(self.text(file)?.trim_start_matches('\u{feff}')).ok()
    }
}

type Script = (Aim, String, String);

/// For each aim the best of the names that are there.
fn best(mut has: impl FnMut(&str) -> bool, mut script: impl FnMut(&str) -> (String, String)) -> Vec<Script> {
    let of_aim = |(aim, names): &(Aim, &'static [&'static str])| {
        let name = names.iter().find(|name| has(name))?;
        let (command, why) = script(name);
        Some((*aim, command, why))
    };
    SCRIPTS.iter().filter_map(of_aim).collect()
}

fn package_scripts(root: &Root) -> Vec<Script> {
    let Some(package) = root.json("package.json") else { return Vec::new() };
    let manager = match root.filled("{node}").split(' ').next() {
        Some("pnpm") => "pnpm",
        Some("yarn") => "yarn",
        Some("bunx") => "bun",
        _ => "npm",
    };
    let has = |name: &str| package["scripts"][name].as_str().is_some_and(proves);
    best(has, |name| {
        // `bun test` is bun's own test program.
        let run = if name == "test" && manager != "bun" { "" } else { "run " };
        (format!("{manager} {run}{name}"), format!("package.json has a script `{name}`"))
    })
}

fn deno_tasks(root: &Root) -> Vec<Script> {
    let Some((file, deno)) = ["deno.json", "deno.jsonc"].into_iter().find_map(|file| Some((file, root.json(file)?))) else {
        return Vec::new();
    };
    let line = |task: &Value| task.as_str().or_else(|| task["command"].as_str()).map(str::to_owned);
    best(
        |name| line(&deno["tasks"][name]).as_deref().is_some_and(proves),
        |name| (format!("deno task {name}"), format!("{file} has a task `{name}`")),
    )
}

fn composer_scripts(root: &Root) -> Vec<Script> {
    let Some(composer) = root.json("composer.json") else { return Vec::new() };
    let has = |name: &str| match &composer["scripts"][name] {
        Value::String(line) => proves(line),
        Value::Array(lines) => !lines.is_empty() && lines.iter().all(|line| line.as_str().is_some_and(proves)),
        _ => false,
    };
    best(has, |name| (format!("composer run-script {name}"), format!("composer.json has a script `{name}`")))
}

/// Whether a script can serve as a proof: it is no placeholder, ends by itself, and changes no file.
fn proves(line: &str) -> bool {
    let is_placeholder = line.contains("no test specified") || matches!(line.trim(), "" | "true" | "exit 0" | ":") || {
        let first = line.trim_start().split(' ').next();
        first == Some("echo") && !line.contains("&&") && !line.contains(';')
    };
    let word = |word: &str| matches!(word, "--watch" | "--watchAll" | "-w" | "--fix" | "--write" | "watch" | "--ui");
    !is_placeholder && !line.split_whitespace().any(word)
}

/// Targets of a Makefile or a justfile.
fn targets(root: &Root) -> Vec<Script> {
    const RUNNERS: [(&str, &[&str]); 2] =
        [("just", &["justfile", "Justfile", ".justfile"]), ("make", &["GNUmakefile", "makefile", "Makefile"])];
    let mut all: Vec<Script> = Vec::new();
    for (program, files) in RUNNERS {
        let Some((file, text)) = files.iter().find_map(|file| Some((file, root.text(file)?))) else { continue };
        let there: BTreeSet<&str> = text.lines().flat_map(names_of_target).collect();
        let found = best(|name| there.contains(name), |name| (format!("{program} {name}"), format!("{file} has a target `{name}`")));
        let check = || there.contains("check").then(|| (Tests, format!("{program} check"), format!("{file} has a target `check`")));
        let instead = if found.iter().any(|(aim, ..)| *aim == Tests) { None } else { check() };
        all.extend(found.into_iter().chain(instead));
    }
    all
}

/// `test: build`, `test lint: build`, and of a justfile `@test filter='':`.
fn names_of_target(line: &str) -> impl Iterator<Item = &str> {
    let is_rule = |(_, after): &(&str, &str)| !after.starts_with('=') && !after.starts_with(":=");
    let is_target = !line.starts_with([' ', '\t', '#', '.']);
    let (names, _) = line.split_once(':').filter(is_rule).filter(|_| is_target).unwrap_or_default();
    names.trim_start_matches('@').split_whitespace()
}
