package hosts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
)

// LogIn runs a command that prints the address of a login page, and opens the page as a browser would.
func LogIn(cmd *exec.Cmd) error {
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var failed error
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if page := strings.TrimSpace(lines.Text()); strings.HasPrefix(page, "http") {
			failed = visit(page)
		}
	}
	if err := errors.Join(cmd.Wait(), failed); err != nil {
		return fmt.Errorf("dynmcp login: %w: %s", err, said.String())
	}
	return nil
}

func visit(page string) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(page)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
