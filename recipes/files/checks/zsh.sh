# shellcheck shell=sh
# Does zsh start quietly for every user, with both plugins? The image may have no
# Python, so this is sh; it answers with one line of JSON.
problems=
count=0

quote() { # make text a JSON string, on one line
  printf '%s' "$1" | head -c 500 | tr '\n\t\r' '   ' | tr -d '\000-\037' | sed 's/ *$//; s/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$/"/'
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

ask='print loaded $+functions[_zsh_autosuggest_start] $+functions[_zsh_highlight] $+functions[_main_complete]'
shell() { # shell WHO: ask zsh as this user, or as one who has no home
  cd / && export TERM=xterm-256color
  if [ "$1" = self ]; then
    zsh -ic "$ask"
  elif [ "$(id -u)" = 0 ] && command -v setpriv > /dev/null; then
    HOME=/nonexistent setpriv --reuid 65534 --regid 65534 --clear-groups zsh -ic "$ask"
  else
    HOME=/nonexistent zsh -ic "$ask"
  fi
}
start() { # start WHO WHEN DO: all that zsh may print is the answer
  when=$2
  todo=$3
  said=$({
    shell "$1" 2>&1 < /dev/null
    printf 'code %s' "$?"
  } | head -c 65536)
  case $said in
    'code 0') problem "zsh ends before it answers when $when" "$todo" ;;
    *'code 0') ;;
    *'code '[0-9]*) problem "zsh ends with code ${said##*code } when $when" "$todo" ;;
  esac
  noise=${said%code *}
  noise=${noise%loaded *}
  [ -z "$noise" ] || problem "zsh prints when $when: $noise" "$todo"
  case $said in
    *'loaded 1 1 1'*) ;;
    *'loaded '[01]*)
      loaded=${said##*loaded }
      loaded=${loaded%?code *}
      problem "suggestions, highlighting, completion are loaded as $loaded when $when" "$todo; source both plugins, highlighting last, once"
      ;;
  esac
}
start self 'it starts' 'mend /etc/zsh/zshrc'
start nobody 'a user without a home starts it' 'mend /etc/zsh/zshrc, and who may read it'

last=$(grep -v '^[[:space:]]*\(#.*\)\{0,1\}$' /etc/zsh/zshrc 2> /dev/null | tail -n 1)
case $last in
  *zsh-syntax-highlighting.zsh*) ;;
  *) problem "the last line of /etc/zsh/zshrc is: $last" 'source zsh-syntax-highlighting last: it wraps what is there before it' ;;
esac
for dir in /etc/zsh /usr/share/zsh /usr/share/zsh-autosuggestions /usr/share/zsh-syntax-highlighting /usr/local/share/zsh; do
  [ -e "$dir" ] || continue
  if ! open=$(find "$dir" ! -type l \( -perm -002 -o ! -user 0 \) 2>&1); then
    problem "$dir cannot be looked at: $open" 'run the check as root'
    continue
  fi
  open=$(printf '%s' "$open" | head -n 1)
  [ -z "$open" ] || problem "$open can be written by others than root" "chown root:root and chmod o-w it"
done
answer
