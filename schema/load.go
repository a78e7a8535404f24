package schema

import "errors"

// LoadOptions say where variables come from. The zero value is what a user
// gets who gives no flags.
type LoadOptions struct {
	// EnvFile is a file to read instead of .env; it must exist.
	EnvFile string
	// Dir is where .env is looked for; empty is the working directory.
	Dir string
	// Environ is the process environment as NAME=value; nil is os.Environ().
	Environ []string
}

var errStub = errors.New("reading a config is not there yet")

// Load reads the config file at path.
func Load(path string, opts LoadOptions) (*Config, error) { return nil, errStub }

// Parse reads a config from data as if it had been in a file called name.
func Parse(name string, data []byte, opts LoadOptions) (*Config, error) { return nil, errStub }

// Find looks for a config file in dir.
func Find(dir string) (string, error) { return "", errStub }

// JSONSchema returns the JSON Schema of the config document.
func JSONSchema() []byte { return nil }

// Single is the config of a run without a file.
func Single(command string, args []string) *Config {
	return &Config{SingleWrap: true, Expose: []string{ExposeDiscover},
		Servers: []Server{{Name: "server", Transport: Stdio, Command: command, Args: args}}}
}
