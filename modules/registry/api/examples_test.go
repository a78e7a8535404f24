package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/modules/registry/api"
)

// A drawn is a random argument of a server.json, and the words that it must make.
type drawn struct {
	json  map[string]any
	asks  string   // the question, or ""
	words []string // with the answers one and two
}

// draw draws an argument that the schema of server.json allows.
func draw(t *rapid.T, i int) drawn {
	named, kind := rapid.Bool().Draw(t, "named"), rapid.SampledFrom([]string{"fixed", "default", "asked", "template", "flag"}).Draw(t, "kind")
	repeated := rapid.Bool().Draw(t, "repeated")
	d := drawn{json: map[string]any{"type": "positional", "isRepeated": repeated, "isRequired": true}}
	name := fmt.Sprintf("q%d", i)
	flag := rapid.SampledFrom([]string{"--", "-"}).Draw(t, "dashes") + name
	if named {
		d.json["type"], d.json["name"] = "named", flag
	} else {
		d.json["valueHint"] = name
	}
	var values []string
	switch kind {
	case "flag":
		if named {
			d.json["isRequired"], d.json["isRepeated"] = false, false
			d.words = []string{flag}
			return d
		}
		fallthrough
	case "fixed":
		d.json["value"], values = "fixed value", []string{"fixed value"}
	case "default":
		d.json["default"], d.json["choices"], values = "b", []string{"a", "b"}, []string{"b"}
	case "template":
		d.json["value"] = "x={v" + name + "},y={other}"
		d.json["variables"] = map[string]any{"v" + name: map[string]any{"isRequired": true}}
		d.asks, values = "v"+name, []string{"x=one,y={other}"}
		if repeated {
			values = append(values, "x=two,y={other}")
		}
	case "asked":
		d.json["description"] = "What it is for."
		d.asks, values = name, []string{"one"}
		if repeated {
			values = append(values, "two")
		}
	}
	for _, value := range values {
		switch {
		case !named:
			d.words = append(d.words, value)
		case strings.HasPrefix(flag, "--"):
			d.words = append(d.words, flag+"="+value)
		default:
			d.words = append(d.words, flag, value)
		}
	}
	return d
}

// Any arguments make the words of their forms, in order, and ask only for values that are not
// fixed.
func TestAnyArguments(t *testing.T) {
	r := mcptest.ServeRegistry(t)
	rapid.Check(t, func(t *rapid.T) {
		all := []any{}
		want := []string{"-y", "x@1.0.0"}
		answers, asked := api.Answers{}, []string(nil)
		for i := range rapid.IntRange(0, 6).Draw(t, "arguments") {
			d := draw(t, i)
			all, want = append(all, d.json), append(want, d.words...)
			if d.asks == "" {
				continue
			}
			asked = append(asked, d.asks)
			answers[d.asks] = []string{"one"}
			if d.json["isRepeated"] == true {
				answers[d.asks] = []string{"one", "two"}
			}
		}
		raw, _ := json.Marshal(map[string]any{
			"name": "io.example/any", "version": "1.0.0", "description": "Any.",
			"packages": []any{map[string]any{
				"registryType": "npm", "identifier": "x", "version": "1.0.0", "transport": map[string]any{"type": "stdio"}, "packageArguments": all,
			}},
		})
		r.Publish(string(raw), "active", "")
		s, err := (&api.Client{Address: r.URL}).Get(t.Context(), "io.example/any", "")
		if err != nil {
			t.Fatal(err)
		}
		o := s.Options(anyProgram)[0]
		if _, err := o.Build("any", nil); len(asked) > 0 {
			lacks, ok := errors.AsType[*api.MissingError](err)
			if !ok || len(lacks.Questions) != len(asked) {
				t.Fatalf("without answers: %v, want questions %v", err, asked)
			}
		}
		entry, err := o.Build("any", answers)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, entry.Args); diff != "" {
			t.Fatalf("%s: %s", raw, diff)
		}
	})
}

