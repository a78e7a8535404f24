package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/localhttp"
)

// maxAnswer limits the description of a run.
const maxAnswer = 16 << 20

// describeTimeout is the timeout for the description of a run.
const describeTimeout = 2 * time.Second

// A Found is a run that was found by its socket.
type Found struct {
	Run

	socket string
}

// Find returns the runs of this user, the newest last, or asks only the one with the process id pid
// unless that is 0. It removes the sockets of killed runs.
func Find(ctx context.Context, pid int) []Found {
	name := "*"
	if pid != 0 {
		name = fmt.Sprint(pid)
	}
	var paths []string
	for _, dir := range localhttp.Dirs() {
		if localhttp.CheckPrivate(dir) == nil {
			found, _ := filepath.Glob(filepath.Join(dir, name+localhttp.Suffix)) // the pattern is good
			paths = append(paths, found...)
		}
	}
	var mu sync.Mutex
	var all []Found
	var asked sync.WaitGroup
	for _, path := range paths {
		asked.Go(func() {
			run, err := ask(ctx, path)
			if err == nil {
				mu.Lock()
				all = append(all, Found{run, path})
				mu.Unlock()
			} else if localhttp.IsLeftOver(err) {
				_ = os.Remove(path)
			}
		})
	}
	asked.Wait()
	slices.SortFunc(all, func(a, b Found) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.PID, b.PID)) })
	// The path of a killed run may lead to the run that has its name now.
	return slices.CompactFunc(all, func(a, b Found) bool { return a.PID == b.PID })
}

// Explain returns an error that names the run that listens on an address, in place of the error of
// one that cannot because of that.
func Explain(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "listen" && hint.InUse(e) {
		_, port, _ := net.SplitHostPort(e.Addr.String())
		for _, f := range Find(context.Background(), 0) {
			if slices.ContainsFunc(f.Listens, func(at string) bool { return strings.HasSuffix(at, ":"+port) }) {
				return hint.With(fmt.Errorf("the address %s is in use by the run %d of dynmcp %s", e.Addr, f.PID, f.Config), "take another port, or end process %[1]d; dynmcp ps shows what uses it", f.PID)
			}
		}
	}
	return err
}

func ask(ctx context.Context, socket string) (run Run, err error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	body, err := localhttp.Open(ctx, socket, http.MethodGet, "/run")
	if err != nil {
		return run, err
	}
	defer body.Close()
	err = json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(&run)
	return run, err
}

// Do starts, stops or restarts a server of the run.
func (f Found) Do(ctx context.Context, act, server string) error {
	return f.post(ctx, "servers", server, act)
}

// Use switches a run to a profile.
func (f Found) Use(ctx context.Context, profile string) error { return f.post(ctx, "profile", profile) }

func (f Found) post(ctx context.Context, path ...string) error {
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	body, err := localhttp.Open(ctx, f.socket, http.MethodPost, "/"+strings.Join(path, "/"))
	if err != nil {
		return err
	}
	return body.Close()
}

// Messages returns a recording of new messages of the run, until it is closed or the run ends.
func (f Found) Messages(ctx context.Context) (io.ReadCloser, error) {
	return localhttp.Open(ctx, f.socket, http.MethodGet, "/messages")
}

// Answer answers a question of the run with one of answers.
func (f Found) Answer(ctx context.Context, id, answer string) error {
	return f.post(ctx, "questions", id, answer)
}

// endTimeout is how long a run is waited for that has been told to end: its calls and servers end first.
const endTimeout = 30 * time.Second

// End ends the run, and returns when it is gone.
func (f Found) End(ctx context.Context) error {
	if err := f.post(ctx, "end"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	for {
		if now, err := ask(ctx, f.socket); ctx.Err() == nil && (err != nil || now.PID != f.PID) {
			return nil
		}
		select {
		case <-ctx.Done():
			return hint.With(fmt.Errorf("run %d has not ended yet", f.PID), "it waits for its servers; dynmcp ps shows them")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Choose returns the only run for which has is true, with the process id pid unless that is 0. what
// describes has in errors.
func Choose(all []Found, pid int, what string, has func(Found) bool) (Found, error) {
	if len(all) == 0 {
		return Found{}, hint.With(errors.New("no run of dynmcp was found"), "a host starts one when it connects (dynmcp install), dynmcp serve one for many hosts")
	}
	all = slices.DeleteFunc(all, func(f Found) bool { return pid != 0 && pid != f.PID || !has(f) })
	const list = "dynmcp ps lists the runs and their servers"
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(all) > 1:
		var ids []string
		for _, f := range all {
			ids = append(ids, fmt.Sprintf("--run %d", f.PID))
		}
		return Found{}, hint.With(fmt.Errorf("%d runs have %s", len(all), what), "say which one: %s", strings.Join(ids, ", "))
	case pid != 0:
		return Found{}, hint.With(fmt.Errorf("no run %d has %s", pid, what), list)
	}
	return Found{}, hint.With(fmt.Errorf("no run has %s", what), list)
}
