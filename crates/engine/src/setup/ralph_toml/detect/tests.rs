//! Projects as they are found in the wild, and what is proposed for each.

use super::*;

/// A project: file names, and contents after a `=`.
fn root(files: &[&str]) -> Root {
    let mut root = Root::default();
    for file in files {
        let (name, text) = file.split_once('=').map_or((*file, None), |(name, text)| (name, Some(text)));
        root.names.insert(name.split('/').next().unwrap().to_owned());
        if let Some(text) = text {
            assert!(Root::FILES.contains(&name) || Root::is_python_test(name), "{name} is not read");
            root.contents.insert(name.to_owned(), text.to_owned());
        }
    }
    root
}

fn proposed(files: &[&str]) -> Vec<(String, String)> {
    root(files).proposals().into_iter().map(|one| (one.name, one.command)).collect()
}

/// What it is, its files, and the gates that are proposed.
type Shape = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

#[test]
fn u2_each_kind_of_project_gets_its_own_commands() {
    const NPM: &str =
        r#"package.json={"name": "x", "scripts": {"test": "vitest run", "lint": "eslint .", "dev": "vite", "typecheck": "tsc -p ."}}"#;
    const PLACEHOLDER: &str = r#"package.json={"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
    const CTEST: &str = "cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure";
    #[rustfmt::skip]
    let shapes: &[Shape] = &[
        ("a crate", &["Cargo.toml=[package]\nname = \"x\"", "src"], &[("tests", "cargo test --no-fail-fast")]),
        ("a workspace with lints and a format", &["Cargo.toml=[workspace]\nmembers = []\n[workspace.lints.clippy]\nx = 1", "rustfmt.toml"],
            &[("tests", "cargo test --workspace --no-fail-fast"), ("lint", "cargo clippy --workspace --all-targets -- -D warnings"), ("format", "cargo fmt --all --check")]),
        ("nextest", &["Cargo.toml=[package]", ".config/nextest.toml=[profile.ci]\nx = 1"], &[("tests", "cargo nextest run --no-fail-fast")]),
        ("npm", &[NPM, "package-lock.json"], &[("tests", "npm test"), ("types", "npm run typecheck"), ("lint", "npm run lint")]),
        ("pnpm by its lock", &[NPM, "pnpm-lock.yaml"], &[("tests", "pnpm test"), ("types", "pnpm run typecheck"), ("lint", "pnpm run lint")]),
        ("yarn by its word, beside another lock", &["package-lock.json", r#"package.json={"packageManager": "yarn@4.1.0", "scripts": {"test": "jest"}}"#], &[("tests", "yarn test")]),
        ("bun", &[r#"package.json={"scripts": {"test": "bun test"}}"#, "bun.lock"], &[("tests", "bun run test")]),
        ("npm's placeholder", &[PLACEHOLDER], &[]),
        ("a placeholder beside a Makefile", &[PLACEHOLDER, "Makefile=.PHONY: test\nX := 1\ntest: build\n\tnode --test\n"], &[("tests", "make test")]),
        ("a script that watches, one that does not, one that fixes", &[r#"package.json={"scripts": {"test": "jest --watch", "test:ci": "jest", "lint": "eslint --fix ."}}"#], &[("tests", "npm run test:ci")]),
        ("configured tools without scripts", &[r#"package.json={"devDependencies": {"typescript": "5"}}"#, "tsconfig.json={}", "eslint.config.mjs", "pnpm-lock.yaml"],
            &[("types", "pnpm exec tsc --noEmit"), ("lint", "pnpm exec eslint .")]),
        ("a tsconfig.json that checks nothing by itself", &[r#"package.json={"devDependencies": {"typescript": "5"}}"#, r#"tsconfig.json={"files": [], "references": []}"#], &[]),
        ("pytest with uv", &["pyproject.toml=[project]\n[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\nstrict = true", "uv.lock"],
            &[("tests", "uv run pytest"), ("types", "uv run mypy ."), ("lint", "uv run ruff check")]),
        ("poetry", &["pyproject.toml=[tool.poetry]\nname = 'x'\n[tool.poetry.group.dev.dependencies]\npytest = '*'\n[tool.black]", "poetry.lock"],
            &[("tests", "poetry run pytest"), ("format", "poetry run black --check .")]),
        ("tox alone", &["tox.ini=[tox]\n[testenv]\ncommands = x", "setup.py"], &[("tests", "tox")]),
        ("unittest", &["setup.py", "tests"], &[("tests", "python3 -m unittest discover -v -s tests")]),
        ("a script with a test, and no settings", &["slug.py", "test_slug.py=from slug import slug\n\n\ndef test_it():\n    assert slug('') == ''\n"], &[("tests", "python3 -m pytest")]),
        ("a folder of tests for pytest", &["requirements.txt=requests", "setup.py", "tests/test_x.py=import pytest\n"], &[("tests", "python3 -m pytest")]),
        ("a folder of tests for unittest", &["slug.py", "tests/test_x.py=import unittest\n\n\nclass T(unittest.TestCase):\n    def test_x(self): ...\n"],
            &[("tests", "python3 -m unittest discover -v -s tests")]),
        ("a test for unittest beside its script", &["slug.py", "slug_test.py=from unittest import TestCase\n", "uv.lock"], &[("tests", "uv run python -m unittest discover -v")]),
        ("Django", &["manage.py", "requirements.txt=django"], &[("tests", "python3 manage.py test")]),
        ("go", &["go.mod", "go.sum", ".golangci.yml"], &[("tests", "go test -v ./..."), ("lint", "golangci-lint run")]),
        ("go with a Makefile", &["go.mod", "Makefile=test:\n\tgo test ./...\nlint:\n\tgolangci-lint run\n"], &[("tests", "go test -v ./..."), ("lint", "make lint")]),
        ("Maven with its wrapper", &["pom.xml", "mvnw"], &[("tests", "./mvnw -B test")]),
        ("Maven", &["pom.xml"], &[("tests", "mvn -B test")]),
        ("Gradle with its wrapper", &["build.gradle.kts", "gradlew", "settings.gradle.kts"], &[("tests", "./gradlew --console=plain test")]),
        ("dotnet", &["Shop.sln", "src"], &[("tests", "dotnet test")]),
        ("mix", &["mix.exs", ".formatter.exs"], &[("tests", "mix test"), ("format", "mix format --check-formatted")]),
        ("RSpec", &["Gemfile=gem 'rspec'", "spec", ".rubocop.yml"], &[("tests", "bundle exec rspec"), ("lint", "bundle exec rubocop")]),
        ("rake", &["Rakefile=require 'rake/testtask'\nRake::TestTask.new"], &[("tests", "rake test")]),
        ("PHPUnit", &["composer.json={}", "phpunit.xml.dist", "phpstan.neon"], &[("tests", "vendor/bin/phpunit"), ("types", "vendor/bin/phpstan analyse --no-progress")]),
        ("composer", &[r#"composer.json={"scripts": {"test": ["@lint", "phpunit"]}}"#, "phpunit.xml"], &[("tests", "composer run-script test")]),
        ("CMake", &["CMakeLists.txt=project(x)\nenable_testing()"], &[("tests", CTEST)]),
        ("CMake without tests", &["CMakeLists.txt=project(x)"], &[]),
        ("deno", &[r#"deno.json={"tasks": {"dev": "x"}, "lint": {}}"#], &[("tests", "deno test"), ("lint", "deno lint")]),
        ("deno with a task", &[r#"deno.json={"tasks": {"test": "deno test -A"}}"#], &[("tests", "deno task test")]),
        ("swift", &["Package.swift"], &[("tests", "swift test")]),
        ("just", &["justfile=set shell := ['sh']\ndefault: test\n@test filter='':\n  x\nlint:\n  y"], &[("tests", "just test"), ("lint", "just lint")]),
        ("a Makefile with only a check", &["Makefile=all: x\ncheck: all\n\t./run"], &[("tests", "make check")]),
        ("two languages", &["Cargo.toml=[package]\n[lints.rust]", r#"package.json={"scripts": {"test": "jest", "lint": "eslint"}}"#],
            &[("tests", "npm test"), ("cargo tests", "cargo test --no-fail-fast"), ("lint", "npm run lint"), ("cargo lint", "cargo clippy --all-targets -- -D warnings")]),
        ("nothing that is known", &["README.md", "notes"], &[]),
        ("broken files", &["package.json={", "composer.json=[]", "deno.json=1", "pyproject.toml=[[[", "Makefile=:\n::\n=:"], &[("tests", "deno test")]),
    ];
    for (shape, files, expected) in shapes {
        let expected: Vec<(String, String)> = expected.iter().map(|(name, command)| ((*name).to_owned(), (*command).to_owned())).collect();
        assert_eq!(proposed(files), expected, "{shape}");
    }
}

#[test]
fn u2_a_proposal_says_why() {
    let why = |files: &[&str]| root(files).proposals().into_iter().map(|one| one.why).collect::<Vec<_>>();
    assert_eq!(why(&[r#"package.json={"scripts": {"test": "jest"}}"#]), ["package.json has a script `test`"]);
    assert_eq!(why(&["Cargo.toml=[package]\n[lints]"]), ["there is Cargo.toml", "Cargo.toml has a section [lints]"]);
    // u2: the section that is there, not the one above it.
    assert_eq!(why(&["pyproject.toml=[tool.pytest.ini_options]"]), ["pyproject.toml has a section [tool.pytest.ini_options]"]);
    assert_eq!(why(&["requirements.txt=pytest==8"]), ["requirements.txt names pytest"]);
    assert_eq!(why(&["justfile=test:"]), ["justfile has a target `test`"]);
}

#[test]
fn u2_proposals_are_few_and_can_stand_in_one_file() {
    let all: Vec<&str> = vec![
        "Cargo.toml=[package]\n[lints]",
        r#"package.json={"scripts": {"test": "jest", "lint": "x", "typecheck": "y", "format:check": "z"}}"#,
        "pyproject.toml=[tool.pytest]\n[tool.ruff]\n[tool.mypy]",
        "go.mod",
        "pom.xml",
        "mix.exs",
    ];
    let found = root(&all).proposals();
    assert_eq!(found.len(), 4);
    let text = Proposal::ralph_toml(&found, true);
    assert_eq!(ralph_core::config::Config::parse(text.as_bytes()).unwrap().gates.len(), 4, "{text}");
}

#[test]
fn u2_every_row_can_be_seen_and_every_file_it_needs_is_read() {
    for row in ROWS {
        for clue in row.clues {
            match clue {
                Says(files, _) => assert!(files.iter().all(|file| Root::FILES.contains(file)), "{}: {}", row.kind, row.command),
                Table(file, _) => assert!(Root::FILES.contains(file), "{}: {file}", row.kind),
                Named(_) | Ending(_) | PythonTest(_) => {}
            }
        }
        let left = Root::default().filled(row.command).replace("{{.Dir}}", "");
        assert!(!left.contains('{'), "{left}");
    }
}
