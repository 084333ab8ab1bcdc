# shellcheck shell=bash
# Installs the Debian packages that building, testing and running need: says first what is missing, installs only that,
# and leaves no service running that was not running before. Sourced by build, test and quickstart.
#   packages_ensure build|run|package|test      0: all there, 1: could not be installed (and why)
# `build` is what compiling needs, the others bring a store as well.
# A second run is one dpkg-query.

PACKAGES_LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
APT_ETC=${OUTBOXD_APT_ETC:-/etc/apt}                      # another folder only in tests of this file
BACKPORTS_FILE=$APT_ETC/sources.list.d/outboxd-backports.sources

# BUILD is for building and the unit suite. One package a word; a|b means whichever of them this release has, the first
# that is known wins.
PACKAGES_BUILD=(
    gcc libc6-dev meson ninja-build 'pkg-config|pkgconf' python3
    libuv1-dev libhiredis-dev libcurl4-openssl-dev 'libmsgpack-c-dev|libmsgpack-dev' libmicrohttpd-dev libjansson-dev
    libgnutls28-dev libssl-dev libjsmn-dev libyaml-dev libsodium-dev libsystemd-dev libseccomp-dev
    libcmocka-dev
)
NODE_RELEASE=18
PACKAGES_PACKAGE=("${PACKAGES_BUILD[@]}" debhelper dpkg-dev)
PACKAGES_TEST=("${PACKAGES_PACKAGE[@]}" clang-format clang-tidy cppcheck binutils prometheus systemd-container groff-base
    chromium haproxy openssl 'nginx-light|nginx')
# Those of the packages above, or of the store's, that bring a service of the same name: none of them is to run.
PACKAGES_SERVICES=(valkey-server redis-server prometheus haproxy nginx)

packages_say() { printf 'packages: %s\n' "$*"; }

packages_as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif ! command -v sudo >/dev/null; then
        packages_say "this needs root, or sudo: $*" >&2
        return 1
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

packages_apt()
{
    packages_as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
        --no-install-recommends "$@" </dev/null
}

packages_installed() # names…: those of them that are installed
{
    dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null | sed -n 's/^ii *//p'
}

packages_candidate() # name: the version that apt would install, nothing if it has none
{
    apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p' | grep -v '^(none)$' | head -n 1
}

# words…: for each word of which nothing is installed, the name to install; the word itself if apt knows none.
packages_missing()
{
    local word name choice installed
    local -a names

    # shellcheck disable=SC2046 # every word splits into its alternatives
    installed=$(packages_installed $(printf '%s\n' "$@" | tr '|' '\n' | sort -u))
    for word in "$@"; do
        IFS='|' read -r -a names <<<"$word"
        choice=$word
        for name in "${names[@]}"; do
            if grep -qxF -- "$name" <<<"$installed"; then
                continue 2
            fi
        done
        for name in "${names[@]}"; do
            if [ -n "$(packages_candidate "$name")" ]; then
                choice=$name
                break
            fi
        done
        printf '%s\n' "$choice"
    done
}

