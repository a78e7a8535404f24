package editfile

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
)

// ShowDiff prints the changes of a file, with secrets hidden by mask.
func ShowDiff(out *terminal.Writer, name string, old, text []byte, mask func(name string, text []byte) []byte) {
	if len(old) > 0 {
		old = mask(name, old)
	}
	if len(text) > 0 {
		text = mask(name, text)
	}
	for line := range bytes.Lines(diff.Diff(name, old, name, text)) {
		switch {
		case bytes.HasPrefix(line, []byte("diff ")):
		case line[0] == '+':
			out.Paint(terminal.Green, string(line))
		case line[0] == '-':
			out.Paint(terminal.Red, string(line))
		default:
			out.Printf("%s", line)
		}
	}
}
