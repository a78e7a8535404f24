//go:build unix

package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/mcptest/natstest"
)

// notRun says of commands of the documentation why TestCommandsOfTheDocs does not run
// them, and what does. A name is a page and the beginning of a command, or of the first
// command of a block of sh.
var notRun = map[string]string{
	"README.md: go run ./cmd/dynmcp test":               ".ci/fresh runs it, with packages of npm",
	"README.md: dynmcp import":                          "it needs hosts with servers; testdata/cli2/takeover.txtar has some",
	"README.md: dynmcp install claude-code --take-over": "it needs hosts with servers; testdata/cli2/takeover.txtar has some",
	"README.md: echo '{":                                ".ci/fresh runs it, with packages of npm",
	"README.md: go test":                                ".ci/run runs it",
	"README.md: go install":                             "it writes into the user's GOPATH; .ci/fresh builds the same program",
	"docs/install.md: go install":                       "it writes into the user's GOPATH; .ci/fresh builds the same program",
	"docs/cli.md: dynmcp ls":                            "it shows how earlier starts ended; testdata/cli1 has some",
	"docs/ui.md: dynmcp restart":                        "it needs a run; TestRunsAreFoundAndSteered has one",
	"docs/recording.md: jq":                             "it needs jq; TestExampleWithJQ runs it",
	"docs/recording.md: dynmcp inspect  ":               "it needs a run; TestInspect has one",
	"docs/recording.md: dynmcp inspect --server":        "it needs a run; TestInspect has one",
	"deploy/README.md: go -C deploy":                    "the tests of the module deploy run it",
	"deploy/README.md: DYNMCP_GROUP":                    "it needs Docker; the tests of the module deploy read the file",
	"deploy/README.md: curl":                            "it needs Docker; TestHealthOfAServer asks serve",
	"docs/profiles.md: dynmcp use":                      "it needs a run; TestUseChangesTheProfileOfARun has one",
	"docs/registries.md: dynmcp search":                 "it needs a registry; TestEditScripts runs these with one of its own",
	"docs/registries.md: dynmcp update --check":         "it needs a registry; TestEditScripts runs these with one of its own",
	"docs/login.md: dynmcp login":                       "it needs a person and a browser; TestLoginOpensTheBrowser has both",
	"docs/login.md: curl":                               "it needs a gateway with users; TestEachUserHasHisOwnEnvironment has one",
	"docs/trust.md: dynmcp diff":                        "its status is 1 where something differs; testdata/cli1/trust.txtar runs it",
	"docs/scripts.md: dynmcp run":                       "it needs packages of npm; TestRunFromAShell runs the verb",
	"docs/scripts.md: echo":                             "it needs packages of npm; TestRunFromAShell runs the verb",
	"docs/sandbox.md: dynmcp sandbox":                   "it needs Linux; testdata/cli2/sandbox.txtar runs it",
	"docs/secrets.md: dynmcp secret":                    "it needs a keyring; TestSecretsInTheKeyring has one",
	"docs/secrets.md: gh auth":                          "it needs a keyring; TestSecretsInTheKeyring has one",
	"docs/sharing.md: dynmcp serve --socket":            "it serves until it is ended; the tests of serve_test.go run it",
	"docs/gateway.md: dynmcp serve":                     "it serves until it is ended; the tests of serve_http_test.go run it",
	"docs/gateway.md: OTEL_EXPORTER_OTLP_ENDPOINT=":     "it serves until it is ended; TestTraces has a collector",
	"docs/gateway.md: curl":                             "TestExamplesWithCurl runs it",
	"docs/cluster.md: nats-server":                      "package natstest starts one",
	"docs/cluster.md: dynmcp serve":                     "it serves until it is ended; the tests of clusters run replicas",
	"docs/cluster.md: dynmcp cluster  ":                 "it shows replicas that run; the tests of clusters have them",
	"docs/cluster.md: for machine":                      "it takes three machines; bench/cluster -only mixed upgrades one",
}

// A shown is a command of a page, and the output that the page shows.
type shown struct {
	command string
	output  []string
}