packages_is_at_least_7() # version, with an epoch perhaps
{
    local version=${1#*:}

    [ -n "$1" ] && [ "${version%%.*}" -ge 7 ] 2>/dev/null
}

packages_has_store()
{
    local redis

    [ -n "$(packages_installed valkey-server)" ] && return 0
    command -v valkey-server >/dev/null && return 0
    redis=$(dpkg-query -W -f='${db:Status-Abbrev} ${Version}' redis-server 2>/dev/null)
    [[ $redis == ii* ]] && packages_is_at_least_7 "${redis##* }"
}

# Installs without letting a package start its service. policy-rc.d is Debian's way to say so; a machine that has one
# of its own keeps it, and a service that came up in spite of it is stopped again. One that ran before is left alone.
packages_install()
{
    local policy=/usr/sbin/policy-rc.d wrote='' result=0 name
    local -A was_running=() was_there=()

    for name in "${PACKAGES_SERVICES[@]}"; do
        [ -n "$(packages_installed "$name")" ] && was_there[$name]=1
        packages_service_runs "$name" && was_running[$name]=1
    done
    if [ ! -e $policy ] && [ ! -L $policy ]; then
        wrote=$policy
        # shellcheck disable=SC2064 # the path as it is now
        trap "packages_as_root rm -f '$policy'" EXIT
        printf '#!/bin/sh\nexit 101\n' | packages_as_root tee $policy >/dev/null && packages_as_root chmod 755 $policy
    fi
    packages_apt install "$@" || { packages_apt update && packages_apt install "$@"; } || result=1
    if [ -n "$wrote" ]; then
        packages_as_root rm -f $policy
        trap - EXIT
    fi
    for name in "${PACKAGES_SERVICES[@]}"; do
        if [ -n "${was_there[$name]:-}" ] || [ -z "$(packages_installed "$name")" ]; then
            continue
        fi
        if [ -z "${was_running[$name]:-}" ]; then
            packages_service_off "$name"
        fi
    done
    return $result
}

packages_service_runs()
{
    if [ -d /run/systemd/system ] && command -v systemctl >/dev/null; then
        systemctl is-active --quiet "$1"
    else
        [ -x "/etc/init.d/$1" ] && "/etc/init.d/$1" status >/dev/null 2>&1
    fi
}

packages_service_off() # neither now nor after the next boot: outboxd and the tests start what they need
{
    if [ -d /run/systemd/system ] && command -v systemctl >/dev/null; then
        packages_as_root systemctl disable --now --quiet "$1" || true
    else
        if packages_service_runs "$1"; then
            packages_as_root "/etc/init.d/$1" stop >/dev/null || true
        fi
        if command -v systemctl >/dev/null; then
            packages_as_root systemctl disable --quiet "$1" 2>/dev/null || true
        elif command -v update-rc.d >/dev/null; then
            packages_as_root update-rc.d "$1" disable >/dev/null 2>&1 || true
        fi
    fi
}

# Adds bookworm's backports suite from the mirror that this machine uses already. Fails, leaving nothing, without one.
packages_add_backports()
{
    local codename stanza file
    local -a files=()

    # shellcheck disable=SC1091
    codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    [ "$codename" = bookworm ] || return 1
    for file in "$APT_ETC"/sources.list "$APT_ETC"/sources.list.d/*.list "$APT_ETC"/sources.list.d/*.sources; do
        [ -f "$file" ] && files+=("$file")
    done
    [ ${#files[@]} -gt 0 ] || return 1
    stanza=$(awk -v codename=bookworm -f "$PACKAGES_LIB/apt-mirror.awk" "${files[@]}") || return 1
    packages_say "adding the suite bookworm-backports (for valkey-server) in $BACKPORTS_FILE:"
    printf 'Types: deb\nSuites: bookworm-backports\nComponents: main\n%s\n' "$stanza" |
        packages_as_root tee "$BACKPORTS_FILE" | sed -e '/BEGIN/,/END/d' -e 's/^/    /'
    if packages_apt update && [ -n "$(packages_candidate valkey-server)" ]; then
        return 0
    fi
    packages_say "bookworm-backports can't be had from that mirror: $BACKPORTS_FILE is removed again"
    packages_as_root rm -f "$BACKPORTS_FILE"
    packages_apt update || true
    return 1
}

packages_ensure_store()
{
    packages_has_store && return 0
    [ -n "$(packages_candidate valkey-server)" ] || packages_apt update || true
    if [ -n "$(packages_candidate valkey-server)" ] || packages_add_backports; then
        packages_say "installing valkey-server"
        packages_install valkey-server && return 0
    fi
    if packages_is_at_least_7 "$(packages_candidate redis-server)"; then
        packages_say "valkey-server can't be had here; redis-server $(packages_candidate redis-server) serves as well: installing it"
        packages_install redis-server && return 0
    fi
    packages_say "neither valkey-server nor redis-server >= 7 can be installed" >&2
    return 1
}

# The system tests run opencode, which comes with npm. Debian's npm is wanted only where there is none: other sources of
# node bring their own.
packages_ensure_node()
{
    local -a missing=()

    command -v node >/dev/null || missing+=(nodejs)
    command -v npm >/dev/null || missing+=(npm)
    if [ ${#missing[@]} -gt 0 ]; then
        packages_say "will install: ${missing[*]} (for opencode in the system tests)"
        packages_install "${missing[@]}" || { packages_say "installing failed: ${missing[*]}" >&2; return 1; }
    fi
    if ! [ "$(node -p 'process.versions.node.split(".")[0]')" -ge "$NODE_RELEASE" ]; then
        packages_say "node $(node --version) is too old for the system tests: $NODE_RELEASE or newer is needed" >&2
        return 1
    fi
}

packages_ensure()
{
    local -a words=() missing

    case $1 in
    build | run) words=("${PACKAGES_BUILD[@]}") ;;
    package) words=("${PACKAGES_PACKAGE[@]}") ;;
    test) words=("${PACKAGES_TEST[@]}") ;;
    esac
    if ! command -v dpkg-query >/dev/null; then
        packages_say "this is not Debian: install by hand what deploy/lib/packages.sh lists" >&2
        return 0
    fi
    mapfile -t missing < <(packages_missing "${words[@]}")
    if [ ${#missing[@]} -gt 0 ]; then
        # A fresh machine has no package lists: what is called what is known after an update only.
        if printf '%s\n' "${missing[@]}" | grep -q '|' || [ -z "$(packages_candidate "${missing[0]}")" ]; then
            packages_say "missing: ${missing[*]}; reading the package lists first"
            packages_apt update || return 1
            mapfile -t missing < <(packages_missing "${words[@]}")
        fi
        packages_say "will install: ${missing[*]}"
        packages_install "${missing[@]}" || { packages_say "installing failed: ${missing[*]}" >&2; return 1; }
    fi
    [ "$1" = build ] || packages_ensure_store || return 1
    [ "$1" != test ] || packages_ensure_node
}
