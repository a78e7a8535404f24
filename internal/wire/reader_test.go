package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// read returns the messages and faults of src as texts, "ok RAW", "batch RAW" or the word and
// the line of a fault, and the error at the end.
func read(src io.Reader, max int) (got []string, end error) {
	r := NewReader(src, max)
	for {
		m, err := r.Next()
		var fault *Fault
		switch {
		case err == nil && m.Raw[0] == '[':
			got = append(got, "batch "+string(m.Raw))
		case err == nil:
			got = append(got, "ok "+string(m.Raw))
		case errors.As(err, &fault):
			got = append(got, word(fault)+" "+string(fault.Line))
		default:
			return got, err
		}
	}
}

func word(f *Fault) string {
	switch {
	case f.TooBig:
		return "big"
	case f.Cut:
		return "cut"
	case errors.Is(f.Err, ErrEnvelope):
		return "envelope"
	}
	return "junk"
}

const (
	one = `{"jsonrpc":"2.0","id":1,"method":"a"}`
	two = `{"result":{"x":"\n"},"jsonrpc":"2.0","id":2}`
)

func TestReader(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     []string
	}{
		{"lines", one + "\n" + two + "\n", []string{"ok " + one, "ok " + two}},
		{"no newline at the end", one + "\n" + two, []string{"ok " + one, "ok " + two}},
		{"crlf", one + "\r\n" + two + "\r\n", []string{"ok " + one, "ok " + two}},
		{"cr between tokens", "{\r\"jsonrpc\":\"2.0\",\r\r\"id\":1,\"method\":\"a\"\r}\r\n", []string{`ok { "jsonrpc":"2.0",  "id":1,"method":"a" }`}},
		{"cr before a message", "\r" + one + "\n", []string{"ok " + one}},
		{"empty lines and space", "\n\r\n  " + one + "\t\n\n \n" + two + "\n\n", []string{"ok " + one, "ok " + two}},
		{"byte order mark", "\ufeff" + one + "\n" + two + "\n", []string{"ok " + one, "ok " + two}},
		{"byte order mark later", one + "\n\ufeff" + two + "\n", []string{"ok " + one, "junk \ufeff" + two}},
		{"two on a line", one + two + " " + one + "\n", []string{"ok " + one, "ok " + two, "ok " + one}},
		{"junk behind a message", one + " done\n" + two + "\n", []string{"ok " + one, "junk done", "ok " + two}},
		{"banner", "Server running 🎉\n[info] loading {\"a\":1}\n{not json\n" + one + "\n",
			[]string{"junk Server running 🎉", `junk [info] loading {"a":1}`, "junk {not json", "ok " + one}},
		{"no envelope", `{"foo":1}` + "\n" + two + "\n", []string{`envelope {"foo":1}`, "ok " + two}},
		{"batch", "[" + one + "," + two + "]\n", []string{"batch [" + one + "," + two + "]"}},
		{"empty batch", "[]\n[1]\n", []string{"batch []", "batch [1]"}},
		{"pretty", "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n  \"method\": \"a\"\n}\n" + two + "\n",
			[]string{`ok {   "jsonrpc": "2.0",   "id": 1,   "method": "a" }`, "ok " + two}},
		{"pretty, and another behind it", "{\n\"jsonrpc\": \"2.0\",\n\"id\": 1,\n\"method\": \"a\"\n}" + two + "\n",
			[]string{`ok { "jsonrpc": "2.0", "id": 1, "method": "a" }`, "ok " + two}},
		{"a line ends before the params", `{"jsonrpc":"2.0","method":"a","params":` + "\n" + `{"x":1}}` + "\n",
			[]string{`ok {"jsonrpc":"2.0","method":"a","params": {"x":1}}`}},
		{"message broken off", one[:20] + "\n" + two + "\n", []string{"junk " + one[:20], "ok " + two}},
		// The order of members is the sender's; a message need not begin with "jsonrpc".
		{"open bracket before an answer", "[1,2\n" + two + "\n", []string{"junk [1,2", "ok " + two}},
		{"open bracket before a batch", "{\"a\":\n[" + one + "]\n", []string{`junk {"a":`, "batch [" + one + "]"}},
		{"open bracket behind a pretty message", `{"jsonrpc":"2.0","method":"a","params":` + "\n1}{\"x\":[\n" + two + "\n" + one + "\n",
			[]string{`ok {"jsonrpc":"2.0","method":"a","params": 1}`, `junk {"x":[`, "ok " + two, "ok " + one}},
		{"open bracket, junk, a message", "{\"a\":[\nfoo\n" + one + "\n", []string{`junk {"a":[ foo`, "ok " + one}},
		{"open bracket before junk", "{\"a\":\nfour\nfive\n" + one + "\n", []string{`junk {"a": four`, "junk five", "ok " + one}},
		{"string broken off", `{"jsonrpc":"2.0","method":"x` + "\n" + `y"}` + "\n" + one + "\n",
			[]string{`junk {"jsonrpc":"2.0","method":"x`, `junk y"}`, "ok " + one}},
		{"ends inside a message", one + "\n" + two[:30], []string{"ok " + one, "cut " + two[:30]}},
		{"ends inside a pretty message", "{\n\"jsonrpc\":", []string{`cut { "jsonrpc":`}},
		{"binary", "\x00\xff\xfe\n" + one + "\n", []string{"junk \x00\xff\xfe", "ok " + one}},
		{"nothing", "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, src := range map[string]io.Reader{
				"whole":         strings.NewReader(test.in),
				"byte by byte":  iotest.OneByteReader(strings.NewReader(test.in)),
				"data with EOF": iotest.DataErrReader(strings.NewReader(test.in)),
			} {
				if got, err := read(src, 1<<20); !slices.Equal(got, test.want) || err != io.EOF {
					t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
				}
			}
		})
	}
}