var fenced = regexp.MustCompile("(?ms)^```(sh|console)\n(.*?)^```$")

// unlabelled is a block of another kind than console with a command in it.
var unlabelled = regexp.MustCompile("(?m)^```(?:|text|sh|json)\n\\$ ")

// commands reads the blocks of a page. Each command of a console begins with "$ ", goes on
// in the next line after a \ or |, and has its output below it. A block of sh is one
// script, and shows no output.
func commands(page string) (all []shown) {
	for _, block := range fenced.FindAllStringSubmatch(page, -1) {
		if block[1] == "sh" {
			all = append(all, shown{command: block[2]})
			continue
		}
		goesOn := false
		for line := range strings.Lines(block[2]) {
			line = strings.TrimSuffix(line, "\n")
			command, begins := strings.CutPrefix(line, "$ ")
			switch {
			case begins:
				all = append(all, shown{command: command})
			case goesOn:
				all[len(all)-1].command += "\n" + line
			default:
				last := &all[len(all)-1]
				last.output = append(last.output, line)
			}
			goesOn = (begins || goesOn) && (strings.HasSuffix(line, `\`) || strings.HasSuffix(line, "|"))
		}
	}
	return all
}

// TestCommandsOfTheDocs runs the commands of README and docs in their order, each page in
// a home of its own with the files of testdata/docs/PAGE.txtar. npx is a stand-in. Each
// must succeed and print the lines that the page shows, but for numbers and for lines with
// an ellipsis. What is not run stands in notRun.
func TestCommandsOfTheDocs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, program := range map[string]string{
		"dynmcp": mcptest.Dynmcp(t), "npx": mcptest.Binary(t, "github.com/dynmcp/dynmcp/internal/mcptest/fakenpx"),
	} {
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	used := map[string]bool{}
	for _, path := range append(pages, "../../README.md", "../../deploy/README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if unlabelled.Match(text) {
			t.Errorf("%s has a command in a block that is not of the kind console", path)
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		var run []shown
		for _, c := range commands(string(text)) {
			if why := leftOut(name + ": " + c.command); why != "" {
				used[why] = true
				continue
			}
			run = append(run, c)
		}
		if run != nil {
			t.Run(filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				runDocumented(t, bin, run)
			})
		}
	}
	for name := range notRun {
		if !used[name] {
			t.Errorf("no page has the command %q any more", name)
		}
	}
}

// leftOut is the entry of notRun for a command, or "".
func leftOut(command string) string {
	for name := range notRun {
		if strings.HasPrefix(command, name) {
			return name
		}
	}
	return ""
}

func runDocumented(t *testing.T, bin string, run []shown) {
	home := filepath.Join(t.TempDir(), "me")
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if files, err := txtar.ParseFile(filepath.Join("testdata", "docs", filepath.Base(t.Name())+".txtar")); err == nil {
		for _, f := range files.Files {
			writeFile(t, home, f.Name, string(f.Data))
		}
	}
	env := []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "DYNMCP_KEYRING=off", "GORACE=atexit_sleep_ms=0"}
	if filepath.Base(t.Name()) == "cluster.md" {
		env = append(env, "DYNMCP_CLUSTER="+natstest.Start(t, "").URL, "DYNMCP_CLUSTER_KEY=cluster.key")
	}
	for _, c := range run {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		cmd := exec.CommandContext(ctx, "bash", "-euc", c.command)
		cmd.Dir, cmd.Env = work, env
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.command, err, out)
		}
		got := comparable(string(out))
		for _, line := range c.output {
			if !strings.Contains(line, "…") && !strings.Contains(got, comparable(line)) {
				t.Errorf("%s: the page shows %q, which is not in\n%s", c.command, line, out)
			}
		}
	}
}

var numbers, blanks = regexp.MustCompile(`[0-9][0-9.,:]*`), regexp.MustCompile(`[ \t]+`)

// comparable is a text without numbers and column widths, which differ from run to run.
func comparable(text string) string {
	return strings.TrimSpace(blanks.ReplaceAllString(numbers.ReplaceAllString(text, "N"), " "))
}
