#!/bin/sh
# Prints every marked line of the last commit as JSON, one item a line.
#
#   todo-inventory.sh DATE FOLDER MARKERS          the whole inventory
#   todo-inventory.sh --files MARKERS NAME...      the items of some files, for xargs
#
# It calls itself through `xargs -0`: names travel as arguments and are never read from a line, so
# blanks, quotes and newlines in them mean nothing.

set -eu
export LC_ALL=C

marked() {
    git -c grep.fullName=false -c grep.column=false grep --no-color -I -w -E -e "$markers" "$@"
}

# Reads `number:text` lines of one file, whose name comes through the environment.
items_of() {
    FILE="$1" awk '
        BEGIN {
            for (code = 1; code < 256; code++) {
                byte = sprintf("%c", code)
                ord[byte] = code
                escaped[byte] = code < 32 || code == 127 ? sprintf("\\u%04x", code) : byte
            }
            escaped["\""] = "\\\""
            escaped["\\"] = "\\\\"
            file = json(ENVIRON["FILE"], 4096)
        }

        # Bytes of the UTF-8 character at a position; 0 where there is none.
        function width(text, at,    first, low, high, size, i, code) {
            first = ord[substr(text, at, 1)]
            if (first < 128) return 1
            if (first < 194 || first > 244) return 0
            size = first < 224 ? 2 : first < 240 ? 3 : 4
            low = first == 224 ? 160 : first == 240 ? 144 : 128
            high = first == 237 ? 159 : first == 244 ? 143 : 191
            for (i = 1; i < size; i++) {
                code = ord[substr(text, at + i, 1)]
                if (code < low || code > high) return 0
                low = 128
                high = 191
            }
            return size
        }

        function json(text, characters,    out, at, size) {
            for (at = 1; at <= length(text) && characters-- > 0; at += size) {
                size = width(text, at)
                if (size == 0) {
                    out = out "\\ufffd"
                    size = 1
                } else if (size == 1) {
                    out = out escaped[substr(text, at, 1)]
                } else {
                    out = out substr(text, at, size)
                }
            }
            return "\"" out "\""
        }

        {
            colon = index($0, ":")
            text = substr($0, colon + 1)
            sub(/^[ \t]+/, "", text)
            sub(/[ \t\r]+$/, "", text)
            line = substr($0, 1, colon - 1)
            printf "    {\"file\": %s, \"line\": %d, \"text\": %s}\n", file, line, json(text, 200)
        }
    '
}

if [ "$1" = --files ]; then
    markers="$2"
    shift 2
    for name in "$@"; do
        # git names a file of a commit as `commit:file`; a commit's id holds no colon.
        marked -h -n "${name%%:*}" -- ":(literal)${name#*:}" > "$TMPDIR/lines"
        items_of "${name#*:}" < "$TMPDIR/lines"
    done
    exit
fi

date="$1"
folder="$2"
markers="$3"

tip="$(git rev-parse --verify --quiet HEAD)" || {
    echo "this repository has no commit yet" >&2
    exit 1
}

# Status 1 of grep means that nothing was found, which is an answer.
marked -l -z "$tip" -- ":(literal)$folder" ':(exclude)workspace' ':(exclude)workers' \
    > "$TMPDIR/files" || [ "$?" -eq 1 ]
xargs -0 -r sh "$0" --files "$markers" < "$TMPDIR/files" > "$TMPDIR/items"

printf '{\n  "date": "%s",\n  "commit": "%s",\n  "count": %d,\n  "items": [\n' \
    "$date" "$tip" "$(wc -l < "$TMPDIR/items")"
sed '$!s/$/,/' "$TMPDIR/items"
printf '  ]\n}\n'
