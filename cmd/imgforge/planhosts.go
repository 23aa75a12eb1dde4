package main

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"text/tabwriter"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/imgforge/imgforge/internal/forge"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/registry"
	"github.com/imgforge/imgforge/internal/report"
	"github.com/imgforge/imgforge/internal/store"
)

// contacts are all that a build would talk to.
type contacts struct {
	Hosts  []store.Contact `json:"hosts"`
	Images []imageUse      `json:"images"`
}

// imageUse is an image reference, or a repository that is pushed to.
type imageUse struct {
	Reference string `json:"reference"`
	For       string `json:"for"` // base or push
	Cells     int    `json:"cells"`
}

// showHosts lists whom a build of the cells would contact.
func (a *app) showHosts(f *planFlags, p *planned) error {
	out := contacts{Hosts: []store.Contact{}, Images: []imageUse{}}
	has, missing := a.stored(), 0
	for _, in := range p.all { // each has mirrors of its own
		want := p.wanted(in, has)
		missing += len(want)
		for _, c := range store.Contacts(in.mirrors, want, a.environment()) {
			out.host(c)
		}
		out.bases(in, want)
	}
	if f.push != "" {
		repo, err := registry.Repository(f.push)
		if err != nil {
			return err
		}
		out.Images = append(out.Images, imageUse{Reference: f.push, For: "push", Cells: p.count()})
		out.host(store.Contact{Host: repo.RegistryStr(), For: "push", First: true})
	}
	if u, err := url.Parse(cmp.Or(f.builder, a.env["BUILDKIT_HOST"])); err == nil && u.Host != "" {
		out.host(store.Contact{Host: u.Host, For: "the engine (" + u.Scheme + ")", First: true})
	}
	if f.format == "json" {
		return writeJSON(a.stdout, out)
	}
	return a.printHosts(out, missing)
}

// host adds a contact to the list, or its files to the same one of another matrix.
func (out *contacts) host(c store.Contact) {
	for i := range out.Hosts {
		if was := &out.Hosts[i]; was.Host == c.Host && was.Mirror == c.Mirror && was.For == c.For {
			was.Files, was.Bytes, was.First = was.Files+c.Files, was.Bytes+c.Bytes, was.First || c.First
			return
		}
	}
	out.Hosts = append(out.Hosts, c)
}

// count is how many cells have a plan.
func (p *planned) count() int {
	n := 0
	for _, c := range p.cells {
		if c.Err == nil {
			n++
		}
	}
	return n
}

// wanted are the files of a matrix's plans that the store lacks, each once.
func (p *planned) wanted(in *inputs, has func(plan.Blob) bool) []plan.Blob {
	var cells []forge.Cell
	for i, c := range p.cells {
		if p.of[i] == in {
			cells = append(cells, c)
		}
	}
	blobs, _ := blobsOf(cells)
	return slices.DeleteFunc(blobs, has)
}

// bases adds where bases come from that are no .debs, as far as parts of them
// are missing.
func (out *contacts) bases(in *inputs, missing []plan.Blob) {
	said := map[string]bool{}
	for _, cell := range in.cells {
		var host string
		var mine func(plan.Blob) bool
		switch b := cell.Base; {
		case b.Image != nil:
			reference := b.Image.Ref.Value
			ref, err := name.ParseReference(reference)
			if err != nil {
				continue // the matrix has refused it
			}
			out.base(reference)
			host = ref.Context().RegistryStr()
			mine = func(b plan.Blob) bool { return b.Origin == plan.ImageOrigin(reference) }
		case b.Rootfs != nil:
			u, err := url.Parse(b.Rootfs.URL.Value)
			if err != nil || u.Host == "" {
				continue // a file
			}
			host = u.Host
			sum := b.Rootfs.SHA256.Value
			mine = func(b plan.Blob) bool { return b.SHA256 == sum }
		default:
			continue
		}
		c := store.Contact{Host: host, For: "base " + cell.BaseName, First: true}
		for _, b := range missing {
			if mine(b) {
				c.Files++
				c.Bytes += b.Size
			}
		}
		if c.Files > 0 && !said[cell.BaseName] {
			out.host(c)
		}
		said[cell.BaseName] = true
	}
}

// base counts one more cell on an image.
func (out *contacts) base(reference string) {
	i := slices.IndexFunc(out.Images, func(u imageUse) bool { return u.Reference == reference })
	if i < 0 {
		i = len(out.Images)
		out.Images = append(out.Images, imageUse{Reference: reference, For: "base"})
	}
	out.Images[i].Cells++
}

func (a *app) printHosts(out contacts, missing int) error {
	if missing == 0 {
		fmt.Fprintln(a.stdout, "no file is to be fetched: the store has them all, or no cell has a plan")
	}
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if len(out.Hosts) > 0 {
		fmt.Fprintln(t, "HOST\tMIRROR\tFOR\tFILES\tBYTES\tASKED")
	}
	for _, c := range out.Hosts {
		when := "first"
		if !c.First {
			when = "for what others do not give"
		}
		if c.AnyHost {
			when += ", and wherever its links lead"
		}
		if c.Proxy != "" {
			when += ", by way of " + c.Proxy
		}
		files, bytes := fmt.Sprint(c.Files), report.Bytes(c.Bytes)
		if c.Files == 0 {
			files, bytes = "-", "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Host, cmp.Or(c.Mirror, "-"), c.For, files, bytes, when)
	}
	for i, u := range out.Images {
		if i == 0 {
			fmt.Fprintln(t, "\nIMAGE\tFOR\tCELLS")
		}
		fmt.Fprintf(t, "%s\t%s\t%d\n", u.Reference, u.For, u.Cells)
	}
	return t.Flush()
}
