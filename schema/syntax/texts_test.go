package syntax

import (
	"strings"
	"testing"
)

// The line ends of Windows do not shift the positions of values, and a line that is set ends
// like the others.
func TestLineEndsOfReplacedTexts(t *testing.T) {
	const text = "mcp: # ours\n  git:\n    command: old # the program\n    env: {A: x} # more\n    cwd: here\n"
	for name, windows := range map[string]string{
		"crlf":  strings.ReplaceAll(text, "\n", "\r\n"),
		"bom":   "\xef\xbb\xbf" + text,
		"both":  "\xef\xbb\xbf" + strings.ReplaceAll(text, "\n", "\r\n"),
		"mixed": strings.ReplaceAll(text, "program\n", "program\r\n"),
		"flow":  "\xef\xbb\xbfmcp: {git: {command: old, cwd: here}}\r\n",
	} {
		root := parsed(t, "mcp.yaml", windows)
		git := root.Get("mcp").Get("git")
		out, err := SetTexts("mcp.yaml", []byte(windows), root, map[*Node]string{git.Get("command"): "new", git.Get("cwd"): "there"})
		want := windows
		for _, pair := range [][2]string{{"old", "new"}, {"here", "there"}} {
			want = strings.Replace(want, `"`+pair[0]+`"`, pair[0], 1)
			want = strings.Replace(want, pair[0], `"`+pair[1]+`"`, 1)
		}
		if err != nil || string(out) != want {
			t.Errorf("%s: SetTexts gives %q, %v, want %q", name, out, err, want)
		}
		if name == "flow" {
			continue
		}
		root = parsed(t, "mcp.yaml", windows)
		out, err = SetLine("mcp.yaml", []byte(windows), root, []string{"mcp", "git", "cwd"}, &Node{Kind: Text, Scalar: "there"})
		want = strings.Replace(windows, "here", `"there"`, 1)
		if err != nil || string(out) != want {
			t.Errorf("%s: SetLine gives %q, %v, want %q", name, out, err, want)
		}
	}
}

// A file whose lines end with lone carriage returns is refused, since they shift the positions
// of the parser.
func TestReplacedTextsAfterLoneReturns(t *testing.T) {
	for _, text := range []string{"mcp:\r  git:\r    command: old\r", "mcp:\n  git: # ours\r    command: old\n"} {
		root := parsed(t, "mcp.yaml", text)
		command := root.Get("mcp").Get("git").Get("command")
		if out, err := SetTexts("mcp.yaml", []byte(text), root, map[*Node]string{command: "new"}); err == nil {
			t.Errorf("SetTexts gives %q", out)
		}
		root = parsed(t, "mcp.yaml", text)
		if out, err := SetLine("mcp.yaml", []byte(text), root, []string{"mcp", "git", "command"}, &Node{Kind: Text, Scalar: "new"}); err == nil {
			t.Errorf("SetLine gives %q", out)
		}
	}
}
