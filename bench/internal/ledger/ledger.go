// Package ledger records the events of server processes: their start, every call, heartbeats, and their
// end. Each process appends to a file of its own, which survives when the process is killed.
package ledger

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Beat is the interval of heartbeats: a process that was killed has lived at most this long after its
// last line, unless the machine was too busy.
const Beat = 50 * time.Millisecond

// Suffix is the suffix of the file names.
const Suffix = ".ledger"

// A Writer is the ledger of this process.
type Writer struct {
	mu   sync.Mutex
	file *os.File
}

// Create creates the ledger of a process of a server, started by replica ("" for none). It must be the
// first action of the process.
func Create(dir, server, replica string) (*Writer, error) {
	now := Now()
	path := filepath.Join(dir, fmt.Sprintf("%s.%d.%d%s", server, os.Getpid(), now, Suffix))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	w := &Writer{file: file}
	return w, w.write(now, "start", cmp.Or(replica, "-"))
}

// Call records that a call is run.
func (w *Writer) Call(nonce string) error { return w.write(Now(), "call", nonce) }

// Beat records a heartbeat.
func (w *Writer) Beat() error { return w.write(Now(), "beat", "-") }

// End records the end of the process.
func (w *Writer) End() error { return w.write(Now(), "end", "-") }

func (w *Writer) write(at int64, event, about string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := fmt.Fprintf(w.file, "%d %s %s\n", at, event, about)
	return err
}

// A Process is the content of one ledger. Times are those of Now.
type Process struct {
	Server, Replica string
	PID             int
	Start, Last     int64 // its first and its last line
	Ended           bool  // the last line is the end
}

// Books is the content of all ledgers of a directory.
type Books struct {
	Processes []Process
	Ran       map[string]int // how often each nonce was run
	stalls    [][2]int64     // times in which a living process wrote nothing for ten beats
}

// Read reads all ledgers of a directory.
func Read(dir string) (*Books, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+Suffix))
	if err != nil {
		return nil, err
	}
	books := &Books{Ran: map[string]int{}}
	for _, path := range paths {
		if err := books.add(path); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(books.Processes, func(a, b Process) int { return cmp.Compare(a.Start, b.Start) })
	return books, nil
}

func (b *Books) add(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	p, err := processOf(path)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		at, event, about, err := parse(lines.Text())
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		switch event {
		case "start":
			p.Start, p.Replica = at, about
		case "call":
			b.Ran[about]++
		case "end":
			p.Ended = true
		}
		if p.Last != 0 && at-p.Last > int64(10*Beat) {
			b.stalls = append(b.stalls, [2]int64{p.Last, at})
		}
		p.Last = max(p.Last, at)
	}
	if p.Start != 0 { // otherwise it was killed before it wrote a line
		b.Processes = append(b.Processes, p)
	}
	return lines.Err()
}

// processOf returns the server and the process id in the name of a ledger.
func processOf(path string) (p Process, err error) {
	parts := strings.Split(strings.TrimSuffix(filepath.Base(path), Suffix), ".")
	if len(parts) != 3 {
		return p, fmt.Errorf("%s: its name is not SERVER.PID.TIME", path)
	}
	p.Server = parts[0]
	if p.PID, err = strconv.Atoi(parts[1]); err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func parse(line string) (at int64, event, about string, err error) {
	time, rest, _ := strings.Cut(line, " ")
	event, about, ok := strings.Cut(rest, " ")
	if at, err = strconv.ParseInt(time, 10, 64); err != nil || !ok || about == "" {
		return 0, "", "", fmt.Errorf("%q is not a line of a ledger", line)
	}
	return at, event, about, nil
}

// Living returns the processes that have written a line since a time, and not ended. It reads only the
// first and the last line of each ledger, because ledgers may be long and growing.
func Living(dir string, since int64) (living []Process, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+Suffix))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		p, err := ends(path)
		if err != nil {
			return nil, err
		}
		if !p.Ended && p.Last >= since {
			living = append(living, p)
		}
	}
	return living, nil
}

// ends returns the process in the first and the last line of a ledger.
func ends(path string) (p Process, err error) {
	const longest = 256 // a line
	if p, err = processOf(path); err != nil {
		return p, err
	}
	file, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return p, err
	}
	var buf [longest]byte
	n, _ := file.ReadAt(buf[:], 0)
	first, _, ok := strings.Cut(string(buf[:n]), "\n")
	if !ok {
		return p, nil // nothing is written yet
	}
	if p.Start, _, p.Replica, err = parse(first); err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	n, _ = file.ReadAt(buf[:], max(info.Size()-longest, 0))
	lines := strings.Split(strings.TrimSpace(string(buf[:n])), "\n")
	last := lines[len(lines)-1]
	var event string
	if p.Last, event, _, err = parse(last); err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	p.Ended = event == "end"
	return p, nil
}

// An Overlap is two processes of one server that ran at the same time.
type Overlap struct{ First, Second Process }

// Lasted returns how long both ran.
func (o Overlap) Lasted() time.Duration {
	return time.Duration(min(o.First.Last, o.Second.Last) - o.Second.Start)
}

func (o Overlap) String() string {
	return fmt.Sprintf("%s: process %d of replica %s lived for %v when process %d of replica %s had begun", o.First.Server, o.First.PID, o.First.Replica,
		o.Lasted(), o.Second.PID, o.Second.Replica)
}

// Overlaps returns the overlaps of the processes of a server.
func (b *Books) Overlaps(server string) (all []Overlap) {
	var before []Process
	for _, p := range b.Processes { // in the order of their starts
		if p.Server != server {
			continue
		}
		for _, earlier := range before {
			if earlier.Last > p.Start {
				all = append(all, Overlap{earlier, p})
			}
		}
		before = append(before, p)
	}
	return all
}

// Stalled reports whether the machine was so busy, within a second of a time, that a living process
// wrote nothing for ten heartbeats.
func (b *Books) Stalled(at int64) bool {
	return slices.ContainsFunc(b.stalls, func(s [2]int64) bool { return s[0]-int64(time.Second) < at && at < s[1]+int64(time.Second) })
}

// Twice returns the nonces that were run more than once.
func (b *Books) Twice() (nonces []string) {
	for nonce, n := range b.Ran {
		if n > 1 {
			nonces = append(nonces, nonce)
		}
	}
	slices.Sort(nonces)
	return nonces
}

// At returns the replicas that had a process of a server between two times, and the one that had the
// last process before.
func (b *Books) At(server string, from, to int64) (replicas []string) {
	var last string
	for _, p := range b.Processes {
		switch {
		case p.Server != server || p.Start > to:
		case p.Last < from:
			last = p.Replica
		default:
			replicas = append(replicas, p.Replica)
		}
	}
	if last != "" {
		replicas = append(replicas, last)
	}
	return replicas
}
