package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// maxServerRequests limits the requests of one upstream that wait for answers of hosts.
const maxServerRequests = 256

// serverRequests are the requests of an upstream that wait for an answer.
type serverRequests struct {
	conn *Conn

	mu   sync.Mutex
	byID map[string]serverRequest // by the id in the upstream's spelling
}

type serverRequest struct {
	own    *Call // the call on whose stream it came; nil if the stream is shared
	cancel context.CancelCauseFunc
}

// handle lets the peer answer a request of the upstream. A ping is answered directly.
func (s *serverRequests) handle(m wire.Message, own *Call) {
	c, peer := s.conn, s.conn.peerOf(own)
	if m.Method == "initialize" || m.Method == methodDiscover { // a program that echoes what it reads
		noteStray(c, m.Raw)
	}
	switch {
	case m.Method == "ping":
		s.respond(m.ID, json.RawMessage(`{}`), nil)
		return
	case peer == nil:
		s.respond(m.ID, nil, &wire.Error{Code: transports.CodeNoHost, Message: fmt.Sprintf("no host can answer %q", m.Method)})
		return
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	key := string(m.ID)
	if !s.register(key, own, cancel) {
		cancel(nil)
		s.respond(m.ID, nil, &wire.Error{Code: wire.CodeInvalidRequest, Message: fmt.Sprintf("id %s is in flight already, or %d others are", key, maxServerRequests)})
		return
	}
	answer := peer.Request(ctx, m.Method, m.Params)
	if !c.spawn(func() {
		defer cancel(nil)
		result, err := answer()
		s.remove(key)
		if ctx.Err() == nil {
			s.respond(m.ID, result, err)
		}
	}) {
		cancel(nil)
		_, _ = answer() // the upstream no longer waits for the answer
	}
}

func (s *serverRequests) respond(id []byte, result json.RawMessage, err error) {
	parts := wire.Result(id, result)
	if err != nil {
		parts = wire.Failure(id, transports.WireError(err))
	}
	s.conn.opts.Tap.Show(s.conn.peer, false, parts...)
	if err := s.conn.link.send(parts...); err != nil {
		s.conn.log.Debug("response not sent", "err", err)
	}
}

// register reports false if the id is in use or too many requests wait.
func (s *serverRequests) register(id string, own *Call, cancel context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.byID[id]; taken || len(s.byID) >= maxServerRequests {
		return false
	}
	if s.byID == nil {
		s.byID = map[string]serverRequest{}
	}
	s.byID[id] = serverRequest{own, cancel}
	return true
}

func (s *serverRequests) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

// cancel ends the context of a request, if it still waits.
func (s *serverRequests) cancel(id []byte, cause error) {
	s.mu.Lock()
	found := s.byID[string(id)]
	s.mu.Unlock()
	if found.cancel != nil {
		found.cancel(cause)
	}
}

// cancelOf ends the contexts of the requests that came on the stream of a call: once that is
// closed, the upstream could not cancel them.
func (s *serverRequests) cancelOf(own *Call, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.byID {
		if r.own == own {
			r.cancel(cause)
		}
	}
}
