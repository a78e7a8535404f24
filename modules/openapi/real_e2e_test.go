//go:build e2e

package openapi

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// Documents that others have published, in packages of npm, whole.
var published = []struct {
	name, path string
	operations int // at least
}{
	{"github", "@octokit/openapi/generated/api.github.com.json", 1000},
	{"kubernetes", "kubernetes-client/lib/specs/swagger-1.13.json.gz", 1000}, // 2.0
	{"directus", "@directus/specs/dist/openapi.json", 100},
	{"blockfrost", "@blockfrost/openapi/openapi.yaml", 100},
	{"galaxy", "@scalar/galaxy/dist/3.1.yaml", 8},
	{"petstore", "@readme/oas-examples/3.0/json/petstore.json", 15},
	{"petstore2", "@readme/oas-examples/2.0/json/petstore.json", 15},
	{"trains", "@readme/oas-examples/3.1/json/train-travel.json", 7},
	{"trek", "@readme/oas-examples/3.0/json/star-trek.json", 30},
	{"readme", "@readme/oas-examples/3.1/yaml/readme.yaml", 20},
	{"styles", "@readme/oas-examples/3.1/json/parameters-style.json", 20},
}

var packages = []string{
	"@octokit/openapi@23.0.2", "kubernetes-client@9.0.0", "@directus/specs@15.2.0", "@blockfrost/openapi@0.1.93", "@scalar/galaxy@0.6.12",
	"@readme/oas-examples@8.2.2", "@modelcontextprotocol/sdk@1.32.2", "@stoplight/prism-cli@5.16.0",
}

// modulesOf installs the packages, and returns their node_modules.
var modulesOf = sync.OnceValues(func() (string, error) {
	args := []string{"-y"}
	for _, pkg := range packages {
		args = append(args, "--package="+pkg)
	}
	out, err := exec.Command("npx", append(args, "--call=node -p process.env.PATH")...).Output()
	if err != nil {
		return "", fmt.Errorf("npx: %w", err)
	}
	for _, bin := range filepath.SplitList(strings.TrimSpace(string(out))) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(bin), "@stoplight", "prism-cli")); err == nil {
			return filepath.Dir(bin), nil
		}
	}
	return "", fmt.Errorf("npx has no prism on its path")
})

func nodeModules(t *testing.T) string {
	t.Helper()
	mcptest.Npx(t, packages...)
	dir, err := modulesOf()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// publishedAt returns the file of a document, unpacked.
func publishedAt(t *testing.T, path string) string {
	t.Helper()
	path = filepath.Join(nodeModules(t), filepath.FromSlash(path))
	if !strings.HasSuffix(path, ".gz") {
		return path
	}
	packed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "document.json", string(text))
}

// count returns how many operations a document has, counted without this package's reader.
func count(t *testing.T, path string) (n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range d.root["paths"].(object) {
		for key := range item.(object) {
			if slices.Contains([]string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}, key) {
				n++
			}
		}
	}
	return n
}

// checker checks tools as the official TypeScript client does when it lists them, and that their input
// schemas can be compiled.
const checker = `
const [sdk, file] = process.argv.slice(2)
const { ListToolsResultSchema } = await import(sdk + '/dist/esm/types.js')
const { AjvJsonSchemaValidator } = await import(sdk + '/dist/esm/validation/ajv-provider.js')
const { tools } = ListToolsResultSchema.parse(JSON.parse((await import('fs')).readFileSync(file)))
let bad = 0
console.warn = console.error = () => {}
for (const tool of tools) {
  for (const schema of [tool.inputSchema, tool.outputSchema]) {
    try { if (schema) new AjvJsonSchemaValidator().getValidator(schema) } catch (e) { bad++; console.log(tool.name + ': ' + e.message) }
  }
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(tool.name)) { bad++; console.log('name ' + tool.name) }
  for (const key of Object.keys(tool.inputSchema.properties ?? {})) {
    if (!/^[a-zA-Z0-9_.-]{1,64}$/.test(key)) { bad++; console.log(tool.name + ': argument ' + key) }
  }
}
console.log(tools.length + ' tools, ' + bad + ' bad')
process.exit(bad ? 1 : 0)
`

