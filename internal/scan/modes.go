package scan

import (
	"archive/tar"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// settled are where programs and settings lie, and what root's own shell reads.
var settled = []string{"bin", "etc", "lib", "lib64", "opt", "root", "sbin", "usr"}

// staff is the group that Debian lets write below /usr/local, and has no members.
const staff = 50

// writable refuses what others than root may change of what all run: every file and
// directory that others may write, but sticky ones, and owners and groups that are not
// root's where programs and settings lie.
func writable(f *findings) {
	const do = "chown it to root and chmod o-w it, in the recipe that makes it"
	n := 0
	for _, p := range f.tree.order {
		x := f.tree.files[p]
		if x.kind != tar.TypeReg && x.kind != tar.TypeDir || f.excused(p) {
			continue
		}
		n++
		if x.mode&0o002 != 0 && (x.kind == tar.TypeReg || x.mode&0o1000 == 0) {
			f.add(do, "every user may write %s (%04o)", at(x), x.mode)
		}
		first, _, _ := strings.Cut(p, "/")
		if !slices.Contains(settled, first) {
			continue
		}
		if x.uid != 0 {
			f.add(do, "%s belongs to user %d", at(x), x.uid)
		}
		if x.mode&0o020 != 0 && x.gid != 0 && x.gid != staff {
			f.add(do, "group %d may write %s (%04o)", x.gid, at(x), x.mode)
		}
	}
	f.summary = fmt.Sprintf("%d files and directories, root's alone to write", n)
}

// usual are the set-uid and set-gid programs of Debian's and Ubuntu's own packages.
var usual = map[string]bool{
	"su": true, "mount": true, "umount": true, "passwd": true, "chsh": true, "chfn": true, "newgrp": true, "gpasswd": true, "chage": true, "expiry": true,
	"wall": true, "write": true, "write.ul": true, "bsd-write": true, "ssh-agent": true, "ssh-keysign": true, "crontab": true, "unix_chkpwd": true,
	"pam_extrausers_chkpwd": true, "dbus-daemon-launch-helper": true, "utempter": true, "ping": true, "sudo": true, "fusermount3": true, "ntfs-3g": true,
}

// distribution is where a distribution's packages put programs.
var distribution = regexp.MustCompile(`^usr/(bin|sbin|lib|libexec)/`)

// setuid refuses programs that give rights, beyond those of the distribution.
func setuid(f *findings) {
	var known []string
	f.tree.each(func(x *file) {
		how := ""
		switch {
		case x.mode&0o4000 != 0:
			how = "set-uid"
		case x.mode&0o2000 != 0 && x.mode&0o111 != 0:
			how = "set-gid"
		case x.caps:
			how = "given capabilities"
		default:
			return
		}
		if f.excused(x.path) || usual[path.Base(x.path)] && distribution.MatchString(x.path) {
			known = append(known, path.Base(x.path))
			return
		}
		f.add("chmod it, or excuse it: with: {allow: /"+x.path+"}", "%s is %s (%04o)", at(x), how, x.mode)
	})
	slices.Sort(known)
	f.summary = fmt.Sprintf("%d programs, all of the distribution", len(known))
	f.facts["programs"] = known
}
