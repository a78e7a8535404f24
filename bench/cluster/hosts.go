//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/ledger"
	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// The fates of a call.
const (
	succeeded  = iota
	unknown    // a failure that reports that it may have run
	notSent    // a failure that reports that it did not run
	brokenOff  // its connection broke
	refused    // an HTTP status without an outcome of the call
	unsaid     // a failure without an outcome
	misrouted  // the answer to another call
	unanswered // within bound
	forgotten  // 404: its session is gone, and the call was repeated
	fates
)

var fateNames = [fates]string{"succeeded", "unknown", "not_sent", "broken off", "refused", "not said whether they ran", "misrouted", "unanswered", "answered 404"}

// A record is the fate of one request. Times are those of ledgers.
type record struct {
	call         int // its number, -1 is an initialize
	server       uint8
	fate         uint8
	entry, owner int8 // the replicas of its connection and of its session; -1 if unknown
	from, to     int64
	connected    int64  // when its connection was made
	since        int64  // when its session was begun
	text         string // of a failure
}

// A crowd is hosts that call through the balancer.
type crowd struct {
	*cluster
	hosts   int
	lasts   time.Duration // the calls are spread over at least this time
	servers []server
	stop    chan struct{} // closed to end the calls; nil is never

	began   time.Time
	working sync.WaitGroup

	mu      sync.Mutex
	calls   int // in all
	next    int // call
	records []record
}

// nonce returns the nonce of the call with a number.
func nonce(call int) string { return fmt.Sprintf("n%d", call) }

// start begins the calls; wait returns when all are answered.
func (w *crowd) start() {
	w.began = time.Now()
	for i := range w.hosts {
		w.working.Go(func() { w.work(i) })
	}
}

func (w *crowd) wait() { w.working.Wait() }

// made returns how many calls were made, after the end of all.
func (w *crowd) made() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

// take returns the number of the next call, if any.
func (w *crowd) take() (call int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.stop:
		w.calls = w.next
	default:
	}
	if w.next == w.calls {
		return 0, false
	}
	w.next++
	return w.next - 1, true
}

// work runs the host with a number. Every other host is of the stateless era.
func (w *crowd) work(i int) {
	client := web.NewClient()
	defer client.CloseIdleConnections()
	h := &caller{crowd: w, web: web.NewHost(w.url+"/mcp", client), owner: -1}
	h.web.Token, h.web.Stateless = token, i%2 == 1
	for {
		call, ok := w.take()
		if !ok {
			break
		}
		if w.lasts > 0 {
			time.Sleep(time.Until(w.began.Add(time.Duration(float64(w.lasts) * float64(call) / float64(w.calls)))))
		}
		h.call(call, rand.IntN(len(w.servers)))
		if rand.IntN(5) == 0 {
			client.CloseIdleConnections() // the next call goes to another replica
		}
	}
	w.keep(h)
}

// keep ends a host's session and collects its records.
func (w *crowd) keep(h *caller) {
	if h.web.Session() != "" {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		_ = h.web.End(ctx) // its replica may be gone
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = append(w.records, h.records...)
}

// A caller is a host of a crowd.
type caller struct {
	*crowd
	web     *web.Host
	owner   int8 // of its session, -1 if absent
	since   int64
	records []record
}

// request makes one or several requests, and returns a record with the replica of the first
// connection.
func (h *caller) request(do func(ctx context.Context) error) (r record, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	var from atomic.Value // the address of its connection
	from.Store("")
	r.from = ledger.Now()
	err = do(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { from.CompareAndSwap("", info.Conn.LocalAddr().String()) },
	}))
	r.to = ledger.Now()
	to := h.balancer.route(from.Load().(string))
	r.entry, r.connected, r.owner = int8(to.target), to.since, h.owner
	r.since = h.since
	return r, err
}

// begin begins a session, and retries until it succeeds.
func (h *caller) begin() {
	for {
		h.owner = -1
		r, err := h.request(h.web.Handshake)
		if err == nil {
			h.owner, h.since = r.entry, r.from
			return
		}
		r.call, r.fate, r.text = -1, fateOf(err), err.Error()
		h.records = append(h.records, r)
		pause()
	}
}

// pause waits before a retry.
func pause() { time.Sleep(20*time.Millisecond + rand.N(80*time.Millisecond)) }

// call makes one call. A call that is answered with 404 did not run: it is repeated in a new session,
// with the same nonce.
func (h *caller) call(call, server int) {
	arguments := fmt.Sprintf(`{"tool_name":"%s/echo","tool_input":{"nonce":%q,"ms":%d}}`, h.servers[server].name, nonce(call), work())
	for {
		if !h.web.Stateless && h.web.Session() == "" {
			h.begin()
		}
		var messages [][]byte
		r, err := h.request(func(ctx context.Context) (err error) {
			messages, err = h.web.Call(ctx, fmt.Sprint(call), "use_tool", arguments)
			return err
		})
		r.call, r.server = call, uint8(server)
		var status *web.StatusError
		if errors.As(err, &status) && status.Code == http.StatusNotFound && !h.web.Stateless {
			r.fate, r.text = forgotten, err.Error()
			h.records = append(h.records, r)
			h.web.Forget()
			continue
		}
		if err != nil {
			r.fate, r.text = fateOf(err), err.Error()
		} else {
			r.fate, r.text = judgeAnswer(messages, fmt.Sprint(call), nonce(call))
		}
		h.records = append(h.records, r)
		if r.fate != succeeded {
			pause()
		}
		return
	}
}

// work returns how many milliseconds a call takes. Most take none.
func work() int {
	if rand.IntN(20) > 0 {
		return 0
	}
	return rand.IntN(50)
}

func fateOf(err error) uint8 {
	var status *web.StatusError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return unanswered
	case !errors.As(err, &status):
		return brokenOff
	}
	switch web.Outcome(status.Text) {
	case "unknown":
		return unknown
	case "not_sent":
		return notSent
	}
	return refused
}

// judgeAnswer returns the fate of the call with an id and a nonce, from the messages of its response.
func judgeAnswer(messages [][]byte, id, nonce string) (fate uint8, text string) {
	answers := 0
	for _, line := range messages {
		m, err := hosts.Parse(string(line))
		if err != nil {
			return misrouted, err.Error()
		}
		if m.Method != "" { // such as progress
			continue
		}
		if answers++; answers > 1 {
			return misrouted, fmt.Sprintf("another answer: %.200s", line)
		}
		switch {
		case string(m.ID) != id:
			return misrouted, fmt.Sprintf("%.200s", line)
		case m.Error != nil || m.Result.IsError:
			text = fmt.Sprintf("%.500s", line)
			switch web.Outcome(string(line)) {
			case "unknown":
				fate = unknown
			case "not_sent":
				fate = notSent
			default:
				fate = unsaid
			}
		case string(m.Result.StructuredContent) != fmt.Sprintf(`{"nonce":%q}`, nonce):
			return misrouted, fmt.Sprintf("%.300s", line)
		}
	}
	if answers == 0 {
		return brokenOff, "a response without an answer"
	}
	return fate, text
}
