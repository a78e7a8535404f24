package packages

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// exactVersion is a version that is one release, not a range or a tag.
var exactVersion = lazyregexp.New(`^v?\d+(\.\d+)*([-+.]?[0-9A-Za-z]+)*$`)

// Running returns the package of a command line, as KIND:NAME@VERSION, "" if there is none. The version
// is that of the command line, or else of the copy of npx, uvx or the container engine; without a
// copy it is left out.
func Running(ctx context.Context, command string, args []string, env map[string]string) string {
	p := Of(command, args)
	name, version := p.Cut()
	switch {
	case p.Kind == "":
		return ""
	case p.Kind == OCI && !strings.Contains(p.Spec, "@sha256:"):
		version = p.digest(ctx, env)
	case p.Kind == NPM && !exactVersion().MatchString(version):
		file := filepath.Join(npxDir(env), npxFolder(p.Spec), "node_modules", filepath.FromSlash(name), "package.json")
		version = cmp.Or(manifest(newest(ctx, name, file)).Version, version)
	case p.Kind == PyPI && version == "":
		version = metadata(newestWheel(ctx, name, env), "Version")
	}
	if version != "" {
		version = "@" + version
	}
	return p.Kind + ":" + name + version
}

// Cut returns the name of a package, and the version in its command line.
func (p Package) Cut() (name, version string) {
	if before, after, ok := strings.Cut(p.Spec, "=="); ok && p.Kind == PyPI {
		return before, after
	}
	if at := strings.LastIndexByte(p.Spec, '@'); at > 0 {
		return p.Spec[:at], p.Spec[at+1:]
	}
	return p.Spec, ""
}

// digest returns the digest of a container engine's image of a name, "" if there is none or the
// engine does not answer soon.
func (p Package) digest(ctx context.Context, env map[string]string) string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.program, "image", "inspect", "--format", `{{range .RepoDigests}}{{println .}}{{end}}{{.Id}}`, "--", p.Spec)
	cmd.WaitDelay, cmd.Env = time.Second, os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	_, digest, found := strings.Cut(first, "@")
	if !found {
		return first // of a locally built image
	}
	return digest
}
