package secret

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/editfile"
	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/schema/dotenv"
)

// Places of --secrets.
const (
	InKeyring = "keyring"
	InEnv     = "env"
)

// beside opens the .env beside a config, and returns its variables.
func beside(config *editfile.File) (*editfile.File, map[string]string, error) {
	path := config.Path
	if config.Link != "" {
		path = config.Link // that is where it is looked for
	}
	file, err := editfile.Open(filepath.Join(filepath.Dir(path), ".env"))
	if err != nil {
		return nil, nil, err
	}
	set, err := dotenv.Parse(file.Path, file.Old)
	return file, set, err
}

// keep adds secrets to a .env, which then only its owner can read, or to the keyring where env
// is nil. There is no backup: nothing is changed but the end, and a copy might not be ignored
// by git.
func keep(env *editfile.File, values map[string]string) error {
	if env == nil {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if err := Set(name, values[name]); err != nil {
				return err
			}
		}
		return nil
	}
	unlock, err := env.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	text, err := dotenv.Add(env.Path, env.Old, values)
	if err != nil {
		return err
	}
	return atomicfile.Replace(env.Path, text, 0o600)
}
