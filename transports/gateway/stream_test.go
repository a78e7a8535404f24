package gateway

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/host"
)

// What is written is charged once: to the stream while it keeps it, otherwise to the writer.
func TestWrittenEventsAreChargedOnce(t *testing.T) {
	const small, large = 400 << 10, maxReplay + 1
	for _, c := range []struct {
		ids  bool
		old  int // bytes of an event that was written before
		size []int
		gone int
	}{
		{false, 0, []int{small}, small}, {false, small, []int{small, small}, 2 * small}, {true, 0, []int{small}, 0}, {true, 0, []int{large}, large},
		{true, small, []int{small, small}, 0}, {true, small, []int{small, large}, small + large}, {true, 0, []int{small, small, small}, small},
	} {
		st := newStream(maxOrdinary)
		st.ids, st.open, st.reserved = c.ids, true, membudget.New(64<<20, nil).Open("host", nil)
		put := func(size int) {
			if err := st.put(nil, host.Essential, [][]byte{bytes.Repeat([]byte("x"), size)}); err != nil {
				t.Fatal(err)
			}
		}
		carrier, _, _ := st.carry(0)
		if c.old > 0 {
			put(c.old)
			st.take(carrier)
		}
		for _, size := range c.size {
			put(size)
		}
		if events, _, gone, _ := st.take(carrier); len(events) != len(c.size) || gone != c.gone {
			t.Errorf("%+v: of %d events %d bytes are not kept", c, len(events), gone)
		}
	}
}

// A stream is charged for its unsent events, and for sent events in the replay buffer until
// nobody can resume it.
func TestStreamIsChargedForItsEvents(t *testing.T) {
	const size = 400 << 10
	budget := membudget.New(64<<20, nil)
	st := newStream(maxOrdinary)
	st.ids, st.open, st.reserved = true, true, budget.Open("host", nil)
	put := func() {
		t.Helper()
		if err := st.put(nil, host.Essential, [][]byte{bytes.Repeat([]byte("x"), size)}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(what string, waiting, kept int) {
		t.Helper()
		if st.waiting != waiting*size || st.replayable != kept*size || budget.Total() != int64(waiting+kept)*size {
			t.Errorf("%s: %d bytes wait, %d are kept, %d are charged, want %d, %d and their sum", what, st.waiting, st.replayable, budget.Total(), waiting*size, kept*size)
		}
	}
	take := func() {
		carrier, _, _ := st.carry(0)
		st.take(carrier)
	}
	put()
	is("one waits", 1, 0)
	take()
	is("one was written", 0, 1)
	put()
	is("another waits", 1, 1)
	take()
	is("both were written", 0, 2)
	put()
	st.trim()
	is("the buffer is trimmed", 1, 1)
	put()
	take()
	is("the newest are kept", 0, 2)
	if _, before, ok := st.carry(4); !ok || before != 3 {
		t.Errorf("the host resumes after event %d, %t", before, ok)
	}
	is("one is written again", 1, 1)
	first, second := st.readBy(nil), st.readBy(nil)
	st.abandon()
	first()
	if budget.Total() != 2*size {
		t.Errorf("%d bytes are charged while somebody reads", budget.Total())
	}
	second()
	if budget.Total() != 0 {
		t.Errorf("%d bytes are charged when nobody reads", budget.Total())
	}
}

// Messages are dropped above the limit of their class.
func TestClassesOfMessages(t *testing.T) {
	for class, most := range map[host.Class]int{host.Expendable: maxExpendable, host.Ordinary: maxOrdinary, host.Essential: 2 * maxOrdinary} {
		st := newStream(2 * maxOrdinary)
		st.open = true
		text := [][]byte{bytes.Repeat([]byte("x"), 64<<10)}
		var err error
		for err == nil && st.waiting < 2*maxOrdinary {
			err = st.put(nil, class, text)
		}
		if st.waiting < most || st.waiting > most+len(text[0]) || errors.Is(err, wire.ErrFull) != (class != host.Essential) {
			t.Errorf("class %d: %d bytes wait, %v, want %d", class, st.waiting, err, most)
		}
	}
}
