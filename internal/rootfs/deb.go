package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/xi2/xz"
	"pault.ag/go/debian/deb"
)

// maxDict bounds the window of a compressed member: what `xz -9` and
// `zstd --ultra` use at most.
const maxDict = 128 << 20

// member is one entry of a data.tar.
type member struct {
	*tar.Header
	body io.Reader
}

// eachMember calls fn for each entry of the .deb's data.tar; at most limit bytes
// of it are unpacked.
func eachMember(f io.ReaderAt, limit int64, fn func(*member) error) error {
	data, err := dataMember(f)
	if err != nil {
		return err
	}
	r, done, err := decompress(data.Data, strings.TrimPrefix(data.Name, "data.tar"))
	if err != nil {
		return fmt.Errorf("%s: %w", data.Name, err)
	}
	defer done()
	return eachOf(data.Name, r, limit, fn)
}

// eachOf calls fn for each entry of a tar; at most limit bytes are unpacked.
func eachOf(name string, r io.Reader, limit int64, fn func(*member) error) error {
	// The headers of the tar count too: room for them, and no more.
	bounded := &boundedReader{r: r, left: limit + limit/4}
	tr := tar.NewReader(bounded)
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, noEOF(err))
		}
		if err := fn(&member{hdr, tr}); err != nil {
			return fmt.Errorf("%s: %w", hdr.Name, noEOF(err))
		}
	}
	// What follows the tar holds the checksum of the compressed stream.
	if _, err := io.Copy(io.Discard, bounded); err != nil {
		return fmt.Errorf("%s: %w", name, noEOF(err))
	}
	return nil
}

// dataMember finds data.tar in the ar archive, checking that all three parts of
// a .deb are there in order and whole.
func dataMember(f io.ReaderAt) (*deb.ArEntry, error) {
	ar, err := deb.LoadAr(f)
	if err != nil {
		return nil, fmt.Errorf("not an ar archive: %w", noEOF(err))
	}
	want := []string{"debian-binary", "control.tar", "data.tar"}
	for {
		e, err := ar.Next()
		if err != nil {
			return nil, fmt.Errorf("no %s in the ar archive: %w", want[0], noEOF(err))
		}
		if e.Size < 0 {
			return nil, fmt.Errorf("%s has a negative size", e.Name)
		}
		if strings.HasPrefix(e.Name, "_") { // deb(5): these are to be ignored
			continue
		}
		if !strings.HasPrefix(e.Name, want[0]) {
			return nil, fmt.Errorf("ar member %q where %s is expected", e.Name, want[0])
		}
		if err := whole(e); err != nil {
			return nil, err
		}
		if want = want[1:]; len(want) == 0 {
			return e, nil
		}
		if e.Name == "debian-binary" {
			if err := checkFormat(e); err != nil {
				return nil, err
			}
		}
	}
}

// whole fails when the archive ends inside e.
func whole(e *deb.ArEntry) error {
	if e.Size == 0 {
		return fmt.Errorf("%s is empty", e.Name)
	}
	if _, err := e.Data.ReadAt(make([]byte, 1), e.Size-1); err != nil {
		return fmt.Errorf("%s is cut short: %w", e.Name, noEOF(err))
	}
	return nil
}

func checkFormat(e *deb.ArEntry) error {
	head := make([]byte, min(e.Size, 16))
	if _, err := io.ReadFull(e.Data, head); err != nil {
		return fmt.Errorf("%s: %w", e.Name, noEOF(err))
	}
	if !bytes.HasPrefix(head, []byte("2.")) {
		return fmt.Errorf("debian-binary says format %q, only 2.x is known", bytes.TrimSpace(head))
	}
	return nil
}

// decompress unpacks by suffix: .gz, .xz, .zst or none.
func decompress(data io.Reader, suffix string) (r io.Reader, done func(), err error) {
	done = func() {}
	switch suffix {
	case "":
		r = data
	case ".gz":
		r, err = gzip.NewReader(data)
	case ".xz":
		r, err = xz.NewReader(data, maxDict)
	case ".zst":
		var z *zstd.Decoder
		z, err = zstd.NewReader(data, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxDict))
		if err == nil {
			r, done = z, z.Close
		}
	default:
		err = fmt.Errorf("compression %q is not known: .xz, .zst, .gz or none", suffix)
	}
	return r, done, noEOF(err)
}

// boundedReader fails, rather than ends, once it has given left bytes.
type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("unpacks to more than is allowed")
	}
	return n, err
}

// noEOF keeps a bare end of file from being taken for a good end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
