package check

import (
	"os"
	"testing"
)

// The shell is the machine's, with our recipe's settings where an image has them.
func TestZsh(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root is needed to put files where zsh reads them, in a mount namespace")
	}
	recipes, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const plugins = "/usr/share/zsh-autosuggestions /usr/share/zsh-syntax-highlighting"
	const place = `
mkdir "$TEST_DIR/zsh" "$TEST_DIR/plugins"
cp "$RECIPES"/zshrc "$RECIPES"/zshenv "$RECIPES"/zprofile "$TEST_DIR/zsh"
for d in ` + plugins + `; do
  cp -r $d "$TEST_DIR/plugins"
  mount --bind "$TEST_DIR/plugins/${d##*/}" $d
done
mount --bind "$TEST_DIR/zsh" /etc/zsh
rc=/etc/zsh/zshrc
own() {
  mkdir "$TEST_DIR/own"
  for p in env sh id tr sed head tail grep find zsh mkdir mv rm setpriv; do ln -s "$(command -v $p)" "$TEST_DIR/own/$p"; done
  export PATH="$TEST_DIR/own"
}
before() { { printf '%s\n' "$1"; cat "$TEST_DIR/zsh/zshrc"; } > "$TEST_DIR/rc"; cat "$TEST_DIR/rc" > $rc; }
`
	const own = "own"
	trials := []trial{
		{name: "good"},
		{name: "none", prepare: own + `; rm "$TEST_DIR/own/zsh"`,
			says: []string{"there is no zsh", "add the recipe zsh"}},
		{name: "noisy", prepare: `before 'print -r "hello \"you\"	\\"'`, says: []string{`zsh prints when it starts: hello "you" \`, "/etc/zsh/zshrc"}, more: 1},
		{name: "noisy for another user", prepare: `before '(( EUID )) && ls /root/x'`, says: []string{"zsh prints when a user without a home starts it: ls: cannot access", "who may read it"}},
		{name: "floods", prepare: `before 'repeat 100000 print -n "0123456789"'`, says: []string{"zsh prints when it starts: 0123456789"}, more: -1},
		{name: "ends at once", prepare: `before '(( EUID )) && exit 3'`, says: []string{"zsh ends with code 3 when a user without a home starts it"}},
		{name: "ends in silence", prepare: `before exit`, says: []string{"zsh ends before it answers when it starts"}, more: 1},
		{name: "no suggestions", prepare: `rm /usr/share/zsh-autosuggestions/*`, says: []string{"zsh prints when it starts", "zsh-autosuggestions.zsh"}, more: -1},
		{name: "suggestions left out", prepare: `sed -i /zsh-autosuggestions.zsh/d $rc; sed -i '/_zsh_autosuggest_start/d' $rc`, says: []string{"suggestions, highlighting, completion are loaded as 0 1 1 when it starts", "source both plugins"}, more: 1},
		{name: "highlighting not last", prepare: `echo 'true' >> $rc`, says: []string{"the last line of /etc/zsh/zshrc is: true", "source zsh-syntax-highlighting last"}},
		{name: "comments last", prepare: `printf '\n# the end\n\n' >> $rc`},
		{name: "no settings", prepare: `rm $rc`, says: []string{"the last line of /etc/zsh/zshrc is:"}, more: -1},
		{name: "for root alone", prepare: `chmod 600 $rc`, says: []string{"are loaded as 0 0 0 when a user without a home starts it", "who may read it"}},
		{name: "world-writable", prepare: `chmod 666 /etc/zsh/zshenv`, says: []string{"/etc/zsh/zshenv can be written by others than root", "chmod o-w"}},
		{name: "another's", prepare: `chown 1000 /usr/share/zsh-syntax-highlighting/zsh-syntax-highlighting.zsh`, says: []string{"zsh-syntax-highlighting.zsh can be written by others than root", "chown root:root"}},
		{name: "no way to look for files", prepare: own + `; rm "$TEST_DIR/own/find"`,
			says: []string{"cannot be looked at: ", "find"}, more: -1},
	}
	for i := range trials {
		trials[i].prepare = place + trials[i].prepare
		trials[i].env = []string{"PATH=/usr/bin:/bin", "RECIPES=" + recipes + "/../../recipes/files/zsh", "LANG=C.UTF-8"}
	}
	try(t, "zsh", trials)
}
