//go:build e2e && unix

package secret

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/cli/terminal"
)

// A hasty writer pastes a secret into the terminal at the moment when the prompt is printed.
type hasty struct {
	t            *testing.T
	master       io.Writer
	screen       int // file descriptor of the terminal
	pasted, echo bool
}

func (h *hasty) Write(p []byte) (int, error) {
	if !h.pasted {
		h.pasted, h.echo = true, echoes(h.t, h.screen)
		if _, err := io.WriteString(h.master, "a CANARY\r"); err != nil {
			h.t.Error(err)
		}
	}
	return len(p), nil
}

func echoes(t *testing.T, screen int) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(screen, getTermios)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

func TestNothingIsSeenOfASecretPastedEarly(t *testing.T) {
	master, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	h := &hasty{t: t, master: master, screen: int(screen.Fd())}
	got, err := ReadUnseen(t.Context(), h.screen, terminal.New(h), "The secret: ")
	if err != nil || string(got) != "a CANARY" {
		t.Errorf("read %q, %v", got, err)
	}
	if h.echo {
		t.Error("the terminal echoes while the prompt is shown")
	}
	if !echoes(t, h.screen) {
		t.Error("the terminal has not got its echo back")
	}
	// Input from here on is echoed, which proves that the whole output of the terminal is read.
	if _, err := io.WriteString(master, "seen\r"); err != nil {
		t.Fatal(err)
	}
	if _, err := screen.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	screen.Close()
	var shown bytes.Buffer
	_, _ = io.Copy(&shown, master) // fails after the other end was closed
	if text := shown.String(); strings.Contains(text, "CANARY") || !strings.Contains(text, "seen") {
		t.Errorf("the screen shows %q", text)
	}
}
