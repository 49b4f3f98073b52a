# Escapes lines of untrusted text, such as file names and commit subjects, for use in Markdown:
#
#   git log --format=%s | LC_ALL=C sed -E -f workers/legible.sed
#
# Markdown outputs must be UTF-8. In lines that are not valid UTF-8 or contain control characters,
# every byte except tabs and printable ASCII becomes `?`. Then all Markdown syntax is escaped.
# Requires GNU sed. LC_ALL=C makes it process bytes.

/^([\t -~]|[\xC2-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]|\xED[\x80-\x9F][\x80-\xBF]|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}|\xF0[\x90-\xBF][\x80-\xBF]{2}|[\xF1-\xF3][\x80-\xBF]{3}|\xF4[\x80-\x8F][\x80-\xBF]{2})*$/!s/[^\t -~]/?/g
s/[][\\`*_<>|#&~]/\\&/g
