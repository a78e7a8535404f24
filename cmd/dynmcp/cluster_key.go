package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/seal"
)

// maxKeys is how many keys a file may hold: the one that seals, and the one before it.
const maxKeys = 2

func clusterKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "Make a key for a cluster",
		Long: `Print a new key, for the file that --cluster-key names, on every replica the same.
Who has it can read what the replicas share and speak as one of them.

The file has a key on each line, two at most, and lines that begin with #. The first
seals, both open: to replace a key add the new one below it on all replicas, then put
it first on all, then remove the old one. Other users of the machine must not be able
to read the file.`,
		Example: `  (umask 077; dynmcp cluster key > cluster.key)
  dynmcp serve --http 127.0.0.1:8080 \
    --cluster nats://127.0.0.1:4222 --cluster-key cluster.key`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key := make([]byte, seal.MinSecret)
			_, _ = rand.Read(key) // never fails
			out := stdout(cmd)
			out.printf("%s\n", base64.StdEncoding.EncodeToString(key))
			return out.err
		},
	}
}

const keyHint = "dynmcp cluster key makes one"

// readKeys reads a cluster's key file.
func readKeys(ctx context.Context, path string) (*seal.Keys, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, hinted(fmt.Errorf("the cluster key %s is not there", path), keyHint)
	case err != nil:
		return nil, fmt.Errorf("read the cluster key: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("the cluster key %s is a directory; name the file in it", path)
	case runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o027 != 0:
		// A group may read it: that is how orchestrators hand secrets to who is not root.
		return nil, hinted(fmt.Errorf("the cluster key %s can be reached by others (mode %04o)", path, info.Mode().Perm()),
			"chmod 600 it, and make another key if it was so for long")
	}
	text, _, err := regular.ReadOrPipe(ctx, path, regular.Small)
	if err != nil {
		return nil, fmt.Errorf("read the cluster key: %w", err)
	}
	return parseKeys(path, text)
}

// parseKeys reads the text of a key file. Its errors quote nothing of it.
func parseKeys(path string, text []byte) (*seal.Keys, error) {
	var keys [][]byte
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := base64.StdEncoding.Strict().DecodeString(line)
		switch {
		case err != nil:
			return nil, hinted(fmt.Errorf("%s:%d: this is no key: it is not base64", path, i+1), keyHint)
		case len(key) < seal.MinSecret:
			return nil, hinted(fmt.Errorf("%s:%d: the key has %d bytes, fewer than %d", path, i+1, len(key), seal.MinSecret), keyHint)
		case len(keys) == maxKeys:
			return nil, hinted(fmt.Errorf("%s:%d: there are more than %d keys", path, i+1, maxKeys), "keep the one that seals and the one before it")
		case len(keys) > 0 && bytes.Equal(keys[0], key):
			return nil, fmt.Errorf("%s:%d: this key is there already", path, i+1)
		}
		secrets.Add(line)
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, hinted(fmt.Errorf("the cluster key %s holds no key", path), keyHint)
	}
	return seal.New(keys...)
}
