// Command mcpb packs a Claude Desktop extension: the manifest for one platform, the licences and one
// binary. The same input gives the same bytes; the packer of the format's authors includes the time.
//
// Usage: mcpb OUT GOOS MANIFEST BINARY FILE…
package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: mcpb OUT GOOS MANIFEST BINARY FILE…")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5:]); err != nil {
		fmt.Fprintln(os.Stderr, "mcpb:", err)
		os.Exit(1)
	}
}

var platforms = regexp.MustCompile(`"platforms": \[[^]]*\]`)

// platform returns the manifest for one of its platforms.
func platform(manifest []byte, goos string) ([]byte, error) {
	name := goos
	if goos == "windows" {
		name = "win32"
	}
	if !bytes.Contains(platforms.Find(manifest), []byte(`"`+name+`"`)) {
		return nil, fmt.Errorf("the manifest is not for %s", name)
	}
	return platforms.ReplaceAll(manifest, []byte(`"platforms": ["`+name+`"]`)), nil
}

func run(out, goos, manifest, binary string, files []string) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer file.Close()
	w := zip.NewWriter(file)
	text, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	if text, err = platform(text, goos); err != nil {
		return err
	}
	if err := addText(w, bytes.NewReader(text), "manifest.json", 0o644); err != nil {
		return err
	}
	if err := add(w, binary, "server/"+filepath.Base(binary), 0o755); err != nil {
		return err
	}
	for _, path := range files {
		if err := add(w, path, filepath.Base(path), 0o644); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return file.Close()
}

func add(w *zip.Writer, path, name string, mode os.FileMode) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	return addText(w, in, name, mode)
}

func addText(w *zip.Writer, in io.Reader, name string, mode os.FileMode) error {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(1985, time.October, 26, 8, 15, 0, 0, time.UTC)} // like npm
	header.SetMode(mode)
	to, err := w.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, in)
	return err
}
