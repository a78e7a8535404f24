// Command generate writes the files with the version or the address of the project: the module path
// and its imports, server.json for the MCP registry, the manifest of the Claude Desktop extension, and
// the part of docs/install.md about packages. The version is in cmd/dynmcp/internal/cli/version.go,
// the address in packaging/repository.
package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

//go:generate go run . ../..

//go:embed install.md.tmpl
var installTemplate string

//go:embed server.json.tmpl
var serverTemplate string

//go:embed manifest.json.tmpl
var manifestTemplate string

// project is the data of the templates.
type project struct {
	Owner, Name string // of the repository
	Version     string
}

// Repository returns the address of the repository.
func (p project) Repository() string { return "https://" + p.Module() }

// entry is the entry of a host's config that starts dynmcp from npm, with the user's config.
var entry = map[string]any{"command": "npx", "args": []string{"-y", "dynmcp"}}

// Module returns the module path.
func (p project) Module() string { return "github.com/" + p.Owner + "/" + p.Name }

// Cursor returns the link that adds dynmcp to Cursor.
func (p project) Cursor() (string, error) {
	config, err := json.Marshal(entry)
	return "https://cursor.com/en/install-mcp?name=dynmcp&config=" + url.QueryEscape(base64.StdEncoding.EncodeToString(config)), err
}

// VSCode returns the link that adds dynmcp to VS Code.
func (p project) VSCode() (string, error) {
	config, err := json.Marshal(entry)
	return "https://vscode.dev/redirect/mcp/install?name=dynmcp&config=" + url.QueryEscape(string(config)), err
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	p, err := read(root)
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		"server.json":                  serverTemplate,
		"packaging/mcpb/manifest.json": manifestTemplate,
	} {
		data, err := p.render(text)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, path), data, 0o666); err != nil {
			return err
		}
	}
	if err := p.renameModule(root); err != nil {
		return err
	}
	install, err := p.render(installTemplate)
	if err != nil {
		return err
	}
	return replace(filepath.Join(root, "docs/install.md"), install)
}

func read(root string) (project, error) {
	var p project
	repository, err := os.ReadFile(filepath.Join(root, "packaging/repository"))
	if err != nil {
		return p, err
	}
	var ok bool
	if p.Owner, p.Name, ok = strings.Cut(strings.TrimSpace(string(repository)), "/"); !ok {
		return p, errors.New("packaging/repository: want OWNER/NAME")
	}
	source, err := os.ReadFile(filepath.Join(root, "cmd/dynmcp/internal/cli/version.go"))
	if err != nil {
		return p, err
	}
	found := regexp.MustCompile(`(?m)^const Version = "(.+)"$`).FindSubmatch(source)
	if found == nil {
		return p, errors.New("cmd/dynmcp/internal/cli/version.go has no version")
	}
	p.Version = string(found[1])
	return p, nil
}

func (p project) render(text string) ([]byte, error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, p)
	return out.Bytes(), err
}

// renameModule replaces the module path in go.mod, in the modules below it and in every Go file, if it
// differs from the repository's address.
func (p project) renameModule(root string) error {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	was, want := modulePath(data), p.Module()
	if was == want {
		return nil
	}
	// A match ends at the end of a path element: NAME/oth does not match NAME/other-module.
	path := regexp.MustCompile(`(^|[\s"])` + regexp.QuoteMeta(was) + `([\s"/]|$)`)
	return filepath.WalkDir(root, func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() != "go.mod" && filepath.Ext(file) != ".go" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		renamed := path.ReplaceAll(text, []byte("${1}"+want+"${2}"))
		if bytes.Equal(renamed, text) {
			return nil
		}
		return os.WriteFile(file, renamed, 0o666)
	})
}

// modulePath returns the path that a go.mod declares, or "".
func modulePath(data []byte) string {
	found := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(data)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// replace writes text between the two marks of a file.
func replace(path string, text []byte) error {
	const from, to = "<!-- from packaging/generate/install.md.tmpl -->\n", "<!-- to here -->\n"
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok1 := bytes.Cut(data, []byte(from))
	_, after, ok2 := bytes.Cut(rest, []byte(to))
	if !ok1 || !ok2 {
		return fmt.Errorf("%s: no marks to write between", path)
	}
	return os.WriteFile(path, bytes.Join([][]byte{before, []byte(from), text, []byte(to), after}, nil), 0o666)
}
