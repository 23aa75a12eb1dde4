package builder

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/platforms"
	"github.com/moby/buildkit/client/llb"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
)

// Runs refuses a platform whose programs the engine cannot run, with the cure.
func (b *Builder) Runs(ctx context.Context, platform string) error {
	if slices.Contains(b.platforms, platform) {
		return nil
	}
	_, err, _ := b.probes.Do(platform, func() (any, error) { return nil, b.probe(ctx, platform) })
	var step *StepError
	if !errors.As(err, &step) {
		return err
	}
	return fmt.Errorf("%w for %s: this one runs %s; name one that does with --builder, or give this one qemu (see docs/engine.md)",
		ErrNoEngine, platform, strings.Join(b.platforms, ", "))
}

// probe runs a program of the platform. An engine may be able to although it does
// not say so: BuildKit's own container image has emulators that it never lists.
func (b *Builder) probe(ctx context.Context, platform string) error {
	program, ok := programs[platform]
	if !ok {
		return &StepError{Step: platform, Err: errors.New("no program to try it with")}
	}
	const file = "/program"
	p, err := platforms.Parse(platform)
	if err != nil {
		return err
	}
	state := llb.Scratch().File(llb.Mkfile(file, 0o755, program()), llb.WithCustomName("a program for "+platform)).
		Run(llb.Args([]string{file}), llb.Network(llb.NetModeNone), llb.IgnoreCache, llb.WithCustomName("does it run "+platform+"?")).Root()
	def, err := state.Marshal(ctx, llb.Platform(p))
	if err != nil {
		return err
	}
	_, err = b.solve(ctx, solveArgs{}, func(ctx context.Context, gw gateway.Client) (*gateway.Result, error) {
		return gw.Solve(ctx, gateway.SolveRequest{Definition: def.ToPB(), Evaluate: true})
	})
	return err
}

// programs end at once with code 0: exit(0) in machine code.
var programs = map[string]func() []byte{
	"linux/amd64": func() []byte { // xor edi,edi; mov eax,60; syscall
		return executable(elf.EM_X86_64, []byte{0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05})
	},
	"linux/arm64": func() []byte { // mov x0,#0; mov x8,#93; svc #0
		return executable(elf.EM_AARCH64, []byte{0x00, 0x00, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4})
	},
}

// executable wraps machine code in the least that the kernel loads.
func executable(machine elf.Machine, code []byte) []byte {
	const header, entry, at = 64, 56, 0x400000 // sizes, and where it is loaded
	size := uint64(header + entry + len(code))
	var out bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
			Entry: at + header + entry, Phoff: header, Ehsize: header, Phentsize: entry, Phnum: 1,
		},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: at, Paddr: at, Filesz: size, Memsz: size, Align: 0x10000},
		code,
	} {
		_ = binary.Write(&out, binary.LittleEndian, part) // a buffer takes all
	}
	return out.Bytes()
}
