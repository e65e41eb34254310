//! What `ralph init` makes of projects as they really look: their usual files together, those that do not matter beside those that do. What it prints and
//! writes for each is kept in `real_shapes.txt`.

use std::{fmt::Write as _, os::unix::fs::PermissionsExt};

use ralph_testkit::pty::Pty;

use super::{guide::SOON, *};

/// A kind of project, and its files with what matters in them.
type Shape = (&'static str, &'static [(&'static str, &'static str)]);

const VITE: &str = r#"{
  "name": "shop",
  "private": true,
  "type": "module",
  "scripts": {
    "dev": "vite",
    "build": "tsc -b && vite build",
    "lint": "eslint .",
    "preview": "vite preview",
    "test": "vitest run"
  },
  "devDependencies": { "eslint": "^9.30.0", "typescript": "~5.8.3", "vite": "^7.0.0", "vitest": "^3.2.0" }
}
"#;
const NEXT: &str = r#"{
  "name": "web",
  "scripts": { "dev": "next dev", "build": "next build", "start": "next start", "lint": "next lint", "typecheck": "tsc --noEmit", "test": "jest --ci", "test:watch": "jest --watch" },
  "packageManager": "pnpm@10.12.1"
}
"#;
const EXPRESS: &str = r#"{
  "name": "api",
  "version": "1.0.0",
  "main": "index.js",
  "scripts": { "start": "node index.js", "test": "mocha --exit test", "lint": "eslint --fix ." },
  "dependencies": { "express": "^5.1.0" }
}
"#;
const PYPROJECT: &str = r#"[project]
name = "shop"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["httpx>=0.28"]

[dependency-groups]
dev = ["pytest>=8.4", "ruff>=0.12", "mypy>=1.16"]

[tool.pytest.ini_options]
testpaths = ["tests"]

[tool.ruff]
line-length = 100

[tool.mypy]
strict = true
files = ["src"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
"#;
const SLUG: &str = "from slug import slug\n\n\ndef test_simple():\n    assert slug(\"Hello World\") == \"hello-world\"\n";
const CARGO: &str = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n\n[workspace.lints.clippy]\npedantic = \"warn\"\n";
const GO_MAKE: &str = ".PHONY: build test lint\n\nbuild:\n\tgo build ./...\n\ntest:\n\tgo test ./...\n\nlint:\n\tgolangci-lint run\n";
const POM: &str = "<?xml version=\"1.0\"?>\n<project><modelVersion>4.0.0</modelVersion><artifactId>shop</artifactId></project>\n";
const GEMFILE: &str = "source \"https://rubygems.org\"\n\ngem \"rails\", \"~> 8.0\"\n\ngroup :development, :test do\n  gem \"rspec-rails\"\n  gem \"rubocop-rails-omakase\", require: false\nend\n";
const COMPOSER: &str = r#"{
  "name": "laravel/laravel",
  "type": "project",
  "require": { "php": "^8.2", "laravel/framework": "^12.0" },
  "require-dev": { "phpunit/phpunit": "^11.5.3", "laravel/pint": "^1.13" },
  "scripts": { "dev": ["npx concurrently \"php artisan serve\" \"npm run dev\""], "test": ["@php artisan config:clear --ansi", "@php artisan test"] }
}
"#;
const LARAVEL_NPM: &str = r#"{ "private": true, "type": "module", "scripts": { "build": "vite build", "dev": "vite" } }"#;
const CMAKE: &str = "cmake_minimum_required(VERSION 3.20)\nproject(shop CXX)\nadd_subdirectory(src)\ninclude(CTest)\nif(BUILD_TESTING)\n  add_subdirectory(tests)\nendif()\n";

#[rustfmt::skip]
const SHAPES: [Shape; 16] = [
    ("A Rust workspace", &[("Cargo.toml", CARGO), ("Cargo.lock", ""), ("rustfmt.toml", "max_width = 100\n"), ("crates/core/Cargo.toml", "[package]\nname = \"core\"\n"), (".github/workflows/ci.yml", "on: push\n")]),
    ("A web app of Vite's template, with tests", &[("package.json", VITE), ("package-lock.json", "{}"), ("tsconfig.json", "{\"files\": [], \"references\": [{\"path\": \"./tsconfig.app.json\"}]}"), ("eslint.config.js", ""), ("vite.config.ts", ""), ("src/main.ts", "")]),
    ("Next.js with pnpm and jest", &[("package.json", NEXT), ("pnpm-lock.yaml", ""), ("tsconfig.json", "{}"), ("next.config.ts", ""), ("jest.config.js", "")]),
    ("An Express service whose linter changes files", &[("package.json", EXPRESS), ("yarn.lock", ""), ("index.js", ""), ("test/api.js", "")]),
    ("A Python package with uv", &[("pyproject.toml", PYPROJECT), ("uv.lock", ""), ("src/shop/__init__.py", ""), ("tests/test_shop.py", SLUG), ("tox.ini", "[tox]\nenvlist = py311\n")]),
    ("A Python script and its test", &[("slug.py", ""), ("test_slug.py", SLUG)]),
    ("A Django site", &[("manage.py", ""), ("requirements.txt", "Django==5.2\npsycopg==3.2\n"), ("shop/settings.py", "")]),
    ("A Go service", &[("go.mod", "module example.com/shop\n"), ("go.sum", ""), (".golangci.yml", "version: \"2\"\n"), ("Makefile", GO_MAKE), ("cmd/shop/main.go", "")]),
    ("Spring with Maven's wrapper", &[("pom.xml", POM), ("mvnw", "#!/bin/sh\n"), ("mvnw.cmd", ""), ("src/main/java/Shop.java", "")]),
    ("Kotlin with Gradle's wrapper", &[("build.gradle.kts", "plugins { kotlin(\"jvm\") }\n"), ("settings.gradle.kts", ""), ("gradlew", "#!/bin/sh\n"), ("gradlew.bat", "")]),
    ("Rails with RSpec", &[("Gemfile", GEMFILE), ("Gemfile.lock", ""), ("Rakefile", "require_relative \"config/application\"\n"), (".rspec", "--require spec_helper\n"), (".rubocop.yml", ""), ("spec/rails_helper.rb", ""), ("package.json", "{\"scripts\": {\"build\": \"esbuild\"}}")]),
    ("Laravel", &[("composer.json", COMPOSER), ("package.json", LARAVEL_NPM), ("phpunit.xml", "<phpunit/>\n"), ("artisan", "")]),
    ("Phoenix", &[("mix.exs", ""), ("mix.lock", ""), (".formatter.exs", ""), ("assets/package.json", "{}")]),
    (".NET", &[("Shop.slnx", ""), ("src/Shop/Shop.csproj", ""), ("Directory.Build.props", "")]),
    ("C++ with CMake", &[("CMakeLists.txt", CMAKE), ("src/CMakeLists.txt", ""), (".clang-format", "")]),
    ("A backend in Rust beside its web pages", &[("Cargo.toml", "[package]\nname = \"shop\"\n"), ("package.json", VITE), ("package-lock.json", "{}"), ("Makefile", "test:\n\tcargo test && npm test\n")]),
];

