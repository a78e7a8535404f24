package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"

	"github.com/joho/godotenv"
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
func envMode(root *node) string {
	if n := root.get("env"); n != nil && n.kind == text {
		return n.scalar
	}
	return envEnable
}

// variables returns the variables that the document may refer to.
func (f *Files) variables(mode string) (map[string]string, error) {
	vars := map[string]string{}
	if mode != envDotenv {
		maps.Copy(vars, processVariables(f.opts.Environ))
	}
	if mode == envProcess {
		return vars, nil
	}
	named := f.opts.EnvFile != ""
	switch err := f.env.err; {
	case err == nil:
		file, err := parseDotenv(f.env.name, f.env.data)
		maps.Copy(vars, file)
		return vars, err
	case !named && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDirectory)):
		return vars, nil // a directory of that name may be a Python environment
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fileError{fmt.Sprintf(".env file not found: %s; check the path, or leave it out to use .env in the working directory", f.env.name), err}
	default:
		return nil, fmt.Errorf("read the .env file: %w", err)
	}
}

// variableSource says where variables are looked up, for error messages.
func (f *Files) variableSource(mode string) string {
	file := ".env"
	if f.opts.EnvFile != "" {
		file = f.opts.EnvFile
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

// parseDotenv does not pass on the parser's message: it quotes the text it failed
// at, which in such a file is probably a secret.
func parseDotenv(path string, data []byte) (map[string]string, error) {
	if len(data) > maxSource {
		return nil, fmt.Errorf("%s: larger than 1 MiB; is this the .env file?", path)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	vars, err := godotenv.UnmarshalBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: not a line of a .env file; want NAME=value, with every quote closed", path, dotenvLine(data))
	}
	return vars, nil
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