// Every operation of a published document is a tool that the official clients accept.
func TestPublishedDocuments(t *testing.T) {
	modules := nodeModules(t)
	script := writeFile(t, "check.mjs", checker)
	for _, doc := range published {
		t.Run(doc.name, func(t *testing.T) {
			stateDir(t)
			path := publishedAt(t, doc.path)
			began := time.Now()
			c := connected(t, schema.Server{OpenAPI: path, URL: "https://api.test"})
			tools := toolsOf(t, c)
			t.Logf("%d tools in %s", len(tools), time.Since(began).Round(time.Millisecond))
			if want := count(t, path); len(tools) != want || want < doc.operations {
				t.Errorf("%d tools of %d operations, of at least %d", len(tools), want, doc.operations)
			}
			checkSchemas(t, tools)
			var list []json.RawMessage
			for _, name := range slices.Sorted(maps.Keys(tools)) {
				list = append(list, tools[name])
			}
			file := writeFile(t, "tools.json", `{"tools":`+string(wire.Array(list))+`}`)
			if out, err := exec.Command("node", script, filepath.Join(modules, "@modelcontextprotocol", "sdk"), file).CombinedOutput(); err != nil {
				t.Errorf("the TypeScript client: %v\n%.2000s", err, out)
			}
		})
	}
}

// prism serves a document as a mock that validates requests, and returns its address.
func prism(t *testing.T, path string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	cmd := exec.Command("node", filepath.Join(nodeModules(t), "@stoplight", "prism-cli", "dist", "index.js"), "mock", "--multiprocess=false", "-p", fmt.Sprint(port), path)
	log, err := os.Create(filepath.Join(t.TempDir(), "prism.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if conn, err := net.DialTimeout("tcp", strings.TrimPrefix(address, "http://"), time.Second); err == nil {
			conn.Close()
			return address
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("prism does not listen: %.2000s", text)
		}
	}
}

// sample returns a value that a schema allows: an example, a default, or the least. Whole has what is
// not required, too.
func sample(s, defs object, depth int, whole bool) any {
	if name, ok := strings.CutPrefix(textOf(s["$ref"]), "#/$defs/"); ok && depth < 12 {
		target, _ := defs[name].(object)
		return sample(target, defs, depth+1, whole)
	}
	for _, key := range []string{"examples", "enum"} {
		if list, _ := s[key].([]any); len(list) > 0 {
			return list[0]
		}
	}
	for _, key := range []string{"const", "default"} {
		if v, ok := s[key]; ok && v != nil {
			return v
		}
	}
	merged := object{}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := s[key].([]any)
		for _, one := range list {
			v := sample(one.(object), defs, depth+1, whole)
			if o, ok := v.(object); ok && key == "allOf" {
				for name, inner := range o {
					merged[name] = inner
				}
				continue
			}
			if s["properties"] == nil {
				return v
			}
			break
		}
	}
	kind := textOf(s["type"])
	if list := texts(s["type"]); len(list) > 0 {
		kind = list[len(list)-1]
	}
	number := func(key string, otherwise float64) float64 {
		if f, ok := s[key].(float64); ok {
			return f
		}
		return otherwise
	}
	switch {
	case kind == "object" || kind == "" && (s["properties"] != nil || len(merged) > 0):
		properties, _ := s["properties"].(object)
		names := texts(s["required"])
		if whole && depth < 3 {
			names = slices.Sorted(maps.Keys(properties))
		}
		for _, name := range names {
			property, _ := properties[name].(object)
			merged[name] = sample(property, defs, depth+1, whole)
		}
		return merged
	case kind == "array":
		items, _ := s["items"].(object)
		list := []any{}
		for range max(1, int(number("minItems", 1))) {
			list = append(list, sample(items, defs, depth+1, whole))
		}
		return list
	case kind == "integer", kind == "number":
		return max(number("minimum", 1), number("exclusiveMinimum", 0)+1)
	case kind == "boolean":
		return true
	case kind == "null":
		return nil
	}
	switch s["format"] {
	case "date-time":
		return "2024-01-02T03:04:05Z"
	case "date":
		return "2024-01-02"
	case "uuid":
		return "123e4567-e89b-12d3-a456-426614174000"
	case "uri", "url":
		return "https://example.com/"
	case "email":
		return "a@example.com"
	case "ipv4":
		return "192.0.2.1"
	}
	if s["contentEncoding"] == "base64" {
		return "AAEC"
	}
	return strings.Repeat("aaaa", 1+int(number("minLength", 4))/4)[:max(1, int(min(number("minLength", 4), number("maxLength", 100))))]
}

