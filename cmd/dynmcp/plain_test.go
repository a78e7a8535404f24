package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// systemCall matches the error of a system call as Go prints it.
var systemCall = regexp.MustCompile(`\b(stat|lstat|open|openat|read|write|rename|mkdir|link|bind|listen (tcp|unix)) \S*: |: no such file or directory`)

// The verbs that open a file that a person names, or listen, say what is wrong and what to do.
func TestFilesAndAddressesInWords(t *testing.T) {
	t.Parallel()
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	address := held.Addr().String()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mcp.json"), []byte(`{"mcp":{"a":{"command":"nothing","description":"A"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const noFile, noDir, inUse = "there is no file none.x", "there is no directory", "is in use by another program"
	for _, test := range []struct{ line, want string }{
		{"run none.x", noFile},
		{"replay none.x", noFile},
		{"import --from none.x", noFile},
		{"inspect none.x", noFile},
		{"serve --http 127.0.0.1:0 --tls-cert none.x --tls-key none.x", noFile},
		{"record -o nodir/x -- nothing", noDir},
		{"init --path nodir/sub/mcp.json", ""},
		{"ls -c none.x", "none.x"},
		{"ls -e none.x", "none.x"},
		{"cluster push none.x", "none.x"},
		{"serve --http " + address, inUse},
		{"serve --http 127.0.0.1:0 --debug-http " + address, inUse},
		{"ui --no-open --listen " + address, inUse},
	} {
		cmd := exec.CommandContext(t.Context(), mcptest.Dynmcp(t), strings.Fields(test.line)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir)
		out, err := cmd.CombinedOutput()
		if systemCall.Match(out) || test.want != "" && (err == nil || !strings.Contains(string(out), test.want)) {
			t.Errorf("%s: %v\n%s", test.line, err, out)
		}
	}
}
