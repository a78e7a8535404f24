// Command packages writes docs/packages.md: each package, with the first sentence of its comment.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/terminal"
)

//go:generate go run . ../..

const lineChars = 150 // internal/house allows 160

const head = `# Packages

The first sentence of each package's comment; ` + "`go doc PACKAGE`" + ` prints the rest. [ARCHITECTURE.md](../ARCHITECTURE.md) says how they fit together.

<!-- made by: go generate ./packaging/packages -->
`

// subject begins the comment of a package.
var subject = regexp.MustCompile(`^(Package|Command) \S+ (is |has |holds )?`)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	list := exec.Command("go", "list", "-f", "{{.Module.Path}}\t{{.ImportPath}}\t{{.Doc}}", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return err
	}
	text := bytes.NewBufferString(head)
	top := ""
	for line := range strings.Lines(string(out)) {
		module, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		name, doc, _ := strings.Cut(rest, "\t")
		name = strings.TrimPrefix(name, module+"/")
		if name == module || strings.Contains(name, "mcptest/") {
			continue // the root has no code; the parts of mcptest are named in its comment
		}
		if doc == "" {
			return fmt.Errorf("%s has no package comment", name)
		}
		if first, _, _ := strings.Cut(name, "/"); first != top {
			top = first
			fmt.Fprintf(text, "\n## %s\n\n", top)
		}
		doc = strings.TrimRight(subject.ReplaceAllString(doc, ""), ".:")
		item := terminal.Wrap("- `"+name+"`: "+doc, lineChars)
		fmt.Fprintln(text, strings.ReplaceAll(item, "\n", "\n  "))
	}
	fmt.Fprintln(text, "\n<!-- end -->")
	return os.WriteFile(path.Join(root, "docs", "packages.md"), text.Bytes(), 0o644)
}
