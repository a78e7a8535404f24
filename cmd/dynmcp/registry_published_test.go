package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A published server is an example of server.json, as far as the test reads it.
type published struct {
	Name, Version string
	Packages      []publishedWay
	Remotes       []publishedWay
}

type publishedWay struct {
	RegistryType, Identifier, Version, Type, URL string
	Transport                                    struct{ Type string }
	RuntimeArguments, PackageArguments           []publishedInput
	EnvironmentVariables, Headers                []publishedInput
	Variables                                    map[string]publishedInput
}

type publishedInput struct {
	Type, Name, ValueHint, Value, Default, Format string
	Choices                                       []string
	IsRequired, IsSecret                          bool
	Variables                                     map[string]publishedInput
}

// answer returns what the test answers when it is asked for the input.
func (in publishedInput) answer() string {
	switch {
	case len(in.Choices) > 0:
		return in.Choices[0]
	case in.Format == "number":
		return "7"
	}
	return filepath.VolumeName(os.TempDir()) + string(filepath.Separator) + "answer" // absolute: it may be a path
}

// text returns the value of an input, and the answers to what is asked for it, by name.
func (in publishedInput) text(name string) (text string, asked map[string]string) {
	asked = map[string]string{}
	switch {
	case in.Value != "":
		text = in.Value
		for key, v := range in.Variables {
			value, more := v.text(key)
			text = strings.ReplaceAll(text, "{"+key+"}", value)
			maps.Copy(asked, more)
		}
	case in.Default != "":
		text = in.Default
	case in.IsRequired:
		text = in.answer()
		asked[name] = text
	}
	return text, asked
}

// words returns the command-line words of arguments, and adds the answers that they need to
// asked.
func words(arguments []publishedInput, asked map[string]string) (all []string) {
	for _, a := range arguments {
		name := a.ValueHint
		if a.Type == "named" {
			name = strings.TrimLeft(a.Name, "-")
		}
		text, more := a.text(name)
		maps.Copy(asked, more)
		switch {
		case text == "":
		case a.Type == "positional":
			all = append(all, text)
		case strings.HasPrefix(a.Name, "--"):
			all = append(all, a.Name+"="+text)
		default:
			all = append(all, a.Name, text)
		}
	}
	return all
}

// expected returns what the entry of a way has, its words after the program or its address,
// and the answers that it needs. A way that does not run here has no words.
func (w publishedWay) expected() (all []string, asked map[string]string) {
	asked = map[string]string{}
	var names []string
	for _, pair := range slices.Concat(w.EnvironmentVariables, w.Headers) {
		text, more := pair.text(pair.Name)
		maps.Copy(asked, more)
		if text != "" {
			names = append(names, pair.Name)
		}
	}
	slices.Sort(names)
	runs, after := words(w.RuntimeArguments, asked), words(w.PackageArguments, asked)
	switch {
	case w.URL != "":
		text, more := publishedInput{Value: w.URL, Variables: w.Variables}.text("url")
		maps.Copy(asked, more)
		return []string{text}, asked
	case w.Transport.Type != "stdio":
		return nil, nil
	case w.RegistryType == "npm":
		return slices.Concat([]string{"-y"}, runs, []string{w.Identifier + "@" + w.Version}, after), asked
	case w.RegistryType == "pypi":
		return slices.Concat(runs, []string{w.Identifier + "@" + w.Version}, after), asked
	case w.RegistryType == "oci":
		for _, name := range names {
			runs = append(runs, "-e", name)
		}
		return slices.Concat([]string{"run", "-i", "--rm"}, runs, []string{w.Identifier}, after), asked
	}
	return nil, nil
}

