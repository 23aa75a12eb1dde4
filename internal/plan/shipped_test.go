package plan

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/version"
)

// fromArchives is where every file of an image of .debs comes from: an archive of
// packages, an index of wheels, or torch's own listing. ohmyzsh#12173, #11476: a
// code host, which much of the world cannot reach, is none of these.
var fromArchives = regexp.MustCompile(`^((debian|debian-security)/pool/[^:]+\.deb|pypi:[a-z0-9-]+==.+|pytorch/(cpu|cu\d+):[a-z0-9-]+==.+)$`)

// Every cell that is shipped, with the lock that is shipped, as it would be built.
func TestShippedLock(t *testing.T) {
	cells, set := shipped(t)
	data, err := os.ReadFile("../../matrix/universal.lock")
	if err != nil {
		t.Fatal(err)
	}
	locked, err := lock.Parse("universal.lock", data)
	if err != nil {
		t.Fatal(err)
	}
	for i, made := range All(cells, set, locked) {
		if made.Err != nil {
			t.Fatal(made.Err)
		}
		cell, wheels, debs := cells[i], map[string]Blob{}, map[string]bool{}
		for _, b := range made.Plan.Blobs() {
			if !fromArchives.MatchString(b.Origin) {
				t.Errorf("%s: %s comes from %s", cell.Tag, b.Name, b.Origin)
			}
			deb, _, _ := strings.Cut(b.Name, "_")
			debs[deb] = strings.HasSuffix(b.Name, ".deb")
		}
		for _, l := range made.Plan.Wheels {
			for _, w := range l.Wheels {
				dist, _, _ := strings.Cut(w.Name, "-")
				dist = version.NormalizeName(dist)
				if other, twice := wheels[dist]; twice {
					t.Errorf("%s: %s and %s", cell.Tag, other.Name, w.Name)
				}
				wheels[dist] = w
			}
		}
		// opencv-python#370: the others need libGL; #467: two of them share files.
		for _, dist := range []string{"opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless"} {
			if w, ok := wheels[dist]; ok {
				t.Errorf("%s: has %s", cell.Tag, w.Name)
			}
		}
		// pypa/pip#8606, #11458: the wheel of another CUDA under the same version.
		if local := "+cu" + strings.ReplaceAll(cell.CUDA, ".", ""); cell.CUDA == "11.8" && !strings.Contains(wheels["torch"].Name, local) {
			t.Errorf("%s: its torch is %s, not one of %s", cell.Tag, wheels["torch"].Name, local)
		}
		// jupyter/notebook#7522, ai2cm/ace#378: torch before 2.3 was built for NumPy 1.
		old := slices.Contains([]string{"2.1.2", "2.2.2"}, cell.Torch)
		if one := strings.HasPrefix(wheels["numpy"].Name, "numpy-1."); old && !one {
			t.Errorf("%s: torch %s with %s", cell.Tag, cell.Torch, wheels["numpy"].Name)
		}
		for _, want := range []string{"zsh-autosuggestions", "zsh-syntax-highlighting"} {
			if !debs[want] {
				t.Errorf("%s: %s is no .deb", cell.Tag, want)
			}
		}
		// nvidia-docker#1294, pytorch#119989: neither belongs beside torch's wheels.
		for name := range debs {
			if strings.HasPrefix(name, "cuda-compat") || strings.HasPrefix(name, "libcudnn") {
				t.Errorf("%s: has %s", cell.Tag, name)
			}
		}
	}
}