func TestReaderLimit(t *testing.T) {
	const limit = 200
	fits := `{"jsonrpc":"2.0","method":"a","params":"` + strings.Repeat("x", limit-42) + `"}`
	if len(fits) != limit {
		t.Fatal(len(fits))
	}
	over := strings.Replace(fits, "x", "xx", 1)
	want := []string{"ok " + fits, "big " + over, "ok " + one}
	for _, size := range []int{1, 7, limit, limit + 1, limit + 2, 10 * limit} {
		src := chunked(fits+"\n"+over+"\n"+one+"\n", size)
		if got, err := read(src, limit); !slices.Equal(got, want) || err != io.EOF {
			t.Errorf("chunks of %d: got %q, %v", size, got, err)
		}
	}
	if got, err := read(chunked(over, 50), limit); !slices.Equal(got, []string{"big " + over}) || err != io.EOF {
		t.Errorf("at the end: got %q, %v", got, err)
	}
}

// The message after a huge line is found, and the line costs no memory.
func TestReaderHugeLine(t *testing.T) {
	const limit, huge = 1 << 20, 64 << 20
	for largeBuffers.Get() != nil { // that of another test may be larger than the limit
	}
	src := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":9,"result":"`), io.LimitReader(xs{}, huge), strings.NewReader("\"}\n"+one+"\n"))
	r := NewReader(src, limit)
	_, err := r.Next()
	var fault *Fault
	if !errors.As(err, &fault) || !fault.TooBig || string(first(fault.Answers())) != "9" || len(fault.Line) != kept || len(fault.End) != kept {
		t.Fatalf("got %v", err)
	}
	if len(r.buf) > readChunk {
		t.Errorf("a buffer of %d bytes is kept", len(r.buf))
	}
	if m, err := r.Next(); err != nil || string(m.Raw) != one {
		t.Errorf("got %s, %v", m.Raw, err)
	}
}

type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A message is valid until the next call of Next, and tests overwrite it then. A clone stays
// valid.
func TestMessagesAreValidUntilTheNext(t *testing.T) {
	var in strings.Builder
	var want []string
	for n := range 300 {
		size := []int{10, 1000, readChunk, 3 * readChunk}[n%4]
		line := fmt.Sprintf(`{"jsonrpc":"2.0","method":"m%d","params":"%s"}`, n, strings.Repeat("x", size))
		want = append(want, line)
		in.WriteString(line + "\n")
	}
	r := NewReader(strings.NewReader(in.String()), 1<<20)
	var messages, clones []Message
	for {
		m, err := r.Next()
		if len(messages) > 0 {
			// Another may lie there by now.
			if last := len(messages) - 1; string(messages[last].Raw) == want[last] {
				t.Fatalf("message %d is still there", last)
			}
		}
		if err != nil {
			break
		}
		messages, clones = append(messages, m), append(clones, m.Clone())
	}
	for n := range want {
		clone := clones[n]
		if string(clone.Raw) != want[n] || clone.Method != fmt.Sprint("m", n) || clone.ID != nil || !strings.HasSuffix(want[n], string(clone.Params)+"}") {
			t.Fatalf("message %d changed: %.80s", n, clone.Raw)
		}
		within(t, clone.Raw, clone.Params, "params")
	}
	if len(clones) != len(want) {
		t.Errorf("%d messages, want %d", len(clones), len(want))
	}
}

// A clone must not keep much more memory than its own bytes: lists are kept for long, and may
// come after a big result.
func TestReaderKeepsLittle(t *testing.T) {
	line := func(size int) string {
		return `{"jsonrpc":"2.0","method":"m","params":"` + strings.Repeat("x", size) + "\"}\n"
	}
	const lists = 10
	src := chunked(strings.Repeat(line(4<<20)+line(100<<10), lists), 64<<10)
	r := NewReader(src, 16<<20)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var kept []Message
	for n := range 2 * lists {
		m, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if n%2 == 1 {
			kept = append(kept, m.Clone())
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.GC() // what is in a pool goes with the second one
	runtime.ReadMemStats(&after)
	if got := int(after.HeapAlloc) - int(before.HeapAlloc); got > lists*300<<10 {
		t.Errorf("%d lists of 100 KiB keep %d KiB", len(kept), got>>10)
	}
	runtime.KeepAlive(src)
	runtime.KeepAlive(kept)
}

func TestReaderPassesErrors(t *testing.T) {
	cause := errors.New("read failed")
	if _, err := read(io.MultiReader(strings.NewReader(one+"\n"), iotest.ErrReader(cause)), 1<<20); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
	if _, err := read(nothing{}, 1<<20); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v, want %v", err, io.ErrNoProgress)
	}
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

// Junk that may continue on the next line costs linear time: checked after each line, it took
// seconds.
func TestReaderJoinIsLinear(t *testing.T) {
	junk := strings.Repeat("[\n", 1<<20)
	if got, err := read(strings.NewReader(junk+one+"\n"), 1<<20); err != io.EOF || got[len(got)-1] != "ok "+one {
		t.Errorf("got %d, %v", len(got), err)
	}
}

// Reading any input, and finding the calls that broken lines answer, scans no byte more than
// a few times. Scanning again for each line, comma or level cost 0.65 s for 18 KB.
func FuzzReaderIsLinear(f *testing.F) {
	const limit = 64 << 10
	nested := strings.Repeat("[", 9000) + `""` + strings.Repeat("]", 9000)
	for _, text := range append(texts,
		"{\"x\":[\n"+nested+"\n",
		"{\"x\":[\n"+strings.Repeat("["+one+",1]\n", 50),
		"{\"x\":[\n"+strings.Repeat("[", 5000)+one+strings.Repeat("]", 5000)+"\n",
		strings.Repeat("{]"+strings.Repeat(`,"":1`, 800)+"\n", 10),
		strings.Repeat("{]"+strings.Repeat(`,"":1`, 800)+"}\n", 10),
		strings.Repeat("{]"+strings.Repeat(`,"\\\\":{"a":[1,2]}`, 300)+"}\n", 10),
		strings.Repeat("[\n", 5000),
		strings.Repeat("{\"a\":[1,\n", 5000)+one+"\n",
		strings.Repeat(one, 500)+"\n") {
		f.Add([]byte(text), uint8(1))
		f.Add([]byte(text), uint8(255))
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		total := 0
		scanned = func(n int) { total += n }
		defer func() { scanned = func(int) {} }()
		for r := NewReader(chunked(string(text), int(size)+1), limit); ; {
			_, err := r.Next()
			var fault *Fault
			if errors.As(err, &fault) {
				fault.Answers()
			} else if err != nil {
				break
			}
		}
		if total > 8*len(text)+64 {
			t.Errorf("%d bytes were scanned for %d: %.60q", total, len(text), text)
		}
	})
}

func chunked(text string, size int) io.Reader { return &chunks{[]byte(text), size} }

type chunks struct {
	left []byte
	size int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.left[:min(c.size, len(c.left))])
	c.left = c.left[n:]
	return n, nil
}

