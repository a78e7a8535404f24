package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/procs"
	"github.com/dynmcp/dynmcp/bench/internal/programs"
	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// A cost is the time and the memory for one size of a dimension.
type cost struct {
	size   float64
	took   time.Duration
	memory float64 // MB
}

// A dimension is something that grows, and a measurement of each size.
type dimension struct {
	name    string
	what    string // what is timed
	sizes   []float64
	measure func(g *growing, size float64) (cost, error)
}

var dimensions = []dimension{
	{"tools", "start to a call of the last", []float64{1_000, 10_000, 100_000}, (*growing).tools},
	{"tools", "a search", []float64{1_000, 10_000, 100_000}, (*growing).search},
	{"servers", "start to tools/list", []float64{10, 100, 1_000}, (*growing).servers},
	{"sessions", "to open all", []float64{100, 1_000, 10_000}, (*growing).sessions},
	{"KB a call", "a call", []float64{1, 64, 1 << 10, 4 << 10, 16_000}, (*growing).messages},
	{"in flight", "until all have an answer", []float64{1, 10, 100, 1_000}, (*growing).inFlight},
}

// growing has the directory of the programs that are measured.
type growing struct{ dir string }

// buildGrowing builds the programs in a directory that the caller removes.
func buildGrowing() (*growing, error) {
	if err := programs.EnterRoot(); err != nil {
		return nil, err
	}
	dir, err := programs.Build("./cmd/dynmcp", "./bench/upstream")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &growing{dir}, nil
}

// growth prints the costs of all sizes. Growth is linear where the last two columns stay
// the same.
func growth(w io.Writer, only string, rounds int) error {
	g, err := buildGrowing()
	if err != nil {
		return err
	}
	defer os.RemoveAll(g.dir)
	fmt.Fprintf(w, "growth: time and memory against size, of %d rounds the least and the median\n", rounds)
	fmt.Fprintf(w, "  %-44s %8s %12s %9s %14s %14s\n", "", "size", "ms", "RSS MB", "µs each more", "KB each more")
	for _, d := range dimensions {
		if !strings.Contains(d.name, only) {
			continue
		}
		var before cost
		for _, size := range d.sizes {
			c, err := d.at(g, size, rounds)
			if err != nil {
				return fmt.Errorf("%s, %.0f: %w", d.name, size, err)
			}
			fmt.Fprintf(w, "  %-44s %8.0f %12.2f %9.0f", d.name+": "+d.what, size, c.took.Seconds()*1e3, c.memory)
			if before.size > 0 {
				more := size - before.size
				fmt.Fprintf(w, " %14.2f %14.2f", (c.took-before.took).Seconds()*1e6/more, (c.memory-before.memory)*1024/more)
			}
			fmt.Fprintln(w)
			before = c
		}
	}
	return nil
}

// at returns the least time, which other load on the machine disturbed least, and the
// median of the memory.
func (d *dimension) at(g *growing, size float64, rounds int) (cost, error) {
	took, memory := make([]time.Duration, rounds), make([]float64, rounds)
	for i := range rounds {
		if err := os.RemoveAll(programs.StateHome(g.dir)); err != nil { // what earlier runs have stored
			return cost{}, err
		}
		c, err := d.measure(g, size)
		if err != nil {
			return c, err
		}
		took[i], memory[i] = c.took, c.memory
	}
	return cost{size, slices.Min(took), middle(memory)}, nil
}

func middle[T cmp.Ordered](all []T) T { return slices.Sorted(slices.Values(all))[len(all)/2] }

// A gateway is a running dynmcp with HTTP, and a client of it.
type gateway struct {
	*hosts.Host
	client *http.Client
}

func (g *growing) config() string { return filepath.Join(g.dir, "growth.json") }

// write writes a config with these servers.
func (g *growing) write(entries string) error {
	text := fmt.Sprintf(`{"mcp": {%s}, "gateway": {"max_request_bytes": 33554432, "max_response_bytes": 33554432, "max_connections": 8192}}`, entries)
	return os.WriteFile(g.config(), []byte(text), 0o600)
}

// serve starts dynmcp with these servers, and returns once it has an address.
func (g *growing) serve(entries string) (*gateway, error) {
	if err := g.write(entries); err != nil {
		return nil, err
	}
	h, err := hosts.Serve(exec.Command(filepath.Join(g.dir, "dynmcp"), "serve", "--http", "127.0.0.1:0", "-c", g.config()))
	if err != nil {
		return nil, err
	}
	return &gateway{h, web.NewClient()}, nil
}

func (gw *gateway) close() {
	gw.client.CloseIdleConnections()
	gw.Terminate()
}

