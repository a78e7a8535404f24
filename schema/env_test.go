package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// who loads a config with the env mode and returns the value of ${WHO} in it.
func who(t *testing.T, mode string, opts LoadOptions) (string, error) {
	t.Helper()
	doc := `{"env": "` + mode + `", "mcp": {"files": {"command": "x", "args": ["${WHO:-nobody}"]}}}`
	if mode == "" {
		doc = strings.Replace(doc, `"env": "", `, "", 1)
	}
	cfg, err := parse("mcp.json", []byte(doc), opts)
	if err != nil {
		return "", err
	}
	return cfg.Servers[0].Args[0], nil
}

// A document that is not in a file uses the .env beside the place where it would be, unless
// EnvFile names another.
func TestSourcesOfADocument(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "file.env")
	for path, content := range map[string]string{filepath.Join(dir, ".env"): "WHO=beside\n", file: "WHO=file\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for asked, want := range map[string]string{"": "beside", file: "file"} {
		opts := LoadOptions{Dir: t.TempDir(), Environ: []string{}, EnvFile: asked}
		cfg, err := TextFiles(t.Context(), filepath.Join(dir, "mcp.json"), []byte(`{"mcp": {"a": {"command": "${WHO:-nobody}"}}}`), opts).Load()
		if err != nil || cfg.Servers[0].Command != want {
			t.Errorf("with %q: got %+v, %v, want %s", asked, cfg, err, want)
		}
	}
}

