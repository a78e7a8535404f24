package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/certs"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/crash"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/cli/login"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
	"github.com/dynmcp/dynmcp/transports/upstream/farside"
)

// checkConfig reports the files that were read, the servers that are off, and what would be
// different if a host started dynmcp.
func (d *doctor) checkConfig(ctx context.Context) {
	text, off := d.inventory()
	if d.Cfg.Path != "" && off == 0 {
		text += "; all variables are set"
	}
	d.add(finding{Check: aboutConfig, Level: fine, Text: text})
	for _, s := range d.Cfg.Servers {
		if s.Off != nil {
			d.add(finding{Check: aboutConfig, Level: problem, Server: s.Name, Text: "off: " + s.Off.Why(), Hint: s.Off.Hint})
		}
	}
	d.checkHostEnvironment(ctx)
	for _, file := range d.Cfg.Sources[min(1, len(d.Cfg.Sources)):] {
		d.add(finding{Check: aboutConfig, Level: fine, Text: "it overrides " + file})
	}
	d.checkPlainSecrets(ctx)
	for _, w := range d.Cfg.Warnings {
		d.add(finding{Check: aboutConfig, Level: warning, Text: w})
	}
}

// inventory describes the loaded config and its number of servers; off is the number that are off.
func (d *doctor) inventory() (text string, off int) {
	lazy, disabled := 0, 0
	for _, s := range d.Cfg.Servers {
		switch {
		case s.Off != nil:
			off++
		case s.Disabled:
			disabled++
		case s.Lazy():
			lazy++
		}
	}
	text = display.Plural(len(d.Cfg.Servers), "server")
	for i, n := range []int{lazy, disabled, off} {
		if n > 0 {
			text += fmt.Sprintf(", %d %s", n, []string{"lazy", "disabled", "off"}[i])
		}
	}
	if d.Cfg.Path != "" {
		text = d.Cfg.Path + ": " + text
	}
	return text, off
}

// checkPlainSecrets reports possible secrets in the config's files, and how to move them.
func (d *doctor) checkPlainSecrets(ctx context.Context) {
	where := "the keyring"
	if secret.Offered(ctx) != nil {
		where = "the .env beside the config"
	}
	for _, file := range d.Cfg.Sources {
		for _, at := range secret.InCopies(ctx, file) {
			d.add(finding{Check: aboutConfig, Level: note, Text: at + ", a copy of the config, may hold a secret in plain text", Hint: "remove it if it is not needed"})
		}
		servers, err := conf.Written(ctx, file)
		if err != nil {
			continue // the file was loaded, so it has a form of a host that Written does not support
		}
		for _, s := range servers {
			for _, place := range s.SecretPlaces() {
				advice := "put it into the .env beside the config, and ${NAME} in its place"
				if secret.HasModule(ctx) {
					advice = fmt.Sprintf("dynmcp secret move %s -c %s moves it into %s", s.Name, shellescape.Quote(conf.Relative(file)), where)
				}
				d.add(finding{Check: aboutConfig, Level: note, Server: s.Name, Text: place + " may hold a secret in plain text", Hint: advice})
			}
		}
	}
}

// checkLogins reports where logins are stored, if a server may need a login.
func (d *doctor) checkLogins() {
	if !slices.ContainsFunc(conf.Enabled(d.Cfg), oauth.Applies) {
		return
	}
	store, err := login.Store()
	if err != nil {
		d.addError(aboutConfig, "", err)
		return
	}
	d.add(finding{Check: aboutConfig, Level: fine, Text: "logins are kept " + store.Place()})
	for _, s := range conf.Enabled(d.Cfg) {
		if stated := oauth.Stated(s.Auth); stated != "" {
			d.add(finding{Check: aboutConfig, Level: fine, Server: s.Name, Text: "its entry states of its login: " + stated})
		}
	}
}

