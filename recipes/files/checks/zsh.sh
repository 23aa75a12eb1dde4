# shellcheck shell=sh
# Does zsh start quietly for every user, with both plugins? The image may have no
# Python, so this is sh; it answers with one line of JSON.
problems=
count=0

quote() { # make text a JSON string, on one line
  printf '%s' "$1" | tr '\n\t\r' '   ' | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$/"/'
}

problem() { # problem WHAT DO
  entry="{\"problem\":$(quote "$1"),\"do\":[$(quote "$2")]}"
  problems="${problems:+$problems,}$entry"
  count=$((count + 1))
  [ "$count" = 1 ] && first=$1
}

answer() {
  if [ "$count" = 0 ]; then
    printf '{"ok":true,"summary":%s}\n' "$(quote "zsh $version, quiet, both plugins")"
    exit 0
  fi
  printf '{"ok":false,"summary":%s,"problems":[%s]}\n' "$(quote "$first")" "$problems"
  exit 1
}

if ! command -v zsh > /dev/null; then
  problem 'there is no zsh' 'add the recipe zsh'
  answer
fi
version=$(zsh -fc 'print -r -- $ZSH_VERSION' 2>&1)

# As root, and as a user who has no home.
as_nobody() {
  if [ "$(id -u)" = 0 ] && command -v setpriv > /dev/null; then
    HOME=/nonexistent setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
  else
    HOME=/nonexistent "$@"
  fi
}
said=$(cd / && TERM=xterm-256color zsh -ic true 2>&1 < /dev/null)
[ -z "$said" ] || problem "zsh prints when it starts: $said" 'mend /etc/zsh/zshrc'
said=$(cd / && TERM=xterm-256color as_nobody zsh -ic true 2>&1 < /dev/null)
[ -z "$said" ] || problem "zsh prints when a user without a home starts it: $said" 'mend /etc/zsh/zshrc, and whom its files belong to'

loaded=$(cd / && zsh -ic 'print $+functions[_zsh_autosuggest_start] $+functions[_zsh_highlight] $+functions[_main_complete]' 2>&1 < /dev/null)
case $loaded in
  '1 1 1') ;;
  *) problem "suggestions, highlighting, completion are loaded as $loaded" 'source both plugins in /etc/zsh/zshrc, highlighting last, once' ;;
esac
last=$(grep -v '^[[:space:]]*\(#.*\)\{0,1\}$' /etc/zsh/zshrc 2> /dev/null | tail -n 1)
case $last in
  *zsh-syntax-highlighting.zsh*) ;;
  *) problem "the last line of /etc/zsh/zshrc is: $last" 'source zsh-syntax-highlighting last: it wraps what is there before it' ;;
esac
for dir in /etc/zsh /usr/share/zsh /usr/share/zsh-autosuggestions /usr/share/zsh-syntax-highlighting /usr/local/share/zsh; do
  [ -e "$dir" ] || continue
  open=$(find "$dir" ! -type l \( -perm -002 -o ! -user 0 \) 2> /dev/null | head -n 1)
  [ -z "$open" ] || problem "$open can be written by others than root" "chown root:root and chmod o-w it"
done
answer
