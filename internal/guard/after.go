package guard

import (
	"os"
	"strings"
)

// An After is a command that ends what another one started outside of its own processes, such as a
// container. A guard runs it after a tree that it ended because this process is gone or a fence has passed;
// otherwise the owner of the tree does. Only Linux has guards.
type After struct {
	// File is the file whose first line replaces Mark in Args, and which is removed. Without that line, or
	// without the file, nothing is run; "" replaces nothing.
	File string
	// Path is the program, Args are its arguments from the zeroth on.
	Path string
	Args []string
}

// Mark stands for the first line of the file in the arguments of an After.
const Mark = "{}"

// pipe returns a pipe with the words of a: a guard reads them before its command starts. It is nil if a is.
func (a *After) pipe() (*os.File, error) {
	if a == nil {
		return nil, nil
	}
	words, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	text := strings.Join(append([]string{a.File, a.Path}, a.Args...), "\x00")
	if len(text) >= 64<<10 { // more than a pipe holds, and no command line that ends something
		text = "\x00"
	}
	if _, err := write.WriteString(text); err != nil {
		words.Close()
		return nil, err
	}
	return words, nil
}
