# shellcheck shell=bash
# What deploy/test checks besides the test suites: each function prints what is wrong and returns 1 then. Run in the
# tree's root. Format and code rules are made with one version of the tools; another one's opinion is shown, not counted.

CLANG_VERSION=14
CPPCHECK_VERSION=2.10

checks_sources() # pattern...: our files, also where there is no git
{
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files -- "$@"
    else
        local -a names=()
        local pattern
        for pattern in "$@"; do
            names+=(${names[@]:+-o} -name "$pattern")
        done
        find . \( -name 'build*' -o -name node_modules -o -name .git \) -prune -o -type f \( "${names[@]}" \) -print
    fi
}

checks_is_our_version() # tool
{
    local version

    version=$("$1" --version | sed -n 's/.*version \([0-9]*\).*/\1/p' | head -n 1)
    if [ "$version" != "$CLANG_VERSION" ]; then
        echo "$1 is version $version, the rules are made with $CLANG_VERSION: what it says is shown, but not counted"
        return 1
    fi
}

check_format()
{
    local log file bad result=0

    log=$(mktemp)
    # One process looks at all files: starting it for each would be most of the time.
    if ! checks_sources '*.c' '*.h' | xargs clang-format --dry-run >"$log" 2>&1; then
        result=1
        tail -n 20 "$log"
    fi
    bad=$(sed -n 's/^\(.*\):[0-9]*:[0-9]*: warning: code should be clang-formatted.*/\1/p' "$log" | sort -u)
    for file in $bad; do
        result=1
        printf '%s: clang-format -i would change it:\n' "$file"
        clang-format "$file" | diff "$file" - | head -n 8
    done
    rm -f "$log"
    echo "clang-format: $(wc -w <<<"$bad") files to format"
    [ $result = 0 ] || ! checks_is_our_version clang-format
}

check_tidy()
{
    local log result=0 found

    log=$(mktemp)
    # Tests are left out: they are run rather than analysed, and this has to end within minutes. So the analyzer follows
    # fewer paths than it would by itself (225000 nodes a function), a fifth of the time: OUTBOXD_TIDY=full is for all.
    local -a depth=(--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=50000)
    [ "${OUTBOXD_TIDY:-}" != full ] || depth=()
    checks_sources '*.c' | grep -v -e '^\./tests/' -e '^tests/' |
        xargs -P "${JOBS:-$(nproc)}" -n 1 clang-tidy -p build-sanitize --quiet --warnings-as-errors='*' \
            --extra-arg=-Wno-unknown-warning-option "${depth[@]}" >"$log" 2>/dev/null || result=1
    found=$(grep -c 'error:\|warning:' "$log")
    sed -e "s|$PWD/||" "$log" | head -n 200
    rm -f "$log"
    echo "clang-tidy: $found findings"
    [ $result = 0 ] || ! checks_is_our_version clang-tidy
}

check_fuzz() # without clang's fuzzer the drivers' own tests in suite unit are all there is
{
    if ! echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -fsanitize=fuzzer -x c -o /dev/null - 2>/dev/null; then
        echo "clang and its fuzzer are missing (Debian: clang, libclang-rt-*-dev): nothing was done"
        return 0
    fi
    tests/fuzz/run --short
}

# Ours, without the tests. What it gets wrong in one line is said there (cppcheck-suppress, with the reason); nothing is
# switched off for all of the code.
check_cppcheck()
{
    local log result=0 version

    log=$(mktemp)
    cppcheck -j "${JOBS:-$(nproc)}" --enable=warning,performance,portability --std=c17 --library=gnu --inline-suppr \
        --error-exitcode=1 --quiet --template='{file}:{line}: {severity}: {message} [{id}]' \
        -D_GNU_SOURCE -I. -Ibuild-sanitize api common deploy supervisor worker >"$log" 2>&1 || result=1
    head -n 100 "$log"
    echo "cppcheck: $(grep -c . "$log") findings"
    rm -f "$log"
    version=$(cppcheck --version)
    if [ $result != 0 ] && [ "${version#* }" != "$CPPCHECK_VERSION" ]; then
        echo "cppcheck is ${version#* }, the code is clean for $CPPCHECK_VERSION: what it says is shown, but not counted"
        result=0
    fi
    return $result
}

checks_hardening() # program: position independent, read-only relocations bound at start, stack protector, no executable stack
{
    local program=$1 headers missing=''

    headers=$(readelf --wide --file-header --program-headers --dynamic --dyn-syms "$program") || return 1
    grep -q 'Type: *DYN' <<<"$headers" && grep -q INTERP <<<"$headers" || missing+=' PIE'
    grep -q GNU_RELRO <<<"$headers" || missing+=' RELRO'
    grep -qE 'BIND_NOW|FLAGS_1.*NOW' <<<"$headers" || missing+=' NOW'
    grep -q __stack_chk_fail <<<"$headers" || missing+=' stack-protector'
    grep -qE '_chk(@|$)' <<<"$headers" || missing+=' FORTIFY_SOURCE'
    grep 'GNU_STACK' <<<"$headers" | grep -q 'RWE' && missing+=' non-executable-stack'
    if [ -n "$missing" ]; then
        echo "$program lacks:$missing"
        return 1
    fi
    echo "$program: PIE, RELRO, NOW, stack protector, FORTIFY_SOURCE"
}

# The release is the Debian package: built once, looked at, installed and run under a real systemd.
check_release()
{
    local program result=0

    deploy/package >build-package.log 2>&1 || { tail -n 60 build-package.log; return 1; }
    dpkg-deb --extract build-package/*.deb build-package/content || return 1
    for program in sbin/outboxd libexec/outboxd/outboxd-api libexec/outboxd/outboxd-worker bin/outboxctl; do
        checks_hardening "build-package/content/usr/$program" || result=1
    done
    # It waits longer: all of this may run beside the suites, on what they leave of the processor.
    OUTBOXD_SLOW=4 python3 -B tests/package/test_package.py build-package/*.deb || result=1
    return $result
}
