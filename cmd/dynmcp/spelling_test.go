package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// unlisted are verbs that help does not list, but which have no other spelling: dynmcp ps names
// them where they are of use.
var unlisted = []string{"answer"}

// prose are words after "dynmcp" in spans that are no commands: of an error, and the name of the
// service in the keyring.
var prose = []string{"with", "secrets"}

var (
	named  = regexp.MustCompile("(`?)\\bdynmcp ([a-z][a-z-]*)")
	aFlag  = regexp.MustCompile(`^--[a-z][a-z-]*`)
	isWord = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// misspelt returns what help does not show of the verbs and flags that a text names.
func misspelt(root *cobra.Command, text string) (wrong []string) {
	for _, m := range named.FindAllStringSubmatchIndex(text, -1) {
		quoted, verb, rest := m[2] != m[3], text[m[4]:m[5]], text[m[5]:]
		rest = endOfCommand.Split(rest, 2)[0]
		words := strings.Fields(rest)
		cmd, _, err := root.Find([]string{verb})
		if err != nil || cmd == root || cmd.Name() == "help" && !quoted {
			// Prose, such as "dynmcp waits for a host", has neither quotes nor flags.
			if cmd == root && (quoted && !slices.Contains(prose, verb) || len(words) > 0 && aFlag.MatchString(words[0])) {
				wrong = append(wrong, "dynmcp "+verb)
			}
			continue
		}
		dev, _, _ := root.Find([]string{"dev", verb}) // lists verbs that the help of the program does not
		listed := !cmd.Hidden || dev.Name() == verb || slices.Contains(unlisted, verb)
		if verb != cmd.Name() || !listed {
			wrong = append(wrong, "dynmcp "+verb)
			continue
		}
		for _, word := range words {
			if word == "--" || word == "|" {
				break
			}
			if below, _, err := cmd.Find([]string{word}); isWord.MatchString(word) && err == nil && below != cmd {
				cmd = below
			}
			flag := aFlag.FindString(word)
			if flag == "" || flag == "--help" {
				continue
			}
			if f := cmd.Flag(strings.TrimPrefix(flag, "--")); f == nil || f.Hidden {
				wrong = append(wrong, cmd.CommandPath()+" "+flag)
			}
		}
	}
	return wrong
}

// endOfCommand ends a command in a text: the end of a span or line, or of a part of a sentence.
var endOfCommand = regexp.MustCompile("[`\n;,:()'\"]|\\. | and | or ")

// What the program and its documentation tell people to type is what help shows: no verb that has
// another spelling now, and no flag that is gone.
func TestCommandsAreSpeltAsHelpShows(t *testing.T) {
	root, seen := rootCommand(), 0
	check := func(where, text string) {
		seen += len(named.FindAllString(text, -1))
		for _, command := range misspelt(root, text) {
			t.Errorf("%s: help does not show %q", where, command)
		}
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch name := filepath.ToSlash(path)[len("../.."):]; {
		case err != nil:
			return err
		case d.IsDir():
			if name == "/bench" || name == "/internal/mcptest" || name == "/docs/decisions" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" || d.Name() == "node_modules" {
				return fs.SkipDir
			}
		case strings.HasSuffix(name, ".md") && name != "/CHANGELOG.md":
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			check(name[1:], string(text))
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, _ := strconv.Unquote(lit.Value) // the parser has checked it
					check(name[1:]+":"+strconv.Itoa(files.Position(lit.Pos()).Line), text)
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 300 {
		t.Errorf("only %d commands were read", seen)
	}
}

// The check finds what it is for, and leaves prose alone.
func TestMisspeltCommands(t *testing.T) {
	root := rootCommand()
	for text, want := range map[string]string{
		"dynmcp warm lists them":                                 "dynmcp warm",
		"run `dynmcp frobnicate`":                                "dynmcp frobnicate",
		"dynmcp test --stoer":                                    "dynmcp test --stoer",
		"dynmcp policy test --nope x":                            "dynmcp policy test --nope",
		"dynmcp logout github; dynmcp ls":                        "dynmcp logout",
		"dynmcp waits for an MCP host on stdin":                  "",
		"dynmcp test --store, which lists them, and --nothing":   "",
		"dynmcp call files/read --json '{}' -- fakemcp --unlike": "",
		"dynmcp answer 4KQ7ZP2M once":                            "",
	} {
		if got := strings.Join(misspelt(root, text), ", "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
