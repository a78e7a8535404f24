package openapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/regular"
)

// A stored document is in a file of the state directory: a line of JSON, then its text.
type stored struct {
	Server       string `json:"server"` // for people who look into the directory
	Digest       string `json:"digest"` // of the text, SHA-256
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`

	text []byte
}

func sum(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}

// file returns the file of the document of an entry, "" without a state directory. Its name says
// nothing of the address, which may contain a key.
func file(server, address string) string {
	dir, err := conf.StateDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "openapi", sum([]byte(server + "\x00" + address))[:32])
}

// read returns what is stored in a file, nil if nothing is or if it is damaged.
func read(ctx context.Context, path string) *stored {
	if path == "" {
		return nil
	}
	all, err := regular.ReadNoFollow(ctx, path, maxDocument+64<<10, nil)
	if err != nil {
		return nil
	}
	head, text, _ := bytes.Cut(all, []byte("\n"))
	s := &stored{text: text}
	if json.Unmarshal(head, s) != nil || s.Digest != sum(text) {
		return nil
	}
	return s
}

// write stores a document for its user alone.
func (s *stored) write(path string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	head, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, append(append(head, '\n'), s.text...), 0o600)
}
