// Command recording runs a session of dynmcp in a shell and draws it as an SVG. The servers are fakes
// of npm packages (internal/mcptest/fakenpx). The picture does not depend on the time or the machine:
// go generate changes it only when the output of dynmcp changes.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

//go:generate go run . ../../docs/recording.svg

// home is the home directory in the picture.
const home = "/home/me"

// claude is a config of Claude Code with four servers.
//
//go:embed claude.json
var claude []byte

// session is the typed commands. Each must exit with status 0.
var session = []string{
	"dynmcp import --lazy --vars --write >changes.txt",
	"dynmcp install claude-code --take-over --yes >changes.txt",
	"dynmcp tokens | head -10",
	"dynmcp find --limit 3 create a pull request",
	"dynmcp call github/get_issue owner=me repo=notes issue_number=7",
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("recording: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: recording FILE")
	}
	picture, err := record()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[1], picture, 0o666); err != nil {
		log.Fatal(err)
	}
}

// record runs the session in a temporary home and returns the picture.
func record() ([]byte, error) {
	dir, err := os.MkdirTemp("", "recording")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin, place := filepath.Join(dir, "bin"), filepath.Join(dir, "home")
	if err := build(bin); err != nil {
		return nil, err
	}
	if err := os.Mkdir(place, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(place, ".claude.json"), claude, 0o600); err != nil {
		return nil, err
	}
	var lines []line
	for _, command := range session {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = place
		cmd.Env = []string{"HOME=" + place, "PATH=" + bin + ":/usr/bin:/bin", "DYNMCP_KEYRING=off", "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", command, err, out)
		}
		text := strings.ReplaceAll(string(out), place, home)
		text = strings.ReplaceAll(text, bin, "/usr/local/bin")
		lines = append(lines, line{text: shown(command), typed: true})
		for l := range strings.Lines(text) {
			for _, part := range wrap(strings.TrimRight(l, "\n")) {
				lines = append(lines, line{text: part})
			}
		}
	}
	return draw(lines), nil
}

// shown returns the command without the parts that only limit the output.
func shown(command string) string {
	command, _, _ = strings.Cut(command, " >")
	command, _, _ = strings.Cut(command, " | head")
	return command
}

// build builds dynmcp, and fakenpx as npx.
func build(bin string) error {
	for name, pkg := range map[string]string{"dynmcp": "cmd/dynmcp", "npx": "internal/mcptest/fakenpx"} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(bin, name), "github.com/dynmcp/dynmcp/"+pkg)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go build %s: %w", pkg, err)
		}
	}
	return nil
}

// A line is a line of the picture, typed or printed.
type line struct {
	text  string
	typed bool
}

const (
	columns    = 100
	charWidth  = 8.4
	lineHeight = 19
	margin     = 16
)

// wrap breaks a line where a terminal would.
func wrap(text string) (parts []string) {
	for utf8.RuneCountInString(text) > columns {
		r := []rune(text)
		parts, text = append(parts, string(r[:columns])), string(r[columns:])
	}
	return append(parts, text)
}

const style = `text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d7dbe0;white-space:pre}
.t{fill:#fff;font-weight:600}.l{opacity:0;animation:a 0s forwards}@keyframes a{to{opacity:1}}
@media(prefers-reduced-motion){.l{opacity:1;animation:none}}`

// draw draws the lines, which appear one after the other: a command, and its output a moment later.
func draw(lines []line) []byte {
	var b bytes.Buffer
	width, height := 2*margin+int(columns*charWidth), 2*margin+lineHeight*len(lines)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="A terminal session of dynmcp">`+"\n", width, height)
	fmt.Fprintf(&b, "<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#1b1f24\"/>\n", style)
	at := 0.5
	for i, l := range lines {
		class, text := "l", l.text
		if l.typed {
			class, text = "l t", "$ "+text
			at += 1.5
		} else if i > 0 && lines[i-1].typed {
			at += 0.8
		}
		fmt.Fprintf(&b, "<text class=\"%s\" style=\"animation-delay:%.1fs\" x=\"%d\" y=\"%d\" xml:space=\"preserve\">%s</text>\n",
			class, at, margin, margin+lineHeight*(i+1)-5, html.EscapeString(text))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