// TestSources checks, for every mode, from where a variable comes: the process, the .env in
// the working directory, or EnvFile, which replaces the .env.
func TestSources(t *testing.T) {
	process := []string{"WHO=process"}
	for _, test := range []struct {
		name, mode string
		dotenv     bool // there is a .env in the working directory
		file       bool // EnvFile names a file
		process    []string
		want       string
	}{
		{"the default is enable", "", true, false, process, "dotenv"},
		{"enable: .env wins over the process", "enable", true, false, process, "dotenv"},
		{"enable: without .env, the process", "enable", false, false, process, "process"},
		{"enable: the file replaces .env", "enable", true, true, process, "file"},
		{"enable: union, .env only", "enable", true, false, nil, "dotenv"},
		{"process: .env is ignored", "process", true, false, process, "process"},
		{"process: entries without value are dropped", "process", false, false, []string{"WHO", "=C:=C:\\"}, "nobody"},
		{"dotenv: the process is ignored", "dotenv", true, false, process, "dotenv"},
		{"dotenv: no .env, nothing is set", "dotenv", false, false, process, "nobody"},
		{"dotenv: the file", "dotenv", true, true, process, "file"},
		{"disable: nothing is replaced", "disable", true, false, process, "${WHO:-nobody}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			opts := LoadOptions{Dir: t.TempDir(), Environ: append([]string{}, test.process...)}
			put := func(name, content string) string {
				path := filepath.Join(opts.Dir, name)
				if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
					t.Fatal(err)
				}
				return path
			}
			if test.dotenv {
				put(".env", "WHO=dotenv\n")
			}
			if test.file {
				opts.EnvFile = put("custom.env", "WHO=file\n")
			}
			if got, err := who(t, test.mode, opts); err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// Nil stands for the real environment, and an empty Dir for the working
// directory.
func TestSourcesOfTheProcess(t *testing.T) {
	write(t, nil)
	t.Setenv("WHO", "process")
	if got, err := who(t, "enable", LoadOptions{}); err != nil || got != "process" {
		t.Errorf("got %q, %v, want process", got, err)
	}
	write(t, map[string]string{".env": "WHO=dotenv"})
	if got, err := who(t, "enable", LoadOptions{}); err != nil || got != "dotenv" {
		t.Errorf("got %q, %v, want dotenv", got, err)
	}
}

// EnvFile is an error in modes that read no file.
func TestIncompatibleEnvFile(t *testing.T) {
	dir := write(t, map[string]string{"custom.env": "WHO=file"})
	for _, mode := range []string{"disable", "process"} {
		_, err := who(t, mode, LoadOptions{EnvFile: filepath.Join(dir, "custom.env"), Environ: []string{}})
		wantError(t, err, "mcp.json:1:9: env:", `"`+mode+`" is incompatible with an env file`)
	}
}

// EnvFile must exist. A directory called .env is ignored.
func TestMissingEnvFile(t *testing.T) {
	dir := write(t, nil)
	for _, mode := range []string{"dotenv", "enable"} {
		_, err := who(t, mode, LoadOptions{EnvFile: "custom.env"})
		wantError(t, err, ".env file not found", "custom.env")
	}
	if err := os.Mkdir(filepath.Join(dir, ".env"), 0o777); err != nil {
		t.Fatal(err)
	}
	if got, err := who(t, "dotenv", LoadOptions{}); err != nil || got != "nobody" {
		t.Errorf("got %q, %v, want the directory to be ignored", got, err)
	}
}

// The error of a broken .env names its line and shows nothing of its content.
func TestDotenvErrors(t *testing.T) {
	for content, place := range map[string]string{
		"A=1\nB=2\n-----BEGIN KEY-----\nC=3\n":       ":3: ",
		"A=1\nB=\"sk_live_123\nC=3\n":                ":2: ",
		"A=\"one\ntwo\"\nsk_live_123 @ x\nD=\"x\"\n": ":3: ",
	} {
		dir := write(t, map[string]string{".env": content})
		_, err := who(t, "enable", LoadOptions{Dir: dir})
		wantError(t, err, ".env"+place, "want NAME=value")
		if err != nil && (strings.Contains(err.Error(), "sk_live") || strings.Contains(err.Error(), "KEY")) {
			t.Errorf("the error shows the file: %v", err)
		}
	}
}

// The hint for a missing variable names the places that were searched.
func TestMissingVariableOrigin(t *testing.T) {
	dir := write(t, map[string]string{"custom.env": ""})
	for _, test := range []struct{ mode, file, want string }{
		{"enable", "", "set it in the environment or in .env, or"},
		{"process", "", "set it in the environment, or"},
		{"dotenv", "", "set it in .env, or"},
		{"dotenv", "custom.env", "set it in custom.env, or"},
	} {
		doc := `{"env": "` + test.mode + `", "mcp": {"files": {"command": "${WHO}"}}}`
		_, err := parse("mcp.json", []byte(doc), LoadOptions{EnvFile: test.file, Dir: dir, Environ: []string{}, Strict: true})
		wantError(t, err, "missing environment variable: WHO\n", test.want)
	}
}

// The .env beside the config is read wherever dynmcp is started, and overrides that of the
// working directory. EnvFile replaces both.
func TestEnvBesideTheConfig(t *testing.T) {
	const doc = `{"mcp": {"a": {"command": "x", "args": ["${BOTH:-none}", "${HERE:-none}", "${THERE:-none}"]}}}`
	there := write(t, map[string]string{"mcp.json": doc, ".env": "BOTH=there\nTHERE=there\n", "bare.json": strings.Replace(doc, "{", `{"env": "process", `, 1)})
	here := write(t, map[string]string{".env": "BOTH=here\nHERE=here\n", "asked": "BOTH=asked\n"})
	for _, c := range []struct{ config, dir, envFile, want string }{
		{"mcp.json", here, "", "there here there"},
		{"mcp.json", t.TempDir(), "", "there none there"},
		{"mcp.json", there, "", "there none there"},
		{"mcp.json", here, filepath.Join(here, "asked"), "asked none none"},
		{"bare.json", here, "", "none none none"},
	} {
		cfg, err := load([]string{filepath.Join(there, c.config)}, LoadOptions{Dir: c.dir, EnvFile: c.envFile, Environ: []string{}})
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		} else if got := strings.Join(cfg.Servers[0].Args, " "); got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}

// A missing variable switches off only the servers that refer to it, unless the load is
// strict.
func TestMissingVariableSwitchesOffItsServer(t *testing.T) {
	dir := write(t, map[string]string{
		"mcp.yaml": "mcp:\n  a: {command: x}\n  b: {command: x, args: ['${GONE}', '${LOST} ${GONE}']}\n  c: {url: '${GONE}'}\n  d: {command: '${GONE}', disabled: true}\n  e: {command: '${GONE:-y}', timeout: 1s}\n",
	})
	cfg, err := load([]string{filepath.Join(dir, "mcp.yaml")}, LoadOptions{Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range cfg.Servers {
		why := fmt.Sprint(s.Disabled)
		if s.Off != nil {
			why += " " + s.Off.Why()
		}
		got = append(got, s.Name+" "+why)
	}
	want := "a false, b true GONE and LOST are not set, c true GONE is not set, d true, e false"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	if s := cfg.Servers[1]; s.Off.Hint != "set them in the environment or in .env, or write ${GONE:-default}" || s.Args[0] != "${GONE}" {
		t.Errorf("got %+v, %q", s.Off, s.Args)
	}
	_, err = load([]string{filepath.Join(dir, "mcp.yaml")}, LoadOptions{Environ: []string{}, Strict: true})
	wantError(t, err, "missing environment variables: GONE, LOST", "mcp.c.url: GONE is not set")
}
