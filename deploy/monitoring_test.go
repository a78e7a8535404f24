package deploy

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// The metrics, labels and states in the dashboard and the alerts exist in the metrics of a gateway
// with a server that works and one that does not start.
func TestMonitoringAsksForMetricsThatExist(t *testing.T) {
	metrics := metricsOfARun(t)
	expressions := append(alertExpressions(t), dashboardExpressions(t)...)
	if len(expressions) < 15 {
		t.Fatalf("found %d expressions only", len(expressions))
	}
	selector := regexp.MustCompile(`\b((?:dynmcp|process)_[a-z_]+)(?:\{([^}]*)\})?`)
	label := regexp.MustCompile(`([a-z]+)\s*(=~|!=|=)`)
	for _, expression := range expressions {
		for _, found := range selector.FindAllStringSubmatch(expression, -1) {
			var lines []string
			for line := range strings.Lines(metrics) {
				if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, found[1]+"{") || name == found[1] {
					lines = append(lines, line)
				}
			}
			if len(lines) == 0 {
				t.Errorf("%s: a gateway has no %s", expression, found[1])
				continue
			}
			for _, l := range label.FindAllStringSubmatch(found[2], -1) {
				if l[1] != "instance" && l[1] != "job" && !strings.Contains(lines[0], l[1]+`="`) {
					t.Errorf("%s: %s has no label %s: %s", expression, found[1], l[1], lines[0])
				}
			}
		}
	}
	for _, want := range []string{`state="failed",upstream="broken"} 1`, `outcome="not_sent",upstream="broken"} 1`, `outcome="done",upstream="secrets"}`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics have no %s:\n%s", want, metrics)
		}
	}
}

// promtool is the tool of Prometheus for tests of rules; .ci/alerts installs it.
func TestAlertsFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not on PATH: .ci/alerts runs this with that of Debian's package prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "monitoring"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

func alertExpressions(t *testing.T) (all []string) {
	data, err := os.ReadFile("monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct{ Rules []struct{ Expr string } }
	}
	if err := yaml.Unmarshal(data, &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			all = append(all, r.Expr)
		}
	}
	return all
}

func dashboardExpressions(t *testing.T) (all []string) {
	data, err := os.ReadFile("monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

// metricsOfARun returns the metrics of a gateway after a call of a server that works, another dynmcp,
// and of one that does not start.
func metricsOfARun(t *testing.T) string {
	config := filepath.Join(t.TempDir(), "mcp.json")
	inner := filepath.Join(t.TempDir(), "inner.json")
	write := func(path string, document any) {
		data, err := json.Marshal(document)
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	type object = map[string]any
	write(inner, object{"mcp": object{"none": object{"description": "never used", "command": "none"}}})
	write(config, object{"mcp": object{
		"secrets": object{"description": "works", "command": dynmcp, "args": []string{"-c", inner}},
		"broken":  object{"description": "does not start", "command": "/bin/sh", "args": []string{"-c", "exit 3"}},
	}})
	cmd := exec.Command(dynmcp, "serve", "--http", "127.0.0.1:0", "-c", config)
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Signal(os.Interrupt)
	url, lines := "", bufio.NewScanner(said)
	for at := regexp.MustCompile(`(http://[0-9.:]+)/mcp`); url == "" && lines.Scan(); {
		if found := at.FindStringSubmatch(lines.Text()); found != nil {
			url = found[1]
		}
	}
	if url == "" {
		t.Fatal("the gateway did not print its URL")
	}
	go io.Copy(io.Discard, said)
	host := &http.Client{Timeout: time.Minute}
	for _, path := range []string{"/mcp/secrets/message", "/mcp/broken/message"} {
		resp, err := host.Post(url+path, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"discover_tool","arguments":{}}}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	resp, err := host.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(metrics)
}
