package hostfile

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema/reference"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Manifests describe one server, or name the file that has several.

// special reports whether the host's files describe a server without listing it.
func (h *Host) special() bool {
	return slices.Contains([]string{"mcpb", "registry", "smithery"}, h.Name)
}

// specialEntries returns the entries of a manifest; found is false if the file is none.
func (f *File) specialEntries(r Report) (all []Entry, found bool) {
	name := scalar(f.root.Get("name"))
	if name = name[strings.LastIndexByte(name, '/')+1:]; name == "" {
		name = filepath.Base(f.Dir)
	}
	one := func(n *syntax.Node, path string) []Entry {
		return []Entry{{Member: syntax.Member{Key: name, At: n.At, Value: n}, Path: path, File: f}}
	}
	path := syntax.Below("mcpServers", name)
	switch f.Host.Name {
	case "mcpb":
		return one(f.bundled(), "server.mcp_config"), true
	case "registry":
		n, why := f.published()
		if n == nil {
			n = failed(r, f.root.At, path, why, "look it up with dynmcp search")
		}
		return one(n, path), true
	case "smithery":
		return one(f.smithery(r, path), path), true
	}
	switch named := f.root.Get("mcpServers"); {
	case named != nil && named.Kind == syntax.Text:
		return f.include(named.Scalar, "mcpServers", named.At, r), true
	case named == nil && f.Host.Name == "claude-plugin":
		return f.include(".mcp.json", "", f.root.At, r), true
	}
	return nil, false
}

// bundled returns how a bundle is started on this system.
func (f *File) bundled() *syntax.Node {
	n := *below(f.root, []string{"server", "mcp_config"})
	system := map[string]string{"windows": "win32"}[runtime.GOOS]
	if system == "" {
		system = runtime.GOOS
	}
	own := below(&n, []string{"platform_overrides", system})
	n.Members = slices.DeleteFunc(slices.Clone(n.Members), func(m syntax.Member) bool { return m.Key == "platform_overrides" || own != nil && own.Has(m.Key) })
	if own != nil {
		n.Members = append(n.Members, own.Members...)
	}
	return &n
}

// runners start a package of a registry, with the word between its name and its version.
var runners = map[string]struct {
	command []string
	version string
}{
	"npm": {[]string{"npx", "-y"}, "@"}, "pypi": {[]string{"uvx"}, "=="}, "oci": {[]string{"docker", "run", "-i", "--rm"}, ":"}, "docker": {[]string{"docker", "run", "-i", "--rm"}, ":"},
	"nuget": {[]string{"dnx", "--yes"}, "@"},
}

// published returns the entry of a server of the registry: its first package that is a program, or
// else its first address.
func (f *File) published() (n *syntax.Node, why string) {
	for _, p := range f.root.ItemsOf("packages") {
		kind := scalar(first(p, "registryType", "registry_type", "registry_name"))
		runner, ok := runners[strings.ToLower(kind)]
		if t := p.Get("transport"); !ok || t != nil && scalar(t.Get("type")) != "stdio" {
			why = "its package of type " + kind + " is not started here; dynmcp add looks it up in the registry"
			continue
		}
		words, env := slices.Clone(runner.command), &syntax.Node{Kind: syntax.Object, At: p.At}
		for _, v := range itemsOf(first(p, "environmentVariables", "environment_variables")) {
			name := scalar(v.Get("name"))
			env.Members = append(env.Members, syntax.Member{Key: name, At: v.At, Value: text(v, template(v, name))})
			if runner.command[0] == "docker" {
				words = append(words, "-e", name)
			}
		}
		words = append(words, arguments(first(p, "runtimeArguments", "runtime_arguments"))...)
		name := scalar(first(p, "identifier", "name"))
		if version := scalar(p.Get("version")); version != "" && version != "latest" && !strings.Contains(name[strings.LastIndexByte(name, '/')+1:], runner.version) {
			name += runner.version + version
		}
		words = append(append(words, name), arguments(first(p, "packageArguments", "package_arguments"))...)
		return object(p.At, syntax.Member{Key: "command", Value: text(p, words[0])}, syntax.Member{Key: "args", Value: textList(p.At, words[1:])}, syntax.Member{Key: "env", Value: env}), ""
	}
	if remotes := f.root.ItemsOf("remotes"); len(remotes) > 0 {
		remote := remotes[0]
		headers := &syntax.Node{Kind: syntax.Object, At: remote.At}
		for _, h := range remote.ItemsOf("headers") {
			headers.Members = append(headers.Members, syntax.Member{Key: scalar(h.Get("name")), At: h.At, Value: text(h, template(h, scalar(h.Get("name"))))})
		}
		address := braced().ReplaceAllStringFunc(scalar(remote.Get("url")), variable)
		return object(remote.At, syntax.Member{Key: "type", Value: first(remote, "type", "transport_type")}, syntax.Member{Key: "url", Value: text(remote, address)}, syntax.Member{Key: "headers", Value: headers}), ""
	}
	if why == "" {
		why = "it names no package and no address"
	}
	return nil, why
}

var braced = lazyregexp.New(`\{[^{}]+\}`)

// variable converts {name} to a reference to a variable.
func variable(ref string) string { return "${" + reference.VariableName(ref) + "}" }

// template returns the text of an input of the registry: its value, or the variable called name.
func template(n *syntax.Node, name string) string {
	switch value, d := n.Get("value"), n.Get("default"); {
	case value != nil:
		return braced().ReplaceAllStringFunc(value.Scalar, variable)
	case d != nil && !strings.Contains(d.Scalar, "}"):
		return "${" + reference.VariableName(name) + ":-" + d.Scalar + "}"
	case scalar(first(n, "isRequired", "is_required")) == "true":
		return "${" + reference.VariableName(name) + "}"
	}
	return "${" + reference.VariableName(name) + ":-}"
}

// arguments returns the words of arguments; those that are optional and have no value are left out.
func arguments(list *syntax.Node) (words []string) {
	for _, a := range itemsOf(list) {
		name := scalar(a.Get("name"))
		hint := name
		if hint == "" {
			hint = scalar(first(a, "valueHint", "value_hint"))
		}
		given := a.Has("value") || a.Has("default")
		if !given && scalar(first(a, "isRequired", "is_required")) != "true" {
			continue
		}
		value := template(a, hint)
		switch {
		case name == "" || scalar(a.Get("type")) == "positional":
			words = append(words, value)
		case !given && !a.Has("valueHint") && !a.Has("format"): // a flag
			words = append(words, name)
		case strings.HasPrefix(name, "--"):
			words = append(words, name+"="+value)
		default:
			words = append(words, name, value)
		}
	}
	return words
}