// checkRecord says that calls are recorded.
func (d *doctor) checkRecord() {
	a := record.Of(d.Cfg)
	if a == nil {
		return
	}
	switch _, err := record.Dir(d.Cfg); {
	case err != nil && a.Asked:
		d.addError(aboutConfig, "", err)
	case err != nil:
		d.add(finding{Check: aboutConfig, Level: note, Text: "calls are not recorded: there is no state directory", Hint: `name one: "activity": {"dir": "…"}`})
	default:
		text := `calls are recorded for dynmcp log, `
		if !a.Arguments && !a.Results && !a.Queries {
			text += "without arguments, results and queries; "
		}
		d.add(finding{Check: aboutConfig, Level: fine, Text: text + `"activity": false records none`})
	}
}

func (d *doctor) checkStore() {
	kept := store.Of(d.Cfg, conf.CatalogDir())
	if kept == nil {
		return
	}
	if err := kept.Check(); err != nil {
		d.add(finding{Check: aboutConfig, Level: warning, Text: "what servers list cannot be kept: " + err.Error(), Hint: store.Remedy(err)})
		return
	}
	for _, s := range conf.Enabled(d.Cfg) {
		if _, err := kept.Load(s); err != nil {
			d.add(finding{Check: aboutConfig, Level: warning, Server: s.Name, Text: "what it listed in an earlier run is not used: " + err.Error(), Hint: store.Remedy(err)})
		}
	}
}

// checkCrashes reports the last runs that ended by a panic or a fatal error.
func (d *doctor) checkCrashes() {
	for _, c := range crash.Sweep(conf.CrashDir()) {
		d.add(finding{Check: aboutRuns, Level: warning, Text: fmt.Sprintf("a run crashed at %s: %s (%s)", c.At.UTC().Format(time.RFC3339), c.Cause, c.About),
			Hint: fmt.Sprintf("report it with the stack in %s, and remove the file", c.Path)})
	}
}

// checkCommand looks up a server's program in the current PATH and in that of a desktop.
func (d *doctor) checkCommand(ctx context.Context, s schema.Server) {
	if err := command.Check(s); err != nil {
		d.addError(aboutCommands, s.Name, err)
		return
	}
	s = command.AtHome(s)
	d.checkHomeArgs(s)
	if script := missingScript(s); script != "" {
		d.add(finding{Check: aboutCommands, Level: problem, Server: s.Name, Text: fmt.Sprintf("found %q, but its script %s is not there", s.Command, script),
			Hint: `give its full path, or "cwd" with the directory that it is in`})
		return
	}
	d.add(finding{Check: aboutCommands, Level: fine, Server: s.Name, Text: fmt.Sprintf("found %q", s.Command)})
	for _, lack := range farside.Lacks(s.Command, s.Args) {
		level := warning
		if lack.Option == "--init" {
			level = note
		}
		d.add(finding{Check: aboutCommands, Level: level, Server: s.Name, Text: "its container has no " + lack.Option + ": " + lack.Why,
			Hint: "add " + lack.Option + " to args, before the image"})
	}
	d.checkFarSide(s)
	if text, starts := conf.Unlimited(ctx, s); text != "" {
		level := problem
		if starts {
			level = warning
		}
		d.add(finding{Check: aboutCommands, Level: level, Server: s.Name, Text: text})
	}
	if runtime.GOOS == "windows" || s.Env["PATH"] != "" || strings.ContainsRune(s.Command, '/') {
		return
	}
	desktop := s
	desktop.Env = map[string]string{}
	maps.Copy(desktop.Env, s.Env)
	desktop.Env["PATH"] = hosts.DesktopPath
	if command.Check(desktop) == nil {
		return
	}
	f := finding{Check: aboutCommands, Level: note, Server: s.Name,
		Text: fmt.Sprintf("a host started from the desktop may not find %q: its PATH can be as short as %s", s.Command, hosts.DesktopPath)}
	if runtime.GOOS == "darwin" {
		f.Level = warning
	}
	if path, err := exec.LookPath(s.Command); err == nil {
		f.Hint = fmt.Sprintf(`for such a host, add "env": {"PATH": "%s:%s"} to the entry`, filepath.Dir(path), hosts.DesktopPath)
	}
	d.add(f)
}

var (
	interpreters = lazyregexp.New(`^(python[0-9.]*|node|bun|ruby|perl|php|bash|sh)$`)
	scriptName   = lazyregexp.New(`\.(py|[cm]?js|[cm]?ts|rb|pl|php|sh)$`)
)

