#!/bin/bash
# Installs the npm package standardwebhooks (pinned) for the tests and prints the folder that it is in. A second run only
# prints it.
#
# It goes to $STANDARDWEBHOOKS_INSTALL, else outboxd-tests/standardwebhooks in $XDG_CACHE_HOME (~/.cache). Fetched with npm,
# from whatever registry npm is set up for; 100 KB. Any failure: exit 1, and what to do stands on stderr.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() { echo "standardwebhooks for the tests: $*" >&2; exit 1; }

for tool in node npm flock; do
  command -v $tool >/dev/null || die "$tool is missing (node 18 or newer with npm; on Debian: apt install nodejs npm)"
done
version=$(node -p 'require(process.argv[1]).dependencies.standardwebhooks' "$here/package.json")
cache=${XDG_CACHE_HOME:-${HOME:?set HOME, XDG_CACHE_HOME or STANDARDWEBHOOKS_INSTALL}/.cache}
folder=${STANDARDWEBHOOKS_INSTALL:-$cache/outboxd-tests/standardwebhooks}/$version
mkdir -p "$folder" || die "$folder cannot be made: set STANDARDWEBHOOKS_INSTALL to a folder that can"
folder=$(cd "$folder" && pwd)

(
  flock 9
  [ -e "$folder/.complete" ] && exit 0
  cp "$here/package.json" "$here/package-lock.json" "$folder/"
  cd "$folder"
  log=$(npm ci --ignore-scripts --no-audit --no-fund --loglevel=error 2>&1 9>&-) || { echo "$log" >&2; exit 1; }
  touch .complete
) 9>"$folder/.lock" ||
  die "npm could not install standardwebhooks $version into $folder (what npm said stands above). It has to reach a" \
    "registry (npm config get registry), or the folder must have been filled before."
echo "$folder"
