# Makes lines of foreign text (file names, commit subjects) safe to stand in Markdown:
#
#   git log --format=%s | LC_ALL=C sed -E -f workers/legible.sed
#
# A Markdown report must be UTF-8. A line that is not, or that holds a control character, keeps
# its ASCII and gets `?` for every other byte; then all marks of Markdown are escaped.
# GNU sed; LC_ALL=C lets it see bytes.

/^([\t -~]|[\xC2-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]|\xED[\x80-\x9F][\x80-\xBF]|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}|\xF0[\x90-\xBF][\x80-\xBF]{2}|[\xF1-\xF3][\x80-\xBF]{3}|\xF4[\x80-\x8F][\x80-\xBF]{2})*$/!s/[^\t -~]/?/g
s/[][\\`*_<>|#&~]/\\&/g