// A mock of a published document accepts what calls send, and its answers arrive unchanged.
func TestCallsOfPublishedDocuments(t *testing.T) {
	const most = 200
	nodeModules(t)                                                                         // before the tests below have homes of their own
	least := map[string]int{"galaxy": 100, "petstore": 100, "petstore2": 60, "trains": 90} // percent that the mock accepts; petstore2 names no type of bodies, and the mock takes none; an example of trains is no UUID
	for _, doc := range published {
		if doc.name == "readme" || doc.name == "styles" {
			continue
		}
		t.Run(doc.name, func(t *testing.T) {
			stateDir(t)
			path := publishedAt(t, doc.path)
			address := prism(t, path)
			through := &seeing{}
			web := newProxy(t, address, through)
			c := connected(t, schema.Server{OpenAPI: path, URL: web, Headers: map[string]string{
				"Authorization": "Bearer x", "X-API-Key": "x", "api_key": "x", "project_id": "x"}})
			tools := toolsOf(t, c)
			names := slices.Sorted(maps.Keys(tools))
			step := max(1, len(names)/most)
			good, all := 0, 0
			for i := 0; all < most; i += step {
				whole := i/len(names)%2 == 1 // the second round has the optional arguments
				name := names[i%len(names)]
				var one struct{ InputSchema object }
				if err := json.Unmarshal(tools[name], &one); err != nil {
					t.Fatal(err)
				}
				defs, _ := one.InputSchema["$defs"].(object)
				arguments, err := json.Marshal(sample(one.InputSchema, defs, 0, whole))
				if err != nil {
					t.Fatal(err)
				}
				all++
				result, err := call(t, c, name, string(arguments))
				said, violations := through.last()
				if err != nil || violations != "" {
					t.Logf("%s %.300s: %s%.300s (%v)", name, arguments, violations, result, err)
				} else {
					good++ // an answer may be an error that the document has, where it has no other
				}
				if err == nil && wire.Get(result, "isError") == nil && strings.HasPrefix(said, "{") {
					var got, want any
					if json.Unmarshal(wire.Get(result, "structuredContent"), &got) != nil || json.Unmarshal([]byte(said), &want) != nil || fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%s: %.300s, want %.300s", name, result, said)
					}
				}
			}
			t.Logf("%d of %d calls were accepted", good, all)
			if want := cmp.Or(least[doc.name], 95); good*100 < want*all {
				t.Errorf("the mock accepted %d of %d calls, fewer than %d percent", good, all, want)
			}
		})
	}
}

// A seeing keeps the last body that a mock sent, and what it found wrong with the request.
type seeing struct {
	mu               sync.Mutex
	body, violations string
}

func (s *seeing) last() (body, violations string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body, s.violations
}

// newProxy forwards to a mock, and returns its own address.
func newProxy(t *testing.T, address string, s *seeing) string {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	api := serveAPI(t, "", func(w http.ResponseWriter, r *http.Request) {})
	api.answer = func(w http.ResponseWriter, r *http.Request) {
		api.mu.Lock()
		body := api.requests[len(api.requests)-1].body
		api.mu.Unlock()
		u := *to
		u.Path, u.RawPath, u.RawQuery = r.URL.Path, r.URL.RawPath, r.URL.RawQuery
		req, err := http.NewRequestWithContext(r.Context(), r.Method, u.String(), strings.NewReader(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		req.Header = r.Header.Clone()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		s.mu.Lock()
		s.body, s.violations = string(text), ""
		var found []struct{ Location []string }
		_ = json.Unmarshal([]byte(resp.Header.Get("Sl-Violations")), &found)
		for _, violation := range found { // others are about the mock's own examples
			if len(violation.Location) > 0 && violation.Location[0] == "request" {
				s.violations = resp.Header.Get("Sl-Violations")
			}
		}
		if strings.Contains(s.body, "prism/errors#") || resp.StatusCode == http.StatusUnsupportedMediaType {
			s.violations += resp.Status
		}
		s.mu.Unlock()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(text)
	}
	return api.URL
}
