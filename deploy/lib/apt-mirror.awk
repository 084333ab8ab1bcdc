# Reads apt's own sources (deb822 .sources and one-line .list, told apart by FILENAME) and prints, for the first enabled
# binary source of suite `codename` with component main, a deb822 stanza body: its URIs line and, if it has one, its
# Signed-By field as it stands (a path, or a whole embedded key).
#   awk -v codename=bookworm -f apt-mirror.awk FILE...

function has_word(text, word,    words, n, i)
{
    n = split(text, words, /[ \t]+/)
    for (i = 1; i <= n; i++) {
        if (words[i] == word) {
            return 1
        }
    }
    return 0
}

function answer(uris, signed_by)
{
    print "URIs: " uris
    if (signed_by != "") {
        print "Signed-By: " signed_by
    }
    found = 1
    exit 0
}

function end_of_stanza()
{
    if (has_word(field["types"], "deb") && has_word(field["suites"], codename) &&
        has_word(field["components"], "main") && tolower(field["enabled"]) != "no" && field["uris"] != "") {
        answer(field["uris"], field["signed-by"])
    }
    split("", field)
    name = ""
}

FNR == 1 { end_of_stanza() }

/^[ \t]*#/ { next }

FILENAME ~ /\.sources$/ {
    if ($0 ~ /^[ \t]*$/) {
        end_of_stanza()
    } else if ($0 ~ /^[ \t]/ && name != "") {
        field[name] = field[name] "\n" $0
    } else if (match($0, /^[A-Za-z0-9-]+:/)) {
        name = tolower(substr($0, 1, RLENGTH - 1))
        value = substr($0, RLENGTH + 1)
        gsub(/^[ \t]+|[ \t\r]+$/, "", value)
        field[name] = value
    }
    next
}

$1 == "deb" {
    line = $0
    signed_by = ""
    if (match(line, /\[[^]]*\]/)) {
        options = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, 1, RSTART - 1) " " substr(line, RSTART + RLENGTH)
        if (match(options, /signed-by=[^ \t]+/)) {
            signed_by = substr(options, RSTART + 10, RLENGTH - 10)
            gsub(/,/, " ", signed_by)
        }
    }
    n = split(line, part, /[ \t]+/)
    for (i = 4; i <= n; i++) {
        if (part[3] == codename && part[i] == "main") {
            answer(part[2], signed_by)
        }
    }
}

END {
    if (!found) {
        end_of_stanza()
    }
    exit found ? 0 : 1
}
