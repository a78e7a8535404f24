package house

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// plain has a better word for each that readers of the pages stumbled over. A server is a server
// to people: upstream and host are words of the code.
var plain = map[string]string{
	`upstreams?`: "server", `MCPs`: "MCP servers", `anew`: "again", `whoever`: "who", `is not there: `: "cannot find", `it ended: `: "exited",
}

// ofTheCode are pages for readers of the code.
var ofTheCode = map[string]bool{"docs/packages.md": true, "docs/protocol.md": true}

func TestDocumentsSpeakPlainly(t *testing.T) {
	for name, text := range documents(t) {
		if path.Dir(name) != "docs" && name != "README.md" || ofTheCode[name] {
			continue
		}
		text = codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), "")
		for word, better := range plain {
			if found := regexp.MustCompile(`(?i)\b` + word).FindString(text); found != "" {
				t.Errorf("%s says %q: write %q", name, found, better)
			}
		}
	}
}

var released = regexp.MustCompile(`Version = "([0-9.]+)"`)

// The files that name the version that is built name one and the same.
func TestFilesNameOneVersion(t *testing.T) {
	text, err := os.ReadFile("internal/cli/version.go")
	if err != nil {
		t.Fatal(err)
	}
	version := released.FindStringSubmatch(string(text))[1]
	for name, as := range map[string]string{
		"CHANGELOG.md": "\n## V\n", "CONTRIBUTING.md": "-previous vV`", "server.json": `"version": "V"`, "schema/address.go": "/vV/schema/", "schema/dynmcp.schema.json": "/vV/schema/",
		"deploy/kubernetes/example/kustomization.yaml": "newTag: V}", "docs/install.md": "dynmcp_V_linux", "docs/cli.md": "\ndynmcp V\n",
		"docs/releasing.md": "origin vV`", "docs/recording.md": `"dynmcp":"V"`,
	} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(as, "V", version); !strings.Contains(string(text), want) {
			t.Errorf("%s does not name version %s as %q", name, version, want)
		}
	}
}
