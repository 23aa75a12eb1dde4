package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/solver/pb"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/protobuf/proto"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/golden"
	"github.com/imgforge/imgforge/internal/graph"
	"github.com/imgforge/imgforge/internal/plan"
)

func blob(name string) plan.Blob {
	return plan.Blob{Name: name, Origin: "test", SHA256: digest.FromString(name).Encoded(), Size: int64(len(name))}
}

// small has one of everything a plan can hold.
func small() *plan.Plan {
	return &plan.Plan{
		Tag: "small", Platform: "linux/amd64", Epoch: 1_700_000_000, Python: "3.11",
		Base:   []plan.Blob{blob("libc6_2.36_amd64.deb"), blob("dash_0.5_amd64.deb")},
		Debs:   []plan.Blob{blob("zsh_5.9_amd64.deb")},
		Tools:  []plan.Blob{blob("installer-1.0-py3-none-any.whl")},
		Wheels: []plan.Layer{{Name: "light-03", Wheels: []plan.Blob{blob("a-1-py3-none-any.whl"), blob("b-1-py3-none-any.whl")}}, {Name: "torch", Wheels: []plan.Blob{blob("torch-2.4.1-cp311-cp311-linux_x86_64.whl")}}},
		Steps: []plan.Step{{
			Recipe: "zsh",
			Files: []plan.File{
				{Path: "/etc/zsh/zshrc", Mode: 0o644, Content: []byte("setopt\n")},
				{Path: "/etc/zsh/zlink", Link: "zshrc"},
				{Path: "/var/cache/zsh", Dir: true, Mode: 0o755},
			},
			Run: []plan.Run{{Name: "shell", Command: "usermod -s /usr/bin/zsh root", Pos: diag.Pos{File: "recipes/zsh.yaml", Line: 2, Col: 3}}},
		}},
		Config: plan.Config{Env: []string{"A=1", "PATH=/opt/venv/bin:/usr/bin"}, Labels: map[string]string{"b": "2", "a": "1"}, Cmd: []string{"zsh"}, Ports: []string{"8888/tcp"}},
	}
}

func inputs() graph.Inputs {
	return graph.Inputs{
		Bootstrap: blob("root.tar"),
		Sources:   map[string][]byte{"recipes/zsh.yaml": []byte("name: zsh\nrun: x\n")},
		Blob: func(b plan.Blob) llb.State {
			return llb.HTTP("http://blobs.invalid/"+b.SHA256, llb.Checksum(digest.NewDigestFromEncoded(digest.SHA256, b.SHA256)), llb.Filename(b.Name))
		},
	}
}

