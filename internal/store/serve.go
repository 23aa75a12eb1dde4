package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Handler serves GET and HEAD /sha256/<hex>, with ranges. It lists nothing.
func (s *Store) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sha256/{hex}", func(w http.ResponseWriter, r *http.Request) {
		sum := r.PathValue("hex")
		if !s.Has(sum) {
			http.NotFound(w, r)
			return
		}
		f, err := os.Open(s.Path(sum))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		defer f.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("ETag", `"sha256:`+sum+`"`)
		http.ServeContent(w, r, "", time.Time{}, f)
	})
	return mux
}

// Serve serves the store at addr (host:port, port 0 for any), which must be of
// the loopback interface: there is no password. It ends with ctx or with stop.
func (s *Store) Serve(ctx context.Context, addr string) (url string, stop func() error, err error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", nil, fmt.Errorf("serve the store: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", nil, fmt.Errorf("serve the store: %s is not a loopback address; use 127.0.0.1:0", addr)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, fmt.Errorf("serve the store: %w", err)
	}
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	unhook := context.AfterFunc(ctx, func() { server.Close() })
	stop = func() error {
		unhook()
		err := server.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
	return "http://" + listener.Addr().String(), sync.OnceValue(stop), nil
}
