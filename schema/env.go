package schema

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema/dotenv"
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

// variables returns the variables that the document may refer to. The .env beside it overrides
// that of the working directory, so that a config means the same wherever a host starts
// dynmcp, and both override the environment.
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
			file, err := dotenv.Parse(c.name, c.data)
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

// sourceOfVariables describes where variables are looked up, for error messages.
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

// EnvMode returns the source of a config's variables, the value of its env key.
func EnvMode(name string, data []byte) (string, error) {
	root, err := parseEdited(name, data)
	if err != nil {
		return "", err
	}
	return envMode(root), nil
}
