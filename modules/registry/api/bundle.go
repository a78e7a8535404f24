package api

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
)

// Limits of a bundle.
const (
	maxBundle      = 256 << 20 // bytes, packed
	maxUnpacked    = 1 << 30
	maxBundleFiles = 50_000
	bundleTime     = 5 * time.Minute
)

// A bundle is an unpacked MCPB file.
type bundle struct {
	dir      string
	manifest manifest
}

// A manifest describes how a bundle is run.
type manifest struct {
	Server struct {
		Type       string
		EntryPoint string  `json:"entry_point"`
		Config     started `json:"mcp_config"`
	}
	UserConfig    map[string]setting `json:"user_config"`
	Compatibility struct{ Platforms []string }
}

// started is a command with its arguments and variables.
type started struct {
	Command   string
	Args      []string
	Env       map[string]string
	Platforms map[string]started `json:"platform_overrides"`
}

// A setting is what a bundle asks its user for.
type setting struct {
	Type, Title, Description string
	Required, Sensitive      bool
	Multiple                 bool
	Default                  json.RawMessage
}

func isSHA256(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}

// Unpack fetches the bundle of an option and unpacks it into a directory below dir, which is
// named by its checksum. It runs nothing. For other options it does nothing.
func (o *Option) Unpack(ctx context.Context, dir string, installed func(program string) bool) error {
	if o.Via != MCPB || o.bundle != nil {
		return nil
	}
	b := &bundle{dir: filepath.Join(dir, strings.ToLower(o.pkg.FileSHA256))}
	if _, err := os.Stat(filepath.Join(b.dir, "manifest.json")); err != nil {
		packed, err := o.download(ctx)
		if err != nil {
			return err
		}
		if err := unpack(packed, b.dir); err != nil {
			return fmt.Errorf("unpack %s: %w", o.What, err)
		}
	}
	text, err := regular.Read(ctx, filepath.Join(b.dir, "manifest.json"), regular.Small)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &b.manifest); err != nil {
		return fmt.Errorf("the manifest of %s: %w", o.What, err)
	}
	if err := b.check(installed); err != nil {
		return fmt.Errorf("the manifest of %s: %w", o.What, err)
	}
	o.bundle = b
	return nil
}

// download fetches a bundle and compares its checksum.
func (o *Option) download(ctx context.Context) ([]byte, error) {
	registry, err := url.Parse(o.server.From)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(o.pkg.Identifier)
	if err == nil {
		err = allowed(address, isPrivate(registry.Hostname()))
	}
	if err != nil {
		return nil, fmt.Errorf("the bundle: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, bundleTime)
	defer cancel()
	resp, packed, err := get(ctx, web(registry), address.String(), maxBundle, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch the bundle: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch the bundle: %s answers %d", address.Host, resp.StatusCode)
	}
	if sum := sha256.Sum256(packed); !strings.EqualFold(hex.EncodeToString(sum[:]), o.pkg.FileSHA256) {
		return nil, fmt.Errorf("the bundle of %s has the SHA-256 %x, the registry says %s", address.Host, sum, o.pkg.FileSHA256)
	}
	return packed, nil
}

// unpack unpacks an archive into a new directory, which appears only when it is complete.
func unpack(packed []byte, dir string) error {
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return err
	}
	if len(archive.File) > maxBundleFiles {
		return fmt.Errorf("it has %d files, more than %d", len(archive.File), maxBundleFiles)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), ".unpacking-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	if err := unpackInto(partial, archive); err != nil {
		return err
	}
	return atomicfile.Rename(partial, dir)
}

// unpackInto unpacks an archive into a directory and closes it: Windows renames only closed
// directories.
func unpackInto(dir string, archive *zip.Reader) error {
	root, err := os.OpenRoot(dir) // no path leaves it
	if err != nil {
		return err
	}
	defer root.Close()
	left := int64(maxUnpacked)
	for _, f := range archive.File {
		if err := unpackFile(root, f, &left); err != nil {
			return err
		}
	}
	return nil
}

func unpackFile(root *os.Root, f *zip.File, left *int64) error {
	name := filepath.FromSlash(strings.TrimSuffix(f.Name, "/"))
	mode := f.Mode()
	switch {
	case !filepath.IsLocal(name) || strings.ContainsAny(f.Name, "\\\x00"):
		return fmt.Errorf("%q is not a path inside it", f.Name)
	case mode.IsDir() || strings.HasSuffix(f.Name, "/"):
		return root.MkdirAll(name, 0o755)
	case mode&fs.ModeType != 0:
		return fmt.Errorf("%q is not a regular file", f.Name)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644|mode&0o111)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(from, *left+1))
	if *left -= n; *left < 0 {
		err = fmt.Errorf("it unpacks to more than %d bytes", int64(maxUnpacked))
	}
	return errors.Join(err, to.Close())
}

// platforms are the names of systems in manifests, by GOOS.
var platforms = map[string]string{"windows": "win32", "darwin": "darwin", "linux": "linux"}

