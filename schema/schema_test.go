package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

// environ is the environment that the documents in testdata may refer to.
var environ = []string{
	"TOKEN=t0ken-value",
	"HOST=mcp.example.test",
	"EMPTY=",
	"BLANK=  ",
	"LINES=one\ntwo",
	"SPEED=fast",
	"RECURSIVE=${TOKEN}",
	"WHO=me",
}

// dashes are between the input and the result in a file of testdata.
const dashes = "\n----------\n"

// inputs returns the parts above the dashes of the files that match a pattern, by path.
func inputs(t testing.TB, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	all := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[file], _, _ = strings.Cut(string(data), dashes)
	}
	return all
}

// testFiles compares the result of run for each file that matches a pattern with the part
// below its dashes. name is that of the config: the extension is the file's before .txt.
func testFiles(t *testing.T, pattern string, run func(t *testing.T, file, name, input string) string) {
	for file, input := range inputs(t, pattern) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			got := input + dashes + run(t, filepath.Base(file), "mcp"+filepath.Ext(strings.TrimSuffix(file, ".txt")), input)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestDocuments loads every document in testdata. The result is the config without defaults,
// or the error.
func TestDocuments(t *testing.T) {
	testFiles(t, "testdata/*.txt", func(t *testing.T, _, name, input string) string { return outcome(t, name, input) })
}

func outcome(t *testing.T, name, input string) string {
	t.Helper()
	cfg, err := parse(name, []byte(input), LoadOptions{Dir: t.TempDir(), Environ: environ})
	if err != nil {
		return err.Error() + "\n"
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(dump(cfg)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// dump returns what differs from the config of a bare command.
func dump(cfg *Config) map[string]any {
	defaults := Single("", nil)
	out := differences(reflect.ValueOf(*cfg), reflect.ValueOf(*defaults)).(map[string]any)
	var servers []any
	for _, s := range cfg.Servers {
		base := defaults.Servers[0]
		base.Name, base.Transport = "", ""
		server := differences(reflect.ValueOf(s), reflect.ValueOf(base)).(map[string]any)
		if s.Lazy() {
			server["(lazy)"] = true
		}
		servers = append(servers, server)
	}
	delete(out, "SingleWrap")
	out["Servers"] = servers
	if s := cfg.Secrets(); s != nil {
		out["(secrets)"] = s
	}
	return out
}

// differences returns v for JSON, without the fields of structs that are the same in base.
func differences(v, base reflect.Value) any {
	switch p := v.Interface().(type) {
	case time.Duration:
		return p.String()
	case json.RawMessage:
		return p
	}
	switch v.Kind() {
	case reflect.Pointer:
		return differences(v.Elem(), reflect.Zero(v.Type().Elem()))
	case reflect.Struct:
		out := map[string]any{}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && !reflect.DeepEqual(v.Field(i).Interface(), base.Field(i).Interface()) {
				out[f.Name] = differences(v.Field(i), base.Field(i))
			}
		}
		return out
	case reflect.Slice:
		out := []any{}
		for i := range v.Len() {
			out = append(out, differences(v.Index(i), reflect.Zero(v.Type().Elem())))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for _, key := range v.MapKeys() {
			out[key.String()] = differences(v.MapIndex(key), reflect.Zero(v.Type().Elem()))
		}
		return out
	default:
		return v.Interface()
	}
}

func load(paths []string, opts LoadOptions) (*Config, error) {
	return ReadFiles(context.Background(), paths, opts).Load()
}

// parse loads a config that is not in a file.
func parse(name string, data []byte, opts LoadOptions) (*Config, error) {
	r := &reading{nearest: true, known: allSurfaces, files: ReadFiles(context.Background(), nil, opts)}
	if err := r.read(name, data); err != nil {
		return nil, err
	}
	cfg, err := merge([]*reading{r})
	if err != nil {
		return nil, err
	}
	cfg.Sources, cfg.Origins = nil, nil
	return cfg, nil
}
