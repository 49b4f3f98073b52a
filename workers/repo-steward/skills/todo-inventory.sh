#!/bin/sh
# Prints the lines of the last commit that contain a marker, as JSON with one item per line.
#
#   todo-inventory.sh DATE FOLDER MARKERS          print the inventory
#   todo-inventory.sh --files MARKERS NAME...      print the items of these files (for xargs)
#
# The script calls itself through `xargs -0`. File names are passed as arguments, so they can contain
# blanks, quotes and newlines.

set -eu
export LC_ALL=C

marked() {
    git -c grep.fullName=false -c grep.column=false grep --no-color -I -w -E -e "$markers" "$@"
}

# Converts lines `NUMBER:TEXT` of a file to JSON items. The file name is passed to awk as an
# environment variable because `-v` would interpret its escape sequences.
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

        # Returns the number of bytes of the UTF-8 character at a position, or 0 if it is invalid.
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
        # `git grep` prints `COMMIT:FILE`. A commit id contains no colon.
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

# `git grep` exits with 1 if it finds nothing, which is not an error.
marked -l -z "$tip" -- ":(literal)$folder" ':(exclude)workspace' ':(exclude)workers' \
    > "$TMPDIR/files" || [ "$?" -eq 1 ]
xargs -0 -r sh "$0" --files "$markers" < "$TMPDIR/files" > "$TMPDIR/items"

printf '{\n  "date": "%s",\n  "commit": "%s",\n  "count": %d,\n  "items": [\n' \
    "$date" "$tip" "$(wc -l < "$TMPDIR/items")"
sed '$!s/$/,/' "$TMPDIR/items"
printf '  ]\n}\n'
