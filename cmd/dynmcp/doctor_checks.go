package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"dynmcp/schema"
	"dynmcp/transports/upstream"
)

// checkConfig says what was read. Variables are set: one that is not is an error
// when the config is loaded.
func (d *doctor) checkConfig() {
	lazy, disabled := 0, 0
	for _, s := range d.cfg.Servers {
		switch {
		case s.Disabled:
			disabled++
		case s.Lazy():
			lazy++
		}
	}
	text := count(len(d.cfg.Servers), "server")
	if lazy > 0 {
		text += fmt.Sprintf(", %d lazy", lazy)
	}
	if disabled > 0 {
		text += fmt.Sprintf(", %d disabled", disabled)
	}
	if d.cfg.Path != "" {
		text = d.cfg.Path + ": " + text + "; all variables are set"
	}
	d.found(finding{Check: aboutConfig, Level: fine, Text: text})
	for _, file := range d.cfg.Sources[min(1, len(d.cfg.Sources)):] {
		d.found(finding{Check: aboutConfig, Level: fine, Text: "it lies over " + file})
	}
	for _, w := range d.cfg.Warnings {
		d.found(finding{Check: aboutConfig, Level: warning, Text: w})
	}
}

// desktopPath is the PATH of programs that macOS starts from the Dock or the
// Finder, and about that of a desktop that reads no shell's files.
const desktopPath = "/usr/bin:/bin:/usr/sbin:/sbin"

// command finds a server's program, now and from a desktop.
func (d *doctor) command(s schema.Server) {
	if err := upstream.CheckCommand(s); err != nil {
		d.failed(aboutCommands, s.Name, err)
		return
	}
	d.found(finding{Check: aboutCommands, Level: fine, Server: s.Name, Text: fmt.Sprintf("%q is there", s.Command)})
	if runtime.GOOS == "windows" || s.Env["PATH"] != "" || strings.ContainsRune(s.Command, '/') {
		return
	}
	desktop := s
	desktop.Env = maps.Clone(s.Env)
	if desktop.Env == nil {
		desktop.Env = map[string]string{}
	}
	desktop.Env["PATH"] = desktopPath
	if upstream.CheckCommand(desktop) == nil {
		return
	}
	f := finding{Check: aboutCommands, Level: note, Server: s.Name,
		Text: fmt.Sprintf("a host that is started from the desktop may not find %q: its PATH can be as short as %s", s.Command, desktopPath)}
	if runtime.GOOS == "darwin" {
		f.Level = warning
	}
	if path, err := exec.LookPath(s.Command); err == nil {
		f.Hint = fmt.Sprintf(`for such a host, put "env": {"PATH": "%s:%s"} into the entry`, filepath.Dir(path), desktopPath)
	}
	d.found(f)
}

// leastNode is the oldest Node.js that the MCP SDK runs on.
const leastNode = 18

// node looks at the version of Node.js if a server needs it.
func (d *doctor) node(ctx context.Context) {
	needed := ""
	for _, s := range d.servers() {
		if program := programOf(s); program == "npx" || program == "node" {
			needed = s.Name
			break
		}
	}
	if needed == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	const install = "install Node.js from https://nodejs.org or with your package manager"
	out, err := exec.CommandContext(ctx, "node", "--version").Output()
	text := strings.TrimSpace(string(out))
	major, _, _ := strings.Cut(strings.TrimPrefix(text, "v"), ".")
	switch n, bad := strconv.Atoi(major); {
	case errors.Is(err, exec.ErrNotFound):
		d.found(finding{Check: aboutNode, Level: problem, Text: needed + " needs Node.js, and there is no node on the PATH", Hint: install})
	case err != nil || bad != nil:
		d.found(finding{Check: aboutNode, Level: warning, Text: fmt.Sprintf("node --version says %q (%v)", text, err), Hint: install})
	case n < leastNode:
		d.found(finding{Check: aboutNode, Level: problem, Text: fmt.Sprintf("node is %s; MCP servers want %d or newer", text, leastNode), Hint: install})
	default:
		d.found(finding{Check: aboutNode, Level: fine, Text: "node is " + text})
	}
}

// programOf is the name of a server's program without where it lies.
func programOf(s schema.Server) string {
	if s.Transport != schema.Stdio {
		return ""
	}
	name := filepath.Base(s.Command)
	return strings.TrimSuffix(strings.TrimSuffix(name, ".cmd"), ".exe")
}

var pinnedVersion = regexp.MustCompile(`^v?\d+\.\d+\.\d+`)

// pinned warns of packages that are fetched in whatever version is newest.
func (d *doctor) pinned(s schema.Server) {
	program := programOf(s)
	if program != "npx" && program != "bunx" && program != "pnpx" {
		return
	}
	name := npmPackage(s.Args)
	at := strings.LastIndexByte(name, '@')
	switch {
	case name == "" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/"):
		return
	case at > 0 && pinnedVersion.MatchString(name[at+1:]):
		d.found(finding{Check: aboutPackages, Level: fine, Server: s.Name, Text: name})
		return
	case at > 0:
		name = name[:at]
	}
	d.found(finding{
		Check: aboutPackages, Level: warning, Server: s.Name,
		Text: fmt.Sprintf("%s is not pinned: %s runs whatever was published last", name, program),
		Hint: fmt.Sprintf("write %s@VERSION; npm view %s version prints the newest", name, name),
	})
}

// npmPackage returns the package that the arguments of npx name.
func npmPackage(args []string) string {
	for i, arg := range args {
		value, long := strings.CutPrefix(arg, "--package=")
		switch {
		case long:
			return value
		case (arg == "-p" || arg == "--package") && i+1 < len(args):
			return args[i+1]
		case !strings.HasPrefix(arg, "-"):
			return arg
		}
	}
	return ""
}

// reach sees whether something answers at the addresses. It sends no headers
// of the config's and follows no redirect; any answer will do.
func (d *doctor) reach(ctx context.Context) {
	client := http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if d.timeout > 0 {
		client.Timeout = d.timeout
	}
	for _, s := range d.servers() {
		if s.Transport == schema.Stdio {
			continue
		}
		status, err := probe(ctx, &client, s.URL)
		if err != nil {
			d.found(finding{Check: aboutServers, Level: problem, Server: s.Name, Text: err.Error(),
				Hint: "check its url in the config, the network, and whether the server runs"})
			continue
		}
		d.found(finding{Check: aboutServers, Level: fine, Server: s.Name, Text: "something answers there: HTTP status " + status})
	}
}

func probe(ctx context.Context, client *http.Client, address string) (status string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", errors.New("its url is no address")
	}
	res, err := client.Do(req)
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return "", wrapped.Err // without the address, which may hold a secret
	}
	if err != nil {
		return "", err
	}
	res.Body.Close()
	return res.Status, nil
}
