# shellcheck shell=bash
# Work that runs beside the test suites: what it prints is kept, and shown when its turn comes. Sourced by deploy/test.
#   beside_start NICE FUNCTION...   calls them one after the other, in a process group of their own, with nothing to read
#   beside_wait FUNCTION            waits for it, shows what it printed; its exit status
#   beside_stop                     ends what still runs
# Suites mostly wait and checks compute: a check that is nice takes only what the suites leave of the processor.

beside_folder=$(mktemp -d)
declare -A beside_group=() # by function

beside_run() # function...
{
    local name result begun

    for name in "$@"; do
        begun=$SECONDS
        "$name" >"$beside_folder/$name.log" 2>&1
        result=$?
        printf '%s %s %s\n' "$result" "$begun" "$SECONDS" >"$beside_folder/$name.new"
        mv "$beside_folder/$name.new" "$beside_folder/$name.end"
    done
}

beside_start() # nice, function...
{
    local nice=$1 name
    shift

    set -m
    (
        renice -n "$nice" -p "$BASHPID" >/dev/null
        beside_run "$@"
    ) </dev/null &
    set +m
    for name in "$@"; do
        beside_group[$name]=$!
    done
}

beside_wait() # function
{
    local result begun ended

    while [ ! -e "$beside_folder/$1.end" ] && jobs -rp | grep -qx "${beside_group[$1]}"; do
        sleep 0.1
    done
    cat "$beside_folder/$1.log"
    if [ ! -e "$beside_folder/$1.end" ]; then
        echo "$1 was ended before its time"
        return 1
    fi
    read -r result begun ended <"$beside_folder/$1.end"
    printf '(from %s s to %s s, beside the others)\n' "$begun" "$ended"
    return "$result"
}

beside_stop()
{
    local group

    for group in $(jobs -rp); do
        kill -- "-$group"
    done
    rm -rf "$beside_folder"
}
