package replica

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/seal"
)

// maxKeys limits the keys in a file: the current one, and the previous one during a rotation.
const maxKeys = 2

const keyHint = "dynmcp cluster key makes one"

// readKeys reads a cluster's key file, and adds its keys to secrets.
func readKeys(ctx context.Context, path string, secrets *redact.Redactor) (*seal.Keys, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, hint.With(fmt.Errorf("the cluster key %s is not there", path), keyHint)
	case err != nil:
		return nil, fmt.Errorf("read the cluster key: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("the cluster key %s is a directory; name the file in it", path)
	case runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o027 != 0:
		// The group may read the file: orchestrators pass secrets to users other than root that way.
		return nil, hint.With(fmt.Errorf("the cluster key %s can be reached by others (mode %04o)", path, info.Mode().Perm()),
			"chmod 600 it, and make another key if it was so for long")
	}
	text, _, err := regular.ReadOrPipe(ctx, path, regular.Small)
	if err != nil {
		return nil, fmt.Errorf("read the cluster key: %w", err)
	}
	return parseKeys(path, text, secrets)
}

// parseKeys parses the text of a key file. Its errors do not quote the text.
func parseKeys(path string, text []byte, secrets *redact.Redactor) (*seal.Keys, error) {
	var keys [][]byte
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := base64.StdEncoding.Strict().DecodeString(line)
		switch {
		case err != nil:
			return nil, hint.With(fmt.Errorf("%s:%d: this is no key: it is not base64", path, i+1), keyHint)
		case len(key) < seal.MinSecret:
			return nil, hint.With(fmt.Errorf("%s:%d: the key has %d bytes, fewer than %d", path, i+1, len(key), seal.MinSecret), keyHint)
		case len(keys) == maxKeys:
			return nil, hint.With(fmt.Errorf("%s:%d: there are more than %d keys", path, i+1, maxKeys), "keep the one that seals and the one before it")
		case len(keys) > 0 && bytes.Equal(keys[0], key):
			return nil, fmt.Errorf("%s:%d: this key is there already", path, i+1)
		}
		secrets.Add(line)
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, hint.With(fmt.Errorf("the cluster key %s holds no key", path), keyHint)
	}
	return seal.New(keys...)
}
