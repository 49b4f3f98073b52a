#!/bin/sh
# Reports relative links in Markdown files whose target does not exist.
#
#   broken-links.sh DATE FOLDER                    print the report
#   broken-links.sh --files WORKSPACE NAME...      print one line per link of these files (for xargs)
#
# The script calls itself through `xargs -0`. File names are passed as arguments, so they can contain
# blanks, quotes and newlines.

set -eu
export LC_ALL=C

# Prints `LINE TARGET` for each relative link. TARGET is decoded, without query and fragment.
links_in() {
    awk '
        BEGIN {
            for (code = 1; code < 256; code++) {
                byte[sprintf("%02x", code)] = byte[sprintf("%02X", code)] = sprintf("%c", code)
                byte[sprintf("%x%X", int(code / 16), code % 16)] = sprintf("%c", code)
                byte[sprintf("%X%x", int(code / 16), code % 16)] = sprintf("%c", code)
            }
        }

        function decoded(text,    out, at) {
            while ((at = index(text, "%")) > 0) {
                out = out substr(text, 1, at - 1)
                if (substr(text, at + 1, 2) in byte) {
                    out = out byte[substr(text, at + 1, 2)]
                    text = substr(text, at + 3)
                } else {
                    out = out "%"
                    text = substr(text, at + 1)
                }
            }
            return out text
        }

        function print_link(target) {
            if (target == "" || target ~ /^#/ || target ~ /^\/\// || target ~ /^[A-Za-z][A-Za-z0-9+.-]*:/)
                return
            sub(/[?#].*$/, "", target)
            target = decoded(target)
            if (target != "" && target !~ /\n/) print NR " " target
        }

        # Returns the link target at the start of the text. It ends at `>` if it begins with `<`,
        # otherwise at a blank or at the closing parenthesis of the link.
        function target_of(text,    at, depth, ch, out) {
            sub(/^[ \t]+/, "", text)
            if (text ~ /^</) {
                at = index(text, ">")
                return at > 0 ? substr(text, 2, at - 2) : ""
            }
            for (at = 1; at <= length(text); at++) {
                ch = substr(text, at, 1)
                if (ch == "\\" && substr(text, at + 1, 1) ~ /[[:punct:]]/) {
                    at++
                    out = out substr(text, at, 1)
                    continue
                }
                if (ch == " " || ch == "\t" || (ch == ")" && depth == 0)) break
                if (ch == "(") depth++
                if (ch == ")") depth--
                out = out ch
            }
            return out
        }

        { sub(/\r$/, "") }

        # The closing fence has the same character, is at least as long, and ends the line. Backticks
        # followed by another backtick on the same line are a code span, not a fence.
        match($0, /^ ? ? ?(```+|~~~+)/) {
            mark = substr($0, 1, RLENGTH)
            gsub(/ /, "", mark)
            rest = substr($0, RLENGTH + 1)
            if (fence == "" && !(mark ~ /^`/ && rest ~ /`/)) {
                fence = mark
                next
            }
            if (substr(mark, 1, 1) == substr(fence, 1, 1) && length(mark) >= length(fence) && rest ~ /^[ \t]*$/) {
                fence = ""
                next
            }
        }
        fence != "" { next }

        {
            gsub(/``[^`]*(`[^`]+)*``/, "")
            gsub(/`[^`]*`/, "")
        }

        match($0, /^ ? ? ?\[[^]^][^]]*\]:[ \t]*/) {
            print_link(target_of(substr($0, RLENGTH + 1)))
            next
        }

        {
            rest = $0
            while ((at = index(rest, "](")) > 0) {
                rest = substr(rest, at + 2)
                print_link(target_of(rest))
            }
        }
    '
}

if [ "$1" = --files ]; then
    workspace="$2"
    shift 2
    for name in "$@"; do
        # A tracked file can be missing from the worktree.
        [ -f "$name" ] || continue
        case "$name" in
            */*) directory="${name%/*}" ;;
            *) directory=. ;;
        esac
        links_in < "$name" > "$TMPDIR/links"
        while IFS=' ' read -r line target; do
            case "$target" in
                /*) path="$workspace$target" ;;
                *) path="$directory/$target" ;;
            esac
            if [ -e "$path" ]; then
                echo intact
            else
                printf 'broken %s, line %s: %s\n' "$name" "$line" "$target" | tr '\n' '?'
                echo
            fi
        done < "$TMPDIR/links"
    done
    exit
fi

date="$1"
folder="$2"
workspace="$PWD"
script="$(cd "$(dirname "$0")" && pwd)/$(basename "$0")"

cd "$folder"
git ls-files -z -- '*.md' ":(exclude)$workspace/workspace" > "$TMPDIR/documents"
xargs -0 -r sh "$script" --files "$workspace" < "$TMPDIR/documents" > "$TMPDIR/verdicts"
sed -n 's/^broken //p' "$TMPDIR/verdicts" | sed 's/?$//' > "$TMPDIR/broken"

printf '# Links that are broken on %s\n\n' "$date"
printf -- '- Documents: %d\n' "$(tr -dc '\0' < "$TMPDIR/documents" | wc -c)"
printf -- '- Relative links: %d\n' "$(wc -l < "$TMPDIR/verdicts")"
printf -- '- Broken: %d\n' "$(wc -l < "$TMPDIR/broken")"
if [ -s "$TMPDIR/broken" ]; then
    printf '\n## Broken\n\n'
    sed -E -f "$workspace/workers/legible.sed" "$TMPDIR/broken" | sed 's/^/- /'
fi
