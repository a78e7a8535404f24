package aggregator

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A result that reaches the host only in part is kept for a while, so that the host can
// read on: in a file, readable by nobody else, and gone with the
// process whatever ends it. What one user's calls brought is for that user's sessions.

const (
	keptFor       = time.Hour
	maxKeptOf     = 256 << 20 // bytes of one user's results, of which the oldest go first
	maxKeptCount  = 64        // of one user's results
	maxAllResults = 1 << 30   // bytes of all users' results, of which the oldest of the user with the most go first
	maxKeptOfAll  = 512       // of all users' results, each of which has a descriptor
)

// keptResults are the results that can be read on. The zero value is ready to use.
type keptResults struct {
	mu       sync.Mutex
	dir      string // made with the first result; "" before
	byHandle map[string]*keptResult
	of       map[principal]*resultsOf
	size     int64 // of all
	closed   bool
}

// resultsOf are the results of one user, the oldest first.
type resultsOf struct {
	results []*keptResult
	size    int64
}

type keptResult struct {
	handle    string
	principal principal
	limit     int // of the tool's results, in characters
	size      int64
	file      *os.File
	expiry    *time.Timer
}

// add keeps a result and returns the handle under which get finds it. In a cluster it ends
// in the name of this replica, and others know where to ask; nobody can guess the rest.
func (k *keptResults) add(of principal, replica string, limit int, result json.RawMessage) (handle string, err error) {
	if len(result) > maxKeptOf {
		return "", fmt.Errorf("it is larger than %d MB", maxKeptOf>>20)
	}
	dir, err := k.directory()
	if err != nil {
		return "", err
	}
	handle = strings.ToLower(rand.Text()[:12])
	file, err := os.OpenFile(filepath.Join(dir, handle), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	// Where a file may go while it is open, nothing is left even after SIGKILL.
	// Elsewhere remove does it.
	_ = os.Remove(file.Name())
	if _, err := file.Write(result); err != nil {
		(&keptResult{file: file}).remove()
		return "", err
	}
	if replica != "" {
		handle += "-" + replica
	}
	kept := &keptResult{handle: handle, principal: of, limit: limit, size: int64(len(result)), file: file}
	kept.expiry = time.AfterFunc(keptFor, func() { k.drop(kept) })

	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		kept.remove()
		return "", errors.New("dynmcp is shutting down")
	}
	k.addLocked(kept)
	over := k.overLocked(of)
	k.mu.Unlock()
	for _, old := range over {
		old.remove()
	}
	return handle, nil
}

// overLocked takes out the oldest results that are too many, or too much: of a user who has
// more than its own, and of the user with the most where all have.
func (k *keptResults) overLocked(of principal) (over []*keptResult) {
	drop := func(of principal) {
		oldest := k.of[of].results[0]
		k.takeOutLocked(oldest)
		over = append(over, oldest)
	}
	for own := k.of[of]; len(own.results) > maxKeptCount || own.size > maxKeptOf; {
		drop(of)
	}
	for len(k.byHandle) > maxKeptOfAll || k.size > maxAllResults {
		drop(k.largestLocked(len(k.byHandle) > maxKeptOfAll))
	}
	return over
}

// largestLocked returns the user with the most results, or the most bytes.
func (k *keptResults) largestLocked(count bool) (largest principal) {
	most := int64(-1)
	for p, own := range k.of {
		has := own.size
		if count {
			has = int64(len(own.results))
		}
		if has > most {
			largest, most = p, has
		}
	}
	return largest
}

func (k *keptResults) addLocked(kept *keptResult) {
	k.byHandle[kept.handle] = kept
	k.size += kept.size
	own := k.of[kept.principal]
	if own == nil {
		own = &resultsOf{}
		k.of[kept.principal] = own
	}
	own.results = append(own.results, kept)
	own.size += kept.size
}

func (k *keptResults) takeOutLocked(kept *keptResult) {
	delete(k.byHandle, kept.handle)
	k.size -= kept.size
	own := k.of[kept.principal]
	own.size -= kept.size
	at := slices.Index(own.results, kept)
	if own.results = slices.Delete(own.results, at, at+1); len(own.results) == 0 {
		delete(k.of, kept.principal)
	}
}

// directory returns where results are kept.
func (k *keptResults) directory() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed:
		return "", errors.New("dynmcp is shutting down")
	case k.dir != "":
		return k.dir, nil
	}
	dir, err := os.MkdirTemp("", "dynmcp-results-") // 0700
	if err != nil {
		return "", err
	}
	k.dir, k.byHandle, k.of = dir, map[string]*keptResult{}, map[principal]*resultsOf{}
	return dir, nil
}

// get reads a result of a user; ok is false if there is none, or none any more.
func (k *keptResults) get(of principal, handle string) (result json.RawMessage, limit int, ok bool) {
	k.mu.Lock()
	kept := k.byHandle[handle]
	k.mu.Unlock()
	if kept == nil || kept.principal != of {
		return nil, 0, false
	}
	result = make([]byte, kept.size)
	_, err := kept.file.ReadAt(result, 0) // fails if it was dropped meanwhile
	return result, kept.limit, err == nil
}

// Result returns a result that is kept here for a user, and the limit of its tool, in
// characters; ok is false if there is none, or none any more. It is for other replicas,
// which ask by Options.ResultOf.
func (a *Aggregator) Result(user, handle string) (result json.RawMessage, limit int, ok bool) {
	return a.results.get(principal{user}, handle)
}