// missingScript returns the script in a server's command if the file does not exist, otherwise "".
func missingScript(s schema.Server) string {
	script := scriptOf(s)
	path := script
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Cwd, path)
	}
	if _, err := os.Stat(path); script != "" && errors.Is(err, fs.ErrNotExist) {
		return script
	}
	return ""
}

// scriptOf returns the script that an interpreter runs for a server, or "" if it cannot be told.
func scriptOf(s schema.Server) string {
	if !interpreters().MatchString(packages.Program(s.Command)) {
		return ""
	}
	for _, arg := range s.Args {
		switch {
		case slices.Contains([]string{"-c", "-m", "-e", "-p", "-"}, arg):
			return ""
		case !strings.HasPrefix(arg, "-") && scriptName().MatchString(arg):
			return arg
		case !strings.HasPrefix(arg, "-"):
			return ""
		}
	}
	return ""
}

// minNode is the oldest major version of Node.js that the MCP SDK supports.
const minNode = 18

// checkNode checks the version of Node.js if a server needs it.
func (d *doctor) checkNode(ctx context.Context) {
	servers := conf.Enabled(d.Cfg)
	i := slices.IndexFunc(servers, func(s schema.Server) bool {
		return slices.Contains([]string{"npx", "node"}, packages.Program(s.Command))
	})
	if i < 0 {
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
		d.add(finding{Check: aboutNode, Level: problem, Text: servers[i].Name + " needs Node.js, but there is no node on the PATH", Hint: install})
	case err != nil || bad != nil:
		d.add(finding{Check: aboutNode, Level: warning, Text: fmt.Sprintf("node --version printed %q (%v)", text, err), Hint: install})
	case n < minNode:
		d.add(finding{Check: aboutNode, Level: problem, Text: fmt.Sprintf("node is %s; MCP servers need %d or newer", text, minNode), Hint: install})
	default:
		d.add(finding{Check: aboutNode, Level: fine, Text: "node is " + text})
	}
}

var pinnedVersion = lazyregexp.New(`^v?\d+\.\d+\.\d+`)

// checkPinned warns about an npm package without a fixed version.
func (d *doctor) checkPinned(s schema.Server) {
	p := packages.Of(s.Command, s.Args)
	name, version := p.Cut()
	switch {
	case p.Kind != "npm" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/"):
		return
	case pinnedVersion().MatchString(version):
		d.add(finding{Check: aboutPackages, Level: fine, Server: s.Name, Text: p.Spec})
		return
	}
	d.add(finding{
		Check: aboutPackages, Level: warning, Server: s.Name,
		Text: fmt.Sprintf("%s is not pinned: %s runs whatever was published last", name, packages.Program(s.Command)),
		Hint: fmt.Sprintf("write %s@VERSION; npm view %s version prints the latest", name, name),
	})
}

// checkAddresses checks that the addresses of remote servers answer, with any HTTP status. It sends
// no headers of the config and follows no redirect.
func (d *doctor) checkAddresses(ctx context.Context) {
	client := http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if d.timeout > 0 {
		client.Timeout = d.timeout
	}
	for _, s := range conf.Enabled(d.Cfg) {
		if s.Transport == schema.Stdio || strings.Contains(s.Address(), "${") { // secrets are not resolved here
			continue
		}
		certificates, err := certs.Config(s.TLS)
		if err != nil {
			d.addError(aboutServers, s.Name, err)
			continue
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = certificates
		client.Transport = transport
		status, err := probe(ctx, &client, s.Address())
		transport.CloseIdleConnections()
		if err != nil {
			d.add(finding{Check: aboutServers, Level: problem, Server: s.Name, Text: err.Error(), Hint: cmp.Or(certs.Hint(err), selfhost.URLHint(err))})
			continue
		}
		d.add(finding{Check: aboutServers, Level: fine, Server: s.Name, Text: "answers with HTTP status " + status})
	}
}

func probe(ctx context.Context, client *http.Client, address string) (status string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", errors.New("its url is invalid")
	}
	res, err := client.Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return "", wrapped.Err // without the address, which may contain a secret
	}
	if err != nil {
		return "", err
	}
	res.Body.Close()
	return res.Status, nil
}
