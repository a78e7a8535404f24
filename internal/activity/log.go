package activity

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// writeEvery is how long a call waits at most to be written.
	writeEvery = 50 * time.Millisecond
	// mostWaiting and mostHeld bound the calls that wait to be written, and the bytes of
	// their arguments and results.
	mostWaiting = 1 << 16
	mostHeld    = 32 << 20
	// closeWait is how long the end of dynmcp waits for a disk.
	closeWait = 5 * time.Second
	// sayEvery is how often it is said that lines were dropped.
	sayEvery = time.Minute
)

// Options say where calls are recorded, and what of them.
type Options struct {
	Dir    string
	Bytes  int64         // of all files of the directory together; the oldest go
	Age    time.Duration // of a file; older ones go
	Keep   Keep
	Logger *slog.Logger
}

// A Log writes the calls of one run. Add does not wait for the disk: what it cannot take in
// time is dropped, counted and said.
type Log struct {
	run   string
	keep  Keep
	log   *slog.Logger
	files files
	wake  chan struct{} // holds a token while calls wait
	done  chan struct{}
	ended chan struct{}

	// Of the writer.
	said    time.Time
	unsaid  int64 // lines that were dropped since
	written int64 // lines that the disk did not take, and of which no line says so

	mu      sync.Mutex
	waiting []Entry
	held    int
	dropped int64
	closed  bool
}

// Open begins a log. The directory is made now, a file with the first call.
func Open(o Options) (*Log, error) {
	l := newLog(o)
	if err := l.files.prepare(); err != nil {
		return nil, err
	}
	go l.write()
	return l, nil
}

// newLog returns a log that nobody writes yet.
func newLog(o Options) *Log {
	l := &Log{
		run: strings.ToLower(rand.Text()[:8]), keep: o.Keep, log: o.Logger,
		wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{}),
	}
	l.files = files{dir: o.Dir, run: l.run, bytes: o.Bytes, age: o.Age, began: time.Now()}
	return l
}

// Add records a call that has ended.
func (l *Log) Add(e Entry) {
	size := len(e.Input) + len(e.Output)
	l.mu.Lock()
	if l.closed || len(l.waiting) >= mostWaiting || l.held+size > mostHeld && len(l.waiting) > 0 {
		l.dropped++
		l.mu.Unlock()
		return
	}
	l.waiting = append(l.waiting, e)
	l.held += size
	first := len(l.waiting) == 1
	l.mu.Unlock()
	if first {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// Close writes what waits, and returns when that is on its way to the disk or takes too
// long.
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

// write writes what waits, soon after it came, until Close.
func (l *Log) write() {
	defer close(l.ended)
	defer l.files.close()
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
}

// flush writes what waits now.
func (l *Log) flush() {
	l.mu.Lock()
	batch, dropped := l.waiting, l.dropped
	l.waiting, l.held, l.dropped = nil, 0, 0
	l.mu.Unlock()
	dropped += l.written
	var lines bytes.Buffer
	for i := range batch {
		e := &batch[i]
		e.Run = l.run
		if i == 0 {
			e.Dropped = dropped
		}
		e.finish(l.keep)
		line, err := json.Marshal(&e.Line)
		if err != nil {
			l.log.Warn("a call was not recorded", "tool", e.Name(), "err", err)
			continue
		}
		lines.Write(append(line, '\n'))
	}
	if l.written = dropped; len(batch) == 0 {
		l.say(nil, 0)
		return
	}
	if err := l.files.write(lines.Bytes()); err != nil {
		l.written += int64(len(batch))
		l.say(err, l.written-dropped)
		return
	}
	l.written = 0
	if dropped > 0 {
		l.say(nil, dropped)
	}
}

// say says, now and then, how many lines were dropped.
func (l *Log) say(err error, dropped int64) {
	l.unsaid += dropped
	if l.unsaid == 0 || time.Since(l.said) < sayEvery {
		return
	}
	l.log.Warn("calls are missing in the activity log", "lines", l.unsaid, "dir", l.files.dir, "err", err)
	l.said, l.unsaid = time.Now(), 0
}
