//go:build e2e

package page

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// TestUIShots makes the pictures of the docs, in the directory that DYNMCP_DOCS names. Without it nothing runs.
func TestUIShots(t *testing.T) {
	docs := os.Getenv("DYNMCP_DOCS")
	if docs == "" {
		t.Skip("DYNMCP_DOCS names no directory for the pictures")
	}
	t.Setenv("DYNMCP_SHOTS", docs)
	d := newTeam(t)
	p := openTab(t, d.address)
	p.has("main .name", "github")
	p.has(".totals", "tokens")
	for _, shot := range []struct {
		view          string
		width, height int64
	}{{"servers", 1280, 640}, {"calls", 360, 640}, {"tools", 2560, 560}} {
		for _, scheme := range []string{"light", "dark"} {
			p.do(chromedp.EmulateViewport(shot.width, shot.height), chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
				_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
				return err
			}))
			value[bool](p, "(location.hash = "+quote(shot.view)+", true)")
			p.wait("document.querySelector('nav a[aria-current]')?.hash.startsWith('#" + shot.view + "') && document.querySelectorAll('main .list li').length > 3")
			if wide := value[int64](p, "document.documentElement.scrollWidth"); wide > shot.width {
				t.Errorf("%s at %d is %d wide", shot.view, shot.width, wide)
			}
			p.keep(fmt.Sprintf("ui-%s-%d-%s.png", shot.view, shot.width, scheme))
		}
	}
	live(t, d)
}

// live keeps the picture of a gateway's view Live.
func live(t *testing.T, d *desk) {
	t.Helper()
	run := mcptest.Run(t, mcptest.HostOptions{
		Args: []string{mcptest.Dynmcp(t), "serve", "--http", "127.0.0.1:0", "-c", d.config, "--debug-http", "127.0.0.1:0"}, Env: d.variables, Lingers: true,
	})
	url := regexp.MustCompile(`https?://[0-9.:]+/mcp\n`).FindString(run.WaitStderr("/mcp\n"))
	p := openTab(t, regexp.MustCompile(`http://[0-9.:]+/debug`).FindString(run.WaitStderr("/debug\n")))
	for _, name := range []string{"claude-code", "cursor"} {
		web := begin(t, strings.TrimSpace(url), name)
		for _, tool := range []string{"github/get_issue", "files/open_file", "billing/list_invoices"} {
			web.Call("tools/call", mcptest.ToolParams("use_tool", fmt.Sprintf(`{"tool_name":%q,"tool_input":{}}`, tool)))
		}
	}
	p.do(chromedp.EmulateViewport(1280, 900))
	p.wait(`document.querySelectorAll("#messages li").length > 12`)
	p.keep("gateway-debug.png")
}

// newTeam returns a desk with servers as people have them.
func newTeam(t *testing.T) *desk {
	t.Helper()
	type tool struct{ name, about string }
	servers, entries := []struct {
		name, about string
		tools       []tool
	}{
		{"github", "Issues, pull requests and code search on GitHub.", []tool{{"search_issues", "Search issues and pull requests by text, label, author or state."}, {"get_issue", "Get an issue with its comments."}, {"create_issue", "Open an issue in a repository."}, {"list_commits", "List commits of a branch."}}},
		{"files", "Read and search files of the project.", []tool{{"open_file", "Read a file."}, {"search_files", "Find files by a glob."}, {"write_file", "Write a file, and make its directories."}}},
		{"postgres", "The orders database: read-only SQL.", []tool{{"query", "Run a read-only SQL query."}, {"list_tables", "List the tables of a schema."}}},
		{"browser", "Open pages and take screenshots.", []tool{{"navigate", "Open a page."}, {"screenshot", "Take a screenshot of the page."}, {"click", "Click an element."}}},
		{"calendar", "Events of the team's calendar.", []tool{{"list_events", "List events between two days."}}},
	}, map[string]any{"billing": map[string]any{"command": "/bin/sh", "args": []string{"-c", "echo 'no route to the payments database' >&2; exit 2"}, "description": "Invoices and payments."}}
	for _, s := range servers {
		args := []string{"-bare", "-name", s.name}
		for _, one := range s.tools {
			args = append(args, "-tool", fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What to look for, in words, as they would be in the text"},"limit":{"type":"integer","minimum":1,"maximum":100,"description":"How many results to return at most"},"page":{"type":"integer","description":"The page of the results, from 1"},"sort":{"type":"string","enum":["newest","oldest","best"],"description":"The order of the results"},"fields":{"type":"array","items":{"type":"string"},"description":"The fields to return of each result; all without it"}}}}`, one.name, one.about))
		}
		entries[s.name] = map[string]any{"command": mcptest.Fake(t), "args": args, "description": s.about}
	}
	text, err := json.MarshalIndent(map[string]any{"mcp": entries, "activity": map[string]any{}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	d := emptyDesk(t)
	d.config = filepath.Join(filepath.Dir(d.config), "shop", "mcp.json")
	if err := os.Mkdir(filepath.Dir(d.config), 0o700); err != nil {
		t.Fatal(err)
	}
	d.write(text)
	d.host = mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", d.config}, Env: d.variables})
	d.host.Call("initialize", json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"2.0"}}`))
	d.host.Notify("notifications/initialized", nil)
	for _, s := range servers[:4] {
		for _, one := range s.tools {
			d.use(s.name+"/"+one.name, "x")
		}
	}
	for range 14 {
		d.use("files/open_file", "x")
	}
	d.use("billing/list_invoices", "")
	d.use("postgres/query", "x")
	d.address = d.serve()
	return d
}
