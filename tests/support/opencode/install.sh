#!/bin/bash
# Installs opencode for the tests and prints the path of its binary. A second run only prints it.
#
#   install.sh [VERSION]      (default: the version that package.json pins)
#
# It goes to $OPENCODE_INSTALL, else outboxd-tests/opencode in $XDG_CACHE_HOME (~/.cache): one install serves all builds
# of this machine, also at once. Fetched with npm, from whatever registry npm is set up for; about 60 MB, 180 MB on disk.
# Any failure: exit 1, and what to do stands on stderr.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() { echo "opencode for the tests: $*" >&2; exit 1; }

for tool in node npm flock setsid; do
  command -v $tool >/dev/null || die "$tool is missing (node 18 or newer with npm; on Debian: apt install nodejs npm)"
done
release=$(node -p 'process.versions.node.split(".")[0]')
[ "$release" -ge 18 ] || die "node 18 or newer is needed, this is $(node --version) ($(command -v node))"

pinned=$(node -p 'require(process.argv[1]).dependencies["opencode-ai"]' "$here/package.json")
version=${1:-$pinned}
base=${OPENCODE_INSTALL:-${XDG_CACHE_HOME:-${HOME:?set HOME, XDG_CACHE_HOME or OPENCODE_INSTALL}/.cache}/outboxd-tests/opencode}
folder=$base/$version
mkdir -p "$folder" || die "$folder cannot be made: set OPENCODE_INSTALL to a folder that can"
folder=$(cd "$folder" && pwd)

# The platform package carries the binary, so that no install script has to run. What was found is noted.
find_binary() {
  local names n home
  bin=$(cat "$folder/.binary" 2>/dev/null || true)
  [ -n "$bin" ] && [ -x "$bin" ] && return 0
  case $(uname -m) in
    x86_64) names="x64-baseline x64-baseline-musl x64 x64-musl" ;;
    aarch64) names="arm64 arm64-musl" ;;
    *) die "there is none for $(uname -m)" ;;
  esac
  home=$(mktemp -d)
  for n in $names; do
    bin=$folder/node_modules/opencode-linux-$n/bin/opencode
    [ -x "$bin" ] || continue
    [ "$(env -i PATH="$PATH" HOME="$home" "$bin" --version 2>/dev/null </dev/null)" = "$version" ] || continue
    echo "$bin" > "$folder/.binary"
    rm -rf "$home"
    return 0
  done
  rm -rf "$home"
  return 1
}

install() {
  local -a quiet=(--ignore-scripts --no-audit --no-fund --loglevel=error)
  if [ "$version" = "$pinned" ] && [ "$(uname -m)" = x86_64 ]; then
    # The lock file names one platform package: linux-x64-baseline.
    cp "$here/package.json" "$here/package-lock.json" "$folder/"
    (cd "$folder" && npm ci "${quiet[@]}") || return 1
    find_binary && return 0
  fi
  # Other machines and versions: no lock file.
  rm -f "$folder/package-lock.json"
  echo "{\"private\":true,\"dependencies\":{\"opencode-ai\":\"$version\"}}" > "$folder/package.json"
  (cd "$folder" && npm install --no-package-lock "${quiet[@]}") && find_binary
}

if ! find_binary; then
  (
    flock 9
    find_binary && exit 0
    log=$(mktemp)
    install >"$log" 2>&1 9>&- || { cat "$log" >&2; rm -f "$log"; exit 1; }
    rm -f "$log"
  ) 9>"$folder/.lock" ||
    die "npm could not install opencode-ai $version into $folder (what npm said stands above). It has to reach" \
      "a registry (npm config get registry), or the folder must have been filled before."
fi
find_binary || die "no binary of $version in $folder runs on this machine"
echo "$bin"
