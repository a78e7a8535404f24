package host

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Few updates of a resource wait for a host that does not read. When it reads again it gets the
// last one. The number of resources with a waiting update is limited.
func TestOneUpdateOfAResourceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dropped := 0
		host := newPipedHost(t.Context(), t, SessionOptions{Dropped: func() { dropped++ }})
		lines := bufio.NewReader(host.stdout)
		_, _ = io.WriteString(host.stdin, initialize("2025-11-25")+"\n")
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		padding := strings.Repeat("x", 1000)
		update := func(uri string, n int) {
			host.Notify("notifications/resources/updated", fmt.Appendf(nil, `{"uri":%q,"n":%d,"_meta":{"x":%q}}`, uri, n, padding))
		}
		for n := range 400 {
			update("x://a", n)
			time.Sleep(mergeFor)
		}
		if got := host.edge.out.Waiting(); got > 2*MaxLatest {
			t.Errorf("%d bytes wait", got)
		}
		heard, last := 0, ""
		reading := make(chan struct{})
		go func() {
			defer close(reading)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				heard, last = heard+1, line
			}
		}()
		time.Sleep(2 * mergePause)
		synctest.Wait()
		if heard > 100 || !strings.Contains(last, `"n":399,`) {
			t.Errorf("%d updates were heard, the last one %.80s", heard, last)
		}
		heard = 0
		for n := range 20_000 {
			update(fmt.Sprintf("x://a/%d", n), n)
		}
		host.stdin.Close()
		<-host.served
		host.stdout.Close()
		<-reading
		if heard == 0 || heard > maxAtOnce+maxMerged || heard+dropped != 20_000 {
			t.Errorf("%d updates were heard and %d dropped", heard, dropped)
		}
	})
}

// Answers overtake notifications that MCP does not know and that the host has no room for: a number
// of these that fits into MaxLatest comes before, the others come in their order when it reads, and
// what is over maxMerged is dropped.
func TestAnswersOvertakeOtherNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dropped := 0
		host := newPipedHost(t.Context(), t, SessionOptions{
			Dropped:       func() { dropped++ },
			HandleRequest: func(r *Request) { r.Reply(json.RawMessage(`"answer"`), nil) },
		})
		lines := bufio.NewReader(host.stdout)
		_, _ = io.WriteString(host.stdin, initialize("2025-11-25")+"\n")
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		const many, size = 20_000, 100
		for n := range many {
			host.Notify("notifications/x", fmt.Appendf(nil, `{"n":"%0*d"}`, size, n))
		}
		_, _ = io.WriteString(host.stdin, `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`+"\n")
		synctest.Wait() // the answer is queued
		var order []string
		reading := make(chan struct{})
		go func() {
			defer close(reading)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				order = append(order, line)
			}
		}()
		time.Sleep(2 * mergePause)
		host.stdin.Close()
		<-host.served
		host.stdout.Close()
		<-reading
		before := slices.IndexFunc(order, func(line string) bool { return strings.Contains(line, `"answer"`) })
		if before < 0 || before > MaxLatest/size+1 {
			t.Errorf("%d of %d notifications came before the answer, want %d at most", before, len(order)-1, MaxLatest/size+1)
		}
		order = slices.Delete(order, before, before+1)
		if !slices.IsSorted(order) || len(order) < before+maxMerged*9/10 || len(order)+dropped != many {
			t.Errorf("%d were heard and %d dropped, in order: %t", len(order), dropped, slices.IsSorted(order))
		}
	})
}

// A latestHost keeps the messages that it is sent while it has room. The lock of latest, under
// which take is called, guards it.
type latestHost struct {
	latest
	full  bool
	tries int
	got   []string
}

func newLatestHost(full bool) *latestHost {
	h := &latestHost{full: full}
	h.send, h.merges = h.take, true
	return h
}

func (h *latestHost) take(m latestMessage, _ Class) error {
	h.tries++
	if h.full {
		return wire.ErrFull
	}
	h.got = append(h.got, string(m.params))
	return nil
}

func (h *latestHost) say(subject, params string) bool {
	return h.put(subject, latestMessage{params: json.RawMessage(params)})
}

func (h *latestHost) hasRoom(room bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.full = !room
}

// tried returns how many attempts to send were made.
func (h *latestHost) tried() int {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tries
}

// heard returns the messages since its last call.
func (h *latestHost) heard() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	got := strings.Join(h.got, " ")
	h.got = nil
	return got
}