/// Everything that a gate may start, so that the doctor has nothing to say about the machine.
fn with_all_programs(bed: &Bed) -> String {
    let folder = on_path(bed);
    let programs = "claude npm npx pnpm yarn cargo pytest ruff mypy uv python3 go golangci-lint make mvn bundle composer mix dotnet cmake";
    for program in programs.split(' ') {
        put(&folder.join(program), "#!/bin/sh\necho '2.1.325 (Claude Code)'\n");
        fs::set_permissions(folder.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("{}:/usr/bin:/bin", folder.display())
}

#[test]
fn u2_init_in_real_project_shapes() {
    let mut all = String::new();
    for (shape, files) in SHAPES {
        let bed = Bed::at_home("shop");
        for (file, text) in files {
            bed.write(file, text);
        }
        let path = with_all_programs(&bed);
        let out = run(bed.command(RALPH).args(["init", "--yes"]).env("PATH", &path), b"");
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{shape}: {}", out.stdout);
        let names: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
        writeln!(all, "## {shape}\n\nfiles: {}\n\n{}", names.join(", "), out.stdout).unwrap();
    }
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spec/setup/real_shapes.txt");
    if text_of(&kept) != all {
        let now = Path::new(env!("CARGO_TARGET_TMPDIR")).join("real_shapes.txt");
        put(&now, &all);
        let difference = similar::TextDiff::from_lines(&text_of(&kept), &all).unified_diff().to_string();
        panic!("{} is not what `ralph init` says now; if this is better, copy {} there.\n{difference}", kept.display(), now.display());
    }
}

/// Where nothing is recognised, the guide asks for the command, and a run then needs nothing but its task.
#[test]
fn u2_a_command_that_the_person_names_becomes_the_check() {
    const WHICH: &str = "Which command tests this project? (Enter: none)";
    let start = |bed: &Bed| {
        let mut command = bed.command(RALPH);
        command.arg("init").env("TERM", "xterm-256color").env("PATH", with_all_programs(bed));
        Pty::spawn(command, 40, 80)
    };
    let answers = |pty: &Pty, question: &str, answer: &str| {
        let seen = |screen: &str| screen.split_whitespace().collect::<Vec<_>>().join(" ").contains(question);
        pty.wait_for(seen, SOON).unwrap_or_else(|screen| panic!("no {question:?}: {screen}"));
        pty.send(answer);
    };
    for (typed, gate) in [("./check.sh --all\r", Some("./check.sh --all")), ("\r", None), ("?\r\"quoted\" 'x'\r", Some("\"quoted\" 'x'"))] {
        let bed = Bed::at_home("shop");
        bed.script("check.sh", "#!/bin/sh\n");
        let pty = start(&bed);
        answers(&pty, WHICH, typed);
        if gate.is_some() {
            answers(&pty, "Write ralph.toml (1 check; `ralph run` may edit files without asking)? [Y/n]", "\r");
        }
        answers(&pty, "[Y/n]", "\r\r\r\r");
        assert_eq!(pty.wait_exit(SOON), Some(0), "{}", pty.screen());
        let screen = pty.screen();
        match gate {
            Some(command) => {
                let config = ralph_core::config::Config::parse(text_of(&bed.path("ralph.toml")).as_bytes()).unwrap();
                assert_eq!(config.gates.len(), 1);
                let shown = bed.ralph_json(&["trust", "--json"]);
                assert_eq!(shown["files"][0]["commands"][0]["run"], command, "{shown}");
                assert!(screen.trim_end().contains("Next: ralph run \"Fix the failing tests\"\n"), "{screen}");
            }
            None => {
                assert!(!bed.path("ralph.toml").exists());
                assert!(screen.contains("--verify COMMAND --permission-mode"), "the run could not edit otherwise: {screen}");
            }
        }
    }
    // It can be left there, and nothing was done.
    let bed = Bed::at_home("shop");
    let pty = start(&bed);
    answers(&pty, WHICH, "q\r");
    assert_eq!(pty.wait_exit(SOON), Some(1));
    assert!(pty.screen().contains("Stopped: nothing was changed.") && !bed.path("ralph.toml").exists(), "{}", pty.screen());
}
