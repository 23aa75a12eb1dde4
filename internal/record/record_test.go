package record

import (
	"encoding/json"
	"reflect"
	"testing"
)

// The lines are a wire schema: programs read these very names.
func TestWire(t *testing.T) {
	for want, ev := range map[string]Event{
		`{"cell":"a","planned":{"plan":"sha256:p","warnings":["w"]}}`: {Cell: "a", Planned: &Planned{Plan: "sha256:p", Warnings: []string{"w"}}},
		`{"cell":"a","fetched":{"files":3,"downloaded":0}}`:           {Cell: "a", Fetched: &Fetched{Files: 3}},
		`{"cell":"a","built":{"digest":"sha256:d","size":9,"new":0,"layers":2,"seconds":1.5}}`: {Cell: "a", Built: &Built{
			Digest: "sha256:d", Size: 9, Layers: 2, Seconds: 1.5}},
		`{"cell":"a","built":{"digest":"d","size":9,"new":9,"layers":2,"seconds":1,"pushed":"r@d"}}`: {Cell: "a", Built: &Built{
			Digest: "d", Size: 9, New: 9, Layers: 2, Seconds: 1, Pushed: "r@d"}},
		`{"cell":"a","failed":{"class":"mirror","reason":"r"}}`: {Cell: "a", Failed: &Failed{Class: ClassMirror, Reason: "r"}},
	} {
		got, err := json.Marshal(ev)
		if err != nil || string(got) != want {
			t.Errorf("got  %s (%v)\nwant %s", got, err, want)
		}
		var back Event
		if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, ev) {
			t.Errorf("%s is read as %+v, %v", got, back, err)
		}
	}
}
