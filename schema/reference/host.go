package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

var (
	envReference   = lazyregexp.New(`\$?\$?\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	inputReference = lazyregexp.New(`\$?\$\{input:([^}]+)\}`)
	hostFile       = lazyregexp.New(`(?:^|[^$])\{file:[^}]+\}`)
	bareReference  = lazyregexp.New(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	pathReference  = lazyregexp.New(`\$?\$\{(workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|/)\}`)
	notInVariable  = lazyregexp.New(`[^A-Za-z0-9_]+`)
)

// FromHost converts the references to variables in a text of a host's file: ${env:NAME},
// {env:NAME}, ${input:id} and, with bare, $NAME. It replaces ${workspaceFolder} and the like
// as the host would if the working directory were its project. It calls note for each
// difference from the host.
func FromHost(text string, bare bool, note func(string)) string {
	text = replaceReferences(envReference(), text, func(name string) string { return "${" + name + "}" })
	text = replaceReferences(inputReference(), text, func(id string) string {
		name := VariableName(id)
		note(fmt.Sprintf("the host asks for %s; dynmcp takes it from the variable %s", id, name))
		return "${" + name + "}"
	})
	if hostFile().MatchString(text) {
		note("{file:…} is not read; use a variable")
	}
	if bare {
		text = bareReference().ReplaceAllString(text, "$${$1}")
	}
	return replaceReferences(pathReference(), text, func(name string) string {
		path := hostPath(name)
		note(fmt.Sprintf("${%s} is only known to the host; here it is %s", name, path))
		return path
	})
}

// replaceReferences replaces the references that a pattern matches; with gets the name in
// each. A reference with $$ is escaped, and stays.
func replaceReferences(pattern *regexp.Regexp, text string, with func(name string) string) string {
	return pattern.ReplaceAllStringFunc(text, func(reference string) string {
		if strings.HasPrefix(reference, "$$") {
			return reference
		}
		return with(pattern.FindStringSubmatch(reference)[1])
	})
}

// hostPath returns the path that VS Code and Cursor insert for a name.
func hostPath(name string) string {
	dir, _ := os.Getwd()
	switch name {
	case "userHome":
		home, _ := os.UserHomeDir()
		return home
	case "workspaceFolder":
		return dir
	case "workspaceFolderBasename":
		return filepath.Base(dir)
	default:
		return string(filepath.Separator)
	}
}

// VariableName converts a text to the name of a variable.
func VariableName(text string) string {
	return strings.ToUpper(strings.Trim(notInVariable().ReplaceAllString(text, "_"), "_"))
}
