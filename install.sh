#!/bin/sh
# Installs ralph for this user: downloads the archive for this machine, checks it, and puts its two programs into a folder.
# Nothing is unpacked before its checksum is right.
set -eu

REPOSITORY=https://github.com/ralph-loop/ralph-loop

usage() {
  cat <<'USAGE'
Install ralph for this user

Usage: install.sh [--to DIR] [--version VERSION]

  --to DIR            where to put the programs [default: ~/.local/bin]
  --version VERSION   this version [default: the latest]
  -h, --help          show this

RALPH_INSTALL_BASE names another place to download from: an address, or a folder.
USAGE
}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

main() {
  to=${HOME:-}/.local/bin
  base=$REPOSITORY/releases/latest/download
  while [ $# -gt 0 ]; do
    case $1 in
      --to) [ -n "${2:-}" ] || fail "--to needs a folder"; to=$2; shift 2 ;;
      --version) [ -n "${2:-}" ] || fail "--version needs a version"; base=$REPOSITORY/releases/download/v${2#v}; shift 2 ;;
      -h | --help) usage; exit 0 ;;
      *) usage >&2; echo "install.sh: unknown argument: $1" >&2; exit 2 ;;
    esac
  done
  base=${RALPH_INSTALL_BASE:-$base}
  case $to in
    /.local/bin) fail "HOME is not set: say where with --to DIR" ;;
    /*) ;;
    *) to=$(pwd)/$to ;;
  esac
  target=$(platform)

  work=$(mktemp -d "${TMPDIR:-/tmp}/ralph-install.XXXXXX") || fail "cannot make a temporary folder"
  fresh=''
  fleet=''
  trap 'rm -rf "$work"; [ -z "$fresh" ] || rm -f "$fresh" "$fleet"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP

  fetch SHA256SUMS
  line=$(grep -E "^[0-9a-f]{64}  ralph-loop-[0-9][^ /]*-$target\.tar\.gz\$" "$work/SHA256SUMS" || true)
  [ -n "$line" ] || fail "$base has no ralph for $target. From source: cargo install --locked ralph-loop"
  [ "$(echo "$line" | wc -l)" -eq 1 ] || fail "$base/SHA256SUMS names several archives for $target"
  archive=${line#*  }
  fetch "$archive"
  [ "$(checksum "$work/$archive")" = "${line%% *}" ] || fail "$archive does not have the checksum that SHA256SUMS says. Nothing was installed."

  tar -xzf "$work/$archive" -C "$work" || fail "cannot unpack $archive"
  put "$work/${archive%.tar.gz}"
}

# Prints the name of this platform's archive.
platform() {
  system=$(uname -s)
  cpu=$(uname -m)
  case $cpu in
    x86_64 | amd64) cpu=x86_64 ;;
    aarch64 | arm64) cpu=aarch64 ;;
  esac
  case $system in
    # The programs are static: which C library the system has does not matter.
    Linux) echo "$cpu-unknown-linux-musl" ;;
    Darwin)
      # A shell under Rosetta says x86_64.
      [ "$(sysctl -n hw.optional.arm64 2>/dev/null || true)" != 1 ] || cpu=aarch64
      echo "$cpu-apple-darwin"
      ;;
    *) fail "there is no installer for $system. On Windows: npm install -g @ralph-loop/ralph" ;;
  esac
}

# Puts a file from the base into the working folder.
fetch() {
  from=$base/$1
  case $base in
    file://*) cp "${from#file://}" "$work/$1" 2>/dev/null || fail "cannot read ${from#file://}" ;;
    *://*)
      if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --retry 2 --output "$work/$1" "$from" || fail "cannot download $from"
      elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$work/$1" "$from" || fail "cannot download $from"
      else
        fail "curl or wget is needed to download"
      fi
      ;;
    *) cp "$from" "$work/$1" 2>/dev/null || fail "cannot read $from" ;;
  esac
}

# Prints the SHA-256 of a file.
checksum() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum <"$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 <"$1" | cut -d ' ' -f 1
  elif command -v openssl >/dev/null 2>&1; then
    openssl dgst -sha256 -r <"$1" | cut -d ' ' -f 1
  else
    fail "sha256sum, shasum or openssl is needed to check the download"
  fi
}

# Puts each program in place in one step, so that a hook that is called meanwhile finds the old one or the new one; `ralph fleet` starts the one beside it.
put() {
  { "$1/ralph" --version && "$1/ralph" fleet --version; } >/dev/null || fail "the programs do not run on this machine. Nothing was installed."
  mkdir -p "$to" 2>/dev/null || fail "cannot make the folder $to"
  fresh=$to/.ralph.$$
  fleet=$to/.ralph-fleet.$$
  { cp "$1/ralph" "$fresh" && cp "$1/ralph-fleet" "$fleet"; } 2>/dev/null || fail "cannot write into $to: choose another folder with --to DIR"
  chmod 755 "$fresh" "$fleet"
  mv -f "$fleet" "$to/ralph-fleet" || fail "cannot write $to/ralph-fleet"
  mv -f "$fresh" "$to/ralph" || fail "cannot write $to/ralph"
  fresh=
  echo "installed $("$to/ralph" --version) as $to/ralph"
  case :$PATH: in
    *":$to:"*) command=ralph ;;
    *)
      command=$to/ralph
      echo "$to is not on your PATH. To add it, put this line into your shell's profile:"
      echo "  export PATH=\"$to:\$PATH\""
      ;;
  esac
  echo "Next: $command init, then $command doctor"
}

# In a function, so that a download that breaks off runs nothing.
main "$@"
