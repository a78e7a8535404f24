package api_test

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/modules/registry/api"
	"github.com/dynmcp/dynmcp/schema"
)

func anyProgram(string) bool { return true }

// options returns the ways to run a server whose server.json has these members.
func options(t testing.TB, members ...string) []*api.Option {
	t.Helper()
	return optionsOf(t, mcptest.ServeRegistry(t, serverJSON("io.example/thing", "1.2.0", "Does things.", members...)))
}

func optionsOf(t testing.TB, r *mcptest.Registry) []*api.Option {
	t.Helper()
	s, err := (&api.Client{Address: r.URL}).Get(t.Context(), "io.example/thing", "")
	if err != nil {
		t.Fatal(err)
	}
	return s.Options(anyProgram)
}

func pkg(kind, identifier, version string, more ...string) string {
	if version != "" {
		more = append(more, `"version":"`+version+`"`)
	}
	if !strings.Contains(strings.Join(more, ""), `"transport"`) {
		more = append(more, `"transport":{"type":"stdio"}`)
	}
	return `"packages":[{"registryType":"` + kind + `","identifier":"` + identifier + `"` + strings.Join(append([]string{""}, more...), ",") + `}]`
}

// words returns the command line or the address of an entry, with its variables.
func words(s schema.Server) string {
	all := append([]string{s.Command}, s.Args...)
	if s.Transport != schema.Stdio {
		all = []string{s.Transport, s.URL}
	}
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			all = append(all, name+"="+m[name])
		}
	}
	return strings.Join(all, " ")
}

