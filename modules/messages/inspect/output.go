package inspect

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/recording"
)

// An Output is the file of a new recording, as flags name it.
type Output struct {
	Path string // "" for none
	most int64  // megabytes
}

// Add adds the flags: the name of the one for the file, and its shorthand.
func (o *Output) Add(cmd *cobra.Command, name, short, usage string) {
	cmd.Flags().StringVarP(&o.Path, name, short, "", usage)
	cmd.Flags().Int64Var(&o.most, "max-mb", 64, "go on in another file when one has so many `megabytes`; the first and the last three are kept")
}

// Create creates the file, and says if it has another name.
func (o *Output) Create(header recording.Header, errOut *terminal.Writer) (*recording.File, error) {
	if o.most < 1 {
		return nil, fmt.Errorf("--max-mb is %d, want at least 1", o.most)
	}
	file, err := recording.Create(o.Path, header, o.most<<20)
	if err == nil && file.Path != o.Path {
		errOut.Say("%s is there already: recording to %s", o.Path, file.Path)
	}
	return file, err
}
