package activity

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// writeEvery is how long a call waits at most to be written.
	writeEvery = 50 * time.Millisecond
	// maxHeld bounds the bytes of the calls that wait to be written: entrySize for each, and
	// those of its arguments and result. A user may have as many as it leaves free.
	maxHeld   = 64 << 20
	entrySize = 512
	// maxSpare is the number of calls for which memory is kept.
	maxSpare = 1 << 12
	// closeWait is how long dynmcp waits for the disk when it ends.
	closeWait = 5 * time.Second
	// writeSize is how many bytes are written at once, so that a long result does not delay the
	// calls before it.
	writeSize = 64 << 10
	// sayEvery is the interval of log messages about dropped lines.
	sayEvery = time.Minute
)

// LogOptions say where calls are recorded, and which parts of them.
type LogOptions struct {
	Dir    string
	Bytes  int64         // of all files of the directory together; the oldest go
	Age    time.Duration // of a file; older ones go
	Keep   Keep
	Logger *slog.Logger
	// Unasked reports that nobody asked for the record: the directory is made with the first call, and
	// one warning says that it cannot be written.
	Unasked bool
}

// A Log writes the calls of one run. Add does not wait for the disk: calls that cannot be
// written in time are dropped, counted and reported.
type Log struct {
	run   string
	keep  Keep
	once  bool // at most one warning
	log   *slog.Logger
	files files
	wake  chan struct{} // holds a token while calls wait
	done  chan struct{}
	ended chan struct{}

	// Fields of the writer.
	spare  []Entry // written entries, for reuse
	lines  []byte  // for reuse
	lost   int64   // missing lines that the record does not mention yet
	unsaid int64   // missing lines that dynmcp's log does not mention yet
	said   time.Time

	mu      sync.Mutex
	waiting []Entry
	held    int            // bytes
	heldOf  map[string]int // by user
	dropped int64
	closed  bool
}

// Open begins a log. The directory is created now, a file with the first call; both then if nobody asked.
func Open(o LogOptions) (*Log, error) {
	l := newLog(o)
	if !o.Unasked {
		if err := l.files.prepare(); err != nil {
			return nil, err
		}
	}
	go l.write()
	return l, nil
}

// newLog returns a log without a writer.
func newLog(o LogOptions) *Log {
	l := &Log{
		run: strings.ToLower(rand.Text()[:8]), keep: o.Keep, once: o.Unasked, log: o.Logger,
		heldOf: map[string]int{}, wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{}),
	}
	l.files = files{dir: o.Dir, run: l.run, bytes: o.Bytes, age: o.Age, began: time.Now(), wrote: map[string]int64{}, own: map[string]*stream{}}
	return l
}

// Add records a call that has ended.
func (l *Log) Add(e Entry) {
	size := entrySize + len(e.Input) + len(e.Output)
	l.mu.Lock()
	own := l.heldOf[e.User]
	if l.closed || own > 0 && own+size > maxHeld-l.held || l.held+size > maxHeld && len(l.waiting) > 0 {
		l.dropped++
		l.mu.Unlock()
		return
	}
	l.waiting = append(l.waiting, e)
	l.held += size
	l.heldOf[e.User] = own + size
	first := len(l.waiting) == 1
	l.mu.Unlock()
	if first {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// Close writes the waiting calls, and returns when they were passed to the system, or after
// closeWait.
func (l *Log) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	close(l.done)
	select {
	case <-l.ended:
	case <-time.After(closeWait):
		l.log.Warn("the last calls were not recorded: the disk of the activity log hangs", "dir", l.files.dir)
	}
}

// write writes waiting calls, soon after they came, until Close.
func (l *Log) write() {
	defer close(l.ended)
	for ending := false; !ending; {
		select {
		case <-l.wake:
			select {
			case <-time.After(writeEvery):
			case <-l.done:
				ending = true
			}
		case <-l.done:
			ending = true
		}
		l.flush()
	}
	if l.unsaid > 0 && l.mayWarn() {
		l.say(nil)
	}
}

// flush writes the waiting calls in pieces, each before the next is computed.
func (l *Log) flush() {
	l.mu.Lock()
	batch, dropped := l.waiting, l.dropped
	l.waiting, l.held, l.dropped = l.spare, 0, 0
	clear(l.heldOf)
	l.mu.Unlock()
	l.lost += dropped
	l.unsaid += dropped
	order := make([]*Entry, len(batch)) // by user, so that few pieces are written
	for i := range batch {
		order[i] = &batch[i]
	}
	slices.SortStableFunc(order, func(a, b *Entry) int { return cmp.Compare(a.User, b.User) })
	var to *stream
	lines, n := l.lines[:0], 0
	for _, e := range order {
		next := l.files.streamOf(e.User)
		if n > 0 && (next != to || len(lines) >= writeSize) {
			l.put(to, lines, n)
			lines, n = lines[:0], 0
		}
		if to, e.Run = next, l.run; n == 0 {
			e.Dropped = l.lost
		}
		e.finish(l.keep)
		before := len(lines)
		lines, n = append(e.append(lines), '\n'), n+1
		l.files.wrote[e.User] += int64(len(lines) - before)
	}
	if n > 0 {
		l.put(to, lines, n)
	}
	if l.lines = nil; cap(lines) <= 2*writeSize {
		l.lines = lines
	}
	clear(batch)
	if l.spare = nil; cap(batch) <= maxSpare {
		l.spare = batch[:0]
	}
}

// put writes lines to a stream, the first of which reports how many were lost before it.
func (l *Log) put(to *stream, lines []byte, n int) {
	whole, err := l.files.write(to, lines)
	if whole > 0 {
		l.lost = 0
	}
	l.lose(int64(n-whole), err)
}

// lose counts lines that are missing in the record.
func (l *Log) lose(n int64, err error) {
	l.lost += n
	l.unsaid += n
	if l.unsaid > 0 && time.Since(l.said) >= sayEvery && l.mayWarn() {
		l.say(err)
	}
}

func (l *Log) mayWarn() bool { return !l.once || l.said.IsZero() }

func (l *Log) say(err error) {
	about := []any{"lines", l.unsaid, "dir", l.files.dir}
	if err != nil {
		about = append(about, "err", err)
	}
	if l.once {
		about = append(about, "hint", `"activity": {"dir": "…"} records them elsewhere, "activity": false nowhere`)
	}
	l.log.Warn("calls are missing in the activity log", about...)
	l.said, l.unsaid = time.Now(), 0
}
