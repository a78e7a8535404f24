package pipes

import (
	"os"
	"os/exec"
)

// Start starts a command on two pipes and returns our ends of them: of its stdin, and
// of its stdout. They are as wide as pipes are at first.
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