func (k *keptResults) drop(kept *keptResult) {
	k.mu.Lock()
	mine := k.byHandle[kept.handle] == kept
	if mine {
		k.takeOutLocked(kept)
	}
	k.mu.Unlock()
	if mine {
		kept.remove()
	}
}

func (r *keptResult) remove() {
	if r.expiry != nil {
		r.expiry.Stop()
	}
	r.file.Close()
	_ = os.Remove(r.file.Name())
}

// close removes everything.
func (k *keptResults) close() {
	k.mu.Lock()
	all, dir := k.byHandle, k.dir
	k.byHandle, k.of, k.dir, k.closed = nil, nil, "", true
	k.mu.Unlock()
	for _, r := range all {
		r.remove()
	}
	if dir != "" {
		_ = os.Remove(dir)
	}
}

// readsOn returns the tool of ours by which a session's host reads on in results, "" if no
// surface has one, or no result is ever cut.
func (s *session) readsOn() string {
	cfg := s.agg.config()
	switch {
	case !limitsResults(cfg):
	case s.exposes(schema.ExposeDiscover):
		return "discover_tool"
	case s.exposes(schema.ExposeBrowser):
		return "mcp_discover"
	}
	return ""
}

// limitsResults reports whether a config cuts some results.
func limitsResults(cfg *schema.Config) bool {
	return cfg.Catalog.MaxResultChars > 0 || slices.ContainsFunc(cfg.Servers, func(s schema.Server) bool {
		if s.MaxOutputChars > 0 {
			return true
		}
		for _, o := range s.ToolOverrides {
			if o.MaxOutputChars != nil && *o.MaxOutputChars > 0 {
				return true
			}
		}
		return false
	})
}

// withRest returns the input schema of a tool of ours that reads on in results, where
// some are cut. Its other arguments are then not required.
func withRest(schemaOf string, cfg *schema.Config) string {
	if !limitsResults(cfg) {
		return schemaOf
	}
	end := strings.LastIndex(schemaOf, `}},`)
	properties := schemaOf[:end+1]
	for _, p := range []struct{ name, definition string }{
		{"result", `{"type":"string","description":"Handle of a result that was cut. Reads on in it: by offset and limit, in characters, by jsonpath, or by grep."}`},
		{"jsonpath", `{"type":"string","description":"JSONPath over the result."}`},
		{"grep", `{"type":"string","description":"Regular expression. Returns where it matches in the result."}`},
		{"offset", `{"type":"integer","minimum":0}`},
		{"limit", `{"type":"integer","minimum":1}`},
	} {
		if !strings.Contains(properties, `"`+p.name+`":`) {
			properties += `,"` + p.name + `":` + p.definition
		}
	}
	return properties + `},"additionalProperties":false}`
}

// keepWhole keeps a result and adds to what is left of it how to read on. If it cannot
// be kept, what is left says that it is not all.
func (s *session) keepWhole(t *catalog.Tool, whole, left json.RawMessage) json.RawMessage {
	tool := s.readsOn()
	if tool == "" {
		return left
	}
	handle, err := s.agg.results.add(s.principal, s.agg.opts.Replica, t.MaxOutputChars, whole)
	if err != nil {
		s.agg.log.Warn("a result that was cut is not kept", "upstream", t.Server, "tool", t.Upstream, "err", err)
		return left
	}
	return catalog.WithRest(left, whole, tool, handle)
}

// readResult answers a call that reads on in a result.
func (s *session) readResult(r *host.Request, tool string, arguments json.RawMessage) {
	in := readArguments(arguments, "result", "jsonpath", "grep", "offset", "limit")
	handle := in.text("result")
	q := catalog.Rest{JSONPath: in.text("jsonpath"), Grep: in.text("grep"), Offset: in.number("offset"), Limit: in.number("limit")}
	switch query, grep, page := in.has("jsonpath"), in.has("grep"), in.has("offset") || in.has("limit"); {
	case in.errs != nil:
	case query && grep || page && (query || grep):
		in.fail(`"result" goes with one of "jsonpath", "grep", and "offset" with "limit"`)
	case q.Offset < 0 || q.Limit < 0:
		in.fail(`"offset" and "limit" must not be negative`)
	}
	if err := in.err(); err != nil {
		refuseArguments(r, tool, err)
		return
	}
	s.agg.work.AnswerWithin(r, func(ctx context.Context) {
		whole, limit, ok := s.agg.results.get(s.principal, handle)
		if _, keeper, elsewhere := strings.Cut(handle, "-"); !ok && elsewhere && keeper != s.agg.opts.Replica && s.agg.opts.ResultOf != nil {
			whole, limit, ok = s.agg.opts.ResultOf(ctx, keeper, s.principal.name, handle)
		}
		if !ok {
			refuseArguments(r, tool, fmt.Errorf("there is no result %s, or not any more: they are kept for an hour, at most %d. Call the tool again", cutValue(wire.Quote(handle)), maxKeptCount))
			return
		}
		q.Tool, q.Handle, q.Most = tool, handle, cmp.Or(limit, defaultRest)
		answer, err := q.Read(whole)
		if err != nil {
			refuseArguments(r, tool, err)
			return
		}
		r.Reply(answer, nil)
	})
}

// defaultRest is how many characters of a result are read at once where its tool has no
// limit any more.
const defaultRest = 16 << 10
