//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/programs"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/natskv"
)

// other is the version of the other replicas.
const other = "0.0.1"

// mixed tests a cluster whose replicas have different versions, with the record of a further replica
// that does not exist: it is older, draining, and has unknown fields.
func (p *proof) mixed() error {
	older := filepath.Join(p.dir, "dynmcp-previous")
	if p.previous == "" {
		fmt.Println("  both versions are this one: -previous names the commit of another")
		if err := buildAs(".", p.dir, older); err != nil {
			return err
		}
	}
	if err := p.sideBySide(older); err != nil {
		return err
	}
	if p.previous == "" {
		return nil
	}
	return p.upgrade(older)
}

// sideBySide tests a cluster in which one of three replicas is of the other version.
func (p *proof) sideBySide(older string) error {
	c, err := p.launch("mixed", setting{servers: servers, local: true, dynmcp: func(replica int) string {
		if replica == 0 {
			return older
		}
		return p.dynmcp
	}})
	if err != nil {
		return err
	}
	defer c.close()
	ghost, err := c.haunt()
	if err != nil {
		return err
	}
	defer ghost()
	w := &crowd{cluster: c, hosts: p.hosts, calls: min(p.calls, 5000), servers: servers}
	w.start()
	w.wait()
	w.mustSucceed("calls that failed, or sessions that were lost")
	if err := c.everyServer(servers); err != nil {
		p.Fail("%v", err)
	}
	shown, err := c.command(c.dynmcp, "cluster")
	if err != nil {
		p.Fail("dynmcp cluster: %v", err)
	}
	for _, what := range []string{"r1", "r2", "r3", other, "ghost", "0.0.0"} {
		if !strings.Contains(shown, what) {
			p.Fail("dynmcp cluster does not show %s", what)
		}
	}
	fmt.Print("    ", strings.ReplaceAll(strings.TrimSpace(shown), "\n", "\n    "), "\n")
	return w.judge(nil)
}

// buildPrevious builds dynmcp of a commit of this repository as the other version.
func buildPrevious(dir, commit string) error {
	source, err := programs.Source(dir, commit)
	if err != nil {
		return fmt.Errorf("-previous: %w", err)
	}
	return buildAs(source, dir, filepath.Join(dir, "dynmcp-previous"))
}

// buildAs builds the dynmcp of a module as if it were of the other version.
func buildAs(module, dir, program string) error {
	file, changed, err := withVersion(module, other)
	if err != nil {
		return err
	}
	instead, overlay := filepath.Join(dir, "version-"+other+".go"), filepath.Join(dir, "overlay-"+other+".json")
	if err := os.WriteFile(instead, changed, 0o600); err != nil {
		return err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: instead}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return err
	}
	return programs.Go(nil, "-C", module, "build", "-overlay", overlay, "-o", program, "./cmd/dynmcp")
}

// withVersion returns the path of the source file of a module that has the version of dynmcp, and its
// text with another version.
func withVersion(module, version string) (file string, changed []byte, err error) {
	declaration := regexp.MustCompile(`(?m)^(const [Vv]ersion = ").*"$`)
	for _, name := range []string{"internal/cli/version.go", "cmd/dynmcp/main.go"} { // the latter in earlier commits
		if file, err = filepath.Abs(filepath.Join(module, name)); err != nil {
			return "", nil, err
		}
		text, _ := os.ReadFile(file) // a missing one has no version
		if declaration.Match(text) {
			return file, declaration.ReplaceAll(text, []byte("${1}"+version+`"`)), nil
		}
	}
	return "", nil, fmt.Errorf("the sources in %s have no version", module)
}

// haunt writes heartbeats of a replica that does not exist, until end is called.
func (c *cluster) haunt() (end func(), err error) {
	store, err := natskv.Open(natskv.StoreOptions{URLs: strings.Split(c.stores(), ","), Name: "ghost"})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	bucket, err := store.Bucket(ctx, "state")
	if err != nil {
		store.Close()
		return nil, err
	}
	record := func(beat int) []byte {
		text, _ := json.Marshal(map[string]any{ // it has an encoding
			"id": "ghost", "name": "ghost", "address": c.net.at(toReplicas, 98) + ":7946", "version": "0.0.0", "epoch": 1, "draining": true, "beat": beat,
			"load": map[string]any{"sessions": 0, "moons": 7}, "mood": map[string]any{"deep": []int{1, 2}}, "tide": "low",
		})
		text = text[:len(text)-1]
		sum := sha256.Sum256(append([]byte("member/ghost\n"), text...))
		return fmt.Appendf(text, `,"sum":"%x"}`, sum[:8])
	}
	revision, err := bucket.Create(ctx, "member/ghost", record(0))
	if err != nil {
		store.Close()
		return nil, err
	}
	stop := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() { c.beat(bucket, revision, record, stop) })
	return func() { close(stop); beating.Wait(); store.Close() }, nil
}

func (c *cluster) beat(bucket records.Bucket, revision uint64, record func(beat int) []byte, stop chan struct{}) {
	for beat := 1; ; beat++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Second):
		}
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		if now, err := bucket.Update(ctx, "member/ghost", record(beat), revision); err == nil {
			revision = now
		}
		cancel()
	}
}
