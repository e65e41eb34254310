//! The formula for Homebrew: the archives that were made, with their checksums.

use std::fmt::Write;

use super::{REPOSITORY, VERSION, sums::Sum, targets::TARGETS};

pub(crate) const FILE: &str = "ralph-loop.rb";

pub(crate) fn of(sums: &[Sum]) -> String {
    let mut places = String::new();
    for system in ["on_macos", "on_linux"] {
        let archives: Vec<_> = TARGETS
            .iter()
            .filter_map(|target| {
                let (on_system, on_cpu) = target.brew.filter(|brew| brew.0 == system)?;
                let file = format!("{}.tar.gz", target.archive());
                let sum = sums.iter().find(|sum| sum.file == file)?;
                debug_assert_eq!(on_system, system);
                Some((on_cpu, sum))
            })
            .collect();
        if archives.is_empty() {
            continue;
        }
        let _ = writeln!(places, "\n  {system} do");
        for (cpu, sum) in archives {
            let Sum { file, hex } = sum;
            let _ = writeln!(
                places,
                "    {cpu} do\n      url \"{REPOSITORY}/releases/download/v{VERSION}/{file}\"\n      sha256 \"{hex}\"\n    end"
            );
        }
        places.push_str("  end\n");
    }
    format!(
        r##"class RalphLoop < Formula
  desc "Keeps a coding agent working until the work is proven done"
  homepage "{REPOSITORY}"
  version "{VERSION}"
  license any_of: ["MIT", "Apache-2.0"]
{places}
  def install
    bin.install "ralph", "ralph-fleet"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/ralph.bash" => "ralph"
    zsh_completion.install "completions/_ralph"
    fish_completion.install "completions/ralph.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/ralph --version")
    assert_match version.to_s, shell_output("#{{bin}}/ralph fleet --version")
  end
end
"##
    )
}