// sessions opens sessions and makes one call in each.
func (gw *gateway) sessions(count int) ([]*web.Host, error) {
	all := make([]*web.Host, count)
	for i := range all {
		all[i] = web.NewHost(gw.URL, gw.client)
		if err := all[i].Handshake(context.Background()); err != nil {
			return nil, err
		}
		if err := call(all[i], "upstream/echo", "hello"); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// rss returns the memory of the process in MB. The key is most or now.
func (gw *gateway) rss(key string) float64 {
	return float64(procs.Number(gw.Cmd.Process.Pid, "status", key)) / 1024
}

// cost returns the time since began, and the memory.
func (gw *gateway) cost(began time.Time, key string) cost {
	return cost{took: time.Since(began), memory: gw.rss(key)}
}

const most, now = "VmHWM:", "VmRSS:"

// call calls a tool with a text and expects it in the answer.
func call(h *web.Host, tool, text string) error {
	return want(h, "use_tool", fmt.Sprintf(`{"tool_name":%q,"tool_input":{"text":%q}}`, tool, text), text[:min(len(text), 100)])
}

// want calls a tool of dynmcp and expects a text in the answer.
func want(h *web.Host, tool, arguments, text string) error {
	messages, err := h.Call(context.Background(), "1", tool, arguments)
	if err != nil {
		return err
	}
	if answer := messages[len(messages)-1]; !bytes.Contains(answer, []byte(text)) || bytes.Contains(answer, []byte(`"isError":true`)) {
		return fmt.Errorf("%s: %.300s", tool, answer)
	}
	return nil
}

// entries returns the config entries of count servers. Each has the members in more.
func (g *growing) entries(count int, more string) string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf(`"server-%04d": {"command": %q%s}`, i, filepath.Join(g.dir, "upstream"), more))
	}
	return strings.Join(all, ",")
}

func (g *growing) upstream() string {
	return fmt.Sprintf(`"upstream": {"command": %q}`, filepath.Join(g.dir, "upstream"))
}

// catalogue starts ten servers that have so many tools in total, and calls the last tool
// of each. The cost includes these calls.
func (g *growing) catalogue(tools float64) (gw *gateway, h *web.Host, c cost, err error) {
	began := time.Now()
	each := int(tools) / 10
	if gw, err = g.serve(g.entries(10, fmt.Sprintf(`, "args": ["-tools", "%d"]`, each))); err != nil {
		return nil, nil, c, err
	}
	h = web.NewHost(gw.URL, gw.client)
	if err = h.Handshake(context.Background()); err == nil {
		for i := range 20 { // the first call makes the server announce changes, the second stops it
			err = errors.Join(err, want(h, "use_tool", fmt.Sprintf(`{"tool_name":"server-%04d/tool_%05d","tool_input":{"query":"x"}}`, i/2, each-1), `"text"`))
		}
	}
	return gw, h, gw.cost(began, most), err
}

func (g *growing) tools(size float64) (cost, error) {
	gw, _, c, err := g.catalogue(size)
	if gw != nil {
		defer gw.close()
	}
	return c, err
}

// search asks for words of which all tools have all but one, and one tool of each server has all.
func (g *growing) search(size float64) (cost, error) {
	gw, h, _, err := g.catalogue(size)
	if gw == nil {
		return cost{}, err
	}
	defer gw.close()
	var took []time.Duration
	for i := 0; i < 21 && err == nil; i++ { // the first builds the index
		began := time.Now()
		err = want(h, "discover_tool", fmt.Sprintf(`{"query":"newest records of department %d"}`, i), "tool_")
		took = append(took, time.Since(began))
	}
	memory := gw.rss(now)
	return cost{took: middle(took), memory: memory}, err
}

// servers lists the tools of dynmcp. No server is called, so none starts.
func (g *growing) servers(size float64) (cost, error) {
	began := time.Now()
	gw, err := g.serve(g.entries(int(size), `, "description": "Answers what it is sent. Use it to measure."`))
	if err != nil {
		return cost{}, err
	}
	defer gw.close()
	h := web.NewHost(gw.URL, gw.client)
	if err = h.Handshake(context.Background()); err == nil {
		_, err = h.Send(context.Background(), "", []byte(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`))
	}
	return gw.cost(began, now), err
}

func (g *growing) sessions(size float64) (cost, error) {
	gw, err := g.serve(g.upstream())
	if err != nil {
		return cost{}, err
	}
	defer gw.close()
	began := time.Now()
	_, err = gw.sessions(int(size))
	return gw.cost(began, now), err
}

// messages sends texts of this size back and forth, one at a time.
func (g *growing) messages(size float64) (cost, error) {
	gw, err := g.serve(g.upstream())
	if err != nil {
		return cost{}, err
	}
	defer gw.close()
	text := strings.Repeat("abcdefgh", int(size)<<10/8)
	hosts, err := gw.sessions(1)
	var took []time.Duration
	for i := 0; i < 21 && err == nil; i++ {
		began := time.Now()
		err = call(hosts[0], "upstream/echo", text)
		took = append(took, time.Since(began))
	}
	if err != nil {
		return cost{}, err
	}
	return cost{took: middle(took), memory: gw.rss(most)}, nil
}

// inFlight lets hosts call at once, ten times.
func (g *growing) inFlight(size float64) (cost, error) {
	gw, err := g.serve(g.upstream())
	if err != nil {
		return cost{}, err
	}
	defer gw.close()
	hosts, err := gw.sessions(int(size))
	var took []time.Duration
	for i := 0; i < 11 && err == nil; i++ { // the first opens the connections
		began := time.Now()
		err = all(hosts, func(h *web.Host) error { return call(h, "upstream/echo", "hello") })
		took = append(took, time.Since(began))
	}
	if err != nil {
		return cost{}, err
	}
	return cost{took: middle(took[1:]), memory: gw.rss(most)}, nil
}

// all calls do for all hosts at once.
func all(hosts []*web.Host, do func(*web.Host) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(hosts))
	for i, h := range hosts {
		wg.Go(func() { errs[i] = do(h) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
