package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
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

// envMode is where the document wants its variables from. What is not one of
// the modes is reported when the key is decoded.
func envMode(root *node) string {
	if n := root.get("env"); n != nil && n.kind == text {
		return n.scalar
	}
	return envEnable
}

// variables collects what the document may refer to. A .env file that was
// asked for by name must exist; the one in the working directory need not.
func variables(mode string, opts LoadOptions) (map[string]string, error) {
	vars := map[string]string{}
	if mode != envDotenv {
		maps.Copy(vars, processVariables(opts.Environ))
	}
	if mode == envProcess {
		return vars, nil
	}
	file, err := dotenvVariables(opts)
	if err != nil {
		return nil, err
	}
	maps.Copy(vars, file)
	return vars, nil
}

// origin names the places that variables look into.
func origin(mode string, opts LoadOptions) string {
	file := ".env"
	if opts.EnvFile != "" {
		file = opts.EnvFile
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

func dotenvVariables(opts LoadOptions) (map[string]string, error) {
	path, asked := opts.EnvFile, opts.EnvFile != ""
	if !asked {
		path = filepath.Join(opts.Dir, ".env")
		// Some people keep a Python environment in a directory of that name.
		if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
			return nil, nil
		}
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &fileError{fmt.Sprintf(".env file not found: %s; check the path, or leave it out to use .env in the working directory", path), err}
	}
	if err != nil {
		return nil, fmt.Errorf("read the .env file: %w", err)
	}
	defer file.Close()
	data, err := readBounded(file)
	if err != nil {
		return nil, fmt.Errorf("read the .env file: %w", err)
	}
	return parseDotenv(path, data)
}

// parseDotenv withholds the parser's own message: it shows the text it
// stumbled over, which in such a file is as good as always a secret.
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

// dotenvLine finds the line that the parser refuses: the one after the
// longest run of lines that it takes. Of a file with very many lines only the
// first are tried, for each try reads them all.
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
