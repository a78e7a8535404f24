// Package ui has the verb ui, which serves a page on loopback that shows the runs of a user and
// can change them.
//
// Each change is made by a child process, which runs a verb of dynmcp; the page shows its command
// line. The displayed data come from the sockets of the runs, configs, stored listings and the
// record of calls.
package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/localhttp"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/transports/gateway"
)

// Module has the verb ui, and the page of a gateway.
var Module = module.Module{Name: "ui", Verbs: []cli.Verb{verb}, Page: gatewayPage}

// verb serves the page.
var verb = cli.Verb{
	Use:   "ui [flags]",
	Group: cli.Watch,
	Short: "Open a page that shows and controls all runs",
	Long: `Serve a page on this machine, and open it in the browser: the servers of all your runs of
dynmcp and of the config, their tools, calls, what waits for a decision, and what the
model reads. Each change on the page is made by a command, which it shows.

The address has a code that is good for one browser, once, for five minutes. The page
ends with the command.`,
	Example: `  dynmcp ui
  dynmcp ui --no-open -c mcp.json`,
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		var from conf.Flags
		from.Add(cmd)
		address := cmd.Flags().String("listen", "127.0.0.1:0", "the `address` of the page, on this machine")
		noOpen := cmd.Flags().Bool("no-open", false, "print the address and open no browser")
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			ln, err := gateway.Listen(*address, false, false, gateway.Connections(0))
			if err != nil {
				return err
			}
			return serve(ctx, cmd, ln, &from, !*noOpen)
		})
	},
}

// serve serves the page until ctx ends.
func serve(ctx context.Context, cmd *cobra.Command, ln net.Listener, from *conf.Flags, open bool) error {
	s := newServer()
	s.from = from
	s.access = &access{address: ln.Addr().String(), code: rand.Text(), token: rand.Text() + rand.Text(), until: time.Now().Add(codeLife)}
	web := &http.Server{
		Handler:           s.handler(module.Tabs(module.Of(ctx))),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { web.Close() })()
	address := "http://" + ln.Addr().String() + "/#code=" + s.access.code
	cli.Stdout(cmd).Printf("%s\n", address)
	if open {
		remove, err := openBrowser(address)
		if err != nil {
			cli.Stderr(cmd).Say("No browser was opened (%v): open the address above.", err)
		} else {
			defer remove()
		}
	}
	if err := web.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func newServer() *server {
	s := &server{calls: map[string]*journal{}, configs: map[source]*loaded{}}
	if program, err := os.Executable(); err == nil {
		s.program = program
	}
	return s
}

// openBrowser opens an address through a file that only this user can read, because every user of
// the machine can read the arguments of the browser. remove deletes the file.
func openBrowser(address string) (remove func(), err error) {
	if runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return nil, errors.New("there is no display")
	}
	dir, err := os.MkdirTemp("", "dynmcp-ui-") // readable only by this user
	if dirs := localhttp.Dirs(); err != nil && localhttp.MakePrivate(dirs[0]) == nil {
		dir, err = os.MkdirTemp(dirs[0], "ui-")
	}
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path := filepath.Join(dir, "dynmcp.html")
	text := fmt.Sprintf(`<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=%s"><title>dynmcp</title>`, html.EscapeString(address))
	if err = os.WriteFile(path, []byte(text), 0o600); err == nil {
		program := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
		if program == nil {
			program = []string{"xdg-open"}
		}
		err = exec.Command(program[0], append(program[1:], path)...).Run()
	}
	if err != nil {
		remove()
	}
	return remove, err
}
