package importcmd

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/editfile"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hosts"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/secret"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

// A variablesFile is the .env file beside a config, and the secrets that are to go
// there.
type variablesFile struct {
	*hosts.Variables
	file *editfile.File // nil if nothing is to be written to it
	mode string         // the config's env

	keyring bool // the secrets go there
}

// reference is what takes the place of a secret.
func (v *variablesFile) reference(name string) string {
	if v.keyring {
		return "${keyring:" + name + "}"
	}
	return "${" + name + "}"
}

func (v *variablesFile) names() string {
	return strings.Join(slices.Sorted(maps.Keys(v.Values)), ", ")
}

// openVariables reads the .env file beside a config. Without vars nothing will be
// written there, and with keyring all goes to the keyring.
func openVariables(config *editfile.File, servers []hosts.Server, vars, keyring bool) (*variablesFile, error) {
	v := &variablesFile{Variables: hosts.NewVariables(nil, nil), keyring: keyring}
	if !vars {
		return v, nil
	}
	if config.Exists() {
		mode, err := schema.EnvMode(config.Path, config.Old)
		if err != nil {
			return nil, err
		}
		v.mode = mode
	}
	texts := []string{string(config.Old)}
	for _, s := range servers {
		text, err := schema.SetServer("x.json", []byte("{}"), s.Server)
		if err != nil {
			continue // the reason is told when it is added
		}
		texts = append(texts, string(text))
	}
	switch {
	case v.mode == "disable":
		return nil, hint.With(fmt.Errorf(`%s has "env": "disable", which leaves ${NAME} as it is`, config.Name()), "change that key, or leave out --vars")
	case keyring:
		kept, err := secret.Kept()
		v.Variables = hosts.NewVariables(kept, nil, texts...)
		return v, err
	case v.mode == "process":
		v.Variables = hosts.NewVariables(nil, os.Environ(), texts...)
		return v, nil
	}
	file, set, err := secret.Beside(config)
	if err != nil {
		return nil, err
	}
	v.file, v.Variables = file, hosts.NewVariables(set, os.Environ(), texts...)
	return v, nil
}

func (v *variablesFile) writes() bool { return v.file != nil && len(v.Values) > 0 }

// write puts the secrets where they go.
func (v *variablesFile) write() error {
	if !v.keyring && !v.writes() {
		return nil
	}
	return secret.Keep(v.file, v.Values)
}

// report says where the variables are, or what is left to do about them.
func (v *variablesFile) report(errOut *terminal.Writer) {
	switch {
	case v.keyring && len(v.Values) > 0:
		errOut.Printf("Put %s into the keyring: %s\n", cli.Count(len(v.Values), "secret"), v.names())
	case v.writes():
		errOut.Printf("Wrote %s to %s, which only you can read; keep it out of version control\n", cli.Count(len(v.Values), "variable"), v.file.Name())
	case len(v.Values) > 0:
		errOut.Printf("The config takes variables from the environment alone (\"env\": %q): set %s there\n", v.mode, v.names())
	}
}