// The published examples of server.json are found in a registry that follows the published
// API, and become the entries that they describe.
func TestPublishedServers(t *testing.T) {
	t.Parallel()
	texts, err := mcptest.PublishedServers()
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 10 {
		t.Fatalf("there are %d examples", len(texts))
	}
	r := mcptest.ServeRegistry(t, texts...)
	bin := t.TempDir()
	for _, program := range []string{"npx", "uvx", "docker"} {
		if runtime.GOOS == "windows" {
			program += ".exe"
		}
		writeProgram(t, bin, program, "")
	}
	ran := map[string]int{}
	for i, text := range texts {
		var s published
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(i, "_", filepath.Base(s.Name)), func(t *testing.T) {
			state := t.TempDir()
			dynmcp := func(args ...string) (out, config string) {
				cmd := exec.Command(mcptest.Dynmcp(t), append(args, "--registry", r.URL)...)
				cmd.Dir = t.TempDir()
				path := writeFile(t, cmd.Dir, "mcp.json", `{"mcp": {}}`)
				cmd.Env = append(mcptest.Environ(t), "XDG_STATE_HOME="+state, "LOCALAPPDATA="+state, "DYNMCP_KEYRING=off", "PATH="+bin)
				said, err := cmd.CombinedOutput()
				if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended { // its output is checked
					t.Fatal(err)
				}
				written, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				return string(said), string(written)
			}
			var found []struct {
				Name string
				Ways []struct{ Via, Missing string }
			}
			listed, _ := dynmcp("search", s.Name, "--json", "--limit", "0")
			if err := json.Unmarshal([]byte(listed), &found); err != nil || len(found) != 1 || found[0].Name != s.Name || len(found[0].Ways) != len(s.Packages)+len(s.Remotes) {
				t.Fatalf("search finds %s", listed)
			}
			for _, way := range append(slices.Clone(s.Packages), s.Remotes...) {
				ran[s.tryWay(t, way, dynmcp)]++
			}
			if len(found[0].Ways) == 0 {
				said, config := dynmcp("add", s.Name, "--yes")
				contains(t, said, "it names no package and no remote")
				contains(t, config, `{"mcp": {}}`)
			}
		})
	}
	for _, via := range []string{"npm", "pypi", "oci", "remote", "not here", "a bundle"} {
		if ran[via] == 0 {
			t.Errorf("no example is %s: %v", via, ran)
		}
	}
}

// tryWay adds a server, and returns which way that was.
func (s published) tryWay(t *testing.T, way publishedWay, dynmcp func(...string) (string, string)) string {
	if way.RegistryType == "mcpb" {
		return "a bundle" // fetched from elsewhere before anything is asked
	}
	via := way.RegistryType
	if way.URL != "" {
		via = "remote"
	}
	want, asked := way.expected()
	if s.Remotes != nil && via == "remote" {
		want, asked = s.Remotes[0].expected() // streamable HTTP goes first
	}
	add := []string{"add", s.Name + "@" + s.Version, "--as", "x", "--yes", "--secrets", "env"}
	if slices.Contains([]string{"npm", "pypi", "oci", "remote"}, via) {
		add = append(add, "--via", via)
	}
	said, config := dynmcp(add...)
	if want == nil {
		contains(t, said, "it cannot be run here")
		return "not here"
	}
	for name, answer := range asked {
		contains(t, said, name)
		contains(t, config, `{"mcp": {}}`)
		add = append(add, "--set", name+"="+answer)
	}
	if len(asked) > 0 {
		said, config = dynmcp(add...)
	}
	var document struct {
		MCP map[string]struct {
			Command, URL, Registry string
			Args                   []string
			Env, Headers           map[string]string
		}
	}
	if err := json.Unmarshal([]byte(config), &document); err != nil || document.MCP["x"].Registry != s.Name+"@"+s.Version {
		t.Fatalf("%v: add says %s", add, said)
	}
	x := document.MCP["x"]
	got := x.Args
	if x.URL != "" {
		got = []string{x.URL}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v: %s", add, diff)
	}
	for _, pair := range slices.Concat(way.EnvironmentVariables, way.Headers) {
		text, _ := pair.text(pair.Name)
		written := x.Env[pair.Name] + x.Headers[pair.Name]
		if pair.IsSecret && !strings.HasPrefix(written, "${") || !pair.IsSecret && written != text && !strings.HasPrefix(written, "${") {
			t.Errorf("%s is %q, want %q", pair.Name, written, text)
		}
	}
	return via
}
