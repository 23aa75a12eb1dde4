package builder

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Owner is who uses an engine's state directory just now.
type Owner struct {
	PID    int    `json:"pid"`              // the imgforge that started the engine
	Engine int    `json:"engine,omitempty"` // its buildkitd; 0 while it starts
	Addr   string `json:"address,omitempty"`
}

// FindOwner tells who uses the state directory of an embedded engine, or nil when
// nobody does. It asks the lock, which ends with its holder, and so is never stale.
func FindOwner(dir string) (*Owner, error) {
	if _, err := os.Stat(lockFile(dir)); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	lock := flock.New(lockFile(dir), flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err != nil {
		return nil, fmt.Errorf("cannot ask who uses %s: %w", dir, err)
	}
	if free {
		return nil, lock.Unlock()
	}
	return readOwner(dir), nil
}

func lockFile(dir string) string  { return filepath.Join(dir, "owner.lock") }
func ownerFile(dir string) string { return filepath.Join(dir, "owner.json") }

// readOwner is what the holder of the lock wrote; it may not have yet.
func readOwner(dir string) *Owner {
	var o Owner
	if data, err := os.ReadFile(ownerFile(dir)); err == nil {
		_ = json.Unmarshal(data, &o)
	}
	return &o
}

func writeOwner(dir string, o Owner) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	tmp := ownerFile(dir) + ".new" // only the lock's holder writes it
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, ownerFile(dir))
}

// Stop ends the owner as Ctrl-C would, and by force when it has not ended in time;
// the engine and its steps end with it. It returns when the directory is free.
func (o *Owner) Stop(dir string, patience time.Duration) error {
	if o.PID <= 0 {
		return fmt.Errorf("the owner of %s is not known yet; try again", dir)
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(o.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("cannot stop process %d: %w", o.PID, err)
		}
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if now, err := FindOwner(dir); err != nil || now == nil || now.PID != o.PID {
				return err
			}
		}
	}
	return fmt.Errorf("process %d does not end", o.PID)
}

// RemoveCache removes all that an engine keeps in a state directory that nobody
// uses. It needs no engine, so it works where a full disk lets none start.
func RemoveCache(dir string) error {
	lock := flock.New(lockFile(dir), flock.SetFlag(os.O_RDONLY|os.O_CREATE))
	free, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("cannot lock %s: %w", dir, err)
	}
	if !free {
		return fmt.Errorf("process %d has begun to use %s; try again", readOwner(dir).PID, dir)
	}
	return errors.Join(os.RemoveAll(filepath.Join(dir, "root")), os.RemoveAll(filepath.Join(dir, "tmp")), lock.Unlock())
}
