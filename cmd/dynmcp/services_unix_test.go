//go:build unix

package main_test

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// launchd's service serves the hosts of a user although only the user's login shell knows
// where dynmcp is. It exits with success on SIGTERM, so that launchd does not start it again.
func TestServiceOfLaunchd(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../packaging/launchd/dynmcp.plist")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Keys    []string `xml:"dict>key"`
		Strings []string `xml:"dict>string"`
		Words   []string `xml:"dict>array>string"`
	}
	if err := xml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Strings) == 0 || list.Strings[0] != "dynmcp" || len(list.Words) != 3 || !slices.Equal(list.Keys[:2], []string{"Label", "ProgramArguments"}) {
		t.Fatalf("got %q", list)
	}
	shell := list.Words
	if _, err := os.Stat(shell[0]); err != nil {
		shell[0] = "/bin/sh" // zsh is on macOS
	}
	home := filepath.Dir(socketPath(t)) // a short path
	files := map[string]string{".config/dynmcp/config.json": document([]entry{fake(t, "alpha")}), "Library/Caches/x": "", "Library/Logs/x": ""}
	for _, profile := range []string{".profile", ".zprofile"} {
		files[profile] = `PATH="` + filepath.Dir(mcptest.Dynmcp(t)) + `:$PATH"` + "\n"
	}
	for name, text := range files {
		writeFile(t, home, name, text)
	}
	service := mcptest.Run(t, mcptest.HostOptions{Args: shell, Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}, Lingers: true})
	mcptest.Eventually(t, "its log says that it serves", func() bool {
		log, _ := os.ReadFile(filepath.Join(home, "Library/Logs/dynmcp.log"))
		return strings.Contains(string(log), "msg=serving")
	})
	host := dial(t, filepath.Join(home, "Library/Caches/dynmcp.sock"))
	host.Initialize(handshake, nil)
	if got := host.Call("tools/list", nil).Result; len(got) == 0 {
		t.Error("it lists no tools")
	}
	service.Signal(syscall.SIGTERM)
	if code := service.Wait(); code != 0 {
		t.Errorf("exit status %d: launchd would start it again", code)
	}
}