func marshal(t *testing.T, p *plan.Plan) (*graph.Graph, *llb.Definition) {
	t.Helper()
	g, err := graph.Compile(p, inputs())
	if err != nil {
		t.Fatal(err)
	}
	def, err := g.Marshal(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return g, def
}

func TestDumpGolden(t *testing.T) {
	_, def := marshal(t, small())
	var got bytes.Buffer
	if err := graph.Dump(&got, def); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/small.dump", got.String())
}

// Metadata is left out: it carries names and positions, which no digest covers.
func TestOpsAreDeterministic(t *testing.T) {
	g, def := marshal(t, small())
	for range 25 {
		g2, def2 := marshal(t, small())
		if fmt.Sprintf("%x", def.Def) != fmt.Sprintf("%x", def2.Def) {
			t.Fatal("equal plans gave different ops")
		}
		if !bytes.Equal(g.Config, g2.Config) {
			t.Fatal("equal plans gave different configurations")
		}
	}
}

func TestPositionsChangeNoOp(t *testing.T) {
	_, def := marshal(t, small())
	moved := small()
	moved.Steps[0].Run[0].Pos.Line = 1
	_, def2 := marshal(t, moved)
	if fmt.Sprintf("%x", def.Def) != fmt.Sprintf("%x", def2.Def) {
		t.Error("a step that moved in its file is another step")
	}
}

func TestEveryExecIsOffline(t *testing.T) {
	_, def := marshal(t, small())
	execs := 0
	for _, op := range ops(t, def) {
		exec := op.GetExec()
		if exec == nil {
			continue
		}
		execs++
		if exec.Network != pb.NetMode_NONE {
			t.Errorf("%v has network mode %v", exec.Meta.Args, exec.Network)
		}
		for _, kv := range exec.Meta.Env {
			if strings.Contains(strings.ToLower(kv), "proxy") {
				t.Errorf("%v is given %s", exec.Meta.Args, kv)
			}
		}
	}
	if execs != 6 { // base, apt, venv, two wheel layers, one recipe command
		t.Errorf("the graph has %d execs, not 6", execs)
	}
}

// A wheel layer may depend on the wheel, the tools and the base alone: another
// recipe, floor or .deb must leave its op as it is.
func TestWheelLayerIsPure(t *testing.T) {
	_, def := marshal(t, small())
	other := small()
	other.Tag = "other"
	other.Debs = append(other.Debs, blob("git_2.39_amd64.deb"))
	other.Wheels = other.Wheels[1:]
	other.Steps = nil
	other.Config.Env = []string{"A=2"}
	_, def2 := marshal(t, other)
	if a, b := execOf(t, def, "torch-2.4.1"), execOf(t, def2, "torch-2.4.1"); a != b {
		t.Errorf("the torch layer's op changed with things it does not depend on: %s, %s", a, b)
	}
}

func TestConfig(t *testing.T) {
	g, _ := marshal(t, small())
	var img ocispecs.Image
	if err := json.Unmarshal(g.Config, &img); err != nil {
		t.Fatal(err)
	}
	if len(img.History) != g.Layers || g.Layers != 7 {
		t.Errorf("history has %d entries for %d layers; both should be 7", len(img.History), g.Layers)
	}
	for _, h := range img.History {
		if h.EmptyLayer || h.Created == nil || h.Created.Unix() != 1_700_000_000 {
			t.Errorf("history entry %+v is not a layer of the epoch", h)
		}
	}
	if img.Architecture != "amd64" || img.OS != "linux" {
		t.Errorf("platform is %s/%s", img.OS, img.Architecture)
	}
	if _, ok := img.Config.ExposedPorts["8888/tcp"]; !ok {
		t.Error("the port is not exposed")
	}
}

// Every step runs on the plan's platform, whatever this machine's is.
func TestPlatform(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		p := small()
		p.Platform = "linux/" + arch
		g, def := marshal(t, p)
		execs := 0
		for _, op := range ops(t, def) {
			if op.Platform != nil && (op.Platform.OS != "linux" || op.Platform.Architecture != arch) {
				t.Errorf("%s: an op is of %s", p.Platform, op.Platform)
			}
			if op.GetExec() != nil && op.Platform != nil {
				execs++
			}
		}
		var img ocispecs.Image
		if err := json.Unmarshal(g.Config, &img); err != nil || execs == 0 || img.Architecture != arch {
			t.Errorf("%s: %d steps, image of %s: %v", p.Platform, execs, img.Architecture, err)
		}
	}
}

func TestTooManyLayers(t *testing.T) {
	p := small()
	for i := range graph.MaxLayers {
		p.Wheels = append(p.Wheels, plan.Layer{Name: fmt.Sprint("w", i), Wheels: []plan.Blob{blob(fmt.Sprint("w", i, ".whl"))}})
	}
	if _, err := graph.Compile(p, inputs()); err == nil || !strings.Contains(err.Error(), "layers") {
		t.Errorf("a plan of more than %d layers gave %v", graph.MaxLayers, err)
	}
}

func ops(t *testing.T, def *llb.Definition) []*pb.Op {
	t.Helper()
	var out []*pb.Op
	for _, raw := range def.Def {
		var op pb.Op
		if err := proto.Unmarshal(raw, &op); err != nil {
			t.Fatal(err)
		}
		out = append(out, &op)
	}
	return out
}

// execOf is the digest of the exec whose command holds word.
func execOf(t *testing.T, def *llb.Definition, word string) string {
	t.Helper()
	for i, op := range ops(t, def) {
		if e := op.GetExec(); e != nil && strings.Contains(strings.Join(e.Meta.Args, " "), word) {
			return digest.FromBytes(def.Def[i]).String()
		}
	}
	t.Fatalf("no exec has %q in its command", word)
	return ""
}
