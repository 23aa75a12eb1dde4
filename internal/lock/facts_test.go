package lock

import (
	"reflect"
	"testing"
)

func TestFactsSurviveTheLock(t *testing.T) {
	want := Facts{
		OS: "ubuntu", Suite: "jammy", Python: "/opt/conda/bin/python3.10", PythonVersion: "3.10", System: true, TorchCUDA: "12.1", Newest: "1735689600",
		Env:           map[string]string{"PATH": "/opt/conda/bin:/usr/bin", "ODD": "a b\t100%+ http://x=y", "EMPTY": ""},
		Distributions: map[string]string{"torch": "2.3.1", "numpy": "1.26.4+local"},
		CUDA:          []string{"/usr/local/cuda-12.1"}, CuDNN: []string{"/a/libcudnn.so.8", "/b/libcudnn.so.9"},
		Compat: []string{"/usr/local/cuda-12.1/compat"}, AptSources: []string{"/etc/apt/sources.list.d/cuda.list"},
	}
	f := &File{}
	f.Put(want.Entries("base/x-00000001")...)
	read, err := Parse("x.lock", f.Format())
	if err != nil {
		t.Fatal(err)
	}
	if got := read.Facts("base/x-00000001"); !reflect.DeepEqual(*got, want) {
		t.Errorf("read back:\n%+v, want\n%+v", *got, want)
	}
	if got := read.Facts("base/y-00000001"); got != nil {
		t.Errorf("a set without facts has %+v", got)
	}
}

func TestBadFactsAreRefused(t *testing.T) {
	for _, value := range []string{"os", "os=", "color=red", "env=PATH", "dist=torch", "os=%zz", "newest=-1", "newest=soon", "newest=99999999999"} {
		if err := checkFact(value); err == nil {
			t.Errorf("fact %q passes", value)
		}
	}
}
