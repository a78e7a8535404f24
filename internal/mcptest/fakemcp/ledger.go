package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// A ledger is a file to which several fakes append their events, at once or one after another. It
// shows what no single process knows: how often a server was started, whether a call ran twice. A
// nil ledger records nothing.
type ledger struct{ file *os.File }

func openLedger(path string) (*ledger, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &ledger{file}, nil
}

var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

// add appends one line in one write, so that lines of several processes do not mix.
func (l *ledger) add(format string, args ...any) {
	if l == nil {
		return
	}
	line := strings.TrimRight(oneLine.Replace(fmt.Sprintf(format, args...)), " ")
	if _, err := l.file.WriteString(line + "\n"); err != nil {
		fmt.Fprintln(os.Stderr, "fakemcp: ledger:", err)
	}
}

// count returns how many lines, of all processes, are event or begin with it and a space.
func (l *ledger) count(event string) int {
	if l == nil {
		return 0
	}
	data, err := os.ReadFile(l.file.Name())
	if err != nil {
		return 0
	}
	n := 0
	for line := range bytes.Lines(data) {
		rest, ok := bytes.CutPrefix(bytes.TrimRight(line, "\n"), []byte(event))
		if ok && (len(rest) == 0 || rest[0] == ' ') {
			n++
		}
	}
	return n
}
