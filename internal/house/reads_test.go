package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readers are functions that read or open files by name. Package regular is the one reader:
// it refuses files that are not regular or too large, and ends with its context.
var readers = map[string][]string{
	"os":                         {"ReadFile", "Open", "OpenFile", "Create", "DirFS", "OpenRoot", "OpenInRoot"},
	"io/fs":                      {"ReadFile"},
	"io/ioutil":                  {"ReadFile"},
	"syscall":                    {"Open", "Openat"},
	"golang.org/x/sys/unix":      {"Open", "Openat", "Openat2"},
	"golang.org/x/sys/windows":   {"CreateFile"},
	"crypto/tls":                 {"LoadX509KeyPair"},
	"net/http":                   {"ServeFile", "FileServer", "FileServerFS", "Dir"},
	"text/template":              {"ParseFiles", "ParseGlob", "ParseFS"},
	"html/template":              {"ParseFiles", "ParseGlob", "ParseFS"},
	"github.com/joho/godotenv":   {"Load", "Overload", "Read", "Exec"},
	"github.com/nats-io/nats.go": {"UserCredentials", "UserCredentialsWithSeedFile", "NkeyOptionFromSeed", "RootCAs", "ClientCert"},
	"github.com/rogpeppe/go-internal/lockedfile": {"Read", "Open", "OpenFile", "Create", "Edit", "Transform"},
}

// mayOpen says which functions use a reader themselves, and why they may.
var mayOpen = map[string]string{
	"internal/regular/open_unix.go open":                      "the one reader",
	"internal/regular/open_windows.go open":                   "the one reader",
	"internal/regular/regular.go openWithin":                  "the one reader",
	"internal/atomicfile/atomicfile.go writeSynced":           "creates a file with a name of its own",
	"internal/atomicfile/atomicfile.go syncDir":               "the directory of a file that was just written",
	"internal/guard/start_linux.go StartWith":                 "/dev/null",
	"internal/guard/child/proc_linux.go processes":            "/proc",
	"internal/guard/child/process_linux.go detachStdio":       "/dev/null",
	"internal/guard/child/proc_linux.go readFile":             "below /proc",
	"internal/sandbox/build_linux.go allowOne":                "names a path for a rule, and does not read it",
	"modules/sandbox/box/gate_linux.go connect":               "the memory of a process, below /proc",
	"modules/sandbox/box/gate_linux.go connectFile":           "names a socket to connect to, and does not read it",
	"modules/sandbox/box/gate_linux.go duplicateSocket":       "the status of a process, below /proc",
	"modules/sandbox/box/remove.go removeFiles":               "a directory that is being removed",
	"modules/sandbox/box/trace_linux.go call":                 "the memory of a process, below /proc",
	"internal/wire/pipe_linux.go a variable":                  "below /proc",
	"modules/registry/api/bundle.go unpackInto":               "a directory that was just made, which no path leaves",
	"internal/recording/write.go open":                        "creates a file with a name of its own",
	"internal/activity/files.go open":                         "creates a file with a name of its own, and appends to it",
	"internal/cli/localhttp/dirs.go Lock":                     "opened for reading and writing, which does not block",
	"internal/cli/localhttp/system_unix.go OpenLog":           "opened for writing, without waiting",
	"internal/cli/localhttp/system_windows.go OpenLog":        "opened for writing",
	"internal/cli/localhttp/system_windows.go writePrivately": "created by this call",
	"transports/oauth/logins/files.go lockFile":               "a lock, opened for reading and writing",
	"internal/cli/editfile/editfile.go Lock":                  "a lock, opened for reading and writing",
	"internal/cli/crash/crash.go begin":                       "creates a file with a name of its own",
	"internal/cli/crash/crash.go atEnd":                       "appends to that file",
	"modules/verify/ear.go relay":                             "creates a file in a directory of its own",
}

func TestOneReaderReadsFiles(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		switch {
		case entry.IsDir() && slices.Contains([]string{"bench", "deploy", "packaging", ".git", "internal/mcptest"}, file):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "internal/records/kvtest/"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for where, what := range opens(parsed) {
			where = file + " " + where
			used[where] = true
			if mayOpen[where] == "" {
				t.Errorf("%s uses %s: files are read with internal/regular", where, what)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range slices.Sorted(maps.Keys(mayOpen)) {
		if !used[where] {
			t.Errorf("%s does not open a file: remove it from the table", where)
		}
	}
}

// opens returns the functions of a file that use a reader, with its name.
func opens(file *ast.File) map[string]string {
	packages := map[string]string{} // by the name they have in the file
	for _, spec := range file.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		name := strings.TrimSuffix(path.Base(imported), ".go")
		if spec.Name != nil {
			name = spec.Name.Name
		}
		packages[name] = imported
	}
	found := map[string]string{}
	for _, decl := range file.Decls {
		name := "a variable"
		if f, ok := decl.(*ast.FuncDecl); ok {
			name = f.Name.Name
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(readers[packages[x.Name]], sel.Sel.Name) {
					found[name] = x.Name + "." + sel.Sel.Name
				}
			}
			return true
		})
	}
	return found
}
