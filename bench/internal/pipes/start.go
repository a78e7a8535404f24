package pipes

import (
	"os"
	"os/exec"
)

// Start starts a command and returns the ends of two pipes of the default size: of its stdin and of
// its stdout.
func Start(cmd *exec.Cmd) (in, out *os.File, err error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer theirIn.Close()
	out, theirOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, nil, err
	}
	defer theirOut.Close()
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	if err := cmd.Start(); err != nil {
		in.Close()
		out.Close()
		return nil, nil, err
	}
	return in, out, nil
}