func TestEntries(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for name, c := range map[string]struct {
		members string
		answers api.Answers
		want    string // or a part of the error
	}{
		"npm":      {pkg("npm", "@example/server", "1.0.2", `"transport":{"type":"stdio"}`), nil, "npx -y @example/server@1.0.2"},
		"npm hint": {pkg("npm", "server", "1.0.2-beta.1", `"runtimeHint":"npx"`), nil, "npx -y server@1.0.2-beta.1"},
		"npm runtime": {pkg("npm", "server", "1.0.2", `"runtimeHint":"npx","runtimeArguments":[{"type":"named","name":"-y"},{"type":"positional","value":"--quiet"},{"type":"positional","value":"server@1.0.2"}]`), nil,
			"npx -y --quiet server@1.0.2"},
		"pypi":       {pkg("pypi", "weather-mcp", "0.5.0", `"runtimeHint":"uvx","runtimeArguments":[{"type":"named","name":"--python","value":"3.12"}]`), nil, "uvx --python=3.12 weather-mcp@0.5.0"},
		"pypi hint":  {pkg("pypi", "weather.mcp", "1!0.5.0rc1.post2", `"runtimeHint":"python"`), nil, "uvx weather.mcp@1!0.5.0rc1.post2"},
		"oci":        {pkg("oci", "docker.io/mcp/files:1.0.2", ""), nil, "docker run -i --rm docker.io/mcp/files:1.0.2"},
		"oci old":    {pkg("oci", "mcp/files", "1.0.2", `"registryBaseUrl":"https://docker.io"`), nil, "docker run -i --rm mcp/files:1.0.2"},
		"oci base":   {pkg("oci", "mcp/files", "1.0.2", `"registryBaseUrl":"https://ghcr.io","runtimeHint":"podman"`), nil, "podman run -i --rm ghcr.io/mcp/files:1.0.2"},
		"oci digest": {pkg("oci", "ghcr.io/a/b@sha256:"+strings.Repeat("ab", 32), "1.0.0"), nil, "docker run -i --rm ghcr.io/a/b@sha256:" + strings.Repeat("ab", 32)},
		"oci variables": {pkg("oci", "a/b", "1.0.0", `"runtimeArguments":[{"type":"positional","value":"run"},{"type":"named","name":"-i"},{"type":"named","name":"-e","value":"TOKEN={token}","variables":{"token":{"isSecret":true}}},{"type":"named","name":"-e","value":"KIND=x"}],"environmentVariables":[{"name":"LEVEL","default":"info"}]`),
			api.Answers{"token": {"${T}"}}, "docker run -i --rm -e TOKEN -e KIND=x -e LEVEL a/b:1.0.0 LEVEL=info TOKEN=${T}"},
		"oci mounts": {pkg("oci", "a/b", "1.0.0", `"runtimeArguments":[{"type":"named","name":"--mount","value":"type=bind,src={source},dst={target}","isRequired":true,"isRepeated":true,"variables":{"source":{"format":"filepath","isRequired":true},"target":{"default":"/project"}}}],"packageArguments":[{"type":"positional","valueHint":"dir","value":"/project"}]`),
			api.Answers{"source": {"/a", "/b c"}}, "docker run -i --rm --mount=type=bind,src=/a,dst=/project --mount=type=bind,src=/b c,dst=/project a/b:1.0.0 /project"},
		"arguments": {pkg("npm", "s", "1.0.0", `"packageArguments":[{"type":"named","name":"--host","default":"localhost","isRequired":true},{"type":"named","name":"--port","format":"number"},{"type":"named","name":"-v"},{"type":"named","name":"-l","value":"{level}","variables":{"level":{"choices":["a","b"],"default":"a"}}},{"type":"positional","valueHint":"db","isRequired":true}]`),
			api.Answers{"port": {"80"}, "db": {"main db"}}, "npx -y s@1.0.0 --host=localhost --port=80 -v -l a main db"},
		"optional":      {pkg("npm", "s", "1.0.0", `"packageArguments":[{"type":"named","name":"--port","format":"number"},{"type":"positional","valueHint":"x"}],"environmentVariables":[{"name":"A"},{"name":"URL","value":"https://{host}/","variables":{"host":{}}}]`), nil, "npx -y s@1.0.0"},
		"repeated":      {pkg("npm", "s", "1.0.0", `"packageArguments":[{"type":"positional","valueHint":"dir","isRepeated":true,"isRequired":true,"format":"filepath"}]`), api.Answers{"dir": {"/a", "~/b"}}, "npx -y s@1.0.0 /a " + filepath.Join(home, "b")},
		"twice":         {pkg("npm", "s", "1.0.0", `"packageArguments":[{"type":"positional","valueHint":"x","isRequired":true}]`), api.Answers{"x": {"a", "b"}}, "x takes one value"},
		"templates":     {pkg("npm", "s", "1.0.0", `"environmentVariables":[{"name":"URL","value":"https://{host}:{port}/{other}","variables":{"host":{"isRequired":true},"port":{"value":"80"}}}]`), api.Answers{"host": {"h"}}, "npx -y s@1.0.0 URL=https://h:80/{other}"},
		"same variable": {pkg("npm", "s", "1.0.0", `"environmentVariables":[{"name":"A","value":"{x}{x}","variables":{"x":{"isRequired":true}}},{"name":"B","value":"{x}","variables":{"x":{"isRequired":true}}}]`), api.Answers{"x": {"1"}, "B.x": {"2"}}, "npx -y s@1.0.0 A=11 B=2"},
		"boolean":       {pkg("npm", "s", "1.0.0", `"packageArguments":[{"type":"named","name":"--fast","format":"boolean"}]`), api.Answers{"fast": {"yes"}}, "npx -y s@1.0.0 --fast=true"},
		"missing":       {pkg("npm", "s", "1.0.0", `"environmentVariables":[{"name":"A","isRequired":true},{"name":"B","value":"x{c}","isRequired":true,"variables":{"c":{}}}]`), nil, "it needs A, c"},
		"wrong choice":  {pkg("npm", "s", "1.0.0", `"environmentVariables":[{"name":"A","choices":["x","y"]}]`), api.Answers{"A": {"z"}}, "want one of x, y"},
		"wrong number":  {pkg("npm", "s", "1.0.0", `"environmentVariables":[{"name":"A","format":"number"}]`), api.Answers{"A": {"z"}}, "want a number"},
		"not asked":     {pkg("npm", "s", "1.0.0"), api.Answers{"A": {"z"}}, "it does not ask for A"},
		"remote": {`"remotes":[{"type":"streamable-http","url":"https://{tenant}.example.com/mcp?key={key}","variables":{"tenant":{"choices":["eu","us"],"default":"eu"},"key":{"isSecret":true}},"headers":[{"name":"X-Key","value":"Bearer {token}","variables":{"token":{"isRequired":true}}},{"name":"X-Region","default":"a"},{"name":"X-None"}]}]`,
			api.Answers{"token": {"${T}"}, "key": {"${K}"}}, "streamable-http https://eu.example.com/mcp?key=${K} X-Key=Bearer ${T} X-Region=a"},
		"sse":             {`"remotes":[{"type":"sse","url":"https://example.com/sse"},{"type":"streamable-http","url":"https://example.com/mcp"}]`, nil, "streamable-http https://example.com/mcp"},
		"address lacks":   {`"remotes":[{"type":"sse","url":"https://{tenant}.example.com/sse"}]`, nil, "it needs tenant"},
		"references stay": {pkg("npm", "s", "1.0.0", `"environmentVariables":[{"name":"A","value":"$${x} ${cmd:touch /tmp/x} ${"}]`), nil, "npx -y s@1.0.0 A=$$${x} $${cmd:touch /tmp/x} ${"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, c.members)[0]
			if o.Missing != "" {
				t.Fatal(o.Missing)
			}
			s, err := o.Build("thing", c.answers)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("got error %v, want %q", err, c.want)
				}
				return
			}
			if got := words(s); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if schema.ServerKeys[api.Keys](s).Registry != "io.example/thing@1.2.0" || s.Name != "thing" {
				t.Errorf("got %q made of %q", s.Name, schema.ServerKeys[api.Keys](s).Registry)
			}
		})
	}
}

