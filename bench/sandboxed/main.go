// Command sandboxed starts servers of npm without a sandbox and with "sandbox": true, and compares
// their lists byte by byte. It prints a table. The exit status is 1 if a server that starts without a
// sandbox does not start or has other lists with one. Packages are installed into the user's npm cache.
//
//	go run -C bench ./sandboxed [-only NAME]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/modules/sandbox/box"
	"github.com/dynmcp/dynmcp/modules/sandbox/entry"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// corpus has a file for each server, with its package and the variables that it needs.
const corpus = "../../shared/corpus/servers"

// arguments are the arguments that servers require to start.
var arguments = map[string][]string{
	"azure": {"server", "start"}, "azure-all": {"server", "start", "--mode", "all"}, "dbhub": {"--demo"}, "everything": {"stdio"}, "filesystem": {"."},
	"firebase": {"mcp"}, "launchdarkly": {"start", "--api-key", "api-00000000-0000-0000-0000-000000000000"}, "postgres": {"postgresql://localhost/none"},
	"salesforce": {"--orgs", "DEFAULT_TARGET_ORG", "--toolsets", "all"}, "supabase": {"--access-token", "sbp_0000000000000000000000000000000000000000"},
	"playwright": {"--headless"}, "chrome-devtools": {"--headless"},
}

// values are the values of variables whose form servers check; others are "none".
var values = map[string]string{
	"DT_ENVIRONMENT": "https://abc12345.apps.dynatrace.com", "ES_URL": "http://127.0.0.1:9", "GITLAB_API_URL": "http://127.0.0.1:9/api/v4",
	"DT_PLATFORM_TOKEN": "dt0s16.NONE.NONE", "MAPBOX_ACCESS_TOKEN": "pk.eyJ1Ijoibm9uZSJ9.none", "MDB_MCP_TELEMETRY": "disabled", "PRO_MODE": "true",
	"EMBEDDED_AGENT_PROVIDER": "openai",
}

func main() {
	only := flag.String("only", "", "this `server` alone")
	flag.Parse()
	files, err := filepath.Glob(filepath.Join(corpus, "*.json"))
	if err != nil || len(files) == 0 {
		fmt.Fprintf(os.Stderr, "no servers in %s\n", corpus)
		os.Exit(2)
	}
	failed := 0
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "SERVER\tPACKAGE\tWITHOUT\tWITHIN\tREFUSED")
	for _, file := range files {
		s, pkg, err := server(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if pkg == "" || *only != "" && s.Name != *only {
			continue
		}
		if !compare(out, s, pkg) {
			failed++
		}
		out.Flush()
	}
	if failed > 0 {
		fmt.Printf("%d servers need more than \"sandbox\": true\n", failed)
		os.Exit(1)
	}
}

// server returns the server of a file and its package, "" if it is not from npm.
func server(file string) (s schema.Server, pkg string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return s, "", err
	}
	var known struct {
		Package string
		Env     []string
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return s, "", fmt.Errorf("%s: %w", file, err)
	}
	name := strings.TrimSuffix(filepath.Base(file), ".json")
	if strings.Contains(known.Package, ".com/") || strings.Contains(known.Package, ".org/") {
		return s, "", nil
	}
	s = schema.Single("npx", append([]string{"-y", known.Package}, arguments[name]...)).Servers[0]
	s.Name, s.LoadTimeout = name, 8*time.Minute
	s.Env = map[string]string{}
	for _, variable := range known.Env {
		if s.Env[variable] = values[variable]; s.Env[variable] == "" {
			s.Env[variable] = "none"
		}
	}
	return s, known.Package, nil
}

// compare prints a line about a server, and reports whether it works the same in a sandbox.
func compare(out *tabwriter.Writer, s schema.Server, pkg string) bool {
	without, err := lists(s)
	if err != nil {
		fmt.Fprintf(out, "%s\t%s\t%s\t\t\n", s.Name, pkg, firstLine(err))
		return true
	}
	trace := &box.Trace{}
	within, err := lists(entry.Traced(s, trace))
	said, ok := "the same", err == nil && bytes.Equal(without, within)
	switch {
	case err != nil:
		said = firstLine(err)
	case !ok:
		said = "other lists"
	}
	read, write := entry.Needs(s, entry.Boxed(s), trace)
	fmt.Fprintf(out, "%s\t%s\t%d bytes\t%s\tread %s, write %s\n", s.Name, pkg, len(without), said, read, write)
	return ok
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// lists returns all lists of a server.
func lists(s schema.Server) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c, err := upstream.Open(s, upstream.ConnOptions{Info: upstream.Info{Name: "bench", Version: "1"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.Handshake(ctx, nil); err != nil {
		return nil, err
	}
	var all []byte
	for _, list := range [][2]string{{"tools/list", "tools"}, {"resources/list", "resources"}, {"resources/templates/list", "resourceTemplates"}, {"prompts/list", "prompts"}} {
		entries, err := c.List(ctx, list[0], list[1], nil)
		var rpc *wire.Error
		if err != nil && !errors.As(err, &rpc) {
			return nil, err
		}
		for _, entry := range entries {
			all = append(append(all, entry...), '\n')
		}
	}
	return all, nil
}
