package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joho/godotenv"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Values of the document's env key.
const (
	envEnable  = "enable"
	envDotenv  = "dotenv"
	envProcess = "process"
	envDisable = "disable"
)

// envMode is the value of the document's env key. An invalid one is reported when
// the key is decoded.
func envMode(root *syntax.Node) string {
	if n := root.Get("env"); n != nil && n.Kind == syntax.Text {
		return n.Scalar
	}
	return envEnable
}

// variables returns the variables that the document may refer to: the .env beside it
// wins over that of the working directory, so that a config means the same wherever
// a host starts dynmcp, and both win over the environment.
func (r *reading) variables(mode string) (map[string]string, error) {
	vars := map[string]string{}
	if mode != envDotenv {
		maps.Copy(vars, processVariables(r.files.opts.Environ))
	}
	if mode == envProcess {
		return vars, nil
	}
	named := r.files.opts.EnvFile != ""
	for _, c := range []content{r.files.env, r.beside} {
		switch err := c.err; {
		case err == nil:
			file, err := Variables(c.name, c.data)
			if err != nil {
				return nil, err
			}
			maps.Copy(vars, file)
		case !named && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, regular.ErrDirectory)):
			// a directory of that name may be a Python environment
		case errors.Is(err, fs.ErrNotExist):
			return nil, &fileError{fmt.Sprintf(".env file not found: %s; check the path, or leave it out to use .env beside the config and in the working directory", c.name), err}
		default:
			return nil, fmt.Errorf("read the .env file: %w", err)
		}
		if named {
			break
		}
	}
	return vars, nil
}

// sourceOfVariables says where variables are looked up, for error messages.
func (r *reading) sourceOfVariables(mode string) string {
	file := ".env"
	switch {
	case r.files.opts.EnvFile != "":
		file = r.files.opts.EnvFile
	case r.beside.name != "" && filepath.Dir(r.beside.path) != filepath.Dir(r.files.env.path):
		file = r.beside.name
	}
	switch mode {
	case envProcess:
		return "the environment"
	case envDotenv:
		return file
	default:
		return "the environment or in " + file
	}
}

func processVariables(environ []string) map[string]string {
	if environ == nil {
		environ = os.Environ()
	}
	vars := map[string]string{}
	for _, entry := range environ {
		// Windows keeps the current directories of its drives in variables
		// whose names begin with =.
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			vars[name] = value
		}
	}
	return vars
}

// Variables returns what a .env file sets. The name is for errors, which do not pass on
// the parser's message: it quotes the text it failed at, which in such a file is
// probably a secret.
func Variables(name string, data []byte) (map[string]string, error) {
	if len(data) > syntax.MaxSize {
		return nil, fmt.Errorf("%s: larger than 1 MiB; is this the .env file?", name)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	vars, err := godotenv.UnmarshalBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: not a line of a .env file; want NAME=value, with every quote closed", name, dotenvLine(data))
	}
	return vars, nil
}

// SetVariables returns data, a .env file, with variables added at its end, in the
// order of their names. Those that it sets otherwise are an error, and so is a value
// that such a file cannot hold. The name is for errors.
func SetVariables(name string, data []byte, add map[string]string) ([]byte, error) {
	have, err := Variables(name, data)
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(data)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	for _, key := range slices.Sorted(maps.Keys(add)) {
		if old, set := have[key]; set && old != add[key] {
			return nil, fmt.Errorf("%s sets %s already", name, key)
		} else if set {
			continue
		}
		line, ok := dotenvAssignment(key, add[key])
		if !ok {
			return nil, fmt.Errorf("the value of %s cannot be written to a .env file", key)
		}
		out = append(out, line...)
	}
	return out, nil
}

// dotenvAssignment returns a line that sets a variable, in the first form that is
// read back as the value.
func dotenvAssignment(key, value string) (line string, ok bool) {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "\n", `\n`).Replace(value)
	for _, form := range []string{value, "'" + value + "'", `"` + escaped + `"`} {
		line := key + "=" + form + "\n"
		if vars, err := godotenv.Unmarshal(line + "LAST=1\n"); err == nil && len(vars) == 2 && vars[key] == value {
			return line, true
		}
	}
	return "", false
}

// EnvMode returns where a config takes its variables from, the value of its env key.
func EnvMode(name string, data []byte) (string, error) {
	root, err := parseEdited(name, data)
	if err != nil {
		return "", err
	}
	return envMode(root), nil
}

// dotenvLine finds the line that the parser rejects: the one after the longest
// prefix that it accepts. Only the first 1000 lines are tried, since each try
// parses all lines before.
func dotenvLine(data []byte) int {
	good := 0
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i := range lines[:min(len(lines), 1000)] {
		if _, err := godotenv.UnmarshalBytes(bytes.Join(lines[:i], nil)); err == nil {
			good = i
		}
	}
	return good + 1
}
