package selfloop

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// header carries the marks of the gateways that a request passed to servers over HTTP: the id of
// each, and the entry of its config that led on. A gateway that receives its own mark is reached
// through one of its own servers.
const header = "Dynmcp-Lineage"

const (
	maxMarks     = 32               // that a request carries
	maxMarkBytes = 256              // of one; longer ones are not ours
	markedFor    = 10 * time.Minute // how long a mark is valid after it was last seen
)

// A Gateway is a run of dynmcp that serves hosts over HTTP.
type Gateway struct {
	id     string
	config string

	mu    sync.Mutex
	above map[string]map[string]time.Time // marks of hosts and their times, by the server that the hosts requested, "" for all
}

// NewGateway returns the gateway that serves config. secret is known only to its replicas.
func NewGateway(config, secret string) *Gateway {
	sum := sha256.Sum256([]byte(secret))
	return &Gateway{id: fmt.Sprintf("%x", sum[:8]), config: filepath.Base(config), above: map[string]map[string]time.Time{}}
}

// Mark adds the marks for requests to a server of the config: those of its hosts, and the gateway's
// own.
func (g *Gateway) Mark(server string, h http.Header) {
	marks := []string{g.id + "/" + url.PathEscape(server)}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, about := range []string{"", server} {
		maps.DeleteFunc(g.above[about], func(_ string, seen time.Time) bool { return time.Since(seen) > markedFor })
		for mark := range g.above[about] {
			if len(marks) < maxMarks && !slices.Contains(marks, mark) {
				marks = append(marks, mark)
			}
		}
	}
	h.Set(header, strings.Join(marks, ","))
}

// Enter reads the marks of a request for a server, "" for all. It is an error if the request
// came through a server that it would lead to.
func (g *Gateway) Enter(server string, h http.Header) error {
	value := h.Get(header)
	if value == "" {
		return nil
	}
	var marks []string
	for mark := range strings.SplitSeq(value, ",") {
		id, escaped, _ := strings.Cut(mark, "/")
		entry, err := url.PathUnescape(escaped)
		if len(mark) > maxMarkBytes || err != nil {
			continue
		}
		if id == g.id && (server == "" || server == entry) {
			return fmt.Errorf("the config reaches itself: the server %q of %s leads back to the gateway that serves it; take it out", entry, g.config)
		}
		if marks = append(marks, mark); len(marks) == maxMarks {
			break
		}
	}
	g.note(server, marks)
	return nil
}

func (g *Gateway) note(server string, marks []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.above[server]
	if of == nil {
		of = map[string]time.Time{}
		g.above[server] = of
	}
	now := time.Now()
	for _, mark := range marks {
		if _, known := of[mark]; known || len(of) < maxMarks {
			of[mark] = now
		}
	}
}
