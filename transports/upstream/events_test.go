package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

func TestReadEvents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		want []string
	}{
		{"data: 1\n\ndata: 2\n\n", []string{"||1", "||2"}},
		{"event: e\nid: 7\ndata:a\ndata:  b\ndata\n\n", []string{"e|7|a\n b\n"}},
		{"id: 7\n\n: c\n\n", []string{"|7|", "||"}},
		{"id: 7\x00\ndata: 1\n\nid: \x1b[m\ndata: 2\n\n", []string{"||1", "||2"}},
		{"data: 1\r\n\r\n\n\ndata: 2", []string{"||1", "||2"}},
		{"data: 1\n\ndata: {\"cut", []string{"||1"}},
		{"\ufeffdata: 1\n\n", []string{"||1"}},
		{"data: 1\r\rdata: 2\r\r", []string{"||1", "||2"}},
		{"event: e\rid: 7\ndata:a\r\ndata: b\r\n\rdata: c\n\r\n", []string{"e|7|a\nb", "||c"}},
		{"data: 1\r\n\r\r\n\ndata: 2\r", []string{"||1", "||2"}},
		{"data: " + strings.Repeat("x", 100) + "\n\n", []string{"||" + strings.Repeat("x", 100)}},
	} {
		var got []string
		err := readEvents(bodyOf(test.in), 100, func(e streamEvent) { got = append(got, e.name+"|"+e.id+"|"+string(e.data)) })
		if err != nil || fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%q: got %q, %v, want %q", test.in, got, err, test.want)
		}
	}
	for _, in := range []string{"data: " + strings.Repeat("x", 101) + "\n\n", strings.Repeat("data: xxxxxxxxxx\n", 11), "data: " + strings.Repeat("x", 1<<20)} {
		if err := readEvents(bodyOf(in), 100, func(streamEvent) {}); !errors.Is(err, errTooLarge) {
			t.Errorf("%.20q…: got %v, want %v", in, err, errTooLarge)
		}
	}
	comment := io.MultiReader(strings.NewReader(": "+strings.Repeat("x", 90)), strings.NewReader(strings.Repeat("x", 50)+"\n\n"))
	if err := readEvents(bodyFrom(comment), 100, func(streamEvent) {}); !errors.Is(err, errTooLarge) {
		t.Errorf("a comment in pieces: got %v, want %v", err, errTooLarge)
	}
}

// The result does not depend on how the stream is read: at once, in two pieces, or byte by byte.
func TestReadEventsInPieces(t *testing.T) {
	t.Parallel()
	const stream = "\ufeff: hi\nevent: e\nid: 7\ndata: a\ndata:\ndata: b\n\ndata: c\n\n\ndata: 5\n"
	const want = "[\"e|7|a\\n\\nb\" \"||c\" \"||5\"]"
	for _, end := range []string{"\n", "\r\n", "\r"} {
		text := strings.ReplaceAll(stream, "\n", end)
		ways := map[string]io.Reader{"byte by byte": iotest.OneByteReader(strings.NewReader(text))}
		for cut := range len(text) + 1 {
			ways[fmt.Sprintf("cut at %d", cut)] = io.MultiReader(strings.NewReader(text[:cut]), strings.NewReader(text[cut:]))
		}
		for name, r := range ways {
			var got []string
			err := readEvents(bodyFrom(r), 100, func(e streamEvent) { got = append(got, e.name+"|"+e.id+"|"+string(e.data)) })
			if err != nil || fmt.Sprintf("%q", got) != want {
				t.Errorf("line end %q, %s: got %q, %v, want %s", end, name, got, err, want)
			}
		}
	}
}

// An event is delivered as soon as its empty line has been read, even if that ends in "\r" and a "\n"
// may follow.
func TestReadEventsAtOnce(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"data: 1\n\n", "data: 1\r\r", "data: 1\r\n\r\n", "data: 1\n\r", "data: 1\r\n\r"} {
		delivered := false
		rest := readerFunc(func([]byte) (int, error) {
			if !delivered {
				t.Errorf("%q: the event was not delivered before the next read", text)
			}
			return 0, io.EOF
		})
		if err := readEvents(bodyFrom(io.MultiReader(strings.NewReader(text), rest)), 100, func(streamEvent) { delivered = true }); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Lines and events that are longer than the buffer keep their bytes.
func TestReadEventsLongLines(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r\n", "\r"} {
		for size := 32<<10 - 10; size < 32<<10+10; size++ {
			want := strings.Repeat("x", size-1) + "y"
			var got []string
			text := "data: " + want + end + end + "data: z" + end + end
			err := readEvents(bodyOf(text), 1<<20, func(e streamEvent) { got = append(got, string(e.data)) })
			if err != nil || len(got) != 2 || got[0] != want || got[1] != "z" {
				t.Errorf("%d bytes, line end %q: got %d events, %v", size, end, len(got), err)
			}
		}
	}
}

func bodyOf(text string) *answerBody { return bodyFrom(strings.NewReader(text)) }

func bodyFrom(r io.Reader) *answerBody {
	patience := httpTimeouts{header: time.Hour, body: time.Hour}
	return newAnswerBody(io.NopCloser(r), newAttempt(context.Background(), patience, new(atomic.Int64)))
}

// The memory of a large event is counted only while the event is read and handled, also if the
// event is cut off.
//
// Not in parallel: the count is that of the process.
func TestLargeEventsAreCounted(t *testing.T) {
	before := wire.LargeInUse()
	body := bodyOf("data: " + strings.Repeat("x", 1<<20) + "\n\ndata: z\n\ndata: " + strings.Repeat("y", 1<<20))
	var counted []int64
	if err := readEvents(body, 4<<20, func(streamEvent) { counted = append(counted, wire.LargeInUse()-before) }); err != nil {
		t.Fatal(err)
	}
	if len(counted) != 2 || counted[0] < 1<<20 || counted[1] != 0 {
		t.Errorf("got counts of %d bytes, want that of the first event, then 0", counted)
	}
	if err := body.Close(); err != nil || wire.LargeInUse() != before {
		t.Errorf("%d bytes are counted at the end, %v", wire.LargeInUse()-before, err)
	}
}