// A valid server.json makes an entry, or a reason why it cannot be run.
func TestValidExamples(t *testing.T) {
	for name, c := range map[string]struct{ members, want string }{
		"nothing to run": {`"title":"A title"`, ""},
		"a package":      {pkg("npm", "@example/x", "1.0.0", `"registryBaseUrl":"https://packages.example","runtimeHint":"npx"`), "npx -y @example/x@1.0.0"},
		"a repository":   {`"repository":{"url":"https://code.example/x","source":"example"},` + pkg("pypi", "x", "1.0"), "uvx x@1.0"},
		"a checksum":     {pkg("npm", "x", "1.0.0", `"fileSha256":"`+strings.Repeat("0a", 32)+`"`), "npx -y x@1.0.0"},
		"arguments": {pkg("npm", "x", "1.0.0", `"packageArguments":[{"type":"positional","value":"serve"},{"type":"named","name":"--port","default":"80","format":"number"},
			{"type":"positional","valueHint":"dir","default":"/srv"}]`), "npx -y x@1.0.0 serve --port=80 /srv"},
		"runtime arguments": {pkg("oci", "ghcr.io/example/x:1.0.0", "", `"runtimeHint":"docker","runtimeArguments":[{"type":"named","name":"-e","value":"A=1"}]`),
			"docker run -i --rm -e A=1 ghcr.io/example/x:1.0.0"},
		"variables": {pkg("npm", "x", "1.0.0", `"environmentVariables":[{"name":"A","value":"{b}/c","variables":{"b":{"default":"/b"}}},{"name":"D"}]`), "npx -y x@1.0.0 A=/b/c"},
		"a remote": {`"remotes":[{"type":"streamable-http","url":"https://{zone}.example/mcp","variables":{"zone":{"default":"eu","choices":["eu","us"]}},
			"headers":[{"name":"X-Mode","value":"fast"}]}]`, "streamable-http https://eu.example/mcp X-Mode=fast"},
		"a remote of the old transport": {`"remotes":[{"type":"sse","url":"https://x.example/sse"}]`, "sse https://x.example/sse"},
		"a package that serves HTTP":    {pkg("npm", "x", "1.0.0", `"transport":{"type":"streamable-http","url":"http://localhost:{port}/mcp"}`), "not spoken to by stdio"},
		"a package of another kind":     {pkg("nuget", "X", "1.0.0"), "runs no packages"},
		"a range":                       {pkg("pypi", "x", ">=1"), "not exact"}, // the registry refuses it beyond the schema
	} {
		t.Run(name, func(t *testing.T) {
			all := options(t, c.members)
			if len(all) == 0 {
				if c.want != "" {
					t.Error("there is no way to run it")
				}
				return
			}
			got := all[0].Missing
			if got == "" {
				s, err := all[0].Build("x", nil)
				if got = words(s); err != nil {
					got = err.Error()
				}
			}
			if !strings.Contains(got, c.want) || c.want == "" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// An invalid server.json is refused or cannot be run.
func TestInvalidExamples(t *testing.T) {
	for name, c := range map[string]struct{ server, want string }{
		"no name":            {`{"description":"D.","version":"1.0.0"}`, "NAMESPACE/SERVER"},
		"a name without /":   {`{"name":"plain","description":"D.","version":"1.0.0"}`, "NAMESPACE/SERVER"},
		"a name with spaces": {`{"name":"io.example/a b","description":"D.","version":"1.0.0"}`, "NAMESPACE/SERVER"},
		"no version":         {`{"name":"io.example/x","description":"D."}`, "version"},
		"latest":             {serverJSON("io.example/x", "1.0.0", "D.", pkg("npm", "x", "latest")), "not exact"},
		"no value":           {serverJSON("io.example/x", "1.0.0", "D.", pkg("npm", "x", "1.0.0", `"packageArguments":[{"type":"positional","isRequired":true}]`)), "it needs argument1"},
		"no type":            {serverJSON("io.example/x", "1.0.0", "D.", pkg("npm", "x", "1.0.0", `"packageArguments":[{"value":"a"}]`)), "neither positional nor named"},
		"a flag's name":      {serverJSON("io.example/x", "1.0.0", "D.", pkg("npm", "x", "1.0.0", `"packageArguments":[{"type":"named","value":"a"}]`)), "neither positional nor named"},
		"a sum":              {serverJSON("io.example/x", "1.0.0", "D.", `"packages":[{"registryType":"mcpb","identifier":"https://x.example/x.mcpb","fileSha256":"FE33"}]`), "SHA-256"},
		"an old form":        {`{"name":"io.example/x","description":"D.","version_detail":{"version":"1.0.0"}}`, "version"},
		"a transport":        {serverJSON("io.example/x", "1.0.0", "D.", `"remotes":[{"type":"websocket","url":"wss://x.example/"}]`), "does not speak"},
	} {
		t.Run(name, func(t *testing.T) {
			if mcptest.CheckServerJSON(c.server) == nil {
				t.Error("the schema permits it")
			}
			r := mcptest.ServeRegistry(t)
			r.Handle("/v0.1/servers/io.example/x/versions/latest", says(`{"server":%s}`, c.server))
			s, err := (&api.Client{Address: r.URL}).Get(t.Context(), "io.example/x", "")
			if err == nil {
				o := s.Options(anyProgram)[0]
				if err = errors.New(o.Missing); o.Missing == "" {
					_, err = o.Build("x", nil)
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
