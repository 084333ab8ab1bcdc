#!/bin/bash
# Installs the npm packages that tests/support/NAME/package-lock.json pins and prints the folder that they are in. A second
# run only prints it.
#   npm_install.sh NAME        NAME: standardwebhooks, browser
#
# They go to $OUTBOXD_NPM_INSTALL, else outboxd-tests in $XDG_CACHE_HOME (~/.cache). Fetched with npm, from whatever registry
# npm is set up for. Any failure: exit 1, and what to do stands on stderr.
set -euo pipefail

name=${1:?usage: npm_install.sh NAME}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/$name
die() { echo "$name for the tests: $*" >&2; exit 1; }

[ -f "$here/package-lock.json" ] || die "$here has no package-lock.json"
for tool in node npm flock sha256sum; do
  command -v $tool >/dev/null || die "$tool is missing (node 18 or newer with npm; on Debian: apt install nodejs npm)"
done
version=$(sha256sum "$here/package-lock.json" | cut -c1-12)
cache=${XDG_CACHE_HOME:-${HOME:?set HOME, XDG_CACHE_HOME or OUTBOXD_NPM_INSTALL}/.cache}
folder=${OUTBOXD_NPM_INSTALL:-$cache/outboxd-tests}/$name/$version
mkdir -p "$folder" || die "$folder cannot be made: set OUTBOXD_NPM_INSTALL to a folder that can"
folder=$(cd "$folder" && pwd)

(
  flock 9
  [ -e "$folder/.complete" ] && exit 0
  cp "$here/package.json" "$here/package-lock.json" "$folder/"
  cd "$folder"
  log=$(npm ci --ignore-scripts --no-audit --no-fund --loglevel=error 2>&1 9>&-) || { echo "$log" >&2; exit 1; }
  touch .complete
) 9>"$folder/.lock" ||
  die "npm could not install it into $folder (what npm said stands above). It has to reach a registry (npm config get" \
    "registry), or the folder must have been filled before."
echo "$folder"
