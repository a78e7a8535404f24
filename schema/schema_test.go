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

// TestDocuments reads every document in testdata. Above the dashes is the file; below is the
// result: the config without defaults, or the error. The name before .txt is that of the
// file.
func TestDocuments(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { testDocument(t, file) })
	}
}

func testDocument(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const dashes = "\n----------\n"
	input, want, found := strings.Cut(string(data), dashes)
	if !found && !*update {
		t.Fatalf("%s has no line of dashes", file)
	}
	name := "mcp" + filepath.Ext(strings.TrimSuffix(file, ".txt"))
	got := outcome(t, name, input)
	if *update {
		if err := os.WriteFile(file, []byte(input+dashes+got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
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
	r := &reading{nearest: true, files: ReadFiles(context.Background(), nil, opts)}
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