// Any bytes give the same messages however they are split into reads, the Reader always ends,
// and a message on its own line after them is always found.
func FuzzReader(f *testing.F) {
	for _, text := range append(texts, one+"\n"+two+"\r\n", "{\n\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"a\"\n}", "[1,2\n\"a", "{\"a\":[\n"+one[:10]+"\n",
		"\ufeff"+one+"x"+two, strings.Repeat("[\n", 50)+strings.Repeat("x", 200)) {
		f.Add([]byte(text), uint8(1), uint8(120))
		f.Add([]byte(text), uint8(7), uint8(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, size, over uint8) {
		found := `{"jsonrpc":"2.0","id":77,"result":"found"}`
		limit := len(found) + int(over)
		text = append(append(bytes.Clone(text), '\n'), found...)
		text = append(text, '\n')
		whole, err1 := read(bytes.NewReader(text), limit)
		parts, err2 := read(chunked(string(text), int(size)+1), limit)
		if err1 != io.EOF || err2 != io.EOF || !slices.Equal(whole, parts) {
			t.Fatalf("whole: %q, %v\nchunks of %d: %q, %v", whole, err1, int(size)+1, parts, err2)
		}
		if len(whole) == 0 || whole[len(whole)-1] != "ok "+found {
			t.Fatalf("the message after it was not found: %q", whole)
		}
	})
}

// The memory of large lines counts while they are read and handled, no longer.
func TestLargeLinesAreCounted(t *testing.T) {
	before := LargeInUse()
	line := `{"jsonrpc":"2.0","method":"m","params":"` + strings.Repeat("x", 1<<20) + "\"}\n"
	small := `{"jsonrpc":"2.0","method":"m"}` + "\n"
	r := NewReader(io.MultiReader(strings.NewReader(line), strings.NewReader(small), strings.NewReader(line)), 16<<20)
	for _, large := range []bool{true, false, true} {
		m, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if got := LargeInUse() - before; large && got < 1<<20 || !large && got != 0 {
			t.Errorf("%d bytes count with a message of %d", got, len(m.Raw))
		}
	}
	if _, err := r.Next(); err != io.EOF || LargeInUse() != before {
		t.Errorf("%d bytes count at the end, %v", LargeInUse()-before, err)
	}
	var held MemoryCounter
	for size, want := range map[int]int{readChunk: 0, readChunk + 1: readChunk + 1} {
		held.Set(size)
		if got := LargeInUse() - before; got != int64(want) {
			t.Errorf("%d bytes count with a message of %d", got, size)
		}
		held.Set(0)
	}
	if LargeInUse() != before {
		t.Errorf("%d bytes count at the end", LargeInUse()-before)
	}
}

// Other Readers never get the buffer that a Reader keeps.
func TestReaderKeepsItsSmallBuffer(t *testing.T) {
	var lines []io.Reader // each comes in a read of its own
	for range 8 {
		lines = append(lines, strings.NewReader(one+"\n"), strings.NewReader(strings.Repeat("x", 2*readChunk)+"\n"))
	}
	if _, err := read(io.MultiReader(lines...), 1<<20); err != io.EOF {
		t.Fatal(err)
	}
	for {
		b, _ := largeBuffers.Get().(*[]byte)
		if b == nil {
			return
		}
		if len(*b) <= readChunk {
			t.Fatalf("the pool holds a buffer of %d bytes", len(*b))
		}
	}
}
