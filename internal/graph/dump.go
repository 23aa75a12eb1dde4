package graph

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/solver/pb"
	"github.com/opencontainers/go-digest"
	"google.golang.org/protobuf/proto"
)

// Dump prints a definition for people: one op a line in the order they depend on
// each other, named by its step, with what it runs, reads and writes. Equal ops
// print equal text.
func Dump(w io.Writer, def *llb.Definition) error {
	label := map[digest.Digest]string{}
	for _, raw := range def.Def {
		var op pb.Op
		if err := proto.Unmarshal(raw, &op); err != nil {
			return err
		}
		id := digest.FromBytes(raw)
		label[id] = fmt.Sprintf("#%d", len(label)+1)
		name := def.Metadata[id].Description["llb.customname"]
		if _, err := fmt.Fprintf(w, "%s %s%s\n", label[id], quoted(name), describe(&op)); err != nil {
			return err
		}
		for i, in := range op.Inputs {
			fmt.Fprintf(w, "    in %d: %s output %d\n", i, label[digest.Digest(in.Digest)], in.Index)
		}
	}
	return nil
}

func quoted(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%q ", name)
}

func describe(op *pb.Op) string {
	switch o := op.Op.(type) {
	case *pb.Op_Source:
		return "source " + o.Source.Identifier + attrs(o.Source.Attrs)
	case *pb.Op_Exec:
		return "exec " + describeExec(o.Exec)
	case *pb.Op_File:
		var parts []string
		for _, a := range o.File.Actions {
			parts = append(parts, describeFile(a))
		}
		return "file " + strings.Join(parts, ", ")
	case *pb.Op_Merge:
		return fmt.Sprintf("merge of %d", len(o.Merge.Inputs))
	case nil:
		return "result"
	}
	return fmt.Sprintf("%T", op.Op)
}

func describeExec(e *pb.ExecOp) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q network=%s", strings.Join(e.Meta.Args, " "), strings.ToLower(e.Network.String()))
	for _, kv := range e.Meta.Env {
		fmt.Fprintf(&b, "\n    env %s", kv)
	}
	for _, m := range e.Mounts {
		access := "rw"
		if m.Readonly {
			access = "ro"
		}
		from := ""
		if m.Selector != "" {
			from = " from " + m.Selector
		}
		fmt.Fprintf(&b, "\n    mount %s%s %s %s input=%d output=%d", m.Dest, from, access, strings.ToLower(m.MountType.String()), m.Input, m.Output)
	}
	return b.String()
}

func describeFile(a *pb.FileAction) string {
	switch f := a.Action.(type) {
	case *pb.FileAction_Mkfile:
		return fmt.Sprintf("mkfile %s %04o (%s)", f.Mkfile.Path, f.Mkfile.Mode, digest.FromBytes(f.Mkfile.Data).Encoded()[:12])
	case *pb.FileAction_Mkdir:
		return fmt.Sprintf("mkdir %s %04o", f.Mkdir.Path, f.Mkdir.Mode)
	case *pb.FileAction_Copy:
		return fmt.Sprintf("copy %s to %s unpack=%t", f.Copy.Src, f.Copy.Dest, f.Copy.AttemptUnpackDockerCompatibility)
	case *pb.FileAction_Symlink:
		return fmt.Sprintf("symlink %s to %s", f.Symlink.Newpath, f.Symlink.Oldpath)
	}
	return fmt.Sprintf("%T", a.Action)
}

func attrs(in map[string]string) string {
	var out []string
	for k, v := range in {
		out = append(out, " "+k+"="+v)
	}
	slices.SortFunc(out, cmp.Compare[string])
	return strings.Join(out, "")
}