// start returns how the bundle is started on this system.
func (b *bundle) start() started {
	all := b.manifest.Server.Config
	override := all.Platforms[platforms[runtime.GOOS]]
	all.Command = cmp.Or(override.Command, all.Command)
	if override.Args != nil {
		all.Args = override.Args
	}
	env := maps.Clone(all.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, override.Env)
	all.Env = env
	return all
}

// check returns why a bundle cannot run here. It does not judge the command: a file of the bundle may
// do all that another command may. What limits a bundle is that a person sees its command before it
// is added, and its sandbox.
func (b *bundle) check(installed func(program string) bool) error {
	if all := b.manifest.Compatibility.Platforms; len(all) > 0 && !slices.Contains(all, platforms[runtime.GOOS]) {
		return fmt.Errorf("it is for %s", line(strings.Join(all, ", "), 100))
	}
	command := b.start().Command
	if _, ok := b.fileOf(command); !ok && !installed(command) {
		return fmt.Errorf("%s is not installed", line(command, 60))
	}
	return nil
}

// dirname is the variable of manifests for the directory of the bundle.
const dirname = "${__dirname}"

// fileOf returns the path of a file of the bundle.
func (b *bundle) fileOf(name string) (string, bool) {
	rest, inside := strings.CutPrefix(name, dirname)
	rest = path.Clean(strings.TrimLeft(filepath.ToSlash(rest), "/"))
	if (!inside && rest != path.Clean(b.manifest.Server.EntryPoint)) || !filepath.IsLocal(filepath.FromSlash(rest)) {
		return "", false
	}
	full := filepath.Join(b.dir, filepath.FromSlash(rest))
	info, err := os.Stat(full)
	return full, err == nil && (info.Mode().IsRegular() || info.IsDir())
}

// resolve sets how the bundle is run. A bundle that is not unpacked has no questions.
func (b *bundle) resolve(r *resolver, s *schema.Server) {
	if b == nil {
		if r.answers != nil {
			r.fail(errors.New("the bundle is not unpacked"))
		}
		return
	}
	start := b.start()
	s.Cwd = Literal(b.dir)
	s.Command = Literal(start.Command)
	if full, ok := b.fileOf(start.Command); ok {
		s.Command = Literal(full)
	}
	for _, arg := range start.Args {
		if full, ok := b.fileOf(arg); ok {
			s.Args = append(s.Args, Literal(full))
			continue
		}
		s.Args = append(s.Args, b.text(r, arg)...)
	}
	for _, name := range sorted(start.Env) {
		if !variableName().MatchString(name) || steering().MatchString(name) && !strings.Contains(start.Env[name], dirname) {
			r.fail(fmt.Errorf("its manifest sets %s", line(name, 60)))
		}
		for _, value := range b.text(r, start.Env[name]) {
			s.Env[name] = value
		}
	}
}

// fixed returns the predefined variables of manifests.
func (b *bundle) fixed() map[string]string {
	home, _ := os.UserHomeDir() // "" if absent
	return map[string]string{
		"__dirname": b.dir, "HOME": home, "DESKTOP": filepath.Join(home, "Desktop"), "DOCUMENTS": filepath.Join(home, "Documents"),
		"DOWNLOADS": filepath.Join(home, "Downloads"), "/": string(filepath.Separator), "pathSeparator": string(filepath.Separator),
	}
}

// text returns a text of the manifest with its variables replaced, none if one of them has no
// value.
func (b *bundle) text(r *resolver, text string) []string {
	fixed := b.fixed()
	t := Template{Variables: map[string]Input{}}
	repeated := false
	parts := strings.Split(text, "${")
	t.Value = parts[0]
	for _, part := range parts[1:] {
		key, rest, closed := strings.Cut(part, "}")
		name, asked := strings.CutPrefix(key, "user_config.")
		value, known := fixed[key]
		switch set, ok := b.manifest.UserConfig[name]; {
		case !closed:
			t.Value += "${" + part
			continue
		case asked && ok:
			t.Variables[name] = set.input(fixed)
			repeated = repeated || set.Multiple
			t.Value += "{" + name + "}" + rest
			continue
		case known:
			t.Variables[key] = Input{Value: value}
			t.Value += "{" + key + "}" + rest
			continue
		}
		t.Value += "${" + key + "}" + rest
	}
	return r.values(t, "setting", "the bundle", repeated)
}

// input returns the input for a setting. fixed are the variables that its defaults may name.
func (s setting) input(fixed map[string]string) Input {
	in := Input{Description: cmp.Or(s.Description, s.Title), IsRequired: s.Required, IsSecret: s.Sensitive, Format: s.Type}
	if s.Type == "file" || s.Type == "directory" {
		in.Format = "filepath"
	}
	var defaults []json.RawMessage
	if json.Unmarshal(s.Default, &defaults) != nil && len(s.Default) > 0 {
		defaults = []json.RawMessage{s.Default}
	}
	for _, raw := range defaults {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		for name, value := range fixed {
			text = strings.ReplaceAll(text, "${"+name+"}", value)
		}
		in.defaults = append(in.defaults, text)
	}
	if !s.Multiple && len(in.defaults) > 1 {
		in.defaults = in.defaults[:1]
	}
	in.Default = strings.Join(in.defaults, ", ")
	return in
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
