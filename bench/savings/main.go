// Command savings measures what dynmcp saves a host. It compares the servers of a
// config that the host starts itself with the same servers behind dynmcp, all lazy.
// It prints the time until the host has listed its tools, the number of processes,
// their memory, and the tokens of the definitions that a model reads.
//
// Usage, from the root of the module:
//
//	go run -C bench ./savings                 ten servers from npm (bench/savings/servers.json)
//	go run -C bench ./savings -c mcp.json     your own; those without a description are eager
//
// The servers are started once before the measurements, so that npx has installed
// them. Memory is the sum of the proportional shares (PSS) of all processes and is
// known on Linux only. The tokens are those of `dynmcp tokens`.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/procs"
	"github.com/dynmcp/dynmcp/bench/internal/programs"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

func main() {
	log.SetFlags(0)
	config := flag.String("c", "bench/savings/servers.json", "config `file` with the servers")
	rounds := flag.Int("rounds", 3, "measurements, of which the medians are printed")
	flag.Parse()
	if err := programs.EnterRoot(); err != nil {
		log.Fatal(err)
	}
	if err := run(*config, *rounds); err != nil {
		log.Fatal(err)
	}
}

func run(config string, rounds int) error {
	cfg, err := schema.ReadFiles(context.Background(), []string{config}, schema.LoadOptions{}).Load()
	if err != nil {
		return err
	}
	servers := slices.DeleteFunc(slices.Clone(cfg.Servers), func(s schema.Server) bool { return s.Disabled })
	dir, err := programs.Build("./cmd/dynmcp")
	defer os.RemoveAll(dir)
	if err != nil {
		return err
	}
	dynmcp := filepath.Join(dir, "dynmcp")
	if config, err = filepath.Abs(config); err != nil {
		return err
	}
	through := []schema.Server{{Name: "dynmcp", Transport: schema.Stdio, Command: dynmcp, Args: []string{"-c", config, "--log-level", "error"}}}

	log.Printf("starting %d servers once", len(servers))
	if _, err := measure(servers); err != nil {
		return err
	}
	var alone, behind []figures
	for range rounds {
		f, err := measure(servers)
		if err != nil {
			return err
		}
		alone = append(alone, f)
		if f, err = measure(through); err != nil {
			return err
		}
		behind = append(behind, f)
	}
	a, b := median(alone), median(behind)
	fmt.Printf("| %d servers | directly | behind dynmcp |\n|---|---|---|\n", len(servers))
	fmt.Printf("| startup | %.1f s | %.2f s |\n", a.took.Seconds(), b.took.Seconds())
	fmt.Printf("| processes | %d | %d |\n", a.processes, b.processes)
	if a.memory > 0 {
		fmt.Printf("| their memory (PSS) | %d MB | %d MB |\n", a.memory>>10, b.memory>>10)
	}
	fmt.Printf("| tools the model is shown | %d | %d |\n", a.tools, b.tools)
	var read struct{ Direct, Dynmcp int }
	text, err := exec.Command(dynmcp, "tokens", "--json", "-c", config).Output()
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		return fmt.Errorf("dynmcp tokens: %w", err)
	}
	fmt.Printf("| what it reads of them, in tokens of o200k (estimated) | %d | %d |\n", read.Direct, read.Dynmcp)
	return nil
}

// figures are the results of one measurement.
type figures struct {
	took      time.Duration
	processes int
	memory    int // in KB
	tools     int
}

// measure starts servers all at once, as a host does, and lists their tools.
func measure(servers []schema.Server) (figures, error) {
	// The first time, npx downloads the packages.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	mark := "SAVINGS_MARK=" + rand.Text()
	var f figures
	var mu sync.Mutex
	var conns []*upstream.Conn
	defer func() {
		var wg sync.WaitGroup
		for _, c := range conns {
			wg.Go(c.Close)
		}
		wg.Wait()
	}()
	began := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, len(servers))
	for i, s := range servers {
		wg.Go(func() {
			c, err := upstream.Open(s, upstream.ConnOptions{Info: upstream.Info{Name: "savings", Version: "1"}, HandshakeOnly: true, Env: []string{mark}})
			if err != nil {
				errs[i] = err
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			if errs[i] = c.Handshake(ctx, nil); errs[i] != nil {
				return
			}
			tools, err := c.List(ctx, "tools/list", "tools", nil)
			errs[i] = err
			mu.Lock()
			defer mu.Unlock()
			f.tools += len(tools)
		})
	}
	wg.Wait()
	f.took = time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return f, err
	}
	// Let the memory of idle processes settle.
	time.Sleep(2 * time.Second)
	for _, pid := range procs.Marked(mark) {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(bytes.TrimSpace(name)) == "dynmcp-guard" {
			continue // started by this program; the lazy servers of dynmcp have none yet
		}
		f.processes++
		f.memory += procs.Number(pid, "smaps_rollup", "Pss:")
	}
	return f, nil
}

// median returns the median of each figure.
func median(all []figures) figures {
	middle := func(value func(figures) int) int {
		var values []int
		for _, f := range all {
			values = append(values, value(f))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return figures{
		took:      time.Duration(middle(func(f figures) int { return int(f.took) })),
		processes: middle(func(f figures) int { return f.processes }),
		memory:    middle(func(f figures) int { return f.memory }),
		tools:     middle(func(f figures) int { return f.tools }),
	}
}
