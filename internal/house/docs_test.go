package house

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Limits of the documentation.
const (
	readmeWords       = 950
	architectureWords = 2500
	configWords       = 3000
	allWords          = 25900 // of README, ARCHITECTURE and docs, without the pages of ownWords
	lineChars         = 160
)

// ownWords are pages that have a limit of their own.
var ownWords = map[string]int{"docs/login.md": 1930, "docs/openapi.md": 720, "docs/apps.md": 820, "docs/sandbox.md": 1190, "docs/secrets.md": 450, "docs/moving.md": 1020, "docs/definitions.md": 450, "docs/policy.md": 915, "docs/activity.md": 785, "docs/ui.md": 660, "docs/trust.md": 860, "docs/descriptions.md": 640, "docs/registries.md": 790, "docs/profiles.md": 575, "docs/scripts.md": 1010, "docs/verify.md": 770, "docs/recording.md": 870}

// documents reads the pages that users read, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	paths := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md"}
	if err := fs.WalkDir(os.DirFS("."), "docs", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".md" {
			paths = append(paths, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range paths {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return texts
}

// measured are tables that a program has made.
var measured = regexp.MustCompile(`(?s)<!-- made by: .*?<!-- end -->`)

func TestDocumentsAreShort(t *testing.T) {
	all := 0
	for name, text := range documents(t) {
		words := len(strings.Fields(measured.ReplaceAllString(text, "")))
		if most, ok := ownWords[name]; ok {
			if words > most {
				t.Errorf("%s has %d words, want at most %d", name, words, most)
			}
			words = 0
		}
		if path.Dir(name) == "docs" || path.Dir(name) == "docs/decisions" || name == "README.md" || name == "ARCHITECTURE.md" {
			all += words
		}
		if most, ok := map[string]int{"README.md": readmeWords, "ARCHITECTURE.md": architectureWords, "docs/config.md": configWords}[name]; ok && words > most {
			t.Errorf("%s has %d words, want at most %d", name, words, most)
		}
		n := 0
		for line := range strings.Lines(text) {
			n++
			if chars := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); chars > lineChars {
				t.Errorf("%s:%d has %d characters, want at most %d", name, n, chars, lineChars)
			}
		}
	}
	if all > allWords {
		t.Errorf("README, ARCHITECTURE and docs have %d words, want at most %d", all, allWords)
	}
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpan  = regexp.MustCompile("`[^`]*`")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	file      = regexp.MustCompile("`([a-zA-Z]+(?:/[a-zA-Z0-9_.-]+)+)`")
)

var lateRow = regexp.MustCompile(`(?m)^$\n^\|.*\n(?:[^|]|\|[^-])`)

// A row behind an empty line is in no table.
func TestTablesAreWhole(t *testing.T) {
	for name, text := range documents(t) {
		if row := lateRow.FindString(codeBlock.ReplaceAllString(text, "```")); row != "" {
			t.Errorf("%s has rows without a head: %s", name, row)
		}
	}
}

// A link to a file or a heading leads there.
func TestLinksResolve(t *testing.T) {
	texts := documents(t)
	for name, text := range texts {
		for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target, anchor, _ := strings.Cut(m[1], "#")
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(filepath.FromSlash(file)); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
			if anchor != "" && !slices.Contains(anchors(texts[file]), anchor) {
				t.Errorf("%s links to %s: there is no such heading", name, m[1])
			}
		}
	}
}

// anchors are the names that forges give to the headings of a page.
func anchors(text string) (names []string) {
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return names
}

// The files and packages that documents name exist. docs/packages.md names each package.
func TestHouseIsDescribed(t *testing.T) {
	folders, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	texts := documents(t)
	for pkg := range mayImport {
		if text := texts["docs/packages.md"]; !strings.Contains(pkg, "mcptest/") && !strings.Contains(text, "`"+pkg+"`") {
			t.Errorf("docs/packages.md does not name the package %s: go generate ./packaging/packages", pkg)
		}
	}
	for name, text := range texts {
		for _, m := range file.FindAllStringSubmatch(text, -1) {
			first, _, _ := strings.Cut(m[1], "/")
			ours := slices.ContainsFunc(folders, func(e fs.DirEntry) bool { return e.Name() == first })
			if _, err := os.Stat(m[1]); ours && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// README's command for the tests is the one that .ci/run runs.
func TestReadmeNamesTheTests(t *testing.T) {
	run, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	const command = "go test ./..."
	if !strings.Contains(documents(t)["README.md"], "\n$ "+command+"\n") || !strings.Contains(string(run), "\n"+command+"\n") {
		t.Errorf("README and .ci/run do not both have the command %q", command)
	}
}