// The first notification of a subject is sent at once. Of those that follow soon, the last one is
// sent. A new notification does not overtake waiting ones.
func TestFirstAtOnceThenTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLatestHost(false)
		for n, params := range []string{"a1", "a2", "a3"} {
			h.say("a", params)
			if got := h.heard(); (got == "a1") != (n == 0) {
				t.Errorf("after %s: got %q", params, got)
			}
		}
		h.say("b", "b1")
		if got := h.heard(); got != "" {
			t.Errorf("%q was sent before the waiting notification", got)
		}
		time.Sleep(mergeFor)
		if got := h.heard(); got != "a3 b1" {
			t.Errorf("after the pause: got %q", got)
		}
		time.Sleep(4 * mergeFor)
		h.say("a", "a4")
		if got := h.heard(); got != "a4" {
			t.Errorf("after a pause without notifications: got %q", got)
		}
		h.say("a", "a5")
		time.Sleep(mergeFor)
		if got := h.heard(); got != "a5" {
			t.Errorf("a pause without any made the next one longer: %q came", got)
		}
		h.say("a", "a5")
		h.say("c", "c1")
		h.close()
		if got := h.heard(); got != "a5 c1" {
			t.Errorf("at the end: got %q", got)
		}
		if !h.say("a", "a6") || h.heard() != "" {
			t.Error("a notification was sent after the end")
		}
	})
}

// Up to maxAtOnce notifications of new subjects are sent at once, and as many after each pause.
func TestSubjectsAtOnceAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLatestHost(false)
		for n := range 2*maxAtOnce + 1 {
			h.say(fmt.Sprint(n), "x")
		}
		for n, want := range []int{maxAtOnce, maxAtOnce, 1, 0} {
			if got := len(strings.Fields(h.heard())); got != want {
				t.Errorf("%d were sent after %d pauses, want %d", got, n, want)
			}
			time.Sleep(mergeFor)
		}
		h.close()
	})
}

// The waiting subjects and bytes are limited. A notification that replaces another is counted
// once, and one that was sent is no longer counted.
func TestWaitingNotificationsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLatestHost(true)
		for n := range maxMerged {
			if !h.say(fmt.Sprint(n), "x") {
				t.Fatalf("there is no room for subject %d", n)
			}
		}
		if h.say("one more", "x") || !h.say("7", "y") {
			t.Error("want no room for another subject, and room for a replacement")
		}
		h.hasRoom(true)
		h.close()

		h = newLatestHost(true)
		most := strings.Repeat("x", maxMergedBytes)
		first, again := h.say("large", most), h.say("large", most)
		if !first || !again || h.say("small", "x") {
			t.Error("want room up to the limit, and not above")
		}
		if !h.say("large", most[1:]) || !h.say("small", "x") || h.say("large", most) {
			t.Error("want room for the freed bytes only")
		}
		h.hasRoom(true)
		time.Sleep(mergePause)
		if got := h.heard(); len(got) != maxMergedBytes+1 {
			t.Errorf("%d bytes were sent", len(got))
		}
		h.hasRoom(false)
		if !h.say("large", most) {
			t.Error("sent bytes are still counted")
		}
		h.hasRoom(true)
		h.close()
	})
}

func TestPausesOfAHostWithoutRoomGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLatestHost(true)
		h.say("a", "x")
		for pause, total := mergeFor, time.Duration(0); total < 4*mergePause; pause = min(2*pause, mergePause) {
			tries := h.tried()
			time.Sleep(pause - time.Nanosecond)
			early := h.tried() - tries
			time.Sleep(time.Nanosecond)
			if got := h.tried() - tries; early != 0 || got != 1 {
				t.Fatalf("%d tries before a pause of %v was over, %d after", early, pause, got)
			}
			total += pause
		}
		h.hasRoom(true)
		time.Sleep(mergePause)
		if got := h.heard(); got != "x" {
			t.Errorf("got %q", got)
		}
		h.close()
	})
}

// Notifications that wait are charged, once for each subject, and dropped if the account may have no more.
func TestWaitingNotificationsAreCharged(t *testing.T) {
	budget, room := membudget.New(1000, nil), false
	l := latest{merges: true, charged: budget.Open("host", nil), send: func(latestMessage, Class) error {
		if room {
			return nil
		}
		return wire.ErrFull
	}}
	for n, c := range []struct {
		subject       string
		size, charged int64
	}{{"a", 100, 100}, {"a", 200, 200}, {"b", 300, 500}, {"c", 1, 500}, {"b", 100, 300}, {"c", 100, 400}} {
		if took := l.put(c.subject, latestMessage{params: make([]byte, c.size)}); took != (n != 3) || budget.Total() != c.charged {
			t.Errorf("%d: taken: %v, %d bytes are charged, want %d", n, took, budget.Total(), c.charged)
		}
	}
	room = true
	l.flush()
	if got := budget.Total(); got != 0 {
		t.Errorf("%d bytes are charged for what was sent", got)
	}
	room = false
	l.put("a", latestMessage{params: make([]byte, 100)})
	l.close()
	if got := budget.Total(); got != 0 {
		t.Errorf("%d bytes are charged at the end", got)
	}
}