// A registry cannot make anything run but a package.
func TestHostileServers(t *testing.T) {
	for name, c := range map[string]struct{ members, want string }{
		"a path":             {pkg("npm", "../evil", "1.0.0"), "not the name of a package"},
		"a file":             {pkg("npm", "file:///tmp/evil", "1.0.0"), "not the name of a package"},
		"a git address":      {pkg("npm", "git+https://evil.example/x", "1.0.0"), "not the name of a package"},
		"an option":          {pkg("npm", "--call=id", "1.0.0"), "not the name of a package"},
		"an alias":           {pkg("npm", "x@npm:evil", "1.0.0"), "not the name of a package"},
		"a python address":   {pkg("pypi", "x @ https://evil.example/x.whl", "1.0.0"), "not the name of a package"},
		"an extra":           {pkg("pypi", "--from", "1.0.0"), "not the name of a package"},
		"a tag":              {pkg("npm", "x", "latest"), "is not exact"},
		"a range":            {pkg("npm", "x", "^1.0.0"), "is not exact"},
		"no version":         {pkg("npm", "x", ""), "is not exact"},
		"a version's option": {pkg("pypi", "x", "1.0 --with evil"), "is not exact"},
		"an image's option":  {pkg("oci", "--privileged", "1.0.0"), "not the name of a package"},
		"an image's path":    {pkg("oci", "a/../../b", "1.0.0"), "not the name of a package"},
		"an image latest":    {pkg("oci", "a/b:latest", ""), "not a version"},
		"an image no tag":    {pkg("oci", "a/b", ""), "neither tag nor digest"},
		"an image base":      {pkg("oci", "a/b", "1", `"registryBaseUrl":"https://x --privileged"`), "not the name of a package"},
		"a hint sh":          {pkg("npm", "x", "1.0.0", `"runtimeHint":"sh","runtimeArguments":[{"type":"named","name":"-c","value":"id"}]`), "wants to be run by sh"},
		"a hint's path":      {pkg("npm", "x", "1.0.0", `"runtimeHint":"/tmp/npx","runtimeArguments":[{"type":"named","name":"-y"}]`), "wants to be run by /tmp/npx"},
		"npx -c":             {pkg("npm", "x", "1.0.0", `"runtimeArguments":[{"type":"named","name":"-c","value":"id"}]`), "-c is not passed to npx"},
		"npx --call":         {pkg("npm", "x", "1.0.0", `"runtimeArguments":[{"type":"named","name":"--call","value":"id"}]`), "--call=id is not passed to npx"},
		"npx --package":      {pkg("npm", "x", "1.0.0", `"runtimeArguments":[{"type":"named","name":"--package","value":"evil"}]`), "is not passed to npx"},
		"npx another":        {pkg("npm", "x", "1.0.0", `"runtimeArguments":[{"type":"positional","value":"evil"}]`), "evil is not passed to npx"},
		"npx registry":       {pkg("npm", "x", "1.0.0", `"runtimeArguments":[{"type":"positional","value":"--registry=https://evil.example"}]`), "is not passed to npx"},
		"npx --":             {pkg("npm", "x", "1.0.0", `"runtimeArguments":[{"type":"positional","value":"--"}]`), "-- is not passed to npx"},
		"uvx --with":         {pkg("pypi", "x", "1.0.0", `"runtimeArguments":[{"type":"named","name":"--with","value":"evil"}]`), "is not passed to uvx"},
		"uvx --from":         {pkg("pypi", "x", "1.0.0", `"runtimeArguments":[{"type":"named","name":"--from","value":"git+https://evil.example"}]`), "is not passed to uvx"},
		"uvx a value's end":  {pkg("pypi", "x", "1.0.0", `"runtimeArguments":[{"type":"positional","value":"--python"}]`), "--python is not passed to uvx"},
		"docker privileged":  {pkg("oci", "x", "1.0.0", `"runtimeArguments":[{"type":"named","name":"--privileged"}]`), "is not passed to docker"},
		"docker entrypoint":  {pkg("oci", "x", "1.0.0", `"runtimeArguments":[{"type":"named","name":"--entrypoint","value":"sh"}]`), "is not passed to docker"},
		"docker -v joined":   {pkg("oci", "x", "1.0.0", `"runtimeArguments":[{"type":"named","name":"-v/:/host"}]`), "is not passed to docker"},
		"docker another":     {pkg("oci", "x", "1.0.0", `"runtimeArguments":[{"type":"positional","value":"evil/image"}]`), "is not passed to docker"},
		"NODE_OPTIONS":       {pkg("npm", "x", "1.0.0", `"environmentVariables":[{"name":"NODE_OPTIONS","value":"--require=/tmp/x"}]`), "it sets NODE_OPTIONS"},
		"npm's config":       {pkg("npm", "x", "1.0.0", `"environmentVariables":[{"name":"npm_config_registry","default":"https://evil.example"}]`), "it sets npm_config_registry"},
		"LD_PRELOAD":         {pkg("npm", "x", "1.0.0", `"environmentVariables":[{"name":"LD_PRELOAD","value":"/tmp/x"}]`), "it sets LD_PRELOAD"},
		"PATH":               {pkg("npm", "x", "1.0.0", `"environmentVariables":[{"name":"Path","value":"/tmp"}]`), "it sets Path"},
		"a variable's name":  {pkg("npm", "x", "1.0.0", `"environmentVariables":[{"name":"A=B","value":"x"}]`), "is not the name of a variable"},
		"a header's name":    {`"remotes":[{"type":"sse","url":"https://x.example/","headers":[{"name":"a b","value":"c"}]}]`, "invalid header name"},
		"a header's lines":   {`"remotes":[{"type":"sse","url":"https://x.example/","headers":[{"name":"A","value":"b\r\nHost: evil"}]}]`, "header"},
		"plain http":         {`"remotes":[{"type":"sse","url":"http://x.example/"}]`, "is not https"},
		"a file's address":   {`"remotes":[{"type":"sse","url":"file:///etc/passwd"}]`, "names no host"},
		"a user's address":   {`"remotes":[{"type":"sse","url":"https://a:b@x.example/"}]`, "there is a user"},
		"a transport":        {`"remotes":[{"type":"stdio","url":"https://x.example/"}]`, "does not speak"},
		"a kind":             {pkg("cargo", "x", "1.0.0"), "runs no packages of"},
		"a kind with hints":  {pkg("nuget", "Some.Server", "0.4.0", `"runtimeHint":"dnx","runtimeArguments":[{"type":"positional","value":"--yes"}]`), "runs no packages of"},
		"a kind that acts":   {pkg(`\u001b[2Jsh`, "x", "1.0.0"), "runs no packages of"},
		"serves http":        {pkg("npm", "x", "1.0.0", `"transport":{"type":"streamable-http","url":"http://localhost:{port}/mcp"}`), "not spoken to by stdio"},
		"a default's choice": {pkg("npm", "x", "1.0.0", `"environmentVariables":[{"name":"A","choices":["a"],"default":"b"}]`), "not among its choices"},
		"an argument's kind": {pkg("npm", "x", "1.0.0", `"packageArguments":[{"type":"flag","name":"-x"}]`), "neither positional nor named"},
		"a joined reference": {pkg("npm", "x", "1.0.0", `"environmentVariables":[{"name":"A","value":"${a}{b}","variables":{"a":{"default":"{cmd:id"},"b":{"default":"}"}}}]`), "A=$${cmd:id}"},
		"a bundle's address": {pkg("mcpb", "/tmp/x.mcpb", "1.0.0", `"fileSha256":"`+strings.Repeat("ab", 32)+`"`), "its bundle has no address"},
		"a bundle's digest":  {pkg("mcpb", "https://x.example/x.mcpb", "1.0.0"), "does not say the SHA-256"},
	} {
		t.Run(name, func(t *testing.T) {
			r := mcptest.ServeRegistry(t)
			r.PublishMalformed(serverJSON("io.example/thing", "1.2.0", "Does things.", c.members))
			o := optionsOf(t, r)[0]
			_, _ = o.Questions() // search calls it even for an option that cannot be run
			got := o.Missing
			if got == "" {
				s, err := o.Build("thing", nil)
				got = words(s)
				if err != nil {
					got = err.Error()
				}
			}
			if !strings.Contains(got, c.want) || strings.Contains(got, "\x1b") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A hint at another program is noted, and not followed.
func TestHintsAreNotCommands(t *testing.T) {
	o := options(t, pkg("npm", "x", "1.0.0", `"runtimeHint":"sh"`))[0]
	s, err := o.Build("x", nil)
	if err != nil || words(s) != "npx -y x@1.0.0" || !strings.Contains(o.Note, "hints at sh") {
		t.Errorf("got %s, %v, note %q", words(s), err, o.Note)
	}
	o = options(t, pkg("oci", "x", "1.0.0", `"runtimeArguments":[{"type":"named","name":"-v","value":"/:/host"},{"type":"named","name":"--network","value":"host"}]`))[0]
	if _, err := o.Build("x", nil); err != nil || o.Note != "it reaches beyond its container: -v /:/host, --network host" {
		t.Errorf("got note %q, %v", o.Note, err)
	}
}

func TestOptionsSayWhatIsMissing(t *testing.T) {
	r := mcptest.ServeRegistry(t, serverJSON("io.example/thing", "1.2.0", "Does things.",
		`"packages":[{"registryType":"oci","identifier":"a/b:1","transport":{"type":"stdio"}},{"registryType":"npm","identifier":"x","version":"1.0.0","transport":{"type":"stdio"}}]`, `"remotes":[{"type":"sse","url":"https://x.example/"}]`))
	s, err := (&api.Client{Address: r.URL}).Get(t.Context(), "io.example/thing", "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range s.Options(func(program string) bool { return program != "docker" }) {
		got = append(got, o.Via+":"+o.Missing)
	}
	if diff := cmp.Diff([]string{"npm:", "remote:", "oci:docker is not installed"}, got); diff != "" {
		t.Error(diff)
	}
}

// For any texts of a registry and any answers, the written config has exactly these texts as
// arguments. Only references in answers are expanded.
func TestArgumentsMeanThemselves(t *testing.T) {
	part := rapid.SampledFrom([]string{"$", "{", "}", "${", "$$", "{a}", "{b}", "${HOME}", "${cmd:id}", "${keyring:x}", "x", " ", "'", `"`, `\`, "\n", "-", "=", "é", "\u202e"})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(part, 1, 6).Draw(t, "parts"), "") })
	r := mcptest.ServeRegistry(t)
	dir := t.TempDir()
	version := 0
	rapid.Check(t, func(t *rapid.T) {
		value, a, answer := text.Draw(t, "value"), text.Draw(t, "a"), rapid.SampledFrom([]string{"plain", "$", "a b", "x{", "}"}).Draw(t, "answer")
		raw, _ := json.Marshal(map[string]any{
			"name": "io.example/thing", "version": "1.0.0", "description": "Does things.",
			"packages": []any{map[string]any{
				"registryType": "npm", "identifier": "x", "version": "1.0.0", "transport": map[string]any{"type": "stdio"},
				"packageArguments": []any{
					map[string]any{"type": "positional", "value": value, "variables": map[string]any{"a": map[string]any{"value": a}, "b": map[string]any{"isRequired": true}}},
					map[string]any{"type": "positional", "value": text.Draw(t, "other")},
				},
			}},
		})
		version++
		r.Publish(string(raw), "active", "")
		s, err := (&api.Client{Address: r.URL}).Get(t.Context(), "io.example/thing", "")
		if err != nil {
			t.Fatal(err)
		}
		o := s.Options(anyProgram)[0]
		questions, err := o.Questions()
		if err != nil {
			t.Fatal(err)
		}
		answers := api.Answers{}
		for _, q := range questions {
			answers[q.Name] = []string{answer}
		}
		entry, err := o.Build("thing", answers)
		if err != nil {
			if !strings.Contains(err.Error(), "would make a ${…} together") {
				t.Fatal(err)
			}
			return
		}
		want := []string{"-y", "x@1.0.0", substitute(value, map[string]string{"a": a, "b": answer}), s.Packages[0].PackageArguments[1].Value}
		path := filepath.Join(dir, "mcp.json")
		config, err := schema.SetServer(path, []byte("{}"), entry)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, config)
		read, err := schema.ReadFiles(t.Context(), []string{path}, schema.LoadOptions{Environ: []string{"HOME=expanded"}, Sections: []schema.Section{schema.ServerSectionOf[api.Keys]("registry", "")}, Schemes: []string{"cmd", "keyring"}, Secret: func(reference string) (string, string, string) {
			t.Errorf("the config refers to %s", reference)
			return "", "", ""
		}}).Load()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, read.Servers[0].Args); diff != "" {
			t.Fatalf("value %q, a %q, answer %q: %s", value, a, answer, diff)
		}
	})
}

// substitute replaces variables in braces, from left to right.
func substitute(text string, values map[string]string) string {
	var b strings.Builder
	for text != "" {
		i := strings.IndexByte(text, '{')
		if i < 0 {
			break
		}
		b.WriteString(text[:i])
		text = text[i:]
		end := strings.IndexAny(text[1:], "{}")
		if end >= 0 && text[1+end] == '}' {
			if value, ok := values[text[1:1+end]]; ok {
				b.WriteString(value)
			} else {
				b.WriteString(text[:end+2])
			}
			text = text[end+2:]
			continue
		}
		b.WriteByte('{')
		text = text[1:]
	}
	return b.String() + text
}

func TestMissingAnswersAreTyped(t *testing.T) {
	o := options(t, pkg("npm", "x", "1.0.0", `"environmentVariables":[{"name":"API_KEY","isRequired":true,"description":"The\nkey\u001b[0m.","isSecret":true}]`))[0]
	_, err := o.Build("x", nil)
	lacks, ok := errors.AsType[*api.MissingError](err)
	if !ok || len(lacks.Questions) != 1 || !lacks.Questions[0].Secret || strings.ContainsAny(lacks.Questions[0].Description, "\n\x1b") {
		t.Errorf("got %v", err)
	}
}
