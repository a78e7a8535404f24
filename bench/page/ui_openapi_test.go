//go:build e2e

package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The operations of an OpenAPI document are shown by tag with their tokens, and those of some tags are added.
func TestUIAddsAnAPI(t *testing.T) {
	d := newDesk(t)
	document := filepath.Join(filepath.Dir(d.config), "pets.yaml")
	if err := os.WriteFile(document, []byte(`openapi: 3.0.3
info: {title: Pets, version: '1.0'}
paths:
  /pets:
    get: {operationId: listPets, tags: [pets]}
    post: {operationId: addPet, tags: [pets]}
  /order:
    get: {operationId: getOrder, tags: [store]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := openTab(t, d.serve())
	p.has("main .name", "files")
	p.view("Add a server")
	p.press("#api summary", "Add an HTTP API")
	p.fill("#api-document", document)
	p.fill("#api-name", "pets")
	p.fill("#api-url", "http://127.0.0.1:1/v1")
	p.fill("#api-tags", "store")
	p.press("#api button", "Show its operations")
	p.has("dialog pre", "3 operations")
	p.has("dialog pre", "* store")
	p.has("dialog pre", "getOrder")
	p.has("dialog .command", "--tags=store")
	if strings.Contains(d.read(), "pets") {
		t.Error("the config has changed before the confirmation")
	}
	p.press("dialog button", "Write this change")
	p.has("dialog", "Done")
	if text := d.read(); !strings.Contains(text, `"tool_filter": ["getOrder"]`) || !strings.Contains(text, "// kept") {
		t.Errorf("the config is now\n%s", text)
	}
}
